"""Opens ops: their own formula, run on traced arrays, writes the steps that take their place.

A layer norm has a kernel of its own, which reads its argument from memory and writes its result to
memory. As steps over rows it fuses with the sum before it and the cast after it: a transformer's
residual stream is read once, not three times. Softmax and cross entropy have such kernels on a GPU,
but in C they are steps. The field `opens` of an op's record says where it is opened.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.lib.array_utils import normalize_axis_tuple

from gpugrad.core.backend import NUMPY
from gpugrad.function.passes.rewrite import Rewriter
from gpugrad.trace.array import TRACED, Traced, current
from gpugrad.trace.program import Program, Step, Value

_WIDE = {np.dtype(np.float32), np.dtype(np.float64)}


def open_norms(program: Program) -> Program:
    """Open the ops that kernels compute better as steps, on a GPU and in C."""
    return _Opener(program, "kernels").opened()


def open_rows(program: Program) -> Program:
    """Open the ops that only C has no kernels for."""
    return _Opener(program, "c").opened()


def is_opened(step: Step, where: str = "c") -> bool:
    """Whether the pass for ``"kernels"`` or for ``"c"`` opens a step."""
    if step.op is None or step.op.kind == "control" or step.op.opens in (None, "traced"):
        return False
    listed = [x for a in step.args for x in (a if isinstance(a, list) else [a])]
    values = [a for a in listed if a is not None]
    if any(type(a) is not Value or 0 in a.shape for a in values):
        return False
    opens = step.op.opens
    if (opens(*step.args, **step.params) if callable(opens) else opens) != where:
        return False
    floats = {v.dtype for v in values if v.dtype.kind not in "biu"}
    if where == "c":  # it computes in one dtype, which is a float's
        floats |= {np.dtype(d) for d in [step.params.get("dtype")] if d}
        return len(floats) == 1 and floats <= _WIDE
    return floats <= _WIDE or (step.op.native_half and all(d.kind in "fV" for d in floats))


class _Opener(Rewriter):
    def __init__(self, program: Program, where: str) -> None:
        super().__init__(program)
        self._steps, self._where = program.steps, where
        self._shared: dict[Any, Value] = {}  # results that a kernel cannot compute twice

    def opened(self) -> Program:
        for step in self._steps:
            step = self.renamed(step)
            if is_opened(step, self._where):
                self._open(step)
            else:
                self.keep(step)
        return self.program()

    def _open(self, step: Step) -> None:
        outer, current.trace = current.trace, _Formula(self, step)
        try:
            arrays = [_traced(a) for a in step.args]
            results = step.op.body(TRACED)(*arrays, **step.params)
        finally:
            current.trace = outer
        results = results if step.op.outputs > 1 else (results,)
        for out, result in zip(step.outs, results, strict=True):
            self.replace(out, result.value)

    def is_open(self, step: Step) -> bool:
        return is_opened(step, self._where)

    def written(self, of: Step, op: Any, args: list[Any], params: Any, out: Any) -> Value:
        """Append a step of a formula; return its result, of the shape and dtype of `out`."""
        params, key = dict(params), None
        if not (op.by_element or op.reduces):
            key = op, *map(id, args), *params.values()
            if key in self._shared:
                return self._shared[key]
        value = self.step(of, op.name, args, params, out.shape, out.dtype)
        value.view = op.view is not None
        if key is not None:
            self._shared[key] = value
        return value


class _Formula:
    """The trace in which a formula runs: it writes steps, and computes shapes and dtypes alone."""

    def __init__(self, opener: _Opener, of: Step) -> None:
        self._opener, self._of = opener, of

    def step(self, op: Any, arrays: Sequence[Any], params: dict[str, Any]) -> Any:
        if not any(type(a) is Traced for a in arrays):
            return op.bare(NUMPY)(*arrays, **params)
        args = [_placed(a) for a in arrays]
        step = Step(op, args, params, [])
        if self._opener.is_open(step):
            return op.body(TRACED)(*arrays, **params)
        out = _result(step, [a.inner if type(a) is Traced else a for a in arrays])
        return Traced(out, self._opener.written(self._of, op, args, params, out))


def _traced(a: Any) -> Any:
    """An argument of a step in place of its value."""
    if isinstance(a, list):
        return [_traced(x) for x in a]
    return a if a is None else Traced(_stand_in(a.shape, a.dtype), a)


def _placed(a: Any) -> Any:
    if type(a) is Traced:
        return a.value
    return Value(np.asarray(a), constant=True) if isinstance(a, (np.ndarray, np.generic)) else a


def _stand_in(shape: tuple[int, ...], dtype: Any) -> Any:
    """An array of zeros that takes no memory."""
    return np.broadcast_to(np.zeros((), dtype), shape)


def _result(step: Step, arrays: Sequence[Any]) -> Any:
    """A stand-in for the result of a step of stand-ins, without computing all elements."""
    op, run, params = step.op, step.op.bare(NUMPY), step.params
    with np.errstate(all="ignore"):
        if not op.by_element and (op.reduces is None or "axis" not in params):
            return run(*arrays, **params)
        ones = [a[(slice(1),) * a.ndim] if isinstance(a, np.ndarray) else a for a in arrays]
        one = run(*ones, **params)
    shape = np.broadcast_shapes(*map(np.shape, arrays))
    if op.by_element:
        return _stand_in(shape, one.dtype)
    axis = range(len(shape)) if params["axis"] is None else params["axis"]
    axes = normalize_axis_tuple(axis, len(shape))
    kept = [
        1 if k in axes else n for k, n in enumerate(shape) if params["keepdims"] or k not in axes
    ]
    return _stand_in(tuple(kept), one.dtype)
