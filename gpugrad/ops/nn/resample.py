"""Resampling along axes: weighted sums of a few elements each, with constant weights.

Resampling is linear in the array. The weights form a sparse matrix along one axis, the `Taps`; the
gradient resamples with the transposed taps. Several axes are resampled in turn.
"""

import functools
import math

import numpy as np

from gpugrad.core.backend import NUMPY
from gpugrad.core.devices import device_of
from gpugrad.core.forking import cached_property
from gpugrad.core.samples import shaped, uniform
from gpugrad.errors import ArgumentError, AxisError, ShapeError
from gpugrad.kernels.cpu import resample as kernels
from gpugrad.ops._axes import check_axis
from gpugrad.ops.arrays.windows import ints
from gpugrad.registry.record import op


class Taps:
    """The elements of an axis that each result of a resampling reads, and their weights.

    Attributes:
        index: integers of shape (results, taps): positions of the elements.
        weights: numbers of that shape. A weight of 0 ignores its element, even an infinity.
        length: length of the axis that is read.
    """

    def __init__(self, index, weights, length):
        index = np.array(index)
        weights = np.array(np.broadcast_to(weights, index.shape), float)
        self.length, self._entries = length, _entries(index, weights)
        # 0 * inf is NaN: a tap of weight 0 takes over half of the row's largest weight, which is
        # exact. Only rows of zeros keep weights of 0.
        for t in range(index.shape[1]):
            rows = np.flatnonzero(weights[:, t] == 0)
            largest = np.abs(weights[rows]).argmax(axis=1)
            index[rows, t] = index[rows, largest]
            weights[rows, largest] /= 2
            weights[rows, t] = weights[rows, largest]
        self.index, self.weights = index, weights
        self.has_empty = bool((weights == 0).any())
        self.plain = index.shape[1] == 1 and bool((weights == 1).all())
        self._there = {}

    def __repr__(self):
        return f"<taps: {self.length} elements to {len(self.index)}>"

    def on_device_of(self, xp, x):
        """Index and weights, taps first, on the device of `x`; computed once."""
        dtype = np.finfo(x.dtype).dtype if x.dtype.kind in "fc" else np.dtype(np.float64)
        key = "cpu" if xp is NUMPY else device_of(x), dtype
        if key not in self._there:  # CUDA graphs hold the addresses, so they live with the taps
            arrays = self.index.T.astype(np.int64, "C"), self.weights.T.astype(dtype, "C")
            how = {} if xp is NUMPY else {"blocking": True}
            self._there[key] = [xp.lib.asarray(a, **how) for a in arrays]
        return self._there[key]

    @cached_property
    def transposed(self):
        """The taps of the transposed matrix, which maps results to elements."""
        rows, read, weights = self._entries
        order = np.argsort(read, kind="stable")
        rows, read, weights = rows[order], read[order], weights[order]
        counts = np.bincount(read, minlength=self.length)
        place = np.arange(len(read)) - (np.cumsum(counts) - counts)[read]
        shape = (self.length, max(1, counts.max(initial=0)))
        back = np.zeros(shape, int), np.zeros(shape)
        back[0][read, place], back[1][read, place] = rows, weights
        taps = Taps(*back, len(self.index))
        taps.transposed = self
        return taps


def _entries(index, weights):
    """Row, column and value of all nonzero entries, each position once."""
    rows, taps = np.nonzero(weights)
    length = index.max(initial=0) + 1
    places, of = np.unique(rows * length + index[rows, taps], return_inverse=True)
    return places // length, places % length, np.bincount(of, weights[rows, taps])


def _matrix(taps):
    """The taps as a dense matrix."""
    out = np.zeros((len(taps.index), taps.length))
    np.add.at(out, (np.arange(len(out))[:, None], taps.index), taps.weights)
    return out


def _resample_samples(rng):
    taps = Taps([[0, 1], [2, 2], [1, 0]], [[0.5, 0.5], [1.0, 0.0], [2.0, -1.0]], 4)
    yield [uniform(rng, 4)], {"taps": taps}
    yield [uniform(rng, 2, 4, 2)], {"taps": taps, "axis": 1}
    yield [uniform(rng, 3, 2)], {"taps": taps.transposed, "axis": -2}
    yield [uniform(rng, 0, 4)], {"taps": Taps([[3], [3]], 1.0, 4)}


