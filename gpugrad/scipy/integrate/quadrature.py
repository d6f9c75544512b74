"""Adaptive quadratures: SciPy's integral, with a gradient by the limits and all that f reads.

SciPy refines the intervals on values. Under a tape the integrand is then evaluated at the nodes of
a Gauss rule of each interval: their sum is differentiated.
"""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable
from typing import Any

import numpy as np
from scipy import integrate as _scipys
from scipy.special import roots_legendre

from gpugrad.autodiff.batched import levels_running
from gpugrad.autodiff.recorder import recording_stopped
from gpugrad.core.backend import TENSOR
from gpugrad.core.listening import threads
from gpugrad.core.tensor import Tensor, wrap
from gpugrad.errors import ArgumentError, GpugradError
from gpugrad.scipy.calling import on_values
from gpugrad.scipy.integrate.steps import number
from gpugrad.scipy.namespaces import NUMPY
from gpugrad.scipy.signatures import with_signature
from gpugrad.trace.array import current_trace
from gpugrad.transforms.vmap import vmap

Function = Callable[..., Any]
_NODES, _WEIGHTS = roots_legendre(21)


def host_function(f: Any, title: str = "scipy.integrate.solve_ivp") -> Any:
    """A function of Tensors for SciPy's own code; raises if that cuts a gradient."""
    if not callable(f) or isinstance(f, type):
        return f

    def plain(*args: Any) -> Any:
        given = [NUMPY.asarray(x) if isinstance(x, (float, np.ndarray)) else x for x in args]
        return _handed_out(f(*given), f"a value for {title}")

    for name in ("terminal", "direction"):  # of an event
        if hasattr(f, name):
            setattr(plain, name, getattr(f, name))
    return plain


def _handed_out(x: Any, what: str) -> Any:
    """The NumPy array of a Tensor that no tape watches, also in lists."""
    if isinstance(x, Tensor):
        return wrap(x._handed_out(what)).numpy()[()]
    return type(x)(_handed_out(v, what) for v in x) if type(x) in (list, tuple) else x


def passing(scipys: Any) -> Any:
    """SciPy's function on values, whose functions get Tensors; raises if that cuts a gradient."""
    run, title = on_values(scipys), f"scipy.integrate.{scipys.__name__}"

    @functools.wraps(scipys)
    def call(*args: Any, **keywords: Any) -> Any:
        named = {k: host_function(v, title) for k, v in keywords.items()}
        return run(*(host_function(x, title) for x in args), **named)

    call.__module__ = __name__
    call.__doc__ = f"SciPy's `{scipys.__name__}`; raises if a tape watches what it reads."
    return call


def as_scipy(formula: Function) -> Function:
    """The function with the signature of SciPy's of that name; a decorator.

    The formula gets all arguments by name.
    """

    def call(bound: inspect.BoundArguments) -> Any:
        more = bound.arguments.pop("options", {})
        return formula(**bound.arguments, **more)

    return with_signature(formula, _scipys, call)


def _followed(name: str) -> bool:
    """Whether the sum over nodes is needed; raises where no interval can be chosen."""
    if levels_running() or current_trace():
        raise ArgumentError(
            f"{name}: the intervals depend on values, which gg.function and gg.vmap do not know. "
            "Use fixed_quad, or trapezoid and simpson of values at points."
        )
    return bool(threads.stack)


def _with_gradient(
    value: Any, f: Function, a: Any, b: Any, starts: Any, ends: Any, mirrored: bool
) -> Tensor:
    """`value`, with the derivatives of the sum over the nodes of all intervals.

    Args:
        value: SciPy's integral.
        f: the integrand, of one number.
        a, b: the limits.
        starts, ends: the intervals; of t for an infinite limit, where x = c +- (1 - t) / t.
        mirrored: whether the intervals of two infinite limits stand for t and for -t.
    """
    starts, ends = np.sort(np.asarray([starts, ends], float), axis=0)
    t = ((ends + starts)[:, None] / 2 + (ends - starts)[:, None] / 2 * _NODES).ravel()
    w = ((ends - starts)[:, None] / 2 * _WEIGHTS).ravel()
    low, high = (number(v) for v in (a, b))
    if np.isinf(low) and np.isinf(high):
        if mirrored:
            t, w = np.concatenate([t, -t]), np.concatenate([w, w])
        x, w = NUMPY.asarray((1 - abs(t)) / t), w / t**2 * np.sign(high - low)
    elif np.isinf(high) or np.isinf(low):
        c, sign = (a, np.sign(high)) if np.isinf(high) else (b, np.sign(low))
        x = c + NUMPY.asarray(sign * (1 - t) / t)
        w = w / t**2 * (1.0 if high > low else -1.0)
    else:
        share = (t - low) / (high - low) if high != low else 0.0 * t
        x, w = (
            a + (b - a) * NUMPY.asarray(share),
            (b - a) * NUMPY.asarray(w / (abs(high - low) or 1.0)),
        )
    y = _at_each(f, x)
    w = NUMPY.reshape(NUMPY.asarray(w), (-1,) + (1,) * (y.ndim - 1))
    total = NUMPY.sum(w * y, axis=0)
    return NUMPY.asarray(value) + (total - TENSOR.stop_gradient(total))


