"""Lets kernels recompute values instead of reading them, if that moves fewer bytes.

Matrix products separate forward kernels from backward ones, so a value that one computes for the
other goes through memory, however cheap it is. Here a kernel gets copies of the steps that compute
such a value from its own inputs, or from other values in memory, if

- they are few and elementwise: at most `STEPS`, with at most `CALLS` functions like exp. An H100
  does about 20 float32 operations in the time in which it moves a byte of memory;
- the kernels together then move fewer bytes, or as many while fewer are held between them;
- no more memory is held at any time: values kept longer are no larger than values freed. Nothing is
  read after an optimizer or another step has overwritten it;
- a kernel's sums are added in the same order.

The same formulas run on the same values, including those that memory rounds to 16 bits. Only the
compiler's choice remains: one rounding or two for a product and a sum.
"""

from __future__ import annotations

import copy
import math
from collections.abc import Iterable
from typing import Any, NamedTuple

from gpugrad.core.backend import HALF
from gpugrad.function.memory import roots_of
from gpugrad.function.passes.fuse import SAME_ELEMENTS, FusedKernel, reduction, strided_views
from gpugrad.function.passes.in_place import overwriting
from gpugrad.trace.program import Program, Step, Value

STEPS = 16
CALLS = 2


def recompute(program: Program) -> Program:
    """Let kernels recompute values that they read; `program` itself does not change."""
    new = program.copy()
    new.steps = _Exchange(program).items()
    return new


def moved(kernels: Iterable[FusedKernel]) -> int:
    """The bytes that kernels read and write."""
    return sum(v.nbytes for kernel in kernels for v in (*kernel.inputs, *kernel.outs))


class _Again(NamedTuple):
    """A kernel that recomputes a value, its place, and its new inputs."""

    kernel: FusedKernel
    place: int
    leaves: list[Value]


class _Exchange:
    """Goes through the results of kernels, from the last kernel to the first."""

    def __init__(self, program: Program) -> None:
        self._items: list[Any] = list(program.steps)
        self._roots = roots_of(program)
        self._sharing: dict[int, list[Value]] = {}  # by root: the values in its memory
        self._readers: dict[int, set[int]] = {}
        self._strided = strided_views(program)
        self._overwritten: dict[int, int] = {}  # by root: the first step that overwrites it
        for v in program.values():
            self._sharing.setdefault(self._roots.get(id(v), id(v)), []).append(v)
        over = overwriting(program)
        for k, step in enumerate(self._items):
            for v in step.inputs:
                self._readers.setdefault(id(v), set()).add(k)
            moves = step.args[len(step.args) - len(step.variables) :]
            for v in step.inputs if id(step) in over else moves:
                self._overwritten.setdefault(self._roots.get(id(v), id(v)), k)
        leaving = (*program.outputs, *(v for _, v in program.writes))
        self._leaving = {id(v) for v in leaving}
        stay = (*leaving, *program.inputs, *(v for _, v in program.reads))
        self._stay = {self._roots.get(id(v), id(v)) for v in stay}
        for place in reversed(range(len(self._items))):
            self._spare: dict[int, int] = {}  # bytes freed from here to a place, by that place
            while sum(self._exchanged(place, v) for v in self._written(place)):
                pass  # an exchange may make others worthwhile

    def items(self) -> list[Any]:
        """The steps and kernels, without kernels that have no results left."""
        return [item for item in self._items if not isinstance(item, FusedKernel) or item.outs]

    def _written(self, place: int) -> list[Value]:
        item = self._items[place]
        return list(item.outs) if isinstance(item, FusedKernel) else []

    def _exchanged(self, place: int, v: Value) -> bool:
        """Try to let all readers, or some, recompute a value of the kernel at `place`."""
        readers = sorted(self._readers.get(id(v), ()))
        kernels = [k for k in readers if isinstance(self._items[k], FusedKernel)]
        if kernels == readers and self._tried(place, v, kernels):
            return True
        return sum(self._tried(place, v, [k]) for k in kernels) > 0

    def _tried(self, place: int, v: Value, kernels: list[int]) -> bool:
        """Exchange if that is worthwhile."""
        source = self._items[place]
        others = {id(out) for out in source.outs if out is not v}
        for stops in (others, set[int]()):
            attempts = [_again(source, v, self._items[k], k, stops) for k in kernels]
            known = [again for again in attempts if again]
            if kernels and len(known) == len(kernels) and self._done(place, v, known):
                return True
        return False

    def _done(self, place: int, v: Value, known: list[_Again]) -> bool:
        source = self._items[place]
        free = {again.place for again in known} == self._readers[id(v)]
        free = free and id(v) not in self._leaving
        leaves = {id(leaf): (leaf, again.place) for again in known for leaf in again.leaves}
        last = max(again.place for again in known)
        freed, held = v.nbytes if free else 0, set[int]()
        for leaf, k in leaves.values():
            root = self._roots.get(id(leaf), id(leaf))
            if id(leaf) in self._strided or self._overwritten.get(root, k) < k:
                return False
            if root not in held and leaf.constant is None and not self._is_held(root, k):
                freed -= max(x.nbytes for x in self._sharing.get(root, [leaf]))
                held.add(root)
        own = {id(out) for s in source.steps for out in s.outs}
        wanted = {id(out) for out in source.outs if out is not v or not free}
        rest = _cut(source, wanted | own & leaves.keys())
        before = [source, *(self._items[again.place] for again in known)]
        after = [rest, *(again.kernel for again in known)]
        gained = moved(before) - moved(after)
        spare = self._spare.get(last, 0) + freed
        if gained < 0 or spare < 0 or (gained == 0 and freed <= 0):
            return False
        pairs = zip(before, after, strict=True)
        if any(b.outs and _iteration(a) != _iteration(b) for a, b in pairs):
            return False
        for k, kernel in zip((place, *(again.place for again in known)), after, strict=True):
            for x in self._items[k].inputs:
                self._readers[id(x)].discard(k)
            for x in kernel.inputs:
                self._readers.setdefault(id(x), set()).add(k)
                self._sharing.setdefault(self._roots.get(id(x), id(x)), [x])
            self._items[k] = kernel
        self._spare[last] = spare
        return True

    def _is_held(self, root: int, place: int) -> bool:
        """Whether memory is already needed at a place or after it."""
        return root in self._stay or any(
            k >= place for v in self._sharing.get(root, ()) for k in self._readers.get(id(v), ())
        )


