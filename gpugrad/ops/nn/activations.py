"""Activations of neural networks."""

import functools

import numpy as np

from gpugrad.core.backend import NUMPY
from gpugrad.core.float_errors import no_overflow
from gpugrad.kernels.cpu.large import FEW, PLAIN
from gpugrad.ops._blocks import in_blocks
from gpugrad.ops._slopes import ONE, of_result, slope_of_any, slope_of_many, smallest
from gpugrad.ops.special.common import horner
from gpugrad.registry.on_arrays import widened
from gpugrad.registry.record import elementwise
from gpugrad.registry.rules import conjugate

_smooth = functools.partial(elementwise, cpu=True, cost=1)
_cheap = functools.partial(elementwise, cpu=True, cost=0)
"""Declare activations with a loop in C: of functions such as exp, and of arithmetic alone."""


relu = _cheap(
    "relu(x)",
    forward=lambda xp, x: xp.lib.maximum(x, 0),
    d=[lambda xp, out: out > 0],
    ref=lambda x: np.where(x < 0, 0, x),
    doc="`x` where it is positive, else 0. The gradient at 0 is 0.",
    example=("[-1.0, 0.0, 2.0]", "[0. 0. 2.]"),
)

relu6 = elementwise(
    "relu6(x)",
    cpu=True,
    forward=lambda xp, x: xp.lib.minimum(xp.lib.maximum(x, 0), 6),
    d=[lambda xp, out: xp.logical_and(out > 0, out < 6)],
    domain=(-2, 8),
    ref=lambda x: np.clip(x, 0, 6),
    doc="`x`, but not below 0 and not above 6. The gradient at both bounds is 0.",
    example=("[-1.0, 2.0, 9.0]", "[0. 2. 6.]"),
    cost=0,
)

# Klambauer et al. 2017, "Self-Normalizing Neural Networks": mean 0 and variance 1 are a fixed
# point of the activation with these two numbers.
SELU_SCALE, SELU_ALPHA = 1.0507009873554805, 1.6732632423543772

selu = _smooth(
    "selu(x)",
    forward=lambda xp, x: (
        SELU_SCALE * xp.lib.maximum(x, 0)
        + (SELU_SCALE * SELU_ALPHA) * xp.lib.expm1(xp.lib.minimum(x, 0))
    ),
    # not out + SELU_SCALE * SELU_ALPHA, which is 0 where exp(x) has been rounded away
    d=[
        lambda xp, x: xp.where(
            x >= 0, SELU_SCALE, (SELU_SCALE * SELU_ALPHA) * xp.exp(xp.minimum(x, 0))
        )
    ],
    ref=lambda x: 1.0507009873554805 * np.where(x > 0, x, 1.6732632423543772 * (np.exp(x) - 1)),
    doc="1.0507 times `x` where it is positive, else 1.7581 times (exp(x) - 1). The gradient at 0"
    " is 1.0507.",
    example=("[0.0, 1.0]", "[0.       1.050701]"),
)


def _sigmoid(xp, x):
    """By NumPy's exp, as SciPy's expit takes six times as long; CuPy's is one kernel."""
    if x.dtype.kind == "c":  # exp of a part below 0, since 1 / (1 + inf) is NaN for complex inf
        left = x.real < 0
        e = xp.lib.exp(xp.lib.where(left, x, -x))
        return xp.lib.where(left, e, 1) / (1 + e)
    if xp is not NUMPY:
        return xp.special.expit(x)
    t = np.asarray(x * -1.0)  # not -x, which wraps around in unsigned integers
    with no_overflow():  # 1 / inf is right
        np.exp(t, out=t)
    t += 1
    return np.divide(1, t, out=t)


def _logistic_density(xp, x, y):
    """E / (1 + e)^2 with e = e^-|x|, which C++ computes in sigmoid, too."""
    if x.dtype.kind == "c":
        s = _sigmoid(xp, x)
        return s * (1 - s)
    e = xp.lib.exp(-xp.lib.abs(x))
    return e / xp.lib.square(1 + e)


def _times_rest(y, one, out):
    np.subtract(one, y, out)
    rest = smallest(out)
    out *= y
    return rest


def _over_one_plus_exp(x, y, one, out):
    """As 1 - sigmoid(x) is 1 / (1 + e^x)."""
    np.exp(x, out)
    out += one
    np.divide(y, out, out)


_HALF = {c: np.asarray(0.5, c) for c in "fd"}


