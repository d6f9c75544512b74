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
        sizes = tuple([a.size for a in part[0]])
        without_addresses, chunks = _table_of_sizes(k, sizes, segmented)
        if chunks:
            table = without_addresses.copy()
            table["at"][:, : len(sizes)] = [
                [0 if a is None else pointer(a) for a in column] for column in part
            ]
            yield table[()], chunks


@functools.lru_cache(256)  # an optimizer has the same arrays in each step
def _table_of_sizes(k: int, sizes: tuple[int, ...], segmented: bool) -> tuple[Any, int]:
    """A table of arrays of these sizes, and the number of its chunks or segments."""
    table = np.zeros((), _table(k))
    ends = np.cumsum([segments_of(n) if segmented else -(-n // CHUNK) for n in sizes])
    table["size"][: len(sizes)] = sizes
    table["first"][1 : len(sizes)] = ends[:-1]
    table["count"], table["chunks"] = len(sizes), ends[-1]
    return table, int(ends[-1])


def as_contiguous(a: Any) -> Any:
    """The array in C order: itself, or a copy."""
    return a if a.flags.c_contiguous else READINGS[type(a)].lib.ascontiguousarray(a)
