"""Casts of many arrays in one launch."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from gpugrad.core.backend import BFLOAT16, READINGS
from gpugrad.kernels.runtime.launch import launch, type_name
from gpugrad.kernels.runtime.tables import THREADS, packed, tables

__all__ = ["INSTANCES", "NARROW", "VECTOR", "narrowed"]

NARROW = (np.dtype(np.float16), BFLOAT16)
"""The dtypes that arrays of float32 can be rounded to."""

INSTANCES = tuple(("casts.cu", f"cast<{type_name(dtype)}>") for dtype in NARROW)
VECTOR = tuple(name for _, name in INSTANCES)


def narrowed(arrays: Sequence[Any], dtype: Any) -> list[Any]:
    """Arrays of float32, of one device, rounded to a dtype of NARROW."""
    given = [packed(a) for a in arrays]
    lib = READINGS[type(given[0])].lib
    made = [lib.empty(a.shape, dtype=dtype) for a in given]
    for table, chunks in tables([given, made]):
        launch("casts.cu", f"cast<{type_name(dtype)}>", chunks, THREADS, (table,))
    return made
