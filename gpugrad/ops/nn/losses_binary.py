"""Losses between binary labels for each class and probabilities or scores."""

from typing import Any

import numpy as np

from gpugrad.core.samples import calls, shaped
from gpugrad.errors import DTypeError, IndexOutOfBoundsError, ShapeError
from gpugrad.ops.nn.losses import loss, real, same_shape, sample
from gpugrad.registry.on_arrays import typed, widened
from gpugrad.registry.record import elementwise, op


def _log_from(xp, x, floor):
    """log(x), but not below `floor`; also at 0."""
    zero = xp.equal(x, 0)
    return xp.where(zero, floor, xp.maximum(xp.log(xp.where(zero, 1, x)), floor))


def _log_rest_from(xp, x, floor):
    """log(1 - x), but not below `floor`; also at 1."""
    one = xp.equal(x, 1)
    return xp.where(one, floor, xp.maximum(xp.log1p(xp.where(one, 0, -x)), floor))


FLOOR = -100.0  # torch's


def _probability_cross_entropy(xp, x, y):
    x, y = typed(x, y)
    return 0 - y * _log_from(xp, x, FLOOR) - (1 - y) * _log_rest_from(xp, x, FLOOR)


probability_cross_entropy = elementwise(
    "probability_cross_entropy(x, y)",
    forward=_probability_cross_entropy,
    vjp=[
        lambda xp, g, x, y: g * ((x - y) / xp.maximum(x * (1 - x), 1e-12)),
        lambda xp, g, x: g * (_log_rest_from(xp, x, FLOOR) - _log_from(xp, x, FLOOR)),
    ],
    domain=(0.1, 0.9),
    ref=lambda x, y: -(y * np.log(x) + (1 - y) * np.log(1 - x)),
    doc="-y log(x) - (1 - y) log(1 - x), where no logarithm is below -100 and the gradient is "
    "finite also where x is 0 or 1, as in torch.",
    example=("[0.5, 0.0, 0.0], [1.0, 1.0, 0.0]", "[  0.6931472 100.          0.       ]"),
    cpu=True,
)


def _weighted(xp, weight, losses):
    if weight is None:
        return losses
    weighted = losses * weight
    if weighted.shape != losses.shape:
        raise ShapeError(
            f"multiply: a weight of shape {weight.shape} does not fit losses of {losses.shape}."
        )
    return weighted


_PROBABILITIES = real(2, 3, low=0.1, high=0.9)
_WRONG_WEIGHT: Any = ([*[np.ones(3)] * 2, np.ones((2, 3))], {}, ShapeError, r"weight.*\(2, 3\)")


@loss(
    lambda x, y, weight=1.0: -weight * (y * np.log(x) + (1 - y) * np.log(1 - x)),
    calls(
        sample(_PROBABILITIES, _PROBABILITIES),
        sample(_PROBABILITIES, _PROBABILITIES, real(3), reduction="none"),
        sample(real(low=0.1, high=0.9), real(low=0.1, high=0.9), reduction="sum"),
    ),
    [_WRONG_WEIGHT],
    arrays=("x", "y", "weight"),
)
def binary_cross_entropy(xp, x, y, /, weight=None):
    """Cross entropy of probabilities. From scores use `bce_with_logits_loss`, which is exact.

    Args:
        x: probabilities of a model. Logarithms are clipped at -100, as in torch.
        y: the probabilities to compare with, of the same shape (or one number).
        weight: array that broadcasts to that shape; None for 1 each.

    >>> print(gg.binary_cross_entropy([0.5, 0.0], [1.0, 1.0], reduction="none"))
    [  0.6931472 100.       ]
    """
    return _weighted(xp, weight, xp.probability_cross_entropy(x, y))


def _sigmoid_cross_entropy(xp, x, y):
    x, y = map(widened, typed(x, y))
    # the first two cancel exactly at a label of 1, where softplus(x) - x would not
    return xp.lib.maximum(x, 0) - x * y + xp.lib.log1p(xp.lib.exp(-xp.lib.abs(x)))


def _sigmoid_cross_entropy_ref(x, y):
    return y * np.log1p(np.exp(-x)) + (1 - y) * np.log1p(np.exp(x))


