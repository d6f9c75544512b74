"""Cumulative sums, products and extrema along an axis, and linear recurrences.

``scan.cu`` documents the order in which elements are combined; it depends on the shape alone.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from gpugrad.core.backend import BFLOAT16, as_dtype
from gpugrad.kernels.by_hand.rows import power_of_two
from gpugrad.kernels.runtime.launch import launch, type_name

_SOURCE = "scan.cu"
_FLOATS = {
    np.dtype(np.float32): np.float32,
    np.dtype(np.float64): np.float64,
    np.dtype(np.float16): np.float32,
    BFLOAT16: np.float32,
}
"""The floating dtypes that are scanned, each with the dtype of its sums."""
_WHOLE = {np.dtype(np.int32): np.int32, np.dtype(np.int64): np.int64}
_NUMBERS = _FLOATS | _WHOLE
_SAME_BITS = {np.dtype(np.uint32): np.int32, np.dtype(np.uint64): np.int64}

_ITEMS = 8  # as in the source
_BLOCK = 256
_ENOUGH = 512  # blocks that fill a GPU
_PARTS = 1024


def _scans(dtypes: Any, *functions: str) -> list[str]:
    return [f"scan<{type_name(d)}, {f}<{type_name(dtypes[d])}>>" for f in functions for d in dtypes]


VECTOR = tuple(_scans(_FLOATS, "RunningSum"))
INSTANCES = tuple(
    (_SOURCE, name)
    for name in (
        *_scans(_NUMBERS, "RunningSum", "RunningProduct", "RunningMax", "RunningMin"),
        *_scans(_FLOATS, "RunningLogSumExp"),
        *(f"recur_{k}<{type_name(d)}>" for k in ("columns", "lines") for d in _FLOATS),
    )
)


def cumulative_sum(
    xp: Any, x: Any, axis: int | None = None, *, dtype: Any = None, include_initial: bool = False
) -> Any:
    """The launcher of `gpugrad.ops.math.cumulative.cumulative_sum`."""
    wanted = _result_dtype(x.dtype, dtype)
    if wanted is None or not _is_axis(x, axis):
        return NotImplemented
    x = x.astype(wanted, copy=False)
    if wanted.kind != "c":
        return _scan(xp, "RunningSum", x, axis or 0, initial=include_initial)
    # both parts of complex numbers at once, as a last axis of length 2
    parts = xp.lib.ascontiguousarray(x).view(x.real.dtype).reshape(*x.shape, 2)
    out = _scan(xp, "RunningSum", parts, (axis or 0) % x.ndim, initial=include_initial)
    return out if out is NotImplemented else out.view(wanted)[..., 0]


def suffix_sum(xp: Any, x: Any, *, axis: int) -> Any:
    """The launcher of `gpugrad.ops.math.cumulative.suffix_sum`."""
    if x.dtype not in _FLOATS or not _is_axis(x, axis):
        return NotImplemented
    return _scan(xp, "RunningSum", x, axis, reverse=True)


def cumulative_prod(
    xp: Any, x: Any, axis: int | None = None, *, dtype: Any = None, include_initial: bool = False
) -> Any:
    """The launcher of `gpugrad.ops.math.cumulative.cumulative_prod`."""
    wanted = _result_dtype(x.dtype, dtype)
    if wanted is None or wanted.kind == "c" or not _is_axis(x, axis):
        return NotImplemented
    x = x.astype(wanted, copy=False)
    return _scan(xp, "RunningProduct", x, axis or 0, initial=include_initial)


def cumulative_max(xp: Any, x: Any, axis: int | None = None) -> Any:
    """The launcher of `gpugrad.ops.math.cumulative.cumulative_max`."""
    return _scan_extremum(xp, "RunningMax", x, axis)


def cumulative_min(xp: Any, x: Any, axis: int | None = None) -> Any:
    """The launcher of `gpugrad.ops.math.cumulative.cumulative_min`."""
    return _scan_extremum(xp, "RunningMin", x, axis)


def cumulative_logsumexp(xp: Any, x: Any, axis: int | None = None) -> Any:
    """The launcher of `gpugrad.ops.math.cumulative.cumulative_logsumexp`."""
    if x.dtype not in _FLOATS or not _is_axis(x, axis):
        return NotImplemented
    return _scan(xp, "RunningLogSumExp", x, axis or 0)


def recurrence(xp: Any, a: Any, b: Any, *, axis: int, reverse: bool = False) -> Any:
    """The launcher of `ops.math.cumulative.recurrence`: a product and a sum per step, in order."""
    if a.shape != b.shape or a.dtype != b.dtype or a.dtype not in _FLOATS or not _is_axis(a, axis):
        return NotImplemented
    out = xp.lib.ndarray(a.shape, a.dtype)
    outer, n, inner = _split_at_axis(a.shape, axis)
    if not a.size:
        return out
    a, b = xp.lib.ascontiguousarray(a), xp.lib.ascontiguousarray(b)
    real, backwards = type_name(a.dtype), np.int32(reverse)
    if inner == 1:
        args = [a, b, out, np.int64(n), np.int64(outer), backwards]
        launch(_SOURCE, f"recur_lines<{real}>", -(-outer // 32), 32, args)
    elif outer <= 65535:
        args = [a, b, out, np.int64(n), np.int64(inner), backwards]
        launch(_SOURCE, f"recur_columns<{real}>", (-(-inner // 64), outer), 64, args)
    else:
        return NotImplemented
    return out


def _result_dtype(dtype: np.dtype[Any], asked: Any) -> np.dtype[Any] | None:
    """NumPy's dtype of the result; None if the kernels do not support it."""
    real = dtype in _FLOATS or dtype.kind == "c"
    if asked is None:
        if dtype.kind in "bi":
            return np.dtype(np.int64)
        return np.dtype(np.uint64) if dtype.kind == "u" else dtype
    out = as_dtype(asked)
    if (real and out.kind in "iu") or out.kind == "b" or (dtype.kind == "c" and out.kind != "c"):
        return None
    return None if out.itemsize == 2 and dtype != out else out  # 16 bits round sums, not elements


