"""Exponentials, logarithms, trigonometric and hyperbolic functions, and the error function."""

import math
from typing import Any

import numpy as np

from gpugrad.kernels.cpu.large import FEW, MIDDLE, PLAIN
from gpugrad.ops._scipy import refuse_lack
from gpugrad.ops._slopes import has_vectors, of_result, slope_of_any, slope_of_many, smallest
from gpugrad.ops.math.arithmetic import LN2, LN10, POSITIVE, analytic, unless_infinite
from gpugrad.registry.record import elementwise
from gpugrad.registry.rules import conjugate

_IN_C: dict[str, Any] = {"cpu": True, "large": MIDDLE}
"""NumPy calls a function for each element, at least on processors without AVX-512."""

_WIDE: dict[str, Any] = {"cost": 1, "mixed": "float32"}
_SLOW: dict[str, Any] = _WIDE | _IN_C

# ---- exponentials and logarithms ---------------------------------------------------------

exp = analytic(
    "exp(x)", "e to the power `x`.", lambda xp, out: out, "[1.       2.718282]", cpu=True, **_WIDE
)
exp2 = analytic("exp2(x)", "2 to the power `x`.", lambda xp, out: out * LN2, "[1. 2.]", **_SLOW)
expm1 = analytic(
    "expm1(x)",
    "exp(x) - 1, exact for small `x`.",
    lambda xp, x: xp.exp(x),  # out + 1 would be 0 from x = -17 on, in float32
    "[0.        1.7182819]",
    **_SLOW,
)

log = analytic(
    "log(x)",
    "Natural logarithm.",
    lambda xp, x: 1 / unless_infinite(x),
    "0.6931472",
    at="2.0",
    **POSITIVE,
    cpu=True,
    **_WIDE,
)
log2 = analytic(
    "log2(x)",
    "Logarithm to base 2.",
    lambda xp, x: (1 / LN2) / unless_infinite(x),
    "3.0",
    at="8.0",
    **POSITIVE,
    **_SLOW,
)
log10 = analytic(
    "log10(x)",
    "Logarithm to base 10.",
    lambda xp, x: (1 / LN10) / unless_infinite(x),
    "1.0",
    "10.0",
    **POSITIVE,
    **_SLOW,
)
log1p = analytic(
    "log1p(x)",
    "log(1 + x), exact for small `x`.",
    lambda xp, x: 1 / (1 + unless_infinite(x)),
    "[0.        0.6931472]",
    singular=True,
    domain=(-0.5, 3),
    **_SLOW,
)

logaddexp = elementwise(
    "logaddexp(x, y)",
    d=[lambda xp, x, y: xp.sigmoid(x - y), lambda xp, x, y: xp.sigmoid(y - x)],
    singular=True,
    doc="log(exp(x) + exp(y)), without overflow.",
    example=("1000.0, 1000.0", "1000.6932"),
    mixed="float32",
    **_IN_C,
)

# ---- trigonometric and hyperbolic --------------------------------------------------------

_INSIDE: dict[str, Any] = {"domain": (-0.8, 0.8), "singular": True}


# Slopes are ops of their own where the derivative of their formula would cancel. Each has a
# derivative without a difference, of any order.

asin_slope = analytic(
    "asin_slope(x)",
    "The derivative of `asin`.",
    lambda xp, out, x: x * out * out * out,
    "[1.        1.1547005]",
    at="[0.0, 0.5]",
    forward=lambda xp, x: 1 / xp.lib.sqrt((1 - x) * (1 + x)),
    ref=lambda x: (1 - x * x) ** -0.5,
    **_INSIDE,
)
atanh_slope = analytic(
    "atanh_slope(x)",
    "The derivative of `atanh`.",
    lambda xp, out, x: 2 * x * out * out,
    "[1.        1.3333334]",
    at="[0.0, 0.5]",
    forward=lambda xp, x: 1 / ((1 - x) * (1 + x)),
    ref=lambda x: 1 / (1 - x * x),
    **_INSIDE,
)


