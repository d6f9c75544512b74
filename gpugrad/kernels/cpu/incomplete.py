"""Derivatives of the incomplete gamma and beta functions by their parameters, in C."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from gpugrad.kernels.cpu.copies import row_major
from gpugrad.kernels.cpu.large import MIDDLE, WIDE, errors_raise
from gpugrad.kernels.cpu.pool import Kernels

LEAST = MIDDLE >> 4
"""Elements from which the kernel runs: the formula takes as long for one as NumPy for a hundred."""

_IN_C = Kernels("incomplete", slopes="lll pppp llll > l")


def gamma_slopes(xp: Any, a: Any, x: Any, /) -> Any:
    """The launcher of `gammainc_grad_a`."""
    return _slopes(a, None, x)


def beta_slopes(second: bool) -> Any:
    """The launcher of `betainc_grad_a`, or that of `betainc_grad_b`."""
    return lambda xp, a, b, x, /: _slopes(a, b, x, second)


def _shape(arrays: Any) -> tuple[int, ...]:
    """The broadcast shape; () for shapes that do not fit, which the formula names."""
    try:
        return np.broadcast_shapes(*(getattr(v, "shape", ()) for v in arrays))
    except ValueError:
        return ()


def takes(*arrays: Any) -> bool:
    """Whether there are enough elements."""
    return math.prod(_shape(arrays)) >= LEAST


def _slopes(a: Any, b: Any, x: Any, second: bool = False) -> Any:
    """An array of the broadcast shape; NotImplemented if a series has too many terms, too."""
    given = [v for v in (a, b, x) if v is not None]
    dtype, shape = np.result_type(*given), _shape(given)
    if dtype not in WIDE or math.prod(shape) < LEAST or errors_raise() or not _IN_C:
        return NotImplemented
    out = np.empty(shape, dtype)
    arrays = [None if v is None else np.asarray(v, dtype) for v in (a, b, x)]
    steps = [int(v is not None and v.size > 1) for v in arrays]
    flat = [v if v is None or v.size == 1 else row_major(np.broadcast_to(v, shape)) for v in arrays]
    good = _IN_C.slopes(WIDE[dtype], b is not None, second, *flat, out, *steps, out.size)
    return out if good else NotImplemented
