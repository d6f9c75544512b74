"""`cond` and `while_loop` in a traced function: programs of which values choose.

The functions of their steps hold no Tensor: the program would keep it alive.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np

from gpugrad.autodiff.batched import Level, levels_stopped
from gpugrad.autodiff.borders import give_each_example, unwrap_level, wrap_level
from gpugrad.autodiff.recorder import recording_stopped
from gpugrad.core import devices
from gpugrad.core.backend import TENSOR, innermost_array, is_inexact
from gpugrad.core.devices import full_on_device_of
from gpugrad.core.tensor import Tensor, wrap
from gpugrad.function.control.branch import Branch
from gpugrad.function.control.control_step import ControlStep
from gpugrad.function.control.examples import stopped, trace_examples, with_levels, without_levels
from gpugrad.function.control.tracing import BranchTrace, make_branches, trace_branch
from gpugrad.function.cpu.loop_memory import choice, while_gradient, while_loop
from gpugrad.function.differentiate import by_tape, known
from gpugrad.kernels.cpu.moves import Function
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
        self._reversed: dict[tuple[int, ...], ControlStep] = {}

    def __call__(self, *tensors: Tensor) -> list[Tensor]:
        """The last carry, recorded by the recorders of this thread."""
        return last_of(self.carries(*tensors))

    def carries(self, *tensors: Tensor) -> Iterator[list[Tensor]]:
        """The carry of each iteration, the first and the last one included."""
        now, more = list(tensors[: self._n]), tensors[self._n :]
        holds, then = self._holds, self._then
        return iterate(lambda *c: holds(*c, *more)[0], lambda *c: then(*c, *more), now, self._most)

    def c_call(self, xp: Any, *args: Any) -> Any:
        """It as a step of a loop in C: see the field `c_call` of ops."""
        return self.in_loop(len(args) - self._n) or NotImplemented

    def in_loop(self, n_same: int) -> Function | None:
        """It as a step of a loop in C; None if a step of it is not C."""
        (flag,) = self._holds.program.outputs
        if flag.dtype != np.bool_ or flag.shape:
            return None
        test, body = self._holds.in_loop(), self._then.in_loop(self._n)
        if test is None or body is None:
            return None
        most = -1 if self._most is None else max(self._most, 0)
        return while_loop(test, body, self._n, n_same, most)

    @property
    def is_open(self) -> bool:
        """Whether its gradient can be such a step: the steps of test and body say all."""
        return self._holds.is_open and self._then.is_open

    def gradient_steps(
        self,
        levels: Sequence[Level],
        tensors: Sequence[Tensor],
        wanted: Sequence[int],
        g: Sequence[Tensor],
    ) -> list[Tensor]:
        """The gradients as a step of the trace, which runs the loop again; see `Scan`."""
        lowered = [without_levels(t, levels) for t in tensors]
        upstream = [without_levels(x, levels, repeat=True) for x in g]
        inexact = [k for k in range(self._n) if is_inexact(tensors[k].dtype)]
        added = [k for k in wanted if k >= self._n]
        place = innermost_array(lowered[0]._data)
        zeros = [wrap(full_on_device_of(place, lowered[k].shape, lowered[k].dtype)) for k in added]
        key = tuple(added)
        if key not in self._reversed:
            self._reversed[key] = self._reversal(inexact, added, place)
        with stopped(levels):
            grads = self._reversed[key](*lowered, *upstream, *zeros)
        by = dict(zip([*inexact, *added], grads, strict=True))
        of = [[n for n in levels if n.is_in(tensors[k]._data)] for k in wanted]
        return [with_levels(by[k], own) for k, own in zip(wanted, of, strict=True)]

    def _reversal(self, inexact: list[int], added: list[int], place: Any) -> ControlStep:
        """The step that computes gradients by parts of the carry, and sums of those by others."""
        inputs, at, n = self._then.program.inputs, [*inexact, *added], len(inexact)

        def slopes(*args: Tensor) -> list[Tensor]:
            g, sums, before = args[:n], args[n : len(at)], args[len(at) :]
            grads = by_tape(self._then.run, before, at)[1](g)
            return [*grads[:n], *map(TENSOR.add, sums, grads[n:])]

        specs = [(v.shape, v.dtype) for v in (*(inputs[k] for k in at), *inputs)]
        like = blank_arrays(specs, devices.device_of(place))
        with levels_stopped():
            traced, arrays = trace_branch(
                _trace(), f"the gradient of {self._then.label}", slopes, like
            )
        (branch,), captured = make_branches([("gradient", traced)])
        assert not captured
        call = ReversedWhile(self, branch, self._n, len(at))
        branches = (self._holds, self._then, branch)
        about = [(a.shape, a.dtype) for a in arrays]
        return ControlStep("while_loop_gradient", call, branches, about, ())


class ReversedWhile:
    """The gradient of a `while_loop`: it runs the loop again, then goes back over its iterations.

    It gets what the loop gets, the gradients of the last carry, and zeros, to which the gradients
    of what all iterations read are added.

    Args:
        loop: the loop.
        slopes: of the gradients and sums after an iteration, the carry before it, and what stays
            the same: the gradients and sums before it.
        n_carry, n_state: how many Tensors are the carry, and how many are gradients and sums.
    """

    def __init__(self, loop: While, slopes: Branch, n_carry: int, n_state: int) -> None:
        self._loop, self._slopes, self._n, self._n_state = loop, slopes, n_carry, n_state

    def __call__(self, *tensors: Tensor) -> list[Tensor]:
        """The gradients and sums, recorded by the recorders of this thread."""
        inputs, state = tensors[: -self._n_state], list(tensors[-self._n_state :])
        *before, _ = self._loop.carries(*inputs)
        for carry in reversed(before):
            state = self._slopes(*state, *carry, *inputs[self._n :])
        return state

    def c_call(self, xp: Any, *args: Any) -> Any:
        """It as a step of a loop in C: see the field `c_call` of ops."""
        loop = self._loop.in_loop(len(args) - self._n - self._n_state)
        slopes = self._slopes.in_loop(self._n_state)
        if loop is None or slopes is None:
            return NotImplemented
        return while_gradient(loop, slopes, self._n_state)


def iterate(
    goes_on: Callable[..., Any], body: Callable[..., Any], carry: list[Tensor], most: int | None
) -> Iterator[list[Tensor]]:
    """The carries of a loop, which ends after `most` iterations or when a test fails."""
    count = 0
    yield carry
    while most is None or count < most:
        with recording_stopped():  # a bool has no gradient
            if not goes_on(*carry):
                break
        carry, count = body(*carry), count + 1
        yield carry


def last_of(carries: Iterator[list[Tensor]]) -> list[Tensor]:
    """The last carry of a loop, without keeping the others."""
    return deque(carries, maxlen=1).pop()
