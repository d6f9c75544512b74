"""Class numbers, checked on the host before a C kernel reads them."""

from __future__ import annotations

from typing import Any

import numpy as np

from gpugrad.core.backend import Reading
from gpugrad.ops.arrays.class_numbers import checked_classes
from gpugrad.trace.program import Step, Value


class Classes(Step):
    """The labels of a `sparse_softmax_cross_entropy` as int32; -1 for ignored examples.

    Args:
        of: the op's step, or that of its gradient.
        scores, labels: its arguments.
    """

    __slots__ = ("scores",)

    def __init__(self, of: Step, scores: Value, labels: Value) -> None:
        out = Value(np.broadcast_to(np.empty((), np.int32), labels.shape))
        super().__init__(None, [labels], of.params, [out], name=of.name)
        self.scores = scores
        self.backward, self.phase, self.where = of.backward, of.phase, of.where

    def run(self, xp: Reading, labels: Any) -> list[Any]:
        """Execute on plain arrays.

        Raises:
            IndexOutOfBoundsError: a label is not a class.
        """
        like = np.broadcast_to(np.float32(0), self.scores.shape)
        ignored = self.params["ignore_index"]
        kept, labels = checked_classes(self.name, like, labels, ignored, 0.0)
        classes = labels.astype(np.int32)
        return [classes if kept is None else np.where(kept, classes, np.int32(-1))]
