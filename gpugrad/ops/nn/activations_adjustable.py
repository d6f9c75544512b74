"""Activations with parameters, such as the slope of `leaky_relu`."""

import numpy as np

from gpugrad.core.arguments import check_numbers
from gpugrad.core.backend import NUMPY
from gpugrad.core.samples import shaped
from gpugrad.errors import ArgumentError, DTypeError
from gpugrad.ops.nn.activations import plain_softplus
from gpugrad.ops.special import normal
from gpugrad.registry.record import op


def _with(*keywords):
    """Samples of an elementwise op with metadata: each set of keywords with several shapes."""
    return shaped(*[([s], k) for k in keywords for s in ((3,), (), (0, 2), (2, 3))])


def _activation(vjp, ref, keywords, wrong=None):
    """Declare an activation with parameters, from samples' keywords; `wrong` must fail."""
    errors = [(["text"], {}, DTypeError, "number")]
    if wrong is not None:
        ((name, value),) = wrong.items()
        errors.append(([np.ones(3)], wrong, ArgumentError, f"{name}={value}"))
    return op(
        vjp=[vjp],
        batch="stack",
        samples=_with(*keywords),
        ref=ref,
        errors=errors,
        by_element=True,
        cpu=True,
        captures=True,
    )


@_activation(
    lambda xp, g, out, min_val, max_val: xp.where(
        xp.logical_and(out > min_val, out < max_val), g, 0
    ),
    lambda x, min_val=-1.0, max_val=1.0: np.clip(x, min_val, max_val),
    [{}, {"min_val": -0.5, "max_val": 1.5}],
    wrong={"min_val": 2},
)
def hardtanh(xp, x, /, min_val=-1.0, max_val=1.0):
    """`x`, but not below `min_val` and not above `max_val`.

    Args:
        min_val, max_val: numbers. The gradient at both bounds is 0; `clip` has 1.

    >>> print(gg.hardtanh([-3.0, 0.5, 2.0]))
    [-1.   0.5  1. ]
    """
    if min_val > max_val:
        raise ArgumentError(f"hardtanh: min_val={min_val} is above max_val={max_val}.")
    return xp.lib.minimum(xp.lib.maximum(x, min_val), max_val)


def _elu_vjp(xp, g, x, alpha):
    """By the exponential of `x`: the result has lost it to rounding far below 0."""
    slope = xp.exp(xp.minimum(x, 0))
    return g * (slope if alpha == 1 else xp.where(x > 0, 1, alpha * slope))


@_activation(
    _elu_vjp,
    lambda x, alpha=1.0: np.where(x > 0, x, alpha * (np.exp(x) - 1)),
    [{}, {"alpha": 0.5}],
    wrong={"alpha": -1},
)
def elu(xp, x, /, alpha=1.0):
    """`x` where it is positive, else alpha * (exp(x) - 1).

    Args:
        alpha: number of at least 0; also the gradient at 0.

    >>> print(gg.elu([-100.0, 0.0, 2.0]))
    [-1.  0.  2.]
    """
    if not alpha >= 0:
        raise ArgumentError(f"elu: alpha={alpha} must not be below 0.")
    return xp.lib.maximum(x, 0) + alpha * xp.lib.expm1(xp.lib.minimum(x, 0))


@_activation(
    lambda xp, g, x, alpha: g * xp.exp(xp.minimum(x, 0) / alpha),
    lambda x, alpha=1.0: np.where(x > 0, x, alpha * (np.exp(x / alpha) - 1)),
    [{}, {"alpha": 0.5}],
    wrong={"alpha": 0},
)
def celu(xp, x, /, alpha=1.0):
    """`x` where it is positive, else alpha * (exp(x / alpha) - 1): smooth for any `alpha`.

    Args:
        alpha: positive number. The gradient at 0 is 1.

    Barron 2017, "Continuously Differentiable Exponential Linear Units".

    >>> print(gg.celu([-100.0, 0.0, 2.0], alpha=0.5))
    [-0.5  0.   2. ]
    """
    if not alpha > 0:
        raise ArgumentError(f"celu: alpha={alpha} must be above 0.")
    return xp.lib.maximum(x, 0) + alpha * xp.lib.expm1(xp.lib.minimum(x, 0) / alpha)


@_activation(
    lambda xp, g, out, beta: g * -xp.expm1(-out if beta == 1 else out * -beta),
    lambda x, beta=1.0: np.log1p(np.exp(beta * x)) / beta,
    [{}, {"beta": 2.0}],
    wrong={"beta": 0},
)
def softplus(xp, x, /, beta=1.0):
    """log(1 + exp(beta * x)) / beta, without overflow. The gradient is the sigmoid of beta * x.

    Args:
        beta: positive number. (torch's ``threshold`` is not needed: large `x` are exact.)

    >>> print(gg.softplus([0.0, 100.0]))
    [  0.6931472 100.       ]
    """
    if not beta > 0:
        raise ArgumentError(f"softplus: beta={beta} must be above 0.")
    return plain_softplus(xp, x) if beta == 1 else plain_softplus(xp, x * beta) / beta


