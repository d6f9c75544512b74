"""Softmax and norms expanded into steps, so that a C kernel fuses them with their neighbours.

On a GPU each of them has a kernel written by hand, which NumPy lacks.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from gpugrad.function.passes.fuse import LONG_ROW
from gpugrad.function.passes.rewrite import Rewriter
from gpugrad.trace.program import Program, Step, Value

__all__ = ["expand_rows", "is_expanded"]


def expand_rows(program: Program) -> Program:
    """Expand softmax along the last axis, and standardization along any axes."""
    expander = _Expander(program)
    for step in program.steps:
        step = expander.renamed(step)
        if is_expanded(step):
            _EXPANDED[step.name](expander, step)
        else:
            expander.keep(step)
    return expander.program()


def is_expanded(step: Step) -> bool:
    """Whether the pass expands a step."""
    if step.op is None or step.name not in _EXPANDED or not _is_of_floats(step):
        return False
    return step.name == "standardize" or _is_along_last(step)


def _is_of_floats(step: Step) -> bool:
    x = step.args[0]
    return isinstance(x, Value) and x.dtype in (np.float32, np.float64) and 0 not in x.shape


def _is_along_last(step: Step) -> bool:
    (x, *_) = step.inputs
    last = (-1, len(x.shape) - 1)
    return step.params.get("axis", -1) in last and x.shape[-1] <= LONG_ROW


class _Expander(Rewriter):
    _of: Step

    def _do(self, name: str, *args: Any, dtype: Any = None) -> Any:
        """Append an elementwise step."""
        values = [a for a in args if isinstance(a, Value)]
        shape = np.broadcast_shapes(*[v.shape for v in values])
        return self.step(self._of, name, args, {}, shape, dtype or values[-1].dtype)

    def _reduce(self, name: str, x: Value, axis: Any = -1) -> Any:
        axes = axis if isinstance(axis, tuple) else (axis,)
        axes = tuple(a % len(x.shape) for a in axes)
        shape = tuple(1 if k in axes else n for k, n in enumerate(x.shape))
        params = {"axis": axis, "keepdims": True} | ({"dtype": None} if name == "sum" else {})
        return self.step(self._of, name, [x], params, shape)

    def softmax(self, step: Step) -> None:
        """Append the formula of ``softmax``."""
        self._of, (x,) = step, step.args
        e = self._do("exp", self._do("subtract", x, self._reduce("max", x)))
        self.replace(step.outs[0], self._do("divide", e, self._reduce("sum", e)))

    def log_softmax(self, step: Step) -> None:
        """Append the formula of ``log_softmax``."""
        self._of, (x,) = step, step.args
        z = self._do("subtract", x, self._reduce("max", x))
        total = self._do("log", self._reduce("sum", self._do("exp", z)))
        self.replace(step.outs[0], self._do("subtract", z, total))

    def masked_softmax(self, step: Step) -> None:
        """Append the formula of ``masked_softmax``."""
        self._of, (x, mask, *_) = step, (*step.args, None)
        if step.params["is_causal"]:
            lower = Value(np.tri(*x.shape[-2:], dtype=bool), constant=True)
            mask = lower if mask is None else self._do("logical_and", mask, lower)
        if mask is not None:
            x = self._do("where", mask, x, -math.inf, dtype=x.dtype)
        top = self._reduce("max", x)
        nothing = self._do("equal", top, -math.inf, dtype=bool)
        top = self._do("where", nothing, 0, top)
        e = self._do("exp", self._do("subtract", x, top))
        total = self._reduce("sum", e)
        empty = self._do("equal", total, 0, dtype=bool)
        total = self._do("where", empty, 1, total)
        self.replace(step.outs[0], self._do("divide", e, total))

    def standardize(self, step: Step) -> None:
        """Append the formula of ``standardize``."""
        self._of, (x,), (out, mean, std) = step, step.args, step.outs
        axis, eps = step.params["axis"], step.params["eps"]
        average = self._reduce("mean", x, axis)
        d = self._do("subtract", x, average)
        root, inverse = self._lengths(d, axis, eps)
        self.replace(out, self._do("multiply", d, inverse))
        self.replace(mean, average)
        self.replace(std, root)

    def _lengths(self, x: Value, axis: Any, eps: float) -> tuple[Any, Any]:
        """The root of the mean square, and 1 / sqrt(mean square + eps), or 0 where that is inf.

        By scaled values where squares overflow or, without `eps`, vanish.
        """
        limits = np.finfo(x.dtype)
        half = 2.0 ** (limits.maxexp // 2)
        square = self._mean_square(x, axis)
        root = length = self._do("sqrt", square)
        if eps:
            length = self._do("sqrt", self._do("add", square, eps))
        ranges = [("greater", float(limits.max), 1 / half)]
        ranges += [] if eps else [("less", float(limits.tiny / limits.eps), half)]
        for beyond, limit, scale in ranges:
            there = self._do(beyond, square, limit, dtype=bool)
            scaled = self._mean_square(self._do("multiply", x, scale), axis)
            size = self._do("multiply", self._do("sqrt", scaled), 1 / scale)
            root, length = (self._do("where", there, size, a) for a in (root, length))
        if eps:
            return root, self._do("reciprocal", length)
        nothing = self._do("equal", length, 0, dtype=bool)
        inverse = self._do("reciprocal", self._do("where", nothing, 1, length))
        return root, self._do("where", nothing, 0, inverse)

    def _mean_square(self, x: Value, axis: Any) -> Any:
        return self._reduce("mean", self._do("multiply", x, x), axis)


_EXPANDED: dict[str, Callable[[_Expander, Step], None]] = {
    # these ops alone combine rows in ways that no field of a record describes
    "softmax": _Expander.softmax,
    "log_softmax": _Expander.log_softmax,
    "masked_softmax": _Expander.masked_softmax,
    "standardize": _Expander.standardize,
}
