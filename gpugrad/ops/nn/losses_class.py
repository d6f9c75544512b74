"""Losses between the scores of classes and class numbers or probabilities.

Classes are along axis 1, as in torch (axis 0 for a single example).
"""

import operator
from typing import Any

import numpy as np

from gpugrad.core.backend import HALF, NUMPY, SCALARS, on_gpu
from gpugrad.core.index_checks import extremes, within
from gpugrad.core.samples import calls
from gpugrad.errors import ArgumentError, DTypeError, IndexOutOfBoundsError, ShapeError
from gpugrad.kernels.cpu.large import LARGE
from gpugrad.kernels.runtime.launch import is_captured
from gpugrad.ops import _axes
from gpugrad.ops.arrays.index_rules import is_deferred
from gpugrad.ops.nn.losses import real, reduced, reduced_ref, sample
from gpugrad.registry.on_arrays import through_float32
from gpugrad.registry.record import op


def _class_scores_vjp(xp, g, x_shape, labels, axis, ignore_index):
    ignored = xp.equal(labels, ignore_index)
    g = xp.expand_dims(xp.where(ignored, 0, g), axis=axis)
    places = xp.expand_dims(xp.where(ignored, 0, labels), axis=axis)
    return xp.scatter_along_axis(g, places, axis=axis, shape=x_shape, unique=True)


def _class_scores_ref(x, labels, axis=1, ignore_index=-100):
    kept = labels != ignore_index
    places = np.expand_dims(np.where(kept, labels, 0), axis)
    return np.where(kept, np.take_along_axis(x, places, axis).squeeze(axis), 0)


_WRONG_LABELS: list[Any] = [
    ([np.ones((2, 3)), np.array([0, 3])], {}, IndexOutOfBoundsError, "0 to 3.*0 to 2"),
    ([np.ones((2, 3)), np.array([-1, 0])], {}, IndexOutOfBoundsError, "-1 to 0"),
    ([np.ones((2, 3)), np.array([0, 1, 2])], {}, ShapeError, r"\(2, 3\).*\(3,\)"),
    ([np.ones((2, 3)), np.array([0.0, 1.0])], {}, DTypeError, "integers"),
]


@op(
    vjp=[_class_scores_vjp, None],
    batch="axis",
    kinds="fc",
    ref=_class_scores_ref,
    errors=_WRONG_LABELS,
    samples=calls(
        sample(real(4, 3), [0, 2, -100, 1]),
        sample(real(2, 3, 2), [[0, 2], [9, 1]], ignore_index=9),
        sample(real(2, 3), [1, 0], axis=-1),
        sample(real(3), 1, axis=0),
        sample(real(0, 3), np.zeros(0, np.int64)),
    ),
    captures=True,
)
def class_scores(xp, x, labels, /, *, axis=1, ignore_index=-100):
    """The score of each example's own class; 0 for an ignored example; `nll_loss` calls it.

    Args:
        x: scores, a class along `axis`.

    Returns:
        Tensor of the shape of `labels`.
    """
    if labels.dtype.kind not in "iu":
        raise DTypeError(
            f"class_scores: labels are {labels.dtype}; class numbers must be integers."
        )
    if not -x.ndim <= axis < x.ndim or labels.shape != _axes.reduced(x.shape, axis):
        raise ShapeError(
            f"class_scores: scores have shape {x.shape}, labels {labels.shape}. Labels must have "
            f"the shape of the scores without axis {axis}, the axis of the classes."
        )
    lib, n, ignore_index = xp.lib, x.shape[axis], operator.index(ignore_index)
    if axis == 1 and x.ndim == 2 and _all_count(xp, labels, n, ignore_index):
        return x[np.arange(labels.size), labels]
    ignored = labels == ignore_index
    places = lib.where(ignored, 0, labels)
    if places.size and not is_captured(x) and not is_deferred("class_scores", places, n):
        low, high = extremes(places)
        if low < 0 or high >= n:
            raise IndexOutOfBoundsError(
                f"class_scores: labels run from {low} to {high}, the {n} classes from 0 to "
                f"{n - 1}; {ignore_index} marks examples to ignore."
            )
    if xp is not NUMPY:  # in a CUDA graph a label that is not a class gives NaN: -1 is not the last
        places = lib.where(places < 0, n, places)
    places = lib.expand_dims(places.astype(np.int64, copy=False), axis)
    own = xp.take_along_axis(x, places, axis=axis).reshape(labels.shape)
    return lib.where(ignored, lib.zeros_like(own), own)


