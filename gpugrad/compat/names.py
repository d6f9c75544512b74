"""Modules whose names are those of other modules."""

from __future__ import annotations

import types
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
        values = dict(own) if isinstance(own, dict) else dict.fromkeys(own)
        for source in sources:
            values |= {name: vars(source).get(name) for name in dir(source)}
        return sorted(n for n, v in values.items() if not n.startswith("_") and _is_public(v))

    def look_up(name: str) -> Any:
        source = next((s for s in sources if name[:1] != "_" and hasattr(s, name)), None)
        if source is not None:
            return getattr(source, name)
        message = f"{module} has no {name!r}."
        raise MissingNameError(message, name, lambda: nearest(name, names()))

    return look_up, names


def _is_public(value: Any) -> bool:
    """Whether a global name of a module is more than an import for its own use."""
    if isinstance(value, types.ModuleType):
        return value.__name__.startswith("gpugrad.compat.")
    home = getattr(value, "__module__", None) or type(value).__module__
    return home not in ("__future__", "collections.abc", "typing")