sigmoid_cross_entropy = elementwise(
    "sigmoid_cross_entropy(x, y)",
    forward=_sigmoid_cross_entropy,
    # not sigmoid(x) - y, which is 0 at a label of 1 where the sigmoid has rounded to 1
    d=[lambda xp, x, y: (1 - y) * xp.sigmoid(x) - y * xp.sigmoid(-x), lambda xp, x: -x],
    ref=_sigmoid_cross_entropy_ref,
    doc="Cross entropy of the sigmoid of scores `x` against probabilities `y`, without overflow."
    " The losses check the shapes first, and then call this.",
    example=("[0.0, 1000.0], 1.0", "[0.6931472 0.       ]"),
    cpu=True,
)


@op(
    samples=shaped([(3,)] * 2, [()] * 2, [(0, 2)] * 2, [(2, 3), ()]),
    ref=_sigmoid_cross_entropy_ref,
    errors=[([np.ones((3, 1)), np.ones(3)], {}, ShapeError, r"\(3, 1\).*\(3,\)")],
    mixed="float32",
)
def binary_cross_entropy_with_logits(xp, logits, labels, /):
    """Cross entropy of the sigmoid of scores against probabilities, elementwise and exact.

    `bce_with_logits_loss` is its mean, and has torch's options.

    Args:
        logits: scores, of any shape.
        labels: probabilities of the same shape, or one number. Other shapes do not broadcast,
            so (n, 1) against (n,) is an error and not a wrong loss.

    >>> print(gg.binary_cross_entropy_with_logits([0.0, 1000.0], 1.0))
    [0.6931472 0.       ]
    """
    if getattr(labels, "shape", ()):
        same_shape("binary_cross_entropy_with_logits", logits=logits, labels=labels)
    return xp.sigmoid_cross_entropy(logits, labels)


def _logits_ref(x, y, weight=1.0, pos_weight=1.0):
    return weight * (pos_weight * y * np.log1p(np.exp(-x)) + (1 - y) * np.log1p(np.exp(x)))


@loss(
    _logits_ref,
    calls(
        sample(real(2, 3), _PROBABILITIES),
        sample(real(2, 3), _PROBABILITIES, real(2, 1), real(3), reduction="none"),
        sample(real(), real(low=0.1, high=0.9), pos_weight=real(), reduction="sum"),
    ),
    [_WRONG_WEIGHT],
    arrays=("x", "y", "weight", "pos_weight"),
)
def bce_with_logits_loss(xp, x, y, /, weight=None, pos_weight=None):
    """Cross entropy of the sigmoid of scores, without overflow; with torch's options.

    Args:
        x: scores.
        y: probabilities to compare with, of the same shape (or one number).
        weight: array that broadcasts to that shape; None for 1 each.
        pos_weight: array that broadcasts to that shape: the weight of the term with `y`; the term
            with 1 - y has weight 1. Above 1, more of a rare class is found.

    >>> print(gg.bce_with_logits_loss([0.0, 1000.0], [1.0, 1.0]))
    0.3465736
    """
    losses = xp.sigmoid_cross_entropy(x, y)
    if pos_weight is not None:
        losses = losses + _weighted(xp, pos_weight - 1, xp.softplus(-x) * y)
    return _weighted(xp, weight, losses)


def _focal_ref(x, y, alpha=0.25, gamma=2.0):
    p = 1 / (1 + np.exp(-x))
    losses = -(y * np.log(p) + (1 - y) * np.log(1 - p)) * (1 - p * y - (1 - p) * (1 - y)) ** gamma
    return losses * (alpha * y + (1 - alpha) * (1 - y)) if alpha >= 0 else losses


@loss(
    _focal_ref,
    calls(
        sample(real(2, 3), _PROBABILITIES),
        sample(real(4), [0.0, 1.0, 1.0, 0.0], alpha=-1, gamma=0.5, reduction="mean"),
    ),
    reduction="none",
)
def sigmoid_focal_loss(xp, x, y, /, *, alpha=0.25, gamma=2.0):
    """Binary cross entropy of scores in which well-classified examples count less.

    Args:
        x: scores.
        y: labels, 0 or 1, of the same shape.
        alpha: weight of label 1, where label 0 has 1 - alpha; negative for 1 each.
        gamma: the power of 1 - p by which a loss is weighted (p: the probability of the right
            label).
        reduction: ``"mean"``, ``"sum"`` or ``"none"``, which is the default as in torchvision.

    Lin et al. 2017, "Focal Loss for Dense Object Detection".

    >>> print(gg.sigmoid_focal_loss([0.0, 100.0], [1.0, 1.0]))
    [0.0433217 0.       ]
    """
    x, y = typed(x, y)
    # not 1 - p, which is 0 where p has rounded to 1
    wrong = xp.sigmoid(-x) * y + xp.sigmoid(x) * (1 - y)
    losses = xp.sigmoid_cross_entropy(x, y) * wrong**gamma
    return losses * (alpha * y + (1 - alpha) * (1 - y)) if alpha >= 0 else losses


