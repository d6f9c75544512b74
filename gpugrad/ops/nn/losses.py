"""Losses between arrays of the same shape: differences, likelihoods, probabilities.

The default is the mean over the elements. Shapes do not broadcast, so (n, 1) against (n,) is an
error and not a wrong loss.
"""

import functools
import inspect
import math
import re

import numpy as np

from gpugrad.autodiff.batched import all_batched
from gpugrad.core.backend import NUMPY, SCALARS
from gpugrad.core.samples import calls, shaped, uniform
from gpugrad.core.tensor import Tensor
from gpugrad.errors import ArgumentError, ShapeError
from gpugrad.registry.on_arrays import typed, wide, widened
from gpugrad.registry.record import elementwise, op


def same_shape(name, **arrays):
    """Refuse arrays of different shapes, which would broadcast to a wrong loss."""
    (first, x), *rest = ((n, a) for n, a in arrays.items() if type(a) not in SCALARS)
    for other, y in rest:
        if x.shape != y.shape:
            raise ShapeError(
                f"{name}: {first} has shape {x.shape}, {other} {y.shape}. They must be the same: "
                "reshape one, or broadcast it with gg.broadcast_to."
            )


_REDUCTIONS = ("mean", "sum", "none")


def check_reduction(name, reduction):
    """Refuse a `reduction` that does not exist."""
    if reduction not in _REDUCTIONS:
        raise ArgumentError(f"{name}: reduction={reduction!r} must be 'mean', 'sum' or 'none'.")


def reduced(xp, name, losses, reduction):
    """The losses themselves, their sum, or their mean, which is NaN if there are no elements."""
    if reduction == "none":
        return losses
    if reduction == "sum":
        return xp.sum(losses)
    check_reduction(name, reduction)
    return xp.mean(losses) if losses.size else xp.sum(losses) * math.nan


def reduced_ref(losses, reduction):
    """`reduced` in NumPy, for the references of losses."""
    return {"mean": np.mean, "sum": np.sum, "none": np.asarray}[reduction](losses)


_PAIRS = shaped(
    [(2, 3)] * 2,
    ([()] * 2, {"reduction": "none"}),
    ([(4,)] * 2, {"reduction": "sum"}),
    ([(0, 2)] * 2, {"reduction": "sum"}),
)


def _with_width(name, value):
    """Samples of a loss with the width of its rounded part as a parameter."""
    none, summed = {name: 0.5, "reduction": "none"}, {name: value, "reduction": "sum"}
    return shaped([(2, 3)] * 2, ([()] * 2, none), ([(4,)] * 2, summed))


def real(*shape, **domain):
    """An array to draw, for `sample`."""
    return lambda rng: uniform(rng, *shape, **domain)


def sample(*arrays, **keywords):
    """One sample: arrays, lists, or functions of the generator that draw them, and keywords."""

    def make(rng):
        values = [a(rng) if callable(a) else np.asarray(a) for a in arrays]
        return values, {k: v(rng) if callable(v) else v for k, v in keywords.items()}

    return make


def wrong_calls(n, same=2):
    """Calls that must fail, for a loss of `n` arrays of which the first `same` have one shape."""
    wrong = ([np.ones((3, 1)), *[np.ones(3)] * (n - 1)], {}, ShapeError, r"\(3, 1\).*\(3,\)")
    unknown = ([np.ones(3)] * n, {"reduction": "max"}, ArgumentError, "reduction='max'")
    return [wrong, unknown] if same else [unknown]


