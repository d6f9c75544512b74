"""Batch norm, forward and backward: standardises each channel over all other axes."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from gpugrad.core.backend import Reading
from gpugrad.kernels.by_hand.rows import FLOATS, contiguous, names, share_dtype
from gpugrad.kernels.runtime.cooperative import barrier_of, blocks_at_once
from gpugrad.kernels.runtime.launch import cpp_bool, launch, pointer, type_name

_THREADS = 256  # CHANNEL_THREADS
BLOCKS = 2
"""Blocks that a processor holds at least, as FOR_CHANNELS says."""

_PACKS = 8  # packs of a piece that one thread reads
_LONGEST = 2**30

_SIZES = "channels", "places", "span", "pieces", "across"
_SHAPE = np.dtype([("lines", np.int64), *((n, np.int32) for n in _SIZES)], align=True)
"""The struct Shape of channel_norms.cu."""


class Channels:
    """The channels of an array, which are adjacent axes, and the geometry of their kernels.

    Attributes:
        stats_shape: shape of the statistics: 1 along the other axes.
        stats_dtype: dtype of the statistics.
        channels_last: whether the channels are last in memory but not in the array's shape.
    """

    def __init__(self, xp: Reading, x: Any, first: int, until: int) -> None:
        self.lib, self.own = xp.lib, tuple(range(first, until))
        self.last = tuple(range(x.ndim - len(self.own), x.ndim))
        self.stats_dtype = np.float64 if x.dtype == np.float64 else np.float32
        self.type = type_name(x.dtype)
        self.stats_shape = tuple(n if a in self.own else 1 for a, n in enumerate(x.shape))
        self.channels = math.prod(self.stats_shape)
        self.count = x.size // self.channels  # elements per channel
        self.channels_last = (
            not x.flags.c_contiguous and self._move_channels_last(x).flags.c_contiguous
        )
        self.places = 1 if self.channels_last else math.prod(x.shape[until:])

    def _move_channels_last(self, x: Any) -> Any:
        return self.lib.moveaxis(x, self.own, self.last)

    def to_kernel(self, x: Any) -> Any:
        """An array of this shape in the memory order that the kernels read."""
        return self.lib.ascontiguousarray(self._move_channels_last(x) if self.channels_last else x)

    def from_kernel(self, y: Any) -> Any:
        """A result with its axes in the original order."""
        return self.lib.moveaxis(y, self.last, self.own) if self.channels_last else y

    def empty(self, *lead: int) -> Any:
        """An uninitialised array with numbers for each channel."""
        return self.lib.ndarray((*lead, self.channels), self.stats_dtype)

    def statistics(self, *arrays: Any) -> bool:
        """Whether the arrays have the shape and dtype of the channels' statistics."""
        return all(a.shape == self.stats_shape and a.dtype == self.stats_dtype for a in arrays)

    def plan(self, *arrays: Any) -> tuple[str, tuple[int, int], Any]:
        """Template arguments, grid and the struct Shape of a kernel over these arrays."""
        last, size = self.places == 1, arrays[0].itemsize
        line = self.channels if last else self.places
        width = next(
            w
            for w in _widths(size, last)
            if line % w == 0 and all(pointer(a) % (w * size) == 0 for a in arrays)
        )
        across = min(1 << (line // width - 1).bit_length(), 32 if last else _THREADS)
        span = min(line, across * width * _PACKS)
        pieces = 1 if last else -(-line // span)
        lines = self.count // self.places * pieces
        most = blocks_at_once(arrays[0], BLOCKS)
        tiles = min(-(-line // (across * width)) if last else self.channels, most)
        parts = min(-(-lines * across // _THREADS), most // tiles)
        shape = np.array((lines, self.channels, self.places, span, pieces, across), _SHAPE)
        return f"{self.type}, {width}, {cpp_bool(last)}", (tiles, parts), shape[()]


def _widths(size: int, last: bool) -> tuple[int, ...]:
    """Candidate widths of an access; 16-bit images are often multiples of 8 bytes, not of 16."""
    return (8, 4, 1) if size == 2 and not last else (16 // size, 1)


def channels_of(xp: Reading, x: Any, axis: Any, along: Any, *weights: Any) -> Channels | None:
    """The channels of `x` along all axes but `axis`; None if the kernels do not support them."""
    weights = tuple(w for w in weights if w is not None)
    if not share_dtype(x, *weights) or not x.size:
        return None
    axes, alongs = ([a] if isinstance(a, int) else list(a) for a in (axis, along))
    if not axes or any(not -x.ndim <= a < x.ndim for a in (*axes, *alongs)):
        return None
    kept = [a for a in range(x.ndim) if a not in axes and a - x.ndim not in axes]
    if not kept or len(kept) + len(axes) > x.ndim or kept[-1] - kept[0] >= len(kept):
        return None
    shape = x.shape[kept[0] : kept[-1] + 1]
    if weights and ([a % x.ndim for a in alongs] != kept or any(w.shape != shape for w in weights)):
        return None
    channels = Channels(xp, x, kept[0], kept[-1] + 1)
    return channels if max(channels.channels, channels.places) <= _LONGEST else None


def forward(
    xp: Reading,
    channels: Channels,
    x: Any,
    weight: Any,
    bias: Any,
    eps: float,
    *,
    added: Any = None,
    relu: bool = False,
) -> tuple[Any, Any, Any]:
    """The results of standardize_affine: y, mean and variance; y plus `added`, and its relu."""
    x = channels.to_kernel(x)
    more = [] if added is None else [channels.to_kernel(added)]
    y = xp.lib.ndarray(x.shape, x.dtype)
    name, grid, shape = channels.plan(x, y, *more)
    weight, bias = contiguous(xp, weight, bias)
    partial, mean, var = channels.empty(3, grid[1]), channels.empty(), channels.empty()
    args = [x, weight, bias, *(more or [None]), y, mean, var, partial, barrier_of(x), shape]
    args += [np.float64(channels.count), np.float64(eps), np.bool_(relu)]
    _launch(f"channel_forward<{name}>", grid, args)
    return (
        channels.from_kernel(y),
        mean.reshape(channels.stats_shape),
        var.reshape(channels.stats_shape),
    )


def backward(
    xp: Reading,
    channels: Channels,
    arrays: Sequence[Any],
    eps: float,
    *,
    grads: bool = False,
    relu: Any = None,
    bias: Any = None,
    added: Any = None,
) -> tuple[Any, ...]:
    """The gradient by x, followed by those by weight and bias if `grads`.

    Args:
        xp: the library.
        channels: the channels of x.
        arrays: g, x, mean, var, gradients of mean and var, and weight or None. If mean is None, x
            is the standardised result instead of the input.
        eps: added to the variance.
        grads: whether the gradients by weight and bias are wanted.
        relu: None, or the result of relu: then the cotangent is g, plus `added` if not None, where
            relu is positive. It is returned after the gradients.
        bias: None, or the bias of a norm whose relu it was: then relu is computed again from x,
            which moves fewer bytes, and the cotangent is not returned.
        added: see `relu`.
    """
    g, x = channels.to_kernel(arrays[0]), channels.to_kernel(arrays[1])
    dx = xp.lib.ndarray(x.shape, x.dtype)
    more, masked = None if added is None else channels.to_kernel(added), None
    if bias is not None:
        relu = None
    elif relu is not None:
        relu, masked = channels.to_kernel(relu), xp.lib.ndarray(x.shape, x.dtype)
    every = [a for a in (g, x, dx, more, relu, masked) if a is not None]
    name, grid, shape = channels.plan(*every)
    mean, var, g_mean, g_var, weight, bias = contiguous(xp, *arrays[2:], bias)
    partial, slopes = channels.empty(2, grid[1]), channels.empty(3)
    weight_grads = [xp.lib.ndarray(weight.shape, weight.dtype) for _ in range(2)] if grads else []
    args = [g, x, mean, var, g_mean, g_var, weight, bias, more, relu, masked, dx]
    args += [*(weight_grads or (None, None)), partial, slopes, barrier_of(x), shape]
    args += [np.float64(channels.count), np.float64(eps)]
    _launch(f"channel_backward<{name}>", grid, args)
    results = channels.from_kernel(dx), *weight_grads
    return results if masked is None else (*results, channels.from_kernel(masked))


def with_relu(
    xp: Reading,
    x: Any,
    weight: Any,
    bias: Any,
    added: Any = None,
    *,
    axis: Any,
    along: Any,
    eps: float,
) -> Any:
    """The relu of standardize_affine, plus `added` before if not None; mean and variance.

    NotImplemented if the kernels do not support the arrays.
    """
    channels = channels_of(xp, x, axis, along, weight, bias)
    if channels is None or not (added is None or _alike(x, added)):
        return NotImplemented
    return forward(xp, channels, x, weight, bias, eps, added=added, relu=True)


def with_relu_grads(
    xp: Reading,
    g: Any,
    relu: Any,
    x: Any,
    mean: Any,
    var: Any,
    g_mean: Any,
    g_var: Any,
    weight: Any,
    added: Any = None,
    *,
    axis: Any,
    along: Any,
    eps: float,
    bias: Any = None,
) -> Any:
    """The results of standardize_affine_grads before relu: for g plus `added` where `relu` > 0.

    Returns:
        Its three results and that cotangent, which is left out if the norm's `bias` is passed, to
        compute relu again; NotImplemented if the kernels do not support the arrays.
    """
    channels = channels_of(xp, x, axis, along, weight, bias)
    alike = all(_alike(x, a) for a in (g, relu, added) if a is not None)
    if channels is None or not alike or not channels.statistics(mean, var, g_mean, g_var):
        return NotImplemented
    arrays = [g, x, mean, var, g_mean, g_var, weight]
    return backward(xp, channels, arrays, eps, grads=True, relu=relu, bias=bias, added=added)


def _alike(x: Any, y: Any) -> bool:
    return (x.shape, x.dtype) == (y.shape, y.dtype)


def _launch(name: str, grid: tuple[int, int], args: list[Any]) -> None:
    launch("channel_norms.cu", name, grid, _THREADS, args, cooperative=True)


_NAMES = {
    name: width * dtype.itemsize == 16
    for dtype in FLOATS
    for last in (True, False)
    for width in _widths(dtype.itemsize, last)
    for way in ("forward", "backward")
    for name in names("channel_{}<{}, {}, {}>", [way], [dtype], [width], [cpp_bool(last)])
}
INSTANCES = tuple(("channel_norms.cu", name) for name in _NAMES)
"""Every kernel that may be launched: (source, name)."""

VECTOR = tuple(name for name, packed in _NAMES.items() if packed)
"""Kernels that must read 16 bytes at a time."""
