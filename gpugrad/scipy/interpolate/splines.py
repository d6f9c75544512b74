"""B-splines: SciPy's compiled `_dierckx` on Tensors, of any degree.

The basis functions come from their recurrence; a collocation matrix is a band of them. Arrays that
no tape, trace or vmap follows run SciPy's own code.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import scipy.interpolate
from scipy.interpolate import _dierckx

from gpugrad.core.backend import TENSOR as xp
from gpugrad.core.tensor import Tensor
from gpugrad.scipy import sparse
from gpugrad.scipy.calling import known, plain_values
from gpugrad.scipy.interpolate.piecewise import within
from gpugrad.scipy.namespaces import NUMPY


def interval(t: Tensor, k: int, x: Tensor) -> Tensor:
    """The last knot at or before each point, among those of the base interval."""
    found = NUMPY.searchsorted(xp.stop_gradient(t), xp.stop_gradient(x), side="right") - 1
    return NUMPY.clip(found, k, t.shape[0] - k - 2)


def basis(t: Tensor, k: int, x: Tensor, ell: Tensor, nu: int = 0) -> Tensor:
    """Derivatives of the k + 1 basis functions that are not 0 in an interval: (points, k + 1)."""
    if nu > k:
        return NUMPY.zeros((x.shape[0], k + 1))
    values = [NUMPY.ones_like(x)]
    for d in range(1, k + 1):
        spans = [_over(1.0, t[ell + r + 1] - t[ell + r + 1 - d]) for r in range(d)]
        if d <= k - nu:
            left = [values[r] * spans[r] * (t[ell + r + 1] - x) for r in range(d)]
            right = [values[r] * spans[r] * (x - t[ell + r + 1 - d]) for r in range(d)]
        else:
            right = [d * values[r] * spans[r] for r in range(d)]
            left = [-v for v in right]
        values = [left[0], *(a + b for a, b in zip(left[1:], right, strict=False)), right[-1]]
    return NUMPY.stack(values, axis=-1)


def _over(a: Any, b: Any) -> Tensor:
    """The quotient, and 0 where knots coincide."""
    return NUMPY.where(b == 0, 0.0, a / NUMPY.where(b == 0, 1.0, b))


def evaluate_spline(t: Any, c: Any, k: int, x: Any, nu: int, extrapolate: Any) -> Tensor:
    """The spline, or its derivative of order `nu`, for each column of `c`."""
    if nu < 0:
        raise ValueError(f"Cannot do derivative order nu = {nu}.")
    plain = plain_values(t, c, x)
    if plain is not None:
        t, c, x = map(np.ascontiguousarray, plain)
        y = _dierckx.evaluate_spline(t, _as_floats(c), k, np.atleast_1d(x), nu, bool(extrapolate))
        return NUMPY.asarray(y.view(c.dtype))
    ell = interval(t, k, x)
    parts = xp.take(c, NUMPY.reshape(ell[:, None] + NUMPY.arange(-k, 1), (-1,)), axis=0)
    parts = NUMPY.reshape(parts, (x.shape[0], k + 1, c.shape[1]))
    y = NUMPY.sum(basis(t, k, x, ell, nu)[:, :, None] * parts, axis=1)
    inside = within(t[k : t.shape[0] - k], x, extrapolate)
    return NUMPY.where(inside[:, None], y, np.nan)


def _as_floats(c: np.ndarray) -> np.ndarray:
    return c.view(float).reshape(c.shape[0], -1) if c.dtype.kind == "c" else c


def data_matrix(x: Tensor, t: Tensor, k: int, w: Tensor, extrapolate: Any = False) -> Any:
    """The weighted basis functions at each point, the column of the first, and the columns."""
    ell = interval(t, k, x)
    return basis(t, k, x, ell) * w[:, None], ell - k, t.shape[0] - k - 1


def evaluate_nd(self: Any, xi: Any, *, nu: Any = None, extrapolate: Any = None) -> Tensor:
    """`NdBSpline.__call__`: a sum over products of the dimensions' basis functions."""
    n = len(self._k)
    orders = [0] * n if nu is None else [int(v) for v in NUMPY.asarray(nu).reshape(-1)]
    if nu is not None and (NUMPY.ndim(nu) != 1 or len(orders) != n):
        raise ValueError(f"invalid number of derivative orders {nu = } for ndim = {n}.")
    if min(orders) < 0:
        raise ValueError(f"derivatives must be positive, got {nu = }")
    xi = NUMPY.asarray(xi, dtype=float)
    if xi.shape[-1] != n:
        raise ValueError(f"Shapes: xi.shape={xi.shape} and ndim={n}")
    x = NUMPY.reshape(xi, (-1, n))
    extrapolate = self.extrapolate if extrapolate is None else bool(extrapolate)
    c, inside = self._c, NUMPY.ones((), dtype=bool)
    trailing = c.shape[n:]
    at, weights = NUMPY.zeros((x.shape[0], 1), dtype=int), NUMPY.ones((x.shape[0], 1))
    for d, t in enumerate(self.t):
        k = int(self._k[d])
        ell = interval(t, k, x[:, d])
        columns = ell[:, None] + NUMPY.arange(-k, 1)
        w = basis(t, k, x[:, d], ell, orders[d])
        at = NUMPY.reshape(at[:, :, None] * c.shape[d] + columns[:, None, :], (x.shape[0], -1))
        weights = NUMPY.reshape(weights[:, :, None] * w[:, None, :], (x.shape[0], -1))
        inside = inside & within(t[k : t.shape[0] - k], x[:, d], extrapolate)
    flat = NUMPY.reshape(c, (math.prod(c.shape[:n]), math.prod(trailing)))
    parts = NUMPY.reshape(xp.take(flat, NUMPY.reshape(at, (-1,)), axis=0), (*at.shape, -1))
    y = NUMPY.sum(weights[:, :, None] * parts, axis=1)
    y = NUMPY.where(inside[:, None], y, np.nan)
    return NUMPY.reshape(y, (*xi.shape[:-1], *trailing))


