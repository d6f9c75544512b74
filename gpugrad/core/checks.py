"""Checks of arguments that public functions share."""

from __future__ import annotations

from typing import Any

from gpugrad.errors import DTypeError


def require_callable(name: str, **functions: Any) -> None:
    """Check that arguments of the function `name` can be called.

    Raises:
        DTypeError: one cannot.
    """
    for parameter, f in functions.items():
        if not callable(f):
            raise DTypeError(f"{name}: {parameter} must be a function, got {f!r:.60}.")
