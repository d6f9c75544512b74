"""tf.compat.v1.losses: means over the elements whose weight is not 0, kept in a collection.

>>> from gpugrad.compat.tf import v1 as tf
>>> with tf.Graph().as_default(), tf.Session() as session:
...     loss = tf.losses.mean_squared_error([1.0, 2.0], [1.0, 4.0], weights=[0.0, 1.0])
...     print(session.run(loss).item(), session.run(tf.losses.get_total_loss()).item())
4.0 4.0
"""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable
from typing import Any

import gpugrad as gg
from gpugrad import special
from gpugrad.compat.names import forwarding
from gpugrad.compat.tf import nn, v1
from gpugrad.compat.tf.convert import tensor, together
from gpugrad.compat.tf.v1.graph import GraphKeys, deferred, executing_eagerly
from gpugrad.compat.tf.v1.scopes import add_to_collection, get_collection
from gpugrad.core.tensor import Tensor
from gpugrad.errors import ArgumentError


class Reduction:
    """Names of the ways to make one number of the weighted losses of elements."""

    NONE, SUM, MEAN = "none", "weighted_sum", "weighted_mean"
    SUM_OVER_BATCH_SIZE = "weighted_sum_over_batch_size"
    SUM_OVER_NONZERO_WEIGHTS = "weighted_sum_by_nonzero_weights"
    SUM_BY_NONZERO_WEIGHTS = SUM_OVER_NONZERO_WEIGHTS


def _reduced(losses: Tensor, weights, reduction: str) -> Tensor:
    w = gg.broadcast_to(gg.astype(tensor(weights), losses.dtype), losses.shape)
    weighted = losses * w
    if reduction == Reduction.NONE:
        return weighted
    total = gg.sum(weighted)
    if reduction == Reduction.SUM:
        return total
    if reduction == Reduction.SUM_OVER_BATCH_SIZE:
        return total / losses.size
    if reduction not in (Reduction.MEAN, Reduction.SUM_BY_NONZERO_WEIGHTS):
        raise ArgumentError(f"tf.losses: reduction={reduction!r} is none of tf.losses.Reduction.")
    count = gg.sum(w) if reduction == Reduction.MEAN else gg.count_nonzero(w)
    return special.divide_no_nan(total, gg.astype(count, losses.dtype))


def _loss(f: Callable[..., Tensor], **given: Any) -> Callable[..., Any]:
    """A function's losses, reduced; in a graph a Node in a collection.

    Its parameters are those of `f`, with TensorFlow's others between or after them.

    Args:
        given: the position of a parameter of `f` among TensorFlow's, if it is not the last.
    """
    own = list(inspect.signature(f).parameters)
    names = [*own[:2], "weights", *own[2:], "scope", "loss_collection", "reduction"]
    for name, place in given.items():
        names.remove(name)
        names.insert(place, name)

    @functools.wraps(f)
    def compute(weights: Any, reduction: str, labels, other, **options: Any) -> Tensor:
        other, labels = together(other, labels)
        return _reduced(f(labels, other, **options), weights, reduction)

    def call(*args: Any, **keywords: Any) -> Any:
        options = {**dict(zip(names, args, strict=False)), **keywords}
        if len(args) > len(names) or options.keys() - set(names):
            raise TypeError(f"tf.losses.{f.__name__}: {[*options]} do not fit {names}.")
        collection = options.pop("loss_collection", GraphKeys.LOSSES)
        options.pop("scope", None)
        weights = options.pop("weights", 1.0)
        reduction = options.pop("reduction", Reduction.SUM_BY_NONZERO_WEIGHTS)
        first = [options.pop(name) for name in own[:2]]
        loss = deferred(compute)(weights, reduction, *first, **options)
        if collection is not None and not executing_eagerly():
            add_to_collection(collection, loss)
        return loss

    call.__signature__ = inspect.Signature(  # type: ignore[attr-defined]
        [inspect.Parameter(name, inspect.Parameter.POSITIONAL_OR_KEYWORD) for name in names]
    )
    return call


def _smooth(labels: Tensor, logits: Tensor, smoothing, n: int) -> Tensor:
    return gg.astype(labels, logits.dtype) * (1 - smoothing) + smoothing / n


@_loss
def huber_loss(labels, predictions, delta=1.0) -> Tensor:
    size = gg.abs(predictions - labels)
    return gg.where(size <= delta, 0.5 * gg.square(size), delta * (size - 0.5 * delta))


@_loss
def log_loss(labels, predictions, epsilon=1e-7) -> Tensor:
    absent = (1 - labels) * gg.log(1 - predictions + epsilon)
    return -labels * gg.log(predictions + epsilon) - absent


@_loss
def softmax_cross_entropy(onehot_labels, logits, label_smoothing=0) -> Tensor:
    labels = _smooth(onehot_labels, logits, label_smoothing, onehot_labels.shape[-1])
    return nn.softmax_cross_entropy_with_logits(labels, logits)


@_loss
def sigmoid_cross_entropy(multi_class_labels, logits, label_smoothing=0) -> Tensor:
    labels = _smooth(multi_class_labels, logits, label_smoothing, 2)
    return nn.sigmoid_cross_entropy_with_logits(labels, logits)


@_loss
def mean_squared_error(labels, predictions) -> Tensor:
    return gg.square(predictions - labels)


@_loss
def absolute_difference(labels, predictions) -> Tensor:
    return gg.abs(predictions - labels)


@_loss
def sparse_softmax_cross_entropy(labels, logits) -> Tensor:
    return nn.sparse_softmax_cross_entropy_with_logits(labels, logits)


@_loss
def hinge_loss(labels, logits) -> Tensor:
    return gg.relu(1 - (2 * labels - 1) * logits)


@functools.partial(_loss, axis=2)
def cosine_distance(labels, predictions, axis=None) -> Tensor:
    return 1 - gg.sum(labels * predictions, axis=axis, keepdims=True)


def add_loss(loss, loss_collection=GraphKeys.LOSSES) -> None:
    if loss_collection is not None:
        add_to_collection(loss_collection, loss)


def get_losses(scope=None, loss_collection=GraphKeys.LOSSES) -> list[Any]:
    return get_collection(loss_collection, scope)


def get_regularization_losses(scope=None) -> list[Any]:
    return get_collection(GraphKeys.REGULARIZATION_LOSSES, scope)


def get_regularization_loss(scope=None, name=None) -> Any:
    """The sum of the losses of regularizers, 0 without any."""
    found = get_regularization_losses(scope)
    return v1.add_n(found) if found else v1.constant(0.0)


def get_total_loss(add_regularization_losses=True, name=None, scope=None) -> Any:
    """The sum of all losses that were declared, and of those of regularizers."""
    penalties = get_regularization_losses(scope) if add_regularization_losses else []
    return v1.add_n([*get_losses(scope), *penalties])


__getattr__, __dir__ = forwarding(__name__, own=globals())
