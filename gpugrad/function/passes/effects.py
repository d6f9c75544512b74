"""When effects come, and those that a replay has had when it has to stop.

An optimizer's step is as late as can be: what raises before it leaves Variables as they were.

A replay may find that the function would do something else. Then the function itself is called,
and has its effects again: so random generators go back first. Variables never need to. What is
assigned is written at the end of a replay, and once an optimizer has moved some, gradients are
taken with masked products at once and checked no more, and results whose length depends on values
are refused.
"""

from __future__ import annotations

import copy
import threading
from collections.abc import Callable
from typing import Any

from gpugrad.trace.program import CHECKS, OtherwiseError, Program, Step

__all__ = ["moving_last", "put_back_on_otherwise", "undoable"]


class _Undo(threading.local):
    """What puts back the effects of the replay that runs in a thread, in their order."""

    def __init__(self) -> None:
        self.steps: list[Callable[[], None]] = []


_undo = _Undo()


def undoable(program: Program) -> Program:
    """The program, itself if there are none, with effects before a check that can be put back."""
    checks = [k for k, step in enumerate(program.steps) if step.name in CHECKS]
    early = [
        k for k, step in enumerate(program.steps[: checks[-1] if checks else 0])
        if step.undo is not None and step.name not in CHECKS
    ]  # fmt: skip
    if not early:
        return program
    made = program.copy()
    for k in early:
        made.steps[k] = copy.copy(program.steps[k])
        made.steps[k].call = _noting(program.steps[k])
    return made


def _noting(step: Step) -> Callable[..., Any]:
    def call(*tensors: Any) -> Any:
        _undo.steps.append(step.undo())  # type: ignore[misc]
        return step.call(*tensors)  # type: ignore[misc]

    return call


def put_back_on_otherwise(run: Callable[..., list[Any]], *args: Any) -> list[Any]:
    """Run a replay; if it ends in an OtherwiseError, put back the effects that it has had.

    A generator from which other threads draw meanwhile goes back for them too.
    """
    before, _undo.steps = _undo.steps, []
    try:
        return run(*args)
    except OtherwiseError:
        for undo in reversed(_undo.steps):
            undo()
        raise
    finally:
        _undo.steps = before


def moving_last(program: Program) -> Program:
    """The program with what can come before an optimizer's step before it.

    So if something raises, or memory runs out, Variables have not been moved. Effects stay in
    their order.
    """
    early: list[Step] = []
    late: list[Step] = []
    after: set[int] = set()
    for step in program.steps:
        moves = step.call is not None and step.variables
        if moves or (late and step.call) or any(id(v) in after for v in step.inputs):
            late.append(step)
            after.update(id(v) for v in step.outs)
        else:
            early.append(step)
    made = program.copy()
    made.steps = early + late
    return made
