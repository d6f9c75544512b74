"""tf.compat.v1.losses: means over the elements whose weight is not 0, kept in a collection.

>>> from gpugrad.compat.tf import v1 as tf
>>> with tf.Graph().as_default(), tf.Session() as session:
...     loss = tf.losses.mean_squared_error([1.0, 2.0], [1.0, 4.0], weights=[0.0, 1.0])
...     print(session.run(loss).item(), session.run(tf.losses.get_total_loss()).item())
4.0 4.0
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import gpugrad as gg
from gpugrad.compat.names import forwarding
from gpugrad.compat.tf import nn, v1
from gpugrad.compat.tf.convert import tensor, together
from gpugrad.core.tensor import Tensor


def _loss(f: Callable[..., Tensor]) -> Callable[..., Any]:
    """The mean of a function's losses; in a graph a Node of the collection "losses"."""

    @functools.wraps(f)
    def mean(labels, other, weights=1.0, scope=None, *collection, **options) -> Any:
        other, labels = together(other, labels)
        losses = f(labels, other, **{k: v for k, v in options.items() if k not in _WITHOUT_EFFECT})
        w = gg.broadcast_to(gg.astype(tensor(weights), losses.dtype), losses.shape)
        return gg.sum(losses * w) / gg.astype(gg.maximum(gg.count_nonzero(w), 1), losses.dtype)

    def call(*args, **keywords) -> Any:
        arrays = [keywords.pop(name) for name in _ARRAYS if name in keywords]
        loss = v1._deferred(mean)(*args, *arrays, **keywords)
        if not v1.executing_eagerly():
            v1.add_to_collection("losses", loss)
        return loss

    return functools.wraps(f)(call)


_WITHOUT_EFFECT = ("loss_collection", "reduction")
_ARRAYS = ("labels", "onehot_labels", "multi_class_labels", "predictions", "logits")
"""Names of the first two parameters, labels before predictions."""


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


mean_squared_error = _loss(lambda labels, predictions: gg.square(predictions - labels))
absolute_difference = _loss(lambda labels, predictions: gg.abs(predictions - labels))
sparse_softmax_cross_entropy = _loss(nn.sparse_softmax_cross_entropy_with_logits)


def get_losses(scope=None, loss_collection="losses") -> list[Any]:
    return v1.get_collection(loss_collection, scope)


def get_total_loss(add_regularization_losses=True, *others, **options) -> Any:
    kinds = ["losses", "regularization_losses"][: 1 + add_regularization_losses]
    return v1.add_n([loss for kind in kinds for loss in v1.get_collection(kind)])


__getattr__, __dir__ = forwarding(__name__, own=globals())
