"""Whether a large array has a NaN, in C."""

from __future__ import annotations

from typing import Any

from gpugrad.kernels.cpu.large import LARGE, WIDE
from gpugrad.kernels.cpu.pool import Kernels

_IN_C = Kernels("nan", has_nan="o l > l")


def has_nan(x: Any) -> Any:
    """Whether an array has a NaN, or NotImplemented."""
    if x.size < LARGE or x.dtype not in WIDE or not _IN_C:
        return NotImplemented
    return bool(_IN_C.has_nan(x, WIDE[x.dtype]))
