"""Regular grids, scattered points and polynomials through points, where SciPy loops or compiles."""

from __future__ import annotations

import functools
from typing import Any

import numpy as np
import scipy.interpolate

from gpugrad.core.backend import TENSOR as xp
from gpugrad.core.tensor import Tensor
from gpugrad.kernels.cpu.large import MIDDLE
from gpugrad.scipy.calling import plain_values
from gpugrad.scipy.interpolate import piecewise, splines
from gpugrad.scipy.namespaces import NUMPY


def coordinates(points: Any, ndim: int | None = None) -> Tensor:
    """`_interpnd._ndim_coords_from_arrays`: points along the last axis."""
    if isinstance(points, tuple) and len(points) == 1:
        points = points[0]
    if isinstance(points, tuple):
        arrays = NUMPY.broadcast_arrays(*(NUMPY.asarray(p) for p in points))
        return NUMPY.stack([xp.astype(a, np.dtype(float)) for a in arrays], axis=-1)
    points = NUMPY.asarray(points)
    if points.ndim == 1:
        return points.reshape(-1, 1) if ndim is None else points.reshape(-1, ndim)
    return points


def find_indices(grid: Any, xi: Tensor) -> tuple[list[Tensor], list[Tensor]]:
    """`_rgi_cython.find_indices`: intervals, and where in them the points are, from 0 to 1."""
    places, fractions = [], []
    for points, at in zip(grid, xi, strict=True):
        if points.shape[0] == 1:
            places.append(NUMPY.full(at.shape, -1, dtype=int))
            fractions.append(NUMPY.zeros_like(at))
            continue
        i = piecewise.interval(points, at)
        places.append(i)
        fractions.append((at - points[i]) / (points[i + 1] - points[i]))
    return places, fractions


def linear(self: Any, xi: Tensor) -> Tensor | None:
    """Linear interpolation without SciPy's loop over corners, or None.

    A point's places among the points of the grid are coordinates of a spline of order 1. That does
    not go on beyond the grid.
    """
    grid, values = self._grid, self._values
    if xi.size < MIDDLE and (plain := plain_values(values, xi, *grid)) is not None:
        values, xi, *grid = plain
        made = scipy.interpolate.RegularGridInterpolator(
            grid, values, bounds_error=False, fill_value=None
        )
        return NUMPY.asarray(made(xi))
    goes_on = not self.bounds_error and self.fill_value is None
    if goes_on or values.ndim != len(grid) or any(a.dtype != float for a in (values, xi, *grid)):
        return None
    counts = [NUMPY.arange(points.shape[0], dtype=float) for points in grid]
    places = [xp.interp(*arrays) for arrays in zip(xi.T, grid, counts, strict=True)]
    return xp.spline_at(values, xp.stack(places, axis=0), order=1, mode="nearest")


def fold(self: Any, first: Tensor, xi: Tensor, pchip: Any, spline: Any, k: int) -> Tensor:
    """`RegularGridInterpolator._evaluate_spline` behind its first dimension: all points at once.

    Each point has values of its own along the next dimension.
    """
    points = NUMPY.asarray(np.arange(xi.shape[0]))
    for d in range(xi.shape[1] - 2, -1, -1):
        y, grid, at = NUMPY.moveaxis(first, 1, 0), self._grid[d], xi[:, d]
        if self._legacy_pchip:
            made = pchip(grid, y)
            i = piecewise.interval(grid, at)
            s = NUMPY.reshape(at - grid[i], (-1,) + (1,) * (y.ndim - 2))
            first = piecewise.horner([row[i, points] for row in made.c], s)
        else:
            made = spline(grid, y, k=k)
            ell = splines.interval(made.t, k, at)
            weights = splines.basis(made.t, k, at, ell)
            parts = [
                made.c[ell + (a - k), points]
                * NUMPY.reshape(weights[:, a], (-1,) + (1,) * (y.ndim - 2))
                for a in range(k + 1)
            ]
            first = functools.reduce(xp.add, parts)
    return first


def squared_distances(x: Tensor, y: Tensor) -> Tensor:
    """Squares of the distances of all pairs, of which the radial functions here are functions.

    A distance has no derivative at 0, but most of these functions have.
    """
    return xp.pair_sums(x, y, term="squares")


def _nonzero(formula: Any) -> Any:
    """The formula, and 0 at 0."""
    return lambda s, xp: NUMPY.where(s == 0, 0.0, formula(NUMPY.where(s == 0, 1.0, s)))


RADIAL = {
    "linear": _nonzero(lambda s: -(s**0.5)),
    "thin_plate_spline": _nonzero(lambda s: 0.5 * s * NUMPY.log(s)),
    "cubic": _nonzero(lambda s: s**1.5),
    "quintic": _nonzero(lambda s: -(s**2.5)),
    "multiquadric": lambda s, xp: -NUMPY.sqrt(s + 1.0),
    "inverse_multiquadric": lambda s, xp: 1.0 / NUMPY.sqrt(s + 1.0),
    "inverse_quadratic": lambda s, xp: 1.0 / (s + 1.0),
    "gaussian": lambda s, xp: NUMPY.exp(-s),
}


def barycentric(self: Any, x: Tensor) -> Tensor:
    """`BarycentricInterpolator._evaluate`, around the nearest node, so that a node is as good.

    With gaps u_j = x - x_j and rises d_j = y_j - y_k it is y_k + sum(w d / u) / sum(w / u); both
    sums are taken u_k times.
    """
    gaps = x[:, None] - self.xi
    near = NUMPY.argmin(abs(xp.stop_gradient(gaps)), axis=1)
    is_near = near[:, None] == NUMPY.arange(self.n)
    to_node = NUMPY.sum(NUMPY.where(is_near, gaps, 0.0), axis=1)[:, None]
    weights = NUMPY.where(is_near, 0.0, self.wi / NUMPY.where(is_near, 1.0, gaps))
    start = xp.take(self.yi, near, axis=0)
    own = NUMPY.sum(NUMPY.where(is_near, self.wi, 0.0), axis=1)[:, None]
    total = own + to_node * NUMPY.sum(weights, axis=1)[:, None]
    rise = NUMPY.matmul(weights, self.yi) - NUMPY.sum(weights, axis=1)[:, None] * start
    return start + to_node * rise / total


def divided_differences(x: Tensor, y: Tensor) -> Tensor:
    """The coefficients of Newton's polynomial through points, with a row of zeros behind them."""
    rows, differences = [y[0]], y
    for k in range(1, x.shape[0]):
        differences = NUMPY.diff(differences, axis=0) / (x[k:] - x[:-k])[:, None]
        rows.append(differences[0])
    return NUMPY.stack([*rows, 0.0 * y[0]])


def barycentric_weights(xi: Tensor, scale: Any, order: Any) -> Tensor:
    """1 / prod_k (x_i - x_k), the factors in a random order so that no product overflows."""
    order = NUMPY.asarray(np.asarray(order))
    own = NUMPY.arange(xi.shape[0])[:, None] == order
    return NUMPY.prod(NUMPY.where(own, 1.0, scale * (xi[:, None] - xi[order])), axis=1)
