"""Norms along the last axes, forward and backward: with weights, and the bare primitives.

Those along all axes but some, as batch norm's, go to `channel_norms`.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from gpugrad.core.backend import Reading
from gpugrad.kernels.by_hand import channel_norms
from gpugrad.kernels.by_hand.rows import FLOATS, alike, most_held, plan
from gpugrad.kernels.runtime.launch import flag, launch, type_name

__all__ = [
    "INSTANCES",
    "VECTOR",
    "rms_standardize",
    "rms_standardize_grad",
    "standardize",
    "standardize_affine",
    "standardize_affine_grad",
    "standardize_affine_grads",
    "standardize_grad",
]

_MOST = 8  # packs of each row that a thread holds
_BLOCKS = 264
"""That add up gradients of weights: two for each processor of an H100, four if they are small.

Each writes as much as two rows of float32, so more of them would only write more.
"""


def _sums(dtype: Any) -> int:
    """Packs that a thread holds where it also adds up their columns, which are float32."""
    return 2 if dtype.itemsize == 2 else 4


class _Lines:
    """The last axes of an array as its rows, and the statistics of each."""

    def __init__(self, x: Any, ndim: int) -> None:
        self.small = (*x.shape[: x.ndim - ndim], *(1,) * ndim)
        self.n, self.rows = math.prod(x.shape[x.ndim - ndim :]), math.prod(self.small)
        self.type = type_name(x.dtype)
        self.wide = np.float64 if x.dtype == np.float64 else np.float32
        self.sizes = np.int64(self.rows), np.int32(self.n)

    def statistics(self, *arrays: Any) -> bool:
        """Whether these are statistics of the rows."""
        return all(a.shape == self.small and a.dtype == self.wide for a in arrays)


def _lines(x: Any, axis: Any, along: Any, *weights: Any) -> _Lines | None:
    """The rows of `x`, if it has them along these axes, and weights of one row's shape."""
    given = [w for w in weights if w is not None]
    if not alike(x, *given) or not x.size:
        return None
    last = _last(x.ndim, axis)
    if last is None or (given and _last(x.ndim, along) != last):
        return None
    if any(w.shape != x.shape[x.ndim - last :] for w in given):
        return None
    made = _Lines(x, last)
    return made if made.n <= 2**30 else None


def _last(ndim: int, axis: Any) -> int | None:
    """How many axes these are, if they are the last ones in increasing order."""
    axes = axis if isinstance(axis, tuple) else (axis,)
    if not axes or any(not -ndim <= a < ndim for a in axes):
        return None
    n = len(axes)
    return n if tuple(a % ndim for a in axes) == tuple(range(ndim - n, ndim)) else None


def standardize_affine(
    xp: Reading, x: Any, weight: Any = None, bias: Any = None, *, axis: Any = -1,
    along: Any = -1, eps: float = 1e-5, centered: bool = True,
) -> Any:  # fmt: skip
    """The launcher of standardize_affine."""
    lines = _lines(x, axis, along, weight, bias)
    if lines is None:
        channels = _channels(xp, x, axis, along, centered, weight, bias)
        if channels is None:
            return NotImplemented
        return channel_norms.forward(xp, channels, x, weight, bias, eps)
    y = xp.lib.empty(x.shape, dtype=x.dtype)
    mean, var = (xp.lib.empty(lines.small, dtype=lines.wide) for _ in range(2))
    held, grid, block = plan(lines.rows, lines.n, x.dtype, _MOST)
    name = f"norm_forward<{lines.type}, {held}, {flag(centered)}>"
    given = [a if a is None else xp.lib.ascontiguousarray(a) for a in (x, weight, bias)]
    launch("norms.cu", name, grid, block, [*given, y, mean, var, *lines.sizes, np.float64(eps)])
    return y, mean, var


def standardize_affine_grad(
    xp: Reading, g: Any, x: Any, mean: Any, var: Any, g_mean: Any, g_var: Any,
    weight: Any = None, *, axis: Any = -1, along: Any = -1, eps: float = 1e-5,
    centered: bool = True,
) -> Any:  # fmt: skip
    """The launcher of standardize_affine_grad."""
    lines = _lines(x, axis, along, weight) or _channels(xp, x, axis, along, centered, weight)
    if lines is None or not _match(lines, g, x, mean, var, g_mean, g_var):
        return NotImplemented
    arrays = [g, x, mean, var, g_mean, g_var, weight]
    if isinstance(lines, channel_norms.Channels):
        return channel_norms.backward(xp, lines, arrays, eps)[0]
    arrays = [a if a is None else xp.lib.ascontiguousarray(a) for a in arrays]
    return _backward(xp, lines, arrays, eps, centered)


