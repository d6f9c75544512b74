"""Elementwise ops: one partial derivative, or one rule, for each input.

Derivatives of complex ops are the complex derivatives; the gradient is g * conj(d), which is
TensorFlow's and torch's convention.
"""

from __future__ import annotations

import cmath
import math

import numpy as np

from gpugrad.core.backend import SCALARS
from gpugrad.core.samples import grid
from gpugrad.errors import ShapeError
from gpugrad.registry.on_arrays import typed
from gpugrad.registry.record import elementwise, op
from gpugrad.registry.rules import conjugate

LN2, LN10 = math.log(2.0), math.log(10.0)

# ---- arithmetic --------------------------------------------------------------------------


def _masked_multiply(xp, x, y):
    if type(y) in SCALARS:
        y = xp.lib.asarray(y, dtype=x.dtype)
    return x * xp.lib.where(x == 0, xp.lib.zeros_like(y), y)


def _masked_divide(xp, x, y):
    if type(y) in SCALARS:
        y = xp.lib.asarray(y, dtype=x.dtype)
    return x / xp.lib.where(x == 0, xp.lib.ones_like(y), y)


def _divide_x(xp, g, y):
    return g / y.conjugate() if type(y) in SCALARS else xp.masked_divide(g, conjugate(xp, y))


def _divide_y(xp, g, out, y):
    return -_divide_x(xp, xp.masked_multiply(g, conjugate(xp, out)), y)


# The masked ops are made for gradients, so what follows are second derivatives: those of a
# masked place are 0, also where a factor that meets it is infinite.


def _masked_multiply_x(xp, g, y):
    return xp.masked_multiply(g, conjugate(xp, y))


def _masked_multiply_y(xp, g, x):
    return xp.masked_multiply(conjugate(xp, x), g)


def _masked_divide_x(xp, g, y):
    if type(y) in SCALARS:
        return g / y.conjugate() if y else g * 0
    return xp.where(y == 0, 0, g) / xp.where(y == 0, 1, conjugate(xp, y))


def _masked_divide_y(xp, g, out, y):
    return -_masked_divide_x(xp, xp.masked_multiply(conjugate(xp, out), g), y)


_POWERS = {
    2: np.square,
    3: lambda x: np.square(x) * x,
    4: lambda x: np.square(np.square(x)),
    -2: lambda x: np.square(np.reciprocal(x)),
}


def _power(xp, x, y):
    """The library's; some as products, as in kernels: NumPy's of a number below 0 takes 0.1 us."""
    products = _POWERS.get(y) if type(y) is int or type(y) is float else None
    if products is None or type(x) is not np.ndarray or x.dtype.char not in "fd":
        return xp.lib.power(x, y)
    return products(x)


def _power_x(xp, g, x, y):
    if type(y) in SCALARS:
        if y == 0:
            return g * 0
        d = y * x ** (y - 1)
        smooth = y.imag == 0 and y.real >= 1
    else:  # x ** 0 is 1 everywhere: its derivative is 0 also at 0, where 0 * 0 ** -1 is not
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
    else:  # 0 where x <= 0: x ** y is there defined for whole y alone, which do not vary
        d = out * xp.log(xp.where(x > 0, x, 1))
        d = xp.where(x > 0, d, 0)
    return xp.masked_multiply(g, xp.conj(d) if d.dtype.kind == "c" else d)


add = elementwise(
    "add(x, y)",
    d=[1, 1],
    kinds="fci",
    doc="Sum, elementwise.",
    example=("[1.0, 2.0], 10.0", "[11. 12.]"),
)

subtract = elementwise(
    "subtract(x, y)",
    d=[1, -1],
    kinds="fci",
    doc="Difference, elementwise.",
    example=("[1.0, 2.0], 10.0", "[-9. -8.]"),
)

multiply = elementwise(
    "multiply(x, y)",
    d=[lambda xp, y: y, lambda xp, x: x],
    kinds="fci",
    doc="Product, elementwise.",
    example=("[1.0, 2.0], 10.0", "[10. 20.]"),
)

masked_multiply = elementwise(
    "masked_multiply(x, y)",
    vjp=[_masked_multiply_x, _masked_multiply_y],
    kinds="fc",
    jvp=[lambda xp, t, y: xp.masked_multiply(t, y), lambda xp, t, x: xp.masked_multiply(x, t)],
    forward=_masked_multiply,
    ref=lambda x, y: x * y,
    doc=(
        "Product that is 0 where `x` is 0, even if `y` is infinite or not a number there. It "
        "keeps a masked branch from poisoning a gradient."
    ),
    example=("[0.0, 2.0], float('inf')", "[ 0. inf]"),
)

