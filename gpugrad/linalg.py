"""Linear algebra: ``gg.linalg``, with the names of the array API standard, NumPy and SciPy.

Matrices are the last two axes of an array; all axes before them are batch dimensions. All functions
except `matrix_rank` have gradients, to any order, for real and complex numbers.

>>> with gg.GradientTape() as tape:
...     a = gg.Variable([[4.0, 2.0], [2.0, 3.0]])
...     sign, logabsdet = gg.linalg.slogdet(a)
>>> print(tape.gradient(logabsdet, a))
[[ 0.375 -0.25 ]
 [-0.25   0.5  ]]
"""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable
from typing import Any, NamedTuple, TypeVar

from gpugrad.core.known_as import answer_missing
from gpugrad.core.tensor import Tensor, operand
from gpugrad.errors import saying_where
from gpugrad.ops.arrays import arrange
from gpugrad.ops.arrays.shape import matrix_transpose
from gpugrad.ops.linalg import decompositions, determinants, least_squares, special_matrices
from gpugrad.ops.linalg.cholesky import cholesky
from gpugrad.ops.linalg.decompositions import eigvals, eigvalsh, svdvals
from gpugrad.ops.linalg.determinants import adjugate, det
from gpugrad.ops.linalg.factors import lu_factor, pivots_to_permutation
from gpugrad.ops.linalg.least_squares import cond, matrix_rank, pinv
from gpugrad.ops.linalg.matrix_functions import expm, logm, polar, solve_sylvester, sqrtm
from gpugrad.ops.linalg.norms import matrix_norm, norm, vector_norm
from gpugrad.ops.linalg.scipy_forms import cho_factor, cho_solve, lu, lu_solve, solve_triangular
from gpugrad.ops.linalg.scipy_matrices import (
    bandwidth,
    companion,
    convolution_matrix,
    dft,
    fiedler,
    fiedler_companion,
    hadamard,
    helmert,
    hilbert,
    invhilbert,
    invpascal,
    leslie,
    pascal,
)
from gpugrad.ops.linalg.solve import inv, matrix_power, solve
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
from gpugrad.ops.math.products import matmul, vecdot
from gpugrad.ops.math.reduction import sum_
from gpugrad.ops.math.tensor_products import cross, kron, outer, tensordot

__all__ = [
    "adjugate", "bandwidth", "block_diag", "cho_factor", "cho_solve", "cholesky", "circulant",
    "companion", "cond", "convolution_matrix", "cross", "det", "dft", "diagonal", "eig", "eigh",
    "eigvals", "eigvalsh", "expm", "fiedler", "fiedler_companion", "hadamard", "hankel", "helmert",
    "hilbert", "inv", "invhilbert", "invpascal", "khatri_rao", "kron", "leslie", "logm", "lstsq",
    "lu", "lu_factor", "lu_solve", "matmul", "matrix_norm", "matrix_power", "matrix_rank",
    "matrix_transpose", "multi_dot", "norm", "outer", "pascal", "pinv", "pivots_to_permutation",
    "polar", "qr", "slogdet", "solve", "solve_sylvester", "solve_triangular", "sqrtm", "svd",
    "svdvals", "tensordot", "tensorinv", "tensorsolve", "toeplitz", "trace", "vander", "vecdot",
    "vector_norm",
]  # fmt: skip

answer_missing(__name__)


def __dir__() -> list[str]:
    return __all__


# ---- named results -----------------------------------------------------------------------


Result = TypeVar("Result")


class EigResult(NamedTuple):
    """The results of `eig`."""

    eigenvalues: Tensor
    eigenvectors: Tensor


class EighResult(NamedTuple):
    """The results of `eigh`."""

    eigenvalues: Tensor
    eigenvectors: Tensor


class LstsqResult(NamedTuple):
    """The results of `lstsq`."""

    x: Tensor
    residuals: Tensor
    rank: Tensor
    s: Tensor


class QRResult(NamedTuple):
    """The results of `qr`."""

    Q: Tensor
    R: Tensor


class SlogdetResult(NamedTuple):
    """The results of `slogdet`."""

    sign: Tensor
    logabsdet: Tensor


class SVDResult(NamedTuple):
    """The results of `svd`."""

    U: Tensor
    S: Tensor
    Vh: Tensor


def _name_results(op: Callable[..., Any], names: Callable[..., Result]) -> Callable[..., Result]:
    """The op with names for its results."""

    @functools.wraps(op)
    def call(*args: Any, **params: Any) -> Result:
        results = op(*args, **params)
        return names(*results) if isinstance(results, tuple) else results  # compute_uv=False

    call.__module__ = __name__  # for pickle, which looks functions up
    signature = inspect.signature(op).replace(return_annotation=names)
    call.__signature__ = signature  # type: ignore[attr-defined]  # inspect reads it
    return call


