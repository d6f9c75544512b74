"""Elementwise ops: one partial derivative, or one rule, for each input.

Derivatives of complex ops are the complex derivatives; the gradient is g * conj(d), which is
TensorFlow's and torch's convention.
"""

from __future__ import annotations

import cmath
import math
from typing import Any

import numpy as np

from gpugrad.core.backend import NUMPY, SCALARS
from gpugrad.core.samples import grid
from gpugrad.errors import DTypeError, ShapeError
from gpugrad.kernels.cpu.large import LARGE, kernels
from gpugrad.ops._scipy import refuse_lack
from gpugrad.ops._slopes import FEW, has_vectors, of_result, slope_of_any, slope_of_many, smallest
from gpugrad.registry.on_arrays import typed
from gpugrad.registry.record import elementwise, op
from gpugrad.registry.rules import conjugate

LN2, LN10 = math.log(2.0), math.log(10.0)

# ---- arithmetic --------------------------------------------------------------------------


def _masked_multiply(xp, x, y):
    if type(y) in SCALARS:
        y = xp.lib.asarray(y, dtype=x.dtype)
    return x * xp.lib.where(x == 0, y.dtype.type(0), y)


def _masked_divide(xp, x, y):
    if type(y) in SCALARS:
        y = xp.lib.asarray(y, dtype=x.dtype)
    return x / xp.lib.where(x == 0, y.dtype.type(1), y)


def _divide_x(xp, g, y):
    return g / y.conjugate() if type(y) in SCALARS else xp.masked_divide(g, conjugate(xp, y))


def _divide_y(xp, g, out, y):
    return -_divide_x(xp, xp.masked_multiply(g, conjugate(xp, out)), y)


# The masked ops occur in gradients, so the rules below make second derivatives: they are 0 at a
# masked place, also with an infinite factor.


def _masked_multiply_x(xp, g, y):
    return xp.masked_multiply(g, conjugate(xp, y))


def _masked_multiply_y(xp, g, x):
    return xp.masked_multiply(conjugate(xp, x), g)


def _quotient(xp, x, y):
    """The quotient, and 0 where `y` is 0: for second derivatives of norms at 0, a kink."""
    if type(y) in SCALARS:
        return x / y if y else x * 0
    return xp.where(y == 0, 0, x) / xp.where(y == 0, 1, y)


def _masked_divide_x(xp, g, y):
    return _quotient(xp, g, conjugate(xp, y))


def _masked_divide_y(xp, g, out, y):
    return -_masked_divide_x(xp, xp.masked_multiply(conjugate(xp, out), g), y)


def unless_infinite(x):
    """`x`, and NaN where it is infinite.

    The slopes of log, sqrt and other functions that grow without bound reach 0 at infinity. The
    infinity is mostly an overflow, as in log(1 + exp(x)). A gradient of exactly 0 would hide that:
    the infinite slope of exp would not change it.
    """
    return x + 0 * x


_POWERS = {
    2: np.square,
    3: lambda x: np.square(x) * x,
    4: lambda x: np.square(np.square(x)),
    -2: lambda x: np.square(np.reciprocal(x)),
}


def _power(xp, x, y):
    """Small powers are products, as in kernels: NumPy's power of a negative number takes 0.1 us."""
    products = _POWERS.get(y) if type(y) is int or type(y) is float else None
    if products is None or type(x) is not np.ndarray or x.dtype.char not in "fd":
        return xp.lib.power(x, y)
    return products(x)


def _power_x(xp, g, x, y):
    if type(y) in SCALARS:
        if y == 0:
            return g * 0
        rises_slowly = y.imag == 0 and 0 < y.real < 1
        d = y * (unless_infinite(x) if rises_slowly else x) ** (y - 1)
        smooth = y.imag == 0 and y.real >= 1
    else:  # x ** 0 is 1 everywhere: its derivative is 0 also at 0, where 0 * 0 ** -1 is not
        if getattr(x, "dtype", y.dtype).kind != "c" and y.dtype.kind != "c":
            x = xp.where((y > 0) & (y < 1), unless_infinite(x), x)
        d, smooth = xp.where(y == 0, 0, y * x ** xp.where(y == 0, 1, y - 1)), False
    if getattr(d, "dtype", g.dtype).kind == "c":
        d = xp.conj(d)
    return g * d if smooth else xp.masked_multiply(g, d)


