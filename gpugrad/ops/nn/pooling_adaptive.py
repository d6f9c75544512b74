"""Pooling to a given number of windows, which cover the input and may overlap by one element.

Window i of m over an axis of length n runs from ``floor(i * n / m)`` to ``ceil((i + 1) * n / m)``.
"""

from __future__ import annotations

import functools
from typing import Any

import numpy as np

from gpugrad.core.samples import shaped
from gpugrad.errors import ArgumentError, ShapeError
from gpugrad.ops.arrays.windows import ints
from gpugrad.ops.nn.pooling_max import different
from gpugrad.ops.nn.resample import Taps, area_taps
from gpugrad.registry.record import op


def _targets(name, n, x, output_size):
    """Pairs (length, number of windows) for the last `n` axes."""
    if x.ndim not in (n + 1, n + 2) or 0 in x.shape[x.ndim - n :]:
        raise ShapeError(
            f"{name}: x must have the axes (N, C, *spatial) or (C, *spatial), with {n} spatial "
            f"axes that are not empty; its shape is {x.shape}."
        )
    lengths = x.shape[x.ndim - n :]
    many = isinstance(output_size, (tuple, list)) and len(output_size) == n
    given = tuple(output_size) if many else (output_size,) * n
    filled = tuple(k if m is None else m for k, m in zip(lengths, given, strict=True))
    return tuple(zip(lengths, ints(name, "output_size", filled, n, 1), strict=True))


def _adaptive_avg(xp, name, n, x, output_size):
    first, whole, out = x.ndim - n, [], x
    for axis, (length, m) in enumerate(_targets(name, n, x, output_size), first):
        if m == 1:
            whole.append(axis)
        elif length % m == 0 and length != m:
            k = length // m
            out = xp.window_sum(out, k, axis=axis, step=k) / k
        elif length != m:
            out = xp.resample(out, area_taps(length, m), axis=axis)
    if whole:
        out = xp.mean(out, axis=tuple(whole), keepdims=True)
    return xp.positive(x) if out is x else out


@functools.lru_cache(maxsize=256)
def _side_by_side(length, m):
    """Taps of the windows' elements, and how many each window then has."""
    places = area_taps(length, m).index
    return Taps(places.reshape(-1, 1), 1.0, length), places.shape[1]


