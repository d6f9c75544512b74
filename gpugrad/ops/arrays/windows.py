"""Sliding windows of arrays, as views, and their adjoint.

`windows` and `overlap_add` work along one axis and are each other's gradient. Windows along
several axes apply them one after the other: the views cost nothing, and the gradient needs k + k
additions of slices instead of k * k.
"""

import functools

import numpy as np

from gpugrad.autodiff.batched import batch_axis_of
from gpugrad.core.backend import NUMPY, SCALARS
from gpugrad.core.samples import shaped
from gpugrad.errors import ArgumentError, AxisError, DTypeError, ShapeError
from gpugrad.kernels.by_hand import windows as kernels
from gpugrad.ops._axes import as_tuple, check_axis
from gpugrad.ops.arrays.shape import moves
from gpugrad.registry.record import op

# ---- helpers of convolution and pooling --------------------------------------------------


def ints(name, what, value, n, least):
    """One int, or `n` ints, as a tuple of `n`; ArgumentError below `least`."""
    if type(value) is int and value >= least:
        return (value,) * n
    values = tuple(value) if isinstance(value, (tuple, list)) else (value,) * n
    if len(values) != n or any(not isinstance(v, (int, np.integer)) or v < least for v in values):
        many = f", or a tuple of {n}" if n > 1 else ""
        raise ArgumentError(f"{name}: {what}={value!r} must be an int of at least {least}{many}.")
    return tuple(int(v) for v in values)


_PLAIN = frozenset((int, str, bool, type(None)))


def remembered(function):
    """Keep the results of ``function(name, shape, *sizes)``; a size that is no int is looked at."""
    known = functools.lru_cache(maxsize=256, typed=True)(function)

    @functools.wraps(function)
    def call(name, shape, *sizes):
        return (known if _PLAIN.issuperset(map(type, sizes)) else function)(name, shape, *sizes)

    return call


def need_arrays(name, *values):
    """DTypeError for Python numbers, which composites of several arrays get without conversion."""
    if any(type(v) in SCALARS for v in values):
        raise DTypeError(f"{name}: arrays are needed, not numbers.")


def reach(size, dilation):
    """The length of a window from its first element to its last."""
    return (size - 1) * dilation + 1


def strided(start, count, step):
    """The slice of `count` elements (at least one) from `start`."""
    return slice(start, start + (count - 1) * step + 1, step)


def window_view(xp, x, size, step, dilation):
    """The windows along the last axes of a NumPy or CuPy array: a view (..., *counts, *size)."""
    n = x.ndim - len(size)
    counts = [
        (length - reach(k, d)) // s + 1
        for length, k, s, d in zip(x.shape[n:], size, step, dilation, strict=True)
    ]
    by_window = [b * s for b, s in zip(x.strides[n:], step, strict=True)]
    by_element = [b * d for b, d in zip(x.strides[n:], dilation, strict=True)]
    shape, strides = (*x.shape[:n], *counts, *size), (*x.strides[:n], *by_window, *by_element)
    if xp is NUMPY and x.flags.c_contiguous and x.dtype.kind in "fc":
        return np.ndarray(shape, x.dtype, x, 0, strides)  # `as_strided` takes 3 us
    return xp.lib.lib.stride_tricks.as_strided(x, shape, strides)


def pad_last(xp, x, pairs, value=0.0):
    """`x` padded with `value` along its last axes."""
    if not any(before or after for before, after in pairs):
        return x
    return xp.pad(x, ((0, 0),) * (x.ndim - len(pairs)) + tuple(pairs), constant_values=value)


def crop_last(xp, x, pairs):
    """The inverse of `pad_last`."""
    if not any(before or after for before, after in pairs):
        return x
    lengths = x.shape[x.ndim - len(pairs) :]
    inside = (slice(b, n - a) for n, (b, a) in zip(lengths, pairs, strict=True))
    return xp.getitem(x, index=(Ellipsis, *inside))


def examples(xp, name, n, x):
    """`x` with axes (N, C, *spatial), and whether N was added."""
    if x.ndim not in (n + 1, n + 2):
        raise ShapeError(
            f"{name}: x must have the axes (N, C, {'n spatial' if n > 3 else 'DHW'[3 - n :]}) or "
            f"the same without N; its shape is {x.shape}."
        )
    single = x.ndim == n + 1
    return (xp.expand_dims(x, axis=0) if single else x), single


