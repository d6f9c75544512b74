"""NumPy's other elementwise functions: parts of floats, rounding, tests, integers."""

import math
import operator
from typing import Any

import ml_dtypes
import numpy as np

from gpugrad.core.arguments import FLAG, check_numbers
from gpugrad.core.backend import NUMPY, SCALARS, TENSOR
from gpugrad.core.samples import calls, grid, integers, shaped, uniform
from gpugrad.core.tensor import Tensor, tensor
from gpugrad.errors import DTypeError, ShapeError, saying_where
from gpugrad.registry.on_arrays import typed
from gpugrad.registry.record import elementwise, op

_TEXT: list[Any] = [(["text"], {}, DTypeError, "number")]
_SHAPES: list[Any] = [([np.ones(2), np.ones(3)], {}, ShapeError, r"\(2,\).*\(3,\)")]


def _step(signature, doc, example, kinds="fi", **more):
    """An elementwise op without a gradient."""
    return elementwise(
        signature, differentiable=False, kinds=kinds, doc=doc, example=example, **more
    )


fabs = elementwise(
    "fabs(x)",
    d=[lambda xp, x: xp.sign(x)],
    doc="Distance from 0 of a real number, as a float. The gradient at 0 is 0.",
    example=("[-1.5, 0.0]", "[1.5 0. ]"),
    cost=0,
)


def _preferring(name, which, better, result):
    """`maximum` or `minimum` that ignores NaNs; ``y != y`` says that y is NaN."""

    def first(xp, x, y):
        return xp.logical_or(better(x, y), y != y)

    return elementwise(
        f"{name}(x, y)",
        kinds="fci",
        d=[first, lambda xp, x, y: xp.logical_not(first(xp, x, y))],
        doc=f"The {which} of two; of a number and a NaN the number. Of equal ones the first "
        "gets the gradient.",
        example=("[1.0, float('nan')], 2.0", result),
        cost=0,
    )


fmax = _preferring("fmax", "larger", operator.ge, "[2. 2.]")
fmin = _preferring("fmin", "smaller", operator.le, "[1. 2.]")

heaviside = elementwise(
    "heaviside(x, y)",
    d=[0, lambda xp, x: x == 0],
    doc="0 where `x` is negative, 1 where it is positive, `y` where it is 0. Its gradient by "
    "`x` is 0, as that of a step.",
    example=("[-1.0, 0.0, 2.0], 0.5", "[0.  0.5 1. ]"),
    cost=0,
)


@op(
    kinds="fc",
    cpu=True,
    samples=grid(3),
    ref=lambda start, end, weight: start + weight * (end - start),
    errors=[([np.ones(2), np.ones(3), 0.5], {}, ShapeError, r"\(2,\).*\(3,\)|\(3,\).*\(2,\)")],
)
def lerp(xp, start, end, weight, /):
    """Linear interpolation: start + weight * (end - start), as torch's.

    Args:
        start, end: arrays, broadcast against each other; or a number.
        weight: array or number: 0 gives `start`, 1 gives `end`.

    Returns:
        Tensor of the broadcast shape.

    >>> print(gg.lerp([0.0, 2.0], [4.0, 4.0], 0.25))
    [1.  2.5]
    """
    if type(start) in SCALARS or type(end) in SCALARS:
        start, end = typed(start, end, weight)[:2]  # the difference of two numbers is not weak
    return start + weight * xp.subtract(end, start)


def _with_nan(rng):
    return np.array([math.nan, 1.5, rng.normal()])


@op(
    name="nan_to_num",
    kinds="fi",
    native_half=True,
    cpu=True,
    ref=lambda x, **how: np.nan_to_num(x, **how),
    samples=shaped([(2, 3)], [()], [(0,)], ([(2,)], {"nan": 1.0, "posinf": 2.0, "neginf": -2.0})),
    errors=_TEXT,
)
def _nan_to_num(xp, x, /, nan=0.0, posinf=None, neginf=None):
    """The op behind `gg.nan_to_num`."""
    keywords = {"nan": nan, "posinf": posinf, "neginf": neginf}
    check_numbers("nan_to_num", **{k: v for k, v in keywords.items() if v is not None})
    if x.dtype.kind == "c":
        parts = [xp.nan_to_num(part, **keywords) for part in (xp.real(x), xp.imag(x))]
        return xp.complex(*parts)
    if x.dtype.kind in "biu":
        return x
    if xp is NUMPY and np.isfinite(x).all():
        return x.copy()
    limit = float(ml_dtypes.finfo(x.dtype).max)
    y = xp.where(x != x, nan, x)
    y = xp.where(x == math.inf, limit if posinf is None else posinf, y)
    y = xp.where(x == -math.inf, -limit if neginf is None else neginf, y)
    return xp.astype(y, x.dtype)


