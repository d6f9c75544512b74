"""Steps whose results nobody reads."""

from __future__ import annotations

from gpugrad.trace.program import Program

__all__ = ["remove_dead"]


def remove_dead(program: Program) -> Program:
    """Leave out steps that neither the results, nor a Variable, nor an effect needs."""
    made = program.copy()
    wanted = {id(v) for v in (*program.outputs, *(v for _, v in program.writes))}
    kept = []
    for step in reversed(program.steps):
        if step.op is None or any(id(v) in wanted for v in step.outs):
            kept.append(step)
            wanted.update(id(v) for v in step.inputs)
    made.steps = kept[::-1]
    return made
