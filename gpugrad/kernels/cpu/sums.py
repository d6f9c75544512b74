"""Running sums, and sums of rows by index, in C, with NumPy's bits; and totals."""

from __future__ import annotations

import ctypes
import functools
import math
from typing import Any

import numpy as np

from gpugrad.kernels.cpu import pool
from gpugrad.kernels.cpu.large import LARGE, WIDE

__all__ = ["add_rows", "running_sum", "total"]

_PIECE = 1 << 14  # see sums.cpp


@functools.cache
def _library() -> ctypes.CDLL | None:
    functions = {
        "gpugrad_running": "l pp llll",
        "gpugrad_add_rows": "l ppp lll",
        "gpugrad_totals": "l pp l",
    }
    return pool.load("sums", functions)


def running_sum(x: Any, axis: int, back: bool = False) -> Any:
    """Sums of elements up to each one along an axis, or of those from it on if `back`."""
    fits = x.size >= LARGE and x.dtype in WIDE and -x.ndim <= axis < x.ndim
    library = _library() if fits else None
    if library is None:
        return NotImplemented
    x, out, axis = np.ascontiguousarray(x), np.empty(x.shape, x.dtype), axis % x.ndim
    sizes = math.prod(x.shape[:axis]), x.shape[axis], math.prod(x.shape[axis + 1 :])
    library.gpugrad_running(WIDE[x.dtype], x.ctypes.data, out.ctypes.data, *sizes, back)
    return out


def add_rows(out: Any, index: Any, values: Any) -> bool:
    """Add row i of `values` to row ``index[i]`` of `out`, in order; False if NumPy has to.

    Args:
        out: contiguous array (rows, width), changed in place.
        index: ints (n,), from 0 to rows - 1.
        values: array (n, width).
    """
    fits = values.size >= LARGE and out.dtype == values.dtype and out.dtype in WIDE
    library = _library() if fits else None
    if library is None:
        return False
    index, values = np.ascontiguousarray(index, np.int64), np.ascontiguousarray(values)
    arrays = values.ctypes.data, out.ctypes.data, index.ctypes.data
    library.gpugrad_add_rows(WIDE[out.dtype], *arrays, *values.shape, out.shape[0])
    return True


def total(x: Any, keepdims: bool) -> Any:
    """The sum of all elements: of columns of pieces, and then of the pieces."""
    library = _library() if x.size >= LARGE and x.dtype in WIDE else None
    if library is None or not x.flags.forc:
        return NotImplemented
    parts = np.empty(-(-x.size // _PIECE), x.dtype)
    library.gpugrad_totals(WIDE[x.dtype], x.ctypes.data, parts.ctypes.data, x.size)
    return np.add.reduce(parts).reshape((1,) * x.ndim if keepdims else ())
