"""The parts of a Module: Variables and Modules in its attributes, lists, tuples and dicts."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from types import MethodType
from typing import Any

from gpugrad.core.variable import Variable
from gpugrad.errors import StructureError

INTERNAL = ("_path", "_hooks")
"""Attributes of a Module that hold no parts."""


def _children(value: Any) -> list[tuple[str, Any]]:
    if isinstance(value, (list, tuple)):
        return [(str(i), v) for i, v in enumerate(value)]
    if isinstance(value, dict):
        return [(str(k), v) for k, v in value.items()]
    return [(name, v) for name, v in vars(value).items() if name not in INTERNAL]


def named_parts(root: Any, module_class: type) -> Iterator[tuple[str, Any]]:
    """Pairs of a dotted path and a Variable or a Module, each once, in the order of attributes.

    The root comes first, with the path "".
    """
    seen: set[int] = set()

    def walk(path: str, value: Any) -> Iterator[tuple[str, Any]]:
        if not isinstance(value, (Variable, module_class, list, tuple, dict)) or id(value) in seen:
            return
        seen.add(id(value))
        if isinstance(value, (Variable, module_class)):
            yield path, value
        if not isinstance(value, Variable):
            for name, child in _children(value):
                yield from walk(f"{path}.{name}" if path else name, child)

    return walk("", root)


def by_path(root: Any, parts: Iterable[tuple[str, Any]]) -> dict[str, Any]:
    """The dict of pairs of a path and a part of `root`.

    Raises:
        StructureError: two have the same path, as those of the keys 1 and "1" of a dict.
    """
    pairs = list(parts)
    result = dict(pairs)
    if len(result) < len(pairs):
        paths = [path for path, _ in pairs]
        path = next(path for path in paths if paths.count(path) > 1)
        raise StructureError(
            f"{type(root).__name__}: two parts have the path '{path}'. Rename an attribute, or a "
            "key of a dict."
        )
    return result


def parts_of(name: str, value: Any, module_class: type) -> Iterator[tuple[str, Any]]:
    """The Modules and Variables in an attribute and in its containers, but not inside Modules."""
    if isinstance(value, (Variable, module_class)):
        yield name, value
    elif isinstance(value, (list, tuple, dict)):
        for key, child in _children(value):
            yield from parts_of(f"{name}.{key}", child, module_class)


def replaced(root: Any, module_class: type, replace: Callable[[Variable], Any]) -> Any:
    """A copy of a Module with something else in the place of its Variables.

    Modules and the containers that hold parts are copied once each, so that shared weights stay
    shared, and so are Modules whose methods are attributes; everything else is the original's.
    """
    copies: dict[int, Any] = {}

    def copy(value: Any) -> Any:
        if isinstance(value, Variable):
            return replace(value)
        if isinstance(value, MethodType) and isinstance(value.__self__, module_class):
            return MethodType(value.__func__, copy(value.__self__))
        if id(value) in copies:
            return copies[id(value)]
        if isinstance(value, (tuple, list, dict)) and not any(parts_of("", value, module_class)):
            return value
        if isinstance(value, tuple):
            items = map(copy, value)
            return type(value)(*items) if hasattr(value, "_fields") else tuple(items)
        if isinstance(value, module_class):
            module: Any = value.__new__(type(value))
            copies[id(value)] = module  # before its parts, which may have a reference to it
            module.__dict__.update({k: copy(v) for k, v in vars(value).items()})
            return module
        if isinstance(value, dict):
            result: Any = copies.setdefault(id(value), {})
            result.update({k: copy(v) for k, v in value.items()})
            return result
        if isinstance(value, list):
            result = copies.setdefault(id(value), [])
            result += [copy(v) for v in value]
            return result
        return value

    return copy(root)