def _all_count(xp, labels, n, ignore_index):
    """Whether labels in NumPy are known to be classes, none of them the one to ignore."""
    return xp is NUMPY and not 0 <= operator.index(ignore_index) < n and within(labels, n)


def _class_axis(name, x, labels):
    if type(labels) in SCALARS:
        raise DTypeError(f"{name}: labels must be an array, not the number {labels}.")
    if not x.ndim:
        raise ShapeError(f"{name}: the scores are a 0-d array, without classes.")
    return 0 if x.ndim == 1 else 1


def _along_classes(xp, name, weight, x, axis):
    """The classes' weights, shaped to broadcast with the scores."""
    if weight.shape != (x.shape[axis],):
        raise ShapeError(
            f"{name}: weight has shape {weight.shape}; it must have one element for each of "
            f"the {x.shape[axis]} classes."
        )
    return xp.reshape(weight, (-1, *(1,) * (x.ndim - axis - 1)))


def _mean(xp, losses):
    """`_weighted_mean` with weights of 1, to the last bit."""
    return xp.sum(losses) / losses.dtype.type(losses.size)


def _weighted_mean(xp, name, losses, weights, reduction):
    """`reduced`, but the mean is weighted, and 0 if all weights are 0."""
    if reduction != "mean":
        return reduced(xp, name, losses, reduction)
    return xp.masked_divide(xp.sum(losses), xp.sum(weights))


def _signed(xp, labels):
    """Class numbers in a dtype that can hold an `ignore_index` below 0."""
    return xp.astype(labels, "int64") if labels.dtype.kind == "u" else labels


def _own_weights(xp, labels, weight, ignore_index, dtype):
    """The weight of each example: its class's weight, or 0 if it is ignored."""
    kept = xp.not_equal(labels, ignore_index)
    if weight is None:
        return xp.astype(kept, dtype)
    own = xp.take(weight, xp.where(kept, labels, 0), axis=0)
    return xp.where(kept, own, 0)


def _nll_ref(x, labels, weight=None, ignore_index=-100, reduction="mean"):
    axis = 0 if x.ndim == 1 else 1
    weight = np.ones(x.shape[axis]) if weight is None else weight
    kept = labels != ignore_index
    own = np.where(kept, weight[np.where(kept, labels, 0)], 0)
    losses = -own * _class_scores_ref(x, labels, axis, ignore_index)
    return losses.sum() / own.sum() if reduction == "mean" else reduced_ref(losses, reduction)


_LABELLED = calls(
    sample(real(4, 3), [0, 2, -100, 1]),
    sample(real(2, 3, 2), [[0, 2], [1, 1]], real(3, low=0.5)),
    sample(real(2, 3), [1, 0], real(3, low=0.5), ignore_index=0, reduction="none"),
    sample(real(3), 1, reduction="sum"),
)
_LABEL_ERRORS = [
    *_WRONG_LABELS,
    ([np.ones((2, 3)), np.array([0, 1]), np.ones(2)], {}, ShapeError, r"weight.*\(2,\).*3 classes"),
    ([np.ones((2, 3)), np.array([0, 1])], {"reduction": "max"}, ArgumentError, "reduction='max'"),
    ([np.ones(3), 1], {}, DTypeError, "not the number 1"),
]


