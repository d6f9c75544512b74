"""Splines at points, their slopes and their transpose, in C."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from gpugrad.kernels.cpu.copies import row_major
from gpugrad.kernels.cpu.large import LARGE, WIDE, errors_raise
from gpugrad.kernels.cpu.pool import Kernels

_IN_C = Kernels("splines", spline="lllll ppppp p l")
MODES = (
    "constant",
    "grid-constant",
    "nearest",
    "mirror",
    "reflect",
    "grid-mirror",
    "wrap",
    "grid-wrap",
)


def spline(
    x: Any, where: Any, g: Any, shape: Any, order: int, mode: str, *, slopes: bool = False
) -> Any:
    """Values at points; with `g` its spread, or its products with the slopes; or NotImplemented.

    The two ops of `gpugrad.ops.scipy.splines`, and the gradient by coordinates.
    """
    dtype, points = (g if x is None else x).dtype, math.prod(where.shape[1:])
    fits = 1 <= len(shape) <= 3 and dtype in WIDE and where.dtype == np.float64
    fits &= type(order) is int
    fits &= g is None or (g.dtype == dtype and g.shape == where.shape[1:])
    if not fits or points < LARGE or not math.prod(shape) or errors_raise() or not _IN_C:
        return NotImplemented
    arrays = [None if a is None else row_major(a) for a in (x, where, g)]
    out = np.empty(where.shape) if slopes else np.empty(where.shape[1:], dtype)
    if x is None:
        out = np.zeros(shape, dtype)
    results = (None, out) if slopes else (out, None)
    how = WIDE[dtype], len(shape), order, MODES.index(mode), x is None
    _IN_C.spline(*how, *arrays, *results, np.array(shape, np.int64), points)
    return out