def _adaptive_max(xp, name, n, x, output_size):
    """Windows are laid side by side, filled up with some of their elements: then all are alike."""
    first, size = x.ndim - n, []
    for axis, (length, m) in enumerate(_targets(name, n, x, output_size), first):
        if length % m:
            taps, width = _side_by_side(length, m)
            size.append(width)
            x = xp.resample(x, taps, axis=axis)
        else:
            size.append(length // m)
    size = tuple(size)
    return xp.window_max(x, size=size, step=size, dilation=(1,) * n, padding=((0, 0),) * n)


def _adaptive_ref(reduce):
    def ref(x, output_size):
        lengths = x.shape[2:]
        sizes = output_size if isinstance(output_size, tuple) else (output_size,) * len(lengths)
        sizes = [k if m is None else m for k, m in zip(lengths, sizes, strict=True)]
        out = np.empty((*x.shape[:2], *sizes), x.dtype)
        for at in np.ndindex(*sizes):
            cut = [slice(i * k // m, -(-(i + 1) * k // m))
                   for i, k, m in zip(at, lengths, sizes, strict=True)]  # fmt: skip
            out[..., *at] = reduce(x[:, :, *cut], axis=tuple(range(2, x.ndim)))
        return out

    return ref


def _wrong(name, n):
    x = np.ones((1, 1, *(3,) * n))
    return [
        ([x, 0], {}, ArgumentError, rf"{name}: output_size"),
        ([x[0, 0], 1], {}, ShapeError, rf"{name}: x must have the axes"),
    ]


_CASES: dict[int, list[Any]] = {
    1: [((1, 2, 5), {"output_size": 3}), ((1, 1, 4), {"output_size": 2})],
    2: [((1, 1, 3, 4), {"output_size": (2, 3)}), ((1, 2, 2, 3), {"output_size": 1}),
        ((1, 1, 4, 3), {"output_size": (2, None)})],
    3: [((1, 1, 2, 3, 2), {"output_size": 2}), ((1, 1, 3, 2, 2), {"output_size": (2, 1, None)})],
}  # fmt: skip


def _random(n):
    return shaped(*(([shape], keywords) for shape, keywords in _CASES[n]))


@op(
    ref=_adaptive_ref(np.mean), kinds="fc", samples=_random(1),
    errors=_wrong("adaptive_avg_pool1d", 1),
)  # fmt: skip
def adaptive_avg_pool1d(xp, x, /, output_size):
    """Means of a given number of windows along an axis.

    Args:
        x: array of shape (N, C, L), or (C, L).
        output_size: int, how many windows.

    Returns:
        Tensor of shape (N, C, output_size), or without N.

    >>> print(gg.nn.adaptive_avg_pool1d([[[1.0, 3.0, 2.0]]], 2))
    [[[2.  2.5]]]
    """
    return _adaptive_avg(xp, "adaptive_avg_pool1d", 1, x, output_size)


@op(
    ref=_adaptive_ref(np.mean), kinds="fc", samples=_random(2),
    errors=_wrong("adaptive_avg_pool2d", 2),
)  # fmt: skip
def adaptive_avg_pool2d(xp, x, /, output_size):
    """Means of a given number of windows of images; with 1, global average pooling.

    Args:
        x: array of shape (N, C, H, W), or (C, H, W).
        output_size: int or a pair, rows and columns of windows; None for as many as in `x`.

    Returns:
        Tensor of shape (N, C, *output_size), or without N.

    >>> print(gg.nn.adaptive_avg_pool2d([[[1.0, 3.0], [2.0, 0.0]]], 1))
    [[[1.5]]]
    """
    return _adaptive_avg(xp, "adaptive_avg_pool2d", 2, x, output_size)


@op(
    ref=_adaptive_ref(np.mean), kinds="fc", samples=_random(3),
    errors=_wrong("adaptive_avg_pool3d", 3),
)  # fmt: skip
def adaptive_avg_pool3d(xp, x, /, output_size):
    """Means of a given number of windows of volumes.

    Args:
        x: array of shape (N, C, D, H, W), or (C, D, H, W).
        output_size: int or three, windows along each axis; None for as many as in `x`.

    Returns:
        Tensor of shape (N, C, *output_size), or without N.

    >>> print(gg.nn.adaptive_avg_pool3d([[[[1.0, 3.0], [2.0, 0.0]]]], 1))
    [[[[1.5]]]]
    """
    return _adaptive_avg(xp, "adaptive_avg_pool3d", 3, x, output_size)


@op(
    keeps_half=True, ref=_adaptive_ref(np.max), samples=different(*_CASES[1]),
    errors=_wrong("adaptive_max_pool1d", 1),
)  # fmt: skip
def adaptive_max_pool1d(xp, x, /, output_size):
    """Largest elements of a given number of windows along an axis.

    Args:
        x: array of shape (N, C, L), or (C, L).
        output_size: int, how many windows.

    Returns:
        Tensor of shape (N, C, output_size), or without N. The gradient goes to the first of
        equal elements.

    >>> print(gg.nn.adaptive_max_pool1d([[[1.0, 3.0, 2.0]]], 2))
    [[[3. 3.]]]
    """
    return _adaptive_max(xp, "adaptive_max_pool1d", 1, x, output_size)


@op(
    keeps_half=True, ref=_adaptive_ref(np.max), samples=different(*_CASES[2]),
    errors=_wrong("adaptive_max_pool2d", 2),
)  # fmt: skip
def adaptive_max_pool2d(xp, x, /, output_size):
    """Largest elements of a given number of windows of images.

    Args:
        x: array of shape (N, C, H, W), or (C, H, W).
        output_size: int or a pair, rows and columns of windows; None for as many as in `x`.

    Returns:
        Tensor of shape (N, C, *output_size), or without N. The gradient goes to the first of
        equal elements.

    >>> print(gg.nn.adaptive_max_pool2d([[[1.0, 3.0], [2.0, 0.0]]], 1))
    [[[3.]]]
    """
    return _adaptive_max(xp, "adaptive_max_pool2d", 2, x, output_size)


@op(
    keeps_half=True, ref=_adaptive_ref(np.max), samples=different(*_CASES[3]),
    errors=_wrong("adaptive_max_pool3d", 3),
)  # fmt: skip
def adaptive_max_pool3d(xp, x, /, output_size):
    """Largest elements of a given number of windows of volumes.

    Args:
        x: array of shape (N, C, D, H, W), or (C, D, H, W).
        output_size: int or three, windows along each axis; None for as many as in `x`.

    Returns:
        Tensor of shape (N, C, *output_size), or without N. The gradient goes to the first of
        equal elements.

    >>> print(gg.nn.adaptive_max_pool3d([[[[1.0, 3.0], [2.0, 0.0]]]], 1))
    [[[[3.]]]]
    """
    return _adaptive_max(xp, "adaptive_max_pool3d", 3, x, output_size)
