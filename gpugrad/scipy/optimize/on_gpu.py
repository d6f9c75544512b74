"""BFGS and L-BFGS on the device of the data; only numbers of the line search come to the host."""

from __future__ import annotations

from collections import deque
from typing import Any

import numpy as np
from scipy.optimize import OptimizeResult
from scipy.optimize._linesearch import scalar_search_wolfe1, scalar_search_wolfe2

from gpugrad.core.backend import TENSOR as xp
from gpugrad.core.tensor import Tensor
from gpugrad.scipy.optimize.calls import on_device
from gpugrad.transforms.derivatives import value_and_grad


def minimize(f: Any, x: Tensor, method: Any, given: dict[str, Any]) -> Any:
    """SciPy's result of a minimization on the device, or None for another method or option."""
    options = dict(given["options"] or {})
    limits = {"gtol": 1e-5, "maxiter": 200 * x.size if method != "l-bfgs-b" else 15000}
    memory = options.pop("maxcor", 10) if method == "l-bfgs-b" else None
    gtol, maxiter = (options.pop(k, v) for k, v in limits.items())
    if method not in (None, "bfgs", "l-bfgs-b") or options or given["callback"] is not None:
        return None
    return quasi_newton(f, x, given["tol"] or gtol, maxiter, memory)


def quasi_newton(f: Any, x: Tensor, gtol: float, maxiter: int, memory: int | None) -> Any:
    """Minimize with an inverse Hessian, or its last `memory` updates; steps fulfil Wolfe's rules.

    Nocedal and Wright, Numerical Optimization, algorithms 6.1 and 7.4.
    """
    both, evaluations = value_and_grad(f), 1
    value, g = both(x)
    pairs: deque[tuple[Tensor, Tensor, Tensor]] = deque(maxlen=memory)
    inverse = None if memory else on_device(np.eye(x.size, dtype=x.dtype), x.device)
    before, message, steps = None, "Optimization terminated successfully.", 0
    while (size := float(xp.max(xp.abs(g)))) > gtol:
        if steps == maxiter or not np.isfinite(size):
            message = "Maximum number of iterations has been exceeded."
            break
        direction = -(xp.matmul(inverse, g) if inverse is not None else _two_loops(pairs, g))
        step, new, n = _line_search(both, x, direction, (value, g), before)
        evaluations += n
        if step is None:
            message = "Desired error not necessarily achieved due to precision loss."
            break
        s, y, steps = step * direction, new[1] - g, steps + 1
        x, before, (value, g) = x + s, float(value), new
        curvature = xp.sum(y * s)
        if float(curvature) <= 0:
            continue
        if inverse is None:
            pairs.append((s, y, 1 / curvature))
        else:
            hy = xp.matmul(inverse, y)
            cross = xp.outer(hy, s)
            square = (1 + xp.sum(y * hy) / curvature) * xp.outer(s, s)
            inverse = inverse + (square - cross - xp.matrix_transpose(cross)) / curvature
    success = message.startswith("Optimization")
    result = OptimizeResult(x=x, fun=value, jac=g, nit=steps, nfev=evaluations, njev=evaluations)
    result.update(success=success, status=int(not success), message=message)
    if inverse is not None:
        result["hess_inv"] = inverse
    return result


def _line_search(both: Any, x: Tensor, direction: Tensor, now: Any, before: Any) -> Any:
    """The step of SciPy's line searches or None, value and gradient there, and evaluations."""
    points: dict[float, Any] = {0.0: now}

    def at(step: float) -> Any:
        if step not in points:
            points[step] = both(x + step * direction)
        return points[step]

    def value(step: float) -> float:
        return float(at(step)[0])

    def slope(step: float) -> float:
        return float(xp.sum(at(step)[1] * direction))

    start = (value, slope, value(0.0), before, slope(0.0))
    step = scalar_search_wolfe1(*start, amax=1e100)[0]
    if step is None:
        step = scalar_search_wolfe2(*start)[0]
    return step, None if step is None else at(step), len(points) - 1


def _two_loops(pairs: Any, g: Tensor) -> Tensor:
    """The product of the inverse Hessian of the last updates with `g`."""
    weights = []
    for s, y, rho in reversed(pairs):
        a = rho * xp.sum(s * g)
        weights.append(a)
        g = g - a * y
    if pairs:
        s, y, rho = pairs[-1]
        g = g / (rho * xp.sum(y * y))
    for (s, y, rho), a in zip(pairs, reversed(weights), strict=True):
        g = g + (a - rho * xp.sum(y * g)) * s
    return g
