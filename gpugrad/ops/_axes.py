"""Helpers of ops along axes: which they are, what is left, and how vmap counts them."""

from __future__ import annotations

import numpy as np

from gpugrad.core.backend import as_dtype
from gpugrad.errors import AxisError, DTypeError


def all_axes(ndim, axis):
    """`axis` as a tuple of axes counted from 0; of () none, for NumPy takes axis 0 of that too."""
    if axis is None or not ndim:
        return tuple(range(ndim))
    axes = axis if isinstance(axis, (tuple, list)) else (axis,)
    return tuple(a % ndim for a in axes)


def count(x_shape, axis):
    """How many elements are reduced to one."""
    n = 1
    for a in all_axes(len(x_shape), axis):
        n *= x_shape[a]
    return n


def reduced(shape, axis):
    """The shape that is left without the reduced axes."""
    axes = all_axes(len(shape), axis)
    return tuple(n for i, n in enumerate(shape) if i not in axes)


def expand(xp, g, x_shape, axis, keepdims):
    """A reduction's result with the reduced axes put back, of length 1."""
    if keepdims or g.shape == x_shape:
        return g
    axes = all_axes(len(x_shape), axis)
    return xp.reshape(g, tuple(1 if i in axes else n for i, n in enumerate(x_shape)))


def batch_axis(axis, ndim):
    """`axis` of an example of `ndim` axes, in a stack of examples; None is all of its axes."""
    if axis is None:
        return tuple(range(1, ndim + 1))
    if isinstance(axis, (tuple, list)):
        return tuple(batch_axis(a, ndim) for a in axis)
    if not -ndim <= axis < ndim:
        raise AxisError(f"axis {axis} is out of bounds for an array of {ndim} axes.")
    return axis + 1 if axis >= 0 else axis


def batch_all(xp, batched, arrays):
    """Arrays that all have the batch axis: what had none is repeated along one."""
    size = next(x.shape[0] for x, has_one in zip(arrays, batched, strict=True) if has_one)
    return [
        x if has_one else xp.broadcast_to(x, (size, *x.shape))
        for x, has_one in zip(arrays, batched, strict=True)
    ]


def accumulated(name, reduce, x, dtype, **params):
    """``reduce(x, **params)`` in `dtype`; of 16-bit floats in float32, rounded once at the end."""
    if dtype is None and x.dtype.char not in "eE":
        return reduce(x, **params)
    made = x.dtype if dtype is None else as_dtype(dtype)
    if x.dtype.kind == "c" and made.kind != "c":
        raise DTypeError(f"{name}: {x.dtype} does not become {made}: take gg.real(x) first.")
    if x.dtype.char in "eE":  # not every library adds up bfloat16
        x = x.astype(np.float32)
    wide = np.float32 if made.char in "eE" else made
    return reduce(x, dtype=wide, **params).astype(made, copy=False)


def cast_back(xp, g, dtype):
    """A gradient in the dtype of the input, where a result was asked for in another."""
    if g.dtype == dtype:
        return g
    return xp.astype(xp.real(g) if g.dtype.kind == "c" and dtype.kind != "c" else g, dtype)
