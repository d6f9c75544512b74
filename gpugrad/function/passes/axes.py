"""Reductions over any axes as reductions along rows and over rows, which kernels support.

The statistics of a batch norm are over all axes but one; a spatial mean is over the last two. An
array of shape (n, c, h, w) has n c rows of h w elements: a sum over all axes but the second is a
sum along these rows, followed by a sum over n rows of c.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from gpugrad.core.backend import HALF
from gpugrad.function.passes.fuse import axes_of, reduction, strided_views
from gpugrad.function.passes.rewrite import Rewriter
from gpugrad.trace.program import Program, Step, Value

__all__ = ["split_axes"]


def split_axes(program: Program) -> Program:
    """Split reductions over several axes into one over the last and one over all but the last."""
    splitter = _Splitter(program)
    for step in program.steps:
        splitter.write(splitter.renamed(step))
    return splitter.program()


class _Splitter(Rewriter):
    def __init__(self, program: Program) -> None:
        super().__init__(program)
        self._strided = strided_views(program)

    def write(self, step: Step) -> None:
        """Append a step, or the steps that replace it."""
        parts = self._parts(step)
        if parts is None:
            self.keep(step)
            return
        rows, columns, rest = parts
        x: Any = step.args[0]
        if step.name == "sum_of_products":  # the mean of squares is written as a sum of products
            x = self.step(step, "multiply", step.args, {}, x.shape)
        how = step.op.reduces or "sum"
        dtype, wide = x.dtype, x.dtype in HALF and rows > 1 and columns > 1
        if wide:  # the intermediate result is not rounded
            x = self._cast(step, x, np.dtype(np.float32))
        if columns > 1:
            x = self.reshaped(step, x, (rows * rest, columns))
            x = self._reduced(step, how, x, -1, (rows * rest,))
        if rows > 1:
            x = self.reshaped(step, x, (rows, rest))
            x = self._reduced(step, how, x, 0, (rest,))
        if wide:
            x = self._cast(step, x, dtype)
        self.replace(step.outs[0], self.reshaped(step, x, step.outs[0].shape))

    def _cast(self, of: Step, x: Value, dtype: np.dtype) -> Value:
        return self.step(of, "astype", [x], {"dtype": dtype, "copy": True}, x.shape, dtype)

    def _parts(self, step: Step) -> tuple[int, int, int] | None:
        """The number of elements along the first axes, the last axes, and those kept between them.

        None if the step is not such a reduction, or already reduces along or over rows.
        """
        product = step.name == "sum_of_products"
        if step.op is None or not (product or step.op.reduces):
            return None
        if step.params.get("dtype") is not None or any(id(a) in self._strided for a in step.args):
            return None
        shape = step.inputs[0].shape
        axes = axes_of(step)
        if not axes or 0 in shape or step.inputs[0].dtype.kind != "f":
            return None
        if not product and reduction(step):
            return None
        kept = [k for k in range(len(shape)) if k not in axes]
        if not kept:  # a sum of products
            return 1, math.prod(shape), 1
        first, last = kept[0], kept[-1] + 1
        if kept != [*range(first, last)]:
            return None
        rows, columns = math.prod(shape[:first]), math.prod(shape[last:])
        if rows > 1 and step.op.reduces in ("max", "min"):
            return None
        return (rows, columns, math.prod(shape[first:last])) if rows * columns > 1 else None

    def _reduced(self, of: Step, how: str, x: Value, axis: int, shape: tuple[int, ...]) -> Value:
        name = "mean" if of.op.reduces == "mean" else how
        params = {"axis": axis, "keepdims": False} | ({"dtype": None} if name == "sum" else {})
        return self.step(of, name, [x], params, shape)
