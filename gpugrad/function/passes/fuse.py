"""Which steps of a program become one kernel on a GPU.

A kernel goes over the elements of one shape, seen as rows: all axes but the last, and the last.
It takes elementwise steps with their broadcasts and casts; reductions along rows, whose results
later steps of the kernel may read (so softmax, layer norm and their gradients, written in plain
ops, are one kernel); and sums over all rows, which it ends with: a second small kernel adds up
what the blocks of the first have found.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from gpugrad.core.backend import HALF
from gpugrad.function.passes.dead import remove_dead
from gpugrad.trace.program import Program, Step, Value

__all__ = [
    "LONG_ROW", "SAME_ELEMENTS", "Kernel", "axes_of", "fuse", "launches", "reduction",
    "views_apart",
]  # fmt: skip

LONG_ROW = 8192
"""Elements of a row from which on a block for each row is too few blocks, unless rows are many."""

MANY_ROWS = 64

SAME_ELEMENTS = ("reshape", "broadcast")
"""The views that a kernel makes by counting its elements in another way."""


class Kernel(Step):
    """Steps as one kernel over `rows` times `columns` elements.

    Attributes:
        shape: of the elements.
        steps: elementwise ones and reductions along rows, in order.
        sums: what it ends with: sums over all rows, for each column or of everything.
        rounded: ids of values that its own steps read as memory would hold them.
    """

    __slots__ = ("rounded", "shape", "steps", "sums")

    def __init__(self, steps: list[Step], sums: list[Step], shape: tuple[int, ...]) -> None:
        self.steps, self.sums, self.shape = steps, sums, shape
        self.rounded: frozenset[int] = frozenset()
        super().__init__(None, [], {}, [], name="kernel")

    @property
    def parts(self) -> list[Step]:
        """The steps of which it is made."""
        return [*self.steps, *self.sums]

    @property
    def rows(self) -> int:
        """How many rows there are."""
        return math.prod(self.shape[:-1])

    @property
    def columns(self) -> int:
        """Elements of a row."""
        return self.shape[-1] if self.shape else 1

    @property
    def reduces_rows(self) -> bool:
        """Whether it has reductions along rows."""
        return any(map(reduction, self.steps))

    @property
    def is_plain(self) -> bool:
        """Whether it is a function of elements: all steps go over its shape itself."""
        if self.reduces_rows or len(set(map(reduction, self.sums))) > 1:
            return False
        shapes = {s.outs[0].shape for s in self.steps} | {s.inputs[0].shape for s in self.sums}
        return shapes == {self.shape} and any(v.shape == self.shape for v in self.inputs)

    def is_full(self, v: Value) -> bool:
        """Whether a value has an element for each of the kernel's."""
        return _Space(self.shape).is_full(v.shape)

    def part_with_views(self, leaving: set[int]) -> list[Step]:
        """The reshapes that only others read, no longer its own: views of one result, not two."""
        found: list[Step] = []
        for step in reversed(self.steps):
            read = {id(v) for s in self.parts for v in s.inputs}
            (out,) = step.outs
            if (
                step.op.view == "reshape"
                and out.view
                and id(out) in leaving
                and id(out) not in read
            ):
                self.steps.remove(step)
                leaving.update(map(id, step.inputs))
                found.append(step)
        return found[::-1]

    def close(self, leaving: set[int]) -> None:
        """Find the inputs, and the results that others read."""
        every = self.parts
        own = {id(v) for s in every for v in s.outs}
        read = {id(v): v for s in every for v in s.inputs}
        self.args = tuple(v for v in read.values() if id(v) not in own)
        self.outs = [v for s in every for v in s.outs if id(v) in leaving]
        # all readers see one value, not some of them an infinity that others do not
        held = {id(v) for v in self.outs if v.dtype in HALF}
        for step in reversed(self.steps):
            if step.op.view in SAME_ELEMENTS and id(step.outs[0]) in held:
                held.update(map(id, step.inputs))
        self.rounded |= held & read.keys()
        names = [s.name for s in every]
        self.name = f"kernel {'x'.join(map(str, self.shape))} of {', '.join(names)}"


