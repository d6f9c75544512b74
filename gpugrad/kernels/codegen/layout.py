"""The memory layout of an elementwise kernel's arrays: merged axes and the width of accesses.

Axes are sorted by the memory order of the first array, and neighbours that are contiguous in every
array are merged. The last remaining axis is called columns, all others are rows.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Sequence

SMALL = 1 << 30
"""Arrays with fewer elements than this are indexed by int."""


@dataclasses.dataclass(frozen=True)
class Layout:
    """The geometry of one call.

    Attributes:
        shape: the broadcast shape of all arrays.
        order: the axes of `shape` in the order of the results' memory.
        dims: lengths of the merged axes: first the rows', then the columns'.
        strides: strides of each array along `dims`, in elements.
        folded: for each result ``"rows"`` or ``"columns"`` if it is a sum over them, else None.
        pack: how many columns a thread takes at a time.
        index: the C++ type of an index.
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
        """Elements per row."""
        return self.dims[-1]

    @property
    def rows(self) -> int:
        """Number of rows."""
        return math.prod(self.dims[:-1])

    def place(self, k: int) -> str:
        """The layout of array `k` as a letter.

        ``f``: contiguous, like the results; ``o``: one element; ``v``: contiguous columns; ``r``:
        one element per row; ``s``: any other strides.
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
    """The layout of these arrays.

    Args:
        shape: the broadcast shape of all arrays.
        strides: strides of each array along `shape`, in elements; 0 where it is broadcast.
        sizes: bytes per element of each array.
        results: shape and bytes per element of each result; a smaller shape that broadcasts to
            `shape` means a sum.
        aligned: whether all arrays begin at multiples of 16 bytes.
    """
    reduced = [summed_axes(shape, own) for own, _ in results]
    which = next((r for r in reduced if r), frozenset())
    order, axes, fold = _axes(shape, strides, which)
    if which and fold is None:  # neither rows nor columns: the caller sums the full result
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
    """The axes of `shape` that a sum of shape `own` runs over."""
    more = len(shape) - len(own)
    return frozenset(k for k, d in enumerate(shape) if d != 1 and (k < more or own[k - more] == 1))


def _axes(
    shape: tuple[int, ...], strides: Sequence[tuple[int, ...]], reduced: frozenset[int]
) -> tuple[tuple[int, ...], list[tuple[int, ...]], str | None]:
    """The order of the axes, the merged axes, and whether rows or columns are summed.

    An axis is a tuple: its length, whether it is summed over, and the stride of each array.
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
    """Axes in the memory order of the first array that is not broadcast."""
    for own in strides:
        if all(s > 0 for s, d in zip(own, shape, strict=True) if d > 1):
            return tuple(sorted(range(len(shape)), key=lambda k: (shape[k] > 1, -own[k])))
    return tuple(range(len(shape)))


def contiguous(dims: Sequence[int]) -> tuple[int, ...]:
    """The strides of a contiguous array, in elements."""
    return tuple(math.prod(dims[k + 1 :]) for k in range(len(dims)))


def _pack(
    dims: tuple[int, ...],
    strides: Sequence[tuple[int, ...]],
    sizes: Sequence[int],
    results: Sequence[int],
) -> int:
    """Columns per thread: at most 16 bytes of the smallest elements and 32 of the largest."""
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
