"""Norms along the last axes, forward and backward, with and without weights.

Norms along other axes, as in batch norm, go to `channel_norms`.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from gpugrad.core.backend import Reading
from gpugrad.kernels.by_hand import channel_norms
from gpugrad.kernels.by_hand.channel_norms import Channels, channels_of
from gpugrad.kernels.by_hand.rows import (
    BOOLS,
    FLOATS,
    contiguous,
    max_held,
    names,
    plan,
    share_dtype,
)
from gpugrad.kernels.runtime.launch import cpp_bool, launch, type_name

_MOST = 8  # most packs of each row per thread
_BLOCKS = 264
"""Blocks that sum gradients of weights: two per processor of an H100, four if small.

Each writes as much as two rows of float32, so more blocks would only write more.
"""


def _max_packs_with_sums(dtype: Any) -> int:
    """Most packs per thread in a kernel that also sums columns, in float32."""
    return 2 if dtype.itemsize == 2 else 4


class _Lines:
    """The last axes of an array as rows, with the shape and dtype of their statistics."""

    def __init__(self, x: Any, ndim: int) -> None:
        self.stats_shape = (*x.shape[: x.ndim - ndim], *(1,) * ndim)
        self.n, self.rows = math.prod(x.shape[x.ndim - ndim :]), math.prod(self.stats_shape)
        self.type = type_name(x.dtype)
        self.stats_dtype = np.float64 if x.dtype == np.float64 else np.float32
        self.sizes = np.int64(self.rows), np.int32(self.n)

    def statistics(self, *arrays: Any) -> bool:
        """Whether the arrays have the shape and dtype of the rows' statistics."""
        return all(a.shape == self.stats_shape and a.dtype == self.stats_dtype for a in arrays)


def _layout(
    xp: Reading,
    x: Any,
    weights: Sequence[Any],
    axis: Any = -1,
    along: Any = -1,
    eps: float = 1e-5,
    centered: bool = True,
) -> tuple[_Lines | Channels | None, float, bool]:
    """The rows or channels of `x` along `axis`, None if no kernel has them; eps and `centered`."""
    weights = [w for w in weights if w is not None]
    lines: _Lines | Channels | None = _lines(x, axis, along, weights)
    if lines is None and centered:
        lines = channels_of(xp, x, axis, along, *weights)
    return lines, eps, centered


def _lines(x: Any, axis: Any, along: Any, weights: Sequence[Any]) -> _Lines | None:
    """The rows of `x` along `axis`; None if the axes are not the last or a weight does not fit."""
    if not share_dtype(x, *weights) or not x.size:
        return None
    last = _count_if_last(x.ndim, axis)
    if last is None or (weights and _count_if_last(x.ndim, along) != last):
        return None
    if any(w.shape != x.shape[x.ndim - last :] for w in weights):
        return None
    lines = _Lines(x, last)
    return lines if lines.n <= 2**30 else None


def _count_if_last(ndim: int, axis: Any) -> int | None:
    """The number of axes, if they are the last ones in increasing order."""
    axes = axis if isinstance(axis, tuple) else (axis,)
    if not axes or any(not -ndim <= a < ndim for a in axes):
        return None
    n = len(axes)
    return n if tuple(a % ndim for a in axes) == tuple(range(ndim - n, ndim)) else None


def standardize_affine(
    xp: Reading, x: Any, weight: Any = None, bias: Any = None, **params: Any
) -> Any:
    """The launcher of standardize_affine."""
    lines, eps, centered = _layout(xp, x, (weight, bias), **params)
    if lines is None:
        return NotImplemented
    if isinstance(lines, Channels):
        return channel_norms.forward(xp, lines, x, weight, bias, eps)
    y = xp.lib.ndarray(x.shape, x.dtype)
    mean, var = (xp.lib.ndarray(lines.stats_shape, lines.stats_dtype) for _ in range(2))
    held, grid, block = plan(lines.rows, lines.n, x.dtype, _MOST)
    name = f"norm_forward<{lines.type}, {held}, {cpp_bool(centered)}>"
    arrays = [*contiguous(xp, x, weight, bias), y, mean, var]
    launch("norms.cu", name, grid, block, [*arrays, *lines.sizes, np.float64(eps)])
    return y, mean, var


def standardize_affine_grad(xp: Reading, *arrays: Any, weight: Any = None, **params: Any) -> Any:
    """The launcher of standardize_affine_grad: of g, x, mean, var, g_mean, g_var, weight."""
    return _gradients(xp, [*arrays, weight][:7], **params)


def standardize_affine_grads(xp: Reading, *arrays: Any, **params: Any) -> Any:
    """The launcher of standardize_affine_grads, of the same arrays."""
    return _gradients(xp, arrays, sums=True, **params)


