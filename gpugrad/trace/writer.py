"""Writes the steps of a `Program`: the part of `Tracing` that knows values, ops and effects."""

from __future__ import annotations

import bisect
import functools
from collections.abc import Callable, Generator, Iterator, Sequence
from typing import Any

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
from gpugrad.core.scopes import Scope, updating
from gpugrad.core.tensor import Tensor, index_parts, next_id, require_one_library, wrap
from gpugrad.core.user_code import Where, user_line, where
from gpugrad.core.variable import Variable
from gpugrad.errors import TraceError
from gpugrad.trace.array import Traced, pause_trace
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


class Writer(Listener):
    """Writes a program: a step for each op and each effect.

    Args:
        pure: whether an effect raises NotReplayable before it happens.
        undoes: whether an effect that cannot be undone does.
    """

    abstract = False  # whether the arrays only carry shapes and dtypes
    sizing = False  # whether an op that communicates is asked for the shape of its result only
    _values: dict[int, Any]  # of Variables, in the scope of the trace

    def __init__(self, pure: bool, undoes: bool) -> None:
        self.program = Program()
        self.pure, self.undoes = pure, undoes
        self._undo: list[Callable[[], None]] = []
        self._constants: dict[int, Value] = {}
        self._foldable: set[int] = set()
        self._kept: list[Any] = []  # constants: their ids, which are keys, stay in use
        self._updates = False  # whether it holds the lock `updating`
        self._step_numbers: list[int] = []  # of forward steps, in order
        self._step_places: list[Where] = []
        self._gradient_of: Where | None = None

    @property
    def moved(self) -> bool:
        """Whether the function cannot be called again: Variables changed, or ranks have met."""
        return any(s.variables or isinstance(s.call, Repeated) for s in self.program.steps)

    def input(self, array: Any) -> Traced:
        """Add an argument of the function to the program."""
        value = Value(array)
        self.program.inputs.append(value)
        return Traced(in_order(array), value)

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
        inner = [inner_of(a) for a in arrays]
        xp = reading(*(inner[0] if op.variadic else inner))
        if xp is NUMPY:
            arrays = [_array(a) for a in arrays]
            inner = [inner_of(a) for a in arrays]
        flat = inner[0] if op.variadic else inner
        require_one_library(op.name, flat, params.get("index"))
        if op.opens == "effect":
            self.sizing = True
            try:
                results, _ = self.computed(op, xp, inner, _inner_params(params))
            finally:
                self.sizing = False
            return self._repeated(getattr(xp, op.name), op, arrays, params, results)
        results, real = self.computed(op, xp, inner, _inner_params(params))
        several = results if op.outputs > 1 else (results,)
        kind = type(next(a for a in flat if type(a) in ARRAYS))
        outs = [Traced(a, Value(a)) for a in (as_array(r, kind) for r in several)]
        plain = [a for a in flat if type(a) in ARRAYS]
        for out in outs:
            out.value.view = any(may_share(out.inner, a) for a in plain)
            out.inner = out.inner if out.value.view else self.in_order(out.inner)
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
        eager = functools.partial(op.eager, **params)
        call = Repeated(
            lambda *a: [function(*a, **params)], device, op.captures is True, eager=eager
        )
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
        self, op: Any, xp: Reading, arrays: list[Any], params: dict[str, Any]
    ) -> tuple[Any, bool]:
        """The results of an op, and whether they are real (as here) or only carry shapes."""
        return getattr(xp, op.name)(*arrays, **params), True

    def in_order(self, array: Any) -> Any:
        """A result, C-contiguous."""
        return in_order(array)

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
        after = [Traced(in_order(a), Value(a)) for a in new]
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
        with pause_trace(), Scope({i: inner_of(a) for i, a in self._values.items()}):
            results = call(*[wrap(inner_of(t._data)) for t in tensors])
            return results, [v._data for v in variables]


def in_order(array: Any) -> Any:
    """A C-contiguous array, like planned buffers: reshapes are views in both or in neither."""
    if array.flags.c_contiguous:
        return array
    with devices.formulas_on(array):  # CuPy would copy to the current GPU
        return READINGS[type(array)].lib.ascontiguousarray(array)


def _array(a: Any) -> Any:
    """An array for a NumPy scalar, which NumPy's arithmetic returns for 0-d constants."""
    if isinstance(a, (list, tuple)):
        return [_array(v) for v in a]
    return np.asarray(a) if isinstance(a, np.generic) else a


def inner_of(a: Any) -> Any:
    """The plain array of a traced one; others as they are."""
    if isinstance(a, (list, tuple)):
        return [inner_of(v) for v in a]
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
    parts = tuple(map(inner_of, index_parts(index)))
    return params | {"index": parts if type(index) is tuple else parts[0]}
