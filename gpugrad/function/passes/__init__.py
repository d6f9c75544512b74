"""Passes: functions from a Program to an equivalent, cheaper Program, in the table `PASSES`.

`gg.function(passes=...)` switches them on by name.
"""

from collections.abc import Callable, Collection
from typing import Literal, NamedTuple

from gpugrad.function.cpu.blocks import find_groups
from gpugrad.function.passes.axes import merge_and_split_axes, split_axes
from gpugrad.function.passes.columns import multiply_columns
from gpugrad.function.passes.fuse import fuse_groups, fuse_groups_in_c
from gpugrad.function.passes.half import join_casts, read_narrow_directly
from gpugrad.function.passes.losses import join_losses
from gpugrad.function.passes.ones import remove_ones
from gpugrad.function.passes.open import open_norms, open_rows
from gpugrad.function.passes.overlap import overlap_streams
from gpugrad.function.passes.pieces import write_all_pieces, write_pieces_in_place
from gpugrad.function.passes.products import find_products
from gpugrad.function.passes.recompute import recompute
from gpugrad.function.passes.relus import join_relus
from gpugrad.function.passes.simplify import (
    fold_constants,
    multiply_outer,
    remove_dead,
    remove_identities,
    remove_scatter_identities,
    share_common,
    unify_transposes,
)
from gpugrad.function.passes.tied import join_tied, widen_tied
from gpugrad.function.passes.vectors import multiply_vectors
from gpugrad.trace.program import Program

Where = Literal["both", "cpu", "gpu", "c"]


class Pass(NamedTuple):
    """One row of the table: a pass, the name that users switch it on by, and where it runs."""

    name: str
    run: Callable[[Program], Program]
    where: tuple[Where, ...]


PASSES = (
    Pass("constants", fold_constants, ("both",)),
    Pass("transposes", unify_transposes, ("both",)),
    Pass("outer", multiply_outer, ("both",)),
    Pass("identities", remove_identities, ("both",)),
    Pass("ones", remove_ones, ("both",)),
    Pass("common", share_common, ("both",)),
    Pass("dead", remove_dead, ("both",)),
    Pass("identities", remove_scatter_identities, ("gpu",)),
    Pass("narrow", read_narrow_directly, ("gpu",)),
    Pass("losses", join_losses, ("gpu",)),
    Pass("pieces", write_pieces_in_place, ("gpu",)),
    Pass("pieces", write_all_pieces, ("c",)),
    Pass("norms", open_norms, ("gpu", "c")),
    Pass("rows", open_rows, ("c",)),
    Pass("relus", join_relus, ("gpu",)),
    Pass("tied", join_tied, ("gpu",)),
    Pass("products", find_products, ("gpu",)),
    Pass("tied", widen_tied, ("gpu",)),
    Pass("casts", join_casts, ("gpu",)),
    Pass("axes", split_axes, ("gpu",)),
    Pass("axes", merge_and_split_axes, ("c",)),
    Pass("columns", multiply_columns, ("c",)),
    Pass("vectors", multiply_vectors, ("c",)),
    Pass("groups", find_groups, ("cpu",)),
    Pass("groups", fuse_groups, ("gpu",)),
    Pass("groups", fuse_groups_in_c, ("c",)),
    Pass("recompute", recompute, ("gpu",)),
    Pass("overlap", overlap_streams, ("gpu",)),
)
"""In the order in which they run. `gpugrad.function.plan` fits "both" to the memory limit, and then
runs "gpu", "c" for C kernels on the CPU, or "cpu" for NumPy."""


def pass_names(*where: Where) -> tuple[str, ...]:
    """The names of the passes that run in one of these places, or of all passes."""
    return tuple(dict.fromkeys(p.name for p in PASSES if not where or {*where} & {*p.where}))


def run_passes(program: Program, where: Where, names: Collection[str]) -> Program:
    """Run the passes of one place whose names are in `names`."""
    for one in PASSES:
        if where in one.where and one.name in names:
            program = one.run(program)
    return program
