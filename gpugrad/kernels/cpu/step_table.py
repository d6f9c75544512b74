"""Several steps of a program in one call: kernels, products, copies...; see step_table.cpp."""

from __future__ import annotations

import ctypes
import functools
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from gpugrad.kernels.cpu import pool, products

KERNEL, PRODUCT, COPY, CHECK, CALL, FUNCTION, LEAVE = range(7)
"""Kinds of steps."""

_SLOT = 32  # bytes of a struct Array


@functools.cache
def library() -> Any:
    """The functions of step_table.cpp; None without a compiler."""
    in_c = pool.Kernels(
        "step_table",
        flags=("-O2",),  # half the time to compile; checks for NaN alone gain by more
        set_calls="al",
        fill="aola > l",
        calls="all aa > l",
        call="al aal ola > l",
        bound_loop="aoll > l",
    )
    if not in_c:
        return None
    blas = products.library()
    multiply = ctypes.cast(blas.multiply, ctypes.c_void_p).value if blas else None
    in_c.set_calls(multiply, tuple.__basicsize__)
    return in_c


def multiplies() -> bool:
    """Whether products can be steps."""
    return library() is not None and products.library() is not None


class Slots:
    """The arrays of one replay, and memory for partial sums.

    Args:
        fixed: the arrays that stay the same.
        others: the number of slots for arrays that each call passes.
        scratch: bytes of partial sums.
    """

    def __init__(self, fixed: Sequence[Any], others: int, scratch: int) -> None:
        self.arrays = tuple(fixed)
        self._memory = np.zeros((len(fixed) + others) * _SLOT, np.uint8)
        self._scratch = np.empty(scratch, np.uint8)
        self.address, self.scratch = self._memory.ctypes.data, self._scratch.ctypes.data
        library().fill(self.address, self.arrays, len(fixed), None)


InPython = Callable[[list[Any]], None]
"""Computes a step from all of its arrays, and writes to its results among them."""


class Steps:
    """Steps that one call executes.

    Args:
        table: the steps as numbers: see step_table.cpp.
        sizes: for each array that a call passes, its itemsize if it must be contiguous, else 0.
        in_python: by their places in the table, how Python computes the steps that are left to it,
            and what it does about checks that fail. Other steps are products.

    Attributes:
        table: the same as an array.
    """

    def __init__(
        self, table: Sequence[int], sizes: Sequence[int], in_python: Mapping[int, InPython]
    ) -> None:
        calls = library()
        self._in_python = in_python
        self.table, self._sizes = np.array(table, np.int64), np.array(sizes, np.int64)
        self._fixed = self.table.ctypes.data, len(self.table)
        self._others = len(sizes), self._sizes.ctypes.data
        self._call, self._rest = calls.call, calls.calls
        self._left: dict[int, tuple[InPython, list[int]]] = {}

    def __call__(self, slots: Slots, *arrays: Any) -> None:
        """Run the steps on the arrays of the slots, and on `arrays`."""
        first = len(slots.arrays)
        at = self._call(*self._fixed, slots.address, slots.scratch, first, arrays, *self._others)
        if at != -1:
            self._finish(at, slots, arrays)

    def left_at(self, at: int) -> tuple[InPython, list[int]]:
        """How Python computes the step at a place of the table, and its slots."""
        if at not in self._left:
            kind, count = self.table[at : at + 2].tolist()
            words = self.table[at + 2 : at + 2 + count].tolist()
            places = words[2 + words[1] :] if kind == FUNCTION else words[1:]
            self._left[at] = self._in_python.get(at, _multiply), places
        return self._left[at]

    def _finish(self, at: int, slots: Slots, arrays: tuple[Any, ...]) -> None:
        while at < -1:  # an array must be contiguous
            k = -2 - at
            arrays = (*arrays[:k], np.ascontiguousarray(arrays[k]), *arrays[k + 1 :])
            first = len(slots.arrays)
            at = self._call(
                *self._fixed, slots.address, slots.scratch, first, arrays, *self._others
            )
        every = (*slots.arrays, *arrays)
        address, end = self._fixed
        while at >= 0:
            run, places = self.left_at(at)
            run([every[place] for place in places])
            after = at + int(self.table[at + 1]) + 2
            at = self._rest(address, after, end, slots.address, slots.scratch)


def _multiply(arrays: list[Any]) -> None:
    x1, x2, out = arrays
    np.matmul(x1, x2, out=out)
