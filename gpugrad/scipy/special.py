"""`scipy.special` on Tensors, with SciPy's dtypes: `gpugrad.special` has gpugrad's.

Numbers are float64 here, and 16-bit floats are what SciPy computes for them: float32 or float64.
Functions that gpugrad lacks run on the host, and raise if that cuts a gradient.

>>> x = gg.constant([0.5], dtype="float16")
>>> gg.special.erf(x).dtype, gg.scipy.special.erf(x).dtype, gg.scipy.special.erf(0.5).dtype
(dtype('float16'), dtype('float64'), dtype('float64'))
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import numpy as np
from scipy import special

import gpugrad.special as ours
from gpugrad.numpy.namespace import namespace

_look_up, _scipys = namespace(special)
__all__ = sorted({*_scipys, *ours.__all__})


def __getattr__(name: str) -> Any:
    theirs = getattr(special, name, None)
    if theirs is None and name in __all__:
        return getattr(ours, name)
    function = _look_up(name)
    return _widening(function, theirs) if isinstance(theirs, np.ufunc) else function


@functools.cache
def _widening(function: Callable[..., Any], ufunc: Any) -> Callable[..., Any]:
    """The function, whose arguments of 8 and 16 bits get the dtype of SciPy's loop for them."""

    @functools.wraps(function)
    def call(*args: Any, **keywords: Any) -> Any:
        kinds = [getattr(x, "dtype", type(x)) for x in args]
        if any(isinstance(k, np.dtype) and k.itemsize <= 2 for k in kinds):
            loop = ufunc.resolve_dtypes((*kinds, *[None] * ufunc.nout))
            args = tuple(
                x.astype(to) if getattr(x, "dtype", to).itemsize <= 2 else x
                for x, to in zip(args, loop, strict=False)
            )
        return function(*args, **keywords)

    return call