def interpolation_coefficients(
    x: Tensor, y: Tensor, t: Tensor, k: int, left: Any, right: Any
) -> Tensor:
    """The coefficients of the spline through the points with the derivatives given at the ends.

    Args:
        x, y, t, k: as `make_interp_spline` has them, the points along axis 0.
        left, right: orders and values of derivatives at the first and at the last point.
    """
    n = t.shape[0] - k - 1
    orders = [[int(v) for v in NUMPY.asarray(o).reshape(-1)] for o, _ in (left, right)]
    values = [NUMPY.reshape(NUMPY.asarray(v), (-1, *y.shape[1:])) for _, v in (left, right)]
    if (plain := plain_values(x, y, t, *values)) is not None:
        ends = [
            list(zip(o, v, strict=True)) if o else None
            for o, v in zip(orders, plain[3:], strict=True)
        ]
        made = scipy.interpolate.make_interp_spline(
            plain[0], plain[1], k, plain[2], ends if any(orders) else None, check_finite=False
        )
        return NUMPY.asarray(made.c)
    parts, firsts = [], []
    conditions = [*((x[:1], v) for v in orders[0]), (x, 0), *((x[-1:], v) for v in orders[1])]
    for at, nu in conditions:
        ell = interval(t, k, at)
        parts.append(basis(t, k, at, ell, nu))
        firsts.append(ell - k)
    rows, first = NUMPY.concatenate(parts), NUMPY.concatenate(firsts)
    columns = first[:, None] + NUMPY.arange(k + 1)
    bands = k + NUMPY.arange(n)[:, None] - columns  # the row of an entry in banded form
    good = (bands >= 0) & (bands <= 2 * k)
    flat = NUMPY.where(good, bands, 0) * n + columns
    ab = _sums(NUMPY.reshape(rows * good, (-1,)), flat, (2 * k + 1) * n)
    given = [v for v, o in zip(values, orders, strict=True) if o]
    right_side = [*given[: bool(orders[0])], y, *given[bool(orders[0]) :]]
    b = NUMPY.concatenate(right_side) if len(right_side) > 1 else y
    return solve_banded((k, k), NUMPY.reshape(ab, (2 * k + 1, n)), b)


def _sums(values: Tensor, places: Tensor, n: int) -> Tensor:
    return xp.segment_sum(values, NUMPY.reshape(places, (-1,)), num_segments=n)


def solve_banded(l_and_u: Any, ab: Any, b: Any, **options: Any) -> Tensor:
    """`scipy.linalg.solve_banded`, as a sparse system of the band's pattern."""
    below, above = l_and_u
    ab, b = NUMPY.asarray(ab), NUMPY.asarray(b)
    n = ab.shape[-1]
    i = np.arange(n)[:, None]
    j = i + np.arange(-below, above + 1)
    inside = (j >= 0) & (j < n)
    places = ((above + i - j) * n + j)[inside]
    data = xp.take(NUMPY.reshape(ab, (-1,)), NUMPY.asarray(places), axis=0)
    indptr = np.concatenate([[0], np.cumsum(inside.sum(axis=1))])
    return _solved(data, j[inside], indptr, b)


def _solved(data: Tensor, indices: Any, indptr: Any, b: Tensor) -> Tensor:
    """The solution of a sparse system for each column of `b`, which may be complex."""
    n = b.shape[0]
    flat = NUMPY.reshape(b, (n, math.prod(b.shape[1:])))
    dtype = np.result_type(data.dtype, flat.dtype, np.float64)
    data, flat = (xp.astype(v, dtype) if v.dtype != dtype else v for v in (data, flat))
    where = (NUMPY.asarray(v, dtype=np.int32) for v in (indices, indptr))
    return NUMPY.reshape(xp.csr_solve(data, *where, flat, shape=(n, n)), b.shape)


