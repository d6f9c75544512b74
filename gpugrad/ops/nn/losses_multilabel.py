"""Losses of examples that have several classes, or none."""

from __future__ import annotations

import numpy as np

from gpugrad.core.samples import calls, uniform
from gpugrad.errors import ArgumentError, DTypeError, IndexOutOfBoundsError, ShapeError
from gpugrad.ops.nn.losses import reduced, reduced_ref, same_shape
from gpugrad.registry.record import op


def _soft_ref(x, y, weight=1.0, reduction="mean"):
    losses = weight * (y * np.log1p(np.exp(-x)) + (1 - y) * np.log1p(np.exp(x)))
    return reduced_ref(losses.mean(-1), reduction)


@op(
    arrays=("x", "y", "weight"), ref=_soft_ref,
    samples=calls(
        lambda rng: ([uniform(rng, 2, 3), uniform(rng, 2, 3, low=0, high=1)], {}),
        lambda rng: (
            [uniform(rng, 2, 3), uniform(rng, 2, 3, low=0, high=1), uniform(rng, 3)],
            {"reduction": "none"},
        ),
    ),
    errors=[
        ([np.ones((3, 1)), np.ones(3)], {}, ShapeError, r"\(3, 1\).*\(3,\)"),
        ([np.ones(3)] * 2, {"reduction": "max"}, ArgumentError, "reduction='max'"),
        ([np.float64(1.0)] * 2, {}, ShapeError, "0-d"),
    ],
)  # fmt: skip
def multilabel_soft_margin_loss(xp, x, y, /, weight=None, *, reduction="mean"):
    """Binary cross entropy of scores, as a mean over the classes of each example.

    Args:
        x: scores, of shape (..., classes).
        y: labels, 0 or 1, of the same shape.
        weight: array that broadcasts to that shape, by which the parts are multiplied.

    Returns:
        Tensor of shape (), or (...,).

    >>> print(gg.multilabel_soft_margin_loss([[0.0, 1000.0]], [[1.0, 1.0]]))
    0.3465736
    """
    same_shape("multilabel_soft_margin_loss", x=x, y=y)
    if not x.ndim:
        raise ShapeError("multilabel_soft_margin_loss: the scores are 0-d, without classes.")
    terms = xp.sigmoid_cross_entropy(x, y)
    losses = xp.mean(terms if weight is None else terms * weight, axis=-1)
    return reduced(xp, "multilabel_soft_margin_loss", losses, reduction)


def _margin_ref(x, labels, reduction="mean"):
    n, losses = x.shape[-1], np.zeros(x.shape[:-1])
    for i in np.ndindex(losses.shape):
        row = labels[i].tolist()
        own = row[: row.index(-1)] if -1 in row else row
        others = [c for c in range(n) if c not in own]
        losses[i] = sum(max(1 - x[i][a] + x[i][b], 0) for a in own for b in others) / n
    return reduced_ref(losses, reduction)


@op(
    ref=_margin_ref,
    samples=calls(
        lambda rng: ([uniform(rng, 2, 4), np.array([[3, 0, -1, 1], [-1, 2, 2, 2]])], {}),
        lambda rng: ([uniform(rng, 3), np.array([1, -1, 0])], {"reduction": "sum"}),
        lambda rng: ([uniform(rng, 2, 2), np.array([[0, 1], [1, -1]])], {"reduction": "none"}),
    ),
    errors=[
        ([np.ones((2, 3)), np.zeros(3, int)], {}, ShapeError, r"\(2, 3\).*\(3,\)"),
        ([np.ones(3), np.array([3, -1, -1])], {}, IndexOutOfBoundsError, "index 3"),
        ([np.ones(3), np.ones(3)], {}, DTypeError, "labels are float64"),
        ([np.ones(3), np.zeros(3, int)], {"reduction": "max"}, ArgumentError, "reduction='max'"),
    ],
)  # fmt: skip
def multilabel_margin_loss(xp, x, labels, /, *, reduction="mean"):
    """Sum of max(1 - x[own class] + x[other class], 0) over all such pairs, over the classes.

    Args:
        x: scores, of shape (..., classes).
        labels: integers of the same shape: the numbers of an example's classes, ended by -1.
            What stands behind it is not read.

    Returns:
        Tensor of shape (), or (...,).

    >>> print(gg.multilabel_margin_loss([[0.1, 0.2, 0.4, 0.8]], [[3, 0, -1, 1]]))
    0.85
    """
    same_shape("multilabel_margin_loss", x=x, labels=labels)
    if labels.dtype.kind not in "iu":
        raise DTypeError(
            f"multilabel_margin_loss: labels are {labels.dtype}; class numbers must be integers."
        )
    if not x.ndim:
        raise ShapeError("multilabel_margin_loss: the scores are 0-d, without classes.")
    n = x.shape[-1]
    used = xp.cumulative_prod(xp.astype(xp.greater_equal(labels, 0), "float32"), axis=-1) > 0
    places = xp.where(used, labels, 0)
    own = xp.expand_dims(xp.take_along_axis(x, places, axis=-1), axis=-1)
    used = xp.expand_dims(used, axis=-1)
    hot = xp.logical_and(xp.one_hot(places, n, dtype="bool"), used)
    other = xp.logical_not(xp.any(hot, axis=-2, keepdims=True))
    terms = xp.relu(1 - own + xp.expand_dims(x, axis=-2))
    terms = xp.where(xp.logical_and(used, other), terms, 0)
    return reduced(xp, "multilabel_margin_loss", xp.sum(terms, axis=(-2, -1)) / n, reduction)
