"""Orders side effects, undoes those of a failed replay, and runs host steps of a GPU program.

An optimizer's step comes as late as possible: an error raised before it leaves Variables unchanged.

A replay may find that the function would now behave differently. Then the function itself is called
and repeats its effects, so random generators are reset first. Variables never need to be:
assignments are written at the end of a replay, and once an optimizer has updated Variables,
gradients are computed with masked products and no longer checked, and ops whose result's length
depends on values are refused.
"""

from __future__ import annotations

import copy
import threading
from collections.abc import Callable
from typing import Any

import numpy as np

from gpugrad.core.backend import NUMPY, as_array
from gpugrad.core.tensor import Tensor, wrap
from gpugrad.errors import NumericsError
from gpugrad.function.step_calls import op_call
from gpugrad.trace.program import CHECKS, NotReplayable, Program, Step


class _Undo(threading.local):
    """Functions that undo the effects of the replay running in this thread, in order."""

    def __init__(self) -> None:
        self.steps: list[Callable[[], None]] = []


_undo = _Undo()


def record_undo(program: Program) -> Program:
    """Make effects before a check record how to undo them; the same program if it has none."""
    checks = [k for k, step in enumerate(program.steps) if step.name in CHECKS]
    early = [
        k
        for k, step in enumerate(program.steps[: checks[-1] if checks else 0])
        if step.undo is not None and step.name not in CHECKS
    ]
    if not early:
        return program
    new = program.copy()
    for k in early:
        new.steps[k] = copy.copy(program.steps[k])
        new.steps[k].call = _recording(program.steps[k])
    return new


def _recording(step: Step) -> Callable[..., Any]:
    def call(*tensors: Any) -> Any:
        _undo.steps.append(step.undo())  # type: ignore[misc]
        return step.call(*tensors)  # type: ignore[misc]

    return call


def run_or_undo(run: Callable[..., list[Any]], *args: Any) -> list[Any]:
    """Run a replay; if it raises NotReplayable, undo its effects so far.

    A generator that other threads draw from meanwhile is reset for them too.
    """
    before, _undo.steps = _undo.steps, []
    try:
        return run(*args)
    except NotReplayable:
        for undo in reversed(_undo.steps):
            undo()
        raise
    finally:
        _undo.steps = before


def run_or_restore(
    program: Program,
    run: Callable[..., list[Any]],
    arrays: list[Any],
    release: Callable[[], None] | None = None,
) -> list[Any]:
    """Run a checked replay; if it raises, undo its effects, also those on Variables.

    An update in place leaves the arrays alone that are held here.
    """
    changed = [v for step in program.steps for v in step.variables]
    before = [(v, v._data) for v in (*changed, *(v for v, _ in program.writes))]
    undos = [step.undo() for step in program.steps if step.undo is not None]
    try:
        results = run(arrays)
    except (NotReplayable, NumericsError):
        for undo in reversed(undos):
            undo()
        for variable, data in before:
            variable._data = data
        raise
    if release:
        release()
    return results


def move_updates_last(program: Program) -> Program:
    """Move every step that does not depend on an optimizer's update in front of the update.

    If something raises, or memory runs out, Variables have not been updated yet. Effects stay in
    order.
    """
    early: list[Step] = []
    late: list[Step] = []
    after: set[int] = set()
    for step in program.steps:
        updates = step.call is not None and step.variables
        if updates or (late and step.call) or any(id(v) in after for v in step.inputs):
            late.append(step)
            after.update(id(v) for v in step.outs)
        else:
            early.append(step)
    new = program.copy()
    new.steps = early + late
    return new


# ---- steps on the host -------------------------------------------------------------------


def run_on_host(program: Program) -> Program:
    """Turn the NumPy steps of a GPU program into effects, which kernels and graphs leave alone.

    Preprocessing a batch before it is moved to the GPU is an example.
    """
    new = program.copy()
    new.steps = [_as_effect(s) if _is_on_host(s) else s for s in program.steps]
    return new


def _is_on_host(step: Step) -> bool:
    if step.op is None or step.op.kind == "control":
        return False
    return all(v.host for v in step.inputs or step.outs)  # also a step that copies to a GPU


def _as_effect(step: Step) -> Step:
    function, is_tuple = op_call(step, NUMPY), step.op.outputs > 1

    def call(*tensors: Tensor) -> list[Tensor]:
        with np.errstate(all="ignore"):
            result: Any = function(*[t._data for t in tensors])
        return [wrap(as_array(a, np.ndarray)) for a in (result if is_tuple else (result,))]

    name, args, params, outs = step.name, step.args, step.params, step.outs
    effect = Step(None, args, params, outs, name=name, call=call, undo=lambda: lambda: None)
    effect.backward, effect.phase, effect.where = step.backward, step.phase, step.where
    return effect
