"""16-bit copies of Variables that the optimizer's kernel writes, so that a replay casts no weights.

A mixed-precision step rounds float32 Variables for its products, and ends with the kernel that
updates them. That kernel has the new values in registers: it writes the copies, too, and the next
replay reads them. In the program a copy is a Variable of its own, updated in place as the others.
"""

from __future__ import annotations

import copy
from collections.abc import Mapping
from typing import Any

import numpy as np

from gpugrad.autodiff.recorder import recording_stopped
from gpugrad.core.backend import READINGS
from gpugrad.core.devices import formulas_on
from gpugrad.core.tensor import wrap
from gpugrad.core.variable import Variable
from gpugrad.function.gpu.variables import VariableMemory
from gpugrad.function.passes.half import Casts
from gpugrad.function.passes.rewrite import is_cast
from gpugrad.kernels.by_hand.casts import NARROW, cast_all
from gpugrad.trace.program import Program, Step, Value

Pairs = list[tuple[Variable, Variable]]
"""Variables and their 16-bit copies."""


def keep_copies(
    program: Program, effects: Mapping[int, Mapping[int, int]]
) -> tuple[Program, Pairs]:
    """Replace casts of Variables by copies that the effects which update these write.

    Args:
        program: a program in which casts are joined.
        effects: what `moved_in_place` returns.
    """
    casts = _casts_of_variables(program)
    new, pairs, replaced = program.copy(), Pairs(), set[int]()
    for k, step in enumerate(program.steps):
        if not (id(step) in effects and getattr(step.launched, "rounds", False)):
            continue
        of = [(at, v, casts[v._id]) for at, v in enumerate(step.variables) if v._id in casts]
        of = [(at, v, out) for at, v, out in of if out.dtype == of[0][2].dtype]
        if not of:
            continue
        copies = [(_copy_of(v, out), out) for _, v, out in of]
        new.steps[k] = _with_copies(step, [at for at, *_ in of], copies)
        new.reads += copies
        new.writes += zip((c for c, _ in copies), new.steps[k].outs[-len(of) :], strict=True)
        pairs += ((v, c) for (_, v, _), (c, _) in zip(of, copies, strict=True))
        replaced |= {id(out) for *_, out in of}
    steps, new.steps = new.steps, []
    for step in steps:
        if isinstance(step, Casts):
            new.steps += step.without(replaced)
        elif not (is_cast(step) and id(step.outs[0]) in replaced):
            new.steps.append(step)
    return new, pairs


def _casts_of_variables(program: Program) -> dict[int, Value]:
    """The first cast of each float32 Variable to 16 bits, if only the program reads it."""
    read = {id(v): variable._id for variable, v in program.reads}
    leaving = {id(v) for v in (*program.outputs, *(v for _, v in program.writes))}
    casts: dict[int, Value] = {}
    for step in program.steps:
        parts = step.plain if isinstance(step, Casts) else [step] if is_cast(step) else []
        for part in parts:
            (x,), (out,) = part.args, part.outs
            kinds = x.dtype == np.float32 and out.dtype in NARROW
            if kinds and id(x) in read and id(out) not in leaving:
                casts.setdefault(read[id(x)], out)
    return casts


def _copy_of(variable: Variable, cast: Value) -> Variable:
    """A Variable with room for the result of a cast."""
    data = variable._data
    with recording_stopped(), formulas_on(data):
        empty = wrap(READINGS[type(data)].lib.empty(cast.shape, dtype=cast.dtype))
        return Variable(empty, trainable=False, name=f"{variable.name} in {cast.dtype}")


def _with_copies(step: Step, places: list[int], copies: list[tuple[Variable, Value]]) -> Step:
    """An optimizer's step that also updates copies of its Variables at these places."""
    new = copy.copy(step)
    launched: Any = step.launched
    new.call = launched.with_rounded(places)
    new.variables = (*step.variables, *(c for c, _ in copies))
    new.args = (*step.args, *(v for _, v in copies))
    new.outs = [*step.outs, *(v.blank() for _, v in copies)]
    return new


class Copies:
    """The 16-bit copies that the effects of a program keep.

    Attributes:
        stale: whether they must be cast anew.
    """

    def __init__(self, pairs: list[tuple[VariableMemory, VariableMemory]]) -> None:
        self._pairs, self._loads, self.stale = pairs, 0, True

    def refresh(self) -> None:
        """Cast the Variables if the copies are stale, or a Variable was assigned to."""
        loads = sum(a.loads + b.loads for a, b in self._pairs)
        if loads == self._loads and not self.stale:
            return
        self.stale = True  # until it has succeeded
        for dtype in {b.own.dtype for _, b in self._pairs}:
            some = [(a.own, b.own) for a, b in self._pairs if b.own.dtype == dtype]
            sources, results = zip(*some, strict=True)
            cast_all(sources, dtype, results)
        self._loads, self.stale = loads, False