def _power_y(xp, g, out, x):
    if type(x) in SCALARS:
        if not isinstance(x, complex):
            return g * 0 if x <= 0 else g * (out * math.log(x))
        d = out * cmath.log(x)
    elif x.dtype.kind == "c":
        d = out * xp.log(xp.where(x == 0, 1, x))
    else:  # 0 where x <= 0: there x ** y is defined for whole numbers y only
        d = out * xp.log(xp.where(x > 0, x, 1))
        d = xp.where(x > 0, d, 0)
    return xp.masked_multiply(g, xp.conj(d) if d.dtype.kind == "c" else d)


def _analytic(signature, doc, d, result, at="[0.0, 1.0]", **more):
    """An op of one real or complex number and its derivative; `result` is printed for `at`."""
    return elementwise(signature, d=[d], kinds="fc", doc=doc, example=(at, result), **more)


_POSITIVE: dict[str, Any] = {"singular": True, "domain": (0.5, 3)}
_NONZERO = ((-2, 2), (0.5, 2))
_PAIR = "[1.0, 2.0], 10.0"

add = elementwise(
    "add(x, y)", d=[1, 1], kinds="fci", doc="Sum.", example=(_PAIR, "[11. 12.]"), cost=0
)
subtract = elementwise(
    "subtract(x, y)",
    d=[1, -1],
    kinds="fci",
    doc="Difference.",
    example=(_PAIR, "[-9. -8.]"),
    cost=0,
)
multiply = elementwise(
    "multiply(x, y)",
    d=[lambda xp, y: y, lambda xp, x: x],
    kinds="fci",
    doc="Product, elementwise.",
    example=(_PAIR, "[10. 20.]"),
    cost=0,
)

masked_multiply = elementwise(
    "masked_multiply(x, y)",
    vjp=[_masked_multiply_x, _masked_multiply_y],
    jvp=[lambda xp, t, y: xp.masked_multiply(t, y), lambda xp, t, x: xp.masked_multiply(x, t)],
    kinds="fc",
    forward=_masked_multiply,
    ref=lambda x, y: x * y,
    doc="Product that is 0 where `x` is 0, even if `y` is infinite or not a number there. It "
    "keeps a masked branch from poisoning a gradient.",
    example=("[0.0, 2.0], float('inf')", "[ 0. inf]"),
    cost=0,
)

divide = elementwise(
    "divide(x, y)",
    vjp=[_divide_x, _divide_y],
    jvp=[lambda xp, t, y: t / y, lambda xp, t, out, y: -t * out / y],
    kinds="fc",
    domain=_NONZERO,
    doc="Quotient, elementwise; integers give float64.",
    example=("[1.0, 2.0], 4.0", "[0.25 0.5 ]"),
    cost=0,
)
masked_divide = elementwise(
    "masked_divide(x, y)",
    vjp=[_masked_divide_x, _masked_divide_y],
    jvp=[
        lambda xp, t, y: _quotient(xp, t, y),
        lambda xp, t, out, y: -_quotient(xp, xp.masked_multiply(out, t), y),
    ],
    kinds="fc",
    forward=_masked_divide,
    domain=_NONZERO,
    ref="numpy.divide",
    doc="Quotient that is 0 where `x` is 0, even if `y` is 0 there.",
    example=("[0.0, 2.0], [0.0, 4.0]", "[0.  0.5]"),
    cost=0,
)

floor_divide = elementwise(
    "floor_divide(x, y)",
    differentiable=False,
    kinds="fi",
    domain=((-4, 4), (0.5, 2)),
    doc="Largest whole number not above the quotient. Its gradient is None.",
    example=("[7.0, -7.0], 2.0", "[ 3. -4.]"),
)
remainder = elementwise(
    "remainder(x, y)",
    d=[1, lambda xp, x, y: -xp.floor_divide(x, y)],
    singular=True,
    domain=_NONZERO,
    kinds="fi",
    doc="Remainder of `floor_divide`; has the sign of `y`.",
    example=("[7.0, -7.0], 4.0", "[3. 1.]"),
)
fmod = elementwise(
    "fmod(x, y)",
    d=[1, lambda xp, out, x, y: xp.round((out - x) / y)],
    singular=True,
    kinds="fi",
    domain=_NONZERO,
    doc="Remainder of division rounded towards 0; has the sign of `x`.",
    example=("[7.0, -7.0], 4.0", "[ 3. -3.]"),
)

negative = elementwise(
    "negative(x)", d=[-1], kinds="fci", doc="-`x`.", example=("[1.0, -2.0]", "[-1.  2.]"), cost=0
)
positive = elementwise(
    "positive(x)",
    d=[1],
    kinds="fci",
    doc="A copy of `x`.",
    example=("[1.0, -2.0]", "[ 1. -2.]"),
    cost=0,
)


