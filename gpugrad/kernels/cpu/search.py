"""Places among sorted numbers, and polynomials of the pieces between them, in C."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from gpugrad.kernels.cpu.copies import row_major
from gpugrad.kernels.cpu.large import MIDDLE, WIDE, errors_raise
from gpugrad.kernels.cpu.pool import Kernels

_IN_C = Kernels(
    "search",
    flags=("-fno-tree-vectorize",),  # vectors would gather, which takes as long or longer
    searchsorted="ll ppp ll",
    pieces="l pppppp llll",
)
_MOST = 1 << 31


def searchsorted(x1: Any, x2: Any, side: str) -> Any:
    """How many of the sorted floats `x1` stand before each of `x2`; or NotImplemented."""
    fits = type(x1) is type(x2) is np.ndarray and x1.dtype == x2.dtype
    fits = fits and x1.dtype in WIDE and x1.size < _MOST
    if not fits or not _IN_C:
        return NotImplemented
    out, x1, x2 = np.empty(x2.shape, np.int64), row_major(x1), row_major(x2)
    _IN_C.searchsorted(WIDE[x1.dtype], side == "right", x1, x2, out, x1.size, x2.size)
    return out


def takes(*arrays: Any) -> bool:
    """Whether piecewise polynomials have kernels for arrays: values, breakpoints and points."""
    wide = all(a.dtype == np.float64 for a in arrays)
    return wide and math.prod(arrays[2].shape) >= MIDDLE and 1 < math.prod(arrays[1].shape) < _MOST


def pieces(c: Any, x: Any, at: Any, g: Any, factors: Sequence[float], shape: Any) -> Any:
    """Values of the polynomials at points; with `g` the transpose; or NotImplemented.

    The two ops of `gpugrad.ops.scipy.pieces`.
    """
    given = (c if g is None else g), x, at
    fits = all(type(a) is np.ndarray for a in given) and takes(*given)
    if not fits or not (shape[2] > 0 and x[0] <= x[-1]) or errors_raise() or not _IN_C:
        return NotImplemented
    out = np.empty((at.size, shape[2])) if g is None else np.zeros(shape)
    c, x, at, g = (None if a is None else row_major(a) for a in (c, x, at, g))
    sizes = len(factors), *shape[1:], at.size
    _IN_C.pieces(g is not None, c, x, at, g, np.array(factors, float), out, *sizes)
    return out
