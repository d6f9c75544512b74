"""A pytest plugin: torch as the backend of Keras, before a test module imports it."""

import os

os.environ["KERAS_BACKEND"] = "torch"
