"""The error function's relatives, the normal distribution, and `gelu`, which is built on it.

`erf` and `erfc` are in ops/math/transcendental. Far out, where a derivative is a small difference
of large numbers, it is the asymptotic series of that difference.

`gelu` has a polynomial of its own in float32: SciPy computes the error function in double
precision, element by element, at a tenth of the speed.
"""

import math

import numpy as np

from gpugrad.core.backend import NUMPY
from gpugrad.core.float_errors import no_overflow
from gpugrad.ops._blocks import in_blocks
from gpugrad.ops._scipy import library_has
from gpugrad.ops.special.common import double, horner, scipy_op
from gpugrad.registry.record import elementwise

_ROOT_PI, _ROOT_2, _ROOT_2PI = math.sqrt(math.pi), math.sqrt(2), math.sqrt(2 * math.pi)
_TAIL_TERMS = [math.prod(range(1, 2 * k + 2, 2)) for k in range(15, -1, -1)]


def _far(x):
    """From here on the asymptotic series below are exact to the last digit."""
    return 5.0 if x.dtype == np.float32 else 10.0


def _asymptotic_tail(xp, x, sign):
    """The sum of (2k + 1)!! (sign / (2 x^2))^k / x^2 from k = 0, for |x| > `_far`."""
    inverse = 1 / xp.where(xp.abs(x) > _far(x), x, _far(x))
    square = inverse * inverse
    return square * horner(0.5 * sign * square, _TAIL_TERMS)


def _erfcx_d(xp, out, x):
    """2 x erfcx(x) - 2 / sqrt(pi) (DLMF 7.12.1 for its series)."""
    near = 2 * x * xp.where(x > _far(x), 0, out) - 2 / _ROOT_PI
    return xp.where(x > _far(x), -_asymptotic_tail(xp, x, -1) / _ROOT_PI, near)


def _dawsn_d(xp, out, x):
    """1 - 2 x dawsn(x)."""
    return xp.where(xp.abs(x) > _far(x), -0.5 * _asymptotic_tail(xp, x, 1), 1 - 2 * x * out)


def _dawsn(xp, x):
    """Rybicki's sampling sum if the library lacks `dawsn`: exact to exp(-(pi / 2h)^2).

    Rybicki 1989, "Dawson's integral and the sampling theorem". Samples lie around the even
    multiple of h nearest to x, so that their number does not depend on x.
    """
    if library_has(xp, "dawsn"):
        return xp.special.dawsn(x)
    lib, h = xp.lib, 0.25
    x, dtype = double(xp, x)
    near = lib.abs(x) < 0.5
    small, middle = lib.where(near, x, 0.0), 2 * lib.round(x / (2 * h))
    total = 0 * x
    for k in range(-29, 30, 2):
        total = total + lib.exp(-((x - (middle + k) * h) ** 2)) / (middle + k)
    terms = [1 / math.prod(range(1, 2 * k + 2, 2)) for k in range(14, -1, -1)]
    series = horner(-2 * small * small, terms)
    return lib.where(near, small * series, total / _ROOT_PI).astype(dtype)


erfcx = scipy_op("erfcx(x)", _erfcx_d, kinds="fc")(
    doc="exp(x^2) erfc(x), which neither overflows nor vanishes for large `x`.",
    example=("[0.0, 10.0]", "[1.         0.05614099]"),
)

erfinv = scipy_op(
    "erfinv(x)",
    lambda xp, out: 0.5 * _ROOT_PI * xp.exp(out * out),
    singular=True,
    domain=(-0.9, 0.9),
    cpu=True,
)(
    doc="The number whose `erf` is `x`: infinite at -1 and 1, NaN beyond.",
    example=("[0.0, 0.5]", "[0.        0.4769363]"),
)

erfcinv = scipy_op(
    "erfcinv(x)",
    lambda xp, out: -0.5 * _ROOT_PI * xp.exp(out * out),
    singular=True,
    domain=(0.1, 1.9),
)(
    doc="The number whose `erfc` is `x`: infinite at 0 and 2, NaN beyond.",
    example=("[1.0, 0.5]", "[0.        0.4769363]"),
)

dawsn = scipy_op("dawsn(x)", _dawsn_d, forward=_dawsn)(
    doc="Dawson's integral, exp(-x^2) times the integral of exp(t^2) from 0 to `x`.",
    example=("[0.0, 1.0]", "[0.        0.5380795]"),
)

ndtr = scipy_op("ndtr(x)", lambda xp, x: xp.exp(-0.5 * x * x) / _ROOT_2PI, kinds="fc", cpu=True)(
    doc="The probability that a standard normal number is below `x`.",
    example=("[-10.0, 0.0]", "[7.619853e-24 5.000000e-01]"),
)

ndtri = scipy_op(
    "ndtri(p)",
    lambda xp, out: _ROOT_2PI * xp.exp(0.5 * out * out),
    singular=True,
    domain=(0.1, 0.9),
)(doc="The inverse of `ndtr`; NaN outside [0, 1].", example=("[0.5, 0.975]", "[0.       1.959964]"))


def _log_ndtr_d(xp, x):
    """Density / probability, which both underflow for negative x; there by their quotient."""
    if x.dtype.kind == "c":
        return math.sqrt(2 / math.pi) / xp.erfcx(-x / _ROOT_2)
    left = math.sqrt(2 / math.pi) / xp.erfcx(-xp.minimum(x, 0) / _ROOT_2)
    # for positive x the square of erfcx, in the second derivative, would overflow
    right = xp.maximum(x, 0)
    return xp.where(x < 0, left, xp.exp(-0.5 * right * right) / (_ROOT_2PI * xp.ndtr(right)))


