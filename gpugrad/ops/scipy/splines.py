"""Spline coefficients and splines at points, for `gpugrad.scipy.ndimage`."""

import itertools
import math

import numpy as np

from gpugrad.core.backend import NUMPY
from gpugrad.core.samples import shaped, uniform
from gpugrad.errors import ArgumentError, ShapeError
from gpugrad.kernels.cpu.large import kernels
from gpugrad.ops._axes import check_axis
from gpugrad.ops.arrays.index_rules import add_at
from gpugrad.ops.scipy.ndimage import check_mode
from gpugrad.registry.record import op

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
    check_mode("spline_coefficients", mode)
    axis = check_axis("spline_coefficients", axis, x.shape)
    return _filtered(xp, x, order, axis, mode, adjoint)


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
    """The start, weights and slopes of the B-splines of an order that reach over positions `t`.

    By the recurrence of the splines M of order p with knots 0 to p + 1, where M' has order p - 1:
    p M(x) = x M'(x) + (p + 1 - x) M'(x - 1). The slope of M is M'(x) - M'(x - 1).
    """
    start = xp.stop_gradient(xp.floor(t if order % 2 else t + 0.5))
    u = t - start + (0.0 if order % 2 else 0.5)
    values, slopes = [1.0], [0.0]
    for p in range(1, order + 1):
        if p == order:
            slopes = [values[0], *(b - a for a, b in itertools.pairwise(values)), -values[-1]]
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
    return start - order // 2, values[::-1], slopes[::-1]


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


def _direction(xp, t, n, mode):
    """The derivative of the position within an axis by `t`: -1 where it is mirrored."""
    if n <= 1:
        return 0.0
    if mode not in ("mirror", "reflect", "grid-mirror"):
        return 1.0
    half, more = (n - 1, 0) if mode == "mirror" else (n, 0.5)
    from_middle = t + more - half - 2 * half * xp.floor((t + more) / (2 * half))
    return xp.where((t < 0) | (t > n - 1), -xp.sign(from_middle), 1.0)


def axis_taps(xp, t, n, order, mode, slopes=False):
    """(indices, weights) of each tap along an axis of length `n` at positions `t`.

    For the mode "constant", whoever calls it puts the constant where `t` is outside; for
    "grid-constant", the weights of taps outside are 0. With `slopes`, derivatives of the weights
    by `t` stand for them.
    """
    factor = 1.0
    if mode == "constant":
        t = xp.clip(t, 0, n - 1)
    elif mode not in ("grid-constant", "nearest"):  # these map each tap alone
        factor, t = _direction(xp, t, n, mode) if slopes else 1.0, mapped(xp, t, n, mode)
    start, *weights = spline_weights(xp, t, order)
    inner = "mirror" if mode in ("constant", "wrap") else mode
    taps, table = [], None
    if xp is NUMPY and start.size > n and mode not in ("grid-constant", "nearest"):
        within = np.arange(-order - 1.0, n + order + 1)  # t is in the axis, and the taps near it
        table = np.clip(mapped(xp, within, n, inner), 0, n - 1).astype(np.int64)
        start = np.clip(start, -order, n).astype(np.int64) + order + 1  # of NaN, too
    for i, w in enumerate(weights[slopes]):
        at = start + i
        if table is not None:
            taps.append((table[at], w * factor if slopes else w))
            continue
        if mode == "grid-constant":
            w = xp.where((at >= 0) & (at <= n - 1), w, 0.0)
        else:
            at = mapped(xp, at, n, inner)
        w = w * factor if slopes else w
        taps.append((xp.astype(xp.clip(at, 0, n - 1), np.dtype("int64")), w))
    return taps


def _taps(xp, shape, coordinates, order, mode, slope=None, factor=None):
    """(flat indices, weights) of each tap; by the derivative along the axis `slope` if not None.

    The weights are multiplied by `factor` if it is not None.
    """
    axes = []
    for k, n in enumerate(shape):
        t = xp.getitem(coordinates, index=(k,))
        taps = axis_taps(xp, t, n, order, mode, k == slope)
        if k == 0 and factor is not None:
            taps = [(at, w * factor) for at, w in taps]
        step = math.prod(shape[k + 1 :])
        axes.append([(at * step if step > 1 else at, w) for at, w in taps])
    for (at, w), *others in itertools.product(*axes):
        for more, factor in others:
            at, w = at + more, w * factor
        yield at, w


def _read(xp, x, coordinates, order, mode, slope=None):
    flat, total = xp.reshape(x, (-1,)), 0
    for at, w in _taps(xp, x.shape, coordinates, order, mode, slope):
        total = total + w * xp.take(flat, at)
    return total


def _by_coordinates(xp, g, x, coordinates, order, mode):
    """The gradient of a sum of `g` times the spline of `x`."""
    if xp is NUMPY:
        out = kernels("splines").spline(x, coordinates, g, x.shape, order, mode, slopes=True)
        if out is not NotImplemented:
            return out
    axes = range(x.ndim if order else 0)
    parts = [g * _read(xp, x, coordinates, order, mode, k) for k in axes]
    parts = xp.stack(parts, axis=0) if parts else coordinates * 0
    return xp.astype(parts, coordinates.dtype)


