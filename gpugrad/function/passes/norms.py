"""Norms expanded into the steps of their formula, so that kernels fuse them with their neighbours.

A layer norm has a kernel of its own, which reads its argument from memory and writes its result to
memory. As steps over rows it fuses with the sum before it and the cast after it: a transformer's
residual stream is read once, not three times. Standard deviations and vector norms are several
CuPy functions, but one or two kernels as steps.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from gpugrad.core.backend import HALF
from gpugrad.function.passes.fuse import LONG_ROW, axes_of
from gpugrad.function.passes.rewrite import Rewriter
from gpugrad.trace.program import Program, Step, Value


def expand_norms(program: Program) -> Program:
    """Expand layer norms along the last axis, standard deviations and vector norms of floats."""
    expander = _Expander(program)
    for step in program.steps:
        step = expander.renamed(step)
        if _is_of_rows(step):
            expander.layer_norm(step)
        elif step.name == "std" and _is_of_floats(step):
            expander.std(step)
        elif step.name == "vector_norm" and step.params["ord"] == 2 and _is_of_floats(step):
            expander.vector_norm(step)
        else:
            expander.keep(step)
    return expander.program()


def _is_of_floats(step: Step) -> bool:
    x = step.args[0]
    return isinstance(x, Value) and x.dtype in (np.float32, np.float64) and 0 not in x.shape


def _is_of_rows(step: Step) -> bool:
    # this pass rewrites layer norms alone, which have kernels for whole rows
    if step.name != "standardize_affine" or not step.params["centered"]:
        return False
    (x, *_), last = step.inputs, (-1, (-1,), len(step.outs[0].shape) - 1)
    return {step.params[name] for name in ("axis", "along")} <= {*last} and x.shape[-1] <= LONG_ROW


class _Expander(Rewriter):
    def std(self, step: Step) -> None:
        """Append the formula of ``std``."""
        (x,), (out,), params = step.args, step.outs, step.params
        axis, n = params["axis"], math.prod(x.shape) // math.prod(out.shape)
        kept = [1 if k in axes_of(step) else m for k, m in enumerate(x.shape)]
        correction = params["correction"] if params["ddof"] is None else params["ddof"]
        if n <= correction:
            self.keep(step)  # the result is NaN
            return
        mean = self.step(step, "mean", [x], {"axis": axis, "keepdims": True}, tuple(kept))
        centred = self.step(step, "subtract", [x, mean], {}, x.shape)
        self.replace(out, self._root_of_squares(step, centred, n - correction))

    def vector_norm(self, step: Step) -> None:
        """Append the formula of ``vector_norm``."""
        self.replace(step.outs[0], self._root_of_squares(step, step.args[0]))

    def _root_of_squares(self, of: Step, x: Value, divisor: int = 1) -> Value:
        """In float64, where squares of float32 neither overflow nor vanish."""
        (out,), wide = of.outs, np.dtype(np.float64)
        params = {"axis": of.params["axis"], "dtype": None, "keepdims": of.params["keepdims"]}

        def append(
            name: str, *args: Any, dtype: Any = wide, shape: Any = out.shape, **how: Any
        ) -> Any:
            return self.step(of, name, args, how, shape, dtype)

        if x.dtype != wide:
            x = append("astype", x, shape=x.shape, dtype=wide)
        total = append("sum", append("multiply", x, x, shape=x.shape), **params)
        root = append("sqrt", total if divisor == 1 else append("divide", total, divisor))
        return root if out.dtype == wide else append("astype", root, dtype=out.dtype)

    def layer_norm(self, step: Step) -> None:
        """Append the formula of ``standardize_affine``; it computes 16-bit floats as float32."""
        x, weight, bias = step.args
        out, mean, var = step.outs
        wide = np.dtype(np.float32) if x.dtype in HALF else x.dtype

        def append(
            name: str, *args: Any, like: Value = out, dtype: Any = wide, **params: Any
        ) -> Any:
            return self.step(step, name, args, params, like.shape, dtype)

        def cast(v: Any, dtype: Any) -> Any:
            return v if v.dtype == dtype else append("astype", v, like=v, dtype=dtype)

        x = cast(x, wide)
        average = append("mean", x, like=mean, axis=-1, keepdims=True)
        centred = append("subtract", x, average)
        squares = append("multiply", centred, centred)
        variance = append("mean", squares, like=var, axis=-1, keepdims=True)
        shifted = append("add", variance, step.params["eps"], like=var)
        regular = append("not_equal", shifted, 0, like=var, dtype=bool)
        root = append("rsqrt", append("where", regular, shifted, 1, like=var), like=var)
        root = append("where", regular, root, 0, like=var)
        # NaN where the variance has overflowed, not a result of 0
        root = append("add", root, append("multiply", shifted, 0, like=var), like=var)
        y = append("multiply", centred, root)
        if weight is not None:
            y = append("multiply", y, cast(weight, wide))
        if bias is not None:
            y = append("add", y, cast(bias, wide))
        for old, new in zip(step.outs, (cast(y, out.dtype), average, variance), strict=True):
            self.replace(old, new)
