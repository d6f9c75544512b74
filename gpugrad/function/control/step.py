"""Control flow as one step of a program, whose gradient is a step too.

A `Staged` is a function of Tensors that loops and branches in Python. Where nothing is traced it is
just called, so tapes record what it does. In a trace it becomes one step. A tape in the trace
logs one entry for it: the step then runs under a tape of its own at each replay, hands that on as
one more result, and the gradient is a step that asks it. For a gradient of the gradient both are
one function of Tensors, which is staged in its turn: so there is every order.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from copy import copy
from typing import Any

import numpy as np

from gpugrad.autodiff.batched import (
    Level,
    dressed,
    enter,
    leave,
    levels_of,
    levels_running,
    levels_stopped,
    reopened,
    spread_everywhere,
    stripped,
)
from gpugrad.autodiff.recorder import graphs, number, recording_stopped
from gpugrad.autodiff.tape import GradientTape
from gpugrad.core import devices
from gpugrad.core.backend import TENSOR, bottom, is_inexact
from gpugrad.core.tensor import Tensor, tensor, wrap
from gpugrad.errors import TraceError
from gpugrad.function.control.branch import Sub
from gpugrad.function.control.tracing import Inner, blank
from gpugrad.function.on_tape import known
from gpugrad.registry.fields import Replay
from gpugrad.registry.rules import OwnRules
from gpugrad.trace.array import Traced, running, trace_stopped, unwrapped
from gpugrad.trace.program import OtherwiseError, Program, Step, Undo, Value
from gpugrad.trace.tracing import Tracing

__all__ = ["Staged"]

About = Sequence[tuple[tuple[int, ...], Any]]


class Staged(Replay):
    """A function of Tensors that is one step of a program; stands there in place of an op.

    Args:
        name: of the step.
        call: function of Tensors that returns a list of Tensors.
        subs: the functions that it may call.
        about: shapes and dtypes of its results.
        levels: of the vmaps in which it was written down, whose examples the arrays have in front.
        each: for each result the levels that it has, if that is not all.
    """

    kind, arrays = "control", ()
    is_library_function = variadic = False
    outputs = 2  # it returns a list, also of one

    def __init__(
        self, name: str, call: Callable[..., list[Tensor]], subs: Sequence[Sub], about: About,
        levels: Sequence[Level], each: Sequence[Sequence[Level]] | None = None,
    ) -> None:  # fmt: skip
        self.name, self.call, self.subs = name, call, tuple(subs)
        self.about, self.levels = tuple(about), tuple(levels)
        self.each = [self.levels] * len(self.about) if each is None else each

    @property
    def effects(self) -> list[tuple[str, Undo | None]]:
        """What may happen in it besides computing, and how it is undone."""
        return [effect for sub in self.subs for effect in sub.effects]

    @property
    def undo(self) -> Undo | None:
        """What undoes all of that, if all can be undone."""
        every = [undo for _, undo in self.effects if undo is not None]
        if len(every) < len(self.effects):
            return None

        def undo() -> Callable[[], None]:
            found = [undo() for undo in every]

            def back() -> None:
                for one in reversed(found):
                    one()

            return back

        return undo

    @property
    def programs(self) -> list[tuple[str, Program]]:
        """Those of the functions that it may call, to be shown."""
        return [(sub.label, sub.shown) for sub in self.subs]

    def bare(self, xp: Any) -> Callable[..., list[Any]]:
        """It as a function of bare arrays, as a replay calls it."""

        def run(*arrays: Any) -> list[Any]:
            return [t._data for t in self.call(*map(wrap, arrays))]

        return run

    def __call__(self, *tensors: Tensor) -> list[Tensor]:
        """Call it, or log it as a step."""
        trace = running()
        if trace is None:
            return self.call(*tensors)
        every = {at.serial: at for t in tensors for at in levels_of(t._data)}
        if more := [at for _, at in sorted(every.items()) if at not in self.levels]:
            return _looped(self, more[-1], tensors)
        if graphs:
            for t in tensors:
                number(t)
        wanted = [k for k, t in enumerate(tensors) if known(t)]
        taped = (
            _taped(self, wanted) if wanted and any(is_inexact(d) for _, d in self.about) else None
        )
        made = _logged(taped or self, trace, [unwrapped(t._data) for t in tensors])
        outs = [wrap(dressed(a, at)) for a, at in zip(made, self.each, strict=False)]
        if taped is not None:
            entry = _Entry(self, tensors, wanted, wrap(made[-1]))
            entry.record(outs, [tensors[k] for k in wanted])
        return outs

    def eager(self, *tensors: Tensor) -> list[Tensor]:
        """Call it on what it was written down for: with the examples of its levels in front."""
        return Staged(self.name, self.call, self.subs, self.about, ())(*tensors)


def _logged(staged: Staged, trace: Tracing, arrays: Sequence[Any]) -> list[Traced]:
    """Run it on the arrays below those that are Traced, and log the step."""
    effects = staged.effects
    if effects and (trace.pure or (trace.trial and staged.undo is None)):
        raise OtherwiseError(effects[0][0])
    results: list[Any]
    if isinstance(trace, Inner):
        places = [devices.device_of(bottom(a)) for a in arrays if a.dtype != object]
        results = blank(staged.about, places[0] if places else devices.default_device())
        trace.effects += effects
    else:
        if staged.undo is not None:
            trace._undo.append(staged.undo())
        inner = [wrap(a.inner if type(a) is Traced else a) for a in arrays]
        with recording_stopped(), trace_stopped(), levels_stopped():
            results = [t._data for t in staged.call(*inner)]
    made = [Traced(a, Value(a)) for a in results]
    for m in made:
        m.value.view = True  # it may be an argument, or hold one
    args, outs = [trace.place(a) for a in arrays], [m.value for m in made]
    if effects:
        step = Step(None, args, {}, outs, name=staged.name, call=staged, undo=staged.undo)
    else:
        step = Step(staged, args, {}, outs)
        step.results = [] if isinstance(trace, Inner) else results
    trace.program.steps.append(step)
    return made


# ---- derivatives -------------------------------------------------------------------------


def _inexact(tensors: Sequence[Tensor]) -> list[Tensor]:
    return [t for t in tensors if is_inexact(t.dtype)]


def _gradients(
    tape: GradientTape, outs: list[Tensor], sources: list[Tensor], g: Sequence[Tensor]
) -> list[Tensor]:
    """Dense ones, and zeros for those that there are not."""
    return [tensor(x) for x in tape.gradient(_inexact(outs), sources, list(g), "zero")]


def _gradient(
    staged: Staged, call: Callable[..., list[Tensor]], subs: Sequence[Sub],
    tensors: Sequence[Tensor], wanted: Sequence[int],
) -> Staged:  # fmt: skip
    """A gradient by some of the arguments, which has their shapes, dtypes and levels."""
    arrays = [tensors[k]._data for k in wanted]
    about = [(stripped(a).shape, a.dtype) for a in arrays]
    each = [levels_of(a) for a in arrays]
    return Staged(f"{staged.name}_gradient", call, subs, about, staged.levels, each)


def _taped(staged: Staged, wanted: Sequence[int]) -> Staged:
    """It with one more result: a tape that has recorded it, for its gradient."""

    def call(*tensors: Tensor) -> list[Tensor]:
        given, sources = list(tensors), [wrap(tensors[k]._data) for k in wanted]
        for k, source in zip(wanted, sources, strict=True):
            given[k] = source
        with GradientTape(persistent=True, watch_accessed_variables=False) as tape:
            tape.watch(sources)
            outs = staged.call(*given)
        return [*outs, wrap(_boxed((tape, outs, sources)))]

    about = [*staged.about, ((), np.dtype(object))]
    return Staged(staged.name, call, staged.subs, about, staged.levels)


def _boxed(thing: Any) -> np.ndarray[Any, Any]:
    box = np.empty((), object)
    box[()] = thing
    return box


def _of_tape(staged: Staged, tensors: Sequence[Tensor], wanted: Sequence[int]) -> Staged:
    """The gradient, as a function of the tape and the upstream gradients."""

    def call(box: Tensor, *g: Tensor) -> list[Tensor]:
        tape, outs, sources = box._data[()]
        return _gradients(tape, outs, sources, g)

    return _gradient(staged, call, (), tensors, wanted)


def _of_inputs(staged: Staged, tensors: Sequence[Tensor], wanted: Sequence[int]) -> Staged:
    """The gradient, as a function of the arguments and the upstream gradients."""
    n = len(tensors)

    def call(*tensors_and_g: Tensor) -> list[Tensor]:
        given, g = list(tensors_and_g[:n]), tensors_and_g[n:]
        sources = [TENSOR.positive(given[k]) for k in wanted]  # one argument given twice is two
        for k, source in zip(wanted, sources, strict=True):
            given[k] = source
        with GradientTape(watch_accessed_variables=False) as tape:
            tape.watch(sources)
            outs = staged.call(*given)
        return _gradients(tape, outs, sources, g)

    return _gradient(staged, call, staged.subs, tensors, wanted)


class _Entry(OwnRules):
    """One run of a step."""

    def __init__(
        self, staged: Staged, tensors: Sequence[Tensor], wanted: Sequence[int], box: Tensor
    ) -> None:
        super().__init__(staged.name)
        self._staged, self._wanted, self._box = staged, wanted, box
        self._tensors = [copy(t) for t in tensors]

    def spread(self, n: int) -> list[Callable[..., Any]]:
        """One rule for each source, which looks first at the levels of its source."""

        def checked(rule: Callable[..., Any], source: Tensor, *given: Any) -> Any:
            self._check_levels(source)
            return rule(*given)

        rules = zip(super().spread(n), self._wanted, strict=True)
        return [functools.partial(checked, rule, self._tensors[k]) for rule, k in rules]

    def gradients(self, xp: Any, g: tuple[Any, ...]) -> list[Any]:
        """By asking the step's own tape; for a gradient of the gradient, from the arguments.

        In a branch or body something outside may differentiate the gradient too.
        """
        upstream = _inexact([x if xp is TENSOR else wrap(x) for x in g])
        with reopened(*upstream):
            if xp is not TENSOR and not getattr(running(), "around", ()):
                found = _of_tape(self._staged, self._tensors, self._wanted)(self._box, *upstream)
                return [x._data for x in found]
            if drawn := [name for name, _ in self._staged.effects if name != "print"]:
                raise TraceError(
                    f"{self.name}: in a traced function the gradient of its gradient computes it "
                    f"again, which would draw other numbers ({drawn[0]}). Draw them before, and "
                    "pass them in."
                )
            again = _of_inputs(self._staged, self._tensors, self._wanted)
            found = again(*self._tensors, *upstream)
            return found if xp is TENSOR else [x._data for x in found]

    def _check_levels(self, source: Tensor) -> None:
        own = levels_of(source._data)
        if any(at in levels_running() and at not in own for at in self._staged.levels):
            raise TraceError(
                f"{self.name}: inside vmap in a traced function, the gradient for each example by "
                "something that a branch or body reads from outside, and that is the same for all "
                "examples. Pass it in: as an operand of gg.cond, or as part of the carry."
            )


# ---- examples that came later ------------------------------------------------------------


def _looped(staged: Staged, level: Level, tensors: Sequence[Tensor]) -> list[Tensor]:
    """It for one example after the other of a vmap in which it was not written down."""
    tensors = [spread_everywhere(t) if known(t) else t for t in tensors]
    lines = [
        list(leave(t, level, 0)) if level.is_in(t._data) else [t] * level.size for t in tensors
    ]
    made = [staged(*line) for line in zip(*lines, strict=True)]
    return [enter(TENSOR.stack(column), level, 0) for column in zip(*made, strict=True)]