def _at_each(f: Function, x: Tensor) -> Tensor:
    """The integrand at each node, at once if it has no Python branches."""
    try:
        return vmap(lambda x: NUMPY.asarray(f(x)))(x)
    except (GpugradError, TypeError, ValueError):
        return NUMPY.stack([NUMPY.asarray(f(x[i])) for i in range(x.shape[0])])


@as_scipy
def quad(func: Any, a: Any, b: Any, args: Any, full_output: Any, **options: Any) -> Any:
    """The integral of a function from `a` to `b`, and an estimate of its error, as SciPy's `quad`.

    Differentiable by `a`, `b`, `args` and what `func` reads, but for `weight` and `complex_func`.

    Args:
        func: function of a Tensor with one float64, and of `args`.
        a, b: the limits; they may be infinite.
        args: more arguments of `func`.
        full_output: whether to return more, as SciPy does.
        options: SciPy's, among them epsabs, epsrel, limit, points, weight and complex_func.

    Returns:
        (integral, error), and more if `full_output`: the integral is a Tensor of float64.

    Raises:
        ArgumentError: in a trace or `vmap`, where values do not choose intervals.

    >>> print(gg.grad(lambda b: gg.scipy.integrate.quad(lambda x: x**2, 0.0, b)[0])(3.0))
    9.0
    """
    args = args if isinstance(args, tuple) else (args,)
    if options["weight"] is not None or options["complex_func"] or not _followed("quad"):
        return passing(_scipys.quad)(func, a, b, args, full_output, **options)
    options["points"] = _values(options["points"])
    at = lambda x: func(x, *args)  # noqa: E731
    with recording_stopped():
        found = passing(_scipys.quad)(at, number(a), number(b), full_output=1, **options)
    info = found[2]
    n = int(number(info["last"]))
    starts, ends = (np.asarray(info[k])[:n] for k in ("alist", "blist"))
    value = _with_gradient(found[0], at, a, b, starts, ends, mirrored=True)
    return (value, *found[1:]) if full_output else (value, found[1])


def _values(x: Any) -> Any:
    return None if x is None else [number(v) for v in x]


@as_scipy
def quad_vec(f: Any, a: Any, b: Any, full_output: Any, args: Any, **options: Any) -> Any:
    """The integral of a function with values of any shape, as SciPy's `quad_vec`.

    Differentiable by `a`, `b`, `args` and what `f` reads.

    Args:
        f: function of a Tensor with one float64, and of `args`.
        a, b: the limits; they may be infinite.
        full_output: whether to return SciPy's information, too.
        args: more arguments of `f`.
        options: SciPy's: epsabs, epsrel, norm, limit, points, quadrature.

    Returns:
        (integral, error), and SciPy's information if `full_output`.

    Raises:
        ArgumentError: in a trace or `vmap`, where values do not choose intervals.

    >>> powers = lambda p: gg.scipy.integrate.quad_vec(lambda x: x**p, 0.0, 1.0)[0]
    >>> print(powers(gg.constant([1.0, 2.0], dtype="float64")))
    [0.5        0.33333333]
    """
    args = args if isinstance(args, tuple) else (args,)
    at = lambda x: f(x, *args)  # noqa: E731
    followed = _followed("quad_vec")
    options["points"] = _values(options["points"])
    with recording_stopped():
        value, error, info = passing(_scipys.quad_vec)(
            at, number(a), number(b), full_output=True, **options
        )
    if followed:
        starts, ends = np.asarray(info.intervals).T
        value = _with_gradient(value, at, a, b, starts, ends, mirrored=False)
    return (value, error, info) if full_output else (value, error)
