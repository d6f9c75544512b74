"""The memory that a replay takes, computed before it runs.

It counts the arrays in the plan: arguments, Variables and their optimizer state, constants, planned
buffers, and each step's results until their last reader has run. Memory that an op takes and frees
while it runs is unknown to the plan and not counted.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from dataclasses import dataclass, fields
from typing import Any

from gpugrad.core.format import format_bytes
from gpugrad.function.cpu.replay import CpuReplay
from gpugrad.trace.program import Program, Step, Value

LABELS = {
    "inputs": "arguments",
    "variables": "Variables",
    "averages": "optimizers' own",
    "constants": "constants",
    "arena": "planned buffers",
    "outputs": "results",
    "kept": "kept for backward",
}


@dataclass(frozen=True)
class Memory:
    """Bytes that a replay takes; ``print`` shows them.

    Attributes:
        peak: the most at one time: the sum of the following at the step where it occurs.
        step, of, text: the number of that step, from 1; the number of steps; and the step as text.
        inputs: the Tensor arguments.
        variables: the Variables that are read, and their new values at the end.
        averages: optimizer state for the Variables that are updated.
        constants: the constants of the program.
        arena: the planned buffers, which steps reuse.
        outputs: the results.
        kept: values that the forward pass computes and the backward pass reads.
    """

    peak: int
    step: int
    of: int
    text: str
    inputs: int
    variables: int
    averages: int
    constants: int
    arena: int
    outputs: int
    kept: int

    def __str__(self) -> str:
        lines = [f"peak {format_bytes(self.peak)}, at step {self.step} of {self.of}: {self.text}"]
        for field in fields(self):
            if field.name in LABELS and getattr(self, field.name):
                amount = format_bytes(getattr(self, field.name))
                lines.append(f"  {LABELS[field.name]:<18}{amount:>10}")
        return "\n".join(lines)


def roots_of(program: Program) -> dict[int, int]:
    """The first value whose memory a value may share, by id of the value."""
    return {value: roots[0] for value, roots in all_roots_of(program).items()}


def all_roots_of(program: Program) -> dict[int, tuple[int, ...]]:
    """The values whose memory a value may share, by id of the value.

    A view may share the memory of all that it reads; a Variable updated in place shares its own.
    """
    roots: dict[int, tuple[int, ...]] = {
        id(v): (id(v),) for v in (*program.inputs, *(v for _, v in program.reads))
    }
    for step in program.steps:
        n = len(step.variables)
        moved = dict(zip(map(id, step.outs[-n:]), step.args[-n:], strict=True)) if n else {}
        for v in step.outs:
            views = v.view and step.op is not None  # a kernel's results have new memory
            shared = [roots[id(a)] for a in step.inputs if id(a) in roots] if views else []
            of = moved.get(id(v))
            if isinstance(of, Value):
                shared = [roots.get(id(of), (id(of),))]
            every = (root for some in shared for root in some)
            roots[id(v)] = tuple(dict.fromkeys(every)) or (id(v),)
    return roots


def lives(program: Program, buffered: set[int]) -> list[int]:
    """For each step, the bytes of results held while it runs, outside of planned buffers."""
    roots = roots_of(program)
    bytes_: dict[int, int] = {}
    born: dict[int, int] = {}
    dies: dict[int, int] = {}
    from_outside = {id(v) for v in (*program.inputs, *(v for _, v in program.reads))}
    for k, step in enumerate(program.steps):
        for v in step.outs:
            root = roots[id(v)]
            if root == id(v) and id(v) not in buffered and root not in from_outside:
                bytes_[root], born[root] = v.nbytes, k
        for v in (*step.inputs, *step.outs):
            dies[roots.get(id(v), id(v))] = k
    for v in (*program.outputs, *(v for _, v in program.writes)):
        dies[roots.get(id(v), id(v))] = len(program.steps) - 1
    change = [0] * (len(program.steps) + 1)
    for root, n in bytes_.items():
        change[born[root]] += n
        change[dies[root] + 1] -= n
    return list(itertools.accumulate(change[:-1]))


def kept_for_backward(program: Program) -> list[Value]:
    """The values that the forward pass computes and a backward pass reads, one per memory.

    What is made and read within one group is not kept in between.
    """
    roots = roots_of(program)
    forward: dict[int, int] = {}  # the step that makes a value, a group counting as one
    kept: dict[int, Value] = {}
    for k, step in enumerate(program.steps):
        for part in step.parts or [step]:
            if not part.backward:
                forward.update((id(v), k) for v in part.outs)
                continue
            for v in part.inputs:
                if forward.get(id(v), k) != k and roots.get(id(v)) in forward:
                    kept.setdefault(roots[id(v)], v)
    return list(kept.values())


def _total(values: Sequence[Value]) -> int:
    return sum({id(v): v.nbytes for v in values}.values())


def _extent(array: Any) -> int:
    """Bytes of an array, not counting broadcast axes."""
    if not array.size:
        return 0
    lengths = [n for n, s in zip(array.shape, array.strides, strict=True) if s]
    return int(array.itemsize) * math.prod(lengths)


def measure(program: Program, replay: CpuReplay) -> Memory:
    """The memory that a replay of a program takes."""
    roots = roots_of(program)
    from_outside = {id(v) for v in (*program.inputs, *(v for _, v in program.reads))}
    inputs, before = _total(program.inputs), _total([v for _, v in program.reads])
    constants = sum(_extent(v.constant) for v in program.values() if v.constant is not None)
    new = [v for _, v in program.writes if roots.get(id(v), id(v)) not in from_outside]
    known = {*from_outside, *map(id, new), None}
    outputs = [v for v in program.outputs if roots.get(id(v)) not in known]
    averages: dict[Any, int] = {}
    for s in program.steps:
        averages |= getattr(s.call, "averages", {})
    kept = sum(averages.values())
    held = lives(program, replay.buffered) or [0]
    at = max(range(len(held)), key=held.__getitem__)
    step = program.steps[at] if program.steps else None
    return Memory(
        peak=inputs + before + kept + constants + replay.arena_bytes + held[at],
        step=at + 1,
        of=len(program.steps),
        text=_text(step),
        inputs=inputs,
        variables=before + _total(new),
        averages=kept,
        constants=constants,
        arena=replay.arena_bytes,
        outputs=_total(outputs),
        kept=_total(kept_for_backward(program)),
    )


def _text(step: Step | None) -> str:
    if step is None:
        return "nothing"
    results = ", ".join(f"{v.dtype}{list(v.shape)}" for v in step.outs)
    parts = ", ".join(p.name for p in step.parts)
    return f"{step.name}{parts and f' ({parts})'} -> {results or 'nothing'}"