def _abs_vjp(xp, g, x):
    if xp is NUMPY and x.dtype.kind == "c" and x.size >= LARGE:
        result = kernels("phases").scaled_phases(g, x)
        if result is not NotImplemented:
            return result
    return g * xp.sign(x)


abs_ = elementwise(
    "abs(x)",
    vjp=[_abs_vjp],
    jvp=[lambda xp, t, x: xp.real(xp.conj(xp.sign(x)) * t)],
    kinds="fci",
    doc="Distance from 0. The gradient at 0 is 0.",
    example=("[-1.5, 0.0]", "[1.5 0. ]"),
    cost=0,
)


def _sign_vjp(xp, g, out, x):
    if x.dtype.kind != "c":
        return g * 0
    across = g - out * xp.real(xp.conj(out) * g)
    return xp.masked_divide(xp.where(xp.equal(x, 0), 0, across), xp.abs(x))


sign = elementwise(
    "sign(x)",
    vjp=[_sign_vjp],
    kinds="fc",
    doc="-1, 0 or 1, with gradient 0; a complex number over its absolute value.",
    example=("[-1.5, 0.0, 2.0]", "[-1.  0.  1.]"),
    cost=0,
)

power = elementwise(
    "power(x, y)",
    vjp=[_power_x, _power_y],
    kinds="fc",
    domain=((0.5, 2), (-2, 2)),
    forward=_power,
    native_half=True,
    ref="numpy.power",
    doc="`x` to the power `y`. The gradient by `y` is 0 where `x` is not positive, and "
    "for `y` = 0 the gradient by `x` is 0 also at 0.",
    example=("[1.0, 2.0, 3.0], 2.0", "[1. 4. 9.]"),
    cost=1,
    mixed="float32",
)

square = elementwise(
    "square(x)",
    d=[lambda xp, x: 2 * x],
    kinds="fci",
    doc="The number times itself.",
    example=("[1.0, 2.0, 3.0]", "[1. 4. 9.]"),
    cost=0,
)

sqrt = _analytic(
    "sqrt(x)",
    "Square root.",
    lambda xp, out: 0.5 / unless_infinite(out),
    "[2. 3.]",
    "[4.0, 9.0]",
    **_POSITIVE,
    cost=0,
)
rsqrt = _analytic(
    "rsqrt(x)",
    "One over the square root.",
    lambda xp, out: -0.5 * out * out * out,
    "[0.5  0.25]",
    at="[4.0, 16.0]",
    forward=lambda xp, x: 1 / xp.lib.sqrt(x),
    ref=lambda x: x**-0.5,
    **_POSITIVE,
    cost=0,
    mixed="float32",
)
cbrt = elementwise(
    "cbrt(x)",
    d=[lambda xp, out: 1 / (3 * out * unless_infinite(out))],
    doc="Cube root.",
    example=("[1.0, 8.0]", "[1. 2.]"),
    **_POSITIVE,
)
reciprocal = _analytic(
    "reciprocal(x)",
    "1 / x.",
    lambda xp, out: -out * out,
    "[0.5 2. ]",
    "[2.0, 0.5]",
    **_POSITIVE,
    cost=0,
    mixed="float32",
)

hypot = elementwise(
    "hypot(x, y)",
    d=[lambda xp, out, x: xp.masked_divide(x, out), lambda xp, out, y: xp.masked_divide(y, out)],
    doc="Length of the vector (x, y), without overflow. The gradient at (0, 0) is 0.",
    example=("3.0, 4.0", "5.0"),
)

copysign = elementwise(
    "copysign(x, y)",
    vjp=[lambda xp, g, x, y: g * xp.sign(x) * xp.copysign(xp.abs(xp.sign(x)), y), None],
    jvp=[lambda xp, t, x, y: t * xp.sign(x) * xp.copysign(xp.abs(xp.sign(x)), y), None],
    cost=0,
    doc="`x` with the sign of `y`. There is no gradient by `y`.",
    example=("[1.0, -2.0], -0.0", "[-1. -2.]"),
)

# ---- exponentials and logarithms ---------------------------------------------------------

exp = _analytic(
    "exp(x)",
    "e to the power `x`.",
    lambda xp, out: out,
    "[1.       2.718282]",
    cpu=True,
    cost=1,
    mixed="float32",
)
exp2 = _analytic(
    "exp2(x)", "2 to the power `x`.", lambda xp, out: out * LN2, "[1. 2.]", cost=1, mixed="float32"
)
expm1 = _analytic(
    "expm1(x)",
    "exp(x) - 1, exact for small `x`.",
    lambda xp, x: xp.exp(x),  # out + 1 would be 0 from x = -17 on, in float32
    "[0.        1.7182819]",
    cost=1,
    mixed="float32",
)

