"""Sums of zero-padded pieces: each piece is written in place instead of padded and added.

The gradient of an array that was split, such as the queries, keys and values of one product, is a
sum of one array per piece, zero outside of that piece: for n pieces, n whole arrays are written,
and read again to be added. Here the pieces are written once, in the axis order that the reader
wants. The same holds for joins of many arrays, for which CuPy would copy addresses from the host.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator, Sequence
from types import EllipsisType
from typing import Any

import numpy as np

from gpugrad.core.backend import Reading
from gpugrad.function.passes.rewrite import Readers, Rewriter
from gpugrad.function.passes.simplify import remove_dead
from gpugrad.ops.arrays.join import AT_ONCE
from gpugrad.trace.program import Program, Step, Value

__all__ = ["Pieces", "write_pieces_in_place"]


class Pieces(Step):
    """Arrays written to their places in one array.

    Attributes:
        places: the index of each array.
        whole: the shape that these index.
        order: the axes of that shape, in memory order.
    """

    __slots__ = ("order", "places", "whole")

    def __init__(
        self,
        arrays: Sequence[Value],
        places: Sequence[Any],
        whole: tuple[int, ...],
        order: Sequence[int],
        out: Value,
    ) -> None:
        self.places, self.whole, self.order = places, whole, order
        result = Value(np.broadcast_to(np.empty((), out.dtype), out.shape))
        super().__init__(None, arrays, {}, [result], name=f"{len(arrays)} pieces")

    def run(self, xp: Reading, *arrays: Any) -> list[Any]:
        """Execute on plain arrays."""
        (out,) = self.outs
        memory = xp.lib.empty([self.whole[a] for a in self.order], dtype=out.dtype)
        whole = memory.transpose([self.order.index(a) for a in range(len(self.order))])
        for place, array in zip(self.places, arrays, strict=True):
            whole[place] = array
        return [memory.reshape(out.shape)]


def write_pieces_in_place(program: Program) -> Program:
    """Write zero-padded pieces that are added, or many joined arrays, into one array."""
    readers, rewriter = Readers(program), Rewriter(program)
    for step in program.steps:
        step = rewriter.renamed(step)
        if step.name in ("concat", "stack") and len(step.args[0]) > AT_ONCE:
            _join(step, rewriter)
            continue
        parts = list(_terms(step, readers)) if step.name == "add" else []
        if not _is_partition(parts):
            rewriter.keep(step)
            continue
        (out,), whole = step.outs, step.outs[0].shape
        order = list(range(len(whole)))
        after = readers.only(out)
        if after is not None and after.name == "permute_dims":
            (out,) = after.outs
            order = [a % len(whole) for a in after.params["axes"]]
            after = readers.only(out)
        if after is not None and after.name == "reshape":
            (out,) = after.outs
        arrays = [rewriter.value(p.args[0]) for p in parts]
        places = [p.params["index"] for p in parts]
        _put(rewriter, step, Pieces(arrays, places, whole, order, out), out)
    return remove_dead(rewriter.program())


def _put(rewriter: Rewriter, of: Step, pieces: Pieces, out: Value) -> None:
    pieces.backward, pieces.phase, pieces.where = of.backward, of.phase, of.where
    rewriter.keep(pieces)
    rewriter.replace(out, pieces.outs[0])


def _join(step: Step, rewriter: Rewriter) -> None:
    """Append a `concat` or `stack` as pieces."""
    (arrays,), (out,), axis = step.args, step.outs, step.params["axis"]
    if axis is None:
        arrays = [rewriter.reshaped(step, a, (math.prod(a.shape),)) for a in arrays]
        axis = 0
    axis %= len(out.shape)
    places: Sequence[Any] = range(len(arrays))
    if step.name == "concat":  # else stack: a new axis has one place for each array
        ends = [0, *itertools.accumulate(a.shape[axis] for a in arrays)]
        places = [slice(*edges) for edges in itertools.pairwise(ends)]
    places = [(*(slice(None),) * axis, place) for place in places]
    _put(rewriter, step, Pieces(arrays, places, out.shape, range(len(out.shape)), out), out)


def _terms(add: Step, readers: Readers) -> Iterator[Step]:
    """The steps that make the terms of a chain of additions."""
    for a in add.args:
        maker = readers.maker.get(id(a)) if isinstance(a, Value) else None
        if maker is not None and maker.name == "add" and readers.only(a) is not None:
            yield from _terms(maker, readers)
        else:
            yield maker or add


def _is_partition(parts: Sequence[Step]) -> bool:
    """Whether each element of the whole is in exactly one piece."""
    if not parts or any(p.name != "scatter_at" for p in parts):
        return False
    whole = parts[0].outs[0]
    places = []
    for part in parts:
        (out,), ranges = part.outs, _ranges(part.params["index"], whole.shape)
        if ranges is None or (out.shape, out.dtype) != (whole.shape, whole.dtype):
            return False
        places.append(ranges)
    return sum(math.prod(map(len, p)) for p in places) == math.prod(whole.shape) and all(
        any(set(a).isdisjoint(b) for a, b in zip(*pair, strict=True))
        for pair in itertools.combinations(places, 2)
    )


def _ranges(index: Any, shape: tuple[int, ...]) -> list[range] | None:
    """The positions along each axis that an index of ints and slices selects; else None."""
    index = index if isinstance(index, tuple) else (index,)
    if not {*map(type, index)} <= {int, slice, EllipsisType}:
        return None
    at = index.index(...) if ... in index else len(index)
    rest = [slice(None)] * (len(shape) - len(index) + (... in index))
    full_index = (*index[:at], *rest, *index[at + 1 :])
    return [
        range(*i.indices(n)) if isinstance(i, slice) else range(n)[i : i + 1 or None]
        for i, n in zip(full_index, shape, strict=True)
    ]
