"""The vector spaces of NumPy's arrays."""

# ruff: noqa: F401
from gpugrad.compat.autograd.vector_spaces import ArrayVSpace, ComplexArrayVSpace, VSpace
