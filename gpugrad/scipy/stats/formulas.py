"""Formulas of distributions that SciPy compiled, or that look up values."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from gpugrad.core.backend import TENSOR as xp
from gpugrad.ops.special import inverses
from gpugrad.scipy import special as _special
from gpugrad.scipy.namespaces import NUMPY
from gpugrad.scipy.stats import counts, sampled
from gpugrad.scipy.stats.base import Distribution, rv_continuous
from gpugrad.scipy.stats.common import attached, double
from gpugrad.scipy.stats.discrete import rv_discrete
from gpugrad.scipy.stats.integrals import are_constants, at_the_end, in_pieces, integral, lifted
from gpugrad.scipy.stats.limits import (
    extreme_logpdf,
    extreme_ppf,
    kappa_logpdf,
    kappa_logs,
    kappa_ppf,
    log1p_over,
    pareto_logpdf,
)

special: Any = _special
kolmogorov_slope: Any = inverses.kolmogorov_slope
_BERNOULLI = [1 / 6, -1 / 30, 1 / 42, -1 / 30, 5 / 66, -691 / 2730, 7 / 6, -3617 / 510]
_FIRST = 12


def zeta(x: Any, q: Any = 1.0) -> Any:
    """Hurwitz's zeta function, with a derivative by x: by Euler and Maclaurin (DLMF 25.11.5)."""
    x = double(x)
    return _zeta_without_pole(x, double(q)) + 1 / (x - 1)


def _zeta_without_pole(x: Any, q: Any) -> Any:
    """The zeta function minus 1 / (x - 1), also at 1."""
    terms = [(q + n) ** -x for n in range(_FIRST)]
    end = q + _FIRST
    terms += [-special.boxcox(end, 1 - x), 0.5 * end**-x]
    factor = x
    for k, number in enumerate(_BERNOULLI, 1):
        terms.append(number / math.factorial(2 * k) * factor * end ** (1 - x - 2 * k))
        factor = factor * (x + 2 * k - 1) * (x + 2 * k)
    return sum(terms[1:], terms[0])


def _binomial(part: str) -> Callable[..., Any]:
    function = getattr(special, part)

    def call(k: Any, n: Any, p: Any) -> Any:
        k, n, p = map(double, (k, n, p))
        inside = k < n
        return xp.where(
            inside, function(xp.where(inside, n - k, 1.0), k + 1, 1 - p), part == "betainc"
        )

    return call


def _binomial_pmf(k: Any, n: Any, p: Any) -> Any:
    ways = special.gammaln(n + 1) - special.gammaln(k + 1) - special.gammaln(n - k + 1)
    return xp.exp(ways + special.xlogy(k, p) + special.xlog1py(n - k, -double(p)))


def _failures_pmf(k: Any, n: Any, p: Any) -> Any:
    ways = special.gammaln(n + k) - special.gammaln(k + 1) - special.gammaln(n)
    return xp.exp(ways + n * xp.log(p) + special.xlog1py(k, -double(p)))


def _cauchy_ppf(q: Any, loc: Any, scale: Any) -> Any:
    near = xp.abs(q - 0.5) < 0.25
    inner = xp.tan(np.pi * (xp.where(near, q, 0.5) - 0.5))
    return xp.where(near, inner, -1 / xp.tan(np.pi * xp.where(near, 0.25, q)))


def _harmonic(n: Any, a: Any) -> Any:
    return _power_sum(1.0, n, a)


def _power_sum(j: Any, k: Any, a: Any) -> Any:
    """The sum of i^-a from j to k, a difference of zeta functions whose poles cancel."""
    a = double(a)
    return _zeta_without_pole(a, double(j)) - _zeta_without_pole(a, double(k) + 1)


