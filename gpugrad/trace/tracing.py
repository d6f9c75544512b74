"""Tracing: writes a `Program` while a function runs on `Traced` arrays.

Shapes and dtypes come from the arrays themselves, so no op needs a shape rule. Tapes and their
backward passes are traced as well, since derivative rules are formulas too.

Anything that is not a function of arrays (random numbers, an optimizer's update in place) becomes
an *effect*: a step that calls Python at each replay, in the order of the steps.

The traced values of Variables are in a scope of the thread. What the function has assigned becomes
visible to other threads at the end, all at once. Nothing does if one of them has changed a Variable
that the function has read: its effects are undone then, and the caller replays the program on the
values of now.
"""

from __future__ import annotations

import bisect
import gc
import weakref
from collections.abc import Callable, Generator, Iterator, Sequence
from threading import get_ident
from typing import Any, Self

import numpy as np

from gpugrad.core import devices
from gpugrad.core.backend import (
    ARRAYS,
    NUMPY,
    READINGS,
    SCALARS,
    Reading,
    as_array,
    between_numbers,
    may_share,
    reading,
)
from gpugrad.core.listening import graphs, threads
from gpugrad.core.replaceable import SignalsDeferred, read_together, write_together
from gpugrad.core.scopes import Scope, scopes, updating
from gpugrad.core.tensor import Tensor, index_parts, next_id, require_one_library, wrap
from gpugrad.core.user_code import Where, user_line, where
from gpugrad.core.variable import Variable
from gpugrad.core.views import View
from gpugrad.errors import TraceError
from gpugrad.trace.array import LEFT, TRACED, Traced, current, is_traced, pause_trace
from gpugrad.trace.listener import Listener
from gpugrad.trace.program import (
    CHECKS,
    Argument,
    NotReplayable,
    Program,
    Step,
    Undo,
    Value,
    length_depends_on_values,
)
from gpugrad.trace.repeated import Repeated, nothing_to_undo

LARGEST = 1 << 20  # bytes that a folded constant may take; larger ones are computed at each run


