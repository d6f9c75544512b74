"""Names of ``cupyx``, CuPy's functions beyond NumPy.

>>> import gpugrad.compat.cupy as cp, gpugrad.compat.cupyx as cupyx
>>> x = cp.zeros(3)
>>> cupyx.scatter_add(x, cp.asarray([0, 2, 2]), 1.0)
>>> x.tolist()
[1.0, 0.0, 2.0]
"""

from __future__ import annotations

import contextlib
from typing import Any, NoReturn

import numpy as np

# ruff: noqa: F401  # names of cupyx
from gpugrad import Tensor, about, rsqrt
from gpugrad.compat.cupyx import profiler, scipy
from gpugrad.compat.names import forwarding
from gpugrad.errors import ArgumentError


def scatter_add(a: Tensor, slices: Any, value: Any) -> None:
    """Add to elements of a Tensor, in place and recorded; repeated indices add up."""
    a.scatter_add(slices, value)


def scatter_max(a: Tensor, slices: Any, value: Any) -> None:
    """Set elements of a Tensor to the maximum with a value, in place and recorded."""
    a.scatter_max(slices, value)


def scatter_min(a: Tensor, slices: Any, value: Any) -> None:
    """Set elements of a Tensor to the minimum with a value, in place and recorded."""
    a.scatter_min(slices, value)


def errstate(**keywords: Any) -> contextlib.AbstractContextManager[None]:
    """A context without effect: `gpugrad.debug.nans` checks values."""
    return contextlib.nullcontext()


def allow_synchronize(allow: bool) -> contextlib.AbstractContextManager[None]:
    """A context without effect: `gpugrad.cuda` says what waits for a GPU."""
    return contextlib.nullcontext()


class DeviceSynchronized(RuntimeError):
    """CuPy's error of an operation that waits within `allow_synchronize(False)`: never raised."""


def geterr() -> dict[str, Any]:
    """How errors of libraries are handled: they raise."""
    return {"linalg": "raise", "divide": None, "over": None, "under": None, "invalid": None}


def seterr(**keywords: Any) -> dict[str, Any]:
    """Without effect, as `errstate`; returns `geterr`'s."""
    return geterr()


def get_runtime_info(**keywords: Any) -> str:
    """The text of `gpugrad.about` on this machine."""
    return str(about())


# NumPy arrays, which CuPy makes in pinned memory: copies from them to a GPU wait here
empty_pinned, empty_like_pinned = np.empty, np.empty_like
zeros_pinned, zeros_like_pinned = np.zeros, np.zeros_like


class _Jit:
    """``cupyx.jit`` compiles Python to CUDA, which gpugrad does not."""

    def __getattr__(self, name: str) -> NoReturn:
        if name.startswith("__"):
            raise AttributeError(name)
        raise ArgumentError(
            f"cupyx.jit.{name}: gpugrad does not compile Python to CUDA kernels. Write array "
            "functions under gpugrad.function, or a kernel for RawKernel or ElementwiseKernel."
        )


jit = _Jit()
__getattr__, __dir__ = forwarding(__name__, own=globals())
