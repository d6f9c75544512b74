"""The chi-squared distribution of ``scipy.stats``."""

from typing import Any

import numpy as np

from gpugrad.compat.autograd.scipy.stats.common import distribution, special, tensors


def _logpdf(x: Any, df: Any) -> Any:
    x, df = tensors(x, df)
    a, half = df / 2, x / 2
    return special.xlogy(a - 1, half) - half - special.gammaln(a) - float(np.log(2.0))


def _cdf(x: Any, df: Any) -> Any:
    x, df = tensors(x, df)
    return special.gammainc(df / 2, x / 2)


distribution(globals(), "chi2", logpdf=_logpdf, cdf=_cdf)
