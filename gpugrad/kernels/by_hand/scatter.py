"""Indexing kernels (gather), and their gradients, which add rows or elements into zeros (scatter).

Elements are added with atomics in any order, or in the order of the sorted index if results must
be deterministic. 16-bit floats are added in float32 either way. The kernel skips an index that is
out of bounds and reports it; the launcher then returns NotImplemented, and the op's formula raises
the error. `gg.cuda.check_indices` says when the host reads the report. A CUDA graph has nobody to
read it, so there the results are NaN.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from gpugrad.core.backend import HALF, READINGS
from gpugrad.core.index_checks import flag_of, ignored_flag, when
from gpugrad.core.settings import deterministic
from gpugrad.kernels.by_hand.rows import names, power_of_two
from gpugrad.kernels.runtime.launch import TYPES, is_captured, launch, type_name

_SOURCE = "scatter.cu"
_FLOATS = ("float", "double", "__half", "__nv_bfloat16")
_INTEGERS = ("int", "unsigned long long")
_INDICES = ("int", "long long")

_PACKED = {
    "float": 4, "double": 2, "__half": 8, "__nv_bfloat16": 8, "int": 4, "unsigned long long": 2,
}  # fmt: skip
"""Elements of each type in 16 bytes."""

VECTOR = tuple(
    name
    for t in _FLOATS
    for name in (
        *names("{}_rows<{}, {}, {}>", ("add", "read"), [t], _INDICES, [_PACKED[t]]),
        f"add_sorted<{t}, {_PACKED[t]}>",
    )
)
INSTANCES = tuple(
    (_SOURCE, name)
    for name in (
        *VECTOR,
        *names("{}_rows<{}, {}, 1>", ("add", "read"), (*_FLOATS, *_INTEGERS), _INDICES),
        *(
            name
            for t in _INTEGERS
            for name in names("{}_rows<{}, {}, {}>", ("add", "read"), [t], _INDICES, [_PACKED[t]])
        ),
        *names("{}_along<{}, {}>", ("add", "put", "read"), (*_FLOATS, *_INTEGERS), _INDICES),
        *names("{}<{}>", ("rows_of", "places_along", "check_range"), _INDICES),
        *names("add_sorted<{}, 1>", _FLOATS),
        *names("{}<{}>", ("join_tiles", "spoil"), _FLOATS),
    )
)

_SAME_BITS = {np.dtype(np.int64): np.uint64, np.dtype(np.uint32): np.int32}
"""Integers without atomics are added as these dtypes: modulo 2^n the sums have the same bits."""

_TILE = 16  # as in the source
_LARGE = 4  # zeros in float32 cost more than sorting once they are this many times the values


def take_rows(xp: Any, indices: Any, weight: Any) -> Any:
    """The launcher of `gpugrad.ops.nn.layers.take_rows`."""
    return _gather_slices("take_rows", xp, weight, indices, 0, from_end=False)


def take(xp: Any, x: Any, indices: Any, *, axis: int | None = None) -> Any:
    """The launcher of `gpugrad.ops.arrays.gather.take`."""
    return _gather_slices("take", xp, x.reshape(-1) if axis is None else x, indices, axis or 0)


def gather(xp: Any, params: Any, indices: Any, *, axis: int = 0) -> Any:
    """The launcher of `gpugrad.ops.arrays.gather.gather`."""
    return _gather_slices("gather", xp, params, indices, axis, from_end=False)


def getitem(xp: Any, x: Any, *, index: Any) -> Any:
    """The launcher of `gpugrad.ops.arrays.indexing.getitem`: slices ``:``, then integer arrays."""
    joint = _join_index(xp, index, x.shape)
    if joint is None:
        return NotImplemented
    axis, shape, indices = joint
    is_joint = len(shape) < x.ndim
    return _gather_slices("getitem", xp, x.reshape(shape), indices, axis, joint=is_joint)


def take_along_axis(xp: Any, x: Any, indices: Any, *, axis: int = -1) -> Any:
    """The launcher of `gpugrad.ops.arrays.gather.take_along_axis`."""
    if indices.ndim != x.ndim or not -x.ndim <= axis < x.ndim or not _is_index(indices):
        return NotImplemented
    axis %= x.ndim
    shape = (*x.shape[:axis], indices.shape[axis], *x.shape[axis + 1 :])
    if any(n not in (1, m) for n, m in zip(indices.shape, shape, strict=True)):
        return NotImplemented
    elements = _as_kernel_type(xp, x)
    if elements is None or not x.size or not math.prod(shape):
        return NotImplemented
    indices, parts = xp.lib.broadcast_to(_as_index(indices), shape), elements.size // x.size
    if parts > 1:  # both parts of a complex number come from the same place
        indices = xp.lib.broadcast_to(indices[..., None], (*shape, parts))
    indices = xp.lib.ascontiguousarray(indices).reshape(-1)
    out = xp.lib.ndarray(indices.size, elements.dtype)
    report = _Report(xp, out, "take_along_axis", x.shape[axis], gathers=True)
    inner = math.prod(shape[axis + 1 :]) * parts
    sizes = [np.int64(k) for k in (indices.size, shape[axis], x.shape[axis], inner)]
    name = f"read_along<{type_name(elements.dtype)}, {type_name(indices.dtype)}>"
    args = [elements, indices, out, report.flag, *sizes]
    launch(_SOURCE, name, -(-indices.size // 256), 256, args)
    if report.is_bad():
        return NotImplemented
    return out.view(x.dtype).reshape(shape)


def scatter_rows(
    xp: Any, values: Any, indices: Any, *, shape: Sequence[int], onto: Any = None
) -> Any:
    """The launcher of `gpugrad.ops.arrays.gather.scatter_rows`.

    `onto` may be a contiguous array to add the rows to, instead of zeros; it is overwritten.
    """
    if indices.ndim != 1 or values.shape != (*indices.shape, *shape[1:]):
        return NotImplemented
    return _scatter_slices("scatter_rows", xp, values, indices, tuple(shape), 0, onto=onto)


def scatter_at(xp: Any, g: Any, *, index: Any, shape: Sequence[int]) -> Any:
    """The launcher of `gpugrad.ops.arrays.indexing.scatter_at`, for the indices of `getitem`."""
    joint = _join_index(xp, index, tuple(shape))
    if joint is None:
        return NotImplemented
    axis, joint_shape, indices = joint
    if g.shape != (*joint_shape[:axis], *indices.shape, *joint_shape[axis + 1 :]):
        return NotImplemented
    is_joint = len(joint_shape) < len(shape)
    out = _scatter_slices("scatter_at", xp, g, indices, joint_shape, axis, joint=is_joint)
    return out if out is NotImplemented else out.reshape(shape)


def scatter_along_axis(
    xp: Any, values: Any, indices: Any, *, axis: int, shape: Sequence[int], unique: bool = False
) -> Any:
    """The launcher of `gpugrad.ops.arrays.gather.scatter_along_axis`."""
    if indices.ndim != len(shape) or not -len(shape) <= axis < len(shape):
        return NotImplemented
    axis, shape = axis % len(shape), tuple(shape)
    n, rows = indices.shape[axis], shape[axis]
    if values.shape != (*shape[:axis], n, *shape[axis + 1 :]) or not _is_index(indices):
        return NotImplemented
    elements = _as_kernel_type(xp, values)
    if elements is None or not values.size:
        return NotImplemented
    indices = xp.lib.broadcast_to(_as_index(indices), values.shape)
    if elements.size != values.size:  # both parts of a complex number go to the same place
        indices = xp.lib.stack([indices, indices], axis=-1)
    indices = xp.lib.ascontiguousarray(indices).reshape(-1)
    inner = math.prod(shape[axis + 1 :]) * (elements.size // values.size)
    report = _Report(xp, elements, "scatter_along_axis", rows)
    sizes = [np.int64(elements.size), np.int64(n), np.int64(rows), np.int64(inner)]
    real, total = type_name(elements.dtype), elements.size // n * rows
    blocks = -(-elements.size // 256)
    if unique or n == 1:
        out = xp.lib.zeros(total, dtype=elements.dtype)
        name = f"put_along<{real}, {type_name(indices.dtype)}>"
        launch(_SOURCE, name, blocks, 256, [elements, indices, out, report.flag, *sizes])
    elif deterministic() and elements.dtype.kind not in "iu":
        places = xp.lib.ndarray(elements.size, np.int64)
        name = f"places_along<{type_name(indices.dtype)}>"
        launch(_SOURCE, name, blocks, 256, [indices, places, report.flag, *sizes])
        out = _sum_in_order(xp, elements, places, 1, total, 1)
    else:
        out = xp.lib.zeros(total, dtype=_sum_dtype(elements.dtype))
        name = f"add_along<{real}, {type_name(indices.dtype)}>"
        launch(_SOURCE, name, blocks, 256, [elements, indices, out, report.flag, *sizes])
    return _finish(out, report, values.dtype, shape)


def _join_index(
    xp: Any, index: Any, shape: tuple[int, ...]
) -> tuple[int, tuple[int, ...], Any] | None:
    """An index of slices ``:`` followed by integer arrays, as one array; None for any other.

    Several arrays become one index into their axes taken together. A place that is out of bounds
    in one of them is out of bounds in the joint axis.

    Returns:
        The axis, the shape with those axes joined, and the array.
    """
    parts = index if isinstance(index, tuple) else (index,)
    axis = sum(type(p) is slice and p == slice(None) for p in parts)
    arrays, lengths = parts[axis:], shape[axis : len(parts)]
    if not arrays or len(arrays) > len(lengths):
        return None
    if not all(hasattr(a, "dtype") and _is_index(a) for a in arrays):
        return None
    if len(arrays) == 1:
        return axis, shape, xp.lib.asarray(arrays[0])
    try:
        np.broadcast_shapes(*(a.shape for a in arrays))
    except ValueError:
        return None
    at: Any = 0
    inside: Any = True
    for part, n in zip(arrays, lengths, strict=True):
        part = part.astype(np.int64, copy=False)
        at = at * n + xp.lib.where(part < 0, part + n, part)
        inside = (part >= -n) & (part < n) & inside
    size = math.prod(lengths)
    joint = (*shape[:axis], size, *shape[axis + len(arrays) :])
    return axis, joint, xp.lib.where(inside, at, size)


def _gather_slices(
    name: str, xp: Any, x: Any, indices: Any, axis: int, from_end: bool = True, joint: bool = False
) -> Any:
    """Gather slices along an axis: (*x.shape[:axis], *indices.shape, *x.shape[axis + 1:]).

    `joint` says that the axis is several axes of the op's argument.
    """
    if not indices.size or not x.size or not -x.ndim <= axis < x.ndim or not _is_index(indices):
        return NotImplemented
    table = _as_kernel_type(xp, x)
    if table is None:
        return NotImplemented
    indices, axis = _as_index(indices), axis % x.ndim
    outer, rows, n = math.prod(x.shape[:axis]), x.shape[axis], indices.size
    width = table.size // (outer * rows)
    out = xp.lib.ndarray(outer * n * width, table.dtype)
    report = _Report(xp, out, name, 0 if joint else rows, from_end, gathers=True)
    packed, grid, block = _over_rows(table.dtype, outer, n, width)
    kernel = f"read_rows<{type_name(table.dtype)}, {type_name(indices.dtype)}, {packed}>"
    sizes = [np.int64(k) for k in (outer, n, rows, width)]
    args = [table, xp.lib.ascontiguousarray(indices).reshape(-1), out, report.flag, *sizes]
    launch(_SOURCE, kernel, grid, block, [*args, np.int32(from_end)])
    if report.is_bad():
        return NotImplemented
    return out.view(x.dtype).reshape((*x.shape[:axis], *indices.shape, *x.shape[axis + 1 :]))


def _scatter_slices(
    name: str,
    xp: Any,
    values: Any,
    indices: Any,
    shape: tuple[int, ...],
    axis: int,
    joint: bool = False,
    onto: Any = None,
) -> Any:
    """Add values (*shape[:axis], *indices.shape, *shape[axis + 1:]) to zeros, or `onto`."""
    elements = _as_kernel_type(xp, values)
    if elements is None or not _is_index(indices) or not values.size:
        return NotImplemented
    indices = xp.lib.ascontiguousarray(_as_index(indices)).reshape(-1)
    outer, n, rows = math.prod(shape[:axis]), indices.size, shape[axis]
    width = elements.size // (outer * n)
    report = _Report(xp, elements, name, 0 if joint else rows)
    index = type_name(indices.dtype)
    wide = _sum_dtype(elements.dtype)
    too_large = elements.dtype != wide and rows > _LARGE * n
    if onto is not None and (deterministic() or onto.dtype != wide or values.dtype != wide):
        return NotImplemented
    if elements.dtype.kind not in "iu" and (deterministic() or too_large):
        places = xp.lib.ndarray(n, np.int64)
        sizes = [np.int64(n), np.int64(rows)]
        launch(
            _SOURCE, f"rows_of<{index}>", -(-n // 256), 256, [indices, places, report.flag, *sizes]
        )
        out = _sum_in_order(xp, elements, places, outer, rows, width)
    else:
        if onto is None:
            onto = xp.lib.zeros(outer * rows * width, dtype=wide)
        out = onto.reshape(-1)
        packed, grid, block = _over_rows(elements.dtype, outer, n, width)
        kernel = f"add_rows<{type_name(elements.dtype)}, {index}, {packed}>"
        sizes = [np.int64(outer), np.int64(n), np.int64(rows), np.int64(width)]
        launch(_SOURCE, kernel, grid, block, [elements, indices, out, report.flag, *sizes])
    return _finish(out, report, values.dtype, shape)


def _sum_in_order(xp: Any, values: Any, rows_at: Any, outer: int, rows: int, width: int) -> Any:
    """Sums in the order of the sorted rows, which depends on the index alone."""
    n, real = rows_at.size, type_name(values.dtype)
    order = xp.lib.argsort(rows_at, stable=True)
    tiles = -(-n // _TILE)
    out = xp.lib.zeros(outer * rows * width, dtype=values.dtype)
    head, tail = (xp.lib.ndarray(outer * tiles * width, _sum_dtype(values.dtype)) for _ in "ht")
    sizes = [np.int64(outer), np.int64(n), np.int64(rows), np.int64(width)]
    ordered = rows_at.take(order)
    packed, grid, block = _over_rows(values.dtype, outer, tiles, width)
    args = [values, order, ordered, out, head, tail, *sizes]
    launch(_SOURCE, f"add_sorted<{real}, {packed}>", grid, block, args)
    columns = min(32, power_of_two(width))
    grid = (-(-tiles // 8), min(-(-width // columns), 65535), min(outer, 65535))
    args = [ordered, out, head, tail, *sizes, np.int32(columns)]
    launch(_SOURCE, f"join_tiles<{real}>", grid, (32, 8), args)
    return out


def _over_rows(dtype: np.dtype[Any], outer: int, n: int, width: int) -> tuple[int, Any, Any]:
    """Elements per access, grid, and a block of (columns, rows): at most a warp per row."""
    packed = 16 // dtype.itemsize
    packed = packed if width % packed == 0 else 1
    columns = min(32, power_of_two(width // packed))
    by = 256 // columns
    grid = (-(-n // by), min(-(-width // (packed * columns)), 65535), min(outer, 65535))
    return packed, grid, (columns, by)


def _is_index(indices: Any) -> bool:
    return indices.dtype.kind in "iu" and indices.dtype != np.uint64


def _as_index(indices: Any) -> Any:
    return indices if indices.dtype in (np.int32, np.int64) else indices.astype(np.int64)


def _as_kernel_type(xp: Any, values: Any) -> Any:
    """The values as a 1-D array of a type that the kernels add; None without such a type."""
    line = xp.lib.ascontiguousarray(values).reshape(-1)
    if values.dtype.kind == "c":
        return line.view(values.real.dtype)
    if values.dtype in _SAME_BITS:
        return line.view(_SAME_BITS[values.dtype])
    return line if TYPES.get(values.dtype) in (*_FLOATS, *_INTEGERS) else None


def _sum_dtype(dtype: np.dtype[Any]) -> np.dtype[Any]:
    return np.dtype(np.float32) if dtype in HALF else dtype


class _Report:
    """Where a kernel reports an index out of bounds, and how the host learns of it.

    In a CUDA graph a kernel that `gathers` writes NaN itself, and nobody reads the report.
    """

    def __init__(
        self,
        xp: Any,
        like: Any,
        name: str,
        length: int,
        from_end: bool = True,
        gathers: bool = False,
    ) -> None:
        on_host, self.is_captured = type(like) is np.ndarray, is_captured(like)
        self._is_read = on_host or (not self.is_captured and when() == "now")
        if self.is_captured and gathers:
            self.flag: Any = ignored_flag()
        elif self._is_read or self.is_captured:
            self.flag = xp.lib.zeros(1, dtype=np.int32)
        else:
            first = -length if from_end else 0
            self.flag = flag_of(name, length, first) if when() == "later" else ignored_flag()

    def is_bad(self) -> bool:
        """Whether the launcher must decline now, so that the op's formula raises."""
        return self._is_read and bool(int(self.flag[0]))


def _finish(out: Any, report: _Report, dtype: Any, shape: tuple[int, ...]) -> Any:
    if report.is_bad():
        return NotImplemented
    if report.is_captured and out.dtype.kind not in "iu":
        n = min(-(-out.size // 256), 1024)
        args = [out, report.flag, np.int64(out.size)]
        launch(_SOURCE, f"spoil<{type_name(out.dtype)}>", n, 256, args)
    if out.dtype == _sum_dtype(dtype):
        return out.astype(dtype, copy=False).reshape(shape)
    return out.view(dtype).reshape(shape)


def check_later(name: str, indices: Any, length: int, first: int) -> None:
    """Launch a check on a GPU that indices run from `first` to length - 1."""
    indices = _as_index(indices)
    lib = READINGS[type(indices)].lib
    args = [lib.ascontiguousarray(indices).reshape(-1), flag_of(name, length, first)]
    blocks = min(-(-indices.size // 256), 1024)
    sizes = [np.int64(indices.size), np.int64(first), np.int64(length)]
    launch(_SOURCE, f"check_range<{type_name(indices.dtype)}>", blocks, 256, [*args, *sizes])
