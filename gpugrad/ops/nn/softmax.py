"""Softmax, its logarithm, and one-hot rows.

Rules read the result where that is enough, so that the input can be freed.
"""

import functools
import operator
from typing import Any

import numpy as np

from gpugrad.core.backend import NUMPY, as_dtype
from gpugrad.core.samples import along_axis, calls, uniform
from gpugrad.errors import ArgumentError, AxisError, DTypeError, ShapeError
from gpugrad.kernels.by_hand import softmax as kernels
from gpugrad.kernels.cpu import rows
from gpugrad.kernels.cpu.large import MIDDLE
from gpugrad.ops._axes import along_rows
from gpugrad.registry.on_arrays import widened
from gpugrad.registry.record import op


def below_max(xp, x, axis):
    """`x` minus its largest element along the axis, so that no exponential overflows."""
    x = widened(x)
    return x - x.max(axis=axis, keepdims=True) if x.shape[_checked(x, axis)] else x.copy()


def exp_of(xp, x):
    """exp(x), in place if possible; `x` must be an array that nothing else sees."""
    return xp.exp(x) if xp.nesting else xp.lib.exp(x, out=x if x.dtype.kind == "f" else None)


def _checked(x, axis):
    if not -x.ndim <= axis < x.ndim:
        raise AxisError(
            f"axis {axis} is out of bounds for an array of {x.ndim} dimensions, {x.shape}."
        )
    return axis


_of_scores = functools.partial(
    op,
    samples=along_axis({"axis": 1}, domain=(-5, 5)),
    errors=[
        ([np.ones((2, 3))], {"axis": 2}, AxisError, "axis 2"),
        ([1.0], {}, AxisError, "axis -1"),
    ],
    batch="axis",
    opens=lambda x, axis: "c" if along_rows(x, axis) else None,
)
_GRAD_ERRORS: list[Any] = [([np.ones(3), np.ones(2)], {}, ShapeError, r"\(3,\).*\(2,\)")]


def _grad_samples(**domain):
    """A gradient and results in a domain."""
    return calls(
        lambda rng: [uniform(rng, 4), uniform(rng, 4, **domain)],
        lambda rng: ([uniform(rng, 2, 3), uniform(rng, 2, 3, **domain)], {"axis": 0}),
    )


def _softmax_masked(xp, g, out, axis):
    """The rule returns 0 for a row that is NaN (all scores are -inf) and has no gradient."""
    live = xp.any(g != 0, axis=axis, keepdims=True)
    return xp.softmax_grad(g, xp.where(xp.logical_or(live, out == out), out, 0), axis=axis)


@_of_scores(
    vjp=[lambda xp, g, out, axis: xp.softmax_grad(g, out, axis=axis)],
    masked=[_softmax_masked],
    jvp=[lambda xp, t, out, axis: xp.softmax_grad(xp.where(out == 0, 0, t), out, axis=axis)],
    ref=lambda x, axis=-1: NUMPY.special.softmax(x, axis),
    cuda=kernels.softmax,
    cpu=rows.softmax,
    large=MIDDLE,
)
def softmax(xp, x, /, axis=-1):
    """Exponentials divided by their sum along an axis; NaN where all scores along it are -inf.

    Args:
        x: scores, of at least one dimension.
        axis: int, along which the results sum to 1.

    A score that leads by 17 in float32, or by 37 in float64, has a probability that rounds to 1.
    Its gradient is then 0; those of the other scores keep their digits.

    >>> print(gg.softmax([0.0, 0.0]))
    [0.5 0.5]
    """
    e = exp_of(xp, below_max(xp, x, axis))
    e /= xp.add_reduce(e, axis=axis, keepdims=True)
    return e


@op(
    samples=_grad_samples(low=0),
    ref=lambda g, out, axis=-1: out * g - out * np.sum(out * g, axis=axis, keepdims=True),
    errors=_GRAD_ERRORS,
    cuda=kernels.softmax_grad,
    cpu=rows.softmax_grad,
    large=MIDDLE,
)
def softmax_grad(xp, g, out, /, axis=-1):
    """The gradient of `softmax` by its input.

    Args:
        g: the gradient by the probabilities, of their shape.
        out: the probabilities.
        axis: int, along which they sum to 1.

    >>> print(gg.OPS["softmax_grad"].eager([1.0, 0.0], [0.5, 0.5]))
    [ 0.25 -0.25]
    """
    d = g - xp.sum_of_products(g, out, axis=axis)
    d *= out
    return d


