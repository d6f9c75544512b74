"""Recursive filters of lines and their gradient, in C."""

from __future__ import annotations

from typing import Any

import numpy as np

from gpugrad.kernels.cpu.copies import row_major
from gpugrad.kernels.cpu.large import MIDDLE, WIDE, errors_raise
from gpugrad.kernels.cpu.pool import Kernels

_IN_C = Kernels(
    "filters",
    flags=("-ffp-contract=fast",),
    filter="l ppppp lll",
    filter_gradient="l ppppp pppp lll",
)


def _takes(b: Any, x: Any, *others: Any) -> bool:
    same = all(y.dtype == x.dtype for y in (b, *others)) and x.dtype in WIDE
    return same and b.ndim == 1 and x.size >= MIDDLE and not errors_raise() and bool(_IN_C)


def filtered(b: Any, a: Any, x: Any, zi: Any) -> Any:
    """`linear_filter` with one state for each line, or NotImplemented."""
    n, k = x.shape[-1], b.size
    if not _takes(b, x, a, zi) or not 2 <= k <= 7 or not a[1:].any():
        return NotImplemented
    out = np.empty(x.shape, x.dtype)
    _IN_C.filter(WIDE[x.dtype], *map(row_major, (b, a, x, zi)), out, x.size // n, n, k)
    return out


def filter_gradient(g: Any, out: Any, b: Any, a: Any, x: Any) -> Any:
    """The gradients of `linear_filter` by b, a, x and the whole state, or NotImplemented."""
    arrays = (b, a, g, x, out)
    if not _takes(b, x, a, g, out):
        return NotImplemented
    n, k = x.shape[-1], b.size
    by_x = np.empty(x.shape, x.dtype)
    sums = np.zeros((2, k))
    by_zi = np.empty((*x.shape[:-1], k - 1), x.dtype)
    given = map(row_major, arrays)
    _IN_C.filter_gradient(WIDE[x.dtype], *given, by_x, *sums, by_zi, x.size // n, n, k)
    by_b, by_a = sums.astype(x.dtype)
    return by_b, by_a, by_x, by_zi
