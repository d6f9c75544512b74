"""The passes that make launches of a program, after those that every program goes through."""

from gpugrad.function.fusing.axes import along_rows
from gpugrad.function.fusing.casts import cast_together
from gpugrad.function.fusing.fuse import fuse
from gpugrad.function.fusing.losses import with_gradients
from gpugrad.function.fusing.narrow import unwidened
from gpugrad.function.fusing.opened import opened
from gpugrad.function.fusing.pieces import assemble
from gpugrad.function.fusing.products import find_products
from gpugrad.function.fusing.recompute import recompute

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
