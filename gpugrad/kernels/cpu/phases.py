"""Complex numbers over their absolute values, in C."""

from __future__ import annotations

import ctypes
import functools
from typing import Any

import numpy as np

from gpugrad.kernels.cpu import pool
from gpugrad.kernels.cpu.copies import row_major
from gpugrad.kernels.cpu.large import LARGE, WIDE


@functools.cache
def _library() -> ctypes.CDLL | None:
    return pool.load("phases", {"gpugrad_scaled_phases": "l ppp l"})


def scaled_phases(g: Any, x: Any) -> Any:
    """The gradient g * x / abs(x) of absolute values, 0 where the complex `x` is 0; `g` is real."""
    real = g.dtype in WIDE and g.dtype == x.real.dtype
    fits = x.dtype.kind == "c" and real and g.shape == x.shape and x.size >= LARGE
    library = _library() if fits else None
    if library is None:
        return NotImplemented
    out = np.empty(x.shape, x.dtype)
    arrays = [row_major(g), row_major(x), out]
    library.gpugrad_scaled_phases(WIDE[g.dtype], *(a.ctypes.data for a in arrays), x.size)
    return out