def _log_softmax_jvp(xp, t, out, axis):
    return t - xp.sum(xp.masked_multiply(t, xp.exp(out)), axis=axis, keepdims=True)


def _log_softmax_masked(xp, g, out, axis):
    return g - xp.masked_multiply(xp.sum(g, axis=axis, keepdims=True), xp.exp(out))


@_of_scores(
    vjp=[lambda xp, g, out, axis: xp.log_softmax_grad(g, out, axis=axis)],
    masked=[_log_softmax_masked],
    jvp=[_log_softmax_jvp],
    ref=lambda x, axis=-1: NUMPY.special.log_softmax(x, axis),
    cuda=kernels.log_softmax,
    cpu=rows.log_softmax,
    large=MIDDLE,
    mixed="float32",
)
def log_softmax(xp, x, /, axis=-1):
    """Logarithm of the softmax along an axis, exact where the softmax itself would be 0.

    The result of a score that leads by 17 in float32, or by 37 in float64, rounds to 0, and so does
    the gradient of that result by the score.

    >>> print(gg.log_softmax([0.0, 100.0]))
    [-100.    0.]
    """
    z = below_max(xp, x, axis)
    return z - xp.log(xp.add_reduce(xp.exp(z), axis=axis, keepdims=True))


@op(
    samples=_grad_samples(high=0),
    ref=lambda g, out, axis=-1: g - np.exp(out) * np.sum(g, axis=axis, keepdims=True),
    errors=_GRAD_ERRORS,
    cuda=kernels.log_softmax_grad,
    cpu=rows.log_softmax_grad,
    large=MIDDLE,
)
def log_softmax_grad(xp, g, out, /, axis=-1):
    """The gradient of `log_softmax` by its input.

    Args:
        g: the gradient by the logarithms, of their shape.
        out: the logarithms of probabilities.
        axis: int, along which the probabilities sum to 1.

    >>> print(gg.OPS["log_softmax_grad"].eager([1.0, 0.0], [-0.6931472, -0.6931472]))
    [ 0.5 -0.5]
    """
    return g - xp.exp(out) * xp.sum(g, axis=axis, keepdims=True)


@op(
    differentiable=False,
    kinds="i",
    batch="stack",
    samples=calls(
        lambda rng: ([rng.integers(0, 3, 4)], {"num_classes": 3}),
        lambda rng: ([rng.integers(-1, 4, (2, 2))], {"num_classes": 3}),
        lambda rng: ([np.asarray(1)], {"num_classes": 2}),
        lambda rng: ([np.zeros(0, np.int64)], {"num_classes": 2}),
    ),
    ref=lambda x, num_classes: np.stack([x == k for k in range(num_classes)], -1).astype("f4"),
    errors=[
        ([np.ones(2)], {"num_classes": 2}, DTypeError, "integers"),
        ([np.array([1])], {"num_classes": -1}, ArgumentError, "num_classes"),
        ([np.array([1])], {"num_classes": 2.5}, ArgumentError, "one_hot: .*an int"),
    ],
    captures=True,
)
def one_hot(xp, x, /, num_classes, *, dtype="float32"):
    """Integers as rows that are 1 at that position and 0 elsewhere.

    Args:
        x: integers of any shape. One that is not a class gives a row of zeros, as in TensorFlow.
        num_classes: length of a row.
        dtype: dtype of the result.

    Returns:
        Tensor of shape ``x.shape + (num_classes,)``. Its gradient is None.

    >>> print(gg.one_hot([0, 2], 3))
    [[1. 0. 0.]
     [0. 0. 1.]]
    """
    if x.dtype.kind not in "iu":
        raise DTypeError(f"one_hot: x is {x.dtype}; class numbers must be integers.")
    num_classes = operator.index(num_classes)
    if num_classes < 0:
        raise ArgumentError(f"one_hot: num_classes={num_classes} is negative.")
    return (x[..., None] == xp.lib.arange(num_classes)).astype(as_dtype(dtype))
