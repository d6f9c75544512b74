"""Loops over a program of plain arrays, and the gradient of one as another such loop.

The gradient goes back over the slices, carries the gradients of the carry, reads what the forward
loop has kept of each iteration, and returns the gradients of the slices. Gradients of values that
stay the same are sums over the iterations. If a term of one is a product of matrices, as that of
a layer's weights, it is computed after the loop, as one product of the rows of all iterations.
Others are added up in the carry; those of elements of a value are put at their places after it.
"""

from __future__ import annotations

import functools
import operator
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np

from gpugrad.autodiff.gradients import is_nan
from gpugrad.autodiff.recorder import recording_stopped
from gpugrad.core.backend import NUMPY, TENSOR, innermost_array, is_inexact, reading
from gpugrad.core.devices import full_on_device_of
from gpugrad.core.tensor import Tensor, wrap
from gpugrad.function.cpu.c_loop import Body, CLoop
from gpugrad.function.cpu.loop_memory import LoopMemory
from gpugrad.function.cpu.view_layouts import is_view, scalars_as_views
from gpugrad.function.differentiate import differentiate
from gpugrad.function.passes.pieces import is_padded
from gpugrad.function.passes.rewrite import Readers, axis_order, is_addition, is_product, is_reshape
from gpugrad.function.passes.simplify import remove_dead
from gpugrad.function.plan import Options, planned, planned_loop
from gpugrad.function.signature import Signature
from gpugrad.function.step_calls import op_call
from gpugrad.kernels.cpu.moves import Function
from gpugrad.registry.record import OPS
from gpugrad.trace.program import NotReplayable, Program, Step, Value, takes_arguments

STACKED = 1 << 26
"""Bytes of a factor, over all iterations, up to which a product is computed after the loop: larger
products gain nothing from it."""

Loop = Callable[[Sequence[Any], Sequence[Any], Sequence[Any]], tuple[Sequence[Any], Sequence[Any]]]
"""Of the carry, the stacks, and what stays the same: the last carry, and slices of results."""

Place = tuple[str, int]
"""Where the slices of a value are: among ``"xs"``, ``"kept"`` or ``"late"`` ones, or among the
gradients of the results, ``"g"``; and its number there."""


class Repeated:
    """A body that runs `times` times: as one call in C if all its steps are, else step by step."""

    def __init__(self, body: Body, options: Options, times: int) -> None:
        self._body, self._options, self._times = body, options, times
        self._in_c: CLoop | None = None
        self._replay: Any = None
        self._nested: dict[bool, LoopMemory | None] = {}

    def __call__(
        self, carry: Sequence[Any], stacks: Sequence[Any], same: Sequence[Any], back: bool
    ) -> tuple[list[Any], list[Any]]:
        """Run it; with `back` from the end of the stacks to their start.

        Returns:
            The last carry, and for each other result its slices, as an array or a list.
        """
        arrays = [*carry, *(stack[0] for stack in stacks), *same]
        if self._replay is None and self._in_c is None:
            on_host = all(isinstance(a, (np.ndarray, np.generic)) for a in arrays)
            body = self._body
            self._in_c = planned_loop(body, self._options, self._times) if on_host else None
        if self._in_c is not None:
            result = self._in_c.loop(carry, stacks, same, self._times, back)
            if result is not None:
                return result
        return self._step_by_step(carry, stacks, same, back)

    def in_loop(self, back: bool) -> Function | None:
        """The loop as a step of another loop in C; None if it is not all C."""
        if back not in self._nested:
            loop = planned_loop(self._body, self._options, None)
            is_c = loop is not None and not loop.has_left
            self._nested[back] = LoopMemory(loop, self._times, back) if loop and is_c else None
        nested = self._nested[back]
        return None if nested is None else nested.function

    def _step_by_step(
        self, carry: Sequence[Any], stacks: Sequence[Any], same: Sequence[Any], back: bool
    ) -> tuple[list[Any], list[Any]]:
        body, n = self._body, self._times
        if self._replay is None:
            _, self._replay = planned(body.program, self._options, times=n)
        now, columns = list(carry), [[None] * n for _ in body.program.outputs[body.n_carry :]]
        for i in reversed(range(n)) if back else range(n):
            results = self._replay([*now, *(stack[i] for stack in stacks), *same])
            now = results[: body.n_carry]
            for column, result in zip(columns, results[body.n_carry :], strict=True):
                column[i] = result
        return now, list(columns)


