"""Reductions of groups of rows, as TensorFlow's unsorted_segment ops.

Row i belongs to the group ``segment_ids[i]``; rows of a negative one are left out. The groups
need not be in order.
"""

from __future__ import annotations

import math

import numpy as np

from gpugrad.core.backend import NUMPY
from gpugrad.core.samples import calls, uniform
from gpugrad.errors import ArgumentError, DTypeError, IndexOutOfBoundsError, ShapeError
from gpugrad.kernels.runtime.launch import is_captured
from gpugrad.ops.arrays.index_rules import as_int64
from gpugrad.registry.record import op
from gpugrad.registry.rules import conjugate

_SAMPLES = calls(
    lambda rng: ([uniform(rng, 5), np.array([2, 0, 2, 0, 2])], {"num_segments": 4}),
    lambda rng: ([uniform(rng, 4, 2), np.array([1, -1, 0, 1])], {"num_segments": 2}),
    lambda rng: ([uniform(rng, 2, 3), np.array([[1, 0, 1], [0, 0, -2]])], {"num_segments": 2}),
    lambda rng: ([uniform(rng, 0, 2), np.array([], dtype=np.int64)], {"num_segments": 2}),
    lambda rng: ([uniform(rng, 2), np.array([-1, -1])], {"num_segments": 0}),
)
_WITHOUT_EMPTY = calls(  # whose result is infinite, so that differences of it are not defined
    lambda rng: ([uniform(rng, 5), np.array([2, 0, 2, 1, 2])], {"num_segments": 3}),
    lambda rng: ([uniform(rng, 4, 2), np.array([1, -1, 0, 1])], {"num_segments": 2}),
    lambda rng: ([uniform(rng, 2, 3), np.array([[1, 0, 1], [0, 0, -2]])], {"num_segments": 2}),
    lambda rng: ([uniform(rng, 2), np.array([-1, -1])], {"num_segments": 0}),
)


def _reference(reduce, empty):
    def segments(data, segment_ids, num_segments):
        out = [data[segment_ids == k] for k in range(num_segments)]
        shape = (num_segments, *data.shape[segment_ids.ndim :])
        made = [reduce(rows) if len(rows) else np.full(shape[1:], empty) for rows in out]
        return np.array(made, data.dtype).reshape(shape)

    return segments


def _errors(name):
    three, ids = np.ones(3), np.array([0, 1, 2])
    return [
        ([three, ids], {"num_segments": 2}, IndexOutOfBoundsError, "id 2"),
        ([three, ids[:2]], {"num_segments": 2}, ShapeError, rf"{name}.*\(2,\).*\(3,\)"),
        ([three, three], {"num_segments": 2}, DTypeError, "integers"),
        ([three, ids], {"num_segments": -1}, ArgumentError, "num_segments=-1"),
    ]


@op(
    differentiable=False,
    kinds="i",
    batch="stack",
    ref=lambda segment_ids, num_segments: np.where(segment_ids < 0, num_segments, segment_ids),
    samples=calls(
        lambda rng: ([np.array([2, -1, 0, -5])], {"num_segments": 3}),
        lambda rng: ([np.array(1)], {"num_segments": 2}),
    ),
    errors=[
        ([np.array([3])], {"num_segments": 3}, IndexOutOfBoundsError, "segment_rows.*id 3"),
        ([np.ones(3)], {"num_segments": 3}, DTypeError, "segment_rows.*integers"),
    ],
)
def segment_rows(xp, segment_ids, /, *, num_segments):
    """The row of each group in a result of one row more: the last is for what is left out.

    Args:
        segment_ids: integers, of any shape.
        num_segments: how many groups there are.

    Returns:
        int64 Tensor of that shape: `num_segments` in the place of negative ids.

    >>> print(gg.segment_rows([1, -1, 0], num_segments=2))
    [1 2 0]
    """
    if segment_ids.dtype.kind not in "iu":
        raise DTypeError(f"segment_rows: segment_ids are integers, not {segment_ids.dtype}.")
    if num_segments < 0:
        raise ArgumentError(f"segment_rows: num_segments={num_segments} is negative.")
    ids = as_int64(segment_ids)
    if is_captured(ids):  # nobody can ask: the kernel that adds up finds that the row is outside
        ids = xp.lib.where(ids < num_segments, ids, num_segments + 1)
    elif ids.size and int(ids.max()) >= num_segments:
        raise IndexOutOfBoundsError(
            f"segment_rows: the id {int(ids.max())} is out of bounds: there are "
            f"num_segments={num_segments} segments, counted from 0. Negative ids are left out."
        )
    return xp.lib.where(ids < 0, num_segments, ids)


