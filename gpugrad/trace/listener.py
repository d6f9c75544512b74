"""Listener: the base of tapes, accumulators and traces, which follow a task's ops."""

from __future__ import annotations

import functools
import weakref
from collections.abc import Callable, Sequence
from threading import get_ident
from typing import Any, Self

from gpugrad.core.host_memory import keep_freed_memory, untouched
from gpugrad.core.listening import Stack, current_stack, recorders, set_stack, threads
from gpugrad.core.tensor import Tensor
from gpugrad.core.variable import Variable
from gpugrad.core.views import View


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
    """An entry of `threads.stack`; a subclass overrides the events it needs.

    Attributes:
        known: serial numbers of the Tensors to differentiate with respect to. An op that reads one
            is appended to `log`, or passed to `take` with its results.
        dead: serial numbers of results of ops without a gradient; `bury` is called with them.
        log: a list of entries; None if `take` handles them.
        passive: whether it records nothing, so a backward pass can ignore it.
        _strict: whether ``float(x)``, as `math` calls it, raises for a known Tensor.
        _views: weak references to the watched Tensors to whose memory others write, and the serial
            numbers of their elements then.
    """

    known: Any = frozenset()
    dead: Any = frozenset()
    log: list[Any] | None = None
    passive = True
    _strict = False
    _views: Any = ()
    _stack: Stack | None = None  # the one that it has opened, while it listens
    _below: Any = None  # the one before, if somebody was listening
    _longer: Any = ()  # weak references to others that it is in, opened inside its block
    _block: Any = None  # a weak reference to what its `with` statement holds

    @property
    def _thread(self) -> int:
        """The thread that it follows; 0 for none."""
        return 0 if self._stack is None else self._stack.thread

    def listen(self, place: int | None = None) -> Self:
        """Follow this thread's ops from now on, as the innermost listener or at a position."""
        if untouched:
            keep_freed_memory()
        try:
            below = current_stack()
            self._stack = stack = Stack()
            stack.thread = get_ident()
            if below and below.thread == stack.thread:
                leave_ended_blocks()
                self._put_on(stack)
            if self._block is not None and self._block() is None:
                self._block = None  # it was looked at, but not by a `with` statement
            stack.insert(len(stack) if place is None else place, self)
            recorders.append(self)
            set_stack(stack)
            return self
        except BaseException:  # Ctrl-C: no `with` block will call `leave`
            self._forget()
            raise

    def leave(self) -> None:
        """Stop listening."""
        try:
            stack = self._stack
            if stack is not None:
                if self._below is not None and current_stack() is stack:
                    set_stack(self._below)  # which frees `stack`, unless a task has copied it
                stack.remove(self)
                recorders.remove(self)
                self._stack = self._below = None
                if self._longer:
                    self._forget()
        except BaseException:  # Ctrl-C in the middle of it
            self._forget()
            raise

    def _forget(self) -> None:
        stack = self._stack
        if self._below is not None and current_stack() is stack:
            set_stack(self._below)
        longer = [weak() for weak in self._longer]
        for registry in (stack, *longer, recorders):
            if registry and self in registry:
                registry.remove(self)
        self._stack, self._below, self._longer = None, None, ()

    def _put_on(self, stack: Stack) -> None:
        """Fill a new stack with the listeners that follow this thread already."""
        self._below = threads.stack
        stack.extend(self._below)
        for other in stack:
            if other._stack is not None:
                other._longer = other._longer or []
                other._longer.append(weakref.ref(stack, other._longer.remove))

    def touched(self, variable: Variable) -> None:
        """Called when a Variable is read."""

    def _note_values(self, tensor: Tensor) -> None:
        """Called when Python reads the values of a Tensor."""

    def _made(self, variable: Variable) -> None:
        """Follow a new Variable."""
        self.assigned(variable)

    def assigned(self, variable: Variable) -> None:
        """Called before a Variable gets another value."""

    def refreshed(self, view: View) -> None:
        """Called when a view has run its op again, after a write to its root."""

    def barrier(self, name: str, ids: Sequence[int], out: int) -> None:
        """Called when an op without a gradient has read a known or dead Tensor."""
