"""Pooling kernels: window maxima and sums, and their gradients.

A gradient gathers each element from the windows that contain it: no atomics, a fixed order.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from gpugrad.kernels.by_hand.rows import FLOATS, contiguous, names
from gpugrad.kernels.runtime.launch import launch, type_name

_SOURCE = "windows.cu"
_NUMBERS = (*FLOATS, np.dtype(np.int32), np.dtype(np.int64))

VECTOR: tuple[str, ...] = ()
INSTANCES = tuple(
    (_SOURCE, name)
    for name in (
        *names("window_max<{}>", _NUMBERS),
        *names("{}<{}>", ("window_argmax", "window_scatter", "window_sum", "overlap_add"), FLOATS),
    )
)


def window_max(xp: Any, x: Any, **window: Any) -> Any:
    """The launcher of `gpugrad.ops.nn.pooling_max.window_max`."""
    places, n = _places(x, **window), len(window["size"])
    if places is None or x.dtype not in _NUMBERS:
        return NotImplemented
    out = xp.lib.ndarray((*x.shape[: x.ndim - n], *places), x.dtype)
    axes = _axes(x.shape[x.ndim - n :], places, **window)
    _run("window_max", x.dtype, out.size, [xp.lib.ascontiguousarray(x), out], axes)
    return out


def window_argmax(xp: Any, x: Any, out: Any, **window: Any) -> Any:
    """The launcher of `gpugrad.ops.nn.pooling_max.window_argmax`."""
    places, n = _places(x, **window), len(window["size"])
    if places is None or x.dtype not in FLOATS or out.dtype != x.dtype:
        return NotImplemented
    if out.shape != (*x.shape[: x.ndim - n], *places):
        return NotImplemented
    indices = xp.lib.ndarray(out.shape, np.int64)
    axes = _axes(x.shape[x.ndim - n :], places, **window)
    _run("window_argmax", x.dtype, out.size, [*contiguous(xp, x, out), indices], axes)
    return indices


def window_scatter(xp: Any, g: Any, where: Any, *, lengths: Sequence[int], **window: Any) -> Any:
    """The launcher of `gpugrad.ops.nn.pooling_max.window_scatter`."""
    n = len(window["size"])
    if g.shape != where.shape or n > 3 or g.dtype not in FLOATS or where.dtype != np.int64:
        return NotImplemented
    out = xp.lib.ndarray((*g.shape[: g.ndim - n], *lengths), g.dtype)
    axes = _axes(lengths, g.shape[g.ndim - n :], **window)
    _run("window_scatter", g.dtype, out.size, [*contiguous(xp, g, where), out], axes)
    return out


def window_sum(xp: Any, x: Any, size: int, *, axis: int = -1, step: int = 1) -> Any:
    """The launcher of `gpugrad.ops.nn.pooling_average.window_sum`."""
    if not _is_count(size, step) or not -x.ndim <= axis < x.ndim or x.dtype not in FLOATS:
        return NotImplemented
    axis %= x.ndim
    n, inner = x.shape[axis], math.prod(x.shape[axis + 1 :])
    if not size <= n < 2**31:
        return NotImplemented
    places = (n - size) // step + 1
    out = xp.lib.ndarray((*x.shape[:axis], places, *x.shape[axis + 1 :]), x.dtype)
    numbers = [np.int32(n), np.int32(places), np.int64(inner), np.int32(size), np.int32(step)]
    _run("window_sum", x.dtype, out.size, [xp.lib.ascontiguousarray(x), out], numbers)
    return out


def overlap_add(
    xp: Any, x: Any, *, axis: int, length: int, step: int = 1, dilation: int = 1
) -> Any:
    """The launcher of `gpugrad.ops.arrays.windows.overlap_add`."""
    if x.ndim < 2 or not -x.ndim < axis < x.ndim - 1 or not _is_count(step, dilation):
        return NotImplemented
    axis %= x.ndim - 1
    places, size = x.shape[axis], x.shape[-1]
    least = (places - 1) * step + (size - 1) * dilation + 1
    if not x.size or not least <= length < min(least + step, 2**31) or x.dtype not in FLOATS:
        return NotImplemented
    each = x.strides[-1] != 0  # otherwise a window holds one repeated number
    inner = math.prod(x.shape[axis + 1 : -1])
    out = xp.lib.ndarray((*x.shape[:axis], length, *x.shape[axis + 1 : -1]), x.dtype)
    values = xp.lib.ascontiguousarray(x if each else x[..., 0])
    numbers = [np.int32(length), np.int32(places), np.int64(inner)]
    numbers += [np.int32(v) for v in (size, step, dilation, each)]
    _run("overlap_add", x.dtype, out.size, [values, out], numbers)
    return out


def _run(kernel: str, dtype: Any, size: int, arrays: list[Any], numbers: list[Any]) -> None:
    if size:
        args = [*arrays, np.int64(size), *numbers]
        launch(_SOURCE, f"{kernel}<{type_name(dtype)}>", -(-size // 256), 256, args)


def _is_count(*values: Any) -> bool:
    return all(isinstance(v, (int, np.integer)) and v > 0 for v in values)


def _places(
    x: Any,
    size: Sequence[int],
    step: Sequence[int],
    dilation: Sequence[int],
    padding: Sequence[tuple[int, int]],
) -> tuple[int, ...] | None:
    """The number of windows along each axis; None if the kernels do not support them."""
    n = len(size)
    if not 1 <= n <= min(3, x.ndim):
        return None
    lengths = x.shape[x.ndim - n :]
    places = tuple(
        (length + a + b - (k - 1) * d - 1) // s + 1
        for length, k, s, d, (a, b) in zip(lengths, size, step, dilation, padding, strict=True)
    )
    return places if min(places) > 0 and max(*lengths, *places) < 2**30 else None


def _axes(
    lengths: Sequence[int],
    places: Sequence[int],
    size: Sequence[int],
    step: Sequence[int],
    dilation: Sequence[int],
    padding: Sequence[tuple[int, int]],
) -> list[Any]:
    """Six numbers for each of three axes; missing leading axes have length 1."""
    axes = [(1, 1, 1, 1, 1, 0)] * (3 - len(size))
    before = [pair[0] for pair in padding]
    axes += zip(lengths, places, size, step, dilation, before, strict=True)
    return [np.int32(v) for axis in axes for v in axis]
