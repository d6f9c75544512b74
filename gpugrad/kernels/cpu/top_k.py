"""The k largest elements of rows, in C."""

from __future__ import annotations

from typing import Any

import numpy as np

from gpugrad.kernels.cpu.copies import row_major
from gpugrad.kernels.cpu.large import MIDDLE, WIDE
from gpugrad.kernels.cpu.pool import Kernels

MOST = 64
"""The largest `k`: an element is put into its place among the others by a loop."""

_IN_C = Kernels("top_k", top_k="l ppp lll > l")


def top_k(x: Any, k: int) -> Any:
    """The values and indices along the last axis, or NotImplemented, as for a NaN."""
    fits = x.size >= MIDDLE and x.dtype in WIDE and 0 < k <= min(MOST, x.shape[-1])
    if not fits or not _IN_C:
        return NotImplemented
    x, shape = row_major(x), (*x.shape[:-1], k)
    values, indices = np.empty(shape, x.dtype), np.empty(shape, np.int64)
    sizes = x.size // x.shape[-1], x.shape[-1], k
    good = _IN_C.top_k(WIDE[x.dtype], x, values, indices, *sizes)
    return (values, indices) if good else NotImplemented
