"""Matrices built from vectors or blocks, products of many, and tensor equations."""

import functools
import itertools
import math
from typing import Any

import numpy as np

from gpugrad.core.backend import NUMPY
from gpugrad.core.samples import lists, shaped, uniform
from gpugrad.errors import ArgumentError, AxisError, ShapeError, SingularMatrixError
from gpugrad.ops._axes import broadcast_shapes, check_axis
from gpugrad.ops.linalg.common import part
from gpugrad.registry.record import op
from gpugrad.registry.rules import conjugate


def _block_diag_ref(arrays):
    if max(x.ndim for x in arrays) < 3:
        return NUMPY.linalg.block_diag(*arrays)
    (k,) = arrays[0].shape[:-2]
    return np.stack(
        [NUMPY.linalg.block_diag(*(x[i] if x.ndim > 2 else x for x in arrays)) for i in range(k)]
    )


@op(
    variadic=True,
    kinds="fc",
    ref=_block_diag_ref,
    samples=lists([(2, 2), (1, 3)], [(2,), (), (2, 1)], [(2, 2, 2), (1, 1)], [(0, 2), (2, 1)]),
    errors=[([[np.ones((2, 1, 1)), np.ones((3, 1, 1))]], {}, ShapeError, r"block_diag.*\(3,\)")],
)
def block_diag(xp, arrays, /):
    """The op behind `gg.linalg.block_diag`."""
    blocks = [xp.reshape(x, (*(1,) * (2 - x.ndim), *x.shape)) for x in arrays]
    stack = broadcast_shapes("block_diag", [x.shape[:-2] for x in blocks])
    width, left, rows = sum(x.shape[-1] for x in blocks), 0, []
    for x in blocks:
        around = (*((0, 0),) * (x.ndim - 1), (left, width - left - x.shape[-1]))
        left += x.shape[-1]
        rows.append(xp.broadcast_to(xp.pad(x, around), (*stack, x.shape[-2], width)))
    return xp.concat(rows, axis=-2)


def _check_vector(name, *vectors):
    for x in vectors:
        if x is not None and x.ndim < 1:
            raise ShapeError(f"{name}: vectors (..., n) are needed, the shape is {x.shape}.")


def _joined(xp, first, second):
    """Vectors end to end, with their stacks broadcast."""
    stack = np.broadcast_shapes(first.shape[:-1], second.shape[:-1])
    both = (xp.broadcast_to(x, (*stack, x.shape[-1])) for x in (first, second))
    return xp.concat(list(both), axis=-1)


def _hankel(xp, values, m, n):
    """The (m, n) matrices whose element i, j is that of `values` at i + j."""
    if not m or not n:
        return xp.getitem(values, index=(Ellipsis, np.zeros((m, n), int)))
    return xp.windows(values, n)


def _toeplitz_ref(c, r=None):
    if r is None:
        r = c.conj()
    i, j = np.ogrid[: c.shape[-1], : r.shape[-1]]
    return np.where(i >= j, c[..., np.maximum(i - j, 0)], r[..., np.maximum(j - i, 0)])


_TWO_VECTORS = shaped([(3,)], [(2,), (3,)], [(2, 3), (2,)], [(1,), (2,)])
_NO_VECTOR: list[Any] = [([1.0], {}, ShapeError, r"\(\)")]


@op(kinds="fc", ref=_toeplitz_ref, samples=_TWO_VECTORS, errors=_NO_VECTOR)
def toeplitz(xp, c, r=None, /):
    """Matrices with one value along each diagonal.

    Args:
        c: array of shape (..., m), the first column.
        r: array of shape (..., n), the first row; its first element is not read. None: the
            conjugate of `c`. Stacks are broadcast.

    Returns:
        Tensor of shape (..., m, n).

    >>> print(gg.linalg.toeplitz([1.0, 2.0], [1.0, 5.0, 6.0]))
    [[1. 5. 6.]
     [2. 1. 5.]]
    """
    _check_vector("toeplitz", c, r)
    r = conjugate(xp, c) if r is None else r
    m, n = c.shape[-1], r.shape[-1]
    values = _joined(xp, xp.flip(c, axis=-1), part(xp, r, 1, None))
    return xp.positive(xp.flip(_hankel(xp, values, m, n), axis=-2))  # no view of the vectors


