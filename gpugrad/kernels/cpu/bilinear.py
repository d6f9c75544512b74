"""Values of images between elements, and their gradients, in C."""

from __future__ import annotations

from typing import Any

import numpy as np

from gpugrad.kernels.cpu.large import MIDDLE, WIDE, errors_raise
from gpugrad.kernels.cpu.pool import Kernels

_IN_C = Kernels("bilinear", bilinear="l ppp llllll", bilinear_gradients="l ppppp llllll")


def takes(x: Any, places: Any) -> bool:
    """Whether these arrays are of a kernel's dtype and shapes, and large."""
    return (
        type(x) is type(places) is np.ndarray
        and x.dtype == places.dtype
        and x.dtype in WIDE
        and x.ndim == 4
        and places.ndim == 3
        and places.shape[::2] == (x.shape[0], 2)
        and x.shape[1] * places.size >= MIDDLE
        and 0 < x.shape[2] * x.shape[3] < 1 << 31
        and bool(_IN_C)
        and not errors_raise()
    )


def _run(function: Any, arrays: Any, results: Any, zeros: bool) -> Any:
    """Run a kernel on (x, places, ...); NotImplemented if a place is not a finite number."""
    x, places, *_ = arrays = [*map(np.ascontiguousarray, arrays)]
    if not np.isfinite(places).all() or np.abs(places).max() > 1e9:
        return NotImplemented
    function(WIDE[x.dtype], *arrays, *results, *x.shape, places.shape[1], zeros)
    return results[0] if len(results) == 1 else results


def bilinear(xp: Any, x: Any, places: Any, /, *, zeros: bool = False) -> Any:
    """The launcher of `gpugrad.ops.nn.bilinear.bilinear_sample`."""
    if not takes(x, places):
        return NotImplemented
    out = np.empty((*x.shape[:2], places.shape[1]), x.dtype)
    return _run(_IN_C.bilinear, (x, places), (out,), zeros)


def bilinear_grads(xp: Any, g: Any, x: Any, places: Any, /, *, zeros: bool = False) -> Any:
    """The launcher of `gpugrad.ops.nn.bilinear.bilinear_sample_grads`."""
    shape = x.shape[:2] + places.shape[1:2]
    if not takes(x, places) or type(g) is not np.ndarray or g.dtype != x.dtype or g.shape != shape:
        return NotImplemented
    results = np.empty(x.shape, x.dtype), np.empty(places.shape, x.dtype)
    return _run(_IN_C.bilinear_gradients, (x, places, g), results, zeros)
