"""Casts many arrays in one launch."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from gpugrad.core.backend import BFLOAT16, READINGS
from gpugrad.kernels.runtime.launch import launch, type_name
from gpugrad.kernels.runtime.tables import THREADS, as_contiguous, tables

__all__ = ["INSTANCES", "NARROW", "VECTOR", "cast_all"]

NARROW = (np.dtype(np.float16), BFLOAT16)
"""The dtypes that float32 arrays can be rounded to."""

INSTANCES = tuple(("casts.cu", f"cast<{type_name(dtype)}>") for dtype in NARROW)
VECTOR = tuple(name for _, name in INSTANCES)


def cast_all(arrays: Sequence[Any], dtype: Any) -> list[Any]:
    """float32 arrays of one device, rounded to a dtype of NARROW."""
    sources = [as_contiguous(a) for a in arrays]
    lib = READINGS[type(sources[0])].lib
    results = [lib.empty(a.shape, dtype=dtype) for a in sources]
    for table, chunks in tables([sources, results]):
        launch("casts.cu", f"cast<{type_name(dtype)}>", chunks, THREADS, (table,))
    return results
