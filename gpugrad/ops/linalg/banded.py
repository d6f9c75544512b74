"""Systems with matrices of few numbers: banded ones, stored by diagonals, and Toeplitz ones."""

import operator

import numpy as np

from gpugrad.core.backend import NUMPY
from gpugrad.core.samples import uniform
from gpugrad.errors import ShapeError, SingularMatrixError
from gpugrad.ops.linalg.common import as_inexact, part
from gpugrad.registry.record import op
from gpugrad.registry.rules import conjugate


def stored_places(rows, n, upper):
    """For each stored number its row in the matrix, and whether it lies inside."""
    row = np.arange(n) + np.arange(rows)[:, None] - upper
    return row, (row >= 0) & (row < n)


def with_zero(xp, x, axis):
    """An array with a 0 more along an axis, for indices outside."""
    return xp.pad(x, tuple((0, int(k == axis % x.ndim)) for k in range(x.ndim)))


def transposed_bands(xp, ab, lower, upper):
    """The diagonals of the transposed matrices, where column j has what was in row j."""
    *stack, rows, n = ab.shape
    around = ((0, 0),) * len(stack)
    wide = xp.pad(xp.flip(ab, axis=-2), (*around, (0, 0), (lower, upper)))
    length = n + lower + upper  # of a row; in rows longer by 1, each begins one element later
    line = xp.pad(xp.reshape(wide, (*stack, rows * length)), (*around, (0, rows)))
    return part(xp, xp.reshape(line, (*stack, rows, length + 1)), 0, n)


def _of_right_side(xp, g, ab, lower, upper, b_shape):
    adjoint = conjugate(xp, transposed_bands(xp, ab, lower, upper))
    return xp.sum_to(xp.banded_solve(adjoint, g, lower=upper, upper=lower), b_shape)


def _of_bands(xp, g, out, ab, lower, upper):
    adjoint = conjugate(xp, transposed_bands(xp, ab, lower, upper))
    u = xp.banded_solve(adjoint, g, lower=upper, upper=lower)
    u = xp.pad(u, (*((0, 0),) * (u.ndim - 2), (upper, lower), (0, 0)))
    u = xp.windows(u, ab.shape[-1], axis=-2)  # (..., rows, k, n)
    products = u * conjugate(xp, xp.expand_dims(xp.matrix_transpose(out), axis=-3))
    return xp.sum_to(-xp.sum(products, axis=-2), ab.shape)


def _dense(lib, ab, upper):
    rows, inside = stored_places(ab.shape[-2], ab.shape[-1], upper)
    out = lib.zeros((*ab.shape[:-2], ab.shape[-1], ab.shape[-1]), dtype=ab.dtype)
    k, j = np.nonzero(inside)
    out[..., rows[k, j], j] = ab[..., k, j]
    return out


def _samples(rng):
    for lower, upper, stack in ((1, 1, ()), (2, 0, ()), (0, 1, (2,)), (1, 2, (0,))):
        ab = uniform(rng, *stack, lower + upper + 1, 4, low=-0.5, high=0.5)
        ab[..., upper, :] += 2
        yield [ab, uniform(rng, *stack, 4, 2)], {"lower": lower, "upper": upper}


@op(
    [_of_bands, _of_right_side],
    batch="matrices",
    kinds="fc",
    samples=_samples,
    ref=lambda ab, b, lower, upper: np.linalg.solve(_dense(np, ab, upper), b),
    errors=[
        ([np.ones((3, 4)), np.ones((3, 1))], {"lower": 1, "upper": 1}, ShapeError, r"\(3, 1\)"),
        ([np.ones((2, 4)), np.ones((4, 1))], {"lower": 1, "upper": 1}, ShapeError, "3 rows"),
        ([np.zeros((1, 2)), np.ones((2, 1))], {"lower": 0, "upper": 0}, SingularMatrixError, "ban"),
    ],
)
def banded_solve(xp, ab, b, /, *, lower, upper):
    """The op behind `gg.scipy.linalg.solve_banded`.

    Args:
        ab: array of shape (..., lower + upper + 1, n): ab[upper + i - j, j] is the matrix's (i, j).
        b: array of shape (..., n, k).
        lower: int, the number of diagonals below the main one.
        upper: int, that above.

    Returns:
        Tensor of shape (..., n, k). On a GPU it takes memory for n^2 numbers.

    >>> print(gg.banded_solve([[2.0, 4.0]], [[2.0], [2.0]], lower=0, upper=0))
    [[1. ]
     [0.5]]
    """
    lower, upper, n = operator.index(lower), operator.index(upper), ab.shape[-1] if ab.ndim else 0
    if ab.ndim < 2 or ab.shape[-2] != lower + upper + 1:
        raise ShapeError(f"banded_solve: ab {ab.shape} must have {lower + upper + 1} rows.")
    if b.ndim < 2 or b.shape[-2] != n:
        raise ShapeError(f"banded_solve: b {b.shape} does not have the {n} rows of ab {ab.shape}.")
    lib, stack = xp.lib, np.broadcast_shapes(ab.shape[:-2], b.shape[:-2])
    dtype = lib.result_type(as_inexact(ab), as_inexact(b))
    ab, b = ab.astype(dtype, copy=False), b.astype(dtype, copy=False)
    if xp is not NUMPY:
        return lib.linalg.solve(_dense(lib, ab, upper), b)
    ab, b = (np.broadcast_to(x, (*stack, *x.shape[-2:])) for x in (ab, b))
    out = np.empty(b.shape, dtype)
    for i in np.ndindex(stack):
        try:
            out[i] = xp.linalg.solve_banded((lower, upper), ab[i], b[i], check_finite=False)
        except np.linalg.LinAlgError as error:
            raise SingularMatrixError(
                "banded_solve: a matrix is singular. Add a small multiple of the identity."
            ) from error
    return out


