"""Rematerialization: recompute what a backward pass would otherwise keep.

A greedy heuristic. At the step where most memory is held, it considers values that are made before
the step, read only after it, and can be recomputed by ops alone: never by effects or from random
numbers. It prefers elementwise chains, then more bytes freed per element computed, and recomputes
the chosen value right before it is next read. The same ops run on the same arrays, so results do
not change.
"""

from __future__ import annotations

import copy
import math
from collections.abc import Callable
from typing import Any

from gpugrad.function.memory import lives, roots_of
from gpugrad.function.passes.rewrite import is_product
from gpugrad.function.passes.simplify import remove_dead
from gpugrad.trace.program import Program, Step, Value

LONGEST = 64  # steps to recompute one value, at most
NEXT = 0.9  # fraction of the held bytes to reach before memory is planned again
TRIED = 16  # values to try, best first


def in_phases(program: Program) -> Program:
    """The program with a phase for each forward or backward pass.

    A group has steps of one phase only. Otherwise, steps of a backward pass that only read forward
    values would join a forward group, and their results be kept from then on.
    """
    new = program.copy()
    new.steps = [copy.copy(step) for step in program.steps]
    phase, before = 0, False
    for step in new.steps:
        phase += step.backward != before
        step.phase, before = phase, step.backward
    return new


def rematerialize(
    program: Program, limit: int, peak: Callable[[Program], int]
) -> tuple[Program, int]:
    """Recompute values until the program takes at most `limit` bytes.

    Args:
        program: afterwards it must not change except for being put into groups.
        limit: bytes.
        peak: the bytes that a program takes, as planned.

    Returns:
        The program and its peak: above the limit only if nothing is left to recompute.
    """
    program = in_phases(program)
    best, least = program, peak(program)
    reached = least
    held, before = _most(program), math.inf
    while reached > limit and held < before:  # otherwise it would loop forever
        # planned buffers have fixed sizes, so a plan takes more memory than is held at one time;
        # small steps get further, since a value is only chosen if it brings the aim nearer
        aim = max(held - (reached - limit), int(held * NEXT))
        while (smaller := _smaller(program, aim)) is not None:
            program = smaller
        held, before = _most(program), held
        reached = peak(program)
        if reached < least:
            best, least = program, reached
    return best, least


def _most(program: Program) -> int:
    return max(lives(program, set()), default=0)


def _excess(held: list[int], aim: int) -> int:
    """The bytes held above the aim, summed over all steps. It decreases, so the search ends."""
    return sum(n - aim for n in held if n > aim)


def _smaller(program: Program, aim: int) -> Program | None:
    """The program with one value less held at the peak; None if no value qualifies."""
    held = lives(program, set())
    excess = _excess(held, aim)
    if not excess:
        return None
    now = held.index(max(held))
    scope = _Scope(program, now)
    candidates: list[tuple[Any, Value, list[Step], int]] = []
    for v in scope.idle():
        first = scope.next_read(v)
        chain = scope.chain(v)
        if chain is None:
            continue
        steps, freed = chain
        cost = sum(map(_cost, steps))
        score = (all(map(_is_cheap, steps)), freed / max(cost, 1))
        if freed > 0:
            candidates.append((score, v, steps, first))
    candidates.sort(key=lambda one: one[0], reverse=True)
    for _, v, steps, first in candidates[:TRIED]:
        new = _inserted(program, v, steps, first)
        if _excess(lives(new, set()), aim) < excess:
            return new
    return None


class _Scope:
    """Where the values of a program are made and read, relative to one step."""

    def __init__(self, program: Program, now: int) -> None:
        self._now, self._roots = now, roots_of(program)
        self._maker: dict[int, Step] = {}
        self._born: dict[int, int] = {}
        self._reads: dict[int, list[int]] = {}  # by root
        self._viewed: set[int] = set()  # roots with a view made before the step and read after it
        leaving = {id(v) for v in (*program.outputs, *(v for _, v in program.writes))}
        self._kept = {self._roots.get(i, i) for i in leaving}
        for k, step in enumerate(program.steps):
            for v in step.inputs:
                root = self._roots.get(id(v), id(v))
                self._reads.setdefault(root, []).append(k)
                if root != id(v) and k > now and self._born.get(id(v), now) <= now:
                    self._viewed.add(root)
            for v in step.outs:
                self._maker[id(v)], self._born[id(v)] = step, k

    def idle(self) -> list[Value]:
        """Values with their own memory that are held, but neither computed nor read at the step."""
        return [step.outs[0] for i, step in self._maker.items() if self._is_idle(i, step)]

    def _is_idle(self, i: int, step: Step) -> bool:
        own = _is_pure(step) and self._roots[i] == i and i not in self._kept | self._viewed
        held = own and self._born[i] < self._now < self._last(i)
        return held and self._now not in self._reads.get(i, ())

    def next_read(self, v: Value) -> int:
        return min(k for k in self._reads[id(v)] if k > self._now)

    def _last(self, root: int) -> int:
        return max(self._reads.get(root, (-1,)))

    def chain(self, v: Value) -> tuple[list[Step], int] | None:
        """The steps that recompute a value, and the bytes that this frees.

        None if there are too many steps, or one is not a pure op.
        """
        steps: list[Step] = []
        extended: dict[int, int] = {}
        done: set[int] = set()

        def visit(value: Value) -> bool:
            maker = self._maker.get(id(value))
            if id(value) in done or maker is None:  # an argument, a Variable, a constant
                return True
            done.add(id(value))
            if value is not v:
                root = self._roots[id(value)]
                if root in self._kept or self._last(root) > self._now:
                    return True  # it is still held, or a little longer
                if not _is_pure(maker):
                    extended[root] = value.nbytes
                    return True
            if not _is_pure(maker) or len(steps) >= LONGEST:
                return False
            if not all(visit(x) for x in maker.inputs):
                return False
            steps.append(maker)
            return True

        return (steps, v.nbytes - sum(extended.values())) if visit(v) else None


def _inserted(program: Program, v: Value, steps: list[Step], first: int) -> Program:
    """The program with steps repeated before `first`, and their result read from there on."""
    new_program = program.copy()
    again: dict[int, Value] = {}

    def renamed(step: Step) -> Step:
        new = copy.copy(step)
        new.args = tuple(
            [again.get(id(x), x) for x in a] if isinstance(a, list) else again.get(id(a), a)
            for a in step.args
        )
        return new

    clones = []
    phase = program.steps[first].phase + 1
    for step in steps:
        clone = renamed(step)
        clone.outs, clone.phase, clone.results = [copy.copy(step.outs[0])], phase, []
        clone.backward = True
        again[id(step.outs[0])] = clone.outs[0]
        clones.append(clone)
    again = {id(v): again[id(v)]}
    rest = [renamed(step) for step in program.steps[first:]]
    for step in rest:  # nothing joins an earlier group
        step.phase += 1
    new_program.steps = [*program.steps[:first], *clones, *rest]
    return remove_dead(new_program)  # earlier recomputations of the same steps


def _is_pure(step: Step) -> bool:
    return step.op is not None and len(step.outs) == 1


def _is_cheap(step: Step) -> bool:
    return step.outs[0].view or step.op.by_element


def _cost(step: Step) -> int:
    """About how many elements are computed; for a matrix product, multiplications."""
    size = math.prod(step.outs[0].shape)
    if step.outs[0].view:
        return 0
    if is_product(step):  # only it costs more than its arrays have elements
        return size * int(step.inputs[0].shape[-1])
    return size + (0 if _is_cheap(step) else sum(math.prod(v.shape) for v in step.inputs))