def _check_spline(name, order, mode, coordinates, shape):
    if order not in (0, 1, 2, 3, 4, 5):
        raise ArgumentError(f"{name}: order={order!r:.40} must be 0, 1, 2, 3, 4 or 5.")
    check_mode(name, mode)
    if coordinates.ndim < 1 or coordinates.shape[0] != len(shape):
        raise ShapeError(f"{name}: coordinates of {coordinates.shape} in {tuple(shape)}.")


def _points(rng):
    for mode in ("mirror", "wrap", "grid-constant"):
        where = np.stack([uniform(rng, 3), uniform(rng, 3, low=0.1, high=2.9)])
        yield [uniform(rng, 3, 4), where], {"order": 2, "mode": mode}
    for order, mode in ((1, "nearest"), (3, "reflect"), (4, "grid-wrap"), (5, "mirror")):
        yield [uniform(rng, 4), uniform(rng, 1, 2, 2, low=0.1)], {"order": order, "mode": mode}


def _points_ref(x, coordinates, order, mode):
    import scipy.ndimage

    return scipy.ndimage.map_coordinates(x, coordinates, None, order, mode, 0.0, prefilter=False)


def _at_batch(xp, batched, x, coordinates, order, mode):
    if not batched[0]:
        where = xp.moveaxis(coordinates, 0, 1)
        return xp.spline_at(x, where, order=order, mode=mode)
    each = [
        xp.spline_at(
            xp.getitem(x, index=(i,)),
            xp.getitem(coordinates, index=(i,)) if batched[1] else coordinates,
            order=order,
            mode=mode,
        )
        for i in range(x.shape[0])
    ]
    return xp.stack(each, axis=0)


@op(
    vjp=[
        lambda xp, g, x_shape, coordinates, order, mode: xp.spline_spread(
            g, coordinates, shape=x_shape, order=order, mode=mode
        ),
        _by_coordinates,
    ],
    batch=_at_batch,
    samples=_points,
    ref=_points_ref,
    errors=[
        ([np.ones(3), np.ones((2, 1))], {"order": 1, "mode": "mirror"}, ShapeError, r"\(2, 1\)")
    ],
    captures=False,
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
    _check_spline("spline_at", order, mode, coordinates, x.shape)
    if xp is NUMPY:
        out = kernels("splines").spline(x, coordinates, None, x.shape, order, mode)
        if out is not NotImplemented:
            return out
    if xp is NUMPY and x.dtype.kind == "f" and x.size and coordinates.ndim > 1:
        return xp.scipy("ndimage").map_coordinates(
            x, coordinates, x.dtype, order, mode, 0.0, prefilter=False
        )
    return _read(xp, x, coordinates, order, mode).astype(x.dtype, copy=False)


def _spread_samples(rng):
    for (x, where), how in _points(rng):
        yield [uniform(rng, *where.shape[1:]), where], {"shape": x.shape, **how}


def _spread_ref(x, coordinates, shape, order, mode):
    basis = np.eye(math.prod(shape)).reshape(-1, *shape)
    return np.reshape([(x * _points_ref(b, coordinates, order, mode)).sum() for b in basis], shape)


_BLOCK = 2**15
"""Points at a time, so that the taps of all of them fit into the cache."""


@op(
    vjp=[
        lambda xp, g, coordinates, order, mode: xp.spline_at(
            g, coordinates, order=order, mode=mode
        ),
        lambda xp, g, x, coordinates, order, mode: _by_coordinates(
            xp, x, g, coordinates, order, mode
        ),
    ],
    samples=_spread_samples,
    ref=_spread_ref,
    errors=[
        (
            [np.ones(1), np.ones((2, 1))],
            {"shape": (3,), "order": 1, "mode": "mirror"},
            ShapeError,
            r"spline_spread.*\(2, 1\)",
        )
    ],
    captures=False,
)
def spline_spread(xp, x, coordinates, /, *, shape, order, mode):
    """The transpose of `spline_at`: values at points, added to coefficients by their weights.

    Args:
        x: array of the shape of `coordinates` without its first axis.
        coordinates: array of shape (axes of the result, ...).
        shape: of the result.
        order: int from 0 to 5.
        mode: how the spline goes on: one of SciPy's names.

    Returns:
        Tensor of that shape.

    >>> print(gg.spline_spread([8.0], [[0.25]], shape=(3,), order=1, mode="mirror"))
    [6. 2. 0.]
    """
    _check_spline("spline_spread", order, mode, coordinates, shape)
    if x.shape != coordinates.shape[1:]:
        raise ShapeError(f"spline_spread: {x.shape} at coordinates of {coordinates.shape}.")
    if xp is NUMPY:
        out = kernels("splines").spline(None, coordinates, x, shape, order, mode)
        if out is not NotImplemented:
            return out
    out = xp.lib.zeros(math.prod(shape), dtype=x.dtype)
    where, x = coordinates.reshape(len(shape), -1), x.reshape(-1)
    for start in range(0, x.size, _BLOCK):
        part = slice(start, start + _BLOCK)
        for at, w in _taps(xp, shape, where[:, part], order, mode, factor=x[part]):
            add_at("spline_spread", xp, out, (at,), w.astype(x.dtype, copy=False))
    return out.reshape(shape)