@op(
    vjp=[lambda xp, g, taps, axis: xp.resample(g, taps.transposed, axis=axis)],
    linear=True,
    kinds="fc",
    samples=_resample_samples,
    batch="axis",
    cpu=kernels.resample,
    ref=lambda x, taps, axis=-1: np.moveaxis(np.moveaxis(x, axis, -1) @ _matrix(taps).T, -1, axis),
    errors=[
        ([np.ones(3), Taps([[0]], 1.0, 4)], {}, ShapeError, r"resample.*\(3,\).*4"),
        ([np.ones(4), Taps([[0]], 1.0, 4)], {"axis": 1}, AxisError, "axis 1"),
    ],
    captures=True,
)
def resample(xp, x, /, taps, *, axis=-1):
    """Weighted sums of a few elements each, along an axis; `interpolate` calls it.

    Args:
        taps: `Taps`: positions of the elements, and their weights.
        axis: int.

    Returns:
        Tensor with as many elements along the axis as there are rows of taps.
    """
    check_axis("resample", axis, x.shape)
    axis %= x.ndim
    if x.shape[axis] != taps.length:
        raise ShapeError(
            f"resample: axis {axis} of the shape {x.shape} must have the {taps.length} elements "
            "that the taps read."
        )
    index, weights = taps.on_device_of(xp, x)
    if taps.plain:
        return _taken(xp, x, index[0], axis)
    x = x if x.dtype.kind in "fc" else x.astype(np.float64)
    weights = weights.reshape(weights.shape + (1,) * (x.ndim - axis - 1))
    out = None
    for t in range(index.shape[0]):
        term = _taken(xp, x, index[t], axis)
        if taps.has_empty:
            term = xp.lib.where(weights[t] == 0, 0, term)
        term *= weights[t]
        if out is None:
            out = term
        else:
            out += term
    return out


def _taken(xp, x, index, axis):
    if xp is NUMPY:  # its take is three times as fast without the check of the indices
        return x.take(index, axis=axis, mode="clip")
    return x.take(index, axis=axis)


def _places(n, m, align_corners, step):
    """Positions of `m` results in an axis of `n` elements."""
    if align_corners:
        return np.arange(m) * ((n - 1) / (m - 1) if m > 1 else 0.0)
    return (np.arange(m) + 0.5) * step - 0.5


def cubic(t, a=-0.75):
    """Weights of the four elements around a position, a fraction `t` after the second.

    R. Keys, "Cubic convolution interpolation for digital image processing" (1981).
    """

    def near(s):
        return ((a + 2) * s - (a + 3)) * s * s + 1

    def far(s):
        return ((a * s - 5 * a) * s + 8 * a) * s - 4 * a

    return far(t + 1), near(t), near(1 - t), far(2 - t)


def _triangle(t):
    return np.maximum(1 - np.abs(t), 0)


def _cubic_filter(t):
    t = np.abs(t)
    second, first = cubic(np.minimum(t, 1), -0.5)[1], cubic(np.clip(t - 1, 0, 1), -0.5)[0]
    return np.where(t < 1, second, np.where(t < 2, first, 0))


def _between(first, last, weigh, n):
    """Taps from `first` up to, but not including, `last`, with weights by `weigh` that sum to 1."""
    index = first[:, None] + np.arange((last - first).max())
    weights = np.where(index < last[:, None], weigh(index), 0.0)
    return Taps(np.minimum(index, n - 1), weights / weights.sum(axis=1, keepdims=True), n)


