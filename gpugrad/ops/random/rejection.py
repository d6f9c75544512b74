"""Samplers by rejection: gamma, Poisson, binomial, hypergeometric, Zipf, von Mises.

Element i of a draw that starts at counter `first` has counters of its own, one for each round
r = 1, 2, ...: ``first + i`` with r as word 1. So it depends on no other element, however many
rounds those need, and a thread of a GPU can do the same. All is computed in float64 from 64-bit
words and rounded once at the end.

Parameters are arrays (n,) of float64 on the host. Where they are invalid the result is NaN
(-1 for integers).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from gpugrad.core.backend import NUMPY
from gpugrad.ops.random import philox
from gpugrad.ops.random.philox import Key

Array = np.ndarray[Any, Any]
Try = Callable[[Array, Array], tuple[Array, Array]]
"""From words (m, 4) and the elements' positions (m,): candidates, and which are accepted."""

_ELEMENTS = 1 << 14  # computed at a time, for the cache


def _until_accepted(attempt: Try, todo: Array, key: Key, first: int, missing: float) -> Array:
    """Results of the elements where `todo` (n,) is True, `missing` elsewhere."""
    result = np.full(len(todo), missing)

    def tried(at: Array, words: Array) -> Array:
        value, accepted = attempt(words, at)
        result[at[accepted]] = value[accepted]
        return at[~accepted]

    left = []  # after the first round, which most elements pass and which needs no gathered words
    for start in range(0, len(todo), _ELEMENTS):
        part = todo[start : start + _ELEMENTS]
        words = philox.words(key, first + start, 4 * len(part), second=1).reshape(-1, 4)
        at = np.flatnonzero(part)
        left.append(tried(start + at, words if len(at) == len(part) else words[at]))
    at = np.concatenate(left) if left else np.zeros(0, np.intp)
    second = 2
    while at.size:  # at least half of all candidates are accepted
        at, second = tried(at, philox.blocks(key, first, at, second)), second + 1
    return result


def _unit(w: Array) -> Array:
    """From 0 up to, but not including, 1, as in `philox.uniform`."""
    return (w >> np.uint64(11)).astype(np.float64) * 2.0**-53


def _gamma_parts(key: Key, first: int, alpha: Array) -> tuple[Array, Array, Array]:
    """log(d), 3 log(v) and the logarithm of the boost; their sum is the sample's logarithm.

    Marsaglia and Tsang 2000: with d = a - 1/3, v = (1 + x / sqrt(9 d)) for a normal x, d v^3 is
    accepted if log(u) < x^2 / 2 + d (1 - v^3 + 3 log v). For alpha < 1 the sample is drawn for
    a = alpha + 1 and multiplied by u2^(1 / alpha). Words 0, 1, 2 of a round make x, u, u2.
    """
    valid = (alpha > 0) & np.isfinite(alpha)
    a = np.where(valid, alpha, 1.0)
    small = a < 1
    any_small = bool(small.any())
    d = np.where(small, a + 1.0, a) - 1.0 / 3.0
    c = 1.0 / np.sqrt(9.0 * d)
    boost = np.zeros(len(a))

    def attempt(words: Array, at: Array) -> tuple[Array, Array]:
        x = philox.normal(words[:, 0])
        v = 1.0 + c[at] * x
        positive = v > 0
        log_v = philox.log(np.where(positive, v, 1.0))
        bound = 0.5 * (x * x) + d[at] * ((1.0 - v * v * v) + 3.0 * log_v)
        if any_small:
            boost[at] = np.where(small[at], -philox.exponential(words[:, 2]) / a[at], 0.0)
        return 3.0 * log_v, positive & (-philox.exponential(words[:, 1]) < bound)

    return philox.log(d), _until_accepted(attempt, valid, key, first, np.nan), boost


def log_gamma(key: Key, first: int, alpha: Array) -> Array:
    """Logarithms of gamma samples with shape parameters `alpha`; finite where samples are 0."""
    with np.errstate(all="ignore"):
        log_d, log_v3, boost = _gamma_parts(key, first, alpha)
        return log_d + log_v3 + boost


def gamma(key: Key, first: int, alpha: Array) -> Array:
    """Gamma samples. For alpha < 1e-2 they are often 0; `log_gamma` stays finite."""
    with np.errstate(all="ignore"):
        log_d, log_v3, boost = _gamma_parts(key, first, alpha)
        return np.exp(log_d + log_v3 + boost)


