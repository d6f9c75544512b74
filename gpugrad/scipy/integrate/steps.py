"""Parts of SciPy's steps that need derivatives or run for many examples at once."""

from __future__ import annotations

import functools
import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
from scipy.optimize import brentq

from gpugrad.autodiff.recorder import recording_stopped
from gpugrad.core.backend import TENSOR
from gpugrad.core.listening import threads
from gpugrad.core.tensor import Tensor
from gpugrad.errors import GpugradWarning
from gpugrad.function.control.api import while_loop
from gpugrad.scipy.calling import known, plain_values
from gpugrad.scipy.integrate.memory import recomputed
from gpugrad.scipy.namespaces import NUMPY
from gpugrad.transforms.derivatives import jvp
from gpugrad.transforms.jacobians import jacobian

Function = Callable[..., Any]


def on_host(x: Any) -> Any:
    """Values that only control the steps."""
    return TENSOR.stop_gradient(x).numpy() if isinstance(x, Tensor) else x


def number(x: Any) -> Any:
    """The value of a Tensor with one element as a Python number."""
    return on_host(x).item() if isinstance(x, Tensor) else x


def limit(x: Any) -> Any:
    """A limit of integration: a Tensor if something follows it, else a float."""
    if not isinstance(x, Tensor):
        return float(x)
    x = TENSOR.reshape(x if x.dtype.kind == "f" else TENSOR.astype(x, "float64"), ())
    return float(x) if plain_values(x) is not None and not threads.stack else x


def spacing(t: Any, direction: float) -> float:
    """The distance to the next number in the direction of the steps."""
    t = number(t)
    return float(abs(np.nextafter(t, direction * np.inf) - t))


def dot(a: Any, b: Any) -> Tensor:
    """`numpy.dot` of Tensors and of constants, which are moved to their device."""
    place = next(x.device for x in (a, b) if isinstance(x, Tensor))
    return NUMPY.dot(*(NUMPY.asarray(x, device=place) for x in (a, b)))


def evaluated(fun: Function, t: Any, y: Tensor, dtype: Any) -> Tensor:
    """The right-hand side of a time in double precision: an op of a number is not that exact."""
    return NUMPY.asarray(fun(NUMPY.asarray(t, dtype=float), y), dtype=dtype)


def on_tensors(event: Function) -> Function:
    """An event of a time in double precision."""
    return lambda t, y: NUMPY.asarray(event(NUMPY.asarray(t, dtype=float), y))


def unrecorded(function: Function, *args: Any) -> Any:
    """The result for the values of the arguments."""
    return function(*(TENSOR.stop_gradient(x) if isinstance(x, Tensor) else x for x in args))


def rk_step(
    fun: Function, t: Any, y: Tensor, f: Tensor, h: Any, A: Any, B: Any, C: Any, K: Any = None
) -> tuple[Tensor, Tensor, Tensor]:
    """One explicit step: the state, its derivative and those of all stages."""

    def step(t: Any, y: Tensor, f: Tensor, h: Any) -> tuple[Tensor, Tensor, Tensor]:
        stages = [f]
        for a, c in zip(A[1:], C[1:], strict=True):
            stages.append(fun(t + float(c) * h, y + _weighted(stages, a) * h))
        y_new = y + h * _weighted(stages, B)
        f_new = fun(t + h, y_new)
        return y_new, f_new, NUMPY.stack([*stages, f_new])

    return _kept(fun, step)(t, y, f, h)


def _kept(fun: Function, step: Function) -> Function:
    """A step, of which a tape keeps no more than its arguments if the right-hand side says so."""
    return recomputed(step) if getattr(fun, "checkpoints", False) else step


def watched(home: Any, method: Any, checkpoints: bool = False) -> Any:
    """A solver's class that warns of stiffness, and has the checkpoints of `_kept`.

    Args:
        home: has the class by its name.
        method: the name or a class; another name stays, for SciPy's error.
    """
    cls = getattr(home, method, method) if isinstance(method, str) else method
    limit = LIMITS.get(getattr(method, "__name__", method), 0.0)
    return _watched(cls, limit, checkpoints) if limit or checkpoints else cls


