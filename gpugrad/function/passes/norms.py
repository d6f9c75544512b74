"""Norms as the steps of their formula: so that kernels take what is before and behind.

A layer norm has a kernel of its own, which reads its argument from memory and writes its result
there. As steps over rows it joins the sum in front of it and the cast behind it: a transformer's
residual stream is read once, not three times. Standard deviations and norms of vectors are several
functions of CuPy's, and as steps one kernel or two.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from gpugrad.core.backend import HALF
from gpugrad.function.passes.fuse import LONG_ROW, axes_of
from gpugrad.function.passes.rewrite import Rewriter
from gpugrad.trace.program import Program, Step, Value

__all__ = ["expand_norms"]


def expand_norms(program: Program) -> Program:
    """Write layer norms of rows, along the last axis, and other norms of floats as steps."""
    writer = _Writer(program)
    for step in program.steps:
        step = writer.renamed(step)
        if _is_of_rows(step):
            writer.open(step)
        elif step.name == "std" and _is_of_floats(step):
            writer.open_spread(step)
        elif step.name == "vector_norm" and step.params["ord"] == 2 and _is_of_floats(step):
            writer.open_length(step)
        else:
            writer.keep(step)
    return writer.program()


def _is_of_floats(step: Step) -> bool:
    x = step.args[0]
    return isinstance(x, Value) and x.dtype in (np.float32, np.float64) and 0 not in x.shape


def _is_of_rows(step: Step) -> bool:
    if step.name != "standardize_affine" or not step.params["centered"]:
        return False
    (x, *_), last = step.inputs, (-1, (-1,), len(step.outs[0].shape) - 1)
    return {step.params[name] for name in ("axis", "along")} <= {*last} and x.shape[-1] <= LONG_ROW


class _Writer(Rewriter):
    def open_spread(self, step: Step) -> None:
        """Append the formula of ``std``."""
        (x,), (out,), given = step.args, step.outs, step.params
        axis, n = given["axis"], math.prod(x.shape) // math.prod(out.shape)
        kept = [1 if k in axes_of(step) else m for k, m in enumerate(x.shape)]
        less = given["correction"] if given["ddof"] is None else given["ddof"]
        if n <= less:
            self.keep(step)  # no number
            return
        mean = self.step(step, "mean", [x], {"axis": axis, "keepdims": True}, tuple(kept))
        apart = self.step(step, "subtract", [x, mean], {}, x.shape)
        total = self._squares(step, apart)
        variance = self.step(step, "divide", [total, n - less], {}, out.shape)
        self.replace(out, self.step(step, "sqrt", [variance], {}, out.shape))

    def open_length(self, step: Step) -> None:
        """Append the formula of ``vector_norm``."""
        (out,) = step.outs
        self.replace(
            out, self.step(step, "sqrt", [self._squares(step, step.args[0])], {}, out.shape)
        )

    def _squares(self, of: Step, x: Value) -> Value:
        squares = self.step(of, "multiply", [x, x], {}, x.shape)
        params = {"axis": of.params["axis"], "dtype": None, "keepdims": of.params["keepdims"]}
        return self.step(of, "sum", [squares], params, of.outs[0].shape)

    def open(self, step: Step) -> None:
        """Append the formula of ``standardize_affine``; 16-bit floats are float32 within it."""
        x, weight, bias = step.args
        out, mean, var = step.outs
        wide = np.dtype(np.float32) if x.dtype in HALF else x.dtype

        def made(name: str, *args: Any, like: Value = out, dtype: Any = wide, **params: Any) -> Any:
            return self.step(step, name, args, params, like.shape, dtype)

        def cast(v: Any, dtype: Any) -> Any:
            return v if v.dtype == dtype else made("astype", v, like=v, dtype=dtype, copy=True)

        x = cast(x, wide)
        average = made("mean", x, like=mean, axis=-1, keepdims=True)
        apart = made("subtract", x, average)
        squares = made("multiply", apart, apart)
        variance = made("mean", squares, like=var, axis=-1, keepdims=True)
        s = made("add", variance, step.params["eps"], like=var)
        regular = made("not_equal", s, 0, like=var, dtype=bool)
        root = made("rsqrt", made("where", regular, s, 1, like=var), like=var)
        y = made("multiply", apart, made("where", regular, root, 0, like=var))
        if weight is not None:
            y = made("multiply", y, cast(weight, wide))
        if bias is not None:
            y = made("add", y, cast(bias, wide))
        for old, new in zip(step.outs, (cast(y, out.dtype), average, variance), strict=True):
            self.replace(old, new)
