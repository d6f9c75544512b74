"""``scipy.fft`` on Tensors: `gpugrad.fft`, with SciPy's dtypes.

>>> gg.scipy.fft.fftfreq(4, 0.5).dtype, gg.scipy.fft.rfft([1.0, 2.0]).dtype
(dtype('float64'), dtype('complex128'))
"""

from __future__ import annotations

import functools
from typing import Any

import numpy as np

from gpugrad import fft as ours
from gpugrad.core.tensor import Tensor
from gpugrad.fft import __all__ as __all__
from gpugrad.numpy.creation import asarray


def fftfreq(n: int, d: float = 1.0, *, xp: Any = None, device: Any = None) -> Tensor:
    """The frequencies of the results of `fft`, in float64."""
    return ours.fftfreq(n, d=d, dtype=np.float64, device=device)


def rfftfreq(n: int, d: float = 1.0, *, xp: Any = None, device: Any = None) -> Tensor:
    """The frequencies of the results of `rfft`, in float64."""
    return ours.rfftfreq(n, d=d, dtype=np.float64, device=device)


def __getattr__(name: str) -> Any:
    function = getattr(ours, name)
    if name not in __all__ or not callable(function):
        return function

    @functools.wraps(function)
    def call(*args: Any, **keywords: Any) -> Any:
        if args and type(args[0]) in (list, tuple):  # of floats: float64, as in SciPy
            args = (asarray(args[0]), *args[1:])
        return function(*args, **keywords)

    globals()[name] = call
    return call


def __dir__() -> list[str]:
    return __all__
