"""Elementwise groups: many steps over one shape, run block by block in the cache.

A chain of ten ops on arrays that do not fit the cache reads and writes main memory twenty times;
as a group it reads what comes in once and writes what goes out once. On the CPU a group is a
Python function, written out for its steps, of blocks of the arrays; several threads run it on
ranges of blocks, which they can since NumPy lets go of the interpreter's lock. For
``tanh(y * x)`` it is::

    def group(start, stop, rows, a0, a1, r0, e0):
        for i in range(start, stop, rows):
            j = min(i + rows, stop); n = j - i
            x0 = a0[i:j]
            x1 = a1[i:j]
            y0 = e0[:n]; f0(x0, x1, y0)
            y1 = r0[i:j]; f1(y0, y1)
"""

from __future__ import annotations

import concurrent.futures
import functools
import math
import os
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from gpugrad.backend import NUMPY
from gpugrad.trace import Program, Step, Value

__all__ = ["BLOCK", "Group", "find_groups"]

BLOCK = 16_384
"""Elements of a block: five float32 arrays of them fit a cache of 512 KiB."""

SMALLEST = 1 << 15
"""Elements from which on blocks are worth their loop."""


class Group(Step):
    """Elementwise steps over one shape as one step; `sums` are sums over all of it."""

    __slots__ = ("shape", "steps", "sums")

    def __init__(
        self, steps: list[Step], sums: list[Step], inputs: list[Value], outs: list[Value],
        shape: tuple[int, ...],
    ) -> None:  # fmt: skip
        super().__init__(None, inputs, {}, outs, name=f"group of {len(steps) + len(sums)}")
        self.steps, self.sums, self.shape = steps, sums, shape


def ufunc_of(op: Any) -> Any:
    """NumPy's ufunc that an op is, or None."""
    function = getattr(np, op.forward.name, None) if op.is_library_function else None
    return function if isinstance(function, np.ufunc) else None


def _is_elementwise(step: Step) -> bool:
    return (
        step.op is not None
        and (step.op.kind == "elementwise" or step.op.name == "astype")
        and step.outs[0].dtype.char not in "eE"  # their formulas round at the end of each op
    )


def _is_sum(step: Step, shape: tuple[int, ...]) -> bool:
    if step.op is None or step.op.name != "sum" or step.inputs[0].shape != shape:
        return False
    axis, whole = step.params["axis"], tuple(range(len(shape)))
    every = axis is None or (isinstance(axis, tuple) and tuple(sorted(axis)) == whole)
    return every and step.params.get("dtype") is None and step.outs[0].shape == ()


def find_groups(program: Program) -> Program:
    """Put elementwise steps over one large shape into groups.

    A step joins the last group of its shape, unless what it reads comes, through a step that is
    not in the group, from the group itself.
    """
    made = program.copy()
    items: list[Any] = []  # steps, and lists of steps: the groups
    place: dict[int, int] = {}  # of the item that makes a value
    deepest: dict[int, int] = {}  # the last item that a value depends on, besides its own group
    last: dict[tuple[int, ...], int] = {}

    for step in program.steps:
        shape = step.outs[0].shape if step.outs else ()
        grouped = _is_elementwise(step) and math.prod(shape) >= SMALLEST
        if not grouped and step.inputs:
            shape = step.inputs[0].shape
            grouped = math.prod(shape) >= SMALLEST and _is_sum(step, shape)
        needs = max((place.get(id(v), -1) for v in step.inputs), default=-1)
        at = last.get(shape, -1) if grouped else -1
        # all that it reads is made before the group, or in it
        if at < 0 or any(place.get(id(v), -1) > at for v in step.inputs):
            items.append([step] if grouped else step)
            at = len(items) - 1
            if grouped:
                last[shape] = at
        else:
            items[at].append(step)
        for v in step.outs:
            place[id(v)], deepest[id(v)] = at, needs
    outside: dict[int, set[int]] = {}  # the items that read a value
    for k, item in enumerate(items):
        for step in item if isinstance(item, list) else [item]:
            for v in step.inputs:
                outside.setdefault(id(v), set()).add(k)
    kept = {id(v) for v in (*program.outputs, *(v for _, v in program.writes))}
    made.steps = []
    for k, item in enumerate(items):
        if not isinstance(item, list):
            made.steps.append(item)
        elif len(item) == 1:
            made.steps.append(item[0])
        else:
            made.steps.append(
                _group(item, lambda v, k=k: id(v) in kept or outside.get(id(v), set()) - {k})
            )
    return made


def _group(steps: list[Step], leaves: Callable[[Value], Any]) -> Group:
    own = {id(v) for s in steps for v in s.outs}
    inputs = {id(v): v for s in steps for v in s.inputs if id(v) not in own}
    sums = [s for s in steps if s.op.name == "sum"]
    body = [s for s in steps if s.op.name != "sum"]
    outs = [v for s in body for v in s.outs if leaves(v)] + [s.outs[0] for s in sums]
    return Group(
        body,
        sums,
        list(inputs.values()),
        outs,
        body[0].outs[0].shape if body else sums[0].inputs[0].shape,
    )


# ---- running -----------------------------------------------------------------------------


@functools.cache
def _pool() -> concurrent.futures.ThreadPoolExecutor:
    return concurrent.futures.ThreadPoolExecutor(_threads(), "gpugrad")


