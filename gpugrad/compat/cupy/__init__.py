"""CuPy's names: a CuPy program runs with one import changed, also without a GPU.

Arrays are Tensors, so all of it is recorded, differentiated and traced. NumPy's names are those of
`gpugrad.numpy`. A GPU, if there is one, runs CuPy's own kernels, streams and memory pools.

>>> import gpugrad.compat.cupy as cp
>>> x = cp.asarray([[3.0, 4.0], [6.0, 8.0]])
>>> cp.asnumpy(cp.linalg.norm(x, axis=1)).tolist(), cp.get_array_module(x) is cp
([5.0, 10.0], True)
"""

# ruff: noqa: F401  # CuPy's names
from __future__ import annotations

import functools
import sys
from collections.abc import Callable
from typing import Any

import numpy as np

import gpugrad as gg
from gpugrad import numpy as _numpy
from gpugrad.compat.cupy import cuda, testing
from gpugrad.compat.cupy.cuda import is_available
from gpugrad.compat.cupy.kernels import ElementwiseKernel, ReductionKernel
from gpugrad.compat.cupy.raw_kernels import RawKernel, RawModule
from gpugrad.compat.names import forwarding
from gpugrad.core.backend import cupy
from gpugrad.core.tensor import Tensor as ndarray
from gpugrad.numpy import creation

__version__ = gg.__version__


def asnumpy(a: Any, stream: Any = None, order: Any = "C", out: Any = None, **others: Any) -> Any:
    """A NumPy array with the values of a Tensor, or of anything that NumPy makes an array of."""
    values = np.array(a.numpy() if isinstance(a, ndarray) else a, order=order)
    if out is None:
        return values
    out[...] = values
    return out


def get_array_module(*args: Any) -> Any:
    """`gpugrad.compat.cupy` if an argument is a Tensor, else NumPy."""
    return sys.modules[__name__] if any(isinstance(a, ndarray) for a in args) else np


def get_default_memory_pool() -> Any:
    """The pool of the GPU's memory, which `gpugrad.cuda.memory_stats` counts too."""
    return cupy().get_default_memory_pool() if is_available() else cuda.MemoryPool()


def get_default_pinned_memory_pool() -> Any:
    """The pool of the host's pinned memory."""
    return cupy().get_default_pinned_memory_pool() if is_available() else cuda.MemoryPool()


def fuse(*args: Any, **keywords: Any) -> Any:
    """`gpugrad.function`, as a decorator with or without CuPy's ``kernel_name=``.

    >>> import gpugrad.compat.cupy as cp
    >>> squared_difference = cp.fuse(kernel_name="squared")(lambda x, y: (x - y) * (x - y))
    >>> squared_difference(cp.arange(3), 1).tolist()
    [1, 0, 1]
    """
    return gg.function(args[0]) if args else gg.function


_memos: list[dict[Any, Any]] = []


def memoize(for_each_device: bool = False) -> Callable[[Any], Any]:
    """A decorator that keeps a function's results by its arguments, until `clear_memo`."""

    def decorate(function: Any) -> Any:
        memo: dict[Any, Any] = {}
        _memos.append(memo)

        @functools.wraps(function)
        def call(*args: Any, **keywords: Any) -> Any:
            key = args, frozenset(keywords.items()), for_each_device and str(gg.device())
            if key not in memo:
                memo[key] = function(*args, **keywords)
            return memo[key]

        return call

    return decorate


def clear_memo() -> None:
    """Drop the results that functions decorated by `memoize` keep."""
    for memo in _memos:
        memo.clear()


def show_config() -> None:
    """Print what `gpugrad.about` says of this machine."""
    print(gg.about())


def asfarray(a: Any, dtype: Any = float) -> ndarray:
    """A Tensor of floats."""
    kind = np.dtype(dtype)
    return creation.asarray(a, kind if kind.kind in "fc" else float)


def msort(a: Any) -> ndarray:
    """A copy sorted along the first axis."""
    return _numpy.sort(a, axis=0)


NINF, PZERO, NZERO = -np.inf, 0.0, -0.0
disable_experimental_feature_warning = False

_REMOVED_BY_NUMPY = {
    **dict.fromkeys(("Inf", "Infinity", "PINF", "infty"), "inf"),
    **dict.fromkeys(("NaN", "NAN"), "nan"),
    **dict.fromkeys(("cfloat", "complex_"), "complex128"),
    **{"float_": "float64", "singlecomplex": "complex64", "fromDlpack": "from_dlpack"},
    **{"alltrue": "all", "sometrue": "any", "in1d": "isin", "trapz": "trapezoid"},
    **{"round_": "round", "product": "prod", "cumproduct": "cumprod"},
}
"""CuPy's old names, and NumPy's for them."""

_own = globals() | _REMOVED_BY_NUMPY
_sources = (_numpy, np.exceptions, np.lib.npyio, np.rec, np.lib.array_utils)  # where they are now
_look_up, __dir__ = forwarding(__name__, *_sources, own=_own)


def __getattr__(name: str) -> Any:
    return _look_up(_REMOVED_BY_NUMPY.get(name, name))
