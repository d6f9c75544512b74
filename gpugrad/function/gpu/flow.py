"""Values that outlive a run: read by a later run, by the next call, or by the caller."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import Any, NamedTuple

from gpugrad.core.variable import Variable
from gpugrad.function.gpu.runs import Run
from gpugrad.function.gpu.variables import VariableMemory, memory_of
from gpugrad.function.memory import all_roots_of, roots_of
from gpugrad.trace.program import Program, Value

Copies = tuple[dict[int, tuple[Any, ...]], list[int]]


class Flow(NamedTuple):
    """Where values come from and go to in a program that is cut into runs.

    "Memory" is a `VariableMemory`.

    Attributes:
        read: Variables that no graph reads, and their Values at the start.
        start_reads: Values in memories at the start that are read outside of graphs, by id.
        in_place: Values that effects write to memories, by id.
        in_place_reads: entries of `in_place` that are read outside of graphs.
        stored: Values that a single graph copies to memories when it ends: new values of Variables
            that it reads. Without that each would be copied by itself before the next call.
        changed: the memories that graphs write to.
        overwritten: ids of Values whose memory the next call overwrites.
        copy_each, copy_last: copies because a result or Variable keeps the array, in each step but
            the last and in the last: GPU arrays, as shape and dtype by id; ids of host arrays, or
            of an object that a control op keeps.
        loop_state: for Variables that are not updated in place, the id of the Value at the start
            and the Value at the end.
        writes: Variables and their Values at the end, with the memory if they are updated in place.
        only_memories: whether every Variable is updated in place.
        whole: whether the program is a single graph.
        returns_moved: whether a result or a Variable gets memory that the next step overwrites.
    """

    read: list[tuple[Variable, Value]]
    start_reads: list[tuple[int, VariableMemory]]
    in_place: dict[int, VariableMemory]
    in_place_reads: list[tuple[int, VariableMemory]]
    stored: list[tuple[int, VariableMemory]]
    changed: list[VariableMemory]
    overwritten: set[int]
    copy_each: Copies
    copy_last: Copies
    loop_state: list[tuple[int, Value]]
    writes: list[tuple[Variable, Value, VariableMemory | None]]
    only_memories: bool
    whole: bool
    returns_moved: bool

    def copies(self, n: int) -> list[Copies]:
        """The copies of each of `n` steps."""
        return [*[self.copy_each] * (n - 1), self.copy_last]


def flow_of(
    program: Program,
    runs: Sequence[Run],
    in_place: dict[int, dict[int, int]],
    memories: dict[int, VariableMemory],
    captures: bool,
) -> Flow:
    """Close the runs, and find the values that pass between them.

    Args:
        in_place: what `moved_in_place` returns.
        memories: the memories of Variables that graphs read, by id of the Value at the start; new
            ones are added.
        captures: whether fixed runs are captured.
    """
    starts = {variable._id: id(v) for variable, v in program.reads}
    _close(runs, program, in_place)
    graphs = [run for run in runs if run.fixed and captures]
    inside = {at for run in graphs for at in run.reads}
    for variable, v in program.reads:
        if id(v) in inside and id(v) not in memories:
            memories[id(v)] = memory_of(variable)
    moves = {at: memories[origin] for some in in_place.values() for at, origin in some.items()}
    for memory in moves.values():
        memory.moved = True
    fixed = {*memories, *moves}  # what graphs read where it is
    for run in graphs:
        run.links = [at for at in run.reads if at not in fixed]
        fixed.update(run.links + run.names)
        run.passed = [at for at in run.names if any(at in r.reads for r in graphs)]
    roots, whole = roots_of(program), len(runs) == len(graphs) == 1
    stored = _stored(program, graphs[0], {*moves}, roots, memories) if whole else {}
    for memory in stored.values():
        memory.moved = True
    writes = [
        (variable, v, stored.get(variable._id) or _own(variable, moves.get(id(v))))
        for variable, v in program.writes
    ]
    others = [(variable, v) for variable, v, memory in writes if memory is None]
    outside = {at for run in runs if run not in graphs for at in run.reads}
    kept = [*program.outputs, *(v for _, v in others)]
    outside |= {id(v) for v in kept}
    overwritten = {*memories, *moves}
    if captures:
        overwritten.update(id(v) for run in runs for v in run.outputs if run.fixed or v.view)
    changing = {*moves, *(starts[var._id] for var, _ in program.writes if var._id in starts)}
    loop_state = [(starts[var._id], v) for var, v in others if var._id in starts]
    origins = {origin for some in in_place.values() for origin in some.values()}
    return Flow(
        read=[(variable, v) for variable, v in program.reads if id(v) not in memories],
        start_reads=[(at, memory) for at, memory in memories.items() if at in outside],
        in_place=moves,
        in_place_reads=[(at, memory) for at, memory in moves.items() if at in outside],
        stored=[(id(v), stored[var._id]) for var, v in program.writes if var._id in stored],
        changed=[*moves.values(), *stored.values()],
        overwritten=overwritten,
        copy_each=_copies(program.outputs, overwritten),
        copy_last=_copies(kept, overwritten),
        loop_state=loop_state,
        writes=writes,
        only_memories=not others,
        whole=whole,
        returns_moved=any(roots.get(id(v)) in memories for v in program.outputs)
        or any(id(v) in changing for v in kept)
        or any(at in origins for at, _ in loop_state),
    )


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


def _stored(
    program: Program,
    graph: Run,
    moves: set[int],
    roots: dict[int, int],
    memories: dict[int, VariableMemory],
) -> dict[int, VariableMemory]:
    """The memories of Variables that get a new value, by id of the Variable.

    Only of Variables that the graph reads, and for values that it computes in memory of its own.
    """
    starts = {variable._id: v for variable, v in program.reads}
    computed = {id(v) for step, _ in graph.steps for v in step.outs} - moves
    return {
        variable._id: memories[id(start)]
        for variable, v in program.writes
        if (start := starts.get(variable._id)) is not None
        and id(start) in memories
        and id(v) in computed
        and roots.get(id(v), id(v)) in computed
        and (v.shape, v.dtype) == (start.shape, start.dtype)
    }


def _own(variable: Variable, memory: VariableMemory | None) -> VariableMemory | None:
    """The memory if it belongs to the Variable; it may end up with another Variable's new value."""
    return memory if memory is not None and memory.variable._id == variable._id else None


def _close(runs: Sequence[Run], program: Program, in_place: Collection[int]) -> None:
    """Tell each run which of its values are read later, and which effects it launches."""
    wanted = {id(v) for v in (*program.outputs, *(v for _, v in program.writes))}
    for run in reversed(runs):
        run.close(wanted)
        wanted.update(run.reads)
        run.effects = [step for step, _ in run.steps if id(step) in in_place]
        run.launched = [step.launched for step in run.effects]


def _copies(values: Sequence[Value], overwritten: set[int]) -> Copies:
    copied = {id(v): v for v in values if id(v) in overwritten}
    on_device = {at: (v.shape, v.dtype) for at, v in copied.items() if not v.host}
    return on_device, [at for at, v in copied.items() if v.host]
