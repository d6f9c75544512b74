"""Products fused with the steps that follow; unfused where cuBLASLt declines.

cuBLASLt has a few *epilogues*: operations on a matrix product before the result leaves the chip.
Each has a name in `kernels.libraries.cublaslt`.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, cast

import numpy as np

from gpugrad.core.backend import NUMPY, Reading
from gpugrad.kernels.libraries import cublaslt
from gpugrad.trace.program import Step, Value


class Product(Step):
    """``a @ b`` and its epilogue.

    The arguments are a and b, then one of: the bias; the array to add; the array that determines
    the slope (relu's result, or gelu's argument) and, for relu, the bits that its product kept. The
    results are the product, then any sums, then any kept array.

    Attributes:
        bias: whether a bias is added to each row.
        activation: "relu" or "gelu" if that follows, else "".
        slope: the activation by whose derivative the result is multiplied, or "".
        adds: whether the epilogue only adds an array of the result's shape.
        keeps: whether other steps read what the activation keeps for its gradient: bits for relu,
            the argument for gelu.
        sums: ``"out"`` if the sum over all rows of the result is a second result (only with a
            slope), ``"b"`` if the sum of the second factor is (only without anything else), else
            ``""``.
    """

    __slots__ = ("activation", "adds", "bias", "keeps", "slope", "sums")

    def __init__(
        self,
        args: Sequence[Any],
        outs: list[Value],
        *,
        bias: bool,
        activation: str,
        slope: str,
        adds: bool,
        sums: str,
        keeps: bool,
    ) -> None:
        self.adds, self.keeps = adds, keeps
        self.bias, self.activation, self.slope, self.sums = bias, activation, slope, sums
        parts = ["matmul", "add" * adds, "bias" * bias, activation, slope and f"{slope}_grad"]
        parts.append(sums and f"sum of {sums}")
        super().__init__(None, args, {}, outs, name=" + ".join(filter(None, parts)))

    def share(self, masked: Product) -> None:
        """Let another product read the bits that this one keeps for its relu."""
        if not self.keeps:
            self.keeps = True
            *stack, columns = self.outs[0].shape
            shape = cublaslt.relu_aux_shape(math.prod(stack), columns)
            bits = np.broadcast_to(np.uint8(0), shape)
            self.outs = [*self.outs, Value(bits)]
        masked.args = (*masked.args, self.outs[-1])

    def run(self, xp: Reading, a: Any, b: Any, *rest: Any) -> list[Any]:
        """Execute on plain arrays, in one launch if cuBLASLt can."""
        results = NotImplemented if xp is NUMPY else self._fused(xp.lib, a, b, *rest)
        return self._unfused(xp, a, b, *rest) if results is NotImplemented else results

    def _unfused(self, xp: Reading, a: Any, b: Any, *rest: Any) -> list[Any]:
        out = xp.matmul(a, b)
        out = kept = xp.add(out, rest[0]) if self.bias or self.adds else out
        if self.activation == "relu":
            out = kept = xp.relu(out)  # kept instead of bits
        elif self.activation == "gelu":
            out = xp.gelu(out, approximate="tanh")
        if self.slope == "relu":
            out = xp.multiply(out, xp.greater(rest[0], 0))
        elif self.slope == "gelu":
            out = xp.multiply(out, xp.gelu_tanh_slope(rest[0]))
        results, summed = [out], {"out": out, "b": b}.get(self.sums)
        if summed is not None:
            results.append(xp.sum_to(summed, summed.shape[-1:]))
        return [*results, kept] if self.keeps else results

    def _fused(self, lib: Any, a: Any, b: Any, *rest: Any) -> Any:
        shape, n = (*a.shape[:-1], b.shape[1]), b.shape[1]
        a = a.reshape(math.prod(a.shape[:-1]), a.shape[-1])
        name, bias, aux, added = "default", None, cast(Any, None), None
        if self.adds:
            added = lib.ascontiguousarray(rest[0]).reshape(len(a), n)
        elif self.slope:
            name, bias, aux = f"d{self.slope}_bgrad", lib.empty(n, dtype=a.dtype), rest[-1]
            if self.slope == "gelu":
                aux = lib.ascontiguousarray(aux).reshape(len(a), n)
            elif aux.dtype != np.uint8:  # relu's result, as its product kept no bits
                return NotImplemented
        elif self.sums:
            name, bias = "bgrad_b", lib.empty(n, dtype=a.dtype)
        elif self.bias:
            name = "_".join(filter(None, (self.activation, "aux" * self.keeps, "bias")))
            bias = lib.ascontiguousarray(rest[0])  # it must be contiguous
            if self.keeps and self.activation == "gelu":
                aux = cublaslt.gelu_aux(lib, len(a), n, a.dtype)
            elif self.keeps:
                aux = cublaslt.relu_aux(lib, len(a), n)
        out = cublaslt.product(lib, a, b, added=added, epilogue=name, bias=bias, aux=aux)
        if out is NotImplemented:
            return out
        results = [out.reshape(shape)]
        if self.sums:
            results.append(bias)
        if self.keeps:
            results.append(aux.reshape(shape) if self.activation == "gelu" else aux)
        return results
