"""The beta distribution of ``scipy.stats``."""

from typing import Any

from gpugrad.compat.autograd.scipy.stats.common import distribution, special, tensors


def _logpdf(x: Any, a: Any, b: Any) -> Any:
    x, a, b = tensors(x, a, b)
    return special.xlog1py(b - 1, -x) + special.xlogy(a - 1, x) - special.betaln(a, b)


def _cdf(x: Any, a: Any, b: Any) -> Any:
    x, a, b = tensors(x, a, b)
    return special.betainc(a, b, x)


distribution(globals(), "beta", logpdf=_logpdf, cdf=_cdf)