LIMITS = {"RK23": 2.4, "RK45": 2.9, "DOP853": 6.0}
"""A step size times an eigenvalue near the border of stability, which other systems never reach."""


@functools.cache
def _watched(cls: Any, limit: float, checkpoints: bool) -> Any:
    class Watched(cls):  # type: ignore[misc]
        count = stiff = 0

        def __init__(self, *args: Any, **options: Any) -> None:
            super().__init__(*args, **options)
            self.fun.checkpoints = checkpoints

        def _step_impl(self) -> tuple[bool, Any]:
            good, message = super()._step_impl()
            self.count += 1
            if good and limit and (self.stiff or self.count % 20 == 0):
                self.stiff += 1 if _rate(self) > limit else -1
                if self.stiff == 15:
                    warnings.warn(
                        f"solve_ivp: the system is stiff at t={number(self.t):.6g}: its stability, "
                        f"not the tolerance, gives {cls.__name__} the step size. Try "
                        "method='Radau' or 'BDF'.",
                        GpugradWarning,
                        stacklevel=2,
                    )
            return good, message

    Watched.__name__ = cls.__name__
    return Watched


def _rate(solver: Any) -> float:
    """The step size times an eigenvalue, by the last two stages (Hairer, Norsett and Wanner)."""
    K, h, last = on_host(solver.K), number(solver.h_previous), solver.n_stages - 1
    start, end = on_host(solver.y_old), on_host(solver.y)
    change = end - start - h * (solver.A[last, :last] @ K[:last])
    size = np.linalg.norm(change)
    return float(abs(h) * np.linalg.norm(K[-1] - K[last]) / size) if size else 0.0


def _weighted(stages: list[Tensor], weights: np.ndarray) -> Tensor:
    terms = [float(w) * k for w, k in zip(weights, stages, strict=False) if w]
    return functools.reduce(TENSOR.add, terms)


def exact(residual: Function, guess: Tensor, matrix: Function) -> Tensor:
    """The solution of an implicit step as a function of all that the residual reads.

    `guess` solves it to the tolerance. Two of Newton's steps with the same matrix give the first
    and the second derivative that the implicit function theorem gives.
    """
    if not threads.stack:
        return guess
    u = TENSOR.stop_gradient(guess)
    with recording_stopped():
        inverse = NUMPY.linalg.inv(matrix(u))
    for _ in range(2):
        u = u - NUMPY.matmul(inverse, residual(u))
    return u


def jacobian_of(fun: Function, t: Any, y: Tensor) -> Tensor:
    """The matrix of the derivatives of the right-hand side by the state, as a constant."""
    with recording_stopped():
        t, y = (TENSOR.stop_gradient(x) if isinstance(x, Tensor) else x for x in (t, y))
        return jacobian(lambda y: fun(t, y))(y)


def num_jac(
    fun: Function, t: Any, y: Tensor, f: Tensor, threshold: Any, factor: Any, sparsity: Any = None
) -> tuple[Tensor, Any]:
    """SciPy's finite differences are a derivative here."""
    return jacobian_of(lambda t, y: fun(t, y[:, None])[:, 0], t, y), factor


def bdf_system(original: Function) -> Function:
    """`solve_bdf_system`, with the derivatives of its solution."""

    def solve(fun: Function, t: Any, y: Tensor, c: Any, psi: Tensor, *options: Any) -> Any:
        with recording_stopped():
            converged, count, y_new, d = original(fun, t, y, c, psi, *options)
        if not converged:
            return converged, count, y_new, d
        eye = NUMPY.eye(y.shape[0])

        def step(t: Any, y: Tensor, c: Any, psi: Tensor, d: Tensor) -> Tensor:
            return exact(
                lambda d: d - c * fun(t, y + d) + psi,
                d,
                lambda d: eye - number(c) * jacobian_of(fun, t, y + d),
            )

        d = _kept(fun, step)(t, y, c, psi, d)
        return converged, count, y + d, d

    return solve


