"""FITPACK's functions on Tensors: tensor products, inserted knots, roots, smoothing."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import scipy.interpolate as scipys

from gpugrad.core.backend import TENSOR as xp
from gpugrad.core.tensor import Tensor
from gpugrad.scipy.calling import on_values, plain_values
from gpugrad.scipy.interpolate import splines
from gpugrad.scipy.namespaces import NUMPY


def _floats(x: Any) -> Tensor:
    return NUMPY.asarray(x, dtype=float)


def basis_matrix(t: Any, k: int, x: Any, nu: int) -> Tensor:
    """The basis functions at points, which are clipped to the knots' interval: (points, n)."""
    t = _floats(t)
    n = t.shape[0] - k - 1
    x = NUMPY.clip(_floats(x), t[k], t[n])
    ell = splines.interval(t, k, x)
    columns = NUMPY.arange(n)[None, None] == (ell[:, None] + NUMPY.arange(-k, 1))[:, :, None]
    return NUMPY.sum(splines.basis(t, k, x, ell, nu)[:, :, None] * columns, axis=1)


def surface(x: Any, y: Any, tck: Any, dx: int = 0, dy: int = 0, grid: bool = True) -> Tensor:
    """A tensor product of splines, or its derivative, on a grid or at points."""
    tx, ty, c, kx, ky = tck
    if not grid and min(dx, dy) >= 0 and (plain := plain_values(x, y, tx, ty, c)) is not None:
        x, y, tx, ty, c = plain
        made = scipys.BivariateSpline._from_tck((tx, ty, np.ravel(c), kx, ky))
        return NUMPY.asarray(made.ev(x, y, dx, dy))
    left, right = basis_matrix(tx, kx, x, dx), basis_matrix(ty, ky, y, dy)
    c = NUMPY.reshape(_floats(c), (left.shape[1], right.shape[1]))
    return left @ c @ right.T if grid else NUMPY.sum((left @ c) * right, axis=1)


def bisplev(x: Any, y: Any, tck: Any, dx: int = 0, dy: int = 0) -> Tensor:
    """`scipy.interpolate.bisplev`."""
    kx, ky = tck[3:]
    if not 0 <= dx < kx:
        raise ValueError(f"0 <= dx = {dx} < kx = {kx} must hold")
    if not 0 <= dy < ky:
        raise ValueError(f"0 <= dy = {dy} < ky = {ky} must hold")
    x, y = (NUMPY.atleast_1d(_floats(v)) for v in (x, y))
    if x.ndim != 1 or y.ndim != 1:
        raise ValueError("First two entries should be rank-1 arrays.")
    z = surface(x, y, tck, dx, dy)
    return z if z.shape[0] > 1 else z[0] if z.shape[1] > 1 else z[0, 0]


def insert(x: Any, tck: Any, m: int = 1, per: int = 0) -> Any:
    """`scipy.interpolate.insert`: W. Boehm's algorithm, m times."""
    if per:
        return on_values(scipys.insert)(x, tck, m, per)
    if not isinstance(tck, tuple):  # a BSpline
        t, c, k = insert(x, (tck.t, tck.c, tck.k), m)
        return type(tck)(t, c[: t.shape[0] - k - 1], k)
    t, c, k = tck
    if isinstance(c, (list, tuple)):
        parts = [insert(x, (t, row, k), m) for row in c]
        return parts[0][0], [part[1] for part in parts], k
    t, c, x = _floats(t), NUMPY.asarray(c), _floats(x)
    n = t.shape[0] - k - 1
    c = c[:n]
    for _ in range(m):
        ell = int(splines.interval(t, k, NUMPY.reshape(x, (1,)))[0])
        i = np.arange(ell - k + 1, ell + 1)
        span = t[i + k] - t[i]
        same = NUMPY.equal(span, 0.0)
        share = NUMPY.where(same, 0.0, (x - t[i]) / NUMPY.where(same, 1.0, span))
        middle = share * c[i] + (1 - share) * c[i - 1]
        c = NUMPY.concatenate([c[: ell - k + 1], middle, c[ell:]])
        t = NUMPY.concatenate([t[: ell + 1], NUMPY.reshape(x, (1,)), t[ell + 1 :]])
    return t, NUMPY.concatenate([c, NUMPY.zeros(k + 1, dtype=c.dtype)]), k


def spalde(x: Any, tck: Any) -> Any:
    """`scipy.interpolate.spalde`: all derivatives at each point."""
    t, c, k = tck
    if isinstance(c, (list, tuple)):
        return [spalde(x, (t, row, k)) for row in c]
    x = NUMPY.atleast_1d(_floats(x))
    if x.ndim > 1 or x.shape[0] > 1:
        return [spalde(point, tck) for point in x]
    rows = [splines.splev(x, tck, nu) for nu in range(k + 1)]
    return NUMPY.concatenate(rows)


def sproot(tck: Any, mest: int = 10) -> Any:
    """`scipy.interpolate.sproot`: Newton's method gives the roots their derivatives."""
    t, c, k = tck
    if isinstance(c, (list, tuple)):
        return [sproot((t, row, k), mest) for row in c]
    values = [np.asarray(xp.stop_gradient(NUMPY.asarray(v))) for v in (t, c)]
    root = NUMPY.asarray(scipys.sproot((*values, k), mest))
    for _ in range(2):  # right to the third derivative
        if root.size:
            root = root - splines.splev(root, tck) / splines.splev(root, tck, 1)
    return root


def smoothing_spline(make: Callable[..., Any]) -> Callable[..., Any]:
    """`make_smoothing_spline`, whose `lam` must be known: SciPy searches it on values.

    C. Reinsch, "Smoothing by spline functions", Numer. Math. 10 (1967) 177: the values at the
    points solve a system of five diagonals; the spline through them has no curvature at the ends.
    """

    def make_smoothing_spline(
        x: Any, y: Any, w: Any = None, lam: Any = None, *, axis: int = 0
    ) -> Any:
        if lam is None:
            return on_values(scipys.make_smoothing_spline)(x, y, w, lam, axis=axis)
        x, y = _floats(x), NUMPY.moveaxis(_floats(y), axis, 0)
        n = x.shape[0]
        if n <= 4:
            raise ValueError("``x`` and ``y`` length must be at least 5")
        w = NUMPY.ones(n) if w is None else _floats(w)
        flat, h, m = NUMPY.reshape(y, (n, -1)), x[1:] - x[:-1], n - 2
        v = lam / w
        q = (1 / h[:-1], -1 / h[:-1] - 1 / h[1:], 1 / h[1:])  # the second differences of the values
        bands = [(h[:-1] + h[1:]) / 3, h[1:-1] / 6, 0.0]
        for d in range(3):
            for k in range(d, 3):
                bands[d] = bands[d] + q[k][: m - d] * v[k : k + m - d] * q[k - d][d:]
        rows = [NUMPY.pad(bands[abs(d)], (max(d, 0), max(-d, 0))) for d in (2, 1, 0, -1, -2)]
        differences = sum(q[k][:, None] * flat[k : k + m] for k in range(3))
        u = splines.solve_banded((2, 2), NUMPY.stack(rows), differences)
        sides = [((k, 2 - k), (0, 0)) for k in range(3)]
        change = sum(NUMPY.pad(q[k][:, None] * u, sides[k]) for k in range(3))
        smooth = NUMPY.reshape(flat - v[:, None] * change, y.shape)
        return make(x, NUMPY.moveaxis(smooth, 0, axis), k=3, bc_type="natural", axis=axis)

    return make_smoothing_spline