eig = _name_results(decompositions.eig, EigResult)
eigh = _name_results(decompositions.eigh, EighResult)
slogdet = _name_results(determinants.slogdet, SlogdetResult)
svd = _name_results(decompositions.svd, SVDResult)
cond.__module__ = __name__  # gpugrad.cond is another function


@saying_where
def qr(x: Any, /, *, mode: str = "reduced") -> Any:
    """QR decomposition: orthonormal columns Q and upper triangular R, with Q @ R = x.

    Args:
        x: array of shape (..., m, n); k is the smaller of m and n.
        mode: ``"reduced"``: Q is (..., m, k) and R (..., k, n). ``"complete"``: Q is (..., m, m)
            and R (..., m, n). ``"r"``: only R is returned, of shape (..., k, n).

    Returns:
        Two Tensors named Q and R. The gradient needs linearly independent first k columns of `x`.
        For a complete Q it is correct if the result does not depend on the choice of the columns
        beyond k.

    Raises:
        ArgumentError: `mode` is not one of these.
        ShapeError: there are fewer than two axes.
        SingularMatrixError: in the gradient, if the first k columns are linearly dependent.

    >>> print(gg.abs(gg.linalg.qr([[3.0, 1.0], [4.0, 2.0]]).R).numpy().round(4))
    [[5.  2.2]
     [0.  0.4]]
    """
    if mode == "r":
        return decompositions.qr(x, mode="reduced")[1]
    return QRResult(*decompositions.qr(x, mode=mode))


@saying_where
def lstsq(a: Any, b: Any, /, rcond: float | None = None) -> LstsqResult:
    """Least squares, with the results of numpy.linalg.lstsq, also for batches.

    Args:
        a: array of shape (..., m, n), of any rank.
        b: array of shape (..., m, k), or one vector (m,). Batch dimensions are broadcast.
        rcond: singular values up to `rcond` times the largest count as 0.

    Returns:
        x: the minimum-norm solution that minimizes |a @ x - b|, differentiable in both.
        residuals: sums of squares of b - a @ x, of shape (..., k), or (...) for a vector. NumPy
            omits them if `a` does not have rank n, or if m <= n.
        rank: of `a`.
        s: the singular values of `a`.

    Raises:
        ShapeError: the shapes do not match.

    >>> x, residuals, rank, s = gg.linalg.lstsq([[1.0], [1.0]], [1.0, 3.0])
    >>> print(x.numpy().round(4), residuals.numpy().round(4), rank)
    [2.] 2.0 1
    """
    a, b = operand(a, b), operand(b, a)
    x = least_squares.lstsq(a, b, rcond=rcond)
    vector = b.ndim == 1
    difference = b - (matmul(a, x[..., None])[..., 0] if vector else matmul(a, x))
    residuals = vector_norm(difference, axis=-1 if vector else -2) ** 2
    return LstsqResult(x, residuals, matrix_rank(a, rcond), svdvals(a))


# ---- SciPy's and the standard's signatures -----------------------------------------------


@saying_where
def block_diag(*arrays: Any) -> Tensor:
    """Block diagonal matrix: the arrays along the diagonal, 0 elsewhere.

    Args:
        arrays: of shape (..., m, n), with batch dimensions that broadcast; a vector is one row, a
            number a 1 x 1 matrix.

    Returns:
        Tensor of shape (..., sum of m, sum of n).

    Raises:
        ShapeError: the batch dimensions do not broadcast.

    >>> print(gg.linalg.block_diag([1.0, 2.0], 5.0))
    [[1. 2. 0.]
     [0. 0. 5.]]
    """
    return special_matrices.block_diag(list(arrays))


@saying_where
def diagonal(x: Any, /, *, offset: int = 0) -> Tensor:
    """Elements on a diagonal of matrices, in the last two axes.

    Args:
        x: array of shape (..., m, n).
        offset: the diagonal: 0 is the main one, positive ones are above it.

    Returns:
        Tensor of shape (..., length of the diagonal).

    Raises:
        ShapeError: there are fewer than two axes.

    >>> print(gg.linalg.diagonal([[1.0, 2.0], [3.0, 4.0]], offset=1))
    [2.]
    """
    return arrange.diagonal(x, offset, -2, -1)


@saying_where
def trace(x: Any, /, *, offset: int = 0, dtype: Any = None) -> Tensor:
    """Sum of the elements on a diagonal of matrices.

    Args:
        x: array of shape (..., m, n).
        offset: the diagonal: 0 is the main one, positive ones are above it.
        dtype: of the sum and the result; None: as for `gg.sum`.

    Returns:
        Tensor of shape (...).

    Raises:
        ShapeError: there are fewer than two axes.

    >>> print(gg.linalg.trace([[1.0, 2.0], [3.0, 4.0]], offset=1))
    2.0
    """
    return sum_(diagonal(x, offset=offset), axis=-1, dtype=dtype)
