"""A pytest plugin: gpugrad in CuPy's place among the backends that einops' tests go through."""

import os

import einops._backends

os.environ["EINOPS_TEST_BACKENDS"] = "gpugrad"

from gpugrad.integrations.einops import GpugradBackend

einops._backends.CupyBackend = GpugradBackend