def radau_system(original: Function, nodes: Any) -> Function:
    """`solve_collocation_system`, with the derivatives of its solution."""
    powers = nodes[:, None] ** np.arange(3)
    weights = (nodes[:, None] * powers / np.arange(1, 4)) @ np.linalg.inv(powers)

    def solve(fun: Function, t: Any, y: Tensor, h: Any, *options: Any) -> Any:
        with recording_stopped():
            converged, count, Z, rate = original(fun, t, y, h, *options)
        if not converged:
            return converged, count, Z, rate
        n = y.shape[0]

        def step(t: Any, y: Tensor, h: Any, Z: Tensor) -> Tensor:
            def residual(z: Tensor) -> Tensor:
                rows = z.reshape(3, n)
                f = [fun(t + h * float(c), y + rows[i]) for i, c in enumerate(nodes)]
                return z - h * NUMPY.matmul(NUMPY.asarray(weights), NUMPY.stack(f)).reshape(-1)

            def matrix(z: Tensor) -> Tensor:
                rows = z.reshape(3, n)
                J = [jacobian_of(fun, t + h * float(c), y + rows[i]) for i, c in enumerate(nodes)]
                scale = NUMPY.asarray(number(h) * weights[:, None, :, None])
                blocks = scale * NUMPY.stack(J, axis=1)[None]
                return NUMPY.eye(3 * n) - blocks.reshape(3 * n, 3 * n)

            return exact(residual, Z.reshape(-1), matrix).reshape(3, n)

        return converged, count, _kept(fun, step)(t, y, h, Z), rate

    return solve


def event_time(event: Function, sol: Function, t_old: Any, t: Any) -> Any:
    """The time of an event by SciPy's search; two of Newton's steps give it derivatives."""
    eps = 4 * np.finfo(float).eps
    with recording_stopped():
        found = brentq(
            lambda t: number(event(t, sol(t))), number(t_old), number(t), xtol=eps, rtol=eps
        )
    if not threads.stack:
        return found
    root = start = NUMPY.asarray(found)
    for _ in range(2):
        value, slope = jvp(lambda t: event(t, sol(t)), [root], [NUMPY.ones_like(root)])
        root = root - value / slope
    return start + (root - TENSOR.stop_gradient(root))


def find_active_events(original: Function) -> Function:
    """`find_active_events` on values."""
    return lambda *values: original(*([number(x) for x in v] for v in values[:2]), values[2])


def lockstep(
    cls: Any,
    start: Function,
    fun: Function,
    t_span: Any,
    y0: Any,
    times: Tensor,
    rtol: float = 1e-3,
    atol: Any = 1e-6,
    max_step: Any = np.inf,
    first_step: Any = None,
) -> tuple[Tensor, Tensor, Tensor]:
    """SciPy's explicit steps as a `while_loop`, where values are not known: in a trace or `vmap`.

    Each example has steps of its own; those that are done wait.

    Args:
        cls: RK23, RK45 or DOP853.
        start: SciPy's choice of the first step.
        fun: the right-hand side.
        t_span, y0: as in `solve_ivp`.
        times: `t_eval`, in double precision.
        rtol, atol, max_step, first_step: as in `solve_ivp`.

    Returns:
        (states of shape (n, times), status, evaluations).
    """
    y = NUMPY.asarray(y0)
    y = y if y.dtype.kind == "c" else NUMPY.asarray(y, dtype=float)
    if y.ndim != 1:
        raise ValueError("`y0` must be 1-dimensional.")
    if times.ndim != 1:
        raise ValueError("`t_eval` must be 1-dimensional.")
    t, end = (NUMPY.asarray(v, dtype=float) for v in t_span)
    direction = TENSOR.stop_gradient(NUMPY.where(end >= t, 1.0, -1.0))
    rhs = functools.partial(evaluated, fun, dtype=y.dtype)
    f = rhs(t, y)
    if first_step is None:
        order = cls.error_estimator_order
        h = unrecorded(start, rhs, t, y, end, max_step, f, direction, order, rtol, atol)
    else:
        h = NUMPY.asarray(first_step, dtype=float)
    at_start = (times == t)[None, :]
    states = NUMPY.where(at_start, y[:, None], NUMPY.zeros((y.shape[0], times.shape[0])))
    status = NUMPY.where((end == t) | (y.shape[0] == 0), 1, 0)
    carry = (t, y, f, NUMPY.minimum(h, abs(end - t)), status < 0, status, states, NUMPY.asarray(2))

    step = functools.partial(
        _try_step, cls, rhs, times, direction, end, rtol=rtol, atol=atol, max_step=max_step
    )
    result = while_loop(lambda carry: carry[5] == 0, step, carry)
    return result[6], NUMPY.where(result[5] < 0, -1, 0), result[7]


