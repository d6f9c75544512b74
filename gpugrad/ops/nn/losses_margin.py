"""Losses that ask for a margin: between scores, classes, distances or angles.

At the margin itself the gradient is the one beyond it, as in torch.
"""

import numpy as np

from gpugrad.core.samples import calls
from gpugrad.errors import ArgumentError, IndexOutOfBoundsError, ShapeError
from gpugrad.ops.nn.losses import loss, real, sample
from gpugrad.registry.on_arrays import typed


def _signs(*shape):
    """Labels that are 1 or -1, for `sample`."""
    return lambda rng: np.asarray(rng.choice([-1.0, 1.0], shape))


def _labelled(*keywords):
    """Samples: scores and labels 1 or -1."""
    return calls(
        sample(real(2, 3), _signs(2, 3)),
        *(sample(real(4), _signs(4), **k) for k in ({"reduction": "none"}, *keywords)),
    )


def _positive(xp, x):
    """`x` where it is positive, else 0."""
    return xp.maximum(x, 0)


@loss(lambda x, y: np.maximum(1 - x * y, 0), _labelled())
def hinge_loss(xp, x, y, /):
    """max(1 - x y, 0): scores should have the sign of their labels, and be 1 away from 0.

    Args:
        x: scores.
        y: labels, 1 or -1, of the same shape (or one number).

    >>> print(gg.hinge_loss([0.5, -2.0], [1.0, 1.0], reduction="none"))
    [0.5 3. ]
    """
    return _positive(xp, 1 - x * y)


@loss(lambda x, y: np.maximum(1 - x * y, 0) ** 2, _labelled())
def squared_hinge_loss(xp, x, y, /):
    """The square of `hinge_loss`, elementwise.

    Args:
        x: scores.
        y: labels, 1 or -1, of the same shape (or one number).

    >>> print(gg.squared_hinge_loss([0.5, -2.0], [1.0, 1.0], reduction="none"))
    [0.25 9.  ]
    """
    return xp.square(_positive(xp, 1 - x * y))


@loss(
    lambda x, y, margin=1.0: np.where(y > 0, x, np.maximum(margin - x, 0)),
    _labelled({"margin": 0.5}),
)
def hinge_embedding_loss(xp, x, y, /, *, margin=1.0):
    """`x` where the label is 1, max(margin - x, 0) where it is -1.

    Args:
        x: distances.
        y: labels, 1 or -1, of the same shape.
        margin: number; distances beyond it cost nothing.

    >>> print(gg.hinge_embedding_loss([0.5, 0.5], [1.0, -1.0], margin=2.0, reduction="none"))
    [0.5 1.5]
    """
    x, y = typed(x, y)
    return xp.where(xp.greater(y, 0), x, _positive(xp, margin - x))


@loss(lambda x, y: np.log(1 + np.exp(-x * y)), _labelled())
def soft_margin_loss(xp, x, y, /):
    """log(1 + exp(-x y)), without overflow.

    Args:
        x: scores.
        y: labels, 1 or -1, of the same shape (or one number).

    >>> print(gg.soft_margin_loss([0.0, 100.0], [1.0, -1.0], reduction="none"))
    [  0.6931472 100.       ]
    """
    return xp.softplus(-x * y)


@loss(
    lambda x1, x2, y, margin=0.0: np.maximum(margin - y * (x1 - x2), 0),
    calls(
        sample(real(2, 3), real(2, 3), _signs(2, 3)),
        sample(real(4), real(4), _signs(4), margin=0.5, reduction="none"),
    ),
)
def margin_ranking_loss(xp, x1, x2, y, /, *, margin=0.0):
    """max(margin - y (x1 - x2), 0): one of two scores should be larger.

    Args:
        x1, x2: scores, of the same shape.
        y: labels of the same shape (or one number): 1 if `x1` should be larger, -1 if `x2`.
        margin: number; how much larger.

    >>> print(gg.margin_ranking_loss([1.0, 2.0], [3.0, 1.0], [1.0, 1.0], reduction="none"))
    [2. 0.]
    """
    return _positive(xp, margin - y * (x1 - x2))


def _multi_margin_ref(x, labels, weight=None, p=1, margin=1.0):
    n = x.shape[-1]
    own = np.take_along_axis(x, labels[..., None], -1)
    terms = np.maximum(margin - own + x, 0) ** p * (1 - np.eye(n)[labels])
    return (1 if weight is None else weight[labels]) * terms.sum(-1) / n


