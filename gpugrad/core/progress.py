"""The logger ``gpugrad``, and a line about compilation that takes long."""

from __future__ import annotations

import contextlib
import logging
import sys
import threading
import time
from collections.abc import Iterator

LOG = logging.getLogger("gpugrad")
"""The package's logger. Without a handler of the program it is silent."""
LOG.addHandler(logging.NullHandler())

PATIENCE = 2.0  # seconds without a word about it
_PAUSE = 10.0  # seconds without compilation after which a line is due again: a trace takes some


class _Burst:
    """Compilations that follow one another, and the seconds that they took."""

    def __init__(self) -> None:
        self.seconds, self.end, self.done, self.told = 0.0, float("-inf"), 0, False

    def tell(self, what: str, start: float) -> None:
        """Write the line, once."""
        if self.told:
            return
        self.told = True
        before = f", {self.done} done before it" if self.done else ""
        seconds = self.seconds + time.perf_counter() - start
        text = f"gpugrad: compiling {what} for {seconds:.0f} s{before}; it is kept for later runs"
        LOG.warning(text)
        if not _has_handler() and sys.stderr is not None and sys.stderr.isatty():
            print(text, file=sys.stderr)


_burst = _Burst()


@contextlib.contextmanager
def compiling(what: str) -> Iterator[None]:
    """Write a line if the block, and those shortly before it, take longer than `PATIENCE`.

    The line goes to the logger and, if the program handles no logs, to a terminal. Each block that
    ends is a line of the level INFO.

    Args:
        what: what is compiled.
    """
    global _burst
    start = time.perf_counter()
    if start - _burst.end > _PAUSE:
        _burst = _Burst()
    burst = _burst
    timer = threading.Timer(max(PATIENCE - burst.seconds, 0), burst.tell, (what, start))
    timer.daemon = True
    if not burst.told:
        timer.start()
    try:
        yield
    finally:
        timer.cancel()
        burst.end, burst.done = time.perf_counter(), burst.done + 1
        burst.seconds += burst.end - start
    LOG.info("compiled %s in %.2f s", what, burst.end - start)


def _has_handler() -> bool:
    """Whether a program has given the logger, or the root, a handler that may write."""
    handlers = (*LOG.handlers, *logging.getLogger().handlers)
    return any(type(handler) is not logging.NullHandler for handler in handlers)
