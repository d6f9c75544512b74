"""Correlation, for `gpugrad.scipy.ndimage`."""

import math

import numpy as np

from gpugrad.core.backend import NUMPY
from gpugrad.core.samples import shaped
from gpugrad.errors import ArgumentError, ShapeError
from gpugrad.registry.record import op
from gpugrad.registry.rules import conjugate

# ---- correlation -------------------------------------------------------------------------


def _places(x_shape, w_shape):
    return tuple(n - k + 1 for n, k in zip(x_shape, w_shape, strict=True))


def _windows(places):
    """The part of an array that meets the weight at `tap`, for each tap, as a function."""
    return lambda tap: tuple(slice(t, t + n) for t, n in zip(tap, places, strict=True))


NUMPY_MODES = {
    "reflect": "symmetric",
    "grid-mirror": "symmetric",
    "constant": "constant",
    "grid-constant": "constant",
    "nearest": "edge",
    "mirror": "reflect",
    "wrap": "wrap",
    "grid-wrap": "wrap",
}
"""NumPy's names of SciPy's boundary modes. Elements are on a grid: "wrap" is "grid-wrap"."""


def check_mode(name, mode):
    """Raise unless `mode` is one of SciPy's boundary modes."""
    if not (isinstance(mode, str) and mode in NUMPY_MODES):
        raise ArgumentError(f"{name}: mode={mode!r:.40} is none of {', '.join(NUMPY_MODES)}.")


def _extended(xp, x, pairs, mode):
    return xp.pad(x, pairs, mode=NUMPY_MODES[mode]) if pairs else x


def _part(xp, x, axis, start, stop):
    return xp.getitem(x, index=(*(slice(None),) * axis, slice(start, stop)))


def _fold(xp, inner, sides, axis, pair, mode):
    """The transpose of padding along an axis: `sides` are added where the padding came from."""
    n = inner.shape[axis]
    places = np.pad(np.arange(n), pair, NUMPY_MODES[mode])
    rows = np.concatenate([places[: pair[0]], places[pair[0] + n :]])
    index = (*(slice(None),) * axis, rows)
    return xp.index_add(inner, xp.concat(sides, axis=axis), index=index)


def _of_x(xp, g, w, x_shape, pairs, mode):
    """The correlation of `g` with the reversed weights, folded where `x` was padded."""
    flipped = xp.flip(conjugate(xp, w), axis=tuple(range(w.ndim)))

    def wide(g, pairs):
        return xp.correlate_valid(xp.pad_constant(g, pairs), flipped)

    if not pairs:
        return wide(g, [(k - 1, k - 1) for k in w.shape])
    inner = [(after, before) for before, after in pairs]
    axes = [axis for axis, pair in enumerate(pairs) if any(pair)]
    if NUMPY_MODES[mode] == "constant" or not axes:
        return xp.correlate_valid(g, flipped, pairs=inner)
    if len(axes) == 1 and x_shape[axes[0]] > w.shape[axes[0]]:  # no array has to be padded
        (axis,), (before, after) = axes, pairs[axes[0]]
        here = lambda *pair: [pair if k == axis else (0, 0) for k in range(w.ndim)]  # noqa: E731
        n, k = x_shape[axis], before + after
        sides = [wide(_part(xp, g, axis, 0, before), here(k, 0))] if before else []
        sides += [wide(_part(xp, g, axis, n - after, n), here(0, k))] if after else []
        g = xp.correlate_valid(g, flipped, pairs=inner)
        return _fold(xp, g, sides, axis, pairs[axis], mode)
    g = wide(g, [(k - 1, k - 1) for k in w.shape])
    for axis in axes:
        (before, _), n = pairs[axis], x_shape[axis]
        sides = [_part(xp, g, axis, 0, before), _part(xp, g, axis, before + n, None)]
        g = _fold(xp, _part(xp, g, axis, before, before + n), sides, axis, pairs[axis], mode)
    return g


def by_elements(xp, x, w, places):
    """The sums, each of one result: for more weights than results, as gradients have."""
    whole, lib = _windows(w.shape), xp.lib
    letters = "abcdefghijklmnopqrstuvwxyz"[: w.ndim]
    # without a product array; CuPy's would be a matrix product of one row
    product = f"{letters},{letters}->" if xp is NUMPY else None
    sums = [
        lib.einsum(product, x[whole(place)], w) if product else lib.sum(x[whole(place)] * w)
        for place in np.ndindex(*places)
    ]
    return lib.stack(sums).reshape(places) if sums else lib.zeros(places, dtype=x.dtype)