@op(
    kinds="fc",
    ref=lambda c: np.stack([np.roll(c, k, -1) for k in range(c.shape[-1])], -1),
    samples=shaped([(3,)], [(2, 2)], [(1,)]),
    errors=_NO_VECTOR,
)
def circulant(xp, c, /):
    """Square matrices whose columns are a vector, each rotated by one more element.

    Args:
        c: array of shape (..., n), the first column.

    Returns:
        Tensor of shape (..., n, n).

    >>> print(gg.linalg.circulant([1.0, 2.0, 3.0]))
    [[1. 3. 2.]
     [2. 1. 3.]
     [3. 2. 1.]]
    """
    _check_vector("circulant", c)
    return xp.toeplitz(c, xp.roll(xp.flip(c, axis=-1), shift=1, axis=-1))


def _hankel_ref(c, r=None):
    m = c.shape[-1]
    r = np.zeros_like(c) if r is None else r
    k = np.add(*np.ogrid[:m, : r.shape[-1]])
    return np.where(k < m, c[..., np.minimum(k, m - 1)], r[..., np.maximum(k - m + 1, 0)])


@op(kinds="fc", ref=_hankel_ref, samples=_TWO_VECTORS, errors=_NO_VECTOR)
def hankel(xp, c, r=None, /):
    """Matrices with one value along each antidiagonal.

    Args:
        c: array of shape (..., m), the first column.
        r: array of shape (..., n), the last row; its first element is not read. None: zeros,
            with n = m. Stacks are broadcast.

    Returns:
        Tensor of shape (..., m, n).

    >>> print(gg.linalg.hankel([1.0, 2.0], [2.0, 5.0, 6.0]))
    [[1. 2. 5.]
     [2. 5. 6.]]
    """
    _check_vector("hankel", c, r)
    m, n = c.shape[-1], (c if r is None else r).shape[-1]
    if r is None:
        values = xp.pad(c, (*((0, 0),) * (c.ndim - 1), (0, max(m - 1, 0))))
    else:
        values = _joined(xp, c, part(xp, r, 1, None))
    return xp.positive(_hankel(xp, values, m, n))


def _vander_ref(x, N=None, increasing=False):
    powers = np.arange(x.shape[-1] if N is None else N)
    return x[..., None] ** (powers if increasing else powers[::-1])


@op(
    kinds="fc",
    ref=_vander_ref,
    samples=shaped(
        [(3,)],
        ([(2, 2)], {"N": 3, "increasing": True}),
        *(([(m,)], {"N": n}) for m, n in ((2, 1), (2, 0), (0, 2))),
    ),
    errors=[*_NO_VECTOR, ([np.ones(2)], {"N": -1}, ArgumentError, "vander.*N=-1")],
)
def vander(xp, x, /, N=None, increasing=False):
    """Vandermonde matrices: each column is a power of the numbers.

    Args:
        x: array of shape (..., m).
        N: how many columns: powers 0 to N - 1. None: m.
        increasing: whether power 0 comes first, not last.

    Returns:
        Tensor of shape (..., m, N). The gradient at 0 is exact.

    >>> print(gg.linalg.vander([2.0, 3.0], 3))
    [[4. 2. 1.]
     [9. 3. 1.]]
    """
    _check_vector("vander", x)
    n = x.shape[-1] if N is None else N
    if n < 0:
        raise ArgumentError(f"vander: N={N!r} is negative.")
    factors = xp.broadcast_to(xp.expand_dims(x, axis=-1), (*x.shape, max(n - 1, 0)))
    powers = xp.cumulative_prod(factors, axis=-1, include_initial=True)
    powers = part(xp, powers, 0, n)
    return powers if increasing else xp.flip(powers, axis=-1)


