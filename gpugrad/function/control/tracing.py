"""Tracing functions inside a traced function: branches and loop bodies, as programs of their own.

A `BranchTrace` executes nothing: its arrays only carry shapes and dtypes, so tracing a branch has
no effect and raises nothing. Values that a branch reads from the function around it become inputs
of its program.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from copy import copy
from threading import get_ident
from typing import Any, NoReturn, Self

from gpugrad.autodiff.batched import levels_of, levels_running, unwrap_levels, wrap_levels
from gpugrad.autodiff.borders import give_each_example
from gpugrad.autodiff.recorder import number, recording_stopped
from gpugrad.core import devices
from gpugrad.core.backend import TENSOR, Reading, innermost_array, is_inexact
from gpugrad.core.listening import threads
from gpugrad.core.scopes import Scope, scopes
from gpugrad.core.tensor import Tensor, tensor, wrap
from gpugrad.core.variable import Variable
from gpugrad.core.views import View
from gpugrad.errors import TraceError
from gpugrad.function.control.branch import Branch
from gpugrad.function.control.control_op import GradientOverride
from gpugrad.trace.array import Traced, unwrap_to_traced
from gpugrad.trace.program import NotReplayable, Step, Undo, Value
from gpugrad.trace.shapes import Specs, blank_arrays, run_for_shapes
from gpugrad.trace.tracing import Tracing


class _LentTensor:
    """A Tensor from outside that holds a traced array while a branch is traced.

    Operations on constants are not logged, so a constant that a tape outside watches becomes a
    value of the program. A constant that all examples of a vmap share is repeated, so each example
    has its own gradient.

    Attributes:
        tensor: the Tensor from outside.
        source: the Tensor to capture: the same, or repeated.
        value: its Value in the branch.
        array: what the Tensor holds meanwhile.
        before: what it held before.
    """

    def __init__(self, x: Tensor) -> None:
        self.tensor, self.before = x, x._data
        self.is_view = isinstance(x, View)
        self.source = give_each_example(x._read())
        array = innermost_array(self.source._data)
        self.value = Value(array)
        self.array = wrap_levels(Traced(array, self.value), levels_of(self.source._data))


class BranchTrace(Tracing):
    """Traces a function that is called inside a traced one.

    Attributes:
        around: the recorders outside.
        effects: its side effects: name and undo function of each.
        variables: the Variables that it reads, by number.
        missed: Tensors that a recorder outside knows and that should have been borrowed.
    """

    abstract = nested = sees_reads = True
    boxes = False

    def __init__(
        self, outer: Tracing, what: str, borrowed: Sequence[_LentTensor], orders: int
    ) -> None:
        super().__init__(outer.pure, outer.trial, outer.passes)
        self.undoes = outer.undoes
        self._what, self._borrowed = what, {id(x.value): x for x in borrowed}
        self._numbers = {x.source._id for x in borrowed}
        self._beside = list(threads.stack)
        self._orders = getattr(outer, "_orders", 0) + orders
        self.around = [*self._beside, *getattr(outer, "around", ())]
        self._paused = recording_stopped()
        self._placed: dict[int, Traced] = {}  # by value
        self._read: dict[int, dict[int, Tensor]] = {}  # Tensors by value and number
        self.effects: list[tuple[str, Undo | None]] = []
        self.variables: dict[int, Variable] = {}
        self.missed: dict[int, Tensor] = {}

    def listen(self, place: int | None = None) -> Self:
        """Follow this thread's ops alone."""
        self._paused.__enter__()
        super().listen(place)
        self._lend(True)
        return self

    def _leave(self) -> None:
        self._lend(False)
        super()._leave()
        self._paused.__exit__()

    def _lend(self, traced: bool) -> None:
        """Let the borrowed Tensors hold traced arrays, or their own again."""
        roots_first = sorted(self._borrowed.values(), key=lambda x: x.is_view)
        for x in roots_first:
            x.tensor._data = x.array if traced else x.before

    def _new_scope(self) -> Scope:
        return Scope(scopes[get_ident()])  # the outer trace's own: a branch assigns nothing

    def touched(self, variable: Variable) -> None:
        """Tell the recorders around it that a Variable is read."""
        for recorder in self._beside:
            recorder.touched(variable)
        self.variables[variable._id] = variable

    def assigned(self, variable: Variable) -> None:
        """Refuse: only a run of the branch would assign the value, not a known step."""
        if variable._id > self._born:
            raise TraceError(
                f"{self._what}: it creates the Variable '{variable.name}', which gg.function "
                "cannot follow. Create it before."
            )
        raise TraceError(
            f"{self._what}: the Variable '{variable.name}' is assigned to in it, which gg.function "
            "cannot follow. Return the new value from it, and assign after the call (an optimizer "
            "is told whether to step: apply_gradients(..., when=...))."
        )

    def numbered(self, x: Tensor) -> None:
        """Remember a Tensor that an op reads: a tape knows it by its number."""
        array = unwrap_to_traced(x._data)
        if type(array) is Traced:
            # a copy, so that later writes to `x` do not reach the program
            self._read.setdefault(id(array.value), {})[x._id] = copy(x)
        at_all_levels = set(levels_running()) <= set(levels_of(x._data))
        is_captured = type(array) is Traced and array.value.constant is None
        if self._is_recorded(x) and not (at_all_levels and is_captured):
            read = self.variables.get(x._id, x)
            self.missed[id(read)] = read  # copies of one Tensor have its number
            if type(array) is not Traced and x._id in self._numbers:
                raise TraceError(
                    f"{self._what}: it copies a Tensor from outside that is recorded, as "
                    "gg.constant and copy.copy do, which gg.function cannot follow. Use "
                    "gg.positive, or copy it before."
                )

    def _is_recorded(self, x: Tensor) -> bool:
        return any(x._id in r.known for r in self.around)

    def place(self, array: Any) -> Value:
        """The Value of an array in the program; a Value of an enclosing program is captured."""
        value = super().place(array)
        if type(array) is Traced:
            self._placed[id(value)] = array
        return value

    def computed(
        self, op: Any, xp: Reading, arrays: list[Any], params: dict[str, Any]
    ) -> tuple[Any, bool]:
        """An op's results on placeholders."""
        return run_for_shapes(getattr(xp, op.name), arrays, params)

    def effect(
        self,
        name: str,
        call: Callable[..., Any],
        tensors: Sequence[Any] = (),
        variables: Sequence[Variable] = (),
        undo: Undo | None = None,
        about: Specs = (),
    ) -> list[Tensor]:
        """Log a side effect, which does not happen now."""
        if self.pure or (self.undoes and undo is None):
            raise NotReplayable(name)
        for variable in variables:
            self.assigned(variable)
        if about and levels_running():
            raise TraceError(
                f"{self._what}: {name} numbers under vmap in a traced function. Draw them before, "
                "and pass them in."
            )
        self.effects.append((name, undo))
        device = devices.device(getattr(call, "device", None))
        results = [Traced(a, Value(a)) for a in blank_arrays(about, device)]
        args, outs = [self.place(t._data) for t in tensors], [r.value for r in results]
        self.program.steps.append(Step(None, args, {}, outs, name=name, call=call, undo=undo))
        return [wrap(r) for r in results]

    def with_gradient(
        self, name: str, outs: list[Tensor], inputs: Sequence[Tensor], gradients: Callable[..., Any]
    ) -> list[Tensor]:
        """Log a step with this gradient, for derivatives of the program."""
        inputs = [x._read() for x in inputs]
        if not any(is_inexact(x.dtype) for x in inputs):
            return outs
        arrays = [unwrap_levels(give_each_example(x._data)) for x in (*outs, *inputs)]
        like = [innermost_array(a) for a in arrays[: len(outs)]]
        gradient, captured = self._trace_gradient(name, like, gradients)
        for x in captured:
            number(x)
        results = [Traced(a, Value(a)) for a in like]
        for r in results:
            r.value.view = True
        args = [self.place(a) for a in (*arrays, *(unwrap_levels(x._data) for x in captured))]
        override = GradientOverride(name, len(outs), len(inputs), gradient)
        self.program.steps.append(Step(override, args, {}, [r.value for r in results]))
        return [wrap(wrap_levels(r, levels_running())) for r in results]

    def _trace_gradient(
        self, name: str, like: Sequence[Any], gradients: Callable[..., Any]
    ) -> tuple[Callable[..., list[Tensor | None]], list[Tensor]]:
        """A traced gradient, as a `GradientOverride` takes it, and what it captures."""
        has_gradient: list[bool] = []

        def run(*g: Tensor) -> list[Tensor]:
            grads = gradients(TENSOR, g)
            has_gradient[:] = [x is not None for x in grads]
            return [tensor(x) for x in grads if x is not None]

        what = f"the gradient of {name}"
        try:
            if self._orders == _MOST_ORDERS:
                raise TraceError(
                    f"{name}: in a branch or loop body of a traced function, a custom gradient has "
                    f"no derivatives of order {_MOST_ORDERS + 1}."
                )
            trace, _ = trace_branch(self, what, run, like, orders=1)
        except Exception as error:  # raised only if the gradient is needed
            # without its frames, which hold the function's Tensors for as long as the program lives
            return functools.partial(_raise, error.with_traceback(None)), []
        (branch,), captured = make_branches([(what, trace)])

        def gradient(*upstream_and_read: Tensor) -> list[Tensor | None]:
            grads = iter(branch(*upstream_and_read))
            return [next(grads) if there else None for there in has_gradient]

        return gradient, captured

    def captured(self) -> dict[int, tuple[Value, Tensor]]:
        """The program's captures from outside: the Value of each, and the original Tensor."""
        steps = self.program.steps
        own = {id(v) for v in self.program.inputs} | {id(v) for step in steps for v in step.outs}
        return {
            id(v): (v, self._source(v))
            for v in self.program.values()
            if id(v) not in own and v.constant is None
        }

    def _source(self, value: Value) -> Tensor:
        """The Tensor outside that held a value; of several, the recorded one."""
        if id(value) in self._borrowed:
            return self._borrowed[id(value)].source
        candidates = list(self._read.get(id(value), {}).values())
        recorded = [x for x in candidates if self._is_recorded(x)]
        if len(recorded) > 1:
            raise TraceError(
                f"{self._what}: two Tensors that it reads share one array, and both are recorded. "
                "Add 0 to one of them before."
            )
        return [*recorded, *candidates, wrap(self._placed[id(value)])][0]


