"""SciPy's ``sparse.linalg`` on Tensors: solutions, and their gradients by entries and right sides.

A solver's gradient is that of the exact solution, by one system with the conjugate transpose that
the same function solves, with the same preconditioner.
"""

from __future__ import annotations

from scipy.sparse.linalg import LinearOperator

from gpugrad.scipy.sparse.linalg.iterative import (
    aslinearoperator,
    bicgstab,
    cg,
    gmres,
    lsmr,
    lsqr,
    minres,
)
from gpugrad.scipy.sparse.linalg.spectral import eigsh, expm_multiply, norm, svds
from gpugrad.scipy.sparse.linalg.systems import (
    SuperLU,
    factorized,
    splu,
    spsolve,
    spsolve_triangular,
)

__all__ = [
    "LinearOperator",
    "SuperLU",
    "aslinearoperator",
    "bicgstab",
    "cg",
    "eigsh",
    "expm_multiply",
    "factorized",
    "gmres",
    "lsmr",
    "lsqr",
    "minres",
    "norm",
    "splu",
    "spsolve",
    "spsolve_triangular",
    "svds",
]
