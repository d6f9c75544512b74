"""Distances between all pairs of two sets of vectors, and their gradient: pairs.cpp."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from gpugrad.kernels.cpu.large import MIDDLE, WIDE
from gpugrad.kernels.cpu.pool import Kernels

_IN_C = Kernels(
    "pairs",
    flags=("-ffp-contract=fast",),  # takes half the time, and is the more exact one
    lanes="l > l",
    distances="l ppp lll",
    distances_gradient="l ppppp lllll",
    all_exact="l p l d > l",
    pair_sums="ll ppp lll d",
    own_pair_sums="ll ppp lll d",
    pair_sums_gradient="lll pppp llllll d",
)

TERMS = ("cityblock", "squares", "totals", "canberra", "power", "entropy", "chebyshev")
"""Terms of `gpugrad.ops.scipy.pairs.pair_sums`, in the order of pairs.cpp."""


def _takes(x1: Any, x2: Any, *others: Any) -> bool:
    """Whether the kernels compute with these arrays, and they are large."""
    arrays = (x1, x2, *others)
    if any(type(a) is not np.ndarray or a.dtype != x1.dtype or a.ndim != 2 for a in arrays):
        return False
    if x1.shape[1] != x2.shape[1]:
        return False
    large = x1.dtype in WIDE and x1.size * x2.shape[0] >= MIDDLE and x2.size > 0
    return large and bool(_IN_C)


def takes_gradient(g: Any, x1: Any, *_: Any) -> bool:
    """Whether arrays of a gradient by the first set are large: see `steps_unless`."""
    return len(x1.shape) == 2 and math.prod((*getattr(g, "shape", ()), x1.shape[1])) >= MIDDLE


def _padded(x: Any, axis: int) -> Any:
    """A contiguous array, with zeros up to a multiple of a vector's length."""
    extra = -x.shape[axis] % _IN_C.lanes(WIDE[x.dtype])
    if extra:
        x = np.pad(x, [(0, extra if k == axis else 0) for k in range(2)])
    return np.ascontiguousarray(x)


def distances(xp: Any, x1: Any, x2: Any, /) -> Any:
    """The launcher of `gpugrad.ops.nn.distances.euclidean_distances`."""
    if not _takes(x1, x2):
        return NotImplemented
    x, y = np.ascontiguousarray(x1), _padded(x2.T, 1)
    (m, k), n = x.shape, y.shape[1]
    out = np.empty((m, n), x.dtype)
    _IN_C.distances(WIDE[x.dtype], x, y, out, m, n, k)
    out = np.ascontiguousarray(out[:, : x2.shape[0]])
    good = _are_exact(out) and _are_equal(x1, x2, out)
    return out if good else NotImplemented


def _are_exact(out: Any) -> bool:
    """Whether no square overflowed or lost digits; the formula scales them."""
    wide = WIDE[out.dtype]
    if not out.flags.forc:
        out = np.ascontiguousarray(out)
    return bool(_IN_C.all_exact(wide, out, out.size, 1e-145 if wide else 1e-17))


def _are_equal(x1: Any, x2: Any, out: Any) -> bool:
    """Whether vectors at distance 0 are equal, and not so close that the squares vanish."""
    i, j = divmod(np.flatnonzero(out == 0), out.shape[1])  # a third of the time of two axes
    return np.array_equal(x1[i], x2[j])


def _vanish(g: Any, out: Any) -> bool:
    """Whether ``g / out`` loses digits as a subnormal number; the formula divides no cotangent."""
    limits = np.finfo(g.dtype)
    least = out.max(initial=0) * (limits.tiny / limits.eps)
    return bool(0 < max(g.max(initial=0), -g.min(initial=0)) < least)


def distances_grad(xp: Any, g: Any, x1: Any, x2: Any, out: Any, /) -> Any:
    """The launcher of `gpugrad.ops.nn.distances.euclidean_distances_grad`."""
    shape = x1.shape[:1] + x2.shape[:1]
    if not _takes(x1, x2, g, out) or not g.shape == out.shape == shape or not _are_exact(out):
        return NotImplemented
    if _vanish(g, out):
        return NotImplemented
    if g.strides != out.strides:
        g, own = np.empty_like(out), g
        g[...] = own
        if g.strides != out.strides:
            return NotImplemented
    x, y = _padded(x1, 1), _padded(x2, 1)
    steps = [s // g.itemsize for s in g.strides]
    d = np.empty(x.shape, x.dtype)
    sizes = x.shape[0], y.shape[0], x.shape[1]
    _IN_C.distances_gradient(WIDE[x.dtype], x, y, g, out, d, *sizes, *steps)
    return np.ascontiguousarray(d[:, : x1.shape[1]])


def pair_sums(xp: Any, x1: Any, x2: Any, /, *, term: str, p: float = 1.0) -> Any:
    """The launcher of `gpugrad.ops.scipy.pairs.pair_sums`."""
    if term not in TERMS or not _takes(x1, x2):
        return NotImplemented
    x, y = np.ascontiguousarray(x1), _padded(x2.T, 1)
    (m, k), n = x.shape, y.shape[1]
    out = np.empty((m, n), x.dtype)
    _IN_C.pair_sums(WIDE[x.dtype], TERMS.index(term), x, y, out, m, n, k, p)
    return np.ascontiguousarray(out[:, : x2.shape[0]])


def own_pair_sums(xp: Any, x: Any, /, *, term: str, p: float = 1.0) -> Any:
    """The launcher of `gpugrad.ops.scipy.pairs.own_pair_sums`."""
    if term not in TERMS or not _takes(x, x) or len(x) < 2:
        return NotImplemented
    y, x = _padded(x.T, 1), np.ascontiguousarray(x)
    (m, k), n = x.shape, y.shape[1]
    out = np.empty(m * (m - 1) // 2, x.dtype)
    _IN_C.own_pair_sums(WIDE[x.dtype], TERMS.index(term), x, y, out, m, n, k, p)
    return out


def own_pair_sums_grad(xp: Any, g: Any, x: Any, /, *, term: str, p: float = 1.0) -> Any:
    """The launcher of `gpugrad.ops.scipy.pairs.own_pair_sums_grad`."""
    if term not in TERMS or not _takes(x, x) or g.dtype != x.dtype:
        return NotImplemented
    if g.shape != (len(x) * (len(x) - 1) // 2,):
        return NotImplemented
    y, x, g = _padded(x.T, 1), np.ascontiguousarray(x), np.ascontiguousarray(g)
    (m, k), n, out = x.shape, y.shape[1], np.empty(x.shape, x.dtype)
    sizes = m, n, k, 0, 0, m
    _IN_C.pair_sums_gradient(WIDE[x.dtype], TERMS.index(term), True, x, y, g, out, *sizes, p)
    return out


def pair_sums_grad(xp: Any, g: Any, x1: Any, x2: Any, /, *, term: str, p: float = 1.0) -> Any:
    """The launcher of `gpugrad.ops.scipy.pairs.pair_sums_grad`."""
    if term not in TERMS or not _takes(x1, x2, g):
        return NotImplemented
    if g.shape != (x1.shape[0], x2.shape[0]) or any(s % g.itemsize for s in g.strides):
        return NotImplemented
    x, y = np.ascontiguousarray(x1), _padded(x2.T, 1)
    (m, k), n, steps = x.shape, y.shape[1], [s // g.itemsize for s in g.strides]
    out, sizes = np.empty(x.shape, x.dtype), (m, n, k, *steps, x2.shape[0])
    _IN_C.pair_sums_gradient(WIDE[x.dtype], TERMS.index(term), False, x, y, g, out, *sizes, p)
    return out