_MOST_ORDERS = 3
"""How many derivatives of one call are traced: implicit_diff has infinitely many."""


def _raise(error: Exception, *tensors: Tensor) -> NoReturn:
    raise error.with_traceback(None)


def trace_branch(
    trace: Tracing,
    what: str,
    f: Callable[..., Sequence[Any]],
    inputs: Sequence[Any],
    one_for_all: bool = False,
    orders: int = 0,
) -> tuple[BranchTrace, list[Any]]:
    """Trace a function of Tensors that is called in the program of `trace`.

    Args:
        trace: the trace of the function around it.
        what: its name in messages.
        f: function of Tensors that returns Tensors.
        inputs: NumPy or CuPy arrays like its arguments, after `unwrap_levels`.
        one_for_all: whether the results are the same for all examples of a vmap.
        orders: how many more derivatives it is than `trace`.

    Returns:
        Its trace, whose program does not have the captured values as inputs yet; and the results as
        NumPy or CuPy arrays.
    """
    levels = levels_running()

    def called(inner: BranchTrace) -> list[Any]:  # a Tensor that `f` has written to dies with it
        outs = f(*(wrap(wrap_levels(inner.input(a), levels)) for a in inputs))
        for out in outs:
            number(out)
        return [out._data if one_for_all else give_each_example(out._data) for out in outs]

    def traced(*borrowed: _LentTensor) -> tuple[BranchTrace, list[Any]]:
        inner = BranchTrace(trace, what, borrowed, orders)
        try:
            with inner:
                arrays = [unwrap_levels(a) for a in called(inner)]
                inner.program.outputs = [inner.place(a) for a in arrays]
        except BaseException:
            inner.end()
            raise
        return inner, [innermost_array(a) for a in arrays]

    inner, results = traced()
    if inner.missed:  # only now the Tensors to borrow are known
        return traced(*map(_LentTensor, inner.missed.values()))
    return inner, results


def make_branches(labelled: Sequence[tuple[str, BranchTrace]]) -> tuple[list[Branch], list[Tensor]]:
    """Branches that all take the same captured Tensors as last arguments; and these Tensors."""
    captured = {k: v for _, trace in labelled for k, v in trace.captured().items()}
    branches = []
    for label, trace in labelled:
        trace.program.inputs += [value for value, _ in captured.values()]
        branches.append(Branch(label, trace.program, trace.effects, trace.passes))
    return branches, [x for _, x in captured.values()]
