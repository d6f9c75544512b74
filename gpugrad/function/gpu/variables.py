"""Memory in which CUDA graphs find the values of Variables, and move them."""

from __future__ import annotations

import sys
import weakref

from gpugrad.core.backend import ALONE
from gpugrad.core.devices import copied
from gpugrad.core.variable import Variable
from gpugrad.kernels.runtime.graphs import allocate_like

__all__ = ["Slot", "slot_of"]


class Slot:
    """The memory of a Variable in graphs, which read it at one address for as long as they live.

    It is the Variable's own array, and nothing is copied, for as long as nothing else sees that.
    When something does, a Tensor that was read from the Variable or another Variable that it was
    assigned to, the array is left to them: graphs have to be made again, once, and from then on
    the Variable gets a copy of what they have made of it.

    Attributes:
        own: the array at that address.
        moved: whether a graph writes to it.
        version: another one for each array.
    """

    def __init__(self, variable: Variable) -> None:
        self.variable, self.moved, self.version = variable, False, 0
        self._apart = False  # whether an array was left to others
        self._shown = None  # what the Variable has, if that is not `own` but equals it
        self._room = None  # memory for the next value that the Variable gets, if it is apart
        self.own = variable._data
        if not self.own.flags.c_contiguous or self.own.base is not None:
            self._leave()

    def fill(self) -> None:
        """Put the Variable's value there."""
        data = self.variable._data
        if data is self.own:
            if self.moved and sys.getrefcount(data) > ALONE + 2:  # `data` and the Variable
                self._leave()
        elif data.shape != self.own.shape:
            self._leave()
        elif data is not self._shown:  # it was assigned to
            if sys.getrefcount(self.own) > ALONE:  # another Variable may have got it
                self._leave()
            else:
                self.own[...] = data
                self._shown = data
        if self.moved and self._apart and self._room is None:
            (self._room,) = allocate_like([self.own])

    def change(self) -> None:
        """Expect a graph to write there: what the Variable has equals that no more."""
        self._shown = None

    def _leave(self) -> None:
        """Take memory that nothing else sees."""
        self._shown = self.variable._data
        self.own, self._room = copied(self._shown), None
        self._apart = True
        self.version += 1

    def show(self) -> None:
        """Give the Variable what a graph has made of its value."""
        self._shown, self._room = self._room, None
        if self._shown is not None:
            self._shown[...] = self.own
        self.variable._data = self.own if self._shown is None else self._shown


_slots: weakref.WeakValueDictionary[int, Slot] = weakref.WeakValueDictionary()


def slot_of(variable: Variable) -> Slot:
    """The one Slot of a Variable, which all graphs share."""
    slot = _slots.get(variable._id)
    if slot is None:
        slot = _slots[variable._id] = Slot(variable)
    return slot
