"""Smoothed splines: SciPy chooses knots, then coefficients solve a least-squares problem.

The coefficients have the least |target - rows c|^2 + mu^2 |jumps c|^2, where mu gives the residual
that SciPy's have: P. Dierckx, "Curve and Surface Fitting with Splines", Oxford 1993, 5.2 and 9.3.
So they have derivatives by the values, weights and points at a fixed residual. Knots are constants,
except those at data points of a curve.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from scipy.interpolate import BSpline
from scipy.optimize import brentq

from gpugrad.autodiff.recorder import recording_stopped
from gpugrad.core.backend import TENSOR as xp
from gpugrad.core.tensor import Tensor
from gpugrad.errors import DTypeError
from gpugrad.scipy.interpolate import fitpack
from gpugrad.scipy.namespaces import NUMPY


def host(x: Any) -> Any:
    """The values, without a derivative, that SciPy chooses knots by."""
    return None if x is None else np.asarray(xp.stop_gradient(NUMPY.asarray(x)).to_device("cpu"))


def prepared(x: Any, y: Any, w: Any) -> tuple[Tensor, Tensor, Tensor]:
    """Points, values and weights of a curve."""
    x, y = (NUMPY.asarray(v, dtype=float) for v in (x, y))
    return x, y, NUMPY.ones(x.shape[0]) if w is None else NUMPY.asarray(w, dtype=float)


def jumps(t: Any, k: int) -> Tensor:
    """The jumps of the last derivative at the inner knots, in FITPACK's units: (knots, n)."""
    n = t.shape[0] - k - 1
    inner = np.arange(k + 1, n)
    h = t[inner][:, None] - t[inner[:, None] + np.arange(-k - 1, k + 2)]
    result: Any = NUMPY.zeros((n - k - 1, n))
    for p in range(k + 2):
        first = inner - k - 1 + p
        others = [q for q in range(p, p + k + 2) if q != k + 1]
        part = (t[np.minimum(first + k + 1, n + k)] - t[first]) / NUMPY.prod(h[:, others], axis=1)
        result = result + part[:, None] * NUMPY.asarray(np.arange(n) == first[:, None])
    return result * ((t[n] - t[k]) / (n - k)) ** k


def penalized(
    solve: Callable[[Any], Any], residual: Callable[[Any], Any], known: Any, fp: float
) -> Any:
    """The coefficients whose residual is `fp`.

    Args:
        solve: the coefficients for a logarithm of mu.
        residual: the sum of squares for coefficients.
        known: SciPy's coefficients, which the result has as values; None for its own.
        fp: SciPy's residual.

    Raises:
        DTypeError: no mu gives that residual.
    """

    def excess(log: float) -> float:
        with recording_stopped():
            return float(host(residual(solve(log)))) - fp

    log: Any = -30.0
    if excess(log) < -1e-9 * fp:
        if excess(30.0) < 0:
            raise DTypeError(
                "SciPy's fit at so large an s is no smoothed spline on its knots, so it has no "
                "derivative here: choose a smaller s, or fit gg.stop_gradient(values)."
            )
        log = brentq(excess, log, 30.0, xtol=1e-13)
        slope = (excess(log + 1e-4) - excess(log - 1e-4)) / 2e-4
        for _ in range(2):  # each step makes one more order of the derivatives right
            log = log - (residual(solve(log)) - fp) / slope
    c = solve(log)
    if known is None:
        return c
    return NUMPY.asarray(known) + (c - xp.stop_gradient(c))


def least_squares(rows: Any, rough: Any, target: Any, known: Any, fp: float) -> Tensor:
    """The smoothed coefficients of weighted rows and target."""
    zeros = NUMPY.zeros((rough.shape[0], *target.shape[1:]))
    padded = NUMPY.concatenate([target, zeros])

    def solve(log: Any) -> Any:
        a = NUMPY.concatenate([rows, NUMPY.exp(log) * rough])
        return NUMPY.linalg.lstsq(a, padded, rcond=1e-12)[0]

    return penalized(solve, lambda c: NUMPY.sum((target - rows @ c) ** 2), known, fp)


