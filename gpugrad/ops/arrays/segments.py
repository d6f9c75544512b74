"""Reductions of groups of rows, like TensorFlow's unsorted_segment ops.

Row i belongs to the group ``segment_ids[i]``; rows with a negative id are left out. The ids need
not be sorted.
"""

import functools
import inspect
import math

import numpy as np

from gpugrad.core.backend import NUMPY
from gpugrad.core.index_checks import when, within
from gpugrad.core.samples import calls, uniform
from gpugrad.errors import ArgumentError, DTypeError, IndexOutOfBoundsError, ShapeError
from gpugrad.kernels.cpu.large import MIDDLE, kernels
from gpugrad.kernels.runtime.launch import is_captured
from gpugrad.ops.arrays.index_rules import as_int64, is_deferred
from gpugrad.registry.on_arrays import wide
from gpugrad.registry.record import op
from gpugrad.registry.rules import conjugate

_SAMPLES = calls(
    lambda rng: ([uniform(rng, 5), np.array([2, 0, 2, 0, 2])], {"num_segments": 4}),
    lambda rng: ([uniform(rng, 4, 2), np.array([1, -1, 0, 1])], {"num_segments": 2}),
    lambda rng: ([uniform(rng, 2, 3), np.array([[1, 0, 1], [0, 0, -2]])], {"num_segments": 2}),
    lambda rng: ([uniform(rng, 0, 2), np.array([], dtype=np.int64)], {"num_segments": 2}),
    lambda rng: ([uniform(rng, 2), np.array([-1, -1])], {"num_segments": 0}),
)
_NO_EMPTY_GROUPS = calls(  # where the result would be infinite, and numerical differences undefined
    lambda rng: ([uniform(rng, 5), np.array([2, 0, 2, 1, 2])], {"num_segments": 3}),
    lambda rng: ([uniform(rng, 4, 2), np.array([1, -1, 0, 1])], {"num_segments": 2}),
    lambda rng: ([uniform(rng, 2, 3), np.array([[1, 0, 1], [0, 0, -2]])], {"num_segments": 2}),
    lambda rng: ([uniform(rng, 2), np.array([-1, -1])], {"num_segments": 0}),
)


def _reference(reduce, empty):
    def segments(data, segment_ids, num_segments):
        out = [data[segment_ids == k] for k in range(num_segments)]
        shape = (num_segments, *data.shape[segment_ids.ndim :])
        groups = [reduce(rows) if len(rows) else np.full(shape[1:], empty) for rows in out]
        return np.array(groups, data.dtype).reshape(shape)

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
        ([np.array([0])], {"num_segments": -1}, ArgumentError, "num_segments=-1"),
    ],
    captures=True,
)
def segment_rows(xp, segment_ids, /, *, num_segments):
    """Ids with `num_segments`, an extra row, for negative ones; `segment_sum` calls it."""
    if segment_ids.dtype.kind not in "iu":
        raise DTypeError(f"segment_rows: segment_ids must be integers, not {segment_ids.dtype}.")
    if num_segments < 0:
        raise ArgumentError(f"segment_rows: num_segments={num_segments} is negative.")
    ids = as_int64(segment_ids)
    if not isinstance(ids, (np.ndarray, np.generic)) and (is_captured(ids) or when() != "now"):
        # the kernel that adds the rows skips it, and reports it
        ids = xp.lib.where(ids < num_segments, ids, num_segments + 1)
    elif xp is NUMPY and within(ids, num_segments):
        return ids.copy()  # none is negative
    elif ids.size and int(ids.max()) >= num_segments:
        raise IndexOutOfBoundsError(
            f"segment_rows: id {int(ids.max())} is out of bounds for num_segments={num_segments}. "
            "Ids count from 0; rows with negative ids are left out."
        )
    return xp.lib.where(ids < 0, num_segments, ids)


