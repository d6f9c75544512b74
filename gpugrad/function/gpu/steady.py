"""The shortest replay: one graph, and nothing but the arguments differs from the last call."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from operator import attrgetter
from typing import Any

import numpy as np

from gpugrad.core.replaceable import still_hold
from gpugrad.core.tensor import ALONE
from gpugrad.function.gpu.variables import VariableMemory, moves_so_far
from gpugrad.kernels.runtime.graphs import CudaGraph, Upload, order_after_graphs

_own = attrgetter("own")


class Steady:
    """Replays of a program that is a single captured graph, whose results are all copied.

    Args:
        memories: those that the graph reads or writes.
        launched: the effects in the graph.
        sent: positions of the arguments that are copied to where the graph reads them.
        kinds: shape and dtype of each copied result.
        outputs: for each result of the program, its position among the copied ones.
        put: copies numbers and arguments; it has done so before.
        graph: the graph.
        new: the function that makes an array.
    """

    def __init__(
        self,
        memories: Sequence[VariableMemory],
        launched: Sequence[Any],
        sent: Sequence[int],
        kinds: Sequence[tuple[Any, ...]],
        outputs: Sequence[int],
        put: Upload | None,
        graph: CudaGraph,
        new: Any,
    ) -> None:
        self._memories = sorted(memories, key=lambda memory: not memory.moved)
        self._variables = [memory.variable for memory in self._memories]
        self._moves = moves_so_far()
        # seen by the Variable, its memory, and two lists
        self._counts = [ALONE + 3] * sum(memory.moved for memory in memories)
        self._launched = [(one, one.version) for one in launched]
        self._sent, self._kinds, self._outputs = sent, kinds, outputs
        self._put, self._graph, self._new = put, graph, new

    @property
    def holds(self) -> bool:
        """Whether Variables have the arrays that the graph reads, and nothing else sees them."""
        arrays = list(map(_own, self._memories))
        return (
            self._moves == moves_so_far()
            and still_hold(self._variables, arrays)
            and list(map(sys.getrefcount, arrays[: len(self._counts)])) == self._counts
        )

    def run(self, arrays: list[Any]) -> list[Any] | None:
        """The results; None if effects must be captured anew, and nothing has happened."""
        order_after_graphs()
        new, counted = self._new, 0
        room = [new(*kind) for kind in self._kinds]
        try:
            numbers: list[Any] = []
            for launched, version in self._launched:
                numbers += launched.numbers()
                counted += 1
                if launched.version != version:
                    self._uncount(counted)
                    return None
            if room:
                numbers.append(np.array([a.data.ptr for a in room], np.uint64))
            if self._put is not None:
                self._put(numbers, [arrays[k] for k in self._sent])
            self._graph()
        except BaseException:
            self._uncount(counted)
            raise
        arrays.clear()
        return [room[k] for k in self._outputs]

    def _uncount(self, n: int) -> None:
        for launched, _ in reversed(self._launched[:n]):
            launched.uncount()
