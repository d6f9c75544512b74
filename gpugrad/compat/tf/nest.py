"""tf.nest: nested structures, whose dicts are read in the order of their keys.

>>> import gpugrad.compat.tf as tf
>>> tf.nest.flatten({"b": 1, "a": (2, [3])})
[2, 3, 1]
"""

from __future__ import annotations

import operator
from collections.abc import Callable
from typing import Any

from gpugrad.compat.names import forwarding
from gpugrad.core import nest
from gpugrad.errors import ArgumentError, StructureError


def _sorted(structure: Any) -> Any:
    """The structure with dicts whose keys are in order."""
    if isinstance(structure, dict):
        return {key: _sorted(structure[key]) for key in sorted(structure)}
    if hasattr(structure, "_fields"):
        return type(structure)(*map(_sorted, structure))
    if type(structure) in (list, tuple):
        return type(structure)(map(_sorted, structure))
    return structure


def flatten(structure, expand_composites=False) -> list[Any]:
    return nest.flatten(_sorted(structure))


def pack_sequence_as(structure, flat_sequence, expand_composites=False) -> Any:
    """A structure like another, with other leaves."""
    leaves = list(flat_sequence)
    if len(leaves) != len(nest.flatten(structure)):
        raise ArgumentError(
            f"pack_sequence_as: {len(leaves)} values for a structure of "
            f"{len(nest.flatten(structure))}."
        )
    places = flatten(nest.pack(structure, range(len(leaves))))
    pairs = sorted(zip(places, leaves, strict=True), key=operator.itemgetter(0))
    return nest.pack(structure, [leaf for _, leaf in pairs])


def map_structure(func: Callable[..., Any], *structure, check_types=True, **keywords) -> Any:
    """A structure of what a function returns for the leaves of several that are alike."""
    first, *others = structure
    columns = [flatten(first)]
    for other in others:
        assert_same_structure(first, other)
        columns.append(flatten(other))
    return pack_sequence_as(first, [func(*leaves) for leaves in zip(*columns, strict=True)])


def is_nested(seq) -> bool:
    return nest.children(seq) is not None


def assert_same_structure(nest1, nest2, check_types=True, expand_composites=False) -> None:
    """Raise ValueError if two structures differ."""
    a, b = nest.children(_sorted(nest1)), nest.children(_sorted(nest2))
    if (a is None) != (b is None) or (
        a is not None and b is not None and [key for key, _ in a] != [key for key, _ in b]
    ):
        raise StructureError(f"The structures differ: {nest1!r:.60} and {nest2!r:.60}.")
    for (_, x), (_, y) in zip(a or (), b or (), strict=True):
        assert_same_structure(x, y)


__getattr__, __dir__ = forwarding(__name__, own=globals())
