"""How the arrays of an elementwise kernel lie: which axes are one, what is read in 16 bytes.

Axes of all arrays are taken in the order of the first array's memory, those that lie behind each
other in every array become one. What is left are rows and columns: the last axis, and all others.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Sequence

__all__ = ["Layout", "contiguous", "lay_out", "summed_axes"]

SMALL = 1 << 30
"""Below so many elements an index is an int."""


@dataclasses.dataclass(frozen=True)
class Layout:
    """The geometry of one call.

    Attributes:
        shape: of all arrays together.
        order: of the axes of `shape` in the results' memory.
        dims: the axes that are left: those of the rows, and the columns.
        strides: of each array along `dims`, in elements.
        folded: which results are sums over ``"rows"`` or ``"columns"``; None for one of all
            elements.
        pack: how many columns a thread takes at a time.
        index: the type of an index.
    """

    shape: tuple[int, ...]
    order: tuple[int, ...]
    dims: tuple[int, ...]
    strides: tuple[tuple[int, ...], ...]
    folded: tuple[str | None, ...]
    pack: int
    index: str

    @property
    def columns(self) -> int:
        """Elements of a row."""
        return self.dims[-1]

    @property
    def rows(self) -> int:
        """How many rows there are."""
        return math.prod(self.dims[:-1])

    def place(self, k: int) -> str:
        """How array `k` lies, as a letter.

        ``f`` as the results, ``o`` one element, ``v`` columns side by side, ``r`` one element a
        row, ``s`` any other way.
        """
        strides = self.strides[k]
        if not any(strides):
            return "o"
        if strides == contiguous(self.dims):
            return "f"
        return {0: "r", 1: "v"}.get(strides[-1], "s")


def lay_out(
    shape: tuple[int, ...],
    strides: Sequence[tuple[int, ...]],
    sizes: Sequence[int],
    results: Sequence[tuple[tuple[int, ...], int]],
    aligned: bool,
) -> Layout:
    """The geometry for these arrays.

    Args:
        shape: of all arrays together.
        strides: of each array along `shape`, in elements; 0 where it is broadcast.
        sizes: bytes of an element of each array.
        results: shape and bytes of an element of each; a shape that broadcasts to `shape` is
            that of a sum.
        aligned: whether all arrays begin at multiples of 16 bytes.
    """
    reduced = [summed_axes(shape, own) for own, _ in results]
    which = next((r for r in reduced if r), frozenset())
    order, axes, fold = _axes(shape, strides, which)
    if which and fold is None:  # neither rows nor columns: the whole results are summed elsewhere
        which = frozenset()
        order, axes, fold = _axes(shape, strides, which)
    dims = tuple(a[0] for a in axes)
    collapsed = tuple(tuple(a[2 + k] for a in axes) for k in range(len(strides)))
    folded = tuple(fold if r and r == which else None for r in reduced)
    whole = [size for (_, size), f in zip(results, folded, strict=True) if not f]
    far = [sum((d - 1) * abs(s) for d, s in zip(dims, ss, strict=True)) for ss in collapsed]
    index = "int" if max(math.prod(dims), *far, 0) < SMALL else "long long"
    pack = _pack(dims, collapsed, sizes, whole) if aligned else 1
    return Layout(shape, order, dims, collapsed, folded, pack, index)


def summed_axes(shape: tuple[int, ...], own: tuple[int, ...]) -> frozenset[int]:
    """The axes of `shape` over which a sum of shape `own` is taken."""
    more = len(shape) - len(own)
    return frozenset(k for k, d in enumerate(shape) if d != 1 and (k < more or own[k - more] == 1))


def _axes(
    shape: tuple[int, ...], strides: Sequence[tuple[int, ...]], reduced: frozenset[int]
) -> tuple[tuple[int, ...], list[tuple[int, ...]], str | None]:
    """The order of the axes, what is left of them, and whether rows or columns are summed.

    An axis is its length, whether it is summed over, and the stride of each array.
    """
    order = tuple(range(len(shape))) if reduced else _order(shape, strides)
    axes: list[tuple[int, ...]] = []
    for k in order:
        axis = (shape[k], k in reduced, *(s[k] for s in strides))
        if axis[0] == 1:
            continue
        if (
            axes
            and axes[-1][1] == axis[1]
            and all(
                outer == inner * axis[0]
                for outer, inner in zip(axes[-1][2:], axis[2:], strict=True)
            )
        ):
            axis = (axes.pop()[0] * axis[0], *axis[1:])
        axes.append(axis)
    axes = axes or [(1, False, *(0 for _ in strides))]
    sums = [bool(a[1]) for a in axes]
    if sums[-1] and not any(sums[:-1]):
        return order, axes, "columns"
    return order, axes, "rows" if sums == [True, False] else None


def _order(shape: tuple[int, ...], strides: Sequence[tuple[int, ...]]) -> tuple[int, ...]:
    """Axes in the order of the memory of the first array that has every element."""
    for own in strides:
        if all(s > 0 for s, d in zip(own, shape, strict=True) if d > 1):
            return tuple(sorted(range(len(shape)), key=lambda k: (shape[k] > 1, -own[k])))
    return tuple(range(len(shape)))


def contiguous(dims: Sequence[int]) -> tuple[int, ...]:
    """The strides of an array whose elements lie side by side."""
    return tuple(math.prod(dims[k + 1 :]) for k in range(len(dims)))


def _pack(
    dims: tuple[int, ...],
    strides: Sequence[tuple[int, ...]],
    sizes: Sequence[int],
    results: Sequence[int],
) -> int:
    """How many columns a thread takes: 16 bytes of the smallest elements, 32 of the largest."""
    if any(s[-1] not in (0, 1) for s in strides):
        return 1
    packed = [s for s in strides if s[-1] == 1]
    moved = [size for size, s in zip(sizes, strides, strict=True) if s[-1] == 1]
    moved += results
    pack = min(8, 16 // min(moved, default=16), 32 // max(moved, default=16))
    if len(dims) > 1:  # every row is whole packs
        while pack > 1 and (dims[-1] % pack or any(x % pack for s in packed for x in s[:-1])):
            pack //= 2
    return max(pack, 1)
