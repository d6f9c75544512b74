"""Bases of subspaces, singular values and balanced matrices, of other ops.

``overwrite_a=`` and names of LAPACK drivers have no effect. Where a
rank depends on the values, these are read on the host.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.linalg

from gpugrad import linalg as ours
from gpugrad.core.backend import TENSOR as xp
from gpugrad.core.tensor import Tensor
from gpugrad.errors import ArgumentError, ShapeError, saying_where
from gpugrad.numpy.creation import asarray
from gpugrad.scipy.linalg.factors import matrix
from gpugrad.scipy.linalg.forms import of_triangle, pinv
from gpugrad.scipy.linalg.turned import adjoint, square, values


def _rank(a: Any, rcond: Any) -> int:
    s = np.linalg.svd(values(a), compute_uv=False)
    if rcond is None:
        rcond = np.finfo(s.dtype).eps * max(a.shape)
    return int(np.sum(s > np.amax(s, initial=0.0) * rcond))


@saying_where
def orth(A: Any, rcond: Any = None) -> Tensor:
    """An orthonormal basis of the range of a matrix: left singular vectors.

    Args:
        A: array of shape (m, n).
        rcond: singular values up to `rcond` times the largest count as 0.

    Returns:
        Tensor of shape (m, rank).

    Raises:
        ShapeError: `A` is not one matrix.

    >>> print(gg.abs(gg.scipy.linalg.orth([[2.0, 0.0], [0.0, 0.0]])))
    [[1.]
     [0.]]
    """
    A = matrix("orth", A)
    u: Any = ours.svd(A, full_matrices=False)[0]
    return u[:, : _rank(A, rcond)]


@saying_where
def null_space(
    A: Any,
    rcond: Any = None,
    *,
    overwrite_a: bool = False,
    check_finite: bool = True,
    lapack_driver: str = "gesdd",
) -> Tensor:
    """An orthonormal basis of the null space of a matrix.

    Args:
        A: array of shape (m, n).
        rcond: singular values up to `rcond` times the largest count as 0.

    Returns:
        Tensor of shape (n, n - rank). Its derivative moves the basis by as little as the space
        moves: it does not turn within the space.

    Raises:
        ShapeError: `A` is not one matrix.

    >>> print(gg.abs(gg.scipy.linalg.null_space([[2.0, 0.0]])))
    [[0.]
     [1.]]
    """
    A = matrix("null_space", A)
    basis = asarray(scipy.linalg.null_space(values(A), rcond))
    if not basis.size:
        return basis
    inverse: Any = ours.pinv(A, np.finfo(A.dtype).eps * max(A.shape) if rcond is None else rcond)
    moved: Tensor = ours.polar(basis - inverse @ (A @ basis))[0]
    return moved


@saying_where
def subspace_angles(A: Any, B: Any) -> Tensor:
    """Angles between the ranges of two matrices, the largest first.

    A. Knyazev, M. Argentati, SIAM J. Sci. Comput. 23 (2002) 2009.

    Args:
        A: array of shape (m, n).
        B: array of shape (m, k).

    Returns:
        Tensor of shape (min(n, k),), if the matrices have full rank.

    Raises:
        ShapeError: the numbers of rows differ.

    >>> print(gg.scipy.linalg.subspace_angles([[1.0], [0.0]], [[1.0], [1.0]]).numpy().round(4))
    [0.7854]
    """
    A, B = matrix("subspace_angles", A), matrix("subspace_angles", B)
    if len(A) != len(B):
        raise ShapeError(f"subspace_angles: A {A.shape} and B {B.shape} must have the same rows.")
    a, b = orth(A), orth(B)
    product = adjoint(a) @ b
    sigma: Any = ours.svdvals(product)
    rest = b - a @ product if a.shape[1] >= b.shape[1] else a - b @ adjoint(product)
    small = xp.square(sigma) >= 0.5
    sine = xp.clip(ours.svdvals(rest), -1.0, 1.0)
    cosine = xp.clip(xp.flip(sigma, axis=0), -1.0, 1.0)
    return xp.where(
        small, xp.asin(xp.where(small, sine, 0.0)), xp.acos(xp.where(small, 0.0, cosine))
    )


@saying_where
def diagsvd(s: Any, M: int, N: int) -> Tensor:
    """The diagonal matrix of singular values, of shape (M, N).

    Args:
        s: array of shape (k,), where k is `M` or `N`.
        M: int, the number of rows.
        N: int, the number of columns.

    Returns:
        Tensor of shape (M, N).

    Raises:
        ArgumentError: the length of `s` is neither `M` nor `N`.

    >>> print(gg.scipy.linalg.diagsvd([2.0], 1, 2))
    [[2. 0.]]
    """
    s = asarray(s)
    k = s.shape[0]
    if k not in (M, N) or k > min(M, N):
        raise ArgumentError(f"diagsvd: the length {k} of s must be M={M} or N={N}.")
    return xp.pad(xp.diag(s), ((0, M - k), (0, N - k)))


@saying_where
def orthogonal_procrustes(A: Any, B: Any, check_finite: bool = True) -> tuple[Tensor, Tensor]:
    """The orthogonal matrix R for which ``A @ R`` is nearest to `B`, and its scale.

    Args:
        A: array of shape (m, n).
        B: array of shape (m, n).

    Returns:
        R of shape (n, n), and the sum of the singular values of ``A^H @ B``.

    Raises:
        ShapeError: the shapes differ.

    >>> r, scale = gg.scipy.linalg.orthogonal_procrustes([[2.0, 0.0], [0.0, 1.0]], np.eye(2))
    >>> print(scale)
    3.0
    """
    A, B = matrix("orthogonal_procrustes", A), matrix("orthogonal_procrustes", B)
    if A.shape != B.shape:
        raise ShapeError(f"orthogonal_procrustes: A {A.shape} and B {B.shape} differ.")
    product = adjoint(A) @ B
    return ours.polar(product)[0], xp.sum(ours.svdvals(product))


@saying_where
def matrix_balance(
    A: Any,
    permute: bool = True,
    scale: bool = True,
    separate: bool = False,
    overwrite_a: bool = False,
) -> tuple[Any, Any]:
    """A matrix similar to `A` whose rows and columns have norms of about the same size.

    Args:
        A: array of shape (n, n), whose values are read on the host.
        permute: whether to permute rows and columns.
        scale: whether to scale them by powers of 2.
        separate: whether to return the scales and the permutation as two vectors.

    Returns:
        The balanced matrix ``inv(T) @ A @ T``, and T, or the scales and the permutation; these
        are constants.

    Raises:
        ShapeError: the matrix is not square.

    >>> print(gg.scipy.linalg.matrix_balance([[1.0, 64.0], [1.0, 1.0]])[0])
    [[1. 8.]
     [8. 1.]]
    """
    A = square("matrix_balance", A)
    _, (scales, order) = scipy.linalg.matrix_balance(values(A), permute, scale, separate=1)
    balanced = A[order][:, order] * (scales / scales[:, None]).astype(A.dtype)
    if separate:
        return balanced, (asarray(scales), asarray(order))
    inverse = np.empty_like(order)
    inverse[order] = np.arange(len(order))
    return balanced, asarray(np.diag(scales)[inverse, :])


@saying_where
def pinvh(
    a: Any,
    atol: Any = None,
    rtol: Any = None,
    lower: bool = True,
    return_rank: bool = False,
    check_finite: bool = True,
) -> Any:
    """The pseudoinverse of a Hermitian matrix, of which one triangle is read.

    Args:
        a: array of shape (n, n).
        atol: eigenvalues up to ``atol + rtol * max(abs(w))`` count as 0.
        rtol: as `atol`; None is n times the dtype's epsilon.
        lower: which triangle.
        return_rank: whether to return the rank too.

    Returns:
        Tensor of shape (n, n), and the rank if that is asked for.

    Raises:
        ShapeError: the matrix is not square.

    >>> print(gg.scipy.linalg.pinvh([[2.0, 0.0], [0.0, 0.0]]))
    [[0.5 0. ]
     [0.  0. ]]
    """
    a = of_triangle("pinvh", matrix("pinvh", a), "her", lower)
    return pinv(a, atol=atol, rtol=rtol, return_rank=return_rank)
