"""The steps of a program that become one kernel on a GPU.

A kernel goes over the elements of one shape, seen as a matrix: the last axis is the columns, all
others together are the rows. It takes elementwise steps with their broadcasts and casts; reductions
along rows, whose results later steps of the kernel may read (so softmax, layer norm and their
gradients, written in plain ops, are one kernel); and final sums over all rows: a second small
kernel adds up the partial sums of the blocks.
"""

from __future__ import annotations

import math
from collections.abc import Set
from typing import Any

import numpy as np

from gpugrad.core.backend import HALF
from gpugrad.function.passes.simplify import remove_dead
from gpugrad.ops._axes import LONG_ROW
from gpugrad.trace.program import Program, Step, Value

MANY_ROWS = 64
"""Rows that are enough blocks, one each, if they are longer than `LONG_ROW`."""

LATE = 1 << 16
"""Bytes up to which a result may be computed later than it could be."""

MOST_IN_C = 100
"""Steps of a kernel in C, at most: the time that compilers take grows with the square of them."""

SAME_ELEMENTS = ("reshape", "broadcast")
"""The views that a kernel makes by counting its elements in another way."""


class FusedKernel(Step):
    """Steps as one kernel over `rows` times `columns` elements.

    Attributes:
        shape: the shape of the elements.
        steps: elementwise steps and reductions along rows, in order.
        sums: the final sums over all rows, for each column or of all elements.
        rounded: ids of values that its own steps read rounded, as they would be in memory.
    """

    __slots__ = ("rounded", "shape", "steps", "sums")

    def __init__(self, steps: list[Step], sums: list[Step], shape: tuple[int, ...]) -> None:
        self.steps, self.sums, self.shape = steps, sums, shape
        self.rounded: frozenset[int] = frozenset()
        super().__init__(None, [], {}, [], name="kernel")

    @property
    def parts(self) -> list[Step]:
        """All its steps."""
        return [*self.steps, *self.sums]

    @property
    def rows(self) -> int:
        """The number of rows."""
        return _rows(self.shape)

    @property
    def columns(self) -> int:
        """Elements of a row."""
        return _columns(self.shape)

    @property
    def reduces_rows(self) -> bool:
        """Whether it has reductions along rows."""
        return any(map(reduction, self.steps))

    @property
    def is_plain(self) -> bool:
        """Whether it is elementwise: all steps go over the kernel's own shape."""
        if self.reduces_rows or len(set(map(reduction, self.sums))) > 1:
            return False
        shapes = {s.outs[0].shape for s in self.steps} | {s.inputs[0].shape for s in self.sums}
        return shapes == {self.shape} and any(v.shape == self.shape for v in self.inputs)

    def is_full(self, v: Value) -> bool:
        """Whether a value has an element for each element of the kernel, row after row."""
        return _columns(v.shape) == self.columns and math.prod(v.shape) == math.prod(self.shape)

    def remove_views(self, leaving: set[int]) -> list[Step]:
        """Remove and return the reshapes that only other steps read: one result, not two."""
        views: list[Step] = []
        for step in reversed(self.steps):
            (out,) = step.outs
            if step.op.view != "reshape" or not out.view or id(out) not in leaving:
                continue
            if not any(v is out for s in self.parts for v in s.inputs):
                self.steps.remove(step)
                leaving.update(map(id, step.inputs))
                views.append(step)
        return views[::-1]

    def close(self, leaving: set[int]) -> None:
        """Find the inputs, and the results that others read."""
        every = self.parts
        own = {id(v) for s in every for v in s.outs}
        read = {id(v): v for s in every for v in s.inputs}
        self.args = tuple(v for v in read.values() if id(v) not in own)
        self.outs = [v for s in every for v in s.outs if id(v) in leaving]
        # all readers see the same value: infinite for one is infinite for all
        rounded = {id(v) for v in self.outs if v.dtype in HALF}
        for step in reversed(self.steps):
            if step.op.view in SAME_ELEMENTS and id(step.outs[0]) in rounded:
                rounded.update(map(id, step.inputs))
        self.rounded |= rounded & read.keys()
        names = [s.name for s in every]
        self.name = f"kernel {'x'.join(map(str, self.shape))} of {', '.join(names)}"


