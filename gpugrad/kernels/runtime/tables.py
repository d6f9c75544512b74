"""Tables of array addresses, for kernels that process many arrays in one launch.

A table is passed by value, so a launch takes as many arrays as fit into a kernel's parameters.
"""

from __future__ import annotations

import functools
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from gpugrad.core.backend import READINGS
from gpugrad.kernels.runtime.launch import pointer

__all__ = ["CHUNK", "THREADS", "arrays_per_launch", "as_contiguous", "segments_of", "tables"]

CHUNK = 4096  # elements, as in tables.cuh
SEGMENTS = 512  # the same
THREADS = 256


def arrays_per_launch(k: int) -> int:
    """How many arrays fit into one launch whose table has `k` columns of addresses."""
    return 3800 // (8 * k + 12) // 2 * 2


@functools.cache
def _table(k: int) -> np.dtype[Any]:
    n = arrays_per_launch(k)
    return np.dtype(
        [
            ("at", np.uintp, (k, n)),
            ("size", np.int64, n),
            ("first", np.int32, n),
            ("count", np.int32),
            ("chunks", np.int32),
        ],
        align=True,
    )


def segments_of(size: int) -> int:
    """The number of parts of an array in which a sum over it is computed."""
    return min(-(-size // CHUNK), SEGMENTS)


def tables(columns: Sequence[Sequence[Any]], segmented: bool = False) -> Iterator[tuple[Any, int]]:
    """The tables for `columns` of arrays, each with its number of chunks, or of segments.

    All columns but the first may have None in place of an array, which is a null address.
    """
    k, n = len(columns), arrays_per_launch(len(columns))
    for begin in range(0, len(columns[0]), n):
        part = [column[begin : begin + n] for column in columns]
        table = np.zeros((), _table(k))
        sizes = [a.size for a in part[0]]
        ends = np.cumsum([segments_of(n) if segmented else -(-n // CHUNK) for n in sizes])
        for row, column in zip(table["at"], part, strict=True):
            row[: len(sizes)] = [0 if a is None else pointer(a) for a in column]
        table["size"][: len(sizes)] = sizes
        table["first"][1 : len(sizes)] = ends[:-1]
        table["count"], table["chunks"] = len(sizes), ends[-1]
        if ends[-1]:
            yield table[()], int(ends[-1])


def as_contiguous(a: Any) -> Any:
    """The array in C order: itself, or a copy."""
    return a if a.flags.c_contiguous else READINGS[type(a)].lib.ascontiguousarray(a)
