"""Reading and writing by index under `vmap`: arrays, or the index, with a value for each example.

Where the index is the same for all examples it stands behind a slice for them. Where it is not,
or where NumPy would put the axes of arrays in front of that slice, the index is spelt out: an
integer array for each axis, the examples first.
"""

from __future__ import annotations

import numpy as np

from gpugrad.autodiff.batched import BATCHED, Batched, Each
from gpugrad.core.backend import innermost_array, reading
from gpugrad.core.devices import full_beside
from gpugrad.core.tensor import Tensor, index_parts
from gpugrad.errors import ArgumentError


def array_of(part):
    """The array of a list in an index."""
    part = [v._data if isinstance(v, Tensor) else v for v in part]
    of_examples = next((v for v in part if type(v) is Batched), None)
    if of_examples is not None:
        beside = innermost_array(of_examples)
        return BATCHED.stack([full_beside(beside, (), "int64", v) if isinstance(v, int) else v
                              for v in part])  # fmt: skip
    made = np.asarray(part)
    return made if made.size else made.astype(np.intp)  # NumPy makes [] a float array


def _expanded(index, ndim):
    """One entry for each axis, and those of None: no ellipsis, a mask as its places."""
    parts = []
    for part in index_parts(index):
        part = array_of(part) if isinstance(part, (list, tuple)) else part
        if isinstance(part, (bool, np.bool_)):
            raise ArgumentError("vmap takes no True or False as an index; use gg.where.")
        mask = part.stacked if type(part) is Each else part
        if getattr(mask, "dtype", None) == np.dtype("bool"):
            if type(part) in (Each, Batched):
                raise ArgumentError(
                    "Under vmap a mask of each example would give parts of different shapes. Use "
                    "gg.where(mask, x, 0)."
                )
            xp = reading(part)  # a mask of a traced function gets its places anew in each call
            places = xp.argwhere(part)
            parts += [xp.getitem(places, index=(slice(None), k)) for k in range(part.ndim)]
        else:
            parts.append(part)
    dots = [k for k, p in enumerate(parts) if p is Ellipsis] or [len(parts)]
    before, after = parts[: dots[0]], parts[dots[0] + 1 :]
    rest = ndim - sum(p is not None for p in (*before, *after))
    return [*before, *[slice(None)] * rest, *after]


def _rank(part):
    """How many axes an array in an index has, of one example; None if it is no array."""
    return part.stacked.ndim - 1 if type(part) is Each else getattr(part, "ndim", None)


def _behind_examples(xp, index, shape):
    """The index that reads each example of an array of shape (n, ...), and the rank of a part."""
    n, *lengths = shape
    parts = _expanded(index, len(lengths))
    basic = [p is None or isinstance(p, slice) for p in parts]
    ranks = [r for r in map(_rank, parts) if r is not None]
    if not ranks:
        return (slice(None), *parts), sum(basic)
    own = [k for k, b in enumerate(basic) if not b]
    adjacent = own[-1] - own[0] == len(own) - 1
    rank = sum(basic) + max(ranks)
    if adjacent and not any(type(p) is Each for p in parts):
        return (slice(None), *parts), rank
    first = own[0] if adjacent else 0  # the axis of a part where those of the arrays begin
    made, axis = [np.arange(n).reshape(n, *(1,) * rank)], 0
    places = [k for k in range(rank) if not first <= k < first + max(ranks)]
    for p, is_basic in zip(parts, basic, strict=True):
        if is_basic:
            place = places.pop(0)
            if p is not None:
                steps = np.arange(lengths[axis])[p]
                made.append(steps.reshape((-1, *(1,) * (rank - place - 1))))
        else:
            after = (1,) * (rank - first - max(ranks))
            if type(p) is Each:
                ones = (1,) * (rank - len(after) - _rank(p))
                made.append(xp.reshape(p.stacked, (n, *ones, *p.stacked.shape[1:], *after)))
            else:
                p = p if hasattr(p, "ndim") else np.asarray(p)
                made.append(reading(p).reshape(p, (*p.shape, *after)))
        axis += p is not None
    return tuple(made), rank


def _with_examples(xp, batched, arrays, index):
    """The first of some arrays, with the batch axis; stretched if it has none."""
    if batched[0]:
        return arrays[0]
    stacked = [a for a, b in zip(arrays, batched, strict=True) if b]
    stacked += [p.stacked for p in index_parts(index) if type(p) is Each]
    return xp.broadcast_to(arrays[0], (stacked[0].shape[0], *arrays[0].shape))


def getitem_batch(xp, batched, x, *, index):
    """How vmap reads."""
    x = _with_examples(xp, batched, [x], index)
    return xp.getitem(x, index=_behind_examples(xp, index, x.shape)[0])


def scatter_at_batch(xp, batched, g, *, index, shape):
    """How vmap adds into zeros."""
    g = _with_examples(xp, batched, [g], index)
    shape = (g.shape[0], *shape)
    return xp.scatter_at(g, index=_behind_examples(xp, index, shape)[0], shape=shape)


def _aligned(xp, values, rank):
    """Values of examples with `rank` axes behind the batch axis."""
    n, *shape = values.shape
    kept = shape[max(len(shape) - rank, 0) :]  # NumPy lets a value have more ones in front
    return xp.reshape(values, (n, *(1,) * (rank - len(kept)), *kept))


def written(name):
    """How vmap writes with an op ``name(x, values..., index=...)``, or asks about the writes."""

    def batch(xp, batched, x, *values, index, **params):
        x = _with_examples(xp, batched, [x, *values], index)
        index, rank = _behind_examples(xp, index, x.shape)
        values = [
            _aligned(xp, v, rank) if b else v for v, b in zip(values, batched[1:], strict=True)
        ]
        return getattr(xp, name)(x, *values, index=index, **params)

    return batch
