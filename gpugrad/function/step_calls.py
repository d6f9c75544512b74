"""The functions that execute steps on plain NumPy or CuPy arrays in a replay."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import numpy as np

from gpugrad.core.backend import NUMPY, Reading
from gpugrad.core.tensor import wrap
from gpugrad.errors import reraise
from gpugrad.ops.arrays.index_rules import has_arrays, resolve_index
from gpugrad.registry.record import Op
from gpugrad.trace.program import NotReplayable, Step, Value, fill_index, takes_arguments


def op_call(step: Step, xp: Reading) -> Callable[..., Any]:
    """The op's own function, on the arrays of the step's `args`."""
    op = step.op
    assert op is not None
    function, params, n = op.bare(xp), step.params, len(op.arrays)
    index = params.get("index")
    if not takes_arguments(index):
        if xp is NUMPY or not has_arrays(index):
            return functools.partial(function, **params)
        shape = params.get("shape", getattr(step.args[0], "shape", ()))
        on_device: list[Any] = []  # filled by the first call, which runs on the arrays' device

        def call_at(*args: Any) -> Any:
            if not on_device:
                on_device.append(resolve_index(op.name, xp, shape, index))
            return function(*args, **params | {"index": on_device[0]})

        return call_at

    def call(*args: Any) -> Any:
        return function(*args[:n], **params | {"index": fill_index(index, args)})

    return call


def effect_call(step: Step) -> Callable[[list[Any], Any, list[Any]], list[Any]]:
    """The function that executes an effect.

    It takes arrays, the Variables that the effect updates, and a list of their values, which it
    empties; it returns arrays for the step's `outs`.
    """

    def run(arrays: list[Any], variables: Any, values: list[Any]) -> list[Any]:
        for variable in variables:
            variable._data = values.pop(0)
        # one of several results of NumPy may be a scalar
        arrays = [np.asarray(a) if isinstance(a, np.generic) else a for a in arrays]
        results = step.call(*map(wrap, arrays))  # type: ignore[misc]
        return [*(t._data for t in results), *(variable._data for variable in variables)]

    return run


def in_python(step: Step) -> Callable[[list[Any]], None]:
    """The function that executes an op's step: of the arrays that it reads, and of its results."""
    run, args, n = op_call(step, NUMPY), step.args, len(step.outs)

    def call(arrays: list[Any]) -> None:
        of = iter(arrays)

        def argument(a: Any) -> Any:
            if isinstance(a, list):
                return [argument(x) for x in a]
            return next(of) if isinstance(a, Value) else a

        results = run(*map(argument, args))
        several = step.op is not None and step.op.outputs > 1
        for out, result in zip(arrays[-n:], results if several else (results,), strict=True):
            out[...] = result

    return call


def reraise_as_op(error: Exception, step: Step) -> None:
    """Raise the error of an op's step as the op itself would; return if the step is not an op."""
    if isinstance(step.op, Op) and not isinstance(error, NotReplayable):
        reraise(
            error, step.op.name, dict(zip(step.op.arrays, step.args, strict=False)), step.params
        )
