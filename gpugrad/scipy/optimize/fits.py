"""Least squares and fits of curves: SciPy's methods, and solutions with derivatives."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from gpugrad.autodiff.recorder import recording_stopped
from gpugrad.core.backend import TENSOR as xp
from gpugrad.core.listening import threads
from gpugrad.core.tensor import Tensor
from gpugrad.errors import ArgumentError
from gpugrad.numpy.creation import asarray
from gpugrad.scipy.optimize.calls import (
    arguments,
    as_scipy,
    for_scipy,
    has_gradient,
    home_of,
    on_device,
    on_host,
    slopes,
    solution,
    solve,
    stationary,
    tensors_in,
    vector,
    wrap_functions,
)

_LOSSES: dict[str, Callable[[Any], Any]] = {
    "linear": lambda z: z,
    "soft_l1": lambda z: 2 * (xp.sqrt(1 + z) - 1),
    "huber": lambda z: xp.where(z <= 1, z, 2 * xp.sqrt(xp.where(z <= 1, 1, z)) - 1),
    "cauchy": lambda z: xp.log1p(z),
    "arctan": lambda z: xp.atan(z),
}
"""Functions of squared residuals, as in SciPy's `least_squares`."""


def _limits(name: str, bounds: Any, home: Any) -> tuple[Any, list[Tensor] | None]:
    """SciPy's bounds with NumPy arrays, and as two Tensors, or None without bounds."""
    if hasattr(bounds, "lb"):
        bounds = bounds.lb, bounds.ub
    values = tuple(np.asarray(on_host(name, part), float) for part in bounds)
    if not any(np.isfinite(part).any() for part in values):
        return values, None
    return values, [xp.astype(asarray(part, device=home), "float64") for part in bounds]


@as_scipy
def least_squares(given: dict[str, Any]) -> Any:
    """Nonlinear least squares by SciPy's methods; the solution is differentiable.

    SciPy gets the Jacobian of `fun`, unless `jac` is a function or the method has its own.

    Args:
        fun: ``fun(x, *args, **kwargs)`` of a Tensor of shape (n,) returns one of shape (m,).
        x0: array of shape (n,), or a number.
        bounds: two arrays that broadcast to (n,), or SciPy's Bounds.
        loss: the name of one of SciPy's losses; one that is a function has no gradient.
        jac, method, ftol, xtol, gtol, x_scale, f_scale, diff_step, tr_solver, tr_options,
            jac_sparsity, max_nfev, verbose, args, kwargs, callback, workers: as SciPy's.

    Returns:
        SciPy's OptimizeResult with Tensors for its arrays. Under a tape `x`, `cost` and `fun`
        have gradients by all that `fun` and the bounds read.

    Raises:
        SingularMatrixError: in the backward pass, if the Hessian of the cost is singular.
        ArgumentError: a call in `gg.function` or `gg.vmap`.

    Warns:
        OptimizeWarning: under a tape and in the backward pass, if the method did not converge.

    >>> def fitted(y):
    ...     return gg.scipy.optimize.least_squares(lambda x: x - y, [0.0]).x
    >>> print(gg.jacobian(fitted)(gg.asarray([1.0, 3.0])).round(4))
    [[0.5 0.5]]
    """
    name, args, fun = "least_squares", arguments(given), given["fun"]
    keywords, given["kwargs"] = given["kwargs"] or {}, {}
    home = home_of(given["x0"], args)
    x0 = given["x0"] = np.atleast_1d(on_host(name, given["x0"]))
    f = vector(lambda x: fun(x, *args, **keywords))
    given["bounds"], bounds = _limits(name, given["bounds"], home)
    differentiable = has_gradient(f, on_device(x0.astype(float), home))
    given["fun"] = for_scipy(name, f, home)
    jac = given["jac"]
    if callable(jac):
        given["jac"] = for_scipy(name, lambda x: jac(x, *args, **keywords), home)
    elif differentiable and jac == "2-point" and given["jac_sparsity"] is None:
        given["jac"] = for_scipy(name, slopes(lambda x: xp.ravel(f(x))), home)
    result = tensors_in(solve(name, given), home)
    if not differentiable or not threads.stack or callable(given["loss"]):
        return result
    rho, scale = _LOSSES[given["loss"]], given["f_scale"]

    def cost(x: Tensor) -> Tensor:
        return 0.5 * scale**2 * xp.sum(rho((f(x) / scale) ** 2))

    failure = None if result["success"] else result["message"]
    x = solution(name, result["x"], stationary(cost, result["x"], bounds), failure=failure)
    result.update(x=x, cost=cost(x), fun=f(x))
    return result


