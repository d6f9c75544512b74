"""Roots and fixed points: SciPy's methods, and solutions with derivatives."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from gpugrad.core.backend import TENSOR as xp
from gpugrad.core.listening import threads
from gpugrad.core.tensor import Tensor
from gpugrad.scipy.optimize.calls import (
    arguments,
    as_scipy,
    for_scipy,
    has_gradient,
    home_of,
    on_device,
    on_host,
    scalar,
    solution,
    solve,
    tensors_in,
    vector,
    wrap_functions,
)
from gpugrad.transforms.derivatives import grad
from gpugrad.transforms.jacobians import jacobian


@as_scipy
def root(given: dict[str, Any]) -> Any:
    """Root of a vector function by SciPy's methods; the solution is differentiable.

    SciPy gets the Jacobian of `fun` for the methods "hybr" and "lm", unless `jac` is given.

    Args:
        fun: ``fun(x, *args)`` of a Tensor of shape (n,) returns one of that shape.
        x0: array of shape (n,).
        args, method, jac, tol, callback, options: as SciPy's.

    Returns:
        SciPy's OptimizeResult with Tensors for its arrays. Under a tape `x` has gradients by all
        that `fun` reads, by the implicit function theorem.

    Raises:
        SingularMatrixError: in the backward pass, if the Jacobian is singular.
        ArgumentError: a call in `gg.function` or `gg.vmap`.

    Warns:
        OptimizeWarning: under a tape and in the backward pass, if the method did not converge.

    >>> def solved(a):
    ...     return gg.scipy.optimize.root(lambda x: x**3 + x - a, [1.0]).x
    >>> print(gg.jacobian(solved)(gg.asarray([2.0])))  # 1 / (3 x^2 + 1)
    [[0.25]]
    """
    args, fun = arguments(given), given["fun"]
    home = home_of(given["x0"], args)
    x0 = given["x0"] = np.asarray(on_host("root", given["x0"]))
    pair = given["jac"] is True
    f = vector((lambda x: fun(x, *args)[0]) if pair else lambda x: fun(x, *args))
    start = on_device(x0.astype(np.result_type(x0, 0.0)), home)
    differentiable = has_gradient(f, start)
    given["fun"] = for_scipy("root", (lambda x: fun(x, *args)) if pair else f, home)
    wrap_functions("root", given, "jac", args, home)
    if differentiable and given["jac"] is None and given["method"] in ("hybr", "lm"):
        given["jac"] = for_scipy("root", jacobian(f), home)
    result = tensors_in(solve("root", given), home)
    if differentiable:
        failure = None if result["success"] else result["message"]
        result["x"] = solution("root", result["x"], f, failure=failure)
    return result


@as_scipy
def fsolve(given: dict[str, Any]) -> Any:
    """Root of a vector function by Powell's method; arguments as SciPy's, and see `root`.

    Returns:
        A Tensor of shape (n,), or SciPy's tuple with it if `full_output`.

    >>> print(gg.scipy.optimize.fsolve(lambda x: x * x - 4.0, [1.0]))
    [2.]
    """
    args, func = arguments(given), given["func"]
    home = home_of(given["x0"], args)
    x0 = given["x0"] = np.atleast_1d(on_host("fsolve", given["x0"]))
    f = vector(lambda x: func(x, *args))
    differentiable = has_gradient(f, on_device(x0.astype(np.result_type(x0, 0.0)), home))
    given["func"] = for_scipy("fsolve", f, home)
    wrap_functions("fsolve", given, "fprime", args, home)
    if differentiable and given["fprime"] is None:
        given["fprime"] = for_scipy("fsolve", jacobian(f), home)
        given["col_deriv"] = 0
    full, given["full_output"] = given["full_output"], True
    if full:
        x, info, status, message = solve("fsolve", given)
    else:  # SciPy warns
        given["full_output"] = False
        x, info, status, message = solve("fsolve", given), {}, 1, ""
    x = on_device(x, home)
    if differentiable:
        x = solution("fsolve", x, f, failure=None if status == 1 else message)
    return (x, tensors_in(info, home), status, message) if full else x


@as_scipy
def root_scalar(given: dict[str, Any]) -> Any:
    """Root of a function of one number by SciPy's methods; arguments as SciPy's.

    The methods "newton" and "halley" get the derivatives that are not given.

    Returns:
        SciPy's RootResults; `root` is a 0-d float64 Tensor, differentiable by all that `f` reads.

    >>> def solved(a):
    ...     return gg.scipy.optimize.root_scalar(lambda x: x * x - a, bracket=[0, 9]).root
    >>> print(f"{gg.grad(solved)(gg.asarray(np.array(4.0))):.4f}")
    0.2500
    """
    name, args, fun = "root_scalar", arguments(given), given["f"]
    home = home_of(args)
    f = scalar(lambda x: fun(x, *args))
    given["f"] = for_scipy(name, f, home)
    for key in ("bracket", "x0", "x1"):
        given[key] = on_host(name, given[key])
    derivatives = {"fprime": grad(f), "fprime2": grad(grad(f))}
    needed = {"newton": ["fprime"], "halley": ["fprime", "fprime2"]}.get(given["method"] or "", [])
    wrap_functions(name, given, "fprime fprime2", args, home)
    for key in needed:
        given[key] = given[key] or for_scipy(name, derivatives[key], home)
    result = solve(name, given)
    failure = None if result.converged else str(result.flag)
    result.root = _root(name, result.root, f, home, failure)
    return result


def _root(name: str, x: Any, f: Any, home: Any, failure: str | None = None) -> Tensor:
    x = on_device(np.asarray(x), home)
    if not threads.stack or not has_gradient(f, x):
        return x
    return solution(name, x, f, failure=failure)


BRACKETING = ("bisect", "brenth", "brentq", "ridder", "toms748")


def _bracketing(name: str) -> Callable[..., Any]:
    """One of SciPy's methods that keep a root between two numbers."""

    def formula(given: dict[str, Any]) -> Any:
        args, fun = arguments(given), given["f"]
        home = home_of(given["a"], given["b"], args)
        f = scalar(lambda x: fun(x, *args))
        given["f"] = for_scipy(name, f, home)
        given["a"], given["b"] = (float(on_host(name, given[key])) for key in "ab")
        result = solve(name, given)
        if not given["full_output"]:
            return _root(name, result, f, home)
        x, report = result
        report.root = _root(name, x, f, home, None if report.converged else str(report.flag))
        return report.root, report

    formula.__name__ = formula.__qualname__ = name
    formula.__doc__ = f"SciPy's `{name}`; the root is differentiable by all that `f` reads."
    return as_scipy(formula)