def _rows(shape: tuple[int, ...]) -> int:
    return math.prod(shape[:-1])


def _columns(shape: tuple[int, ...]) -> int:
    return shape[-1] if shape else 1


def _reduces_rows(kernel: tuple[int, ...]) -> bool:
    """Whether one block per row is enough blocks."""
    return _columns(kernel) <= LONG_ROW or _rows(kernel) >= MANY_ROWS


def strided_views(program: Program) -> set[int]:
    """Ids of views that are not contiguous: transposes, slices, broadcasts."""
    views: set[int] = set()
    for step in program.steps:
        straight = step.op is not None and step.op.view == "reshape"
        if step.op is not None and not (straight and views.isdisjoint(map(id, step.inputs))):
            views.update(id(v) for v in step.outs if v.view)
    return views


def axes_of(step: Step) -> tuple[int, ...]:
    """The axes over which a step reduces, sorted."""
    (x, *_), (out,) = step.inputs, step.outs
    n = len(x.shape)
    if "axis" not in step.params:  # sum_to
        shape = (1,) * (n - len(out.shape)) + out.shape
        return tuple(k for k in range(n) if shape[k] != x.shape[k])
    axis = step.params["axis"]
    listed = range(n) if axis is None else axis if isinstance(axis, tuple) else (axis,)
    return tuple(sorted(k % n for k in listed)) if n else ()  # NumPy accepts any axis of a scalar


def reduction(step: Step) -> str | None:
    """How a step reduces: ``"row"``, ``"column"``, ``"all"``, or None if it does not.

    The last two must be sums, since partial results of blocks are added up.
    """
    if step.op is None or step.op.reduces is None or not step.inputs[0].shape:
        return None
    shape, axes = step.inputs[0].shape, axes_of(step)
    if 0 in shape:
        return None
    n = len(shape)
    how = "column" if axes and axes == tuple(range(n - 1)) else None
    if axes == tuple(range(n)):
        how = "row" if math.prod(shape[:-1]) == 1 and shape[-1] <= LONG_ROW else "all"
    elif axes == (n - 1,):
        how = "row"
    return None if how != "row" and step.op.reduces in ("max", "min") else how


def count_of_mean(step: Step) -> int:
    """The number of elements that a mean averages."""
    return math.prod(step.inputs[0].shape) // max(math.prod(step.outs[0].shape), 1)


def _is_elementwise(step: Step) -> bool:
    return step.op is not None and step.op.by_element


