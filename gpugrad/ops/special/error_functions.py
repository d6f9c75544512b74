"""The error function's relatives, and the normal distribution.

`erf` and `erfc` are in `elementwise`. A derivative that is a small difference of large numbers
far out is there the asymptotic series of that difference.
"""

from __future__ import annotations

import math

from gpugrad.ops.special.common import double, has, horner, library
from gpugrad.registry.record import elementwise

ROOT_PI, ROOT_2, ROOT_2PI = math.sqrt(math.pi), math.sqrt(2), math.sqrt(2 * math.pi)
FAR = 20.0  # from here on the asymptotic series below are exact to the last digit


def _tail(xp, x, sign):
    """The sum of (2k + 1)!! (sign / (2 x^2))^k / x^2 from k = 0, for |x| > `FAR`."""
    inverse = 1 / xp.where(xp.abs(x) > FAR, x, FAR)
    square = inverse * inverse
    terms = [math.prod(range(1, 2 * k + 2, 2)) for k in range(7, -1, -1)]
    return square * horner(0.5 * sign * square, terms)


def _erfcx_d(xp, out, x):
    """2 x erfcx(x) - 2 / sqrt(pi) (DLMF 7.12.1 for its series)."""
    near = 2 * x * xp.where(x > FAR, 0, out) - 2 / ROOT_PI
    return xp.where(x > FAR, -_tail(xp, x, -1) / ROOT_PI, near)


def _dawsn_d(xp, out, x):
    """1 - 2 x dawsn(x)."""
    return xp.where(xp.abs(x) > FAR, -0.5 * _tail(xp, x, 1), 1 - 2 * x * out)


def _dawsn(xp, x):
    """Rybicki's sampling sum where the library has no `dawsn`: exact to exp(-(pi / 2h)^2).

    Rybicki 1989, "Dawson's integral and the sampling theorem". Samples lie around the even
    multiple of h that is nearest to x, so that as many are needed for every x.
    """
    if has(xp, "dawsn"):
        return xp.special.dawsn(x)
    lib, h = xp.lib, 0.25
    x, dtype = double(xp, x)
    near = lib.abs(x) < 0.5
    small, middle = lib.where(near, x, 0.0), 2 * lib.round(x / (2 * h))
    total = 0 * x
    for k in range(-29, 30, 2):
        total = total + lib.exp(-((x - (middle + k) * h) ** 2)) / (middle + k)
    series = horner(-2 * small * small, [1 / math.prod(range(1, 2 * k + 2, 2))
                                         for k in range(14, -1, -1)])  # fmt: skip
    return lib.where(near, small * series, total / ROOT_PI).astype(dtype)


erfcx = elementwise(
    "erfcx(x)", kinds="fc", forward=library("erfcx"), ref="scipy.special.erfcx", d=[_erfcx_d],
    doc="exp(x^2) erfc(x), which neither overflows nor vanishes for large `x`.",
    example=("[0.0, 10.0]", "[1.         0.05614099]"),
)  # fmt: skip

erfinv = elementwise(
    "erfinv(x)", forward=library("erfinv"), ref="scipy.special.erfinv", singular=True,
    d=[lambda xp, out: 0.5 * ROOT_PI * xp.exp(out * out)], domain=(-0.9, 0.9),
    doc="The number whose `erf` is `x`: infinite at -1 and 1, NaN beyond.",
    example=("[0.0, 0.5]", "[0.        0.4769363]"),
)  # fmt: skip

erfcinv = elementwise(
    "erfcinv(x)", forward=library("erfcinv"), ref="scipy.special.erfcinv", singular=True,
    d=[lambda xp, out: -0.5 * ROOT_PI * xp.exp(out * out)], domain=(0.1, 1.9),
    doc="The number whose `erfc` is `x`: infinite at 0 and 2, NaN beyond.",
    example=("[1.0, 0.5]", "[0.        0.4769363]"),
)  # fmt: skip

dawsn = elementwise(
    "dawsn(x)", forward=_dawsn, ref="scipy.special.dawsn", d=[_dawsn_d],
    doc="Dawson's integral, exp(-x^2) times the integral of exp(t^2) from 0 to `x`.",
    example=("[0.0, 1.0]", "[0.        0.5380795]"),
)  # fmt: skip

ndtr = elementwise(
    "ndtr(x)", kinds="fc", forward=library("ndtr"), ref="scipy.special.ndtr",
    d=[lambda xp, x: xp.exp(-0.5 * x * x) / ROOT_2PI],
    doc="The probability that a standard normal number is below `x`.",
    example=("[-10.0, 0.0]", "[7.619853e-24 5.000000e-01]"),
)  # fmt: skip

ndtri = elementwise(
    "ndtri(p)", forward=library("ndtri"), ref="scipy.special.ndtri", singular=True,
    d=[lambda xp, out: ROOT_2PI * xp.exp(0.5 * out * out)], domain=(0.1, 0.9),
    doc="The number below which a standard normal one is with probability `p`; NaN outside [0, 1].",
    example=("[0.5, 0.975]", "[0.       1.959964]"),
)  # fmt: skip

log_ndtr = elementwise(
    "log_ndtr(x)", kinds="fc", forward=library("log_ndtr"), ref="scipy.special.log_ndtr",
    # the density over the probability: neither is computed, as both vanish far out
    d=[lambda xp, x: math.sqrt(2 / math.pi) / xp.erfcx(-x / ROOT_2)], domain=(-5, 2),
    doc="Logarithm of `ndtr`, exact where that would be 0 or 1.",
    example=("[-100.0, 0.0]", "[-5.0055244e+03 -6.9314718e-01]"),
)  # fmt: skip
