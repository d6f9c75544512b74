"""`numpy.lib.stride_tricks` on Tensors."""

import numpy as np

from gpugrad.numpy.namespace import namespace

__getattr__, __all__ = namespace(np.lib.stride_tricks)


def __dir__() -> list[str]:
    return __all__
