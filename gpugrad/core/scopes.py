"""Values that Variables have in one thread only, and the lock of those who update Variables.

While a function is traced, its Variables hold traced values, and other threads go on reading,
assigning and tracing the same Variables. So these values are in a scope of the thread, and an
interrupted trace has nothing to restore.
"""

from __future__ import annotations

import functools
from threading import get_ident
from typing import Any

from gpugrad.core.forking import drop_other_threads, in_child, new_rlock

scopes: dict[int, dict[int, Any]] = {}
"""By thread, the arrays of the Variables that have a value there only, by serial number."""

in_child(functools.partial(drop_other_threads, scopes))

updating = new_rlock(awaited=1)
"""Held while Variables get values that are computed from their old ones, so that no update is lost.

One lock for all Variables: two programs may share any of them, and each call would have to take
locks for single Variables in one order. Reading needs no lock, unless an optimizer in another
thread is writing to the array.
"""


class Scope:
    """Gives Variables values that only this thread sees, until its ``with`` block ends.

    Attributes:
        values: arrays by serial number; a Variable that is not in it has its shared value.
        outer: those of the enclosing scope, or None.
    """

    def __init__(self, values: dict[int, Any]) -> None:
        self.values, self._thread = values, get_ident()
        self.outer = scopes.get(self._thread)

    def __enter__(self) -> None:
        scopes[self._thread] = self.values

    def __exit__(self, *exc: object) -> None:
        if self.outer is None:
            scopes.pop(self._thread, None)
        else:
            scopes[self._thread] = self.outer
