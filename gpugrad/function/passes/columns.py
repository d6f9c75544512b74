"""Products of which only some columns are read compute no others.

The gradient of ``concat([x, h]) @ w`` by `h` alone, as in the body of a recurrent network, is some
columns of ``g @ w.T``.
"""

from __future__ import annotations

from gpugrad.function.cpu.view_layouts import is_view
from gpugrad.function.passes.pieces import ranges_of
from gpugrad.function.passes.rewrite import Readers, Rewriter, is_product
from gpugrad.trace.program import Program, Step, Value


def multiply_columns(program: Program) -> Program:
    """Multiply by the columns that the only reader of a product selects from it."""
    readers, rewriter, done = Readers(program), Rewriter(program), set[int]()
    for step in program.steps:
        reader = readers.only(step.outs[0]) if is_product(step) else None
        columns = None if reader is None else _columns(step, reader)
        step = rewriter.renamed(step)
        if columns is not None and reader is not None:
            x, y = step.args
            shape = (y.shape[0], columns.stop - columns.start)
            part = rewriter.step(step, "getitem", [y], {"index": (slice(None), columns)}, shape)
            part.view = True
            (out,) = reader.outs
            product = rewriter.step(step, step.name, [x, part], {}, out.shape, out.dtype)
            rewriter.replace(out, product)
            done.add(id(out))
        elif not any(id(v) in done for v in step.outs):
            rewriter.keep(step)
    return rewriter.program()


def _columns(product: Step, reader: Step) -> slice | None:
    """The columns of a product with a matrix that a step selects, if it selects nothing else."""
    (out,) = product.outs
    arrays = all(isinstance(a, Value) for a in product.args)
    if not arrays or not is_view(reader) or "index" not in reader.params:
        return None
    ranges = ranges_of(reader.params["index"], out.shape)
    if ranges is None or len(product.args[1].shape) != 2 or len(product.args[0].shape) < 2:
        return None
    *others, last = ranges
    whole = all(r == range(n) for r, n in zip(others, out.shape[:-1], strict=True))
    if not whole or last.step != 1 or len(reader.outs[0].shape) != len(out.shape):
        return None
    return slice(last.start, last.stop)