divide = elementwise(
    "divide(x, y)",
    vjp=[_divide_x, _divide_y],
    kinds="fc",
    jvp=[lambda xp, t, y: t / y, lambda xp, t, out, y: -t * out / y],
    domain=((-2, 2), (0.5, 2)),
    doc="Quotient, elementwise; integers give float64.",
    example=("[1.0, 2.0], 4.0", "[0.25 0.5 ]"),
)

masked_divide = elementwise(
    "masked_divide(x, y)",
    vjp=[_masked_divide_x, _masked_divide_y],
    kinds="fc",
    jvp=[
        lambda xp, t, y: xp.masked_divide(t, y),
        lambda xp, t, out, y: -xp.masked_divide(xp.masked_multiply(out, t), y),
    ],
    forward=_masked_divide,
    domain=((-2, 2), (0.5, 2)),
    ref="numpy.divide",
    doc="Quotient that is 0 where `x` is 0, even if `y` is 0 there.",
    example=("[0.0, 2.0], [0.0, 4.0]", "[0.  0.5]"),
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
    domain=((-2, 2), (0.5, 2)),
    kinds="fi",
    doc="What is left by `floor_divide`; has the sign of `y`.",
    example=("[7.0, -7.0], 4.0", "[3. 1.]"),
)

fmod = elementwise(
    "fmod(x, y)",
    d=[1, lambda xp, out, x, y: xp.round((out - x) / y)],
    kinds="fi",
    domain=((-2, 2), (0.5, 2)),
    doc="What is left by division rounded towards 0; has the sign of `x`.",
    example=("[7.0, -7.0], 4.0", "[ 3. -3.]"),
)

negative = elementwise(
    "negative(x)",
    d=[-1],
    kinds="fci",
    doc="The number with the other sign.",
    example=("[1.0, -2.0]", "[-1.  2.]"),
)

positive = elementwise(
    "positive(x)",
    d=[1],
    kinds="fci",
    doc="The number itself, as a new tensor.",
    example=("[1.0, -2.0]", "[ 1. -2.]"),
)

abs_ = elementwise(
    "abs(x)",
    vjp=[lambda xp, g, x: g * xp.sign(x)],
    kinds="fci",
    jvp=[lambda xp, t, x: xp.real(xp.conj(xp.sign(x)) * t)],
    doc="Distance from 0. The gradient at 0 is 0.",
    example=("[-1.5, 0.0]", "[1.5 0. ]"),
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
)

power = elementwise(
    "power(x, y)",
    vjp=[_power_x, _power_y],
    kinds="fc",
    domain=((0.5, 2), (-2, 2)),
    forward=_power,
    keeps_half=True,
    ref="numpy.power",
    doc=(
        "`x` to the power `y`. The gradient by `y` is 0 where `x` is not positive, that of "
        "``x ** 0`` is 0 also at 0."
    ),
    example=("[1.0, 2.0, 3.0], 2.0", "[1. 4. 9.]"),
)

square = elementwise(
    "square(x)",
    d=[lambda xp, x: 2 * x],
    kinds="fci",
    doc="The number times itself.",
    example=("[1.0, 2.0, 3.0]", "[1. 4. 9.]"),
)

sqrt = elementwise(
    "sqrt(x)",
    d=[lambda xp, out: 0.5 / out],
    singular=True,
    domain=(0.5, 3),
    kinds="fc",
    doc="Square root.",
    example=("[4.0, 9.0]", "[2. 3.]"),
)

rsqrt = elementwise(
    "rsqrt(x)",
    d=[lambda xp, out: -0.5 * out * out * out],
    singular=True,
    domain=(0.5, 3),
    kinds="fc",
    forward=lambda xp, x: 1 / xp.lib.sqrt(x),
    ref=lambda x: x**-0.5,
    doc="One over the square root.",
    example=("[4.0, 16.0]", "[0.5  0.25]"),
)

cbrt = elementwise(
    "cbrt(x)",
    d=[lambda xp, out: 1 / (3 * out * out)],
    singular=True,
    domain=(0.5, 3),
    doc="Cube root.",
    example=("[1.0, 8.0]", "[1. 2.]"),
)

reciprocal = elementwise(
    "reciprocal(x)",
    d=[lambda xp, out: -out * out],
    singular=True,
    domain=(0.5, 3),
    kinds="fc",
    doc="One over the number.",
    example=("[4.0, -2.0]", "[ 0.25 -0.5 ]"),
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
    doc="`x` with the sign of `y`. There is no gradient by `y`.",
    example=("[1.0, -2.0], -0.0", "[-1. -2.]"),
)

# ---- exponentials and logarithms ---------------------------------------------------------

exp = elementwise(
    "exp(x)",
    d=[lambda xp, out: out],
    kinds="fc",
    doc="e to the power `x`.",
    example=("[0.0, 1.0]", "[1.       2.718282]"),
)

