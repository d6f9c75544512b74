"""LU factors, and systems of equations solved with existing factors."""

import warnings
from typing import Any

import numpy as np

from gpugrad.autodiff.batched import need_axes
from gpugrad.core.backend import NUMPY
from gpugrad.core.samples import calls, shaped, uniform
from gpugrad.errors import (
    ArgumentError,
    DTypeError,
    IndexOutOfBoundsError,
    ShapeError,
    SingularMatrixError,
)
from gpugrad.ops.arrays.shape import need_matrices
from gpugrad.ops.linalg.common import NO_MATRIX, STACKS, as_inexact, on_each
from gpugrad.ops.math.products import adjoint
from gpugrad.registry.record import op
from gpugrad.registry.rules import conjugate


def _block(xp, x, rows, columns):
    return xp.getitem(x, index=(Ellipsis, slice(*rows), slice(*columns)))


def _unit_lower(xp, x):
    """The lower triangle, with ones on the diagonal."""
    ones = xp.diagonal(x, 0, -2, -1) ** 0
    return xp.tril(x, k=-1) + xp.diagonal_scatter(ones, offset=0, shape=x.shape)


def _permutation(xp, pivots, n, dtype):
    """Permutation matrices p that undo the pivoting: p @ x has its rows in the first order."""
    order = xp.pivots_to_permutation(pivots, size=n)
    return xp.matrix_transpose(xp.one_hot(order, n, dtype=dtype))


def _lu_vjp(xp, g, out):
    """The square part is p l^-H (tril(l^H gl, -1) + triu(gu u^H)) u^-H; the rest solves for it.

    F. de Hoog, R. Anderssen, M. Lukas, "Differentiation of matrix functionals using triangular
    factorization", Math. Comp. 80 (2011) 1585. Neither gl above its diagonal nor gu below its
    own matters, so both start as `g`.
    """
    (g, _), (lu, pivots) = g, out
    m, n = lu.shape[-2:]
    k = min(m, n)
    square = _block(xp, lu, (0, k), (0, k))
    low, up = _unit_lower(xp, square), xp.triu(square)
    gl = gu = _block(xp, g, (0, k), (0, k))
    if m > k:
        below = adjoint(xp, _block(xp, lu, (k, m), (0, k)))
        rest = adjoint(xp, _block(xp, g, (k, m), (0, k)))
        rest = adjoint(xp, xp.solve_triangular(up, rest, lower=False))
        gu = gu - xp.matmul(below, rest)
    elif n > k:
        upper_right = adjoint(xp, _block(xp, lu, (0, k), (k, n)))
        rest = xp.solve_triangular(low, _block(xp, g, (0, k), (k, n)), lower=True, adjoint=True)
        gl = gl - xp.matmul(rest, upper_right)
    core = xp.tril(xp.matmul(adjoint(xp, low), gl), k=-1)
    core = core + xp.triu(xp.matmul(gu, adjoint(xp, up)))
    core = xp.solve_triangular(low, core, lower=True, adjoint=True)
    core = adjoint(xp, xp.solve_triangular(up, adjoint(xp, core), lower=False))
    if m != n:
        core = xp.concat([core, rest], axis=-2 if m > n else -1)
    return xp.matmul(_permutation(xp, pivots, m, lu.dtype), core)


def _getrf(xp, x):
    """The function that factors one matrix, singular or not, without a warning."""
    if xp is NUMPY:  # SciPy's lu_factor warns, and takes ten times as long for small matrices
        (getrf,) = xp.linalg.get_lapack_funcs(("getrf",), (x,))
        return lambda matrix: getrf(matrix)[:2]

    def factored(matrix):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return xp.linalg.lu_factor(matrix, check_finite=False)

    return factored


_MATRICES: dict[str, Any] = {
    "samples": shaped([(3, 3)], [(3, 2)], [(2, 3)], [(2, 2, 2)], [(0, 2, 2)]),
    "errors": [NO_MATRIX],
}


@op([_lu_vjp], outputs=2, ref=on_each(lambda x: NUMPY.linalg.lu_factor(x)), **STACKS | _MATRICES)
def lu_factor(xp, x, /, overwrite_a=False, check_finite=False):
    """LU factors of matrices in one array, and the row exchanges that led to them.

    Args:
        x: array of shape (..., m, n); k is the smaller of m and n.
        overwrite_a: without effect.
        check_finite: whether to raise ArgumentError for infinities and NaN.

    Returns:
        Two Tensors: of the shape of `x`, U in the upper triangle with the diagonal, L (with
        ones on its diagonal) below; and int32 of shape (..., k): the row with which row i was
        exchanged, in the order of i. The gradient raises SingularMatrixError unless the first k
        columns are independent.

    >>> lu, pivots = gg.linalg.lu_factor([[1.0, 2.0], [2.0, 6.0]])
    >>> print(lu, pivots)
    [[ 2.   6. ]
     [ 0.5 -1. ]] [1 1]
    """
    need_matrices("lu_factor", x)
    x, lib = as_inexact(x), xp.lib
    if check_finite and not lib.isfinite(x).all():
        raise ArgumentError("lu_factor: there are infinities or NaN, and check_finite=True.")
    out = lib.empty(x.shape, dtype=x.dtype)
    pivots = lib.zeros((*x.shape[:-2], min(x.shape[-2:])), dtype=np.int32)
    if not x.size:
        return out, pivots
    factored = _getrf(xp, x)
    for i in np.ndindex(x.shape[:-2]):  # neither library takes stacks
        out[i], pivots[i] = factored(x[i])
    return out, pivots