log_ndtr = scipy_op("log_ndtr(x)", _log_ndtr_d, kinds="fc", domain=(-5, 2))(
    doc="Logarithm of `ndtr`, exact where that would be 0 or 1.",
    example=("[-100.0, 0.0]", "[-5.0055244e+03 -6.9314718e-01]"),
)


# With Q(x), x >= 0, the probability that a standard normal number is above x, and
# t = 1 / (1 + 0.32 x): Q(x) exp(x * x / 2) = t * P(t). These are the coefficients of the minimax
# polynomial P, lowest term first, with a relative error of 3.2e-8.
_STEP = 0.32
_TAIL = (
    0.127661529, 0.127660947, 0.114622361, 0.0878290722, 0.0586541235,
    -0.00937805005, 0.0653288569, -0.146708291, 0.0954077055, -0.0210782686,
)  # fmt: skip


_NOTHING = 40.0
"""From here on a normal number has probability 0 even in float64; 0 times infinity would be NaN."""


def _tail(x):
    """|x|, at most 40; the probability of a larger number; and exp(-x * x / 2)."""
    x = np.minimum(np.abs(x), np.float32(_NOTHING))
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
    below = p - size * e * (1 / _ROOT_2PI)  # the slope at -|x|
    return np.where(x < 0, below, 1 - below)


def gelu(xp, x):
    """`x` times the probability that a standard normal number is below `x`."""
    if xp is NUMPY and x.dtype == np.float32:
        return in_blocks(_gelu, x)
    return xp.lib.maximum(x, -_NOTHING) * xp.special.ndtr(x)


def _gelu_slope(xp, x):
    if xp is NUMPY and x.dtype == np.float32:
        return in_blocks(_slope, x)
    near = xp.lib.minimum(xp.lib.maximum(x, -_NOTHING), _NOTHING)
    return xp.special.ndtr(x) + near * (xp.lib.exp(-0.5 * x * x) * (1 / _ROOT_2PI))


def _gelu_second_derivative(xp, x):
    density = xp.exp(-0.5 * x * x) / _ROOT_2PI
    return xp.masked_multiply(density, 2 - x * x)  # far from 0, x * x may overflow


gelu_slope = elementwise(
    "gelu_slope(x)",
    cpu=True,
    forward=_gelu_slope,
    d=[_gelu_second_derivative],
    ref=lambda x: NUMPY.special.ndtr(x) + x * np.exp(-x * x / 2) / np.sqrt(2 * np.pi),
    doc="The derivative of `gelu`.",
    example=("[0.0, 100.0]", "[0.5 1. ]"),
    cost=1,
)


_ROOT_2_OVER_PI = math.sqrt(2 / math.pi)
_CUBE = 0.044715 * _ROOT_2_OVER_PI


def _tanh_parts(x):
    """The argument u of the tanh, its derivative, and the part of that that grows with x."""
    square = x * x
    grows = 3 * _CUBE * square
    return x * (_ROOT_2_OVER_PI + _CUBE * square), _ROOT_2_OVER_PI + grows, grows


def gelu_tanh(xp, x):
    """`gelu` by a tanh: x (1 + tanh(u)) / 2, which is x / (1 + exp(-2 u)) and loses no digits."""
    if xp is NUMPY:
        with no_overflow():
            return in_blocks(_gelu_tanh, x)
    return x / (1 + xp.lib.exp((-2 * _ROOT_2_OVER_PI - 2 * _CUBE * (x * x)) * x))


def _gelu_tanh(x):
    t = x * x
    t *= -2 * _CUBE
    t -= 2 * _ROOT_2_OVER_PI
    t *= x
    np.exp(t, out=t)
    t += 1
    return np.divide(x, t, out=t)


def _tanh_slope(xp, x):
    return in_blocks(lambda x: _tanh_slope_of(xp, x), x) if xp is NUMPY else _tanh_slope_of(xp, x)


def _tanh_slope_of(xp, x):
    """S + x u' (1 - tanh(u)^2) / 2 with s = 1 / (1 + exp(-2 u)), by e = exp(-2 |u|)."""
    u, inner, _ = _tanh_parts(x)
    e = xp.lib.exp(-2 * xp.lib.abs(u))
    share = 1 / (1 + e)
    # far from 0, x * inner may overflow where e is 0
    rest = xp.masked_multiply(e * share * share, x * inner)
    return share * xp.lib.where(u < 0, e, 1) + 2 * rest


def _tanh_second_derivative(xp, x):
    u, inner, grows = _tanh_parts(x)
    t = xp.tanh(u)
    return xp.masked_multiply(xp.tanh_slope(u, t), inner + grows - x * t * inner * inner)


def _tanh_slope_ref(x):
    u, inner = (np.sqrt(2 / np.pi) * (x + f * 0.044715 * x**3) for f in (1, 3))
    return 0.5 * (1 + np.tanh(u) + inner / np.cosh(u) ** 2)


gelu_tanh_slope = elementwise(
    "gelu_tanh_slope(x)",
    cpu=True,
    forward=_tanh_slope,
    d=[_tanh_second_derivative],
    ref=_tanh_slope_ref,
    doc='The derivative of `gelu` with approximate="tanh".',
    example=("[0.0, 100.0]", "[0.5 1. ]"),
    cost=1,
)
