"""Summaries that SciPy searches for: its values, with derivatives by the equation of the result."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from scipy import stats as scipys
from scipy.stats._stats_mstats_common import SiegelslopesResult

from gpugrad.core.backend import TENSOR as xp
from gpugrad.core.tensor import Tensor
from gpugrad.numpy.creation import asarray
from gpugrad.scipy.calling import on_values
from gpugrad.scipy.namespaces import NUMPY
from gpugrad.scipy.stats.common import double
from gpugrad.transforms.implicit import implicit_diff


def _values(x: Any) -> np.ndarray[Any, Any]:
    return np.asarray(xp.stop_gradient(asarray(x)))


def _most_likely(name: str, log_likelihood: Callable[[Any, Any], Any], search: Any) -> Any:
    """The parameter of a power transform at the maximum of a log likelihood."""

    @implicit_diff(lambda lmbda, x: -log_likelihood(lmbda, x), kind="argmin")
    def found(x: Any) -> Tensor:
        return double(search(_values(x)))

    found.__name__ = name
    return found


def normmax(module: Any) -> dict[str, Any]:
    """`boxcox_normmax` and `yeojohnson_normmax`, with the likelihoods of a module."""
    box = _most_likely(
        "boxcox_normmax", module.boxcox_llf, lambda x: scipys.boxcox_normmax(x, method="mle")
    )
    yeo = _most_likely("yeojohnson_normmax", module.yeojohnson_llf, scipys.yeojohnson_normmax)

    def boxcox_normmax(x: Any, brack: Any = None, method: str = "pearsonr", **options: Any) -> Any:
        if method == "mle" and brack is None and all(v is None for v in options.values()):
            return box(double(x))
        return on_values(scipys.boxcox_normmax)(x, brack, method, **options)

    def yeojohnson_normmax(x: Any, brack: Any = None) -> Any:
        if brack is None:
            return yeo(double(x))
        return on_values(scipys.yeojohnson_normmax)(x, brack)

    return {"boxcox_normmax": boxcox_normmax, "yeojohnson_normmax": yeojohnson_normmax}


def expectile(a: Any, alpha: Any = 0.5, *, weights: Any = None) -> Tensor:
    """`scipy.stats.expectile`: a mean in which values above and below it weigh differently."""
    a, alpha = double(a), double(alpha)
    w = NUMPY.ones_like(a) if weights is None else double(weights)
    t = scipys.expectile(_values(a), float(_values(alpha)), weights=_values(w))
    share = w * xp.where(_values(a) > t, alpha, 1 - alpha)
    return xp.sum(share * a) / xp.sum(share)


def siegelslopes(
    y: Any, x: Any = None, method: str = "hierarchical", **options: Any
) -> SiegelslopesResult:
    """`scipy.stats.siegelslopes` of one sample: medians of medians of slopes."""
    if options or np.ndim(_values(y)) != 1:
        return on_values(scipys.siegelslopes)(y, x, method, **options)
    if method not in ("hierarchical", "separate"):
        raise ValueError("method can only be 'hierarchical' or 'separate'.")
    y = double(y)
    x = double(np.arange(y.shape[0], dtype=float) if x is None else x)
    if x.shape != y.shape:
        raise ValueError("Array shapes are incompatible for broadcasting.")
    rows = []
    for i in range(y.shape[0]):
        keep = np.flatnonzero(_values(x) != _values(x)[i])
        dx = x[keep] - x[i]
        keep_slopes = (y[keep] - y[i]) / dx
        cross = (y[i] * x[keep] - y[keep] * x[i]) / dx
        rows.append((xp.median(keep_slopes), xp.median(cross)))
    slope = xp.median(xp.stack([row[0] for row in rows], axis=0))
    if method == "separate":
        return SiegelslopesResult(slope, xp.median(xp.stack([row[1] for row in rows], axis=0)))
    return SiegelslopesResult(slope, xp.median(y - slope * x))
