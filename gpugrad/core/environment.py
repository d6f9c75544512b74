"""Reads environment variables, of which a value without a meaning is an error, not the default."""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import TypeVar

from gpugrad.errors import ArgumentError

T = TypeVar("T")


def read(name: str, parse: Callable[[str], T], wanted: str) -> T | None:
    """The value of a variable; None if it is unset or empty.

    Args:
        name: of the variable.
        parse: function of the text; it raises ValueError if the text means nothing.
        wanted: the texts that mean something, for the error.

    Raises:
        ArgumentError: the text means nothing.
    """
    text = os.environ.get(name, "").strip()
    try:
        return parse(text) if text else None
    except ValueError as error:
        reason = f" ({error})" if str(error) else ""
        raise ArgumentError(
            f"The environment variable {name} must be {wanted}, got {text!r}{reason}."
        ) from None


def choose(name: str, *choices: str) -> str:
    """The value of a variable among `choices`; the first of them if it is unset or empty."""

    def parse(text: str) -> str:
        if text not in choices:
            raise ValueError
        return text

    return read(name, parse, f"one of {', '.join(choices)}") or choices[0]


def count(name: str) -> int | None:
    """The number in a variable; its first, if it has one for each level of nesting as OpenMP's."""

    def parse(text: str) -> int:
        first = text.partition(",")[0].strip()
        if not (first.isascii() and first.isdigit() and int(first)):
            raise ValueError
        return int(first)

    return read(name, parse, "a whole number above 0")
