"""Control flow as one step of a program, whose gradient is a step too.

A `ControlStep` is a function of Tensors that loops and branches in Python. Outside a trace it is
simply called, so tapes record what it does. In a trace it becomes one step. A tape in the trace
logs one entry for it: at each replay the step then runs under its own tape, or as a loop with a
gradient (`Scan`), and returns the gradient function as one more result; the gradient is a step that
calls it. A gradient of the gradient is again a control step, which recomputes both from the
arguments, so every order works. Where the steps of all bodies are ops, scans and conds, it is such
steps (`opened`), and so is a vmap that begins later.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from copy import copy
from typing import Any

import numpy as np

from gpugrad.autodiff.batched import (
    Level,
    levels_of,
    levels_running,
    levels_stopped,
    unwrap_levels,
    wrap_levels,
)
from gpugrad.autodiff.borders import examples, give_each_example, inside_levels_of, wrap_level
from gpugrad.autodiff.recorder import RecordedCall, number, recording_stopped
from gpugrad.core import devices
from gpugrad.core.backend import TENSOR, innermost_array, is_inexact, reading
from gpugrad.core.listening import graphs, threads
from gpugrad.core.tensor import Tensor, wrap
from gpugrad.errors import TraceError
from gpugrad.function.control.branch import Branch
from gpugrad.function.control.control_op import ControlOp
from gpugrad.function.control.tracing import BranchTrace
from gpugrad.function.differentiate import Gradients, by_tape, known
from gpugrad.trace.array import Traced, current_trace, pause_trace, unwrap_to_traced
from gpugrad.trace.program import NotReplayable, Program, Step, Undo, Value
from gpugrad.trace.shapes import Specs, blank_arrays
from gpugrad.trace.tracing import Tracing


class ControlStep(ControlOp):
    """A function of Tensors that is one step of a program.

    Args:
        name: the step's name.
        call: function of Tensors that returns a list of Tensors.
        branches: the functions that it may call.
        specs: shape and dtype of each result.
        levels: levels of the vmaps in which it was traced: its arrays have the examples in front.
        result_levels: the levels of each result, if a result lacks some.
    """

    def __init__(
        self,
        name: str,
        call: Callable[..., list[Tensor]],
        branches: Sequence[Branch],
        specs: Specs,
        levels: Sequence[Level],
        result_levels: Sequence[Sequence[Level]] | None = None,
    ) -> None:
        super().__init__(name)
        self.call, self.branches = call, tuple(branches)
        self.specs, self.levels = tuple(specs), tuple(levels)
        self.result_levels = result_levels or [self.levels] * len(self.specs)

    @property
    def effects(self) -> list[tuple[str, Undo | None]]:
        """The side effects that it may have: name and undo function of each."""
        return [effect for branch in self.branches for effect in branch.effects]

    @property
    def undo(self) -> Undo | None:
        """A function that undoes all side effects; None if one of them cannot be undone."""
        undos = [undo for _, undo in self.effects if undo is not None]
        if len(undos) < len(self.effects):
            return None

        def undo() -> Callable[[], None]:
            restores = [undo() for undo in undos]

            def restore() -> None:
                for one in reversed(restores):
                    one()

            return restore

        return undo

    @property
    def programs(self) -> list[tuple[str, Program]]:
        """The programs of its branches, for printing."""
        return [(branch.label, branch.shown) for branch in self.branches]

    @property
    def c_call(self) -> Any:  # type: ignore[override]  # a field of other ops
        """How loops in C run it, if they can."""
        return getattr(self.call, "c_call", None)

    @property
    def extends(self) -> Any:
        """The function whose results are the first ones of this one, on the same arguments."""
        return getattr(self.call, "extends", None)

    def bare(self, xp: Any) -> Callable[..., list[Any]]:
        """The function on plain arrays that a replay calls."""

        def run(*arrays: Any) -> list[Any]:
            return [t._data for t in self.call(*map(wrap, arrays))]

        return run

    def __call__(self, *tensors: Tensor) -> list[Tensor]:
        """Call it, or log it as a step."""
        trace = current_trace()
        if trace is None:
            return self.call(*tensors)
        levels = {level.serial: level for t in tensors for level in levels_of(t._data)}
        if more := [level for _, level in sorted(levels.items()) if level not in self.levels]:
            if hasattr(self.opened, "for_examples"):
                return self.opened.for_examples(self.levels, more[-1], tensors)
            return _call_for_each(self, more[-1], tensors)
        if graphs:
            for t in tensors:
                number(t)
        wanted = [k for k, t in enumerate(tensors) if known(t)]
        is_taped = bool(wanted) and any(is_inexact(dtype) for _, dtype in self.specs)
        is_boxed = is_taped and (self.opened is None or (trace.boxes and not _orders(tensors)))
        step = _with_tape(self, wanted) if is_boxed else self
        results = _write_step(step, trace, [unwrap_to_traced(t._data) for t in tensors])
        pairs = zip(results, self.result_levels, strict=False)
        outs = [wrap(wrap_levels(a, levels)) for a, levels in pairs]
        if is_taped:
            _record(self, tensors, wanted, wrap(results[-1]) if is_boxed else None, outs)
        return outs

    @property
    def opened(self) -> Any:
        """Its `Scan`, `Cond` or `While`, if gradients of that are such steps, too."""
        return self.call if getattr(self.call, "is_open", False) else None

    def eager(self, *tensors: Tensor) -> list[Tensor]:
        """Call it on arrays, with the examples of its levels in front, as when it was traced."""
        return ControlStep(self.name, self.call, self.branches, self.specs, ())(*tensors)


def _write_step(step: ControlStep, trace: Tracing, arrays: Sequence[Any]) -> list[Traced]:
    """Run it on the arrays inside the Traced ones, and log it."""
    effects = step.effects
    if effects and (trace.pure or (trace.undoes and step.undo is None)):
        raise NotReplayable(effects[0][0])
    results: list[Any]
    if trace.abstract:
        places = [devices.device_of(innermost_array(a)) for a in arrays if a.dtype != object]
        results = blank_arrays(step.specs, places[0] if places else devices.default_device())
        if isinstance(trace, BranchTrace):
            trace.effects += effects
    else:
        if step.undo is not None:
            trace._undo.append(step.undo())
        inner = [wrap(a.inner if type(a) is Traced else a) for a in arrays]
        with recording_stopped(), pause_trace(), levels_stopped():
            results = [t._data for t in step.call(*inner)]
    outs = [Traced(a, Value(a)) for a in results]
    for out in outs:
        out.value.view = True  # it may be an argument, or hold one
    args, values = [trace.place(a) for a in arrays], [out.value for out in outs]
    if effects:
        written = Step(None, args, {}, values, name=step.name, call=step, undo=step.undo)
    else:
        written = Step(step, args, {}, values)
        if not trace.abstract:
            trace.executed(written, reading(*results), results)
    trace.program.steps.append(written)
    return outs


# ---- derivatives -------------------------------------------------------------------------


def _orders(tensors: Sequence[Tensor]) -> bool:
    """Whether several recorders know some tensors, so that gradients of gradients follow."""
    seen = [any(t._id in recorder.known for t in tensors) for recorder in threads.stack]
    return seen.count(True) > 1


def _with_tape(step: ControlStep, wanted: Sequence[int]) -> ControlStep:
    """The step with one more result: the function that computes its gradient."""
    with_gradient = getattr(step.call, "with_gradient", functools.partial(by_tape, step.call))

    def call(*tensors: Tensor) -> list[Tensor]:
        outs, gradients = with_gradient(tensors, wanted)
        box = np.empty((), object)  # an array, so that it can be a result of a step
        box[()] = gradients
        return [*outs, wrap(box)]

    specs = [*step.specs, ((), np.dtype(object))]
    return ControlStep(step.name, call, step.branches, specs, step.levels)


class _ControlCall(RecordedCall):
    """One execution of a step, as a tape logs it: each rule first checks its source's levels."""

    def __init__(
        self, step: ControlStep, sources: Sequence[Tensor], gradients: Callable[..., list[Any]]
    ) -> None:
        super().__init__(step.name, gradients)
        self._levels, self._sources = step.levels, sources

    def rules_for(self, n: int) -> list[Callable[..., Any]]:
        pairs = zip(super().rules_for(n), self._sources, strict=True)
        return [functools.partial(self._checked, rule, source) for rule, source in pairs]

    def _checked(self, rule: Callable[..., Any], source: Tensor, *args: Any) -> Any:
        levels = levels_of(source._data)
        if any(at in levels_running() and at not in levels for at in self._levels):
            raise TraceError(
                f"{self.name}: inside vmap in a traced function, gg.function cannot take the "
                "gradient for each example by something that a branch or body reads from outside "
                "and that all examples share. Pass it in: as an operand of gg.cond, or as part of "
                "the carry."
            )
        return rule(*args)