def __getattr__(name: str) -> Any:
    if name not in BRACKETING:
        raise AttributeError(name)
    globals()[name] = function = _bracketing(name)
    return function


@as_scipy
def newton(given: dict[str, Any]) -> Any:
    """Roots by the methods of Newton, Halley or the secant; arguments as SciPy's.

    For an array `x0` each element of ``func(x)`` may depend on its element of `x` alone.

    Returns:
        A Tensor of the shape of `x0`, differentiable by all that `func` reads, or SciPy's tuple
        if `full_output`.

    >>> a = gg.asarray([1.0, 4.0])
    >>> def solved(a):
    ...     return gg.scipy.optimize.newton(lambda x: x * x - a, [2.0, 3.0])
    >>> print(gg.grad(lambda a: gg.sum(solved(a)))(a).round(4))
    [0.5  0.25]
    """
    name, args, func = "newton", arguments(given), given["func"]
    home = home_of(given["x0"], args)

    def f(x: Tensor) -> Any:
        y = vector(func)(x, *args)
        return xp.reshape(y, x.shape) if isinstance(y, Tensor) and y.size == x.size else y

    given["func"] = for_scipy(name, f, home)
    wrap_functions(name, given, "fprime fprime2", args, home)
    for key in ("x0", "x1"):
        given[key] = on_host(name, given[key])
    result = solve(name, given)
    found = result[0] if isinstance(result, tuple) else result
    x = on_device(np.asarray(found), home)
    if threads.stack and has_gradient(f, x):
        good = np.all(result[1]) if np.ndim(found) and isinstance(result, tuple) else True
        if isinstance(result, tuple) and not np.ndim(found):
            good = result[1].converged
        failure = None if good else "some elements are no roots"
        x = solution(name, x, f, failure=failure, solve=_elementwise if x.ndim else None)
    if not isinstance(result, tuple):
        return x
    if not np.ndim(found):
        result[1].root = x
    others = [tensors_in(v, home) for v in result[1:]]
    return type(result)(x, *others) if hasattr(result, "_fields") else (x, *others)


def _elementwise(matvec: Callable[[Tensor], Tensor], b: Tensor) -> Tensor:
    """Solves a diagonal system."""
    return b / matvec(b * 0 + 1)


@as_scipy
def fixed_point(given: dict[str, Any]) -> Any:
    """Fixed point of a function by Steffensen's method; arguments as SciPy's.

    Returns:
        A Tensor of the shape of `x0`, differentiable by all that `func` reads.

    >>> print(f"{gg.scipy.optimize.fixed_point(gg.cos, 1.0):.6f}")
    0.739085
    """
    name, args, func = "fixed_point", arguments(given), given["func"]
    home = home_of(given["x0"], args)
    given["x0"] = on_host(name, given["x0"])
    f = vector(lambda x: func(x, *args))
    given["func"] = for_scipy(name, f, home)
    x = on_device(np.asarray(solve(name, given)), home)
    return solution(name, x, lambda x: x - f(x)) if has_gradient(f, x) else x
