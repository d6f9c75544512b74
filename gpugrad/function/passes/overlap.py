"""Overlaps what other streams do with the steps of a program that do not depend on it."""

from __future__ import annotations

from gpugrad.trace.program import Program, Step


def overlap_streams(program: Program) -> Program:
    """Move steps that begin work on another stream up to the last step that they depend on.

    Effects stay in order. So do those of all ranks, whatever else their programs do.

    ``g1, g2, start(g1), start(g2)`` becomes ``g1, start(g1), g2, start(g2)``.
    """
    steps: list[Step] = []
    made: dict[int, int] = {}  # where in `steps` a value is computed, at the latest
    floor = 0  # after the last effect
    for step in program.steps:
        at = len(steps)
        if getattr(step.call, "early", False):
            at = max([floor, *(made.get(id(v), -1) + 1 for v in step.inputs)])
            made = {v: k + (k >= at) for v, k in made.items()}
        steps.insert(at, step)
        made.update((id(v), at) for v in step.outs)
        if step.call is not None or step.programs:
            floor = at + 1
    new = program.copy()
    new.steps = steps
    return new
