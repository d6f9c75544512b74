"""Pooling to a fixed number of windows, which cover the input and may overlap by one element.

Window i of m over an axis of length n runs from ``floor(i * n / m)`` to ``ceil((i + 1) * n / m)``.
"""

import functools

import numpy as np

from gpugrad.core.samples import shaped
from gpugrad.errors import ArgumentError, ShapeError
from gpugrad.ops.arrays.windows import ints
from gpugrad.ops.nn.pooling_max import different
from gpugrad.ops.nn.resample import Taps, area_taps
from gpugrad.ops.nn.spatial import spatial


def _targets(name, n, x, output_size):
    """Pairs (length, number of windows) for the last `n` axes."""
    if x.ndim not in (n + 1, n + 2) or 0 in x.shape[x.ndim - n :]:
        raise ShapeError(
            f"{name}: x must have the axes (N, C, *spatial) or (C, *spatial), with {n} spatial "
            f"axes that are not empty; its shape is {x.shape}."
        )
    lengths = x.shape[x.ndim - n :]
    many = isinstance(output_size, (tuple, list)) and len(output_size) == n
    sizes = tuple(output_size) if many else (output_size,) * n
    counts = tuple(k if m is None else m for k, m in zip(lengths, sizes, strict=True))
    return tuple(zip(lengths, ints(name, "output_size", counts, n, 1), strict=True))


def _adaptive_ref(reduce):
    def ref(x, output_size):
        lengths = x.shape[2:]
        sizes = output_size if isinstance(output_size, tuple) else (output_size,) * len(lengths)
        sizes = [k if m is None else m for k, m in zip(lengths, sizes, strict=True)]
        out = np.empty((*x.shape[:2], *sizes), x.dtype)
        for at in np.ndindex(*sizes):
            cut = [
                slice(i * k // m, -(-(i + 1) * k // m))
                for i, k, m in zip(at, lengths, sizes, strict=True)
            ]
            out[..., *at] = reduce(x[:, :, *cut], axis=tuple(range(2, x.ndim)))
        return out

    return ref


def _wrong(name, n):
    x = np.ones((1, 1, *(3,) * n))
    return [
        ([x, 0], {}, ArgumentError, rf"{name}: output_size"),
        ([x[0, 0], 1], {}, ShapeError, rf"{name}: x must have the axes"),
    ]


_CASES = {
    1: [((1, 2, 5), {"output_size": 3}), ((1, 1, 4), {"output_size": 2})],
    2: [
        ((1, 1, 3, 4), {"output_size": (2, 3)}),
        ((1, 2, 2, 3), {"output_size": 1}),
        ((1, 1, 4, 3), {"output_size": (2, None)}),
    ],
    3: [((1, 1, 2, 3, 2), {"output_size": 2}), ((1, 1, 3, 2, 2), {"output_size": (2, 1, None)})],
}


def _adaptive_avg_pool(n, *example):
    name = f"adaptive_avg_pool{n}d"
    samples = shaped(*(([shape], keywords) for shape, keywords in _CASES[n]))
    errors = _wrong(name, n)

    @spatial(n, example, ref=_adaptive_ref(np.mean), kinds="fc", samples=samples, errors=errors)
    def adaptive_avg_pool(xp, x, /, output_size):
        """Means of a fixed number of windows {where}; with one window, global average pooling.

        Args:
            x: array of shape {shape}.
            output_size: {each}, windows along each axis; None for as many as in `x`.

        Returns:
            Tensor of shape (N, C, *output_size), or without N.
        """
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

    return adaptive_avg_pool


adaptive_avg_pool1d = _adaptive_avg_pool(1, "[[[1.0, 3.0, 2.0]]], 2", "[[[2.  2.5]]]")
adaptive_avg_pool2d = _adaptive_avg_pool(2, "[[[1.0, 3.0], [2.0, 0.0]]], 1", "[[[1.5]]]")
adaptive_avg_pool3d = _adaptive_avg_pool(3, "[[[[1.0, 3.0], [2.0, 0.0]]]], 1", "[[[[1.5]]]]")


@functools.lru_cache(maxsize=256)
def _side_by_side(length, m):
    """Taps that copy the windows' elements, and how many each window then has."""
    index = area_taps(length, m).index
    return Taps(index.reshape(-1, 1), 1.0, length), index.shape[1]


def _adaptive_max_pool(n, *example):
    name = f"adaptive_max_pool{n}d"
    samples, errors = different(*_CASES[n]), _wrong(name, n)

    @spatial(
        n, example, native_half=True, ref=_adaptive_ref(np.max), samples=samples, errors=errors
    )
    def adaptive_max_pool(xp, x, /, output_size):
        """Largest elements of a fixed number of windows {where}.

        Args:
            x: array of shape {shape}.
            output_size: {each}, windows along each axis; None for as many as in `x`.

        Returns:
            Tensor of shape (N, C, *output_size), or without N. The gradient goes to the first of
            equal elements.
        """
        # Windows are laid side by side, and shorter ones padded with elements of their own.
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

    return adaptive_max_pool


adaptive_max_pool1d = _adaptive_max_pool(1, "[[[1.0, 3.0, 2.0]]], 2", "[[[3. 3.]]]")
adaptive_max_pool2d = _adaptive_max_pool(2, "[[[1.0, 3.0], [2.0, 0.0]]], 1", "[[[3.]]]")
adaptive_max_pool3d = _adaptive_max_pool(3, "[[[[1.0, 3.0], [2.0, 0.0]]]], 1", "[[[[3.]]]]")
