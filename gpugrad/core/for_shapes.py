"""Computing for the shapes of results alone: nobody reads their values."""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Iterator


class _Thread(threading.local):
    wants_shapes = False


_thread = _Thread()


def shapes_suffice() -> bool:
    """Whether nobody reads the values that this thread computes."""
    return _thread.wants_shapes


@contextlib.contextmanager
def for_shapes() -> Iterator[None]:
    """Compile nothing in the block: where a kernel is not loaded yet, NumPy computes."""
    before, _thread.wants_shapes = _thread.wants_shapes, True
    try:
        yield
    finally:
        _thread.wants_shapes = before
