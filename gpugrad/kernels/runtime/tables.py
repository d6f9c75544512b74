"""Addresses of many arrays, for kernels that go over all of them in one launch.

They come by value: as many as fit beside a kernel's other arguments are a launch.
"""

from __future__ import annotations

import functools
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from gpugrad.core.backend import READINGS
from gpugrad.kernels.runtime.launch import pointer

__all__ = ["CHUNK", "THREADS", "packed", "room", "tables"]

CHUNK = 4096  # as tables.cuh has it
THREADS = 256


def room(k: int) -> int:
    """How many arrays of `k` addresses fit one launch."""
    return 3800 // (8 * k + 12) // 2 * 2


@functools.cache
def _table(k: int) -> np.dtype[Any]:
    n = room(k)
    return np.dtype(
        [("at", np.uintp, (k, n)), ("size", np.int64, n), ("first", np.int32, n),
         ("count", np.int32), ("chunks", np.int32)], align=True,
    )  # fmt: skip


def tables(columns: Sequence[Sequence[Any]]) -> Iterator[tuple[Any, int]]:
    """Tables of the kernels' layout, with the number of chunks of each."""
    k, n = len(columns), room(len(columns))
    for begin in range(0, len(columns[0]), n):
        part = [column[begin : begin + n] for column in columns]
        table = np.zeros((), _table(k))
        sizes = [a.size for a in part[0]]
        ends = np.cumsum([-(-size // CHUNK) for size in sizes])
        for row, column in zip(table["at"], part, strict=True):
            row[: len(sizes)] = [pointer(a) for a in column]
        table["size"][: len(sizes)] = sizes
        table["first"][1 : len(sizes)] = ends[:-1]
        table["count"], table["chunks"] = len(sizes), ends[-1]
        if ends[-1]:
            yield table[()], int(ends[-1])


def packed(a: Any) -> Any:
    """An array in C order, itself if it is."""
    return a if a.flags.c_contiguous else READINGS[type(a)].lib.ascontiguousarray(a)
