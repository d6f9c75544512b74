"""SciPy's names, for boxes too, where autograd has them."""

from gpugrad.compat.names import forwarding

__getattr__, __dir__ = forwarding(
    __name__, submodules=("integrate", "linalg", "signal", "special", "stats")
)
