"""The loss of connectionist temporal classification and its gradient, in C."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from gpugrad.kernels.cpu.large import MIDDLE, WIDE
from gpugrad.kernels.cpu.pool import Kernels

_IN_C = Kernels("ctc", ctc="l pppppp lllll")


def states(log_probs: Any, targets: Any) -> int:
    """How many states of label sequences there are in all steps."""
    count: int = log_probs.shape[0] * (2 * math.prod(targets.shape) + targets.shape[0])
    return count


def ctc(log_probs: Any, targets: Any, lengths: Any, *, blank: int, gradient: bool) -> Any:
    """The losses (n,), or their gradient by `log_probs`; NotImplemented if NumPy has to.

    Args:
        log_probs: array (steps, n, classes).
        targets: ints (n, s), classes up to the target's length.
        lengths: ints (n,) of the inputs and of the targets, in range.
        blank: the class of the blank.
        gradient: which of the two to compute.
    """
    if states(log_probs, targets) < MIDDLE or log_probs.dtype not in WIDE or not _IN_C:
        return NotImplemented
    # NaN has no order, and infinite numbers are for the formula, which bounds them
    if not np.isfinite(log_probs.sum()):
        return NotImplemented
    log_probs = np.ascontiguousarray(log_probs)
    whole = [np.ascontiguousarray(a, np.int64) for a in (targets, *lengths)]
    (steps, n, classes), dtype = log_probs.shape, log_probs.dtype
    out = np.empty(log_probs.shape if gradient else n, dtype)
    results = (None, out) if gradient else (out, None)
    sizes = steps, n, classes, targets.shape[1]
    _IN_C.ctc(WIDE[dtype], log_probs, *whole, *results, *sizes, blank)
    return out
