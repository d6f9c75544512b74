"""Losses that ask for a margin: between scores, classes, distances or angles.

At the margin itself the gradient is that of the loss beyond it, as in torch.
"""

from __future__ import annotations

import numpy as np

from gpugrad.core.samples import calls, uniform
from gpugrad.errors import ArgumentError, IndexOutOfBoundsError, ShapeError
from gpugrad.ops.nn.losses import reduced, reduced_ref, same_shape
from gpugrad.registry.record import op

_MAX = ([np.ones(3)] * 2, {"reduction": "max"}, ArgumentError, "reduction='max'")
_PAIR_ERRORS = [([np.ones((3, 1)), np.ones(3)], {}, ShapeError, r"\(3, 1\).*\(3,\)"), _MAX]


def _signs(rng, *shape):
    """Labels that are 1 or -1."""
    return np.asarray(rng.choice([-1.0, 1.0], shape))


def _signed(*keywords):
    """Samples: scores and labels 1 or -1."""
    return calls(
        lambda rng: ([uniform(rng, 2, 3), _signs(rng, 2, 3)], {}),
        *(
            lambda rng, k=k: ([uniform(rng, 4), _signs(rng, 4)], k)
            for k in ({"reduction": "none"}, *keywords)
        ),
    )


def _short(xp, x):
    """What is lacking: `x` where it is positive, else 0."""
    return xp.maximum(x, 0)


# ---- labels 1 and -1 ---------------------------------------------------------------------


@op(
    samples=_signed(), errors=_PAIR_ERRORS,
    ref=lambda x, y, reduction="mean": reduced_ref(np.maximum(1 - x * y, 0), reduction),
)  # fmt: skip
def hinge_loss(xp, x, y, /, *, reduction="mean"):
    """max(1 - x y, 0): scores shall have the sign of their labels, and be 1 away from 0.

    Args:
        x: scores.
        y: labels, 1 or -1, of the same shape (or one number).

    >>> print(gg.hinge_loss([0.5, -2.0], [1.0, 1.0], reduction="none"))
    [0.5 3. ]
    """
    same_shape("hinge_loss", x=x, y=y)
    return reduced(xp, "hinge_loss", _short(xp, 1 - x * y), reduction)


@op(
    samples=_signed(), errors=_PAIR_ERRORS,
    ref=lambda x, y, reduction="mean": reduced_ref(np.maximum(1 - x * y, 0) ** 2, reduction),
)  # fmt: skip
def squared_hinge_loss(xp, x, y, /, *, reduction="mean"):
    """The square of `hinge_loss`, elementwise.

    Args:
        x: scores.
        y: labels, 1 or -1, of the same shape (or one number).

    >>> print(gg.squared_hinge_loss([0.5, -2.0], [1.0, 1.0], reduction="none"))
    [0.25 9.  ]
    """
    same_shape("squared_hinge_loss", x=x, y=y)
    return reduced(xp, "squared_hinge_loss", xp.square(_short(xp, 1 - x * y)), reduction)


@op(
    samples=_signed({"margin": 0.5}), errors=_PAIR_ERRORS,
    ref=lambda x, y, margin=1.0, reduction="mean": reduced_ref(
        np.where(y > 0, x, np.maximum(margin - x, 0)), reduction
    ),
)  # fmt: skip
def hinge_embedding_loss(xp, x, y, /, *, margin=1.0, reduction="mean"):
    """`x` where the label is 1, max(margin - x, 0) where it is -1; `x` are distances.

    Args:
        x: distances.
        y: labels, 1 or -1, of the same shape.
        margin: number; distances beyond it cost nothing.

    >>> print(gg.hinge_embedding_loss([0.5, 0.5], [1.0, -1.0], margin=2.0, reduction="none"))
    [0.5 1.5]
    """
    same_shape("hinge_embedding_loss", x=x, y=y)
    losses = xp.where(xp.greater(y, 0), x, _short(xp, margin - x))
    return reduced(xp, "hinge_embedding_loss", losses, reduction)


@op(
    samples=_signed(), errors=_PAIR_ERRORS,
    ref=lambda x, y, reduction="mean": reduced_ref(np.log(1 + np.exp(-x * y)), reduction),
)  # fmt: skip
def soft_margin_loss(xp, x, y, /, *, reduction="mean"):
    """log(1 + exp(-x y)), without overflow.

    Args:
        x: scores.
        y: labels, 1 or -1, of the same shape (or one number).

    >>> print(gg.soft_margin_loss([0.0, 100.0], [1.0, -1.0], reduction="none"))
    [  0.6931472 100.       ]
    """
    same_shape("soft_margin_loss", x=x, y=y)
    return reduced(xp, "soft_margin_loss", xp.softplus(-x * y), reduction)


