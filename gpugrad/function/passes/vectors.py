"""Products of vectors as products of matrices of one row or column, which C passes to BLAS."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from gpugrad.function.passes.rewrite import Rewriter, is_product, rewritten
from gpugrad.trace.program import Program, Step, Value


def multiply_vectors(program: Program) -> Program:
    """Give each vector that is multiplied an axis of length 1."""
    return rewritten(program, _with_matrices)


def _with_matrices(rewriter: Rewriter, step: Step) -> Sequence[Value] | None:
    if not is_product(step) or not all(isinstance(a, Value) for a in step.args):
        return None
    (x, y), (out,) = step.args, step.outs
    if min(len(x.shape), len(y.shape)) != 1:
        return None
    rows = rewriter.reshaped(step, x, (1, *x.shape)) if len(x.shape) == 1 else x
    columns = rewriter.reshaped(step, y, (*y.shape, 1)) if len(y.shape) == 1 else y
    lead = np.broadcast_shapes(rows.shape[:-2], columns.shape[:-2])
    shape = (*lead, rows.shape[-2], columns.shape[-1])
    product = rewriter.step(step, step.name, [rows, columns], {}, shape, out.dtype)
    return [rewriter.reshaped(step, product, out.shape)]