def _check_classes(name, x):
    if not x.ndim:
        raise ShapeError(f"{name}: the scores are 0-d, without classes.")


@loss(
    lambda x, y, weight=1.0: np.mean(weight * _sigmoid_cross_entropy_ref(x, y), -1),
    calls(
        sample(real(2, 3), real(2, 3, low=0, high=1)),
        sample(real(2, 3), real(2, 3, low=0, high=1), real(3), reduction="none"),
    ),
    [([np.float64(1.0)] * 2, {}, ShapeError, "0-d")],
    arrays=("x", "y", "weight"),
)
def multilabel_soft_margin_loss(xp, x, y, /, weight=None):
    """Binary cross entropy of scores, as a mean over the classes of each example.

    Args:
        x: scores, of shape (..., classes).
        y: labels, 0 or 1, of the same shape.
        weight: array that broadcasts to that shape; None for 1 each.

    Returns:
        Tensor of shape (), or (...,).

    >>> print(gg.multilabel_soft_margin_loss([[0.0, 1000.0]], [[1.0, 1.0]]))
    0.3465736
    """
    _check_classes("multilabel_soft_margin_loss", x)
    terms = xp.sigmoid_cross_entropy(x, y)
    return xp.mean(terms if weight is None else terms * weight, axis=-1)


def _margin_ref(x, labels):
    n, losses = x.shape[-1], np.zeros(x.shape[:-1])
    for i in np.ndindex(losses.shape):
        row = labels[i].tolist()
        own = row[: row.index(-1)] if -1 in row else row
        others = [c for c in range(n) if c not in own]
        losses[i] = sum(max(1 - x[i][a] + x[i][b], 0) for a in own for b in others) / n
    return losses


@loss(
    _margin_ref,
    calls(
        sample(real(2, 4), [[3, 0, -1, 1], [-1, 2, 2, 2]]),
        sample(real(3), [1, -1, 0], reduction="sum"),
        sample(real(2, 2), [[0, 1], [1, -1]], reduction="none"),
    ),
    [
        ([np.ones(3), np.array([3, -1, -1])], {}, IndexOutOfBoundsError, "index 3"),
        ([np.ones(3), np.ones(3)], {}, DTypeError, "labels are float64"),
    ],
)
def multilabel_margin_loss(xp, x, labels, /):
    """Sum of max(1 - x[own class] + x[other class], 0) over all such pairs, over the classes.

    Args:
        x: scores, of shape (..., classes).
        labels: integers of the same shape: the numbers of an example's classes, ended by -1.
            The elements behind it are not read.

    Returns:
        Tensor of shape (), or (...,).

    >>> print(gg.multilabel_margin_loss([[0.1, 0.2, 0.4, 0.8]], [[3, 0, -1, 1]]))
    0.85
    """
    if labels.dtype.kind not in "iu":
        raise DTypeError(
            f"multilabel_margin_loss: labels are {labels.dtype}; class numbers must be integers."
        )
    _check_classes("multilabel_margin_loss", x)
    n = x.shape[-1]
    used = xp.cumulative_prod(xp.astype(xp.greater_equal(labels, 0), "float32"), axis=-1) > 0
    places = xp.where(used, labels, 0)
    own = xp.expand_dims(xp.take_along_axis(x, places, axis=-1), axis=-1)
    used = xp.expand_dims(used, axis=-1)
    hot = xp.logical_and(xp.one_hot(places, n, dtype="bool"), used)
    other = xp.logical_not(xp.any(hot, axis=-2, keepdims=True))
    terms = xp.relu(1 - own + xp.expand_dims(x, axis=-2))
    terms = xp.where(xp.logical_and(used, other), terms, 0)
    return xp.sum(terms, axis=(-2, -1)) / n
