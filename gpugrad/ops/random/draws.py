"""What draws of random numbers have taken, for calls that draw again."""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Callable, Iterator, Sequence
from copy import copy
from typing import Any, TypeVar

from gpugrad.errors import ArgumentError
from gpugrad.trace.array import running

__all__ = ["Drawn", "is_repeated", "noting", "once", "repeating"]

T = TypeVar("T")


class Drawn(threading.local):
    """Where one call has drawn, which may be replayed in several threads.

    Attributes:
        places: key and first counter of each draw.
        traced: how many draws of it were written down.
    """

    def __init__(self) -> None:
        self.places: list[tuple[Any, int]] = []
        self.traced = 0


class _Runs(threading.local):
    """Runs that note what they draw, and runs that draw what was noted, the innermost last.

    Each as the trace that it is part of, its notes, and what it is given.
    """

    def __init__(self) -> None:
        self.stack: list[tuple[Any, list[Any], Iterator[Any] | None]] = []


_runs = _Runs()


@contextlib.contextmanager
def noting() -> Iterator[list[Any]]:
    """Note what is drawn in a block, for `repeating`."""
    notes: list[Any] = []
    _runs.stack.append((running(), notes, None))
    try:
        yield notes
    finally:
        _runs.stack.pop()


@contextlib.contextmanager
def repeating(noted: Sequence[Any]) -> Iterator[None]:
    """Draw in a block what was drawn in one before; no stream moves on.

    Raises:
        ArgumentError: something else is drawn there.
    """
    given = iter(noted)
    _runs.stack.append((running(), [], given))
    try:
        yield
    finally:
        _runs.stack.pop()
    if next(given, None) is not None:
        raise _other_numbers()


def is_repeated() -> bool:
    """Whether this thread computes something again, in a `repeating` block."""
    return any(given is not None for _, _, given in _runs.stack)


def once(about: Any, take: Callable[[], T]) -> T:
    """What a draw takes, or has taken where it is repeated.

    A draw of a trace is a step of it; what the step takes when it runs is not that of the trace.
    """
    if not _runs.stack:
        return take()
    trace, notes = running(), []
    made: Any = None
    for of, noted, given in reversed(_runs.stack):
        if of is trace:
            notes.append(noted)
            if given is not None:
                before, made = next(given, (None, None))
                if before != about:
                    raise _other_numbers()
                break
        elif of is not None and trace is not None:
            raise ArgumentError(
                "random: in a traced function, gg.recompute_grad cannot draw the same numbers "
                "again in the branches or the body of gg.cond, gg.while_loop or gg.scan. Use it "
                "inside of these, not around them."
            )
    else:
        made = take()
    for noted in notes:
        noted.append((about, made))
    return copy(made)  # x[i] = v changes a Tensor of a trace


def _other_numbers() -> ArgumentError:
    return ArgumentError(
        "random: a function that is called again for its gradient draws other numbers than in its "
        "first call. Which ones it draws must not depend on what it has drawn; Variables, whose "
        "first values may be drawn, are made before."
    )
