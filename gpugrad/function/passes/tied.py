"""Gradients of a table that is used twice: as an embedding, and as the kernel of a product.

The rows of the embedding's gradient are added to the product's gradient where that is cast to
float32, instead of to zeros that are added to it afterwards: one array less is written and read.
A product that nothing else reads is not rounded in between: cuBLASLt writes it in float32.
"""

from __future__ import annotations

import copy
import functools
from typing import Any

from gpugrad.core.backend import HALF, NUMPY, Reading
from gpugrad.function.passes.rewrite import (
    FusedStep,
    Readers,
    is_addition,
    is_cast,
    is_product,
    replace_steps,
)
from gpugrad.kernels.by_hand.scatter import scatter_rows
from gpugrad.kernels.libraries import cublaslt
from gpugrad.registry.record import OPS
from gpugrad.trace.program import Program, Step, Value


class _RowsAdded(FusedStep):
    """The arguments are the rows, their indices, and the array that they are added to.

    That is a 16-bit array, or one in float32 that nothing else reads.
    """

    __slots__ = ()

    def __init__(self, scatter: Step, cast: Step, add: Step) -> None:
        args = [*scatter.args, cast.args[0]]
        launch = functools.partial(_add_rows, scatter.params)
        super().__init__("astype + scatter_rows", args, [scatter, cast, add], add.outs, launch)


def _add_rows(params: Any, xp: Reading, values: Any, indices: Any, whole: Any) -> Any:
    if whole.dtype != values.dtype:
        whole = xp.lib.ascontiguousarray(xp.astype(whole, values.dtype))
    return scatter_rows(xp, values, indices, onto=whole, **params)


def join_tied(program: Program) -> Program:
    """Join the addition of `scatter_rows` to a widened 16-bit array."""
    readers = Readers(program)
    replacements: dict[int, list[Step]] = {}
    for add in program.steps:
        makers = [readers.maker.get(id(v)) for v in add.inputs] if is_addition(add) else []
        for scatter, cast in (makers, makers[::-1]) if len(makers) == 2 else ():
            if scatter is not None and cast is not None and _fits(scatter, cast, add, readers):
                replacements.update((id(s), []) for s in (scatter, cast))
                replacements[id(add)] = [_RowsAdded(scatter, cast, add)]
    return replace_steps(program, replacements)


def _fits(scatter: Step, cast: Step, add: Step, readers: Readers) -> bool:
    # scatter_rows is the one op whose launcher can add to an array that is there
    if scatter.name != "scatter_rows" or not is_cast(cast):
        return False
    (rows,), (wide,), (out,) = scatter.outs, cast.outs, add.outs
    narrow = cast.args[0]
    same = {(v.shape, v.dtype) for v in (rows, wide, out)}
    once = readers.only(rows) is add and readers.only(wide) is add
    return len(same) == 1 and once and isinstance(narrow, Value) and narrow.dtype in HALF


def _wide_product(product: Step, out: Value) -> FusedStep:

    def launch(xp: Reading, *arrays: Any) -> Any:
        return NotImplemented if xp is NUMPY else cublaslt.product(xp.lib, *arrays, dtype=out.dtype)

    cast = Step(OPS["astype"], product.outs, {"dtype": out.dtype}, [out])
    name = f"matmul to {out.dtype}"
    return FusedStep(name, product.args, [product, cast], [out], launch)


def widen_tied(program: Program) -> Program:
    """Leave products in float32 whose only reader adds rows to them there."""
    readers = Readers(program)
    replacements: dict[int, list[Step]] = {}
    for step in program.steps:
        if not isinstance(step, _RowsAdded):
            continue
        product = readers.maker.get(id(step.args[-1]))
        if product is None or not is_product(product) or len(step.args[-1].shape) != 2:
            continue
        scatter, cast, add = step.unfused.steps
        if readers.only(step.args[-1]) is step:
            wide, cast = copy.copy(cast.outs[0]), copy.copy(cast)
            cast.args = (wide,)
            replacements[id(product)] = [_wide_product(product, wide)]
            replacements[id(step)] = [_RowsAdded(scatter, cast, add)]
    return replace_steps(program, replacements)
