"""`cond` and `while_loop` in a traced function: programs of which values choose.

The functions of their steps hold no Tensor: the program would keep it alive.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from gpugrad.autodiff.batched import Level, levels_stopped
from gpugrad.autodiff.borders import give_each_example, unwrap_level, wrap_level
from gpugrad.autodiff.recorder import recording_stopped
from gpugrad.core import devices
from gpugrad.core.backend import TENSOR, innermost_array, is_inexact
from gpugrad.core.tensor import Tensor
from gpugrad.function.control.branch import Branch
from gpugrad.function.control.control_step import ControlStep
from gpugrad.function.control.examples import stopped, trace_examples, with_levels, without_levels
from gpugrad.function.control.tracing import BranchTrace, make_branches, trace_branch
from gpugrad.function.cpu.loop_memory import choice, repetition
from gpugrad.function.differentiate import by_tape, known
from gpugrad.trace.array import current_trace
from gpugrad.trace.shapes import blank_arrays
from gpugrad.trace.tracing import Tracing


class Cond:
    """The function of a `cond` step: of a boolean, and of the arguments of both branches."""

    def __init__(self, yes: Branch, no: Branch) -> None:
        self._yes, self._no = yes, no
        self._slopes: dict[tuple[int, ...], ControlStep] = {}
        self._mapped: dict[tuple[int, tuple[bool, ...]], ControlStep] = {}

    def __call__(self, pred: Tensor, *tensors: Tensor) -> list[Tensor]:
        """The results of a branch, recorded by the recorders of this thread."""
        return (self._yes if pred else self._no)(*tensors)

    @property
    def is_open(self) -> bool:
        """Whether gradients and vmaps of it can be such steps: the branches' steps say all."""
        return self._yes.is_open and self._no.is_open

    def gradient_steps(
        self,
        levels: Sequence[Level],
        tensors: Sequence[Tensor],
        wanted: Sequence[int],
        g: Sequence[Tensor],
    ) -> list[Tensor] | None:
        """The gradients as a step of the trace, which runs a branch again; see `Scan`."""
        if 0 in wanted:  # of what chooses
            return None
        pred, *rest = [without_levels(t, levels) for t in tensors]
        upstream = [without_levels(x, levels, repeat=True) for x in g]
        at, n = [k - 1 for k in wanted], len(rest)

        def traced(branch: Branch) -> tuple[BranchTrace, list[Any]]:
            def slopes(*args: Tensor) -> list[Tensor]:
                return by_tape(branch.run, args[:n], at)[1](args[n:])

            inputs = branch.program.inputs
            specs = [*inputs, *(v for v in branch.program.outputs if is_inexact(v.dtype))]
            device = devices.device_of(innermost_array(pred._data))
            like = blank_arrays([(v.shape, v.dtype) for v in specs], device)
            with levels_stopped():
                return trace_branch(_trace(), f"the gradient of {branch.label}", slopes, like)

        key = tuple(wanted)
        if key not in self._slopes:
            self._slopes[key] = _step(*map(traced, (self._yes, self._no)))
        with stopped(levels):
            grads = self._slopes[key](pred, *rest, *upstream)
        of = [[n for n in levels if n.is_in(tensors[k]._data)] for k in wanted]
        return [with_levels(x, own) for x, own in zip(grads, of, strict=True)]

    def for_examples(
        self, levels: Sequence[Level], level: Level, tensors: Sequence[Tensor]
    ) -> list[Tensor]:
        """The results, given tensors at a level that is not among those of the step.

        Where the examples choose differently, both branches run.
        """
        tensors = [give_each_example(t) if known(t) else t for t in tensors]
        with stopped([*levels, level]):
            pred, *rest = [without_levels(t, levels) for t in tensors]
            if level.is_in(pred._data):
                pred = TENSOR.astype(pred, np.dtype(bool))
                pairs = zip(self._yes.run(*rest), self._no.run(*rest), strict=True)
                return [with_levels(TENSOR.where(pred, a, b), levels) for a, b in pairs]
            key = level.size, tuple(level.is_in(t._data) for t in rest)
            if key not in self._mapped:
                size, each = key
                self._mapped[key] = _step(
                    trace_examples(self._yes, size, [*each], rest),
                    trace_examples(self._no, size, [*each], rest),
                )
            args = [
                unwrap_level(t, level, 0) if is_one else t
                for t, is_one in zip(rest, key[1], strict=True)
            ]
            outs = self._mapped[key](pred, *args)
            return [with_levels(wrap_level(x, level, 0), levels) for x in outs]

    def c_call(self, xp: Any, pred: Any, *args: Any) -> Any:
        """It as a step of a loop in C: see the field `c_call` of ops."""
        if pred.dtype != np.bool_:
            return NotImplemented
        yes, no = self._yes.in_loop(), self._no.in_loop()
        return NotImplemented if yes is None or no is None else choice(yes, no)


def _trace() -> Tracing:
    trace = current_trace()
    assert trace is not None
    return trace


def _step(yes: tuple[BranchTrace, list[Any]], no: tuple[BranchTrace, list[Any]]) -> ControlStep:
    """A step that chooses between two traced branches, which capture nothing."""
    branches, captured = make_branches([("true", yes[0]), ("false", no[0])])
    assert not captured
    return ControlStep("cond", Cond(*branches), branches, [(a.shape, a.dtype) for a in yes[1]], ())


class While:
    """The function of a `while_loop` step: of the carry, and of what test and body capture."""

    def __init__(self, holds: Branch, then: Branch, n_carry: int, most: int | None) -> None:
        self._holds, self._then, self._n, self._most = holds, then, n_carry, most

    def __call__(self, *tensors: Tensor) -> list[Tensor]:
        """The last carry, recorded by the recorders of this thread."""
        now, more = list(tensors[: self._n]), tensors[self._n :]
        holds, then = self._holds, self._then
        return iterate(lambda *c: holds(*c, *more)[0], lambda *c: then(*c, *more), now, self._most)

    def c_call(self, xp: Any, *args: Any) -> Any:
        """It as a step of a loop in C: see the field `c_call` of ops."""
        (flag,) = self._holds.program.outputs
        if flag.dtype != np.bool_ or flag.shape:
            return NotImplemented
        test, body = self._holds.in_loop(), self._then.in_loop(self._n)
        if test is None or body is None:
            return NotImplemented
        most = -1 if self._most is None else max(self._most, 0)
        return repetition(test, body, self._n, len(args) - self._n, most)


def iterate(
    goes_on: Callable[..., Any], body: Callable[..., Any], carry: list[Tensor], most: int | None
) -> list[Tensor]:
    """The last carry of a loop, which ends after `most` iterations or when a test fails."""
    count = 0
    while most is None or count < most:
        with recording_stopped():  # a bool has no gradient
            if not goes_on(*carry):
                break
        carry, count = body(*carry), count + 1
    return carry
