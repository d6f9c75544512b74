"""SciPy's ``sparse.linalg`` on Tensors: solutions, and their gradients by entries and right sides.

A solver's gradient is that of the exact solution, by one system with the conjugate transpose that
the same function solves, with the same preconditioner.
"""

from __future__ import annotations

from scipy.sparse.linalg import ArpackError, ArpackNoConvergence, MatrixRankWarning, use_solver

from gpugrad.scipy.sparse.linalg.iterative import (
    bicg,
    bicgstab,
    cg,
    cgs,
    gcrotmk,
    gmres,
    lgmres,
    lsmr,
    lsqr,
    minres,
    qmr,
    tfqmr,
)
from gpugrad.scipy.sparse.linalg.operators import LaplacianNd, LinearOperator, aslinearoperator
from gpugrad.scipy.sparse.linalg.spectral import (
    eigs,
    eigsh,
    expm,
    expm_multiply,
    funm_multiply_krylov,
    lobpcg,
    matrix_power,
    norm,
    onenormest,
    svds,
)
from gpugrad.scipy.sparse.linalg.systems import (
    SuperLU,
    factorized,
    inv,
    is_sptriangular,
    spbandwidth,
    spilu,
    splu,
    spsolve,
    spsolve_triangular,
)

__all__ = [
    "ArpackError",
    "ArpackNoConvergence",
    "LaplacianNd",
    "LinearOperator",
    "MatrixRankWarning",
    "SuperLU",
    "aslinearoperator",
    "bicg",
    "bicgstab",
    "cg",
    "cgs",
    "eigs",
    "eigsh",
    "expm",
    "expm_multiply",
    "factorized",
    "funm_multiply_krylov",
    "gcrotmk",
    "gmres",
    "inv",
    "is_sptriangular",
    "lgmres",
    "lobpcg",
    "lsmr",
    "lsqr",
    "matrix_power",
    "minres",
    "norm",
    "onenormest",
    "qmr",
    "spbandwidth",
    "spilu",
    "splu",
    "spsolve",
    "spsolve_triangular",
    "svds",
    "tfqmr",
    "use_solver",
]