def _sech_squared(xp, x, y):
    """Q (2 - q) with q = 2 / (1 + e^(2 |x|)), which is 1 - |y|: C++ computes it in tanh, too."""
    if x.dtype.kind == "c":
        t = xp.lib.tanh(x)
        return 1 - t * t
    size = xp.lib.abs(x)
    q = 2 / (xp.lib.exp(size + size) + 1)
    return q * (2 - q)


def _one_minus_square(y, one, out):
    np.multiply(y, y, out)
    np.subtract(one, out, out)
    return smallest(out)


def _sech_squared_of_many(x, y, one, out):
    """1 / cosh(x)^2, or 4 / (e^x + e^-x)^2: more CPUs have vector instructions for exp."""
    if has_vectors(np.cosh):
        np.cosh(x, out)
        out *= out
        np.divide(one, out, out)
    else:
        np.exp(x, out)
        out += one / out
        out *= out
        np.divide(4 * one, out, out)


_MINUS_TWO = {c: np.asarray(-2, c) for c in "fd"}


def _tanh_slope(x, y, out=None):
    if out is None and not (type(x) is type(y) and type(x) in PLAIN and x.shape == y.shape):
        return slope_of_any(_sech_squared, x, y)
    power = _MINUS_TWO.get(x.dtype.char)
    if power is None:
        return slope_of_any(_sech_squared, x, y)
    if x.size <= FEW:
        return np.power(np.cosh(x, out), power, out)
    return slope_of_many("tanh_slope", _one_minus_square, _sech_squared_of_many, x, y, out)


tanh_slope = elementwise(
    "tanh_slope(x, y)",
    vjp=[lambda xp, g, out, x: g * conjugate(xp, -2 * out * xp.tanh(x)), None],
    jvp=[lambda xp, t, out, x: t * (-2 * out * xp.tanh(x)), None],
    kinds="fc",
    forward=_sech_squared,
    numpy=_tanh_slope,
    samples=of_result(np.tanh),
    ref=lambda x, y: 1 - np.tanh(x) ** 2,
    doc="The derivative of `tanh` at `x`, given `y` = tanh(x), which saves time. There is no "
    "gradient by `y`: that by `x` is the whole one.",
    example=("20.0, gg.tanh(20.0)", "1.6993417e-17"),
    cost=1,
)


def _acosh_slope(xp, x):
    """1 / sqrt(x^2 - 1), in two roots for its branch cuts; x + 1 would lose the sign of -0j."""
    x = unless_infinite(x)
    return 1 / (xp.sqrt(x - 1) * xp.sqrt(-(-x - 1)))


def _asinh_slope(xp, x):
    x = unless_infinite(x)
    return 1 / (xp.sqrt(x * x + 1) if x.dtype.kind == "c" else xp.hypot(x, 1))


sin = analytic(
    "sin(x)", "Sine of an angle in radians.", lambda xp, x: xp.cos(x), "[0.       0.841471]", cost=1
)
cos = analytic(
    "cos(x)",
    "Cosine of an angle in radians.",
    lambda xp, x: -xp.sin(x),
    "[1.        0.5403023]",
    cost=1,
)
tan = analytic(
    "tan(x)",
    "Tangent of an angle in radians.",
    lambda xp, out: 1 + out * out,
    "[0.        1.5574077]",
    domain=(-1, 1),
    mixed="float32",
    **_IN_C,
)
asin = analytic(
    "asin(x)",
    "Arcsine, in radians.",
    lambda xp, x: xp.asin_slope(x),
    "1.5707964",
    "1.0",
    forward="arcsin",
    **_INSIDE,
    **_IN_C,
)
acos = analytic(
    "acos(x)",
    "Arccosine, in radians.",
    lambda xp, x: -xp.asin_slope(x),
    "[1.5707964 0.       ]",
    forward="arccos",
    **_INSIDE,
    **_IN_C,
)
atan = analytic(
    "atan(x)",
    "Arctangent, in radians.",
    lambda xp, x: 1 / (1 + x * x),
    "[0.        0.7853982]",
    forward="arctan",
    cost=1,
    **_IN_C,
)


