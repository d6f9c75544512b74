"""The k largest elements of rows, in C."""

from __future__ import annotations

import ctypes
import functools
from typing import Any

import numpy as np

from gpugrad.kernels.cpu import pool
from gpugrad.kernels.cpu.copies import row_major
from gpugrad.kernels.cpu.large import LARGE, WIDE

MOST = 64
"""The largest `k`: an element is put into its place among the others by a loop."""


@functools.cache
def _library() -> ctypes.CDLL | None:
    return pool.load("top_k", {"gpugrad_top_k": "l ppp lll > l"})


def top_k(x: Any, k: int) -> Any:
    """The values and indices along the last axis, or NotImplemented, as for a NaN."""
    fits = x.size >= LARGE and x.dtype in WIDE and 0 < k <= min(MOST, x.shape[-1])
    library = _library() if fits else None
    if library is None:
        return NotImplemented
    x, shape = row_major(x), (*x.shape[:-1], k)
    values, indices = np.empty(shape, x.dtype), np.empty(shape, np.int64)
    arrays = x.ctypes.data, values.ctypes.data, indices.ctypes.data
    sizes = x.size // x.shape[-1], x.shape[-1], k
    if not library.gpugrad_top_k(WIDE[x.dtype], *arrays, *sizes):
        return NotImplemented
    return values, indices
