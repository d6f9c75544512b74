"""Initial value problems: SciPy's solvers, read on Tensors."""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy import integrate as _scipys
from scipy.integrate._ivp import dop853_coefficients as _coefficients
from scipy.integrate._ivp import ivp as _ivp
from scipy.integrate._ivp import radau as _radau

from gpugrad.autodiff.batched import levels_running
from gpugrad.core.devices import device
from gpugrad.core.listening import threads
from gpugrad.core.tensor import Tensor
from gpugrad.errors import ArgumentError
from gpugrad.scipy.calling import plain_values
from gpugrad.scipy.integrate import steps
from gpugrad.scipy.integrate.edits import EDITS
from gpugrad.scipy.integrate.memory import GRADIENTS, by_adjoint
from gpugrad.scipy.integrate.quadrature import as_scipy, host_function, passing
from gpugrad.scipy.namespaces import NUMPY, Names
from gpugrad.scipy.reading import Reader, made_once
from gpugrad.trace.array import current_trace

_EXPLICIT = ("RK23", "RK45", "DOP853")


@made_once
def _reader() -> Reader:
    home = "scipy.integrate._ivp"
    norm = lambda x: steps.number(reader.read(f"{home}.common").norm(x))  # noqa: E731
    start = lambda *args: steps.number(steps.unrecorded(_start(), *args))  # noqa: E731
    linear = {
        "lu_factor": lambda a, **options: NUMPY.linalg.inv(a),
        "lu_solve": lambda inverse, b, **options: NUMPY.matmul(inverse, b),
    }
    given = {
        "scipy.linalg": Names("linalg", linear),
        home: Names("_ivp", {"dop853_coefficients": _coefficients}),
        f"{home}.lsoda": Names("lsoda", {"LSODA": _scipys.LSODA}),
    }
    # constants are NumPy arrays, which `dot` takes to the device of the state
    tableaus = {
        f"{name}.{part}": vars(getattr(_scipys, name))[part]
        for name in ("RK23", "RK45")
        for part in "ABCEP"
    }
    arrays = {name: v for name, v in vars(_radau).items() if isinstance(v, np.ndarray)}
    control = {"norm": norm, "select_initial_step": start}
    replaced = {
        f"{home}.common": {"num_jac": steps.num_jac},
        f"{home}.rk": {**tableaus, "rk_step": steps.rk_step, "select_initial_step": start},
        f"{home}.bdf": control,
        f"{home}.radau": {**arrays, **control},
        f"{home}.ivp": {
            "prepare_events": _ivp.prepare_events,
            "solve_event_equation": steps.event_time,
            "find_active_events": steps.find_active_events(_ivp.find_active_events),
        },
    }
    names = (
        "dot",
        "evaluated",
        "limit",
        "number",
        "on_host",
        "on_tensors",
        "spacing",
        "unrecorded",
    )
    helpers = {name: getattr(steps, name) for name in names}
    reader: Reader = Reader("scipy.integrate", given, EDITS, replaced, host=np, **helpers)
    bdf, radau = (reader.read(f"{home}.{name}") for name in ("bdf", "radau"))
    bdf.solve_bdf_system = steps.bdf_system(bdf.solve_bdf_system)
    radau.solve_collocation_system = steps.radau_system(radau.solve_collocation_system, _radau.C)
    return reader


def read(module: str) -> Any:
    """A module of SciPy's integration, read on Tensors."""
    return _reader().read(f"scipy.integrate.{module}")


def _start() -> Any:
    return read("_ivp.common").select_initial_step


@as_scipy
def solve_ivp(fun: Any, t_span: Any, y0: Any, method: Any, **options: Any) -> Any:
    """The solution of an initial value problem y' = fun(t, y), as SciPy's `solve_ivp`.

    Differentiable by `y0`, `t_span`, `t_eval`, `args` and what `fun` reads. The step sizes count as
    constants. Times of events and `sol` have gradients, too.

    Args:
        fun: function of the time, a Tensor with one float64, and of the state, of shape (n,).
        t_span: first and last time.
        y0: the initial state, of shape (n,), in double precision or complex.
        method: "RK23", "RK45", "DOP853", "Radau", "BDF" or "LSODA".
        t_eval: times of the states to return, of shape (m,); needed in `gg.function` and `gg.vmap`.
        dense_output: whether to return `sol`.
        events: functions of time and state whose zeros are searched.
        vectorized: whether `fun` accepts states of shape (n, k).
        args: more arguments of `fun`.
        options: of the method: rtol, atol, max_step, first_step, jac. Without `jac`, Radau and BDF
            use the derivative of `fun` under a tape. And one that SciPy does not have, `gradient`:
            ``"steps"``: a tape records all that the steps compute.
            ``"checkpoints"``: it keeps the state at each step alone, and the backward pass
            computes the step again: the same gradient for about half as much time again.
            ``"adjoint"``: it keeps the states of the result, and the backward pass solves the
            adjoint equation by the same method: the gradient is as exact as `rtol` and `atol` say.
            In between it computes the states backwards, which a strong decay makes inexact: pass
            more times in `t_eval`. It is the only one for LSODA.

    Returns:
        SciPy's result with Tensors: t of shape (m,), y of shape (n, m), sol, t_events, y_events,
        nfev, njev, nlu, status, message, success.

    Raises:
        ArgumentError: in a trace or `vmap` without `t_eval`, or with a method that is not explicit,
            or another `gradient`.

    Warns:
        RuntimeWarning: the system is stiff, and the method explicit.

    >>> spin = lambda t, y: gg.stack([y[1], -y[0]])
    >>> solved = gg.scipy.integrate.solve_ivp(spin, (0.0, np.pi), [1.0, 0.0], rtol=1e-8)
    >>> print(gg.round(solved.y[:, -1], 5))
    [-1.  0.]
    """
    args = options["args"]
    for x in (y0, *(args if isinstance(args, tuple) else ())):
        if isinstance(x, Tensor):
            with device(x.device):
                return _solved(fun, t_span, y0, method, **options)
    return _solved(fun, t_span, y0, method, **options)