def loss(ref, samples=_PAIRS, errors=(), *, arrays=None, same=None, reduction="mean"):
    """Declare a loss from its formula for the loss of each element; a decorator.

    The op gets an argument `reduction`, checks the shapes and reduces the losses. Its docstring
    describes arrays that the formula's docstring leaves out.

    Args:
        ref: the losses of the elements in NumPy.
        samples: see `Op`; by default two arrays of the same shape.
        errors: calls that must fail, in addition to the calls for all losses.
        arrays: names of the array arguments, if not all of them come before ``/``.
        same: how many of the first arrays must have the same shape; by default all before ``/``.
        reduction: the default reduction.
    """

    def declare(formula):
        name, signature = formula.__name__, inspect.signature(formula)
        _, *parameters = signature.parameters.values()
        names = [p.name for p in parameters if p.kind is p.POSITIONAL_ONLY]
        same_names = names[: len(names) if same is None else same]

        @functools.wraps(formula)
        def forward(xp, *arrays, reduction=reduction, **params):
            if reduction not in _REDUCTIONS:
                check_reduction(name, reduction)
            if (
                same_names
                and len({getattr(a, "shape", None) for a in arrays[: len(same_names)]}) > 1
            ):
                same_shape(name, **dict(zip(same_names, arrays, strict=False)))
            arrays = map(widened, arrays)
            return reduced(xp, name, formula(xp, *arrays, **params), reduction)

        last = inspect.Parameter("reduction", inspect.Parameter.KEYWORD_ONLY, default=reduction)
        forward.__signature__ = signature.replace(parameters=[*signature.parameters.values(), last])
        forward.__doc__ = _with_arrays(inspect.cleandoc(formula.__doc__), same_names)
        return op(
            mixed="float32",
            arrays=arrays,
            samples=samples,
            errors=[*wrong_calls(len(names), same_names), *errors],
            ref=lambda *args, reduction=reduction, **params: reduced_ref(
                ref(*args, **params), reduction
            ),
        )(forward)

    return declare


def _with_arrays(doc, names):
    """The docstring of a loss with a line for its arrays, if it has none."""
    if not names or re.search(rf"^    {names[0]}\b.*:", doc, re.MULTILINE):
        return doc
    line = f"Args:\n    {', '.join(names)}: arrays of the same shape, or one is a number.\n"
    if "Args:\n" in doc:
        return doc.replace("Args:\n", line)
    return doc.replace(">>>", f"{line}\n>>>", 1)


def _mse_x(xp, g, x, y, reduction):
    return (x - y) * (g * (2 / max(x.size, 1) if reduction == "mean" else 2))


def _mse_batch(xp, batched, x, y, *, reduction):
    x, y = widened(x), widened(y)
    arrays, dtype = all_batched(xp, batched, (x, y)), np.result_type(x.dtype, y.dtype)
    squares = xp.square(xp.subtract(*(wide(xp, a) for a in arrays)))
    if reduction != "none":
        reduce = xp.sum if reduction == "sum" else xp.mean
        squares = reduce(squares, axis=tuple(range(1, squares.ndim)))
    return xp.astype(squares, dtype)


@op(
    vjp=[_mse_x, lambda xp, g, x, y, reduction: -_mse_x(xp, g, x, y, reduction)],
    ref=lambda x, y, reduction="mean": reduced_ref((x - y) ** 2, reduction),
    batch=_mse_batch,
    samples=_PAIRS,
    errors=wrong_calls(2),
    captures=True,
)
def mse_loss(xp, x, y, /, *, reduction="mean"):
    """Squared differences. The mean of no elements is NaN.

    Args:
        x, y: arrays of the same shape.

    >>> print(gg.mse_loss([1.0, 5.0], [3.0, 5.0]))
    2.0
    """
    same_shape("mse_loss", x=x, y=y)
    d = widened(x) - widened(y)
    if reduction == "none":
        return d * d
    check_reduction("mse_loss", reduction)
    total = xp.add_reduce(d * d, axis=None)
    if reduction == "sum":
        return total
    return total / x.size if x.size else total * math.nan


mse = mse_loss


@loss(lambda x, y: np.abs(x - y))
def l1_loss(xp, x, y, /):
    """Absolute differences; the gradient is 0 where they are 0.

    >>> print(gg.l1_loss([1.0, 5.0], [3.0, 5.0]))
    1.0
    """
    return xp.abs(x - y)


def _unit_huber(xp, x):
    size = xp.lib.abs(x)
    inner = xp.lib.minimum(size, 1)
    return inner * (size - 0.5 * inner)


unit_huber = elementwise(
    "unit_huber(x)",
    cpu=True,
    forward=_unit_huber,
    d=[lambda xp, x: xp.clip(x, -1, 1)],
    ref=lambda x: np.where(np.abs(x) < 1, x * x / 2, np.abs(x) - 0.5),
    doc="Half the square where |x| < 1, |x| - 1/2 beyond: the Huber loss of delta 1.",
    example=("[0.5, -2.0]", "[0.125 1.5  ]"),
)


