"""Weighted sums of a few elements each along an axis, in C."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from gpugrad.core.backend import NUMPY
from gpugrad.kernels.cpu.copies import row_major
from gpugrad.kernels.cpu.large import MIDDLE, WIDE, errors_raise
from gpugrad.kernels.cpu.pool import Kernels

_IN_C = Kernels("resample", resample="l pppp lllll")


def resample(xp: Any, x: Any, /, taps: Any, *, axis: int = -1) -> Any:
    """The launcher of `gpugrad.ops.nn.resample.resample`."""
    fits = type(x) is np.ndarray and x.dtype in WIDE and -x.ndim <= axis < x.ndim
    if not fits or x.shape[axis] != taps.length:
        return NotImplemented
    m, n = len(taps.index), taps.length
    if max(x.size, x.size // max(n, 1) * m) < MIDDLE or not _IN_C or errors_raise():
        return NotImplemented
    axis %= x.ndim
    x, out = row_major(x), np.empty((*x.shape[:axis], m, *x.shape[axis + 1 :]), x.dtype)
    index, weights = taps.on_device_of(NUMPY, x)
    sizes = len(index), math.prod(x.shape[:axis]), n, m, math.prod(x.shape[axis + 1 :])
    _IN_C.resample(WIDE[x.dtype], x, out, index, weights, *sizes)
    return out
