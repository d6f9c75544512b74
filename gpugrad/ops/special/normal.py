"""The error function's relatives, the normal distribution, and `gelu`, which is built on it.

`erf` and `erfc` are in ops/math/elementwise. Far out, where a derivative is a small difference of
large numbers, it is the asymptotic series of that difference.

`gelu` has a polynomial of its own in float32: SciPy computes the error function in double
precision, element by element, at a tenth of the speed.
"""

from __future__ import annotations

import math

import numpy as np

from gpugrad.core.backend import NUMPY
from gpugrad.ops.special.common import double, has, horner, library
from gpugrad.registry.record import elementwise

_ROOT_PI, _ROOT_2, _ROOT_2PI = math.sqrt(math.pi), math.sqrt(2), math.sqrt(2 * math.pi)
_FAR = 20.0  # from here on the asymptotic series below are exact to the last digit


def _asymptotic_tail(xp, x, sign):
    """The sum of (2k + 1)!! (sign / (2 x^2))^k / x^2 from k = 0, for |x| > `_FAR`."""
    inverse = 1 / xp.where(xp.abs(x) > _FAR, x, _FAR)
    square = inverse * inverse
    terms = [math.prod(range(1, 2 * k + 2, 2)) for k in range(7, -1, -1)]
    return square * horner(0.5 * sign * square, terms)


def _erfcx_d(xp, out, x):
    """2 x erfcx(x) - 2 / sqrt(pi) (DLMF 7.12.1 for its series)."""
    near = 2 * x * xp.where(x > _FAR, 0, out) - 2 / _ROOT_PI
    return xp.where(x > _FAR, -_asymptotic_tail(xp, x, -1) / _ROOT_PI, near)


def _dawsn_d(xp, out, x):
    """1 - 2 x dawsn(x)."""
    return xp.where(xp.abs(x) > _FAR, -0.5 * _asymptotic_tail(xp, x, 1), 1 - 2 * x * out)


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
    series = horner(
        -2 * small * small, [1 / math.prod(range(1, 2 * k + 2, 2)) for k in range(14, -1, -1)]
    )
    return lib.where(near, small * series, total / _ROOT_PI).astype(dtype)


erfcx = elementwise(
    "erfcx(x)",
    kinds="fc",
    forward=library("erfcx"),
    ref="scipy.special.erfcx",
    d=[_erfcx_d],
    doc="exp(x^2) erfc(x), which neither overflows nor vanishes for large `x`.",
    example=("[0.0, 10.0]", "[1.         0.05614099]"),
)

erfinv = elementwise(
    "erfinv(x)",
    forward=library("erfinv"),
    ref="scipy.special.erfinv",
    singular=True,
    d=[lambda xp, out: 0.5 * _ROOT_PI * xp.exp(out * out)],
    domain=(-0.9, 0.9),
    doc="The number whose `erf` is `x`: infinite at -1 and 1, NaN beyond.",
    example=("[0.0, 0.5]", "[0.        0.4769363]"),
)

erfcinv = elementwise(
    "erfcinv(x)",
    forward=library("erfcinv"),
    ref="scipy.special.erfcinv",
    singular=True,
    d=[lambda xp, out: -0.5 * _ROOT_PI * xp.exp(out * out)],
    domain=(0.1, 1.9),
    doc="The number whose `erfc` is `x`: infinite at 0 and 2, NaN beyond.",
    example=("[1.0, 0.5]", "[0.        0.4769363]"),
)

dawsn = elementwise(
    "dawsn(x)",
    forward=_dawsn,
    ref="scipy.special.dawsn",
    d=[_dawsn_d],
    doc="Dawson's integral, exp(-x^2) times the integral of exp(t^2) from 0 to `x`.",
    example=("[0.0, 1.0]", "[0.        0.5380795]"),
)

ndtr = elementwise(
    "ndtr(x)",
    kinds="fc",
    forward=library("ndtr"),
    ref="scipy.special.ndtr",
    d=[lambda xp, x: xp.exp(-0.5 * x * x) / _ROOT_2PI],
    doc="The probability that a standard normal number is below `x`.",
    example=("[-10.0, 0.0]", "[7.619853e-24 5.000000e-01]"),
)

ndtri = elementwise(
    "ndtri(p)",
    forward=library("ndtri"),
    ref="scipy.special.ndtri",
    singular=True,
    d=[lambda xp, out: _ROOT_2PI * xp.exp(0.5 * out * out)],
    domain=(0.1, 0.9),
    doc="The number below which a standard normal one is with probability `p`; NaN outside [0, 1].",
    example=("[0.5, 0.975]", "[0.       1.959964]"),
)

log_ndtr = elementwise(
    "log_ndtr(x)",
    kinds="fc",
    forward=library("log_ndtr"),
    ref="scipy.special.log_ndtr",
    # the density over the probability: neither is computed, as both vanish far out
    d=[lambda xp, x: math.sqrt(2 / math.pi) / xp.erfcx(-x / _ROOT_2)],
    domain=(-5, 2),
    doc="Logarithm of `ndtr`, exact where that would be 0 or 1.",
    example=("[-100.0, 0.0]", "[-5.0055244e+03 -6.9314718e-01]"),
)