@saying_where
def nan_to_num(x, /, copy=True, nan=0.0, posinf=None, neginf=None) -> Tensor:
    """Replace NaN and infinities by numbers; the gradient there is 0.

    Args:
        x: array of any shape; the parts of complex numbers are replaced separately.
        copy: False writes to `x`, which must be a Tensor, and returns it; differentiable.
        nan: number in the place of NaN.
        posinf, neginf: numbers in the place of infinities; None: the dtype's largest, smallest.

    Raises:
        DTypeError: `copy=False`, and `x` is not a Tensor.

    >>> print(gg.nan_to_num([1.0, float("nan"), float("inf")], posinf=9.0))
    [1. 0. 9.]
    """
    if copy is True or FLAG("nan_to_num", "copy", copy):
        return _nan_to_num(x, nan=nan, posinf=posinf, neginf=neginf)
    if not isinstance(x, Tensor):
        raise DTypeError(f"nan_to_num: copy=False writes to a Tensor, got a {type(x).__name__}.")
    x._begin_write()
    x[...] = _nan_to_num(x, nan=nan, posinf=posinf, neginf=neginf)
    return x


# ---- quotients and parts of floats -------------------------------------------------------


@op(name="divmod", outputs=2, kinds="fi", samples=grid(2, ((-4, 4), (0.5, 2))), errors=_SHAPES)
def divmod_(xp, x, y, /):
    """`floor_divide` and `remainder` at once; only the second has a gradient.

    Args:
        x, y: arrays, broadcast against each other; or a number.

    Returns:
        Two Tensors of the broadcast shape: whole quotients and remainders.

    >>> quotient, rest = gg.divmod([7.0, -7.0], 4.0)
    >>> print(quotient, rest)
    [ 1. -2.] [3. 1.]
    """
    return xp.floor_divide(x, y), xp.remainder(x, y)


@op(
    vjp=[lambda xp, g: g[0]], outputs=2, batch="stack", samples=grid(1), errors=_TEXT, captures=True
)
def modf(xp, x, /):
    """Fraction and whole part of numbers, both with their sign; the first has the gradient.

    Returns:
        Two Tensors of the shape of `x`: fractions, and whole parts.

    >>> fraction, whole = gg.modf([1.5, -2.25])
    >>> print(fraction, whole)
    [ 0.5  -0.25] [ 1. -2.]
    """
    return xp.lib.modf(x)


@op(
    vjp=[lambda xp, g, out: xp.ldexp(g[0], -out[1])],
    outputs=2,
    batch="stack",
    samples=grid(1, (0.55, 0.95)),
    errors=_TEXT,
    captures=True,
)
def frexp(xp, x, /):
    """Mantissa m and exponent e of numbers: x = m * 2**e with 0.5 <= abs(m) < 1.

    Returns:
        Tensor of mantissas, with the gradient of x / 2**e, and int32 Tensor of exponents.

    >>> mantissa, exponent = gg.frexp([3.0, 8.0])
    >>> print(mantissa, exponent)
    [0.75 0.5 ] [2 4]
    """
    return xp.lib.frexp(x)


def _ldexp_samples(rng):
    for x, y in (((3,), (3,)), ((), ()), ((2, 1), (3,)), ((0, 2), (2,))):
        yield [uniform(rng, *x), np.asarray(rng.integers(-3, 4, y))], {}


ldexp = elementwise(
    "ldexp(x, y)",
    forward=lambda xp, x, y: xp.lib.ldexp(x, y),
    ref="numpy.ldexp",
    vjp=[lambda xp, g, y: xp.ldexp(g, y), None],
    samples=_ldexp_samples,
    jvp=[lambda xp, t, y: xp.ldexp(t, y), None],
    errors=[([np.ones(2), np.arange(3)], {}, ShapeError, r"ldexp.*\(2,\).*\(3,\)")],
    doc="`x` times 2 to the power `y`, an integer: exact, without computing 2**y.",
    example=("[1.0, 3.0], [2, -1]", "[4.  1.5]"),
)