def _rows(xp, name, data_shape, segment_ids, num_segments):
    """The result's row of each row of data, flat; and the shape of one row of data."""
    n = len(segment_ids.shape)
    if tuple(data_shape[:n]) != tuple(segment_ids.shape):
        raise ShapeError(
            f"{name}: segment_ids {segment_ids.shape} must have the first axes of data "
            f"{tuple(data_shape)}."
        )
    rows = xp.segment_rows(segment_ids, num_segments=num_segments)
    return xp.reshape(rows, (segment_ids.size,)), tuple(data_shape[n:])


def _spread(xp, y, rows):
    """Each group's row of `y` at each of its members; 0 at those that are left out."""
    return xp.take(xp.pad(y, ((0, 1), *((0, 0),) * (y.ndim - 1))), rows, axis=0)


@op(
    kinds="fc",
    ref=_reference(lambda rows: rows.sum(0), 0),
    samples=_SAMPLES,
    errors=_errors("segment_sum"),
)
def segment_sum(xp, data, segment_ids, /, num_segments):
    """Sum of the rows of each group; 0 for a group without any.

    Args:
        data: array of shape (*segment_ids.shape, ...).
        segment_ids: integers: the group of each row; negative ones leave a row out.
        num_segments: how many groups there are.

    Returns:
        Tensor of shape (num_segments, ...).

    >>> print(gg.segment_sum([1.0, 2.0, 4.0], [0, 1, 0], 2))
    [5. 2.]
    """
    rows, row = _rows(xp, "segment_sum", data.shape, segment_ids, num_segments)
    values = xp.reshape(data, (*rows.shape, *row))
    sums = xp.scatter_rows(values, rows, shape=(num_segments + 1, *row))
    return xp.getitem(sums, index=slice(num_segments))


def _counts(xp, total, data, segment_ids, num_segments):
    """How many rows each group has, but not 0; in the dtype and with the axes of `total`."""
    ones = xp.astype(segment_ids >= 0, "float32" if data.dtype.itemsize <= 4 else "float64")
    count = xp.maximum(xp.segment_sum(ones, segment_ids, num_segments), 1.0)
    return xp.astype(xp.reshape(count, (num_segments, *(1,) * (total.ndim - 1))), total.dtype)


@op(
    kinds="fc",
    ref=_reference(lambda rows: rows.mean(0), 0),
    samples=_SAMPLES,
    errors=_errors("segment_"),
)
def segment_mean(xp, data, segment_ids, /, num_segments):
    """Mean of the rows of each group; 0 for a group without any.

    Args:
        data: array of shape (*segment_ids.shape, ...).
        segment_ids: integers: the group of each row; negative ones leave a row out.
        num_segments: how many groups there are.

    Returns:
        Tensor of shape (num_segments, ...).

    >>> print(gg.segment_mean([1.0, 2.0, 4.0], [0, 1, 0], 2))
    [2.5 2. ]
    """
    total = xp.segment_sum(data, segment_ids, num_segments)
    return total / _counts(xp, total, data, segment_ids, num_segments)


def _sqrt_n(rows):
    return rows.sum(0) / math.sqrt(len(rows))


