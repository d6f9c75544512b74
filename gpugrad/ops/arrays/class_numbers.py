"""Checks of class numbers, the labels of classifiers."""

from __future__ import annotations

import operator
from typing import Any

from gpugrad.errors import ArgumentError, DTypeError, IndexOutOfBoundsError, ShapeError
from gpugrad.ops.arrays.index_rules import is_deferred


def checked_classes(
    name: str, logits: Any, labels: Any, ignore_index: int | None, label_smoothing: float
) -> tuple[Any, Any]:
    """A mask of the labels that count (None if all do), and the labels with 0 for the others."""
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
    kept = None
    if ignore_index is not None:
        kept = labels != operator.index(ignore_index)
        labels = labels * kept
    n = logits.shape[-1]
    checked = labels.size and not is_deferred(name, labels, n)
    if checked and (labels.min() < 0 or labels.max() >= n):
        raise IndexOutOfBoundsError(
            f"{name}: labels run from {labels.min()} to {labels.max()}, the {logits.shape[-1]} "
            f"classes from 0 to {logits.shape[-1] - 1}."
        )
    return kept, labels
