"""Modules whose names are those of other modules."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

from gpugrad.core.known_as import MissingNameError, nearest


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
        source = next((s for s in sources if name[:1] != "_" and hasattr(s, name)), None)
        if source is not None:
            return getattr(source, name)
        message = f"{module} has no {name!r}."
        raise MissingNameError(message, name, lambda: nearest(name, names()))

    return look_up, names