@loss(
    lambda x, y, delta=1.0: NUMPY.special.huber(delta, x - y),
    _with_width("delta", 2.0),
    [([np.ones(3)] * 2, {"delta": 0}, ArgumentError, "huber_loss: delta=0")],
)
def huber_loss(xp, x, y, /, *, delta=1.0):
    """Half the squares of differences below `delta`, straight lines beyond.

    Args:
        delta: positive number; the slope of the lines.

    >>> print(gg.huber_loss([0.5, 4.0], 0.0, reduction="none"))
    [0.125 3.5  ]
    """
    if not delta > 0:
        raise ArgumentError(f"huber_loss: delta={delta} must be above 0.")
    if delta == 1 and not isinstance(delta, Tensor):  # whose gradient a tape may want
        return xp.unit_huber(x - y)
    return xp.unit_huber((x - y) / delta) * delta**2


def _smooth_l1_ref(x, y, beta=1.0):
    d = np.abs(x - y)
    return np.where(d < beta, d * d / (2 * beta), d - beta / 2) if beta else d


@loss(
    _smooth_l1_ref,
    _with_width("beta", 0),
    [([np.ones(3)] * 2, {"beta": -1}, ArgumentError, "smooth_l1_loss: beta=-1")],
)
def smooth_l1_loss(xp, x, y, /, *, beta=1.0):
    """Absolute differences, rounded by a parabola below `beta`: `huber_loss` over `beta`.

    Args:
        beta: number of at least 0; 0 gives `l1_loss`.

    >>> print(gg.smooth_l1_loss([0.5, 4.0], 0.0, reduction="none"))
    [0.125 3.5  ]
    """
    if not beta >= 0:
        raise ArgumentError(f"smooth_l1_loss: beta={beta} must not be below 0.")
    if beta == 0:
        return xp.abs(x - y)
    if beta == 1 and not isinstance(beta, Tensor):  # whose gradient a tape may want
        return xp.unit_huber(x - y)
    return xp.unit_huber((x - y) / beta) * beta


def _log_cosh(xp, x):
    lib, size = xp.lib, xp.lib.abs(x)
    low = lib.sinh(lib.minimum(size, 1))  # the other form loses the digits of x^2 / 2
    near = 0.5 * lib.log1p(low * low)
    return lib.where(size < 1, near, size - math.log(2) + lib.log1p(lib.exp(-2 * size)))


log_cosh = elementwise(
    "log_cosh(x)",
    forward=_log_cosh,
    d=[lambda xp, x: xp.tanh(x)],
    ref=lambda x: np.log(np.cosh(x)),
    doc="Logarithm of the hyperbolic cosine, without overflow and exact near 0.",
    example=("[0.0, 1000.0]", "[  0.      999.30684]"),
    cpu=True,
)


@loss(lambda x, y: np.log(np.cosh(x - y)))
def log_cosh_loss(xp, x, y, /):
    """log(cosh(x - y)): half the square of a small difference, |x - y| - log(2) of a large one.

    >>> print(gg.log_cosh_loss([1.0, 1.0], [0.0, 1.0]))
    0.2168904
    """
    return xp.log_cosh(x - y)


def _poisson_ref(x, y, log_input=True, full=False, eps=1e-8):
    losses = np.exp(x) - y * x if log_input else x - y * np.log(x + eps)
    if full:
        rest = y * np.log(y) - y + 0.5 * np.log(2 * np.pi * y)
        losses = losses + np.where(y > 1, rest, 0)
    return losses


@loss(
    _poisson_ref,
    calls(
        sample(real(2, 3), real(2, 3, low=0)),
        sample(real(4), real(4, low=0, high=4), full=True),
        sample(real(3, low=0.5), real(3, low=0), log_input=False, eps=0.1, reduction="none"),
    ),
)
def poisson_nll_loss(xp, x, y, /, *, log_input=True, full=False, eps=1e-8):
    """Negative log-likelihood of counts under a Poisson distribution.

    Args:
        x: the logarithms of the rates.
        y: the counts, of the same shape.
        log_input: if False, `x` are the rates themselves.
        full: whether to add Stirling's formula for log(y!), where y > 1.
        eps: added to a rate inside its logarithm.

    >>> print(gg.poisson_nll_loss([0.0, 1.0], [1.0, 2.0]))
    0.8591409
    """
    x, y = typed(x, y)
    losses = xp.exp(x) - y * x if log_input else x - y * xp.log(x + eps)
    if full:
        many = xp.greater(y, 1)
        n = xp.where(many, y, 1)
        rest = (n + 0.5) * xp.log(n) - n + 0.5 * math.log(2 * math.pi)
        losses = losses + xp.where(many, rest, 0)
    return losses