class _Space:
    """The rows and columns that a kernel goes over, and how values lie in them."""

    def __init__(self, shape: tuple[int, ...]) -> None:
        self.shape = shape
        self.rows, self.columns = math.prod(shape[:-1]), shape[-1] if shape else 1

    def is_full(self, shape: tuple[int, ...]) -> bool:
        """Whether an array of this shape has a value for each element, row after row."""
        last = shape[-1] if shape else 1
        return last == self.columns and math.prod(shape) == self.rows * self.columns

    def is_row(self, shape: tuple[int, ...]) -> bool:
        """Whether it has a value for each row."""
        return math.prod(shape) == self.rows

    def reduces_rows(self) -> bool:
        """Whether a block for each row is enough blocks."""
        return self.columns <= LONG_ROW or self.rows >= MANY_ROWS


def views_apart(program: Program) -> set[int]:
    """Ids of views whose elements do not lie side by side: transposes, slices, broadcasts."""
    found: set[int] = set()
    for step in program.steps:
        straight = step.op is not None and step.op.view == "reshape"
        if step.op is not None and not (straight and found.isdisjoint(map(id, step.inputs))):
            found.update(id(v) for v in step.outs if v.view)
    return found


def axes_of(step: Step) -> tuple[int, ...]:
    """The axes over which a step reduces, sorted."""
    (given, *_), (out,) = step.inputs, step.outs
    n = len(given.shape)
    if "axis" not in step.params:  # as of sum_to
        shape = (1,) * (n - len(out.shape)) + out.shape
        return tuple(k for k in range(n) if shape[k] != given.shape[k])
    axis = step.params["axis"]
    listed = range(n) if axis is None else axis if isinstance(axis, tuple) else (axis,)
    return tuple(sorted(k % n for k in listed)) if n else ()  # NumPy takes any axis of a number


