"""Indexing under `vmap`, where the array, the index or the values have a batch axis.

If all examples share the index, a slice for the batch axis is put in front of it. If they do not,
or if NumPy would move the axes of index arrays in front of that slice, the index is rewritten as
one integer array for each axis, with the batch axis first.
"""

import numpy as np

from gpugrad.autodiff.batched import BATCHED, Batched, Each
from gpugrad.core.backend import innermost_array, reading
from gpugrad.core.devices import full_on_device_of
from gpugrad.core.tensor import Tensor, index_parts
from gpugrad.errors import ArgumentError

_NUMBERS = frozenset((int, bool, np.int64, np.bool_))


def array_of(part):
    """A list in an index as an array."""
    batched = None
    if not _NUMBERS.issuperset(map(type, part)):
        part = [v._data if isinstance(v, Tensor) else v for v in part]
        batched = next((v for v in part if type(v) is Batched), None)
    if batched is not None:
        like = innermost_array(batched)
        return BATCHED.stack(
            [full_on_device_of(like, (), "int64", v) if isinstance(v, int) else v for v in part]
        )
    array = np.asarray(part)
    return array if array.size else array.astype(np.intp)  # NumPy turns [] into floats


def _expand_index(index, ndim):
    """The index with one entry for each axis, plus every None: masks as integers, no ellipsis.

    Also returns the position of the ellipsis: where it stands for no axis, it still separates the
    index arrays on its two sides.
    """
    parts = []
    for part in index_parts(index):
        part = array_of(part) if isinstance(part, (list, tuple)) else part
        part = np.asarray(part) if isinstance(part, (bool, np.bool_)) else part
        mask = part.stacked if type(part) is Each else part
        if getattr(mask, "dtype", None) == np.dtype("bool"):
            if type(part) in (Each, Batched):
                raise ArgumentError(
                    "Under vmap a mask that differs between examples would select different "
                    "numbers of elements. Use gg.where(mask, x, 0)."
                )
            if not part.ndim:
                raise ArgumentError(
                    "vmap does not support True or False, or a 0-d mask, as an index; write "
                    "x[None] for x[True] and x[None][:0] for x[False]."
                )
            xp = reading(part)  # a traced mask is converted again in each call
            rows = xp.argwhere(part)
            parts += [xp.getitem(rows, index=(slice(None), k)) for k in range(part.ndim)]
        else:
            parts.append(part)
    dots = next((k for k, p in enumerate(parts) if p is Ellipsis), len(parts))
    before, after = parts[:dots], parts[dots + 1 :]
    rest = ndim - sum(p is not None for p in (*before, *after))
    return [*before, *[slice(None)] * rest, *after], dots


def _rank(part):
    """Number of axes of an array in an index, without the batch axis; None for other entries."""
    return part.stacked.ndim - 1 if type(part) is Each else getattr(part, "ndim", None)


def _batch_index(xp, index, shape):
    """The index for an array of shape (batch, ...), and the rank of what it selects per example."""
    n, *lengths = shape
    parts, dots = _expand_index(index, len(lengths))
    basic = [p is None or isinstance(p, slice) for p in parts]
    ranks = [r for r in map(_rank, parts) if r is not None]
    if not ranks:
        return (slice(None), *parts), sum(basic)
    arrays = [k for k, b in enumerate(basic) if not b]
    adjacent = arrays[-1] - arrays[0] == len(arrays) - 1 and not arrays[0] < dots <= arrays[-1]
    rank = sum(basic) + max(ranks)
    if adjacent and not any(type(p) is Each for p in parts):
        return (slice(None), *parts), rank
    first = arrays[0] if adjacent else 0  # the axis of the result where the arrays' axes begin
    entries, axis = [np.arange(n).reshape(n, *(1,) * rank)], 0
    free_axes = [k for k in range(rank) if not first <= k < first + max(ranks)]
    for p, is_basic in zip(parts, basic, strict=True):
        if is_basic:
            result_axis = free_axes.pop(0)
            if p is not None:
                steps = np.arange(lengths[axis])[p]
                entries.append(steps.reshape((-1, *(1,) * (rank - result_axis - 1))))
        else:
            after = (1,) * (rank - first - max(ranks))
            if type(p) is Each:
                ones = (1,) * (rank - len(after) - _rank(p))
                entries.append(xp.reshape(p.stacked, (n, *ones, *p.stacked.shape[1:], *after)))
            else:
                p = p if hasattr(p, "ndim") else np.asarray(p)
                entries.append(reading(p).reshape(p, (*p.shape, *after)))
        axis += p is not None
    return tuple(entries), rank


def _add_batch_axis(xp, batched, arrays, index):
    """The first of the arrays, broadcast along a batch axis if it has none."""
    if batched[0]:
        return arrays[0]
    stacked = [a for a, b in zip(arrays, batched, strict=True) if b]
    stacked += [p.stacked for p in index_parts(index) if type(p) is Each]
    return xp.broadcast_to(arrays[0], (stacked[0].shape[0], *arrays[0].shape))


def getitem_batch(xp, batched, x, *, index):
    """The vmap rule of `getitem`."""
    x = _add_batch_axis(xp, batched, [x], index)
    return xp.getitem(x, index=_batch_index(xp, index, x.shape)[0])


def scatter_at_batch(xp, batched, g, *, index, shape):
    """The vmap rule of `scatter_at`."""
    g = _add_batch_axis(xp, batched, [g], index)
    shape = (g.shape[0], *shape)
    return xp.scatter_at(g, index=_batch_index(xp, index, shape)[0], shape=shape)


def _align_values(xp, values, rank):
    """Batched values with `rank` axes after the batch axis."""
    n, *shape = values.shape
    shape = shape[max(len(shape) - rank, 0) :]  # NumPy allows extra ones in front
    return xp.reshape(values, (n, *(1,) * (rank - len(shape)), *shape))


def write_batch(name):
    """The vmap rule of an op ``name(x, values..., index=...)`` that writes at an index."""

    def batch(xp, batched, x, *values, index, **params):
        x = _add_batch_axis(xp, batched, [x, *values], index)
        index, rank = _batch_index(xp, index, x.shape)
        values = [
            _align_values(xp, v, rank) if b else v for v, b in zip(values, batched[1:], strict=True)
        ]
        return getattr(xp, name)(x, *values, index=index, **params)

    return batch
