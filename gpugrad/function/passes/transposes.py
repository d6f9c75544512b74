"""Transposes of the last two axes under one name.

A view of them costs nothing on either library, and a matrix product reads the strides of what
it is given. What is worth doing is to write every such transpose as `matrix_transpose`, so that two
of them cancel, and the same one written in two ways, as ``x.T`` in a model and the transpose that
matmul's gradient takes, is one step. Of a product that is only read transposed, as the gradient of
a layer's weights that are used so, the factors are transposed: then it lies as its readers go
through it.
"""

from __future__ import annotations

from gpugrad.function.passes.readers import Readers
from gpugrad.function.passes.rewrite import Rewriter
from gpugrad.registry.record import OPS
from gpugrad.trace.program import Program, Step, Value

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
    """Write a transpose of the last two axes as `matrix_transpose`, and of a product's factors."""
    rewriter = Rewriter(program)
    for step in program.steps:
        step = rewriter.renamed(step)
        if step.op is not None and len(step.outs) == 1 and _swaps_last_two(step):
            step.op = OPS["matrix_transpose"]
            step.name, step.params = step.op.name, {}
        rewriter.keep(step)
    return _into_products(rewriter.program())


def _into_products(program: Program) -> Program:
    readers, rewriter, gone = Readers(program), Rewriter(program), set()

    def turned(of: Step, x: Value) -> Value:
        made = rewriter.step(of, "matrix_transpose", [x], {}, (*x.shape[:-2], *x.shape[:-3:-1]))
        made.view = True
        return made

    for step in program.steps:
        if id(step) in gone:
            continue
        after = _transpose_of(step, readers)
        step = rewriter.renamed(step)
        if after is None:
            rewriter.keep(step)
            continue
        gone.add(id(after))
        a, b = (turned(step, x) for x in step.args[::-1])
        (out,) = after.outs
        rewriter.replace(out, rewriter.step(step, "matmul", [a, b], {}, out.shape, out.dtype))
    return rewriter.program()


def _transpose_of(step: Step, readers: Readers) -> Step | None:
    """The one transpose that reads a product, if no view is made of what it gives.

    That would be a view of a product then, where the trace has a copy.
    """
    if step.name != "matmul" or any(len(v.shape) < 2 for v in step.inputs):
        return None
    after = readers.only(step.outs[0])
    if after is None or after.name != "matrix_transpose":
        return None
    every = readers.of(after.outs[0])
    apart = (s.op is None or s.op.by_element for s in every)
    return after if all(apart) else None
