"""Steps on arrays of the host in a program for a GPU: kernels and graphs leave them alone.

Such as what is done to a batch before it is moved.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from gpugrad.core.backend import NUMPY, as_array
from gpugrad.core.tensor import Tensor, wrap
from gpugrad.function.calls import op_call
from gpugrad.trace.program import Program, Step

__all__ = ["set_apart"]


def set_apart(program: Program) -> Program:
    """The program with such steps as effects, which run where they stand."""
    made = program.copy()
    made.steps = [_effect(s) if _is_on_host(s) else s for s in program.steps]
    return made


def _is_on_host(step: Step) -> bool:
    if step.op is None or step.op.kind == "control":
        return False
    return all(v.host for v in step.inputs or step.outs)  # also if it moves them to a GPU


def _effect(step: Step) -> Step:
    function, several = op_call(step, NUMPY), step.op.outputs > 1

    def call(*tensors: Tensor) -> list[Tensor]:
        with np.errstate(all="ignore"):
            made: Any = function(*[t._data for t in tensors])
        return [wrap(as_array(a, np.ndarray)) for a in (made if several else (made,))]

    effect = Step(
        None, step.args, step.params, step.outs, name=step.name, call=call,
        undo=lambda: lambda: None,
    )  # fmt: skip
    effect.backward, effect.phase = step.backward, step.phase
    return effect
