"""Derivatives of SciPy's values: of polynomials through them, or of integrals that they equal."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.polynomial import chebyshev

from gpugrad.core.backend import TENSOR as xp
from gpugrad.core.tensor import Tensor
from gpugrad.numpy.creation import asarray
from gpugrad.scipy import special as _special
from gpugrad.scipy.stats.common import attached, double
from gpugrad.scipy.stats.integrals import NODES, in_pieces, integral

special: Any = _special
_DEGREE = 12
_POINTS = np.cos(np.pi * (np.arange(_DEGREE + 1) + 0.5) / (_DEGREE + 1))
_FIT = np.linalg.inv(chebyshev.chebvander(_POINTS, _DEGREE)).T  # values @ _FIT: coefficients


def polynomial(values: Callable[[Any], Any], x: Any, low: Any, high: Any, order: int = 0) -> Tensor:
    """The derivative of an order of the polynomial through values between two points around x."""
    low, high, at = (xp.stop_gradient(double(v)) for v in (low, high, x))
    middle, half = 0.5 * (low + high) + 0.0 * at, 0.5 * (high - low)
    fit = chebyshev.chebder(_FIT.T, order).T
    c = values(middle[..., None] + half[..., None] * _POINTS) @ asarray(fit)
    u = (x - middle) / half
    terms = [0.0 * u + 1.0, u]
    while len(terms) < fit.shape[1]:
        terms.append(2 * u * terms[-1] - terms[-2])
    return xp.sum(c * xp.stack(terms[: fit.shape[1]], axis=-1), axis=-1) / half**order


def kolmogorov_method(method: str) -> Callable[..., Any]:
    """A method of the laws of n samples, which are polynomials between multiples of 1 / (2 n)."""

    def call(self: Any, x: Any, n: Any) -> Any:
        cell = xp.floor(2 * n * xp.stop_gradient(x))
        ends = cell / (2 * n), (cell + 1) / (2 * n)
        of, order = ("cdf", 1) if method == "pdf" else (method, 0)
        values = lambda t: self._values(of, t, n[..., None])  # noqa: E731
        return attached(self._values(method, x, n), polynomial(values, x, *ends, order))

    return call


def landau_method(method: str) -> Callable[..., Any]:
    """A method of the Landau distribution: its logarithm is smooth, so are its tails."""

    def call(self: Any, x: Any) -> Any:
        fixed = xp.stop_gradient(x)
        half = 0.25 * (1 + xp.maximum(fixed, 0.0))
        log = polynomial(
            lambda t: xp.log(xp.maximum(self._values(method, t), 1e-300)),
            x,
            fixed - half,
            fixed + half,
        )
        value = self._values(method, x)
        return value * xp.exp(log - xp.stop_gradient(log))

    return call


def wallenius_pmf(self: Any, x: Any, M: Any, n: Any, N: Any, odds: Any) -> Any:
    """SciPy's value, with derivatives by the odds."""
    fixed = xp.stop_gradient(odds)
    values = lambda t: self._values("pmf", *(v[..., None] for v in (x, M, n, N)), t)  # noqa: E731
    slope = polynomial(values, odds, 0.8 * fixed, 1.25 * fixed)
    return attached(self._values("pmf", x, M, n, N, fixed), slope)


def _range_integral(method: str, weight: Callable[..., Any]) -> Callable[..., Any]:
    """The range of k normal variables over the deviation of df + 1: a double integral.

    R. E. Lund, J. R. Lund, "Algorithm AS 190", Applied Statistics 32 (1983) 204.
    """

    def area(self: Any, x: Any, k: Any, df: Any) -> Any:
        laws = self.laws
        q, k, df = (double(v)[..., None] for v in (x, k, xp.minimum(df, 1e5)))

        def at(w: Any) -> Any:
            s = xp.sqrt(w / df)
            inner = integral(
                lambda z: weight(laws, z, (q * s)[..., None], k[..., None]), laws.norm, []
            )
            return laws.chi2._pdf(w, df) * inner * (s if method == "pdf" else 1.0)

        return integral(at, laws.chi2, [df[..., 0]])

    return in_pieces(area, NODES**2)


def _range_cdf(laws: Any, z: Any, w: Any, k: Any) -> Any:
    return k * xp.exp((k - 1) * laws._log_gauss_mass(z, z + w) + laws.norm._logpdf(z))


def _range_pdf(laws: Any, z: Any, w: Any, k: Any) -> Any:
    logs = laws.norm._logpdf(z) + laws.norm._logpdf(z + w)
    return k * (k - 1) * xp.exp((k - 2) * laws._log_gauss_mass(z, z + w) + logs)


_range_density = _range_integral("pdf", _range_pdf)


def _density(self: Any, x: Any, *shapes: Any) -> Any:
    return attached(self._values("pdf", x, *shapes), _range_density(self, x, *shapes))


RANGE = {"_pdf": _density, "_area": _range_integral("cdf", _range_cdf)}