exp2 = elementwise(
    "exp2(x)",
    d=[lambda xp, out: out * LN2],
    kinds="fc",
    doc="2 to the power `x`.",
    example=("[0.0, 3.0]", "[1. 8.]"),
)

expm1 = elementwise(
    "expm1(x)",
    d=[lambda xp, out: out + 1],
    kinds="fc",
    doc="exp(x) - 1, exact for small `x`.",
    example=("[0.0, 1.0]", "[0.        1.7182819]"),
)

log = elementwise(
    "log(x)",
    d=[lambda xp, x: 1 / x],
    singular=True,
    domain=(0.5, 3),
    kinds="fc",
    doc="Natural logarithm.",
    example=("[1.0, 10.0]", "[0.        2.3025851]"),
)

log2 = elementwise(
    "log2(x)",
    d=[lambda xp, x: 1 / (x * LN2)],
    singular=True,
    domain=(0.5, 3),
    kinds="fc",
    doc="Logarithm to base 2.",
    example=("[1.0, 8.0]", "[0. 3.]"),
)

log10 = elementwise(
    "log10(x)",
    d=[lambda xp, x: 1 / (x * LN10)],
    singular=True,
    domain=(0.5, 3),
    kinds="fc",
    doc="Logarithm to base 10.",
    example=("[1.0, 10.0]", "[0. 1.]"),
)

log1p = elementwise(
    "log1p(x)",
    d=[lambda xp, x: 1 / (1 + x)],
    singular=True,
    domain=(-0.5, 3),
    kinds="fc",
    doc="log(1 + x), exact for small `x`.",
    example=("[0.0, 1.0]", "[0.        0.6931472]"),
)

logaddexp = elementwise(
    "logaddexp(x, y)",
    d=[lambda xp, x, y: xp.sigmoid(x - y), lambda xp, x, y: xp.sigmoid(y - x)],
    singular=True,
    doc="log(exp(x) + exp(y)), without overflow.",
    example=("1000.0, 1000.0", "1000.6932"),
)

# ---- trigonometric and hyperbolic --------------------------------------------------------

sin = elementwise(
    "sin(x)",
    d=[lambda xp, x: xp.cos(x)],
    kinds="fc",
    doc="Sine of an angle in radians.",
    example=("[0.0, 1.0]", "[0.       0.841471]"),
)

cos = elementwise(
    "cos(x)",
    d=[lambda xp, x: -xp.sin(x)],
    kinds="fc",
    doc="Cosine of an angle in radians.",
    example=("[0.0, 1.0]", "[1.        0.5403023]"),
)

tan = elementwise(
    "tan(x)",
    d=[lambda xp, out: 1 + out * out],
    domain=(-1, 1),
    kinds="fc",
    doc="Tangent of an angle in radians.",
    example=("[0.0, 1.0]", "[0.        1.5574077]"),
)

asin = elementwise(
    "asin(x)",
    forward="arcsin",
    d=[lambda xp, x: 1 / xp.sqrt((1 - x) * (1 + x))],
    singular=True,
    domain=(-0.8, 0.8),
    kinds="fc",
    doc="Inverse sine, in radians.",
    example=("[0.0, 1.0]", "[0.        1.5707964]"),
)

acos = elementwise(
    "acos(x)",
    forward="arccos",
    d=[lambda xp, x: -1 / xp.sqrt((1 - x) * (1 + x))],
    singular=True,
    domain=(-0.8, 0.8),
    kinds="fc",
    doc="Inverse cosine, in radians.",
    example=("[1.0, 0.0]", "[0.        1.5707964]"),
)

atan = elementwise(
    "atan(x)",
    forward="arctan",
    d=[lambda xp, x: 1 / (1 + x * x)],
    kinds="fc",
    doc="Inverse tangent, in radians.",
    example=("[0.0, 1.0]", "[0.        0.7853982]"),
)


def _over_square(xp, a, x, y):
    """Return a / (x^2 + y^2), and 0 at the origin, where the angle has no direction.

    Squares would overflow and underflow, in float32 from 1e19 and 1e-23 on.
    """
    r = xp.hypot(x, y)
    return xp.masked_divide(xp.masked_divide(a, r), r)


atan2 = elementwise(
    "atan2(x, y)",
    forward="arctan2",
    d=[lambda xp, x, y: _over_square(xp, y, x, y), lambda xp, x, y: -_over_square(xp, x, x, y)],
    doc=(
        "Angle of the point with ordinate `x` and abscissa `y`, in radians. The gradient at 0 is 0."
    ),
    example=("1.0, -1.0", "2.3561945"),
)

sinh = elementwise(
    "sinh(x)",
    d=[lambda xp, x: xp.cosh(x)],
    kinds="fc",
    doc="Hyperbolic sine.",
    example=("[0.0, 1.0]", "[0.        1.1752012]"),
)

