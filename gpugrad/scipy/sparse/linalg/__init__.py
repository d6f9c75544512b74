"""SciPy's ``sparse.linalg`` on Tensors: solutions, and their gradients by entries and right sides.

A solver's gradient is that of the exact solution, by one system with the conjugate transpose that
the same function solves, with the same preconditioner.
"""

from __future__ import annotations

from scipy.sparse import linalg as _scipys

from gpugrad.scipy.signatures import lazy
from gpugrad.scipy.sparse.linalg import functions, iterative, operators, spectral, systems

_PARTS = (operators, iterative, functions, spectral, systems)
_NAMES = {name: value for part in _PARTS for name, value in vars(part).items()}
_OF_SCIPY = ("ArpackError", "ArpackNoConvergence", "MatrixRankWarning", "use_solver")
_NAMES |= {name: getattr(_scipys, name) for name in _OF_SCIPY}
__all__ = sorted({*_scipys.__all__}.intersection(_NAMES))


__getattr__, __dir__ = lazy(globals(), _NAMES.__getitem__)