_READ_ONLY = "an element stands in several windows. Write to a copy: x = x.copy()"


# ---- along one axis ----------------------------------------------------------------------


def _windows_ref(x, size, axis=-1, step=1, dilation=1):
    windows = np.lib.stride_tricks.sliding_window_view(x, reach(size, dilation), axis=axis)
    starts = [slice(None)] * x.ndim
    starts[axis] = slice(None, None, step)
    return windows[(*starts, slice(None, None, dilation))]


@moves(
    vjp=[
        lambda xp, g, x_shape, axis, step, dilation: xp.overlap_add(
            g, axis=axis, length=x_shape[axis], step=step, dilation=dilation
        )
    ],
    ref=_windows_ref,
    batch="axis",
    samples=shaped(
        ([(5,)], {"size": 2}),
        ([(6, 2)], {"size": 2, "axis": 0, "step": 3}),
        ([(2, 5)], {"size": 2, "axis": -1, "step": 2, "dilation": 2}),
        ([(0, 3)], {"size": 3, "axis": 1}),
    ),
    errors=[
        ([np.ones(2)], {"size": 3}, ShapeError, r"windows.*\(2,\)"),
        ([np.ones(2)], {"size": 0}, ArgumentError, "size=0"),
        ([np.ones(2)], {"size": 1, "step": 0}, ArgumentError, "step=0"),
        ([np.ones(2)], {"size": 1, "axis": 1}, AxisError, "axis 1"),
    ],
    writes=_READ_ONLY,
)
def windows(xp, x, /, size, *, axis=-1, step=1, dilation=1):
    """Sliding windows along an axis, like torch's ``Tensor.unfold``; `unfold` calls it.

    Args:
        size: number of elements of a window.
        step: distance between windows.
        dilation: distance between the elements of a window.

    Returns:
        Tensor with the windows along `axis`, and their elements along a new last axis. It is a
        view that refuses writes.
    """
    axis = check_axis("windows", axis, x.shape)
    (size,), (step,), (dilation,) = (
        ints("windows", what, value, 1, 1)
        for what, value in (("size", size), ("step", step), ("dilation", dilation))
    )
    if reach(size, dilation) > x.shape[axis]:
        raise ShapeError(
            f"windows: a window of length {reach(size, dilation)} does not fit in axis {axis} of "
            f"the shape {x.shape}."
        )
    view = window_view(xp, xp.lib.moveaxis(x, axis, -1), (size,), (step,), (dilation,))
    # the index marks the array as a view in CuPy, so that it is never written to
    return xp.lib.moveaxis(view, -2, axis)[...]


def _overlap_add_ref(x, *, axis, length, step=1, dilation=1):
    ndim = x.ndim - 1
    moved = np.moveaxis(x, axis % ndim, -2)
    out = np.zeros((*moved.shape[:-2], length), x.dtype)
    for p in range(moved.shape[-2]):
        for t in range(moved.shape[-1]):
            out[..., p * step + t * dilation] += moved[..., p, t]
    return np.moveaxis(out, -1, axis % ndim)


