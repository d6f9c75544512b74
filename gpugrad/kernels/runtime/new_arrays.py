"""New arrays with the memory layout of others, so that their readers need no copy."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

from gpugrad.kernels.runtime.launch import pointer


def like(lib: Any, x: Any, shape: tuple[int, ...], dtype: Any) -> Any:
    """An uninitialised array whose axes lie in memory in the order of those of `x`.

    The last axis stays innermost. A broadcast `x` has no order: the array is C-contiguous.
    """
    order = list(range(x.ndim))
    if all(s for s, n in zip(x.strides, x.shape, strict=True) if n > 1):
        order[:-1] = sorted(order[:-1], key=lambda k: -abs(x.strides[k]))
    array = lib.ndarray([shape[k] for k in order], dtype)
    return array.transpose([order.index(k) for k in range(x.ndim)])


def all_like(lib: Any, arrays: Sequence[Any]) -> list[Any]:
    """Uninitialised arrays with the layouts of others: parts of one array, if those are.

    So the gradients of queries, keys and values that were split from one array lie in memory as
    its gradient does.
    """
    division = _division(arrays)
    if division is None:
        return [like(lib, a, a.shape, a.dtype) for a in arrays]
    first, run = arrays[0], division.run
    order = sorted(range(first.ndim), key=lambda k: -first.strides[k])
    sizes = [first.shape[k] for k in order]
    outer = sizes[: division.outer]
    whole = lib.ndarray((*outer, run * len(arrays)), first.dtype)
    back = [order.index(k) for k in range(first.ndim)]
    return [whole[..., at : at + run].reshape(sizes).transpose(back) for at in division.offsets]


def common_memory(lib: Any, arrays: Sequence[Any]) -> Any:
    """The flat memory that arrays divide among them as `all_like` makes them, or None."""
    if _division(arrays) is None:
        return None
    first, size = min(arrays, key=pointer), sum(a.size for a in arrays)
    return lib.lib.stride_tricks.as_strided(first, (size,), (first.itemsize,))


class _Division(NamedTuple):
    """How arrays of one layout divide a C-contiguous array: each has a part of its last axis.

    Attributes:
        outer: number of axes before that axis.
        run: elements of a part.
        offsets: where in the last axis each part begins.
    """

    outer: int
    run: int
    offsets: list[int]


def _division(arrays: Sequence[Any]) -> _Division | None:
    first = arrays[0]
    base, size = first.base, first.itemsize
    alike = (first.shape, first.strides, first.dtype)
    if base is None or any(
        a.base is not base or (a.shape, a.strides, a.dtype) != alike for a in arrays
    ):
        return None
    if not base.flags.c_contiguous or base.nbytes != sum(a.nbytes for a in arrays):
        return None
    axes = sorted(zip(first.strides, first.shape, strict=True), reverse=True)
    run, step, outer = 1, 0, 0  # elements of a part and of all parts
    for stride, n in reversed(axes):  # innermost first
        if not step and stride == run * size:
            run *= n
            continue
        step = step or run * len(arrays)
        if stride != step * size:
            return None
        step, outer = step * n, outer + 1
    offsets = [(pointer(a) - pointer(base)) // size for a in arrays]
    parts = sorted(offsets) == list(range(0, run * len(arrays), run))
    return _Division(outer, run, offsets) if parts else None