def _solved(
    fun: Any, t_span: Any, y0: Any, method: Any, gradient: str = "steps", **options: Any
) -> Any:
    in_lockstep = levels_running() or current_trace()
    if gradient not in GRADIENTS or (in_lockstep and gradient != "steps"):
        raise ArgumentError(
            f"solve_ivp: gradient={gradient!r} must be one of {GRADIENTS}, and 'steps' in "
            "gg.function and gg.vmap."
        )
    if in_lockstep:
        return _in_lockstep(fun, t_span, y0, method, **options)
    if gradient == "adjoint" and threads.stack:
        return by_adjoint(solve_ivp, fun, t_span, y0, method=method, **options)
    values = (t_span, y0, options["t_eval"], options["args"])
    is_plain = not threads.stack and plain_values(*values) is not None
    if method == "LSODA" or (is_plain and isinstance(method, str) and not options["dense_output"]):
        return _on_values(fun, t_span, y0, steps.watched(_scipys, method), **options)
    module = read("_ivp.ivp")
    cls = steps.watched(Names("methods", module.METHODS), method, gradient == "checkpoints")
    return module.solve_ivp(fun, t_span, y0, cls, **options)


def _on_values(fun: Any, t_span: Any, y0: Any, method: Any, **options: Any) -> Any:
    """SciPy's own solution, which takes less time."""
    if isinstance(events := options["events"], (list, tuple)):
        options["events"] = [host_function(event) for event in events]
    result = passing(_scipys.solve_ivp)(fun, t_span, y0, method, **options)
    for name in ("t_events", "y_events"):
        if result[name] is not None:
            result[name] = [NUMPY.asarray(x) for x in result[name]]
    return result


def _in_lockstep(
    fun: Any,
    t_span: Any,
    y0: Any,
    method: Any,
    t_eval: Any,
    dense_output: Any,
    events: Any,
    vectorized: Any,
    args: Any,
    **options: Any,
) -> Any:
    """The result of `solve_ivp` in a trace or `vmap`."""
    name = getattr(method, "__name__", method)
    if name not in _EXPLICIT or dense_output or events is not None:
        raise ArgumentError(
            f"solve_ivp: in gg.function and gg.vmap the method is one of {_EXPLICIT}, without "
            f"dense_output and events; got {name!r}, {dense_output} and {events!r:.40}. Call "
            "solve_ivp outside, or choose another method."
        )
    if t_eval is None:
        raise ArgumentError(
            "solve_ivp: in gg.function and gg.vmap the number of steps is not known; pass t_eval, "
            "the times of the states to return."
        )
    right = fun if args is None else lambda t, y: fun(t, y, *args)
    times = NUMPY.asarray(t_eval, dtype=float)
    steps.check_times(t_span, times)
    cls = getattr(read("_ivp.rk"), name)
    y, status, count = steps.lockstep(cls, _start(), right, t_span, y0, times, **options)
    absent = dict.fromkeys(("sol", "t_events", "y_events"))
    message = "see status: 0 at the end, -1 where a step became too small"
    return _ivp.OdeResult(
        t=times,
        y=y,
        status=status,
        message=message,
        success=NUMPY.equal(status, 0),
        nfev=count,
        **absent,
    )


@as_scipy
def odeint(
    func: Any, y0: Any, t: Any, args: Any, rtol: Any, atol: Any, tfirst: Any, **options: Any
) -> Any:
    """The states of an initial value problem y' = func(y, t) at the times `t`, as SciPy's `odeint`.

    On values it is SciPy's. Under a tape, in a trace and in `vmap` it is `solve_ivp` by DOP853 with
    the same tolerances: differentiable by `y0`, `t` and `args`. It is slow for stiff systems.

    Args:
        func: function of state and time, or of time and state if `tfirst`.
        y0: the initial state, of shape (n,).
        t: times, of shape (m,), the first that of `y0`.
        args: more arguments of `func`.
        rtol: relative tolerance, 1.49e-8 if None.
        atol: absolute tolerance, 1.49e-8 if None.
        tfirst: whether the time is the first argument of `func`.
        options: SciPy's; `hmax` and `h0` are the largest and the first step, if not 0.

    Returns:
        States of shape (m, n).

    >>> print(gg.scipy.integrate.odeint(lambda y, t: -y, [1.0], [0.0, 1.0]))
    [[1.        ]
     [0.36787947]]
    """
    tolerances = {"rtol": rtol, "atol": atol}
    followed = threads.stack or levels_running() or current_trace()
    if not followed or options["full_output"]:
        return passing(_scipys.odeint)(func, y0, t, args, tfirst=tfirst, **tolerances, **options)
    right = func if tfirst else lambda t, y, *more: func(y, t, *more)
    t = NUMPY.asarray(t, dtype=float)
    tolerances = {k: 1.49e-8 if v is None else v for k, v in tolerances.items()}
    limits = {"max_step": options["hmax"], "first_step": options["h0"]}
    limits = {k: v for k, v in limits.items() if v}
    more = args if isinstance(args, tuple) else (args,)
    settings: dict[str, Any] = {**tolerances, **limits}
    return solve_ivp(right, (t[0], t[-1]), y0, "DOP853", t, args=more, **settings).y.T
