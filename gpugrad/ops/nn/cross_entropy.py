"""Softmax cross entropy, fused, against probabilities or class numbers.

The gradients are named ops, with gradients and kernels of their own.
"""

from __future__ import annotations

import numpy as np

from gpugrad.autodiff.batched import all_batched
from gpugrad.core.backend import HALF, NUMPY, SCALARS, as_dtype
from gpugrad.core.samples import uniform
from gpugrad.errors import ArgumentError, AxisError, DTypeError, IndexOutOfBoundsError, ShapeError
from gpugrad.kernels.by_hand import cross_entropy as kernels
from gpugrad.kernels.cpu import rows
from gpugrad.kernels.cpu.large import LARGE
from gpugrad.ops.arrays.class_numbers import checked_classes
from gpugrad.ops.nn.losses import same_shape
from gpugrad.ops.nn.softmax import below_max, exp_of
from gpugrad.registry.on_arrays import wide
from gpugrad.registry.record import op

_DENSE_CASES = [((4,), {}), ((2, 3), {"axis": 0}), ((2, 3, 2), {"axis": 1}), ((0, 3), {})]


def _dense_samples(rng):
    for shape, keywords in _DENSE_CASES:
        yield [uniform(rng, *shape), uniform(rng, *shape, low=0.1)], keywords


_dense_errors = [
    ((np.ones((2, 3)), np.ones(3)), {}, ShapeError, r"\(2, 3\).*\(3,\)"),
    ((np.ones(3), np.ones(3)), {"axis": 1}, AxisError, "axis 1"),
]


@op(
    vjp=[
        lambda xp, g, logits, labels, axis: xp.softmax_cross_entropy_grad(
            g, logits, labels, axis=axis
        ),
        lambda xp, g, logits, axis: (
            -xp.expand_dims(g, axis=axis) * xp.log_softmax(logits, axis=axis)
        ),
    ],
    samples=_dense_samples,
    ref=lambda x, p, axis=-1: (
        np.sum(p, axis) * NUMPY.special.logsumexp(x, axis) - np.sum(p * x, axis)
    ),
    errors=[([*args], *rest) for args, *rest in _dense_errors],
    batch="axis",
    cuda=kernels.softmax_cross_entropy,
    mixed="float32",
)
def softmax_cross_entropy(xp, logits, labels, /, axis=-1):
    """Cross entropy of the softmax of scores, against a probability for each class.

    Args:
        logits: scores, a class along `axis`.
        labels: probabilities of the classes, of the same shape. They get a gradient too, and
            need not sum to 1. A class of probability 0 adds 0, even if its score is -inf.
        axis: int, of the classes.

    Returns:
        Tensor of the shape of `logits` without `axis`.

    >>> print(gg.softmax_cross_entropy([[0.0, 0.0], [100.0, 0.0]], [[0.5, 0.5], [1.0, 0.0]]))
    [0.6931472 0.       ]
    """
    same_shape("softmax_cross_entropy", logits=logits, labels=labels)
    terms = xp.masked_multiply(labels, xp.log_softmax(logits, axis=axis))
    return 0 - xp.add_reduce(terms, axis=axis)  # a loss of 0 is not -0


def _dense_grad_samples(rng):
    for (logits, labels), keywords in _dense_samples(rng):
        losses = np.delete(logits.shape, keywords.get("axis", -1))
        yield [uniform(rng, *losses), logits, labels], keywords


def _dense_grad_ref(g, x, p, axis=-1):
    total = np.sum(p, axis, keepdims=True)
    return np.expand_dims(g, axis) * (NUMPY.special.softmax(x, axis) * total - p)


@op(
    samples=_dense_grad_samples,
    ref=_dense_grad_ref,
    errors=[([np.ones(2), *args], *rest) for args, *rest in _dense_errors[:1]],
    cuda=kernels.softmax_cross_entropy_grad,
    overwrites=1,
)
def softmax_cross_entropy_grad(xp, g_, logits, labels, /, axis=-1):
    """The gradient of `softmax_cross_entropy` by the logits.

    Args:
        g_: the gradient by the losses, of their shape.
        logits: scores, a class along `axis`.
        labels: probabilities of the classes, of the same shape.
        axis: int, of the classes.

    Returns:
        Tensor of the shape of `logits`: g_ * (softmax(logits) * sum(labels) - labels).

    >>> grad = gg.OPS["softmax_cross_entropy_grad"].eager
    >>> print(grad([1.0], [[0.0, 0.0]], [[0.0, 1.0]]))
    [[ 0.5 -0.5]]
    """
    same_shape("softmax_cross_entropy_grad", logits=logits, labels=labels)
    if type(g_) in SCALARS:
        raise DTypeError(f"softmax_cross_entropy_grad: g_ must be an array, got {g_}.")
    total = xp.sum(labels, axis=axis, keepdims=True)  # 1, if they are probabilities
    return xp.expand_dims(g_, axis=axis) * (xp.softmax(logits, axis=axis) * total - labels)


