"""`scipy.signal.windows` on Tensors, differentiable by the parameters of a window.

>>> print(gg.grad(lambda std: gg.scipy.signal.windows.gaussian(5, std)[1])(2.0))
0.11031211
"""

from __future__ import annotations

from typing import Any

from scipy.signal import windows as _windows

from gpugrad.scipy.calling import public
from gpugrad.scipy.signal import _reader

__all__ = sorted(_windows.__all__)


def __getattr__(name: str) -> Any:
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value = public(
        getattr(_reader().read("scipy.signal.windows._windows"), name), getattr(_windows, name)
    )
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return __all__
