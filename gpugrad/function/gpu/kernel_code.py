"""The steps of a `FusedKernel` as nodes: a `Code` for each value, and the offsets of its inputs."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

from gpugrad.function.passes.fuse import SAME_ELEMENTS, FusedKernel, count_of_mean, reduction
from gpugrad.function.passes.rewrite import is_cast
from gpugrad.kernels.codegen import code as code_module
from gpugrad.kernels.codegen.code import Body, Code, NoCodeError, compute_dtype, read
from gpugrad.kernels.codegen.code_reading import CODE, LIB
from gpugrad.kernels.codegen.kernel import Input, Kernel, Result
from gpugrad.kernels.codegen.layout import contiguous
from gpugrad.trace.program import Step, Value


def _input(
    k: int, value: Value, shape: tuple[int, ...], by_row: bool, strides: Sequence[int] | None = None
) -> Input:
    """Argument number `k`, with strides in elements (None if contiguous), broadcast to a shape.

    Each element of the shape is a row, or else the last axis holds the columns.
    """
    own = value.shape
    strides = contiguous(own) if strides is None else strides
    steps = [0] * (len(shape) - len(own))
    steps += [0 if n == 1 else step for n, step in zip(own, strides, strict=True)]
    if by_row or not shape:
        shape, steps = (*shape, 1), [*steps, 0]
    return Input(k, value, _row_offset(shape[:-1], steps[:-1]), steps[-1])


def _row_offset(shape: Sequence[int], strides: Sequence[int]) -> str:
    """The offset of row number `row`, as text; "0" if it is the same for all rows."""
    parts, n = [], math.prod(shape)
    if not any(strides) or not n:
        return "0"
    rows = n
    step = strides[-1]
    if [*strides] == [step * s for s in contiguous(shape)]:
        return f"row * {step}"
    for length, stride in zip(shape, strides, strict=True):
        n //= length
        if stride and length > 1:
            place = f"row / {n}" if n > 1 else "row"
            if n * length < rows:  # else the text would hold the length of a batch
                place += f" % {length}"
            parts.append(f"{place} * {stride}")
    return " + ".join(parts) or "0"


class KernelCode(Kernel):
    """The nodes of a kernel's steps.

    Args:
        kernel: the kernel.
        known: the Codes of its inputs, by id; without them, each input is read from memory as
            `inputs` says.
        strides: of inputs that are not contiguous, in elements, by id.

    Raises:
        NoCodeError: a step cannot be written.
    """

    def __init__(
        self,
        kernel: FusedKernel,
        known: Mapping[int, Code] | None = None,
        strides: Mapping[int, Sequence[int]] | None = None,
    ) -> None:
        body = next(iter(known.values())).body if known else Body(LIB)
        super().__init__(body, [], [], [], kernel.rows, kernel.columns)
        self._strides, self._rounded = strides or {}, kernel.rounded
        self._codes: dict[int, Any] = dict(known or {})
        for step in kernel.steps:
            self._step(step)
        for k, s in enumerate(kernel.sums):
            code = self._cast(self._arg(s.inputs[0], s.inputs[0].shape), s.outs[0].dtype)
            count = count_of_mean(s) if s.op.reduces == "mean" else None
            self.sums.append(Result(k, code, s.outs[0], False, count, reduction(s) == "column"))
        if any(s.code.dtype.kind == "c" for s in self.sums):
            raise NoCodeError("sums of complex numbers")
        wanted = {id(v) for v in kernel.outs}
        outs = [v for s in kernel.steps for v in s.outs if id(v) in wanted]
        self.results = [
            Result(k, self._codes[id(v)], v, kernel.is_full(v)) for k, v in enumerate(outs)
        ]

    def _arg(self, a: Any, shape: tuple[int, ...]) -> Any:
        """The code of an argument of a step over `shape`."""
        if not isinstance(a, Value):
            return a
        if id(a) in self._codes:
            return self._codes[id(a)]
        if a.constant is not None and a.constant.size == 1:
            return code_module.cast(self.body, a.constant.reshape(()).item(), a.dtype)
        by_row = self._goes_by_row(shape)
        new = _input(len(self.inputs), a, shape, by_row, self._strides.get(id(a)))
        same = (
            i for i in self.inputs if i.value is a and (i.row, i.column) == (new.row, new.column)
        )
        source = next(same, new)
        if source is new:
            self.inputs.append(new)
        return self.body.input(source.name, a.dtype)

    def _goes_by_row(self, shape: tuple[int, ...]) -> bool:
        """Whether a shape has one element per row, and no axis of length 1 for the columns."""
        full = math.prod(shape) == self.rows * self.columns and (shape or (1,))[-1] == self.columns
        return not full and not (shape and shape[-1] == 1 and math.prod(shape) == self.rows)

    def _step(self, step: Step) -> None:
        (out,) = step.outs
        if step.op.reduces and reduction(step):
            code = self._reduced(step)
        elif step.op.view in SAME_ELEMENTS:
            shape = step.inputs[0].shape if step.op.view == "reshape" else out.shape
            code = self._arg(step.inputs[0], shape)
        elif is_cast(step):
            code = self._cast(self._arg(step.args[0], out.shape), out.dtype)
        else:
            args = [self._arg(a, out.shape) for a in step.args]
            code = read(lambda: getattr(CODE, step.op.name)(*args, **step.params))
        if type(code) is not Code or compute_dtype(out.dtype) != code.dtype:
            code = self._cast(code, out.dtype)
        # a cast rounds to its dtype, which is narrower than the one that kernels compute in
        if id(out) in self._rounded or is_cast(step):
            code = code.rounded(out.dtype)
        self._codes[id(out)] = code

    def _cast(self, value: Any, dtype: Any) -> Code:
        return code_module.cast(self.body, value, compute_dtype(dtype))

    def _reduced(self, step: Step) -> Code:
        (x,), (out,) = step.inputs, step.outs
        how, of = step.op.reduces, self._cast(self._arg(x, x.shape), out.dtype)
        if of.dtype.kind == "c" or (how in ("max", "min") and of.dtype.kind != "f"):
            raise NoCodeError(f"{how} of {of.dtype}")
        if how == "mean":
            return self.body.reduce("sum", of) / x.shape[-1]
        return self.body.reduce(how, of)
