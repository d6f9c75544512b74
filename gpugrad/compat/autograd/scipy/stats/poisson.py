"""The Poisson distribution of ``scipy.stats``, differentiated by its mean."""

from typing import Any

import gpugrad as gg
from gpugrad.compat.autograd.scipy.stats.common import distribution, special, tensors


def _logpmf(k: Any, mu: Any) -> Any:
    k, mu = tensors(k, mu)
    k = gg.stop_gradient(k)
    return special.xlogy(k, mu) - mu - special.gammaln(k + 1)


def _cdf(k: Any, mu: Any) -> Any:
    k, mu = tensors(k, mu)
    return special.gammaincc(gg.floor(gg.stop_gradient(k)) + 1, mu)


distribution(globals(), "poisson", logpmf=_logpmf, cdf=_cdf)
