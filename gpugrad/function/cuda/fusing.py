"""The passes that make launches of a program, after those that every program goes through."""

from gpugrad.function.axes import along_rows
from gpugrad.function.fuse import fuse
from gpugrad.function.narrow import unwidened
from gpugrad.function.opened import opened
from gpugrad.function.pieces import assemble
from gpugrad.function.products import find_products
from gpugrad.function.recompute import recompute

__all__ = ["FUSING"]

FUSING = {
    "narrow": unwidened,
    "pieces": assemble,
    "norms": opened,
    "products": find_products,
    "axes": along_rows,
    "groups": fuse,
    "recompute": recompute,
}
"""By name, in the order in which they run."""
