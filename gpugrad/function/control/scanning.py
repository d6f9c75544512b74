"""`scan` in a traced function: a loop over plain arrays, or over Tensors where that is needed."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from gpugrad.autodiff.batched import Level
from gpugrad.autodiff.borders import give_each_example, unwrap_level, wrap_level
from gpugrad.core.backend import ARRAYS, TENSOR, innermost_array, is_inexact, reading
from gpugrad.core.listening import threads
from gpugrad.core.settings import numerics
from gpugrad.core.tensor import Tensor, wrap
from gpugrad.function.control.branch import Branch
from gpugrad.function.control.control_step import ControlStep
from gpugrad.function.control.examples import stopped, trace_examples, with_levels, without_levels
from gpugrad.function.control.loop_gradient import Loop, LoopWithGradient, Repeated, stacked
from gpugrad.function.control.tracing import make_branches
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

    Attributes:
        extends: the scan whose results are the first ones of this one, on the same arguments.
    """

    extends: Scan | None = None

    def __init__(
        self, branch: Branch, n_carry: int, n_xs: int, n: int, reverse: bool, axis: int
    ) -> None:
        self._branch, self._n, self._reverse, self._axis = branch, n, reverse, axis
        self._n_carry, self._n_read = n_carry, n_carry + n_xs
        body = Body(branch.program, n_carry, n_xs)
        self._loop = Repeated(body, branch.options, n)
        self._with_gradient: dict[tuple[tuple[int, ...], bool], LoopWithGradient | None] = {}
        self._loops: dict[int, tuple[Loop, Loop]] = {}  # as steps of a trace
        self._mapped: dict[tuple[int, tuple[bool, ...]], tuple[ControlStep, Sequence[bool]]] = {}

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

    def c_call(self, xp: Any, *args: Any) -> Any:
        """The loop as a step of another one: see the field `c_call` of ops."""
        if self._axis or not self.is_open:
            return NotImplemented
        return self._loop.in_loop(self._reverse) or NotImplemented

    def with_gradient(
        self, tensors: Sequence[Tensor], wanted: Sequence[int]
    ) -> tuple[list[Tensor], Gradients]:
        """The results, and their gradient: see `by_tape`, which a body with effects needs."""
        loop = None
        if self._is_plain(tensors):
            arrays = self._in_front(tensors)
            loop = self._derivative(arrays, wanted, False)
        if loop is None:
            return by_tape(self, tensors, wanted)
        last, slices, differentiate = loop(arrays, self._reverse)
        outs = self._results(last, slices)
        axes = [self._axis * (k >= len(last)) for k, t in enumerate(outs) if is_inexact(t.dtype)]
        read = range(self._n_carry, self._n_read)

        def gradients(g: Sequence[Tensor]) -> list[Tensor]:
            upstream = [_moved(x._data, axis, 0) for x, axis in zip(g, axes, strict=True)]
            grads = differentiate(upstream)
            if grads is None:
                return by_tape(self, tensors, wanted)[1](g)
            return [
                wrap(_moved(a, 0, self._axis) if k in read else a)
                for k, a in zip(wanted, grads, strict=True)
            ]

        return outs, gradients

    def _derivative(
        self, arrays: Sequence[Any], wanted: Sequence[int], masks: bool
    ) -> LoopWithGradient | None:
        """The loop with its gradient, given arrays like the arguments; None if it has effects."""
        key = tuple(wanted), masks
        if key not in self._with_gradient:
            self._with_gradient[key] = self._traced(arrays, *key)
        return self._with_gradient[key]

    def _traced(
        self, arrays: Sequence[Any], wanted: tuple[int, ...], masks: bool
    ) -> LoopWithGradient | None:
        n, m = self._n_carry, self._n_read
        like = [*arrays[:n], *(a[0, ...] for a in arrays[n:m]), *arrays[m:]]
        run, options = self._branch.run, self._branch.options
        try:
            return LoopWithGradient(run, like, n, m - n, wanted, options, self._n, masks)
        except NotReplayable:
            return None

    # -- in a trace: gradients, and scans of all examples of a vmap, are scans again

    @property
    def is_open(self) -> bool:
        """Whether they can be: the steps of the body say all about it."""
        return self._branch.is_open

    def gradient_steps(
        self,
        levels: Sequence[Level],
        tensors: Sequence[Tensor],
        wanted: Sequence[int],
        g: Sequence[Tensor],
    ) -> list[Tensor] | None:
        """The gradients by the tensors at `wanted`; None if there is no gradient loop.

        Args:
            levels: those whose examples the step's arrays have in front.
            tensors: the arguments.
            wanted: positions of arguments.
            g: the gradients of the inexact results.
        """
        trace, n, outs = current_trace(), self._n_carry, self._branch.program.outputs
        assert trace is not None
        lowered = self._lowered(levels, tensors)
        arrays = [innermost_array(t._data) for t in lowered]
        loop = self._derivative(arrays, wanted, trace.masks or trace.nested)
        if loop is None:
            return None
        if id(loop) not in self._loops:
            self._loops[id(loop)] = (
                self._steps_of(loop.before, self._reverse, self),
                self._steps_of(loop.after, not self._reverse),
            )
        is_stack = [k >= n for k, v in enumerate(outs) if is_inexact(v.dtype)]
        upstream = [
            _moved_axis(without_levels(x, levels, repeat=True), self._axis * is_one, 0)
            for x, is_one in zip(g, is_stack, strict=True)
        ]
        with stopped(levels):
            grads = loop.steps(lowered, upstream, *self._loops[id(loop)])
        results = []
        for k, x in zip(wanted, grads, strict=True):
            x = _moved_axis(x, 0, self._axis) if n <= k < self._n_read else x
            results.append(with_levels(x, [n for n in levels if n.is_in(tensors[k]._data)]))
        return results

    def _steps_of(self, body: Body, back: bool, extends: Scan | None = None) -> Loop:
        """A loop as a step of the trace; see the attribute `extends`."""
        program, n = body.program, body.n_carry
        branch = Branch("body", program, (), self._branch.options.passes)
        scan = Scan(branch, n, body.n_slices, self._n, back, 0)
        scan.extends = extends if self._axis == 0 else None
        specs = [((self._n,) * (k >= n) + v.shape, v.dtype) for k, v in enumerate(program.outputs)]
        step = ControlStep("scan", scan, (branch,), specs, ())

        def run(
            carry: Sequence[Tensor], stacks: Sequence[Tensor], same: Sequence[Tensor]
        ) -> tuple[list[Tensor], list[Tensor]]:
            results = step(*carry, *stacks, *same)
            return results[:n], results[n:]

        return run

    def for_examples(
        self, levels: Sequence[Level], level: Level, tensors: Sequence[Tensor]
    ) -> list[Tensor]:
        """The results, given tensors at a level that is not among those of the step."""
        tensors = [give_each_example(t) if known(t) else t for t in tensors]
        n, m = self._n_carry, self._n_read
        with stopped([*levels, level]):
            lowered = self._lowered(levels, tensors)
            key = level.size, tuple(level.is_in(t._data) for t in lowered)
            if key not in self._mapped:
                self._mapped[key] = self._for_each(*key, lowered)
            step, is_each = self._mapped[key]
            args = [
                _moved_axis(unwrap_level(t, level, 0), int(n <= k < m), 0) if is_each[k] else t
                for k, t in enumerate(lowered)
            ]
            results = []
            for k, x in enumerate(step(*args)):
                is_one = k < n and not is_each[k]
                x = x if is_one else wrap_level(_moved_axis(x, 0, int(k >= n)), level, 0)
                results.append(with_levels(_moved_axis(x, 0, self._axis * (k >= n)), levels))
            return results

    def _for_each(
        self, size: int, given: Sequence[bool], tensors: Sequence[Tensor]
    ) -> tuple[ControlStep, Sequence[bool]]:
        """The scan of all examples, and which of its arguments have one for each."""
        n, is_each = self._n_carry, list(given)
        traced, outs = trace_examples(self._branch, size, is_each, tensors, n)
        (branch,), captured = make_branches([("body", traced)])
        assert not captured
        scan = Scan(branch, n, self._n_read - n, self._n, self._reverse, 0)
        specs = [((self._n,) * (k >= n) + a.shape, a.dtype) for k, a in enumerate(outs)]
        return ControlStep("scan", scan, (branch,), specs, ()), is_each

    def _lowered(self, levels: Sequence[Level], tensors: Sequence[Tensor]) -> list[Tensor]:
        """The arguments without these levels' wrappers, and the stacks' slices along axis 0."""
        read = range(self._n_carry, self._n_read)
        return [
            _moved_axis(without_levels(t, levels), self._axis * (k in read), 0)
            for k, t in enumerate(tensors)
        ]

    # -- running

    def _is_plain(self, tensors: Sequence[Tensor]) -> bool:
        """Whether nothing has to see the ops of each iteration."""
        if current_trace() is not None or numerics() or self._branch.effects:
            return False
        if threads.stack and (not tapes_only() or any(map(known, tensors))):
            return False
        return all(type(t._data) in ARRAYS for t in tensors)

    def _in_front(self, tensors: Sequence[Tensor]) -> list[Any]:
        """The arrays, with the slices along axis 0."""
        arrays, read = [t._data for t in tensors], range(self._n_carry, self._n_read)
        if self._axis:
            arrays = [_moved(a, self._axis * (k in read), 0) for k, a in enumerate(arrays)]
        return arrays

    def _results(self, carry: Sequence[Any], slices: Sequence[Any]) -> list[Tensor]:
        return [wrap(a) for a in (*carry, *(_moved(stacked(s), 0, self._axis) for s in slices))]


def _moved(array: Any, source: int, target: int) -> Any:
    return array if source == target else reading(array).moveaxis(array, source, target)


def _moved_axis(x: Tensor, source: int, target: int) -> Tensor:
    return x if source == target else TENSOR.moveaxis(x, source, target)


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
