"""The loss of connectionist temporal classification and its gradient, in C."""

from __future__ import annotations

import ctypes
import functools
from typing import Any

import numpy as np

from gpugrad.kernels.cpu import pool
from gpugrad.kernels.cpu.large import LARGE, WIDE


@functools.cache
def _library() -> ctypes.CDLL | None:
    return pool.load("ctc", {"gpugrad_ctc": "l pppppp lllll"})


def ctc(log_probs: Any, targets: Any, lengths: Any, *, blank: int, gradient: bool) -> Any:
    """The losses (n,), or their gradient by `log_probs`; NotImplemented if NumPy has to.

    Args:
        log_probs: array (steps, n, classes).
        targets: ints (n, s), classes up to the target's length.
        lengths: ints (n,) of the inputs and of the targets, in range.
        blank: the class of the blank.
        gradient: which of the two to compute.
    """
    states = log_probs.shape[0] * (2 * targets.size + len(targets))
    library = _library() if states >= LARGE and log_probs.dtype in WIDE else None
    # NaN has no order, and infinite numbers are for the formula, which bounds them
    if library is None or not np.isfinite(log_probs.sum()):
        return NotImplemented
    log_probs = np.ascontiguousarray(log_probs)
    whole = [np.ascontiguousarray(a, np.int64) for a in (targets, *lengths)]
    (steps, n, classes), dtype = log_probs.shape, log_probs.dtype
    out = np.empty(log_probs.shape if gradient else n, dtype)
    results = (None, out.ctypes.data) if gradient else (out.ctypes.data, None)
    arrays = log_probs.ctypes.data, *(a.ctypes.data for a in whole), *results
    library.gpugrad_ctc(WIDE[dtype], *arrays, steps, n, classes, targets.shape[1], blank)
    return out
