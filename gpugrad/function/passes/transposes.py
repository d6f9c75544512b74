"""Transposes of the last two axes under one name.

A view of them costs nothing on either library, and a matrix product reads the strides of what
it is given: there is nothing to fold into it. What is worth doing is to write every such
transpose as `matrix_transpose`, so that two of them cancel, and the same one written in two
ways, as ``x.T`` in a model and the transpose that matmul's gradient takes, is one step.
"""

from __future__ import annotations

from gpugrad.function.rewrite import Rewriter
from gpugrad.op import OPS
from gpugrad.program import Program, Step

__all__ = ["name_transposes"]


def _swaps_last_two(step: Step) -> bool:
    n = len(step.outs[0].shape)
    if step.op.name == "permute_dims":
        axes = [a % n for a in step.params["axes"]]
        return n >= 2 and axes == [*range(n - 2), n - 1, n - 2]
    if step.op.name == "swapaxes":
        return {step.params["axis1"] % n, step.params["axis2"] % n} == {n - 1, n - 2}
    return False


def name_transposes(program: Program) -> Program:
    """Write a transpose of the last two axes as `matrix_transpose`."""
    rewriter = Rewriter(program)
    for step in program.steps:
        step = rewriter.renamed(step)
        if step.op is not None and len(step.outs) == 1 and _swaps_last_two(step):
            step.op = OPS["matrix_transpose"]
            step.name, step.params = step.op.name, {}
        rewriter.keep(step)
    return rewriter.program()
