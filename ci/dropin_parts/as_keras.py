"""A pytest plugin: gpugrad as the backend of Keras, before a test module imports it."""

import gpugrad.integrations.keras  # noqa: F401