COMPILED = {  # of scipy.special._ufuncs, without public names
    "_beta_pdf": lambda x, a, b: xp.exp(
        special.xlog1py(b - 1, -x) + special.xlogy(a - 1, x) - special.betaln(a, b)
    ),
    "_beta_ppf": lambda q, a, b: special.betaincinv(a, b, q),
    "_binom_cdf": _binomial("betainc"),
    "_binom_pmf": _binomial_pmf,
    "_binom_sf": _binomial("betaincc"),
    "_cauchy_isf": lambda q, loc, scale: -_cauchy_ppf(q, loc, scale),
    "_cauchy_ppf": _cauchy_ppf,
    "_gen_harmonic": _harmonic,
    "_kolmogc": lambda x: 1 - special.kolmogorov(x),
    "_kolmogci": lambda q: special.kolmogi(1 - q),
    "_kolmogp": lambda x: kolmogorov_slope(xp, double(x)),
    "_log1mexp": lambda x: xp.log(-xp.expm1(x)),
    "_nbinom_cdf": lambda k, n, p: special.betainc(n, k + 1, p),
    "_nbinom_kurtosis_excess": lambda n, p: (p * p - 6 * p + 6) / (n * (1 - p)),
    "_nbinom_mean": lambda n, p: n * (1 - p) / p,
    "_nbinom_pmf": _failures_pmf,
    "_nbinom_sf": lambda k, n, p: special.betaincc(n, k + 1, p),
    "_nbinom_skewness": lambda n, p: (2 - p) / xp.sqrt(n * (1 - p)),
    "_nbinom_variance": lambda n, p: n * (1 - p) / (p * p),
    "_scaled_exp1": lambda x: _scaled_exp1(x),
    "_normalized_gen_harmonic": lambda j, k, n, a: _power_sum(j, k, a) / _harmonic(n, a),
}


def log_gauss_mass(a: Any, b: Any) -> Any:
    """The logarithm of the normal distribution's probability between two points."""
    a, b = double(a), double(b)
    low, high = xp.where(a > 0, -b, a), xp.where(a > 0, -a, b)
    below = high <= 0
    log_low = special.log_ndtr(xp.where(below, low, -1.0))
    log_high = special.log_ndtr(xp.where(below, high, 0.0))
    centre = xp.log1p(-special.ndtr(low) - special.ndtr(-high))
    return xp.where(below, log_high + xp.log1p(-xp.exp(log_low - log_high)), centre)


def _log_part(part: Any, rest: Any) -> Any:
    """A log probability by that of the rest, if it is near 0."""
    near = part > -0.1
    return xp.where(near, xp.log1p(-xp.exp(xp.where(near, rest, -1.0))), part)


def _truncnorm_logcdf(self: Any, x: Any, a: Any, b: Any) -> Any:
    total = log_gauss_mass(a, b)
    return _log_part(log_gauss_mass(a, x) - total, log_gauss_mass(x, b) - total)


def _truncnorm_logsf(self: Any, x: Any, a: Any, b: Any) -> Any:
    total = log_gauss_mass(a, b)
    return _log_part(log_gauss_mass(x, b) - total, log_gauss_mass(a, x) - total)


def _truncnorm_ppf(self: Any, q: Any, a: Any, b: Any) -> Any:
    left, total = a < 0, log_gauss_mass(a, b)
    by_end = special.log_ndtr(xp.where(left, a, -b))
    log_p = xp.logaddexp(by_end, xp.where(left, xp.log(q), xp.log1p(-q)) + total)
    return xp.where(left, 1.0, -1.0) * special.ndtri_exp(log_p)


def _truncnorm_isf(self: Any, q: Any, a: Any, b: Any) -> Any:
    return -_truncnorm_ppf(self, q, -b, -a)


def _truncnorm_stats(self: Any, a: Any, b: Any) -> Any:
    total = log_gauss_mass(a, b)
    pa, pb = (xp.exp(-0.5 * end * end - 0.5 * math.log(2 * math.pi) - total) for end in (a, b))
    a, b = (xp.where(xp.isfinite(end), end, 0.0) for end in (a, b))
    mean = pa - pb
    return mean, 1 + pa * (a - mean) - pb * (b - mean), None, None


def _pearson3(name: str, other: str) -> Callable[..., Any]:
    """A method of the gamma distribution, shifted and scaled; of the normal one near skew 0."""

    def method(self: Any, x: Any, skew: Any) -> Any:
        laws = self.laws
        small = xp.abs(skew) < 0.000016
        s = xp.where(small, 1.0, skew)
        alpha = 4 / (s * s)
        y = 2 / s * x + alpha
        y = xp.where(y > 0, y, 1.0)
        value = getattr(laws.gamma, name)(y, alpha)
        if name == "_logpdf":
            value = value + xp.log(xp.abs(2 / s))
        else:
            value = xp.where(s > 0, value, getattr(laws.gamma, other)(y, alpha))
        return xp.where(small, getattr(laws.norm, name)(x), value)

    return method


