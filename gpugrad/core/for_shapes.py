"""Computing for the shapes of results alone: nobody reads their values."""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Iterator
from typing import Any


class _Thread(threading.local):
    wants_shapes = False
    op: Any = None  # that computes


wanted: dict[Any, set[Any]] = {}
"""By op, the kernels that it has asked for while shapes sufficed, and that were not loaded yet."""


_thread = _Thread()


def shapes_suffice() -> bool:
    """Whether nobody reads the values that this thread computes."""
    return _thread.wants_shapes


def want(kernels: Any) -> None:
    """Note that the op that computes for shapes would call these kernels for values."""
    if _thread.op is not None:
        wanted.setdefault(_thread.op, set()).add(kernels)


@contextlib.contextmanager
def for_shapes(op: Any = None) -> Iterator[None]:
    """Compile nothing in the block: where a kernel is not loaded yet, NumPy computes.

    If it is an op that computes, `wanted` has these kernels afterwards.
    """
    before = _thread.wants_shapes, _thread.op
    _thread.wants_shapes, _thread.op = True, op
    try:
        yield
    finally:
        _thread.wants_shapes, _thread.op = before
