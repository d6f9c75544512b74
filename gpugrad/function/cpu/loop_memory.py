"""The memory of a loop in C, which one run uses at a time: slots, buffers, places of the carry.

All addresses within it stay. C fills in those of the arrays from outside when a run begins.
"""

from __future__ import annotations

import ctypes
import functools
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from gpugrad.kernels.cpu import step_table
from gpugrad.kernels.cpu.moves import Function

_UNINTERRUPTED = 256  # iterations between two looks at signals


class LoopMemory:
    """Runs a loop n times, one run at a time.

    Args:
        loop: the loop, a `CLoop`, which runs itself here.
        n: how often it runs.
        back: whether from the end of the stacks to their start.

    Attributes:
        turns: the two places of each value of the carry.
    """

    def __init__(self, loop: Any, n: int, back: bool) -> None:
        body, outside, n_inputs = loop.body, loop.outside, len(loop.program.inputs)
        first, sign = (n - 1, -1) if back else (0, 1)
        carried = outside[n_inputs:][: body.n_carry]
        self.turns = [np.empty((2, *v.shape), v.dtype) for v in carried]
        self.slots = loop.slots([np.empty(v.shape, v.dtype) for v in outside])
        self._loop, self._n = loop, n
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
        moves = [number for move in loop.moves(sign) for number in move]
        turns = [turn.ctypes.data for turn in self.turns]
        sizes = [v.nbytes for v in carried]
        numbers = [moves, [0] * len(moves), places, turns, sizes]
        self._arrays = [np.array(some, np.int64) for some in numbers]
        at_moves, at_moving, at_places, at_turns, at_sizes = (a.ctypes.data for a in self._arrays)
        table, slots = loop.steps.table, self.slots
        self._words = np.array(
            [
                *(0, 0, 0, table.ctypes.data, len(table), slots.address, slots.scratch),
                *(n, at_moves, len(moves) // 3, at_moving, at_places, len(places) // 3),
                *(at_turns, at_sizes, body.n_carry, n_inputs),
            ],
            np.int64,
        )
        self._address, self._run = self._words.ctypes.data, step_table.library().bound_loop

    def run(
        self, arrays: tuple[Any, ...], moving: Callable[[], Mapping[int, Callable[[int], Any]]]
    ) -> None:
        """Run it.

        Args:
            arrays: the first carry, stacks, what stays the same, the last carry and the stacks of
                results; all are contiguous.
            moving: returns by slots that move their array in an iteration; called if a step is left
                to Python.
        """
        words, steps, every = self._words, self._loop.steps, self.slots.arrays
        words[1:3] = 0
        by_slot: Mapping[int, Callable[[int], Any]] | None = None
        for start in range(0, self._n, _UNINTERRUPTED):
            until = start + _UNINTERRUPTED
            while (at := self._run(self._address, arrays, len(arrays), until)) != -1:
                run, places = steps.left_at(at)
                by_slot, i = moving() if by_slot is None else by_slot, int(words[1])
                with np.errstate(all="ignore"):
                    run([by_slot[p](i) if p in by_slot else every[p] for p in places])

    @property
    def function(self) -> Function:
        """The run as a step of another loop, if Python computes no step of it."""
        return Function(_address("nested"), (self._address,), owners=(self,))


def choice(yes: Function, no: Function) -> Function:
    """One of two programs as a step of a loop, as its first array says."""
    return _of_parts("cond", yes, no)


def while_loop(test: Function, body: Function, n_carry: int, n_same: int, most: int) -> Function:
    """A loop while a test holds as a step of another loop: see step_table.cpp."""
    return _of_parts("while", test, body, numbers=(n_carry, n_same, most))


def while_gradient(loop: Function, slopes: Function, n_state: int) -> Function:
    """The gradient of such a loop, which runs it again, as a step of another loop."""
    return _of_parts("while_gradient", loop, slopes, numbers=(n_state,))


def _of_parts(name: str, *parts: Function, numbers: Sequence[int] = ()) -> Function:
    described = [number for part in parts for number in part.numbers]
    return Function(_address(name), (*described, *numbers), owners=parts)


@functools.cache
def _address(name: str) -> int:
    library: Any = step_table.library()
    function = getattr(library.loaded, f"gpugrad_{name}")
    return ctypes.cast(function, ctypes.c_void_p).value or 0