def _sigmoid_slope(x, y, out=None):
    if out is None and not (type(x) is type(y) and type(x) in PLAIN and x.shape == y.shape):
        return slope_of_any(_logistic_density, x, y)
    half = _HALF.get(x.dtype.char)
    if half is None:
        return slope_of_any(_logistic_density, x, y)
    if x.size <= FEW:
        return np.divide(half, np.add(np.cosh(x, out), ONE[x.dtype.char], out), out)
    return slope_of_many("sigmoid_slope", _times_rest, _over_one_plus_exp, x, y, out)


sigmoid_slope = elementwise(
    "sigmoid_slope(x, y)",
    vjp=[lambda xp, g, out, x: g * conjugate(xp, -out * xp.tanh(0.5 * x)), None],
    jvp=[lambda xp, t, out, x: t * (-out * xp.tanh(0.5 * x)), None],
    kinds="fc",
    forward=_logistic_density,
    numpy=_sigmoid_slope,
    samples=of_result(lambda x: 1 / (1 + np.exp(-x))),
    ref=lambda x, y: 1 / ((1 + np.exp(-x)) * (1 + np.exp(x))),
    doc="The derivative of `sigmoid` at `x`, given `y` = sigmoid(x), which saves time. There is no "
    "gradient by `y`: that by `x` is the whole one.",
    example=("20.0, gg.sigmoid(20.0)", "2.0611537e-09"),
    cost=1,
)


sigmoid = _smooth(
    "sigmoid(x)",
    kinds="fc",
    forward=_sigmoid,
    d=[lambda xp, out, x: xp.sigmoid_slope(x, out)],
    ref=lambda x: 1 / (1 + np.exp(-x)),
    doc="1 / (1 + exp(-x)), without overflow.",
    example=("[0.0, 100.0]", "[0.5 1. ]"),
)


def plain_softplus(xp, x):
    """log(1 + exp(x)), in a tenth of the time of NumPy's logaddexp(x, 0)."""
    return xp.lib.maximum(x, 0) + xp.lib.log1p(xp.lib.exp(-xp.lib.abs(x)))


log_sigmoid = _smooth(
    "log_sigmoid(x)",
    forward=lambda xp, x: -plain_softplus(xp, -widened(x)),
    d=[lambda xp, out: -xp.expm1(out)],  # 1 - sigmoid(x)
    ref=lambda x: -np.log1p(np.exp(-x)),
    doc="Logarithm of the sigmoid of `x`, exact where the sigmoid itself would be 0 or 1.",
    example=("[-100.0, 0.0]", "[-100.          -0.6931472]"),
)

softsign = _cheap(
    "softsign(x)",
    forward=lambda xp, x: x / (1 + xp.lib.abs(x)),
    # not (1 - |out|)^2, which is 0 where the result has rounded to 1
    d=[lambda xp, x: (1 + xp.abs(x)) ** -2.0],
    ref=lambda x: x / (1 + np.abs(x)),
    doc="x / (1 + |x|).",
    example=("[-1.0, 0.0, 3.0]", "[-0.5   0.    0.75]"),
)


def _silu_slope(xp, x):
    s = _sigmoid(xp, x)
    return s * (1 + x * (1 - s))


silu_slope = _smooth(
    "silu_slope(x)",
    kinds="fc",
    forward=_silu_slope,
    d=[lambda xp, x: xp.sigmoid_slope(x, xp.sigmoid(x)) * (2 - x * xp.tanh(0.5 * x))],
    ref=lambda x: (1 + np.exp(-x) + x * np.exp(-x)) / (1 + np.exp(-x)) ** 2,
    doc="The derivative of `silu`.",
    example=("[0.0, 100.0]", "[0.5 1. ]"),
)

silu = _smooth(
    "silu(x)",
    kinds="fc",
    forward=lambda xp, x: x * _sigmoid(xp, x),
    d=[lambda xp, x: xp.silu_slope(x)],
    ref=lambda x: x / (1 + np.exp(-x)),
    doc="`x` times its sigmoid, also called swish.",
    example=("[0.0, 100.0]", "[  0. 100.]"),
)


def _mish_slope(xp, x):
    t = xp.lib.tanh(plain_softplus(xp, x))
    return t + x * (1 - t * t) * _sigmoid(xp, x)


def _mish_second_derivative(xp, x):
    """With t = tanh(softplus(x)) and its derivative w s: 2 w s + x w (s' - 2 t s^2)."""
    y, s = xp.softplus(x), xp.sigmoid(x)
    t = xp.tanh(y)
    bend = xp.sigmoid_slope(x, s) - 2 * t * s * s
    return xp.tanh_slope(y, t) * (2 * s + x * bend)


