"""Sampling images at arbitrary places, and the places of an affine map.

Both are composites, so they can be differentiated by the image, the places and the map, to any
order. The names and conventions are torch's: coordinates run from -1 to 1, x before y.
"""

import functools
import itertools
import math

import numpy as np

from gpugrad.core.backend import untraced
from gpugrad.core.samples import shaped, uniform
from gpugrad.errors import ArgumentError, ShapeError
from gpugrad.kernels.cpu.bilinear import takes
from gpugrad.ops.arrays.windows import need_arrays
from gpugrad.ops.nn.resample import Taps, cubic
from gpugrad.registry.record import op


@functools.lru_cache(maxsize=256)
def _coordinates(n, align_corners):
    """Taps that multiply one number by the coordinates of `n` elements."""
    edge = 1.0 if align_corners else 1 - 1 / n
    places = np.linspace(-edge, edge, n) if n > 1 else np.zeros(1)
    return Taps(np.zeros((n, 1), int), places[:, None], 1)


def _affine_ref(theta, size, align_corners=False):
    spaces = []
    for n in size[2:]:
        edge = (n - 1) / n if not align_corners else float(n > 1)
        spaces.append(np.linspace(-edge, edge, n) if n > 1 else np.zeros(1))
    places = np.stack([*np.meshgrid(*spaces, indexing="ij")[::-1], np.ones(size[2:])], axis=-1)
    return np.einsum("...j,nij->n...i", places, theta)


@op(
    ref=_affine_ref,
    samples=shaped(
        ([(2, 2, 3)], {"size": (2, 1, 2, 3)}),
        ([(1, 2, 3)], {"size": (1, 1, 3, 1), "align_corners": True}),
        ([(1, 3, 4)], {"size": (1, 2, 2, 1, 3)}),
        ([(0, 2, 3)], {"size": (0, 1, 2, 2)}),
    ),
    errors=[
        ([np.ones((1, 2, 3)), (2, 1, 2, 2)], {}, ShapeError, r"affine_grid.*\(1, 2, 3\)"),
        ([np.ones((1, 3, 4)), (1, 1, 2, 2)], {}, ShapeError, r"affine_grid.*\(1, 3, 4\)"),
        ([np.ones((1, 2, 3)), (1, 1, 0, 2)], {}, ArgumentError, "affine_grid: size"),
    ],
)
def affine_grid(xp, theta, /, size, align_corners=False):
    """Places of a result's elements in its source, under affine maps: for `grid_sample`.

    Args:
        theta: array of shape (N, 2, 3) for images, (N, 3, 4) for volumes: matrices that
            multiply the coordinates (x, y, 1), or (x, y, z, 1), of the result.
        size: shape of the result, (N, C, H, W) or (N, C, D, H, W).
        align_corners: whether -1 and 1 are the centers of the first and last elements, or their
            outer edges.

    Returns:
        Tensor of shape (N, H, W, 2), or (N, D, H, W, 3).

    >>> identity = [[[1.0, 0.0, 0.0], [0.0, 1.0, 0.0]]]
    >>> print(gg.nn.affine_grid(identity, (1, 1, 1, 2)))
    [[[[-0.5  0. ]
       [ 0.5  0. ]]]]
    """
    size = tuple(size)
    n = len(size) - 2
    if n not in (2, 3) or min(size[2:]) < 1:
        raise ArgumentError(
            f"affine_grid: size={size} must be (N, C, H, W) or (N, C, D, H, W), not empty."
        )
    if theta.shape != (size[0], n, n + 1):
        raise ShapeError(
            f"affine_grid: theta must have the shape {(size[0], n, n + 1)} for the size {size}, "
            f"not {theta.shape}."
        )
    ones = (1,) * n
    out = xp.reshape(xp.getitem(theta, index=(Ellipsis, n)), (size[0], *ones, n))
    for k, length in enumerate(reversed(size[2:])):  # x is the last axis
        column = xp.reshape(xp.getitem(theta, index=(Ellipsis, k)), (size[0], *ones, n))
        taps = _coordinates(length, bool(align_corners))
        out = out + xp.resample(column, taps, axis=n - k)
    return out


def _place(xp, u, n, align_corners):
    """The coordinate `u` in elements: 0 is the center of the first of `n`."""
    return (u + 1) * ((n - 1) / 2) if align_corners else (u + 1) * (n / 2) - 0.5