# ---- gelu ----

_BLOCK = 2**16
"""Elements done at a time: twenty passes over them then read and write a cache."""

# Of Q(x) exp(x * x / 2) = t * P(t) with t = 1 / (1 + 0.32 x), for x >= 0, where Q is the
# probability that a standard normal number is above x: the minimax polynomial P, lowest term
# first, of relative error 3.2e-8.
_STEP = 0.32
_TAIL = (
    0.127661529,
    0.127660947,
    0.114622361,
    0.0878290722,
    0.0586541235,
    -0.00937805005,
    0.0653288569,
    -0.146708291,
    0.0954077055,
    -0.0210782686,
)


def _in_blocks(formula, x):
    flat = x.reshape(-1)
    out = np.empty_like(flat)
    for i in range(0, flat.size, _BLOCK):
        out[i : i + _BLOCK] = formula(flat[i : i + _BLOCK])
    return out.reshape(x.shape)


def _tail(x):
    """|x|, at most 40; the probability above it; and exp(-x * x / 2)."""
    x = np.minimum(np.abs(x), np.float32(40))  # where all is 0: an infinity would meet it
    t = 1 / (1 + _STEP * x)
    p = _TAIL[-1] * t
    for c in _TAIL[-2::-1]:
        p += c
        p *= t
    e = np.exp(-0.5 * x * x)
    p *= e
    return x, p, e


def _gelu(x):
    size, p, _ = _tail(x)
    return np.maximum(x, 0) - size * p


def _slope(x):
    size, p, e = _tail(x)
    return 0.5 + np.copysign(0.5 - p + size * e * (1 / _ROOT_2PI), x)


def gelu(xp, x):
    """`x` times the probability that a standard normal number is below `x`."""
    if xp is NUMPY and x.dtype == np.float32:
        return _in_blocks(_gelu, x)
    return 0.5 * x * xp.special.erfc(x / -_ROOT_2)  # 1 + erf would round to 0 from x = -6 on


def _gelu_slope(xp, x):
    if xp is NUMPY and x.dtype == np.float32:
        return _in_blocks(_slope, x)
    return 0.5 * xp.special.erfc(x / -_ROOT_2) + x * xp.lib.exp(-0.5 * x * x) / _ROOT_2PI


def _gelu_bend(xp, x):
    density = xp.exp(-0.5 * x * x) / _ROOT_2PI
    return xp.masked_multiply(density, 2 - x * x)  # far from 0, x * x may overflow


gelu_slope = elementwise(
    "gelu_slope(x)",
    forward=_gelu_slope,
    d=[_gelu_bend],
    ref=lambda x: NUMPY.special.ndtr(x) + x * np.exp(-x * x / 2) / np.sqrt(2 * np.pi),
    doc="The derivative of `gelu`.",
    example=("[0.0, 100.0]", "[0.5 1. ]"),
    cost=1,
)

# ---- the tanh form -----------------------------------------------------------------------

_ROOT_2_OVER_PI = math.sqrt(2 / math.pi)
_CUBE = 0.044715 * _ROOT_2_OVER_PI


def _tanh_parts(tanh, x):
    """The tanh, the slope of what it is of, and what of that slope grows with x."""
    square = x * x
    grows = 3 * _CUBE * square
    return tanh(x * (_ROOT_2_OVER_PI + _CUBE * square)), _ROOT_2_OVER_PI + grows, grows


def gelu_tanh(xp, x):
    """`gelu` by a tanh."""
    return 0.5 * x * (1 + xp.lib.tanh(x * (_ROOT_2_OVER_PI + _CUBE * (x * x))))


def _tanh_slope(xp, x):
    t, inner, _ = _tanh_parts(xp.lib.tanh, x)
    # far from 0, x * inner may overflow where 1 - t * t is 0
    return 0.5 * (1 + t + xp.masked_multiply(1 - t * t, x * inner))


def _tanh_bend(xp, x):
    t, inner, grows = _tanh_parts(xp.tanh, x)
    return xp.masked_multiply(1 - t * t, inner + grows - x * t * inner * inner)


def _tanh_slope_ref(x):
    u, inner = (np.sqrt(2 / np.pi) * (x + f * 0.044715 * x**3) for f in (1, 3))
    return 0.5 * (1 + np.tanh(u) + inner / np.cosh(u) ** 2)


gelu_tanh_slope = elementwise(
    "gelu_tanh_slope(x)",
    forward=_tanh_slope,
    d=[_tanh_bend],
    ref=_tanh_slope_ref,
    doc='The derivative of `gelu` with approximate="tanh".',
    example=("[0.0, 100.0]", "[0.5 1. ]"),
    cost=1,
)