@_activation(
    lambda xp, g, out: xp.where(xp.not_equal(out, 0), g, 0),
    lambda x, lambd=0.5: np.where(np.abs(x) > lambd, x, 0),
    [{}, {"lambd": 1.0}],
    wrong={"lambd": -1},
)
def hardshrink(xp, x, /, lambd=0.5):
    """`x` where it is farther than `lambd` from 0, else 0.

    Args:
        lambd: number of at least 0. The gradient at the jump is 0.

    >>> print(gg.hardshrink([-2.0, 0.2, 1.0]))
    [-2.  0.  1.]
    """
    if not lambd >= 0:
        raise ArgumentError(f"hardshrink: lambd={lambd} must not be below 0.")
    return xp.lib.where(xp.lib.abs(x) <= lambd, 0, x)


@_activation(
    lambda xp, g, out: xp.where(xp.not_equal(out, 0), g, 0),
    lambda x, lambd=0.5: np.sign(x) * np.maximum(np.abs(x) - lambd, 0),
    [{}, {"lambd": 1.0}],
    wrong={"lambd": -1},
)
def softshrink(xp, x, /, lambd=0.5):
    """`x` moved by `lambd` towards 0, but not across it.

    Args:
        lambd: number of at least 0. The gradient at the bounds is 0.

    >>> print(gg.softshrink([-2.0, 0.2, 1.0]))
    [-1.5  0.   0.5]
    """
    if not lambd >= 0:
        raise ArgumentError(f"softshrink: lambd={lambd} must not be below 0.")
    return xp.lib.maximum(x - lambd, 0) + xp.lib.minimum(x + lambd, 0)


@op(
    name="threshold",
    vjp=[lambda xp, g, x, threshold: xp.where(x > threshold, g, 0)],
    batch="stack",
    samples=_with({"threshold": 0.5, "value": -1.0}, {"threshold": -0.5, "value": 2.0}),
    ref=lambda x, threshold, value: np.where(x > threshold, x, value),
    errors=[(["text"], {"threshold": 0, "value": 0}, DTypeError, "number")],
    captures=True,
)
def threshold_(xp, x, /, threshold, value):
    """`x` where it is above a threshold, else a value.

    Args:
        threshold: number. The gradient there is 0.
        value: number.

    >>> print(gg.threshold([-1.0, 2.0], 0.0, 9.0))
    [9. 2.]
    """
    check_numbers("threshold", value=value)
    return xp.lib.where(x <= threshold, value, x)


@_activation(
    lambda xp, g, x, negative_slope: xp.where(x > 0, g, g * negative_slope),
    lambda x, negative_slope=0.01: np.where(x > 0, x, negative_slope * x),
    [{}, {"negative_slope": 0.2}, {"negative_slope": -0.5}],
)
def leaky_relu(xp, x, /, negative_slope=0.01):
    """`x` where it is positive, else `negative_slope` times `x`.

    Args:
        negative_slope: number; also the gradient at 0. The default is torch's and JAX's;
            TensorFlow's is 0.2.

    >>> print(gg.leaky_relu([-1.0, 2.0]))
    [-0.01  2.  ]
    """
    return xp.lib.maximum(x, 0) + negative_slope * xp.lib.minimum(x, 0)


def _gelu_vjp(xp, g, x, approximate):
    return g * (xp.gelu_tanh_slope(x) if approximate == "tanh" else xp.gelu_slope(x))


def _gelu_ref(x, approximate="none"):
    if approximate == "tanh":
        return 0.5 * x * (1 + np.tanh(np.sqrt(2 / np.pi) * (x + 0.044715 * x**3)))
    return x * NUMPY.special.ndtr(x)


@op(
    vjp=[_gelu_vjp],
    masked=[lambda xp, g, x, approximate: xp.masked_multiply(g, _gelu_vjp(xp, 1, x, approximate))],
    batch="stack",
    samples=_with({}, {"approximate": "tanh"}),
    ref=_gelu_ref,
    errors=[([np.ones(3)], {"approximate": "erf"}, ArgumentError, "none.*tanh")],
    captures=True,
    by_element=True,
    cpu=True,
)
def gelu(xp, x, /, approximate="none"):
    """`x` times the probability that a standard normal number is below `x`.

    Args:
        approximate: ``"none"``, or ``"tanh"`` for the approximation by a tanh.

    Hendrycks and Gimpel 2016, "Gaussian Error Linear Units".

    >>> print(gg.gelu([0.0, 100.0]))
    [  0. 100.]
    """
    if approximate == "tanh":
        return normal.gelu_tanh(xp, x)
    if approximate != "none":
        raise ArgumentError(f"gelu: approximate={approximate!r} is neither 'none' nor 'tanh'.")
    return normal.gelu(xp, x)