def _inverted(u: Array, start: Array, ratio: Callable[[Array, int], Array]) -> Array:
    """The smallest k for which start * (1 + r(1) + ... + r(1) ... r(k)) exceeds u."""
    k, term, left = np.zeros(len(u)), start.copy(), u - start
    at = np.flatnonzero(left >= 0)
    for j in range(1, 200):  # callers have a mean below 10
        if not at.size:
            break
        term[at] *= ratio(at, j)
        left[at] -= term[at]
        k[at] = j
        at = at[left[at] >= 0]
    return k


def _log_factorial(k: Array) -> Array:
    return NUMPY.special.gammaln(np.maximum(k, 0) + 1.0)


def _spread(words: Array, a: Array, b: Array, centre: Array) -> tuple[Array, Array, Array]:
    """Candidates k, and us and v of Hoermann's transformed rejection with squeeze."""
    u, v = _unit(words[:, 0]) - 0.5, 1.0 - _unit(words[:, 1])
    us = 0.5 - np.abs(u)
    return np.floor((2.0 * a / us + b) * u + centre), us, v


def poisson(key: Key, first: int, rate: Array) -> Array:
    """Poisson numbers: by summing probabilities below a rate of 10, else PTRS (Hoermann 1993)."""
    valid = (rate >= 0) & (rate < 2.0**62)
    rates = np.where(valid, rate, 1.0)

    def attempt(words: Array, at: Array) -> tuple[Array, Array]:
        few = rates[at] < 10
        lam = np.where(few, 10.0, rates[at])
        b = 0.931 + 2.53 * np.sqrt(lam)
        a = -0.059 + 0.02483 * b
        k, us, v = _spread(words, a, b, lam + 0.43)
        bound = k * np.log(lam) - lam - _log_factorial(k)
        inverse_alpha = 1.1239 + 1.1328 / (b - 3.4)
        accepted = (us >= 0.07) & (v <= 0.9277 - 3.6224 / (b - 2.0))
        accepted |= np.log(v * inverse_alpha / (a / (us * us) + b)) <= bound
        accepted &= (k >= 0) & ((us >= 0.013) | (v <= us))
        low = at[few]
        k[few] = _inverted(
            _unit(words[few, 0]), np.exp(-rates[low]), lambda i, j: rates[low[i]] / j
        )
        return k, accepted | few

    with np.errstate(all="ignore"):
        return _until_accepted(attempt, valid, key, first, -1.0)


def binomial(key: Key, first: int, n: Array, p: Array) -> Array:
    """Binomial numbers: as `poisson` below a mean of 10, else BTRS (Hoermann 1993)."""
    valid = (n >= 0) & (n < 2.0**53) & (p >= 0) & (p <= 1)
    trials, flipped = np.where(valid, np.floor(n), 1.0), p > 0.5
    chance = np.where(valid, np.where(flipped, 1.0 - p, p), 0.5)

    def attempt(words: Array, at: Array) -> tuple[Array, Array]:
        few = trials[at] * chance[at] < 10
        m, q = np.where(few, 40.0, trials[at]), np.where(few, 0.5, chance[at])
        spread = np.sqrt(m * q * (1.0 - q))
        b = 1.15 + 2.53 * spread
        a = -0.0873 + 0.0248 * b + 0.01 * q
        k, us, v = _spread(words, a, b, m * q + 0.5)
        mode = np.floor((m + 1.0) * q)
        bound = _log_factorial(mode) + _log_factorial(m - mode) - _log_factorial(k)
        bound = bound - _log_factorial(m - k) + (k - mode) * np.log(q / (1.0 - q))
        accepted = (us >= 0.07) & (v <= 0.92 - 4.2 / b)
        accepted |= np.log(v * (2.83 + 5.1 / b) * spread / (a / (us * us) + b)) <= bound
        accepted &= (k >= 0) & (k <= m)
        low = at[few]
        odds, count = chance[low] / (1.0 - chance[low]), trials[low]
        start = np.exp(count * np.log1p(-chance[low]))
        k[few] = _inverted(
            _unit(words[few, 0]), start, lambda i, j: odds[i] * np.maximum(count[i] - j + 1, 0) / j
        )
        return k, accepted | few

    with np.errstate(all="ignore"):
        k = _until_accepted(attempt, valid, key, first, -1.0)
        return np.where(flipped & valid, trials - np.minimum(k, trials), k)


def _surprise(k: Array, few: Array, many: Array, draws: Array) -> Array:
    """Minus the logarithm of the probability to draw `k` of `few`, up to a constant."""
    left = _log_factorial(few - k) + _log_factorial(draws - k)
    return _log_factorial(k) + left + _log_factorial(many - draws + k)


