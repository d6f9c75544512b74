"""A loop in C as one step of another loop: a function of arrays."""

from __future__ import annotations

import ctypes
import functools
from typing import Any

import numpy as np

from gpugrad.function.cpu.c_loop import CLoop
from gpugrad.kernels.cpu import step_table
from gpugrad.kernels.cpu.moves import Function


class NestedLoop:
    """A loop that another one runs n times at each of its iterations; see step_table.cpp.

    It has its memory for itself, so that two threads cannot run it at once: the second one leaves
    its step to Python.

    Args:
        loop: the loop; no step of it is left to Python.
        n: how often it runs.
        back: whether from the end of the stacks to their start.

    Attributes:
        function: gets the first carry, stacks and what stays the same, and writes the results.
    """

    def __init__(self, loop: CLoop, n: int, back: bool) -> None:
        body, outside, n_inputs = loop.body, loop.outside, len(loop.program.inputs)
        first, sign = (n - 1, -1) if back else (0, 1)
        outs = outside[n_inputs:]
        turns = [np.empty((2, *v.shape), v.dtype) for v in outs[: body.n_carry]]
        blanks = [np.empty(v.shape, v.dtype) for v in outside]
        slots = loop.slots(blanks)
        places: list[int] = []
        for slot, thing in loop.fixed:
            if isinstance(thing, np.ndarray) or thing[0] >= len(outside):
                continue
            home, _, _, offset, _ = thing
            is_out, nbytes = home >= n_inputs, outside[home].nbytes
            at = home - n_inputs * is_out
            if at < body.n_carry:
                places += [slot, -1 - at, offset + nbytes * is_out]
            else:
                moves = is_out or at < body.n_carry + body.n_slices
                places += [slot, home, offset + first * nbytes * moves]
        moves_ = [number for move in loop.moves(sign) for number in move]
        table = loop.steps.table
        arrays = [
            np.array(moves_, np.int64),
            np.zeros(len(moves_), np.int64),
            np.array(places, np.int64),
            np.array([turn.ctypes.data for turn in turns], np.int64),
            np.array([v.nbytes for v in outs[: body.n_carry]], np.int64),
        ]
        at_moves, at_moving, at_places, at_turns, at_sizes = (a.ctypes.data for a in arrays)
        words = np.array(
            [
                *(0, table.ctypes.data, len(table), slots.address, slots.scratch),
                *(n, at_moves, len(moves_) // 3, at_moving, at_places, len(places) // 3),
                *(at_turns, at_sizes, body.n_carry, n_inputs),
            ],
            np.int64,
        )
        self._memory = loop, turns, blanks, slots, arrays, words  # C has their addresses
        self.function = Function(_address(), (words.ctypes.data,))


@functools.cache
def _address() -> int:
    library: Any = step_table.library()
    return ctypes.cast(library.loaded.gpugrad_nested, ctypes.c_void_p).value or 0
