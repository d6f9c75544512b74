"""Functions within a traced one: branches and loop bodies as programs of their own.

A branch is written down by an `Inner` trace, in which nothing really happens: its arrays only say
which shapes and dtypes there are, so a branch that is not taken has no effect and raises nothing.
What it reads of the function around it becomes an input of its program.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from copy import copy
from typing import Any

import numpy as np

from gpugrad import backend, placement
from gpugrad.backend import ARRAYS, TENSOR, bottom, is_inexact
from gpugrad.batched import Batched, Level, levels_of, levels_running, spread_everywhere
from gpugrad.errors import TraceError
from gpugrad.function.plan import Options, optimized, planned
from gpugrad.function.rewrite import Rewriter
from gpugrad.function.signature import Signature
from gpugrad.function.under_tape import Pair, tapes_only
from gpugrad.program import OtherwiseError, Program, Step, Undo, Value, filled
from gpugrad.recorder import graphs, number, recording_stopped
from gpugrad.rules import OwnRules
from gpugrad.tensor import Tensor, made_of, tensor, threads, wrap
from gpugrad.trace import Tracing
from gpugrad.traced import Traced, running, unwrapped
from gpugrad.variable import Variable

__all__ = ["Inner", "Sub", "blank", "dressed", "known", "stripped", "within"]


def known(x: Tensor) -> bool:
    """Whether a recorder of this thread would see what is done to `x`."""
    return bool(x._id) and is_inexact(x.dtype) and any(x._id in r.known for r in threads.stack)


def stripped(array: Any) -> Any:
    """A bare array without the levels of vmap: the examples of the outermost along axis 0."""
    while type(array) is Batched:
        array = array.stacked
    return array


def dressed(array: Any, levels: Sequence[Level]) -> Any:
    """The opposite of `stripped`."""
    for level in sorted(levels, key=lambda level: level.serial):
        array = Batched(array, level)
    return array


def blank(about: Sequence[tuple[tuple[int, ...], Any]], device: placement.Device) -> list[Any]:
    """Arrays on a device that say which shapes and dtypes there are."""
    made = [np.zeros(shape, dtype) for shape, dtype in about]
    return [a if a.dtype == object else placement.put(a, device) for a in made]


# ---- writing it down ---------------------------------------------------------------------


class _Lent:
    """A Tensor that stands for another while a function within is written down.

    What is computed of constants is not written down, so one that a tape outside watches is made a
    value. What is the same for all examples of a vmap is given to each: the gradient of each is
    then there.

    Attributes:
        source: what is to be captured.
        value: its Value in the function.
        array: what it holds meanwhile.
        before: what it held.
    """

    def __init__(self, x: Tensor) -> None:
        self._x, self.before = x, x._data
        self.source = spread_everywhere(x._read())
        bare = backend.bottom(self.source._data)
        self.value = Value(bare)
        self.array = dressed(Traced(bare, self.value), levels_of(self.source._data))

    def put(self, array: Any) -> None:
        """Let the Tensor hold an array."""
        self._x._data = array


class Inner(Tracing):
    """Writes down a function that is called within a traced one.

    Attributes:
        effects: what happens in it besides computing, by name, and how it is undone.
        variables: those that it reads, by number.
        missed: what is recorded outside and should have been lent.
    """

    abstract = True

    def __init__(self, outer: Tracing, what: str, lent: Sequence[_Lent] = ()) -> None:
        super().__init__(outer.pure, outer.trial, outer.passes)
        self._what, self._lent = what, {id(x.value): x for x in lent}
        self._numbers = {x.source._id for x in lent}
        self._beside = list(threads.stack)
        self._orders = getattr(outer, "_orders", 0)
        self._around = [*self._beside, *getattr(outer, "_around", ())]  # what records outside
        self._placed: dict[int, Traced] = {}  # by value
        self._read: dict[int, dict[int, Tensor]] = {}  # Tensors by value and number
        self.effects: list[tuple[str, Undo | None]] = []
        self.variables: dict[int, Variable] = {}
        self.missed: dict[int, Tensor] = {}

    def __enter__(self) -> Inner:
        self._paused = recording_stopped()
        self._paused.__enter__()
        graphs.append(self)  # so that ops tell it what they read
        super().__enter__()
        for x in self._lent.values():
            x.put(x.array)
        return self

    def __exit__(self, kind: Any, *exc: object) -> None:
        for x in self._lent.values():
            x.put(x.before)
        try:
            super().__exit__(kind, *exc)
        finally:
            graphs.remove(self)
            self._paused.__exit__(None, None, None)

    def touched(self, variable: Variable) -> None:
        """Let those around it know that the Variable is read."""
        for recorder in self._beside:
            recorder.touched(variable)
        self.variables[variable._id] = variable

    def assigned(self, variable: Variable) -> None:
        """A value for a Variable would be given when a branch is taken, not at a known step."""
        if variable._id > self._born:
            raise TraceError(
                f"{self._what}: it makes the Variable '{variable.name}', which gg.function cannot "
                "follow. Make it before."
            )
        raise TraceError(
            f"{self._what}: the Variable '{variable.name}' is assigned to in it, which gg.function "
            "cannot follow. Return the new value from it, and assign after the call (an optimizer "
            "is told whether to step: apply_gradients(..., when=...))."
        )

    def numbered(self, x: Tensor) -> None:
        """Remember a Tensor that an op reads: by its number a tape knows it."""
        array = unwrapped(x._data)
        if type(array) is Traced:
            # a copy: whoever writes to `x` later must be the one who keeps it
            self._read.setdefault(id(array.value), {})[x._id] = copy(x)
        every = set(levels_running()) <= set(levels_of(x._data))
        if self._recorded(x) and not (every and type(array) is Traced):
            read = self.variables.get(x._id, x)
            self.missed[id(read)] = read  # copies of one Tensor have its number
            if type(array) is not Traced and x._id in self._numbers:
                raise TraceError(
                    f"{self._what}: it copies a Tensor from outside that is recorded, as "
                    "gg.constant and copy.copy do, which gg.function cannot follow. Use "
                    "gg.positive, or copy it before."
                )

    def _recorded(self, x: Tensor) -> bool:
        return any(x._id in r.known for r in self._around)

    def place(self, array: Any) -> Value:
        """What a bare array is in the program; one of an enclosing program is remembered."""
        value = super().place(array)
        if type(array) is Traced:
            self._placed[id(value)] = array
        return value

    def computed(
        self, function: Callable[..., Any], arrays: list[Any], params: dict[str, Any]
    ) -> tuple[Any, bool]:
        """What an op makes of arrays, or of harmless ones of their kind if it objects to values."""
        with np.errstate(all="ignore"):
            try:
                return function(*arrays, **params), True
            except Exception:
                try:
                    return function(*_harmless(arrays), **_harmless(params)), False
                except Exception:  # it objects to something else
                    pass
                raise

    def effect(
        self, name: str, call: Callable[..., Any], tensors: Sequence[Any] = (),
        variables: Sequence[Variable] = (), undo: Undo | None = None,
        about: Sequence[tuple[Any, Any]] = (),
    ) -> list[Tensor]:  # fmt: skip
        """Write an effect down; it does not happen."""
        if self.pure or (self.trial and undo is None):
            raise OtherwiseError(name)
        for variable in variables:
            self.assigned(variable)
        if about and levels_running():
            raise TraceError(
                f"{self._what}: {name} numbers under vmap in a traced function. Draw them before, "
                "and pass them in."
            )
        self.effects.append((name, undo))
        device = placement.device(getattr(call, "device", None))
        made = [Traced(a, Value(a)) for a in blank(about, device)]
        args = [self.place(t._data) for t in tensors]
        self.program.steps.append(
            Step(None, args, {}, [m.value for m in made], name=name, call=call, undo=undo)
        )
        return [wrap(m) for m in made]

    def with_gradient(
        self, name: str, outs: list[Tensor], inputs: Sequence[Tensor], gradients: Callable[..., Any]
    ) -> list[Tensor]:
        """Write the gradient down too: whoever differentiates the program calls it."""
        inputs = [x._read() for x in inputs]
        if not any(is_inexact(x.dtype) for x in inputs):
            return outs
        given = [stripped(spread_everywhere(x._data)) for x in (*outs, *inputs)]
        own = Own(self, name, [bottom(a) for a in given[: len(outs)]], len(inputs), gradients)
        for x in own.captured:
            number(x)
        results = [Traced(bottom(a), Value(bottom(a))) for a in given[: len(outs)]]
        for r in results:
            r.value.view = True
        args = [self.place(a) for a in (*given, *(stripped(x._data) for x in own.captured))]
        self.program.steps.append(Step(own, args, {}, [r.value for r in results]))
        return [wrap(dressed(r, levels_running())) for r in results]

    def captured(self) -> dict[int, tuple[Value, Tensor]]:
        """What the program reads of those around it: its Value, and the Tensor that it was."""
        made = {id(v) for v in self.program.inputs}
        made |= {id(v) for step in self.program.steps for v in step.outs}
        return {
            id(v): (v, self._source(v))
            for v in self.program.values() if id(v) not in made and v.constant is None
        }  # fmt: skip

    def _source(self, value: Value) -> Tensor:
        """The Tensor that had a value outside: that which a recorder knows, if there are more."""
        if id(value) in self._lent:
            return self._lent[id(value)].source
        candidates = list(self._read.get(id(value), {}).values())
        recorded = [x for x in candidates if self._recorded(x)]
        if len(recorded) > 1:
            raise TraceError(
                f"{self._what}: two Tensors that it reads share one array, and both are recorded. "
                "Add 0 to one of them before."
            )
        return [*recorded, *candidates, wrap(self._placed[id(value)])][0]


def _harmless(x: Any) -> Any:
    """Values that no op objects to in the place of those in `x`: 0, 1, and the identity."""
    if isinstance(x, dict):
        return {k: _harmless(v) if k == "index" else v for k, v in x.items()}
    if isinstance(x, (list, tuple)):
        return type(x)(_harmless(v) for v in x)
    if type(x) is not np.ndarray:
        return x
    if x.dtype.kind in "iub":
        return np.zeros_like(x)
    square = x.ndim > 1 and x.shape[-1] == x.shape[-2]
    return np.broadcast_to(np.eye(x.shape[-1], dtype=x.dtype) if square else x.dtype.type(1),
                           x.shape).copy()  # fmt: skip


def within(
    trace: Tracing,
    what: str,
    f: Callable[..., Sequence[Any]],
    inputs: Sequence[Any],
    one_for_all: bool = False,
    orders: int = 0,
) -> tuple[Inner, list[Any]]:
    """Write a function of Tensors down, as it is called in the program of `trace`.

    Args:
        trace: of the function around it.
        what: it is called in messages.
        f: function of Tensors that returns Tensors.
        inputs: bare arrays of the library that are like its arguments, `stripped`.
        one_for_all: the results are the same for all examples of a vmap.
        orders: how many derivatives more than `trace` it is.

    Returns:
        The trace of it, whose program has the inputs but not yet what it captures, and the
        results as bare arrays of the library.
    """
    levels = levels_running()

    def called(inner: Inner) -> list[Any]:
        outs = f(*(wrap(dressed(inner.input(a), levels)) for a in inputs))
        for out in outs:
            number(out)
        return [out._data if one_for_all else spread_everywhere(out._data) for out in outs]

    def written(*lent: _Lent) -> tuple[Inner, list[Any]]:
        with Inner(trace, what, lent) as inner:
            inner._orders += orders
            arrays = [stripped(a) for a in called(inner)]
            inner.program.outputs = [inner.place(a) for a in arrays]
        return inner, [backend.bottom(a) for a in arrays]

    inner, results = written()
    if inner.missed:
        return written(*map(_Lent, inner.missed.values()))
    return inner, results


# ---- running it --------------------------------------------------------------------------


class Sub:
    """A function within a traced one, as a function of a list of Tensors.

    Replayed where nobody records; one entry of the log under tapes, as a traced function is;
    step by step on Tensors else, so that every order and mode of derivative is there.
    """

    def __init__(self, label: str, inner: Inner) -> None:
        self.label, self.effects, self.program = label, inner.effects, inner.program
        self._options = Options.of(label, inner.passes, None, None)
        self._replay: Any = None
        self._pairs: dict[tuple[int, ...], Any] = {}

    def plan(self) -> None:
        """Run the passes, now that the program has all its inputs."""
        self.program = optimized(self.program, self._options)
        shown = optimized(_values(self.program), self._options)
        self.shown, self._replay = planned(shown, self._options)
        self.program.forget_arrays()

    def __call__(self, *tensors: Tensor) -> list[Tensor]:
        """What the function returns, recorded by whoever records."""
        if running() is not None or (threads.stack and not tapes_only()):
            return self.run(*tensors)
        if not threads.stack:
            return [wrap(a) for a in self._replay([t._data for t in tensors])]
        given = [made_of(t._data, t._id) for t in tensors]  # no object twice
        wanted = [k for k, t in enumerate(given) if known(t)]
        if not wanted:
            return [wrap(a) for a in self._replay([t._data for t in given])]
        sources = [given[k] for k in wanted]
        if len({t._id for t in sources}) < len(sources):
            return self.run(*tensors)
        pair: Any = self._pairs.get(tuple(wanted))
        if pair is None:
            with recording_stopped():
                try:
                    signature = Signature(self.run)
                    pair = Pair(self.run, given, {}, sources, self._options, signature)
                except OtherwiseError:
                    pair = False  # it has effects
            self._pairs[tuple(wanted)] = pair
        if pair is False:
            return self.run(*tensors)

        def again() -> Any:
            return sources, lambda: [t for t in self.run(*given) if is_inexact(t.dtype)]

        made: list[Tensor] = pair.replayed(self.label, [t._data for t in given], sources, again)
        return made

    def run(self, *tensors: Tensor) -> list[Tensor]:
        """Do what the program says, step by step."""
        at: dict[int, Tensor] = {
            id(v): t for v, t in zip(self.program.inputs, tensors, strict=True)
        }

        def found(a: Any) -> Any:
            if isinstance(a, list):
                return [found(x) for x in a]
            if not isinstance(a, Value):
                return wrap(a) if type(a) in ARRAYS else a
            return at[id(a)] if a.constant is None else wrap(a.constant)

        trace = running()
        for step in self.program.steps:
            args = [found(a) for a in step.args]
            staged: Any = step.op or step.call
            if step.programs or type(staged) is Own:
                made = staged.eager(*args)
            elif step.op is None and trace is not None:
                about = [(v.shape, v.dtype) for v in step.outs]
                made = trace.effect(step.name, _call(step), args, undo=step.undo, about=about)
            elif step.op is None:
                made = _call(step)(*args)
            else:
                params = dict(step.params)
                if "index" in params:
                    params["index"] = filled(params["index"], args)
                made = step.op.eager(*args[: len(step.op.arrays) or None], **params)
            made = [made] if isinstance(made, Tensor) else made
            at.update((id(v), t) for v, t in zip(step.outs, made, strict=True))
        return [found(v) for v in self.program.outputs]


_MOST = 3  # derivatives of one call that are written down: implicit_diff has no end of them


class Own:
    """The gradient that a call within a function has of its own; stands in the place of an op.

    Its step takes the call's results, its inputs and what the gradient reads, and gives the
    results: only where a tape records it is more than that.
    """

    kind, arrays = "control", ()
    is_library_function = variadic = False
    outputs = 2

    def __init__(
        self, inner: Inner, name: str, outs: Sequence[Any], n_inputs: int,
        gradients: Callable[..., Any],
    ) -> None:  # fmt: skip
        self.name, self._n = name, (len(outs), n_inputs)
        self.captured: list[Tensor] = []
        self._error: Exception | None = None
        self._there: list[bool] = []

        def run(*g: Tensor) -> list[Tensor]:
            found = gradients(TENSOR, g)
            self._there = [x is not None for x in found]
            return [tensor(x) for x in found if x is not None]

        try:
            if inner._orders == _MOST:
                raise TraceError(
                    f"{name}: in a function within a traced one a gradient of its own has no "
                    f"derivatives of order {_MOST + 1}."
                )
            made, _ = within(inner, f"the gradient of {name}", run, outs, orders=1)
        except Exception as error:  # it is an error if there is a gradient to be taken
            self._error = error
            return
        values = made.captured().values()
        made.program.inputs += [value for value, _ in values]
        self.captured = [x for _, x in values]
        self._sub = Sub(made._what, made)
        self._sub.plan()

    def eager(self, *tensors: Tensor) -> list[Tensor]:
        """The results, recorded by whoever records."""
        n, m = self._n
        outs = [wrap(t._data) for t in tensors[:n]]
        _OwnCall(self, tensors[n + m :]).record(outs, tensors[n : n + m])
        return outs

    def gradients(self, upstream: Sequence[Tensor], read: Sequence[Tensor]) -> list[Tensor | None]:
        """One for each input, or None."""
        if self._error is not None:
            raise self._error
        found = iter(self._sub(*upstream, *read))
        return [next(found) if there else None for there in self._there]


class _OwnCall(OwnRules):
    """One run of its step."""

    def __init__(self, own: Own, read: Sequence[Tensor]) -> None:
        super().__init__(own.name)
        self._own, self._read = own, [copy(t) for t in read]

    def gradients(self, xp: Any, g: tuple[Any, ...]) -> list[Any]:
        """What the function written down for them returns."""
        found = self._own.gradients([x if xp is TENSOR else wrap(x) for x in g], self._read)
        return [x if x is None or xp is TENSOR else x._data for x in found]


def _values(program: Program) -> Program:
    """The program of the values alone, without gradients that calls in it have of their own."""
    made = Rewriter(program)
    for step in program.steps:
        if type(step.op) is not Own:
            made.keep(made.renamed(step))
            continue
        for out, arg in zip(step.outs, step.args, strict=False):
            made.replace(out, made.value(arg))
    return made.program()


def _call(step: Step) -> Callable[..., list[Tensor]]:
    assert step.call is not None
    return step.call
