"""The base of SciPy's discrete distributions."""

from __future__ import annotations

from typing import Any

import numpy as np

from gpugrad.core.backend import TENSOR as xp
from gpugrad.core.tensor import Tensor
from gpugrad.numpy.creation import asarray
from gpugrad.scipy.stats.base import Distribution, point_method
from gpugrad.scipy.stats.common import attached, double
from gpugrad.scipy.stats.integrals import entropy_term, lifted

_MOST_TERMS = 10_000


class rv_discrete(Distribution):
    """The base of SciPy's discrete distributions; points are integers, without a gradient."""

    discrete = True
    a = 0

    pmf, logpmf = point_method("pmf"), point_method("logpmf")

    def _inside(self, y: Tensor, shapes: Any, density: bool) -> tuple[Tensor, Tensor]:
        y, (a, b) = xp.stop_gradient(y), self._get_support(*shapes)
        if density:
            return y, (y >= a) & (y <= b) & (xp.floor(y) == y)
        return y, (y >= a) & (y < b)

    def _pmf(self, k: Any, *shapes: Any) -> Any:
        return xp.exp(self._logpmf(k, *shapes))

    def _logpmf(self, k: Any, *shapes: Any) -> Any:
        return xp.log(self._pmf(k, *shapes))

    def _area(self, x: Any, *shapes: Any) -> Any:
        return self._sum(lambda k, *s: self._pmf(k, *s), shapes, x)

    def _ppf(self, q: Any, *shapes: Any) -> Any:
        return self._values("ppf", q, *shapes)

    def _isf(self, q: Any, *shapes: Any) -> Any:
        return self._values("isf", q, *shapes)

    def _munp(self, n: int, *shapes: Any) -> Any:
        total = self._sum(lambda k, *s: k**n * self._pmf(k, *s), shapes)
        return attached(self._values("moment", *shapes, order=n), total)

    def _entropy(self, *shapes: Any) -> Any:
        total = self._sum(lambda k, *s: entropy_term(self._pmf(k, *s)), shapes)
        return attached(self._values("entropy", *shapes), total)

    def _expect(
        self, func: Any, shapes: Any, loc: Any, scale: Any, lb: Any, ub: Any, conditional: bool
    ) -> Any:
        def total(function: Any) -> Tensor:
            def terms(k: Any, *lifting: Any) -> Any:
                x = k + loc[..., None]
                inside = x >= (-np.inf if lb is None else lb)
                inside = inside & (x <= (np.inf if ub is None else ub))
                return xp.where(inside, function(x) * self._pmf(k, *lifting), 0.0)

            return self._sum(terms, shapes)

        value = total(func)
        return value / total(lambda x: 1.0) if conditional else value

    def _sum(self, function: Any, shapes: Any, upto: Any = None) -> Tensor:
        """The sum of a function of the integers in the support, as far as they have a weight."""
        a, b = self._get_support(*shapes)
        fixed = [xp.stop_gradient(double(s)) for s in shapes]
        if upto is None:
            upto = xp.minimum(double(b), self._values("isf", 1e-15, *fixed))
        a = xp.maximum(double(a), self._values("ppf", 1e-15, *fixed) if self.a < 0 else double(a))
        a, upto = xp.stop_gradient(a), xp.floor(xp.stop_gradient(double(upto)))
        count = min(int(xp.max(upto - a)) + 1, _MOST_TERMS) if upto.size and a.size else 0
        steps = asarray(np.arange(max(count, 0), dtype=np.float64))
        k = a[..., None] + steps
        inside = k <= upto[..., None]
        terms = function(xp.where(inside, k, a[..., None]), *lifted(shapes))
        return xp.sum(xp.where(inside, terms, 0.0), axis=-1)
