"""The recorders that follow the running code: those of its asyncio task and thread.

A stack of recorders is never pushed to. A ``with`` statement sets the context variable to a longer
one, so tasks that were started before do not see the recorder, and those that are started inside
do. A recorder that leaves is removed from every stack that it is in. A stack belongs to a thread,
too: one that runs in a copy of the context, as by `asyncio.to_thread`, starts with an empty stack.
"""

from __future__ import annotations

import functools
from collections.abc import Iterable
from contextvars import ContextVar
from threading import get_ident
from typing import Any

from gpugrad.core.forking import drop_other_entries, in_child

recorders: list[Any] = []
"""Every tape and accumulator that records, in all threads. Ops check whether there is one."""

graphs: list[Any] = []
"""Every active Graph, in all threads: while there is one, ops number everything that they read."""

in_child(functools.partial(drop_other_entries, recorders))
in_child(functools.partial(drop_other_entries, graphs))


class Stack(list[Any]):
    """Recorders, the outermost first, and the thread that they follow."""

    __slots__ = ("__weakref__", "thread")

    thread: int


nobody = Stack()
"""The empty stack of a context that has none, and of all threads but its own. Never changed."""

nobody.thread = 0
stack_variable: ContextVar[Stack] = ContextVar("gpugrad recorders", default=nobody)

current_stack, set_stack = stack_variable.get, stack_variable.set
"""The stack of the context. It may be another thread's: hot code compares `thread` itself."""


class _Threads:
    """The stack of the running task and thread."""

    @property
    def stack(self) -> Stack:
        """The recorders, the outermost first; to be replaced, not changed."""
        stack = current_stack()
        return stack if stack.thread == get_ident() else nobody

    @stack.setter
    def stack(self, entries: Iterable[Any]) -> None:
        if type(entries) is not Stack:
            entries = Stack(entries)
            entries.thread = get_ident()
        set_stack(entries)


threads = _Threads()
