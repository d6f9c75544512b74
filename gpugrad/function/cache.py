"""The programs of a function by the signatures of its calls, which keep no argument alive."""

from __future__ import annotations

import itertools
import weakref
from collections.abc import Iterator
from typing import Any

MOST = 256
"""Programs of one function; another one takes the place of that which was used longest ago."""


class Identity(weakref.ref[Any]):
    """An argument that is compared by identity, in a key."""

    __slots__ = ()

    def __repr__(self) -> str:
        argument = self()
        return "an object that is gone" if argument is None else repr(argument)


def by_identity(argument: Any) -> Any:
    """A key of an argument: itself, or an `Identity` if it compares by identity."""
    kind: Any = type(argument)
    if kind.__hash__ is object.__hash__ and kind.__eq__ is object.__eq__:
        try:
            return Identity(argument)
        except TypeError:  # its class has __slots__
            pass
    return argument


class Cache:
    """Values by key. Those of arguments that are gone are dropped, and those not used for longest.

    Attributes:
        added: how many values it has got.
        newest: the key of the last one, or None.
    """

    def __init__(self) -> None:
        self._values: dict[Any, list[Any]] = {}  # each with the time of its last use
        self._times = itertools.count()
        self.added = 0
        self.newest: Any = None

    def get(self, key: Any) -> Any:
        """The value of a key, or None."""
        entry = self._values.get(key)
        if entry is None:
            return None
        entry[1] = next(self._times)
        return entry[0]

    def __setitem__(self, key: Any, value: Any) -> None:
        while len(self._values) >= MOST and key not in self._values:
            oldest = min(list(self._values.items()), key=lambda item: item[1][1])[0]
            self._values.pop(oldest, None)
        here = weakref.ref(self)

        def drop(_: Any) -> None:
            cache = here()
            if cache is not None:
                cache.drop(key)

        watched = [weakref.ref(argument, drop) for argument in _arguments(key)]
        self._values[key] = [value, next(self._times), watched]
        self.added, self.newest = self.added + 1, key

    def values(self) -> list[Any]:
        """All values."""
        return [value for value, *_ in self._values.values()]

    def drop(self, key: Any) -> None:
        """Forget a value, if it is there."""
        self._values.pop(key, None)

    def clear(self) -> None:
        """Forget all values."""
        self._values.clear()


def _arguments(key: Any) -> Iterator[Any]:
    """The arguments in a key that are compared by identity."""
    if isinstance(key, Identity):
        argument = key()
        if argument is not None:
            yield argument
    elif isinstance(key, tuple):
        for part in key:
            yield from _arguments(part)
