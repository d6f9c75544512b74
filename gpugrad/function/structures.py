"""Structures that branches and bodies take and return: Tensors, and what is handed on as it is."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from gpugrad.core import nest
from gpugrad.core.backend import SCALARS, is_array
from gpugrad.core.indexed_slices import IndexedSlices
from gpugrad.core.tensor import Tensor, constant, tensor, wrap
from gpugrad.errors import DTypeError, ShapeError, StructureError

__all__ = ["Form", "agreed", "blanks", "is_array_like", "tensors_of"]


def is_array_like(leaf: Any) -> bool:
    """Whether a leaf is a Tensor, an array, or rows of one; a number is not."""
    return isinstance(leaf, (Tensor, IndexedSlices)) or is_array(leaf)


def _is_number(leaf: Any) -> bool:
    return type(leaf) in SCALARS or is_array_like(leaf)


def _paths(structure: Any, path: str = "") -> list[str]:
    """How each leaf is reached, in the order of `nest.flatten`."""
    found = nest.children(structure)
    if found is None:
        return [path]
    return [p for key, child in found for p in _paths(child, f"{path}[{key!r}]")]


def agreed(what: str, names: tuple[str, str], one: Any, two: Any) -> list[tuple[Any, Any]]:
    """Leaves of two structures, the arrays as Tensors; errors if they do not agree.

    A Python number in the second one takes the dtype of the array in the first.
    """
    paths = _paths(one)
    if paths != _paths(two):
        shown = [nest.map_structure(lambda leaf: type(leaf).__name__, x) for x in (one, two)]
        raise StructureError(
            f"{what}: {names[0]} gives the structure {shown[0]!r:.200}, {names[1]} "
            f"{shown[1]!r:.200}. They must be the same."
        )
    pairs = []
    for path, a, b in zip(paths, nest.flatten(one), nest.flatten(two), strict=True):
        if not (_is_number(a) and _is_number(b)):
            if a is not b and (_is_number(a) or _is_number(b) or a != b):
                raise StructureError(
                    f"{what}: {names[0]} gives {a!r:.60}{_at(path)}, {names[1]} {b!r:.60}. What is "
                    "no array must be the same."
                )
            pairs.append((a, b))
            continue
        x, y = tensor(a), constant(b, a.dtype) if type(b) in SCALARS else tensor(b)
        if x.shape != y.shape or x.dtype != y.dtype:
            kind = ShapeError if x.shape != y.shape else DTypeError
            raise kind(
                f"{what}: {names[0]} gives {x.dtype} {x.shape}{_at(path)}, {names[1]} {y.dtype} "
                f"{y.shape}. They must be the same: use gg.broadcast_to, gg.astype."
            )
        pairs.append((x, y))
    return pairs


def _at(path: str) -> str:
    """Where a leaf is, for a message."""
    return f" at {path}" if path else ""


def tensors_of(structure: Any, numbers: bool = True) -> Any:
    """A structure with Tensors in the place of arrays, and of `numbers`."""
    is_one = _is_number if numbers else is_array_like
    return nest.map_structure(lambda leaf: tensor(leaf) if is_one(leaf) else leaf, structure)


def blanks(structure: Any) -> Any:
    """A structure with Tensors like its own: those that a traced function wrote to may die."""
    return nest.map_structure(
        lambda leaf: wrap(leaf._data) if isinstance(leaf, Tensor) else leaf, structure
    )


class Form:
    """A structure that holds Tensors and what is none, and how to make it of Tensors again."""

    def __init__(self, structure: Any) -> None:
        self.structure, self._leaves = structure, nest.flatten(structure)
        self.tensors = [leaf for leaf in self._leaves if isinstance(leaf, Tensor)]

    def __call__(self, tensors: Sequence[Tensor]) -> Any:
        """The structure with other Tensors in it."""
        given = iter(tensors)
        return nest.pack(
            self.structure,
            [next(given) if isinstance(leaf, Tensor) else leaf for leaf in self._leaves],
        )