def _try_step(
    cls: Any,
    rhs: Function,
    times: Tensor,
    direction: Tensor,
    end: Tensor,
    carry: Any,
    rtol: Any,
    atol: Any,
    max_step: Any,
) -> Any:
    """The state of `lockstep` after one more step, which each example accepts or rejects."""
    t, y, f, h_abs, rejected, status, states, count = carry
    least = 10 * abs(NUMPY.nextafter(t, direction * np.inf) - t)
    too_small = rejected & (h_abs < least)
    h_abs = NUMPY.where(rejected, h_abs, NUMPY.minimum(NUMPY.maximum(h_abs, least), max_step))
    h = TENSOR.stop_gradient(h_abs) * direction
    last = direction * (t + h - end) >= 0
    h = NUMPY.where(last, end - t, h)
    h = NUMPY.where(status == 0, h, direction)  # an example that waits divides by it
    y_new, f_new, K = rk_step(rhs, t, y, f, h, cls.A, cls.B, cls.C)
    method = object.__new__(cls)
    vars(method).update(
        fun=rhs, K=K, h_previous=h, t_old=t, t=t + h, y_old=y, y=y_new, f=f_new, n=y.shape[0]
    )
    scale = atol + NUMPY.maximum(abs(y), abs(y_new)) * rtol
    error = unrecorded(method._estimate_error_norm, K, h, scale)
    good = (error < 1) & ~too_small
    change = 0.9 * NUMPY.where(error == 0, 1e-20, error) ** (-1 / (cls.error_estimator_order + 1))
    change = NUMPY.where(
        good,
        NUMPY.minimum(NUMPY.where(rejected, 1.0, 10.0), change),
        NUMPY.where(change > 0.2, change, 0.2),  # of NaN too
    )
    within = good & (direction * (times - t) > 0) & ((direction * (times - t - h) <= 0) | last)
    states = NUMPY.where(within, method._dense_output_impl()._call_impl(times), states)
    y, f = (NUMPY.where(good, new, old) for new, old in ((y_new, y), (f_new, f)))
    status = NUMPY.where(too_small, -1, NUMPY.where(good & last, 1, 0))
    t = NUMPY.where(good, NUMPY.where(last, end, t + h), t)
    return t, y, f, abs(h) * change, ~good, status, states, count + cls.n_stages


def check_times(t_span: Any, t_eval: Any) -> None:
    """SciPy's checks of `t_eval`, of values that are known."""
    t0, end = t_span
    if known(
        lambda: NUMPY.any((t_eval < NUMPY.minimum(t0, end)) | (t_eval > NUMPY.maximum(t0, end)))
    ):
        raise ValueError("Values in `t_eval` are not within `t_span`.")
    if known(lambda: NUMPY.any(NUMPY.diff(t_eval) * NUMPY.sign(end - t0) <= 0)):
        raise ValueError("Values in `t_eval` are not properly sorted.")
