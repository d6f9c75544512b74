"""Arguments as NumPy reads them: lists with floats are float64 arrays."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from gpugrad.core.backend import SCALARS, is_array
from gpugrad.core.devices import put
from gpugrad.core.from_python import numbers_only
from gpugrad.core.tensor import Tensor, holds_tensor, wrap


def doubles(values: Sequence[Any], are_lists: bool = False) -> list[Any]:
    """Arrays as NumPy reads them: floats in lists are float64, a number beside an array is weak."""
    if are_lists:
        return [
            on_their_device([_array(x) for x in v], v) if type(v) in (list, tuple) else v
            for v in values
        ]
    read = [as_double(v) if isinstance(v, (list, tuple)) else v for v in values]
    if any(isinstance(v, Tensor) or is_array(v) for v in read):
        return on_their_device(read, values)
    return [np.asarray(v) if type(v) in SCALARS else v for v in read]


def _array(value: Any) -> Any:
    """An element of a list of arrays: lists of integers are not weak beside floats."""
    is_list = isinstance(value, (list, tuple)) and bool(value) and numbers_only(value)
    return np.asarray(value) if is_list else as_double(value)


def on_their_device(read: list[Any], given: Sequence[Any]) -> list[Any]:
    """Values with the arrays that were `given` as lists on the GPU of the Tensors beside them."""
    if not any(type(v) in (list, tuple) for v in given):
        return read
    home = next((v.device for v in given if isinstance(v, Tensor)), None)
    if home is None or home.kind == "cpu":
        return read
    made = (type(x) is np.ndarray and v is not x for x, v in zip(read, given, strict=False))
    return [wrap(put(x, home)) if new else x for x, new in zip(read, made, strict=True)]


def as_double(value: Any) -> Any:
    """A list of numbers as an array, if it has floats; other lists may be axes or shapes."""
    if isinstance(value, (list, tuple)) and value and numbers_only(value):
        try:
            array = np.asarray(value)
        except ValueError:  # a list of arrays of several shapes
            return type(value)(as_double(v) for v in value)
        return array if array.dtype.kind in "fc" else value
    if isinstance(value, list):
        if holds_tensor(value):
            return on_their_device([_array(v) for v in value], value)
        return [as_double(v) for v in value]
    return value
