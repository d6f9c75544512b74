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
from gpugrad.kernels.codegen.code import Body, cast, compute_dtype
from gpugrad.kernels.codegen.code_reading import LIB
from gpugrad.kernels.codegen.element_kernel import NUMBERS, ElementKernel, prelude
from gpugrad.kernels.codegen.layout import lay_out, summed_axes
from gpugrad.kernels.runtime.launch import pointer


class Elementwise:
    """A function of elements, as CUDA kernels.

    Args:
        name: part of the kernels' names.
        inputs: dtype of each argument, or the type of a Python number, which is weak and passed
            with each call.
        formula: function of one Code per input that returns one result per entry of `dtypes`.
        dtypes: dtypes of the results.
        head: the text before the kernels, if it is not `prelude`.

    Raises:
        NoCodeError: the formula is not straight-line CUDA.
    """

    def __init__(
        self,
        name: str,
        inputs: Sequence[Any],
        formula: Callable[..., Sequence[Any]],
        dtypes: Sequence[Any],
        head: str = "",
    ) -> None:
        self.head = head or prelude()
        self.inputs = tuple(i if i in SCALARS else np.dtype(i) for i in inputs)
        self.dtypes = tuple(map(np.dtype, dtypes))
        body = Body(LIB)
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
        self, calls: Sequence[tuple[list[int], ElementKernel]], kind: Any, args: Any
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
            calls.append((at, ElementKernel(self, at, [own[k] for k in at], layout)))
        return calls

    def _groups(self, shape: tuple[int, ...], own: Sequence[tuple[int, ...]]) -> list[list[int]]:
        """Results by kernel: one kernel writes unsummed results and sums over the same axes."""
        groups: dict[Any, list[int]] = {}
        for k, s in enumerate(own):
            groups.setdefault(summed_axes(shape, s), []).append(k)
        whole = groups.pop(frozenset(), [])
        first, *rest = groups.values() or [[]]
        return [sorted(whole + first), *rest]


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