def _gradients(xp: Reading, arrays: Sequence[Any], *, sums: bool = False, **params: Any) -> Any:
    """The gradient by x, and those by weight and bias if `sums`; NotImplemented for others."""
    g, x, *statistics, weight = arrays
    lines, eps, centered = _layout(xp, x, (weight,), **params)
    statistics = [a for a in statistics if a is not None]
    if lines is None or not share_dtype(x, g) or g.shape != x.shape:
        return NotImplemented
    if not lines.statistics(*statistics):
        return NotImplemented
    if isinstance(lines, Channels):
        results = channel_norms.backward(xp, lines, arrays, eps, grads=sums)
        return results if sums else results[0]
    arrays = contiguous(xp, *arrays)
    if not sums:
        return _backward(xp, lines, arrays, eps, centered)
    held, blocks, block = plan(lines.rows, lines.n, x.dtype, _max_packs_with_sums(x.dtype))
    if held:
        parts = min(blocks, _BLOCKS if math.prod(block) >= 256 else 2 * _BLOCKS)
        partial = xp.lib.ndarray((2, parts, lines.n), lines.stats_dtype)
        dx = xp.lib.ndarray(x.shape, x.dtype)
        shared = partial[:, 0].nbytes if block[1] > 1 else 0
        name = f"norm_backward<{lines.type}, {held}, {cpp_bool(centered)}, true>"
        sizes = *lines.sizes, np.float64(eps)
        launch("norms.cu", name, parts, block, [*arrays, dx, partial, *sizes], shared)
    else:
        dx = _backward(xp, lines, arrays, eps, centered)
        parts = min(lines.rows, 32)
        partial = xp.lib.ndarray((2, parts, lines.n), lines.stats_dtype)
        grid = -(-lines.n * x.dtype.itemsize // (16 * _COLUMNS)), parts
        args = [*arrays[:4], partial, *lines.sizes, np.float64(eps)]
        launch("norms.cu", f"norm_columns<{lines.type}>", grid, _COLUMNS, args)
    d_weight, d_bias = (xp.lib.ndarray(weight.shape, weight.dtype) for _ in range(2))
    args = [partial, d_weight, d_bias, np.int32(parts), np.int32(lines.n)]
    launch("norms.cu", f"column_sums<{lines.type}>", (-(-lines.n // 32), 2), (32, 16), args)
    return dx, d_weight, d_bias


def standardize(xp: Reading, x: Any, axis: Any = -1, *, eps: float = 1e-5) -> Any:
    """The launcher of standardize."""
    results = _standardized(xp, x, axis, eps, True)
    return results if results is NotImplemented else (*results[:2], _root(xp, results[2]))


def rms_standardize(xp: Reading, x: Any, axis: Any = -1, *, eps: float = 1e-6) -> Any:
    """The launcher of rms_standardize."""
    results = _standardized(xp, x, axis, eps, False)
    return results if results is NotImplemented else (results[0], _root(xp, results[2]))


def _standardized(xp: Reading, x: Any, axis: Any, eps: float, centered: bool) -> Any:
    """The results without weights; the formula does 16-bit floats, as its means are 16-bit too."""
    if getattr(x, "dtype", None) not in (np.float32, np.float64):
        return NotImplemented
    return standardize_affine(xp, x, axis=axis, eps=eps, centered=centered)


def _root(xp: Reading, var: Any) -> Any:
    with np.errstate(invalid="ignore"):  # a stand-in for a GPU may leave results unset
        return xp.lib.sqrt(var)


def standardize_grad(
    xp: Reading,
    g: Any,
    out: Any,
    std: Any,
    g_mean: Any,
    g_std: Any,
    axis: Any = -1,
    *,
    eps: float = 1e-5,
) -> Any:
    """The launcher of standardize_grad; without a mean if `g_mean` is None."""
    if not share_dtype(out, g, *(a for a in (std, g_mean, g_std) if a is not None)):
        return NotImplemented
    if std.shape != g_std.shape:
        return NotImplemented
    nothing = std == 0
    with np.errstate(all="ignore"):
        var = std * std
        g_var = xp.lib.where(nothing, 0, g_std / xp.lib.where(nothing, 1, 2 * std))
    arrays = [g, out, None, var, g_mean, g_var.astype(std.dtype, copy=False), None]
    return _gradients(xp, arrays, axis=axis, along=axis, eps=eps, centered=g_mean is not None)


def rms_standardize_grad(
    xp: Reading, g: Any, out: Any, root: Any, g_root: Any, axis: Any = -1, *, eps: float = 1e-6
) -> Any:
    """The launcher of rms_standardize_grad."""
    return standardize_grad(xp, g, out, root, None, g_root, axis, eps=eps)


_COLUMNS = 128  # threads of a block that sums columns


def _backward(xp: Reading, lines: _Lines, arrays: Sequence[Any], eps: float, centered: bool) -> Any:
    g = arrays[0]
    dx = xp.lib.ndarray(g.shape, g.dtype)
    held, grid, block = plan(lines.rows, lines.n, g.dtype, _MOST)
    name = f"norm_backward<{lines.type}, {held}, {cpp_bool(centered)}, false>"
    launch("norms.cu", name, grid, block, [*arrays, dx, None, *lines.sizes, np.float64(eps)])
    return dx


_HELD = (0, 1, 2, 4, 8)

VECTOR = (
    *names("norm_forward<{}, {}, {}>", FLOATS, _HELD, BOOLS),
    *names("norm_backward<{}, {}, {}, false>", FLOATS, _HELD, BOOLS),
    *(
        name
        for d in FLOATS
        for held in _HELD[1:]
        if held <= max_held(d, _max_packs_with_sums(d))
        for name in names("norm_backward<{}, {}, {}, true>", [d], [held], BOOLS)
    ),
    *names("norm_columns<{}>", FLOATS),
)
"""Kernels that must read 16 bytes at a time."""

INSTANCES = tuple(("norms.cu", name) for name in (*VECTOR, *names("column_sums<{}>", FLOATS)))
"""Every kernel that may be launched: (source, name)."""
