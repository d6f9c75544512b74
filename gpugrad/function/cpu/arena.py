"""Lays out the buffers of a program in memory."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

_LINE = 64  # bytes of a cache line, and of the widest vector
_PAGE = 4096  # bytes after which addresses share places in the first cache
_APART = 5 * _LINE  # odd, so that buffers of whole pages begin at as many places as there are


def arrays_in_one_block(kinds: Sequence[tuple[tuple[int, ...], np.dtype[Any]]]) -> list[Any]:
    """Arrays of these shapes and dtypes, not initialized, side by side in one block of memory.

    Each begins at a cache line, and an array of a page or more some lines behind the last one's
    end: by `numpy.empty`, large ones begin at nearly equal places of their pages, or across lines,
    so the loads and stores of a kernel that walks through several of them push each other out of
    the first cache. That took up to 15 % of a step, or none, by the state of the heap.
    """
    places, end = [], 0
    for shape, dtype in kinds:
        nbytes = math.prod(shape) * dtype.itemsize
        places.append(end)
        end += -(-nbytes // _LINE) * _LINE + (_APART if nbytes >= _PAGE else 0)
    block = np.empty(end + _LINE, np.uint8)
    start = -block.ctypes.data % _LINE
    return [
        np.empty(shape, dtype)
        if dtype.hasobject
        else np.ndarray(shape, dtype, block, start + place)
        for (shape, dtype), place in zip(kinds, places, strict=True)
    ]
