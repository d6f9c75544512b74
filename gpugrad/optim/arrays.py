"""Optimizer steps on plain arrays: in place, in blocks, with as few passes as possible.

A step is bound by memory bandwidth. On the CPU it processes flat arrays block by block, so that
all passes but the first find a block in the cache, and several threads share the blocks. On a GPU
a block is the whole array.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from gpugrad.core.backend import HALF, READINGS
from gpugrad.core.devices import copy_array, formulas_on
from gpugrad.core.tensor import is_shared
from gpugrad.core.variable import Variable
from gpugrad.ops.arrays.index_rules import add_at

BLOCK = 65_536
"""Elements of a block: Adam's five float32 arrays then fill about 1 MiB of cache."""

PART = 1 << 20
"""Least elements of a part of a step that is worth a thread: 4 ms of Adam."""


class Average:
    """An average, stored as ``array * scale``: see `gpugrad.optim.rules`."""

    __slots__ = ("array", "scale")

    def __init__(self, array: Any, scale: float = 1.0) -> None:
        self.array, self.scale = array, scale

    def multiply_out(self) -> Any:
        """Apply the scale to the array and return it; kernels take arrays without a scale."""
        if self.scale != 1:
            self.array *= self.scale
            self.scale = 1.0
        return self.array


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
        data = arrays[k]  # `enumerate` would hold another reference
        if is_shared(data, 2):  # the list and `data`
            arrays[k] = copy_array(data)
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


Step = tuple[Callable[..., None], Sequence[Any], int]
"""A function that updates blocks, its arrays (p, g, averages), and its number of scratch arrays."""


def split_work(work: Sequence[Step]) -> list[tuple[list[Step]]]:
    """Split steps on flat arrays into steps on blocks, in groups that are worth a thread."""
    groups: list[list[Step]] = [[]]
    size = 0
    for step, arrays, scratch in work:
        n = arrays[0].size
        for start in range(0, n, BLOCK):
            if size >= PART:
                groups.append([])
                size = 0
            block = arrays if n <= BLOCK else [a[start : start + BLOCK] for a in arrays]
            groups[-1].append((step, block, scratch))
            size += BLOCK
    return [(group,) for group in groups]


def run_steps(part: Sequence[Step]) -> None:
    """Run steps on blocks; 16-bit floats are computed in float32 and rounded once at the end."""
    ready: dict[Any, Any] = {}  # most blocks share their scratch arrays
    for step, (p, g, *rest), n in part:
        key = p.size, p.dtype
        scratch = ready.get(key)
        if scratch is None:
            ready.clear()
            dtype = state_dtype(p.dtype)
            scratch = ready[key] = [np.empty(p.size, dtype) for _ in range(n)]
        if p.dtype in HALF:
            p32 = p.astype(np.float32)
            step(p32, g.astype(np.float32), *rest, scratch)
            p[...] = p32
        else:
            step(p, g, *rest, scratch)
