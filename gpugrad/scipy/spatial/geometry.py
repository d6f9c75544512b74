"""Functions of `scipy.spatial` that have derivatives: norms of differences, arcs and alignments."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
import scipy.spatial

from gpugrad.core.backend import TENSOR as xp
from gpugrad.core.tensor import Tensor
from gpugrad.errors import GpugradWarning
from gpugrad.scipy.calling import holds, public
from gpugrad.scipy.namespaces import Names
from gpugrad.scipy.reading import Reader
from gpugrad.scipy.spatial import metrics
from gpugrad.scipy.spatial.distance import distance_matrix as distance_matrix
from gpugrad.scipy.spatial.distance import floats


def minkowski_distance_p(x: Any, y: Any, p: Any = 2.0) -> Tensor:
    """The p-th power of `minkowski_distance`; for p = inf the distance itself."""
    a = floats(x)
    b = floats(y, a)
    if not isinstance(p, Tensor) and p == np.inf:
        return minkowski_distance(a, b, p)
    d = xp.abs(a - b)
    none = xp.equal(d, 0)
    return xp.sum(xp.where(none, 0, xp.where(none, 1, d) ** p), axis=-1)


def minkowski_distance(x: Any, y: Any, p: Any = 2.0) -> Tensor:
    """Norms of differences along the last axis.

    Args:
        x, y: arrays of shape (..., k) that broadcast against each other.
        p: order of the norm, from 1 to infinity.

    Returns:
        Tensor of the broadcast shape without the last axis. Where it is 0, its derivatives are 0.

    >>> print(gg.scipy.spatial.minkowski_distance([[0.0, 0.0]], [[3.0, 4.0]], 1))
    [7.]
    """
    a = floats(x)
    b = floats(y, a)
    shape = np.broadcast_shapes(a.shape, b.shape)
    a, b = (xp.moveaxis(xp.broadcast_to(x, shape), -1, 0) for x in (a, b))
    return metrics.minkowski(a, b, None, p)


def _orthogonal_procrustes(a: Tensor, b: Tensor) -> tuple[Tensor, Tensor]:
    """The orthogonal matrix that maps `a` nearest to `b`, and the sum of the singular values."""
    u, s, vh = xp.svd(xp.matmul(xp.matrix_transpose(a), b), full_matrices=False)
    return xp.matmul(u, vh), xp.sum(s)


_LINALG = Names("linalg", {"orthogonal_procrustes": _orthogonal_procrustes})
_READ = Reader("scipy.spatial", {"scipy.linalg": _LINALG}, {}).read("scipy.spatial._procrustes")
procrustes = public(_READ.procrustes, scipy.spatial.procrustes)


def geometric_slerp(start: Any, end: Any, t: Any, tol: float = 1e-7) -> Tensor:
    """Points on the great circle from one unit vector to another.

    Args:
        start, end: arrays of shape (k,) and length 1, k at least 2.
        t: numbers from 0 at `start` to 1 at `end`, of shape () or (n,).
        tol: how near to -start an end gives a warning.

    Returns:
        Tensor of shape (k,) or (n, k), float64. Derivatives are right for ``start = end``, too.

    Raises:
        ValueError: vectors of other shapes, or that are not of length 1.

    >>> print(gg.scipy.spatial.geometric_slerp([1.0, 0.0], [0.0, 1.0], 0.5).round(4))
    [0.7071 0.7071]
    """
    a = xp.astype(floats(start), "float64")
    b, t = (xp.astype(floats(x, a), "float64") for x in (end, t))
    if t.ndim > 1:
        raise ValueError("The interpolation parameter value must be one dimensional.")
    if a.ndim != 1 or b.ndim != 1:
        raise ValueError("Start and end coordinates must be one-dimensional")
    if a.size != b.size:
        raise ValueError("The dimensions of start and end must match (have same size)")
    if a.size < 2:
        raise ValueError(
            "The start and end coordinates must both be in at least two-dimensional space"
        )
    for x in (a, b):
        if not holds(xp.abs(xp.vector_norm(x) - 1) <= 1e-9):
            raise ValueError("start and end are not on a unit n-sphere")
    if not isinstance(tol, float):
        raise ValueError("tol must be a float")
    cos = xp.sum(a * b)
    aside = b - cos * a
    sin2 = xp.sum(aside * aside)
    if not holds(xp.vector_norm(a + b) > abs(tol)):
        warnings.warn(
            "start and end are antipodes using the specified tolerance; this may cause ambiguous "
            "slerp paths",
            GpugradWarning,
            stacklevel=2,
        )
    near = (sin2 < 1e-8) & (cos > 0)  # then the angle's square is sin2 (1 + sin2 / 3)
    angle2 = sin2 * (1 + sin2 / 3)
    sin = xp.sqrt(xp.where(sin2 < 1e-300, 1e-300, xp.where(near, 1, sin2)))
    angle = xp.atan2(sin, cos)
    t = xp.expand_dims(t, axis=-1)
    by_start = xp.where(near, 1 - t * t * angle2 / 2, xp.cos(t * angle))
    series = t * (1 + (1 - t * t) * angle2 / 6)
    by_aside = xp.where(near, series, xp.sin(t * angle) / sin)
    return by_start * a + by_aside * aside