def _order_of(pivots, size):
    out = np.empty((*pivots.shape[:-1], size), np.int64)
    for i in np.ndindex(pivots.shape[:-1]):
        out[i] = range(size)
        for k, j in enumerate(pivots[i]):
            out[i][[k, j]] = out[i][[j, k]]
    return out


_FEW = 8  # stacks for which exchanges in lists are faster than in arrays


def _exchanged(pivots, size):
    orders = []
    for row in pivots:
        order = list(range(size))
        for k, j in enumerate(row):
            order[k], order[j] = order[j], order[k]
        orders.append(order)
    return np.array(orders, np.int64).reshape(len(orders), size)


def _order_batch(xp, batched, pivots, *, size):
    need_axes("pivots_to_permutation", batched, (pivots,), (1,))
    return xp.pivots_to_permutation(pivots, size=size)


@op(
    differentiable=False,
    kinds="i",
    ref=_order_of,
    batch=_order_batch,
    samples=calls(
        lambda rng: ([np.array([2, 1, 2], np.int32)], {"size": 3}),
        lambda rng: ([rng.integers(2, 4, (2, 2))], {"size": 4}),
        lambda rng: ([np.zeros((3, 0), np.int64)], {"size": 2}),
    ),
    errors=[
        ([np.ones(2)], {"size": 2}, DTypeError, "pivots_to_permutation.*float64"),
        ([np.array([1, 1])], {"size": 1}, ShapeError, "pivots_to_permutation.*size=1"),
        ([np.array([1, 2])], {"size": 2}, IndexOutOfBoundsError, "pivots_to_permutation"),
    ],
    captures=True,
)
def pivots_to_permutation(xp, pivots, /, *, size):
    """The order of rows after the exchanges of `lu_factor`. Its gradient is None.

    Args:
        pivots: integers of shape (..., k): row i is exchanged with row pivots[..., i]. Values
            out of bounds raise on the CPU only.
        size: number of rows.

    Returns:
        int64 Tensor of shape (..., size): the original index of each row.

    >>> print(gg.pivots_to_permutation([2, 1, 2], size=3))
    [2 1 0]
    """
    if pivots.dtype.kind not in "iu":
        raise DTypeError(f"pivots_to_permutation: pivots are {pivots.dtype}, not integers.")
    k = pivots.shape[-1] if pivots.ndim else size + 1
    if k > size:
        raise ShapeError(f"pivots_to_permutation: {pivots.shape} are too many for size={size}.")
    lib, stack = xp.lib, pivots.shape[:-1]
    flat = pivots.reshape(int(np.prod(stack)), k)
    if xp is NUMPY and len(flat) <= _FEW:
        return _exchanged(flat.tolist(), size).reshape(*stack, size)
    order = lib.tile(lib.arange(size), (flat.shape[0], 1))
    each = lib.arange(flat.shape[0])
    for i in range(k):
        j = flat[:, i]
        moved = order[each, j]
        order[each, j] = order[:, i]
        order[:, i] = moved
    return order.reshape(*stack, size)


@op(outputs=3, kinds="fc", ref=on_each(lambda x: NUMPY.linalg.lu(x)), **_MATRICES)
def lu(xp, x, /):
    """LU factors of matrices: x = P L U.

    Args:
        x: array of shape (..., m, n); k is the smaller of m and n.

    Returns:
        Three Tensors: P, a permutation matrix of shape (..., m, m), constant; L of shape
        (..., m, k), lower triangular with ones on the diagonal; U of shape (..., k, n), upper
        triangular. The gradient is that of `lu_factor`.

    >>> p, l, u = gg.linalg.lu([[1.0, 2.0], [2.0, 6.0]])
    >>> print(l)
    [[1.  0. ]
     [0.5 1. ]]
    """
    packed, pivots = xp.lu_factor(x)
    m, n = packed.shape[-2:]
    k = min(m, n)
    p = _permutation(xp, pivots, m, packed.dtype.char.lower())
    low = _unit_lower(xp, _block(xp, packed, (0, m), (0, k)))
    return p, low, xp.triu(_block(xp, packed, (0, k), (0, n)))


