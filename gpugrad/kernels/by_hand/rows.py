"""Which threads read the rows of an array, and arrays as such rows: for the kernels over rows."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from gpugrad.core.backend import BFLOAT16, Reading

__all__ = ["FLOATS", "Rows", "alike", "as_rows", "most_held", "plan", "power_of_two"]

FLOATS = tuple(np.dtype(d) for d in (np.float32, np.float64, np.float16, BFLOAT16))
"""The floating-point dtypes of kernels that are written by hand."""

_LONGEST = 2**30
_WARPS = 4  # rows of a block, where a warp has one
_WARPS_PACKS = 8  # of 16 bytes, that a thread of a warp reads at most
_TEAM = 512  # threads of a block at most: TEAM of rows.cuh


def alike(*arrays: Any) -> bool:
    """Whether all are arrays of one of these dtypes (a formula may give numbers instead)."""
    dtype = getattr(arrays[0], "dtype", None)
    return dtype in FLOATS and all(getattr(a, "dtype", None) == dtype for a in arrays)


def plan(rows: int, n: int, dtype: Any, most: int) -> tuple[int, int, tuple[int, int]]:
    """How rows of `n` elements are read: (packs in a thread's registers, blocks, threads).

    Rows of up to 4 KB get a warp each, which needs no barrier; longer ones a block, in which a
    thread has 4 packs of 16 bytes, and more where the block is as large as it may be.
    The first number is 0 where a row has more than 512 * `most` packs.
    """
    width = 16 // dtype.itemsize
    packs = -(-n // width) + (n % width != 0)  # rows that are not whole packs begin within one
    if packs <= 32 * min(_WARPS_PACKS, most):
        held = power_of_two(-(-packs // 32))
        return held, -(-rows // _WARPS), (32, _WARPS)
    threads = min(power_of_two(-(-packs // min(4, most))), _TEAM)
    held = power_of_two(-(-packs // threads))
    return held if held <= most_held(dtype, most) else 0, rows, (threads, 1)


def most_held(dtype: Any, most: int) -> int:
    """How many packs a thread can hold: float64 needs registers for its functions."""
    return min(most, 8) if np.dtype(dtype) == np.float64 else most


def power_of_two(n: int) -> int:
    """The smallest power of 2 that is not below n."""
    return 1 << max(n - 1, 0).bit_length()


class Rows:
    """Arrays of one shape as contiguous rows along one axis, and results as that shape again."""

    def __init__(self, xp: Reading, shape: Sequence[int], axis: int) -> None:
        self.lib, self.axis = xp.lib, axis % len(shape)
        self.n = shape[self.axis]
        self.moved = (*shape[: self.axis], *shape[self.axis + 1 :])
        self.rows = math.prod(self.moved)

    def of(self, x: Any) -> Any:
        """The array with the axis moved to the end: itself, if it is contiguous there."""
        return self.lib.ascontiguousarray(self.lib.moveaxis(x, self.axis, -1))

    def empty(self, dtype: Any) -> Any:
        """Rows for a result."""
        return self.lib.empty((*self.moved, self.n), dtype=dtype)

    def back(self, y: Any) -> Any:
        """A result with its axis where it was."""
        return self.lib.moveaxis(y, -1, self.axis)


def as_rows(xp: Reading, axis: Any, *arrays: Any) -> Rows | None:
    """The arrays' rows along an axis; None if that is no axis, or there is nothing to do."""
    shape = arrays[0].shape if alike(*arrays) else ()
    if not shape or not isinstance(axis, int) or not -len(shape) <= axis < len(shape):
        return None
    if any(a.shape != shape for a in arrays):
        return None
    made = Rows(xp, shape, axis)
    return made if made.rows and 0 < made.n <= _LONGEST else None