@op(
    arrays=("x", "labels", "weight"),
    samples=_LABELLED,
    ref=_nll_ref,
    errors=_LABEL_ERRORS,
    mixed="float32",
)
def nll_loss(xp, x, labels, /, weight=None, *, ignore_index=-100, reduction="mean"):
    """Negative log-likelihood of class numbers, from the logarithms of their probabilities.

    Args:
        x: logarithms of probabilities, of shape (n, classes, ...) or (classes,).
        labels: integers of shape (n, ...) or (), from 0 to classes - 1.
        weight: array of shape (classes,); None for 1 each. The mean is weighted.
        ignore_index: label of the examples to ignore, which need not be a class.
        reduction: ``"mean"`` (0 if all are ignored, where torch gives NaN), ``"sum"`` or
            ``"none"``.

    Returns:
        Tensor of shape (), or of the shape of `labels`.

    >>> print(gg.nll_loss([[-1.0, -2.0], [-3.0, -4.0]], [0, 1]))
    2.5
    """
    axis, labels = _class_axis("nll_loss", x, labels), _signed(xp, labels)
    is_mean = weight is None and reduction == "mean" and labels.size < LARGE
    is_mean = is_mean and x.ndim == 2 and labels.shape == x.shape[:1]
    if is_mean and _all_count(xp, labels, x.shape[1], ignore_index):
        return _mean(xp, 0 - x[np.arange(labels.size), labels])
    losses = 0 - xp.class_scores(x, labels, axis=axis, ignore_index=ignore_index)
    if weight is not None:
        _along_classes(xp, "nll_loss", weight, x, axis)
    if weight is None and reduction != "mean":
        return reduced(xp, "nll_loss", losses, reduction)
    own = _own_weights(xp, labels, weight, ignore_index, x.dtype)
    losses = losses if weight is None else losses * own
    return _weighted_mean(xp, "nll_loss", losses, own, reduction)


@through_float32
def _soft_labels(xp, x, labels, weight, axis, reduction, label_smoothing):
    """`cross_entropy` against probabilities."""
    if x.shape != labels.shape:
        raise ShapeError(
            f"cross_entropy: labels are {labels.dtype}, so they are probabilities and need the "
            f"shape of x, {x.shape}; their shape is {labels.shape}. Class numbers are "
            'integers: cast them with gg.astype(labels, "int64").'
        )
    n = x.shape[axis]
    if label_smoothing:
        labels = labels * (1 - label_smoothing) + label_smoothing / n
    if weight is not None:
        labels = labels * _along_classes(xp, "cross_entropy", weight, x, axis)
    losses = xp.softmax_cross_entropy(x, labels, axis=axis)
    return reduced(xp, "cross_entropy", losses, reduction)


def _sparse(xp, x, labels, axis, ignore_index, label_smoothing):
    """Losses against class numbers; 0 where they are ignored."""
    last = x if axis == x.ndim - 1 else xp.moveaxis(x, axis, -1)
    options = {"ignore_index": ignore_index, "label_smoothing": label_smoothing}
    dtype = "float32" if x.dtype in HALF else None
    return xp.sparse_softmax_cross_entropy(last, labels, dtype=dtype, **options)


def _smoothed(xp, x, labels, weight, own, axis, ignore_index, label_smoothing):
    """Losses against class numbers with label smoothing and weights."""
    log_p = xp.log_softmax(x, axis=axis)
    losses = 0 - xp.class_scores(log_p, labels, axis=axis, ignore_index=ignore_index)
    every = 0 - xp.mean(log_p * _along_classes(xp, "cross_entropy", weight, x, axis), axis=axis)
    every = xp.where(xp.equal(labels, ignore_index), 0, every)
    return losses * own * (1 - label_smoothing) + every * label_smoothing


def _hard_labels(xp, x, labels, weight, axis, ignore_index, reduction, label_smoothing):
    """`cross_entropy` against class numbers."""
    own = None
    is_mean = weight is None and reduction == "mean" and labels.size < LARGE
    if is_mean and _all_count(xp, labels, x.shape[axis], ignore_index):
        return _mean(xp, _sparse(xp, x, labels, axis, None, label_smoothing))
    if weight is not None:
        _along_classes(xp, "cross_entropy", weight, x, axis)
    if weight is not None or reduction == "mean":
        dtype = np.float32 if x.dtype in HALF else x.dtype
        own = _own_weights(xp, labels, weight, ignore_index, dtype)
    if weight is not None and label_smoothing:
        losses = _smoothed(xp, x, labels, weight, own, axis, ignore_index, label_smoothing)
    else:
        losses = _sparse(xp, x, labels, axis, ignore_index, label_smoothing)
        losses = losses if weight is None else losses * own
    return _weighted_mean(xp, "cross_entropy", losses, own, reduction)


