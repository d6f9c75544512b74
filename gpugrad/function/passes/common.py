"""The same step twice is one step."""

from __future__ import annotations

from typing import Any

import numpy as np

from gpugrad.core.backend import ARRAYS
from gpugrad.core.tensor import Tensor
from gpugrad.function.passes.rewrite import Rewriter
from gpugrad.trace.program import Program, Step, Value

__all__ = ["common_subexpressions"]


def _key(x: Any) -> Any:
    """Something hashable that is equal for equal arguments."""
    if isinstance(x, Value):
        array = x.constant
        if array is None or array.size != 1:
            return id(x)
        return "constant", x.shape, x.dtype, array.tobytes()
    if isinstance(x, (list, tuple)):
        return (type(x), *map(_key, x))
    if isinstance(x, Tensor):  # as an index may be
        return _key(x._data)
    if isinstance(x, np.ndarray):
        return "array", x.shape, x.dtype.str, x.tobytes()
    if type(x) in ARRAYS:  # of a GPU, whose text does not show all elements
        return id(x)
    if isinstance(x, slice):
        return "slice", x.start, x.stop, x.step
    return type(x), repr(x)


def common_subexpressions(program: Program) -> Program:
    """Compute what is computed twice, from the same values in the same way, once."""
    rewriter = Rewriter(program)
    seen: dict[Any, Step] = {}
    for step in program.steps:
        step = rewriter.renamed(step)
        if step.op is None:
            rewriter.keep(step)
            continue
        params = tuple((k, _key(step.params[k])) for k in sorted(step.params))
        key = (step.op, _key(step.args), params)
        before = seen.setdefault(key, step)
        if before is step:
            rewriter.keep(step)
        else:
            for out, old in zip(step.outs, before.outs, strict=True):
                rewriter.replace(out, old)
    return rewriter.program()
