"""Curves through points or beside them, and `bisplrep`: SciPy chooses smoothed splines' knots."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import scipy.interpolate as scipys

from gpugrad.core.tensor import Tensor
from gpugrad.scipy.calling import on_values, plain_values
from gpugrad.scipy.interpolate import smoothed
from gpugrad.scipy.interpolate.smoothed import host, prepared
from gpugrad.scipy.namespaces import NUMPY
from gpugrad.scipy.signatures import with_signature


def _some(**options: Any) -> bool:
    """Whether any option has a value other than SciPy's default of 0 or None."""
    return any(
        isinstance(v, Tensor) or (v is not None and np.any(np.asarray(v))) for v in options.values()
    )


def _beside(u: Any, points: Any, w: Any, tck: Any) -> Any:
    """Knots and coefficients (n, ...) of a smoothed curve of SciPy's, with their derivatives."""
    t, c, k = tck
    rest = host(w) * (host(points) - scipys.BSpline(t, c, k)(host(u))).T
    return smoothed.curve(u, points, w, (t, c, k), float(np.sum(rest**2)))[:2]


def curve(make: Callable[..., Any], spline: Any) -> dict[str, Any]:
    """`make_splrep`, `make_splprep`, `splprep` and `bisplrep`, by name.

    Args:
        make: `make_interp_spline`.
        spline: `BSpline`.
    """

    def make_splrep(x: Any, y: Any, w: Any, k: int, bc_type: Any, **options: Any) -> Any:
        if not _some(w=w, **options):
            return make(x, y, k=k, bc_type=bc_type)
        options |= {"k": k, "bc_type": bc_type}
        if bc_type is not None or plain_values(x, y, w, *options.values()) is not None:
            return on_values(scipys.make_splrep)(x, y, w=w, **options)
        values, (x, y, w) = map(host, (x, y)), prepared(x, y, w)
        made = scipys.make_splrep(*values, w=host(w), **options)
        return spline(*_beside(x, y, w, (made.t, made.c, k)), k)

    def make_splprep(x: Any, w: Any, u: Any, k: int, bc_type: Any, **options: Any) -> Any:
        smooths = _some(w=w, **options)
        options |= {"k": k, "bc_type": bc_type}
        plain = smooths and plain_values(*x, w, u, *options.values()) is not None
        if plain or (smooths and bc_type is not None):
            return on_values(scipys.make_splprep)(x, w=w, u=u, **options)
        u, points = _parameters(x, u)
        if not smooths:
            return make(u, points.T, k=k, axis=1, bc_type=bc_type), u
        u, points, w = prepared(u, points, w)
        made, _ = scipys.make_splprep(host(points).T, w=host(w), u=host(u), **options)
        t, c = _beside(u, points, w, (made.t, made.c, k))
        return spline(t, c.T, k, axis=1), u

    def splprep(x: Any, w: Any, u: Any, k: int, s: Any, quiet: int, **options: Any) -> Any:
        through = s is not None and s == 0
        if _some(**options) or (not through and plain_values(*x, w, u, s) is not None):
            return on_values(scipys.splprep)(x, w, u, k=k, s=s, quiet=quiet, **options)
        u, points = _parameters(x, u)
        if through and w is None:
            made = make(u, points, k=k)
            return (made.t, list(made.c.T), k), u
        u, points, w = prepared(u, points, w)
        (t, c, _), _ = scipys.splprep(host(points).T, host(w), host(u), k=k, s=s, quiet=quiet)
        t, c = _beside(u, points, w, (t, np.stack(c, axis=1), k))
        return (t, list(c.T), k), u

    formulas = (make_splrep, make_splprep, splprep, bisplrep)
    return {f.__name__: _called_as_scipys(f) for f in formulas}


def _called_as_scipys(formula: Callable[..., Any]) -> Callable[..., Any]:
    return with_signature(formula, scipys, lambda bound: formula(**bound.arguments))


def bisplrep(x: Any, y: Any, z: Any, w: Any, full_output: int, **options: Any) -> Any:
    """A B-spline surface beside points, with gradients at SciPy's knots and residual."""
    if full_output or plain_values(x, y, z, w, *options.values()) is not None:
        return on_values(scipys.bisplrep)(x, y, z, w, full_output=full_output, **options)
    tck = scipys.bisplrep(*map(host, (x, y, z, w)), **options)
    x, y, w = prepared(x, y, w)
    z = NUMPY.asarray(z, dtype=float)
    values = scipys.BivariateSpline._from_tck(tck).ev(host(x), host(y))
    fp = float(np.sum((host(w) * (host(z) - values)) ** 2))
    c = smoothed.scattered(x, y, z, w, tck, fp)
    return [*map(NUMPY.asarray, tck[:2]), NUMPY.reshape(c, (-1,)), *tck[3:]]


def _parameters(x: Any, u: Any) -> tuple[Any, Any]:
    """Parameters of points, by default from their distances, and the points (m, dimensions)."""
    points = NUMPY.stack([NUMPY.asarray(v, dtype=float) for v in x], axis=1)
    return _chords(points) if u is None else NUMPY.asarray(u, dtype=float), points


def _chords(points: Tensor) -> Tensor:
    """Parameters from 0 to 1 by the distances of neighbouring points."""
    steps = NUMPY.sqrt(NUMPY.sum((points[1:] - points[:-1]) ** 2, axis=1))
    u = NUMPY.cumsum(steps)
    return NUMPY.concatenate([NUMPY.zeros(1), u / u[-1]])