def _record(
    step: ControlStep,
    tensors: Sequence[Tensor],
    wanted: Sequence[int],
    box: Tensor | None,
    outs: Sequence[Tensor],
) -> None:
    """Offer one execution to the recorders of this thread.

    Its gradient is a step that calls what is in the box. For a gradient of the gradient it starts
    from the arguments; that of a scan, and those of many examples together, are scans, and so for
    cond. In a branch or body, code outside may differentiate the gradient too.
    """
    originals = [tensors[k] for k in wanted]
    tensors = [copy(t) for t in tensors]
    sources, n = [tensors[k] for k in wanted], len(tensors)

    def from_box(box: Tensor, *g: Tensor) -> list[Tensor]:
        gradients: Gradients = box._data[()]
        return gradients(g)

    def from_arguments(*tensors_and_g: Tensor) -> list[Tensor]:
        return by_tape(step.call, tensors_and_g[:n], wanted)[1](tensors_and_g[n:])

    def gradients(xp: Any, g: tuple[Any, ...]) -> list[Any]:
        upstream = [x if xp is TENSOR else wrap(x) for x in g if is_inexact(x.dtype)]
        with inside_levels_of(*upstream):
            around = bool(getattr(current_trace(), "around", ()))
            again = xp is TENSOR or around or box is None
            later = any(level not in step.levels for x in upstream for level in levels_of(x._data))
            if step.opened is not None and (again or later):
                grads = step.opened.gradient_steps(step.levels, tensors, wanted, upstream)
                if grads is not None:
                    return grads if xp is TENSOR else [x._data for x in grads]
            drawn = [name for name, _ in step.effects if name != "print"]
            if again and drawn:
                raise TraceError(
                    f"{step.name}: in a traced function the gradient of its gradient recomputes "
                    f"it, which would draw other numbers, or communicate twice ({drawn[0]}). Do "
                    "that before, and pass the results in."
                )
            specs = [(unwrap_levels(x._data).shape, x.dtype) for x in sources]
            levels = [levels_of(x._data) for x in sources]
            call, branches = (from_arguments, step.branches) if again else (from_box, ())
            name = f"{step.name}_gradient"
            back = ControlStep(name, call, branches, specs, step.levels, levels)
            grads = back(*(tensors if again else [box]), *upstream)
            return grads if xp is TENSOR else [x._data for x in grads]

    _ControlCall(step, sources, gradients).record(outs, originals)


# ---- examples that came later ------------------------------------------------------------


def _call_for_each(step: ControlStep, level: Level, tensors: Sequence[Tensor]) -> list[Tensor]:
    """Call it for one example after the other, in a vmap other than those of the trace."""
    tensors = [give_each_example(t) if known(t) else t for t in tensors]
    columns = [examples(t, level) for t in tensors]
    results = [step(*example) for example in zip(*columns, strict=True)]
    return [wrap_level(TENSOR.stack(column), level, 0) for column in zip(*results, strict=True)]
