"""Launches the optimizers' kernels, each over all arrays of one dtype.

A step of Adam is one launch per dtype and 86 arrays, see `tables`. The functions take arrays of
one device in columns: ``(p, g, m, v)`` is four lists of equal length.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from gpugrad.core.backend import HALF, READINGS
from gpugrad.kernels.by_hand.rows import FLOATS
from gpugrad.kernels.runtime.launch import launch, type_name
from gpugrad.kernels.runtime.tables import THREADS, as_contiguous, tables

__all__ = ["INSTANCES", "VECTOR", "adam_settings", "all_finite", "clip", "sgd_settings", "step"]

SUMS = 512  # most blocks of one launch of `squares`: every block of `clip` reads all sums

_STEPS = ("sgd", "sgd_momentum", "adam")
INSTANCES = (
    tuple(
        ("optim.cu", f"{name}<{type_name(dtype)}>")
        for name in (*_STEPS, "find_broken")
        for dtype in FLOATS
    )
    + tuple(
        ("optim.cu", f"{name}<float, {type_name(half)}>")
        for name in _STEPS
        for half in FLOATS
        if half in HALF
    )
    + tuple(
        ("optim.cu", f"{name}<{type_name(dtype)}, {wide}>")
        for name in ("squares", "clip")
        for dtype in FLOATS
        for wide in ("float", "double")
        if wide == "double" or dtype != np.float64
    )
)
VECTOR = tuple(name for _, name in INSTANCES)


def step(
    name: str, columns: Sequence[Sequence[Any]], settings: Sequence[float], live: Any = None
) -> None:
    """Move arrays along their gradients, in place.

    Args:
        name: the kernel: ``"sgd"``, ``"sgd_momentum"`` or ``"adam"``.
        columns: lists of arrays: p, g and one list per average. All but g are C-contiguous. All
            have one real dtype, with two exceptions: averages of 16-bit floats are float32, and
            gradients of float32 may be 16-bit floats.
        settings: the result of `sgd_settings` or `adam_settings`.
        live: None, or a device array of settings that the kernel reads instead when it runs, so
            that the replay of a CUDA graph takes a new learning rate.
    """
    dtype = columns[0][0].dtype
    array = np.array(settings, np.float32 if dtype in HALF else dtype)
    by_value = array.view([("", array.dtype)] * array.size)[0]
    rows = list(zip(columns[0], map(as_contiguous, columns[1]), *columns[2:], strict=True))
    for kind in dict.fromkeys(g.dtype for _, g, *_ in rows):
        types = type_name(dtype) if kind == dtype else f"{type_name(dtype)}, {type_name(kind)}"
        same_kind = [row for row in rows if row[1].dtype == kind]
        for table, chunks in tables(list(zip(*same_kind, strict=True))):
            launch("optim.cu", f"{name}<{types}>", chunks, THREADS, (table, by_value, live))


def sgd_settings(rate: float, momentum: float = 0.0, nesterov: bool = False) -> tuple[float, ...]:
    """The settings of the SGD kernels: rate, momentum, factors of velocity and of gradient."""
    return rate, momentum, rate * momentum if nesterov else rate, rate if nesterov else 0.0


def adam_settings(
    rate: float, beta_1: float, beta_2: float, epsilon: float, step: int, weight_decay: float = 0.0
) -> tuple[float, ...]:
    """The settings of the Adam kernel for step number `step` (from 1) of `gpugrad.optim.AdamW`.

    Computed in double precision, which 1 - beta_2 needs.
    """
    return (
        beta_1,
        1 - beta_1,
        beta_2,
        1 - beta_2,
        1 - rate * weight_decay,
        rate / (1 - beta_1**step),
        1 / (1 - beta_2**step),
        epsilon,
    )


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
    sums = lib.empty(max(1, sum(min(chunks, SUMS) for *_, chunks in work)), dtype=np.float64)
    begin = 0
    for dtype, table, chunks in work:
        blocks = min(chunks, SUMS)
        name = f"squares<{type_name(dtype)}, {type_name(wide)}>"
        launch("optim.cu", name, blocks, THREADS, (table, sums[begin : begin + blocks]))
        begin += blocks
    norm = lib.zeros((), dtype=wide)
    scaled = [lib.empty(g.shape, dtype=g.dtype) for g in grads]
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
