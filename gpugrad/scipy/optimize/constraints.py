"""Constraints of `minimize`, and the equations of a minimum under them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from scipy.optimize import LinearConstraint, NonlinearConstraint

from gpugrad.core.backend import TENSOR as xp
from gpugrad.core.devices import Device
from gpugrad.core.tensor import Tensor
from gpugrad.numpy.creation import asarray
from gpugrad.scipy.optimize.calls import for_scipy, on_bounds, on_device, on_host, vector
from gpugrad.transforms.derivatives import grad
from gpugrad.transforms.jacobians import jacobian

NEAR = 1e-6
"""How near to its limit a constraint is active."""


class Constraint:
    """A constraint ``lower <= f(x) <= upper`` of Tensors.

    Args:
        given: SciPy's dictionary, LinearConstraint or NonlinearConstraint.
        home: the device of `x`.
    """

    def __init__(self, given: Any, home: Device) -> None:
        self.given, self.home = given, home
        if isinstance(given, dict):
            fun, args = given["fun"], given.get("args", ())
            self.f = vector(lambda x: fun(x, *args))
            self.lower, self.upper = 0.0, 0.0 if given["type"].lower() == "eq" else np.inf
            return
        if isinstance(given, LinearConstraint):
            self.f = lambda x: xp.matmul(xp.astype(asarray(given.A, device=home), x.dtype), x)
        else:
            self.f = vector(given.fun)
        self.lower, self.upper = given.lb, given.ub

    def for_scipy(self, name: str) -> Any:
        """The constraint with NumPy arrays, and with our Jacobian if there is none."""
        given = self.given
        if isinstance(given, LinearConstraint):
            parts = (on_host(name, part) for part in (given.A, given.lb, given.ub))
            return LinearConstraint(*parts, keep_feasible=given.keep_feasible)
        f = for_scipy(name, self.f, self.home)
        slope = for_scipy(name, jacobian(self.f), self.home)
        if isinstance(given, dict):
            jac = given.get("jac")
            args = given.get("args", ())
            if callable(jac):
                slope = for_scipy(name, lambda x: jac(x, *args), self.home)
            return {"type": given["type"], "fun": f, "jac": slope}
        limits = (on_host(name, part) for part in (given.lb, given.ub))
        if callable(given.jac):
            slope = for_scipy(name, given.jac, self.home)
        more = {"hess": given.hess, "keep_feasible": given.keep_feasible}
        return NonlinearConstraint(f, *limits, jac=slope, **more)

    def active(self, x: Tensor) -> list[Callable[[Tensor], Tensor]]:
        """Functions that are 0 where the constraint holds `x`."""
        value = np.asarray(self.f(x))
        functions = []
        for limit in (self.lower, self.upper):
            limits = np.broadcast_to(np.asarray(on_host("minimize", limit), float), value.shape)
            (at,) = np.nonzero(np.atleast_1d(np.abs(value - limits) <= NEAR))
            if len(at):
                functions.append(self._misses(limit, at))
            if limit is self.upper or np.array_equal(self.lower, self.upper):
                break
        return functions

    def _misses(self, limit: Any, at: Any) -> Callable[[Tensor], Tensor]:
        def function(x: Tensor) -> Tensor:
            return xp.getitem(xp.ravel(self.f(x) - asarray(limit, device=self.home)), index=at)

        return function


def lagrangian(
    f: Callable[[Tensor], Tensor],
    x: Tensor,
    bounds: list[Tensor] | None,
    constraints: Sequence[Constraint],
) -> tuple[Any, Any]:
    """The residual of (x, multipliers) at a minimum, and the multipliers.

    It has the gradient of f - sum of multipliers and active constraints, and these constraints.
    An element of `x` on a bound stays there.
    """
    active = [c for constraint in constraints for c in constraint.active(x)]

    def misses(x: Tensor) -> Tensor:
        return xp.concat([c(x) for c in active]) if active else xp.getitem(x, index=slice(0, 0))

    def of_lagrangian(x: Tensor, multipliers: Tensor) -> Tensor:
        return f(x) - xp.sum(multipliers * misses(x))

    slope = grad(of_lagrangian)
    held = on_bounds(x, bounds) if bounds is not None else None
    matrix, b = np.asarray(jacobian(misses)(x)), np.asarray(grad(f)(x))
    if held is not None:
        free = ~(np.asarray(held[0]) | np.asarray(held[1]))
        matrix, b = matrix[:, free], b[free]
    multipliers = on_device(np.linalg.lstsq(matrix.T, b, rcond=None)[0], x.device)

    def residual(unknown: tuple[Tensor, Tensor]) -> Any:
        x, multipliers = unknown
        by_x = slope(x, multipliers)
        if held is not None and bounds is not None:
            by_x = xp.where(held[0], x - bounds[0], xp.where(held[1], x - bounds[1], by_x))
        return by_x, misses(x)

    return residual, multipliers
