"""The vector spaces of NumPy's arrays."""

# ruff: noqa: F401
from gpugrad.compat.autograd.vector_spaces import ArrayVSpace, ComplexArrayVSpace, VSpace
from gpugrad.compat.names import forwarding

__getattr__, __dir__ = forwarding(__name__, own=globals())
