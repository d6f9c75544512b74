"""The Dirichlet distribution of ``scipy.stats``."""

from typing import Any

import gpugrad as gg
from gpugrad.compat.autograd.scipy.stats.common import distribution, special, tensors


def _logpdf(x: Any, alpha: Any) -> Any:
    x, alpha = tensors(x, alpha)
    total = gg.sum((alpha - 1) * gg.log(x)) - gg.sum(special.gammaln(alpha))
    return total + special.gammaln(gg.sum(alpha))


distribution(globals(), "dirichlet", logpdf=_logpdf)