def _flat_rows(xp, name, data_shape, segment_ids, num_segments):
    """The group of each row of data, flattened, and the shape of one row of data."""
    n = len(segment_ids.shape)
    if tuple(data_shape[:n]) != tuple(segment_ids.shape):
        raise ShapeError(
            f"{name}: the shape of segment_ids {segment_ids.shape} must be the start of the shape "
            f"of data {tuple(data_shape)}."
        )
    rows = xp.segment_rows(segment_ids, num_segments=num_segments)
    return xp.reshape(rows, (segment_ids.size,)), tuple(data_shape[n:])


def _take_groups(xp, y, rows):
    """For each row of data, its group's row of `y`; 0 for rows left out."""
    return xp.take(xp.pad(y, ((0, 1), *((0, 0),) * (y.ndim - 1))), rows, axis=0)


_ARGS = """
Args:
    data: array of shape (*segment_ids.shape, ...).
    segment_ids: integers: the group of each row; negative ones leave a row out.
    num_segments: number of groups.

Returns:
    Tensor of shape (num_segments, ...).

"""


def _segment_op(reduce, empty=0, kinds="fc", errors_of=None, **declared):
    """Declares a reduction of groups, and documents its arguments.

    `reduce` is its reference on the rows of one group, `empty` its value for no rows.
    """

    def declare(forward):
        summary, _, example = inspect.cleandoc(forward.__doc__).partition("\n\n")
        forward.__doc__ = f"{summary}\n{_ARGS}{example}"
        return op(
            kinds=kinds,
            ref=_reference(reduce, empty),
            samples=_SAMPLES if math.isfinite(empty) else _NO_EMPTY_GROUPS,
            errors=_errors(errors_of or forward.__name__),
            **declared,
        )(forward)

    return declare


@_segment_op(lambda rows: rows.sum(0), mixed="float32")
def segment_sum(xp, data, segment_ids, /, num_segments):
    """Sum of the rows of each group; 0 for an empty group.

    >>> print(gg.segment_sum([1.0, 2.0, 4.0], [0, 1, 0], 2))
    [5. 2.]
    """
    rows, row = _flat_rows(xp, "segment_sum", data.shape, segment_ids, num_segments)
    values = xp.reshape(data, (*rows.shape, *row))
    sums = xp.scatter_rows(values, rows, shape=(num_segments + 1, *row))
    return xp.getitem(sums, index=slice(num_segments))


def _counts(xp, total, data, segment_ids, num_segments):
    """Number of rows of each group, at least 1, with the dtype and axes of `total`."""
    ones = xp.astype(segment_ids >= 0, "float32" if data.dtype.itemsize <= 4 else "float64")
    count = xp.maximum(xp.segment_sum(ones, segment_ids, num_segments), 1.0)
    return xp.astype(xp.reshape(count, (num_segments, *(1,) * (total.ndim - 1))), total.dtype)


@_segment_op(lambda rows: rows.mean(0), errors_of="segment_sum")
def segment_mean(xp, data, segment_ids, /, num_segments):
    """Mean of the rows of each group; 0 for an empty group.

    >>> print(gg.segment_mean([1.0, 2.0, 4.0], [0, 1, 0], 2))
    [2.5 2. ]
    """
    total = xp.segment_sum(data, segment_ids, num_segments)
    return total / _counts(xp, total, data, segment_ids, num_segments)


@_segment_op(lambda rows: rows.sum(0) / math.sqrt(len(rows)), errors_of="segment_sum")
def segment_sqrt_n(xp, data, segment_ids, /, num_segments):
    """Sum of the rows of each group, divided by the square root of their number.

    >>> print(gg.segment_sqrt_n([1.0, 2.0, 3.0, 2.0, 2.0], [0, 1, 0, 0, 0], 2))
    [4. 2.]
    """
    total = xp.segment_sum(data, segment_ids, num_segments)
    return total / xp.sqrt(_counts(xp, total, data, segment_ids, num_segments))


