"""Values of images between elements, at places in units of elements: the op of large arrays.

`grid_sample` is a composite, whose parts a GPU fuses. On the CPU each part would read and write
all values, so there this is one op with a kernel, and so is its gradient.
"""

import itertools
import math

import numpy as np

from gpugrad.autodiff.batched import all_batched
from gpugrad.core.samples import uniform
from gpugrad.errors import ShapeError
from gpugrad.kernels.cpu import bilinear as kernels
from gpugrad.kernels.cpu.large import MIDDLE, steps_unless
from gpugrad.registry.record import op


def _samples(rng):
    for zeros, low, high in ((True, -1.0, 3.0), (False, 0.0, 2.0)):
        cells = rng.integers(low, high, (2, 3, 2)) if zeros else rng.integers(0, 2, (2, 3, 2))
        yield [uniform(rng, 2, 2, 3, 4), cells + rng.uniform(0.2, 0.8, (2, 3, 2))], {"zeros": zeros}


def _corners(x, places):
    """For each image, place and corner: the element, whether it exists, weight and its slopes."""
    for n, p in np.ndindex(places.shape[:2]):
        low = np.floor(places[n, p]).astype(int)
        for step in itertools.product((0, 1), repeat=2):
            t = np.where(step, places[n, p] - low, 1 - places[n, p] + low)
            at, sign = low + step, np.where(step, 1.0, -1.0)
            inside = bool(np.all((at >= 0) & (at < x.shape[2:])))
            yield n, p, tuple(np.minimum(at, np.array(x.shape[2:]) - 1)), inside, t, sign


def _ref(x, places, zeros=False):
    out = np.zeros((*x.shape[:2], places.shape[1]))
    for n, p, at, inside, t, _ in _corners(x, places):
        out[n, :, p] += x[n, :, *at] * t.prod() * (inside or not zeros)
    return out


def _grads_ref(g, x, places, zeros=False):
    dx, d_places = np.zeros_like(x), np.zeros_like(places)
    for n, p, at, inside, t, sign in _corners(x, places):
        if inside or not zeros:
            dx[n, :, *at] += g[n, :, p] * t.prod()
            d_places[n, p] += np.sum(g[n, :, p] * x[n, :, *at]) * sign * t[::-1]
    return dx, d_places


def _check(name, x, places):
    fits = x.ndim == 4 and places.ndim == 3 and places.shape[::2] == (x.shape[0], 2)
    if not fits or 0 in x.shape[2:]:
        raise ShapeError(
            f"{name}: x {x.shape} and places {places.shape} are not (N, C, H, W), which must not "
            "be empty, and (N, P, 2)."
        )


def _rows(xp, x):
    """An image's elements, each with its channels: (N * H * W, C)."""
    return xp.reshape(xp.moveaxis(x, 1, -1), (x.size // x.shape[1], x.shape[1]))


def _taps(xp, x, places, zeros):
    """For each corner: indices of rows (N, P), a mask or None, and weight and sign of each axis."""
    low = xp.floor(places)
    between = places - low
    first = xp.getitem(places, index=(slice(None), slice(0, 1), 0))
    image = xp.cumulative_sum(xp.astype(first * 0, "int64") + 1, axis=0) - 1
    for step in itertools.product((0, 1), repeat=2):
        index, inside, weights = image, None, []
        for k, n in enumerate(x.shape[2:]):
            at = xp.getitem(low, index=(Ellipsis, k)) + step[k]
            fits = (at >= 0) & (at <= n - 1)
            index = index * n + xp.astype(xp.where(fits, at, n - 1), "int64")
            inside = fits if inside is None else inside & fits
            t = xp.getitem(between, index=(Ellipsis, k))
            weights.append(t if step[k] else 1 - t)
        signs = [2 * s - 1 for s in step]
        yield index, xp.expand_dims(inside, axis=-1) if zeros else None, weights, signs


def _batch(xp, batched, x, places, *, zeros):
    """The images of all examples are those of one."""
    x, places = all_batched(xp, batched, (x, places))
    n = x.shape[:2]
    x, places = (xp.reshape(a, (n[0] * n[1], *a.shape[2:])) for a in (x, places))
    out = xp.bilinear_sample(x, places, zeros=zeros)
    return xp.reshape(out, (*n, *out.shape[1:]))


@op(
    vjp=lambda xp, g, x, places, zeros: xp.bilinear_sample_grads(g, x, places, zeros=zeros),
    batch=_batch,
    cpu=kernels.bilinear,
    captures=True,
    ref=_ref,
    samples=_samples,
    errors=[([np.ones((1, 2, 3)), np.ones((1, 2, 2))], {}, ShapeError, r"\(1, 2, 3\)")],
)
def bilinear_sample(xp, x, places, /, *, zeros=False):
    """Values of images at places, interpolated between elements; `grid_sample` calls it.

    Args:
        x: array of shape (N, C, H, W).
        places: array of shape (N, P, 2), (row, column); 0 is the center of the first element.
        zeros: whether elements outside count as 0. Otherwise places must be inside.

    Returns:
        Tensor of shape (N, C, P).
    """
    _check("bilinear_sample", x, places)
    out, rows = None, _rows(xp, x)
    for index, inside, weights, _ in _taps(xp, x, places, zeros):
        values = xp.take(rows, index, axis=0)
        values = values if inside is None else xp.where(inside, values, 0)
        term = values * xp.expand_dims(math.prod(weights), axis=-1)
        out = term if out is None else out + term
    return xp.moveaxis(out, -1, 1)


def _grads_samples(rng):
    for (x, places), params in _samples(rng):
        yield [uniform(rng, *x.shape[:2], places.shape[1]), x, places], params


@op(
    outputs=2,
    cpu=kernels.bilinear_grads,
    opens=steps_unless(lambda g, x, places: x.shape[1] * math.prod(places.shape) >= MIDDLE),
    captures=True,
    ref=_grads_ref,
    samples=_grads_samples,
    errors=[([np.ones(1), np.ones((1, 2, 3)), np.ones((1, 2, 2))], {}, ShapeError, r"\(1, 2, 3\)")],
)
def bilinear_sample_grads(xp, g, x, places, /, *, zeros=False):
    """The gradients of `bilinear_sample` by the images and the places."""
    _check("bilinear_sample_grads", x, places)
    rows, g = _rows(xp, x), xp.moveaxis(g, 1, -1)
    dx = None
    slopes = [0, 0]
    for index, inside, weights, signs in _taps(xp, x, places, zeros):
        own = g if inside is None else xp.where(inside, g, 0)
        values = xp.take(rows, index, axis=0)
        along = xp.sum(own * (values if inside is None else xp.where(inside, values, 0)), axis=-1)
        slopes = [slopes[k] + along * weights[1 - k] * signs[k] for k in range(2)]
        spread = own * xp.expand_dims(math.prod(weights), axis=-1)
        spread = xp.reshape(spread, (index.size, x.shape[1]))
        term = xp.scatter_rows(spread, xp.reshape(index, (index.size,)), shape=rows.shape)
        dx = term if dx is None else dx + term
    dx = xp.moveaxis(xp.reshape(dx, (x.shape[0], *x.shape[2:], x.shape[1])), -1, 1)
    return dx, xp.stack(slopes, axis=-1)
