"""`minimize` and its like: SciPy's methods with our gradients, and minima with derivatives."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from scipy.optimize import Bounds

from gpugrad.autodiff.recorder import recording_stopped
from gpugrad.core.backend import TENSOR as xp
from gpugrad.core.devices import Device
from gpugrad.core.listening import threads
from gpugrad.core.tensor import Tensor
from gpugrad.numpy.creation import asarray
from gpugrad.numpy.random import seeded_rng
from gpugrad.scipy.optimize import on_gpu
from gpugrad.scipy.optimize.calls import (
    DENSE,
    arguments,
    as_scipy,
    conjugate_gradients,
    for_scipy,
    has_gradient,
    home_of,
    on_device,
    on_host,
    scalar,
    solution,
    solve,
    stationary,
    tensors_in,
    wrap_functions,
)
from gpugrad.scipy.optimize.constraints import Constraint, lagrangian
from gpugrad.transforms.derivatives import grad, hvp, value_and_grad
from gpugrad.transforms.jacobians import hessian

_WITHOUT_GRADIENT = ("nelder-mead", "powell", "cobyla", "cobyqa")
_BY_HESSIAN = ("dogleg", "trust-exact")
_BY_PRODUCTS = ("newton-cg", "trust-ncg", "trust-krylov", "trust-constr")


def bounds_on(name: str, bounds: Any, x: Any, home: Device) -> tuple[Any, list[Tensor] | None]:
    """Bounds as SciPy's object with NumPy arrays, and as two Tensors of the shape of `x`."""
    if bounds is None:
        return None, None
    if isinstance(bounds, Bounds):
        pair = [bounds.lb, bounds.ub]
    else:
        ends = zip(*bounds, strict=True) if len(bounds) else ((), ())
        pair = [
            [(-np.inf, np.inf)[k] if v is None else v for v in part] for k, part in enumerate(ends)
        ]
    pair = [
        xp.broadcast_to(xp.astype(asarray(part, device=home), "float64"), np.shape(x))
        for part in pair
    ]
    feasible = getattr(bounds, "keep_feasible", False)
    return Bounds(*(on_host(name, part) for part in pair), keep_feasible=feasible), pair


@as_scipy
def minimize(given: dict[str, Any]) -> Any:
    """Minimum of a scalar function by SciPy's methods; the solution is differentiable.

    SciPy gets gradients of `fun`, and products with its Hessian for the methods that use them,
    unless they are given. For data on a GPU, BFGS and L-BFGS-B without bounds run there; others
    copy `x`, not the data.

    Args:
        fun: ``fun(x, *args)`` of a Tensor of shape (n,) returns a number. If its result is no
            Tensor, SciPy differences it.
        x0: array of shape (n,).
        bounds, constraints: as SciPy's; their functions get Tensors.
        args, method, jac, hess, hessp, tol, callback, options: as SciPy's. A callback gets NumPy
            arrays.

    Returns:
        SciPy's OptimizeResult with Tensors for its arrays. Under a tape `x` and `fun` have
        gradients by all that `fun`, bounds and constraints read: by the implicit function theorem
        at the minimum, so its tolerance is theirs, too.

    Raises:
        SingularMatrixError: in the backward pass, if the Hessian is singular at the minimum.
        ArgumentError: a call in `gg.function` or `gg.vmap`.

    Warns:
        OptimizeWarning: under a tape and in the backward pass, if the method did not converge.

    >>> def minimum(a):
    ...     return gg.scipy.optimize.minimize(lambda x: gg.sum((x - a) ** 2), [0.0, 0.0]).x
    >>> print(gg.jacobian(minimum)(gg.asarray([1.0, 2.0])))
    [[1. 0.]
     [0. 1.]]
    """
    args, fun, jac = arguments(given), given["fun"], given["jac"]
    home = home_of(given["x0"], args)
    given["x0"] = x0 = np.atleast_1d(on_host("minimize", given["x0"]))
    given["bounds"], bounds = bounds_on("minimize", given["bounds"], x0, home)
    constraints = given["constraints"]
    constraints = list(constraints) if isinstance(constraints, (list, tuple)) else [constraints]
    constraints = [Constraint(c, home) for c in constraints]
    given["constraints"] = [c.for_scipy("minimize") for c in constraints]
    objective = scalar((lambda x: fun(x, *args)[0]) if jac is True else lambda x: fun(x, *args))
    start = on_device(x0 if x0.dtype.kind == "f" else x0.astype(float), home)
    differentiable = has_gradient(objective, start)
    method = given["method"].lower() if isinstance(given["method"], str) else given["method"]
    result = None
    if differentiable and home.kind != "cpu" and not (callable(jac) or bounds or constraints):
        with recording_stopped():
            result = on_gpu.minimize(objective, start, method, given)
    if result is None:
        wrap_functions("minimize", given, "jac hess hessp", args, home)
        whole = (lambda x: fun(x, *args)) if jac is True else objective
        given["fun"] = for_scipy("minimize", whole, home)
        if differentiable:
            _add_derivatives(given, objective, method, home)
        result = tensors_in(solve("minimize", given), home)
    return attach("minimize", result, objective if differentiable else None, bounds, constraints)


