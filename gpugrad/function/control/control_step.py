"""Control flow as one step of a program, whose gradient is a step too.

A `ControlStep` is a function of Tensors that loops and branches in Python. Outside a trace it is
simply called, so tapes record what it does. In a trace it becomes one step. A tape in the trace
logs one entry for it: at each replay the step then runs under its own tape, or as a loop with a
gradient (`Scan`), and returns the gradient function as one more result; the gradient is a step that
calls it. A gradient of the gradient is again a control step, which recomputes both from the
arguments, so every order works.
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
from gpugrad.autodiff.borders import give_each_example, inside_levels_of, unwrap_level, wrap_level
from gpugrad.autodiff.recorded_call import RecordedCall
from gpugrad.autodiff.recorder import graphs, number, recording_stopped
from gpugrad.autodiff.tape import GradientTape
from gpugrad.core import devices
from gpugrad.core.backend import TENSOR, innermost_array, is_inexact, reading
from gpugrad.core.tensor import Tensor, tensor, wrap
from gpugrad.errors import TraceError
from gpugrad.function.control.branch import Branch
from gpugrad.function.control.control_op import ControlOp
from gpugrad.function.control.scanning import Scan
from gpugrad.function.control.tracing import BranchTrace
from gpugrad.function.on_tape import known
from gpugrad.trace.array import Traced, current_trace, pause_trace, unwrap_to_traced
from gpugrad.trace.program import NotReplayable, Program, Step, Undo, Value
from gpugrad.trace.shapes import Specs, blank_arrays
from gpugrad.trace.tracing import Tracing

Gradients = Callable[[Sequence[Tensor]], list[Tensor]]


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
            return _call_for_each(self, more[-1], tensors)
        if graphs:
            for t in tensors:
                number(t)
        wanted = [k for k, t in enumerate(tensors) if known(t)]
        is_taped = bool(wanted) and any(is_inexact(dtype) for _, dtype in self.specs)
        step = _with_tape(self, wanted) if is_taped else self
        results = _write_step(step, trace, [unwrap_to_traced(t._data) for t in tensors])
        pairs = zip(results, self.result_levels, strict=False)
        outs = [wrap(wrap_levels(a, levels)) for a, levels in pairs]
        if is_taped:
            call = _ControlCall(self, tensors, wanted, wrap(results[-1]))
            call.record(outs, [tensors[k] for k in wanted])
        return outs

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


def _inexact(tensors: Sequence[Tensor]) -> list[Tensor]:
    return [t for t in tensors if is_inexact(t.dtype)]


def _dense_gradients(
    tape: GradientTape, outs: list[Tensor], sources: list[Tensor], g: Sequence[Tensor]
) -> list[Tensor]:
    """Dense gradients with respect to the sources, with zeros for missing ones."""
    return [tensor(x) for x in tape.gradient(_inexact(outs), sources, list(g), "zero")]


def _gradient_step(
    step: ControlStep,
    call: Callable[..., list[Tensor]],
    branches: Sequence[Branch],
    tensors: Sequence[Tensor],
    wanted: Sequence[int],
) -> ControlStep:
    """`call` as a step that returns one gradient for each argument in `wanted`."""
    arrays = [tensors[k]._data for k in wanted]
    specs = [(unwrap_levels(a).shape, a.dtype) for a in arrays]
    levels = [levels_of(a) for a in arrays]
    return ControlStep(f"{step.name}_gradient", call, branches, specs, step.levels, levels)


def _with_tape(step: ControlStep, wanted: Sequence[int]) -> ControlStep:
    """The step with one more result: the function that computes its gradient."""

    def taped(tensors: Sequence[Tensor]) -> tuple[list[Tensor], Gradients]:
        args, sources = list(tensors), [wrap(tensors[k]._data) for k in wanted]
        for k, source in zip(wanted, sources, strict=True):
            args[k] = source
        with GradientTape(persistent=True, watch_accessed_variables=False) as tape:
            tape.watch(sources)
            outs = step.call(*args)
        return outs, functools.partial(_dense_gradients, tape, outs, sources)

    def call(*tensors: Tensor) -> list[Tensor]:
        loop = step.call.with_gradient(tensors, wanted) if isinstance(step.call, Scan) else None
        if loop is None:
            outs, gradients = taped(tensors)
            return [*outs, wrap(_boxed(gradients))]
        outs, by_loop = loop

        def of_loop(g: Sequence[Tensor]) -> list[Tensor]:
            grads = by_loop(g)
            return taped(tensors)[1](g) if grads is None else grads

        return [*outs, wrap(_boxed(of_loop))]

    specs = [*step.specs, ((), np.dtype(object))]
    return ControlStep(step.name, call, step.branches, specs, step.levels)


def _boxed(thing: Any) -> np.ndarray[Any, Any]:
    """An array that holds any object, so that it can be a result of a step."""
    box = np.empty((), object)
    box[()] = thing
    return box


def _gradient_from_tape(
    step: ControlStep, tensors: Sequence[Tensor], wanted: Sequence[int]
) -> ControlStep:
    """The gradient, as a function of what is in the box and the upstream gradients."""

    def call(box: Tensor, *g: Tensor) -> list[Tensor]:
        gradients: Gradients = box._data[()]
        return gradients(g)

    return _gradient_step(step, call, (), tensors, wanted)


def _gradient_from_inputs(
    step: ControlStep, tensors: Sequence[Tensor], wanted: Sequence[int]
) -> ControlStep:
    """The gradient, as a function of the arguments and the upstream gradients."""
    n = len(tensors)

    def call(*tensors_and_g: Tensor) -> list[Tensor]:
        args, g = list(tensors_and_g[:n]), tensors_and_g[n:]
        sources = [TENSOR.positive(args[k]) for k in wanted]  # one argument passed twice is two
        for k, source in zip(wanted, sources, strict=True):
            args[k] = source
        with GradientTape(watch_accessed_variables=False) as tape:
            tape.watch(sources)
            outs = step.call(*args)
        return _dense_gradients(tape, outs, sources, g)

    return _gradient_step(step, call, step.branches, tensors, wanted)


class _ControlCall(RecordedCall):
    """One execution of a step, as a tape logs it."""

    def __init__(
        self, step: ControlStep, tensors: Sequence[Tensor], wanted: Sequence[int], box: Tensor
    ) -> None:
        super().__init__(step.name)
        self._step, self._wanted, self._box = step, wanted, box
        self._tensors = [copy(t) for t in tensors]

    def rules_for(self, n: int) -> list[Callable[..., Any]]:
        """One rule for each source, which first checks the levels of its source."""

        def checked(rule: Callable[..., Any], source: Tensor, *args: Any) -> Any:
            self._check_levels(source)
            return rule(*args)

        rules = zip(super().rules_for(n), self._wanted, strict=True)
        return [functools.partial(checked, rule, self._tensors[k]) for rule, k in rules]

    def gradients(self, xp: Any, g: tuple[Any, ...]) -> list[Any]:
        """Ask the step's own tape; for a gradient of the gradient, start from the arguments.

        In a branch or body, code outside may differentiate the gradient too.
        """
        upstream = _inexact([x if xp is TENSOR else wrap(x) for x in g])
        with inside_levels_of(*upstream):
            if xp is not TENSOR and not getattr(current_trace(), "around", ()):
                step = _gradient_from_tape(self._step, self._tensors, self._wanted)
                return [x._data for x in step(self._box, *upstream)]
            if drawn := [name for name, _ in self._step.effects if name != "print"]:
                raise TraceError(
                    f"{self.name}: in a traced function the gradient of its gradient recomputes "
                    f"it, which would draw other numbers ({drawn[0]}). Draw them before, and "
                    "pass them in."
                )
            step = _gradient_from_inputs(self._step, self._tensors, self._wanted)
            grads = step(*self._tensors, *upstream)
            return grads if xp is TENSOR else [x._data for x in grads]

    def _check_levels(self, source: Tensor) -> None:
        levels = levels_of(source._data)
        if any(at in levels_running() and at not in levels for at in self._step.levels):
            raise TraceError(
                f"{self.name}: inside vmap in a traced function, gg.function cannot take the "
                "gradient for each example by something that a branch or body reads from outside "
                "and that all examples share. Pass it in: as an operand of gg.cond, or as part of "
                "the carry."
            )


# ---- examples that came later ------------------------------------------------------------


def _call_for_each(step: ControlStep, level: Level, tensors: Sequence[Tensor]) -> list[Tensor]:
    """Call it for one example after the other, in a vmap other than those of the trace."""
    tensors = [give_each_example(t) if known(t) else t for t in tensors]

    def examples(t: Tensor) -> list[Tensor]:
        return list(unwrap_level(t, level, 0)) if level.is_in(t._data) else [t] * level.size

    results = [step(*example) for example in zip(*map(examples, tensors), strict=True)]
    return [wrap_level(TENSOR.stack(column), level, 0) for column in zip(*results, strict=True)]
