"""Factors and systems with SciPy's arguments: `trans`, `permute_l`, `check_finite`, `overwrite_a`.

`check_finite` is False here: the check waits for the device, and a trace has no values to check.
"""

from __future__ import annotations

from typing import Any

from gpugrad.core.backend import TENSOR as xp
from gpugrad.core.tensor import Tensor, tensor
from gpugrad.errors import ArgumentError, DTypeError, saying_where
from gpugrad.ops.arrays.shape import matrix_transpose
from gpugrad.ops.linalg import factors
from gpugrad.ops.linalg import solve as equations
from gpugrad.ops.linalg.cholesky import cholesky
from gpugrad.ops.math.products import matmul


def need_finite(name: str, check: bool, *arrays: Any) -> None:
    """ArgumentError if the arrays are to be checked and have an infinity or NaN."""
    if check and not all(xp.all(xp.isfinite(tensor(a))) for a in arrays):
        raise ArgumentError(f"{name}: there are infinities or NaN, and check_finite=True.")


@saying_where
def cho_factor(
    a: Any, lower: bool = False, overwrite_a: bool = False, check_finite: bool = False
) -> tuple[Tensor, bool]:
    """Cholesky factor of positive definite matrices, for `cho_solve`.

    Args:
        a: array of shape (..., n, n); only its Hermitian part is used.
        lower: whether to compute the lower triangular L with a = L L^H; otherwise U, a = U^H U.
        overwrite_a: without effect.
        check_finite: whether to raise for infinities and NaN.

    Returns:
        The factor, with 0 in the other triangle, and `lower`.

    Raises:
        ArgumentError: `check_finite` finds a value that is not.
        SingularMatrixError: a matrix is not positive definite.
        ShapeError: the matrices are not square.

    >>> c, lower = gg.linalg.cho_factor([[4.0, 2.0], [2.0, 2.0]])
    >>> print(c)
    [[2. 1.]
     [0. 1.]]
    """
    need_finite("cho_factor", check_finite, a)
    return cholesky(a, upper=not lower), lower


@saying_where
def cho_solve(
    c_and_lower: tuple[Any, bool], b: Any, /, overwrite_b: bool = False, check_finite: bool = False
) -> Tensor:
    """Solve a @ x = b, given the Cholesky factor of `a`.

    Args:
        c_and_lower: the result of `cho_factor` for `a`.
        b: array of shape (..., n, k), or one vector (n,). Batch dimensions are broadcast.
        overwrite_b: without effect.
        check_finite: whether to raise for infinities and NaN.

    Returns:
        Tensor of shape (..., n, k), or (..., n) for a vector.

    Raises:
        ArgumentError: `check_finite` finds a value that is not.
        ShapeError: the shapes do not match.

    >>> factor = gg.linalg.cho_factor([[4.0, 0.0], [0.0, 1.0]])
    >>> print(gg.linalg.cho_solve(factor, [4.0, 3.0]))
    [1. 3.]
    """
    c, lower = c_and_lower
    need_finite("cho_solve", check_finite, b)
    return factors.cho_solve(c, b, lower=lower)


@saying_where
def lu_solve(
    lu_and_pivots: tuple[Any, Any],
    b: Any,
    /,
    trans: int = 0,
    overwrite_b: bool = False,
    check_finite: bool = False,
) -> Tensor:
    """Solve a @ x = b, given the LU factors of `a`.

    Args:
        lu_and_pivots: the result of `lu_factor` for `a`, of shape (..., n, n).
        b: array of shape (..., n, k), or one vector (n,). Batch dimensions are broadcast.
        trans: 1 solves with the transpose of `a`, 2 with the conjugate transpose.
        overwrite_b: without effect.
        check_finite: whether to raise for infinities and NaN.

    Returns:
        Tensor of shape (..., n, k), or (..., n) for a vector.

    Raises:
        ShapeError: the shapes do not match.
        ArgumentError: `trans` is not 0, 1 or 2, or `check_finite` finds a value that is not.
        SingularMatrixError: `a` is singular.

    >>> factors = gg.linalg.lu_factor([[0.0, 2.0], [4.0, 0.0]])
    >>> print(gg.linalg.lu_solve(factors, [2.0, 4.0]))
    [1. 1.]
    """
    packed, pivots = lu_and_pivots
    need_finite("lu_solve", check_finite, b)
    return factors.lu_solve(packed, pivots, b, trans=trans)


@saying_where
def lu(
    x: Any, /, permute_l: bool = False, overwrite_a: bool = False, check_finite: bool = False
) -> tuple[Tensor, ...]:
    """LU factors of matrices: x = P L U.

    Args:
        x: array of shape (..., m, n); k is the smaller of m and n.
        permute_l: whether to return P L in the place of P and L.
        overwrite_a: without effect.
        check_finite: whether to raise for infinities and NaN.

    Returns:
        P, a permutation matrix of shape (..., m, m), constant; L of shape (..., m, k), lower
        triangular with ones on the diagonal; U of shape (..., k, n), upper triangular. The
        gradient is that of `lu_factor`.

    Raises:
        ArgumentError: `check_finite` finds a value that is not.
        ShapeError: there are fewer than two axes.

    >>> p, l, u = gg.linalg.lu([[1.0, 2.0], [2.0, 6.0]])
    >>> print(l)
    [[1.  0. ]
     [0.5 1. ]]
    """
    need_finite("lu", check_finite, x)
    p, low, up = factors.lu(x)
    return (matmul(p, low), up) if permute_l else (p, low, up)


@saying_where
def solve_triangular(
    a: Any,
    b: Any,
    /,
    trans: int | str = 0,
    lower: bool | None = None,
    unit_diagonal: bool = False,
    overwrite_b: bool = False,
    check_finite: bool = False,
    *,
    adjoint: bool = False,
) -> Tensor:
    """Solution of a @ x = b for triangular matrices.

    Args:
        a: array of shape (..., n, n); only one triangle of it is read.
        b: array of shape (..., n, k), or one vector (n,). Batch dimensions are broadcast.
        trans: 1 or ``"T"`` solves with the transpose of `a`, 2 or ``"C"`` with the conjugate
            transpose, as does `adjoint`. `lower` is about `a`.
        lower: which triangle. It must be given, as SciPy's default is the upper one and
            TensorFlow's the lower one.
        unit_diagonal: whether to take the diagonal for ones, and not to read it.
        overwrite_b: without effect.
        check_finite: whether to raise for infinities and NaN.

    Returns:
        Tensor of shape (..., n, k), or (..., n) for a vector.

    Raises:
        ArgumentError: `trans` is none of these, or `check_finite` finds a value that is not.
        ShapeError: the shapes do not match.
        SingularMatrixError: there is a 0 on the diagonal.
        DTypeError: `lower` is missing.

    >>> print(gg.linalg.solve_triangular([[2.0, 0.0], [1.0, 1.0]], [2.0, 3.0], lower=True))
    [1. 2.]
    """
    if lower is None:
        raise DTypeError("solve_triangular: lower= is missing. Pass True or False.")
    if trans not in (0, 1, 2, "N", "T", "C"):
        raise ArgumentError(f"solve_triangular: trans={trans!r} is not 0, 1 or 2, 'N', 'T' or 'C'.")
    need_finite("solve_triangular", check_finite, a, b)
    if trans in (1, "T"):
        a, lower = matrix_transpose(tensor(a)), not lower
    how: Any = {"adjoint": adjoint or trans in (2, "C"), "unit_diagonal": unit_diagonal}
    return equations.solve_triangular(a, b, lower=lower, **how)
