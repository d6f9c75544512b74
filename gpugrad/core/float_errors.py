"""NumPy's floating-point errors, ignored in less than half of the time of `np.errstate`."""

from __future__ import annotations

import functools
from collections.abc import Callable
from contextlib import AbstractContextManager
from typing import Any

import numpy as np
from numpy._core import _ufunc_config

MODES: Any = getattr(_ufunc_config, "_extobj_contextvar", None)
"""NumPy's context variable: an object for each state of `np.errstate`. None if it has another."""

_changed: Any = getattr(_ufunc_config, "_make_extobj", None)


class _Ignored:
    """A ``with`` statement in which some errors are ignored, in 0.4 us instead of 0.9.

    A subclass has the arguments of `np.errstate` as `how`, and in `last` a state of NumPy's and the
    same state with them, of the last time.
    """

    __slots__ = ("_token",)
    how: dict[str, str]
    last: tuple[Any, Any]

    def __enter__(self) -> None:
        state = MODES.get()
        before, changed = self.last
        if state is not before:
            changed = _changed(**self.how)
            type(self).last = state, changed
        self._token = MODES.set(changed)

    def __exit__(self, *error: object) -> None:
        MODES.reset(self._token)


def _ignored(**how: str) -> Callable[[], AbstractContextManager[None]]:
    if MODES is None or _changed is None:
        return functools.partial(np.errstate, **how)  # type: ignore[arg-type]
    members: dict[str, Any] = {"how": how, "last": (None, None), "__slots__": ()}
    return type("Ignored", (_Ignored,), members)


no_overflow = _ignored(over="ignore")
no_errors = _ignored(all="ignore")
