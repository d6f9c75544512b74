"""Pickling of objects that replace a function: what a decorator returns."""

from __future__ import annotations

import contextlib
import operator
import sys
from typing import Any


def public_name(thing: Any) -> str | None:
    """The name under which the module of a decorated function holds it: what a pickle stores.

    None if the module does not hold it; then its parts must be pickled.
    """
    module, name = sys.modules.get(thing.__module__), getattr(thing, "__qualname__", "")
    with contextlib.suppress(AttributeError):
        if operator.attrgetter(name)(module) is thing:
            return name
    return None