def standardize_affine_grads(
    xp: Reading, g: Any, x: Any, mean: Any, var: Any, g_mean: Any, g_var: Any, weight: Any, *,
    axis: Any = -1, along: Any = -1, eps: float = 1e-5, centered: bool = True,
) -> Any:  # fmt: skip
    """The launcher of standardize_affine_grads."""
    lines = _lines(x, axis, along, weight) or _channels(xp, x, axis, along, centered, weight)
    if lines is None or not _match(lines, g, x, mean, var, g_mean, g_var):
        return NotImplemented
    if isinstance(lines, channel_norms.Channels):
        arrays = [g, x, mean, var, g_mean, g_var, weight]
        return channel_norms.backward(xp, lines, arrays, eps, grads=True)
    arrays = [xp.lib.ascontiguousarray(a) for a in (g, x, mean, var, g_mean, g_var, weight)]
    held, blocks, block = plan(lines.rows, lines.n, x.dtype, _sums(x.dtype))
    if held:
        parts = min(blocks, _BLOCKS if math.prod(block) >= 256 else 2 * _BLOCKS)
        partial = xp.lib.empty((2, parts, lines.n), dtype=lines.wide)
        dx = xp.lib.empty(x.shape, dtype=x.dtype)
        shared = partial[:, 0].nbytes if block[1] > 1 else 0
        name = f"norm_backward<{lines.type}, {held}, {flag(centered)}, true>"
        sizes = *lines.sizes, np.float64(eps)
        launch("norms.cu", name, parts, block, [*arrays, dx, partial, *sizes], shared)
    else:
        dx = _backward(xp, lines, arrays, eps, centered)
        parts = min(lines.rows, 32)
        partial = xp.lib.empty((2, parts, lines.n), dtype=lines.wide)
        grid = -(-lines.n * x.dtype.itemsize // (16 * _COLUMNS)), parts
        given = [*arrays[:4], partial, *lines.sizes, np.float64(eps)]
        launch("norms.cu", f"norm_columns<{lines.type}>", grid, _COLUMNS, given)
    d_weight, d_bias = (xp.lib.empty(weight.shape, dtype=weight.dtype) for _ in range(2))
    given = [partial, d_weight, d_bias, np.int32(parts), np.int32(lines.n)]
    launch("norms.cu", f"column_sums<{lines.type}>", (-(-lines.n // 32), 2), (32, 16), given)
    return dx, d_weight, d_bias


def standardize(xp: Reading, x: Any, axis: Any = -1, *, eps: float = 1e-5) -> Any:
    """The launcher of standardize. 16-bit floats are left to its formula: so are their means."""
    if getattr(x, "dtype", None) not in (np.float32, np.float64):
        return NotImplemented
    return standardize_affine(xp, x, axis=axis, eps=eps)


def rms_standardize(xp: Reading, x: Any, axis: Any = -1, *, eps: float = 1e-6) -> Any:
    """The launcher of rms_standardize."""
    if getattr(x, "dtype", None) not in (np.float32, np.float64):
        return NotImplemented
    made = standardize_affine(xp, x, axis=axis, eps=eps, centered=False)
    return made if made is NotImplemented else (made[0], made[2])


def standardize_grad(
    xp: Reading, g: Any, out: Any, var: Any, g_mean: Any, g_var: Any, axis: Any = -1, *,
    eps: float = 1e-5,
) -> Any:  # fmt: skip
    """The launcher of standardize_grad."""
    return _standardized(xp, g, out, var, g_mean, g_var, axis, eps)


def rms_standardize_grad(
    xp: Reading, g: Any, out: Any, mean_square: Any, g_ms: Any, axis: Any = -1, *,
    eps: float = 1e-6,
) -> Any:  # fmt: skip
    """The launcher of rms_standardize_grad."""
    return _standardized(xp, g, out, mean_square, None, g_ms, axis, eps)


def _standardized(
    xp: Reading, g: Any, out: Any, var: Any, g_mean: Any, g_var: Any, axis: Any, eps: float
) -> Any:
    statistics = [a for a in (var, g_mean, g_var) if a is not None]
    if not alike(out, g, *statistics):
        return NotImplemented
    lines = _lines(out, axis, axis) or _channels(xp, out, axis, axis, g_mean is not None)
    if lines is None or not _match(lines, g, out, *statistics):
        return NotImplemented
    arrays = [g, out, None, var, g_mean, g_var, None]
    if isinstance(lines, channel_norms.Channels):
        return channel_norms.backward(xp, lines, arrays, eps)[0]
    arrays = [a if a is None else xp.lib.ascontiguousarray(a) for a in arrays]
    return _backward(xp, lines, arrays, eps, g_mean is not None)


_COLUMNS = 128  # threads of a block that adds up columns


def _backward(xp: Reading, lines: _Lines, arrays: list[Any], eps: float, centered: bool) -> Any:
    g = arrays[0]
    dx = xp.lib.empty(g.shape, dtype=g.dtype)
    held, grid, block = plan(lines.rows, lines.n, g.dtype, _MOST)
    name = f"norm_backward<{lines.type}, {held}, {flag(centered)}, false>"
    launch("norms.cu", name, grid, block, [*arrays, dx, None, *lines.sizes, np.float64(eps)])
    return dx


def _channels(
    xp: Reading, x: Any, axis: Any, along: Any, centered: bool, *weights: Any
) -> channel_norms.Channels | None:
    return channel_norms.channels_of(xp, x, axis, along, *weights) if centered else None


def _match(lines: _Lines | channel_norms.Channels, g: Any, x: Any, *statistics: Any) -> bool:
    return alike(x, g) and g.shape == x.shape and lines.statistics(*statistics)


def _names() -> list[str]:
    either = ("false", "true")
    packs = [(type_name(d), held, d) for d in FLOATS for held in (0, 1, 2, 4, 8)]
    return [
        *(f"norm_forward<{t}, {held}, {c}>" for t, held, _ in packs for c in either),
        *(f"norm_backward<{t}, {held}, {c}, false>" for t, held, _ in packs for c in either),
        *(
            f"norm_backward<{t}, {held}, {c}, true>"
            for t, held, d in packs for c in either if 0 < held <= most_held(d, _sums(d))
        ),
        *(f"norm_columns<{type_name(d)}>" for d in FLOATS),
    ]  # fmt: skip


VECTOR = tuple(_names())
"""Those that must read 16 bytes at a time."""

INSTANCES = tuple(
    ("norms.cu", name) for name in (*VECTOR, *(f"column_sums<{type_name(d)}>" for d in FLOATS))
)
"""Every kernel that may be launched: (source, name)."""