@functools.lru_cache(maxsize=256)
def area_taps(n, m):
    """Means of `m` windows that cover `n` elements, as in adaptive pooling."""
    i = np.arange(m)
    return _between(i * n // m, -(-(i + 1) * n // m), lambda index: index * 0 + 1.0, n)


@functools.lru_cache(maxsize=256)
def _taps(mode, n, m, step, align_corners, antialias):
    """The taps of an `interpolate` mode from `n` elements to `m`; a `step` of None is n / m."""
    if mode == "area":
        return area_taps(n, m)
    i, exact = np.arange(m), mode == "nearest-exact"
    if mode.startswith("nearest"):
        whole = (2 * i + exact) * n // (2 * m)  # in integers, without rounding errors
        index = whole if step is None else np.floor((i + 0.5 * exact) * step).astype(int)
        return Taps(np.minimum(index, n - 1)[:, None], 1.0, n)
    step = n / m if step is None else step
    if antialias:
        step = step if not align_corners else (n - 1) / (m - 1) if m > 1 else 0.0
        reach, shape = (2, _cubic_filter) if mode == "cubic" else (1, _triangle)
        width = max(step, 1.0)
        middle = step * (i + 0.5)
        first = np.maximum((middle - reach * width + 0.5).astype(int), 0)
        last = np.minimum((middle + reach * width + 0.5).astype(int), n)
        return _between(first, last, lambda at: shape((at - middle[:, None] + 0.5) / width), n)
    place = _places(n, m, align_corners, step)
    if mode == "cubic":
        low = np.floor(place)
        index, weights = low[:, None] + np.arange(-1, 3), np.stack(cubic(place - low), axis=1)
    else:
        place = np.maximum(place, 0)
        low = np.floor(place)
        index = low[:, None] + np.arange(2)
        weights = np.stack([1 - (place - low), place - low], axis=1)
    return Taps(np.clip(index, 0, n - 1).astype(int), weights, n)


_MODES = {
    "nearest": ("nearest", (1, 2, 3)),
    "nearest-exact": ("nearest-exact", (1, 2, 3)),
    "area": ("area", (1, 2, 3)),
    "linear": ("linear", (1,)),
    "bilinear": ("linear", (2,)),
    "trilinear": ("linear", (3,)),
    "bicubic": ("cubic", (2,)),
}
"""The kind of taps of each mode, and the numbers of spatial axes that it takes."""


def _sizes(x, size, scale_factor, recompute_scale_factor):
    """The lengths of the result, and the steps (None for the ratio of lengths)."""
    lengths = x.shape[2:]
    n = len(lengths)
    if (size is None) == (scale_factor is None):
        raise ArgumentError("interpolate: pass one of size and scale_factor.")
    if size is not None:
        return ints("interpolate", "size", size, n, 1), (None,) * n
    many = isinstance(scale_factor, (tuple, list))
    factors = tuple(scale_factor) if many else (scale_factor,) * n
    if len(factors) != n or not all(f > 0 for f in factors):
        raise ArgumentError(
            f"interpolate: scale_factor={scale_factor!r} must be positive, or {n} positive numbers."
        )
    sizes = tuple(math.floor(k * f) for k, f in zip(lengths, factors, strict=True))
    if min(sizes) < 1:
        raise ArgumentError(
            f"interpolate: scale_factor={scale_factor!r} leaves nothing of x {x.shape}."
        )
    return sizes, (None,) * n if recompute_scale_factor else tuple(1 / f for f in factors)


def _interpolate_ref(x, **keywords):
    """By the matrices of the samples, whose rows are torch's weights."""
    matrices = _EXPECTED[tuple(x.shape), keywords["mode"]]
    for axis, matrix in enumerate(matrices, 2):
        x = np.moveaxis(np.moveaxis(x, axis, -1) @ np.array(matrix).T, -1, axis)
    return x


_EXPECTED = {
    ((1, 1, 3), "nearest"): [[[1, 0, 0], [1, 0, 0], [0, 1, 0], [0, 1, 0], [0, 0, 1]]],
    ((1, 1, 3), "nearest-exact"): [[[1, 0, 0], [0, 0, 1]]],
    ((1, 2, 2), "linear"): [[[1, 0], [0.75, 0.25], [0.25, 0.75], [0, 1]]],
    ((1, 1, 2, 3), "bilinear"): [
        [[1, 0], [0.5, 0.5], [0, 1]],
        [[1, 0, 0], [0.5, 0.5, 0], [0, 1, 0], [0, 0.5, 0.5], [0, 0, 1]],
    ],
    ((1, 1, 4, 1), "bicubic"): [
        [[-0.09375 + 0.59375, 0.59375, -0.09375, 0], [0, -0.09375, 0.59375, 0.5]],
        [[1]],
    ],
    ((1, 1, 3, 2), "area"): [[[0.5, 0.5, 0], [0, 0.5, 0.5]], [[0.5, 0.5]]],
    ((0, 1, 1, 1, 2), "trilinear"): [[[1]], [[1]], [[0.5, 0.5]]],
}


@op(
    ref=_interpolate_ref,
    samples=shaped(
        ([(1, 1, 3)], {"size": 5, "mode": "nearest"}),
        ([(1, 1, 3)], {"scale_factor": 0.7, "mode": "nearest-exact"}),
        ([(1, 2, 2)], {"scale_factor": 2, "mode": "linear"}),
        ([(1, 1, 2, 3)], {"size": (3, 5), "mode": "bilinear", "align_corners": True}),
        ([(1, 1, 4, 1)], {"size": (2, 1), "mode": "bicubic"}),
        ([(1, 1, 3, 2)], {"size": (2, 1), "mode": "area"}),
        ([(0, 1, 1, 1, 2)], {"size": 1, "mode": "trilinear"}),
    ),
    errors=[
        ([np.ones((1, 1, 2))], {}, ArgumentError, "interpolate: pass one of"),
        ([np.ones((1, 1, 2))], {"size": 0}, ArgumentError, "size=0"),
        ([np.ones((1, 1, 2))], {"scale_factor": 0.1}, ArgumentError, "leaves nothing"),
        ([np.ones((1, 1, 2))], {"scale_factor": -1.0}, ArgumentError, "scale_factor=-1"),
        ([np.ones((1, 1, 2))], {"size": 2, "mode": "bilinear"}, ArgumentError, "'bilinear'"),
        ([np.ones((1, 1, 2))], {"size": 2, "mode": "round"}, ArgumentError, "'round'"),
        ([np.ones((1, 2))], {"size": 2}, ShapeError, r"interpolate.*\(1, 2\)"),
        ([np.ones((1, 1, 0))], {"size": 2}, ShapeError, r"interpolate.*\(1, 1, 0\)"),
    ],
)
def interpolate(
    xp,
    x,
    /,
    size=None,
    scale_factor=None,
    mode="nearest",
    align_corners=False,
    recompute_scale_factor=False,
    antialias=False,
):
    """Resize signals, images or volumes, as torch does.

    Args:
        x: array of shape (N, C, *spatial), with one to three spatial axes.
        size: int, or one for each spatial axis: the lengths of the result.
        scale_factor: instead of `size`: number, or one for each spatial axis.
        mode: "nearest", "nearest-exact", "area" (means), "linear" (one spatial axis), "bilinear"
            or "bicubic" (two), "trilinear" (three).
        align_corners: whether the centers, not the outer edges, of the first and last elements
            coincide. Ignored by "nearest" and "area".
        recompute_scale_factor: whether positions are computed from the lengths, not from
            `scale_factor` itself, which may differ slightly from their ratio.
        antialias: whether "bilinear" and "bicubic" widen their filters where the result is
            smaller.

    Returns:
        Tensor of shape (N, C, *size).

    >>> print(gg.nn.interpolate([[[0.0, 1.0]]], size=4, mode="linear"))
    [[[0.   0.25 0.75 1.  ]]]
    """
    if x.ndim not in (3, 4, 5) or 0 in x.shape[2:]:
        raise ShapeError(
            f"interpolate: x must have the axes (N, C, *spatial), with one to three spatial axes "
            f"that are not empty; its shape is {x.shape}."
        )
    kind, ranks = _MODES.get(mode, ("", ()))
    if x.ndim - 2 not in ranks:
        fitting = [name for name, (_, ranks) in _MODES.items() if x.ndim - 2 in ranks]
        raise ArgumentError(
            f"interpolate: mode={mode!r} does not support {x.ndim - 2} spatial axes; {fitting} do."
        )
    if antialias and mode not in ("bilinear", "bicubic"):
        raise ArgumentError(f"interpolate: antialias is not supported for mode={mode!r}.")
    sizes, steps = _sizes(x, size, scale_factor, recompute_scale_factor)
    out, axes = x, [*enumerate(zip(x.shape[2:], sizes, steps, strict=True), 2)]
    if math.prod(sizes) > math.prod(x.shape[2:]):  # the last axis, the slowest, while x is small
        axes.reverse()
    for axis, (n, m, step) in axes:
        if n != m or step not in (None, 1):
            taps = _taps(kind, n, m, step, bool(align_corners), bool(antialias))
            out = xp.resample(out, taps, axis=axis)
    return xp.positive(x) if out is x else out
