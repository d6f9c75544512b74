"""The gamma distribution of ``scipy.stats``."""

from typing import Any

from gpugrad.compat.autograd.scipy.stats.common import distribution, special, tensors


def _logpdf(x: Any, a: Any) -> Any:
    x, a = tensors(x, a)
    return special.xlogy(a - 1, x) - x - special.gammaln(a)


def _cdf(x: Any, a: Any) -> Any:
    x, a = tensors(x, a)
    return special.gammainc(a, x)


distribution(globals(), "gamma", logpdf=_logpdf, cdf=_cdf)