def _mixture(log_weight: Any, log_density: Any, centre: Any) -> Any:
    """The log of a sum of weighted densities j = 0, 1, ..., around the largest term."""
    centre, around = xp.stop_gradient(centre), _AROUND
    largest = float(xp.max(centre)) if are_constants([centre]) and centre.size else np.nan
    if 0 <= largest < around:  # no term is less concave than Poisson's weights
        around = min(around, 24 + math.ceil(10 * math.sqrt(largest)))
    first = xp.maximum(xp.floor(centre) - around, 0.0)
    j = first[..., None] + xp.astype(NUMPY.arange(2 * around), np.float64)
    return xp.logsumexp(log_weight(j) + log_density(j), axis=-1)


_AROUND = 150


def _poisson(j: Any, mean: Any) -> Any:
    return special.xlogy(j, mean) - mean - special.gammaln(j + 1)


def _noncentral_chi2(x: Any, df: Any, nc: Any) -> Any:
    """The log density, as a mixture of central ones with Poisson weights."""
    x, df, nc = NUMPY.broadcast_arrays(x, df, nc)
    half, y = 0.5 * nc[..., None], x[..., None]

    def density(j: Any) -> Any:
        k = 0.5 * df[..., None] + j
        return special.xlogy(k - 1, 0.5 * y) - 0.5 * y - special.gammaln(k) - math.log(2)

    centre = 0.5 * (xp.sqrt(0.25 * df * df + nc * x) - 0.5 * df)
    return _mixture(lambda j: _poisson(j, half), density, centre)


def _noncentral_f(self: Any, x: Any, dfn: Any, dfd: Any, nc: Any) -> Any:
    x, dfn, dfd, nc = NUMPY.broadcast_arrays(x, dfn, dfd, nc)
    y, half, b = (dfn * x / dfd)[..., None], 0.5 * nc[..., None], 0.5 * dfd[..., None]

    def density(j: Any) -> Any:
        a = 0.5 * dfn[..., None] + j
        return special.xlogy(a - 1, y) - (a + b) * xp.log1p(y) - special.betaln(a, b)

    # term j + 1 is mean (a + b + j) / ((a + j) (j + 1)) times term j: about 1 at the centre
    mean, less = 0.5 * nc * dfn * x / (dfn * x + dfd), 0.5 * dfn
    excess = mean - less
    centre = 0.5 * (excess + xp.sqrt(excess * excess + 2 * (dfn + dfd) * mean))
    return xp.log(dfn / dfd) + _mixture(lambda j: _poisson(j, half), density, centre)


def _noncentral_t(self: Any, x: Any, df: Any, nc: Any) -> Any:
    laws = self.laws
    y, n, shift = (double(v)[..., None] for v in (x, df, nc))

    def density(w: Any) -> Any:
        root = xp.sqrt(w / n)
        z = y * root - shift
        return xp.exp(-0.5 * z * z) / math.sqrt(2 * math.pi) * root * laws.chi2._pdf(w, n)

    return integral(density, laws.chi2, [double(df)])


def _log_kv(order: Any, z: Any) -> Any:
    return xp.log(special.kve(order, z)) - z


def _genhyperbolic(self: Any, x: Any, p: Any, a: Any, b: Any) -> Any:
    g, root = xp.sqrt((a - b) * (a + b)), xp.sqrt(1 + x * x)
    constant = p * xp.log(g) - _log_kv(p, g) - 0.5 * math.log(2 * math.pi)
    return constant + (p - 0.5) * xp.log(root / a) + _log_kv(p - 0.5, a * root) + b * x


def _geninvgauss(self: Any, x: Any, p: Any, b: Any) -> Any:
    return (p - 1) * xp.log(x) - 0.5 * b * (x + 1 / x) - math.log(2) - _log_kv(p, b)


def _tukeylambda(self: Any, x: Any, lam: Any) -> Any:
    """The probability whose quantile is x, by Newton's method from SciPy's value."""
    p = value = self._values("cdf", x, lam)
    for _ in range(2):
        p = p - (self._ppf(p, lam) - x) / (p ** (lam - 1) + (1 - p) ** (lam - 1))
    return attached(value, p)


def _tukeylambda_pdf(self: Any, x: Any, lam: Any) -> Any:
    p = self._cdf(x, lam)
    return 1 / (p ** (lam - 1) + (1 - p) ** (lam - 1))


