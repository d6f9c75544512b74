"""Elementwise groups: many steps over one shape, run block by block in the cache.

A chain of ten ops on arrays that do not fit the cache reads and writes main memory twenty times; a
group reads its inputs once and writes its results once. On the CPU a group is a Python function
generated from its steps that goes over blocks of the arrays. Several threads run it on ranges of
blocks, since NumPy releases the interpreter's lock. For ``tanh(y * x)`` it is::

    def group(start, stop, rows, a0, a1, r0, e0):
        for i in range(start, stop, rows):
            j = min(i + rows, stop); n = j - i
            x0 = a0[i:j]
            x1 = a1[i:j]
            y0 = e0[:n]; multiply(x0, x1, y0)
            y1 = r0[i:j]; tanh(y0, y1)
        return []
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from gpugrad.core.backend import NUMPY
from gpugrad.core.threads import run_parallel, workers
from gpugrad.function.cpu.source import Names, compile_function
from gpugrad.trace.program import Program, Step, Value

BLOCK = 32_768
"""Elements of a block: seven float32 arrays of this size fit a cache of 1 MiB."""

SMALLEST = 1 << 18
"""Number of elements above which blocks pay: smaller arrays stay in the cache anyway."""

PART = 1 << 22
"""Elements times steps above which part of a group is worth a thread."""


class Group(Step):
    """Elementwise steps over one shape as one step; `sums` are sums over all elements."""

    __slots__ = ("shape", "steps", "sums")

    def __init__(
        self,
        steps: list[Step],
        sums: list[Step],
        inputs: list[Value],
        outs: list[Value],
        shape: tuple[int, ...],
    ) -> None:
        super().__init__(None, inputs, {}, outs, name=f"group of {len(steps) + len(sums)}")
        self.steps, self.sums, self.shape = steps, sums, shape

    @property
    def parts(self) -> list[Step]:
        """The steps in the group."""
        return [*self.steps, *self.sums]


def ufunc_of(op: Any) -> Any:
    """The NumPy ufunc that an op calls, or None."""
    function = getattr(np, op.forward.name, None) if op.is_library_function else None
    return function if isinstance(function, np.ufunc) else None


def numpy_of(step: Step) -> Any:
    """The field `numpy` of a step's op, if the step's arrays are as its `out` demands, or None."""
    (out,) = step.outs
    kind = out.shape, out.dtype
    plain = out.dtype.char in "fd" and math.prod(out.shape) > 0 and step.op.numpy is not None
    if plain and all(isinstance(a, Value) and (a.shape, a.dtype) == kind for a in step.args):
        return step.op.numpy
    return None


def out_keyword(ufunc: Any) -> str:
    """The text before the result argument: nothing, which is 30 ns faster, or ``out=``."""
    keyword = isinstance(ufunc, functools.partial) or ufunc in (np.maximum, np.minimum)
    return "out=" if keyword else ""


def _is_elementwise(step: Step) -> bool:
    return (
        step.op is not None
        and step.op.by_element
        and step.outs[0].dtype.char not in "eE"  # 16-bit formulas round at the end of each op
    )


def _is_sum(step: Step, shape: tuple[int, ...]) -> bool:
    # of the ops that reduce, only a sum adds up from blocks without a second pass
    sums = step.op is not None and step.op.reduces == "sum" and "axis" in step.params
    if not sums or step.inputs[0].shape != shape:
        return False
    if step.outs[0].dtype.char in "eE":  # the sum is rounded once, but each block would round
        return False
    axis, whole = step.params["axis"], tuple(range(len(shape)))
    every = axis is None or (isinstance(axis, tuple) and tuple(sorted(axis)) == whole)
    return every and step.params.get("dtype") is None and step.outs[0].shape == ()


def find_groups(program: Program) -> Program:
    """Put elementwise steps over one large shape into groups.

    A step joins the last group of its shape and phase, unless it reads a value that a step outside
    the group computes from the group.
    """
    items: list[Any] = []  # steps, and groups as lists of steps
    place: dict[int, int] = {}  # the item that makes a value, by the value's id
    last: dict[Any, int] = {}  # by shape and phase

    for step in program.steps:
        shape = step.outs[0].shape if step.outs else ()
        grouped = _is_elementwise(step) and math.prod(shape) >= SMALLEST
        if not grouped and step.inputs:
            shape = step.inputs[0].shape
            grouped = math.prod(shape) >= SMALLEST and _is_sum(step, shape)
        kind = (shape, step.phase)
        at = last.get(kind, -1) if grouped else -1
        # it may only read values from before the group, or from it
        if at < 0 or any(place.get(id(v), -1) > at for v in step.inputs):
            items.append([step] if grouped else step)
            at = len(items) - 1
            if grouped:
                last[kind] = at
        else:
            items[at].append(step)
        for v in step.outs:
            place[id(v)] = at
    leaving = {id(v) for v in (*program.outputs, *(v for _, v in program.writes))}
    for k, item in enumerate(items):
        steps = item if isinstance(item, list) else [item]
        leaving.update(id(v) for s in steps for v in s.inputs if place.get(id(v)) != k)
    new = program.copy()
    new.steps = []
    for item in items:
        steps = item if isinstance(item, list) else [item]
        new.steps += [_group(steps, leaving)] if _gains(steps) else steps
    return new


def _gains(steps: list[Step]) -> bool:
    """Whether a group saves work: ufuncs that share no value run as fast on their own."""
    if len(steps) == 1 or not all(ufunc_of(step.op) for step in steps):
        return len(steps) > 1  # other functions may round differently on their own
    read = [at for step in steps for at in {id(v) for v in step.inputs}]
    own = {id(v) for step in steps for v in step.outs}
    return len(read) > len({*read}) or not own.isdisjoint(read)


def _group(steps: list[Step], leaving: set[int]) -> Group:
    own = {id(v) for s in steps for v in s.outs}
    inputs = {id(v): v for s in steps for v in s.inputs if id(v) not in own}
    sums = [s for s in steps if s.op.reduces]  # see _is_sum
    body = [s for s in steps if not s.op.reduces]
    outs = [v for s in body for v in s.outs if id(v) in leaving] + [s.outs[0] for s in sums]
    shape = body[0].outs[0].shape if body else sums[0].inputs[0].shape
    return Group(body, sums, list(inputs.values()), outs, shape)


# ---- running -----------------------------------------------------------------------------


def compile_group(group: Group) -> Callable[..., list[Any]]:
    """The function that maps the arrays of the group's inputs to its results' arrays."""
    flat = all(v.shape == group.shape or math.prod(v.shape) == 1 for v in group.inputs)
    shape = (math.prod(group.shape),) if flat else group.shape
    source = _GroupSource(group, flat)
    run = compile_function(source.text, "group", source.scope, "group")
    rows = max(1, BLOCK // max(math.prod(shape[1:]), 1))
    outs = group.outs[: len(group.outs) - len(group.sums)]
    full = [v.shape == group.shape for v in group.inputs]

    def part(start: int, stop: int, arrays: Sequence[Any], results: Sequence[Any]) -> Any:
        spare = [np.empty((min(rows, stop - start), *shape[1:]), d) for d in source.dtypes]
        return run(start, stop, rows, *arrays, *results, *spare)

    def call(*arrays: Any) -> list[Any]:
        inputs: Sequence[Any] = arrays
        if flat:  # one long axis, so arrays that are not contiguous are copied
            inputs = [np.reshape(a, shape if f else ()) for a, f in zip(arrays, full, strict=True)]
        results = [np.empty(shape, v.dtype) for v in outs]
        n = shape[0]
        parts = max(1, min(4 * workers(), math.prod(shape) * len(group.steps) // PART))
        step = -(-n // parts // rows) * rows
        jobs = [(at, min(at + step, n), inputs, results) for at in range(0, n, step)]
        partial_sums = run_parallel(part, jobs)
        outputs = [r.reshape(v.shape) for r, v in zip(results, outs, strict=True)]
        for column, step_ in zip(zip(*partial_sums, strict=True), group.sums, strict=True):
            outputs.append(np.asarray(sum(column), step_.outs[0].dtype))
        return outputs

    return call


class _GroupSource:
    """The text of a group's function.

    Attributes:
        text: the function.
        scope: its globals.
        dtypes: dtypes of the temporary arrays that it takes.
    """

    def __init__(self, group: Group, flat: bool) -> None:
        self._group = group
        self._names: dict[int, str] = {}
        self._lines: list[str] = []
        self._identifiers = Names(("group", "start", "stop", "rows", "i", "j", "n"), "arexys")
        self.scope = self._identifiers.scope
        self.dtypes: list[Any] = []
        for k, v in enumerate(group.inputs):
            along = not flat and len(v.shape) == len(group.shape) and v.shape[0] == group.shape[0]
            sliced = v.shape == group.shape or along
            self._names[id(v)] = f"x{k}" if sliced else f"a{k}"
            if sliced:
                self._lines.append(f"x{k} = a{k}[i:j]")
        self._results = {id(v): k for k, v in enumerate(group.outs[: -len(group.sums) or None])}
        self._steps()
        sums = [f"s{k}" for k in range(len(group.sums))]
        reduce = self._identifiers.bind("add_reduce", np.add.reduce)
        for s, step in zip(sums, group.sums, strict=True):
            self._lines.append(f"{s} = {s} + {reduce}({self._name(step.args[0])}, None)")
        arguments = [f"a{k}" for k in range(len(group.inputs))]
        arguments += [f"r{k}" for k in self._results.values()]
        arguments += [f"e{k}" for k in range(len(self.dtypes))]
        lines = [
            f"def group(start, stop, rows, {', '.join(arguments)}):",
            *(f"    {s} = 0" for s in sums),
            "    for i in range(start, stop, rows):",
            "        j = min(i + rows, stop); n = j - i",
            *(f"        {line}" for line in self._lines),
            f"    return [{', '.join(sums)}]",
        ]
        self.text = "\n".join(lines) + "\n"

    def _name(self, a: Any) -> str:
        if isinstance(a, Value):
            return self._names[id(a)]
        if type(a) in (int, bool) or (type(a) is float and math.isfinite(a)):
            return repr(a)
        return self._identifiers.bind("const", a)

    def _steps(self) -> None:
        group = self._group
        last = {id(v): k for k, s in enumerate([*group.steps, *group.sums]) for v in s.inputs}
        free: dict[Any, list[int]] = {}
        held: dict[int, int] = {}
        for k, step in enumerate(group.steps):
            (out,) = step.outs
            args = ", ".join(map(self._name, step.args))
            ufunc = ufunc_of(step.op) or numpy_of(step)
            ends = [
                held.pop(id(v))
                for v in {id(v): v for v in step.inputs}.values()
                if last[id(v)] == k and id(v) in held
            ]
            if step.op.numpy is None:  # the result may overwrite an argument
                self._give_back(ends, free)
            if id(out) in self._results:
                where = f"r{self._results[id(out)]}[i:j]"
            else:
                spare = free.get(out.dtype)
                if not spare:
                    self.dtypes.append(out.dtype)
                slot = held[id(out)] = spare.pop() if spare else len(self.dtypes) - 1
                where = f"e{slot}[:n]"
            if step.op.numpy is not None:
                self._give_back(ends, free)
            function = ufunc or functools.partial(step.op.bare(NUMPY), **step.params)
            name = self._identifiers.bind(step.op.name, function)
            target = self._names[id(out)] = f"y{k}"
            if ufunc is not None:
                call = f"{name}({args}, {out_keyword(ufunc)}{target})"
            else:
                call = f"{target}[...] = {name}({args})"
            self._lines.append(f"{target} = {where}; {call}")

    def _give_back(self, slots: list[int], free: dict[Any, list[int]]) -> None:
        for slot in slots:
            free.setdefault(self.dtypes[slot], []).append(slot)
