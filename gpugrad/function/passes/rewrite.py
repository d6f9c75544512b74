"""Tools that every pass uses: who reads a value, rewriting a program, several steps as one."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from gpugrad.core.backend import NUMPY, Reading
from gpugrad.registry.record import OPS
from gpugrad.trace.program import Program, Step, Value


def is_cast(step: Step) -> bool:
    """Whether a step casts an array: an op by element with a dtype among its parameters."""
    return step.op is not None and step.op.by_element and "dtype" in step.params


def is_reshape(step: Step) -> bool:
    """Whether a step keeps all elements in their order."""
    return step.op is not None and step.op.view == "reshape"


def is_product(step: Step) -> bool:
    """Whether a step is a product of matrices, which BLAS and cuBLASLt compute."""
    return step.name == "matmul"


def is_addition(step: Step | None) -> bool:
    """Whether a step adds: a function of the array library with derivatives 1 and 1."""
    op = None if step is None else step.op
    return op is not None and op.is_library_function and op.declared.d == [1, 1]


def axis_order(step: Step | None) -> tuple[int, ...] | None:
    """The axes of the argument in the order in which a step views them; None if it does not."""
    if step is None or step.op is None or step.op.view != "strides":
        return None
    shape = step.inputs[0].shape
    axes = np.lib.stride_tricks.as_strided(np.empty(1, np.int8), shape, range(len(shape)))
    order = step.op.bare(NUMPY)(axes, **step.params).strides  # a view only orders strides
    return order if sorted(order) == [*range(len(shape))] else None


def swaps_last_two(step: Step | None) -> bool:
    """Whether a step is the transpose of a matrix, or of each of a stack."""
    order = axis_order(step) or ()
    n = len(order)
    return n >= 2 and order == (*range(n - 2), n - 1, n - 2)


class Readers:
    """The steps of a program that make and read each value.

    Attributes:
        place: the position of each step, by the step's id.
        maker: the step that makes a value, by the value's id.
    """

    def __init__(self, program: Program) -> None:
        self.place = {id(s): k for k, s in enumerate(program.steps)}
        self._steps: dict[int, list[Step]] = {}
        for step in program.steps:
            for v in step.inputs:
                self._steps.setdefault(id(v), []).append(step)
        self._outputs = {id(v) for v in (*program.outputs, *(v for _, v in program.writes))}
        self.maker = {id(v): s for s in program.steps for v in s.outs}

    def of(self, v: Value) -> list[Step]:
        """The steps that read a value."""
        return self._steps.get(id(v), [])

    def is_result(self, v: Value) -> bool:
        """Whether the program returns a value, or a Variable takes it."""
        return id(v) in self._outputs

    def only(self, v: Value) -> Step | None:
        """The step that reads a value, if it is the only one and reads the value once."""
        steps = self.of(v)
        return steps[0] if len(steps) == 1 and not self.is_result(v) else None

    def same_rows(self, v: Value) -> list[Value]:
        """The values with the elements of `v` in the same rows: `v` and its reshapes."""
        root = v
        while (step := self.maker.get(id(root))) is not None and is_reshape(step):
            (root,) = step.inputs
        reshapes = [root]
        for x in reshapes:  # it grows meanwhile
            reshapes += [s.outs[0] for s in self.of(x) if is_reshape(s)]
        return [x for x in reshapes if x.shape[-1:] == v.shape[-1:]]


class Rewriter:
    """Writes a program anew, step by step, with some values replaced by others."""

    def __init__(self, program: Program) -> None:
        self._program = program.copy()
        self._program.steps = []
        self._replaced: dict[int, Value] = {}

    def value(self, v: Value) -> Value:
        """The value that has replaced `v`, or `v`."""
        return self._replaced.get(id(v), v)

    def _arg(self, a: Any) -> Any:
        if isinstance(a, list):
            return [self._arg(x) for x in a]
        return self.value(a) if isinstance(a, Value) else a

    def renamed(self, step: Step) -> Step:
        """The step, or a copy of it if an argument is replaced: programs share their steps."""
        if self._replaced:
            for a in step.args:
                if type(a) is list or id(a) in self._replaced:
                    return self.with_args(step, step.args)
        return step

    def with_args(self, step: Step, args: Sequence[Any]) -> Step:
        """A copy of the step with other arguments."""
        new, replaced = step.__copy__(), self._replaced
        new.args = tuple(
            [replaced.get(id(a), a) if type(a) is Value else self._arg(a) for a in args]
        )
        return new

    def keep(self, step: Step) -> None:
        """Append a step."""
        self._program.steps.append(step)

    def replace(self, old: Value, new: Value) -> None:
        """Have later steps read `new` instead of `old`."""
        if new is not old:
            self._replaced[id(old)] = new

    def reshaped(self, of: Step, x: Value, shape: tuple[int, ...]) -> Value:
        """A view of a value in another shape, by a step that replaces `of`."""
        if x.shape == shape:
            return x
        view = self.step(of, "reshape", [x], {"shape": shape, "copy": None}, shape)
        view.view = True
        return view

    def step(
        self,
        of: Step,
        name: str,
        args: Sequence[Any],
        params: dict[str, Any],
        shape: tuple[int, ...],
        dtype: Any = None,
    ) -> Value:
        """Append a step that replaces `of`; return its result."""
        dtype = args[0].dtype if dtype is None else np.dtype(dtype)
        out = Value(np.broadcast_to(np.empty((), dtype), shape))
        out.host = next((a.host for a in args if isinstance(a, Value)), of.outs[0].host)
        new = Step(OPS[name], args, params, [out])
        new.backward, new.phase, new.where = of.backward, of.phase, of.where
        self.keep(new)
        return out

    def program(self) -> Program:
        """The new program."""
        new = self._program
        new.outputs = [self.value(v) for v in new.outputs]
        new.writes = [(variable, self.value(v)) for variable, v in new.writes]
        return new


def rewritten(
    program: Program, rule: Callable[[Rewriter, Step], Sequence[Value] | None]
) -> Program:
    """The program whose steps are replaced by a rule.

    ``rule(rewriter, step)`` returns the values that replace the results of a step, for which it has
    written other steps; or None to keep the step.
    """
    rewriter = Rewriter(program)
    for step in program.steps:
        step = rewriter.renamed(step)
        new = rule(rewriter, step)
        if new is None:
            rewriter.keep(step)
            continue
        for out, value in zip(step.outs, new, strict=True):
            rewriter.replace(out, value)
    return rewriter.program()


class FusedStep(Step):
    """Several steps that one launch executes.

    Attributes:
        launch: launches on plain arrays, after the namespace; returns the results, an array or a
            list of them, or NotImplemented to decline.
        unfused: the steps as a program of the arguments: it runs if the launch declines.
        overwrites: like an op's: the position of the argument that `run` overwrites with
            ``over=True``.
        placed: None, or the position of a result that the kernel can write to a second address,
            which it reads from the array that is the argument `place` of `run`.
    """

    __slots__ = ("launch", "overwrites", "placed", "unfused")

    def __init__(
        self,
        name: str,
        args: Sequence[Any],
        steps: list[Step],
        outs: list[Value],
        launch: Callable[..., Any],
    ) -> None:
        self.unfused = Program()
        self.unfused.inputs, self.unfused.steps, self.unfused.outputs = list(args), steps, outs
        super().__init__(None, args, steps[0].params, outs, name=name)
        self.launch = launch
        self.overwrites: int | None = None
        self.placed: int | None = None
        self.where = steps[0].where

    def run(self, xp: Reading, *arrays: Any, **how: Any) -> Any:
        """Launch on plain arrays; returns the results, or NotImplemented to decline."""
        results = self.launch(xp, *arrays, **how)
        is_one = not isinstance(results, (list, tuple))
        return [results] if is_one and results is not NotImplemented else results


def replace_steps(program: Program, replacements: dict[int, list[Step]]) -> Program:
    """Replace steps, given by id, by lists of others."""
    new = program.copy()
    new.steps = [s for step in program.steps for s in replacements.get(id(step), [step])]
    return new