def _khatri_rao_ref(a, b):
    out = a[..., :, None, :] * b[..., None, :, :]
    return out.reshape(*out.shape[:-3], -1, out.shape[-1])


@op(
    kinds="fci",
    ref=_khatri_rao_ref,
    samples=shaped([(2, 3), (2, 3)], [(3, 1), (2, 1)], [(2, 1, 2), (3, 2)]),
    errors=[([np.ones((2, 3)), np.ones((2, 2))], {}, ShapeError, r"khatri_rao.*\(2, 2\)")],
)
def khatri_rao(xp, a, b, /):
    """Kronecker product of each column of `a` with the same column of `b`.

    Args:
        a: array of shape (..., m, k).
        b: array of shape (..., n, k). Stacks are broadcast.

    Returns:
        Tensor of shape (..., m n, k).

    >>> print(gg.linalg.khatri_rao([[1.0, 2.0]], [[10.0, 1.0], [20.0, 2.0]]))
    [[10.  2.]
     [20.  4.]]
    """
    if a.ndim < 2 or b.ndim < 2 or a.shape[-1] != b.shape[-1]:
        raise ShapeError(
            f"khatri_rao: a {a.shape} and b {b.shape} are not (..., m, k), (..., n, k)."
        )
    out = xp.expand_dims(a, axis=-2) * xp.expand_dims(b, axis=-3)
    return xp.reshape(out, (*out.shape[:-3], a.shape[-2] * b.shape[-2], a.shape[-1]))


@functools.lru_cache(maxsize=256)
def _cheapest(sizes):
    """Where to split products of matrices (sizes[i], sizes[i + 1]), for each first and last.

    Dynamic programming, as in Cormen et al., "Introduction to Algorithms", 15.2.
    """
    n = len(sizes) - 1
    cost = {(i, i): 0 for i in range(n)}
    parts = {}
    for length in range(1, n):
        for i in range(n - length):
            j = i + length
            cost[i, j], parts[i, j] = min(
                (cost[i, k] + cost[k + 1, j] + sizes[i] * sizes[k + 1] * sizes[j + 1], k)
                for k in range(i, j)
            )
    return parts


@op(
    variadic=True,
    native_half=True,
    kinds="fc",
    ref=lambda arrays: functools.reduce(np.matmul, arrays),
    samples=lists(
        [(2, 3), (3, 1), (1, 4)],
        [(3,), (3, 2), (2, 2), (2,)],
        [(2, 2)],
        [(2, 2, 3), (3, 1), (2, 1, 2)],
    ),
    errors=[
        ([[np.ones((2, 3)), np.ones((2, 3))]], {}, ShapeError, r"multi_dot.*\(2, 3\)"),
        ([[np.ones(2), np.ones(2), np.ones(2)]], {}, ShapeError, r"multi_dot.*\(2,\)"),
    ],
)
def multi_dot(xp, arrays, /):
    """Product of several matrices, in the order that takes the fewest multiplications.

    Args:
        arrays: list of arrays of shape (..., m, n); the first and the last may be vectors.
            Stacks are broadcast.

    Returns:
        Tensor: the result of matmul from left to right.

    >>> print(gg.linalg.multi_dot([[[1.0, 2.0]], [[1.0], [1.0]], [[3.0, 4.0]]]))
    [[ 9. 12.]]
    """
    if len(arrays) == 1:
        return xp.positive(arrays[0])
    shapes = [x.shape for x in arrays]
    row, column = len(shapes[0]) == 1, len(shapes[-1]) == 1
    factors = list(arrays)
    if row:
        factors[0] = xp.expand_dims(factors[0], axis=0)
    if column:
        factors[-1] = xp.expand_dims(factors[-1], axis=-1)
    if any(x.ndim < 2 for x in factors) or any(
        x.shape[-1] != y.shape[-2] for x, y in itertools.pairwise(factors)
    ):
        raise ShapeError(f"multi_dot: the shapes {shapes} do not match.")
    parts = _cheapest((factors[0].shape[-2], *(x.shape[-1] for x in factors)))

    def product(i, j):
        if i == j:
            return factors[i]
        k = parts[i, j]
        return xp.matmul(product(i, k), product(k + 1, j))

    out = product(0, len(factors) - 1)
    return xp.squeeze(out, (-2,) * row + (-1,) * column) if row or column else out


