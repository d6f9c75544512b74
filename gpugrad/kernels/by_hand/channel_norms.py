"""Batch norm, forward and backward: each channel is standardised over all other axes."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from gpugrad.core.backend import Reading
from gpugrad.kernels.by_hand.rows import FLOATS, alike
from gpugrad.kernels.runtime.launch import flag, launch, pointer, type_name

__all__ = ["INSTANCES", "VECTOR", "Channels", "backward", "channels_of", "forward"]

_THREADS = 256  # CHANNEL_THREADS
_BLOCKS = 528  # that add up parts: four for each processor of an H100
_PACKS = 8  # of a piece, that one thread reads
_LONGEST = 2**30

_SIZES = "channels", "places", "span", "pieces", "across"
_SHAPE = np.dtype([("lines", np.int64), *((n, np.int32) for n in _SIZES)], align=True)
"""The struct Shape of channel_norms.cu."""


class Channels:
    """An array's channels, along axes that are neighbours, and what goes through them.

    Attributes:
        small: shape of the statistics: 1 along the other axes.
        wide: dtype of the statistics.
        moved: whether channels are last in memory, though not in the array's shape.
    """

    def __init__(self, xp: Reading, x: Any, first: int, until: int) -> None:
        self.lib, self.own = xp.lib, tuple(range(first, until))
        self.last = tuple(range(x.ndim - len(self.own), x.ndim))
        self.wide = np.float64 if x.dtype == np.float64 else np.float32
        self.type = type_name(x.dtype)
        self.small = tuple(n if a in self.own else 1 for a, n in enumerate(x.shape))
        self.channels = math.prod(self.small)
        self.count = x.size // self.channels  # elements of a channel
        self.moved = not x.flags.c_contiguous and self._moved(x).flags.c_contiguous
        self.places = 1 if self.moved else math.prod(x.shape[until:])

    def _moved(self, x: Any) -> Any:
        return self.lib.moveaxis(x, self.own, self.last)

    def of(self, x: Any) -> Any:
        """An array of this shape in the order in which the kernels go through it."""
        return self.lib.ascontiguousarray(self._moved(x) if self.moved else x)

    def back(self, y: Any) -> Any:
        """A result with its axes as they were."""
        return self.lib.moveaxis(y, self.last, self.own) if self.moved else y

    def empty(self, *lead: int) -> Any:
        """New numbers for each channel."""
        return self.lib.empty((*lead, self.channels), dtype=self.wide)

    def statistics(self, *arrays: Any) -> bool:
        """Whether these are statistics of the channels."""
        return all(a.shape == self.small and a.dtype == self.wide for a in arrays)

    def plan(self, *arrays: Any) -> tuple[str, tuple[int, int], Any]:
        """Of kernels that go through these arrays: template arguments, grid, the struct Shape."""
        last, size = self.places == 1, arrays[0].itemsize
        line = self.channels if last else self.places
        width = next(
            w for w in _widths(size, last)
            if line % w == 0 and all(pointer(a) % (w * size) == 0 for a in arrays)
        )  # fmt: skip
        across = min(1 << (line // width - 1).bit_length(), 32 if last else _THREADS)
        span = min(line, across * width * _PACKS)
        pieces = 1 if last else -(-line // span)
        lines = self.count // self.places * pieces
        tiles = -(-line // (across * width)) if last else self.channels
        parts = min(-(-lines * across // _THREADS), -(-_BLOCKS // tiles))
        shape = np.array((lines, self.channels, self.places, span, pieces, across), _SHAPE)
        return f"{self.type}, {width}, {flag(last)}", (tiles, parts), shape[()]


def _widths(size: int, last: bool) -> tuple[int, ...]:
    """Elements of an access. Places of 16-bit floats are often packs of 8 bytes, not of 16."""
    return (8, 4, 1) if size == 2 and not last else (16 // size, 1)


def channels_of(xp: Reading, x: Any, axis: Any, along: Any, *weights: Any) -> Channels | None:
    """The channels of `x`, if they lie along all axes but these; weights must be theirs."""
    given = [w for w in weights if w is not None]
    if not alike(x, *given) or not x.size:
        return None
    axes, alongs = ([a] if isinstance(a, int) else list(a) for a in (axis, along))
    if not axes or any(not -x.ndim <= a < x.ndim for a in (*axes, *alongs)):
        return None
    kept = [a for a in range(x.ndim) if a not in axes and a - x.ndim not in axes]
    if not kept or len(kept) + len(axes) > x.ndim or kept[-1] - kept[0] >= len(kept):
        return None
    shape = x.shape[kept[0] : kept[-1] + 1]
    if given and ([a % x.ndim for a in alongs] != kept or any(w.shape != shape for w in given)):
        return None
    made = Channels(xp, x, kept[0], kept[-1] + 1)
    return made if max(made.channels, made.places) <= _LONGEST else None


def forward(
    xp: Reading, channels: Channels, x: Any, weight: Any, bias: Any, eps: float
) -> tuple[Any, Any, Any]:
    """What standardize_affine returns."""
    x = channels.of(x)
    y = xp.lib.empty(x.shape, dtype=x.dtype)
    name, grid, shape = channels.plan(x, y)
    weight, bias = _contiguous(xp, weight, bias)
    partial, mean, var = channels.empty(3, grid[1]), channels.empty(), channels.empty()
    launch("channel_norms.cu", f"channel_moments<{name}>", grid, _THREADS, [x, partial, shape])
    given, places = [partial, x, mean, var], np.int32(channels.places)
    _combine(channels, f"channel_statistics<{channels.type}>", given, grid[1], places)
    given = [x, weight, bias, mean, var, y, shape, np.float64(eps)]
    launch("channel_norms.cu", f"channel_forward<{name}>", grid, _THREADS, given)
    return channels.back(y), mean.reshape(channels.small), var.reshape(channels.small)


def backward(
    xp: Reading, channels: Channels, arrays: Sequence[Any], eps: float, *, grads: bool = False
) -> tuple[Any, ...]:
    """The gradient by x, and if `grads` those by weight and bias.

    Args:
        xp: the library.
        channels: those of x.
        arrays: g, x, mean, var, their gradients, and weight or None. Without a mean, x is what was
            standardised, not what that was made of.
        eps: added to the variance.
        grads: whether those by weight and bias are wanted.
    """
    g, x = channels.of(arrays[0]), channels.of(arrays[1])
    dx = xp.lib.empty(x.shape, dtype=x.dtype)
    name, grid, shape = channels.plan(g, x, dx)
    mean, var, g_mean, g_var, weight = _contiguous(xp, *arrays[2:])
    partial, slopes = channels.empty(2, grid[1]), channels.empty(3)
    given = [g, x, mean, var, partial, shape, np.float64(eps)]
    launch("channel_norms.cu", f"channel_sums<{name}>", grid, _THREADS, given)
    made = [xp.lib.empty(weight.shape, dtype=weight.dtype) for _ in range(2)] if grads else []
    given = [partial, mean, var, g_mean, g_var, weight, slopes, *(made or (None, None))]
    _combine(channels, f"channel_slopes<{channels.type}>", given, grid[1], np.float64(eps))
    given = [g, x, mean, slopes, dx, shape]
    launch("channel_norms.cu", f"channel_backward<{name}>", grid, _THREADS, given)
    return channels.back(dx), *made


def _contiguous(xp: Reading, *arrays: Any) -> list[Any]:
    return [a if a is None else xp.lib.ascontiguousarray(a) for a in arrays]


def _combine(channels: Channels, name: str, arrays: list[Any], parts: int, *rest: Any) -> None:
    n = channels.channels
    sizes = np.int32(parts), np.int32(n), np.float64(channels.count)
    launch("channel_norms.cu", name, -(-n // 32), (32, 32), [*arrays, *sizes, *rest])


def _names() -> list[tuple[str, bool]]:
    made = []
    for dtype in FLOATS:
        made += [(f"channel_{k}<{type_name(dtype)}>", False) for k in ("statistics", "slopes")]
        for last in (True, False):
            for width in _widths(dtype.itemsize, last):
                own = f"<{type_name(dtype)}, {width}, {flag(last)}>"
                made += [
                    (f"channel_{kernel}{own}", width * dtype.itemsize == 16)
                    for kernel in ("moments", "forward", "sums", "backward")
                ]
    return made


INSTANCES = tuple(("channel_norms.cu", name) for name, _ in _names())
"""Every kernel that may be launched: (source, name)."""

VECTOR = tuple(name for name, packed in _names() if packed)
"""Those that must read 16 bytes at a time."""
