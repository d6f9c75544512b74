"""Softmax cross entropy, fused, against probabilities or class numbers.

The gradients are named ops, with gradients and kernels of their own.
"""

import operator

import numpy as np

from gpugrad.core.backend import HALF, NUMPY, SCALARS, as_dtype
from gpugrad.core.index_checks import extremes, within
from gpugrad.core.samples import calls, uniform
from gpugrad.errors import ArgumentError, AxisError, DTypeError, IndexOutOfBoundsError, ShapeError
from gpugrad.kernels.by_hand import cross_entropy as kernels
from gpugrad.kernels.cpu import rows
from gpugrad.kernels.cpu.large import MIDDLE
from gpugrad.ops._axes import along_rows
from gpugrad.ops.arrays.index_rules import is_deferred
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
    opens=lambda logits, labels, axis: "c" if along_rows(logits, axis) else None,
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


_SPARSE = "sparse_softmax_cross_entropy"


def _check_labels(name, logits, labels, label_smoothing):
    if labels.dtype.kind not in "iu":
        raise DTypeError(
            f"{name}: labels are {labels.dtype}; class numbers must be integers. For "
            "probabilities use gg.softmax_cross_entropy."
        )
    if not logits.ndim or labels.shape != logits.shape[:-1]:
        raise ShapeError(
            f"{name}: logits have shape {logits.shape}, labels {labels.shape}. Labels must have "
            "the shape of logits without the last axis, the axis of the classes."
        )
    if not 0 <= label_smoothing <= 1:
        raise ArgumentError(f"{name}: label_smoothing={label_smoothing} must be from 0 to 1.")


@op(
    differentiable=False,
    kinds="i",
    native_half=True,
    batch="stack",
    captures=False,
    samples=calls(
        lambda rng: ([rng.integers(0, 3, (2, 2))], {"classes": 3}),
        lambda rng: ([np.array([1, -100])], {"classes": 3, "ignore_index": -100}),
        lambda rng: ([np.zeros(0, np.int64)], {"classes": 3}),
    ),
    ref=lambda labels, classes, ignore_index=None: np.where(
        np.equal(labels, ignore_index), -1, labels
    ).astype(np.int32),
    errors=[
        ([np.array([0, 3])], {"classes": 3}, IndexOutOfBoundsError, "0 to 3.*0 to 2"),
        ([np.array([0.0])], {"classes": 3}, DTypeError, "integers"),
    ],
)
def class_numbers(xp, labels, /, *, classes, ignore_index=None):
    """Labels as int32, -1 where they are ignored; `sparse_softmax_cross_entropy` calls it.

    Args:
        classes: the number of classes.
    """
    if labels.dtype.kind not in "iu":
        raise DTypeError(f"{_SPARSE}: labels are {labels.dtype}; class numbers must be integers.")
    ignore_index = None if ignore_index is None else operator.index(ignore_index)
    if xp is NUMPY and ignore_index not in range(classes) and within(labels, classes):
        return labels.astype(np.int32)  # none is ignored
    kept = None if ignore_index is None else labels != ignore_index
    own = labels if kept is None else labels * kept
    if own.size and not is_deferred(_SPARSE, own, classes):
        low, high = extremes(own)
        if low < 0 or high >= classes:
            raise IndexOutOfBoundsError(
                f"{_SPARSE}: labels run from {low} to {high}, the {classes} classes from 0 to "
                f"{classes - 1}."
            )
    own = own.astype(np.int32)
    return own if kept is None else xp.lib.where(kept, own, -1)


def _column(xp, x):
    return xp.expand_dims(x, axis=-1) if xp.nesting else x[..., None]


def _own(xp, classes, n):
    """The index of each row's class in an array (rows, n); for kernels, where a column is that.

    A kernel reads the whole row anyway.
    """
    if xp.nesting:
        return xp.equal(_column(xp, classes), np.arange(n, dtype=np.int32))
    own = classes.ravel()
    if xp is NUMPY:  # an index of int32 takes 3 us instead of 1
        own = own.astype(np.intp)
    return xp.lib.arange(classes.size), own


def _of_kept(xp, classes, x, ignore_index):
    """The values of rows that are not ignored, 0 for others."""
    return x if ignore_index is None else xp.where(classes >= 0, x, 0)


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
    batch="axis",
    cuda=kernels.sparse_softmax_cross_entropy,
    opens=lambda logits, labels, **params: "c" if along_rows(logits, -1) else None,
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
    _check_labels(_SPARSE, logits, labels, label_smoothing)
    n = logits.shape[-1]
    classes = xp.class_numbers(labels, classes=n, ignore_index=ignore_index)
    if xp is NUMPY and logits.size >= MIDDLE and not label_smoothing and dtype is None:
        losses = rows.cross_entropy(logits, classes, None)
        if losses is not NotImplemented:
            return losses
    at = _own(xp, classes, n)
    z = below_max(xp, wide(xp, logits), -1)
    if xp.nesting:
        own = xp.add_reduce(xp.where(at, z, 0), axis=-1, keepdims=False)
    else:
        own = z.reshape(classes.size, n)[at].reshape(classes.shape)
    if label_smoothing:
        share = label_smoothing / max(n, 1)
        own = own * (1 - label_smoothing) + xp.add_reduce(z, axis=-1, keepdims=False) * share
    losses = xp.log(xp.add_reduce(exp_of(xp, z), axis=-1, keepdims=False)) - own
    losses = _of_kept(xp, classes, losses, ignore_index)
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
    batch="axis",
    cuda=kernels.sparse_softmax_cross_entropy_grad,
    opens=lambda g, logits, labels, **params: "c" if along_rows(logits, -1) else None,
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
    _check_labels(f"{_SPARSE}_grad", logits, labels, label_smoothing)
    n = logits.shape[-1]
    classes = xp.class_numbers(labels, classes=n, ignore_index=ignore_index)
    if xp is NUMPY and logits.size >= MIDDLE and not label_smoothing:
        d = rows.cross_entropy_grad(g_, logits, classes, None)
        if d is not NotImplemented:
            return d
    at = _own(xp, classes, n)
    d = exp_of(xp, below_max(xp, wide(xp, logits), -1))
    g = own = _column(xp, wide(xp, g_))
    d *= g / xp.add_reduce(d, axis=-1, keepdims=True)
    if label_smoothing:
        d -= g * (label_smoothing / n)
        own = g * (1 - label_smoothing)
    if xp.nesting:
        d = d - xp.where(at, own, 0)
    else:
        d = xp.lib.ascontiguousarray(d)  # so that the reshape is a view
        d.reshape(classes.size, n)[at] -= own.ravel()
    d = _of_kept(xp, _column(xp, classes), d, ignore_index)
    return d.astype(logits.dtype) if logits.dtype in HALF else d
