"""Products and convolutions that do what follows them at once, and step by step where they cannot.

cuBLASLt has a few *epilogues*: what it does to a product of matrices before the result leaves the
chip. Each has a name in `kernels.libraries.cublaslt`. cuDNN does a bias and relu at the end of a
convolution.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, cast

import numpy as np

from gpugrad.core.backend import NUMPY, Namespace
from gpugrad.function.passes.rewrite import FusedStep
from gpugrad.kernels.libraries import cublaslt
from gpugrad.ops.nn.convolution import launch_with_bias
from gpugrad.trace.program import Step, Value

__all__ = ["Convolved", "Product"]


class Product(Step):
    """``a @ b``, and what is done to it at once.

    The arguments are a, b, then the bias; or what is added; or what the slope is told from, relu's
    result or gelu's argument, and of relu what its product kept. The results are the product,
    then the sums, then what is kept, if there are such.

    Attributes:
        bias: whether a bias is added to each row.
        activation: "relu" or "gelu" if that follows, else "".
        slope: the activation by whose derivative the result is multiplied, or "".
        adds: whether an array of the result's shape is added, and nothing else is done.
        keeps: whether others read what the activation keeps for its gradient: bits of relu, the
            argument of gelu.
        sums: ``"out"`` if the sum over all rows of the result is a second result, ``"b"`` if
            that of the second factor is, else ``""``. The first is of one with a slope, the
            second of one with nothing else.
    """

    __slots__ = ("activation", "adds", "bias", "keeps", "slope", "sums")

    def __init__(
        self, args: Sequence[Any], outs: list[Value], *, bias: bool, activation: str, slope: str,
        adds: bool, sums: str, keeps: bool,
    ) -> None:  # fmt: skip
        self.adds, self.keeps = adds, keeps
        self.bias, self.activation, self.slope, self.sums = bias, activation, slope, sums
        parts = ["matmul", "add" * adds, "bias" * bias, activation, slope and f"{slope}_grad"]
        parts.append(sums and f"sum of {sums}")
        super().__init__(None, args, {}, outs, name=" + ".join(filter(None, parts)))

    def share(self, masked: Product) -> None:
        """Let another product read what this one keeps of its relu."""
        if not self.keeps:
            self.keeps = True
            *stack, columns = self.outs[0].shape
            shape = cublaslt.relu_aux_shape(math.prod(stack), columns)
            bits = np.broadcast_to(np.uint8(0), shape)
            self.outs = [*self.outs, Value(bits)]
        masked.args = (*masked.args, self.outs[-1])

    def run(self, xp: Namespace, a: Any, b: Any, *rest: Any) -> list[Any]:
        """On bare arrays: in one launch where cuBLASLt can."""
        made = NotImplemented if xp is NUMPY else self._in_one(xp.lib, a, b, *rest)
        return self._one_by_one(xp, a, b, *rest) if made is NotImplemented else made

    def _one_by_one(self, xp: Namespace, a: Any, b: Any, *rest: Any) -> list[Any]:
        out = xp.matmul(a, b)
        out = kept = xp.add(out, rest[0]) if self.bias or self.adds else out
        if self.activation == "relu":
            out = kept = xp.relu(out)  # no bits then
        elif self.activation == "gelu":
            out = xp.gelu(out, approximate="tanh")
        if self.slope == "relu":
            out = xp.multiply(out, xp.greater(rest[0], 0))
        elif self.slope == "gelu":
            out = xp.multiply(out, xp.gelu_tanh_slope(rest[0]))
        made, summed = [out], {"out": out, "b": b}.get(self.sums)
        if summed is not None:
            made.append(xp.sum_to(summed, summed.shape[-1:]))
        return [*made, kept] if self.keeps else made

    def _in_one(self, lib: Any, a: Any, b: Any, *rest: Any) -> Any:
        shape, n = (*a.shape[:-1], b.shape[1]), b.shape[1]
        a = a.reshape(math.prod(a.shape[:-1]), a.shape[-1])
        name, bias, aux, added = "default", None, cast(Any, None), None
        if self.adds:
            added = lib.ascontiguousarray(rest[0]).reshape(len(a), n)
        elif self.slope:
            name, bias, aux = f"d{self.slope}_bgrad", lib.empty(n, dtype=a.dtype), rest[-1]
            if self.slope == "gelu":
                aux = lib.ascontiguousarray(aux).reshape(len(a), n)
            elif aux.dtype != np.uint8:  # relu's result: its product has not kept bits
                return NotImplemented
        elif self.sums:
            name, bias = "bgrad_b", lib.empty(n, dtype=a.dtype)
        elif self.bias:
            name = "_".join(filter(None, (self.activation, "aux" * self.keeps, "bias")))
            bias = lib.ascontiguousarray(rest[0])  # its numbers are read in a row
            if self.keeps and self.activation == "gelu":
                aux = cublaslt.gelu_aux(lib, len(a), n, a.dtype)
            elif self.keeps:
                aux = cublaslt.relu_aux(lib, len(a), n)
        made = cublaslt.product(lib, a, b, added=added, epilogue=name, bias=bias, aux=aux)
        if made is NotImplemented:
            return made
        found = [made.reshape(shape)]
        if self.sums:
            found.append(bias)
        if self.keeps:
            found.append(aux.reshape(shape) if self.activation == "gelu" else aux)
        return found


class Convolved(FusedStep):
    """A convolution, a bias for each channel, and relu, if that follows: where cuDNN is installed.

    The arguments are x, w and the bias, which is as long as there are channels along one axis and
    1 along the others. The metadata is the convolution's.

    Attributes:
        relu: whether relu follows.
        last: whether the channels of the result are its last axis, not its second.
    """

    __slots__ = ("last", "relu")

    def __init__(self, args: Sequence[Any], steps: list[Step], *, relu: bool, last: bool) -> None:
        self.relu, self.last = relu, last
        super().__init__("convolution + bias" + " + relu" * relu, args, steps, steps[-1].outs)

    def run(self, xp: Namespace, *arrays: Any) -> Any:
        """As of a `FusedStep`: cuDNN may decline."""
        made = launch_with_bias(xp, *arrays, relu=self.relu, last=self.last, **self.params)
        return made if made is NotImplemented else [made]
