"""SciPy's names, for boxes too, where autograd has them."""

# ruff: noqa: F401
from gpugrad.compat.autograd.scipy import integrate, linalg, signal, special, stats
from gpugrad.compat.names import forwarding

__getattr__, __dir__ = forwarding(__name__, own=globals())