mish_slope = _smooth(
    "mish_slope(x)",
    forward=_mish_slope,
    d=[_mish_second_derivative],
    ref=lambda x: (
        np.tanh(np.log1p(np.exp(x))) + x / (1 + np.exp(-x)) / np.cosh(np.log1p(np.exp(x))) ** 2
    ),
    doc="The derivative of `mish`.",
    example=("[0.0, 100.0]", "[0.6 1. ]"),
)

mish = _smooth(
    "mish(x)",
    forward=lambda xp, x: x * xp.lib.tanh(plain_softplus(xp, x)),
    d=[lambda xp, x: xp.mish_slope(x)],
    ref=lambda x: x * np.tanh(np.log1p(np.exp(x))),
    doc="`x` times tanh(softplus(x)).",
    example=("[0.0, 100.0]", "[  0. 100.]"),
)

quick_gelu = _smooth(
    "quick_gelu(x)",
    forward=lambda xp, x: x * _sigmoid(xp, 1.702 * x),
    d=[lambda xp, x: xp.silu_slope(1.702 * x)],
    ref=lambda x: x / (1 + np.exp(-1.702 * x)),
    doc="`x` times the sigmoid of 1.702 times `x`: an approximation of `gelu`.",
    example=("[0.0, 100.0]", "[  0. 100.]"),
)

squared_relu = _cheap(
    "squared_relu(x)",
    forward=lambda xp, x: xp.lib.maximum(x, 0) ** 2,
    d=[lambda xp, x: 2 * xp.relu(x)],
    ref=lambda x: np.where(x > 0, x * x, 0),
    doc="The square of `relu`.",
    example=("[-1.0, 3.0]", "[0. 9.]"),
)

hardsigmoid = _cheap(
    "hardsigmoid(x)",
    forward=lambda xp, x: xp.lib.minimum(xp.lib.maximum(x + 3.0, 0), 6) / 6,
    d=[lambda xp, x: xp.astype(xp.abs(x) < 3, x.dtype) / 6],
    domain=(-5, 5),
    ref=lambda x: np.clip(x / 6 + 0.5, 0, 1),
    doc="x / 6 + 1/2, but not below 0 and not above 1. The gradient at both bounds is 0.",
    example=("[-9.0, 0.0, 1.5]", "[0.   0.5  0.75]"),
)

hardswish = _cheap(
    "hardswish(x)",
    forward=lambda xp, x: x * xp.lib.minimum(xp.lib.maximum(x + 3, 0), 6) / 6,
    d=[lambda xp, x: xp.where(xp.abs(x) < 3, x / 3 + 0.5, x > 0)],
    domain=(-5, 5),
    ref=lambda x: x * np.clip(x / 6 + 0.5, 0, 1),
    doc="`x` times `hardsigmoid` of `x`. The gradient is 0 at -3 and 1 at 3.",
    example=("[-9.0, 0.0, 9.0]", "[-0.  0.  9.]"),
)

# (x - tanh(x)) / x^3 as a polynomial of x^2 up to |x| = 0.3, highest power first. The last six
# are enough for float32.
_TANHSHRINK = (
    -1.5918905069328964e-05, 3.927832388331683e-05, -9.691537956929451e-05, 0.00023912911424355248,
    -0.000590027440945586, 0.0014558343870513183, -0.003592128036572481, 0.008863235529902197,
    -0.021869488536155203, 0.05396825396825397, -2 / 15, 1 / 3,
)  # fmt: skip


def _tanhshrink(xp, x):
    if xp is NUMPY and x.dtype.kind == "f":
        with no_overflow():
            return in_blocks(_tanhshrink_of_block, x)
    near = xp.lib.abs(x) < 0.3
    small = xp.lib.where(near, x, 0)
    square = small * small
    return xp.lib.where(near, small * square * horner(square, _TANHSHRINK), x - xp.lib.tanh(x))


def _tanhshrink_of_block(x):
    terms = _TANHSHRINK[-6:] if x.dtype == np.float32 else _TANHSHRINK
    square = x * x
    series = terms[0] * square
    for c in terms[1:]:
        series += c
        series *= square
    series *= x
    out = np.tanh(x)
    np.subtract(x, out, out=out)
    np.copyto(out, series, where=square < 0.09)
    return out


tanhshrink = _smooth(
    "tanhshrink(x)",
    kinds="fc",
    forward=_tanhshrink,
    d=[lambda xp, x: xp.square(xp.tanh(x))],
    ref=lambda x: x - np.tanh(x),
    doc="`x` minus its hyperbolic tangent.",
    example=("[0.0, 100.0]", "[ 0. 99.]"),
)