def _at_labels(xp, labels):
    """The index of each row's label, in an array (rows, classes)."""
    return xp.lib.arange(labels.size), labels.ravel()


def _sparse_samples(rng):
    for shape in ((3,), (4, 3), (2, 2, 3), (0, 3)):
        yield [uniform(rng, *shape), np.asarray(rng.integers(0, 3, shape[:-1]))], {}
    yield [uniform(rng, 2, 3), np.array([2, 0])], {"label_smoothing": 0.2}
    params = {"ignore_index": -1, "label_smoothing": 0.1}
    yield [uniform(rng, 2, 2, 3), np.array([[2, -1], [-1, 0]])], params


def _smoothed(labels, ignore_index, label_smoothing):
    """Probabilities of three classes, for the references; all 0 for an ignored example."""
    kept = np.not_equal(labels, ignore_index)[..., None]
    hot = np.eye(3)[np.where(kept[..., 0], labels, 0)]
    return kept * (hot * (1 - label_smoothing) + label_smoothing / 3)


def _sparse_ref(x, labels, ignore_index=None, label_smoothing=0.0):
    p = _smoothed(labels, ignore_index, label_smoothing)
    return -np.sum(p * NUMPY.special.log_softmax(x, -1), -1)


_sparse_errors = [
    ((np.ones((2, 3)), np.array([0, 3])), {}, IndexOutOfBoundsError, "0 to 3.*0 to 2"),
    ((np.ones((2, 3)), np.array([-1, 0])), {}, IndexOutOfBoundsError, "-1 to 0"),
    ((np.ones((2, 3)), np.array([[0], [1]])), {}, ShapeError, r"\(2, 3\).*\(2, 1\)"),
    ((np.ones((2, 3)), np.array([0.0, 1.0])), {}, DTypeError, "integers"),
    ((np.ones(3), np.array(1)), {"label_smoothing": 2}, ArgumentError, "smoothing=2"),
]


@op(
    vjp=[
        lambda xp, g, logits, labels, ignore_index, label_smoothing, dtype: (
            xp.sparse_softmax_cross_entropy_grad(
                g, logits, labels, ignore_index=ignore_index, label_smoothing=label_smoothing
            )
        ),
        None,
    ],
    native_half=True,
    samples=_sparse_samples,
    ref=_sparse_ref,
    errors=[([*args], *rest) for args, *rest in _sparse_errors],
    batch=lambda xp, batched, *arrays, **params: xp.sparse_softmax_cross_entropy(
        *all_batched(xp, batched, arrays), **params
    ),
    cuda=kernels.sparse_softmax_cross_entropy,
    mixed="float32",
)
def sparse_softmax_cross_entropy(
    xp, logits, labels, /, *, ignore_index=None, label_smoothing=0.0, dtype=None
):
    """Cross entropy of the softmax of scores along the last axis, against class numbers.

    On a GPU a label that is not a class gives NaN in the loss and its gradient instead of an
    error: checking the labels would make the host wait for them.

    Args:
        logits: scores, of shape (..., classes).
        labels: integers of shape (...,), from 0 to classes - 1.
        ignore_index: label of examples whose loss and gradient are 0; it need not be a class.
        label_smoothing: from 0 to 1; this part of the probability is shared by all classes.
        dtype: dtype of the losses; None for the dtype of `logits`. Losses of 16-bit scores are
            computed in float32 and then rounded to it.

    Returns:
        Tensor of shape (...,).

    >>> print(gg.sparse_softmax_cross_entropy([[0.0, 0.0], [100.0, 0.0]], [1, 0]))
    [0.6931472 0.       ]
    """
    kept, labels = checked_classes(
        "sparse_softmax_cross_entropy", logits, labels, ignore_index, label_smoothing
    )
    if xp is NUMPY and logits.size >= LARGE and not label_smoothing and dtype is None:
        losses = rows.cross_entropy(logits, labels, kept)
        if losses is not NotImplemented:
            return losses
    z = below_max(xp, wide(xp, logits), -1)
    picked = z.reshape(labels.size, z.shape[-1])[_at_labels(xp, labels)].reshape(labels.shape)
    if label_smoothing:
        share = label_smoothing / max(z.shape[-1], 1)
        picked = picked * (1 - label_smoothing) + xp.add_reduce(z, axis=-1) * share
    losses = xp.lib.log(xp.add_reduce(exp_of(xp, z), axis=-1)) - picked
    losses = losses if kept is None else xp.lib.where(kept, losses, xp.lib.zeros_like(losses))
    if dtype is None and logits.dtype in HALF:
        dtype = logits.dtype
    return losses if dtype is None else losses.astype(as_dtype(dtype))