@loss(
    _multi_margin_ref,
    calls(
        sample(real(4, 3), [0, 2, 1, 1]),
        sample(real(2, 3), [0, 2], real(3), p=2, margin=0.5, reduction="none"),
        sample(real(3), 1, reduction="sum"),
    ),
    [
        ([np.ones((2, 3)), np.array([0, 3])], {}, IndexOutOfBoundsError, "0 to 3.*0 to 2"),
        ([np.ones((2, 3)), np.array([0])], {}, ShapeError, r"\(2, 3\).*\(1,\)"),
        ([np.ones((2, 3)), np.array([0, 1])], {"p": 3}, ArgumentError, "multi_margin_loss: p=3"),
    ],
    arrays=("x", "labels", "weight"),
    same=0,
)
def multi_margin_loss(xp, x, labels, /, weight=None, *, p=1, margin=1.0):
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
    terms = xp.relu(margin - own + x)  # gradient 0 at 0, as in torch; _positive's is 1
    terms = xp.where(xp.one_hot(labels, n, dtype="bool"), 0, terms if p == 1 else terms * terms)
    losses = xp.sum(terms, axis=-1) / n
    return losses if weight is None else losses * xp.take(weight, labels, axis=0)


def _cosine_ref(x1, x2, y, margin=0.0):
    cos = np.sum(x1 * x2, -1) / np.sqrt(np.sum(x1 * x1, -1) * np.sum(x2 * x2, -1))
    return np.where(y > 0, 1 - cos, np.maximum(cos - margin, 0))


def _near_unit(xp, x):
    """Vectors over their lengths, which a cosine does not depend on: constants to a gradient.

    Returns:
        These vectors, and their squares plus torch's 1e-12, scaled like them.
    """
    inverse = xp.stop_gradient(1 / xp.hypot(xp.vector_norm(x, axis=-1, keepdims=True), 1e-6))
    x = x * inverse
    return x, xp.sum(x * x, axis=-1) + xp.square(1e-6 * xp.squeeze(inverse, axis=-1))


@loss(
    _cosine_ref,
    calls(
        sample(real(4, 3), real(4, 3), _signs(4)),
        sample(real(3), real(3), -1.0, margin=-0.9, reduction="none"),
    ),
    [([np.ones((2, 3)), np.ones((2, 3)), np.ones(3)], {}, ShapeError, r"y.*\(3,\)")],
    same=2,
)
def cosine_embedding_loss(xp, x1, x2, y, /, *, margin=0.0):
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
    if getattr(y, "shape", x1.shape[:-1]) != x1.shape[:-1]:
        raise ShapeError(
            f"cosine_embedding_loss: y has shape {y.shape}, it must be {x1.shape[:-1]}: the shape "
            "of the vectors without the last axis."
        )
    (x1, square1), (x2, square2) = (_near_unit(xp, x) for x in (x1, x2))
    cos = xp.sum(x1 * x2, axis=-1) / xp.sqrt(square1 * square2)
    return xp.where(xp.greater(y, 0), 1 - cos, _positive(xp, cos - margin))


def _triplet_ref(anchor, positive, negative, margin=1.0, p=2.0, eps=1e-6, swap=False):
    def distance(a, b):
        return np.linalg.norm(a - b + eps, p, axis=-1)

    far = distance(anchor, negative)
    if swap:
        far = np.minimum(far, distance(positive, negative))
    return np.maximum(margin + distance(anchor, positive) - far, 0)


@loss(
    _triplet_ref,
    calls(
        sample(*[real(4, 3)] * 3),
        sample(*[real(2, 3)] * 3, p=3.0, margin=2.0, swap=True, reduction="none"),
    ),
)
def triplet_margin_loss(
    xp, anchor, positive, negative, /, *, margin=1.0, p=2.0, eps=1e-6, swap=False
):
    """max(margin + |anchor - positive| - |anchor - negative|, 0), of vectors.

    Args:
        anchor, positive, negative: vectors along the last axis, of the same shape.
        margin: number; how much farther away the negative ones should be.
        p: order of the norm.
        eps: added to the differences, see `pairwise_distance`.
        swap: whether to use |positive - negative| where it is the smaller distance.

    Returns:
        Tensor of shape (), or the shape of the vectors without the last axis.

    Balntas et al. 2016, "Learning local feature descriptors with triplets and shallow
    convolutional neural networks".

    >>> print(gg.triplet_margin_loss([[0.0, 0.0]], [[3.0, 4.0]], [[0.0, 2.0]]).numpy().round(3))
    4.0
    """
    near = xp.pairwise_distance(anchor, positive, p=p, eps=eps)
    far = xp.pairwise_distance(anchor, negative, p=p, eps=eps)
    if swap:
        far = xp.minimum(far, xp.pairwise_distance(positive, negative, p=p, eps=eps))
    return _positive(xp, margin + near - far)
