"""float32 to float16 and back in C: NumPy converts one element after the other. See halves.cpp."""

from __future__ import annotations

import functools
from typing import Any

import numpy as np

from gpugrad.kernels.cpu.large import errors_raise
from gpugrad.kernels.cpu.pool import Kernels

_IN_C = Kernels("halves", cast="l pp l", has_halves="> l")
_PAIRS = {("f", "e"): 1, ("e", "f"): 0}


@functools.cache
def _exists() -> bool:
    return _IN_C.loaded is not None and bool(_IN_C.has_halves())


def cast(x: Any, dtype: np.dtype[Any]) -> Any:
    """``x.astype(dtype)`` of a contiguous array; NotImplemented for other dtypes."""
    narrow = _PAIRS.get((x.dtype.char, dtype.char))
    if narrow is None or not x.flags.c_contiguous or errors_raise() or not _exists():
        return NotImplemented
    out = np.empty(x.shape, dtype)
    _IN_C.cast(narrow, x, out, x.size)
    return out
