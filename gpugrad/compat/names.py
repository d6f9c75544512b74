"""Modules whose names are those of other modules."""

from __future__ import annotations

import difflib
from collections.abc import Callable, Iterable
from typing import Any


def forwarding(
    module: str, *sources: Any, own: Iterable[str] = ()
) -> tuple[Callable[[str], Any], Callable[[], list[str]]]:
    """The ``__getattr__`` and ``__dir__`` of a module with the names of `sources` and `own`.

    For other names the error has the nearest ones.
    """

    def names() -> list[str]:
        every = (*own, *(name for source in sources for name in dir(source)))
        return sorted({name for name in every if not name.startswith("_")})

    def look_up(name: str) -> Any:
        source = next((s for s in sources if name[0] != "_" and hasattr(s, name)), None)
        if source is not None:
            return getattr(source, name)
        near = difflib.get_close_matches(name, names(), 3, 0.7)
        hint = f" The nearest names are {', '.join(near)}." if near else ""
        raise AttributeError(f"{module} has no {name!r}.{hint}", name=name)

    return look_up, names