@op(kinds="fc", ref=_reference(_sqrt_n, 0), samples=_SAMPLES, errors=_errors("segment_"))
def segment_sqrt_n(xp, data, segment_ids, /, num_segments):
    """Sum of the rows of each group over the square root of their number; 0 without any.

    Args:
        data: array of shape (*segment_ids.shape, ...).
        segment_ids: integers: the group of each row; negative ones leave a row out.
        num_segments: how many groups there are.

    Returns:
        Tensor of shape (num_segments, ...).

    >>> print(gg.segment_sqrt_n([1.0, 2.0, 3.0, 2.0, 2.0], [0, 1, 0, 0, 0], 2))
    [4. 2.]
    """
    total = xp.segment_sum(data, segment_ids, num_segments)
    return total / xp.sqrt(_counts(xp, total, data, segment_ids, num_segments))


def _extreme_vjp(xp, g, out, data, segment_ids, num_segments):
    """Equal extremes share the gradient, as in `max`."""
    rows, row = _rows(xp, "segment_max", data.shape, segment_ids, num_segments)
    values = xp.reshape(data, (*rows.shape, *row))
    inside = xp.reshape(rows < num_segments, (*rows.shape, *(1,) * len(row)))
    hit = xp.astype(xp.logical_and(values == _spread(xp, out, rows), inside), data.dtype)
    share = xp.scatter_rows(hit, rows, shape=(num_segments + 1, *row))
    share = xp.maximum(xp.getitem(share, index=slice(num_segments)), 1)
    return xp.reshape(hit * _spread(xp, g / share, rows), data.shape)


def _reduced(xp, ufunc, start, data, rows, row, num_segments):
    """The forward: one atomic operation for each element."""
    out = xp.lib.full((num_segments + 1, *row), start, dtype=data.dtype)
    values = data.reshape(*rows.shape, *row)
    if xp is NUMPY and row:  # on flat arrays its `at` is several times as fast
        width = math.prod(row)
        rows = (rows[:, None] * width + np.arange(width)).reshape(-1)
        getattr(np, ufunc).at(out.reshape(-1), rows, values.reshape(-1))
    else:
        getattr(xp.lib, ufunc).at(out, rows, values)
    return out[:num_segments]


def _fold(name):
    """How vmap runs a segment op: the groups of each example behind those of the one before."""

    def batch(xp, batched, data, segment_ids, *, num_segments):
        n = data.shape[0] if batched[0] else segment_ids.shape[0]
        if not batched[0]:
            data = xp.broadcast_to(data, (n, *data.shape))
        if not batched[1]:
            segment_ids = xp.broadcast_to(segment_ids, (n, *segment_ids.shape))
        rows = xp.segment_rows(segment_ids, num_segments=num_segments)
        number = xp.cumulative_sum(xp.broadcast_to(rows * 0 + 1, rows.shape), axis=0) - 1
        ids = xp.where(rows < num_segments, rows + number * num_segments, -1)
        out = getattr(xp, name)(data, ids, n * num_segments)
        return xp.reshape(out, (n, num_segments, *out.shape[1:]))

    return batch


@op(
    vjp=[_extreme_vjp, None],
    ref=_reference(lambda rows: rows.max(0), -math.inf),
    samples=_WITHOUT_EMPTY,
    errors=_errors("segment_max"),
    batch=_fold("segment_max"),
)
def segment_max(xp, data, segment_ids, /, num_segments):
    """Largest of the rows of each group, elementwise; equal ones share the gradient.

    Args:
        data: array of shape (*segment_ids.shape, ...), of floats.
        segment_ids: integers: the group of each row; negative ones leave a row out.
        num_segments: how many groups there are.

    Returns:
        Tensor of shape (num_segments, ...); -inf for a group without any rows.

    >>> print(gg.segment_max([1.0, 2.0, 4.0], [0, 1, 0], 2))
    [4. 2.]
    """
    rows, row = _rows(xp, "segment_max", data.shape, segment_ids, num_segments)
    return _reduced(xp, "maximum", -math.inf, data, rows, row, num_segments)


