"""``cupyx.scipy``: the names of `gpugrad.scipy`, whose modules are imported when first used.

>>> from gpugrad.compat.cupyx.scipy.ndimage import gaussian_filter
>>> gaussian_filter(gg.ones((2, 2)), 1.0).shape
(2, 2)
"""

from __future__ import annotations

import contextlib
import importlib
import sys
import types
from typing import Any

from gpugrad import scipy
from gpugrad.compat.names import forwarding
from gpugrad.core.tensor import Tensor

_MODULES = (*scipy.__all__, "signal.windows", "sparse.linalg")


class _Later(types.ModuleType):
    """A module of `gpugrad.scipy`, so that ``from cupyx.scipy.special import erf`` finds it."""

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        path = self.__name__.removeprefix(f"{__name__}.")
        if (path, name) == ("fft", "get_fft_plan"):
            return get_fft_plan
        ours = importlib.import_module(scipy.__name__)
        for part in path.split("."):
            ours = getattr(ours, part)
        return getattr(ours, name)

    def __dir__(self) -> list[str]:
        ours = importlib.import_module(scipy.__name__)
        for part in self.__name__.removeprefix(f"{__name__}.").split("."):
            ours = getattr(ours, part)
        return dir(ours)


def get_fft_plan(a: Tensor, shape: Any = None, axes: Any = None, value_type: str = "C2C") -> Any:
    """A plan for ``plan=``, and a context: both without effect, as CuPy keeps plans itself."""
    return contextlib.nullcontext()


def get_array_module(*args: Any) -> Any:
    """`gpugrad.compat.cupyx.scipy` if an argument is a Tensor, else SciPy."""
    is_ours = any(isinstance(a, Tensor) for a in args)
    return sys.modules[__name__] if is_ours else importlib.import_module("scipy")


sys.modules.update({f"{__name__}.{m}": _Later(f"{__name__}.{m}") for m in _MODULES})
globals().update({m: sys.modules[f"{__name__}.{m}"] for m in scipy.__all__})
__getattr__, __dir__ = forwarding(__name__, own=globals())
