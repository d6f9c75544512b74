"""Where the elements of views lie in the memory of the value that they are a view of.

It is known before a replay, as results of kernels and products are contiguous.
"""

from __future__ import annotations

import copy
import math
from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple

import numpy as np

from gpugrad.core.backend import NUMPY
from gpugrad.function.step_calls import op_call
from gpugrad.ops.arrays.index_rules import has_arrays
from gpugrad.trace.program import Program, Step, Value, takes_arguments


def contiguous(v: Value) -> tuple[int, ...]:
    """The strides in bytes of a contiguous array."""
    return tuple(math.prod(v.shape[k + 1 :]) * v.dtype.itemsize for k in range(len(v.shape)))


def is_view(step: Step) -> bool:
    """Whether a step moves no elements if the memory of its argument allows a view."""
    op = step.op
    if op is None or op.kind == "control":
        return False
    return bool(op.view or op.writes) and all(v.view for v in step.outs)


def scalars_as_views(program: Program) -> Program:
    """The program with elements at fixed places as views, which C reads where they are.

    NumPy returns a scalar for them, which would be a step.
    """
    new = program.copy()
    for k, step in enumerate(new.steps):
        index = step.params.get("index")
        reads = step.op is not None and step.op.kind != "control" and step.op.writes
        if not reads or index is None or takes_arguments(index) or has_arrays(index):
            continue
        parts = index if type(index) is tuple else (index,)
        if step.outs[0].shape or ... in parts:
            continue
        new.steps[k] = viewed = copy.copy(step)
        viewed.params, viewed.outs[0].view = step.params | {"index": (*parts, ...)}, True
    return new


class Layout(NamedTuple):
    """A view of new memory: the value that has it, an offset and strides in bytes."""

    root: Value
    offset: int
    strides: tuple[int, ...]

    def of(self, memory: Any, v: Value) -> Any:
        """The view `v` of the array of the root."""
        return view_of((v.shape, v.dtype, self.offset, self.strides), memory)


def view_of(about: Sequence[Any], memory: Any) -> Any:
    """The view of the memory of an array, by its shape, dtype, offset and strides."""
    shape, dtype, offset, strides = about
    return np.ndarray(shape, dtype, memory, offset, strides)


class Layouts:
    """The layouts of values, by id."""

    def __init__(self) -> None:
        self._known: dict[int, Layout] = {}

    def __getitem__(self, v: Value) -> Layout:
        return self._known[id(v)]

    def get(self, v: Value) -> Layout | None:
        """The layout of a value, if it is known."""
        return self._known.get(id(v))

    def new(self, values: Iterable[Value]) -> None:
        """Note values in contiguous memory of their own."""
        for v in values:
            self._known[id(v)] = Layout(v, 0, contiguous(v))

    def view(self, step: Step) -> bool:
        """Note the result of a step if it is a view of known memory; whether it is."""
        if not is_view(step) or len(step.args) != 1 or takes_arguments(step.params.get("index")):
            return False
        (x,), (out,) = step.inputs, step.outs
        layout = self.get(x)
        if layout is None or 0 in out.shape:
            return False
        root = layout.root
        memory = np.empty(root.shape, root.dtype)  # not touched, so the system allocates no pages
        result = op_call(step, NUMPY)(layout.of(memory, x))
        if result.shape != out.shape or not np.may_share_memory(result, memory):
            return False  # a copy, or a scalar
        offset = result.ctypes.data - memory.ctypes.data
        self._known[id(out)] = Layout(root, offset, result.strides)
        return True
