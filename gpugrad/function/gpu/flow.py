"""What goes from one run of a program to another, from call to call, and out to who called."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import Any, NamedTuple

from gpugrad.core.variable import Variable
from gpugrad.function.gpu.runs import Run
from gpugrad.function.gpu.variables import Slot, slot_of
from gpugrad.function.memory import roots_of
from gpugrad.trace.program import Program, Value

__all__ = ["Flow", "flow_of"]

Copies = tuple[dict[int, tuple[Any, ...]], list[int]]


class Flow(NamedTuple):
    """Where the values of a program that is cut into runs come from, and where they go.

    Attributes:
        read: Variables that no graph reads, and the Values that they have at the start.
        seen: the Values in slots at the start that are looked at outside of graphs, by id.
        moves: Values that effects make in slots, by id.
        seen_moves: those that are looked at outside of graphs.
        lent: ids of Values whose memory the next call writes to.
        each, last: what is copied for who keeps it, of each step but the last and of the last:
            arrays of the device, as shape and dtype by id; ids of those of the host, or of an
            object that a control op keeps.
        carried: of Variables, the id of the Value at the start and the Value at the end, where
            that is not made in place.
        writes: Variables and the Values at the end, with the slot if that is made in place.
        whole: whether one graph is all of it.
        returns_moved: whether somebody gets what the next step writes to.
    """

    read: list[tuple[Variable, Value]]
    seen: list[tuple[int, Slot]]
    moves: dict[int, Slot]
    seen_moves: list[tuple[int, Slot]]
    lent: set[int]
    each: Copies
    last: Copies
    carried: list[tuple[int, Value]]
    writes: list[tuple[Variable, Value, Slot | None]]
    whole: bool
    returns_moved: bool

    def copies(self, n: int) -> list[Copies]:
        """What is copied of each of `n` steps."""
        return [*[self.each] * (n - 1), self.last]


def flow_of(
    program: Program, runs: Sequence[Run], in_place: dict[int, dict[int, int]],
    slots: dict[int, Slot], captures: bool,
) -> Flow:  # fmt: skip
    """Close the runs, and find what goes between them.

    Args:
        in_place: as `moved_in_place` finds it.
        slots: of Variables that graphs read, by id of the Value at the start; gets new ones.
        captures: whether what is fixed is captured.
    """
    starts = {variable._id: id(v) for variable, v in program.reads}
    _close(runs, program, in_place)
    graphs = [run for run in runs if run.fixed and captures]
    inside = {at for run in graphs for at in run.reads}
    for variable, v in program.reads:
        if id(v) in inside and id(v) not in slots:
            slots[id(v)] = slot_of(variable)
    moves = {at: slots[origin] for some in in_place.values() for at, origin in some.items()}
    for slot in moves.values():
        slot.moved = True
    _link(graphs, {*slots, *moves})
    writes = [(variable, v, _own(variable, moves.get(id(v)))) for variable, v in program.writes]
    others = [(variable, v) for variable, v, slot in writes if slot is None]
    outside = {at for run in runs if run not in graphs for at in run.reads}
    kept = [*program.outputs, *(v for _, v in others)]
    outside |= {id(v) for v in kept}
    lent = {*slots, *moves}
    if captures:
        lent.update(id(v) for run in runs for v in run.outputs if run.fixed or v.view)
    roots = roots_of(program)
    changing = {*moves, *(starts[var._id] for var, _ in program.writes if var._id in starts)}
    carried = [(starts[var._id], v) for var, v in others if var._id in starts]
    origins = {origin for some in in_place.values() for origin in some.values()}
    return Flow(
        read=[(variable, v) for variable, v in program.reads if id(v) not in slots],
        seen=[(at, slot) for at, slot in slots.items() if at in outside],
        moves=moves,
        seen_moves=[(at, slot) for at, slot in moves.items() if at in outside],
        lent=lent,
        each=_copies(program.outputs, lent),
        last=_copies(kept, lent),
        carried=carried,
        writes=writes,
        whole=len(runs) == len(graphs) == 1,
        returns_moved=any(roots.get(id(v)) in slots for v in program.outputs)
        or any(id(v) in changing for v in kept)
        or any(at in origins for at, _ in carried),
    )


def _own(variable: Variable, slot: Slot | None) -> Slot | None:
    """A slot if it is the Variable's: it may end with what was made of another one."""
    return slot if slot is not None and slot.variable._id == variable._id else None


def _close(runs: Sequence[Run], program: Program, in_place: Collection[int]) -> None:
    """Let each run know what of it is read later, and its effects."""
    wanted = {id(v) for v in (*program.outputs, *(v for _, v in program.writes))}
    for run in reversed(runs):
        run.close(wanted)
        wanted.update(run.reads)
        run.effects = [step for step, _ in run.steps if id(step) in in_place]
        run.launched = [step.launched for step in run.effects]


def _link(graphs: Sequence[Run], kept: set[int]) -> None:
    """Find what each graph has to be given, and what others read of it; `kept` all find anyway."""
    for run in graphs:
        run.links = [at for at in run.reads if at not in kept]
        kept.update(run.links + run.names)
        run.passed = [at for at in run.names if any(at in r.reads for r in graphs)]


def _copies(values: Sequence[Value], lent: set[int]) -> Copies:
    found = {id(v): v for v in values if id(v) in lent}
    device = {at: (v.shape, v.dtype) for at, v in found.items() if not v.host}
    return device, [at for at, v in found.items() if v.host]