def _kept_inside(xp, place, n, padding_mode, align_corners):
    """Places outside of the array moved back into it."""
    if padding_mode == "reflection":
        low, span = (0, n - 1) if align_corners else (-0.5, n)
        if not span:
            return place * 0
        place = low + span - xp.abs(xp.remainder(place - low, 2 * span) - span)
    return xp.clip(place, 0, n - 1) if padding_mode != "zeros" else place


def _linear(t):
    return 1 - t, t


_MODES = {"nearest": (0,), "bilinear": (0, 1), "bicubic": (-1, 0, 1, 2)}
"""The elements that each mode reads along an axis, relative to the one before the place."""


def _along(xp, u, n, mode, padding_mode, align_corners):
    """Along one axis: positions of elements, whether they exist, and their weights (None for 1)."""
    place = _place(xp, u, n, align_corners)
    if mode != "bicubic":
        place = _kept_inside(xp, place, n, padding_mode, align_corners)
    if mode == "nearest":
        return [_element(xp, xp.round(place), n, None)]
    low = xp.floor(place)
    weights = (_linear if mode == "bilinear" else cubic)(place - low)
    taps = []
    for step, weight in zip(_MODES[mode], weights, strict=True):
        at = low + step
        if mode == "bicubic":
            at = _kept_inside(xp, at, n, padding_mode, align_corners)
        taps.append(_element(xp, at, n, weight))
    return taps


def _element(xp, at, n, weight):
    fits = (at >= 0) & (at <= n - 1)  # False one after the last, for NaN, or outside
    return xp.astype(xp.where(fits, at, n - 1), "int64"), fits, weight


def _sample_at(xp, x, taps, lengths, zeros):
    """Rows of `x` (N * elements of an image, C) at one combination of taps, times their weights."""
    first = xp.getitem(taps[0][0], index=(slice(None), slice(0, 1)))
    index = xp.cumulative_sum(first * 0 + 1, axis=0) - 1  # the number of the image
    inside = weight = None
    for (at, fits, w), n in zip(taps, lengths, strict=True):
        index = index * n + at
        if zeros:
            inside = fits if inside is None else inside & fits
        if w is not None:
            weight = w if weight is None else weight * w
    values = xp.take(x, index, axis=0)
    if zeros:
        values = xp.where(xp.expand_dims(inside, axis=-1), values, 0)
    return values if weight is None else values * xp.expand_dims(weight, axis=-1)


def _sample_ref(x, grid, mode="bilinear", padding_mode="zeros", align_corners=False):
    """One place after another, with plain numbers."""

    def inside(p, n):
        if padding_mode == "reflection":
            low, high = (0, n - 1) if align_corners else (-0.5, n - 0.5)
            while high > low and not low <= p <= high:
                p = 2 * low - p if p < low else 2 * high - p
        return p if padding_mode == "zeros" else min(max(p, 0), n - 1)

    def along(u, n):
        p = (u + 1) / 2 * (n - 1) if align_corners else ((u + 1) * n - 1) / 2
        if mode == "bicubic":
            k = math.floor(p)
            weights = cubic(p - k)
            return [(inside(k + i, n), w) for i, w in zip((-1, 0, 1, 2), weights, strict=True)]
        p = inside(p, n)
        k = math.floor(p)
        return [(round(p), 1.0)] if mode == "nearest" else [(k, k + 1 - p), (k + 1, p - k)]

    out = np.zeros((*x.shape[:2], *grid.shape[1:-1]))
    for at in np.ndindex(grid.shape[:-1]):
        taps = [along(u, n) for u, n in zip(grid[at][::-1], x.shape[2:], strict=True)]
        for several in itertools.product(*taps):
            places, weight = [int(p) for p, _ in several], math.prod(w for _, w in several)
            if all(0 <= p < n for p, n in zip(places, x.shape[2:], strict=True)):
                out[at[0], :, *at[1:]] += weight * x[at[0], :, *places]
    return out


def _sample_samples(*cases):
    """Places that are not close to an element or an edge, where the derivative jumps."""

    def sampler(rng):
        for shape, places, keywords in cases:
            lengths = np.array(shape[:1:-1], float)
            cells = [rng.integers(-2, k + 1, (shape[0], *places)) for k in shape[:1:-1]]
            at = np.stack(cells, -1) + rng.uniform(0.2, 0.3, (shape[0], *places, len(lengths)))
            corners = keywords.get("align_corners", False)
            grid = at * 2 / (lengths - 1) - 1 if corners else (at * 2 + 1) / lengths - 1
            yield [uniform(rng, *shape), grid], keywords

    return sampler


