"""Steps of optimizers over the arrays of all Variables in one call, bit by bit those of NumPy."""

from __future__ import annotations

import ctypes
import functools
from collections.abc import Sequence
from typing import Any

import numpy as np

from gpugrad.kernels.cpu import pool

__all__ = ["KINDS", "LEAST", "step"]

LEAST = 1 << 13
"""Elements of all arrays from which the kernel is used: fewer should not wait for a compiler."""

KINDS = ("sgd", "momentum", "nesterov", "adam")
_WIDE = {np.dtype(np.float32): 0, np.dtype(np.float64): 1}


@functools.cache
def _library() -> ctypes.CDLL | None:
    library = pool.load("optim")
    if library is not None:
        long, pointer = ctypes.c_long, ctypes.c_void_p
        library.gpugrad_step.argtypes = [long, long, pointer, pointer, long]
        library.gpugrad_step.restype = None
    return library


def step(kind: str, columns: Sequence[Sequence[Any]], numbers: Sequence[Sequence[float]]) -> Any:
    """Move arrays along their gradients, in place; NotImplemented if NumPy has to.

    Args:
        kind: one of `KINDS`.
        columns: for each Variable its parameter, gradient and averages: flat contiguous arrays.
        numbers: for each Variable those that the formula of `gpugrad.optim` takes.
    """
    dtype = columns[0][0].dtype
    wide = _WIDE.get(dtype)
    if wide is None or sum([c[0].size for c in columns]) < LEAST:
        return NotImplemented
    arrays = [a for column in columns for a in column]
    if any(a.dtype != dtype for a in arrays):  # a gradient may be in 16 bits
        return NotImplemented
    library = _library()
    if library is None:
        return NotImplemented
    objects, table = _objects(len(arrays))(*arrays), np.array(numbers, np.float64)
    library.gpugrad_step(KINDS.index(kind), wide, objects, table.ctypes.data, len(columns))
    return None


@functools.cache
def _objects(n: int) -> Any:
    """The ctypes type of `n` pointers to objects."""
    return ctypes.py_object * n
