"""The formula of each distance, of vectors along the first axis; the other axes broadcast.

NumPy's sums along the last axis are slow if that is short, as that of points is.
"""

from __future__ import annotations

import functools
import operator
from collections.abc import Callable
from typing import Any

import numpy as np

import gpugrad.special
from gpugrad.core.backend import TENSOR as xp
from gpugrad.core.tensor import Tensor
from gpugrad.ops.scipy.pairs import TERMS
from gpugrad.scipy.calling import known

Metric = Callable[..., Tensor]


def _sum(x: Tensor, w: Any = None) -> Tensor:
    return xp.sum(x if w is None else _along(w, x) * x, axis=0)


def _sum_of(term: str, u: Tensor, v: Tensor, w: Any = None, p: Any = 1.0) -> Tensor:
    """The weighted sum of a term of `pair_sums`, also of all pairs, (k, m, 1) and (k, 1, n).

    If `u` is `v`, of shape (k, m, 1), it is that of the pairs of one set of vectors.
    """
    if u is v:
        return xp.own_pair_sums(_rows(u, v)[0], term=term, p=float(p))
    pairs = u.ndim == v.ndim == 3 and u.shape[2] == v.shape[1] == 1 and not isinstance(p, Tensor)
    degree = {"cityblock": 1, "totals": 1, "squares": 2, "power": p}.get(term)
    if pairs and degree and w is not None and known(lambda: xp.all(xp.greater(w, 0))):
        u, v = (_along(w ** (1 / degree), x) * x for x in (u, v))
        w = None
    if pairs and w is None:
        return xp.pair_sums(*_rows(u, v), term=term, p=float(p))
    each, k = TERMS[term], u.shape[0]
    if u.ndim < 3 or not 0 < k <= 8:
        return _sum(each(xp, u, v, p), w)
    # from one coordinate to the next: their arrays fit the cache
    parts = [each(xp, *(xp.getitem(x, index=i) for x in (u, v)), p) for i in range(k)]
    if w is not None:
        parts = [xp.getitem(w, index=i) * part for i, part in enumerate(parts)]
    return functools.reduce(operator.add, parts)


