"""Random real numbers that are functions of several kinds of noise."""

from __future__ import annotations

import math

from gpugrad.core.backend import TENSOR
from gpugrad.core.tensor import Tensor
from gpugrad.ops.random.sampling import check, distribution, not_negative, positive


def _fixed(*parameters):
    """Parameters without gradients: the formula's is not that of the distribution."""
    return [TENSOR.stop_gradient(p) if isinstance(p, Tensor) else p for p in parameters]


@distribution((positive, "dfnum", "dfden"), wide=True)
def f(call, dfnum=1.0, dfden=1.0):
    """F: chisquare(dfnum) / dfnum over chisquare(dfden) / dfden; others as `normal`.

    >>> bool(gg.all(gg.random.f(5, 2.0, 3.0) > 0))
    True
    """
    logs = call.gamma(dfnum / 2, log=True) - call.gamma(dfden / 2, log=True)
    return call.located(TENSOR.exp(logs), 0.0, dfden / dfnum)


def _noncentral(call, df, nonc):
    """Twice gamma numbers of df / 2 plus a Poisson number of rate nonc / 2."""
    count = call.noise("poisson", nonc / 2)
    return 2 * call.noise("gamma", df / 2 + count)


@distribution((positive, "df"), (not_negative, "nonc"), wide=True)
def noncentral_chisquare(call, df=1.0, nonc=0.0):
    """Sums of `df` squares of normal numbers whose squared means sum to `nonc`.

    Other arguments as `normal`; the parameters get no gradient.

    >>> bool(gg.all(gg.random.noncentral_chisquare(5, 2.0, 3.0) > 0))
    True
    """
    return call.rounded(_noncentral(call, *_fixed(df, nonc)))


@distribution((positive, "dfnum", "dfden"), (not_negative, "nonc"), wide=True)
def noncentral_f(call, dfnum=1.0, dfden=1.0, nonc=0.0):
    """F with a numerator of `noncentral_chisquare`; the parameters get no gradient.

    >>> bool(gg.all(gg.random.noncentral_f(5, 2.0, 3.0, 1.0) > 0))
    True
    """
    dfnum, dfden, nonc = _fixed(dfnum, dfden, nonc)
    above = _noncentral(call, dfnum, nonc)
    return call.located(above / (2 * call.noise("gamma", dfden / 2)), 0.0, dfden / dfnum)


@distribution((positive, "a"))
def power(call, a=1.0):
    """From 0 to 1 with density a x ** (a - 1): a uniform number to the 1 / `a`; as `normal`.

    >>> bool(gg.all(gg.random.power(5, 3.0) <= 1))
    True
    """
    return call.rounded(TENSOR.exp(-call.noise("exponential") / a))


@distribution((not_negative, "scale"))
def rayleigh(call, scale=1.0):
    """Lengths of vectors of two normal numbers, times `scale`; other arguments as `normal`.

    >>> bool(gg.all(gg.random.rayleigh(5, 3.0) > 0))
    True
    """
    return call.located(TENSOR.sqrt(2 * call.noise("exponential")), 0.0, scale)


@distribution()
def triangular(call, left=0.0, mode=0.5, right=1.0):
    """From `left` to `right`, with a density that is a triangle with its top at `mode`.

    Other arguments as `normal`.

    >>> bool(gg.all(gg.random.triangular(5, 1.0, 2.0, 4.0) >= 1))
    True
    """
    check("triangular", not_negative, **{"mode - left": mode - left, "right - mode": right - mode})
    check("triangular", positive, **{"right - left": right - left})
    u = call.noise("uniform")
    rising = left + TENSOR.sqrt(u * ((right - left) * (mode - left)))
    falling = right - TENSOR.sqrt((1 - u) * ((right - left) * (right - mode)))
    return call.rounded(TENSOR.where(u * (right - left) <= mode - left, rising, falling))


@distribution((not_negative, "kappa"), wide=True)
def vonmises(call, mu=0.0, kappa=1.0):
    """Angles from -pi to pi around `mu` with concentration `kappa`; others as `normal`.

    Only `mu` gets a gradient.

    >>> bool(gg.all(gg.abs(gg.random.vonmises(5, 0.0, 2.0)) < 3.15))
    True
    """
    angle = mu + call.noise("vonmises", *_fixed(kappa))
    turns = TENSOR.round(TENSOR.stop_gradient(angle) / (2 * math.pi))
    return call.rounded(angle - 2 * math.pi * turns)


@distribution((positive, "mean", "scale"), wide=True)
def wald(call, mean=1.0, scale=1.0):
    """Inverse Gaussian with a mean and a scale (Michael, Schucany and Haas 1976).

    Other arguments as `normal`; the parameters get no gradient.

    >>> bool(gg.all(gg.random.wald(5, 2.0, 3.0) > 0))
    True
    """
    mean, scale = _fixed(mean, scale)
    t = mean * call.noise("normal") ** 2 / (2 * scale)
    low = mean / (1 + t + TENSOR.sqrt(t * (t + 2)))
    is_low = call.noise("uniform") * (mean + low) <= mean
    return call.rounded(TENSOR.where(is_low, low, mean * (mean / low)))