def _add_derivatives(given: dict[str, Any], f: Any, method: Any, home: Device) -> None:
    """Give SciPy the derivatives of an objective that the method uses and the user left out."""
    if method in _WITHOUT_GRADIENT:
        return
    if given["jac"] is None:
        both = value_and_grad(f)
        given["fun"] = for_scipy("minimize", lambda x: list(both(x)), home)
        given["jac"] = True
    if given["hess"] is None and given["hessp"] is None:
        if method in _BY_HESSIAN:
            given["hess"] = for_scipy("minimize", hessian(f), home)
        elif method in _BY_PRODUCTS:
            given["hessp"] = for_scipy(
                "minimize", lambda x, p: hvp(f, [x], [xp.astype(p, x.dtype)])[0], home
            )


def attach(
    name: str,
    result: Any,
    f: Any,
    bounds: list[Tensor] | None,
    constraints: Sequence[Constraint] = (),
) -> Any:
    """The result with a differentiable `x` and `fun`, if `f` has derivatives."""
    x = result["x"]
    result["fun"] = on_device(result["fun"], x.device)
    if f is None or not threads.stack:
        return result
    failure = None if result["success"] else str(result["message"])
    if constraints:
        with recording_stopped():
            residual, multipliers = lagrangian(f, x, bounds, constraints)
        result["x"] = solution(name, (x, multipliers), residual, failure=failure)[0]
    else:
        by_products = conjugate_gradients if x.size > DENSE and bounds is None else None
        residual = stationary(f, x, bounds)
        result["x"] = solution(name, x, residual, failure=failure, solve=by_products)
    result["fun"] = f(result["x"])
    return result


@as_scipy
def minimize_scalar(given: dict[str, Any]) -> Any:
    """Minimum of a function of one number by SciPy's methods; arguments as SciPy's.

    Returns:
        SciPy's OptimizeResult; `x` and `fun` are 0-d float64 Tensors, differentiable as in
        `minimize`. If `x` lies on a bound, its gradient is that of the bound: 0.

    >>> def minimum(a):
    ...     return gg.scipy.optimize.minimize_scalar(lambda x: x * x * a - x).x
    >>> print(f"{gg.grad(minimum)(gg.asarray(np.array(2.0))):.4f}")  # of 1 / (2 a)
    -0.1250
    """
    name, args, fun = "minimize_scalar", arguments(given), given["fun"]
    home = home_of(args)
    objective = scalar(lambda x: fun(x, *args))
    given["fun"] = for_scipy(name, objective, home)
    for key in ("bracket", "bounds"):
        given[key] = on_host(name, given[key])
    options = given["options"] or {}
    result = tensors_in(solve(name, given), home)
    x = result["x"] = on_device(result["x"], home)
    differentiable = bool(threads.stack) and has_gradient(objective, x)
    bounds = None
    if differentiable and given["bounds"] is not None:
        near = 2 * (given["tol"] or options.get("xatol", 1e-5))
        with recording_stopped():
            slope, lower, upper = float(grad(objective)(x)), *map(float, given["bounds"])
            on_bound = (float(x) - lower < near and slope > 0) or (
                upper - float(x) < near and slope < 0
            )
        bounds = [x, x] if on_bound else None
    return attach(name, result, objective if differentiable else None, bounds)


def global_minimum(name: str) -> Callable[..., Any]:
    """A global minimizer of SciPy's, whose solution has the derivatives of a local minimum."""

    def formula(given: dict[str, Any]) -> Any:
        args, fun = arguments(given), given["func"]
        home = home_of(given.get("x0"), args)
        objective = scalar(lambda x: fun(x, *args))
        given = {k: on_host(name, v) for k, v in given.items()}
        given["func"] = for_scipy(name, objective, home)
        if "rng" in given and given["rng"] is None:
            given["rng"] = seeded_rng()
        result = tensors_in(solve(name, given), home)
        differentiable = bool(threads.stack) and has_gradient(objective, result["x"])
        if "success" not in result:  # basinhopping
            result["success"] = result["lowest_optimization_result"]["success"]
        bounds = bounds_on(name, given.get("bounds"), result["x"], home)[1]
        return attach(name, result, objective if differentiable else None, bounds)

    formula.__name__ = formula.__qualname__ = name
    formula.__doc__ = f"SciPy's `{name}` on Tensors; `x` and `fun` are differentiable."
    return as_scipy(formula)


GLOBAL = ("basinhopping", "differential_evolution", "direct", "dual_annealing", "shgo")


def __getattr__(name: str) -> Any:
    if name not in GLOBAL:
        raise AttributeError(name)
    globals()[name] = function = global_minimum(name)
    return function


def rosen(x: Any) -> Tensor:
    """Rosenbrock's function, the sum of 100 (x_(i+1) - x_i^2)^2 + (1 - x_i)^2 along the first axis.

    >>> print(gg.scipy.optimize.rosen([1.0, 1.0, 2.0]))
    100.0
    """
    x = asarray(x)
    a, b = x[:-1], x[1:]
    return xp.sum(100.0 * (b - a**2) ** 2 + (1 - a) ** 2, axis=0)


def rosen_der(x: Any) -> Tensor:
    """The gradient of `rosen`."""
    return grad(lambda x: xp.sum(rosen(x)))(asarray(x) + 0.0)


def rosen_hess(x: Any) -> Tensor:
    """The Hessian of `rosen`, of shape (n, n) for `x` of shape (n,)."""
    return hessian(rosen)(xp.ravel(asarray(x) + 0.0))


def rosen_hess_prod(x: Any, p: Any) -> Tensor:
    """The Hessian of `rosen` at `x`, times `p`."""
    return hvp(rosen, [asarray(x) + 0.0], [asarray(p) + 0.0])[0]
