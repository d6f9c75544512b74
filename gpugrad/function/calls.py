"""What a step calls at a replay, of bare arrays."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

from gpugrad.core.backend import NUMPY, Namespace
from gpugrad.core.tensor import wrap
from gpugrad.errors import reraise
from gpugrad.ops.arrays.index_rules import has_arrays, resolve_index
from gpugrad.registry.record import Op
from gpugrad.trace.program import OtherwiseError, Step, filled, takes_arguments

__all__ = ["effect_call", "op_call", "said"]


def op_call(step: Step, xp: Namespace) -> Callable[..., Any]:
    """The op's own function, of the arrays of the step's `args`."""
    op = step.op
    assert op is not None
    bare, params, n = op.bare(xp), step.params, len(op.arrays)
    index = params.get("index")
    if not takes_arguments(index):
        if xp is NUMPY or not has_arrays(index):
            return functools.partial(bare, **params)
        shape = params.get("shape", getattr(step.args[0], "shape", ()))
        there: list[Any] = []  # from the first call on, which is on the arrays' device

        def call_at(*args: Any) -> Any:
            if not there:
                there.append(resolve_index(op.name, xp, shape, index))
            return bare(*args, **params | {"index": there[0]})

        return call_at

    def call(*args: Any) -> Any:
        return bare(*args[:n], **params | {"index": filled(index, args)})

    return call


def effect_call(step: Step) -> Callable[[list[Any], Any, list[Any]], list[Any]]:
    """An effect, of arrays, the Variables that it moves and their values, of which it lets go.

    It returns arrays for the step's `outs`.
    """

    def run(arrays: list[Any], variables: Any, values: list[Any]) -> list[Any]:
        for variable in variables:
            variable._data = values.pop(0)
        made = step.call(*[wrap(a) for a in arrays])  # type: ignore[misc]
        return [*(t._data for t in made), *(variable._data for variable in variables)]

    return run


def said(error: Exception, step: Step) -> None:
    """Raise what an op's step has raised as the op itself would; return if it is no op's."""
    if isinstance(step.op, Op) and not isinstance(error, OtherwiseError):
        reraise(
            error, step.op.name, dict(zip(step.op.arrays, step.args, strict=False)), step.params
        )
