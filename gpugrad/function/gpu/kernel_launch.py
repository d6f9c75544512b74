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
from gpugrad.function.gpu.kernel_code import KernelCode
from gpugrad.function.passes.fuse import FusedKernel, count_of_mean, reduction
from gpugrad.kernels.by_hand.partial_sums import Sums, end_or_wait
from gpugrad.kernels.codegen.code import Code, compute_dtype
from gpugrad.kernels.codegen.elementwise import Elementwise
from gpugrad.kernels.codegen.row_kernel import MOST_BLOCKS, RowKernel
from gpugrad.kernels.runtime.launch import launch, pointer


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
        results = {id(r.value): r.code for r in (*code.results, *code.sums)}
        return [results[id(v)] for v in kernel.outs]

    shapes: list[Any] = []
    dtypes, means = [v.dtype for v in kernel.outs], dict[int, int]()
    for k, v in enumerate(kernel.outs):
        step, shape = steps.get(id(v)), None
        if step is not None:
            columns = kernel.shape[-1:] if reduction(step) == "column" else (1,)
            shape = (1,) * (len(kernel.shape) - 1) + columns
            if step.op.reduces == "mean":
                dtypes[k], means[k] = compute_dtype(v.dtype), count_of_mean(step)
        shapes.append(shape)
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
        source: CUDA C++, with the kernels ``kernel`` and, if it has sums, ``ending``.
    """

    def __init__(self, kernel: FusedKernel) -> None:
        self._kernel, self._code = kernel, KernelCode(kernel)
        # by the elements of an access, at most
        self._form_of = functools.cache(functools.partial(RowKernel, self._code))
        self.source = self._form_of(8).source

    def _form(self, inputs: Sequence[Any]) -> RowKernel:
        """The kernel for arrays that begin where these do: a view may begin anywhere."""
        pack = self._form_of(8).pack
        read = [a for a, i in zip(inputs, self._code.inputs, strict=True) if i.column]
        while pack > 1 and any(pointer(a) % (pack * a.itemsize) for a in read):
            pack //= 2
        return self._form_of(pack)

    def __call__(self, xp: Reading, arrays: Sequence[Any]) -> list[Any]:
        """Launch on the arrays of the kernel's inputs; returns the arrays of its results."""
        code, lib = self._code, xp.lib
        place = {id(v): k for k, v in enumerate(self._kernel.inputs)}
        inputs = [arrays[place[id(i.value)]] for i in code.inputs]
        inputs = [a if a.flags.c_contiguous else lib.ascontiguousarray(a) for a in inputs]
        form = self._form(inputs)
        outs = [lib.empty(r.value.shape, dtype=r.value.dtype) for r in (*code.results, *code.sums)]
        results, sums = outs[: len(code.results)], outs[len(code.results) :]
        partials = [lib.empty(form.blocks * code.width(s), dtype=s.code.dtype) for s in code.sums]
        launch(form.source, "kernel", form.blocks, form.block, [*inputs, *results, *partials])
        if sums:
            end = functools.partial(self._end, form, partials, sums)
            if all(s.by_column and s.count is None for s in code.sums):
                end_or_wait(Sums(partials, sums, form.blocks, code.columns, end))
            else:
                end()
        by_id = {id(r.value): a for r, a in zip((*code.results, *code.sums), outs, strict=True)}
        return [by_id[id(v)] for v in self._kernel.outs]

    def _end(self, form: RowKernel, partials: Sequence[Any], sums: Sequence[Any]) -> None:
        pairs = [a for pair in zip(partials, sums, strict=True) for a in pair]
        width = max(map(self._code.width, self._code.sums))
        blocks = max(1, min(-(-width // 32), MOST_BLOCKS))
        launch(form.source, "ending", blocks, (32, 32), [*pairs, np.int32(form.blocks)])
