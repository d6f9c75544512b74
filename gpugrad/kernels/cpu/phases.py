"""Complex numbers over their absolute values, in C."""

from __future__ import annotations

from typing import Any

import numpy as np

from gpugrad.kernels.cpu.copies import row_major
from gpugrad.kernels.cpu.large import MIDDLE, WIDE
from gpugrad.kernels.cpu.pool import Kernels

_IN_C = Kernels("phases", scaled_phases="l ppp l")


def scaled_phases(g: Any, x: Any) -> Any:
    """The gradient g * x / abs(x) of absolute values, 0 where the complex `x` is 0; `g` is real."""
    real = g.dtype in WIDE and g.dtype == x.real.dtype
    fits = x.dtype.kind == "c" and real and g.shape == x.shape and x.size >= MIDDLE
    if not fits or not _IN_C:
        return NotImplemented
    out = np.empty(x.shape, x.dtype)
    _IN_C.scaled_phases(WIDE[g.dtype], row_major(g), row_major(x), out, x.size)
    return out
