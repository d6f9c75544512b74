"""Arithmetic, powers, signs and rounding: one partial derivative, or one rule, for each input.

Derivatives of complex ops are the complex derivatives; the gradient is g * conj(d), which is
TensorFlow's and torch's convention.
"""

import cmath
import math
from typing import Any

import numpy as np

from gpugrad.core.backend import NUMPY, SCALARS
from gpugrad.core.samples import grid
from gpugrad.errors import ShapeError
from gpugrad.kernels.codegen.powers import by_products
from gpugrad.kernels.cpu.large import MIDDLE, kernels
from gpugrad.registry.record import elementwise, op
from gpugrad.registry.rules import conjugate

LN2, LN10 = math.log(2.0), math.log(10.0)

# ---- arithmetic --------------------------------------------------------------------------


def _masked_multiply(xp, x, y):
    if type(y) in SCALARS:
        y = xp.lib.asarray(y, dtype=xp.lib.result_type(x, y))
    return x * xp.lib.where(x == 0, y.dtype.type(0), y)


def _masked_divide(xp, x, y):
    if type(y) in SCALARS:
        y = xp.lib.asarray(y, dtype=xp.lib.result_type(x, y))
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


def _power(xp, x, y):
    is_float = type(x) is np.ndarray and x.dtype.char in "fd"
    product = by_products(np, x, y) if is_float else None
    return xp.lib.power(x, y) if product is None else product


def is_complex(x: Any) -> bool:
    """Whether an array or a Python number is complex."""
    return isinstance(x, complex) if type(x) in SCALARS else x.dtype.kind == "c"


def _power_x(xp, g, x, y):
    if type(y) in SCALARS:
        if y == 0:
            return g * 0
        rises_slowly = y.imag == 0 and 0 < y.real < 1
        d = y * (x if y == 2 else xp.power(unless_infinite(x) if rises_slowly else x, y - 1))
        smooth = y.imag == 0 and y.real >= 1
    else:  # x ** 0 is 1 everywhere: its derivative is 0 also at 0, where 0 * 0 ** -1 is not
        if not (is_complex(x) or is_complex(y)):
            x = xp.where((y > 0) & (y < 1), unless_infinite(x), x)
        d, smooth = xp.where(y == 0, 0, y * xp.power(x, xp.where(y == 0, 1, y - 1))), False
    if getattr(d, "dtype", g.dtype).kind == "c":
        d = xp.conj(d)
    return g * d if smooth else xp.masked_multiply(g, d)


def _power_y(xp, g, out, x):
    if type(x) in SCALARS:
        if not isinstance(x, complex) and x > 0:
            return g * conjugate(xp, out * math.log(x))
        if out.dtype.kind == "c":
            d = out * (cmath.log(x) if x else 0)
        else:
            d = xp.where(out != out, out, 0)
    elif out.dtype.kind == "c":
        x = xp.where(x == 0, 1, x)
        d = out * xp.log(x if x.dtype.kind == "c" else x + 0j)
    else:  # 0 where x <= 0: there x ** y is defined for whole numbers y only, and NaN for others
        d = out * xp.log(xp.where(x > 0, x, 1))
        d = xp.where((x > 0) | (out != out), d, 0)
    return xp.masked_multiply(g, xp.conj(d) if d.dtype.kind == "c" else d)


_POWERS = ((0.5, 2), (-2, 2))


def _power_samples(rng):
    yield from grid(2, _POWERS)(rng)
    for y in (3, -6, 0.5, -2.5, 0.3):
        yield [rng.uniform(0.5, 2, 3), y], {}


def analytic(signature, doc, d, result, at="[0.0, 1.0]", **more):
    """An op of one real or complex number and its derivative; `result` is printed for `at`."""
    return elementwise(signature, d=[d], kinds="fc", doc=doc, example=(at, result), **more)


POSITIVE: dict[str, Any] = {"singular": True, "domain": (0.5, 3)}
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
    cpu=True,
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
    cpu=True,
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
    cpu=True,
    large=MIDDLE,
    differentiable=False,
    kinds="fi",
    domain=((-4, 4), (0.5, 2)),
    doc="Largest whole number not above the quotient. Its gradient is None.",
    example=("[7.0, -7.0], 2.0", "[ 3. -4.]"),
)
remainder = elementwise(
    "remainder(x, y)",
    cpu=True,
    large=MIDDLE,
    d=[1, lambda xp, x, y: -xp.floor_divide(x, y)],
    singular=True,
    domain=_NONZERO,
    kinds="fi",
    doc="Remainder of `floor_divide`; has the sign of `y`.",
    example=("[7.0, -7.0], 4.0", "[3. 1.]"),
)
fmod = elementwise(
    "fmod(x, y)",
    cpu=True,
    large=MIDDLE,
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
    if xp is NUMPY and x.dtype.kind == "c" and x.size >= MIDDLE:
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
    cpu=True,
    large=MIDDLE,
)

power = elementwise(
    "power(x, y)",
    vjp=[_power_x, _power_y],
    singular=True,
    kinds="fc",
    forward=_power,
    native_half=True,
    cpu=True,
    samples=_power_samples,
    ref="numpy.power",
    doc="`x` to the power `y`. Of real numbers the gradient by `y` is 0 where `x` is not positive; "
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

sqrt = analytic(
    "sqrt(x)",
    "Square root. At 0 the slope is infinite: the gradient is 0 where a mask blocks it, and NaN "
    "for ``square(sqrt(x))``.",
    lambda xp, out: 0.5 / unless_infinite(out),
    "[2. 3.]",
    "[4.0, 9.0]",
    **POSITIVE,
    cost=0,
)
rsqrt = analytic(
    "rsqrt(x)",
    "One over the square root.",
    lambda xp, out: -0.5 * out * out * out,
    "[0.5  0.25]",
    at="[4.0, 16.0]",
    forward=lambda xp, x: 1 / xp.lib.sqrt(x),
    ref=lambda x: x**-0.5,
    **POSITIVE,
    cost=0,
    mixed="float32",
    cpu=True,
)
cbrt = elementwise(
    "cbrt(x)",
    d=[lambda xp, out: 1 / (3 * out * unless_infinite(out))],
    doc="Cube root.",
    example=("[1.0, 8.0]", "[1. 2.]"),
    **POSITIVE,
)
reciprocal = analytic(
    "reciprocal(x)",
    "1 / x.",
    lambda xp, out: -out * out,
    "[0.5 2. ]",
    "[2.0, 0.5]",
    **POSITIVE,
    cost=0,
    mixed="float32",
    cpu=True,
)

hypot = elementwise(
    "hypot(x, y)",
    d=[lambda xp, out, x: xp.masked_divide(x, out), lambda xp, out, y: xp.masked_divide(y, out)],
    doc="Length of the vector (x, y), without overflow. The gradient at (0, 0) is 0.",
    example=("3.0, 4.0", "5.0"),
    cpu=True,
    large=MIDDLE,
)

copysign = elementwise(
    "copysign(x, y)",
    vjp=[lambda xp, g, x, y: g * xp.sign(x) * xp.copysign(xp.abs(xp.sign(x)), y), None],
    jvp=[lambda xp, t, x, y: t * xp.sign(x) * xp.copysign(xp.abs(xp.sign(x)), y), None],
    cost=0,
    doc="`x` with the sign of `y`. There is no gradient by `y`.",
    example=("[1.0, -2.0], -0.0", "[-1. -2.]"),
    cpu=True,
    large=MIDDLE,
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
