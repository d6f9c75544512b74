"""Whether a large array has a NaN, in C."""

from __future__ import annotations

import ctypes
import functools
from typing import Any

from gpugrad.kernels.cpu import pool
from gpugrad.kernels.cpu.large import LARGE, WIDE


@functools.cache
def _library() -> ctypes.CDLL | None:
    return pool.load("nan", {"gpugrad_has_nan": "l p l > l"})


def has_nan(x: Any) -> Any:
    """Whether an array has a NaN, or NotImplemented."""
    fits = x.size >= LARGE and x.dtype in WIDE and x.flags.forc
    library = _library() if fits else None
    if library is None:
        return NotImplemented
    return bool(library.gpugrad_has_nan(WIDE[x.dtype], x.ctypes.data, x.size))
