"""Losses between labels that are yes or no, and probabilities or scores."""

from __future__ import annotations

import numpy as np

from gpugrad.core.samples import calls, uniform
from gpugrad.errors import ArgumentError, ShapeError
from gpugrad.ops.nn.losses import reduced, reduced_ref, same_shape
from gpugrad.registry.on_arrays import typed
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
    domain=(0.1, 0.9), ref=lambda x, y: -(y * np.log(x) + (1 - y) * np.log(1 - x)),
    doc=(
        "-y log(x) - (1 - y) log(1 - x), where no logarithm is below -100 and the gradient is "
        "finite also where x is 0 or 1, as in torch."
    ),
    example=("[0.5, 0.0, 0.0], [1.0, 1.0, 0.0]", "[  0.6931472 100.          0.       ]"),
)  # fmt: skip


def _weighed(xp, weight, losses):
    if weight is None:
        return losses
    weighed = losses * weight
    if weighed.shape != losses.shape:
        raise ShapeError(
            f"multiply: a weight of shape {weight.shape} does not fit losses of {losses.shape}."
        )
    return weighed


def _bce_ref(x, y, weight=1.0, reduction="mean"):
    return reduced_ref(-weight * (y * np.log(x) + (1 - y) * np.log(1 - x)), reduction)


def _probabilities(rng, *shape):
    return uniform(rng, *shape, low=0.1, high=0.9)


@op(
    arrays=("x", "y", "weight"), ref=_bce_ref,
    samples=calls(
        lambda rng: ([_probabilities(rng, 2, 3), _probabilities(rng, 2, 3)], {}),
        lambda rng: (
            [_probabilities(rng, 2, 3), _probabilities(rng, 2, 3), uniform(rng, 3)],
            {"reduction": "none"},
        ),
        lambda rng: ([_probabilities(rng), _probabilities(rng)], {"reduction": "sum"}),
    ),
    errors=[
        ([np.ones((3, 1)), np.ones(3)], {}, ShapeError, r"\(3, 1\).*\(3,\)"),
        ([np.ones(3), np.ones(3), np.ones((2, 3))], {}, ShapeError, r"weight.*\(2, 3\)"),
        ([np.ones(3), np.ones(3)], {"reduction": "max"}, ArgumentError, "reduction='max'"),
    ],
)  # fmt: skip
def binary_cross_entropy(xp, x, y, /, weight=None, *, reduction="mean"):
    """Cross entropy of probabilities. From scores use `bce_with_logits_loss`, which is exact.

    Args:
        x: probabilities of a model. No logarithm is taken as below -100, as in torch.
        y: the probabilities to compare with, of the same shape (or one number).
        weight: array that broadcasts to that shape; None for 1 each.

    >>> print(gg.binary_cross_entropy([0.5, 0.0], [1.0, 1.0], reduction="none"))
    [  0.6931472 100.       ]
    """
    same_shape("binary_cross_entropy", x=x, y=y)
    losses = _weighed(xp, weight, xp.probability_cross_entropy(x, y))
    return reduced(xp, "binary_cross_entropy", losses, reduction)


def _logits_ref(x, y, weight=1.0, pos_weight=1.0, reduction="mean"):
    yes, no = np.log1p(np.exp(-x)), np.log1p(np.exp(x))
    return reduced_ref(weight * (pos_weight * y * yes + (1 - y) * no), reduction)