_widened_hard_labels = through_float32(_hard_labels)


def _cross_entropy_ref(
    x, labels, weight=None, ignore_index=-100, reduction="mean", label_smoothing=0.0
):
    axis = 0 if x.ndim == 1 else 1
    n = x.shape[axis]
    w = np.expand_dims(np.ones(n) if weight is None else weight, tuple(range(1, x.ndim - axis)))
    if labels.dtype.kind == "f":
        p, kept = labels, None
    else:
        kept = labels != ignore_index
        p = np.moveaxis(np.eye(n)[np.where(kept, labels, 0)] * kept[..., None], -1, axis)
        own = np.sum(p * w, axis)
    share = 1 if kept is None else np.sum(p, axis, keepdims=True)
    p = p * (1 - label_smoothing) + label_smoothing / n * share
    losses = -np.sum(w * p * NUMPY.special.log_softmax(x, axis), axis)
    if kept is not None and reduction == "mean":
        return losses.sum() / own.sum()
    return reduced_ref(losses, reduction)


def _cross_entropy_samples(rng):
    keywords = ({}, {"label_smoothing": 0.2}, {"label_smoothing": 0.1, "ignore_index": 0}, {})
    for (args, params), more in zip(_LABELLED(rng), keywords, strict=True):
        yield args, params | more
    soft = real(2, 3), real(2, 3, low=0)
    yield sample(*soft)(rng)
    yield sample(*soft, real(3, low=0.5), label_smoothing=0.2, reduction="none")(rng)


@op(
    arrays=("x", "labels", "weight"),
    native_half=True,
    samples=_cross_entropy_samples,
    ref=_cross_entropy_ref,
    errors=[
        *_WRONG_LABELS[:3],
        *_LABEL_ERRORS[4:],
        ([np.ones((2, 3)), np.ones(2)], {}, ShapeError, r"\(2, 3\).*\(2,\).*numbers are integers"),
        ([np.ones((2, 3)), np.ones((2, 3))], {"label_smoothing": 2}, ArgumentError, "smoothing=2"),
    ],
    mixed="float32",
)
def cross_entropy(
    xp, x, labels, /, weight=None, *, ignore_index=-100, reduction="mean", label_smoothing=0.0
):
    """Cross entropy of the softmax of scores, against class numbers or probabilities.

    Args:
        x: scores, of shape (n, classes, ...) or (classes,).
        labels: integers of shape (n, ...) or (), from 0 to classes - 1; or probabilities of
            the shape of `x`, which get a gradient too.
        weight: array of shape (classes,); None for 1 each. Against class numbers, the mean is
            weighted.
        ignore_index: label of the examples to ignore, which need not be a class.
        reduction: ``"mean"`` (0 if all are ignored, where torch gives NaN), ``"sum"`` or
            ``"none"``.
        label_smoothing: from 0 to 1; this part of each probability is shared by all classes.

    Returns:
        Tensor of shape (), or of the shape of `x` without the classes.

    >>> print(gg.cross_entropy([[0.0, 0.0], [100.0, 0.0]], [1, 0], reduction="none"))
    [0.6931472 0.       ]
    """
    if not 0 <= label_smoothing <= 1:
        raise ArgumentError(
            f"cross_entropy: label_smoothing={label_smoothing} must be from 0 to 1."
        )
    axis = _class_axis("cross_entropy", x, labels)
    if labels.dtype.kind not in "iu":
        return _soft_labels(xp, x, labels, weight, axis, reduction, label_smoothing)
    args = _signed(xp, labels), weight, axis, ignore_index, reduction, label_smoothing
    if weight is None and on_gpu(x):  # a kernel widens 16-bit scores itself
        return xp.astype(_hard_labels(xp, x, *args), x.dtype)
    return _widened_hard_labels(xp, x, *args)
