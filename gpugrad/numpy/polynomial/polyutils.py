"""`numpy.polynomial.polyutils` on Tensors."""

import numpy as np

from gpugrad.numpy.namespace import namespace

__getattr__, __all__ = namespace(np.polynomial.polyutils)


def __dir__() -> list[str]:
    return __all__
