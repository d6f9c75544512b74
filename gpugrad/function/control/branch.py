"""Running a traced branch or loop body, which `trace_branch` has written as a program."""

from __future__ import annotations

import contextlib
from collections.abc import Sequence
from typing import Any, cast

from gpugrad.autodiff.recorder import recording_stopped
from gpugrad.core.backend import ARRAYS, is_inexact
from gpugrad.core.forking import cached_property
from gpugrad.core.listening import threads
from gpugrad.core.settings import numerics
from gpugrad.core.tensor import Tensor, tensor_with_id, wrap
from gpugrad.function.control.control_op import strip_gradient_overrides
from gpugrad.function.control.loop_gradient import Repeated
from gpugrad.function.cpu.c_loop import Body
from gpugrad.function.differentiate import known, tapes_only
from gpugrad.function.on_tape import Pair
from gpugrad.function.plan import Options, optimized, planned
from gpugrad.function.signature import Signature
from gpugrad.kernels.cpu.moves import Function
from gpugrad.trace.array import current_trace
from gpugrad.trace.numerics import Check, log_check, unchecked
from gpugrad.trace.program import NotReplayable, Program, Step, Undo, Value, fill_index

_NOTHING = contextlib.nullcontext()


class Branch:
    """A branch or loop body of a traced function, as a function of Tensors.

    If nobody records, its program is replayed. Under tapes, replays of a forward and a backward
    program make one log entry, as for a traced function. Otherwise its steps run one by one on
    Tensors, so every order and mode of derivative works.

    Attributes:
        effects: its side effects: a name, and what undoes it, of each.
        program: the program without gradients of its own, for runs that nobody records.
        options: how they are optimized.
    """

    def __init__(
        self,
        label: str,
        program: Program,
        effects: Sequence[tuple[str, Undo | None]],
        passes: Sequence[str] | None,
    ) -> None:
        self.label, self.effects = label, effects
        self.options = Options.of(label, passes, None, None)
        self._program = optimized(program, self.options)
        self.program = optimized(strip_gradient_overrides(self._program), self.options)
        self._program.forget_arrays()
        self._pairs: dict[tuple[int, ...], Pair | None] = {}
        self._in_loop: dict[int, Repeated] = {}

    def __call__(self, *tensors: Tensor) -> list[Tensor]:
        """The function's results, recorded by the recorders of this thread."""
        if current_trace() is not None or (threads.stack and not tapes_only()) or numerics():
            return self.run(*tensors)
        wanted = tuple(k for k, t in enumerate(tensors) if known(t))
        if not wanted:
            return [wrap(a) for a in self._planned[1]([t._data for t in tensors])]
        arguments = [tensor_with_id(t._kept(), t._id) for t in tensors]  # no object twice
        sources = [arguments[k] for k in wanted]
        distinct = len({t._id for t in sources}) == len(sources)
        pair = self._pair(wanted, arguments, sources) if distinct else None
        if pair is None:
            return self.run(*tensors)

        def again() -> list[Tensor]:
            return [t for t in self.run(*arguments) if is_inexact(t.dtype)]

        return pair.replayed(self.label, [t._data for t in arguments], sources, again)

    @cached_property
    def is_open(self) -> bool:
        """Whether its steps say all about it: no effects, no gradients of their own.

        Its own control flow can only be scans of such bodies.
        """
        if self.effects or any(step.op is None for step in self._program.steps):
            return False
        calls = [s.op for s in self._program.steps if s.op.kind == "control"]
        return all(getattr(getattr(op, "call", None), "is_open", False) for op in calls)

    def in_loop(self, n_carry: int = 0) -> Function | None:
        """The program as a step of a loop in C, with a carry if it is a body; None if it cannot."""
        if n_carry not in self._in_loop:
            body = Body(self.program, n_carry, 0)
            self._in_loop[n_carry] = Repeated(body, self.options, 1)
        return self._in_loop[n_carry].in_loop(False)

    @cached_property
    def _planned(self) -> tuple[Program, Any]:
        return planned(self.program, self.options)  # not needed by a body that `Scan` runs

    @property
    def shown(self) -> Program:
        """The program as it is replayed."""
        return self._planned[0]

    def _pair(
        self, wanted: tuple[int, ...], arguments: list[Tensor], sources: list[Tensor]
    ) -> Pair | None:
        """Programs for the value and the gradient by the arguments `wanted`; None for effects."""
        if wanted not in self._pairs:
            with recording_stopped(), contextlib.suppress(NotReplayable):  # it has effects
                signature = Signature(self.run)
                pair = Pair(self.run, arguments, {}, sources, self.options, signature)
                self._pairs[wanted] = pair
            self._pairs.setdefault(wanted, None)
        return self._pairs[wanted]

    def run(self, *tensors: Tensor) -> list[Tensor]:
        """Run the program step by step, on Tensors."""
        values: dict[int, Tensor] = {
            id(v): t for v, t in zip(self._program.inputs, tensors, strict=True)
        }

        def argument(a: Any) -> Any:
            if isinstance(a, list):
                return [argument(x) for x in a]
            if not isinstance(a, Value):
                return wrap(a) if type(a) in ARRAYS else a
            return values[id(a)] if a.constant is None else wrap(a.constant)

        with unchecked() if numerics() else _NOTHING:  # the program has its own checks
            for step in self._program.steps:
                results = _run_step(step, [argument(a) for a in step.args])
                values.update((id(v), t) for v, t in zip(step.outs, results, strict=True))
        return [argument(v) for v in self._program.outputs]


def _run_step(step: Step, args: list[Any]) -> Sequence[Tensor]:
    """The results of one step, of an op or an effect, on Tensors."""
    call, trace = cast(Any, step.call), current_trace()
    if step.op is not None:
        params = dict(step.params)
        if "index" in params:
            params["index"] = fill_index(params["index"], args)
        results = step.op.eager(*args[: len(step.op.arrays) or None], **params)
    elif getattr(call, "eager", None) is not None:  # of an op, or a ControlStep that has effects
        results = call.eager(*args)
    elif trace is not None and isinstance(call, Check):
        log_check(trace, call, args)
        results = []
    elif trace is not None:
        about = [(v.shape, v.dtype) for v in step.outs]
        results = trace.effect(step.name, call, args, undo=step.undo, about=about)
    else:
        results = call(*args)
    return [results] if isinstance(results, Tensor) else results
