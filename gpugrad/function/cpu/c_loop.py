"""Loops in C: a program whose steps are all kernels, products and copies runs n times in one call.

A body takes the values that it carries from one iteration to the next, one slice of each stack of
arrays, and values that stay the same; it returns the carry and one slice of each stack of results.
The carry lies in two places by turns. In a stack the address moves on by one slice.
"""

from __future__ import annotations

import copy
import functools
import math
from collections import deque
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np

from gpugrad.function.cpu.arena import arrays_in_one_block
from gpugrad.function.cpu.c_program import CProgram
from gpugrad.function.cpu.c_replay import CReplay
from gpugrad.function.cpu.loop_memory import LoopMemory
from gpugrad.function.cpu.view_layouts import Layout, Layouts, contiguous, is_view, view_of
from gpugrad.function.passes.fuse import FusedKernel
from gpugrad.function.passes.pieces import Pieces
from gpugrad.function.passes.rewrite import Rewriter, is_product, rewritten
from gpugrad.kernels.codegen.code import NoCodeError
from gpugrad.kernels.cpu.step_table import Slots, Steps
from gpugrad.trace.program import Program, Step, Value


class Body(NamedTuple):
    """A program that a loop runs.

    Attributes:
        program: its inputs are the carry, slices of stacks, and what stays the same; its outputs
            are the carry and slices of stacks.
        n_carry, n_slices: how many inputs are the carry, and how many are slices.
        transposes: the last inputs, as copies: the number of the argument, among the carry and what
            stays the same, that each is a view of, its value, and how it lies there.
    """

    program: Program
    n_carry: int
    n_slices: int
    transposes: Sequence[tuple[int, Value, Layout]] = ()


class CLoop(CReplay):
    """A body whose iterations are one call.

    Args:
        body: the body after the passes for C.
        in_place: see `CpuReplay`.

    Raises:
        NoCodeError: a step of the body is not C.

    Attributes:
        body: the body.
        outside: the inputs and outputs of its program, which lie in the first buffers.
        steps: its table, once it is loaded.
    """

    steps: Steps

    def __init__(self, body: Body, in_place: bool = True) -> None:
        self.body = body
        compiled = CProgram(_with_copies(body.program), in_loop=True)
        program = compiled.program
        self.outside = [*program.inputs, *program.outputs]
        if any(v.dtype == object or 0 in v.shape for v in self.outside) or program.reads:
            raise NoCodeError("arrays that C cannot read")
        self._kinds = [(v.shape, v.dtype) for v in program.outputs]
        self._moving = {id(v): k for k, v in enumerate(self.outside)}
        # for each thread that runs at once, by the number of iterations and their direction
        self._spare: dict[tuple[int, bool], deque[LoopMemory]] = {}
        super().__init__(compiled, in_place=in_place)

    def load(self) -> bool:
        """Compile its kernels; whether that succeeded."""
        if not self._compiled.load():
            return False
        self.steps = self._prepared(self._runs[0])
        return True

    @property
    def has_left(self) -> bool:
        """Whether Python computes some of its steps."""
        return bool(self._compiled.left)

    def loop(
        self, carry: Sequence[Any], stacks: Sequence[Any], same: Sequence[Any], n: int, back: bool
    ) -> tuple[list[Any], list[Any]] | None:
        """Run it n times; with `back` from the end of the stacks to their start.

        Returns:
            The carry and stacks of results; None if a step in Python has failed.
        """
        body, kinds = self.body, self._kinds
        last = [np.empty(shape, dtype) for shape, dtype in kinds[: body.n_carry]]
        results = [np.empty((n, *shape), dtype) for shape, dtype in kinds[body.n_carry :]]
        read = [np.ascontiguousarray(stack) for stack in stacks]
        others = [np.ascontiguousarray(array) for array in (*carry, *same)]
        others += [layout.of(others[k], v).copy() for k, v, layout in body.transposes]
        spare = self._spare.setdefault((n, back), deque())
        try:
            memory = spare.pop()
        except IndexError:
            memory = LoopMemory(self, n, back)
        first, sign = (n - 1, -1) if back else (0, 1)
        places = [memory.turns, read, others[body.n_carry :], results]
        moving = functools.partial(self._moving_arrays, places, first, sign)
        arrays = (*others[: body.n_carry], *read, *others[body.n_carry :], *last, *results)
        try:
            memory.run(arrays, moving)
        except Exception:  # of a step in Python: outside of C its error says where
            return None
        spare.append(memory)
        return last, results

    def slots(self, outside: Sequence[Any]) -> Slots:
        """New slots with buffers of their own, given arrays like those from outside."""
        return self._slots([*outside, *arrays_in_one_block(self._buffers[len(outside) :])])

    @property
    def fixed(self) -> list[tuple[int, Any]]:
        """The numbers of slots, and a constant, or the number of a buffer and a view of it."""
        return [*self._fixed.values()]

    @property
    def program(self) -> Program:
        """The program as it runs."""
        return self._program

    def moves(self, sign: int) -> list[tuple[int, int, bool]]:
        """How slots move from one iteration to the next: slot, bytes, and whether to and fro."""
        body, n_inputs, moves = self.body, len(self._program.inputs), []
        for slot, thing in self._fixed.values():
            home = len(self.outside) if isinstance(thing, np.ndarray) else thing[0]
            if home >= len(self.outside):
                continue
            is_out = home >= n_inputs
            at, nbytes = home - n_inputs * is_out, self.outside[home].nbytes
            if at < body.n_carry:
                moves.append((slot, -nbytes if is_out else nbytes, True))
            elif is_out or at < body.n_carry + body.n_slices:
                moves.append((slot, sign * nbytes, False))
        return moves

    def _moving_arrays(
        self, stacks: Sequence[Sequence[Any]], first: int, sign: int
    ) -> dict[int, Callable[[int], Any]]:
        """By slots from outside, their arrays as functions of the iteration, for steps in Python.

        `stacks` are the two places of each value of the carry, the stacks that are read, what stays
        the same, and the stacks that are written.
        """
        body, n_inputs = self.body, len(self._program.inputs)
        (turns, read, same, results), moving = stacks, dict[int, Callable[[int], Any]]()

        def carried(turn: Any, is_out: bool, about: Any) -> Callable[[int], Any]:
            both = [view_of(about, turn[k, ...]) for k in range(2)]
            return lambda i: both[(i + is_out) % 2]

        def of_stack(stack: Any, about: Any) -> Callable[[int], Any]:
            return lambda i: view_of(about, stack[first + sign * i, ...])

        for slot, thing in self._fixed.values():
            if isinstance(thing, np.ndarray) or thing[0] >= len(self.outside):
                continue
            home, *about = thing
            is_out = home >= n_inputs
            at = home - n_inputs * is_out
            if at < body.n_carry:
                moving[slot] = carried(turns[at], is_out, about)
            elif is_out:
                moving[slot] = of_stack(results[at - body.n_carry], about)
            elif at < body.n_carry + body.n_slices:
                moving[slot] = of_stack(read[at - body.n_carry], about)
            else:
                array = view_of(about, same[at - body.n_carry - body.n_slices])
                moving[slot] = functools.partial(_constantly, array)
        return moving

    # -- the steps

    def _write(self) -> None:
        self._buffers += [(v.shape, v.dtype) for v in self.outside]
        self._homes.update(self._moving)
        self._find_parts()
        self._lines.append("def run(arrays, reads, arena, release, hold):")
        self._write_steps()
        if len(self._runs) != 1 or self._runs[0].arrays:
            raise NoCodeError("steps that are not C")

    def _find_parts(self) -> None:
        """Let steps write parts of results to where they would be copied."""
        compiled, computed = self._compiled, set[int]()
        for step in self._program.steps:
            targets = compiled.copies.get(id(step))
            if targets is None:
                layouts = ((v, compiled.layouts.get(v)) for v in step.outs)
                computed.update(id(v) for v, layout in layouts if layout and layout.root is v)
                continue
            (out,) = step.outs
            home = self._moving.get(id(out))
            if sum(v.nbytes for v in step.inputs) != out.nbytes:
                continue  # zeros, and what is written over them later
            for v, target in zip(step.inputs, targets, strict=True):
                is_free = id(v) in computed and id(v) not in self._homes
                if home is not None and is_free and target.strides == contiguous(v):
                    self._homes[id(v)], self._parts[id(v)] = home, target.offset

    def _is_view(self, step: Step, *others: Any) -> bool:
        if is_view(step):
            layouts = [self._compiled.layouts.get(v) for v in step.outs]
            return all(layout is not None and id(layout.root) in self._homes for layout in layouts)
        return False

    def _in_python(self, step: Step, *others: Any) -> None:
        raise NoCodeError(f"{step.name} is not C")

    def _array_text(self, v: Value, run: Any) -> str:
        raise NoCodeError("an array that Python must copy")

    def _buffer(self, out: Value, ends: set[int], roots: dict[int, int]) -> str:
        if id(out) in self._moving:
            return f"b{self._moving[id(out)]}"
        return super()._buffer(out, ends, roots)