def _gennorm_stats(self: Any, beta: Any) -> Any:
    c1, c3, c5 = (special.gammaln(n / beta) for n in (1, 3, 5))
    return 0.0, xp.exp(c3 - c1), 0.0, xp.exp(c5 + c1 - 2 * c3) - 3.0


def _vonmises_area(self: Any, x: Any, kappa: Any) -> Any:
    """Between -pi and pi, from the density's top; whole turns add 1."""
    y = x - 2 * np.pi * xp.round(xp.stop_gradient(x) / (2 * np.pi))
    if are_constants([kappa]):
        return at_the_end(lambda t: self._pdf(t, kappa), x)
    (across,) = lifted([kappa])
    area = integral(lambda t: self._pdf(t, across), self, [kappa], 0.0 * y, xp.abs(y))
    return xp.sign(y) * area


def log_difference(p: Any, q: Any) -> Any:
    """The logarithm of a difference, from two logarithms."""
    return p + xp.log1p(-xp.exp(q - p))


def _scaled_exp1(x: Any) -> Any:
    """The product x e^x E_1(x), far out by its asymptotic series (DLMF 6.12.1)."""
    far = x > 50
    near, away = xp.where(far, 1.0, x), xp.where(far, x, 50.0)
    series = 1.0
    for n in range(24, 0, -1):
        series = 1 - n / away * series
    return xp.where(far, series, near * xp.exp(near) * special.exp1(near))


_HOSTED = {
    "_cdf": rv_continuous._cdf,
    "_sf": rv_continuous._scipys_sf,
    "_logcdf": rv_continuous._logcdf,
    "_logsf": rv_continuous._logsf,
    "_ppf": rv_continuous._ppf,
    "_isf": rv_continuous._scipys_isf,
}
"""Values are SciPy's; derivatives follow from the density."""

_ROOTS = {name: _HOSTED[name] for name in ("_ppf", "_isf")}
_SUMMED = {name: getattr(rv_discrete, name) for name in ("_cdf", "_logcdf", "_logsf")} | {
    "_sf": rv_discrete._scipys_sf
}


_MOMENTS = {"_stats": rv_discrete._stats, "_munp": rv_discrete._munp}
_ENTROPY = {"_entropy": rv_discrete._entropy}
_INTEGRALS = {name: getattr(rv_continuous, name) for name in ("_stats", "_munp", "_entropy")}


def _exp(log: Callable[..., Any]) -> dict[str, Any]:
    return {"_logpdf": log, "_pdf": Distribution._pdf}


def _skellam_logpmf(self: Any, k: Any, mu1: Any, mu2: Any) -> Any:
    low = k < 0
    mean, other = xp.where(low, mu2, mu1), xp.where(low, mu1, mu2)
    return math.log(2) + _noncentral_chi2(2 * mean, 2 * (1 + xp.abs(k)), 2 * other)


def _area_of(function: Callable[..., Any]) -> Callable[..., Any]:
    """An `_area` by a function of special with slopes; by the density for constant shapes."""

    def area(self: Any, x: Any, *shapes: Any) -> Any:
        if are_constants(shapes):
            return rv_continuous._area(self, x, *shapes)
        return function(x, *shapes)

    return area


def _sampled(method: Callable[..., Any]) -> dict[str, Any]:
    return {**_HOSTED, **{f"_{name}": method(name) for name in ("pdf", "cdf", "sf")}}


