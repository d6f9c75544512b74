"""Modules whose names are those of other modules."""

from __future__ import annotations

import importlib.abc
import importlib.util
import types
from collections.abc import Callable, Iterable
from typing import Any

from gpugrad.core.known_as import MissingNameError, nearest


def forwarding(
    module: str, *sources: Any, own: Iterable[str] = (), submodules: Iterable[str] = ()
) -> tuple[Callable[[str], Any], Callable[[], list[str]]]:
    """The ``__getattr__`` and ``__dir__`` of a module with the names of `sources` and `own`.

    A source is a module or a dict. A submodule is imported when it is first asked for. For other
    names the error has the nearest ones.
    """
    sources = tuple(types.SimpleNamespace(**s) if isinstance(s, dict) else s for s in sources)

    def names() -> list[str]:
        mine = [
            n for n in own if not isinstance(own, dict) or _is_public(own[n], "gpugrad.compat.")
        ]
        theirs = [(n, vars(source).get(n)) for source in sources for n in dir(source)]
        every = {
            *mine,
            *submodules,
            *(name for name, value in theirs if _is_public(value, "gpugrad.")),
        }
        return sorted(name for name in every if not name.startswith("_"))

    def look_up(name: str) -> Any:
        source = next((s for s in sources if name[:1] != "_" and hasattr(s, name)), None)
        if source is not None:
            return getattr(source, name)
        if name in submodules:
            return importlib.import_module(f"{module}.{name}")
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


class AliasFinder:
    """Finds modules of a package by the package's other name.

    They are imported once, when first asked for, and are the same objects by both names.

    Args:
        alias: the other name, such as ``"autograd"``.
        package: the package's own name.
    """

    def __init__(self, alias: str, package: str) -> None:
        self._prefix, self._package = f"{alias}.", f"{package}."

    def find_spec(self, name: str, path: Any = None, target: Any = None) -> Any:
        """A spec for a module below the alias, None for other names."""
        own = self._package + name.removeprefix(self._prefix)
        if not name.startswith(self._prefix) or importlib.util.find_spec(own) is None:
            return None
        return importlib.util.spec_from_loader(name, _Alias(own))


class _Alias(importlib.abc.Loader):
    """A loader that imports another module in place of a new one."""

    def __init__(self, name: str) -> None:
        self._name = name

    def create_module(self, spec: Any) -> types.ModuleType:
        """The other module."""
        module = importlib.import_module(self._name)
        self._spec = module.__spec__
        return module

    def exec_module(self, module: types.ModuleType) -> None:
        """Give it back its own spec, in whose place the import system has put the alias's."""
        module.__spec__ = self._spec
