"""Gradients of solutions that keep less than all steps: checkpoints, and the adjoint equation."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from gpugrad.autodiff.batched import levels_running
from gpugrad.autodiff.recorder import recording_stopped
from gpugrad.autodiff.tape import GradientTape
from gpugrad.core import nest
from gpugrad.core.backend import TENSOR as xp
from gpugrad.core.backend import is_inexact
from gpugrad.core.listening import recorders, threads
from gpugrad.core.tensor import Tensor
from gpugrad.errors import ArgumentError, GpugradWarning
from gpugrad.registry.rules import conjugate
from gpugrad.scipy.namespaces import NUMPY
from gpugrad.trace.tracing import Tracing
from gpugrad.transforms.accesses import Accesses
from gpugrad.transforms.custom import custom_gradient
from gpugrad.transforms.implicit import ClosedOver

Function = Callable[..., Any]
GRADIENTS = ("steps", "checkpoints", "adjoint")


def _is_source(x: Any) -> bool:
    return isinstance(x, Tensor) and is_inexact(x.dtype)


def _called(run: Function, pull: Function, args: Any) -> Any:
    """``run(closed_over, args)`` on values, with a gradient.

    Args:
        run: notes with `closed_over` which watched Tensors it reads beside its arguments.
        pull: ``pull(args, others, *upstream)`` returns the gradients by the floating-point Tensors
            in `args`, and by the others that were read.
        args: a nest. Its numbers stay as they are: a Tensor of a number is not that exact.
    """

    @custom_gradient
    def call(*sources: Tensor) -> Any:
        rest = iter(sources)
        given = nest.map_structure(lambda x: next(rest) if _is_source(x) else x, args)
        closed_over = ClosedOver(sources)
        with recording_stopped(keep=(Accesses, Tracing)):
            result = run(closed_over, given)

        def grad_fn(*upstream: Tensor, variables: Sequence[Any] = ()) -> Any:
            slopes = pull(given, [*variables, *closed_over.tensors], *upstream)
            n, m = len(sources), len(sources) + len(variables)
            by_sources = slopes[:n] + slopes[m:]
            return (by_sources, slopes[n:m]) if variables else by_sources

        grad_fn.closed_over = closed_over.tensors  # type: ignore[attr-defined]
        return result, grad_fn

    return call(*filter(_is_source, nest.flatten(args)))


def _pulled(f: Function, args: Any, others: Any, *upstream: Tensor) -> tuple[Any, list[Any]]:
    """The result of `f`, and the gradients by what is in its arguments and by others it reads."""
    sources = [xp.positive(x) for x in nest.flatten(args) if _is_source(x)]
    rest = iter(sources)
    given = nest.map_structure(lambda x: next(rest) if _is_source(x) else x, args)
    with GradientTape(watch_accessed_variables=False) as tape:
        tape.watch([*sources, *others])
        result = f(*given)
    grads = tape.gradient(nest.flatten(result), [*sources, *others], list(upstream))
    return result, list(grads)


def recomputed(f: Function) -> Function:
    """`f`, of which a tape keeps only the arguments: the backward pass calls it again.

    It has gradients by the watched Tensors that `f` closes over, too.
    """

    def run(closed_over: ClosedOver, args: Any) -> Any:
        with closed_over:
            return f(*args)

    def pull(args: Any, others: Any, *upstream: Tensor) -> list[Any]:
        return _pulled(f, args, others, *upstream)[1]

    return lambda *args: _called(run, pull, args) if threads.stack else f(*args)


def by_adjoint(solve: Function, fun: Function, t_span: Any, y0: Any, **options: Any) -> Any:
    """The result of `solve`, whose states have the gradient by the adjoint equation.

    From the last time to the first, it solves for the state y, for a with a' = -(df/dy)^H a, and
    for the gradients by parameters, whose derivative is -(df/dp)^H a. At each of the times of the
    result, y starts anew from the state there, and a gains the gradient by that.

    Args:
        solve: `solve_ivp` with the argument `gradient`.
        fun, t_span, y0, options: as of `solve_ivp`.
    """
    if options.pop("dense_output") or options.pop("events") is not None:
        raise ArgumentError(
            "solve_ivp: gradient='adjoint' is that of states, not of dense_output and events. Pass "
            "t_eval, or gradient='checkpoints'."
        )
    y0 = NUMPY.asarray(y0)
    y0 = y0 if y0.dtype.kind == "c" else NUMPY.asarray(y0, dtype=float)
    t_eval, more = options.pop("t_eval"), tuple(options.pop("args") or ())
    found: list[Any] = []

    def states(y0: Tensor, start: Any, times: Any, more: Any) -> Any:
        return _called(run, pull, (y0, start, times, more))

    def run(closed_over: ClosedOver, given: Any) -> Any:
        y0, _, _, more = given
        result = solve(fun, t_span, y0, t_eval=t_eval, args=more or None, **options)
        found.append(result)
        with closed_over:
            fun(NUMPY.asarray(t_span[0], dtype=float), y0, *more)
            for k in (-1,) if result["t"].size else ():
                fun(result["t"][k], result["y"][:, k], *more)
        return result["y"]

    def pull(given: Any, others: Any, g: Tensor) -> list[Any]:
        y0, start, times, more = given
        y = states(*given) if recorders else found[0]["y"]
        at = found[0]["t"] if t_eval is None else NUMPY.asarray(times, dtype=float)
        back = _Backward(solve, fun, more, others, options)
        a, by_start, by_times, by_rest = back.run(start, y0, at, y, g)
        by_times = by_times[-1] if t_eval is None else by_times
        optional = [(start, by_start), (times, by_times)]
        return [a, *(slope for x, slope in optional if _is_source(x)), *by_rest]

    y = states(y0, t_span[0], t_span[1] if t_eval is None else t_eval, more)
    found[0].update(y=y, t=found[0]["t"] if t_eval is None else NUMPY.asarray(t_eval, dtype=float))
    return found[0]


class _Backward:
    """The adjoint equation of y' = fun(t, y, *more), solved from the last time to the first."""

    def __init__(self, solve: Any, fun: Any, more: Any, others: Any, options: Any) -> None:
        self.fun, self.more, self.others = fun, more, others
        kept = ("method", "rtol", "atol", "max_step")
        self.options = {k: v for k, v in options.items() if k in kept}
        self.solve = solve

    def slopes(self, t: Any, y: Tensor, a: Tensor) -> tuple[Tensor, list[Any]]:
        """The right-hand side, and the products of `a` with its derivatives but that by time."""
        f = lambda y, *more: NUMPY.asarray(self.fun(t, y, *more), dtype=y.dtype)  # noqa: E731
        return _pulled(f, (y, *self.more), self.others, a)

    def run(self, start: Any, y0: Tensor, times: Tensor, y: Tensor, g: Tensor) -> Any:
        """The gradients by the first state and time, the times, and what `fun` reads."""
        n, start = y0.shape[0], NUMPY.asarray(start, dtype=float)
        ends = [(start, y0), *((times[k], y[:, k]) for k in (-1,) if times.size)]
        both = [self.slopes(*end, NUMPY.zeros_like(y0))[1][1:] for end in ends]
        # what has no gradient at both ends has none between them
        totals = [
            next((s for s in pair if s is not None), None) for pair in zip(*both, strict=True)
        ]
        totals = [None if s is None else NUMPY.zeros_like(s) for s in totals]
        used = [s for s in totals if s is not None]
        kind = np.result_type(y0.dtype, *(s.dtype for s in used))
        like = [y0, y0, *used]
        cuts = np.cumsum([x.size for x in like]).tolist()

        def split(z: Tensor) -> list[Tensor]:
            pairs = zip(like, [0, *cuts], cuts, strict=False)
            return [_as(xp.reshape(z[lo:hi], x.shape), x) for x, lo, hi in pairs]

        def joined(parts: Any) -> Tensor:
            pairs = zip(parts, like, strict=True)
            rows = [NUMPY.zeros_like(x) if p is None else p for p, x in pairs]
            return xp.concat([xp.astype(xp.ravel(row), kind) for row in rows])

        def right(t: Any, z: Tensor) -> Tensor:
            y, a, *_ = split(z)
            f, slopes = self.slopes(t, y, -a)
            of_used = zip(slopes[1:], totals, strict=True)
            return joined([f, slopes[0], *(s for s, total in of_used if total is not None)])

        batched = bool(levels_running())  # gradients of many targets: they are solved in lockstep
        options = dict(self.options)
        if np.ndim(options.get("atol", 0)):
            least = np.full(cuts[-1] - n, np.min(options["atol"]))
            options["atol"] = np.append(options["atol"], least)
        a, by_times = NUMPY.zeros_like(y0), []
        for k in reversed(range(times.size)):
            state, gain = y[:, k], g[:, k]
            by_times.append(_inner(gain, self.slopes(times[k], state, gain)[0]))
            before, z = times[k - 1] if k else start, joined([state, a + gain, *used])
            how = {"t_eval": [before]} if batched else {"gradient": "adjoint"}
            solved = self.solve(right, (times[k], before), z, **options, **how)
            if not batched and not solved["success"]:
                warnings.warn(
                    f"gradient of solve_ivp: the adjoint equation has no solution before t="
                    f"{float(solved['t'][-1]):.6g}, so it is wrong: {solved['message']}",
                    GpugradWarning,
                    stacklevel=2,
                )
            _, a, *used = split(solved["y"][:, -1])
        rest = iter(used)
        totals = [None if total is None else next(rest) for total in totals]
        by_start = -_inner(a, self.slopes(start, y0, a)[0])
        return a, by_start, xp.stack(by_times[::-1]) if by_times else times, totals


def _as(x: Tensor, like: Tensor) -> Tensor:
    """In the dtype of another; of complex numbers the real parts, where that is real."""
    x = xp.real(x) if x.dtype.kind == "c" and like.dtype.kind != "c" else x
    return x if x.dtype == like.dtype else xp.astype(x, like.dtype)


def _inner(a: Tensor, f: Tensor) -> Tensor:
    """The change of a value with the gradient `a`, where f is the change of its argument."""
    total = xp.sum(conjugate(xp, a) * f)
    return xp.real(total) if total.dtype.kind == "c" else total
