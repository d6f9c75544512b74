"""Nested structures with holes where Tensors go: results of a function, operands of a branch."""

from __future__ import annotations

from collections.abc import Coroutine, Iterator, Sequence
from typing import Any

from gpugrad.core import nest
from gpugrad.core.backend import SCALARS, is_array
from gpugrad.core.convert import constant
from gpugrad.core.holders import opened
from gpugrad.core.indexed_slices import IndexedSlices
from gpugrad.core.tensor import Tensor, holds_tensor, tensor, wrap
from gpugrad.core.variable import Variable
from gpugrad.errors import DTypeError, ShapeError, StructureError, TraceError


class _Hole:
    """The place of a result in a structure."""

    __slots__ = ("kind", "shape")

    def __init__(self, kind: str, shape: Any = None) -> None:
        self.kind, self.shape = kind, shape


def split_arrays(result: Any) -> tuple[Any, list[Any]]:
    """Split a result into its structure, with holes for the arrays, and the arrays.

    Raises:
        TraceError: the result has a generator or another iterator, which the next call would find
            exhausted.
    """
    arrays: list[Any] = []
    leaves: list[Any] = []
    for leaf in map(opened, nest.flatten(result)):
        if isinstance(leaf, Variable):
            leaves.append(leaf)
        elif isinstance(leaf, Tensor):
            arrays.append(leaf._data)
            leaves.append(_Hole("tensor"))
        elif isinstance(leaf, IndexedSlices):
            arrays += [leaf.values._data, leaf.indices._data]
            leaves.append(_Hole("rows", leaf.dense_shape))
        elif isinstance(leaf, (Iterator, Coroutine)):
            raise TraceError(
                f"gg.function: a result is a {type(leaf).__name__}, which runs once, while later "
                "calls only replay. Return a list or a tuple."
            )
        else:
            leaves.append(leaf)
    return nest.pack(result, leaves), arrays


def fill_holes(form: Any, arrays: Iterator[Any]) -> Any:
    """Put Tensors, or arrays wrapped as Tensors, into the holes of a structure."""

    def fill(leaf: Any) -> Any:
        if type(leaf) is not _Hole:
            return leaf
        if leaf.kind == "tensor":
            array = next(arrays)
            return array if isinstance(array, Tensor) else wrap(array)
        return IndexedSlices(wrap(next(arrays)), wrap(next(arrays)), leaf.shape)

    return fill(form) if type(form) is _Hole else nest.map_structure(fill, form)


def is_array_like(leaf: Any) -> bool:
    """Whether a leaf is or holds a Tensor, an array or IndexedSlices; a number is not."""
    return isinstance(leaf, IndexedSlices) or holds_tensor(leaf) or is_array(leaf)


def _is_number(leaf: Any) -> bool:
    return type(leaf) in SCALARS or is_array_like(leaf)


def agreed(what: str, names: tuple[str, str], one: Any, two: Any) -> list[tuple[Any, Any]]:
    """Pair the leaves of two structures, arrays as Tensors; raise if the structures differ.

    A Python number in the second structure takes the dtype of the array in the first.
    """
    paths = list(nest.paths("", one))
    if paths != list(nest.paths("", two)):
        shown = [nest.map_structure(lambda leaf: type(leaf).__name__, x) for x in (one, two)]
        raise StructureError(
            f"{what}: {names[0]} has the structure {shown[0]!r:.200}, {names[1]} "
            f"{shown[1]!r:.200}. They must be the same."
        )
    pairs = []
    for path, a, b in zip(paths, nest.flatten(one), nest.flatten(two), strict=True):
        if not (_is_number(a) and _is_number(b)):
            if a is not b and (_is_number(a) or _is_number(b) or a != b):
                raise StructureError(
                    f"{what}: {names[0]} gives {a!r:.60}{_at(path)}, {names[1]} {b!r:.60}. "
                    "Values that are not arrays must be the same."
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
    """The path of a leaf, for a message."""
    return f" at {path}" if path else ""


def tensors_of(structure: Any, numbers: bool = True) -> Any:
    """The structure with its arrays as Tensors, and with `numbers` its numbers too."""
    is_one = _is_number if numbers else is_array_like
    return nest.map_structure(lambda leaf: tensor(leaf) if is_one(leaf) else leaf, structure)


def blanks(structure: Any) -> Any:
    """The structure with a copy of each Tensor, so that a traced function may write to it."""
    return nest.map_structure(
        lambda leaf: wrap(leaf._kept()) if isinstance(leaf, Tensor) else leaf, structure
    )


class Form:
    """A structure of Tensors and other leaves that can be rebuilt with other Tensors."""

    def __init__(self, structure: Any) -> None:
        self.structure, self._leaves = structure, nest.flatten(structure)
        self.tensors = [leaf for leaf in self._leaves if isinstance(leaf, Tensor)]

    def __call__(self, tensors: Sequence[Tensor]) -> Any:
        """The structure with other Tensors in it."""
        new = iter(tensors)
        leaves = [next(new) if isinstance(leaf, Tensor) else leaf for leaf in self._leaves]
        return nest.pack(self.structure, leaves)
