"""Metrics: sums over batches, added up over an epoch, and what follows from the total."""

from __future__ import annotations

import functools
import math
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np

from gpugrad.autodiff.recorder import recording_stopped
from gpugrad.core import nest
from gpugrad.core.arguments import COUNT, FLAG, FUNCTION, TEXT, one_of, optional, takes
from gpugrad.core.backend import TENSOR
from gpugrad.core.convert import constant
from gpugrad.core.known_as import MissingNameError, about
from gpugrad.core.ranks import ranks
from gpugrad.core.tensor import Tensor, argument, tensor
from gpugrad.errors import ShapeError, TraceError
from gpugrad.nn import functional
from gpugrad.trace.array import current_trace

Array = np.ndarray[Any, Any]


_UPDATES: Any = None  # the `sums` of a result: those of the updates
_AT_ONCE = 64  # batches of `Metric.update` whose sums wait on the device


def _or_of_updates(result: Callable[[Any, Any], float]) -> Callable[..., float]:
    """A `result` that takes the sums of all updates if it is given none."""

    @functools.wraps(result)
    def of_sums(self: Metric, sums: Any = None) -> float:
        if sums is None:
            sums = self._sums_of_updates()
        return float("nan") if sums is None else result(self, sums)

    return of_sums


class Metric:
    """A number that follows from sums over examples. A subclass implements `sums` and `result`.

    `fit` and `evaluate` compute `sums` in the traced step, on the device, and add the sums of an
    epoch on the host. A loop by hand calls `update` for each batch, `result`, and then `reset`.

    >>> class Largest(gg.train.Metric):
    ...     name = "large"
    ...     def sums(self, outputs, labels):
    ...         return gg.stack([gg.sum(outputs > 1), outputs.size])
    ...     def result(self, sums):
    ...         return float(sums[0] / sums[1])
    >>> metric = Largest()
    >>> for batch in ([0.0, 2.0], [3.0, 4.0]):
    ...     metric.update(gg.constant(batch))
    >>> metric.result()
    0.75
    """

    name = "metric"

    if not TYPE_CHECKING:  # type checkers find misspelt names themselves

        def __getattr__(self, name: str) -> Any:
            message = f"{type(self).__name__} has no attribute {name!r}."
            raise MissingNameError(message, name, lambda: about("a metric", name, dir(self)))

    def __init_subclass__(cls, **keywords: Any) -> None:
        super().__init_subclass__(**keywords)
        if (own := vars(cls).get("result")) is not None:
            cls.result = _or_of_updates(own)  # type: ignore[method-assign]

    def sums(self, outputs: Any, labels: Any) -> Tensor:
        """One axis of sums over the examples of a batch."""
        raise NotImplementedError(f"{type(self).__name__} does not implement sums.")

    def result(self, sums: Any = None) -> float:
        """The metric, from the sums over all batches.

        Args:
            sums: an array; None for the sums over all calls of `update` since the last `reset`, on
                all ranks of `gg.distributed`, which all have to call it.

        Returns:
            A float, NaN before the first `update`. Only now does the host wait for the device.
        """
        raise NotImplementedError(f"{type(self).__name__} does not implement result.")

    def update(self, outputs: Any, labels: Any = None) -> None:
        """Add a batch: Keras' ``update_state``. The host does not wait for the device.

        Args:
            outputs: the model's, as for `sums`.
            labels: as for `sums`.

        Raises:
            TraceError: in a traced function, which a replay would not run. Return the outputs from
                it, and call `update` outside.

        >>> metric = gg.train.Accuracy()
        >>> metric.update(gg.constant([[0.1, 0.9], [0.8, 0.2]]), np.array([1, 1]))
        >>> metric.update(gg.constant([[0.3, 0.7]]), np.array([1]))
        >>> round(metric.result(), 4)
        0.6667
        >>> metric.reset()
        >>> metric.result()
        nan
        """
        if current_trace() is not None:
            raise TraceError(
                f"{type(self).__name__}: update in a traced function would count its first call "
                "only. Return the outputs from the function, and call update outside."
            )
        with recording_stopped():
            waiting = self.__dict__.setdefault("_waiting", [])
            waiting.append(self.sums(outputs, labels))
        if len(waiting) >= _AT_ONCE:
            self._add_waiting()

    def reset(self) -> None:
        """Forget all updates: Keras' ``reset_state``, at the beginning of an epoch."""
        self.__dict__.pop("_waiting", None)
        self.__dict__.pop("_added", None)

    def _add_waiting(self) -> Any:
        """The sums of all updates, from the device; None if there are none."""
        added = self.__dict__.get("_added")
        for sums in self.__dict__.pop("_waiting", ()):
            values = np.asarray(tensor(sums).numpy(), np.float64)
            self._added = added = values if added is None else added + values
        return added

    def _sums_of_updates(self) -> Any:
        """The same over all ranks."""
        every = [sums for sums in ranks.gather(self._add_waiting()) if sums is not None]
        return sum(every[1:], every[0]) if every else None