def _correlate_batch(xp, batched, x, w, pairs, mode):
    if not batched[1]:
        pairs = [(0, 0), *pairs] if pairs else ()
        return xp.correlate_valid(x, xp.expand_dims(w, axis=0), pairs=pairs, mode=mode)
    x = _extended(xp, x, [(0, 0), *pairs] if pairs and batched[0] else pairs, mode)
    lead = x.shape[1:] if batched[0] else x.shape
    places = _places(lead, w.shape[1:])
    each = range(w.shape[0])
    if math.prod(places) < math.prod(w.shape[1:]):
        one = [x if not batched[0] else xp.getitem(x, index=(b,)) for b in each]
        results = [xp.correlate_valid(one[b], xp.getitem(w, index=(b,))) for b in each]
        return xp.stack(results, axis=0)
    part, total = _windows(places), 0
    for tap in np.ndindex(*w.shape[1:]):
        weight = xp.getitem(w, index=(slice(None), *tap))
        weight = xp.reshape(weight, (-1,) + (1,) * len(places))
        total = total + weight * xp.getitem(x, index=(slice(None),) * batched[0] + part(tap))
    return total


def _correlate_ref(x, w, pairs=(), mode="constant"):
    x = np.pad(x, pairs, NUMPY_MODES[mode]) if pairs else x
    view = np.lib.stride_tricks.sliding_window_view(x, w.shape)
    return (view * w).sum(axis=tuple(range(x.ndim, 2 * x.ndim)))


@op(
    vjp=[
        _of_x,
        lambda xp, g, x, pairs, mode: xp.correlate_valid(
            conjugate(xp, _extended(xp, x, pairs, mode)), g
        ),
    ],
    linear="each",
    kinds="fc",
    batch=_correlate_batch,
    ref=_correlate_ref,
    captures=False,
    samples=shaped(
        ([(5,), (2,)], {}),
        ([(4, 5), (1, 3)], {}),
        ([(3, 4), (2, 4)], {}),
        ([(2, 3), (2, 3)], {}),
        ([(5,), (3,)], {"pairs": [(2, 0)], "mode": "mirror"}),
        ([(2, 5), (1, 4)], {"pairs": [(0, 0), (1, 2)], "mode": "grid-wrap"}),
        ([(2, 3), (2, 4)], {"pairs": [(0, 1), (2, 1)], "mode": "reflect"}),
        ([(3, 4), (3, 1)], {"pairs": [(1, 1), (0, 0)]}),
    ),
    errors=[
        ([np.ones(3), np.ones((1, 2))], {}, ShapeError, r"\(3,\).*\(1, 2\)"),
        ([np.ones(3), np.ones(4)], {}, ShapeError, r"\(3,\).*\(4,\)"),
        ([np.ones(3), np.ones(2)], {"pairs": [(1, 1)]}, ShapeError, r"pairs.*\(2,\)"),
    ],
)
def correlate_valid(xp, x, w, /, *, pairs=(), mode="constant"):
    """Sums of products of weights with the windows of an array, along all axes.

    Args:
        x: an array with as many axes as `w`.
        w: the weights, which are not reversed.
        pairs: how many elements `x` gets (before, after) along each axis, so that each of its own
            is met by one window: their sum is one less than the length of `w`; or () for none.
        mode: what these elements are: one of SciPy's names, without a constant other than 0.

    Returns:
        Tensor with an element for each window.

    >>> print(gg.correlate_valid([1.0, 2.0, 4.0], [1.0, -1.0]))
    [-1. -2.]
    """
    kind = xp.lib.result_type(x, w)
    x, w = xp.lib.asarray(x, dtype=kind), xp.lib.asarray(w, dtype=kind)
    if pairs and x.ndim == w.ndim:
        check_mode("correlate_valid", mode)
        if [before + after + 1 for before, after in pairs] != list(w.shape):
            raise ShapeError(f"correlate_valid: pairs {pairs} do not fit weights of {w.shape}.")
        if xp is NUMPY and kind == np.float64 and x.size >= w.size > 0:
            return _of_scipy(xp, x, w, mode, [p[0] for p in pairs])
        x = _extended(xp, x, pairs, mode)
    if x.ndim != w.ndim or any(n < k for n, k in zip(x.shape, w.shape, strict=True)):
        raise ShapeError(f"correlate_valid: {x.shape} is too small for weights of {w.shape}.")
    places = _places(x.shape, w.shape)
    if math.prod(places) < w.size or not w.size:
        return by_elements(xp, x, w, places)
    if xp is not NUMPY or kind == np.float32:  # these have kernels
        return xp.convolution(x[None, None], w[None, None])[0, 0]
    out = _of_scipy(xp, x, w.conj(), "constant", [k // 2 for k in w.shape])  # SciPy conjugates too
    return out[tuple(slice(k // 2, k // 2 + n) for k, n in zip(w.shape, places, strict=True))]


def _of_scipy(xp, x, w, mode, before):
    """SciPy's correlation, with `before` elements of each window before its place."""
    long = [axis for axis, n in enumerate(w.shape) if n > 1]
    origins = [b - k // 2 for b, k in zip(before, w.shape, strict=True)]
    if len(long) > 1:
        return xp.scipy("ndimage").correlate(x, w, mode=mode, origin=origins)
    axis = long[0] if long else 0
    return xp.scipy("ndimage").correlate1d(x, w.ravel(), axis, mode=mode, origin=origins[axis])
