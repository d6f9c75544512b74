"""The memory in which CUDA graphs read and update Variables."""

from __future__ import annotations

import sys
import weakref
from collections.abc import Iterable

from gpugrad.core.devices import copy_array
from gpugrad.core.tensor import ALONE
from gpugrad.core.variable import Variable
from gpugrad.kernels.runtime.graphs import allocate_like


class _Turn:
    """Who took the last turn to write to memories, and how often one has moved."""

    writer: object = None
    moves = 0


class VariableMemory:
    """The memory of a Variable, at one address as long as graphs read it there.

    As long as nothing else sees the Variable's own array, this is that array, and nothing is
    copied. Once a Tensor read from the Variable, or another Variable assigned from it, shares the
    array, they keep it: graphs are captured again, once, and from then on the Variable gets a copy
    of their result.

    Attributes:
        own: the array at that address.
        moved: whether a graph writes to it.
        version: a new number for each array.
        loads: how often `own` has received a value that no graph computed.
        writer: whoever wrote to it last, see `take_turn`.
    """

    def __init__(self, variable: Variable) -> None:
        self.variable, self.moved, self.version = variable, False, 0
        self.loads = 0
        self.writer: object = None
        self._is_separate = False  # whether others have kept an array
        self._published = None  # the Variable's array, if it is not `own` but equal to it
        self._room = None  # memory for the Variable's next value, if it is separate
        self.own = variable._data
        if not self.own.flags.c_contiguous or self.own.base is not None:
            self._separate()
            self._is_separate = False  # others see the array that was left, not this one

    def load(self) -> bool:
        """Put the Variable's value there; return whether the Variable holds another array."""
        data = self.variable._data
        if data is self.own and not (
            self.moved and sys.getrefcount(self.own) > ALONE + 2  # `data` and the Variable
        ):
            return False
        if data is self.own or data.shape != self.own.shape:
            self._separate()
        elif data is not self._published:  # it was assigned to
            if sys.getrefcount(self.own) > ALONE:  # another Variable may own it now
                self._separate()
            else:
                self.own[...] = data
                self._published = data
                self.loads += 1
        if self.moved and self._is_separate and self._room is None:
            (self._room,) = allocate_like([self.own])
        return True

    def invalidate(self) -> None:
        """Expect a graph to write to `own`, which then differs from the Variable's array."""
        self._published = None

    def _separate(self) -> None:
        """Allocate new memory that nothing else sees."""
        self._published = self.variable._data
        self.own, self._room = copy_array(self._published), None
        self._is_separate = True
        self.version += 1
        self.loads += 1
        _Turn.moves += 1

    def publish(self) -> None:
        """Give the Variable the value that a graph has computed."""
        self._published, self._room = self._room, None
        if self._published is not None:
            self._published[...] = self.own
        self.variable._data = self.own if self._published is None else self._published


def moves_so_far() -> int:
    """How often a Variable's memory has moved to another address."""
    return _Turn.moves


_memories: weakref.WeakValueDictionary[int, VariableMemory] = weakref.WeakValueDictionary()


def memory_of(variable: Variable) -> VariableMemory:
    """The one VariableMemory of a Variable, which all graphs share."""
    memory = _memories.get(variable._id)
    if memory is None:
        memory = _memories[variable._id] = VariableMemory(variable)
    return memory


def take_turn(writer: object, memories: Iterable[VariableMemory]) -> bool:
    """Note that graphs of `writer` write to memories; return whether others wrote to one before.

    It takes no time as long as the same writer comes again.
    """
    if _Turn.writer is writer:
        return False
    _Turn.writer, others = writer, False
    for memory in memories:
        others |= memory.writer is not writer
        memory.writer = writer
    return others
