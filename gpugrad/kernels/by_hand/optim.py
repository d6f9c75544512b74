"""Launches checks of gradients, each over all arrays of one dtype: see `tables`.

The steps of optimizers are generated: see `gpugrad.kernels.codegen.update_kernel`.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from gpugrad.core.backend import READINGS
from gpugrad.kernels.by_hand.rows import FLOATS, names
from gpugrad.kernels.runtime.launch import launch, type_name
from gpugrad.kernels.runtime.tables import THREADS, as_contiguous, tables

SUMS = 512  # most blocks of one launch of `squares`: every block of `clip` reads all sums

_NARROW = [dtype for dtype in FLOATS if dtype != np.float64]
VECTOR = (
    *names("find_broken<{}>", FLOATS),
    *names("{}<{}, double>", ("squares", "clip"), FLOATS),
    *names("{}<{}, float>", ("squares", "clip"), _NARROW),
)
INSTANCES = tuple(("optim.cu", name) for name in VECTOR)


def _by_dtype(arrays: Sequence[Any]) -> dict[Any, list[int]]:
    groups: dict[Any, list[int]] = {}
    for i, a in enumerate(arrays):
        groups.setdefault(a.dtype, []).append(i)
    return groups


def clip(grads: Sequence[Any], max_norm: float) -> tuple[list[Any], Any]:
    """Arrays scaled so that their common norm is at most `max_norm`, and the 0-d norm.

    Args:
        grads: arrays of real dtypes, not modified. If one is float64, so is the norm.
        max_norm: above 0.
    """
    grads = [as_contiguous(g) for g in grads]
    lib = READINGS[type(grads[0])].lib
    wide = np.dtype(np.float64 if any(g.dtype == np.float64 for g in grads) else np.float32)
    groups = _by_dtype(grads)
    work = [
        (dtype, *launch_args)
        for dtype, which in groups.items()
        for launch_args in tables([[grads[i] for i in which]])
    ]
    sums = lib.ndarray(max(1, sum(min(chunks, SUMS) for *_, chunks in work)), np.float64)
    begin = 0
    for dtype, table, chunks in work:
        blocks = min(chunks, SUMS)
        name = f"squares<{type_name(dtype)}, {type_name(wide)}>"
        launch("optim.cu", name, blocks, THREADS, (table, sums[begin : begin + blocks]))
        begin += blocks
    norm = lib.zeros((), dtype=wide)
    scaled = [lib.ndarray(g.shape, g.dtype) for g in grads]
    for dtype, which in groups.items():
        name = f"clip<{type_name(dtype)}, {type_name(wide)}>"
        for table, chunks in tables([[grads[i] for i in which], [scaled[i] for i in which]]):
            args = (table, sums, np.int32(begin), wide.type(max_norm), norm)
            launch("optim.cu", name, chunks, THREADS, args)
    return scaled, norm


def all_finite(arrays: Sequence[Any]) -> Any:
    """Whether all elements of arrays of real dtypes are finite: a 0-d array of bool."""
    arrays = [as_contiguous(a) for a in arrays]
    broken = READINGS[type(arrays[0])].lib.zeros((), dtype=np.int32)
    for dtype, which in _by_dtype(arrays).items():
        for table, chunks in tables([[arrays[i] for i in which]]):
            args = (table, broken)
            launch("optim.cu", f"find_broken<{type_name(dtype)}>", chunks, THREADS, args)
    return broken == 0
