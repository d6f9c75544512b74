"""Correlation, spline coefficients and splines at points, for `gpugrad.scipy.ndimage`."""

import itertools
import math

import numpy as np

from gpugrad.core.backend import NUMPY
from gpugrad.core.samples import shaped, uniform
from gpugrad.errors import ArgumentError, ShapeError
from gpugrad.ops._axes import check_axis
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


def _by_elements(xp, x, w, places):
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


def _windows(places):
    """The part of an array that meets the weight at `tap`, for each tap, as a function."""
    return lambda tap: tuple(slice(t, t + n) for t, n in zip(tap, places, strict=True))


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
    captures=True,
    samples=shaped(
        ([(5,), (2,)], {}), ([(4, 5), (1, 3)], {}), ([(3, 4), (2, 4)], {}), ([(2, 3), (2, 3)], {}),
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
        _check_mode("correlate_valid", mode)
        if [before + after + 1 for before, after in pairs] != list(w.shape):
            raise ShapeError(f"correlate_valid: pairs {pairs} do not fit weights of {w.shape}.")
        if xp is NUMPY and kind == np.float64 and x.size >= w.size > 0:
            return _of_scipy(xp, x, w, mode, [p[0] for p in pairs])
        x = _extended(xp, x, pairs, mode)
    if x.ndim != w.ndim or any(n < k for n, k in zip(x.shape, w.shape, strict=True)):
        raise ShapeError(f"correlate_valid: {x.shape} is too small for weights of {w.shape}.")
    places = _places(x.shape, w.shape)
    if math.prod(places) < w.size or not w.size:
        return _by_elements(xp, x, w, places)
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


# ---- splines -----------------------------------------------------------------------------

_EXACT = 48
"""The poles of the filters are at most 0.43: from here on, the ends do not see each other."""


def _coefficients_batch(xp, batched, x, *, order, axis, mode, adjoint):
    axis = check_axis("spline_coefficients", axis, x.shape[1:]) + 1
    return xp.spline_coefficients(x, order=order, axis=axis, mode=mode, adjoint=adjoint)


@op(
    vjp=[
        lambda xp, g, order, axis, mode, adjoint: xp.spline_coefficients(
            g, order=order, axis=axis, mode=mode, adjoint=not adjoint
        )
    ],
    linear=True,
    batch=_coefficients_batch,
    ref=lambda x, order, axis, mode, adjoint=False: _filtered(NUMPY, x, order, axis, mode, adjoint),
    samples=shaped(
        ([(4, 5)], {"order": 3, "axis": 0, "mode": "mirror"}),
        ([(5,)], {"order": 2, "axis": -1, "mode": "reflect", "adjoint": True}),
        ([(2, 50)], {"order": 5, "axis": 1, "mode": "mirror"}),
        ([(50,)], {"order": 4, "axis": 0, "mode": "grid-wrap"}),
        ([(1,)], {"order": 3, "axis": 0, "mode": "grid-wrap"}),
    ),
    errors=[([np.ones(3)], {"order": 6, "axis": 0, "mode": "mirror"}, ArgumentError, "order")],
)
def spline_coefficients(xp, x, /, *, order, axis, mode, adjoint=False):
    """Coefficients of the B-spline of an order from 2 to 5 through the elements, along an axis.

    Args:
        order: int from 2 to 5.
        mode: how the elements go on: one of SciPy's names.
        adjoint: whether to apply the transposed filter.

    Returns:
        Tensor of the shape of `x`.

    >>> print(gg.spline_coefficients([0.0, 1.0, 0.0], order=2, axis=0, mode="mirror"))
    [-0.5  1.5 -0.5]
    """
    if order not in (2, 3, 4, 5):
        raise ArgumentError(f"spline_coefficients: order={order} must be 2, 3, 4 or 5.")
    _check_mode("spline_coefficients", mode)
    axis = check_axis("spline_coefficients", axis, x.shape)
    return _filtered(xp, x, order, axis, mode, adjoint)


def _check_mode(name, mode):
    if not (isinstance(mode, str) and mode in NUMPY_MODES):
        raise ArgumentError(f"{name}: mode={mode!r:.40} is none of {', '.join(NUMPY_MODES)}.")


def _filtered(xp, x, order, axis, mode, adjoint):
    def run(y):
        return xp.scipy("ndimage").spline_filter1d(y, order, axis, output=y.dtype, mode=mode)

    n = x.shape[axis]
    if not adjoint or not x.size:
        return run(x) if x.size else xp.lib.zeros(x.shape, dtype=x.dtype)
    if n < _EXACT:  # where SciPy's ends are approximate, only the matrix tells
        matrix = xp.scipy("ndimage").spline_filter1d(
            xp.lib.eye(n, dtype=x.dtype), order, 0, output=x.dtype, mode=mode
        )
        return xp.lib.moveaxis(xp.lib.tensordot(matrix, x, axes=([0], [axis])), 0, axis)
    if mode in ("reflect", "nearest", "grid-mirror", "grid-wrap"):  # the filter is symmetric
        return run(x)
    ends = xp.lib.ones(n, dtype=x.dtype)  # a mirrored end counts half
    ends[:1] = ends[-1:] = 0.5
    ends = ends.reshape([-1 if i == axis % x.ndim else 1 for i in range(x.ndim)])
    return ends * run(x / ends)


def spline_weights(xp, t, order):
    """The start and the weights of the B-splines of an order that reach over positions `t`.

    By the recurrence of the splines M of order p with knots 0 to p + 1:
    p M(x) = x M'(x) + (p + 1 - x) M'(x - 1), where M' has order p - 1.
    """
    start = xp.floor(t if order % 2 else t + 0.5)
    u = t - start + (0.0 if order % 2 else 0.5)
    values = [1.0]
    for p in range(1, order + 1):
        values = [
            sum(
                term / p
                for term in (
                    (u + i) * values[i] if i < p else None,
                    (p + 1 - i - u) * values[i - 1] if i else None,
                )
                if term is not None
            )
            for i in range(p + 1)
        ]
    return start - order // 2, values[::-1]


def mapped(xp, t, n, mode):
    """Positions `t` along an axis of length `n`, within it; SciPy's rule of each mode."""
    if n <= 1:
        return t * 0
    if mode == "nearest":
        return xp.clip(t, 0, n - 1)
    if mode in ("mirror", "reflect", "grid-mirror"):
        half, more = (n - 1, 0) if mode == "mirror" else (n, 0.5)
        there = xp.abs(t + more - half - 2 * half * xp.floor((t + more) / (2 * half)))
        back = half - there - more
    elif mode == "wrap":  # with a period of n - 1, SciPy moves by one more than needed
        period = n - 1
        low = t + period * (xp.trunc(-t / period) + 1)
        back = xp.where(t < 0, low, t - period * xp.trunc(t / period))
    else:
        back = t - n * xp.floor(t / n)
    return xp.where((t < 0) | (t > n - 1), back, t)


def axis_taps(xp, t, n, order, mode):
    """(indices, weights) of each tap along an axis of length `n` at positions `t`.

    For the mode "constant", whoever calls it puts the constant where `t` is outside; for
    "grid-constant", the weights of taps outside are 0.
    """
    if mode == "constant":
        t = xp.clip(t, 0, n - 1)
    elif mode not in ("grid-constant", "nearest"):  # these map each tap alone
        t = mapped(xp, t, n, mode)
    start, weights = spline_weights(xp, t, order)
    inner = "mirror" if mode in ("constant", "wrap") else mode
    taps = []
    for i, w in enumerate(weights):
        at = xp.stop_gradient(start) + i
        if mode == "grid-constant":
            w = xp.where((at >= 0) & (at <= n - 1), w, 0.0)
        else:
            at = mapped(xp, at, n, inner)
        taps.append((xp.astype(xp.clip(at, 0, n - 1), np.dtype("int64")), w))
    return taps


def _by_scipy(xp, x, coordinates, /, *, order, mode):
    if x.dtype.kind != "f":
        return NotImplemented
    return xp.scipy("ndimage").map_coordinates(
        x, coordinates, x.dtype, order, mode, 0.0, prefilter=False
    )


def _points(rng):
    for mode in ("mirror", "wrap", "grid-constant"):
        where = np.stack([uniform(rng, 3), uniform(rng, 3, low=0.1, high=2.9)])
        yield [uniform(rng, 3, 4), where], {"order": 2, "mode": mode}
    for order, mode in ((1, "nearest"), (3, "reflect"), (4, "grid-wrap"), (5, "mirror")):
        yield [uniform(rng, 4), uniform(rng, 1, 2, 2, low=0.1)], {"order": order, "mode": mode}


def _points_ref(x, coordinates, order, mode):
    import scipy.ndimage

    return scipy.ndimage.map_coordinates(x, coordinates, None, order, mode, 0.0, prefilter=False)


@op(
    samples=_points,
    ref=_points_ref,
    cpu=_by_scipy,
    large=2**12,
    opens=None,
    errors=[
        ([np.ones(3), np.ones((2, 1))], {"order": 1, "mode": "mirror"}, ShapeError, r"\(2, 1\)")
    ],
)
def spline_at(xp, x, coordinates, /, *, order, mode):
    """The spline of given coefficients at points; any value outside if the mode is "constant".

    Args:
        x: the coefficients, as `spline_coefficients` computes them.
        coordinates: array of shape (axes of `x`, ...).
        order: int from 0 to 5.
        mode: how the spline goes on: one of SciPy's names.

    Returns:
        Tensor of the shape of `coordinates` without its first axis.

    >>> print(gg.spline_at([0.0, 2.0, 4.0], [[0.25, 1.5]], order=1, mode="mirror"))
    [0.5 3. ]
    """
    if order not in (0, 1, 2, 3, 4, 5):
        raise ArgumentError(f"spline_at: order={order!r:.40} must be 0, 1, 2, 3, 4 or 5.")
    _check_mode("spline_at", mode)
    if coordinates.ndim < 1 or coordinates.shape[0] != x.ndim:
        raise ShapeError(f"spline_at: coordinates of {coordinates.shape} in {x.shape}.")
    all_taps = []
    for k, n in enumerate(x.shape):
        taps = axis_taps(xp, xp.getitem(coordinates, index=(k,)), n, order, mode)
        all_taps.append([(at * math.prod(x.shape[k + 1 :]), w) for at, w in taps])
    flat, total = xp.reshape(x, (-1,)), 0
    for taps in itertools.product(*all_taps):
        at, w = taps[0]
        for more, factor in taps[1:]:
            at, w = at + more, w * factor
        total = total + w * xp.take(flat, at)
    return total if total.dtype == x.dtype else xp.astype(total, x.dtype)
