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
from gpugrad.kernels.cpu import optim as cpu_kernels

__all__ = [
    "Average",
    "add_scaled",
    "count_reals",
    "launch_steps",
    "make_own",
    "own_contiguous",
    "ravel_reals",
    "run_steps",
    "scratch_like",
    "split_work",
    "state_dtype",
]

BLOCK = 65_536
"""Elements of a block: Adam's five float32 arrays then fill about 1 MiB of cache."""

PART = 1 << 20
"""Least elements of a part of a step that is worth a thread: 4 ms of Adam."""


class Average:
    """A decaying average, stored as ``array * scale``.

    A decay multiplies only `scale`, and an addition divides by it in the same pass (`add_scaled`),
    so a step passes over the array once instead of twice. The array is multiplied out when the
    scale gets small, every 66 steps for a decay of 0.9. Fading values then become 0. Multiplied by
    0.9 at every step they would end at the smallest subnormal number and stay there, and a pass
    over subnormals takes 45 times as long.
    """

    __slots__ = ("array", "scale")

    def __init__(self, array: Any, scale: float = 1.0) -> None:
        self.array, self.scale = array, scale

    def decay(self, factor: float) -> None:
        """Multiply the average by `factor`."""
        self.scale *= factor
        if self.scale < 2.0**-10:
            self.multiply_out()

    def multiply_out(self) -> Any:
        """Apply the scale to the array and return it; kernels take arrays without a scale."""
        if self.scale != 1:
            self.array *= self.scale
            self.scale = 1.0
        return self.array


def add_scaled(y: Any, a: float, x: Any, scratch: Any) -> None:
    """``y += a * x`` in place; writes ``a * x`` to `scratch`, which may be `x`."""
    lib = READINGS[type(y)].lib
    lib.multiply(x, a, scratch)
    lib.add(y, scratch, y)


@functools.cache
def state_dtype(dtype: np.dtype[Any]) -> np.dtype[Any]:
    """The real dtype of averages for a dtype; float32 for 16-bit floats, which round too much."""
    if dtype in HALF:
        return np.dtype(np.float32)
    return np.zeros(0, dtype).real.dtype


def ravel_reals(array: Any) -> Any:
    """A 1-D view of a C-contiguous array, or a 1-D copy; complex numbers as pairs of reals."""
    if not array.flags.c_contiguous:
        array = copy_array(array)
    line = array.reshape(-1)
    return line.view(state_dtype(line.dtype)) if line.dtype.kind == "c" else line


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


def scratch_like(p: Any) -> Any:
    """An uninitialised array for intermediate results of a step on a flat array."""
    return READINGS[type(p)].lib.empty(p.size, dtype=state_dtype(p.dtype))


def launch_steps(work: Sequence[tuple[Any, Sequence[Any]]]) -> list[Any]:
    """Take the steps that a C kernel takes: those with its name and numbers. Return the others."""
    if sum([arrays[0].size for _, arrays in work]) < cpu_kernels.LEAST:
        return list(work)
    groups: dict[Any, list[Any]] = {}
    for item in work:
        step, arrays = item
        groups.setdefault((getattr(step, "kernel", ""), arrays[0].dtype), []).append(item)
    rest: list[Any] = []
    for (kernel, _), group in groups.items():
        steps, columns = zip(*group, strict=True)
        if not kernel or cpu_kernels.step(kernel, columns, steps) is NotImplemented:
            rest += group
    return rest


def split_work(work: Sequence[tuple[Callable[..., None], Sequence[Any]]]) -> list[Any]:
    """Split steps on flat arrays into steps on blocks, in groups that are worth a thread."""
    groups: list[Any] = [[]]
    size = 0
    for step, arrays in work:
        n = arrays[0].size
        for start in range(0, n, BLOCK):
            if size >= PART:
                groups.append([])
                size = 0
            block = arrays if n <= BLOCK else [a[start : start + BLOCK] for a in arrays]
            groups[-1].append((step, block))
            size += BLOCK
    return [(group,) for group in groups]


def run_steps(part: Sequence[tuple[Callable[..., None], Sequence[Any]]]) -> None:
    """Run steps on blocks; 16-bit floats are computed in float32 and rounded once at the end."""
    for step, (p, g, *rest) in part:
        if p.dtype in HALF:
            p32 = p.astype(np.float32)
            step(p32, g.astype(np.float32), *rest, scratch_like(p))
            p[...] = p32
        else:
            step(p, g, *rest, scratch_like(p))
