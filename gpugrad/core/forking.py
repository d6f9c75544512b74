"""Locks and state that a forked process can go on with.

Only the thread that called `os.fork` exists in the child. A lock that another thread held would
stay locked there, so all locks of the library are created here, and the child gets them free. An
update of Variables or an import would stay half done there, so a fork waits until other threads
have finished those. Modules that keep lists of what threads have opened, such as tapes, register a
function with `in_child` that drops the entries of other threads.
"""

from __future__ import annotations

import concurrent.futures.thread  # noqa: F401  # see below
import contextlib
import functools
import importlib
import logging  # noqa: F401  # see below
import operator
import os
import sys
import threading
import time
import weakref
from collections.abc import Callable
from threading import get_ident
from typing import Any, TypeVar

T = TypeVar("T")

LONGEST_WAIT = 10.0
"""Seconds that a fork waits for each lock, and for imports: these may wait for this thread."""

_locks: weakref.WeakSet[Any] = weakref.WeakSet()
_awaited: list[tuple[int, Any]] = []
_before: list[Callable[[], None]] = []
_after: list[Callable[[], None]] = []
_forking = threading.RLock()  # one fork at a time
_held: list[Any] = []  # awaited locks, by the thread that forks


def new_lock() -> threading.Lock:
    """A lock that is free in a forked process."""
    lock = threading.Lock()
    _locks.add(lock)
    return lock


def new_rlock(*, awaited: int = 0) -> Any:
    """A reentrant lock that is free in a forked process, unless the thread that forks holds it.

    Args:
        awaited: if not 0, a fork waits until no other thread holds the lock. A thread that holds
            one of these locks may acquire only those with higher numbers. They are never freed.
            Make it while a module is imported, for which a fork waits, too.
    """
    lock = threading.RLock()
    if awaited:
        _awaited.append((awaited, lock))
    _locks.add(lock)
    return lock


class cached_property(functools.cached_property[T]):  # named as Python's
    """Python's without the lock of version 3.11: one library would wait for another's compiler."""

    def __init__(self, func: Callable[[Any], T]) -> None:
        super().__init__(func)
        if hasattr(self, "lock"):
            self.lock = contextlib.nullcontext()


def import_module(name: str) -> Any:
    """A module, imported now; a fork waits for that, as the child cannot finish the import."""
    with _importing:
        return importlib.import_module(name)


def before_fork(call: Callable[[], None]) -> None:
    """Call a function in the parent before each fork; forks of several threads take turns."""
    _before.append(call)


def in_child(call: Callable[[], None]) -> None:
    """Call a function in each forked process, when all locks are free."""
    _after.append(call)


_importing = new_rlock(awaited=5)
_WAITED_FOR = ("gpugrad", "numpy", "scipy")
_module_locks: dict[str, Any] = getattr(sys.modules["_frozen_importlib"], "_module_locks", {})
"""Python's own: weak references to the locks of the modules that are being imported, by name."""


def _others_import() -> bool:
    """Whether another thread imports a module that the library may need in the child.

    There, the module would never be complete, and its lock never free.
    """
    locks = [ref() for name, ref in list(_module_locks.items()) if name.startswith(_WAITED_FOR)]
    return any(getattr(lock, "owner", None) not in (None, get_ident()) for lock in locks)


def drop_other_threads(by_thread: dict[int, Any]) -> None:
    """Keep only the calling thread's entry of a dictionary."""
    for thread in list(by_thread):
        if thread != get_ident():
            del by_thread[thread]


def drop_other_entries(entries: list[Any]) -> None:
    """Keep only those entries of a list whose `_thread` is the calling one."""
    entries[:] = [entry for entry in entries if entry._thread == get_ident()]


def _prepare() -> None:
    _forking.acquire()
    deadline = time.monotonic() + LONGEST_WAIT
    while True:
        for _, lock in sorted(_awaited, key=operator.itemgetter(0)):
            if lock.acquire(timeout=LONGEST_WAIT):
                _held.append(lock)
        if not _others_import() or time.monotonic() > deadline:
            break
        _free()  # an import may need them
        time.sleep(0.001)
    for call in _before:
        call()


def _free() -> None:
    while _held:
        _held.pop().release()


def _release() -> None:
    _free()
    _forking.release()


def _go_on_in_child() -> None:
    for lock in list(_locks):
        if not (hasattr(lock, "_is_owned") and lock._is_owned()):
            lock._at_fork_reinit()
    for call in _after:
        call()
    _release()


# The functions registered last are called first. `logging` and `concurrent.futures` hold locks of
# their own during a fork, which a thread that this one waits for may need: so they come before.
if hasattr(os, "register_at_fork"):
    os.register_at_fork(before=_prepare, after_in_parent=_release, after_in_child=_go_on_in_child)
