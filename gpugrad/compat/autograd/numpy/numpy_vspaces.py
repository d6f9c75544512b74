"""The vector spaces of NumPy's arrays."""

# ruff: noqa: F401
from gpugrad.compat.autograd.core import ArrayVSpace, ComplexArrayVSpace, VSpace
