"""Signals that come during a run of `fit` wait until it is between two steps."""

from __future__ import annotations

import signal
import sys
import threading
from _thread import interrupt_main
from collections import deque
from typing import Any

from gpugrad.core.replaceable import handled


class SignalsBetweenSteps:
    """Lets signals wait, in a ``with`` block, until `deliver` is called between two steps.

    So a checkpoint has the model and the position in the data of one step. Ctrl-C, and SIGTERM if
    the process has no handler for it, end the run after the step. Handlers of the user's run after
    it, and end the run if they raise. A second signal of one kind does not wait. Python delivers
    signals to the main thread; elsewhere nothing changes.
    """

    def __init__(self, run: Any) -> None:
        self._run = run
        self._before: dict[int, Any] = {}
        self._waiting: list[Any] = []
        self._ended_by = 0
        self._may_wait = True

    def __enter__(self) -> SignalsBetweenSteps:
        if threading.current_thread() is threading.main_thread():
            before = dict(handled())
            if signal.getsignal(signal.SIGTERM) is signal.SIG_DFL:
                before[signal.SIGTERM] = signal.SIG_DFL
            for number, handler in before.items():
                self._before[number] = handler
                signal.signal(number, self._note)
        return self

    def __exit__(self, kind: Any, *exc: object) -> None:
        for number, handler in self._before.items():
            signal.signal(number, handler)
        self.deliver()
        if kind is None and self._ended_by == signal.SIGTERM:
            sys.exit(128 + signal.SIGTERM)

    def deliver(self) -> None:
        """Call the handlers of the signals that came since the last call."""
        if self._waiting:
            waiting, self._waiting, self._may_wait = self._waiting, [], False
            deque(map(interrupt_main, waiting), maxlen=0)  # all, though the first may raise
            for _ in waiting:  # Python 3.14 may call them as late as here, where a loop goes on
                pass
            self._may_wait = True

    def _note(self, number: int, frame: Any) -> None:
        handler = self._before[number]
        if handler in (signal.default_int_handler, signal.SIG_DFL):
            self._end(number)
        elif self._may_wait and number not in self._waiting:
            self._waiting.append(number)
        else:
            try:
                handler(number, frame)
            except BaseException:
                self._run.interrupted = True
                raise

    def _end(self, number: int) -> None:
        if self._run.interrupted:
            raise KeyboardInterrupt if number == signal.SIGINT else SystemExit(128 + number)
        self._run.interrupted, self._ended_by = True, number
