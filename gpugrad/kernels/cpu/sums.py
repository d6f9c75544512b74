"""Sums in C: running ones, over axes, over all elements, and of rows by index.

Running sums and those by index have NumPy's bits.
"""

from __future__ import annotations

import ctypes
import functools
import math
from typing import Any

import numpy as np

from gpugrad.kernels.cpu import pool
from gpugrad.kernels.cpu.copies import differ_along, row_major
from gpugrad.kernels.cpu.large import LARGE, WIDE, errors_raise

_PIECE = 1 << 14  # see sums.cpp


@functools.cache
def _library() -> ctypes.CDLL | None:
    functions = {
        "gpugrad_running": "l pp llll",
        "gpugrad_sum_middle": "l pp lll",
        "gpugrad_add_rows": "l pppp lll > l",
        "gpugrad_add_along": "l ppp llll > l",
        "gpugrad_totals": "l pp l",
    }
    return pool.load("sums", functions)


def running_sum(x: Any, axis: int, back: bool = False) -> Any:
    """Sums of elements up to each one along an axis, or of those from it on if `back`."""
    fits = x.size >= LARGE and x.dtype in WIDE and -x.ndim <= axis < x.ndim
    library = _library() if fits and not errors_raise() else None
    if library is None:
        return NotImplemented
    x, out, axis = row_major(x), np.empty(x.shape, x.dtype), axis % x.ndim
    sizes = math.prod(x.shape[:axis]), x.shape[axis], math.prod(x.shape[axis + 1 :])
    library.gpugrad_running(WIDE[x.dtype], x.ctypes.data, out.ctypes.data, *sizes, back)
    return out


def add_rows(out: Any, index: Any, values: Any, base: Any = None) -> bool:
    """Fill `out` with `base`, and add row i of `values` to row ``index[i]``, in order.

    Args:
        out: contiguous array (rows, width).
        index: ints (n,), from -rows to rows - 1.
        values: array (n, width).
        base: contiguous array (rows, width), perhaps `out`; None for zeros.

    Returns:
        False if NumPy has to, as for an index out of bounds; what is in `out` is then of no use.
    """
    fits = values.size >= LARGE and out.dtype == values.dtype and out.dtype in WIDE
    library = _library() if fits else None
    if library is None:
        return False
    index, values = np.ascontiguousarray(index, np.int64), row_major(values)
    arrays = values.ctypes.data, None if base is None else base.ctypes.data, out.ctypes.data
    sizes = *values.shape, out.shape[0]
    return bool(library.gpugrad_add_rows(WIDE[out.dtype], *arrays, index.ctypes.data, *sizes))


def add_along(values: Any, index: Any, axis: int, shape: tuple[int, ...]) -> Any:
    """Zeros of a shape, and each element of `values` added at its index along an axis.

    Args:
        values: array of that shape but for the axis.
        index: ints of the same shape, which count along the axis, perhaps from its end.
    """
    fits = values.size >= LARGE and values.dtype in WIDE and index.dtype.kind == "i"
    library, n = _library() if fits else None, values.ndim
    if library is None or index.shape != values.shape or not -n <= axis < n:
        return NotImplemented
    axis %= n
    outer, inner = math.prod(shape[:axis]), math.prod(shape[axis + 1 :])
    if not differ_along(values.shape, shape, axis) or outer < 4:
        return NotImplemented  # each slice is one thread's
    out = np.empty(shape, values.dtype)
    index, values = np.ascontiguousarray(index, np.int64), row_major(values)
    arrays = values.ctypes.data, out.ctypes.data, index.ctypes.data
    sizes = outer, values.shape[axis], inner, shape[axis]
    good = library.gpugrad_add_along(WIDE[values.dtype], *arrays, *sizes)
    return out if good else NotImplemented


def reduced(x: Any, axis: Any, keepdims: bool) -> Any:
    """``np.sum(x, axis, keepdims=keepdims)`` over all axes, or over neighbours but for the last."""
    fits = x.size >= LARGE and x.dtype in WIDE
    library = _library() if fits and not errors_raise() else None
    if library is None:
        return NotImplemented
    axes = range(x.ndim) if axis is None else (axis,) if type(axis) is int else axis
    axes = sorted(k + x.ndim if k < 0 else k for k in axes)
    if len(axes) == x.ndim:
        total = _total(library, x)
        return total.reshape((1,) * x.ndim) if keepdims and total is not NotImplemented else total
    if not axes or axes != [*range(axes[0], axes[-1] + 1)] or not 0 <= axes[-1] < x.ndim - 1:
        return NotImplemented
    first, last = axes[0], axes[-1] + 1
    inner = math.prod(x.shape[last:])
    if inner == 1 or first < 0 or not x.flags.c_contiguous:
        return NotImplemented
    between = (1,) * len(axes) if keepdims else ()
    out = np.empty((*x.shape[:first], *between, *x.shape[last:]), x.dtype)
    sizes = math.prod(x.shape[:first]), math.prod(x.shape[first:last]), inner
    library.gpugrad_sum_middle(WIDE[x.dtype], x.ctypes.data, out.ctypes.data, *sizes)
    return out


def _total(library: Any, x: Any) -> Any:
    """The sum of all elements: of columns of pieces, and then of the pieces."""
    if not x.flags.forc:
        return NotImplemented
    parts = np.empty(-(-x.size // _PIECE), x.dtype)
    library.gpugrad_totals(WIDE[x.dtype], x.ctypes.data, parts.ctypes.data, x.size)
    return np.asarray(np.add.reduce(parts))
