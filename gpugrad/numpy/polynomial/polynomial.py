"""`numpy.polynomial.polynomial` on Tensors.

>>> import gpugrad.numpy as np
>>> gg.grad(lambda x: np.polynomial.polynomial.polyval(x, [1.0, 2.0, 3.0]))(2.0).item()
14.0
"""

from __future__ import annotations

from typing import Any

import numpy as np

from gpugrad.core.backend import TENSOR
from gpugrad.core.tensor import Tensor
from gpugrad.errors import ArgumentError
from gpugrad.numpy.creation import array, asarray
from gpugrad.numpy.namespace import namespace

__getattr__, __all__ = namespace(np.polynomial.polynomial)


def __dir__() -> list[str]:
    return __all__


def _floats(x: Any) -> Tensor:
    """An array of at least one axis, without integers."""
    return array(x, copy=None, ndmin=1) + 0.0


def _beside(x: Any, c: Tensor, tensor: bool) -> tuple[Tensor, Tensor]:
    """The points, and coefficients with an axis for each axis of the points."""
    x = asarray(x)
    return x, c.reshape(c.shape + (1,) * x.ndim) if tensor else c


def polyval(x: Any, c: Any, tensor: bool = True) -> Tensor:
    """The polynomial with coefficients `c`, lowest power first along the first axis, at `x`."""
    x, c = _beside(x, _floats(c), tensor)
    result = c[-1] + x * 0
    for row in c[-2::-1]:
        result = row + result * x
    return result


def polyvalfromroots(x: Any, r: Any, tensor: bool = True) -> Tensor:
    """The polynomial with roots `r` along the first axis, and leading coefficient 1, at `x`."""
    x, r = _beside(x, _floats(r), tensor)
    if x.ndim >= r.ndim and not tensor:
        raise ArgumentError("polyvalfromroots: x must have fewer axes than r if not tensor.")
    return TENSOR.prod(x - r, axis=0)


def polyvander(x: Any, deg: int) -> Tensor:
    """The powers 0 to `deg` of `x`, along a new last axis."""
    if deg < 0:
        raise ArgumentError(f"polyvander: deg={deg} must not be negative.")
    x = _floats(x)
    rows = [x**k for k in range(deg + 1)]
    return TENSOR.moveaxis(TENSOR.stack(rows, axis=0), 0, -1)  # the memory order of NumPy's
