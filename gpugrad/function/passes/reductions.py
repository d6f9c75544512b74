"""Reductions along any axes as reductions along rows and over rows, which kernels have.

The statistics of a batch norm are along all axes but one; a mean over places is along the last two.
An array of shape (n, c, h, w) has n c rows of h w elements: a sum along all axes but the second is
one along these rows, and then one over n rows of c.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from gpugrad.core.backend import HALF
from gpugrad.function.passes.fuse import axes_of, reduction, views_apart
from gpugrad.function.passes.rewrite import Rewriter
from gpugrad.trace.program import Program, Step, Value

__all__ = ["along_rows"]


def along_rows(program: Program) -> Program:
    """Write reductions along several axes as others along the last or over all but the last."""
    writer = _Writer(program)
    for step in program.steps:
        writer.write(writer.renamed(step))
    return writer.program()


class _Writer(Rewriter):
    def __init__(self, program: Program) -> None:
        super().__init__(program)
        self._apart = views_apart(program)

    def write(self, step: Step) -> None:
        """Append a step, or those that take its place."""
        parts = self._parts(step)
        if parts is None:
            self.keep(step)
            return
        rows, columns, rest = parts
        x: Any = step.args[0]
        if step.name == "sum_of_products":
            x = self.step(step, "multiply", step.args, {}, x.shape)
        how = step.op.reduces or "sum"
        dtype, wide = x.dtype, x.dtype in HALF and rows > 1 and columns > 1
        if wide:  # what is between is not rounded
            x = self.step(step, "astype", [x], {"dtype": np.dtype(np.float32), "copy": True},
                           x.shape, np.float32)  # fmt: skip
        if columns > 1:
            x = self.reshaped(step, x, (rows * rest, columns))
            x = self._reduced(step, how, x, -1, (rows * rest,))
        if rows > 1:
            x = self.reshaped(step, x, (rows, rest))
            x = self._reduced(step, how, x, 0, (rest,))
        if wide:
            x = self.step(step, "astype", [x], {"dtype": dtype, "copy": True}, x.shape, dtype)
        self.replace(step.outs[0], self.reshaped(step, x, step.outs[0].shape))

    def _parts(self, step: Step) -> tuple[int, int, int] | None:
        """Elements along the first axes, along the last ones, and of what stays between them.

        None if the step is no such reduction, or is one along a row or over rows as it is.
        """
        product = step.name == "sum_of_products"
        if step.op is None or not (product or step.op.reduces):
            return None
        if step.params.get("dtype") is not None or any(id(a) in self._apart for a in step.args):
            return None
        shape = step.inputs[0].shape
        axes = axes_of(step)
        if not axes or 0 in shape or step.inputs[0].dtype.kind != "f":
            return None
        if not product and reduction(step):
            return None
        stay = [k for k in range(len(shape)) if k not in axes]
        if not stay:  # of products
            return 1, math.prod(shape), 1
        first, last = stay[0], stay[-1] + 1
        if stay != [*range(first, last)]:
            return None
        rows, columns = math.prod(shape[:first]), math.prod(shape[last:])
        if rows > 1 and step.op.reduces in ("max", "min"):
            return None
        return (rows, columns, math.prod(shape[first:last])) if rows * columns > 1 else None

    def _reduced(self, of: Step, how: str, x: Value, axis: int, shape: tuple[int, ...]) -> Value:
        name = "mean" if of.op.reduces == "mean" else how
        params = {"axis": axis, "keepdims": False} | ({"dtype": None} if name == "sum" else {})
        return self.step(of, name, [x], params, shape)
