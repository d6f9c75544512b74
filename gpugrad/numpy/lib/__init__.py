"""`numpy.lib` on Tensors."""

import numpy as np

from gpugrad.numpy.lib import stride_tricks as stride_tricks
from gpugrad.numpy.namespace import namespace

__getattr__, __all__ = namespace(np.lib)


def __dir__() -> list[str]:
    return __all__
