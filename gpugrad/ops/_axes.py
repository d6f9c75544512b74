"""Helpers for ops with an axis argument: check it, count it from 0, shift it under vmap."""

import math

import numpy as np

from gpugrad.autodiff.batched import batch_axis_of
from gpugrad.core.backend import HALF, NUMPY, SCALARS, as_dtype
from gpugrad.errors import AxisError, DTypeError, ShapeError
from gpugrad.kernels.cpu.large import LARGE, kernels
from gpugrad.registry.rules import conjugate


def check_axis(name, axis, shape):
    """`axis` counted from 0; AxisError if an array of that shape does not have it."""
    if not -len(shape) <= axis < len(shape):
        raise AxisError(f"{name}: axis {axis} is out of bounds for the shape {tuple(shape)}.")
    return axis % len(shape)


def flatten_or_check_axis(xp, name, x, axis):
    """`x` flattened if `axis` is None, and the axis counted from 0."""
    if axis is None:
        return xp.reshape(x, (x.size,)), 0
    return x, check_axis(name, axis, x.shape)


def arrays_of(xp, *values):
    """The values with arrays of no axes for Python numbers, for a composite that needs shapes.

    A number takes the dtype that it has beside the first array.
    """
    if SCALARS.isdisjoint(map(type, values)):
        return list(values)
    like = next((v for v in values if type(v) not in SCALARS), np.zeros(0, np.float32))
    none = xp.getitem(xp.reshape(like, (-1,)), index=slice(0, 0))
    return [xp.reshape(xp.append(none, v), ()) if type(v) in SCALARS else v for v in values]


def index_along(axis, part):
    """The index that takes `part` along one axis and everything along the axes before it."""
    return (*(slice(None),) * axis, part)


def as_tuple(value):
    """One value, or a sequence of them, as a tuple."""
    if type(value) is int or type(value) is tuple:  # most calls
        return value if type(value) is tuple else (value,)
    return tuple(value) if np.iterable(value) else (value,)


def broadcast_shapes(name, shapes):
    """``np.broadcast_shapes``, with a ShapeError that names the function."""
    try:
        return np.broadcast_shapes(*shapes)
    except ValueError as error:
        raise ShapeError(
            f"{name}: the shapes {', '.join(map(str, shapes))} do not broadcast: counted from the "
            "last axis, lengths must be equal or 1."
        ) from error


def all_axes(ndim, axis):
    """`axis` as a tuple counted from 0; empty for a 0-d array, where NumPy accepts axis 0 too."""
    if axis is None or not ndim:
        return tuple(range(ndim))
    if type(axis) is int:
        return (axis % ndim,)
    return tuple([a % ndim for a in as_tuple(axis)])


def checked_axes(name, x, axis):
    """`axis` as a tuple counted from 0; AxisError if `x` does not have one of them."""
    axes = range(x.ndim) if axis is None else axis if isinstance(axis, (tuple, list)) else (axis,)
    if any(not -x.ndim <= a < x.ndim for a in axes):
        raise AxisError(f"{name}: axis={axis} is out of bounds for the shape {x.shape}.")
    return tuple(a % x.ndim for a in axes)


LONG_ROW = 8192
"""Row length above which one block per row is too few blocks."""


def along_rows(x, axis):
    """Whether `axis` is the last one of `x`, and one kernel can hold its rows."""
    rows = len(x.shape) and 0 < x.shape[-1] <= LONG_ROW
    return bool(rows) and axis in (-1, len(x.shape) - 1, (-1,), (len(x.shape) - 1,))


def count(x_shape, axis):
    """The number of elements reduced to one."""
    n = 1
    for a in all_axes(len(x_shape), axis):
        n *= x_shape[a]
    return n


def per_count(xp, g, n):
    """Divide `g` by a count, a number or an array of `how_many`, in the dtype of `g`.

    float16 ends at 65,504, so the quotient of a 16-bit `g` is formed in float32.
    """
    if g.dtype not in HALF:
        return g / n
    return xp.astype(xp.astype(g, "float32") / n, g.dtype)


def how_many(xp, hit, axis):
    """The sum of ones in `hit` along axes that stay; for 16-bit floats in float32, unrounded."""
    dtype = "float32" if hit.dtype in HALF else None
    return xp.sum(hit, axis=axis, keepdims=True, dtype=dtype)


def reduced(shape, axis):
    """The shape without the reduced axes."""
    axes = all_axes(len(shape), axis)
    return tuple(n for i, n in enumerate(shape) if i not in axes)


def expand(xp, g, x_shape, axis, keepdims):
    """A reduction's result with the reduced axes restored, with length 1."""
    if keepdims or g.shape == x_shape:
        return g
    axes = all_axes(len(x_shape), axis)
    return xp.reshape(g, tuple(1 if i in axes else n for i, n in enumerate(x_shape)))


def reduced_tangent(xp, gradient, t, out, axis, keepdims):
    """The tangent of a reduction by its ``gradient(g)``, given the tangent of each element.

    Each element takes part in one result, so the gradient multiplies by a slope what it gets for
    each element, and the tangent is the sum of the products.
    """
    part = gradient(conjugate(xp, t))
    if part.dtype.kind == "c":
        part = xp.conj(part) if out.dtype.kind == "c" else xp.real(part)
    return xp.sum(part, axis=axis, keepdims=keepdims)


def reducing(name):
    """The vmap rule of a reduction: along the same axes of a stack of examples.

    A 0-d example has no axes to reduce, and takes axis 0, as a 0-d array does.
    """

    def batch(xp, batched, x, *, axis, **params):
        n = x.ndim - 1
        axes = batch_axis_of(axis, n) if n or axis not in (0, -1) else ()
        return getattr(xp, name)(x, axis=axes, **params)

    return batch


def along_examples(name):
    """The vmap rule of an op along an axis, or of the flattened example if `axis` is None."""

    def batch(xp, batched, x, *, axis, **params):
        if axis is None:
            x, axis = xp.reshape(x, (x.shape[0], math.prod(x.shape[1:]))), 0
        return getattr(xp, name)(x, axis=batch_axis_of(axis, x.ndim - 1), **params)

    return batch


def constants(xp):
    """The library that makes constants for a formula; traced arrays meet NumPy's."""
    return np if xp.nesting else xp.lib


def add_reduce(xp, x, axis, keepdims):
    """The sum along axes; of a large NumPy array on several threads."""
    if xp is NUMPY and x.size >= LARGE:
        result = kernels("sums").reduced(x, axis, keepdims)
        if result is not NotImplemented:
            return result
    return xp.add_reduce(x, axis=axis, keepdims=keepdims)


def accumulated(name, reduce, x, dtype, **params):
    """``reduce(x, **params)`` in `dtype`; 16-bit floats accumulate in float32 and round once."""
    if dtype is None and x.dtype.char not in "eE":
        return reduce(x, **params)
    dtype = x.dtype if dtype is None else as_dtype(dtype)
    if x.dtype.kind == "c" and dtype.kind != "c":
        raise DTypeError(f"{name}: {x.dtype} cannot be cast to {dtype}. Use gg.real(x) first.")
    if x.dtype.char in "eE":  # not every library sums bfloat16
        x = x.astype(np.float32)
    wide = np.float32 if dtype.char in "eE" else dtype
    return reduce(x, dtype=wide, **params).astype(dtype, copy=False)


def cast_back(xp, g, dtype):
    """A gradient cast to the dtype of the input, if the op computes in another `dtype`."""
    if g.dtype == dtype:
        return g
    return xp.astype(xp.real(g) if g.dtype.kind == "c" and dtype.kind != "c" else g, dtype)
