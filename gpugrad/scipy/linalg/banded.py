"""Matrices of which SciPy stores the diagonals within a band.

``overwrite_ab=``, ``overwrite_b=`` and names of LAPACK drivers have no effect.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from gpugrad import linalg as ours
from gpugrad.core.backend import TENSOR as xp
from gpugrad.core.tensor import Tensor
from gpugrad.errors import ArgumentError, ShapeError, saying_where
from gpugrad.numpy.creation import asarray
from gpugrad.ops.linalg import banded

_bands: Any = banded


def _columns(solve: Callable[[Any], Any], b: Any) -> Tensor:
    """The solution for the columns of `b`, or for one vector."""
    b = asarray(b)
    result: Tensor = solve(b[:, None])[:, 0] if b.ndim == 1 else solve(b)
    return result


def _both_triangles(ab: Any, lower: bool) -> tuple[Any, int]:
    """All diagonals of Hermitian matrices from those of one triangle, and how many are above."""
    half = ab.shape[-2] - 1
    other = xp.conj(_bands.transposed_bands(xp, ab, half * lower, half * (not lower)))
    parts = [other[..., :half, :], ab] if lower else [ab, other[..., 1:, :]]
    return xp.concat(parts, axis=-2), half


def _dense(ab: Any, lower: int, upper: int) -> Tensor:
    """The matrices with these diagonals."""
    n, rows = ab.shape[-1], lower + upper + 1
    k = upper + np.arange(n)[:, None] - np.arange(n)
    k = np.where((k >= 0) & (k < rows), k, rows)
    columns = np.broadcast_to(np.arange(n), k.shape)
    dense: Tensor = xp.getitem(_bands.with_zero(xp, ab, -2), index=(Ellipsis, k, columns))
    return dense


@saying_where
def solve_banded(
    l_and_u: tuple[int, int],
    ab: Any,
    b: Any,
    overwrite_ab: bool = False,
    overwrite_b: bool = False,
    check_finite: bool = True,
) -> Tensor:
    """The solution of ``a @ x == b`` for a banded matrix.

    Args:
        l_and_u: the numbers of diagonals below and above the main one.
        ab: array of shape (..., l + u + 1, n), where ab[u + i - j, j] is a[i, j].
        b: array of shape (n,) or (..., n, k).

    Returns:
        Tensor of the shape of `b`. On a GPU it takes memory for n^2 numbers.

    Raises:
        ShapeError: the shapes do not match.
        SingularMatrixError: a matrix is singular.

    >>> print(gg.scipy.linalg.solve_banded((0, 1), [[0.0, 1.0], [1.0, 2.0]], [3.0, 2.0]))
    [2. 1.]
    """
    lower, upper = l_and_u
    return _columns(lambda b: xp.banded_solve(asarray(ab), b, lower=lower, upper=upper), b)


@saying_where
def solveh_banded(
    ab: Any,
    b: Any,
    overwrite_ab: bool = False,
    overwrite_b: bool = False,
    lower: bool = False,
    check_finite: bool = True,
) -> Tensor:
    """The solution of ``a @ x == b`` for a Hermitian positive definite banded matrix.

    Args:
        ab: array of shape (..., u + 1, n): the diagonals of one triangle, as `lower` says.
        b: array of shape (n,) or (..., n, k).

    Returns:
        Tensor of the shape of `b`.

    Raises:
        ShapeError: the shapes do not match.
        SingularMatrixError: a matrix is singular.

    >>> print(gg.scipy.linalg.solveh_banded([[0.0, 1.0], [2.0, 2.0]], [3.0, 3.0]))
    [1. 1.]
    """
    bands, half = _both_triangles(asarray(ab), lower)
    return _columns(lambda b: xp.banded_solve(bands, b, lower=half, upper=half), b)


@saying_where
def cholesky_banded(
    ab: Any, overwrite_ab: bool = False, lower: bool = False, check_finite: bool = True
) -> Tensor:
    """The diagonals of the Cholesky factor of a Hermitian positive definite banded matrix.

    Args:
        ab: array of shape (..., u + 1, n): the diagonals of one triangle, as `lower` says.

    Returns:
        Tensor of the shape of `ab`. It takes memory for n^2 numbers.

    Raises:
        SingularMatrixError: a matrix is not positive definite.

    >>> print(gg.scipy.linalg.cholesky_banded([[0.0, 2.0], [4.0, 5.0]]))
    [[0. 1.]
     [2. 2.]]
    """
    ab = asarray(ab)
    bands, half = _both_triangles(ab, lower)
    factor: Any = ours.cholesky(_dense(bands, half, half), upper=not lower)
    n = ab.shape[-1]
    rows, inside = _bands.stored_places(half + 1, n, 0 if lower else half)
    columns = np.broadcast_to(np.arange(n), rows.shape)
    index = (Ellipsis, np.where(inside, rows, n), columns)
    result: Tensor = xp.getitem(_bands.with_zero(xp, factor, -2), index=index)
    return result


@saying_where
def cho_solve_banded(
    cb_and_lower: tuple[Any, bool], b: Any, overwrite_b: bool = False, check_finite: bool = True
) -> Tensor:
    """The solution of ``a @ x == b``, given the result of `cholesky_banded` for the matrix.

    Args:
        cb_and_lower: the factor's diagonals, and whether it is the lower one.
        b: array of shape (n,) or (..., n, k).

    Returns:
        Tensor of the shape of `b`.

    Raises:
        ShapeError: the shapes do not match.

    >>> factor = gg.scipy.linalg.cholesky_banded([[0.0, 2.0], [4.0, 5.0]])
    >>> print(gg.scipy.linalg.cho_solve_banded((factor, False), [6.0, 7.0]))
    [1. 1.]
    """
    cb, lower = cb_and_lower
    cb = asarray(cb)
    half = cb.shape[-2] - 1
    down, up = (half, 0) if lower else (0, half)
    other = xp.conj(_bands.transposed_bands(xp, cb, down, up))

    def solve(b: Any) -> Any:
        if lower:
            y = xp.banded_solve(cb, b, lower=half, upper=0)
            return xp.banded_solve(other, y, lower=0, upper=half)
        y = xp.banded_solve(other, b, lower=half, upper=0)
        return xp.banded_solve(cb, y, lower=0, upper=half)

    return _columns(solve, b)


def _selected(name: str, w: Any, select: Any, select_range: Any) -> Any:
    """The index of the eigenvalues that are asked for."""
    if select in (0, "a", "all"):
        return slice(None)
    if select in (2, "i", "index"):
        return slice(select_range[0], select_range[1] + 1)
    if select in (1, "v", "value"):
        values = np.asarray(xp.stop_gradient(w))
        return np.nonzero((values > select_range[0]) & (values <= select_range[1]))[0]
    raise ArgumentError(f"{name}: select={select!r} must be 'a', 'v' or 'i'.")


def _eigen(name: str, a: Any, only: bool, select: Any, select_range: Any) -> Any:
    if only:
        w: Any = ours.eigvalsh(a)
        return w[..., _selected(name, w, select, select_range)]
    w, v = ours.eigh(a)
    part = _selected(name, w, select, select_range)
    return w[..., part], v[..., part]


@saying_where
def eig_banded(
    a_band: Any,
    lower: bool = False,
    eigvals_only: bool = False,
    overwrite_a_band: bool = False,
    select: Any = "a",
    select_range: Any = None,
    max_ev: int = 0,
    check_finite: bool = True,
) -> Any:
    """Eigenvalues and eigenvectors of a Hermitian banded matrix.

    Args:
        a_band: array of shape (..., u + 1, n): the diagonals of one triangle, as `lower` says.
        eigvals_only: whether to return the eigenvalues alone.
        select: ``"a"`` for all, ``"i"`` by index, or ``"v"`` by value, which needs known values.
        select_range: the first and last index, or the interval (low, high].

    Returns:
        The eigenvalues of shape (..., m), and the eigenvectors (..., n, m). They take memory for
        n^2 numbers.

    Raises:
        ArgumentError: another `select`.

    >>> print(gg.scipy.linalg.eig_banded([[0.0, 1.0], [2.0, 2.0]], eigvals_only=True))
    [1. 3.]
    """
    bands, half = _both_triangles(asarray(a_band), lower)
    return _eigen("eig_banded", _dense(bands, half, half), eigvals_only, select, select_range)


def eigvals_banded(
    a_band: Any,
    lower: bool = False,
    overwrite_a_band: bool = False,
    select: Any = "a",
    select_range: Any = None,
    check_finite: bool = True,
) -> Any:
    """Eigenvalues of a Hermitian banded matrix, with the arguments of `eig_banded`.

    >>> print(gg.scipy.linalg.eigvals_banded([[0.0, 1.0], [2.0, 2.0]]))
    [1. 3.]
    """
    return eig_banded(a_band, lower, True, select=select, select_range=select_range)


@saying_where
def eigh_tridiagonal(
    d: Any,
    e: Any,
    eigvals_only: bool = False,
    select: Any = "a",
    select_range: Any = None,
    check_finite: bool = True,
    tol: float = 0.0,
    lapack_driver: str = "auto",
) -> Any:
    """Eigenvalues and eigenvectors of a real symmetric tridiagonal matrix.

    Args:
        d: array of shape (..., n), the diagonal.
        e: array of shape (..., n - 1), the diagonals beside it.
        eigvals_only: whether to return the eigenvalues alone.
        select: as for `eig_banded`.
        select_range: as for `eig_banded`.

    Returns:
        The eigenvalues of shape (..., m), and the eigenvectors (..., n, m). They take memory for
        n^2 numbers.

    Raises:
        ArgumentError: another `select`.
        ShapeError: `e` is not one shorter than `d`.

    >>> print(gg.scipy.linalg.eigh_tridiagonal([2.0, 2.0], [1.0], eigvals_only=True))
    [1. 3.]
    """
    d, e = asarray(d), asarray(e)
    if d.ndim < 1 or e.shape != (*d.shape[:-1], d.shape[-1] - 1):
        raise ShapeError(f"eigh_tridiagonal: e {e.shape} must be one shorter than d {d.shape}.")
    bands = xp.stack([d, _bands.with_zero(xp, e, -1)], axis=-2)
    return eig_banded(bands, True, eigvals_only, select=select, select_range=select_range)


def eigvalsh_tridiagonal(
    d: Any,
    e: Any,
    select: Any = "a",
    select_range: Any = None,
    check_finite: bool = True,
    tol: float = 0.0,
    lapack_driver: str = "auto",
) -> Any:
    """Eigenvalues of a real symmetric tridiagonal matrix, with the arguments of `eigh_tridiagonal`.

    >>> print(gg.scipy.linalg.eigvalsh_tridiagonal([2.0, 2.0], [1.0]))
    [1. 3.]
    """
    return eigh_tridiagonal(d, e, True, select, select_range)
