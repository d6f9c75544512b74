"""Interpolation of scattered points: SciPy finds the neighbours, from values on the host."""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy.interpolate import _interpnd
from scipy.spatial import Delaunay, KDTree

from gpugrad.core.backend import TENSOR as xp
from gpugrad.core.tensor import Tensor
from gpugrad.scipy import sparse
from gpugrad.scipy.interpolate import splines
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
    spread = points.max(axis=0) - points.min(axis=0)
    return points.mean(axis=0), NUMPY.where(spread > 0, spread, 1.0)


def _shares(corners: Tensor, at: Tensor) -> Tensor:
    """Barycentric coordinates (m, n + 1) of points (m, n) in simplices (m, n + 1, n)."""
    last = corners[:, -1]
    edges = NUMPY.swapaxes(corners[:, :-1] - last[:, None], -1, -2)
    share = NUMPY.linalg.solve(edges, (at - last)[..., None])[..., 0]
    return NUMPY.concatenate([share, 1 - NUMPY.sum(share, axis=-1, keepdims=True)], axis=-1)


class LinearNDInterpolator:
    """`scipy.interpolate.LinearNDInterpolator`; gradients by values, points and places.

    The simplices are constants.
    """

    def __init__(
        self, points: Any, values: Any, fill_value: float = np.nan, rescale: bool = False
    ) -> None:
        if isinstance(points, Delaunay):
            self.tri, self.points = points, NUMPY.asarray(points.points)
            self._shift: Any = (0.0, 1.0)
        else:
            points = _points(points)
            self._shift = _scale(points, rescale)
            self.points = (points - self._shift[0]) / self._shift[1]
            self.tri = Delaunay(_host(self.points))
        self.fill_value, values = fill_value, NUMPY.asarray(values)
        self.values = values if values.dtype.kind in "fc" else NUMPY.asarray(values, dtype=float)
        if self.values.shape[0] != self.points.shape[0]:
            raise ValueError("different number of values and points")

    def __call__(self, *args: Any) -> Tensor:
        """The values at points (..., n), or at n arrays of coordinates."""
        at = _points(args[0] if len(args) == 1 else args)
        flat = (NUMPY.reshape(at, (-1, at.shape[-1])) - self._shift[0]) / self._shift[1]
        found = self.tri.find_simplex(_host(flat))
        share = _shares(self.points[self.tri.simplices[found]], flat)
        result = self._interpolated(found, share)
        trailing = self.values.shape[1:]
        outside = (found < 0).reshape(-1, *[1] * len(trailing))
        result = NUMPY.where(NUMPY.asarray(outside), self.fill_value, result)
        return NUMPY.reshape(result, (*at.shape[:-1], *trailing))

    def _interpolated(self, found: Any, share: Tensor) -> Tensor:
        share = NUMPY.reshape(share, (*share.shape, *[1] * (self.values.ndim - 1)))
        return NUMPY.sum(share * self.values[self.tri.simplices[found]], axis=1)


