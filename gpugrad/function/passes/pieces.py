"""Sums of zero-padded pieces: each piece is written in place instead of padded and added.

The gradient of an array that was split, such as the queries, keys and values of one product, is a
sum of one array per piece, zero outside of that piece: for n pieces, n whole arrays are written,
and read again to be added. Here the pieces are written once, in the axis order that the reader
wants. The same holds for joins of many arrays, for which CuPy would copy addresses from the host.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from types import EllipsisType
from typing import Any

import numpy as np

from gpugrad.core.backend import Reading
from gpugrad.function.passes.rewrite import Readers, Rewriter, axis_order, is_addition, is_reshape
from gpugrad.function.passes.simplify import remove_dead
from gpugrad.kernels.runtime.launch import pointer
from gpugrad.kernels.runtime.new_arrays import common_memory
from gpugrad.ops.arrays.join import AT_ONCE
from gpugrad.trace.program import Program, Step, Value


class Pieces(Step):
    """Arrays written to their places in one array.

    Attributes:
        places: the index of each array.
        whole: the shape that these index.
        order: the axes of that shape, in memory order.
        alone: whether no other step reads the arrays, which may then become the result's memory.
    """

    __slots__ = ("alone", "order", "places", "whole")

    def __init__(
        self,
        arrays: Sequence[Value],
        places: Sequence[Any],
        whole: tuple[int, ...],
        order: Sequence[int],
        out: Value,
    ) -> None:
        self.places, self.whole, self.order, self.alone = places, whole, order, False
        result = Value(np.broadcast_to(np.empty((), out.dtype), out.shape))
        super().__init__(None, arrays, {}, [result], name=f"{len(arrays)} pieces")

    def targets(self) -> list[tuple[tuple[int, ...], int, tuple[int, ...]]]:
        """The shape of each array's place in the result, its offset and its strides in bytes."""
        memory = np.empty(math.prod(self.whole), self.outs[0].dtype)
        whole = self._indexed(memory)
        indices = [place if isinstance(place, tuple) else (place,) for place in self.places]
        # an ellipsis makes a view of a single element, too
        views = [whole[index if ... in index else (*index, ...)] for index in indices]
        start = memory.ctypes.data
        return [(view.shape, view.ctypes.data - start, view.strides) for view in views]

    def run(self, xp: Reading, *arrays: Any) -> list[Any]:
        """Execute on plain arrays."""
        (out,) = self.outs
        memory = common_memory(xp.lib, arrays) if self.alone else None
        if memory is not None and self._are_in_place(memory, arrays):
            return [memory.reshape(out.shape)]
        memory = xp.lib.empty(math.prod(self.whole), dtype=out.dtype)
        whole = self._indexed(memory)
        for place, array in zip(self.places, arrays, strict=True):
            whole[place] = array
        return [memory.reshape(out.shape)]

    def _indexed(self, memory: Any) -> Any:
        """Flat memory as the array that `places` index."""
        whole = memory.reshape([self.whole[a] for a in self.order])
        return whole.transpose([self.order.index(a) for a in range(len(self.order))])

    def _are_in_place(self, memory: Any, arrays: Sequence[Any]) -> bool:
        """Whether each array is its own place in the flat memory."""
        (out,), size = self.outs, math.prod(self.whole)
        if (memory.size, memory.dtype) != (size, out.dtype):
            return False
        whole = self._indexed(memory)
        parts = (whole[place] for place in self.places)
        return all(
            (pointer(a), a.shape, a.strides) == (pointer(p), p.shape, p.strides)
            for a, p in zip(arrays, parts, strict=True)
        )


def write_pieces_in_place(program: Program, most: int = AT_ONCE) -> Program:
    """Write zero-padded pieces that are added, or more than `most` joined arrays, into one."""
    readers, rewriter = Readers(program), Rewriter(program)
    sums = {id(s): _terms(s, readers) for s in program.steps if is_addition(s)}
    sums = {at: parts for at, parts in sums.items() if _is_partition(parts)}
    added = {id(part) for parts in sums.values() for part in parts}
    for original in program.steps:
        step = rewriter.renamed(original)
        if step.name in ("concat", "stack") and len(step.args[0]) > most:
            _join(step, rewriter)
            continue
        if most == 0 and id(original) not in added and is_padded(step):
            _pad(step, rewriter)
            continue
        if (parts := sums.get(id(original))) is None:
            rewriter.keep(step)
            continue
        (out,), whole = step.outs, step.outs[0].shape
        after = readers.only(out)
        order = axis_order(after) or range(len(whole))
        if after is not None and axis_order(after):
            (out,) = after.outs
            after = readers.only(out)
        if after is not None and is_reshape(after):
            (out,) = after.outs
        arrays = [rewriter.value(p.args[0]) for p in parts]
        places = [p.params["index"] for p in parts]
        pieces = Pieces(arrays, places, whole, order, out)
        pieces.alone = all(_is_read_once(p.args[0], readers) for p in parts)
        _put(rewriter, step, pieces, out)
    return remove_dead(rewriter.program())


def _is_read_once(v: Any, readers: Readers) -> bool:
    """Whether one step reads a value, and nothing else the memory that it may be a view of."""
    maker = readers.maker.get(id(v))
    if readers.only(v) is None or maker is None or maker.op is None:
        return False
    return not v.view or all(_is_read_once(x, readers) for x in maker.inputs)


def write_all_pieces(program: Program) -> Program:
    """The same, with any number of joined arrays, or a single one: C copies each to its place."""
    return write_pieces_in_place(program, most=0)


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


def _is_scattered(step: Step) -> bool:
    return step.name == "scatter_at"  # the gradient of an index, whose pieces may cover a whole


def is_padded(step: Step) -> bool:
    """Whether a step pads an array with zeros."""
    if not _is_scattered(step):
        return False
    (out,) = step.outs
    return (
        out.dtype == step.args[0].dtype and ranges_of(step.params["index"], out.shape) is not None
    )


def _pad(step: Step, rewriter: Rewriter) -> None:
    """Append a padded array as zeros and a piece over them."""
    (out,), (x,) = step.outs, step.args
    zeros = Value(np.broadcast_to(np.zeros((), out.dtype), out.shape), constant=True)
    pieces = Pieces([zeros, x], [..., step.params["index"]], out.shape, range(len(out.shape)), out)
    _put(rewriter, step, pieces, out)


def _terms(add: Step, readers: Readers) -> list[Step]:
    """The steps that make the terms of a chain of additions; none if one does not pad."""
    left, terms = list(add.args), []
    while left:
        a = left.pop()
        maker = readers.maker.get(id(a)) if isinstance(a, Value) else None
        if maker is not None and _is_scattered(maker):
            terms.append(maker)
        elif maker is None or not is_addition(maker) or readers.only(a) is None:
            return []
        else:
            left += maker.args
    return terms[::-1]


def _is_partition(parts: Sequence[Step]) -> bool:
    """Whether each element of the whole is in exactly one piece."""
    if not parts:
        return False
    whole = parts[0].outs[0]
    places = []
    for part in parts:
        (out,), ranges = part.outs, ranges_of(part.params["index"], whole.shape)
        if ranges is None or (out.shape, out.dtype) != (whole.shape, whole.dtype):
            return False
        places.append(ranges)
    return sum(math.prod(map(len, p)) for p in places) == math.prod(whole.shape) and all(
        any(set(a).isdisjoint(b) for a, b in zip(*pair, strict=True))
        for pair in itertools.combinations(places, 2)
    )


def ranges_of(index: Any, shape: tuple[int, ...]) -> list[range] | None:
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
