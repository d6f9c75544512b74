"""Moments, entropy and quantities that follow from other methods of a distribution."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable
from typing import Any

import numpy as np
from scipy.special import comb

from gpugrad.core.backend import TENSOR as xp
from gpugrad.core.tensor import Tensor
from gpugrad.scipy.calling import on_values
from gpugrad.scipy.stats.common import Method, attached, double, located
from gpugrad.scipy.stats.integrals import entropy_term, integral, lifted


class Moments:
    """The part of a distribution that needs its density, or its formulas of moments."""

    discrete: bool
    scipys: Any
    _parsed: Callable[..., Any]
    _values: Callable[..., Tensor]
    _get_support: Callable[..., Any]
    _pdf: Callable[..., Any]
    _cdf: Callable[..., Any]
    pdf: Any
    logpdf: Any
    logpmf: Any
    ppf: Any

    @Method
    def stats(self, *args: Any, moments: str = "mv", **keywords: Any) -> Any:
        """Mean, variance, skew and kurtosis, by the letters of `moments`."""
        shapes, loc, scale, finish = self._parsed(args, keywords)
        m, v, s, k = self._moments(shapes, moments)
        values = {"m": lambda: m() * scale + loc, "v": lambda: v() * scale * scale, "s": s, "k": k}
        results = [finish(values[letter]()) for letter in "mvsk" if letter in moments]
        return results[0] if len(results) == 1 else tuple(results)

    def _moments(self, shapes: Any, letters: str) -> list[Callable[[], Any]]:
        """Functions of the standard form's mean, variance, skew and kurtosis."""
        parameters = inspect.signature(self._stats).parameters.values()
        by_letters = any(p.name == "moments" or p.kind is p.VAR_KEYWORD for p in parameters)
        given = self._stats(*shapes, **({"moments": letters} if by_letters else {}))
        raw = functools.cache(lambda n: double(self._munp(n, *shapes)))

        def m() -> Any:
            return raw(1) if given[0] is None else double(given[0])

        def v() -> Any:
            if given[1] is not None:
                return double(given[1])
            return xp.where(xp.isinf(m()), np.inf, raw(2) - m() * m())

        def third() -> Any:
            return (-m() * m() - 3 * v()) * m() + raw(3)

        def s() -> Any:
            return third() / v() ** 1.5 if given[2] is None else double(given[2])

        def k() -> Any:
            if given[3] is not None:
                return double(given[3])
            mu3 = third() if given[2] is None else s() * v() ** 1.5
            return (((-m() * m() - 6 * v()) * m() - 4 * mu3) * m() + raw(4)) / v() ** 2 - 3

        return [m, v, s, k]

    def _stats(self, *shapes: Any, **keywords: Any) -> Any:
        return None, None, None, None

    def _munp(self, n: int, *shapes: Any) -> Any:
        lifting = lifted(shapes)
        area = integral(lambda t: t**n * self._pdf(t, *lifting), self, shapes)
        return attached(self._values("moment", *shapes, order=n), area)

    @Method
    def moment(self, order: int, *args: Any, **keywords: Any) -> Tensor:
        """The non-central moment of an order."""
        if int(order) != order:
            raise ValueError("Moment must be an integer.")
        if order < 0:
            raise ValueError("Moment must be positive.")
        shapes, loc, scale, finish = self._parsed(args, keywords)
        m, v, s, k = self._moments(shapes, "mvsk"[: int(order)])

        def raw(n: int) -> Any:
            if n < 2 or n > 4:
                return (lambda: 1.0, m)[n]() if n < 2 else double(self._munp(n, *shapes))
            if n == 2:
                return v() + m() ** 2
            mu3 = s() * v() ** 1.5
            if n == 3:
                return mu3 + 3 * m() * v() + m() ** 3
            return (k() + 3) * v() ** 2 + 4 * m() * mu3 + 6 * m() ** 2 * v() + m() ** 4

        n = int(order)
        parts = [comb(n, j, exact=True) * raw(j) * scale**j * loc ** (n - j) for j in range(n + 1)]
        return finish(sum(parts[1:], parts[0]))

    @Method
    def entropy(self, *args: Any, **keywords: Any) -> Tensor:
        """The differential entropy, or the entropy of a discrete distribution."""
        shapes, _, scale, finish = self._parsed(args, keywords)
        return finish(double(self._entropy(*shapes)) + xp.log(scale))

    def _entropy(self, *shapes: Any) -> Any:
        lifting = lifted(shapes)
        area = integral(lambda t: entropy_term(self._pdf(t, *lifting)), self, shapes)
        return attached(self._values("entropy", *shapes), area)

    def median(self, *args: Any, **keywords: Any) -> Tensor:
        """The median."""
        return self.ppf(0.5, *args, **keywords)

    def mean(self, *args: Any, **keywords: Any) -> Tensor:
        """The mean."""
        return self.stats(*args, moments="m", **keywords)

    def var(self, *args: Any, **keywords: Any) -> Tensor:
        """The variance."""
        return self.stats(*args, moments="v", **keywords)

    def std(self, *args: Any, **keywords: Any) -> Tensor:
        """The standard deviation."""
        return xp.sqrt(self.stats(*args, moments="v", **keywords))

    @Method
    def interval(self, confidence: Any, *args: Any, **keywords: Any) -> tuple[Tensor, Tensor]:
        """The ends of a range around the median, with equal areas beside it."""
        tail = (1.0 - double(confidence)) / 2
        return self.ppf(tail, *args, **keywords), self.ppf(1.0 - tail, *args, **keywords)

    @Method
    def support(self, *args: Any, **keywords: Any) -> tuple[Tensor, Tensor]:
        """The ends of the support."""
        shapes, loc, scale, finish = self._parsed(args, keywords)
        low, high = (finish(located(end, loc, scale)) for end in self._get_support(*shapes))
        return low, high

    @Method
    def nnlf(self, theta: Any, x: Any) -> Tensor:
        """The negative log likelihood of data by the parameters: shapes, `loc` and `scale`."""
        density = self.logpmf if self.discrete else self.logpdf
        return -xp.sum(density(x, *theta))

    @Method
    def expect(self, *args: Any, **keywords: Any) -> Tensor:
        """The expected value of a function of the random variable; SciPy's arguments."""
        bound = inspect.signature(self.scipys.expect).bind(*args, **keywords)
        bound.apply_defaults()
        given = bound.arguments
        placing = [given[k] for k in ("loc", "scale") if k in given]
        shapes, loc, scale, finish = self._parsed((*given["args"], *placing), {})
        bounds = given["lb"], given["ub"], given["conditional"]
        return finish(self._expect(given["func"] or (lambda x: x), shapes, loc, scale, *bounds))

    def _expect(
        self, func: Any, shapes: Any, loc: Any, scale: Any, lb: Any, ub: Any, conditional: bool
    ) -> Any:
        a, b = self._get_support(*shapes)
        low = a if lb is None else (double(lb) - loc) / scale
        high = b if ub is None else (double(ub) - loc) / scale
        lifting = lifted(shapes)

        def weighted(t: Any) -> Any:
            return func(t * scale[..., None] + loc[..., None]) * self._pdf(t, *lifting)

        value = integral(weighted, self, shapes, low, high)
        if conditional:
            value = value / (self._cdf(high, *shapes) - self._cdf(low, *shapes))
        return value

    def fit(self, data: Any, *args: Any, **keywords: Any) -> Any:
        """SciPy's estimates of the parameters from data, without gradients."""
        return on_values(self.scipys.fit)(data, *args, **keywords)
