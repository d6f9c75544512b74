"""Steps that overwrite an argument with their result, because nothing else reads it again.

The gradient of a cross entropy is as large as the scores, which often are the largest array of a
step. A program shows who reads them; in eager code a Tensor may outlive its gradient.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

from gpugrad.core.backend import Reading
from gpugrad.function.memory import roots_of
from gpugrad.function.passes.epilogues import Product
from gpugrad.function.passes.fuse import FusedKernel
from gpugrad.function.passes.rewrite import FusedStep, is_product
from gpugrad.trace.program import Program, Step, Value


def overwriting(program: Program) -> set[int]:
    """The ids of steps that may write their result over the argument `overwrites`.

    The program must have made the argument's memory, by a step that always writes to new memory;
    no result may share it, and the step must be its last reader and read it once.
    """
    roots = roots_of(program)

    def root(v: Value) -> int:
        return roots.get(id(v), id(v))

    fresh = {id(v) for step in program.steps if _writes_new(step) for v in step.outs if not v.view}
    last: dict[int, Step] = {}
    for step in program.steps:
        last.update((root(v), step) for v in step.inputs)
        if len(step.inputs) > 1 and any(v.view for v in step.outs):
            fresh -= {root(v) for v in step.inputs}  # a view of any of them
    fresh -= {root(v) for v in (*program.outputs, *(v for _, v in program.writes))}
    ids = set()
    for step in program.steps:
        if (position := _overwrites(step)) is not None:
            v = step.args[position]
            read = [root(a) for a in step.inputs]
            if root(v) in fresh and last[root(v)] is step and read.count(root(v)) == 1:
                ids.add(id(step))
    return ids


def _overwrites(step: Step) -> int | None:
    if isinstance(step, FusedStep):
        return step.overwrites
    op = step.op
    if op is None or op.overwrites is None or op.cuda is None:
        return None
    return op.overwrites


def _writes_new(step: Step) -> bool:
    # a product may be a matmul without an epilogue; other ops may return an argument's memory
    return isinstance(step, (FusedKernel, Product)) or is_product(step)


def over(step: Step, xp: Reading, fallback: Callable[..., Any]) -> Callable[..., Any]:
    """Executes such a step; `fallback` does if the kernel declines the arrays."""
    launcher: Callable[..., Any]
    if isinstance(step, FusedStep):
        launcher = functools.partial(step.run, xp, over=True)
    else:
        launcher = functools.partial(step.op.cuda, xp, **step.params, over=True)

    def call(*args: Any) -> Any:
        result = launcher(*args)
        if result is NotImplemented:
            return fallback(*args)
        return result if isinstance(result, list) else [result]

    return call
