"""Reductions over any axes as reductions along rows and over rows, which kernels support.

The statistics of a batch norm are over all axes but one; a spatial mean is over the last two. An
array of shape (n, c, h, w) has n c rows of h w elements: a sum over all axes but the second is a
sum along these rows, followed by a sum over n rows of c.

A kernel takes elementwise steps into such a reduction only if they have the same rows. In C they
have: there, arrays that are reduced in this way are of shape (n, c, h w).
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from gpugrad.core.backend import HALF
from gpugrad.function.passes.fuse import axes_of, reduction, strided_views
from gpugrad.function.passes.rewrite import Rewriter
from gpugrad.function.passes.simplify import remove_dead
from gpugrad.registry.record import OPS
from gpugrad.trace.program import Program, Step, Value


def split_axes(program: Program) -> Program:
    """Split reductions over several axes into one over the last and one over all but the last."""
    splitter = _Splitter(program)
    for step in program.steps:
        splitter.write(splitter.renamed(step))
    return splitter.program()


def merge_and_split_axes(program: Program) -> Program:
    """The same, with elementwise steps over the rows of these reductions.

    For contiguous memory: a GPU's images have their channels last, and a reshape would copy them.
    """
    merger = _Merger(program)
    for step in program.steps:
        merger.write(merger.renamed(step))
    return remove_dead(merger.program())


class _Splitter(Rewriter):
    def __init__(self, program: Program) -> None:
        super().__init__(program)
        self._strided = strided_views(program)

    def write(self, step: Step) -> None:
        parts = self._parts(step)
        if parts is None:
            self.keep(step)
            return
        rows, columns, rest = parts
        x: Any = step.args[0]
        if not step.op.reduces:  # the mean of squares is written as a sum of products
            x = self._product(step)
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

    def _product(self, of: Step) -> Value:
        x = self.step(of, "multiply", of.args, {}, of.inputs[0].shape)
        self.write(self._program.steps.pop())
        return self.value(x)

    def _cast(self, of: Step, x: Value, dtype: np.dtype) -> Value:
        return self.step(of, "astype", [x], {"dtype": dtype}, x.shape, dtype)

    def _parts(self, step: Step) -> tuple[int, int, int] | None:
        """The number of elements along the first axes, the last axes, and those kept between them.

        None if the step is not such a reduction, or already reduces along or over rows.
        """
        product = step.name == "sum_of_products"  # a reduction of two arrays, their products
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
        return self.step(of, how, [x], OPS[how].params | {"axis": axis}, shape)


class _Merger(_Splitter):
    """Makes the last axes of a shape one axis wherever all or none of them are broadcast."""

    def __init__(self, program: Program) -> None:
        super().__init__(program)
        self._merged: dict[tuple[int, ...], int] = {}  # by shape: how many last axes are one
        self._rows: dict[int, Value] = {}  # by id: the same elements, with merged axes
        for step in program.steps:
            if self._parts(step) is not None:
                shape, axes = step.inputs[0].shape, axes_of(step)
                last = next(k for k in range(len(shape) + 1) if len(shape) - 1 - k not in axes)
                if 1 < last < len(shape):
                    self._merged[shape] = min(last, self._merged.get(shape, last))
        for step in program.steps:
            if reduction(step) in ("row", "column"):  # of other rows
                self._merged.pop(step.inputs[0].shape, None)

    def write(self, step: Step) -> None:
        if reduction(step) == "all" and step.outs[0].shape == () and "axis" in step.params:
            step = self.with_args(step, [self._rows.get(id(x), x) for x in step.args])
            step.params = step.params | {"axis": None}
        if not self._is_merged(step):
            super().write(step)
            return
        (out,) = step.outs
        shape = self._shape(out.shape, self._merged[out.shape])
        args = [self._of_rows(step, a) if isinstance(a, Value) else a for a in step.args]
        new = self.step(step, step.name, args, step.params, shape, out.dtype)
        view = self.reshaped(step, new, out.shape)
        self._rows[id(view)] = new
        self.replace(out, view)

    def reshaped(self, of: Step, x: Value, shape: tuple[int, ...]) -> Value:
        """A view of a value in another shape; of the value that it is a view of, if it is one."""
        return super().reshaped(of, self._rows.get(id(x), x), shape)

    def _is_merged(self, step: Step) -> bool:
        if step.op is None or not step.op.by_element or len(step.outs) != 1:
            return False
        shape = step.outs[0].shape
        last = self._merged.get(shape)
        return last is not None and all(self._fits(v, shape, last) for v in step.inputs)

    def _fits(self, v: Value, shape: tuple[int, ...], last: int) -> bool:
        """Whether a value has all or none of the last axes, in contiguous memory."""
        if v.constant is not None and any(v.constant.strides) and not v.constant.flags.c_contiguous:
            return False
        own = (1,) * (len(shape) - len(v.shape)) + v.shape
        return id(v) not in self._strided and own[-last:] in (shape[-last:], (1,) * last)

    def _of_rows(self, of: Step, v: Value) -> Value:
        shape = self._shape(v.shape, self._merged[of.outs[0].shape])
        if v.constant is not None and any(v.constant.strides):
            return Value(v.constant.reshape(shape), constant=True)
        if v.constant is not None:  # one number for all elements
            return Value(np.broadcast_to(v.constant[(0,) * v.constant.ndim], shape), constant=True)
        if id(v) not in self._rows:
            self._rows[id(v)] = self.reshaped(of, v, shape)
        return self.reshaped(of, v, shape)

    @staticmethod
    def _shape(shape: tuple[int, ...], last: int) -> tuple[int, ...]:
        return (*shape[:-last], math.prod(shape[-last:])) if shape else shape