nextafter = elementwise(
    "nextafter(x, y)",
    d=[1, 0],
    doc="The next float from `x` on in the direction of `y`. The gradient goes to `x`.",
    example=("1.0, [0.0, 2.0]", "[0.99999994 1.0000001 ]"),
)


_SPACING = calls(
    lambda rng: [uniform(rng, 2, 3)],
    lambda rng: [np.array([0.0, 1.0, -4.0, math.inf])],
    lambda rng: [uniform(rng)],
)


@op(
    differentiable=False,
    native_half=True,
    batch="stack",
    samples=_SPACING,
    errors=_TEXT,
    captures=True,
)
def spacing(xp, x, /):
    """Distance to the next float away from 0, with the sign of `x`. Its gradient is None.

    Returns:
        Tensor of the shape and dtype of `x` (float64 for integers); NaN for infinities.

    >>> print(gg.spacing([1.0, -4.0]))
    [ 1.1920929e-07 -4.7683716e-07]
    """
    lib = xp.lib
    x = x.astype(np.float64) if x.dtype.kind in "biu" else x
    size = lib.abs(x)
    up = lib.nextafter(size, lib.full_like(size, math.inf))
    return lib.copysign(lib.where(lib.isinf(size), math.nan, up) - size, x).astype(x.dtype)


# ---- rounding ----------------------------------------------------------------------------

rint = _step(
    "rint(x)",
    "Nearest whole number, halves to the even one. Its gradient is None.",
    ("[0.5, 1.5, -1.2]", "[ 0.  2. -1.]"),
    kinds="f",
    cost=0,
)
fix = _step(
    "fix(x)",
    "Nearest whole number towards 0. Its gradient is None.",
    ("[1.5, -1.5]", "[ 1. -1.]"),
    kinds="f",
    forward="trunc",
)


@op(
    differentiable=False,
    batch="stack",
    kinds="fi",
    samples=shaped([(2, 3)], ([(3,)], {"decimals": 1}), ([()], {"decimals": 2})),
    errors=_TEXT,
    captures=True,
)
def around(xp, x, /, decimals=0):
    """Round to a number of decimals, halves to the even one. The gradient is None.

    Args:
        decimals: how many digits stay behind the point; negative ones count in front of it.

    >>> print(gg.around([1.26, -0.04], 1))
    [ 1.3 -0. ]
    """
    return xp.lib.around(x, decimals)


# ---- tests -------------------------------------------------------------------------------

_INF = "[1.0, float('inf'), -float('inf')]"
_COMPLEX = "[1 + 0j, 1j]"

isposinf = _step(
    "isposinf(x)",
    "Whether it is infinite and positive.",
    (_INF, "[False  True False]"),
    forward=lambda xp, x: x == math.inf,
)
isneginf = _step(
    "isneginf(x)",
    "Whether it is infinite and negative.",
    (_INF, "[False False  True]"),
    forward=lambda xp, x: x == -math.inf,
)
isreal = _step(
    "isreal(x)",
    "Whether the imaginary part is 0; True for real numbers.",
    (_COMPLEX, "[ True False]"),
    kinds="fci",
    forward=lambda xp, x: xp.lib.imag(x) == 0,
)
iscomplex = _step(
    "iscomplex(x)",
    "Whether the imaginary part is not 0.",
    (_COMPLEX, "[False  True]"),
    kinds="fci",
    forward=lambda xp, x: xp.lib.imag(x) != 0,
)