def _extreme_vjp(xp, g, out, data, segment_ids, num_segments):
    """Equal extremes share the gradient, as in `max`."""
    rows, row = _flat_rows(xp, "segment_max", data.shape, segment_ids, num_segments)
    values = xp.reshape(data, (*rows.shape, *row))
    inside = xp.reshape(rows < num_segments, (*rows.shape, *(1,) * len(row)))
    is_extreme = xp.logical_and(values == _take_groups(xp, out, rows), inside)
    g, is_extreme = wide(xp, g), xp.astype(is_extreme, wide(xp, data).dtype)
    count = xp.scatter_rows(is_extreme, rows, shape=(num_segments + 1, *row))
    count = xp.maximum(xp.getitem(count, index=slice(num_segments)), 1)
    return xp.reshape(is_extreme * _take_groups(xp, g / count, rows), data.shape)


def _scatter_reduce(xp, name, ufunc, start, data, segment_ids, num_segments):
    """``ufunc.at`` on the rows of the groups: one atomic operation for each element."""
    rows, row = _flat_rows(xp, name, data.shape, segment_ids, num_segments)
    shape, values = (num_segments + 1, *row), data.reshape(*rows.shape, *row)
    if xp is not NUMPY:
        rows = _rows_in_bounds(xp.lib, name, rows, segment_ids, num_segments)
        sign = 1 if start < 0 else -1
        return (_greatest(xp.lib, shape, rows, values * sign) * sign)[:num_segments]
    if data.dtype.kind in "iu":  # inf is no integer
        info = np.iinfo(data.dtype)
        start = info.max if start > 0 else info.min
    out, width = np.full(shape, start, dtype=data.dtype), math.prod(row)
    if data.size >= MIDDLE and ufunc in ("maximum", "minimum"):
        flat = out.reshape(-1, width), rows, values.reshape(-1, width)
        if kernels("sums").extremes(*flat, least=ufunc == "minimum"):
            return out[:num_segments]
    if row:  # `at` is several times as fast on flat arrays
        rows = (rows[:, None] * width + np.arange(width)).reshape(-1)
    getattr(np, ufunc).at(out.reshape(-1), rows, values.reshape(-1))
    return out[:num_segments]


def _rows_in_bounds(lib, name, rows, segment_ids, num_segments):
    """`rows` for CuPy, which would wrap one that is out of bounds: it is reported and left out."""
    is_deferred(name, segment_ids, num_segments, first=-(2**63))
    return lib.minimum(rows, num_segments)


def _greatest(lib, shape, rows, values):
    """The maximum of the rows of each group, NaN if there is one, with CuPy's atomics on integers.

    Its atomics on floats ignore NaN, and round float64 to float32. So the bits of each number
    become an unsigned integer in the same order: a positive number gets the sign bit, and the bits
    of a negative one are inverted.
    """
    size = values.dtype.itemsize
    signed, unsigned = f"i{size}", f"u{size}"
    sign_bit = -(2 ** (8 * size - 1))

    def flips(is_negative):  # all bits, or the sign bit
        return (is_negative >> (8 * size - 1)) | sign_bit

    values = lib.where(values == values, values, math.nan).astype(values.dtype)  # one NaN, positive
    bits = values.view(signed)
    lowest = int(np.array(-math.inf, values.dtype).view(signed))
    keys = lib.full(shape, ~lowest, dtype=signed).view(unsigned)
    lib.maximum.at(keys, rows, (bits ^ flips(bits)).view(unsigned))
    keys = keys.view(signed)
    return (keys ^ flips(~keys)).view(values.dtype)


def _fold_examples(name):
    """The vmap rule: one call, each example's groups after the previous ones."""

    def batch(xp, batched, data, segment_ids, *, num_segments):
        n = data.shape[0] if batched[0] else segment_ids.shape[0]
        if not batched[0]:
            data = xp.broadcast_to(data, (n, *data.shape))
        if not batched[1]:
            segment_ids = xp.broadcast_to(segment_ids, (n, *segment_ids.shape))
        rows = xp.segment_rows(segment_ids, num_segments=num_segments)
        example = xp.cumulative_sum(xp.broadcast_to(rows * 0 + 1, rows.shape), axis=0) - 1
        ids = xp.where(rows < num_segments, rows + example * num_segments, -1)
        out = getattr(xp, name)(data, ids, n * num_segments)
        return xp.reshape(out, (n, num_segments, *out.shape[1:]))

    return batch


_extreme_op = functools.partial(_segment_op, vjp=[_extreme_vjp, None], kinds="f")