_SQUARE, _CENTER = np.ones((1, 1, 2, 2)), np.ones((1, 1, 1, 2))


@op(
    ref=_sample_ref,
    samples=_sample_samples(
        ((1, 2, 3, 2), (2, 1), {}),
        ((1, 1, 2, 3), (1, 1), {"mode": "bicubic", "padding_mode": "border"}),
        ((1, 1, 2, 3), (1, 3), {"padding_mode": "reflection", "align_corners": True}),
        ((1, 1, 3, 2), (1, 2), {"mode": "nearest", "padding_mode": "border"}),
        ((1, 1, 2, 2, 2), (1, 1, 2), {"padding_mode": "reflection"}),
    ),
    errors=[
        ([_SQUARE, np.ones((2, 1, 1, 2))], {}, ShapeError, r"\(2, 1, 1, 2\)"),
        ([_SQUARE, np.ones((1, 1, 1, 3))], {}, ShapeError, r"\(1, 1, 1, 3\)"),
        ([_SQUARE[0], _CENTER[0]], {}, ShapeError, r"\(1, 2, 2\)"),
        ([_SQUARE, _CENTER], {"mode": "linear"}, ArgumentError, "mode"),
        ([_SQUARE, _CENTER], {"padding_mode": "wrap"}, ArgumentError, "padding_mode='wrap'"),
    ],
)
def grid_sample(xp, x, grid, /, mode="bilinear", padding_mode="zeros", align_corners=False):
    """Values of images or volumes at arbitrary places, interpolated between elements.

    Args:
        x: array of shape (N, C, H, W), or (N, C, D, H, W).
        grid: array of shape (N, ..., 2) with coordinates (x, y), or (N, ..., 3) with (x, y, z);
            as many axes as `x`. They run from -1 to 1, x along the last axis of `x`.
        mode: "bilinear" (in volumes trilinear), "nearest" (then the gradient by `grid` is
            None), or "bicubic".
        padding_mode: values outside: "zeros", the nearest element at the "border", or the
            array's "reflection".
        align_corners: as for `affine_grid`.

    Returns:
        Tensor of shape (N, C, ...), with the axes of `grid` between its first and last.

    >>> x = [[[[0.0, 1.0], [2.0, 3.0]]]]
    >>> print(gg.nn.grid_sample(x, [[[[0.0, 0.0], [0.5, -0.5]]]]))
    [[[[1.5 1. ]]]]
    """
    need_arrays("grid_sample", x, grid)
    n = x.ndim - 2
    fits = n in (2, 3) and grid.ndim == x.ndim and grid.shape[0] == x.shape[0]
    if not fits or grid.shape[-1] != n or 0 in x.shape[2:]:
        raise ShapeError(
            f"grid_sample: x {x.shape} must be (N, C, H, W) and grid {grid.shape} (N, ..., 2), or "
            "(N, C, D, H, W) and (N, ..., 3), with as many axes; x must not be empty."
        )
    if mode not in _MODES:
        raise ArgumentError(f"grid_sample: mode={mode!r} must be one of {[*_MODES]}.")
    if padding_mode not in ("zeros", "border", "reflection"):
        raise ArgumentError(
            f"grid_sample: padding_mode={padding_mode!r} must be 'zeros', 'border' or 'reflection'."
        )
    lengths, places = x.shape[2:], grid.shape[1:-1]
    grid = xp.reshape(grid, (x.shape[0], math.prod(places), n))
    columns = [xp.getitem(grid, index=(Ellipsis, n - 1 - k)) for k in range(n)]
    if mode == "bilinear" and takes(untraced(x), untraced(grid)):
        inside = [
            _kept_inside(xp, _place(xp, u, k, align_corners), k, padding_mode, align_corners)
            for u, k in zip(columns, lengths, strict=True)
        ]
        out = xp.bilinear_sample(x, xp.stack(inside, axis=-1), zeros=padding_mode == "zeros")
        return xp.reshape(out, (*x.shape[:2], *places))
    rows = xp.reshape(xp.moveaxis(x, 1, -1), (x.shape[0] * math.prod(lengths), x.shape[1]))
    axes = [
        _along(xp, u, length, mode, padding_mode, align_corners)
        for u, length in zip(columns, lengths, strict=True)
    ]
    out = None
    for taps in itertools.product(*axes):
        value = _sample_at(xp, rows, taps, lengths, padding_mode == "zeros")
        out = value if out is None else out + value
    return xp.reshape(xp.moveaxis(out, -1, 1), (*x.shape[:2], *places))
