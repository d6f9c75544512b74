"""Steps that write their result over an argument, as nothing else reads it again.

The gradient of a cross entropy is as large as the scores, which often are the largest array of a
step. In a program it is known who reads them: in eager code a Tensor may outlive its gradient.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

from gpugrad.core.backend import Namespace
from gpugrad.function.memory import roots_of
from gpugrad.function.passes.epilogues import Product
from gpugrad.function.passes.fuse import Kernel
from gpugrad.function.passes.joined import Joined
from gpugrad.trace.program import Program, Step, Value

__all__ = ["over", "overwriting"]


def overwriting(program: Program) -> set[int]:
    """The ids of steps that may write their result over the argument `overwrites`.

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
        if (position := _overwrites(step)) is not None:
            v = step.args[position]
            read = [root(a) for a in step.inputs]
            if root(v) in made and last[root(v)] is step and read.count(root(v)) == 1:
                found.add(id(step))
    return found


def _overwrites(step: Step) -> int | None:
    if isinstance(step, Joined):
        return step.overwrites
    return None if step.op is None else step.op.overwrites  # type: ignore[no-any-return]


def _writes_anew(step: Step) -> bool:
    # a product may be a matmul that no epilogue joined; other ops may return an argument's memory
    return isinstance(step, (Kernel, Product)) or step.name == "matmul"


def over(step: Step, xp: Namespace, otherwise: Callable[..., Any]) -> Callable[..., Any]:
    """What runs such a step; `otherwise`, where its kernel does not take these arrays."""
    launcher: Callable[..., Any]
    if isinstance(step, Joined):
        launcher = functools.partial(step.run, xp, over=True)
    else:
        launcher = functools.partial(step.op.cuda, xp, **step.params, over=True)

    def call(*args: Any) -> Any:
        made = launcher(*args)
        if made is NotImplemented:
            return otherwise(*args)
        return made if isinstance(made, list) else [made]

    return call
