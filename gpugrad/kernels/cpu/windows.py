"""Elements of windows that equal a value, in C."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from gpugrad.kernels.cpu.copies import row_major
from gpugrad.kernels.cpu.large import MIDDLE, WIDE
from gpugrad.kernels.cpu.pool import Kernels

_IN_C = Kernels("windows", tied_windows="l p p p p p p l l l l l")


def tied_windows(y: Any, x: Any, value: Any, footprint: Any, adjoint: bool) -> Any:
    """The op of that name, or NotImplemented."""
    same = x.dtype == value.dtype == y.dtype and x.dtype in WIDE
    fits = y.shape == (value if adjoint else x).shape
    if not same or not fits or value.size < MIDDLE or not _IN_C:
        return NotImplemented
    steps = np.array([math.prod(x.shape[k + 1 :]) for k in range(x.ndim)])
    taps = np.argwhere(footprint) @ steps
    starts = np.zeros((1,), np.int64)
    for n, step in zip(value.shape[:-1], steps, strict=False):
        starts = np.add.outer(starts, np.arange(n) * step)
    long = [k > 1 for k in footprint.shape]
    in_rows, in_columns = not any(long[:-1]), not long[-1]
    split = 1 if in_rows or not adjoint else 2 if in_columns else 0
    total = np.zeros(x.shape if adjoint else value.shape, x.dtype)
    arrays = (*map(row_major, (y, x, value)), total, starts.ravel(), taps)
    sizes = starts.size, value.shape[-1], taps.size, split, adjoint
    _IN_C.tied_windows(WIDE[x.dtype], *arrays, *sizes)
    return total