@op(
    vjp=[_extreme_vjp, None],
    ref=_reference(lambda rows: rows.min(0), math.inf),
    samples=_WITHOUT_EMPTY,
    errors=_errors("segment_min"),
    batch=_fold("segment_min"),
)
def segment_min(xp, data, segment_ids, /, num_segments):
    """Smallest of the rows of each group, elementwise; equal ones share the gradient.

    Args:
        data: array of shape (*segment_ids.shape, ...), of floats.
        segment_ids: integers: the group of each row; negative ones leave a row out.
        num_segments: how many groups there are.

    Returns:
        Tensor of shape (num_segments, ...); inf for a group without any rows.

    >>> print(gg.segment_min([1.0, 2.0, 4.0], [0, 1, 0], 2))
    [1. 2.]
    """
    rows, row = _rows(xp, "segment_min", data.shape, segment_ids, num_segments)
    return _reduced(xp, "minimum", math.inf, data, rows, row, num_segments)


# ---- products ----------------------------------------------------------------------------


def _products_before(xp, x, rows):
    """Within runs of equal `rows`: the product of the elements before each, 1 for the first.

    In log2(n) steps over the whole array (Hillis and Steele, 1986): no division, so that the
    gradient is exact beside zeros.
    """
    n = x.shape[0]
    wide = (*rows.shape, *(1,) * (x.ndim - 1))

    def moved(y, d, fill):
        kept = xp.getitem(y, index=slice(0, n - d))
        return xp.pad(kept, ((d, 0), *((0, 0),) * (y.ndim - 1)), constant_values=fill)

    def same(d):
        return xp.reshape(moved(rows, d, -1) == rows, wide)

    if not n:
        return x
    y, d = xp.where(same(1), moved(x, 1, 1), 1), 1
    while d < n:
        y = y * xp.where(same(d), moved(y, d, 1), 1)
        d *= 2
    return y


def _segment_prod_vjp(xp, g, data, segment_ids, num_segments):
    """The product of all others of the group: those before each, times those behind."""
    rows, row = _rows(xp, "segment_prod", data.shape, segment_ids, num_segments)
    order = xp.argsort(rows, axis=0)
    x = xp.take(xp.reshape(data, (*rows.shape, *row)), order, axis=0)
    sorted_rows = xp.take(rows, order, axis=0)
    behind = _products_before(xp, xp.flip(x, axis=0), xp.flip(sorted_rows, axis=0))
    d = conjugate(xp, _products_before(xp, x, sorted_rows) * xp.flip(behind, axis=0))
    d = xp.take(d, xp.argsort(order, axis=0), axis=0)
    return xp.reshape(d * _spread(xp, g, rows), data.shape)


@op(
    vjp=[_segment_prod_vjp, None],
    kinds="fc",
    ref=_reference(lambda rows: rows.prod(0), 1),
    samples=_SAMPLES,
    errors=_errors("segment_prod"),
    batch=_fold("segment_prod"),
)
def segment_prod(xp, data, segment_ids, /, num_segments):
    """Product of the rows of each group, elementwise. Exact gradients beside zeros.

    Args:
        data: array of shape (*segment_ids.shape, ...).
        segment_ids: integers: the group of each row; negative ones leave a row out.
        num_segments: how many groups there are.

    Returns:
        Tensor of shape (num_segments, ...); 1 for a group without any rows.

    >>> print(gg.segment_prod([1.0, 2.0, 4.0], [0, 1, 0], 2))
    [4. 2.]
    """
    rows, row = _rows(xp, "segment_prod", data.shape, segment_ids, num_segments)
    if xp is NUMPY:
        return _reduced(xp, "multiply", 1, data, rows, row, num_segments)
    out = xp.lib.ones((num_segments + 1, *row), dtype=data.dtype)
    if rows.size:  # CuPy's multiply has no `at`
        order = xp.lib.argsort(rows)
        rows, values = rows[order], data.reshape(*rows.shape, *row)[order]
        products = _products_before(xp, values, rows) * values
        last = xp.lib.concatenate([rows[1:] != rows[:-1], xp.lib.ones(1, dtype=bool)])
        out[xp.lib.where(last, rows, num_segments)] = products
    return out[:num_segments]