def hypergeometric(key: Key, first: int, good: Array, bad: Array, sample: Array) -> Array:
    """How many of a sample are good: HRUA (Stadlober 1990), by the smaller kind and sample."""
    good, bad, sample = np.floor(good), np.floor(bad), np.floor(sample)
    total = good + bad
    valid = (good >= 0) & (bad >= 0) & (sample >= 0) & (sample <= total) & (total < 2.0**53)
    good, bad, sample, total = (np.where(valid, x, 1.0) for x in (good, bad, sample, total))
    total = np.maximum(total, 1.0)
    few, many = np.minimum(good, bad), np.maximum(good, bad)
    draws = np.maximum(np.minimum(sample, total - sample), 0.0)
    share, centre = few / total, draws * few / total + 0.5
    variance = (total - draws) * draws * share * (1.0 - share) / np.maximum(total - 1.0, 1.0)
    deviation = np.sqrt(variance + 0.5)
    width = 1.7155277699214135 * deviation + 0.8989161620588988  # 2 sqrt(2/e), 3 - 2 sqrt(3/e)
    mode = np.floor((draws + 1.0) * (few + 1.0) / (total + 2.0))
    end = np.minimum(np.minimum(draws, few) + 1.0, np.floor(centre + 16.0 * deviation))

    def attempt(words: Array, at: Array) -> tuple[Array, Array]:
        u, v = 1.0 - _unit(words[:, 0]), _unit(words[:, 1])
        x = centre[at] + width[at] * (v - 0.5) / u
        k = np.floor(x)
        counts = few[at], many[at], draws[at]
        bound = _surprise(mode[at], *counts) - _surprise(k, *counts)
        return k, (x >= 0) & (x < end[at]) & (2.0 * np.log(u) <= bound)

    with np.errstate(all="ignore"):
        k = _until_accepted(attempt, valid, key, first, -1.0)
        k = np.where(good > bad, draws - k, k)
        return np.where(valid, np.where(draws < sample, good - k, k), -1.0)


def zipf(key: Key, first: int, a: Array) -> Array:
    """Numbers k from 1 up with probabilities in proportion to k^-a (Devroye 1986, X.6.1).

    Numbers of 2^63 and more are not drawn: the uniform number starts where they end.
    """
    valid = a > 1
    power = np.where(valid, np.minimum(a, 1025.0), 2.0) - 1.0
    least = 2.0 ** (-63.0 * power)

    def attempt(words: Array, at: Array) -> tuple[Array, Array]:
        u, v, c = _unit(words[:, 0]), _unit(words[:, 1]), power[at]
        x = np.floor((u * least[at] + (1.0 - u)) ** (-1.0 / c))
        log_t = c * np.log1p(1.0 / x)
        kept = v * x * np.expm1(log_t) / -np.expm1(-c * np.log(2.0)) <= np.exp(log_t)
        return x, (x >= 1) & (x < 2.0**63) & kept

    with np.errstate(all="ignore"):
        return _until_accepted(attempt, valid, key, first, -1.0)


def vonmises(key: Key, first: int, kappa: Array) -> Array:
    """Angles around 0 with concentration `kappa` (Best and Fisher 1979)."""
    valid = (kappa >= 0) & np.isfinite(kappa)
    k = np.where(valid, kappa, 1.0)
    r = 1.0 + np.sqrt(1.0 + 4.0 * k * k)
    with np.errstate(all="ignore"):  # below 1e-8 the angle is uniform
        rho = (r - np.sqrt(2.0 * r)) / (2.0 * k)
        s = np.where(k < 1e-5, 1.0 / k + k, (1.0 + rho * rho) / (2.0 * rho))

    def attempt(words: Array, at: Array) -> tuple[Array, Array]:
        u, v = _unit(words[:, 0]), 1.0 - _unit(words[:, 1])
        z = np.cos(np.pi * u)
        f = (1.0 + s[at] * z) / (s[at] + z)
        y = k[at] * (s[at] - f)
        angle = np.copysign(np.arccos(f), _unit(words[:, 2]) - 0.5)
        flat, narrow = k[at] < 1e-8, k[at] > 1e6
        angle = np.where(flat, np.pi * (2.0 * u - 1.0), angle)
        angle = np.where(narrow, philox.normal(words[:, 0]) / np.sqrt(k[at]), angle)
        return angle, flat | narrow | (np.log(y / v) + 1.0 - y >= 0)

    with np.errstate(all="ignore"):
        return _until_accepted(attempt, valid, key, first, np.nan)
