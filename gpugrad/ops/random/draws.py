"""Records the positions of draws in random streams, so that a recomputation repeats them."""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Callable, Iterator, Sequence
from copy import copy
from typing import Any, TypeVar

from gpugrad.errors import ArgumentError
from gpugrad.trace.array import current_trace

T = TypeVar("T")


class Drawn:
    """The draws of one call, which may be replayed in several threads.

    Attributes:
        traced: the number of its draws that a trace holds.
    """

    __slots__ = ("_of_threads", "traced")

    def __init__(self) -> None:  # a threading.local takes 0.9 us
        self._of_threads: dict[int, list[tuple[Any, int]]] = {}
        self.traced = 0

    @property
    def places(self) -> list[tuple[Any, int]]:
        """Key and first counter of each draw in this thread."""
        return self._of_threads.setdefault(threading.get_ident(), [])


class _Runs(threading.local):
    """Open `noting` and `repeating` blocks of this thread, the innermost last.

    Each is the trace that it is part of, its notes, and for `repeating` the draws to repeat.
    """

    def __init__(self) -> None:
        self.stack: list[tuple[Any, list[Any], Iterator[Any] | None]] = []


_runs = _Runs()


@contextlib.contextmanager
def noting() -> Iterator[list[Any]]:
    """Record the draws of a block, for `repeating`."""
    notes: list[Any] = []
    _runs.stack.append((current_trace(), notes, None))
    try:
        yield notes
    finally:
        _runs.stack.pop()


@contextlib.contextmanager
def repeating(noted: Sequence[Any]) -> Iterator[None]:
    """Repeat in a block the draws of an earlier one; no stream moves on.

    Raises:
        ArgumentError: the block draws something else.
    """
    recorded = iter(noted)
    _runs.stack.append((current_trace(), [], recorded))
    try:
        yield
    finally:
        _runs.stack.pop()
    if next(recorded, None) is not None:
        raise _other_numbers()


def once(about: Any, take: Callable[[], T]) -> T:
    """The result of `take`, or the recorded one where the draw is repeated.

    A draw in a trace becomes a step; the trace does not record what that step takes at replays.
    """
    if not _runs.stack:
        return take()
    trace, notes = current_trace(), []
    result: Any = None
    for of, noted, recorded in reversed(_runs.stack):
        if of is trace:
            notes.append(noted)
            if recorded is not None:
                before, result = next(recorded, (None, None))
                if before != about:
                    raise _other_numbers()
                break
        elif of is not None and trace is not None:
            raise ArgumentError(
                "random: in a traced function, gg.recompute_grad cannot repeat the draws in the "
                "branches or the body of gg.cond, gg.while_loop or gg.scan. Use it inside them, "
                "not around them."
            )
    else:
        result = take()
    for noted in notes:
        noted.append((about, result))
    return copy(result)  # x[i] = v changes a Tensor of a trace


def _other_numbers() -> ArgumentError:
    return ArgumentError(
        "random: a function that is recomputed for its gradient draws other numbers than in its "
        "first call. Its draws must not depend on earlier numbers. Create Variables before it, as "
        "their first values may be drawn."
    )
