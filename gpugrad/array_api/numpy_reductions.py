"""NumPy's reductions with ``where=`` and ``initial=``, made of gpugrad's ops."""

from __future__ import annotations

import functools
import math
from collections.abc import Callable
from typing import Any

from gpugrad.core.backend import TENSOR
from gpugrad.core.tensor import tensor
from gpugrad.errors import ArgumentError

# NumPy's definition of initial=, which no op has
_COMBINED_BY = {"sum": "add", "prod": "multiply", "max": "maximum", "min": "minimum"}
# The result of no elements: what where= puts in the place of those that it leaves out
_OF_NOTHING = {"sum": 0, "prod": 1, "any": False, "all": True}


def _reduce(
    name: str,
    a: Any,
    /,
    *,
    axis: Any = None,
    dtype: Any = None,
    keepdims: bool = False,
    where: Any = True,
    initial: Any = None,
) -> Any:
    """A reduction of the elements for which `where` holds, and of `initial`."""
    x = tensor(a) if dtype is None else TENSOR.astype(a, dtype)
    kind = name.removeprefix("nan")
    if where is not True:
        if kind not in _OF_NOTHING and initial is None:
            raise ArgumentError(f"numpy.{name}: where= needs initial=, the result of no elements.")
        x = TENSOR.where(where, x, _OF_NOTHING.get(kind, initial))
    result = getattr(TENSOR, name)(x, axis=axis, keepdims=keepdims)
    if initial is None:
        return result
    if name != kind:  # the result of NaN alone is NaN
        result = TENSOR.where(TENSOR.isnan(result), initial, result)
    return getattr(TENSOR, _COMBINED_BY[kind])(result, initial)


def _average(
    name: str,
    a: Any,
    /,
    *,
    axis: Any = None,
    dtype: Any = None,
    keepdims: bool = False,
    where: Any = True,
    ddof: Any = 0,
    correction: Any = None,
    mean: Any = None,
) -> Any:
    """A mean, variance or standard deviation of the elements for which `where` holds.

    `mean` is the one that the caller has computed, with ``keepdims=True``.
    """
    ddof = ddof if correction is None else correction
    x = tensor(a) if dtype is None else TENSOR.astype(a, dtype)
    if name.startswith("nan"):
        options = {} if name == "nanmean" else {"correction": ddof}
        masked = TENSOR.where(where, x, math.nan)
        return getattr(TENSOR, name)(masked, axis=axis, keepdims=keepdims, **options)
    mask = TENSOR.broadcast_to(where, x.shape)

    def average(values: Any, keep: bool, less: Any = 0) -> Any:
        total = TENSOR.sum(TENSOR.where(mask, values, 0), axis=axis, keepdims=keep)
        count = TENSOR.sum(TENSOR.astype(mask, total.real.dtype), axis=axis, keepdims=keep)
        return total / (count - less)

    if name == "mean":
        return average(x, keepdims)
    distance = TENSOR.abs(TENSOR.where(mask, x - (average(x, True) if mean is None else mean), 0))
    variance = average(distance * distance, keepdims, ddof)
    return variance if name == "var" else TENSOR.sqrt(variance)


def _each(reduce: Callable[..., Any], *names: str) -> dict[str, Callable[..., Any]]:
    return {name: functools.partial(reduce, name) for name in names}


REDUCTIONS = {
    **_each(_reduce, "sum", "prod", "max", "min", "any", "all"),
    **_each(_reduce, "nansum", "nanprod", "nanmax", "nanmin"),
    **_each(_average, "mean", "var", "std", "nanmean", "nanvar", "nanstd"),
}
"""Functions of the arguments of NumPy's reductions, by gpugrad's name of the reduction."""