@as_scipy
def leastsq(given: dict[str, Any]) -> Any:
    """Nonlinear least squares by Levenberg and Marquardt; arguments as SciPy's.

    Returns:
        (x, status), or SciPy's tuple with more if `full_output`; `x` is differentiable by all
        that `func` reads, the covariance is not.

    >>> x, status = gg.scipy.optimize.leastsq(lambda x: x - gg.asarray([1.0, 3.0]), [0.0])
    >>> print(x)
    [2.]
    """
    name, args, func = "leastsq", arguments(given), given["func"]
    home = home_of(given["x0"], args)
    x0 = given["x0"] = np.atleast_1d(on_host(name, given["x0"]))
    f = vector(lambda x: func(x, *args))
    differentiable = has_gradient(f, on_device(x0.astype(float), home))
    given["func"] = for_scipy(name, f, home)
    wrap_functions(name, given, "Dfun", args, home)
    if differentiable and given["Dfun"] is None:
        given["Dfun"], given["col_deriv"] = for_scipy(name, slopes(f), home), False
    x, *others = tensors_in(solve(name, given), home)
    if differentiable and threads.stack:
        failure = None if others[-1] in (1, 2, 3, 4) else f"status {others[-1]}"
        x = solution(name, x, stationary(_half_squares(f), x, None), failure=failure)
    return (x, *others)


def _half_squares(f: Any) -> Any:
    return lambda x: 0.5 * xp.sum(f(x) ** 2)


@as_scipy
def curve_fit(given: dict[str, Any]) -> Any:
    """Fit of a curve to data by least squares; parameters and covariance are differentiable.

    SciPy gets the Jacobian of `f`, unless `jac` is given.

    Args:
        f: ``f(xdata, *parameters)``, of Tensors and 0-d Tensors, returns one of shape (m,).
        xdata: anything that `f` takes.
        ydata: array of shape (m,).
        sigma: deviations of shape () or (m,), or a covariance of shape (m, m).
        p0, absolute_sigma, check_finite, bounds, method, jac, full_output, nan_policy: as SciPy's.

    Returns:
        (parameters, covariance), Tensors of shape (n,) and (n, n), or SciPy's tuple with more if
        `full_output`. They have gradients by `xdata`, `ydata`, `sigma`, bounds, and all that
        `f` reads.

    Raises:
        ArgumentError: a call in `gg.function` or `gg.vmap`; or under a tape
            ``nan_policy="omit"`` with NaN in the data.
        RuntimeError: SciPy's, if the fit did not converge.

    >>> x = gg.asarray([0.0, 1.0, 2.0])
    >>> def slope(y):
    ...     return gg.scipy.optimize.curve_fit(lambda x, a, b: a * x + b, x, y)[0][0]
    >>> print(gg.grad(slope)(gg.asarray([1.0, 2.9, 5.0])).round(4) + 0.0)
    [-0.5  0.   0.5]
    """
    name, f = "curve_fit", given["f"]
    x, y, sigma = given["xdata"], given["ydata"], given["sigma"]
    home = home_of(y, x, sigma)
    model = for_scipy(name, f, home)  # with its signature, which tells the number of parameters
    data = {k: on_host(name, given[k]) for k in ("xdata", "ydata", "sigma", "p0")}
    given.update(data, f=model)
    if isinstance(x, (Tensor, np.ndarray, list, tuple)):
        x = xp.astype(asarray(x, device=home), "float64")  # as SciPy passes it

    def curve(p: Tensor, x: Any = x) -> Any:
        return f(x, *(xp.getitem(p, index=i) for i in range(p.size)))

    def slope(x: Any, *p: Any) -> Any:
        return slopes(lambda p: curve(p, x))(xp.stack([xp.astype(v, "float64") for v in p]))

    wrap_functions(name, given, "jac", (), home)
    if given["jac"] is None:
        n = np.size(data["p0"]) if data["p0"] is not None else _count(f)
        start = np.ones(n) if data["p0"] is None else np.atleast_1d(data["p0"]).astype(float)
        if n and has_gradient(curve, on_device(start, home)):
            given["jac"] = for_scipy(name, slope, home)
    given["bounds"], bounds = _limits(name, given["bounds"], home)
    result = tensors_in(solve(name, given), home)
    p = result[0]
    if not threads.stack or not has_gradient(curve, p):
        return result
    y = xp.astype(asarray(y, device=home), "float64")
    sigma = None if sigma is None else xp.astype(asarray(sigma, device=home), "float64")
    if given["nan_policy"] == "omit" and not bool(xp.all(xp.isfinite(y))):
        raise ArgumentError(
            f"{name}: nan_policy='omit' has no gradient; leave the data with NaN out."
        )

    def residuals(p: Tensor) -> Tensor:
        r = curve(p) - y
        if sigma is None:
            return r
        if sigma.ndim < 2:
            return r / sigma
        return xp.squeeze(xp.solve(xp.cholesky(sigma), xp.expand_dims(r, axis=-1)), axis=-1)

    cost = _half_squares(residuals)
    p = solution(name, p, stationary(cost, p, bounds))
    with recording_stopped():
        known = bool(xp.all(xp.isfinite(result[1])))
    if not known:
        return (p, *result[1:])
    matrix = slopes(residuals)(p)
    covariance = xp.inv(xp.matmul(xp.matrix_transpose(matrix), matrix))
    if not given["absolute_sigma"]:
        covariance = covariance * (2 * cost(p) / (y.size - p.size))
    return (p, covariance, *result[2:])


