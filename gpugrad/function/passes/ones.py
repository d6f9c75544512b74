"""Products with arrays of ones, the gradients of sums, become broadcasts and sums."""

from __future__ import annotations

from collections.abc import Sequence

from gpugrad.function.passes.rewrite import Readers, Rewriter, axis_order, is_product, rewritten
from gpugrad.function.passes.simplify import is_number, passed_on
from gpugrad.trace.program import Program, Step, Value


def remove_ones(program: Program) -> Program:
    """Write a product with an array of ones as a broadcast, or as a sum over rows.

    A matrix product with one row of ones is a sum over the rows of the other factor, which may join
    the kernel that computes these. An elementwise product with ones only broadcasts the other
    factor. That is a view, so all its readers must be elementwise: a matrix product would have to
    copy it.
    """
    readers = Readers(program)

    def remove(rewriter: Rewriter, step: Step) -> Sequence[Value] | None:
        new = None
        if is_product(step):
            new = _summed(step, readers, rewriter)
        elif len(step.outs) == 1 and _only_elements(step, readers):
            new = _broadcast(step, rewriter)
        return None if new is None else [new]

    return rewritten(program, remove)


def _only_elements(step: Step, readers: Readers) -> bool:
    (out,) = step.outs
    steps = readers.of(out)
    elementwise = all(s.op is not None and bool(s.op.by_element) for s in steps)
    return elementwise and not readers.is_result(out)


def _broadcast(step: Step, rewriter: Rewriter) -> Value | None:
    """The other factor of a product with ones, as a view of the result's shape, or None."""
    (out,) = step.outs
    other = passed_on(step)
    if other is None or other.dtype != out.dtype or other.shape == out.shape:
        return None
    new = rewriter.step(step, "broadcast_to", [other], {"shape": out.shape}, out.shape)
    new.view = True
    return new


def _summed(step: Step, readers: Readers, rewriter: Rewriter) -> Value | None:
    """The sum that a product with a row or a column of ones is, or None."""
    (out,) = step.outs
    a, b = step.args
    if out.dtype.char not in "fd" or not len(a.shape) == len(b.shape) == 2:
        return None
    if a.shape[0] == 1 and is_number(a, 1) and b.dtype == out.dtype:
        return rewriter.step(step, "sum_to", [b], {"shape": out.shape}, out.shape)
    if b.shape[1] != 1 or not is_number(b, 1) or a.dtype != out.dtype:
        return None
    maker = readers.maker.get(id(a))
    if maker is None or axis_order(maker) != (1, 0):
        return rewriter.step(step, "sum_to", [a], {"shape": out.shape}, out.shape)
    rows = rewriter.value(maker.args[0])
    row = rewriter.step(step, "sum_to", [rows], {"shape": out.shape[::-1]}, out.shape[::-1])
    return rewriter.reshaped(step, row, out.shape)