def _is_axis(x: Any, axis: int | None) -> bool:
    return x.ndim == 1 if axis is None else -x.ndim <= axis < x.ndim


def _scan_extremum(xp: Any, function: str, x: Any, axis: int | None) -> Any:
    if x.dtype in _SAME_BITS or not _is_axis(x, axis):
        return NotImplemented
    return _scan(xp, function, x, axis or 0)


def _split_at_axis(shape: tuple[int, ...], axis: int) -> tuple[int, int, int]:
    """Numbers of elements before an axis, along it and after it."""
    axis %= len(shape)
    return math.prod(shape[:axis]), shape[axis], math.prod(shape[axis + 1 :])


def _scan(
    xp: Any, function: str, x: Any, axis: int, *, reverse: bool = False, initial: bool = False
) -> Any:
    if x.dtype in _SAME_BITS:  # sums and products modulo 2^n have the bits of signed ones
        signed = xp.lib.ascontiguousarray(x).view(_SAME_BITS[x.dtype])
        return _scan(xp, function, signed, axis, reverse=reverse, initial=initial).view(x.dtype)
    if x.dtype not in _NUMBERS:
        return NotImplemented
    axis %= x.ndim
    outer, n, inner = _split_at_axis(x.shape, axis)
    shape = (*x.shape[:axis], n + initial, *x.shape[axis + 1 :])
    out = xp.lib.ndarray(shape, x.dtype)
    if not x.size:
        return NotImplemented if out.size else out
    x = xp.lib.ascontiguousarray(x)
    m, side = n + initial, min(32, power_of_two(inner))
    threads = min(_BLOCK, max(32, side * power_of_two(-(-n // _ITEMS))))
    if inner == 1 and n < 32 * _ITEMS:  # short lines: several to a warp
        side, threads = 32 // power_of_two(-(-n // _ITEMS)), 32
        outer, inner = 1, outer
        strides = (0, 1, n, 0, 1, m)
    else:
        strides = (n * inner, inner, 1, m * inner, inner, 1)
    blocks, chunk = outer * -(-inner // side), threads // side * _ITEMS
    parts = 1 if blocks >= _ENOUGH else min(-(-n // (4 * chunk)), -(-_PARTS // blocks))
    part = -(-n // (parts * chunk)) * chunk
    parts = -(-n // part)
    wide = np.dtype(_NUMBERS[x.dtype])
    name = f"scan<{type_name(x.dtype)}, {function}<{type_name(wide)}>>"
    layout = [np.int64(v) for v in (n, inner, part, *strides)] + [np.int32(side), np.int32(reverse)]
    before = None
    if parts > 1:
        totals = xp.lib.ndarray((outer, parts, inner), wide)
        args = [x, None, None, totals, *layout, np.int32(0)]
        launch(_SOURCE, name, (blocks, parts), threads, args)
        before = _scan(xp, function, totals, 1)
    args = [x, out, before, None, *layout, np.int32(initial)]
    launch(_SOURCE, name, (blocks, parts), threads, args)
    return out