def curve(x: Any, y: Any, w: Any, tck: Any, fp: float) -> Any:
    """Knots, coefficients and degree of a curve, for SciPy's and its residual."""
    t, c, k = tck
    n, at = len(t) - k - 1, host(x)
    data = np.minimum(np.searchsorted(at, t), at.size - 1)
    t = NUMPY.where(NUMPY.asarray(at[data] == t), x[data], NUMPY.asarray(t))
    rows = w[:, None] * fitpack.basis_matrix(t, k, x, 0)
    return t, least_squares(rows, jumps(t, k), (w * y.T).T, c[:n], fp), k


def products(tx: Any, ty: Any, kx: int, ky: int, x: Any, y: Any) -> Tensor:
    """Products of basis functions at points: (points, nx * ny)."""
    left, right = fitpack.basis_matrix(tx, kx, x, 0), fitpack.basis_matrix(ty, ky, y, 0)
    return NUMPY.reshape(left[:, :, None] * right[:, None, :], (x.shape[0], -1))


def scattered(x: Any, y: Any, z: Any, w: Any, tck: Any, fp: float, basis: Any = None) -> Tensor:
    """Coefficients (nx, ny) of a surface through scattered points, for SciPy's and its residual.

    Args:
        x, y, z, w: points, values and weights.
        tck: SciPy's knots, coefficients and degrees.
        fp: its residual.
        basis: columns of coefficients that may be combined; None for all.
    """
    tx, ty, c, kx, ky = tck
    shape = len(tx) - kx - 1, len(ty) - ky - 1
    columns = np.eye(c.size) if basis is None else basis
    each = np.eye(shape[1])[: shape[1] if basis is None else -ky]  # the last ones repeat
    along, across = (host(jumps(NUMPY.asarray(t), k)) for t, k in ((tx, kx), (ty, ky)))
    rough = np.concatenate([np.kron(along, each), np.kron(np.eye(shape[0]), across)]) @ columns
    rows = w[:, None] * (
        products(NUMPY.asarray(tx), NUMPY.asarray(ty), kx, ky, x, y) @ NUMPY.asarray(columns)
    )
    known = np.linalg.lstsq(columns, c.ravel(), rcond=None)[0]
    found = least_squares(rows, NUMPY.asarray(rough), w * z, known, fp)
    return NUMPY.reshape(NUMPY.asarray(columns) @ found, shape)


def on_grid(points: Any, tck: Any, fp: float) -> Any:
    """Coefficients (nx, ny) of a surface through the points of a grid, likewise."""
    x, y, z = points
    sides = [
        (fitpack.basis_matrix(t, k, at, 0), jumps(NUMPY.asarray(t), k))
        for t, k, at in ((tck[0], tck[3], x), (tck[1], tck[4], y))
    ]

    def solve(log: Any) -> Any:
        c = z
        for rows, rough in sides:
            a = NUMPY.concatenate([rows, NUMPY.exp(log) * rough])
            c = NUMPY.concatenate([c, NUMPY.zeros((rough.shape[0], c.shape[1]))])
            c = NUMPY.linalg.lstsq(a, c, rcond=1e-12)[0].T
        return c

    def residual(c: Any) -> Any:
        return NUMPY.sum((z - sides[0][0] @ c @ sides[1][0].T) ** 2)

    known = tck[2].reshape(len(tck[0]) - tck[3] - 1, -1)
    return penalized(solve, residual, known, fp)


def on_sphere(tt: Any, tp: Any) -> Any:
    """The coefficients (nt * np, m) of splines that are periodic, and smooth at both poles.

    At a pole the value is one number, and the slope a sum of the cosine and the sine, or rather of
    the splines through them at the knots.
    """
    nt, n = tt.size - 4, tp.size - 7
    knots = tp[3:-4]
    wrap = np.eye(n)[np.arange(n + 3) % n]
    through = BSpline.design_matrix(knots, tp, 3).toarray() @ wrap
    turns = np.linalg.solve(through, np.stack([np.cos(knots), np.sin(knots)], axis=1))
    columns = []
    for pole, beside in ((0, 1), (nt - 1, nt - 2)):
        first = np.zeros((nt, n + 3))
        first[[pole, beside]] = 1
        columns.append(first)
        for turn in (wrap @ turns).T:
            columns.append(np.zeros((nt, n + 3)))
            columns[-1][beside] = turn
    for row in np.eye(nt)[2:-2]:
        columns += [np.outer(row, column) for column in wrap.T]
    return np.stack([column.ravel() for column in columns], axis=1)