def reduction(step: Step) -> str | None:
    """``"row"``, ``"column"`` or ``"all"``: over what a step reduces; None if it is none.

    The last two are sums, as what blocks have found is added up.
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


def _is_elementwise(step: Step) -> bool:
    return step.op is not None and step.op.by_element


class _Finder:
    """Goes through a program once and puts steps into kernels.

    A step joins the last kernel of its rows and columns, unless what it reads is made after that
    kernel, or by a sum with which it ends. Views of memory go up to where that is made.
    """

    def __init__(self, program: Program) -> None:
        self.items: list[Any] = []  # steps and kernels
        self._views: dict[float, list[Step]] = {}  # by their place: half behind an item's
        self._place: dict[int, float] = {}  # of the item that makes a value
        self._ends: set[int] = set()  # values with which a kernel ends
        self._last: dict[tuple[int, int], int] = {}
        for step in program.steps:
            self._put(step)

    def in_order(self) -> list[Any]:
        """The steps and kernels, and the views between them."""
        found = list(self._views.get(-0.5, ()))
        for k, item in enumerate(self.items):
            found += [item, *self._views.get(k + 0.5, ())]
        return found

    def _put(self, step: Step) -> None:
        how = reduction(step)
        if how is None and not _is_elementwise(step) and not self._is_rearranged(step):
            self._alone(step)
            return
        shape = step.inputs[0].shape if how else step.outs[0].shape
        at = self._kernel(step, how, shape)
        if at is None:
            starts = how is not None or _is_elementwise(step)
            if not starts or (how == "row" and not _Space(shape).reduces_rows()):
                self._alone(step)
                return
            at = len(self.items)
            self.items.append(Kernel([], [], shape))
            self._last[_Space(shape).rows, _Space(shape).columns] = at
        kernel = self.items[at]
        (kernel.sums if how in ("column", "all") else kernel.steps).append(step)
        self._place[id(step.outs[0])] = at
        if how in ("column", "all"):
            self._ends.add(id(step.outs[0]))

    def _is_rearranged(self, step: Step) -> bool:
        """Whether it gives elements of a kernel another shape, which costs nothing there."""
        if step.op is None or step.op.view not in SAME_ELEMENTS or not step.inputs:
            return False
        at = self._place.get(id(step.inputs[0]))
        return type(at) is int and isinstance(self.items[at], Kernel)

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
        """The kernel that a step may join."""
        found = self._last.get((_Space(shape).rows, _Space(shape).columns), -1)
        places = {self._place.get(id(v), -1) for v in step.inputs}
        kernels = {at for at in (found, *places) if type(at) is int and at >= 0}
        for at in sorted(kernels, reverse=True):
            kernel = self.items[at]
            ready = max(places, default=-1) <= at
            if ready and isinstance(kernel, Kernel) and self._fits(kernel, at, step, how):
                return at
        return None

    def _fits(self, kernel: Kernel, at: int, step: Step, how: str | None) -> bool:
        own = [v for v in step.inputs if self._place.get(id(v)) == at]
        if any(id(v) in self._ends for v in own):
            return False
        space = _Space(kernel.shape)
        if how:
            fits = space.is_full(step.inputs[0].shape)
            return fits and (how != "row" or space.reduces_rows())
        (out,) = step.outs
        if step.op.view in SAME_ELEMENTS:
            return self._keeps(space, own[0].shape, out.shape) if own else False
        if space.is_full(out.shape):
            return all(_reaches(v.shape, out.shape) for v in own)
        return bool(own) and space.is_row(out.shape) and all(v.shape == out.shape for v in own)

    def _keeps(self, space: _Space, given: tuple[int, ...], out: tuple[int, ...]) -> bool:
        """Whether elements keep their row and column when their array takes another shape."""
        if space.is_full(given):
            return space.is_full(out)
        if space.is_full(out):  # a value for each row, broadcast
            return _reaches(given, out)
        return space.is_row(out)


def _reaches(given: tuple[int, ...], out: tuple[int, ...]) -> bool:
    """Whether a value in a kernel is broadcast along rows to the elements of `out`."""
    return given == out or (1,) * (len(out) - len(given)) + given == (*out[:-1], 1)


def _through_broadcasts(program: Program) -> Program:
    """Let elementwise steps read what was broadcast for them, as they broadcast it themselves."""
    made = program.copy()
    source = {id(s.outs[0]): s.inputs[0] for s in program.steps
              if s.op is not None and s.op.view == "broadcast" and s.inputs}  # fmt: skip
    for k, step in enumerate(made.steps):
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
            made.steps[k] = Step(step.op, args, step.params, step.outs)
    return remove_dead(made)


def fuse(program: Program) -> Program:
    """Put the steps of a program into kernels."""
    made = _through_broadcasts(program)
    items = _Finder(made).in_order()
    leaving = {id(v) for v in (*program.outputs, *(v for _, v in program.writes))}
    for item in items:
        if not isinstance(item, Kernel):
            leaving.update(id(v) for v in item.inputs)
    maker = {id(v): k for k, item in enumerate(items) if isinstance(item, Kernel)
             for s in item.parts for v in s.outs}  # fmt: skip
    for k, item in enumerate(items):
        if isinstance(item, Kernel):
            read = [v for s in item.parts for v in s.inputs]
            leaving.update(id(v) for v in read if maker.get(id(v), k) != k)
    made.steps = []
    for item in items:
        made.steps.append(item)
        if isinstance(item, Kernel):
            made.steps += item.part_with_views(leaving)
            item.close(leaving)
    return made


def launches(program: Program) -> list[str]:
    """The kernels that a program launches on a GPU, by name."""
    found: list[str] = []
    for step in program.steps:
        if isinstance(step, Kernel):
            found.append(step.name)
            if step.sums and step.rows > 1:
                found.append(f"what blocks add to {', '.join(s.name for s in step.sums)}")
        elif step.op is None or not all(v.view for v in step.outs):
            found.append(step.name)
    return found