FORMULAS: dict[str, dict[str, Any]] = {
    "ksone_gen": _sampled(sampled.kolmogorov_method),
    "kstwo_gen": _sampled(sampled.kolmogorov_method),
    "landau_gen": _sampled(sampled.landau_method),
    "nchypergeom_wallenius_gen": {"_pmf": sampled.wallenius_pmf, **_SUMMED, **_MOMENTS, **_ENTROPY},
    "studentized_range_gen": {**_HOSTED, **_INTEGRALS, **sampled.RANGE},
    "nchypergeom_fisher_gen": {"_logpmf": counts.fisher_logpmf, "_pmf": rv_discrete._pmf},
    "poisson_binom_gen": {
        **_SUMMED,
        "_pmf": counts.poisson_binom_pmf,
        "_logpmf": rv_discrete._logpmf,
        "_cdf": counts.poisson_binom_cdf,
        "_sf": lambda self, k, *p: 1 - self._cdf(k, *p),
        "_logcdf": lambda self, k, *p: xp.log(self._cdf(k, *p)),
        "_logsf": lambda self, k, *p: xp.log(self._sf(k, *p)),
    },
    "_nchypergeom_gen": {"_rvs": Distribution._rvs},  # SciPy's would crash with our streams
    "betaprime_gen": _ROOTS,
    "binom_gen": _ENTROPY,
    "cosine_gen": _HOSTED,
    "dpareto_lognorm_gen": _HOSTED,
    "genhyperbolic_gen": {**_exp(_genhyperbolic), **_HOSTED},
    "geninvgauss_gen": {**_exp(_geninvgauss), **_HOSTED},
    "genextreme_gen": {
        **_exp(extreme_logpdf),
        "_loglogcdf": lambda self, x, c: -x * log1p_over(-c * x),
        "_ppf": extreme_ppf(xp.log),
        "_isf": extreme_ppf(lambda q: xp.log1p(-q)),
    },
    "genpareto_gen": {
        "_logpdf": pareto_logpdf,
        "_logsf": lambda self, x, c: -x * log1p_over(c * x),
    },
    "gennorm_gen": {"_stats": _gennorm_stats},
    "hypergeom_gen": {"_pmf": rv_discrete._pmf, **_SUMMED, **_MOMENTS, **_ENTROPY},
    "invgauss_gen": _ROOTS,
    "irwinhall_gen": {**_HOSTED, **_INTEGRALS, "_pdf": in_pieces(counts.irwinhall_pdf, 16)},
    "jf_skew_t_gen": _INTEGRALS,
    "kappa4_gen": {
        **_exp(kappa_logpdf),
        "_logcdf": lambda self, *args: kappa_logs(*args)[2],
        "_ppf": kappa_ppf,
    },
    "ncf_gen": {
        **_exp(in_pieces(_noncentral_f, 2 * _AROUND)),
        **_HOSTED,
        **_INTEGRALS,
        "_area": _area_of(lambda x, dfn, dfd, nc: special.ncfdtr(dfn, dfd, nc, x)),
    },
    "nct_gen": {
        "_pdf": in_pieces(_noncentral_t),
        **_HOSTED,
        **_INTEGRALS,
        "_area": _area_of(lambda x, df, nc: special.nctdtr(df, nc, x)),
    },
    "ncx2_gen": {
        **_exp(in_pieces(lambda self, *args: _noncentral_chi2(*args), 2 * _AROUND)),
        **_HOSTED,
        "_area": _area_of(special.chndtr),
    },
    "norminvgauss_gen": _HOSTED,
    "pearson3_gen": {
        **_HOSTED,
        **_exp(_pearson3("_logpdf", "")),
        "_cdf": _pearson3("_cdf", "_sf"),
        "_sf": _pearson3("_sf", "_cdf"),
    },
    "rice_gen": _HOSTED,
    "skellam_gen": {
        "_logpmf": in_pieces(_skellam_logpmf, 2 * _AROUND),
        "_pmf": rv_discrete._pmf,
        **_SUMMED,
    },
    "skewnorm_gen": {
        **_HOSTED,
        "_pdf": lambda self, x, a: xp.exp(self._logpdf(x, a)),
        "_logpdf": lambda self, x, a: (
            math.log(2) - 0.5 * x * x - 0.5 * math.log(2 * math.pi) + special.log_ndtr(a * x)
        ),
        "_area": lambda self, x, a: special.ndtr(x) - 2 * special.owens_t(x, a),
    },
    "truncnorm_gen": {
        "_logcdf": _truncnorm_logcdf,
        "_logsf": _truncnorm_logsf,
        "_ppf": _truncnorm_ppf,
        "_isf": _truncnorm_isf,
        "_stats": _truncnorm_stats,
        "_munp": rv_continuous._munp,
    },
    "tukeylambda_gen": {"_cdf": _tukeylambda, "_pdf": _tukeylambda_pdf, **_INTEGRALS},
    "vonmises_gen": {
        **_HOSTED,
        "_area": _vonmises_area,
        "_ends": lambda self, kappa: (-np.pi, np.pi),
    },
}
"""Methods, by class, instead of those of SciPy that look up values or are compiled."""
