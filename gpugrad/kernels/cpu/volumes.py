"""Convolutions over three axes by the kernels of two: the slices that a window holds are channels.

A stack of such images is ``stack[n, i, c, k] = x[n, c, i * stride + k * dilation - before]``: the
slices along the first axis that the window at `i` reads, for all channels. Its copies take little
time beside the products.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

MOST = 1 << 22
"""Elements of the stack of slices at most; more images follow one another."""


def _parts(length: int, window: int, geometry: Any) -> Iterator[tuple[int, slice, slice]]:
    """By place in a window: the windows for which it is inside of the input, and the slices."""
    step, (before, _), apart, places = (of[0] for of in geometry)
    for k in range(window):
        at = k * apart - before  # of the first window
        first = max(0, -(at // step))
        end = min(places, (length - 1 - at) // step + 1)
        if first < end:
            start = first * step + at
            yield k, slice(first, end), slice(start, start + (end - first - 1) * step + 1, step)


def _flat(geometry: Any) -> Any:
    return type(geometry)(*(of[1:] for of in geometry))


def _stacked(x: Any, window: int, geometry: Any) -> Any:
    """The stack of slices, of shape (images * places, channels * window, height, width)."""
    n, channels, length, *rest = x.shape
    stack = np.zeros((n, geometry.places[0], channels, window, *rest), x.dtype)
    for k, windows, slices in _parts(length, window, geometry):
        stack[:, windows, :, k] = x[:, :, slices].swapaxes(1, 2)
    return stack.reshape(n * geometry.places[0], channels * window, *rest)


def _planes(y: Any) -> Any:
    """Volumes (n, channels, length, ...) as images (n * length, channels, ...)."""
    return np.ascontiguousarray(y.swapaxes(1, 2)).reshape(-1, y.shape[1], *y.shape[3:])


def _pieces(x_shape: Any, window: int, geometry: Any) -> Iterator[slice]:
    """Images whose stacks are small enough."""
    n, channels, _, height, width = x_shape
    each = channels * window * geometry.places[0] * height * width
    step = max(1, MOST // max(each, 1))
    return (slice(k, k + step) for k in range(0, n, step))


def convolution(flat: Callable[..., Any], x: Any, w: Any, geometry: Any, groups: int) -> Any:
    """The convolution of x and w, by `flat` over two axes, or NotImplemented."""
    window, out = w.shape[2], np.empty((x.shape[0], w.shape[0], *geometry.places), x.dtype)
    v = np.ascontiguousarray(w).reshape(w.shape[0], -1, *w.shape[3:])
    for some in _pieces(x.shape, window, geometry):
        stack = _stacked(x[some], window, geometry)
        y = flat(np, stack, v, geometry=_flat(geometry), groups=groups)
        if y is NotImplemented:
            return y
        out[some] = y.reshape(-1, geometry.places[0], *y.shape[1:]).swapaxes(1, 2)
    return out


def input_grad(
    flat: Callable[..., Any], g: Any, w: Any, shape: Any, geometry: Any, groups: int
) -> Any:
    """The gradient by the input, of shape `shape`, or NotImplemented."""
    window, out = w.shape[2], np.zeros(shape, g.dtype)
    v = np.ascontiguousarray(w).reshape(w.shape[0], -1, *w.shape[3:])
    for some in _pieces(shape, window, geometry):
        images = _planes(g[some])
        of = len(images), shape[1] * window, *shape[3:]
        d = flat(np, images, v, shape=of, geometry=_flat(geometry), groups=groups)
        if d is NotImplemented:
            return d
        d = d.reshape(-1, geometry.places[0], shape[1], window, *shape[3:])
        for k, windows, slices in _parts(shape[2], window, geometry):
            out[some, :, slices] += d[:, windows, :, k].swapaxes(1, 2)
    return out


def weight_grad(
    flat: Callable[..., Any], x: Any, g: Any, shape: Any, geometry: Any, groups: int
) -> Any:
    """The gradient by the weights, of shape `shape`, or NotImplemented."""
    window, out = shape[2], np.zeros(shape, x.dtype)
    of = shape[0], shape[1] * window, *shape[3:]
    for some in _pieces(x.shape, window, geometry):
        stack = _stacked(x[some], window, geometry)
        d = flat(np, stack, _planes(g[some]), shape=of, geometry=_flat(geometry), groups=groups)
        if d is NotImplemented:
            return d
        out += d.reshape(shape)
    return out
