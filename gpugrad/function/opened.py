"""Layer norms as the steps of their formula: so that kernels take what is before and behind.

The op has a kernel of its own, which reads its argument from memory and writes its result there.
As steps over rows it joins the sum in front of it and the cast behind it: a transformer's residual
stream is read once, not three times.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from gpugrad.backend import HALF
from gpugrad.function.fuse import LONG_ROW
from gpugrad.function.rewrite import Rewriter
from gpugrad.program import Program, Step, Value

__all__ = ["opened"]


def opened(program: Program) -> Program:
    """Write norms of rows, along the last axis, as steps."""
    writer = _Writer(program)
    for step in program.steps:
        step = writer.renamed(step)
        if _is_of_rows(step):
            writer.open(step)
        else:
            writer.keep(step)
    return writer.program()


def _is_of_rows(step: Step) -> bool:
    if step.name != "standardize_affine" or not step.params["centered"]:
        return False
    (x, *_), last = step.inputs, (-1, (-1,), len(step.outs[0].shape) - 1)
    return {step.params[name] for name in ("axis", "along")} <= {*last} and x.shape[-1] <= LONG_ROW


class _Writer(Rewriter):
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
