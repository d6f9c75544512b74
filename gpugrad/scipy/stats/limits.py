"""Distributions whose formula SciPy changes where a shape is exactly 0.

A derivative by that shape needs one formula: of log1p(z) / z and expm1(z) / z, whose derivatives
are exact at 0.
"""

from __future__ import annotations

from typing import Any

from gpugrad.core.backend import TENSOR as xp


def log1p_over(z: Any) -> Any:
    """log1p(z) / z, with exact derivatives at 0."""
    near = xp.abs(z) < 0.1
    small, large = xp.where(near, z, 0.0), xp.where(near, 1.0, z)
    series = 0 * small
    for k in range(16, 0, -1):
        series = (-1) ** (k + 1) / k + series * small
    return xp.where(near, series, xp.log1p(large) / large)


def pareto_logpdf(self: Any, x: Any, c: Any) -> Any:
    """The generalised Pareto density."""
    return -x * log1p_over(c * x) - xp.log1p(c * x)


def extreme_logpdf(self: Any, x: Any, c: Any) -> Any:
    """The generalised extreme value density."""
    end = c * x == 1
    z = xp.where(end, 0.0, c * x)
    log = -x * log1p_over(-z)
    at_end = xp.where(c == 1, 0.0, -float("inf"))
    return xp.where(end, at_end, log - xp.exp(log) - xp.log1p(-z))


def extreme_ppf(log: Any) -> Any:
    """The quantile, from the logarithm of its probability, or of that to the right."""
    return lambda self, q, c: _box(-xp.log(-log(q)), c)


def _box(x: Any, c: Any) -> Any:
    """The product of x and (1 - e^(-c x)) / (c x)."""
    return x * xp.exprel(-c * x)


def kappa_logs(x: Any, h: Any, k: Any) -> Any:
    """Of u = (1 - k x)^(1 / k), and of the distribution function (1 - h u)^(1 / h)."""
    log = -x * log1p_over(-k * x)
    u = xp.exp(log)
    return log, u, -u * log1p_over(-h * u)


def kappa_logpdf(self: Any, x: Any, h: Any, k: Any) -> Any:
    """The four parameter kappa density."""
    log, u, cdf = kappa_logs(x, h, k)
    return log - xp.log1p(-k * x) + cdf - xp.log1p(-h * u)


def kappa_ppf(self: Any, q: Any, h: Any, k: Any) -> Any:
    """The four parameter kappa quantile."""
    log = xp.log(q)
    return _box(-xp.log(-log * xp.exprel(h * log)), k)