@op(
    vjp=[
        lambda xp, g, x_shape, axis, step, dilation: xp.windows(
            g, x_shape[-1], axis=axis, step=step, dilation=dilation
        )
    ],
    linear=True,
    kinds="fc",
    ref=_overlap_add_ref,
    batch=lambda xp, batched, x, *, axis, **params: xp.overlap_add(
        x,
        axis=batch_axis_of(axis, x.ndim - 2),
        **params,  # of the result, without the windows' axis
    ),
    cuda=kernels.overlap_add,
    samples=shaped(
        ([(4, 2)], {"axis": 0, "length": 5}),
        ([(2, 2, 3)], {"axis": 0, "length": 6, "step": 3}),
        ([(2, 2, 2)], {"axis": -1, "length": 5, "step": 2, "dilation": 2}),
        ([(0, 1, 3)], {"axis": 1, "length": 3}),
    ),
    errors=[
        ([np.ones((3, 2))], {"axis": 0, "length": 3}, ShapeError, r"\(3, 2\).*from 4"),
        ([np.ones((3, 2))], {"axis": 1, "length": 4}, AxisError, "axis 1"),
        ([np.ones((3, 2))], {"axis": 0, "length": 4, "step": 0}, ArgumentError, "step=0"),
        ([np.ones(3)], {"axis": 0, "length": 3}, ShapeError, r"overlap_add.*\(3,\)"),
    ],
)
def overlap_add(xp, x, /, *, axis, length, step=1, dilation=1):
    """Sum overlapping windows along an axis, the adjoint of `windows`; `fold` calls it.

    Args:
        x: array of at least two axes: windows along `axis`, their elements along the last one.
        axis: int, counted without the last axis.
        length: length of the result along the axis; exactly these windows must fit in it.
        step: distance between windows.
        dilation: distance between the elements of a window.

    Returns:
        Tensor without the last axis.
    """
    if x.ndim < 2:
        raise ShapeError(f"overlap_add: x must have at least two axes, its shape is {x.shape}.")
    axis = check_axis("overlap_add", axis, x.shape[:-1])
    (step,), (dilation,) = (
        ints("overlap_add", what, value, 1, 1)
        for what, value in (("step", step), ("dilation", dilation))
    )
    count, size = x.shape[axis], x.shape[-1]
    least = (count - 1) * step + reach(size, dilation)
    if not count or not size or not least <= length < least + step:
        raise ShapeError(
            f"overlap_add: {count} windows of {size} elements, {step} apart, in x {x.shape}: "
            f"length={length} must be from {least} to {least + step - 1}."
        )
    x = xp.lib.moveaxis(x, axis, -2)
    out = xp.lib.zeros((*x.shape[:-2], length), dtype=x.dtype)
    if size <= count:
        for t in range(size):
            out[..., strided(t * dilation, count, step)] += x[..., t]
    else:
        for p in range(count):
            out[..., strided(p * step, size, dilation)] += x[..., p, :]
    return xp.lib.moveaxis(out, -1, axis)


@op(
    kinds="fc",
    ref="numpy.lib.stride_tricks.sliding_window_view",
    samples=shaped(
        ([(4,)], {"window_shape": 2}),
        ([(3, 2)], {"window_shape": (2, 2)}),
        ([(2, 3, 2)], {"window_shape": (2,), "axis": (1,)}),
        ([(4,)], {"window_shape": (2, 2), "axis": (0, 0)}),
    ),
    errors=[
        ([np.ones((2, 3))], {"window_shape": 2}, ShapeError, "one length for each axis"),
        ([np.ones(2)], {"window_shape": 3}, ShapeError, r"windows.*\(2,\)"),
        ([np.ones(2)], {"window_shape": 1, "axis": 1}, AxisError, "axis 1"),
        ([np.ones(2)], {"window_shape": 0}, ArgumentError, "size=0"),
    ],
    writes=_READ_ONLY,
)
def sliding_window_view(xp, x, /, window_shape, axis=None):
    """All windows of a shape, as NumPy's sliding_window_view.

    Args:
        x: array of at least one axis.
        window_shape: int, or tuple of ints: the length of the windows along each axis.
        axis: int, tuple of ints, or None for all axes; a repeated axis gives windows of windows.

    Returns:
        Tensor with the windows along the axes of `x`, and their elements along new axes at the
        end, in the order of `axis`. It is a view that refuses writes.

    >>> print(gg.sliding_window_view([1.0, 2.0, 3.0], 2))
    [[1. 2.]
     [2. 3.]]
    """
    sizes = as_tuple(window_shape)
    axes = range(x.ndim) if axis is None else as_tuple(axis)
    if len(sizes) != len(axes):
        raise ShapeError(
            f"sliding_window_view: window_shape={window_shape!r} must give one length for each "
            f"axis of {tuple(axes)}; x has the shape {x.shape}."
        )
    axes = [check_axis("sliding_window_view", a, x.shape) for a in axes]
    for size, a in zip(sizes, axes, strict=True):
        x = xp.windows(x, size, axis=a)
    return x