log = _analytic(
    "log(x)",
    "Natural logarithm.",
    lambda xp, x: 1 / unless_infinite(x),
    "0.6931472",
    at="2.0",
    **_POSITIVE,
    cost=1,
    mixed="float32",
)
log2 = _analytic(
    "log2(x)",
    "Logarithm to base 2.",
    lambda xp, x: (1 / LN2) / unless_infinite(x),
    "3.0",
    at="8.0",
    **_POSITIVE,
    cost=1,
    mixed="float32",
)
log10 = _analytic(
    "log10(x)",
    "Logarithm to base 10.",
    lambda xp, x: (1 / LN10) / unless_infinite(x),
    "1.0",
    "10.0",
    **_POSITIVE,
    cost=1,
    mixed="float32",
)
log1p = _analytic(
    "log1p(x)",
    "log(1 + x), exact for small `x`.",
    lambda xp, x: 1 / (1 + unless_infinite(x)),
    "[0.        0.6931472]",
    singular=True,
    domain=(-0.5, 3),
    cost=1,
    mixed="float32",
)

logaddexp = elementwise(
    "logaddexp(x, y)",
    d=[lambda xp, x, y: xp.sigmoid(x - y), lambda xp, x, y: xp.sigmoid(y - x)],
    singular=True,
    doc="log(exp(x) + exp(y)), without overflow.",
    example=("1000.0, 1000.0", "1000.6932"),
    mixed="float32",
)

# ---- trigonometric and hyperbolic --------------------------------------------------------

_INSIDE: dict[str, Any] = {"domain": (-0.8, 0.8), "singular": True}


# Slopes are ops of their own where the derivative of their formula would cancel. Each has a
# derivative without a difference, of any order.

