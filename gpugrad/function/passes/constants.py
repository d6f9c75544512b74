"""What follows from constants is a constant."""

from __future__ import annotations

from gpugrad.function.passes.rewrite import Rewriter
from gpugrad.trace.program import Program, Value

__all__ = ["fold_constants"]

LARGEST = 1 << 20  # bytes that a folded constant may take; a larger one is made at each run


def fold_constants(program: Program) -> Program:
    """Take the results of steps that read constants only from the run that was traced."""
    rewriter = Rewriter(program)
    for step in program.steps:
        step = rewriter.renamed(step)
        known = step.op is not None and len(step.results) == len(step.outs)  # not in a branch
        constant = known and all(v.constant is not None for v in step.inputs)
        small = all(array is not None and array.nbytes <= LARGEST for array in step.results)
        if constant and (small or all(0 in array.strides for array in step.results)):
            for out, array in zip(step.outs, step.results, strict=True):
                rewriter.replace(out, Value(array, constant=True))
        else:
            rewriter.keep(step)
    return rewriter.program()