def _tensor_samples(rng):
    yield [uniform(rng, 2, 3, 6) + 3 * np.eye(6).reshape(2, 3, 6), uniform(rng, 2, 3)], {}
    yield [uniform(rng, 4, 2, 2) + 3 * np.eye(4).reshape(4, 2, 2), uniform(rng, 4)], {}
    moved = {"axes": (0, 2)}
    yield [uniform(rng, 2, 6, 3) + 3 * np.eye(6).reshape(2, 6, 3), uniform(rng, 6)], moved


@op(
    kinds="fc",
    ref="numpy.linalg.tensorsolve",
    samples=_tensor_samples,
    errors=[
        ([np.ones((2, 3)), np.ones(2)], {}, ShapeError, r"tensorsolve.*\(2, 3\)"),
        ([np.ones((2, 2)), np.ones(2)], {"axes": (2,)}, AxisError, "tensorsolve.*axis 2"),
        ([np.ones((2, 2)), np.ones(2)], {}, SingularMatrixError, "[Ss]ingular"),
    ],
)
def tensorsolve(xp, a, b, /, axes=None):
    """Solution x of tensordot(a, x, axes=x.ndim) = b.

    Args:
        a: array of shape b.shape + x.shape, where the sizes of `b` and x are equal.
        axes: ints: axes of `a` that are moved to its end first.

    Returns:
        Tensor of the shape of x.

    >>> print(gg.linalg.tensorsolve([[[2.0, 0.0]], [[0.0, 4.0]]], [[2.0], [2.0]]))
    [1.  0.5]
    """
    if axes is not None:
        last = [check_axis("tensorsolve", axis, a.shape) for axis in axes]
        a = xp.permute_dims(a, (*(k for k in range(a.ndim) if k not in last), *last))
    shape, n = a.shape[b.ndim :], b.size
    if math.prod(shape) != n or a.size != n * n:
        raise ShapeError(f"tensorsolve: a {a.shape} and b {b.shape} do not form a square system.")
    out = xp.solve(xp.reshape(a, (n, n)), xp.reshape(b, (n,)))
    return xp.reshape(out, shape)


@op(
    kinds="fc",
    ref="numpy.linalg.tensorinv",
    samples=shaped([(2, 2, 4)], ([(3, 3)], {"ind": 1}), ([(4, 2, 2)], {"ind": 1})),
    errors=[
        ([np.ones((2, 3))], {"ind": 1}, ShapeError, r"tensorinv.*\(2, 3\)"),
        ([np.eye(2)], {"ind": 0}, ArgumentError, "tensorinv.*ind=0"),
        ([np.ones((2, 2))], {"ind": 1}, SingularMatrixError, "[Ss]ingular"),
    ],
)
def tensorinv(xp, a, /, ind=2):
    """Inverse of a tensor, for sums over its last axes: it undoes tensordot(a, x).

    Args:
        a: array whose first `ind` axes have the size of the others.
        ind: how many axes come first, at least 1.

    Returns:
        Tensor of shape a.shape[ind:] + a.shape[:ind].

    >>> print(gg.linalg.tensorinv([[[2.0, 0.0], [0.0, 4.0]]]))
    [[[0.5  0.  ]]
    <BLANKLINE>
     [[0.   0.25]]]
    """
    if ind < 1:
        raise ArgumentError(f"tensorinv: ind={ind!r} must be at least 1.")
    first, rest = a.shape[:ind], a.shape[ind:]
    n = math.prod(first)
    if n != math.prod(rest):
        raise ShapeError(f"tensorinv: {first} and {rest} of {a.shape} differ in size.")
    return xp.reshape(xp.inv(xp.reshape(a, (n, n))), (*rest, *first))
