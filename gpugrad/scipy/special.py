"""`scipy.special` on Tensors, with SciPy's dtypes: `gpugrad.special` has gpugrad's.

Numbers are float64 here, and 16-bit floats are what SciPy computes for them: float32 or float64.
Functions that gpugrad lacks run on the host, and raise if that cuts a gradient.

>>> x = gg.constant([0.5], dtype="float16")
>>> gg.special.exp1(x).dtype, gg.scipy.special.exp1(x).dtype, gg.scipy.special.exp1(0.5).dtype
(dtype('float16'), dtype('float32'), dtype('float64'))
"""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable
from typing import Any

import numpy as np
from scipy import special

import gpugrad.special as ours
from gpugrad.core.backend import BFLOAT16
from gpugrad.numpy.namespace import namespace
from gpugrad.scipy.calling import public

_look_up, _scipys = namespace(special)
__all__ = sorted({*_scipys, *ours.__all__})


def __getattr__(name: str) -> Any:
    theirs = getattr(special, name, None)
    if theirs is None and name in __all__:
        return getattr(ours, name)
    if isinstance(theirs, np.ufunc):
        return _widening(_look_up(name), theirs)
    return _as_scipys(name, theirs) if hasattr(ours, name) else _look_up(name)


def __dir__() -> list[str]:
    return __all__


@functools.cache
def _as_scipys(name: str, theirs: Callable[..., Any]) -> Callable[..., Any]:
    """Our function of a name that SciPy defines in Python, whose arguments may all be named."""
    function, signature = getattr(ours, name), inspect.signature(theirs)

    @functools.wraps(function)
    def call(*args: Any, **keywords: Any) -> Any:
        bound = signature.bind(*args, **keywords)
        return function(*bound.args, **bound.kwargs)

    return public(call, theirs)


@functools.cache
def _widening(function: Callable[..., Any], ufunc: Any) -> Callable[..., Any]:
    """The function, whose arguments get the dtypes of SciPy's loop for them; bfloat16 has none."""

    @functools.wraps(function)
    def call(*args: Any, **keywords: Any) -> Any:
        dtypes = {x.dtype for x in args if hasattr(x, "dtype")}
        unlike = len(dtypes) > 1 or any(dtype.itemsize <= 2 for dtype in dtypes)
        if unlike and BFLOAT16 not in dtypes:
            kinds = [getattr(x, "dtype", type(x)) for x in args]
            loop = ufunc.resolve_dtypes((*kinds, *[None] * ufunc.nout))
            args = tuple(
                x.astype(to) if hasattr(x, "dtype") and x.dtype != to else x
                for x, to in zip(args, loop, strict=False)
            )
        return function(*args, **keywords)

    return call
