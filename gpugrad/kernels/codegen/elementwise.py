"""Generates and launches kernels of elementwise functions with several results and sums of them.

An `Elementwise` is a function of the elements of arrays, written as CUDA by `Code`. It is compiled
once per layout of its arrays: contiguous arrays are read and written 16 bytes at a time, others by
strides. Results may be sums over leading or trailing axes, as for the gradient of a broadcast
input; one pass then reads each array once, whatever is summed.

For ``tanh`` of a contiguous float32 array the source is::

    static __device__ __forceinline__ void tanh_f4_each(const float x0, float& y0) {
      const float v0 = x0;
      const float v1 = tanh(v0);
      y0 = v1;
    }
    __global__ void __launch_bounds__(256, 1) tanh_f4_f4_fw1i4_256(
        const float* __restrict__ a0, float* __restrict__ r0, int rows, int columns) {
      for (int at = blockIdx.x * blockDim.x + threadIdx.x; at < (columns + 3) / 4;
           at += gridDim.x * blockDim.x) {
        const int column = at * 4;
        ...
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from gpugrad.core.backend import HALF, SCALARS
from gpugrad.core.devices import gpu_count
from gpugrad.kernels.codegen.code import Body, cast, compute_dtype
from gpugrad.kernels.codegen.element_kernel import NUMBERS, ElementKernel
from gpugrad.kernels.codegen.layout import Layout, lay_out, summed_axes
from gpugrad.kernels.runtime.launch import TYPES, cpp_bool, get_kernel, headers, launch, pointer

THREADS = 256
BLOCKS = 132 * 16
"""Most blocks of a launch; a block then takes several parts. 132 is an H100's processors."""


def prelude() -> str:
    """The headers that precede the text of a generated kernel."""
    return headers("complex.cuh", "functions.cuh", "elementwise.cuh")


