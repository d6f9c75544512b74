"""Writing down functions within a traced one: branches and loop bodies, as programs of their own.

A branch is written down by an `Inner` trace, in which nothing really happens: its arrays only say
which shapes and dtypes there are, so a branch that is not taken has no effect and raises nothing.
What it reads of the function around it becomes an input of its program.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from copy import copy
from typing import Any, NoReturn

import numpy as np

from gpugrad.autodiff.batched import (
    give_each_example,
    levels_of,
    levels_running,
    unwrap_levels,
    wrap_levels,
)
from gpugrad.autodiff.recorder import graphs, number, recording_stopped
from gpugrad.core import devices
from gpugrad.core.backend import TENSOR, innermost_array, is_inexact
from gpugrad.core.tensor import Tensor, tensor, threads, wrap
from gpugrad.core.variable import Variable
from gpugrad.errors import TraceError
from gpugrad.function.control.branch import Sub
from gpugrad.function.control.own_gradient import Own
from gpugrad.trace.array import Traced, unwrapped
from gpugrad.trace.program import OtherwiseError, Step, Undo, Value
from gpugrad.trace.tracing import Tracing

__all__ = ["Inner", "blank", "subs_of", "within"]


def blank(about: Sequence[tuple[tuple[int, ...], Any]], device: devices.Device) -> list[Any]:
    """Arrays on a device that say which shapes and dtypes there are."""
    made = [np.zeros(shape, dtype) for shape, dtype in about]
    return [a if a.dtype == object else devices.put(a, device) for a in made]


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
        self.source = give_each_example(x._read())
        bare = innermost_array(self.source._data)
        self.value = Value(bare)
        self.array = wrap_levels(Traced(bare, self.value), levels_of(self.source._data))

    def put(self, array: Any) -> None:
        """Let the Tensor hold an array."""
        self._x._data = array


class Inner(Tracing):
    """Writes down a function that is called within a traced one.

    Attributes:
        around: what records outside.
        effects: what happens in it besides computing, by name, and how it is undone.
        variables: those that it reads, by number.
        missed: what is recorded outside and should have been lent.
    """

    abstract = True

    def __init__(self, outer: Tracing, what: str, lent: Sequence[_Lent], orders: int) -> None:
        super().__init__(outer.pure, outer.trial, outer.passes)
        self._what, self._lent = what, {id(x.value): x for x in lent}
        self._numbers = {x.source._id for x in lent}
        self._beside = list(threads.stack)
        self._orders = getattr(outer, "_orders", 0) + orders
        self.around = [*self._beside, *getattr(outer, "around", ())]
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
        return any(x._id in r.known for r in self.around)

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
        device = devices.device(getattr(call, "device", None))
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
        given = [unwrap_levels(give_each_example(x._data)) for x in (*outs, *inputs)]
        like = [innermost_array(a) for a in given[: len(outs)]]
        gradient, captured = self._gradient(name, like, gradients)
        for x in captured:
            number(x)
        results = [Traced(a, Value(a)) for a in like]
        for r in results:
            r.value.view = True
        args = [self.place(a) for a in (*given, *(unwrap_levels(x._data) for x in captured))]
        own = Own(name, len(outs), len(inputs), gradient)
        self.program.steps.append(Step(own, args, {}, [r.value for r in results]))
        return [wrap(wrap_levels(r, levels_running())) for r in results]

    def _gradient(
        self, name: str, like: Sequence[Any], gradients: Callable[..., Any]
    ) -> tuple[Callable[..., list[Tensor | None]], list[Tensor]]:
        """A gradient written down, as an `Own` takes it, and what it captures."""
        there: list[bool] = []

        def run(*g: Tensor) -> list[Tensor]:
            found = gradients(TENSOR, g)
            there[:] = [x is not None for x in found]
            return [tensor(x) for x in found if x is not None]

        what = f"the gradient of {name}"
        try:
            if self._orders == _MOST:
                raise TraceError(
                    f"{name}: in a function within a traced one a gradient of its own has no "
                    f"derivatives of order {_MOST + 1}."
                )
            inner, _ = within(self, what, run, like, orders=1)
        except Exception as error:  # it is an error if there is a gradient to be taken
            # without its frames, which hold the function's Tensors for as long as the program lives
            return functools.partial(_raise, error.with_traceback(None)), []
        (sub,), captured = subs_of([(what, inner)])

        def gradient(*upstream_and_read: Tensor) -> list[Tensor | None]:
            found = iter(sub(*upstream_and_read))
            return [next(found) if is_there else None for is_there in there]

        return gradient, captured

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


_MOST = 3  # derivatives of one call that are written down: implicit_diff has no end of them


def _raise(error: Exception, *given: Tensor) -> NoReturn:
    raise error.with_traceback(None)


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
    trace: Tracing, what: str, f: Callable[..., Sequence[Any]], inputs: Sequence[Any],
    one_for_all: bool = False, orders: int = 0,
) -> tuple[Inner, list[Any]]:  # fmt: skip
    """Write a function of Tensors down, as it is called in the program of `trace`.

    Args:
        trace: of the function around it.
        what: it is called in messages.
        f: function of Tensors that returns Tensors.
        inputs: bare arrays of the library that are like its arguments, `unwrap_levels`.
        one_for_all: the results are the same for all examples of a vmap.
        orders: how many derivatives more than `trace` it is.

    Returns:
        The trace of it, whose program has the inputs but not yet what it captures, and the
        results as bare arrays of the library.
    """
    levels = levels_running()

    def called(inner: Inner) -> list[Any]:  # a Tensor that `f` has written to dies with it
        outs = f(*(wrap(wrap_levels(inner.input(a), levels)) for a in inputs))
        for out in outs:
            number(out)
        return [out._data if one_for_all else give_each_example(out._data) for out in outs]

    def written(*lent: _Lent) -> tuple[Inner, list[Any]]:
        with Inner(trace, what, lent, orders) as inner:
            arrays = [unwrap_levels(a) for a in called(inner)]
            inner.program.outputs = [inner.place(a) for a in arrays]
        return inner, [innermost_array(a) for a in arrays]

    inner, results = written()
    if inner.missed:  # what has to be lent is known only now
        return written(*map(_Lent, inner.missed.values()))
    return inner, results


def subs_of(labelled: Sequence[tuple[str, Inner]]) -> tuple[list[Sub], list[Tensor]]:
    """The functions, whose programs take the same captured values last, and those values."""
    captured = {k: v for _, inner in labelled for k, v in inner.captured().items()}
    subs = []
    for label, inner in labelled:
        inner.program.inputs += [value for value, _ in captured.values()]
        subs.append(Sub(label, inner.program, inner.effects, inner.passes))
    return subs, [x for _, x in captured.values()]
