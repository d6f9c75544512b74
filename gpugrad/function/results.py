"""Results: their structure, kept once, and the arrays that a run puts into it."""

from __future__ import annotations

from collections.abc import Coroutine, Iterator
from typing import Any

from gpugrad.core import nest
from gpugrad.core.indexed_slices import IndexedSlices
from gpugrad.core.tensor import Tensor, wrap
from gpugrad.core.variable import Variable
from gpugrad.errors import TraceError

__all__ = ["filled", "taken"]


class _Hole:
    """Where a result stands in a structure."""

    __slots__ = ("kind", "shape")

    def __init__(self, kind: str, shape: Any = None) -> None:
        self.kind, self.shape = kind, shape


def taken(result: Any) -> tuple[Any, list[Any]]:
    """The structure of a result with holes for its arrays, and those arrays.

    Raises:
        TraceError: a generator or another iterator, which would be at its end in the next call.
    """
    outputs: list[Any] = []
    leaves: list[Any] = []
    for leaf in nest.flatten(result):
        if isinstance(leaf, Variable):
            leaves.append(leaf)
        elif isinstance(leaf, Tensor):
            outputs.append(leaf._data)
            leaves.append(_Hole("tensor"))
        elif isinstance(leaf, IndexedSlices):
            outputs += [leaf.values._data, leaf.indices._data]
            leaves.append(_Hole("rows", leaf.dense_shape))
        elif isinstance(leaf, (Iterator, Coroutine)):
            raise TraceError(
                f"gg.function: a result is a {type(leaf).__name__}, which runs once, while later "
                "calls only replay. Return a list or a tuple."
            )
        else:
            leaves.append(leaf)
    return nest.pack(result, leaves), outputs


def filled(form: Any, arrays: Any) -> Any:
    """A structure with Tensors, or arrays made into Tensors, in its holes."""

    def put(leaf: Any) -> Any:
        if type(leaf) is not _Hole:
            return leaf
        if leaf.kind == "tensor":
            made = next(arrays)
            return made if isinstance(made, Tensor) else wrap(made)
        return IndexedSlices(wrap(next(arrays)), wrap(next(arrays)), leaf.shape)

    return put(form) if type(form) is _Hole else nest.map_structure(put, form)