class CloughTocher2DInterpolator(LinearNDInterpolator):
    """`scipy.interpolate.CloughTocher2DInterpolator`; gradients by values, points and places.

    The simplices are constants.
    """

    def __init__(
        self,
        points: Any,
        values: Any,
        fill_value: float = np.nan,
        tol: float = 1e-6,
        maxiter: int = 400,
        rescale: bool = False,
    ) -> None:
        super().__init__(points, values, fill_value, rescale)
        if self.points.shape[1] != 2:
            raise ValueError("input data must be 2-D")
        flat = NUMPY.reshape(self.values, (self.points.shape[0], -1))
        known = _interpnd.estimate_gradients_2d_global(self.tri, _host(flat), maxiter, tol)
        slopes = self._slopes(flat)
        self.grad = NUMPY.swapaxes(known, 1, 2) + (slopes - xp.stop_gradient(slopes))

    def _slopes(self, flat: Tensor) -> Tensor:
        """Gradients (n, 2, values) of the surface with the least curvature along all edges.

        G. Nielson, "A method for interpolating scattered data based upon a minimum norm network",
        Math. Comp. 40 (1983) 253.
        """
        n = self.points.shape[0]
        indptr, j = self.tri.vertex_neighbor_vertices
        i = np.repeat(np.arange(n), np.diff(indptr))
        edge = self.points[j] - self.points[i]
        cube = NUMPY.sum(edge * edge, axis=1)[:, None] ** 1.5
        blocks = (edge / cube)[:, :, None] * edge[:, None, :]
        rows, columns = np.indices((2, 2))
        near, far = ((2 * v[:, None, None] + columns).ravel() for v in (i, j))
        row = (2 * i[:, None, None] + rows).ravel()
        data = NUMPY.concatenate([NUMPY.reshape(v * blocks, (-1,)) for v in (4, 2)])
        places = np.concatenate([row, row]), np.concatenate([near, far])
        a = sparse.coo_array((data, places), shape=(2 * n, 2 * n)).tocsr()
        pull = 6 * (edge / cube)[:, :, None] * (flat[j] - flat[i])[:, None, :]
        b = xp.segment_sum(pull, NUMPY.asarray(i), num_segments=n)
        b = splines._solved(a.data, a.indices, a.indptr, NUMPY.reshape(b, (2 * n, -1)))
        return NUMPY.reshape(b, (n, 2, -1))

    def _interpolated(self, found: Any, share: Tensor) -> Tensor:
        """The cubic of each third of a triangle, by its Bernstein coefficients.

        P. Alfeld, "A trivariate Clough-Tocher scheme for tetrahedral data", CAGD 1 (1984) 169.
        """
        corners, beside = self.tri.simplices[found], self.tri.neighbors[found]
        p = self.points[corners]
        f = NUMPY.reshape(self.values, (self.points.shape[0], -1))[corners]
        slope = self.grad[corners]
        value = [f[:, i] for i in range(3)]

        def towards(i: int, j: int) -> Tensor:
            return value[i] + NUMPY.sum((p[:, j] - p[:, i])[..., None] * slope[:, i], axis=1) / 3

        c = {(i, j): towards(i, j % 3) for i in range(3) for j in range(-2, 3) if i != j % 3}
        inner = [(c[i, i - 1] + c[i, i - 2] + value[i]) / 3 for i in range(3)]
        middle = []
        for i in range(3):
            j, k = (i + 1) % 3, (i + 2) % 3
            centre = NUMPY.mean(self.points[self.tri.simplices[beside[:, i]]], axis=1)
            q = _shares(p, centre)
            ratio = (2 * q[:, k] + q[:, j] - 1) / (2 - 3 * q[:, k] - 3 * q[:, j])
            ratio = NUMPY.where(NUMPY.asarray(beside[:, i] < 0), -0.5, ratio)[:, None]
            along = value[k] - value[j] + 3 * (c[j, k] - c[k, j])
            rest = 2 * c[j, k] - value[j] - c[k, j] + inner[k] + inner[j]
            middle.append((ratio * along + rest) / 2)
        low = NUMPY.min(share, axis=1)[:, None]
        b, d = [share[:, i, None] - low for i in range(3)], 3 * low
        deep = [(middle[i - 1] + middle[i - 2] + inner[i]) / 3 for i in range(3)]
        result = d**3 * (deep[0] + deep[1] + deep[2]) / 3
        for i in range(3):
            square = b[i - 1] * c[i, i - 1] + b[i - 2] * c[i, i - 2] + d * inner[i]
            result = result + b[i] ** 3 * value[i] + 3 * b[i] ** 2 * square
            result = result + 6 * b[i - 1] * b[i - 2] * d * middle[i] + 3 * b[i] * d**2 * deep[i]
        return NUMPY.reshape(result, (result.shape[0], *self.values.shape[1:]))


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


def griddata_with(interp1d: Any) -> Any:
    """`scipy.interpolate.griddata`."""

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
        if method == "cubic" and n == 2:
            return CloughTocher2DInterpolator(given, values, fill_value, rescale=rescale)(xi)
        raise ValueError(f"Unknown interpolation method {method!r} for {n} dimensional data")

    return griddata
