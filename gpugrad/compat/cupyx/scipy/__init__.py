"""``cupyx.scipy``: SciPy's names, as far as gpugrad has them."""

import sys

from gpugrad import fft, linalg
from gpugrad.compat.names import forwarding
from gpugrad.scipy import special

__getattr__, __dir__ = forwarding(__name__, own=globals())
# so that ``from gpugrad.compat.cupyx.scipy.special import erf`` finds the module
sys.modules.update(
    {f"{__name__}.{m.__name__.rpartition('.')[2]}": m for m in (fft, linalg, special)}
)