asin_slope = _analytic(
    "asin_slope(x)",
    "The derivative of `asin`.",
    lambda xp, out, x: x * out * out * out,
    "[1.        1.1547005]",
    at="[0.0, 0.5]",
    forward=lambda xp, x: 1 / xp.lib.sqrt((1 - x) * (1 + x)),
    ref=lambda x: (1 - x * x) ** -0.5,
    **_INSIDE,
)
atanh_slope = _analytic(
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
    if out is None and not (type(x) is type(y) is np.ndarray and x.shape == y.shape):
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


sin = _analytic(
    "sin(x)", "Sine of an angle in radians.", lambda xp, x: xp.cos(x), "[0.       0.841471]", cost=1
)
cos = _analytic(
    "cos(x)",
    "Cosine of an angle in radians.",
    lambda xp, x: -xp.sin(x),
    "[1.        0.5403023]",
    cost=1,
)
tan = _analytic(
    "tan(x)",
    "Tangent of an angle in radians.",
    lambda xp, out: 1 + out * out,
    "[0.        1.5574077]",
    domain=(-1, 1),
    mixed="float32",
)
asin = _analytic(
    "asin(x)",
    "Arcsine, in radians.",
    lambda xp, x: xp.asin_slope(x),
    "1.5707964",
    "1.0",
    forward="arcsin",
    **_INSIDE,
)
acos = _analytic(
    "acos(x)",
    "Arccosine, in radians.",
    lambda xp, x: -xp.asin_slope(x),
    "[1.5707964 0.       ]",
    forward="arccos",
    **_INSIDE,
)
atan = _analytic(
    "atan(x)",
    "Arctangent, in radians.",
    lambda xp, x: 1 / (1 + x * x),
    "[0.        0.7853982]",
    forward="arctan",
    cost=1,
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
)

sinh = _analytic(
    "sinh(x)",
    "Hyperbolic sine.",
    lambda xp, x: xp.cosh(x),
    "[0.        1.1752012]",
    cost=1,
    mixed="float32",
)
cosh = _analytic(
    "cosh(x)",
    "Hyperbolic cosine.",
    lambda xp, x: xp.sinh(x),
    "[1.        1.5430807]",
    cost=1,
    mixed="float32",
)
tanh = _analytic(
    "tanh(x)",
    "Hyperbolic tangent.",
    lambda xp, out, x: xp.tanh_slope(x, out),
    "[0.        0.7615942]",
    cpu=True,
    cost=1,
)
asinh = _analytic(
    "asinh(x)", "Inverse hyperbolic sine.", _asinh_slope, "[0.        0.8813736]", forward="arcsinh"
)
acosh = _analytic(
    "acosh(x)",
    "Inverse hyperbolic cosine.",
    _acosh_slope,
    "[0.       1.316958]",
    at="[1.0, 2.0]",
    forward="arccosh",
    singular=True,
    domain=(1.5, 3),
)
atanh = _analytic(
    "atanh(x)",
    "Inverse hyperbolic tangent.",
    lambda xp, x: xp.atanh_slope(x),
    "[0.         0.54930615]",
    at="[0.0, 0.5]",
    forward="arctanh",
    **_INSIDE,
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


erf = _analytic(
    "erf(x)",
    "Error function, 2/sqrt(pi) times the integral of exp(-t^2) from 0 to `x`.",
    lambda xp, x: (2 / math.sqrt(math.pi)) * xp.exp(-x * x),
    "[0.        0.8427008]",
    forward=_erf,
    cpu=True,
    ref="scipy.special.erf",
    cost=1,
)
erfc = _analytic(
    "erfc(x)",
    "1 - erf(x), exact for large `x`.",
    lambda xp, x: (-2 / math.sqrt(math.pi)) * xp.exp(-x * x),
    "[1.        0.1572992]",
    forward=_erfc,
    cpu=True,
    ref="scipy.special.erfc",
    cost=1,
)

# ---- complex -----------------------------------------------------------------------------


def _write_imag(xp, x, part):
    if x.dtype.kind != "c":
        raise DTypeError(f"imag: a {x.dtype} array has no imaginary part to write to.")
    return xp.complex(xp.real(x), part)


real = elementwise(
    "real(x)",
    kinds="fc",
    forward=lambda xp, x: xp.lib.real(x).copy(),
    ref="numpy.real",
    vjp=[lambda xp, g, x_dtype: xp.astype(g, x_dtype)],
    jvp=[lambda xp, t: xp.real(t)],
    doc="Real part.",
    example=("1 + 2j", "1.0"),
    captures=True,
    writes=lambda xp, x, part: part if x.dtype.kind != "c" else xp.complex(part, xp.imag(x)),
)
imag = elementwise(
    "imag(x)",
    kinds="fc",
    forward=lambda xp, x: xp.lib.imag(x).copy(),
    ref="numpy.imag",
    vjp=[lambda xp, g, x_dtype: g * 1j if x_dtype.kind == "c" else g * 0],
    jvp=[lambda xp, t: xp.imag(t)],
    doc="Imaginary part.",
    example=("1 + 2j", "2.0"),
    writes=_write_imag,
)
conj = elementwise(
    "conj(x)",
    vjp=[lambda xp, g: xp.conj(g)],
    jvp=[lambda xp, t: xp.conj(t)],
    kinds="fc",
    doc="Complex conjugate.",
    example=("1 + 2j", "(1-2j)"),
    cost=0,
)

stop_gradient = elementwise(
    "stop_gradient(x)",
    differentiable=False,
    kinds="fci",
    forward=lambda xp, x: x,
    ref="numpy.positive",
    doc="The same values, as a constant: no gradient flows through.",
    example=("[1.0, 2.0]", "[1. 2.]"),
    captures=True,
    cost=0,
)


def _complex_forward(xp, x, y):
    """Parts are stored one by one: ``x + 1j * y`` has a real part of NaN where y is infinite."""
    lib = xp.lib
    x, y = lib.broadcast_arrays(*(lib.asarray(a) for a in typed(x, y)))
    if lib.result_type(x, y).kind == "c":  # storing a part would drop the imaginary part
        raise DTypeError("complex: the parts must be real. For complex ones write x + 1j * y.")
    out = lib.empty(x.shape, dtype=lib.result_type(x, y, lib.complex64))
    out.real[...], out.imag[...] = x, y
    return out


complex_ = elementwise(
    "complex(x, y)",
    vjp=[lambda xp, g: xp.real(g), lambda xp, g: xp.imag(g)],
    jvp=[lambda xp, t: t + 0j, lambda xp, t: t * 1j],
    forward=_complex_forward,
    ref=lambda x, y: x + 1j * y,
    doc="Complex number with real part `x` and imaginary part `y`.",
    example=("1.0, 2.0", "(1+2j)"),
    captures=True,
)


@op(
    kinds="fc",
    ref=lambda x, y: np.real((x - y) * np.conj(x - y)) + 0 * x,
    samples=grid(2),
    errors=[([np.ones(2), np.ones(3)], {}, ShapeError, "squared_difference")],
)
def squared_difference(xp, x, y, /):
    """|x - y|^2, elementwise.

    Args:
        x, y: arrays, broadcast against each other; or a number.

    Returns:
        Tensor of the broadcast shape.

    >>> print(gg.squared_difference([1.0, 5.0], 3.0))
    [4. 4.]
    """
    d = xp.subtract(x, y)
    return d * xp.conj(d) if d.dtype.kind == "c" else d * d
