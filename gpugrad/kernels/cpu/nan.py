"""Whether a large array has a NaN, in C."""

from __future__ import annotations

from typing import Any

from gpugrad.kernels.cpu.large import LARGE, WIDE
from gpugrad.kernels.cpu.pool import Kernels

_IN_C = Kernels("nan", has_nan="l p l > l")


def has_nan(x: Any) -> Any:
    """Whether an array has a NaN, or NotImplemented."""
    if x.size < LARGE or x.dtype not in WIDE or not x.flags.forc or not _IN_C:
        return NotImplemented
    return bool(_IN_C.has_nan(WIDE[x.dtype], x, x.size))