cosh = elementwise(
    "cosh(x)",
    d=[lambda xp, x: xp.sinh(x)],
    kinds="fc",
    doc="Hyperbolic cosine.",
    example=("[0.0, 1.0]", "[1.        1.5430807]"),
)

tanh = elementwise(
    "tanh(x)",
    d=[lambda xp, out: 1 - out * out],
    kinds="fc",
    doc="Hyperbolic tangent.",
    example=("[0.0, 0.5]", "[0.        0.4621172]"),
)

asinh = elementwise(
    "asinh(x)",
    forward="arcsinh",
    d=[lambda xp, x: 1 / xp.sqrt(x * x + 1)],
    kinds="fc",
    doc="Inverse hyperbolic sine.",
    example=("[0.0, 1.0]", "[0.        0.8813736]"),
)

acosh = elementwise(
    "acosh(x)",
    forward="arccosh",
    singular=True,
    domain=(1.5, 3),
    kinds="fc",
    # one root has other branch cuts; x + 1 would lose the sign of an imaginary -0.0
    d=[lambda xp, x: 1 / (xp.sqrt(x - 1) * xp.sqrt(-(-x - 1)))],
    doc="Inverse hyperbolic cosine.",
    example=("[1.0, 2.0]", "[0.       1.316958]"),
)

atanh = elementwise(
    "atanh(x)",
    forward="arctanh",
    d=[lambda xp, x: 1 / ((1 - x) * (1 + x))],
    singular=True,
    domain=(-0.8, 0.8),
    kinds="fc",
    doc="Inverse hyperbolic tangent.",
    example=("[0.0, 0.5]", "[0.         0.54930615]"),
)

deg2rad = elementwise(
    "deg2rad(x)", d=[math.pi / 180], doc="Degrees as radians.", example=("180.0", "3.1415927")
)

rad2deg = elementwise(
    "rad2deg(x)", d=[180 / math.pi], doc="Radians as degrees.", example=("3.1415927", "180.0")
)

erf = elementwise(
    "erf(x)",
    kinds="fc",
    forward=lambda xp, x: xp.special.erf(x),
    ref="scipy.special.erf",
    d=[lambda xp, x: (2 / math.sqrt(math.pi)) * xp.exp(-x * x)],
    doc="Error function, 2/sqrt(pi) times the integral of exp(-t^2) from 0 to `x`.",
    example=("[0.0, 1.0]", "[0.        0.8427008]"),
)

erfc = elementwise(
    "erfc(x)",
    kinds="fc",
    forward=lambda xp, x: xp.special.erfc(x),
    ref="scipy.special.erfc",
    d=[lambda xp, x: (-2 / math.sqrt(math.pi)) * xp.exp(-x * x)],
    doc="1 - erf(x), exact for large `x`.",
    example=("[0.0, 1.0]", "[1.        0.1572992]"),
)

# ---- complex -----------------------------------------------------------------------------

real = elementwise(
    "real(x)",
    kinds="fc",
    forward=lambda xp, x: xp.lib.real(x).copy(),
    ref="numpy.real",
    vjp=[lambda xp, g, x_dtype: xp.astype(g, x_dtype)],
    jvp=[lambda xp, t: xp.real(t)],
    doc="Real part.",
    example=("1 + 2j", "1.0"),
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
)

conj = elementwise(
    "conj(x)",
    vjp=[lambda xp, g: xp.conj(g)],
    jvp=[lambda xp, t: xp.conj(t)],
    kinds="fc",
    doc="Complex conjugate.",
    example=("1 + 2j", "(1-2j)"),
)

stop_gradient = elementwise(
    "stop_gradient(x)",
    differentiable=False,
    kinds="fci",
    forward=lambda xp, x: x,
    ref="numpy.positive",
    doc="The same values, as a constant: no gradient flows through.",
    example=("[1.0, 2.0]", "[1. 2.]"),
)


def _complex_forward(xp, x, y):
    """The sum ``x + 1j * y`` has a real part of NaN where y is infinite."""
    lib = xp.lib
    x, y = lib.broadcast_arrays(*(lib.asarray(a) for a in typed(x, y)))
    out = lib.empty(x.shape, dtype=lib.result_type(x, y, lib.complex64))
    out.real[...], out.imag[...] = x, y
    return out


def _complex_vjp(part):
    return lambda xp, g: getattr(xp, part)(g)


complex_ = elementwise(
    "complex(x, y)",
    vjp=[_complex_vjp("real"), _complex_vjp("imag")],
    kinds="f",
    jvp=[lambda xp, t: t + 0j, lambda xp, t: t * 1j],
    forward=_complex_forward,
    ref=lambda x, y: x + 1j * y,
    doc="Complex number with real part `x` and imaginary part `y`.",
    example=("1.0, 2.0", "(1+2j)"),
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