def _toeplitz_of_right_side(xp, g, c, r):
    column = xp.concat([part(xp, c, 0, 1), part(xp, r, 1, None)], axis=-1)  # of the transpose
    return xp.toeplitz_solve(conjugate(xp, column), conjugate(xp, c), g)


def _sums_along_diagonals(xp, g, out, c, r):
    """By offsets i - j, from -n to n - 1 in FFT's order, sums of the gradient by the matrix."""
    u, n = _toeplitz_of_right_side(xp, g, c, r), c.shape[-1]
    spectrum = xp.fft(u, n=2 * n, axis=-2) * conjugate(xp, xp.fft(out, n=2 * n, axis=-2))
    sums = -xp.sum(xp.ifft(spectrum, n=2 * n, axis=-2), axis=-1)
    return sums if out.dtype.kind == "c" else xp.real(sums)


def _of_column(xp, g, out, c, r):
    return part(xp, _sums_along_diagonals(xp, g, out, c, r), 0, c.shape[-1])


def _of_row(xp, g, out, c, r):
    n = r.shape[-1]
    sums = part(xp, _sums_along_diagonals(xp, g, out, c, r), n + 1, None)
    sums = xp.flip(sums, axis=-1)
    return xp.pad(sums, (*((0, 0),) * (sums.ndim - 1), (1, 0)))


def _toeplitz_samples(rng):
    for n, stack, k in ((4, (), 2), (3, (2,), 1), (1, (), 1)):
        c, r = (uniform(rng, *stack, n, low=-0.3, high=0.3) for _ in range(2))
        c[..., 0] += 2
        yield [c, r, uniform(rng, *stack, n, k)], {}


@op(
    [_of_column, _of_row, _toeplitz_of_right_side],
    batch="matrices",
    kinds="fc",
    samples=_toeplitz_samples,
    ref=lambda c, r, b: np.linalg.solve(NUMPY.toeplitz(c, r), b),
    errors=[
        ([np.ones(3), np.ones(2), np.ones((3, 1))], {}, ShapeError, r"\(3,\).*\(2,\)"),
        ([np.zeros(2), np.zeros(2), np.ones((2, 1))], {}, SingularMatrixError, "toeplitz"),
    ],
)
def toeplitz_solve(xp, c, r, b, /):
    """The op behind `gg.scipy.linalg.solve_toeplitz`.

    Args:
        c: array of shape (..., n), the first column of the matrices.
        r: array of shape (..., n), the first row; its first element is not read.
        b: array of shape (..., n, k).

    Returns:
        Tensor of shape (..., n, k). On a GPU it takes memory for n^2 numbers.

    >>> print(gg.toeplitz_solve([2.0, 1.0], [2.0, 1.0], [[3.0], [3.0]]))
    [[1.]
     [1.]]
    """
    if not c.ndim or c.shape != r.shape or b.ndim != c.ndim + 1 or b.shape[:-1] != c.shape:
        raise ShapeError(
            f"toeplitz_solve: c {c.shape}, r {r.shape} and b {b.shape} are not (..., n), (..., n) "
            "and (..., n, k)."
        )
    lib = xp.lib
    dtype = lib.result_type(*(as_inexact(x) for x in (c, r, b)))
    c, r, b = (x.astype(dtype, copy=False) for x in (c, r, b))
    if xp is not NUMPY or not c.shape[-1]:
        return lib.linalg.solve(xp.toeplitz(c, r), b)
    out = np.empty(b.shape, dtype)
    for i in np.ndindex(c.shape[:-1]):
        try:
            out[i] = xp.linalg.solve_toeplitz((c[i], r[i]), b[i], check_finite=False)
        except np.linalg.LinAlgError as error:
            raise SingularMatrixError(
                "toeplitz_solve: a matrix, or a leading part of it, is singular."
            ) from error
    return out
