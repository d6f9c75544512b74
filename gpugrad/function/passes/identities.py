"""Steps that change nothing, to the last bit."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from gpugrad.core.devices import host
from gpugrad.function.passes.rewrite import Rewriter
from gpugrad.trace.program import Program, Step, Value

__all__ = ["simplify"]


def _is(x: Any, number: float) -> bool:
    """Whether an argument is this number, and not -0 for 0."""
    if isinstance(x, Value):
        if x.constant is None or not x.constant.size or any(x.constant.strides):
            return False
        x = host(x.constant[(0,) * x.constant.ndim])  # from a GPU that need not be the current one
    return bool(x == number) and (number != 0 or not np.signbit(np.real(x)))


def _first(step: Step) -> Any:
    return step.args[0]


def _by_one(step: Step) -> Any:
    """The other factor, where one is 1."""
    x, y = step.args
    return x if _is(y, 1) else y if _is(x, 1) else None


_SAME: dict[str, Callable[[Step], Any]] = {
    # x + 0 is not here: -0.0 + 0 is 0.0
    "positive": _first,
    "multiply": _by_one,
    "divide": lambda s: s.args[0] if _is(s.args[1], 1) else None,
    "subtract": lambda s: s.args[0] if _is(s.args[1], 0) else None,
    "power": lambda s: s.args[0] if _is(s.args[1], 1) else None,
    "conj": _first,
    "real": _first,
    "reshape": _first,
    "broadcast_to": _first,
    "sum_to": _first,
    "astype": _first,
    "squeeze": _first,
}
"""What a step is equal to, if its result has the shape and dtype of that."""


def simplify(program: Program) -> Program:
    """Leave out steps whose result is their argument, and join two reshapes, or two transposes."""
    rewriter = Rewriter(program)
    made: dict[int, Step] = {}
    for step in program.steps:
        step = rewriter.renamed(step)
        name = step.op.name if step.op is not None else ""
        same = _SAME[name](step) if name in _SAME else None
        out = step.outs[0] if step.outs else None
        if isinstance(same, Value) and out is not None:
            real = name not in ("conj", "real") or same.dtype.kind != "c"
            if real and (same.shape, same.dtype) == (out.shape, out.dtype):
                rewriter.replace(out, same)
                continue
        before = made.get(id(step.args[0])) if step.args else None
        if before is not None and before.op.name == name:
            if name == "matrix_transpose":
                rewriter.replace(step.outs[0], before.args[0])
                continue
            if name == "reshape" and before.outs[0].view:  # of a copy, this one is a view
                step = rewriter.with_args(step, before.args)
        rewriter.keep(step)
        if step.op is not None and len(step.outs) == 1:
            made[id(step.outs[0])] = step
    return rewriter.program()