@op(
    samples=calls(
        lambda rng: ([uniform(rng, 2, 3), uniform(rng, 2, 3), _signs(rng, 2, 3)], {}),
        lambda rng: (
            [uniform(rng, 4), uniform(rng, 4), _signs(rng, 4)],
            {"margin": 0.5, "reduction": "none"},
        ),
    ),
    ref=lambda x1, x2, y, margin=0.0, reduction="mean": reduced_ref(
        np.maximum(margin - y * (x1 - x2), 0), reduction
    ),
    errors=[
        ([np.ones((3, 1)), np.ones(3), np.ones(3)], {}, ShapeError, r"\(3, 1\).*\(3,\)"),
        ([np.ones(3)] * 3, {"reduction": "max"}, ArgumentError, "reduction='max'"),
    ],
)  # fmt: skip
def margin_ranking_loss(xp, x1, x2, y, /, *, margin=0.0, reduction="mean"):
    """max(margin - y (x1 - x2), 0): which of two scores shall be the larger.

    Args:
        x1, x2: scores, of the same shape.
        y: labels, 1 if `x1` shall be the larger and -1 if `x2`, of the same shape (or one
            number).
        margin: number; how much larger.

    >>> print(gg.margin_ranking_loss([1.0, 2.0], [3.0, 1.0], [1.0, 1.0], reduction="none"))
    [2. 0.]
    """
    same_shape("margin_ranking_loss", x1=x1, x2=x2, y=y)
    losses = _short(xp, margin - y * (x1 - x2))
    return reduced(xp, "margin_ranking_loss", losses, reduction)


# ---- classes -----------------------------------------------------------------------------


def _multi_margin_ref(x, labels, weight=None, p=1, margin=1.0, reduction="mean"):
    n = x.shape[-1]
    own = np.take_along_axis(x, labels[..., None], -1)
    terms = np.maximum(margin - own + x, 0) ** p * (1 - np.eye(n)[labels])
    weight = 1 if weight is None else weight[labels]
    return reduced_ref(weight * terms.sum(-1) / n, reduction)


@op(
    arrays=("x", "labels", "weight"), ref=_multi_margin_ref,
    samples=calls(
        lambda rng: ([uniform(rng, 4, 3), np.array([0, 2, 1, 1])], {}),
        lambda rng: (
            [uniform(rng, 2, 3), np.array([0, 2]), uniform(rng, 3)],
            {"p": 2, "margin": 0.5, "reduction": "none"},
        ),
        lambda rng: ([uniform(rng, 3), np.array(1)], {"reduction": "sum"}),
    ),
    errors=[
        ([np.ones((2, 3)), np.array([0, 3])], {}, IndexOutOfBoundsError, "0 to 3.*0 to 2"),
        ([np.ones((2, 3)), np.array([0])], {}, ShapeError, r"\(2, 3\).*\(1,\)"),
        ([np.ones((2, 3)), np.array([0, 1])], {"p": 3}, ArgumentError, "multi_margin_loss: p=3"),
    ],
)  # fmt: skip
def multi_margin_loss(xp, x, labels, /, weight=None, *, p=1, margin=1.0, reduction="mean"):
    """Mean over the other classes of max(margin - x[label] + x[class], 0) ** p.

    The mean divides by the number of all classes, as in torch.

    Args:
        x: scores, of shape (n, classes) or (classes,).
        labels: integers of shape (n,) or ().
        weight: array of shape (classes,), by which the losses of a class are multiplied.
        p: 1 or 2.
        margin: number.

    Returns:
        Tensor of shape (), or of the shape of `labels`.

    >>> print(gg.multi_margin_loss([[0.0, 1.0, 0.5]], [1]))
    0.16666667
    """
    if p not in (1, 2):
        raise ArgumentError(f"multi_margin_loss: p={p!r} is neither 1 nor 2.")
    own = xp.expand_dims(xp.class_scores(x, labels, axis=-1), axis=-1)
    n = x.shape[-1]
    terms = xp.relu(margin - own + x)  # whose gradient at 0 is torch's: 0, that of _short is 1
    terms = xp.where(xp.one_hot(labels, n, dtype="bool"), 0, terms if p == 1 else terms * terms)
    losses = xp.sum(terms, axis=-1) / n
    if weight is not None:
        losses = losses * xp.take(weight, labels, axis=0)
    return reduced(xp, "multi_margin_loss", losses, reduction)


# ---- vectors -----------------------------------------------------------------------------


def _cosine_ref(x1, x2, y, margin=0.0, reduction="mean"):
    cos = np.sum(x1 * x2, -1) / np.sqrt(np.sum(x1 * x1, -1) * np.sum(x2 * x2, -1))
    return reduced_ref(np.where(y > 0, 1 - cos, np.maximum(cos - margin, 0)), reduction)


