"""How objects that stand in the place of a function are pickled."""

from __future__ import annotations

import contextlib
import operator
import sys
from typing import Any

__all__ = ["public_name"]


def public_name(thing: Any) -> str | None:
    """The name by which the module of a decorated function has it, as pickles of functions do.

    None if it has no such name: then it is pickled by what it was made of.
    """
    home, name = sys.modules.get(thing.__module__), getattr(thing, "__qualname__", "")
    with contextlib.suppress(AttributeError):
        if operator.attrgetter(name)(home) is thing:
            return name
    return None
