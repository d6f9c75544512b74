"""The steps of a `Kernel`, read as CUDA: a `Code` for each value, and where its inputs lie."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

from gpugrad.function.passes.fuse import SAME_ELEMENTS, Kernel, reduction
from gpugrad.kernels.codegen import code as code_module
from gpugrad.kernels.codegen.code import CODE, Body, Code, NoCodeError, compute_dtype
from gpugrad.kernels.runtime.launch import type_name
from gpugrad.trace.program import Step, Value

__all__ = ["Input", "Reading"]


class Input:
    """An argument, as the elements of a shape see it: offset = row part + column * `column`.

    Args:
        k: which one.
        value: what it is.
        shape: that its own broadcasts to.
        by_row: whether the elements of the shape are rows; else its last axis are the columns.
    """

    def __init__(self, k: int, value: Value, shape: tuple[int, ...], by_row: bool) -> None:
        self.k, self.value, self.type = k, value, type_name(value.dtype)
        aligned = (1,) * (len(shape) - len(value.shape)) + value.shape
        if by_row or not shape:
            shape, aligned = (*shape, 1), (*aligned, 1)
        strides, n = [], 1
        for length in reversed(aligned):
            strides.append(0 if length == 1 else n)
            n *= length
        self.column = strides[0]
        self.row = _row_offset(shape[:-1], strides[:0:-1])

    @property
    def key(self) -> Any:
        """Equal for two that are read alike."""
        return id(self.value), self.column, self.row


def _row_offset(shape: Sequence[int], strides: Sequence[int]) -> str:
    """The offset of a row whose number is `row`; "0" if it is the same for all rows."""
    parts, n = [], math.prod(shape)
    if not any(strides) or not n:
        return "0"
    step = strides[-1]
    if list(strides) == [step * math.prod(shape[d + 1 :]) for d in range(len(shape))]:
        return f"row * {step}"
    for length, stride in zip(shape, strides, strict=True):
        n //= length
        if stride and length > 1:
            parts.append(f"row / {n} % {length} * {stride}")
    return " + ".join(parts) or "0"


class Reading:
    """What a kernel computes, as CUDA expressions.

    Args:
        kernel: whose steps are read.
        known: the Codes of its inputs, by id; if they are not given, each is read from memory as
            `inputs` says.

    Attributes:
        body: the lines.
        inputs: the arguments, as they are read.
        results: (Code, Value) that other steps read.
        sums: (Code, Step) with which the kernel ends.
        is_full: whether a value has an element for each of the kernel's.

    Raises:
        NoCodeError: a step cannot be written as CUDA.
    """

    def __init__(self, kernel: Kernel, known: Mapping[int, Code] | None = None) -> None:
        self.rows, self.columns = kernel.rows, kernel.columns
        self.is_full, self._rounded = kernel.is_full, kernel.rounded
        self.body = next(iter(known.values())).body if known else Body()
        self.inputs: list[Input] = []
        self._codes: dict[int, Any] = dict(known or {})
        for step in kernel.steps:
            self._step(step)
        self.sums = [
            (self._cast(self._arg(s.inputs[0], s.inputs[0].shape), s.outs[0].dtype), s)
            for s in kernel.sums
        ]
        if any(code.dtype.kind == "c" for code, _ in self.sums):
            raise NoCodeError("sums of complex numbers")
        wanted = {id(v) for v in kernel.outs}
        self.results = [
            (self._codes[id(v)], v) for s in kernel.steps for v in s.outs if id(v) in wanted
        ]

    def _arg(self, a: Any, shape: tuple[int, ...]) -> Any:
        """A step's argument, where the step goes over `shape`."""
        if not isinstance(a, Value):
            return a
        if id(a) in self._codes:
            return self._codes[id(a)]
        if a.constant is not None and a.constant.size == 1:
            return code_module.cast(self.body, a.constant.reshape(()).item(), a.dtype)
        made = Input(len(self.inputs), a, shape, self._goes_by_row(shape))
        for known in self.inputs:
            if known.key == made.key:
                made = known
        if made.k == len(self.inputs):
            self.inputs.append(made)
        return self.body.input(f"x{made.k}", a.dtype)

    def _goes_by_row(self, shape: tuple[int, ...]) -> bool:
        """Whether a shape has one element for a row, and no axis of length 1 for the columns."""
        full = math.prod(shape) == self.rows * self.columns and (shape or (1,))[-1] == self.columns
        return not full and not (shape and shape[-1] == 1 and math.prod(shape) == self.rows)

    def _step(self, step: Step) -> None:
        (out,) = step.outs
        if step.op.reduces and reduction(step):
            code = self._reduced(step)
        elif step.op.view in SAME_ELEMENTS:
            shape = step.inputs[0].shape if step.op.view == "reshape" else out.shape
            code = self._arg(step.inputs[0], shape)
        elif step.op.name == "astype":
            code = self._cast(self._arg(step.args[0], out.shape), out.dtype)
        else:
            args = [self._arg(a, out.shape) for a in step.args]
            try:
                code = getattr(CODE, step.op.name)(*args, **step.params)
            except Exception as error:  # as that there is no CUDA function of that name
                raise NoCodeError(str(error)) from error
        if type(code) is not Code or compute_dtype(out.dtype) != code.dtype:
            code = self._cast(code, out.dtype)
        if id(out) in self._rounded or step.op.name == "astype":
            code = code.rounded(out.dtype)
        self._codes[id(out)] = code

    def _cast(self, value: Any, dtype: Any) -> Code:
        return code_module.cast(self.body, value, compute_dtype(dtype))

    def _reduced(self, step: Step) -> Code:
        (given,), (out,) = step.inputs, step.outs
        how, of = step.op.reduces, self._cast(self._arg(given, given.shape), out.dtype)
        if of.dtype.kind == "c" or (how in ("max", "min") and of.dtype.kind != "f"):
            raise NoCodeError(f"{how} of {of.dtype}")
        if how == "mean":
            return self.body.reduce("sum", of) / given.shape[-1]
        return self.body.reduce(how, of)
