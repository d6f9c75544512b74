"""Activations of neural networks."""

from __future__ import annotations

import math

import numpy as np

from gpugrad.backend import NUMPY
from gpugrad.errors import ArgumentError, DTypeError
from gpugrad.op import elementwise, op
from gpugrad.samples import shaped

relu = elementwise(
    "relu(x)", forward=lambda xp, x: xp.lib.maximum(x, 0), d=[lambda xp, out: out > 0],
    ref=lambda x: np.where(x < 0, 0, x),
    doc="`x` where it is positive, else 0. The gradient at 0 is 0.",
    example=("[-1.0, 0.0, 2.0]", "[0. 0. 2.]"),
)  # fmt: skip

relu6 = elementwise(
    "relu6(x)", forward=lambda xp, x: xp.lib.minimum(xp.lib.maximum(x, 0), 6),
    d=[lambda xp, out: xp.logical_and(out > 0, out < 6)], domain=(-2, 8),
    ref=lambda x: np.clip(x, 0, 6),
    doc="`x`, but not below 0 and not above 6. The gradient at both bounds is 0.",
    example=("[-1.0, 2.0, 9.0]", "[0. 2. 6.]"),
)  # fmt: skip

hardtanh = elementwise(
    "hardtanh(x)", forward=lambda xp, x: xp.lib.minimum(xp.lib.maximum(x, -1), 1),
    d=[lambda xp, out: xp.abs(out) < 1], ref=lambda x: np.clip(x, -1, 1),
    doc="`x`, but not below -1 and not above 1. The gradient at both bounds is 0.",
    example=("[-3.0, 0.5, 2.0]", "[-1.   0.5  1. ]"),
)  # fmt: skip

elu = elementwise(
    "elu(x)",
    forward=lambda xp, x: xp.lib.maximum(x, 0) + xp.lib.expm1(xp.lib.minimum(x, 0)),
    d=[lambda xp, out: xp.minimum(out, 0) + 1],
    ref=lambda x: np.where(x > 0, x, np.exp(x) - 1),
    doc="`x` where it is positive, else exp(x) - 1. The gradient at 0 is 1.",
    example=("[-100.0, 0.0, 2.0]", "[-1.  0.  2.]"),
)  # fmt: skip

# Klambauer et al. 2017, "Self-Normalizing Neural Networks": mean 0 and variance 1 are a fixed
# point of the activation with these two numbers.
SELU_SCALE, SELU_ALPHA = 1.0507009873554805, 1.6732632423543772

selu = elementwise(
    "selu(x)",
    forward=lambda xp, x: SELU_SCALE * xp.lib.maximum(x, 0)
    + (SELU_SCALE * SELU_ALPHA) * xp.lib.expm1(xp.lib.minimum(x, 0)),
    d=[lambda xp, out: xp.where(out >= 0, SELU_SCALE, out + SELU_SCALE * SELU_ALPHA)],
    ref=lambda x: 1.0507009873554805 * np.where(x > 0, x, 1.6732632423543772 * (np.exp(x) - 1)),
    doc=(
        "1.0507 times `x` where it is positive, else 1.7581 times (exp(x) - 1). The gradient at 0"
        " is 1.0507."
    ),
    example=("[0.0, 1.0]", "[0.       1.050701]"),
)  # fmt: skip

sigmoid = elementwise(
    "sigmoid(x)", forward=lambda xp, x: xp.special.expit(x), d=[lambda xp, out: out * (1 - out)],
    ref=lambda x: 1 / (1 + np.exp(-x)),
    doc="1 / (1 + exp(-x)), without overflow.",
    example=("[0.0, 100.0]", "[0.5 1. ]"),
)  # fmt: skip


def _softplus(xp, x):  # a tenth of the time of NumPy's logaddexp(x, 0)
    return xp.lib.maximum(x, 0) + xp.lib.log1p(xp.lib.exp(-xp.lib.abs(x)))


log_sigmoid = elementwise(
    "log_sigmoid(x)", forward=lambda xp, x: -_softplus(xp, -x),
    d=[lambda xp, out: -xp.expm1(out)],  # 1 - sigmoid(x)
    ref=lambda x: -np.log1p(np.exp(-x)),
    doc="Logarithm of the sigmoid of `x`, exact where the sigmoid itself would be 0 or 1.",
    example=("[-100.0, 0.0]", "[-100.          -0.6931472]"),
)  # fmt: skip

softplus = elementwise(
    "softplus(x)", forward=_softplus,
    d=[lambda xp, out: -xp.expm1(-out)],  # sigmoid(x)
    ref=lambda x: np.log1p(np.exp(x)),
    doc="log(1 + exp(x)), without overflow.",
    example=("[0.0, 100.0]", "[  0.6931472 100.       ]"),
)  # fmt: skip