def _system(name, a, b):
    """Whether `b` is one vector; ShapeError if the shapes do not form a system."""
    n = a.shape[-1] if a.ndim else 0
    vector = b.ndim == 1
    if a.ndim < 2 or a.shape[-2] != n or b.ndim < 1 or b.shape[-1 if vector else -2] != n:
        raise ShapeError(
            f"{name}: factors {a.shape} and b {b.shape} are not (..., n, n) and (..., n, k) "
            "or (n,)."
        )
    return vector


def _lu_solve_samples(rng):
    for trans, shape, b in ((0, (3, 3), (3,)), (1, (2, 2), (2, 2)), (2, (2, 2, 2), (2, 1))):
        x = uniform(rng, *shape) + 3 * np.eye(shape[-1])
        pivots = np.broadcast_to(np.arange(shape[-1]), shape[:-1]).copy()
        pivots[..., 0] = 1
        yield [x, pivots, uniform(rng, *b)], {"trans": trans}


def _lu_solve_ref(lu, pivots, b, trans=0):
    columns = b[:, None] if b.ndim == 1 else b
    out = np.empty((*lu.shape[:-1], columns.shape[-1]), lu.dtype)
    for i in np.ndindex(lu.shape[:-2]):
        out[i] = NUMPY.linalg.lu_solve((lu[i], pivots[i]), columns, trans)
    return out[..., 0] if b.ndim == 1 else out


@op(
    kinds="fc",
    ref=_lu_solve_ref,
    samples=_lu_solve_samples,
    errors=[
        ([np.eye(2), np.array([0, 1]), np.ones(3)], {}, ShapeError, r"lu_solve.*\(3,\)"),
        ([np.eye(2), np.array([0, 1]), np.ones(2)], {"trans": 3}, ArgumentError, "trans=3"),
        ([np.eye(2), np.array([0]), np.ones(2)], {}, ShapeError, r"lu_solve: pivots \(1,\)"),
        ([np.zeros((2, 2)), np.array([0, 1]), np.ones(2)], {}, SingularMatrixError, "a 0 in row"),
    ],
)
def lu_solve(xp, lu, pivots, b, /, *, trans=0):
    """The op behind `gg.linalg.lu_solve`."""
    vector = _system("lu_solve", lu, b)
    if pivots.shape[-1:] != lu.shape[-1:]:
        raise ShapeError(f"lu_solve: pivots {pivots.shape} for factors {lu.shape}.")
    if trans not in (0, 1, 2):
        raise ArgumentError(f"lu_solve: trans={trans!r} must be 0, 1 or 2.")
    y = xp.expand_dims(b, axis=-1) if vector else b
    p = _permutation(xp, pivots, lu.shape[-1], lu.dtype.char.lower())
    low = _unit_lower(xp, lu)
    if trans == 0:
        y = xp.solve_triangular(low, xp.matmul(xp.matrix_transpose(p), y), lower=True)
        y = xp.solve_triangular(lu, y, lower=False)
    else:
        y = conjugate(xp, y) if trans == 1 else y
        y = xp.solve_triangular(lu, y, lower=False, adjoint=True)
        y = xp.matmul(p, xp.solve_triangular(low, y, lower=True, adjoint=True))
        y = conjugate(xp, y) if trans == 1 else y
    return xp.squeeze(y, -1) if vector else y


def _cho_solve_samples(rng):
    for k, (shape, b) in enumerate((((3, 3), (3,)), ((2, 2), (2, 2)), ((2, 2, 2), (2, 1)))):
        yield [uniform(rng, *shape) + 3 * np.eye(shape[-1]), uniform(rng, *b)], {"lower": k != 1}


def _cho_solve_ref(c, b, lower=True):
    c = np.tril(c) if lower else np.triu(c).swapaxes(-1, -2).conj()
    return np.linalg.solve(c @ c.swapaxes(-1, -2).conj(), b)


@op(
    kinds="fc",
    ref=_cho_solve_ref,
    samples=_cho_solve_samples,
    errors=[
        ([np.eye(2), np.ones(3)], {}, ShapeError, r"cho_solve.*\(3,\)"),
        ([np.zeros((2, 2)), np.ones(2)], {}, SingularMatrixError, "a 0 in row"),
    ],
)
def cho_solve(xp, c, b, /, *, lower=True):
    """The op behind `gg.linalg.cho_solve`."""
    _system("cho_solve", c, b)
    y = xp.solve_triangular(c, b, lower=lower, adjoint=not lower)
    if c.ndim > 2 and b.ndim == 1:  # each vector of the stack is a column
        y = xp.expand_dims(y, axis=-1)
        return xp.squeeze(xp.solve_triangular(c, y, lower=lower, adjoint=lower), -1)
    return xp.solve_triangular(c, y, lower=lower, adjoint=lower)
