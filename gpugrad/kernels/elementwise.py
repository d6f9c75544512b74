"""Writes and launches kernels of elementwise functions, with several results and sums of them.

An `Elementwise` is a function of the elements of arrays, written as CUDA by `Code`. It is compiled
once for each way in which its arrays lie: contiguous ones are read and written 16 bytes at a time,
others by strides. Results may be sums over leading or trailing axes, as gradients of what was
broadcast are: then one pass reads each array once, whatever is summed.

For ``tanh`` of a contiguous float32 array the source is::

    static __device__ __forceinline__ void tanh_f4_each(const float x0, float& y0) {
      const float v0 = x0;
      const float v1 = tanh(v0);
      y0 = v1;
    }
    __global__ void __launch_bounds__(256) tanh_f4_f4i(
        const float* __restrict__ a0, float* __restrict__ r0, int rows, int columns) {
      for (int at = blockIdx.x * blockDim.x + threadIdx.x; at < (columns + 3) / 4;
           at += gridDim.x * blockDim.x) {
        const int column = at * 4;
        ...
"""

from __future__ import annotations

import dataclasses
import functools
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from gpugrad.backend import HALF, SCALARS
from gpugrad.kernels.code import Body, cast, compute_dtype
from gpugrad.kernels.launch import TYPES, launch, pointer
from gpugrad.kernels.layout import Layout, lay_out
from gpugrad.kernels.text import NUMBERS, Kernel

__all__ = ["Elementwise", "prelude"]

THREADS = 256
BLOCKS = 132 * 16
"""So many blocks at most; each then takes several parts. A multiple of what an H100 runs."""

_HOME = Path(__file__).parent


@functools.cache
def prelude() -> str:
    """What stands before the text of a generated kernel."""
    names = ("complex.cuh", "functions.cuh", "elementwise.cuh")
    return "".join((_HOME / name).read_text() for name in names)


@dataclasses.dataclass
class _Call:
    """All that calls with arrays that lie alike have in common.

    Attributes:
        parts: shape and dtype of what the kernel writes, for each result.
        splits: of how many partial results the sums are made.
        sums: axes over which what was written is summed in the end, for each result.
        back: the order of axes of the results as they were written, if it is another.
    """

    layout: Layout
    source: str
    name: str
    grid: tuple[int, ...]
    block: tuple[int, int]
    sizes: tuple[Any, ...]
    splits: int
    parts: tuple[Any, ...]
    shapes: tuple[tuple[int, ...], ...]
    back: tuple[int, ...] | None