def _over_square(xp, a, x, y):
    """Return a / (x^2 + y^2), and 0 at the origin, where the angle has no direction.

    Squares would overflow from 1e19 and underflow from 1e-23 on, in float32.
    """
    r = xp.hypot(x, y)
    return xp.masked_divide(xp.masked_divide(a, r), r)


atan2 = elementwise(
    "atan2(x, y)",
    forward="arctan2",
    d=[lambda xp, x, y: _over_square(xp, y, x, y), lambda xp, x, y: -_over_square(xp, x, x, y)],
    doc="Angle of the point with ordinate `x` and abscissa `y`, in radians. The gradient at 0"
    " is 0.",
    example=("1.0, -1.0", "2.3561945"),
    **_IN_C,
)

sinh = analytic(
    "sinh(x)", "Hyperbolic sine.", lambda xp, x: xp.cosh(x), "[0.        1.1752012]", **_SLOW
)
cosh = analytic(
    "cosh(x)", "Hyperbolic cosine.", lambda xp, x: xp.sinh(x), "[1.        1.5430807]", **_SLOW
)
tanh = analytic(
    "tanh(x)",
    "Hyperbolic tangent.",
    lambda xp, out, x: xp.tanh_slope(x, out),
    "[0.        0.7615942]",
    cpu=True,
    cost=1,
)
asinh = analytic(
    "asinh(x)",
    "Inverse hyperbolic sine.",
    _asinh_slope,
    "[0.        0.8813736]",
    forward="arcsinh",
    **_IN_C,
)
acosh = analytic(
    "acosh(x)",
    "Inverse hyperbolic cosine.",
    _acosh_slope,
    "[0.       1.316958]",
    at="[1.0, 2.0]",
    forward="arccosh",
    singular=True,
    domain=(1.5, 3),
    **_IN_C,
)
atanh = analytic(
    "atanh(x)",
    "Inverse hyperbolic tangent.",
    lambda xp, x: xp.atanh_slope(x),
    "[0.         0.54930615]",
    at="[0.0, 0.5]",
    forward="arctanh",
    **_INSIDE,
    **_IN_C,
)

deg2rad = elementwise(
    "deg2rad(x)", d=[math.pi / 180], doc="Degrees as radians.", example=("180.0", "3.1415927")
)
rad2deg = elementwise(
    "rad2deg(x)", d=[180 / math.pi], doc="Radians as degrees.", example=("3.1415927", "180.0")
)


def _erf(xp, x):  # `library` would add half of the time of a small array
    try:
        return xp.special.erf(x)
    except TypeError as error:
        refuse_lack(xp, "erf", (x,), error)
        raise


def _erfc(xp, x):
    try:
        return xp.special.erfc(x)
    except TypeError as error:
        refuse_lack(xp, "erfc", (x,), error)
        raise


erf = analytic(
    "erf(x)",
    "Error function, 2/sqrt(pi) times the integral of exp(-t^2) from 0 to `x`.",
    lambda xp, x: (2 / math.sqrt(math.pi)) * xp.exp(-x * x),
    "[0.        0.8427008]",
    forward=_erf,
    cpu=True,
    ref="scipy.special.erf",
    cost=1,
)
erfc = analytic(
    "erfc(x)",
    "1 - erf(x), exact for large `x`.",
    lambda xp, x: (-2 / math.sqrt(math.pi)) * xp.exp(-x * x),
    "[1.        0.1572992]",
    forward=_erfc,
    cpu=True,
    ref="scipy.special.erfc",
    cost=1,
)