def _gaussian_ref(x, y, var, full=False, eps=1e-6):
    if var.ndim < x.ndim:
        var = var[..., None]
    var = np.maximum(var, eps)
    return 0.5 * (np.log(var) + (x - y) ** 2 / var) + (0.5 * np.log(2 * np.pi) if full else 0)


@loss(
    _gaussian_ref,
    calls(
        sample(real(2, 3), real(2, 3), real(2, 3, low=0.5)),
        sample(real(2, 3), real(2, 3), real(2, low=0.5), full=True, reduction="none"),
        sample(real(2, 3), real(2, 3), real(2, 1, low=0.5), reduction="sum"),
        sample(real(2, 3), real(3), real(2, 3, low=0.5)),
        sample(real(2, 1), real(2, 3), real(2, low=0.5), reduction="none"),
    ),
    [
        ([np.ones((2, 3)), np.ones((2, 3)), np.ones((3, 3))], {}, ShapeError, r"var.*\(3, 3\)"),
        ([np.ones((2, 3)), np.ones(2), np.ones((2, 3))], {}, ShapeError, r"\(2, 3\).*\(2,\)"),
    ],
    same=0,
)
def gaussian_nll_loss(xp, x, y, var, /, *, full=False, eps=1e-6):
    """Negative log-likelihood of normal distributions with means and variances.

    Args:
        x: the means.
        y: the observations; they are broadcast against the means. Or one number.
        var: the variances: of the shape of `x`, without the last axis or with length 1 for it, or
            one number.
        full: whether to add the constant log(2 pi) / 2.
        eps: the smallest variance. As in torch, the gradient ignores this bound, so that a
            variance that fell below it can grow again.

    >>> print(gg.gaussian_nll_loss([1.0, 0.0], [3.0, 0.0], [1.0, 1.0]))
    1.0
    """
    shape = x.shape
    if type(var) in SCALARS:
        var = x * 0 + var
    if var.shape not in (shape, (*shape[:-1], 1)):
        if var.shape != shape[:-1]:
            raise ShapeError(
                f"gaussian_nll_loss: var has shape {var.shape}, x {shape}. It must be that shape, "
                "with 1 for the last axis, or without it."
            )
        var = xp.expand_dims(var, axis=-1)
    var = var + xp.stop_gradient(xp.maximum(var, eps) - var)
    losses = 0.5 * (xp.log(var) + xp.square(x - y) / var)
    return losses + 0.5 * math.log(2 * math.pi) if full else losses


def _kl_ref(x, y, reduction="mean", log_target=False):
    losses = np.exp(y) * (y - x) if log_target else NUMPY.special.xlogy(y, y) - y * x
    return losses.sum() / len(x) if reduction == "batchmean" else reduced_ref(losses, reduction)


@op(
    samples=calls(
        sample(real(2, 3), real(2, 3, low=0.1)),
        sample(real(2, 3), real(2, 3, low=0.1), reduction="batchmean"),
        sample(real(3), real(3), log_target=True, reduction="none"),
    ),
    ref=_kl_ref,
    errors=[
        *wrong_calls(2),
        ([np.float64(1.0)] * 2, {"reduction": "batchmean"}, ShapeError, "0-d"),
    ],
)
def kl_div_loss(xp, x, y, /, *, reduction="mean", log_target=False):
    """Kullback-Leibler divergence: y (log(y) - x), and 0 where y is 0.

    Args:
        x: logarithms of the probabilities of a model.
        y: the probabilities to compare with, of the same shape.
        reduction: ``"batchmean"`` (the sum over the length of the first axis: the divergence
            in the mathematical sense), ``"mean"``, ``"sum"`` or ``"none"``.
        log_target: whether `y` are logarithms too.

    >>> print(gg.kl_div_loss([-1.0, -2.0], [1.0, 0.0], reduction="sum"))
    1.0
    """
    same_shape("kl_div_loss", x=x, y=y)
    x, y = typed(x, y)
    if log_target:
        p = xp.exp(y)
        losses = p * xp.where(p == 0, 0, y - x)
    else:
        log_y = xp.log(xp.where(xp.equal(y, 0), 1, y))
        losses = xp.masked_multiply(y, log_y - x)
    if reduction != "batchmean":
        return reduced(xp, "kl_div_loss", losses, reduction)
    if not losses.ndim:
        raise ShapeError("kl_div_loss: a 0-d array has no first axis for the batchmean.")
    return xp.sum(losses) / losses.shape[0]
