"""Nested structures: leaves in lists, tuples, namedtuples, dicts and dataclasses."""

from __future__ import annotations

import copy
import dataclasses
import functools
from collections.abc import Callable, Iterator, Mapping, Sequence, ValuesView
from typing import Any

import numpy as np

from gpugrad.core.holders import HOLDER
from gpugrad.errors import StructureError

TENSORS: set[type] = set()
"""The classes of Tensors, which are leaves; they add themselves."""


def children(structure: Any) -> list[tuple[Any, Any]] | None:
    """The (key, child) pairs of a container; None for a leaf."""
    list_children = _child_lister(structure.__class__)  # a proxy has the __class__ of its target
    return None if list_children is None else list_children(structure)


@functools.lru_cache(1024)  # these checks take most of the time of a walk
def _child_lister(kind: type) -> Callable[[Any], list[tuple[Any, Any]]] | None:
    """The function that lists the children of containers of a type; None for a type of leaves."""
    if hasattr(kind, HOLDER):
        return None
    if issubclass(kind, (list, tuple, ValuesView)):
        return lambda structure: list(enumerate(structure))
    if issubclass(kind, Mapping):
        return lambda structure: list(structure.items())
    if dataclasses.is_dataclass(kind):
        names = [f.name for f in dataclasses.fields(kind)]
        return lambda structure: [(name, getattr(structure, name)) for name in names]
    return None


def is_constant(leaf: Any) -> bool:
    """Whether a leaf is no number, such as None, a name or a function: it has no gradient."""
    if leaf is None or isinstance(leaf, (str, bytes, np.dtype)):
        return True
    return callable(leaf) and not hasattr(type(leaf), HOLDER)


def flatten(structure: Any) -> list[Any]:
    """Leaves from left to right; dicts in insertion order.

    >>> flatten({"b": 1, "a": (2, [3])})
    [1, 2, 3]
    """
    if structure.__class__ in (list, tuple):  # most structures
        if TENSORS.issuperset(map(type, structure)):
            return list(structure)
        inner: Any = structure
    else:
        pairs = children(structure)
        if pairs is None:
            return [structure]
        inner = [child for _, child in pairs]
    leaves: list[Any] = []
    for child in inner:
        if _child_lister(child.__class__) is None:  # most of them
            leaves.append(child)
        else:
            leaves += flatten(child)
    return leaves


def pack(structure: Any, leaves: Sequence[Any]) -> Any:
    """A structure like `structure`, with other leaves.

    >>> pack({"b": 0, "a": (0, [0])}, [1, 2, 3])
    {'b': 1, 'a': (2, [3])}
    """
    if type(structure) in (list, tuple) and TENSORS.issuperset(map(type, structure)):
        return type(structure)(leaves)
    return _rebuild(structure, iter(leaves))


def _rebuild(structure: Any, leaves: Iterator[Any]) -> Any:
    pairs = children(structure)
    if pairs is None:
        return next(leaves)
    items = [
        (key, next(leaves) if _child_lister(child.__class__) is None else _rebuild(child, leaves))
        for key, child in pairs
    ]
    values = [value for _, value in items]
    if isinstance(structure, (list, ValuesView)):
        return values
    if isinstance(structure, tuple):
        return type(structure)(*values) if hasattr(structure, "_fields") else tuple(values)
    if isinstance(structure, dict):
        new = copy.copy(structure)
        dict.update(new, items)  # a Counter's own would add
        return new
    if isinstance(structure, Mapping):
        return type(structure)(dict(items))  # type: ignore[call-arg]  # by convention
    new = copy.copy(structure)
    for key, value in items:
        object.__setattr__(new, key, value)
    return new


def paths(name: str, structure: Any) -> Iterator[str]:
    """The path of each leaf in source form, in the order of `flatten`: ``batch['x'][0]``."""
    pairs = children(structure)
    if pairs is None:
        yield name
    for key, child in pairs or ():
        part = f".{key}" if dataclasses.is_dataclass(structure) else f"[{key!r}]"
        yield from paths(name + part, child)


def flatten_like(reference: Any, structure: Any, what: str) -> list[Any]:
    """Leaves of `structure`, one for each leaf of `reference`; StructureError if they differ.

    Dicts are matched by key, lists and tuples by position.
    """
    pairs = children(reference)
    if pairs is None:
        return [structure]
    if isinstance(reference, (list, tuple, ValuesView)):
        if not isinstance(structure, (list, tuple)) or len(structure) != len(reference):
            got = f"{len(structure)}" if isinstance(structure, (list, tuple)) else repr(structure)
            raise StructureError(
                f"{what}: expected a list or tuple of {len(reference)}, one for each; got {got}."
            )
        inner: dict[Any, Any] = dict(enumerate(structure))
    else:
        inner = dict(children(structure) or [])
        keys = [key for key, _ in pairs]
        if set(inner) != set(keys):
            raise StructureError(f"{what}: expected the keys {keys}, got {list(inner)}.")
    return [
        leaf for key, child in pairs for leaf in flatten_like(child, inner[key], f"{what}[{key!r}]")
    ]


def map_structure(function: Any, structure: Any) -> Any:
    """Apply `function` to every leaf.

    >>> map_structure(lambda n: n + 1, (1, {"a": 2}))
    (2, {'a': 3})
    """
    return pack(structure, [function(leaf) for leaf in flatten(structure)])