class Tracing(Listener):
    """Traces what runs in its ``with`` statement; a listener, to see reads of Variables."""

    abstract = False  # whether the arrays only carry shapes and dtypes
    nested = False  # whether its program is part of another one, as a branch or a loop body
    masks = False  # whether gradients have masked products at once, also without a NaN
    sees_reads = False  # whether `numbered` is called with the Tensors that ops read

    def __init__(
        self, pure: bool = False, trial: bool = False, passes: Sequence[str] | None = None
    ) -> None:
        self.program = Program()
        self.pure = pure  # an effect raises NotReplayable before it happens
        self.trial = trial  # everything is restored at the end
        self.undoes = trial  # an effect that cannot be undone raises NotReplayable
        self.passes = passes  # for the functions that it calls
        self.makes: Variable | None = None  # one that the function itself creates
        self.committed = False  # whether the call has taken effect; set at the end
        self._born = next_id()
        self._undo: list[Callable[[], None]] = []
        self._constants: dict[int, Value] = {}
        self._refreshed: list[weakref.ref[View]] = []
        self._foldable: set[int] = set()
        self._kept: list[Any] = []  # constants: their ids, which are keys, stay in use
        self._variables: dict[int, tuple[Variable, Any]] = {}
        self._scope = self._new_scope()
        self._values = self._scope.values
        self._updates = False  # whether it holds the lock `updating`
        self._outer, self._open = current.trace, False
        self._written: dict[int, tuple[weakref.ref[Tensor], Any, str]] = {}
        self._step_numbers: list[int] = []  # of forward steps, in order
        self._step_places: list[Where] = []
        self._gradient_of: Where | None = None
        if Traced not in ARRAYS:  # ops do not check for the type before the first trace
            READINGS[Traced] = TRACED
            ARRAYS.add(Traced)

    def __enter__(self) -> Self:
        self._open = True
        self._scope.__enter__()
        self.listen()
        current.trace = self
        return self

    def listen(self, place: int | None = None) -> Self:
        """Follow this thread's ops, and their reads if it sees these."""
        if self.sees_reads:
            graphs.append(self)
        return super().listen(place)

    def __exit__(self, kind: Any, *exc: object) -> None:
        try:
            self._close(kind)
        finally:
            self.end()

    def end(self) -> None:
        """Go back to the values and the trace outside; undo what is not committed.

        Called once more by who has used a ``with`` statement: Ctrl-C may have ended that before the
        first line of `__exit__`.
        """
        if not self._open:
            return
        self._leave()
        for undo in reversed(self._undo):
            undo()
        self._undo = []
        if self._updates:
            self._updates = False
            updating.release()
        self._open = False

    def _leave(self) -> None:
        if self in graphs:
            graphs.remove(self)
        for weak in self._refreshed:  # from a write outside: their arrays are this trace's
            if (view := weak()) is not None:
                view.forget()
        current.trace = self._outer
        self._scope.__exit__()
        stack = threads.stack
        if not self.committed and self in stack:  # tapes inside that Ctrl-C has kept from ending
            for listener in stack[stack.index(self) + 1 :]:
                listener.leave()
        self.leave()

    def _takes_effect(self) -> bool:
        """Whether the call that was traced counts, so that it needs no replay."""
        return True

    def _close(self, kind: Any) -> None:
        where = self._undo_writes() if self._written else ""
        moved = self._moved_variables()
        self.program.writes += [(variable, value) for variable, value, _ in moved]
        if kind is None and not where and not self.trial and self._takes_effect():
            self._commit([variable for variable, _, _ in moved], [array for _, _, array in moved])
        if where and kind is None:
            raise TraceError(
                f"{where} writes to a Tensor that is an argument of the traced function or was "
                "created outside of it: later calls would not. For x += v write x = x + v. For "
                "x[i] = v write to a copy and return that: x = x.copy(). Or use a Variable."
            )

    def _moved_variables(self) -> list[tuple[Variable, Value, Any]]:
        """The Variables that have another value now: the Value, and its plain array."""
        by_effects = {var._id for step in self.program.steps for var in step.variables}
        moved = []
        for variable, before in self._variables.values():
            now = self._values.get(variable._id, before)
            value = self.place(now)  # it may be a constant
            if variable._id in by_effects or all(
                v is not value for var, v in self.program.reads if var is variable
            ):
                moved.append((variable, value, _inner(now)))
        return moved

    def _commit(self, moved: Sequence[Variable], arrays: Sequence[Any]) -> None:
        """Give Variables their new arrays, unless one that was read has changed meanwhile."""
        read = [variable for variable, _ in self._variables.values()]
        self._scope.__exit__()
        with updating, SignalsDeferred():
            pairs = zip(self._variables.values(), read_together(read), strict=True)
            if all(before is now for (_, before), now in pairs):
                write_together(moved, arrays)
                self.committed, self._undo = True, []

    def _new_scope(self) -> Scope:
        return Scope(dict(scopes.get(get_ident(), ())))

    @property
    def moved(self) -> bool:
        """Whether an effect has changed Variables, so that the function cannot be called again."""
        return any(step.variables for step in self.program.steps)

    def touched(self, variable: Variable) -> None:
        """Make the value of a Variable an input when it is first read."""
        if variable._id in self._variables:
            if not is_traced(variable._data):  # a constant was assigned
                variable._data = Traced(variable._data, self.place(variable._data))
            return
        if variable._id > self._born:
            self.makes = variable
        data = variable._data
        if type(data) is Traced:  # it was created from a traced value
            self._variables[variable._id] = variable, variable._value
            return
        value = Value(data)
        self._variables[variable._id] = variable, data
        self.program.reads.append((variable, value))
        variable._data = Traced(_in_order(data), value)

    def assigned(self, variable: Variable) -> None:
        """Follow a Variable that gets another value."""
        if self.trial and variable._id > self._born:
            raise NotReplayable("the making of a Variable")
        if self.pure:
            error = NotReplayable(f"the Variable '{variable.name}' is assigned to")
            error.once = variable._id > self._born  # the function created it
            raise error
        self.touched(variable)

    def writes(self, x: Tensor) -> None:
        """Called before elements of a Tensor are set."""
        known = self._written.get(id(x))
        if known is None or known[0]() is not x:
            self._written[id(x)] = weakref.ref(x), x._data, user_line()

    def refreshed(self, view: View) -> None:
        """Remember a view that has got an array of this trace."""
        self._refreshed.append(weakref.ref(view))

    def _undo_writes(self) -> str:
        """Give the Tensors that were written to their old arrays back.

        Returns:
            The line of the first write to a Tensor that is still alive, so is not the function's
            own; or "".
        """
        if any(x() is not None for x, _, _ in self._written.values()):
            gc.collect()  # frees the function's own Tensors in cycles
        written = [(x(), *rest) for x, *rest in self._written.values()]
        for x, before, _ in written:
            if x is not None:
                x._data = before
        return next((line for x, _, line in written if x is not None), "")

    def numbered(self, x: Tensor) -> None:
        """Called when an op reads `x` while a recorder follows all reads."""

    def with_gradient(
        self, name: str, outs: list[Tensor], inputs: Sequence[Tensor], gradients: Callable[..., Any]
    ) -> list[Tensor]:
        """The results of a call with its own gradient, for tapes that only see the trace."""
        return outs

    def returned(self, arrays: Sequence[Any]) -> None:
        """Set the outputs of the program; TraceError if a value comes from another trace."""
        program = self.program
        program.outputs = [self.place(a) for a in arrays]
        own = {id(v) for v in (*program.inputs, *(v for _, v in program.reads))}
        own |= {id(v) for step in program.steps for v in step.outs}
        now = [var._data.value for var, _ in self._variables.values() if type(var._data) is Traced]
        if any(v.constant is None and id(v) not in own for v in (*program.values(), *now)):
            raise TraceError(LEFT)

    def input(self, array: Any) -> Traced:
        """Add an argument of the function to the program."""
        value = Value(array)
        self.program.inputs.append(value)
        return Traced(_in_order(array), value)

    def place(self, array: Any) -> Value:
        """The Value of a plain array: a constant, if it is not Traced."""
        if type(array) is Traced:
            return array.value
        value = self._constants.get(id(array))
        if value is None:
            value = self._constants[id(array)] = Value(array, constant=True)
            self._kept.append(array)
        return value

    def _place_all(self, args: Sequence[Any]) -> list[Any]:
        def place(a: Any) -> Any:
            if isinstance(a, (list, tuple)):
                return self._place_all(a)
            return self.place(a) if type(a) in ARRAYS else a

        return [place(a) for a in args]

    def step(self, op: Any, arrays: Sequence[Any], params: dict[str, Any]) -> Any:
        """Run an op on the wrapped arrays and log it."""
        if between_numbers(op, arrays):
            return np.asarray(op.bare(NUMPY)(*arrays, **params)).item()
        flat = arrays[0] if op.variadic else arrays
        if all(a is None or type(a) in SCALARS or isinstance(a, np.generic) for a in flat):
            return op.bare(NUMPY)(*arrays, **params)  # a NumPy scalar, as when nothing is traced
        inner = [_inner(a) for a in arrays]
        xp = reading(*(inner[0] if op.variadic else inner))
        if xp is NUMPY:
            arrays = [_array(a) for a in arrays]
            inner = [_inner(a) for a in arrays]
        flat = inner[0] if op.variadic else inner
        require_one_library(op.name, flat, params.get("index"))
        results, real = self.computed(getattr(xp, op.name), inner, _inner_params(params))
        if op.opens == "effect":
            return self._repeated(getattr(xp, op.name), op, arrays, params, results)
        several = results if op.outputs > 1 else (results,)
        kind = type(next(a for a in flat if type(a) in ARRAYS))
        outs = [Traced(a, Value(a)) for a in (as_array(r, kind) for r in several)]
        plain = [a for a in flat if type(a) in ARRAYS]
        for out in outs:
            out.value.view = any(may_share(out.inner, a) for a in plain)
            out.inner = out.inner if out.value.view else _in_order(out.inner)
        args, params = self._place_all(arrays), dict(params)
        if "index" in params:
            params["index"], parts = _template(params["index"], len(args))
            args += self._place_all(parts)
        step = Step(op, args, params, [out.value for out in outs])
        step.where = self._place_of_step()
        if real:
            self.executed(step, xp, [out.inner for out in outs])
        self.program.steps.append(step)
        if length_depends_on_values(step):
            outs = self._check_lengths(op.name, outs)
        return tuple(outs) if op.outputs > 1 else outs[0]

    def _repeated(
        self,
        function: Callable[..., Any],
        op: Any,
        arrays: Sequence[Any],
        params: dict[str, Any],
        result: Any,
    ) -> Any:
        """An op as an effect: no pass merges, moves, folds or drops it."""
        device, about = devices.device_of(result), [(result.shape, result.dtype)]
        call = Repeated(lambda *a: [function(*a, **params)], device, op.captures is True)
        (out,) = self.effect(op.name, call, [*map(wrap, arrays)], (), nothing_to_undo, about)
        return out._data

    def executed(self, step: Step, xp: Reading, results: list[Any]) -> None:
        """Note what a step was executed on, and its results if they may be folded."""
        step.xp = xp
        small = all(a.nbytes <= LARGEST or 0 in a.strides for a in results)
        if small and all(v.constant is not None or id(v) in self._foldable for v in step.inputs):
            step.results = results
            self._foldable.update(map(id, step.outs))

    def _check_lengths(self, name: str, outs: list[Traced]) -> list[Traced]:
        """Make replays call the function instead if their results would have another length."""
        if self.abstract or self.moved:
            where = "in a branch or loop body" if self.abstract else "after an optimizer's step"
            raise TraceError(
                f"{user_line()}: {name}: the length of its result depends on values, which "
                f"gg.function cannot follow {where}. Use gg.where, or do it before."
            )
        shapes = [out.shape for out in outs]

        def check(*results: Tensor) -> list[Tensor]:
            if [x.shape for x in results] != shapes:
                raise NotReplayable(f"{name}: another length")
            return list(results)  # so that the steps that read them come after this check

        results = self.effect("same length", check, [*map(wrap, outs)], undo=nothing_to_undo)
        return [t._data for t in results]

    def computed(
        self, function: Callable[..., Any], arrays: list[Any], params: dict[str, Any]
    ) -> tuple[Any, bool]:
        """The results of an op, and whether they are real (as here) or only carry shapes."""
        return function(*arrays, **params), True

    def effect(
        self,
        name: str,
        call: Callable[..., Any],
        tensors: Sequence[Any] = (),
        variables: Sequence[Variable] = (),
        undo: Undo | None = None,
        about: Sequence[tuple[Any, Any]] = (),
    ) -> list[Tensor]:
        """Run a function of real Tensors now and at each replay, in the order of the steps.

        Args:
            name: the name in the program's text.
            call: function of Tensors that returns a list of Tensors.
            tensors: its arguments.
            variables: the Variables that it changes.
            undo: called before; returns a function that restores everything else that it changes.
            about: shapes and dtypes of the results.

        Raises:
            NotReplayable: the trace allows no effects, or none that cannot be undone.
        """
        if self.pure and name not in CHECKS:
            raise NotReplayable(name)
        self._make_undoable(name, variables, undo)
        for variable in variables:
            self.touched(variable)
        args = self._place_all([t._data for t in tensors])
        before = [self.place(v._data) for v in variables]
        results, new = self._performed(call, tensors, variables, about)
        outs = [Traced(t._data, Value(t._data)) for t in results]
        after = [Traced(_in_order(a), Value(a)) for a in new]
        for variable, traced in zip(variables, after, strict=True):
            variable._data = traced
        values = [t.value for t in (*outs, *after)]
        how: dict[str, Any] = {"name": name, "call": call, "variables": variables, "undo": undo}
        step = Step(None, [*args, *before], {}, values, **how)
        step.where = self._place_of_step()
        self.program.steps.append(step)
        return [wrap(t) for t in outs]

    def _place_of_step(self) -> Where:
        """Where the op of a new step was called; in a backward pass, the op of the gradient."""
        if self._gradient_of is not None:
            return self._gradient_of
        place = where()
        self._step_numbers.append(next_id())
        self._step_places.append(place)
        return place

    def entries(self, walk: Iterator[Any]) -> Generator[Any]:
        """The entries of a backward pass; the steps of each belong to the place of its op."""
        outer = self._gradient_of
        try:
            for entry in walk:
                number = entry[1] if type(entry[1]) is int else entry[1][0][0]
                k = bisect.bisect(self._step_numbers, number)  # a result is numbered after its step
                self._gradient_of = self._step_places[k - 1] if k else outer
                yield entry
        finally:
            self._gradient_of = outer

    def _make_undoable(self, name: str, variables: Sequence[Variable], undo: Undo | None) -> None:
        """Prepare to undo an effect, which changes these Variables."""
        if self.undoes and undo is None:
            raise NotReplayable(name)
        if variables and not self._updates:  # an undo must not meet another thread's step
            self._updates = True
            updating.acquire()
        if undo is not None:
            self._undo.append(undo())

    def _performed(
        self,
        call: Callable[..., Any],
        tensors: Sequence[Any],
        variables: Sequence[Variable],
        about: Sequence[tuple[Any, Any]],
    ) -> tuple[list[Tensor], list[Any]]:
        """The results of an effect, and the arrays of the Variables that it changes."""
        with pause_trace(), Scope({i: _inner(a) for i, a in self._values.items()}):
            results = call(*[wrap(_inner(t._data)) for t in tensors])
            return results, [v._data for v in variables]