class Elementwise:
    """A function of elements, as CUDA kernels.

    Args:
        name: part of the kernels' names.
        inputs: dtype of each argument; the type of a Python number, which is weak and passed at
            each call.
        formula: function of as many Codes that returns as many results as `dtypes` has.
        dtypes: of the results.

    Raises:
        NoCodeError: the formula is no straight line of CUDA.
    """

    def __init__(
        self, name: str, inputs: Sequence[Any], formula: Callable[..., Sequence[Any]],
        dtypes: Sequence[Any],
    ) -> None:  # fmt: skip
        self.inputs = tuple(i if i in SCALARS else np.dtype(i) for i in inputs)
        self.dtypes = tuple(map(np.dtype, dtypes))
        body = Body()
        codes = [body.input(f"x{k}", i) for k, i in enumerate(self.inputs)]
        results = formula(*codes)
        self._results = [
            cast(body, r, compute_dtype(d)) for r, d in zip(results, self.dtypes, strict=True)
        ]
        self._lines = body.lines(self._results)
        kinds = "".join("n" if i in SCALARS else _letter(i) for i in self.inputs)
        self.name = f"{name}_{kinds}_{''.join(map(_letter, self.dtypes))}"
        self._calls: dict[Any, _Call] = {}
        whole = [np.iinfo(i) for i in self.inputs if i not in SCALARS and i.kind in "iu"]
        self._low = max((i.min for i in whole), default=-(2**63))
        self._high = min((i.max for i in whole), default=2**63 - 1)

    def __call__(self, *args: Any, shapes: Sequence[Any] | None = None) -> list[Any] | Any:
        """The results, as arrays of the kind of the arguments.

        Args:
            args: bare arrays and Python numbers, as `inputs` says.
            shapes: of each result: that of all arguments together (also None), or one that has 1
                in some leading or some trailing axes, over which the result is summed.

        Returns:
            List of arrays; NotImplemented where an array's elements do not lie at whole strides,
            or an int is none of the arrays' dtype.
        """
        for a in args:
            if type(a) is int and not self._low <= a <= self._high:
                return NotImplemented
        arrays = [a for a in args if type(a) not in SCALARS]
        places = [(a.shape, a.strides, pointer(a) & 15) for a in arrays]
        key = tuple(places), shapes and tuple(shapes)
        call = self._calls.get(key)
        if call is None:
            aligned = not any(p[2] for p in places)
            made = self._prepare(arrays, aligned, shapes or (None,) * len(self.dtypes))
            if made is None:
                return NotImplemented
            if len(self._calls) > 1000:
                self._calls.clear()
            call = self._calls[key] = made
        return self._run(call, type(arrays[0]), args)

    def _prepare(self, arrays: Sequence[Any], aligned: bool, shapes: Sequence[Any]) -> Any:
        shape = np.broadcast_shapes(*[a.shape for a in arrays])
        sizes = [a.dtype.itemsize for a in arrays]
        if any(s % size for a, size in zip(arrays, sizes, strict=True) for s in a.strides):
            return None
        strides = [
            (0,) * (len(shape) - a.ndim)
            + tuple(s // size if d > 1 else 0 for s, d in zip(a.strides, a.shape, strict=True))
            for a, size in zip(arrays, sizes, strict=True)
        ]
        full = [shape if s is None else (1,) * (len(shape) - len(s)) + s for s in shapes]
        results = [(s, d.itemsize) for s, d in zip(full, self.dtypes, strict=True)]
        layout = lay_out(shape, strides, sizes, results, aligned)
        grid, block, splits = _geometry(layout)
        types, parts = [], []
        for own, f, dtype in zip(full, layout.folded, self.dtypes, strict=True):
            later = (f is None and own != shape) or (splits > 1 and f is not None)
            types.append(compute_dtype(dtype) if later else dtype)
            if f is None:
                parts.append((tuple(shape[k] for k in layout.order), types[-1]))
            else:
                parts.append(((splits, *own) if splits > 1 else own, types[-1]))
        marks = "".join("w" if f is None else f[0] for f in layout.folded)
        places = "".join(layout.place(k) for k in range(len(arrays)))
        name = f"{self.name}_{places}{marks}{len(layout.dims)}{layout.index[0]}{layout.pack}"
        name += f"_{block[0]}" + "s" * (splits > 1)
        kernel = Kernel(name, self.inputs, self._lines, self._results, types, layout, block)
        back = tuple(int(k) for k in np.argsort(layout.order))
        return _Call(
            layout, prelude() + kernel.text, name, grid, block, tuple(kernel.sizes()), splits,
            tuple(parts), tuple(shape if s is None else s for s in shapes),
            None if back == tuple(range(len(shape))) else back,
        )  # fmt: skip

    def _run(self, call: _Call, kind: Any, args: Sequence[Any]) -> list[Any]:
        parts = [kind(shape, dtype) for shape, dtype in call.parts]
        given = [NUMBERS[type(a)](a) if type(a) in NUMBERS else a for a in args]
        if 0 not in call.layout.shape:
            launch(call.source, call.name, call.grid, call.block, (*given, *parts, *call.sizes))
        made = []
        for part, fold, shape, dtype in zip(
            parts, call.layout.folded, call.shapes, self.dtypes, strict=True
        ):
            if fold is None:
                part = part if call.back is None else part.transpose(call.back)
                made.append(part if part.shape == shape else _summed(part, shape, dtype))
            elif call.splits > 1:
                made.append(_folded(kind, part, shape, dtype))
            else:
                made.append(part if part.shape == shape else part.reshape(shape))
        return made


def _geometry(layout: Layout) -> tuple[tuple[int, ...], tuple[int, int], int]:
    """Grid and block, and into how many parts a sum is split."""
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
    across = _blocks(parts, wide)
    splits = max(1, min(-(-layout.rows // (4 * THREADS // wide)), 2 * 264 // across))
    return (across, splits), (wide, THREADS // wide), splits


def _blocks(n: int, each: int) -> int:
    return max(1, min(-(-n // each), BLOCKS))


def _folded(kind: Any, part: Any, shape: tuple[int, ...], dtype: Any) -> Any:
    """The sum of the partial results in front of the axes of `shape`."""
    out, splits = kind(shape, dtype), part.shape[0]
    n = out.size
    few = n < THREADS
    types = f"{TYPES[part.dtype]}, {TYPES[np.dtype(dtype)]}, {str(few).lower()}"
    grid = -(-n * (32 if few else 1) // THREADS)
    launch(prelude(), f"fold_partials<{types}>", grid, THREADS,
           (part, out, np.int32(splits), np.int64(n)))  # fmt: skip
    return out


def _summed(whole: Any, shape: tuple[int, ...], dtype: Any) -> Any:
    """What is summed over other axes than rows or columns."""
    more = whole.ndim - len(shape)
    axes = tuple(range(more)) + tuple(
        k + more for k, d in enumerate(shape) if d == 1 and whole.shape[k + more] != 1
    )
    return whole.sum(axis=axes, keepdims=True).reshape(shape).astype(dtype, copy=False)


def _letter(dtype: np.dtype[Any]) -> str:
    return "bf" if dtype in HALF and dtype.char != "e" else f"{dtype.kind}{dtype.itemsize}"
