"""Copies in C: of arrays that lie in memory in different ways, and of what indices name.

The launchers return NotImplemented for arrays that NumPy has to copy, and if an index is out of
bounds.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from gpugrad.kernels.cpu.large import LARGE, MIDDLE
from gpugrad.kernels.cpu.pool import Kernels

_IN_C = Kernels("copies", copy="oo l", take="ppp llll > l", take_along="ppp lllll > l")


def copy(x: Any, out: Any) -> bool:
    """Copy an array to one of its shape and dtype in other memory; False if NumPy has to."""
    fits = x.size >= LARGE and x.shape == out.shape and x.dtype == out.dtype
    if not fits or not _IN_C:
        return False
    _IN_C.copy(x, out, x.itemsize)
    return True


def row_major(x: Any) -> Any:
    """An array, or a copy of it in row-major order if it is in another."""
    if x.flags.c_contiguous:
        return x
    out = np.empty(x.shape, x.dtype)
    return out if copy(x, out) else np.ascontiguousarray(x)


def concat(arrays: Sequence[Any], axis: Any) -> Any:
    """Arrays joined along an axis."""
    first = arrays[0]
    if axis is None or not -first.ndim <= axis < first.ndim or not _IN_C:
        return NotImplemented
    axis, shape = axis % first.ndim, list(first.shape)
    for a in arrays:
        same = type(a) is np.ndarray and a.dtype == first.dtype
        if not same or not differ_along(a.shape, first.shape, axis):
            return NotImplemented
    shape[axis] = sum(a.shape[axis] for a in arrays)
    out, start = np.empty(shape, first.dtype), 0
    for a in arrays:
        end = start + a.shape[axis]
        part = out[(*(slice(None),) * axis, slice(start, end))]
        if not copy(a, part):
            part[...] = a
        start = end
    return out


def stack(arrays: Sequence[Any], axis: int) -> Any:
    """Arrays of one shape, joined along a new axis."""
    if not -arrays[0].ndim - 1 <= axis <= arrays[0].ndim:
        return NotImplemented
    if any(type(a) is not np.ndarray or a.shape != arrays[0].shape for a in arrays):
        return NotImplemented
    return concat([np.expand_dims(a, axis) for a in arrays], axis)


def _counted(indices: Any) -> Any:
    """Indices as the kernels read them; None if they are no integers, or uint64."""
    if type(indices) is not np.ndarray or indices.dtype.kind not in "iu":
        return None
    return None if indices.dtype == np.uint64 else np.asarray(indices, np.int64, order="C")


def take(x: Any, indices: Any, axis: int) -> Any:
    """``x.take(indices, axis)``."""
    if type(x) is not np.ndarray:
        return NotImplemented
    axis, index = axis % x.ndim, _counted(indices)
    before, after = x.shape[:axis], x.shape[axis + 1 :]
    if index is None or math.prod(before) * index.size * math.prod(after) < LARGE:
        return NotImplemented
    if not x.size or not _IN_C:
        return NotImplemented
    out = np.empty((*before, *index.shape, *after), x.dtype)
    sizes = math.prod(before), x.shape[axis], index.size, math.prod(after) * x.itemsize
    return out if _IN_C.take(row_major(x), out, index, *sizes) else NotImplemented


def take_along_axis(x: Any, indices: Any, axis: int) -> Any:
    """``np.take_along_axis(x, indices, axis)``, if the shapes differ along that axis only."""
    index = _counted(indices)
    if index is None or index.size < MIDDLE or x.itemsize not in (4, 8):
        return NotImplemented
    if not differ_along(x.shape, index.shape, axis) or not _IN_C:
        return NotImplemented
    axis, out = axis % x.ndim, np.empty(index.shape, x.dtype)
    outer, inner = math.prod(x.shape[:axis]), math.prod(x.shape[axis + 1 :])
    sizes = outer, x.shape[axis], index.shape[axis], inner, x.itemsize
    return out if _IN_C.take_along(row_major(x), out, index, *sizes) else NotImplemented


def differ_along(a: tuple[int, ...], b: tuple[int, ...], axis: int) -> bool:
    """Whether two shapes differ along an axis at most."""
    if len(a) != len(b):
        return False
    axis %= len(a)
    return (*a[:axis], *a[axis + 1 :]) == (*b[:axis], *b[axis + 1 :])
