"""The effects that kernels do in place, in the memory of the Variables that they update."""

from __future__ import annotations

from gpugrad.function.memory import all_roots_of
from gpugrad.trace.program import Program


def moved_in_place(program: Program) -> dict[int, dict[int, int]]:
    """By id of each effect: the new Values of Variables, and the initial Values that they replace.

    The effect writes to the memory of a Variable's initial Value. So the current value must be in
    that memory, and nothing may still read the value that is overwritten.
    """
    roots = all_roots_of(program)
    reads = {variable._id: id(v) for variable, v in program.reads}
    located = {origin: origin for origin in reads.values()}  # values, and in whose memory they are
    effects: dict[int, dict[int, int]] = {}
    for k, step in enumerate(program.steps):
        if step.launched is None:
            continue
        n = len(step.variables)
        after = {id(v) for later in program.steps[k:] for v in later.outs}
        needed = [v for later in program.steps[k + 1 :] for v in later.inputs]
        needed += [*program.outputs, *(v for _, v in program.writes)]
        # memory from which an earlier value is still read
        stale = {root for v in needed if id(v) not in after for root in roots.get(id(v), ())}
        moves = {
            id(out): reads.get(variable._id, 0)
            for variable, out in zip(step.variables, step.outs[len(step.outs) - n :], strict=True)
        }
        if all(
            located.get(id(before)) == origin and origin not in stale
            for before, origin in zip(step.args[len(step.args) - n :], moves.values(), strict=True)
        ):
            effects[id(step)] = moves
            located |= moves
    return effects