def with_own_results(program: Program) -> Program:
    """The program with results of control flow that share no memory: C writes them anew."""

    def renewed(rewriter: Rewriter, step: Step) -> Sequence[Value] | None:
        if step.op is None or step.op.kind != "control":
            return None
        new = copy.copy(step)
        new.outs = [out.blank() for out in step.outs]
        rewriter.keep(new)
        return new.outs

    return rewritten(program, renewed)


def with_transposes(body: Body) -> Body:
    """The body with one more input for each view of what stays the same that is a transpose.

    BLAS takes up to twice as long for a few rows times a transposed matrix as for the same rows
    times its copy, and one copy serves all iterations.
    """
    program, layouts, transposes = body.program.copy(), Layouts(), []
    same = program.inputs[body.n_carry + body.n_slices :]
    layouts.new(same)
    numbers = {id(v): k for k, v in enumerate(same, body.n_carry)}
    views = {id(step.outs[0]): step for step in program.steps if layouts.view(step)}
    for step in body.program.steps:
        if not is_product(step) or len(step.args[1].shape) < 2:
            continue
        if math.prod(step.outs[0].shape[:-1]) == 1:
            continue
        factor = step.args[1]
        if (view := views.pop(id(factor), None)) is not None and _is_transposed(layouts[factor]):
            program.steps.remove(view)
            program.inputs.append(factor)
            transposes.append((numbers[id(layouts[factor].root)], factor, layouts[factor]))
    return body._replace(program=program, transposes=transposes)


def _is_transposed(layout: Layout) -> bool:
    return layout.strides[-2] < layout.strides[-1]


def _constantly(array: Any, i: int) -> Any:
    return array


def _with_copies(program: Program) -> Program:
    """The program with copies of results that no step writes to memory of their own."""
    new = program.copy()
    fresh = {
        id(v)
        for step in program.steps
        for v in step.outs
        if isinstance(step, (FusedKernel, Pieces)) or not v.view
    }
    for k, v in enumerate(program.outputs):
        if id(v) in fresh:
            fresh.discard(id(v))  # the same value once more is a copy
            continue
        copied = Pieces([v], [...], v.shape, range(len(v.shape)), v)
        new.steps.append(copied)
        new.outputs[k] = copied.outs[0]
    return new
