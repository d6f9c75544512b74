"""Interpolation of scattered points: SciPy finds the neighbours, from values on the host."""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy.spatial import Delaunay, KDTree

from gpugrad.core.backend import TENSOR as xp
from gpugrad.core.tensor import Tensor
from gpugrad.scipy.calling import on_values
from gpugrad.scipy.interpolate.grids import coordinates
from gpugrad.scipy.namespaces import NUMPY


def _host(x: Any) -> np.ndarray[Any, Any]:
    return np.asarray(xp.stop_gradient(x).to_device("cpu"))


def _points(x: Any) -> Tensor:
    points: Tensor = coordinates(x)
    return NUMPY.asarray(points, dtype=float)


def _scale(points: Any, rescale: bool) -> tuple[Any, Any]:
    """The shift and the scale of the points before a search."""
    if not rescale:
        return 0.0, 1.0
    spread = np.ptp(points, axis=0)
    return points.mean(axis=0), np.where(spread > 0, spread, 1.0)


class LinearNDInterpolator:
    """`scipy.interpolate.LinearNDInterpolator`; gradients by values, points and places.

    The simplices are constants.
    """

    def __init__(
        self, points: Any, values: Any, fill_value: float = np.nan, rescale: bool = False
    ) -> None:
        if isinstance(points, Delaunay):
            self.tri, points = points, NUMPY.asarray(points.points)
            self._shift: Any = (0.0, 1.0)
        else:
            points = _points(points)
            self._shift = _scale(_host(points), rescale)
            self.tri = Delaunay((_host(points) - self._shift[0]) / self._shift[1])
        self.points, self.fill_value = points, fill_value
        values = NUMPY.asarray(values)
        self.values = values if values.dtype.kind in "fc" else NUMPY.asarray(values, dtype=float)
        if self.values.shape[0] != points.shape[0]:
            raise ValueError("different number of values and points")

    def __call__(self, *args: Any) -> Tensor:
        """The values at points (..., n), or at n arrays of coordinates."""
        at = _points(args[0] if len(args) == 1 else args)
        flat = NUMPY.reshape(at, (-1, at.shape[-1]))
        found = self.tri.find_simplex((_host(flat) - self._shift[0]) / self._shift[1])
        corners = self.tri.simplices[found]
        last = self.points[corners[:, -1]]
        edges = NUMPY.swapaxes(self.points[corners[:, :-1]] - last[:, None], -1, -2)
        share = NUMPY.linalg.solve(edges, (flat - last)[..., None])[..., 0]
        share = NUMPY.concatenate([share, 1 - NUMPY.sum(share, axis=-1, keepdims=True)], axis=-1)
        trailing = self.values.shape[1:]
        share = NUMPY.reshape(share, (*share.shape, *[1] * len(trailing)))
        result = NUMPY.sum(share * self.values[corners], axis=1)
        outside = (found < 0).reshape(-1, *[1] * len(trailing))
        result = NUMPY.where(outside, self.fill_value, result)
        return NUMPY.reshape(result, (*at.shape[:-1], *trailing))


class NearestNDInterpolator:
    """`scipy.interpolate.NearestNDInterpolator`; gradients by the values."""

    def __init__(self, x: Any, y: Any, rescale: bool = False, tree_options: Any = None) -> None:
        self.points, self.values = _points(x), NUMPY.asarray(y)
        self._shift = _scale(_host(self.points), rescale)
        host = (_host(self.points) - self._shift[0]) / self._shift[1]
        self.tree = KDTree(host, **(tree_options or {}))

    def __call__(self, *args: Any, **query_options: Any) -> Tensor:
        """The values at points (..., n), or at n arrays of coordinates."""
        at = _points(args[0] if len(args) == 1 else args)
        host = (_host(at) - self._shift[0]) / self._shift[1]
        distance, found = self.tree.query(host, **query_options)
        inside = np.isfinite(distance)
        result = self.values[np.where(inside, found, 0)]
        if inside.all():
            return result
        trailing = self.values.shape[1:]
        return NUMPY.where(inside.reshape(*inside.shape, *[1] * len(trailing)), result, np.nan)


def griddata_with(interp1d: Any, scipys: Any) -> Any:
    """`scipy.interpolate.griddata`; of the cubic method in the plane only values."""

    def griddata(
        points: Any,
        values: Any,
        xi: Any,
        method: str = "linear",
        fill_value: float = np.nan,
        rescale: bool = False,
    ) -> Tensor:
        given = _points(points)
        n = given.ndim if given.ndim < 2 else given.shape[-1]
        if n == 1 and method in ("nearest", "linear", "cubic"):
            x, values = NUMPY.reshape(given, (-1,)), NUMPY.asarray(values)
            if isinstance(xi, tuple):
                if len(xi) != 1:
                    raise ValueError("invalid number of dimensions in xi")
                (xi,) = xi
            order = np.argsort(_host(x))
            fill: Any = "extrapolate" if method == "nearest" else fill_value
            made = interp1d(
                x[order], values[order], kind=method, axis=0, bounds_error=False, fill_value=fill
            )
            return made(xi)
        if method == "nearest":
            return NearestNDInterpolator(given, values, rescale)(xi)
        if method == "linear":
            return LinearNDInterpolator(given, values, fill_value, rescale)(xi)
        return on_values(scipys.griddata)(points, values, xi, method, fill_value, rescale)

    return griddata
