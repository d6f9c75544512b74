"""`scan` in a traced function: a loop over plain arrays, or over Tensors where that is needed."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from gpugrad.core.backend import ARRAYS, TENSOR, is_inexact, reading
from gpugrad.core.listening import threads
from gpugrad.core.settings import numerics
from gpugrad.core.tensor import Tensor, wrap
from gpugrad.function.control.branch import Branch
from gpugrad.function.control.loop_gradient import LoopWithGradient, Repeated, stacked
from gpugrad.function.cpu.c_loop import Body
from gpugrad.function.differentiate import Gradients, by_tape, known, tapes_only
from gpugrad.trace.array import current_trace
from gpugrad.trace.program import NotReplayable
from gpugrad.transforms.custom import custom_gradient


class Scan:
    """The function of a `scan` step: it gets the carry, the stacks and the body's captures.

    Args:
        branch: the body.
        n_carry, n_xs: how many Tensors are the carry, and how many are stacks.
        n: the number of iterations, at least 1.
        reverse: whether to begin at the end of the stacks.
        axis: of the stacks, along which their slices lie.
    """

    def __init__(
        self, branch: Branch, n_carry: int, n_xs: int, n: int, reverse: bool, axis: int
    ) -> None:
        self._branch, self._n, self._reverse, self._axis = branch, n, reverse, axis
        self._n_carry, self._n_read = n_carry, n_carry + n_xs
        body = Body(branch.program, n_carry, n_xs)
        self._loop = Repeated(body, branch.options, n)
        self._with_gradient: dict[tuple[int, ...], LoopWithGradient | None] = {}

    def __call__(self, *tensors: Tensor) -> list[Tensor]:
        """The last carry and the stacked ys, recorded by the recorders of this thread."""
        n, m = self._n_carry, self._n_read
        if self._is_plain(tensors):
            arrays = self._in_front(tensors)
            return self._results(*self._loop(arrays[:n], arrays[n:m], arrays[m:], self._reverse))
        carry, xs, more = tensors[:n], tensors[n:m], tensors[m:]
        return scan_slices(
            lambda *cx: self._branch(*cx, *more), carry, xs, self._n, self._reverse, self._axis
        )

    def with_gradient(
        self, tensors: Sequence[Tensor], wanted: Sequence[int]
    ) -> tuple[list[Tensor], Gradients]:
        """The results, and their gradient: see `by_tape`, which a body with effects needs."""
        key, loop = tuple(wanted), None
        if self._is_plain(tensors):
            arrays = self._in_front(tensors)
            if key not in self._with_gradient:
                self._with_gradient[key] = self._traced(arrays, key)
            loop = self._with_gradient[key]
        if loop is None:
            return by_tape(self, tensors, wanted)
        last, slices, differentiate = loop(arrays, self._reverse)
        outs = self._results(last, slices)
        is_stack = [k >= len(last) for k, t in enumerate(outs) if is_inexact(t.dtype)]
        read = range(self._n_carry, self._n_read)

        def gradients(g: Sequence[Tensor]) -> list[Tensor]:
            upstream = [
                _moved(x._data, self._axis, 0) if is_one else x._data
                for x, is_one in zip(g, is_stack, strict=True)
            ]
            grads = differentiate(upstream)
            if grads is None:
                return by_tape(self, tensors, wanted)[1](g)
            return [
                wrap(_moved(a, 0, self._axis) if k in read else a)
                for k, a in zip(wanted, grads, strict=True)
            ]

        return outs, gradients

    def _traced(self, arrays: Sequence[Any], wanted: tuple[int, ...]) -> LoopWithGradient | None:
        n, m = self._n_carry, self._n_read
        like = [*arrays[:n], *(a[0, ...] for a in arrays[n:m]), *arrays[m:]]
        branch = self._branch
        try:
            return LoopWithGradient(branch.run, like, n, m - n, wanted, branch.options, self._n)
        except NotReplayable:
            return None

    def _is_plain(self, tensors: Sequence[Tensor]) -> bool:
        """Whether nothing has to see the ops of each iteration."""
        if current_trace() is not None or numerics() or self._branch.effects:
            return False
        if threads.stack and (not tapes_only() or any(map(known, tensors))):
            return False
        return all(type(t._data) in ARRAYS for t in tensors)

    def _in_front(self, tensors: Sequence[Tensor]) -> list[Any]:
        """The arrays, with the slices along axis 0."""
        read = range(self._n_carry, self._n_read)
        return [
            _moved(t._data, self._axis, 0) if k in read else t._data for k, t in enumerate(tensors)
        ]

    def _results(self, carry: Sequence[Any], slices: Sequence[Any]) -> list[Tensor]:
        return [wrap(a) for a in (*carry, *(_moved(stacked(s), 0, self._axis) for s in slices))]


def _moved(array: Any, source: int, target: int) -> Any:
    return array if source == target else reading(array).moveaxis(array, source, target)


def scan_slices(
    body: Callable[..., Any],
    carry: Sequence[Tensor],
    xs: Sequence[Tensor],
    n: int,
    reverse: bool,
    axis: int,
) -> list[Tensor]:
    """The last carry and the stacked ys, from slices of the xs along `axis`."""
    slices = [_unstack(x, axis) for x in xs]
    now, ys = list(carry), [[] for _ in range(n)]  # type: ignore[var-annotated]
    for i in reversed(range(n)) if reverse else range(n):
        results = body(*now, *(s[i] for s in slices))
        now, ys[i] = results[: len(now)], results[len(now) :]
    return now + [TENSOR.stack(column, axis=axis) for column in zip(*ys, strict=True)]


def _unstack(x: Tensor, axis: int) -> list[Tensor]:
    """The slices of `x` along an axis; their gradients are stacked, not added one by one."""
    lead = (slice(None),) * axis

    def slices(x: Tensor) -> list[Tensor]:
        return [TENSOR.getitem(x, index=(*lead, i)) for i in range(x.shape[axis])]

    if not known(x):
        return slices(x)

    @custom_gradient
    def with_stacked_gradient(x: Tensor) -> Any:
        return slices(x), lambda *g: TENSOR.stack(list(g), axis=axis)

    tensors: list[Tensor] = with_stacked_gradient(x)
    return tensors