def _threads() -> int:
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def compile_group(group: Group) -> Callable[..., list[Any]]:
    """A function of the arrays of the group's inputs that returns those of its outs."""
    full = [v for v in group.inputs if v.shape == group.shape]
    flat = all(v.shape == group.shape or math.prod(v.shape) == 1 for v in group.inputs)
    shape = (math.prod(group.shape),) if flat else group.shape
    text, scope, temporaries = _text(group, flat, [v.dtype for v in full])
    exec(text, scope)
    run = scope["group"]
    per_row = math.prod(shape[1:])
    rows = max(1, BLOCK // max(per_row, 1))
    n_sums = len(group.sums)
    outs = [v for v in group.outs if v.shape == group.shape][: len(group.outs) - n_sums]

    def part(start: int, stop: int, arrays: Sequence[Any], results: Sequence[Any]) -> Any:
        spare = [np.empty((min(rows, stop - start), *shape[1:]), d) for d in temporaries]
        return run(start, stop, rows, *arrays, *results, *spare)

    def call(*arrays: Any) -> list[Any]:
        given = [
            np.ascontiguousarray(a).reshape(shape) if v.shape == group.shape and flat else a
            for a, v in zip(arrays, group.inputs, strict=True)
        ]
        if flat:
            given = [a if v.shape == group.shape else np.reshape(a, ()) for a, v in
                     zip(given, group.inputs, strict=True)]  # fmt: skip
        results = [np.empty(shape, v.dtype) for v in outs]
        n = shape[0]
        threads = min(_threads(), max(1, n // (2 * rows)))
        if threads == 1:
            sums = [part(0, n, given, results)]
        else:
            step = -(-n // threads // rows) * rows or rows
            futures = [
                _pool().submit(part, start, min(start + step, n), given, results)
                for start in range(0, n, step)
            ]
            sums = [f.result() for f in futures]
        totals = [np.asarray(sum(column[1:], column[0])) for column in zip(*sums, strict=True)]
        return [r.reshape(v.shape) for r, v in zip(results, outs, strict=True)] + [
            t.astype(s.outs[0].dtype, copy=False) for t, s in zip(totals, group.sums, strict=True)
        ]

    return call


def _text(group: Group, flat: bool, _: Any) -> tuple[str, dict[str, Any], list[Any]]:
    """The group's function as text, what it names, and the dtypes of its temporaries."""
    names: dict[int, str] = {}
    lines, scope = [], {}
    arguments = []
    for k, v in enumerate(group.inputs):
        arguments.append(f"a{k}")
        sliced = v.shape == group.shape or (
            not flat and len(v.shape) == len(group.shape) and v.shape[0] == group.shape[0]
        )
        names[id(v)] = f"x{k}" if sliced else f"a{k}"
        if sliced:
            lines.append(f"x{k} = a{k}[i:j]")
    n_outs = len(group.outs) - len(group.sums)
    results = {id(v): k for k, v in enumerate(group.outs[:n_outs])}
    last = {}
    for s, step in enumerate([*group.steps, *group.sums]):
        for v in step.inputs:
            last[id(v)] = s
    dtypes: list[Any] = []
    free: dict[Any, list[int]] = {}
    held: dict[int, int] = {}
    for s, step in enumerate(group.steps):
        (out,) = step.outs
        given = []
        for a in step.args:
            if isinstance(a, Value):
                given.append(names[id(a)])
            else:
                key = f"n{len(scope)}"
                scope[key] = a
                given.append(key)
        for v in {id(v): v for v in step.inputs}.values():  # in place, where it ends here
            if last.get(id(v)) == s and id(v) in held and id(v) not in results:
                free.setdefault(v.dtype, []).append(held.pop(id(v)))
        target = f"y{s}"
        if id(out) in results:
            where = f"r{results[id(out)]}[i:j]"
        else:
            spare = free.get(out.dtype)
            if spare:
                slot = spare.pop()
            else:
                slot = len(dtypes)
                dtypes.append(out.dtype)
            held[id(out)] = slot
            where = f"e{slot}[:n]"
        function = f"f{s}"
        ufunc = ufunc_of(step.op)
        if ufunc is not None and out.shape == group.shape:
            scope[function] = ufunc
            named = "out=" if ufunc in (np.maximum, np.minimum) else ""
            lines.append(f"{target} = {where}; {function}({', '.join(given)}, {named}{target})")
        else:
            scope[function] = functools.partial(step.op.bare(NUMPY), **step.params)
            lines.append(f"{target} = {where}; {target}[...] = {function}({', '.join(given)})")
        names[id(out)] = target
    sums = []
    for k, step in enumerate(group.sums):
        lines.append(f"s{k} = s{k} + add_reduce({names[id(step.inputs[0])]}, None)")
        sums.append(f"s{k}")
    scope["add_reduce"] = np.add.reduce
    arguments += [f"r{k}" for k in range(n_outs)] + [f"e{k}" for k in range(len(dtypes))]
    head = [f"def group(start, stop, rows, {', '.join(arguments)}):"]
    head += [f"    {s} = 0" for s in sums]
    head += ["    for i in range(start, stop, rows):", "        j = min(i + rows, stop); n = j - i"]
    body = [f"        {line}" for line in lines]
    return "\n".join([*head, *body, f"    return [{', '.join(sums)}]"]) + "\n", scope, dtypes