class Elementwise:
    """A function of elements, as CUDA kernels.

    Args:
        name: part of the kernels' names.
        inputs: dtype of each argument, or the type of a Python number, which is weak and passed
            with each call.
        formula: function of one Code per input that returns one result per entry of `dtypes`.
        dtypes: dtypes of the results.

    Raises:
        NoCodeError: the formula is not straight-line CUDA.
    """

    def __init__(
        self,
        name: str,
        inputs: Sequence[Any],
        formula: Callable[..., Sequence[Any]],
        dtypes: Sequence[Any],
    ) -> None:
        self.inputs = tuple(i if i in SCALARS else np.dtype(i) for i in inputs)
        self.dtypes = tuple(map(np.dtype, dtypes))
        body = Body()
        codes = [body.input(f"x{k}", i) for k, i in enumerate(self.inputs)]
        results = formula(*codes)
        self.results = [
            cast(body, r, compute_dtype(d)) for r, d in zip(results, self.dtypes, strict=True)
        ]
        self.body = body
        kinds = "".join(f"n{i.__name__[0]}" if i in SCALARS else _letter(i) for i in self.inputs)
        self.name = f"{name}_{kinds}_{''.join(map(_letter, self.dtypes))}"
        self._ready: dict[Any, Callable[[Sequence[Any]], Any]] = {}
        self._has_ints = int in self.inputs
        whole = [np.iinfo(i) for i in self.inputs if i not in SCALARS and i.kind in "iu"]
        self._low = max((i.min for i in whole), default=-(2**63))
        self._high = min([2**63 - 1, *(i.max for i in whole)])  # an int is passed as an int64

    def __call__(self, *args: Any, shapes: Sequence[Any] | None = None) -> list[Any] | Any:
        """The results, as arrays of the arguments' type.

        Args:
            args: arrays and Python numbers, as in `inputs`.
            shapes: shape of each result: None for the broadcast shape of all arguments, or a shape
                with 1 in some leading or some trailing axes, over which the result is summed.

        Returns:
            List of arrays; NotImplemented if an array's strides are not multiples of its itemsize,
            or an int does not fit into the arrays' dtype.
        """
        places = tuple(
            [(a.shape, a.strides, pointer(a) & 15) for a in args if type(a) not in NUMBERS]
        )
        key = places, shapes and tuple(shapes)
        run = self._ready.get(key)
        if run is None:
            run = remember(self._ready, key, self.prepare(args, shapes))
        return run(args)

    def prepare(
        self, args: Sequence[Any], shapes: Sequence[Any] | None = None
    ) -> Callable[[Sequence[Any]], Any]:
        """The function of arguments with this layout that `__call__` runs."""
        arrays = [a for a in args if type(a) not in NUMBERS]
        aligned = not any(pointer(a) & 15 for a in arrays)
        calls = self._make_calls(arrays, aligned, shapes or (None,) * len(self.dtypes))
        if calls is None:
            return decline
        kind, (_, first) = type(arrays[0]), calls[0]
        run = functools.partial(first.run, kind)
        if len(calls) > 1:
            run = functools.partial(self._run_all, calls, kind)
        return functools.partial(self._run_if_ints_fit, run) if self._has_ints else run

    def _run_all(
        self, calls: Sequence[tuple[list[int], _KernelCall]], kind: Any, args: Any
    ) -> list[Any]:
        results: list[Any] = [None] * len(self.dtypes)
        for at, call in calls:
            for k, result in zip(at, call.run(kind, args), strict=True):
                results[k] = result
        return results

    def _run_if_ints_fit(self, run: Any, args: Sequence[Any]) -> Any:
        fit = all(self._low <= a <= self._high for a in args if type(a) is int)
        return run(args) if fit else NotImplemented

    def _make_calls(self, arrays: Sequence[Any], aligned: bool, shapes: Sequence[Any]) -> Any:
        """For each kernel: the indices of its results, and its call; None for odd strides."""
        shape = np.broadcast_shapes(*[a.shape for a in arrays])
        sizes = [a.dtype.itemsize for a in arrays]
        if any(s % size for a, size in zip(arrays, sizes, strict=True) for s in a.strides):
            return None
        strides = [
            (0,) * (len(shape) - a.ndim)
            + tuple(s // size if d > 1 else 0 for s, d in zip(a.strides, a.shape, strict=True))
            for a, size in zip(arrays, sizes, strict=True)
        ]
        own = [shape if s is None else s for s in shapes]
        calls = []
        for at in self._groups(shape, own):
            results = [(own[k], self.dtypes[k].itemsize) for k in at]
            layout = lay_out(shape, strides, sizes, results, aligned)
            calls.append((at, _KernelCall(self, at, [own[k] for k in at], layout)))
        return calls

    def _groups(self, shape: tuple[int, ...], own: Sequence[tuple[int, ...]]) -> list[list[int]]:
        """Results by kernel: one kernel writes unsummed results and sums over the same axes."""
        groups: dict[Any, list[int]] = {}
        for k, s in enumerate(own):
            groups.setdefault(summed_axes(shape, s), []).append(k)
        whole = groups.pop(frozenset(), [])
        first, *rest = groups.values() or [[]]
        return [sorted(whole + first), *rest]


class _KernelCall:
    """A kernel that computes some results of a formula, for arrays in one layout.

    Args:
        of: the function.
        at: indices of the results that it computes.
        own: their shapes.
        layout: the layout of the arrays.
    """

    def __init__(
        self, of: Elementwise, at: Sequence[int], own: Sequence[tuple[int, ...]], layout: Layout
    ) -> None:
        dtypes = [of.dtypes[k] for k in at]
        self._grid, self._block, self._splits = _geometry(layout)
        self._layout, self._results = layout, [*zip(own, dtypes, strict=True)]
        shape, split = layout.shape, self._splits > 1
        self._parts: list[tuple[tuple[int, ...], np.dtype[Any]]] = []  # arrays the kernel writes
        for (result, dtype), fold in zip(self._results, layout.folded, strict=True):
            if fold is None:
                whole = tuple(shape[k] for k in layout.order)
                later = summed_axes(shape, result)
                self._parts.append((whole, compute_dtype(dtype) if later else dtype))
            elif split:
                self._parts.append(((self._splits, *result), compute_dtype(dtype)))
            else:
                self._parts.append((result, dtype))
        back = tuple(int(k) for k in np.argsort(layout.order))
        self._back = None if back == tuple(range(len(shape))) else back
        places = "".join(layout.place(k) for k in range(len(layout.strides)))
        marks = "".join("w" if f is None else f[0] for f in layout.folded)
        some = "" if len(at) == len(of.dtypes) else f"_{'_'.join(map(str, at))}"
        self.name = f"{of.name}{some}_{places}{marks}{len(layout.dims)}{layout.index[0]}"
        self.name += f"{layout.pack}_{self._block[0]}" + "s" * split
        types, codes = [d for _, d in self._parts], [of.results[k] for k in at]
        kernel = ElementKernel(self.name, of.inputs, of.body, codes, types, layout, self._block)
        self.source = prelude() + kernel.text
        self._sizes = kernel.sizes
        self._has_numbers = any(i in SCALARS for i in of.inputs)
        self._kernel: Any = None  # kept only if there is one GPU

        self._empty = 0 in shape
        self._done = not (split or self._empty or self._back) and all(
            part == own for (part, _), (own, _) in zip(self._parts, self._results, strict=True)
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
        for part, fold, (shape, dtype) in zip(
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


def decline(args: Sequence[Any]) -> Any:
    """Return NotImplemented: the prepared function of arguments without a kernel."""
    return NotImplemented


def remember(ready: dict[Any, Any], key: Any, value: Any) -> Any:
    """Store `value` under `key` and return it; clears a dict of more than 1,000 entries."""
    if len(ready) > 1000:
        ready.clear()
    ready[key] = value
    return value


def _letter(dtype: np.dtype[Any]) -> str:
    return "bf" if dtype in HALF and dtype.char != "e" else f"{dtype.kind}{dtype.itemsize}"
