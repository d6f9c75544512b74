"""What optimizers do to bare arrays: in place, in blocks, with as few passes as there can be.

A step is bound by memory, not by arithmetic. On the CPU it goes over flat arrays block by
block, so that all passes but the first find a block in the cache, and several threads share the
blocks; on a GPU a block is the whole array.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from gpugrad.core.backend import HALF, READINGS
from gpugrad.core.devices import copy_array, formulas_on
from gpugrad.core.variable import Variable

__all__ = [
    "Average",
    "add_scaled",
    "flat",
    "move",
    "parts",
    "reals",
    "scratch",
    "state_dtype",
    "writable",
]

BLOCK = 65_536
"""Elements of a block: the five arrays of Adam in float32 are then about a cache of 1 MiB."""

PART = 1 << 20
"""Elements from which on a part of a step is worth a thread: 4 ms of Adam, see `spread`."""


class Average:
    """A decaying average, kept as ``array * scale``.

    Decaying multiplies `scale` alone. What is added is divided by it, in the same pass
    (`add_scaled`): so a step goes over the array once and not twice. The array is multiplied
    out only when the scale gets small, which with a decay of 0.9 is every 66 steps. So what fades
    becomes 0: multiplied by 0.9 at each step it would end at the smallest subnormal number and
    stay there, and a pass over those takes 45 times as long.
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
        """The array itself, after its scale is made 1: what a kernel takes, as it goes over it."""
        if self.scale != 1:
            self.array *= self.scale
            self.scale = 1.0
        return self.array


def add_scaled(y: Any, a: float, x: Any, scratch: Any) -> None:
    """``y += a * x`` in place; `scratch`, which may be `x`, is ``a * x`` after it."""
    lib = READINGS[type(y)].lib
    lib.multiply(x, a, scratch)
    lib.add(y, scratch, y)


@functools.cache
def state_dtype(dtype: np.dtype[Any]) -> np.dtype[Any]:
    """The real dtype in which averages of a dtype are kept; 16-bit floats would round them off."""
    if dtype in HALF:
        return np.dtype(np.float32)
    return np.zeros(0, dtype).real.dtype


def flat(array: Any) -> Any:
    """A 1-D view of a C-contiguous array, or a copy of another; complex as pairs of reals."""
    if not array.flags.c_contiguous:
        array = copy_array(array)
    line = array.reshape(-1)
    return line.view(state_dtype(line.dtype)) if line.dtype.kind == "c" else line


def writable(variable: Variable) -> Any:
    """The Variable's array, seen by nothing else and C-contiguous: it is copied where it is not."""
    data = variable._own()
    if not data.flags.c_contiguous:
        with formulas_on(data):
            data = variable._data = READINGS[type(data)].lib.array(data, order="C", copy=True)
    return data


def reals(array: Any) -> int:
    """How many real numbers there are in an array, or in a Variable."""
    return int(array.size) * (2 if array.dtype.kind == "c" else 1)


def scratch(p: Any) -> Any:
    """An array for what is computed on the way, for a flat array."""
    return READINGS[type(p)].lib.empty(p.size, dtype=state_dtype(p.dtype))


def parts(work: Sequence[tuple[Callable[..., None], Sequence[Any]]]) -> list[Any]:
    """Steps and flat arrays as steps and blocks, in parts that are worth a thread."""
    made: list[Any] = [[]]
    size = 0
    for step, arrays in work:
        n = arrays[0].size
        for start in range(0, n, BLOCK):
            if size >= PART:
                made.append([])
                size = 0
            block = arrays if n <= BLOCK else [a[start : start + BLOCK] for a in arrays]
            made[-1].append((step, block))
            size += BLOCK
    return [(part,) for part in made]


def move(part: Sequence[tuple[Callable[..., None], Sequence[Any]]]) -> None:
    """Run steps on blocks; of 16-bit floats in float32, rounded once at the end."""
    for step, (p, g, *rest) in part:
        if p.dtype in HALF:
            p32 = p.astype(np.float32)
            step(p32, g.astype(np.float32), *rest, scratch(p))
            p[...] = p32
        else:
            step(p, g, *rest, scratch(p))
