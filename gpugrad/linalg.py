"""Linear algebra: ``gg.linalg``, by the names of the array API standard, NumPy and SciPy.

Matrices are the last two axes of an array; what stands in front is a stack of them. All
functions but `matrix_rank` have gradients, to any order, for real and complex numbers.

>>> with gg.GradientTape() as tape:
...     a = gg.Variable([[4.0, 2.0], [2.0, 3.0]])
...     sign, logabsdet = gg.linalg.slogdet(a)
>>> print(tape.gradient(logabsdet, a))
[[ 0.375 -0.25 ]
 [-0.25   0.5  ]]
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any, NamedTuple, TypeVar

from gpugrad.core.tensor import Tensor, tensor
from gpugrad.errors import saying_where
from gpugrad.ops.arrays import arrange
from gpugrad.ops.arrays.shape import matrix_transpose
from gpugrad.ops.linalg import decompositions, factors, least_squares, special_matrices
from gpugrad.ops.linalg import solve as _linalg
from gpugrad.ops.linalg.decompositions import eigvals, eigvalsh, svdvals
from gpugrad.ops.linalg.factors import lu, lu_factor, pivots_to_permutation
from gpugrad.ops.linalg.least_squares import cond, matrix_rank, pinv
from gpugrad.ops.linalg.matrix_functions import expm, logm, polar, solve_sylvester, sqrtm
from gpugrad.ops.linalg.norms import matrix_norm, norm, vector_norm
from gpugrad.ops.linalg.solve import (
    adjugate,
    cholesky,
    det,
    inv,
    matrix_power,
    solve,
    solve_triangular,
)
from gpugrad.ops.linalg.special_matrices import (
    circulant,
    hankel,
    khatri_rao,
    multi_dot,
    tensorinv,
    tensorsolve,
    toeplitz,
    vander,
)
from gpugrad.ops.math.products import cross, kron, matmul, outer, tensordot, vecdot
from gpugrad.ops.math.reduction import sum_

__all__ = [
    "adjugate", "block_diag", "cho_factor", "cho_solve", "cholesky", "circulant", "cond", "cross",
    "det", "diagonal", "eig", "eigh", "eigvals", "eigvalsh", "expm", "hankel", "inv",
    "khatri_rao", "kron", "logm", "lstsq", "lu", "lu_factor", "lu_solve", "matmul", "matrix_norm",
    "matrix_power", "matrix_rank", "matrix_transpose", "multi_dot", "norm", "outer", "pinv",
    "pivots_to_permutation", "polar", "qr", "slogdet", "solve", "solve_sylvester",
    "solve_triangular", "sqrtm", "svd", "svdvals", "tensordot", "tensorinv", "tensorsolve",
    "toeplitz", "trace", "vander", "vecdot", "vector_norm",
]  # fmt: skip


def __dir__() -> list[str]:
    return __all__


# ---- results with names ------------------------------------------------------------------


Result = TypeVar("Result")


class EigResult(NamedTuple):
    """What `eig` returns."""

    eigenvalues: Tensor
    eigenvectors: Tensor


class EighResult(NamedTuple):
    """What `eigh` returns."""

    eigenvalues: Tensor
    eigenvectors: Tensor


class LstsqResult(NamedTuple):
    """What `lstsq` returns."""

    x: Tensor
    residuals: Tensor
    rank: Tensor
    s: Tensor


class QRResult(NamedTuple):
    """What `qr` returns."""

    Q: Tensor
    R: Tensor


class SlogdetResult(NamedTuple):
    """What `slogdet` returns."""

    sign: Tensor
    logabsdet: Tensor


class SVDResult(NamedTuple):
    """What `svd` returns."""

    U: Tensor
    S: Tensor
    Vh: Tensor


def _named(op: Callable[..., Any], names: Callable[..., Result]) -> Callable[..., Result]:
    """The op, with names for its results."""

    @functools.wraps(op)
    def named(*args: Any, **params: Any) -> Result:
        return names(*op(*args, **params))

    return named


eig = _named(decompositions.eig, EigResult)
eigh = _named(decompositions.eigh, EighResult)
slogdet = _named(_linalg.slogdet, SlogdetResult)
svd = _named(decompositions.svd, SVDResult)


@saying_where
def qr(x: Any, /, *, mode: str = "reduced") -> Any:
    """Orthonormal columns Q and upper triangular R whose product is `x`.

    Args:
        x: array of shape (..., m, n); k is the smaller of m and n.
        mode: ``"reduced"``: Q is (..., m, k) and R (..., k, n). ``"complete"``: Q is (..., m, m)
            and R (..., m, n). ``"r"``: only R is returned, of shape (..., k, n).

    Returns:
        Two Tensors, Q and R, with these names. The gradient needs k independent first columns
        of `x`. That of a complete Q is right for what does not depend on how its columns beyond
        k are chosen.

    Raises:
        ArgumentError: another mode.
        ShapeError: there are fewer than two axes.
        SingularMatrixError: in the gradient, if the first k columns are not independent.

    >>> print(gg.abs(gg.linalg.qr([[3.0, 1.0], [4.0, 2.0]]).R).numpy().round(4))
    [[5.  2.2]
     [0.  0.4]]
    """
    if mode == "r":
        return decompositions.qr(x, mode="reduced")[1]
    return QRResult(*decompositions.qr(x, mode=mode))


@saying_where
def lstsq(a: Any, b: Any, /, rcond: float | None = None) -> LstsqResult:
    """Least squares, with all that numpy.linalg.lstsq returns; of stacks, too.

    Args:
        a: array of shape (..., m, n), of any rank.
        b: array of shape (..., m, k), or one vector (m,). Stacks are broadcast.
        rcond: singular values up to `rcond` times the largest count as 0.

    Returns:
        x: the shortest of those for which a @ x is nearest to `b`, with gradients by both.
        residuals: sums of squares of b - a @ x, of shape (..., k), or (...) for a vector. NumPy
            leaves them out where `a` has not rank n, or m is not above n.
        rank: of `a`.
        s: the singular values of `a`.

    Raises:
        ShapeError: the shapes do not go together.

    >>> x, residuals, rank, s = gg.linalg.lstsq([[1.0], [1.0]], [1.0, 3.0])
    >>> print(x.numpy().round(4), residuals.numpy().round(4), rank)
    [2.] 2.0 1
    """
    a, b = tensor(a), tensor(b)
    x = least_squares.lstsq(a, b, rcond=rcond)
    vector = b.ndim == 1
    off = b - (matmul(a, x[..., None])[..., 0] if vector else matmul(a, x))
    residuals = vector_norm(off, axis=-1 if vector else -2) ** 2
    return LstsqResult(x, residuals, matrix_rank(a, rcond), svdvals(a))


# ---- SciPy's and the standard's signatures -----------------------------------------------


@saying_where
def block_diag(*arrays: Any) -> Tensor:
    """Matrices along the diagonal of a larger one that is 0 elsewhere.

    Args:
        arrays: of shape (..., m, n), whose stacks are broadcast; a vector is one row, a number a
            matrix of one element.

    Returns:
        Tensor of shape (..., sum of m, sum of n).

    Raises:
        ShapeError: the stacks do not go together.

    >>> print(gg.linalg.block_diag([1.0, 2.0], 5.0))
    [[1. 2. 0.]
     [0. 0. 5.]]
    """
    made: Tensor = special_matrices.block_diag(list(arrays))
    return made


@saying_where
def cho_factor(a: Any, lower: bool = False) -> tuple[Tensor, bool]:
    """Cholesky factor of positive definite matrices, as `cho_solve` takes it.

    Args:
        a: array of shape (..., n, n), of which the Hermitian part is read.
        lower: whether the factor is lower triangular, L with a = L L^H; else U, a = U^H U.

    Returns:
        The factor, 0 in the other triangle, and `lower`.

    Raises:
        SingularMatrixError: a matrix is not positive definite.
        ShapeError: the matrices are not square.

    >>> c, lower = gg.linalg.cho_factor([[4.0, 2.0], [2.0, 2.0]])
    >>> print(c)
    [[2. 1.]
     [0. 1.]]
    """
    return cholesky(a, upper=not lower), lower


@saying_where
def cho_solve(c_and_lower: tuple[Any, bool], b: Any, /) -> Tensor:
    """Solution of a @ x = b, from the Cholesky factor of `a`.

    Args:
        c_and_lower: what `cho_factor` gave for `a`.
        b: array of shape (..., n, k), or one vector (n,). Stacks are broadcast.

    Returns:
        Tensor of shape (..., n, k), or (..., n) for a vector.

    Raises:
        ShapeError: the shapes do not go together.

    >>> factor = gg.linalg.cho_factor([[4.0, 0.0], [0.0, 1.0]])
    >>> print(gg.linalg.cho_solve(factor, [4.0, 3.0]))
    [1. 3.]
    """
    c, lower = c_and_lower
    x: Tensor = factors.cho_solve(c, b, lower=lower)
    return x


@saying_where
def lu_solve(lu_and_pivots: tuple[Any, Any], b: Any, /, trans: int = 0) -> Tensor:
    """Solution of a @ x = b, from the LU factors of `a`.

    Args:
        lu_and_pivots: what `lu_factor` gave for `a`, of shape (..., n, n).
        b: array of shape (..., n, k), or one vector (n,). Stacks are broadcast.
        trans: 1 solves with the transpose of `a`, 2 with the conjugate transpose.

    Returns:
        Tensor of shape (..., n, k), or (..., n) for a vector.

    Raises:
        ShapeError: the shapes do not go together.
        ArgumentError: another `trans`.
        SingularMatrixError: `a` has no inverse.

    >>> factors = gg.linalg.lu_factor([[0.0, 2.0], [4.0, 0.0]])
    >>> print(gg.linalg.lu_solve(factors, [2.0, 4.0]))
    [1. 1.]
    """
    packed, pivots = lu_and_pivots
    x: Tensor = factors.lu_solve(packed, pivots, b, trans=trans)
    return x


@saying_where
def diagonal(x: Any, /, *, offset: int = 0) -> Tensor:
    """Elements on a diagonal of matrices, which are in the last two axes.

    Args:
        x: array of shape (..., m, n).
        offset: the diagonal; 0 is the main one, those above it are positive.

    Returns:
        Tensor of shape (..., length of the diagonal).

    Raises:
        ShapeError: there are fewer than two axes.

    >>> print(gg.linalg.diagonal([[1.0, 2.0], [3.0, 4.0]], offset=1))
    [2.]
    """
    found: Tensor = arrange.diagonal(x, offset, -2, -1)
    return found


@saying_where
def trace(x: Any, /, *, offset: int = 0, dtype: Any = None) -> Tensor:
    """Sum of the elements on a diagonal of matrices.

    Args:
        x: array of shape (..., m, n).
        offset: the diagonal; 0 is the main one, those above it are positive.
        dtype: of the result, in which the sum is computed. None: as for `gg.sum`.

    Returns:
        Tensor of shape (...).

    Raises:
        ShapeError: there are fewer than two axes.

    >>> print(gg.linalg.trace([[1.0, 2.0], [3.0, 4.0]], offset=1))
    2.0
    """
    total: Tensor = sum_(diagonal(x, offset=offset), axis=-1, dtype=dtype)
    return total