softsign = elementwise(
    "softsign(x)", forward=lambda xp, x: x / (1 + xp.lib.abs(x)),
    # not (1 - |out|)^2, which is 0 where the result has rounded to 1
    d=[lambda xp, x: (1 + xp.abs(x)) ** -2.0],
    ref=lambda x: x / (1 + np.abs(x)),
    doc="x / (1 + |x|).",
    example=("[-1.0, 0.0, 3.0]", "[-0.5   0.    0.75]"),
)  # fmt: skip


def _silu_d(xp, x):
    s = xp.sigmoid(x)
    return s * (1 + x * (1 - s))


silu = elementwise(
    "silu(x)", forward=lambda xp, x: x * xp.special.expit(x), d=[_silu_d],
    ref=lambda x: x / (1 + np.exp(-x)),
    doc="`x` times its sigmoid, also called swish.",
    example=("[0.0, 100.0]", "[  0. 100.]"),
)  # fmt: skip


def _mish_d(xp, x):
    t = xp.tanh(xp.softplus(x))
    return t + x * (1 - t * t) * xp.sigmoid(x)


mish = elementwise(
    "mish(x)", forward=lambda xp, x: x * xp.lib.tanh(_softplus(xp, x)), d=[_mish_d],
    ref=lambda x: x * np.tanh(np.log1p(np.exp(x))),
    doc="`x` times tanh(softplus(x)).",
    example=("[0.0, 100.0]", "[  0. 100.]"),
)  # fmt: skip


def _with(*keywords):
    """Samples of an elementwise op with metadata: shapes by turns, for each set of keywords."""
    return shaped(*[([s], k) for k in keywords for s in ((3,), (), (0, 2), (2, 3))])


@op(
    vjp=[lambda xp, g, x, negative_slope: xp.where(x > 0, g, g * negative_slope)],
    samples=_with({}, {"negative_slope": 0.01}, {"negative_slope": -0.5}),
    ref=lambda x, negative_slope=0.2: np.where(x > 0, x, negative_slope * x),
    errors=[(["text"], {}, DTypeError, "number")],
)
def leaky_relu(xp, x, /, *, negative_slope=0.2):
    """`x` where it is positive, else `negative_slope` times `x`.

    Args:
        x: array, of any shape.
        negative_slope: number; also the gradient at 0. TensorFlow's default; torch's is 0.01.

    Returns:
        Tensor of the shape of `x`.

    >>> import gpugrad as gg
    >>> print(gg.leaky_relu([-1.0, 2.0]))
    [-0.2  2. ]
    """
    return xp.lib.maximum(x, 0) + negative_slope * xp.lib.minimum(x, 0)


ROOT_2, ROOT_2_OVER_PI = math.sqrt(2), math.sqrt(2 / math.pi)
GELU_CUBE = 0.044715


def _gelu_vjp(xp, g, x, approximate):
    if approximate == "tanh":
        t = xp.tanh(ROOT_2_OVER_PI * (x + GELU_CUBE * x * x * x))
        inner = ROOT_2_OVER_PI * (1 + 3 * GELU_CUBE * x * x)
        return g * (0.5 * (1 + t + x * (1 - t * t) * inner))
    cdf, pdf = 0.5 * xp.erfc(x / -ROOT_2), xp.exp(-0.5 * x * x) / math.sqrt(2 * math.pi)
    return g * (cdf + x * pdf)


def _gelu_ref(x, approximate="none"):
    if approximate == "tanh":
        return 0.5 * x * (1 + np.tanh(np.sqrt(2 / np.pi) * (x + 0.044715 * x**3)))
    return x * NUMPY.special.ndtr(x)


@op(
    vjp=[_gelu_vjp],
    samples=_with({}, {"approximate": "tanh"}),
    ref=_gelu_ref,
    errors=[([np.ones(3)], {"approximate": "erf"}, ArgumentError, "none.*tanh")],
)
def gelu(xp, x, /, *, approximate="none"):
    """`x` times the probability that a standard normal number is below `x`.

    Args:
        x: array, of any shape.
        approximate: ``"none"``, or ``"tanh"`` for the approximation by a tanh.

    Returns:
        Tensor of the shape of `x`.

    Raises:
        ArgumentError: `approximate` is neither.

    Hendrycks and Gimpel 2016, "Gaussian Error Linear Units".

    >>> import gpugrad as gg
    >>> print(gg.gelu([0.0, 100.0]))
    [  0. 100.]
    """
    if approximate == "tanh":
        return 0.5 * x * (1 + xp.lib.tanh(ROOT_2_OVER_PI * (x + GELU_CUBE * x * x * x)))
    if approximate != "none":
        raise ArgumentError(f"gelu: approximate={approximate!r} is neither 'none' nor 'tanh'.")
    return 0.5 * x * xp.special.erfc(x / -ROOT_2)  # 1 + erf would round to 0 from x = -6 on
