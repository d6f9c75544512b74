"""The gradient of recursive filters of lines, in C."""

from __future__ import annotations

from typing import Any

import numpy as np

from gpugrad.kernels.cpu.copies import row_major
from gpugrad.kernels.cpu.large import MIDDLE, WIDE, errors_raise
from gpugrad.kernels.cpu.pool import Kernels

_IN_C = Kernels("filters", flags=("-ffp-contract=fast",), filter_gradient="l ppppp pppp lll")


def filter_gradient(g: Any, out: Any, b: Any, a: Any, x: Any) -> Any:
    """The gradients of `linear_filter` by b, a, x and the whole state, or NotImplemented."""
    arrays = (b, a, g, x, out)
    same = all(y.dtype == x.dtype for y in arrays) and x.dtype in WIDE
    if not same or b.ndim != 1 or x.size < MIDDLE or errors_raise() or not _IN_C:
        return NotImplemented
    n, k = x.shape[-1], b.size
    by_x = np.empty(x.shape, x.dtype)
    sums = np.zeros((2, k))
    by_zi = np.empty((*x.shape[:-1], k - 1), x.dtype)
    given = map(row_major, arrays)
    _IN_C.filter_gradient(WIDE[x.dtype], *given, by_x, *sums, by_zi, x.size // n, n, k)
    by_b, by_a = sums.astype(x.dtype)
    return by_b, by_a, by_x, by_zi
