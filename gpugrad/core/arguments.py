"""Checks of arguments that are not arrays; their errors name the function and the argument."""

from __future__ import annotations

import importlib
import operator
import os
import sys
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from gpugrad.errors import ArgumentError, GpugradError

if TYPE_CHECKING:
    from pathlib import Path


def check_whole(name: str, what: str, value: Any, least: int = 0) -> int:
    """A whole number as an int, at least `least`; ArgumentError if it is not one."""
    try:
        number = operator.index(value)
    except (TypeError, GpugradError):
        number = least - 1
    if not least <= number <= sys.maxsize or isinstance(value, bool):
        range_ = "above 0" if least == 1 else f"of at least {least}"
        raise ArgumentError(f"{name}: {what} must be a whole number {range_}, got {value!r:.60}.")
    return number


def check_number(
    name: str,
    what: str,
    value: Any,
    holds: Callable[[float], bool] = lambda _: True,
    words: str = "",
) -> float:
    """A real number as a float, for which `holds` is true; ArgumentError with `words` if not."""
    try:
        if isinstance(value, (str, bytes, np.timedelta64)):
            raise TypeError
        number = float(value)
    except (TypeError, ValueError, OverflowError, GpugradError):
        raise ArgumentError(f"{name}: {what} must be a number, got {value!r:.60}.") from None
    if not holds(number):
        raise ArgumentError(f"{name}: {what} must be {words}, got {value!r:.60}.")
    return number


def check_flag(name: str, what: str, value: Any) -> bool:
    """True or False; ArgumentError for anything but these, 0 and 1."""
    if isinstance(value, (bool, np.bool_)) or (isinstance(value, int) and value in (0, 1)):
        return bool(value)
    raise ArgumentError(f"{name}: {what} must be True or False, got {value!r:.60}.")


def check_choice(name: str, what: str, value: Any, choices: Sequence[Any]) -> Any:
    """One of a few strings or None; ArgumentError if it is none of them."""
    if not isinstance(value, (str, type(None))) or value not in choices:
        listed = " or ".join(f'"{c}"' if isinstance(c, str) else str(c) for c in choices)
        raise ArgumentError(f"{name}: {what} must be {listed}, got {value!r:.60}.")
    return value


def check_path(name: str, what: str, value: Any) -> Path:
    """The path of a file or folder; ArgumentError if it is neither text nor path-like."""
    if isinstance(value, (str, os.PathLike)):
        return importlib.import_module("pathlib").Path(
            value
        )  # which `import gpugrad` does not load
    raise ArgumentError(f"{name}: {what} must be a path, got {value!r:.60}.")


def check_list(name: str, what: str, value: Any, kinds: type | tuple[type, ...]) -> list[Any]:
    """The elements of an iterable as a list; ArgumentError if one is of another kind."""
    try:
        elements = list(value)
    except (TypeError, GpugradError):
        elements = [None]
    if not all(isinstance(e, kinds) for e in elements):
        named = kinds if isinstance(kinds, tuple) else (kinds,)
        expected = " or ".join(kind.__name__ for kind in named)
        raise ArgumentError(f"{name}: {what} must be a list of {expected}, got {value!r:.60}.")
    return elements