def _rows(u: Tensor, v: Tensor) -> list[Tensor]:
    """The two sets of vectors, as matrices, of the arrays for all pairs."""
    return [
        xp.matrix_transpose(xp.reshape(x, (x.shape[0], x.size // max(1, x.shape[0]))))
        for x in (u, v)
    ]


def _along(w: Tensor, x: Tensor) -> Tensor:
    """Numbers for the elements of vectors."""
    return xp.reshape(w, (*w.shape, *(1,) * (x.ndim - 1)))


def root(s: Tensor, p: Any = 2) -> Tensor:
    """s^(1/p), whose derivatives at 0, where it has none, are 0."""
    none = xp.less_equal(s, 0)
    safe = xp.where(none, 1, s)
    return xp.where(none, 0, safe ** (1 / p) if isinstance(p, Tensor) or p != 2 else xp.sqrt(safe))


def ratio(x: Tensor, y: Tensor) -> Tensor:
    """The ratio x / y, and 0 where y is 0."""
    none = xp.equal(y, 0)
    return xp.where(none, 0, x / xp.where(none, 1, y))


def minkowski(u: Tensor, v: Tensor, w: Any = None, p: Any = 2) -> Tensor:
    """The root of the weighted sum of powers."""
    if not isinstance(p, Tensor):
        if p == np.inf:
            return chebyshev(u, v, None if w is None else xp.not_equal(w, 0))
        if p == 1:
            return cityblock(u, v, w)
        if w is None:
            if u is v:
                return root(_sum_of("squares" if p == 2 else "power", u, v, p=p), p)
            if u.ndim == 3:
                return (
                    xp.euclidean_distances(*_rows(u, v))
                    if p == 2
                    else root(_sum_of("power", u, v, p=p), p)
                )
            return xp.vector_norm(u - v, axis=0, ord=p)
        if p == 2:
            return root(sqeuclidean(u, v, w))
    return root(_sum_of("power", u, v, w, p), p)


def euclidean(u: Tensor, v: Tensor, w: Any = None) -> Tensor:
    """The root of the weighted sum of squares."""
    return minkowski(u, v, w)


def sqeuclidean(u: Tensor, v: Tensor, w: Any = None) -> Tensor:
    """The weighted sum of squares."""
    return _sum_of("squares", u, v, w)


def seuclidean(u: Tensor, v: Tensor, V: Tensor) -> Tensor:
    """The Euclidean distance by variances."""
    if u.ndim == 3 and known(lambda: xp.all(xp.greater(V, 0))):
        return xp.euclidean_distances(*(x / xp.sqrt(V) for x in _rows(u, v)))
    return minkowski(u, v, 1 / V)


def mahalanobis(u: Tensor, v: Tensor, VI: Tensor) -> Tensor:
    """The Euclidean distance by an inverse covariance."""
    if u.ndim == 3 and known(lambda: xp.all(xp.greater(xp.eigvalsh(VI + VI.T), 0))):
        half = xp.cholesky((VI + VI.T) / 2)  # d' VI d is the square of d' times it
        return xp.euclidean_distances(*(xp.matmul(x, half) for x in _rows(u, v)))
    d = u - v
    return root(_sum(d * xp.reshape(xp.matmul(VI, xp.reshape(d, (d.shape[0], -1))), d.shape)))


def cityblock(u: Tensor, v: Tensor, w: Any = None) -> Tensor:
    """The weighted sum of differences."""
    return _sum_of("cityblock", u, v, w)


def chebyshev(u: Tensor, v: Tensor, w: Any = None) -> Tensor:
    """The largest difference whose weight is not 0."""
    if u.ndim == 3 and w is None:
        return _sum_of("chebyshev", u, v)
    d = xp.abs(u - v)
    return xp.max(d if w is None else xp.where(_along(xp.greater(w, 0), d), d, 0), axis=0)


def braycurtis(u: Tensor, v: Tensor, w: Any = None) -> Tensor:
    """The sum of differences by that of sums."""
    return cityblock(u, v, w) / _sum_of("totals", u, v, w)


def canberra(u: Tensor, v: Tensor, w: Any = None) -> Tensor:
    """The sum of relative differences."""
    return _sum_of("canberra", u, v, w)


def correlation(
    u: Tensor, v: Tensor, w: Any = None, centered: bool = True, dot: Metric | None = None
) -> Tensor:
    """1 - the cosine of the angle between vectors, from which their means are subtracted.

    `dot` computes the products of all pairs of vectors.
    """
    if w is not None:
        w = w / xp.sum(w)
    if centered:
        means = [xp.mean(x, axis=0) if w is None else _sum(x, w) for x in (u, v)]
        u, v = (u - means[0],) * 2 if u is v else (u - means[0], v - means[1])
    if u is v:  # pairs of one set: half the square of the distance of unit vectors
        unit = u / xp.sqrt(_sum(u * u))
        distance = _sum_of("squares", unit, unit) * 0.5
        return distance if known(lambda: xp.max(distance) <= 2) else _clipped(distance, 0, 2)
    u, v = (x / xp.sqrt(_sum(x * x, w)) for x in (u, v))
    if w is not None:
        v = _along(w, v) * v
    cos = _sum(u * v) if dot is None else dot(u, v)
    return 1 - _clipped(cos, -1, 1)


def _clipped(x: Tensor, low: float, high: float) -> Tensor:
    """Numbers that rounding moved out of bounds, moved back; `clip` would end their derivatives."""
    return x + xp.stop_gradient(xp.clip(x, low, high) - x)


def cosine(u: Tensor, v: Tensor, w: Any = None, dot: Metric | None = None) -> Tensor:
    """1 - the cosine of the angle between vectors."""
    return correlation(u, v, w, False, dot)


def jensenshannon(u: Tensor, v: Tensor, base: Any = None) -> Tensor:
    """The root of the Jensen-Shannon divergence of vectors that are normalized first."""
    u, v = (x / xp.sum(x, axis=0) for x in (u, v))
    js = _sum_of("entropy", u, v)
    return root((js if base is None else js / xp.log(base)) / 2)


def hellinger(u: Tensor, v: Tensor, w: Any = None) -> Tensor:
    """The root of half the sum of squared differences of roots; in cupyx, not in SciPy."""
    return root(sqeuclidean(xp.sqrt(u), xp.sqrt(v), w) / 2)


def kl_divergence(u: Tensor, v: Tensor, w: Any = None) -> Tensor:
    """The Kullback-Leibler divergence, the sum of u log(u / v); in cupyx, not in SciPy."""
    return _sum(gpugrad.special.rel_entr(u, v), w)


def hamming(u: Tensor, v: Tensor, w: Any = None) -> Tensor:
    """The weighted part of elements that differ."""
    differ = xp.astype(xp.not_equal(u, v), "float64")
    return xp.mean(differ, axis=0) if w is None else _sum(differ, w / xp.sum(w))


def jaccard(u: Tensor, v: Tensor, w: Any = None) -> Tensor:
    """The part of elements of which one is 0, among those that are not both 0."""
    u, v = xp.not_equal(u, 0), xp.not_equal(v, 0)
    differ, any_ = (
        xp.astype(xp.logical_xor(u, v), "float64"),
        xp.astype(xp.logical_or(u, v), "float64"),
    )
    return ratio(_sum(differ, w), _sum(any_, w))


def _differ(u: Tensor, v: Tensor, w: Any) -> Tensor:
    return _sum(u * (1 - v) + (1 - u) * v, w)


def dice(u: Tensor, v: Tensor, w: Any = None) -> Tensor:
    """Of numbers from 0 to 1: those that differ by those plus twice the ones in both."""
    differ = _differ(u, v, w)
    return differ / (2 * _sum(u * v, w) + differ)


def rogerstanimoto(u: Tensor, v: Tensor, w: Any = None) -> Tensor:
    """Twice those that differ, by them plus those that are equal."""
    differ = 2 * _differ(u, v, w)
    return differ / (_sum(u * v + (1 - u) * (1 - v), w) + differ)


def russellrao(u: Tensor, v: Tensor, w: Any = None) -> Tensor:
    """The part that is not in both."""
    both = _sum(u * v, w)
    n = both.dtype.type(u.shape[0]) if w is None else xp.sum(w)
    return (n - both) / n


def sokalsneath(u: Tensor, v: Tensor, w: Any = None) -> Tensor:
    """Twice those that differ, by them plus those in both."""
    differ = 2 * _differ(u, v, w)
    return differ / (_sum(u * v, w) + differ)


def yule(u: Tensor, v: Tensor, w: Any = None) -> Tensor:
    """Twice the product of the two terms of differences, by it plus that of the two equal ones."""
    odd = _sum(u * (1 - v), w) * _sum((1 - u) * v, w)
    equal = _sum(u * v, w) * _sum((1 - u) * (1 - v), w)
    return xp.where(xp.equal(odd, 0), 0, 2 * ratio(odd, equal + odd))


OF_TERMS = frozenset(
    (braycurtis, canberra, chebyshev, cityblock, euclidean, minkowski, sqeuclidean)
) | {correlation, cosine}
"""Metrics of sums of a term, or of its maximum."""

OF_SETS = frozenset((dice, rogerstanimoto, russellrao, sokalsneath, yule))
"""Metrics of vectors of 0 and 1."""

COUNTS = OF_SETS | {hamming, jaccard}
"""Metrics whose derivatives by the vectors are 0."""