class Mean(Metric):
    """The mean over examples of a function ``f(outputs, labels)``.

    Args:
        f: returns the mean over a batch, as losses do; or a value for each example. None for the
            mean of the values that `update` is given.
        name: the name in logs; by default the function's.

    Raises:
        ShapeError: in `sums`, `f` returned another number of values, such as one for each token.

    >>> metric = gg.train.Mean(gg.mse, "error")
    >>> metric.result(metric.sums(gg.constant([[3.0], [1.0]]), [[0.0], [0.0]]).numpy())
    5.0
    >>> losses = gg.train.Mean()
    >>> for loss in (0.5, 0.25):
    ...     losses.update(loss)
    >>> losses.result()
    0.375
    """

    @takes(f=optional(FUNCTION), name=optional(TEXT))
    def __init__(self, f: Callable[[Any, Any], Any] | None = None, name: str | None = None) -> None:
        self.f = f
        self.name = str(getattr(f, "__name__", "mean")) if name is None else name

    def sums(self, outputs: Any, labels: Any) -> Tensor:
        """The sum over examples and their number."""
        value = outputs if self.f is None else self.f(outputs, labels)
        return sums_of_mean(value, outputs)

    def result(self, sums: Array = _UPDATES) -> float:
        """The mean; NaN without examples."""
        return mean_of(sums)


class Accuracy(Mean):
    """The share of examples whose label has the largest output.

    Labels are class numbers of shape (...), outputs have shape (..., classes). Outputs that are
    integers are class numbers, too. For labels 0 and 1, outputs may also be one logit each, of the
    shape of the labels: one above 0 stands for the label 1.

    Args:
        name: the name in logs.
        multilabel: whether an example has several labels 0 or 1. If not, outputs and labels of one
            shape (..., 2 or more) raise, because one-hot labels look the same.

    >>> metric = gg.train.Accuracy()
    >>> metric.result(metric.sums(gg.constant([[0.1, 0.9], [0.8, 0.2]]), np.array([1, 1])).numpy())
    0.5
    """

    @takes(multilabel=FLAG)
    def __init__(self, name: str = "accuracy", *, multilabel: bool = False) -> None:
        self.multilabel = multilabel
        super().__init__(self._is_right, name)

    def _is_right(self, outputs: Any, labels: Any) -> Tensor:
        outputs, labels = argument("Accuracy", outputs), argument("Accuracy", labels)
        if outputs.shape == labels.shape:
            right = self._is_right_each(outputs, labels)
        elif outputs.shape[:-1] == labels.shape:
            right = TENSOR.equal(TENSOR.argmax(outputs, axis=-1), labels)
        else:
            raise ShapeError(
                f"Accuracy: outputs of shape {outputs.shape} need labels of shape "
                f"{outputs.shape[:-1]} or {outputs.shape}, got {labels.shape}."
            )
        return TENSOR.mean(
            TENSOR.astype(TENSOR.reshape(right, (right.shape[0], -1)), np.dtype("float32")), axis=-1
        )

    def _is_right_each(self, outputs: Tensor, labels: Tensor) -> Tensor:
        if outputs.dtype.kind in "iub":
            return TENSOR.equal(outputs, labels)
        if not self.multilabel and labels.shape[1:] and labels.shape[-1] > 1:
            raise ShapeError(
                f"Accuracy: outputs and labels both have the shape {labels.shape}. If labels are "
                "one-hot, pass class numbers: gg.argmax(labels, axis=-1). If each label is 0 or 1 "
                "by itself, use Accuracy(multilabel=True)."
            )
        return TENSOR.equal(TENSOR.greater(outputs, 0), TENSOR.greater(labels, 0.5))


