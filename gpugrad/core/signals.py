"""Signals whose handlers wait until an update has ended."""

from __future__ import annotations

import _signal  # type: ignore[import-not-found]  # without conversions to enums, ten times as fast
import threading
from _thread import interrupt_main
from collections import deque
from itertools import compress
from threading import get_ident
from typing import Any

_NUMBERS = sorted(_signal.valid_signals())


def handled() -> list[tuple[int, Any]]:
    """The signals that have a handler in Python, and the handlers."""
    # a default is 0 or None; to ignore a signal is 1
    pairs = [
        (n, _signal.getsignal(n)) for n in compress(_NUMBERS, map(_signal.getsignal, _NUMBERS))
    ]
    return [pair for pair in pairs if callable(pair[1])]


def raised_by_handler(error: BaseException) -> bool:
    """Whether a handler of a signal raised an exception, and not the code that it came to."""
    functions = (getattr(handler, "func", handler) for _, handler in handled())  # of a partial
    codes = {getattr(function, "__code__", None) for function in functions}
    trace = error.__traceback__
    while trace is not None and trace.tb_frame.f_code not in codes:
        trace = trace.tb_next
    return trace is not None


class SignalsDeferred:
    """Lets the handlers of signals wait until its ``with`` block has ended.

    For updates in place, which a handler that raises would leave half done: Ctrl-C, or SIGTERM with
    `sys.exit`. Python runs handlers in the main thread only.

    A signal may come between any two lines below. Its handler then runs as if there were no block,
    also through a `_wait` that nothing has replaced: the next block does that.
    """

    def __init__(self) -> None:
        self._handlers: dict[int, Any] = {}
        self._waiting: list[Any] = []
        self._active = False

    def __enter__(self) -> None:
        if self._active or threading.main_thread().ident != get_ident():
            return
        try:
            self._replace()
            self._active = True
        except BaseException:  # of a handler
            self.__exit__()
            raise

    def _replace(self) -> None:
        for number, handler in handled():
            other = getattr(handler, "__self__", None)
            if type(other) is SignalsDeferred:
                if other._active:
                    continue  # it waits for the end of that block
                handler = other._handlers[number]
            self._handlers[number] = handler
            _signal.signal(number, self._wait)

    def __exit__(self, *exc: object) -> None:
        if not self._handlers:
            return
        restored = map(_signal.signal, self._handlers, self._handlers.values())
        arriving = map(interrupt_main, self._waiting)
        self._active = False
        try:
            deque(restored, maxlen=0)
        finally:
            deque(arriving, maxlen=0)  # at once: the first handler may raise

    def _wait(self, number: int, frame: Any) -> Any:
        if self._active:
            self._waiting.append(number)
            return None
        return self._handlers[number](number, frame)
