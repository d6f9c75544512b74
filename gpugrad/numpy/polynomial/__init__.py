"""`numpy.polynomial` on Tensors: its functions; the classes are NumPy's."""

import numpy as np

from gpugrad.numpy.namespace import namespace
from gpugrad.numpy.polynomial import polynomial as polynomial
from gpugrad.numpy.polynomial import polyutils as polyutils

__getattr__, __all__ = namespace(np.polynomial)


def __dir__() -> list[str]:
    return __all__