class TopK(Mean):
    """The share of examples whose label is among the k largest outputs.

    >>> metric = gg.train.TopK(2)
    >>> metric.name, metric.result(metric.sums(gg.constant([[3.0, 2.0, 1.0]]), [1]).numpy())
    ('top2', 1.0)
    """

    @takes(k=COUNT)
    def __init__(self, k: int, name: str | None = None) -> None:
        self.k = k
        super().__init__(self._is_among, f"top{k}" if name is None else name)

    def _is_among(self, outputs: Any, labels: Any) -> Tensor:
        outputs, labels = argument("TopK", outputs), argument("TopK", labels)
        if outputs.shape[:-1] != labels.shape:
            raise ShapeError(
                f"TopK: outputs of shape {outputs.shape} need labels of shape "
                f"{outputs.shape[:-1]}, got {labels.shape}."
            )
        own = TENSOR.class_scores(outputs, labels, axis=-1, ignore_index=-1 << 31)
        own = TENSOR.expand_dims(own, axis=-1)
        better = TENSOR.sum(TENSOR.greater(outputs, own), axis=-1)  # a tie counts as right
        right = TENSOR.astype(TENSOR.less(better, self.k), np.dtype("float32"))
        return TENSOR.mean(TENSOR.reshape(right, (right.shape[0], -1)), axis=-1)


class F1(Metric):
    """The mean over classes of 2 precision recall / (precision + recall).

    Args:
        classes: number of classes.
        average: ``"macro"``, the mean over classes that occur in labels or guesses, or
            ``"micro"``, over all examples alike.
        name: the name in logs.

    >>> metric = gg.train.F1(2)
    >>> outputs = gg.constant([[1.0, 0.0], [0.0, 1.0], [0.0, 1.0]])
    >>> round(metric.result(metric.sums(outputs, np.array([0, 0, 1])).numpy()), 4)
    0.6667
    """

    @takes(classes=COUNT, average=one_of("macro", "micro"), name=TEXT)
    def __init__(self, classes: int, average: str = "macro", name: str = "f1") -> None:
        self.classes, self.average, self.name = classes, average, name

    def sums(self, outputs: Any, labels: Any) -> Tensor:
        """For each class: right guesses, then guesses, then labels."""
        outputs, labels = argument("F1", outputs), argument("F1", labels)
        if outputs.shape != (*labels.shape, self.classes):
            raise ShapeError(
                f"F1: outputs of shape {outputs.shape} and labels of shape {labels.shape} do not "
                f"fit to {self.classes} classes."
            )
        guess = functional.one_hot(TENSOR.argmax(outputs, axis=-1), self.classes)
        truth = functional.one_hot(labels, self.classes)
        axes = tuple(range(labels.ndim))
        parts = [TENSOR.sum(a, axis=axes) for a in (TENSOR.multiply(guess, truth), guess, truth)]
        return TENSOR.concat(parts, axis=0)

    def result(self, sums: Array = _UPDATES) -> float:
        """The score; 0 if no class occurs."""
        right, guesses, labels = sums.reshape(3, self.classes)
        if self.average == "micro":
            right, guesses, labels = (a.sum(keepdims=True) for a in (right, guesses, labels))
        occurs = guesses + labels > 0
        return float(np.mean(2 * right[occurs] / (guesses + labels)[occurs])) if occurs.any() else 0


def sums_of_mean(value: Any, outputs: Any) -> Tensor:
    """The sum and the number of examples, from their mean or from a value for each."""
    value = tensor(value)
    first = nest.flatten(outputs)[0]
    n = np.shape(first)[0] if np.ndim(first) else 1
    if value.ndim and math.prod(value.shape) != n:
        raise ShapeError(
            f"Mean: expected the mean over the batch or a value for each of {n} examples, got "
            f"values of shape {value.shape}: apply gg.mean."
        )
    if value.dtype.itemsize == 2:  # whose sums end at 65504, or have 8 bits
        value = TENSOR.astype(value, np.dtype("float32"))
    total = TENSOR.sum(value) if value.ndim else TENSOR.multiply(value, n)
    count = constant(n, total.dtype, device=total.device)
    return TENSOR.stack([total, count], axis=0)


def mean_of(sums: Array) -> float:
    """The mean from a sum and a number of examples; NaN if there are none."""
    return float(sums[0] / sums[1]) if sums[1] else float("nan")
