"""Listener: the base of tapes, accumulators and traces, which follow a thread's ops."""

from __future__ import annotations

import functools
import weakref
from collections.abc import Callable, Sequence
from typing import Any, Self

from gpugrad.core.host_memory import keep_freed_memory, untouched
from gpugrad.core.tensor import recorders, threads
from gpugrad.core.variable import Variable
from gpugrad.core.views import View

__all__ = ["EndOfBlock", "Listener", "leave_ended_blocks"]


def leave_ended_blocks() -> None:
    """Make the listeners of this thread leave whose ``with`` block Ctrl-C has ended."""
    for listener in list(threads.stack):
        if listener._block is not None and listener._block() is None:
            listener.leave()


class EndOfBlock:
    """The `__exit__` of a listener, which notices a ``with`` block that has ended without it.

    Python looks for Ctrl-C when `__exit__` starts, before its first line. The ``with`` statement
    holds the bound `__exit__` for as long as the block lasts, so once that is freed, the block has
    ended; the next listener of the thread then makes this one leave.
    """

    def __init__(self, leave: Callable[..., None]) -> None:
        self._leave = leave

    def __get__(self, listener: Any, kind: Any = None) -> Callable[..., None]:
        if listener is None:
            return self._leave
        bound = functools.partial(self._leave, listener)
        listener._block = weakref.ref(bound)
        return bound


class Listener:
    """An entry of `threads.stack`, the outermost first; a subclass overrides the events it needs.

    Attributes:
        known: serial numbers of the Tensors to differentiate with respect to. An op that reads one
            is appended to `log`, or passed to `take` with its results.
        dead: serial numbers of results of ops without a gradient; `bury` is called with them.
        log: a list of entries; None if `take` handles them.
        passive: whether it records nothing, so a backward pass can ignore it.
    """

    known: Any = frozenset()
    dead: Any = frozenset()
    log: list[Any] | None = None
    passive = True
    _stack: list[Any] | None = None  # of the thread, while it listens
    _block: Any = None  # a weak reference to what its `with` statement holds

    def listen(self, place: int | None = None) -> Self:
        """Follow this thread's ops from now on, as the innermost listener or at a position."""
        if untouched:
            keep_freed_memory()
        try:
            self._stack = stack = threads.stack
            if stack:
                leave_ended_blocks()
            if self._block is not None and self._block() is None:
                self._block = None  # it was looked at, but not by a `with` statement
            recorders.append(self)
            stack.insert(len(stack) if place is None else place, self)
            return self
        except BaseException:  # Ctrl-C: no `with` block will call `leave`
            self._forget()
            raise

    def leave(self) -> None:
        """Stop listening."""
        try:
            if self._stack is not None:
                self._stack.remove(self)
                recorders.remove(self)
                self._stack = None
        except BaseException:  # Ctrl-C in the middle of it
            self._forget()
            raise

    def _forget(self) -> None:
        """Leave whatever it is still in."""
        for registry in (self._stack or [], recorders):
            if self in registry:
                registry.remove(self)
        self._stack = None

    def touched(self, variable: Variable) -> None:
        """Called when a Variable is read."""

    def assigned(self, variable: Variable) -> None:
        """Called before a Variable gets another value."""

    def refreshed(self, view: View) -> None:
        """Called when a view has run its op again, after a write to its root."""

    def barrier(self, name: str, ids: Sequence[int], out: int) -> None:
        """Called when an op without a gradient has read a known or dead Tensor."""