@op(
    ref=_cosine_ref,
    samples=calls(
        lambda rng: ([uniform(rng, 4, 3), uniform(rng, 4, 3), _signs(rng, 4)], {}),
        lambda rng: (
            [uniform(rng, 3), uniform(rng, 3), np.asarray(-1.0)],
            {"margin": -0.9, "reduction": "none"},
        ),
    ),
    errors=[
        ([np.ones((2, 3)), np.ones((2, 1)), np.ones(2)], {}, ShapeError, r"\(2, 3\).*\(2, 1\)"),
        ([np.ones((2, 3)), np.ones((2, 3)), np.ones(3)], {}, ShapeError, r"y.*\(3,\)"),
        ([np.ones(3), np.ones(3), 1.0], {"reduction": "max"}, ArgumentError, "reduction='max'"),
    ],
)  # fmt: skip
def cosine_embedding_loss(xp, x1, x2, y, /, *, margin=0.0, reduction="mean"):
    """1 - cos where the label is 1, max(cos - margin, 0) where it is -1.

    Args:
        x1, x2: vectors along the last axis, of the same shape.
        y: labels, 1 or -1, of that shape without the last axis (or one number).
        margin: number from -1 to 1; cosines below it cost nothing.

    Returns:
        Tensor of shape (), or of the shape of `y`. The cosine with a zero vector is 0.

    >>> print(gg.cosine_embedding_loss([[1.0, 0.0]], [[1.0, 1.0]], [1.0]))
    0.29289323
    """
    same_shape("cosine_embedding_loss", x1=x1, x2=x2)
    if getattr(y, "shape", x1.shape[:-1]) != x1.shape[:-1]:
        raise ShapeError(
            f"cosine_embedding_loss: y has shape {y.shape}, it must be {x1.shape[:-1]}: that of "
            "the vectors without the last axis."
        )
    squares = [xp.sum(x * x, axis=-1) + 1e-12 for x in (x1, x2)]  # torch's number
    cos = xp.sum(x1 * x2, axis=-1) / xp.sqrt(squares[0] * squares[1])
    losses = xp.where(xp.greater(y, 0), 1 - cos, _short(xp, cos - margin))
    return reduced(xp, "cosine_embedding_loss", losses, reduction)


def _triplet_ref(
    anchor, positive, negative, margin=1.0, p=2.0, eps=1e-6, swap=False, reduction="mean"
):
    def distance(a, b):
        return np.linalg.norm(a - b + eps, p, axis=-1)

    far = distance(anchor, negative)
    if swap:
        far = np.minimum(far, distance(positive, negative))
    return reduced_ref(np.maximum(margin + distance(anchor, positive) - far, 0), reduction)


@op(
    ref=_triplet_ref,
    samples=calls(
        lambda rng: ([uniform(rng, 4, 3) for _ in range(3)], {}),
        lambda rng: (
            [uniform(rng, 2, 3) for _ in range(3)],
            {"p": 3.0, "margin": 2.0, "swap": True, "reduction": "none"},
        ),
    ),
    errors=[
        ([np.ones((2, 3)), np.ones((2, 1)), np.ones(3)], {}, ShapeError, r"\(2, 3\).*\(2, 1\)"),
        ([np.ones((2, 3))] * 3, {"reduction": "max"}, ArgumentError, "reduction='max'"),
    ],
)  # fmt: skip
def triplet_margin_loss(
    xp, anchor, positive, negative, /, *, margin=1.0, p=2.0, eps=1e-6, swap=False, reduction="mean"
):
    """max(margin + |anchor - positive| - |anchor - negative|, 0), of vectors.

    Args:
        anchor, positive, negative: vectors along the last axis, of the same shape.
        margin: number; how much farther off the negative ones shall be.
        p: order of the norm.
        eps: added to the differences, see `pairwise_distance`.
        swap: whether to take |positive - negative| where that is the smaller distance.

    Returns:
        Tensor of shape (), or of that of the vectors without the last axis.

    Balntas et al. 2016, "Learning local feature descriptors with triplets and shallow
    convolutional neural networks".

    >>> print(gg.triplet_margin_loss([[0.0, 0.0]], [[3.0, 4.0]], [[0.0, 2.0]]).numpy().round(3))
    4.0
    """
    same_shape("triplet_margin_loss", anchor=anchor, positive=positive, negative=negative)
    near = xp.pairwise_distance(anchor, positive, p=p, eps=eps)
    far = xp.pairwise_distance(anchor, negative, p=p, eps=eps)
    if swap:
        far = xp.minimum(far, xp.pairwise_distance(positive, negative, p=p, eps=eps))
    losses = _short(xp, margin + near - far)
    return reduced(xp, "triplet_margin_loss", losses, reduction)