def _count(f: Any) -> int:
    """The number of parameters of a model, or 0 if SciPy will refuse it."""
    from scipy._lib._util import getfullargspec_no_self

    return max(len(getfullargspec_no_self(f).args) - 1, 0)


@as_scipy
def lsq_linear(given: dict[str, Any]) -> Any:
    """Linear least squares with bounds; arguments as SciPy's, `A` a dense array.

    Returns:
        SciPy's OptimizeResult; `x`, `cost` and `fun` have gradients by `A`, `b` and the bounds.

    >>> print(gg.scipy.optimize.lsq_linear([[1.0], [1.0]], [1.0, 3.0], (0, 1.5)).x)
    [1.5]
    """
    name, home = "lsq_linear", home_of(given["A"], given["b"])
    a, b = given["A"], given["b"]
    given.update({key: on_host(name, given[key]) for key in ("A", "b")})
    given["bounds"], bounds = _limits(name, given["bounds"], home)
    result = tensors_in(solve(name, given), home)
    if not threads.stack or not isinstance(a, (Tensor, np.ndarray, list, tuple)):
        return result
    a, b = (xp.astype(asarray(v, device=home), "float64") for v in (a, b))
    failure = None if result["success"] else result["message"]
    x = _linear(name, a, b, result["x"], bounds, failure)
    result.update(x=x, cost=_half_squares(lambda x: xp.matmul(a, x) - b)(x), fun=a @ x - b)
    return result


def _linear(name: str, a: Tensor, b: Tensor, x: Tensor, bounds: Any, failure: Any = None) -> Any:
    cost = _half_squares(lambda x: xp.matmul(a, x) - b)
    return solution(name, x, stationary(cost, x, bounds), failure=failure)


@as_scipy
def nnls(given: dict[str, Any]) -> Any:
    """Linear least squares with ``x >= 0``; arguments as SciPy's.

    Returns:
        (x, norm of the residual), Tensors of shape (n,) and () with gradients by `A` and `b`.

    >>> print(gg.scipy.optimize.nnls([[1.0, 0.0], [0.0, 1.0]], [2.0, -1.0])[0])
    [2. 0.]
    """
    name, (a, b) = "nnls", (given["A"], given["b"])
    home = home_of(a, b)
    given.update({key: on_host(name, given[key]) for key in ("A", "b")})
    x, norm = solve(name, given)
    x = on_device(x, home)
    if not threads.stack:
        return x, on_device(norm, home)
    a, b = (xp.astype(asarray(v, device=home), "float64") for v in (a, b))
    x = _linear(name, a, b, x, [x * 0, x * 0 + np.inf])
    return x, xp.vector_norm(xp.matmul(a, x) - b)