class _Product(NamedTuple):
    """A term of a gradient: the product of ``x.T`` and ``y`` of all iterations.

    Attributes:
        x, y: the values whose slices are stacked.
        columns: the columns of the matrices that these are.
        steps: linear ops of one argument that follow.
    """

    x: Value
    y: Value
    columns: tuple[int, int]
    steps: tuple[Step, ...] = ()


class _Sum(NamedTuple):
    """Another term: the sum of a value over all iterations, which the loop carries.

    Attributes:
        value: of one iteration.
        steps: linear ops of one argument that follow.
    """

    value: Value
    steps: tuple[Step, ...] = ()


_Term = _Product | _Sum


class LoopWithGradient:
    """A loop and its gradient by some of its arguments.

    Args:
        run: the body, a function of Tensors: of the carry, one slice of each stack, and others.
        arguments: arrays like its arguments.
        n_carry, n_slices: how many of them are the carry, and how many are slices.
        wanted: positions of the arguments that have gradients.
        options: of the body.
        times: the number of iterations.
        masks: whether the products of the gradient are masked.

    Attributes:
        before, after: the bodies of both loops.

    Raises:
        NotReplayable: the body has effects, or nothing to differentiate.
    """

    def __init__(
        self,
        run: Callable[..., Any],
        arguments: Sequence[Any],
        n_carry: int,
        n_slices: int,
        wanted: Sequence[int],
        options: Options,
        times: int,
        masks: bool = False,
    ) -> None:
        self._n_carry, self._n_read = n_carry, n_carry + n_slices
        self._wanted, self._times = tuple(wanted), times
        self._kinds = [(a.shape, a.dtype) for a in arguments]
        self._carried = [k for k in range(n_carry) if is_inexact(arguments[k].dtype)]
        forward, backward = self._traced(run, arguments, options, masks)
        self._places: dict[int, Place] = {}
        self._calls: dict[tuple[int, Any], Callable[[Any], Any]] = {}
        self._kept = self._find_kept(forward, backward)
        self._late: list[Value] = []  # slices that the backward loop returns
        self._zeros = [full_on_device_of(arguments[0], *self._kinds[k]) for k in self._carried]
        self.before, self.after = self._bodies(forward, backward)
        self._padded = {k for k, terms in self._terms.items() if _are_padded_sums(terms)}
        self._zero_sums = [np.zeros(v.shape, v.dtype) for v in self._sums]  # nobody writes to them
        self._forward = Repeated(self.before, options, times)
        self._backward = Repeated(self.after, options, times)

    def _traced(
        self, run: Callable[..., Any], arguments: Sequence[Any], options: Options, masks: bool
    ) -> tuple[Program, Program]:
        tensors = [wrap(a) for a in arguments]
        by = sorted({*self._carried, *self._wanted})
        with recording_stopped():
            wanted = [tensors[k] for k in by]
            signature = Signature(run)
            both = differentiate(run, tensors, {}, wanted, signature, options, masks, is_body=True)
        forward, backward = map(scalars_as_views, (both.forward, both.backward))
        if forward.reads or any(s.op is None for s in (*forward.steps, *backward.steps)):
            raise NotReplayable("it has effects")
        self._inexact, self._n_outs = both.targets, both.n_outputs
        found = [k for k, of in zip(by, both.connected, strict=True) if of is not None]
        self._gradients = dict(zip(found, backward.outputs, strict=True))
        return forward, backward

    # -- what the loops carry, read and return

    def _find_kept(self, forward: Program, backward: Program) -> list[Value]:
        """The values that the forward loop keeps of each iteration for the backward one."""
        backward.steps = [*_views_for(backward, forward), *backward.steps]
        self._seeds = backward.inputs[len(backward.inputs) - len(self._inexact) :]
        own = {id(v) for v in self._seeds} | {id(v) for s in backward.steps for v in s.outs}
        read = [v for s in backward.steps for v in s.inputs] + list(self._gradients.values())
        held = {id(v): v for v in read if id(v) not in own and v.constant is None}
        for k, v in enumerate(forward.inputs[self._n_carry :], self._n_carry):
            kind = ("xs", k - self._n_carry) if k < self._n_read else ("same", k)
            self._places[id(v)] = kind
        kept = [v for at, v in held.items() if at not in self._places]
        self._places.update((id(v), ("kept", k)) for k, v in enumerate(kept))
        for j, (k, seed) in enumerate(zip(self._inexact, self._seeds, strict=True)):
            if k >= self._n_carry:
                self._places[id(seed)] = "g", j
        return kept

    def _bodies(self, forward: Program, backward: Program) -> tuple[Body, Body]:
        n = self._n_carry
        forward.outputs = [*forward.outputs[: self._n_outs], *self._kept]
        carry = [s for k, s in zip(self._inexact, self._seeds, strict=True) if k < n]
        slices = forward.inputs[n : self._n_read] + self._kept
        slices += [s for s in self._seeds if id(s) in self._places]
        readers, same = Readers(backward), list(forward.inputs[self._n_read :])
        outs, self._sums = [], []
        for k, zeros in zip(self._carried, self._zeros, strict=True):
            outs.append(self._gradients.get(k) or Value(zeros, constant=True))
        self._by_slice = [k for k in self._wanted if n <= k < self._n_read and k in self._gradients]
        self._late = [self._gradients[k] for k in self._by_slice]
        self._places.update((id(v), ("late", k)) for k, v in enumerate(self._late))
        self._terms: dict[int, list[_Term]] = {}
        for k in self._wanted:
            if k < self._n_read or k not in self._gradients:
                continue
            self._terms[k] = self._terms_of(self._gradients[k], readers)
            for term in self._terms[k]:
                if isinstance(term, _Sum):
                    before, after = term.value.blank(), term.value.blank()
                    self._sums.append(term.value)
                    carry.append(before)
                    backward.steps.append(Step(OPS["add"], [before, term.value], {}, [after]))
                    outs.append(after)
                    continue
                for v in (term.x, term.y):
                    if id(v) not in self._places:  # the loop returns its slices
                        self._places[id(v)] = "late", len(self._late)
                        self._late.append(v)
        backward.inputs = [*carry, *slices, *same]
        backward.outputs = [*outs, *self._late]
        return (
            Body(remove_dead(forward), n, self._n_read - n),
            Body(remove_dead(backward), len(carry), len(slices)),
        )

    def _terms_of(self, v: Value, readers: Readers) -> list[_Term]:
        """A gradient as a sum of products of matrices, and of sums over the iterations."""
        step = readers.maker.get(id(v))
        if step is None or step.op.kind == "control" or len(step.outs) != 1:
            return [_Sum(v)]
        if is_addition(step) and all(
            isinstance(a, Value) and (a.shape, a.dtype) == (v.shape, v.dtype) for a in step.args
        ):
            terms = [t for a in step.args for t in self._terms_of(a, readers)]
            # a sum of two results of the loop is one
            return terms if any(type(t) is _Product or t.steps for t in terms) else [_Sum(v)]
        if step.op.linear is True and [type(a) for a in step.args] == [Value]:
            inner = self._terms_of(step.args[0], readers)
            smaller = step.args[0].nbytes < v.nbytes  # elements that are put at their places
            if smaller or all(type(t) is _Product for t in inner):
                return [t._replace(steps=(*t.steps, step)) for t in inner]
        # a sum of products over iterations is one product of all their rows
        product = self._product(step, readers) if is_product(step) else None
        return [_Sum(v)] if product is None else [product]

    def _product(self, step: Step, readers: Readers) -> _Product | None:
        left, y = step.args
        before = readers.maker.get(id(left))
        # as matmul's own rule writes the gradient of a weight; behind reshapes are the same rows
        if before is None or axis_order(before) != (1, 0) or len(y.shape) != 2:
            return None
        columns, roots = (left.shape[0], y.shape[-1]), []
        for factor in (before.args[0], y):
            while (of := readers.maker.get(id(factor))) is not None and is_reshape(of):
                factor = of.args[0]
            place = self._places.get(id(factor), ("late", 0))
            too_large = self._times * factor.nbytes > STACKED
            if factor.constant is not None or place[0] == "same" or too_large:
                return None
            roots.append(factor)
        return _Product(roots[0], roots[1], columns)

    # -- running

    def __call__(self, arrays: Sequence[Any], back: bool) -> tuple[list[Any], list[Any], Any]:
        """Run the loop.

        Args:
            arrays: the first carry, stacks of slices, and what stays the same.
            back: whether it begins at the end of the stacks.

        Returns:
            The last carry; the slices of each other result; and the gradient as a function of the
            gradients of all inexact results, with stacks for slices. It returns arrays for the
            wanted arguments; or None if one is NaN, which may be wrong: see `differentiate`.
        """
        carry, xs = arrays[: self._n_carry], arrays[self._n_carry : self._n_read]
        last, slices = self._forward(carry, xs, arrays[self._n_read :], back)
        n = self._n_outs - self._n_carry
        kept = slices[n:]

        def gradients(g: Sequence[Any]) -> list[Any] | None:
            zeros = functools.partial(full_on_device_of, arrays[0])
            run = functools.partial(self._backward, back=not back)
            xp = reading(*arrays, *g)
            results = self._differentiated(arrays, kept, g, run, zeros, xp)
            return None if any(map(is_nan, results)) else results

        return last, slices[:n], gradients

    def steps(
        self, tensors: Sequence[Tensor], g: Sequence[Tensor], forward: Loop, backward: Loop
    ) -> list[Tensor]:
        """The gradient as steps of a trace, which recorders see.

        Args:
            tensors: the first carry, stacks of slices, and what stays the same.
            g: the gradients of all inexact results.
            forward, backward: run both loops.
        """
        n, m = self._n_carry, self._n_read
        _, slices = forward(tensors[:n], tensors[n:m], tensors[m:])
        kept, place = slices[self._n_outs - n :], innermost_array(tensors[0]._data)

        def zeros(shape: tuple[int, ...], dtype: Any) -> Tensor:
            return wrap(full_on_device_of(place, shape, dtype))

        return self._differentiated(tensors, kept, g, backward, zeros, TENSOR)

    def _differentiated(
        self,
        arrays: Sequence[Any],
        kept: Sequence[Any],
        g: Sequence[Any],
        run: Loop,
        zeros: Callable[..., Any],
        xp: Any,
    ) -> list[Any]:
        n, xs = self._n_carry, arrays[self._n_carry : self._n_read]
        carry = [x for k, x in zip(self._inexact, g, strict=True) if k < n]
        of_slices = [x for k, x in zip(self._inexact, g, strict=True) if k >= n]
        carry += self._zero_sums if xp is NUMPY else [zeros(v.shape, v.dtype) for v in self._sums]
        last, late = run(carry, [*xs, *kept, *of_slices], arrays[self._n_read :])
        stacks = {"xs": xs, "kept": kept, "g": g, "late": late}
        by = dict(zip(self._carried, last, strict=False))
        by |= zip(self._by_slice, map(stacked, late), strict=False)
        sums = iter(last[len(self._carried) :])
        for k, terms in self._terms.items():
            if xp is NUMPY and k in self._padded:
                by[k] = total = np.zeros(*self._kinds[k])  # the sum of padded arrays
                for term, x in zip(terms, sums, strict=False):
                    part, *around = [step.params["index"] for step in term.steps]
                    place = total
                    for index in reversed(around):
                        place = place[index]
                    place[part] += x
                continue
            parts = []
            for t in terms:
                x = next(sums) if isinstance(t, _Sum) else self._multiplied(t, stacks, xp)
                for step in t.steps:
                    x = self._call(step, xp)(x)
                parts.append(x)
            by[k] = functools.reduce(operator.add, parts)
        results = []
        for k in self._wanted:
            kind = (self._times,) * (n <= k < self._n_read) + self._kinds[k][0], self._kinds[k][1]
            results.append(by[k] if k in by else zeros(*kind))
        return results

    def _call(self, step: Step, xp: Any) -> Callable[[Any], Any]:
        """The op of a step, of one array."""
        if xp is TENSOR:
            return functools.partial(step.op.eager, **step.params)
        if (id(step), xp) not in self._calls:
            self._calls[id(step), xp] = op_call(step, xp)
        return self._calls[id(step), xp]

    def _multiplied(self, term: _Product, stacks: dict[str, Sequence[Any]], xp: Any) -> Any:
        factors = []
        for v, n in zip((term.x, term.y), term.columns, strict=True):
            kind, k = self._places[id(v)]
            factors.append(xp.reshape(stacked(stacks[kind][k]), shape=(-1, n)))
        multiply = xp.matmul if xp is TENSOR else OPS["matmul"].bare(xp)
        return multiply(xp.permute_dims(factors[0], axes=(1, 0)), factors[1])


def _are_padded_sums(terms: Sequence[_Term]) -> bool:
    """Whether all terms are sums, padded with zeros, and there are several."""
    return len(terms) > 1 and all(
        isinstance(t, _Sum) and t.steps and all(map(is_padded, t.steps)) for t in terms
    )


def _views_for(backward: Program, forward: Program) -> list[Step]:
    """The views in the forward program that the backward one reads: it takes them itself.

    A loop would write them to memory.
    """
    read = {id(v) for s in backward.steps for v in s.inputs} | {id(v) for v in backward.outputs}
    views = []
    for step in reversed(forward.steps):
        is_fixed = is_view(step) and not takes_arguments(step.params.get("index"))
        if is_fixed and any(id(v) in read for v in step.outs):
            views.append(step)
            read.update(id(v) for v in step.inputs)
    return views[::-1]


def stacked(slices: Any) -> Any:
    """The slices of a result of `Repeated`, as one array."""
    return reading(slices[0]).stack(slices) if isinstance(slices, list) else slices
