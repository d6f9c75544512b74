"""Stable orders of NumPy arrays, by sorts that are not stable but several times as fast."""

from __future__ import annotations

from typing import Any

import numpy as np

from gpugrad.ops._axes import index_along

_LEAST = 1 << 13
"""Elements from which these orders take less time than NumPy's stable one."""
_BLOCK = 1 << 15
"""Elements whose keys stay in the cache."""
_LARGEST = np.int32(2**31 - 1)


def order(x: Any, axis: int, descending: bool) -> Any:
    """Indices that sort along an axis. Equal elements keep their order; NaN is the largest."""
    rank = _RANKS.get(x.dtype.char) if x.size >= _LEAST and -x.ndim <= axis < x.ndim else None
    if rank is None:
        return _stable(x, axis, descending)
    moved = np.moveaxis(x, axis, -1)
    rows, out = moved.reshape(-1, moved.shape[-1]), np.empty(moved.shape, np.int64)
    flat, step = out.reshape(rows.shape), max(1, _BLOCK // rows.shape[1])
    for i in range(0, len(rows), step):
        rank(rows[i : i + step], descending, flat[i : i + step])
    return np.moveaxis(out, -1, axis)


def _stable(x: Any, axis: int, descending: bool) -> Any:
    if not descending:
        return np.argsort(x, axis=axis, stable=True)
    reverse = index_along(axis % x.ndim, slice(None, None, -1))  # np.flip takes 1.5 us
    back = x[reverse].argsort(axis=axis, stable=True)
    return x.shape[axis] - 1 - back[reverse]


def _by_keys(x: Any, descending: bool, out: Any) -> None:
    """The order by 64 bits for an element of 32: its rank, and then its index. No two are equal."""
    rank = x
    if x.dtype.kind == "f":
        rank = (x + np.float32(0)).view(np.int32)  # no -0
        rank ^= (rank >> 31) & _LARGEST
        np.copyto(rank, _LARGEST, where=np.isnan(x))
    out[...] = ~rank if descending else rank
    out <<= 32
    out |= np.arange(x.shape[1])
    out.sort(axis=1)
    out &= 2**32 - 1


def _unless_equal(x: Any, descending: bool, out: Any) -> None:
    """The order that is not stable, which is the stable one if no two elements are equal."""
    ascending = np.argsort(x, axis=1)
    values = np.take_along_axis(x, ascending, axis=1)
    if (values[:, 1:] > values[:, :-1]).all():  # false for NaN
        out[...] = np.flip(ascending, axis=1) if descending else ascending
    else:
        out[...] = _stable(x, 1, descending)


_RANKS = {"f": _by_keys, "i": _by_keys, "d": _unless_equal, "l": _unless_equal, "q": _unless_equal}
