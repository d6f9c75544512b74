"""Row kernels: how threads share a row, and how an array becomes contiguous rows."""

from __future__ import annotations

import functools
import itertools
import math
from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np

from gpugrad.core.backend import BFLOAT16, Reading
from gpugrad.kernels.runtime.launch import type_name

FLOATS = tuple(np.dtype(d) for d in (np.float32, np.float64, np.float16, BFLOAT16))
"""The floating-point dtypes of the hand-written kernels."""

BOOLS = ("false", "true")

_FLOATS = frozenset(FLOATS)
_LONGEST = 2**30
_WARPS = 4  # rows per block where each warp has one row
_WARPS_PACKS = 8  # most packs of 16 bytes that a thread of a warp reads
_TEAM = 512  # most threads per block: TEAM of rows.cuh


def names(form: str, *choices: Iterable[Any]) -> list[str]:
    """The names of a kernel with each combination of template arguments, numbers or dtypes.

    >>> names("clip<{}, {}>", [np.dtype("f4")], [1, 2])
    ['clip<float, 1>', 'clip<float, 2>']
    """
    texts = [[type_name(c) if isinstance(c, np.dtype) else c for c in some] for some in choices]
    return [form.format(*some) for some in itertools.product(*texts)]


def contiguous(xp: Reading, *arrays: Any) -> list[Any]:
    """The arrays in C order; None stays None."""
    return [a if a is None else xp.lib.ascontiguousarray(a) for a in arrays]


def share_dtype(*arrays: Any) -> bool:
    """Whether all are arrays of one dtype of FLOATS (a formula may pass numbers instead)."""
    dtype = getattr(arrays[0], "dtype", None)
    return dtype in _FLOATS and all(getattr(a, "dtype", None) == dtype for a in arrays[1:])


@functools.lru_cache(1024)
def plan(rows: int, n: int, dtype: Any, most: int) -> tuple[int, int, tuple[int, int]]:
    """How rows of `n` elements are read: (packs in a thread's registers, blocks, threads).

    A row of up to 4 KB gets a warp, which needs no barrier. A longer row gets a block, in which a
    thread has 4 packs of 16 bytes, or more once the block has its maximal size. The first number
    is 0 if a row has more than 512 * `most` packs.
    """
    width = 16 // dtype.itemsize
    packs = -(-n // width) + (n % width != 0)  # a row that is not whole packs may start within one
    if packs <= 32 * min(_WARPS_PACKS, most):
        held = power_of_two(-(-packs // 32))
        return held, -(-rows // _WARPS), (32, _WARPS)
    threads = min(power_of_two(-(-packs // min(4, most))), _TEAM)
    held = power_of_two(-(-packs // threads))
    return held if held <= max_held(dtype, most) else 0, rows, (threads, 1)


def max_held(dtype: Any, most: int) -> int:
    """How many packs a thread can hold: functions of float64 need registers of their own."""
    return min(most, 8) if np.dtype(dtype) == np.float64 else most


def power_of_two(n: int) -> int:
    """The smallest power of 2 that is at least `n`."""
    return 1 << max(n - 1, 0).bit_length()


class Rows:
    """Turns arrays of one shape into contiguous rows along an axis, and results back."""

    def __init__(self, xp: Reading, shape: Sequence[int], axis: int) -> None:
        self.lib, self.axis = xp.lib, axis % len(shape)
        self.n = shape[self.axis]
        self.outer_shape = (*shape[: self.axis], *shape[self.axis + 1 :])
        self.rows = math.prod(self.outer_shape)

    def to_rows(self, x: Any) -> Any:
        """The array with the axis moved to the end, without a copy if that is contiguous."""
        if self.axis != x.ndim - 1:
            x = self.lib.moveaxis(x, self.axis, -1)
        return x if x.flags.c_contiguous else self.lib.ascontiguousarray(x)

    def empty(self, dtype: Any) -> Any:
        """Uninitialised rows for a result."""
        return self.lib.ndarray((*self.outer_shape, self.n), dtype)

    def from_rows(self, y: Any) -> Any:
        """A result with its axis moved back."""
        return self.lib.moveaxis(y, -1, self.axis)


def as_rows(xp: Reading, axis: Any, *arrays: Any) -> Rows | None:
    """The arrays' rows along an axis; None if the axis is invalid or the arrays are empty."""
    shape = arrays[0].shape if share_dtype(*arrays) else ()
    if not shape or not isinstance(axis, int) or not -len(shape) <= axis < len(shape):
        return None
    if any(a.shape != shape for a in arrays):
        return None
    rows = Rows(xp, shape, axis)
    return rows if rows.rows and 0 < rows.n <= _LONGEST else None
