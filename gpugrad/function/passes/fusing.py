"""The passes that make launches of a program, after those that every program goes through."""

from gpugrad.function.passes.casts import cast_together
from gpugrad.function.passes.fuse import fuse
from gpugrad.function.passes.half import unwidened
from gpugrad.function.passes.losses import with_gradients
from gpugrad.function.passes.norms import opened
from gpugrad.function.passes.pieces import assemble
from gpugrad.function.passes.products import find_products
from gpugrad.function.passes.recompute import recompute
from gpugrad.function.passes.reductions import along_rows

__all__ = ["FUSING"]

FUSING = {
    "narrow": unwidened,
    "losses": with_gradients,
    "pieces": assemble,
    "norms": opened,
    "products": find_products,
    "casts": cast_together,
    "axes": along_rows,
    "groups": fuse,
    "recompute": recompute,
}
"""By name, in the order in which they run."""
