"""The plain arrays of an optimizer's step: contiguous, real, flat, and seen by nobody else."""

from __future__ import annotations

import functools
import sys
from typing import Any

import numpy as np

from gpugrad.core.backend import HALF, READINGS
from gpugrad.core.devices import copy_array, formulas_on
from gpugrad.core.tensor import ALONE, borrows_memory
from gpugrad.core.variable import Variable
from gpugrad.ops.arrays.index_rules import add_at

_IN_CACHE = 1 << 16


@functools.cache
def state_dtype(dtype: np.dtype[Any]) -> np.dtype[Any]:
    """The real dtype of averages for a dtype; float32 for 16-bit floats, which round too much."""
    if dtype in HALF:
        return np.dtype(np.float32)
    return np.zeros(0, dtype).real.dtype


def as_reals(array: Any) -> Any:
    """The array in C order, or a copy; complex numbers as pairs of reals, in one dimension."""
    if not array.flags.c_contiguous:
        array = copy_array(array)
    return array.reshape(-1).view(state_dtype(array.dtype)) if array.dtype.kind == "c" else array


def ravel_reals(array: Any) -> Any:
    """The same as a view of one dimension."""
    line = as_reals(array)
    return line if line.ndim == 1 else line.reshape(-1)


def own_contiguous(variable: Variable) -> Any:
    """The Variable's array, made exclusive and C-contiguous by a copy where needed."""
    data = variable._own()
    if not data.flags.c_contiguous:
        data = variable._data = _contiguous(data)
    return data


def make_own(arrays: list[Any]) -> list[Any]:
    """The list, with copies of the arrays that others see too, all of them C-contiguous."""
    for k in range(len(arrays)):
        # `enumerate` would hold another reference
        if sys.getrefcount(arrays[k]) > ALONE or borrows_memory(arrays[k]):
            arrays[k] = copy_array(arrays[k])
        if not arrays[k].flags.c_contiguous:
            arrays[k] = _contiguous(arrays[k])
    return arrays


def _contiguous(data: Any) -> Any:
    with formulas_on(data):
        return READINGS[type(data)].lib.array(data, order="C", copy=True)


def count_reals(array: Any) -> int:
    """The number of real numbers in an array or a Variable."""
    return int(array.size) * (2 if array.dtype.kind == "c" else 1)


def sum_rows(indices: Any, values: Any) -> tuple[Any, Any]:
    """The distinct indices, and the sums of their rows; 16-bit floats are summed in float32."""
    xp = READINGS[type(values)]
    if values.dtype in HALF:
        values = values.astype(np.float32)
    distinct, inverse = xp.lib.unique(indices, return_inverse=True)
    sums = xp.lib.zeros((distinct.size, *values.shape[1:]), dtype=values.dtype)
    add_at("apply_gradients", xp, sums, (inverse.reshape(-1),), values)
    return distinct, sums


def drop_subnormals(array: Any) -> None:
    """Set the subnormal numbers of a flat array to 0.

    An average that only decays ends at the smallest ones and stays there, because 0.9 of them is
    rounded up, and a pass over subnormals takes a CPU 45 times as long.
    """
    least = np.finfo(array.dtype).smallest_normal
    with np.errstate(all="ignore"):
        for start in range(0, array.size, _IN_CACHE):
            part = array[start : start + _IN_CACHE]
            np.putmask(part, np.abs(part) < least, 0)
