"""What is told of ops and Variables in a thread: tapes, accumulators, traces."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from gpugrad.core.tensor import recorders, threads
from gpugrad.core.variable import Variable

__all__ = ["Listener"]


class Listener:
    """One of `threads.stack`, outermost first; what it does not redefine it does not care for.

    Attributes:
        known: numbers of the Tensors by which something is differentiated; an op that reads one is
            appended to `log`, or given to `take` with its results.
        dead: numbers of results of ops without a gradient, of which `bury` is told.
        log: a list of entries; None for one that takes them.
        passive: whether it records nothing, so that gradients need not be seen by it.
    """

    known: Any = frozenset()
    dead: Any = frozenset()
    log: list[Any] | None = None
    passive = True
    _stack: list[Any] | None = None  # the thread's, while it listens

    def listen(self, place: int | None = None) -> None:
        """Be told from now on what happens in this thread; innermost, or at a place."""
        self._stack = threads.stack
        self._stack.insert(len(self._stack) if place is None else place, self)
        recorders.append(self)

    def leave(self) -> None:
        """Be told no more."""
        if self._stack is not None:
            self._stack.remove(self)
            recorders.remove(self)
            self._stack = None

    def touched(self, variable: Variable) -> None:
        """A Variable was read."""

    def assigned(self, variable: Variable) -> None:
        """A Variable gets another value."""

    def barrier(self, name: str, ids: Sequence[int], out: int) -> None:
        """An op without a gradient has read something that is known or dead."""
