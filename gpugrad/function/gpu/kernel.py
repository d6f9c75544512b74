"""A `FusedKernel`, written as CUDA and launched on plain arrays.

A kernel whose only reductions are final sums is elementwise: see `kernels.codegen.elementwise`. A
kernel that reduces along rows works row by row.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from gpugrad.core.backend import Reading
from gpugrad.function.gpu.codegen import KernelCode
from gpugrad.function.gpu.row_kernels import MOST_BLOCKS, RowKernel
from gpugrad.function.passes.fuse import FusedKernel, count_of_mean, reduction
from gpugrad.kernels.by_hand.partial_sums import Sums, end_or_wait
from gpugrad.kernels.codegen.calls import prelude
from gpugrad.kernels.codegen.code import Code, compute_dtype
from gpugrad.kernels.codegen.elementwise import Elementwise
from gpugrad.kernels.runtime.launch import launch, type_name
from gpugrad.trace.program import Step, Value

ROWS = 32
"""Threads that share a column of partial sums: one thread would wait for each load in turn."""


def compile_kernel(kernel: FusedKernel) -> Callable[[Reading, Sequence[Any]], list[Any]]:
    """The function that launches a kernel, given the namespace and the inputs, and returns results.

    Raises:
        NoCodeError: a step cannot be written as CUDA.
    """
    return _plain(kernel) if kernel.is_plain else RowWise(kernel)


def _plain(kernel: FusedKernel) -> Callable[[Reading, Sequence[Any]], list[Any]]:
    steps = {id(s.outs[0]): s for s in kernel.sums}

    def formula(*codes: Code) -> list[Any]:
        code = KernelCode(kernel, dict(zip(map(id, kernel.inputs), codes, strict=True)))
        results = {id(v): expression for expression, v in code.results}
        results |= {id(s.outs[0]): expression for expression, s in code.sums}
        return [results[id(v)] for v in kernel.outs]

    def shape(v: Value) -> tuple[int, ...] | None:
        step = steps.get(id(v))
        if step is None:
            return None
        columns = kernel.shape[-1:] if reduction(step) == "column" else (1,)
        return (1,) * (len(kernel.shape) - 1) + columns

    shapes = [shape(v) for v in kernel.outs]
    sums = {k: steps[id(v)] for k, v in enumerate(kernel.outs) if id(v) in steps}
    means = {k: count_of_mean(step) for k, step in sums.items() if step.op.reduces == "mean"}
    dtypes = [compute_dtype(v.dtype) if k in means else v.dtype for k, v in enumerate(kernel.outs)]
    function = Elementwise("fused", [v.dtype for v in kernel.inputs], formula, dtypes)

    def run(xp: Reading, arrays: Sequence[Any]) -> list[Any]:
        results = function(*arrays, shapes=shapes)
        if results is NotImplemented:  # a stride is not a whole number of elements
            results = function(*map(xp.lib.ascontiguousarray, arrays), shapes=shapes)
        for k, n in means.items():
            results[k] = (results[k] / n).astype(kernel.outs[k].dtype, copy=False)
        return [a.reshape(v.shape) for a, v in zip(results, kernel.outs, strict=True)]

    return run


class RowWise:
    """A kernel that works row by row, and its launch.

    Attributes:
        source: CUDA C++, with the kernels ``kernel`` and, if it ends with sums, ``ending``.
    """

    def __init__(self, kernel: FusedKernel) -> None:
        self._kernel, self._code = kernel, KernelCode(kernel)
        self._form = RowKernel(self._code)
        self.source = prelude() + self._form.text + self._ending()

    def __call__(self, xp: Reading, arrays: Sequence[Any]) -> list[Any]:
        """Launch on the arrays of the kernel's inputs; returns the arrays of its results."""
        code, form, lib = self._code, self._form, xp.lib
        place = {id(v): k for k, v in enumerate(self._kernel.inputs)}
        inputs = [arrays[place[id(i.value)]] for i in code.inputs]
        inputs = [a if a.flags.c_contiguous else lib.ascontiguousarray(a) for a in inputs]
        results = [lib.empty(v.shape, dtype=v.dtype) for _, v in code.results]
        partials = [lib.empty(form.blocks * self._width(s), dtype=c.dtype) for c, s in code.sums]
        sums = [lib.empty(s.outs[0].shape, dtype=s.outs[0].dtype) for _, s in code.sums]
        launch(self.source, "kernel", form.blocks, form.block, [*inputs, *results, *partials])
        if sums:
            end = functools.partial(self._end, partials, sums)
            columns = [reduction(s) == "column" and s.op.reduces == "sum" for _, s in code.sums]
            if all(columns):
                end_or_wait(Sums(partials, sums, form.blocks, code.columns, end))
            else:
                end()
        outs = {id(v): a for (_, v), a in zip(code.results, results, strict=True)}
        outs |= {id(s.outs[0]): a for (_, s), a in zip(code.sums, sums, strict=True)}
        return [outs[id(v)] for v in self._kernel.outs]

    def _end(self, partials: Sequence[Any], sums: Sequence[Any]) -> None:
        pairs = [a for pair in zip(partials, sums, strict=True) for a in pair]
        width = max(self._width(s) for _, s in self._code.sums)
        blocks = max(1, min(-(-width // 32), MOST_BLOCKS))
        launch(self.source, "ending", blocks, (32, ROWS), [*pairs, np.int32(self._form.blocks)])

    def _width(self, s: Step) -> int:
        return self._code.columns if reduction(s) == "column" else 1

    def _ending(self) -> str:
        """The second kernel: 32 threads per column, or one warp for a sum of all elements."""
        parameters, lines, n = [], [], self._code.columns
        types = {type_name(c.dtype) for c, s in self._code.sums if reduction(s) == "column"}
        lines += [f"__shared__ {t} {_held(t)}[{ROWS}][33];" for t in sorted(types)]
        for k, (code, s) in enumerate(self._code.sums):
            t, out = type_name(code.dtype), type_name(s.outs[0].dtype)
            parameters += [f"const {t}* __restrict__ q{k}", f"{out}* __restrict__ o{k}"]
            mean = f" / ({t})({count_of_mean(s)})" if s.op.reduces == "mean" else ""
            if reduction(s) == "column":
                lines.append(
                    f"for (int start = blockIdx.x * 32; start < {n}; start += gridDim.x * 32) {{\n"
                    f"int j = start + threadIdx.x;\n{t} sum = 0;\n"
                    f"if (j < {n}) for (int b = threadIdx.y; b < parts; b += {ROWS}) "
                    f"sum += q{k}[(long long)b * {n} + j];\n"
                    f"{_held(t)}[threadIdx.y][threadIdx.x] = sum;\n__syncthreads();\n"
                    f"if (threadIdx.y == 0 && j < {n}) {{\n"
                    f"for (int b = 1; b < {ROWS}; ++b) sum += {_held(t)}[b][threadIdx.x];\n"
                    f"o{k}[j] = ({out})(sum{mean});\n}}\n__syncthreads();\n}}"
                )
            else:
                lines.append(
                    f"if (blockIdx.x == 0 && threadIdx.y == 0) {{\n{t} sum = 0;\n"
                    f"for (int b = threadIdx.x; b < parts; b += 32) sum += q{k}[b];\n"
                    f"sum = warp_reduce(sum, Sum());\nif (threadIdx.x == 0) o{k}[0] = "
                    f"({out})(sum{mean});\n}}"
                )
        if not parameters:
            return ""
        bounds = f"__launch_bounds__({32 * ROWS})"
        head = (
            f'extern "C" __global__ void {bounds} ending({", ".join([*parameters, "int parts"])})'
        )
        return "\n".join([f"{head} {{", *lines, "}\n"])


def _held(t: str) -> str:
    """The name of the shared memory of a type; the type may have several words."""
    return f"held_{t.replace(' ', '_')}"
