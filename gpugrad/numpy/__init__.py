"""NumPy's namespace on Tensors: a program for NumPy or CuPy runs with one import changed.

Names, signatures and dtypes are NumPy's: Python floats make float64. Everything is recorded,
differentiated and traced as in `gpugrad`, whose ops compute it; see `gpugrad.numpy.namespace`.

>>> import gpugrad.numpy as np
>>> x = np.asarray([[1.0, 2.0], [3.0, 4.0]], order="F")
>>> np.add.reduce(x, 0, "f4", None, True)
Tensor([[4., 6.]], shape=(1, 2), dtype=float32, device=cpu)
"""

# ruff: noqa: F401  # the names of NumPy that are defined here
from __future__ import annotations

import importlib
from typing import Any

import numpy as _np

from gpugrad.numpy.creation import (
    array,
    asanyarray,
    asarray,
    asarray_chkfinite,
    ascontiguousarray,
    asfortranarray,
    empty,
    full,
    ndarray,
    ones,
    require,
    zeros,
)
from gpugrad.numpy.namespace import namespace
from gpugrad.numpy.tricks import c_, mgrid, ogrid, r_
from gpugrad.numpy.ufuncs import ufunc
from gpugrad.numpy.vectorized import vectorize

_SUBMODULES = ("fft", "lib", "linalg", "polynomial", "random")
_look_up, _names = namespace(_np, "random", "matrix", "memmap", "ma", "core", "char", "strings")


def __getattr__(name: str) -> Any:
    if name in _SUBMODULES:
        return importlib.import_module(f"gpugrad.numpy.{name}")
    if name.startswith("poly") or name == "roots":
        module = importlib.import_module("gpugrad.numpy.polynomials")
        value = getattr(module, name, None) or _look_up(name)
    else:
        value = _look_up(name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return __all__


__all__ = _names
