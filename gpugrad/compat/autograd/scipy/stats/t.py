"""Student's distribution of ``scipy.stats``."""

from typing import Any

import numpy as np

import gpugrad
from gpugrad.compat.autograd.scipy.stats.common import distribution, special, tensors

gg: Any = gpugrad


def _logpdf(x: Any, df: Any, loc: Any = 0.0, scale: Any = 1.0) -> Any:
    x, df, loc, scale = tensors(x, df, loc, scale)
    z = (x - loc) / scale
    factor = special.gammaln((df + 1) / 2) - special.gammaln(df / 2) - 0.5 * gg.log(df * np.pi)
    return factor - (df + 1) / 2 * gg.log1p(z * z / df) - gg.log(scale)


def _cdf(x: Any, df: Any, loc: Any = 0.0, scale: Any = 1.0) -> Any:
    x, df, loc, scale = tensors(x, df, loc, scale)
    z = (x - loc) / scale
    tail = 0.5 * special.betainc(df / 2, 0.5, df / (df + z * z))
    return gg.where(z > 0, 1 - tail, tail)


distribution(globals(), "t", logpdf=_logpdf, cdf=_cdf)
