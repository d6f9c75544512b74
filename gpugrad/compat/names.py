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

    A source is a module or a dict. For other names the error has the nearest ones.
    """
    sources = tuple(types.SimpleNamespace(**s) if isinstance(s, dict) else s for s in sources)

    def names() -> list[str]:
        mine = [
            n for n in own if not isinstance(own, dict) or _is_public(own[n], "gpugrad.compat.")
        ]
        theirs = [(n, vars(source).get(n)) for source in sources for n in dir(source)]
        every = {*mine, *(name for name, value in theirs if _is_public(value, "gpugrad."))}
        return sorted(name for name in every if not name.startswith("_"))

    def look_up(name: str) -> Any:
        source = next((s for s in sources if name[:1] != "_" and hasattr(s, name)), None)
        if source is not None:
            return getattr(source, name)
        message = f"{module} has no {name!r}."
        raise MissingNameError(message, name, lambda: nearest(name, names()))

    return look_up, names


def _is_public(value: Any, modules: str) -> bool:
    """Whether a global name is more than an import for the module's own use.

    Args:
        value: its value.
        modules: how the names of public modules begin.
    """
    if isinstance(value, types.ModuleType):
        return value.__name__.startswith(modules)
    home = getattr(value, "__module__", None) or type(value).__module__
    return home not in ("__future__", "collections.abc", "typing")