def _kept_gradient(xp, g, labels, ignore_index):
    return g if ignore_index is None else xp.where(xp.equal(labels, ignore_index), 0, g)


def _sparse_grad_g(xp, g, logits, labels, ignore_index, label_smoothing):
    classes = logits.shape[-1]
    hot = xp.one_hot(labels, num_classes=classes, dtype=logits.dtype) * (1 - label_smoothing)
    d = xp.softmax(logits) - hot - label_smoothing / max(classes, 1)
    return _kept_gradient(xp, xp.sum(g * d, axis=-1), labels, ignore_index)


def _sparse_grad_logits(xp, g, g_, logits, labels, ignore_index):
    g_ = _kept_gradient(xp, g_, labels, ignore_index)
    return xp.softmax_grad(g * xp.expand_dims(g_, axis=-1), xp.softmax(logits))


def _sparse_grad_samples(rng):
    for (logits, labels), keywords in _sparse_samples(rng):
        yield [uniform(rng, *labels.shape), logits, labels], keywords


def _sparse_grad_ref(g, x, labels, ignore_index=None, label_smoothing=0.0):
    p = _smoothed(labels, ignore_index, label_smoothing)
    return g[..., None] * (NUMPY.special.softmax(x, -1) * np.sum(p, -1, keepdims=True) - p)


@op(
    vjp=[_sparse_grad_g, _sparse_grad_logits, None],
    native_half=True,
    samples=_sparse_grad_samples,
    ref=_sparse_grad_ref,
    errors=[([np.ones(2), *args], *rest) for args, *rest in _sparse_errors],
    batch=lambda xp, batched, *arrays, **params: xp.sparse_softmax_cross_entropy_grad(
        *all_batched(xp, batched, arrays), **params
    ),
    cuda=kernels.sparse_softmax_cross_entropy_grad,
    overwrites=1,
)
def sparse_softmax_cross_entropy_grad(
    xp, g_, logits, labels, /, *, ignore_index=None, label_smoothing=0.0
):
    """The gradient of `sparse_softmax_cross_entropy` by the logits.

    Args:
        g_: the gradient by the losses, of shape (...,).
        logits: scores, of shape (..., classes).
        labels: integers of shape (...,).
        ignore_index, label_smoothing: as for `sparse_softmax_cross_entropy`.

    Returns:
        Tensor of the shape of `logits`: g_ * (softmax(logits) - p), where p is one_hot(labels)
        after smoothing; 0 for ignored examples.

    >>> grad = gg.OPS["sparse_softmax_cross_entropy_grad"].eager
    >>> print(grad([1.0], [[0.0, 0.0]], [1]))
    [[ 0.5 -0.5]]
    """
    kept, labels = checked_classes(
        "sparse_softmax_cross_entropy_grad", logits, labels, ignore_index, label_smoothing
    )
    if xp is NUMPY and logits.size >= LARGE and not label_smoothing:
        d = rows.cross_entropy_grad(g_, logits, labels, kept)
        if d is not NotImplemented:
            return d
    # C order makes the reshape a view
    e = exp_of(xp, xp.lib.ascontiguousarray(below_max(xp, wide(xp, logits), -1)))
    g_ = wide(xp, g_)
    e *= g_[..., None] / xp.add_reduce(e, axis=-1, keepdims=True)
    if label_smoothing:
        e -= g_[..., None] * (label_smoothing / e.shape[-1])
    own = g_.ravel() * (1 - label_smoothing) if label_smoothing else g_.ravel()
    e.reshape(labels.size, e.shape[-1])[_at_labels(xp, labels)] -= own
    if kept is not None:
        e[~kept] = 0
    return e.astype(logits.dtype) if logits.dtype in HALF else e
