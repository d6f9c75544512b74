"""Gradients of a table that is used twice: as an embedding, and as the kernel of a product.

The rows of the embedding's gradient are added to the product's gradient where that is cast to
float32, instead of to zeros that are added to it afterwards: one array less is written and read.
"""

from __future__ import annotations

from typing import Any

from gpugrad.core.backend import HALF, Reading
from gpugrad.function.passes.rewrite import FusedStep, Readers, replace_steps
from gpugrad.kernels.by_hand.scatter import scatter_rows
from gpugrad.trace.program import Program, Step, Value

__all__ = ["join_tied"]


class _RowsAdded(FusedStep):
    """The arguments are the rows, their indices, and the 16-bit array that they are added to."""

    __slots__ = ()

    def __init__(self, scatter: Step, cast: Step, add: Step) -> None:
        args = [*scatter.args, cast.args[0]]
        super().__init__("astype + scatter_rows", args, [scatter, cast, add], add.outs)

    def run(self, xp: Reading, *arrays: Any, over: bool = False) -> Any:
        """See `FusedStep.run`."""
        values, indices, array = arrays
        whole = xp.lib.ascontiguousarray(xp.astype(array, values.dtype))
        out = scatter_rows(xp, values, indices, onto=whole, **self.params)
        return out if out is NotImplemented else [out]


def join_tied(program: Program) -> Program:
    """Join the addition of `scatter_rows` to a widened 16-bit array."""
    readers = Readers(program)
    replacements: dict[int, list[Step]] = {}
    for add in program.steps:
        makers = [readers.maker.get(id(v)) for v in add.inputs] if add.name == "add" else []
        for scatter, cast in (makers, makers[::-1]) if len(makers) == 2 else ():
            if scatter is not None and cast is not None and _fits(scatter, cast, add, readers):
                replacements.update((id(s), []) for s in (scatter, cast))
                replacements[id(add)] = [_RowsAdded(scatter, cast, add)]
    return replace_steps(program, replacements)


def _fits(scatter: Step, cast: Step, add: Step, readers: Readers) -> bool:
    # scatter_rows is the one op whose launcher can add to an array that is there
    if scatter.name != "scatter_rows" or cast.name != "astype":
        return False
    (rows,), (wide,), (out,) = scatter.outs, cast.outs, add.outs
    narrow = cast.args[0]
    same = {(v.shape, v.dtype) for v in (rows, wide, out)}
    once = readers.only(rows) is add and readers.only(wide) is add
    return len(same) == 1 and once and isinstance(narrow, Value) and narrow.dtype in HALF