@_extreme_op(lambda rows: rows.max(0), -math.inf, batch=_fold_examples("segment_max"))
def segment_max(xp, data, segment_ids, /, num_segments):
    """Elementwise maximum of the rows of each group; -inf for an empty group. Ties share gradients.

    >>> print(gg.segment_max([1.0, 2.0, 4.0], [0, 1, 0], 2))
    [4. 2.]
    """
    args = data, segment_ids, num_segments
    return _scatter_reduce(xp, "segment_max", "maximum", -math.inf, *args)


@_extreme_op(lambda rows: rows.min(0), math.inf, batch=_fold_examples("segment_min"))
def segment_min(xp, data, segment_ids, /, num_segments):
    """Elementwise minimum of the rows of each group; inf for an empty group. Ties share gradients.

    >>> print(gg.segment_min([1.0, 2.0, 4.0], [0, 1, 0], 2))
    [1. 2.]
    """
    args = data, segment_ids, num_segments
    return _scatter_reduce(xp, "segment_min", "minimum", math.inf, *args)


def _products_before(xp, x, rows):
    """For each element the product of the elements before it with the same row; `rows` is sorted.

    log2(n) steps over the whole array (Hillis and Steele, 1986), without division, so that the
    gradient is exact next to zeros.
    """
    n = x.shape[0]
    shape = (*rows.shape, *(1,) * (x.ndim - 1))

    def shift(y, d, fill):
        y = xp.getitem(y, index=slice(0, n - d))
        return xp.pad(y, ((d, 0), *((0, 0),) * (y.ndim - 1)), constant_values=fill)

    def same_row(d):
        return xp.reshape(shift(rows, d, -1) == rows, shape)

    if not n:
        return x
    y, d = xp.where(same_row(1), shift(x, 1, 1), 1), 1
    while d < n:
        y = y * xp.where(same_row(d), shift(y, d, 1), 1)
        d *= 2
    return y


def _segment_prod_vjp(xp, g, data, segment_ids, num_segments):
    """The product of the group's other rows: the rows before each times the rows after it."""
    rows, row = _flat_rows(xp, "segment_prod", data.shape, segment_ids, num_segments)
    order = xp.argsort(rows, axis=0)
    x = xp.take(xp.reshape(data, (*rows.shape, *row)), order, axis=0)
    sorted_rows = xp.take(rows, order, axis=0)
    after = _products_before(xp, xp.flip(x, axis=0), xp.flip(sorted_rows, axis=0))
    d = conjugate(xp, _products_before(xp, x, sorted_rows) * xp.flip(after, axis=0))
    d = xp.take(d, xp.argsort(order, axis=0), axis=0)
    return xp.reshape(d * _take_groups(xp, g, rows), data.shape)


@_segment_op(
    lambda rows: rows.prod(0),
    1,
    vjp=[_segment_prod_vjp, None],
    batch=_fold_examples("segment_prod"),
)
def segment_prod(xp, data, segment_ids, /, num_segments):
    """Elementwise product of the rows of each group; 1 for an empty group. Exact next to zeros.

    >>> print(gg.segment_prod([1.0, 2.0, 4.0], [0, 1, 0], 2))
    [4. 2.]
    """
    if xp is NUMPY:
        args = data, segment_ids, num_segments
        return _scatter_reduce(xp, "segment_prod", "multiply", 1, *args)
    rows, row = _flat_rows(xp, "segment_prod", data.shape, segment_ids, num_segments)
    out = xp.lib.ones((num_segments + 1, *row), dtype=data.dtype)
    if rows.size:  # CuPy's multiply has no `at`
        rows = _rows_in_bounds(xp.lib, "segment_prod", rows, segment_ids, num_segments)
        order = xp.lib.argsort(rows)
        rows, values = rows[order], data.reshape(*rows.shape, *row)[order]
        products = _products_before(xp, values, rows) * values
        last = xp.lib.concatenate([rows[1:] != rows[:-1], xp.lib.ones(1, dtype=bool)])
        out[xp.lib.where(last, rows, num_segments)] = products
    return out[:num_segments]
