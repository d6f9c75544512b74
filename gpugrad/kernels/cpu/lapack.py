"""Cholesky factors, systems of equations and singular values by NumPy's LAPACK: lapack.cpp.

NumPy calls the same functions, but lets OpenBLAS start threads, which are of little use for one
matrix of this size, and computes the matrices of a stack one after the other. Factors are computed
in float64, as by NumPy. The launchers return NotImplemented for matrices that are small, large, or
of other dtypes, and for those without a factor: then NumPy's function raises its error.
"""

from __future__ import annotations

import ctypes
import functools
import math
from collections import deque
from typing import Any

import numpy as np

from gpugrad.kernels.cpu import blas, products
from gpugrad.kernels.cpu.large import WIDE, kernels

LEAST_SIZE = 1 << 12
"""Elements of all matrices from which it is worth asking these functions."""
_LEAST_WORK = 1 << 20
"""Sum of cubes of sizes, from which they take less time than NumPy's functions."""
_MOST = {"cholesky": 2048, "solve": 512, "svd": 256}
"""Sizes up to which matrices are factored here: OpenBLAS's threads are as fast for larger ones."""
_NAMES = (
    *("strsm", "dtrsm", "strmm", "dtrmm", "sgemm", "dgemm"),
    *("dpotrf", "dgetrf", "dgetrs", "dlaswp", "dgesdd"),
)


@functools.cache
def _library() -> Any:
    names = blas.names() if products.library() is not None else None
    routines = blas.addresses(names.of_fortran, _NAMES) if names else [None]
    if names is None or not all(routines):
        return None
    in_c = kernels("pool").Kernels(
        "lapack",
        flags=("-ffp-contract=fast",),
        set_lapack="p l",
        cholesky="l pp ll > l",
        cholesky_gradient="l pp ll",
        lu="l ppp ll > l",
        lu_solve="l pppp llll",
        triangular="l pp llllll",
        svd="l pppp llll > l",
    )
    if in_c.loaded is None:
        return None
    in_c.set_lapack((ctypes.c_void_p * len(_NAMES))(*routines), names.long_integers)
    return in_c


def _loaded(x: Any, most: float = math.inf) -> Any:
    """The library, if matrices of a size up to `most` are worth it."""
    m, n = x.shape[-2:]
    fits = max(m, n) <= most and x.size * min(m, n) >= _LEAST_WORK and x.dtype in WIDE
    return _library() if fits else None


def _is_square(x: Any) -> bool:
    return x.ndim > 1 and x.shape[-1] == x.shape[-2]


def cholesky(xp: Any, x: Any, /, *, upper: bool = False) -> Any:
    """The factor of `gg.cholesky`."""
    library = _loaded(x, _MOST["cholesky"]) if _is_square(x) else None
    if library is None:
        return NotImplemented
    x, out = np.ascontiguousarray(x), np.empty(x.shape, x.dtype)
    sizes = x.size // x.shape[-1] ** 2, x.shape[-1]
    if not library.cholesky(WIDE[x.dtype], x, out, *sizes):
        return NotImplemented
    return out.swapaxes(-1, -2) if upper else out


def cholesky_grad(xp: Any, g: Any, out: Any, /) -> Any:
    """The gradient by a symmetric matrix, from the one by its lower factor `out`."""
    same = type(g) is type(out) and g.shape == out.shape and g.dtype == out.dtype
    library = _loaded(out) if same and _is_square(out) else None
    if library is None or not np.diagonal(out, 0, -2, -1).all():
        return NotImplemented
    out, g = np.ascontiguousarray(out), g.copy(order="C")
    sizes = out.size // out.shape[-1] ** 2, out.shape[-1]
    library.cholesky_gradient(WIDE[g.dtype], out, g, *sizes)
    return g


