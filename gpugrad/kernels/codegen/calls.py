"""A prepared launch of an elementwise kernel, for arrays in one layout."""

from __future__ import annotations

import functools
from collections.abc import Sequence
from typing import Any

import numpy as np

from gpugrad.core.backend import SCALARS
from gpugrad.core.devices import gpu_count
from gpugrad.kernels.codegen.code import Body, Code, compute_dtype
from gpugrad.kernels.codegen.layout import Layout, summed_axes
from gpugrad.kernels.codegen.text import NUMBERS, Kernel
from gpugrad.kernels.runtime.launch import TYPES, cpp_bool, get_kernel, launch, read_source

THREADS = 256
BLOCKS = 132 * 16
"""Most blocks of a launch; a block then takes several parts. 132 is an H100's processors."""


@functools.cache
def prelude() -> str:
    """The headers that precede the text of a generated kernel."""
    names = ("complex.cuh", "functions.cuh", "elementwise.cuh")
    return "".join(map(read_source, names))


class KernelCall:
    """A kernel that computes some results of a formula, for arrays in one layout.

    Args:
        name: names the formula and its dtypes.
        inputs: dtype of each argument, or the type of a Python number.
        body: the lines of the formula.
        results: Code, shape and dtype of each result.
        layout: the layout of the arrays.
    """

    def __init__(
        self,
        name: str,
        inputs: Sequence[Any],
        body: Body,
        results: Sequence[tuple[Code, tuple[int, ...], np.dtype[Any]]],
        layout: Layout,
    ) -> None:
        self._grid, self._block, self._splits = _geometry(layout)
        self._layout, self._results = layout, results
        shape, split = layout.shape, self._splits > 1
        self._parts: list[tuple[tuple[int, ...], np.dtype[Any]]] = []  # arrays the kernel writes
        for (_, own, dtype), fold in zip(results, layout.folded, strict=True):
            if fold is None:
                whole = tuple(shape[k] for k in layout.order)
                later = summed_axes(shape, own)
                self._parts.append((whole, compute_dtype(dtype) if later else dtype))
            elif split:
                self._parts.append(((self._splits, *own), compute_dtype(dtype)))
            else:
                self._parts.append((own, dtype))
        back = tuple(int(k) for k in np.argsort(layout.order))
        self._back = None if back == tuple(range(len(shape))) else back
        places = "".join(layout.place(k) for k in range(len(layout.strides)))
        marks = "".join("w" if f is None else f[0] for f in layout.folded)
        self.name = f"{name}_{places}{marks}{len(layout.dims)}{layout.index[0]}{layout.pack}"
        self.name += f"_{self._block[0]}" + "s" * split
        kernel = Kernel(
            self.name,
            inputs,
            body,
            [c for c, _, _ in results],
            [d for _, d in self._parts],
            layout,
            self._block,
        )
        self.source = prelude() + kernel.text
        self._sizes = kernel.sizes()
        self._has_numbers = any(i in SCALARS for i in inputs)
        self._kernel: Any = None  # kept only if there is one GPU

        self._empty = 0 in shape
        self._done = not (split or self._empty or self._back) and all(
            part == own for (part, _), (_, own, _) in zip(self._parts, results, strict=True)
        )

    def run(self, kind: Any, args: Sequence[Any]) -> list[Any]:
        """The results, as arrays of type `kind`."""
        parts = [kind(shape, dtype) for shape, dtype in self._parts]
        if not self._empty:
            if self._has_numbers:
                args = [NUMBERS[type(a)](a) if type(a) in NUMBERS else a for a in args]
            params = (*args, *parts, *self._sizes)
            if kind is np.ndarray:
                launch(self.source, self.name, self._grid, self._block, params)
            else:
                kernel = self._kernel or self._get_kernel()
                kernel(self._grid, self._block, params)
        if self._done:  # the kernel has written the results themselves
            return parts
        arrays = []
        for part, fold, (_, shape, dtype) in zip(
            parts, self._layout.folded, self._results, strict=True
        ):
            if fold is None:
                part = part if self._back is None else part.transpose(self._back)
                arrays.append(part if part.shape == shape else _sum_to_shape(part, shape, dtype))
            elif self._empty:
                arrays.append(_zeros(part, shape, dtype))
            elif self._splits > 1:
                arrays.append(_sum_partials(kind, part, shape, dtype))
            else:
                arrays.append(part)
        return arrays

    def _get_kernel(self) -> Any:
        kernel = get_kernel(self.source, self.name)
        if gpu_count() == 1:
            self._kernel = kernel
        return kernel


def _zeros(part: Any, shape: tuple[int, ...], dtype: Any) -> Any:
    """The sum of an empty array."""
    out = type(part)(shape, dtype)
    out[...] = 0
    return out


def _geometry(layout: Layout) -> tuple[tuple[int, ...], tuple[int, int], int]:
    """Grid, block, and the number of parts that a sum is split into."""
    fold = next((f for f in layout.folded if f), None)
    parts = -(-layout.columns // layout.pack)
    if fold is None:
        return (_blocks(layout.rows * parts, THREADS),), (THREADS, 1), 1
    if fold == "columns":
        wide = 32 if layout.rows > 1 and parts <= 512 else THREADS
        across = _blocks(layout.rows, THREADS // wide)
        splits = max(1, min(-(-parts // (4 * wide)), 2 * 264 // across))
        return (across, splits), (wide, THREADS // wide), splits
    wide = min(32, 1 << (parts - 1).bit_length())
    across, tall = _blocks(parts, wide), THREADS // wide
    splits = max(1, min(-(-layout.rows // (4 * tall)), 2 * 264 // across))
    if layout.rows <= 16 * tall:  # 16 elements a thread are not worth a second launch
        splits = 1
    return (across, splits), (wide, tall), splits


def _blocks(n: int, each: int) -> int:
    return max(1, min(-(-n // each), BLOCKS))


def _sum_partials(kind: Any, part: Any, shape: tuple[int, ...], dtype: Any) -> Any:
    """The sum of partial results over their first axis."""
    out, splits = kind(shape, dtype), part.shape[0]
    n = out.size
    few = n < THREADS
    types = f"{TYPES[part.dtype]}, {TYPES[np.dtype(dtype)]}, {cpp_bool(few)}"
    grid = -(-n * (32 if few else 1) // THREADS)
    launch(
        prelude(),
        f"fold_partials<{types}>",
        grid,
        THREADS,
        (part, out, np.int32(splits), np.int64(n)),
    )
    return out


def _sum_to_shape(whole: Any, shape: tuple[int, ...], dtype: Any) -> Any:
    """A sum over axes that are neither rows nor columns; or a reshape by axes of length 1."""
    axes = tuple(sorted(summed_axes(whole.shape, shape)))
    if not axes:
        return whole.reshape(shape)
    return whole.sum(axis=axes, keepdims=True).reshape(shape).astype(dtype, copy=False)