def periodic_coefficients(x: Tensor, y: Tensor, t: Tensor, k: int) -> Tensor:
    """The coefficients of `_make_periodic_spline`: n - 1 that repeat, from a cyclic band."""
    n = y.shape[0] - 1
    weights = basis(t, k, x[:-1], NUMPY.asarray(k + np.arange(n)))
    rows, columns = np.broadcast_arrays(np.arange(n)[:, None], np.add.outer(range(n), range(k + 1)))
    entries = (NUMPY.reshape(weights, (-1,)), (rows.ravel(), (columns % n).ravel()))
    a = sparse.coo_array(entries, shape=(n, n)).tocsr()  # which adds coefficients that meet
    c = _solved(a.data, a.indices, a.indptr, y[:-1])
    return NUMPY.take(c, NUMPY.arange(n + k) % n, axis=0)


def splev(x: Any, tck: Any, der: int = 0, ext: int = 0) -> Any:
    """`_fitpack_impl.splev`: a spline of one dimension, or a list of them."""
    t, c, k = tck
    if isinstance(c, (list, tuple)) or getattr(c, "ndim", 1) > 1:
        return [splev(x, (t, row, k), der, ext) for row in c]
    if (plain := plain_values(x, t, c)) is not None:
        x, t, c = plain
        return NUMPY.asarray(scipy.interpolate.splev(x, (t, c, k), der, ext))
    if not 0 <= der <= k:
        raise ValueError(f"0<={der = }<={k = } must hold")
    if ext not in (0, 1, 2, 3):
        raise ValueError(f"{ext = } not in (0, 1, 2, 3) ")
    t, c, x = (NUMPY.asarray(v, dtype=float) for v in (t, c, x))
    flat, low, high = NUMPY.reshape(x, (-1,)), t[k], t[t.shape[0] - k - 1]
    outside = (flat < low) | (flat > high)
    if ext == 2 and known(lambda: NUMPY.any(outside)):
        raise ValueError("Found x value not in the domain")
    at = NUMPY.clip(flat, low, high) if ext == 3 else flat
    y = evaluate_spline(t, c[:, None], k, at, der, True)[:, 0]
    return NUMPY.reshape(NUMPY.where(outside, 0.0, y) if ext == 1 else y, x.shape)


def splint(a: Any, b: Any, tck: Any, antiderivative: Any) -> Tensor:
    """`_fitpack_impl.splint`: the integral of a spline that is 0 outside its base interval."""
    t, c, k = tck
    t, c = NUMPY.asarray(t, dtype=float), NUMPY.asarray(c)
    c = NUMPY.concatenate([c, NUMPY.zeros(t.shape[0] - c.shape[0], dtype=c.dtype)])
    ends = NUMPY.stack([NUMPY.asarray(v, dtype=float) for v in (a, b)])
    ends = NUMPY.clip(ends, t[k], t[t.shape[0] - k - 1])
    t, c, k = antiderivative((t, c, k), 1)
    y = evaluate_spline(t, c[:, None], k, ends, 0, True)[:, 0]
    return y[1] - y[0]


def least_squares(x: Tensor, y: Tensor, t: Tensor, k: int, w: Tensor, method: str) -> Tensor:
    """The coefficients of `make_lsq_spline`, from its normal equations, refined once."""
    if method not in ("qr", "norm-eq"):
        raise ValueError(f"Unknown {method =}.")
    if (plain := plain_values(x, y, t, w)) is not None:
        x, y, t, w = plain
        made = scipy.interpolate.make_lsq_spline(x, y, t, k, w, check_finite=False, method=method)
        return NUMPY.asarray(made.c)
    n = t.shape[0] - k - 1
    rows, first, _ = data_matrix(x, t, k, w)
    a, b = NUMPY.arange(k + 1)[:, None], NUMPY.arange(k + 1)  # of entries (first + a, first + b)
    at = first[:, None, None] + ((k + a - b) * n + b)
    products = NUMPY.reshape(rows[:, :, None] * rows[:, None, :], (-1,))
    ab = NUMPY.reshape(_sums(products, at, (2 * k + 1) * n), (2 * k + 1, n))
    flat = NUMPY.reshape(y, (y.shape[0], math.prod(y.shape[1:])))
    columns = first[:, None] + NUMPY.arange(k + 1)

    def corrected(c: Tensor) -> Tensor:
        parts = NUMPY.reshape(
            xp.take(c, NUMPY.reshape(columns, (-1,)), axis=0), (*columns.shape, -1)
        )
        rest = w[:, None] * flat - NUMPY.sum(rows[:, :, None] * parts, axis=1)
        products = NUMPY.reshape(rows[:, :, None] * rest[:, None, :], (-1, flat.shape[1]))
        return c + solve_banded((k, k), ab, _sums(products, columns, n))

    c = corrected(corrected(NUMPY.zeros((n, flat.shape[1]), dtype=flat.dtype)))
    return NUMPY.reshape(c, (n, *y.shape[1:]))
