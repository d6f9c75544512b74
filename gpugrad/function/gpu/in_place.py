"""Which effects of a program kernels can do on the memory of the Variables that they move."""

from __future__ import annotations

from gpugrad.function.memory import all_roots_of
from gpugrad.trace.program import Program

__all__ = ["moved_in_place"]


def moved_in_place(program: Program) -> dict[int, dict[int, int]]:
    """Effects that kernels can do, by id: the Values that they make of Variables, and of which.

    They write to the memory of what a Variable was in the beginning, so its value must be there,
    and nothing may read what was there before any more.
    """
    roots = all_roots_of(program)
    reads = {variable._id: id(v) for variable, v in program.reads}
    there = {origin: origin for origin in reads.values()}  # values, and in whose memory they are
    found: dict[int, dict[int, int]] = {}
    for k, step in enumerate(program.steps):
        if step.launched is None:
            continue
        n = len(step.variables)
        after = {id(v) for later in program.steps[k:] for v in later.outs}
        needed = [v for later in program.steps[k + 1 :] for v in later.inputs]
        needed += [*program.outputs, *(v for _, v in program.writes)]
        # the memory that a value from before is still read from
        stale = {root for v in needed if id(v) not in after for root in roots.get(id(v), ())}
        moves = {
            id(out): reads.get(variable._id, 0)
            for variable, out in zip(step.variables, step.outs[len(step.outs) - n :], strict=True)
        }
        if all(
            there.get(id(before)) == origin and origin not in stale
            for before, origin in zip(step.args[len(step.args) - n :], moves.values(), strict=True)
        ):
            found[id(step)] = moves
            there |= moves
    return found
