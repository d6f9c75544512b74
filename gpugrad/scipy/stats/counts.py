"""Sums of Bernoulli and of uniform variables, and Fisher's noncentral hypergeometric counts."""

from __future__ import annotations

from typing import Any

import numpy as np

from gpugrad.core.backend import TENSOR as xp
from gpugrad.scipy import special as _special
from gpugrad.scipy.stats.common import double

special: Any = _special


def poisson_binom_pmf(self: Any, k: Any, *p: Any) -> Any:
    """By the discrete Fourier transform of the characteristic function.

    M. Fernandez, S. Williams, IEEE Trans. Aerospace Electronic Systems 46 (2010) 803.
    """
    n = len(p)
    turns = np.exp(2j * np.pi * np.arange(n + 1) / (n + 1))
    shares = xp.stack([double(q) + 0 * k for q in p], axis=-1)
    transform = xp.prod(1 + shares[..., None, :] * (turns[:, None] - 1), axis=-1)
    back = xp.exp(-xp.log(turns) * k[..., None])
    return xp.real(xp.sum(transform * back, axis=-1)) / (n + 1)


def poisson_binom_cdf(self: Any, k: Any, *p: Any) -> Any:
    """The sum of the probabilities of at most k successes."""
    every = range(len(p) + 1)
    return sum(xp.where(k >= j, self._pmf(0 * k + float(j), *p), 0.0) for j in every)


def fisher_logpmf(self: Any, x: Any, M: Any, n: Any, N: Any, odds: Any) -> Any:
    """The ways to draw x times odds^x, divided by the sum over all x."""

    def log_weight(j: Any, total: Any, first: Any, drawn: Any, odds: Any) -> Any:
        inside = xp.logical_and(j <= xp.minimum(first, drawn), j >= first + drawn - total)
        at = xp.where(inside, j, xp.minimum(first, drawn))
        ways = -special.gammaln(at + 1) - special.gammaln(first - at + 1)
        ways = ways - special.gammaln(drawn - at + 1)
        ways = ways - special.gammaln(total - first - drawn + at + 1)
        return xp.where(inside, ways + at * xp.log(odds), -float("inf"))

    most = int(np.max(np.asarray(xp.stop_gradient(double(N))), initial=0))
    lifted_args = [double(a)[..., None] for a in (M, n, N, odds)]
    every = log_weight(np.arange(most + 1.0), *lifted_args)
    return log_weight(x, M, n, N, odds) - xp.logsumexp(every, axis=-1)


def irwinhall_pdf(self: Any, x: Any, n: Any) -> Any:
    """The density of a sum of n uniform variables, by the recurrence of cardinal B-splines."""
    x, n = double(x), double(n)
    most = int(np.nanmax(np.asarray(xp.stop_gradient(n)), initial=1))
    y = x[..., None] - np.arange(most)
    values = xp.astype(xp.logical_and(y >= 0, y < 1), x.dtype)
    result = xp.where(n == 1, values[..., 0], 0.0)
    for m in range(2, most + 1):
        y = y[..., :-1]
        values = (y * values[..., :-1] + (m - y) * values[..., 1:]) / (m - 1)
        result = xp.where(n == m, values[..., 0], result)
    return result
