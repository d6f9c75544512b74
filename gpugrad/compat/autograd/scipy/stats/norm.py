"""The normal distribution of ``scipy.stats``."""

from typing import Any

import gpugrad as gg
from gpugrad.compat.autograd.scipy.stats.common import LOG_2PI, distribution, special, tensors


def _standard(f: Any) -> Any:
    return lambda x, loc=0.0, scale=1.0: f((x - loc) / scale)


def _logpdf(x: Any, loc: Any = 0.0, scale: Any = 1.0) -> Any:
    x, loc, scale = tensors(x, loc, scale)
    z = (x - loc) / scale
    return -0.5 * z * z - 0.5 * LOG_2PI - gg.log(scale)


distribution(
    globals(),
    "norm",
    logpdf=_logpdf,
    cdf=_standard(special.ndtr),
    logcdf=_standard(special.log_ndtr),
    sf=_standard(lambda z: special.ndtr(-z)),
    logsf=_standard(lambda z: special.log_ndtr(-z)),
)
