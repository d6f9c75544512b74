"""What draws of random numbers have taken, for calls that draw again."""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Callable, Iterator, Sequence
from copy import copy
from typing import Any, TypeVar

from gpugrad.errors import ArgumentError

__all__ = ["Drawn", "noting", "once", "repeating"]

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


class _Taken(threading.local):
    """What draws take: noted in a run that will be repeated, and given again in the repetition."""

    noted: list[Any] | None = None
    given: Iterator[Any] | None = None


_taken = _Taken()


@contextlib.contextmanager
def noting() -> Iterator[list[Any]]:
    """Note what is drawn in a block, for `repeating`."""
    outer, mine = _taken.noted, list[Any]()
    _taken.noted = mine
    try:
        yield mine
    finally:
        _taken.noted = outer
        if outer is not None:
            outer += mine


@contextlib.contextmanager
def repeating(noted: Sequence[Any]) -> Iterator[None]:
    """Draw in a block what was drawn in one before; no stream moves on.

    Raises:
        ArgumentError: something else is drawn there.
    """
    before = _taken.noted, _taken.given
    _taken.noted, _taken.given = None, iter(noted)
    try:
        yield
    finally:
        _taken.noted, _taken.given = before


def once(about: Any, take: Callable[[], T]) -> T:
    """What a draw takes, or has taken where it is repeated."""
    noted, given = _taken.noted, _taken.given
    if noted is None and given is None:
        return take()
    made: Any
    if given is None:
        _taken.noted = None  # what is drawn on the way is no draw of its own
        try:
            made = take()
        finally:
            _taken.noted = noted
    else:
        before, made = next(given, (None, None))
        if before != about:
            raise ArgumentError(
                "random: a function that is called again for its gradient draws other numbers "
                "than in its first call. Which ones it draws must not depend on what it has drawn."
            )
    if noted is not None:
        noted.append((about, made))
    return copy(made)  # x[i] = v changes a Tensor that was drawn in a trace