@op(
    arrays=("x", "y", "weight", "pos_weight"), ref=_logits_ref,
    samples=calls(
        lambda rng: ([uniform(rng, 2, 3), _probabilities(rng, 2, 3)], {}),
        lambda rng: (
            [uniform(rng, 2, 3), _probabilities(rng, 2, 3), uniform(rng, 2, 1), uniform(rng, 3)],
            {"reduction": "none"},
        ),
        lambda rng: (
            [uniform(rng), _probabilities(rng)], {"pos_weight": uniform(rng), "reduction": "sum"}
        ),
    ),
    errors=[
        ([np.ones((3, 1)), np.ones(3)], {}, ShapeError, r"\(3, 1\).*\(3,\)"),
        ([np.ones(3), np.ones(3), np.ones((2, 3))], {}, ShapeError, r"weight.*\(2, 3\)"),
        ([np.ones(3), np.ones(3)], {"reduction": "max"}, ArgumentError, "reduction='max'"),
    ],
)  # fmt: skip
def bce_with_logits_loss(xp, x, y, /, weight=None, pos_weight=None, *, reduction="mean"):
    """Cross entropy of the sigmoid of scores, without overflow; with torch's options.

    Args:
        x: scores.
        y: probabilities to compare with, of the same shape (or one number).
        weight: array that broadcasts to that shape; None for 1 each.
        pos_weight: array that broadcasts to that shape: what the part of `y` counts, where that
            of 1 - y counts 1. More than 1 finds more of what is rare.

    >>> print(gg.bce_with_logits_loss([0.0, 1000.0], [1.0, 1.0]))
    0.3465736
    """
    same_shape("bce_with_logits_loss", x=x, y=y)
    losses = xp.sigmoid_cross_entropy(x, y)
    if pos_weight is not None:
        losses = losses + _weighed(xp, pos_weight - 1, xp.softplus(-x) * y)
    losses = _weighed(xp, weight, losses)
    return reduced(xp, "bce_with_logits_loss", losses, reduction)


def _focal_ref(x, y, alpha=0.25, gamma=2.0, reduction="none"):
    p = 1 / (1 + np.exp(-x))
    ce = -(y * np.log(p) + (1 - y) * np.log(1 - p))
    losses = ce * (1 - p * y - (1 - p) * (1 - y)) ** gamma
    return reduced_ref(losses * (alpha * y + (1 - alpha) * (1 - y)) if alpha >= 0 else losses,
                       reduction)  # fmt: skip


@op(
    ref=_focal_ref,
    samples=calls(
        lambda rng: ([uniform(rng, 2, 3), _probabilities(rng, 2, 3)], {}),
        lambda rng: (
            [uniform(rng, 4), np.array([0.0, 1.0, 1.0, 0.0])],
            {"alpha": -1, "gamma": 0.5, "reduction": "mean"},
        ),
    ),
    errors=[
        ([np.ones((3, 1)), np.ones(3)], {}, ShapeError, r"\(3, 1\).*\(3,\)"),
        ([np.ones(3), np.ones(3)], {"reduction": "max"}, ArgumentError, "reduction='max'"),
    ],
)  # fmt: skip
def sigmoid_focal_loss(xp, x, y, /, *, alpha=0.25, gamma=2.0, reduction="none"):
    """Binary cross entropy of scores that counts well-classified examples less.

    Args:
        x: scores.
        y: labels, 0 or 1, of the same shape.
        alpha: what label 1 counts, where label 0 counts 1 - alpha; negative for 1 each.
        gamma: the power of 1 - p (p: the probability of the right label) that a loss counts.
        reduction: ``"mean"``, ``"sum"`` or ``"none"``, which is the default as in torchvision.

    Lin et al. 2017, "Focal Loss for Dense Object Detection".

    >>> print(gg.sigmoid_focal_loss([0.0, 100.0], [1.0, 1.0]))
    [0.0433217 0.       ]
    """
    same_shape("sigmoid_focal_loss", x=x, y=y)
    # not 1 - p, which is 0 where p has rounded to 1
    wrong = xp.sigmoid(-x) * y + xp.sigmoid(x) * (1 - y)
    losses = xp.sigmoid_cross_entropy(x, y) * wrong**gamma
    if alpha >= 0:
        losses = losses * (alpha * y + (1 - alpha) * (1 - y))
    return reduced(xp, "sigmoid_focal_loss", losses, reduction)