@op(
    differentiable=False,
    batch="stack",
    kinds="fc",
    samples=calls(
        lambda rng: [uniform(rng, 2, 3), uniform(rng, 3)],
        lambda rng: ([np.array([1.0, 2.0]), np.array([1.1, 2.9])], {"rtol": 0.2, "atol": 0.0}),
        lambda rng: ([_with_nan(rng), _with_nan(rng)], {"equal_nan": True}),
        lambda rng: ([uniform(rng), uniform(rng)], {"atol": 4.0}),
    ),
    errors=[([np.ones(2), np.ones(3)], {}, ShapeError, r"isclose.*\(2,\).*\(3,\)")],
    captures=True,
)
def isclose(xp, x, y, /, rtol=1e-5, atol=1e-8, equal_nan=False):
    """Whether abs(x - y) <= atol + rtol * abs(y), elementwise.

    Args:
        x, y: arrays, broadcast against each other; or a number.
        rtol, atol: numbers: the tolerances, relative to `y` and absolute.
        equal_nan: whether NaN is close to NaN.

    Returns:
        bool Tensor of the broadcast shape. It has no gradient.

    >>> print(gg.isclose([1.0, 2.0], [1.000001, 2.1]))
    [ True False]
    """
    return xp.lib.isclose(x, y, rtol=float(rtol), atol=float(atol), equal_nan=equal_nan)


_TWO: dict[str, Any] = {"kinds": "i", "samples": integers(2, -30, 31)}

gcd = _step("gcd(x, y)", "Greatest common divisor of integers.", ("[12, 7], 18", "[6 1]"), **_TWO)
lcm = _step("lcm(x, y)", "Least common multiple of integers.", ("[4, 7], 6", "[12 42]"), **_TWO)
bitwise_count = _step(
    "bitwise_count(x)",
    "The number of bits set in an integer's absolute value, as uint8.",
    ("[7, 8]", "[3 1]"),
    kinds="i",
    samples=integers(1, -30, 31),
)


@saying_where
def float_power(x, y, /) -> Tensor:
    """`power` in float64 (complex128 for complex numbers), as NumPy's float_power.

    Args:
        x, y: arrays, broadcast against each other; or a number.

    Returns:
        Tensor of the broadcast shape.

    Raises:
        ShapeError: the shapes do not broadcast.

    >>> print(gg.float_power([2, 4], -1))
    [0.5  0.25]
    """

    def wide(v):
        if type(v) in SCALARS:  # the other argument's dtype decides
            return v
        v = tensor(v)
        return TENSOR.astype(v, "complex128" if v.dtype.kind == "c" else "float64")

    return TENSOR.power(wide(tensor(x) if type(y) in SCALARS else x), wide(y))


@saying_where
def real_if_close(x, /, tol=100) -> Tensor:
    """The real part, if all imaginary parts are close to 0; else `x` itself.

    Args:
        x: array of any shape. The result depends on its values, so `vmap` refuses it.
        tol: how close, in units of the dtype's epsilon; absolute if at most 1.

    Returns:
        Tensor of the shape of `x`, real or complex.

    Raises:
        ArgumentError: inside `vmap`, where examples have different values.

    >>> print(gg.real_if_close([1 + 1e-9j, 2 + 0j]))
    [1. 2.]
    """
    x = tensor(x)
    if x.dtype.kind != "c":
        return x
    limit = tol * np.finfo(x.dtype).eps if tol > 1 else tol
    close = TENSOR.all(TENSOR.less(TENSOR.abs(TENSOR.imag(x)), float(limit)))
    return TENSOR.real(x) if close else x


def _angle_vjp(xp, g, x, deg):
    if x.dtype.kind != "c":  # 0 or pi: steps
        return g * 0
    g = g * (180 / math.pi) if deg else g
    size = xp.abs(x)  # its square may overflow
    return xp.masked_divide(xp.masked_divide(g * (1j * x), size), size)


def _angle_jvp(xp, t, x, deg):
    if x.dtype.kind != "c":
        return t * 0
    size = xp.abs(x)
    turned = xp.masked_divide(xp.imag(t * xp.conj(xp.masked_divide(x, size))), size)
    return turned * (180 / math.pi) if deg else turned


@op(
    vjp=[_angle_vjp],
    jvp=[_angle_jvp],
    kinds="fc",
    batch="stack",
    samples=shaped([(2, 3)], ([()], {"deg": True}), [(0, 2)]),
    errors=_TEXT,
    captures=True,
)
def angle(xp, x, /, deg=False):
    """Angle of a complex number, from -pi to pi. The gradient at 0 is 0.

    Args:
        x: array of any shape; the angle of a real number is 0 or pi, with gradient 0.
        deg: whether the result is in degrees.

    Returns:
        Real Tensor of the shape of `x`.

    >>> print(gg.angle([1j, -1 + 0j], deg=True))
    [ 90. 180.]
    """
    return xp.lib.angle(x, deg=deg)
