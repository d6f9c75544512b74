"""Steps that write their result over an argument, as nothing else reads it again.

The gradient of a cross entropy is as large as the scores, which often are the largest array of a
step. In a program it is known who reads them: in eager code a Tensor may outlive its gradient.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from gpugrad.core.backend import Namespace
from gpugrad.function.memory import roots_of
from gpugrad.function.passes.epilogues import Product
from gpugrad.function.passes.fuse import Kernel
from gpugrad.function.passes.rewrite import FusedStep
from gpugrad.kernels.by_hand.cross_entropy import OVERWRITING
from gpugrad.trace.program import Program, Step, Value

__all__ = ["over", "overwriting"]


def overwriting(program: Program) -> set[int]:
    """The ids of steps that may take the launcher in `OVERWRITING`.

    The argument's memory must have been made in the program by a step that always writes to new
    memory; no result shares it, and the step is the last that reads any of it, once.
    """
    roots = roots_of(program)

    def root(v: Value) -> int:
        return roots.get(id(v), id(v))

    made = {id(v) for step in program.steps if _writes_anew(step) for v in step.outs if not v.view}
    last: dict[int, Step] = {}
    for step in program.steps:
        last.update((root(v), step) for v in step.inputs)
        if len(step.inputs) > 1 and any(v.view for v in step.outs):
            made -= {root(v) for v in step.inputs}  # a view, of any of them
    made -= {root(v) for v in (*program.outputs, *(v for _, v in program.writes))}
    found = set()
    for step in program.steps:
        if step.name in OVERWRITING and (step.op is not None or isinstance(step, FusedStep)):
            v = step.args[OVERWRITING[step.name][0]]
            read = [root(a) for a in step.inputs]
            if root(v) in made and last[root(v)] is step and read.count(root(v)) == 1:
                found.add(id(step))
    return found


def _writes_anew(step: Step) -> bool:
    return isinstance(step, (Kernel, Product)) or step.name == "matmul"


def over(step: Step, xp: Namespace, otherwise: Callable[..., Any]) -> Callable[..., Any]:
    """What runs such a step; `otherwise`, where its kernel does not take these arrays."""
    launcher = OVERWRITING[step.name][1]

    def call(*args: Any) -> Any:
        made = launcher(xp, *args, **step.params)
        if made is NotImplemented:
            return otherwise(*args)
        return made if isinstance(made, list) else [made]

    return call
