"""Results as callers get them: cast, written to ``out=``, as Tensors, or NumPy's own."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from gpugrad.array_api.writes import write
from gpugrad.core.backend import BFLOAT16, TENSOR
from gpugrad.core.devices import adopt, default_device, put
from gpugrad.core.tensor import Tensor, tensor, wrap
from gpugrad.errors import DTypeError


def cast_as(title: str, result: Any, dtype: Any, casting: Any) -> Any:
    """A result in another dtype, if `casting` allows that."""
    if not np.can_cast(result.dtype, dtype, casting):
        raise DTypeError(f"{title}: casting={casting!r} forbids {result.dtype} to {dtype}.")
    return as_dtype(result, dtype)


def as_dtype(x: Any, dtype: Any) -> Any:
    """A number or an array as a Tensor of a dtype; None and strings as they are."""
    if x is None or isinstance(x, str):
        return x
    x, dtype = tensor(x), np.dtype(dtype)
    return TENSOR.astype(TENSOR.real(x) if x.dtype.kind == "c" != dtype.kind else x, dtype)


def write_out(title: str, out: Any, result: Any) -> Any:
    """Write a result to `out`; to a NumPy array only if that cuts no gradient."""
    if isinstance(out, Tensor):
        return write(title, out, result)
    if not isinstance(out, np.ndarray):
        raise DTypeError(f"{title}: out= must be a Tensor or an array, got a {type(out).__name__}.")
    try:
        np.copyto(out, np.asarray(result), casting="same_kind")
    except DTypeError as error:
        raise DTypeError(
            f"{title}: the result would be written to a NumPy array: use x = x + y instead of an "
            f"array's +=, and no out=. {error}"
        ) from None
    return out


def as_tensors(result: Any, given: Sequence[Any] = ()) -> Any:
    """A result of NumPy, with Tensors for its arrays and scalars of numbers.

    An array that is one of the `given` arguments, or a view, is copied: others may write to it. A
    new one becomes the Tensor's own.
    """
    if isinstance(result, Tensor):
        return result
    kind = type(result)
    if kind is np.ndarray or isinstance(result, np.generic):
        if result.dtype.kind in "biufc" or result.dtype == BFLOAT16:
            array = np.asarray(result)
            is_new = array.flags.owndata and not any(array is x for x in given)
            return wrap((adopt if is_new else put)(array, default_device()))
        return result
    if isinstance(result, tuple):
        values = [as_tensors(v, given) for v in result]
        if not hasattr(result, "_fields"):
            return kind(values)
        made = tuple.__new__(kind, values)
        if hasattr(result, "__dict__"):  # SciPy's results have more attributes than elements
            made.__dict__.update({k: as_tensors(v, given) for k, v in vars(result).items()})
        return made
    return [as_tensors(v, given) for v in result] if kind is list else result


def on_values(title: str, function: Any, args: Any, keywords: Any) -> Any:
    """NumPy's result, computed from the values; raises if that would cut a gradient."""

    def values(x: Any) -> Any:
        if isinstance(x, Tensor):
            try:
                return np.asarray(x)
            except DTypeError as error:
                raise DTypeError(
                    f"{title}: gpugrad has no function of that name that accepts these arguments, "
                    f"so NumPy would have to compute it. {error}"
                ) from None
        if type(x) in (list, tuple):
            return type(x)(values(v) for v in x)
        return {k: values(v) for k, v in x.items()} if type(x) is dict else x

    return _writable(function(*values(tuple(args)), **values(dict(keywords))))


def _writable(result: Any) -> Any:
    """A result of NumPy as the caller's own: arrays that are a Tensor's memory are read-only."""
    if type(result) is np.ndarray:
        is_read_only = result.__array_interface__["data"][1]  # `flags` warns of broadcast arrays
        return result.copy(order="K") if is_read_only else result
    return type(result)(map(_writable, result)) if type(result) in (list, tuple) else result