class _Finder:
    """Goes through a program once and puts steps into kernels.

    A step joins the last kernel with the same rows and columns, unless it reads something that is
    made after that kernel, or by one of its final sums. Views move up to the step that makes their
    memory.
    """

    def __init__(self, program: Program, apart: Set[int], most: float) -> None:
        self._apart, self._most = apart, most
        self.items: list[Any] = []  # steps and kernels
        self._views: dict[float, list[Step]] = {}  # by place: an item's place plus a half
        self._place: dict[int, float] = {}  # the item that makes a value, by the value's id
        self._ends: set[int] = set()  # ids of the results of final sums
        self._last: dict[tuple[int, int], int] = {}
        for step in program.steps:
            self._put(step)

    def in_order(self) -> list[Any]:
        """The steps and kernels, and the views between them."""
        ordered = list(self._views.get(-0.5, ()))
        for k, item in enumerate(self.items):
            ordered += [item, *self._views.get(k + 0.5, ())]
        return ordered

    def _put(self, step: Step) -> None:
        if step.outs and id(step.outs[0]) in self._apart:
            self._alone(step)
            return
        how = reduction(step)
        if how is None and not _is_elementwise(step) and not self._is_rearranged(step):
            self._alone(step)
            return
        shape = step.inputs[0].shape if how else step.outs[0].shape
        at = self._kernel(step, how, shape)
        if at is None:
            starts = how is not None or _is_elementwise(step)
            if not starts or (how == "row" and not _reduces_rows(shape)):
                self._alone(step)
                return
            at = len(self.items)
            self.items.append(FusedKernel([], [], shape))
            self._last[_rows(shape), _columns(shape)] = at
        kernel = self.items[at]
        (kernel.sums if how in ("column", "all") else kernel.steps).append(step)
        self._place[id(step.outs[0])] = at
        if how in ("column", "all"):
            self._ends.add(id(step.outs[0]))

    def _is_rearranged(self, step: Step) -> bool:
        """Whether a step only reshapes or broadcasts elements of a kernel, which is free there."""
        if step.op is None or step.op.view not in SAME_ELEMENTS or not step.inputs:
            return False
        at = self._place.get(id(step.inputs[0]))
        return type(at) is int and isinstance(self.items[at], FusedKernel)

    def _alone(self, step: Step) -> None:
        if step.op is not None and step.outs and all(v.view for v in step.outs):
            at = max((self._place.get(id(v), -1) for v in step.inputs), default=-1)
            place = at if type(at) is float else at + 0.5
            self._views.setdefault(place, []).append(step)
        else:
            place = len(self.items)
            self.items.append(step)
        for v in step.outs:
            self._place[id(v)] = place

    def _kernel(self, step: Step, how: str | None, shape: tuple[int, ...]) -> int | None:
        last = self._last.get((_rows(shape), _columns(shape)), -1)
        places = {self._place.get(id(v), -1) for v in step.inputs}
        kernels = {at for at in (last, *places) if type(at) is int and at >= 0}
        for at in sorted(kernels, reverse=True):
            kernel = self.items[at]
            ready = max(places, default=-1) <= at
            if ready and isinstance(kernel, FusedKernel) and self._fits(kernel, at, step, how):
                return at
        return None

    def _fits(self, kernel: FusedKernel, at: int, step: Step, how: str | None) -> bool:
        if len(kernel.steps) + len(kernel.sums) >= self._most:
            return False
        own = [v for v in step.inputs if self._place.get(id(v)) == at]
        if any(id(v) in self._ends for v in own):
            return False
        if how:
            fits = kernel.is_full(step.inputs[0])
            return fits and (how != "row" or _reduces_rows(kernel.shape))
        (out,) = step.outs
        by_row = math.prod(out.shape) == kernel.rows
        if step.op.view not in SAME_ELEMENTS:
            if kernel.is_full(out):
                return all(_broadcasts_rows(v.shape, out.shape) for v in own)
            return bool(own) and by_row and all(v.shape == out.shape for v in own)
        # whether elements keep their row and column in a reshape
        if not own or kernel.is_full(own[0]):
            return bool(own) and kernel.is_full(out)
        if kernel.is_full(out):  # a value per row, broadcast
            return _broadcasts_rows(own[0].shape, out.shape)
        return by_row


def _broadcasts_rows(shape: tuple[int, ...], out: tuple[int, ...]) -> bool:
    """Whether a value in a kernel has the shape `out`, or broadcasts to it along rows."""
    return shape == out or (1,) * (len(out) - len(shape)) + shape == (*out[:-1], 1)


def _skip_broadcasts(program: Program) -> Program:
    """Let elementwise steps read the argument of an explicit broadcast: they broadcast anyway."""
    new = program.copy()
    source = {
        id(s.outs[0]): s.inputs[0]
        for s in program.steps
        if s.op is not None and s.op.view == "broadcast" and s.inputs
    }
    for k, step in enumerate(new.steps):
        if not _is_elementwise(step):
            continue
        args = list(step.args)
        for at, a in enumerate(args):
            if id(a) in source:
                others = [x for x in args[:at] + args[at + 1 :] if isinstance(x, Value)]
                shapes = [v.shape for v in (source[id(a)], *others)]
                if np.broadcast_shapes(*shapes) == step.outs[0].shape:
                    args[at] = source[id(a)]
        if any(a is not b for a, b in zip(args, step.args, strict=True)):
            new.steps[k] = Step(step.op, args, step.params, step.outs)
            new.steps[k].where = step.where
    return remove_dead(new)


