"""A pytest plugin: TensorLy's tests on gpugrad."""

import tensorly

import gpugrad.integrations.tensorly  # noqa: F401

tensorly.set_backend("gpugrad")
