"""Systems with banded matrices, of which only the diagonals within the band are stored."""

import operator

import numpy as np

from gpugrad.core.backend import NUMPY
from gpugrad.core.samples import uniform
from gpugrad.errors import ShapeError, SingularMatrixError
from gpugrad.ops.linalg.common import as_inexact
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
    n = ab.shape[-1]
    rows, inside = stored_places(lower + upper + 1, n, lower)
    k = np.broadcast_to(np.arange(lower + upper, -1, -1)[:, None], rows.shape)
    return xp.getitem(with_zero(xp, ab, -1), index=(Ellipsis, k, np.where(inside, rows, n)))


def _of_right_side(xp, g, ab, lower, upper, b_shape):
    adjoint = conjugate(xp, transposed_bands(xp, ab, lower, upper))
    return xp.sum_to(xp.banded_solve(adjoint, g, lower=upper, upper=lower), b_shape)


def _of_bands(xp, g, out, ab, lower, upper):
    adjoint = conjugate(xp, transposed_bands(xp, ab, lower, upper))
    u = xp.banded_solve(adjoint, g, lower=upper, upper=lower)
    n = ab.shape[-1]
    rows, inside = stored_places(lower + upper + 1, n, upper)
    u = xp.getitem(with_zero(xp, u, -2), index=(Ellipsis, np.where(inside, rows, n), slice(None)))
    products = u * conjugate(xp, xp.expand_dims(out, axis=-3))
    return xp.sum_to(-xp.sum(products, axis=-1), ab.shape)


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