def _put_late(program: Program) -> Program:
    """Move small steps that no other step waits for behind all that may be waited for.

    The running statistics of all batch norms of one width are one kernel then, not one for each.
    None moves behind an effect, which may overwrite what it reads.
    """
    n = len(program.steps)
    while n and program.steps[n - 1].op is None:
        n -= 1
    waited: set[int] = {id(v) for s in program.steps[n:] for v in s.inputs}
    late: list[Step] = []
    early: list[Step] = []
    for k, step in reversed([*enumerate(program.steps[:n])]):
        if step.call is not None:
            early += program.steps[k::-1]
            break
        free = _is_elementwise(step) or (step.op is not None and step.op.view == "reshape")
        small = all(v.nbytes <= LATE and id(v) not in waited for v in step.outs)
        if free and small:
            late.append(step)
        else:
            early.append(step)
            waited.update(id(v) for v in step.inputs)
    new = program.copy()
    new.steps = [*early[::-1], *late[::-1], *program.steps[n:]]
    return new


def _spread_late(program: Program) -> Program:
    """Move outer sums, products and the like, larger than their arguments, to their first reader.

    They join its kernel then, and are never in memory. None moves behind an effect.
    """
    waiting: dict[int, Step] = {}
    new = program.copy()
    new.steps = []

    def put(step: Step) -> None:
        for v in step.inputs:
            if (maker := waiting.pop(id(v), None)) is not None:
                put(maker)
        new.steps.append(step)

    for step in program.steps:
        if step.op is None or step.call is not None:
            while waiting:
                put(waiting.pop(next(iter(waiting))))
        grows = _is_elementwise(step) and step.outs[0].nbytes > sum(v.nbytes for v in step.inputs)
        if grows and step.inputs and step.outs[0].nbytes > LATE:
            waiting[id(step.outs[0])] = step
        else:
            put(step)
    while waiting:
        put(waiting.pop(next(iter(waiting))))
    return new


def fuse_groups_in_c(program: Program, apart: Set[int] = frozenset()) -> Program:
    """`fuse_groups` for kernels that a C++ compiler reads."""
    return fuse_groups(program, apart, MOST_IN_C)


def fuse_groups(program: Program, apart: Set[int] = frozenset(), most: float = math.inf) -> Program:
    """Put the steps of a program into kernels.

    Args:
        program: the program.
        apart: ids of the first results of steps that stay outside.
        most: steps of a kernel, at most.
    """
    new = _put_late(_spread_late(_skip_broadcasts(program)))
    items = _Finder(new, apart, most).in_order()
    leaving = {id(v) for v in (*program.outputs, *(v for _, v in program.writes))}
    for item in items:
        if not isinstance(item, FusedKernel):
            leaving.update(id(v) for v in item.inputs)
    kernels = [(k, item) for k, item in enumerate(items) if isinstance(item, FusedKernel)]
    maker = {id(v): k for k, kernel in kernels for s in kernel.parts for v in s.outs}
    for k, kernel in kernels:
        read = [v for s in kernel.parts for v in s.inputs]
        leaving.update(id(v) for v in read if maker.get(id(v), k) != k)
    new.steps = []
    for item in items:
        new.steps.append(item)
        if isinstance(item, FusedKernel):
            new.steps += item.remove_views(leaving)
            item.close(leaving)
    return new


def launches(program: Program) -> list[str]:
    """The kernels that a program launches on a GPU, by name."""
    names: list[str] = []
    for step in program.steps:
        if isinstance(step, FusedKernel):
            names.append(step.name)
            if step.sums and step.rows > 1:
                names.append(f"partial sums of {', '.join(s.name for s in step.sums)}")
        elif step.op is None or not all(v.view for v in step.outs):
            names.append(step.name)
    return names
