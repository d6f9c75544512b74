"""`scipy.signal.windows` on Tensors, differentiable by the parameters of a window.

>>> print(gg.grad(lambda std: gg.scipy.signal.windows.gaussian(5, std)[1])(2.0))
0.11031211
"""

from __future__ import annotations

from typing import Any

from scipy.signal import windows as _windows

from gpugrad.scipy.calling import public
from gpugrad.scipy.signal import _reader
from gpugrad.scipy.signatures import lazy

__all__ = sorted(_windows.__all__)


def _found(name: str) -> Any:
    return public(
        getattr(_reader().read("scipy.signal.windows._windows"), name), getattr(_windows, name)
    )


__getattr__, __dir__ = lazy(globals(), _found)