def _in_order(array: Any) -> Any:
    """A C-contiguous array, like planned buffers: reshapes are views in both or in neither."""
    if array.flags.c_contiguous:
        return array
    return READINGS[type(array)].lib.ascontiguousarray(array)


def _array(a: Any) -> Any:
    """An array for a NumPy scalar, which NumPy's arithmetic returns for 0-d constants."""
    if isinstance(a, (list, tuple)):
        return [_array(v) for v in a]
    return np.asarray(a) if isinstance(a, np.generic) else a


def _inner(a: Any) -> Any:
    if isinstance(a, (list, tuple)):
        return [_inner(v) for v in a]
    return a.inner if type(a) is Traced else a


def _template(index: Any, first: int) -> tuple[Any, list[Any]]:
    """An index with an `Argument` in the place of each traced array, and those arrays."""
    arrays: list[Any] = []

    def replace(part: Any) -> Any:
        array = part._data if isinstance(part, Tensor) else part
        if type(array) is not Traced:
            return part
        arrays.append(array)
        return Argument(first + len(arrays) - 1)

    template = tuple(replace(p) for p in index) if type(index) is tuple else replace(index)
    return template, arrays


def _inner_params(params: dict[str, Any]) -> dict[str, Any]:
    if "index" not in params:
        return params
    index = params["index"]
    parts = tuple(map(_inner, index_parts(index)))
    return params | {"index": parts if type(index) is tuple else parts[0]}
