"""A `Kernel` of a program, written as CUDA and launched on bare arrays.

A kernel that only ends with sums is a function of elements: see `kernels.codegen.elementwise`. One
that reduces along rows works row by row.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from gpugrad.core.backend import Namespace
from gpugrad.function.gpu.codegen import Reading
from gpugrad.function.gpu.row_kernels import MOST_BLOCKS, Rows
from gpugrad.function.passes.fuse import Kernel, reduction
from gpugrad.kernels.codegen.calls import prelude
from gpugrad.kernels.codegen.code import Code, compute_dtype
from gpugrad.kernels.codegen.elementwise import Elementwise
from gpugrad.kernels.runtime.launch import launch, type_name
from gpugrad.trace.program import Step, Value

__all__ = ["RowWise", "compiled"]

ENDING_THREADS = 128


def compiled(kernel: Kernel) -> Callable[[Namespace, Sequence[Any]], list[Any]]:
    """What runs a kernel: of the namespace and the bare arrays of its inputs, those of its outs.

    Raises:
        NoCodeError: a step cannot be written as CUDA.
    """
    return _plain(kernel) if kernel.is_plain else RowWise(kernel)


def _plain(kernel: Kernel) -> Callable[[Namespace, Sequence[Any]], list[Any]]:
    steps = {id(s.outs[0]): s for s in kernel.sums}

    def formula(*codes: Code) -> list[Any]:
        reading = Reading(kernel, dict(zip(map(id, kernel.inputs), codes, strict=True)))
        found = {id(v): code for code, v in reading.results}
        found |= {id(s.outs[0]): code for code, s in reading.sums}
        return [found[id(v)] for v in kernel.outs]

    def shape(v: Value) -> tuple[int, ...] | None:
        step = steps.get(id(v))
        if step is None:
            return None
        columns = kernel.shape[-1:] if reduction(step) == "column" else (1,)
        return (1,) * (len(kernel.shape) - 1) + columns

    shapes = [shape(v) for v in kernel.outs]
    means = {k: _count(steps[id(v)]) for k, v in enumerate(kernel.outs)
             if id(v) in steps and steps[id(v)].op.reduces == "mean"}  # fmt: skip
    dtypes = [compute_dtype(v.dtype) if k in means else v.dtype for k, v in enumerate(kernel.outs)]
    function = Elementwise("fused", [v.dtype for v in kernel.inputs], formula, dtypes)

    def run(xp: Namespace, arrays: Sequence[Any]) -> list[Any]:
        made = function(*arrays, shapes=shapes)
        if made is NotImplemented:  # elements between whole strides
            made = function(*map(xp.lib.ascontiguousarray, arrays), shapes=shapes)
        for k, n in means.items():
            made[k] = (made[k] / n).astype(kernel.outs[k].dtype, copy=False)
        return [a.reshape(v.shape) for a, v in zip(made, kernel.outs, strict=True)]

    return run


def _count(step: Step) -> int:
    """Of how many elements a mean is."""
    return math.prod(step.inputs[0].shape) // max(math.prod(step.outs[0].shape), 1)


class RowWise:
    """A kernel that goes row by row, and what launches it.

    Attributes:
        source: CUDA C++, with the kernels ``kernel`` and, if it ends with sums, ``ending``.
    """

    def __init__(self, kernel: Kernel) -> None:
        self._kernel, self._of = kernel, Reading(kernel)
        self._form = Rows(self._of)
        self.source = prelude() + self._form.text + self._ending()

    def __call__(self, xp: Namespace, arrays: Sequence[Any]) -> list[Any]:
        """Launch on bare arrays of the kernel's inputs; returns those of its results."""
        of, form, lib = self._of, self._form, xp.lib
        place = {id(v): k for k, v in enumerate(self._kernel.inputs)}
        given = [arrays[place[id(i.value)]] for i in of.inputs]
        given = [a if a.flags.c_contiguous else lib.ascontiguousarray(a) for a in given]
        made = [lib.empty(v.shape, dtype=v.dtype) for _, v in of.results]
        parts = form.blocks * form.block[1]
        partials = [lib.empty(parts * self._width(s), dtype=c.dtype) for c, s in of.sums]
        ends = [lib.empty(s.outs[0].shape, dtype=s.outs[0].dtype) for _, s in of.sums]
        launch(self.source, "kernel", form.blocks, form.block, [*given, *made, *partials])
        if ends:
            pairs = [a for pair in zip(partials, ends, strict=True) for a in pair]
            width = max(self._width(s) for _, s in of.sums)
            blocks = max(1, min(-(-width // ENDING_THREADS), MOST_BLOCKS))
            launch(self.source, "ending", blocks, ENDING_THREADS, [*pairs, np.int32(parts)])
        found = {id(v): a for (_, v), a in zip(of.results, made, strict=True)}
        found |= {id(s.outs[0]): a for (_, s), a in zip(of.sums, ends, strict=True)}
        return [found[id(v)] for v in self._kernel.outs]

    def _width(self, s: Step) -> int:
        return self._of.columns if reduction(s) == "column" else 1

    def _ending(self) -> str:
        """The second kernel: a thread for each column, a warp for a sum of everything."""
        parameters, lines = [], []
        for k, (code, s) in enumerate(self._of.sums):
            t, out = type_name(code.dtype), type_name(s.outs[0].dtype)
            parameters += [f"const {t}* __restrict__ q{k}", f"{out}* __restrict__ o{k}"]
            mean = f" / ({t})({_count(s)})" if s.op.reduces == "mean" else ""
            if reduction(s) == "column":
                lines.append(
                    f"for (int j = blockIdx.x * blockDim.x + threadIdx.x; j < {self._of.columns}; "
                    f"j += gridDim.x * blockDim.x) {{\n{t} sum = 0;\n"
                    f"for (int b = 0; b < parts; ++b) sum += q{k}[(long long)b * {self._of.columns}"
                    f" + j];\no{k}[j] = ({out})(sum{mean});\n}}"
                )
            else:
                lines.append(
                    f"if (blockIdx.x == 0 && threadIdx.x < 32) {{\n{t} sum = 0;\n"
                    f"for (int b = threadIdx.x; b < parts; b += 32) sum += q{k}[b];\n"
                    f"sum = warp_reduce(sum, Sum());\nif (threadIdx.x == 0) o{k}[0] = "
                    f"({out})(sum{mean});\n}}"
                )
        if not lines:
            return ""
        given = ", ".join([*parameters, "int parts"])
        return f'extern "C" __global__ void ending({given}) {{\n' + "\n".join(lines) + "\n}\n"