def solve_triangular(
    xp: Any, a: Any, b: Any, /, *, lower: bool, adjoint: bool = False, unit_diagonal: bool = False
) -> Any:
    """The solution of `gg.solve_triangular` for matrices b whose stack is that of `a`."""
    same = type(b) is np.ndarray and b.dtype == a.dtype and _is_square(a)
    if not same or a.ndim != b.ndim or a.shape[:-1] != b.shape[:-1] or not b.size:
        return NotImplemented
    library = _loaded(a) if a.size * b.shape[-1] >= _LEAST_WORK else None
    if library is None or not (unit_diagonal or np.diagonal(a, 0, -2, -1).all()):
        return NotImplemented
    lower, adjoint = bool(lower), bool(adjoint)
    if not a.flags.c_contiguous and a.swapaxes(-1, -2).flags.c_contiguous:
        a, lower, adjoint = a.swapaxes(-1, -2), not lower, not adjoint
    a, out = np.ascontiguousarray(a), b.copy()
    sizes = a.size // a.shape[-1] ** 2, *b.shape[-2:]
    library.triangular(WIDE[a.dtype], a, out, lower, adjoint, bool(unit_diagonal), *sizes)
    return out


def svd(xp: Any, x: Any, /, *, full_matrices: bool = True) -> Any:
    """The results of `gg.linalg.svd`."""
    library = _loaded(x, _MOST["svd"]) if x.ndim > 1 else None
    if library is None:
        return NotImplemented
    *stack, m, n = x.shape
    k = min(m, n)
    x = np.ascontiguousarray(x)
    u = np.empty((*stack, m, m if full_matrices else k), x.dtype)
    s = np.empty((*stack, k), x.dtype)
    vh = np.empty((*stack, n if full_matrices else k, n), x.dtype)
    sizes = math.prod(stack), m, n
    good = library.svd(WIDE[x.dtype], x, u, s, vh, bool(full_matrices), *sizes)
    return (u, s, vh) if good else NotImplemented


# ---- systems of equations ----------------------------------------------------------------

_KEPT: deque[tuple[Any, Any, Any]] = deque(maxlen=4)
"""Matrices and their factors. The gradient of a solution solves with their transposes."""
_MOST_KEPT = 1 << 18
"""Elements of the largest stack that is kept: 4 MB with its factors."""


def solve(xp: Any, a: Any, b: Any, /) -> Any:
    """The solution of `gg.solve` for matrices b whose stack is that of `a`."""
    vector = type(b) is np.ndarray and b.ndim == 1
    b = b[:, None] if vector else b
    same = type(b) is np.ndarray and b.dtype == a.dtype and _is_square(a)
    if not same or a.ndim != b.ndim or a.shape[:-1] != b.shape[:-1] or not b.size:
        return NotImplemented
    library = _loaded(a, _MOST["solve"])
    if library is None:
        return NotImplemented
    adjoint = not a.flags.c_contiguous and a.swapaxes(-1, -2).flags.c_contiguous
    a = a.swapaxes(-1, -2) if adjoint else np.ascontiguousarray(a)
    factors = (adjoint and _kept(a)) or _factors(library, a)
    if factors is None:
        return NotImplemented
    b, out = np.ascontiguousarray(b), np.empty(b.shape, b.dtype)
    sizes = a.size // a.shape[-1] ** 2, *b.shape[-2:]
    library.lu_solve(WIDE[a.dtype], *factors, b, out, adjoint, *sizes)
    return out[:, 0] if vector else out


def _factors(library: Any, a: Any) -> tuple[Any, Any] | None:
    """LU factors and pivots, which are kept; None if a matrix is singular."""
    lu, pivots = np.empty(a.shape), np.empty(a.shape[:-1], np.int64)
    sizes = a.size // a.shape[-1] ** 2, a.shape[-1]
    if not library.lu(WIDE[a.dtype], a, lu, pivots, *sizes):
        return None
    if a.size <= _MOST_KEPT:
        _KEPT.append((a.copy(), lu, pivots))
    return lu, pivots


def _kept(a: Any) -> tuple[Any, Any] | None:
    """The factors of matrices that are kept, which most often the first rows rule out."""
    for matrices, lu, pivots in tuple(_KEPT):
        same = matrices.dtype == a.dtype and matrices.shape == a.shape
        if same and np.array_equal(matrices[0], a[0]) and np.array_equal(matrices, a):
            return lu, pivots
    return None