def _again(
    source: FusedKernel, v: Value, kernel: FusedKernel, place: int, stops: set[int]
) -> _Again | None:
    """The `kernel` at a place, which recomputes a value of `source` instead of reading it.

    It may read the values of `source` with the ids `stops`. None if that is impossible, or takes
    too many steps.
    """
    if (source.rows, source.columns) != (kernel.rows, kernel.columns):
        return None
    stops = stops | set(map(id, kernel.inputs))
    chain: list[Step] = []
    calls = 0
    needed, read = {id(v): v}, dict[int, Value]()
    for step in reversed(source.steps):
        (out,) = step.outs
        if id(out) not in needed:
            continue
        del needed[id(out)]
        # a 16-bit value has more bits in the kernel that makes it
        read_instead = id(out) in stops or not source.is_full(out)
        if out is not v and read_instead and out.dtype not in HALF:
            read[id(out)] = out
            continue
        if not source.is_full(out) or out.dtype.kind == "c":
            return None
        if (cost := _cost(step)) is None:
            return None
        calls += cost
        chain.append(step)
        needed.update((id(x), x) for x in step.inputs)
    if id(v) in needed or len(chain) > STEPS or calls > CALLS:
        return None
    now: dict[int, Value] = {}
    steps = [_renamed(step, now, fresh=True) for step in reversed(chain)]
    last = now[id(v)]
    rounded = {id(last), *(id(now[k]) for k in source.rounded & now.keys())}
    now = {id(v): last}
    new = FusedKernel(
        [*steps, *(_renamed(step, now) for step in kernel.steps)],
        [_renamed(step, now) for step in kernel.sums],
        kernel.shape,
    )
    new.rounded = kernel.rounded | rounded
    new.close(set(map(id, kernel.outs)))
    before = set(map(id, kernel.inputs))
    return _Again(new, place, [x for x in new.inputs if id(x) not in before])


def _cost(step: Step) -> int | None:
    return 0 if step.op.view in SAME_ELEMENTS else step.op.cost


def _renamed(step: Step, now: dict[int, Value], fresh: bool = False) -> Step:
    """A copy of a step that reads other values; with `fresh` it also has a new result."""
    new = copy.copy(step)
    new.args = tuple(now.get(id(a), a) for a in step.args)
    new.results = []
    if fresh:
        new.outs = [copy.copy(step.outs[0])]
        now[id(step.outs[0])] = new.outs[0]
    return new


def _cut(kernel: FusedKernel, wanted: set[int]) -> FusedKernel:
    needed = wanted | {id(v) for s in kernel.sums for v in s.inputs}
    steps = []
    for step in reversed(kernel.steps):
        if id(step.outs[0]) in needed:
            steps.append(step)
            needed.update(map(id, step.inputs))
    new = FusedKernel(steps[::-1], kernel.sums, kernel.shape)
    new.rounded = kernel.rounded
    new.close(wanted)
    return new


def _iteration(kernel: FusedKernel) -> Any:
    """The shape by which a kernel iterates over its elements, which orders its sums."""
    if not kernel.sums and not kernel.reduces_rows:
        return kernel.is_plain
    along = [v for v in kernel.inputs if v.shape[-1:] == (kernel.columns,)]
    sizes = [v.dtype.itemsize for v in along]
    sizes += [v.dtype.itemsize for s in kernel.steps for v in s.outs if v in kernel.outs]
    strided = set()  # shapes of inputs that keep axes from being merged
    if kernel.is_plain:
        others = [v.shape for v in kernel.inputs if v.shape != kernel.shape]
        strided = {shape for shape in others if math.prod(shape) > 1}
        if not any(reduction(s) == "all" for s in kernel.sums):
            strided -= {v.shape for v in along if math.prod(v.shape) == kernel.columns}
    return kernel.is_plain, min(sizes, default=0), max(sizes, default=0), strided
