"""Sums, means and p-norms of windows, by slices along one axis after the other."""

import functools
import math

import numpy as np

from gpugrad.core.arguments import check_numbers
from gpugrad.core.backend import NUMPY
from gpugrad.core.samples import shaped
from gpugrad.core.tensor import Tensor
from gpugrad.errors import ArgumentError, AxisError, ShapeError
from gpugrad.kernels.by_hand import windows as kernels
from gpugrad.ops._axes import check_axis
from gpugrad.ops.arrays.windows import ints, pad_last, strided
from gpugrad.ops.nn.pooling_max import pool_geometry, pool_ref, wrong_pool
from gpugrad.ops.nn.resample import Taps
from gpugrad.ops.nn.spatial import spatial
from gpugrad.registry.record import op


def _window_sum_vjp(xp, g, x_shape, size, axis, step):
    axis %= len(x_shape)
    g = xp.broadcast_to(xp.expand_dims(g, axis=-1), (*g.shape, size))
    return xp.overlap_add(g, axis=axis, length=x_shape[axis], step=step)


def _window_sum_ref(x, size, axis=-1, step=1):
    view = np.lib.stride_tricks.sliding_window_view(x, size, axis=axis)
    every = [slice(None)] * x.ndim
    every[axis] = slice(None, None, step)
    return view[tuple(every)].sum(-1)


@op(
    vjp=[_window_sum_vjp],
    linear=True,
    kinds="fc",
    ref=_window_sum_ref,
    batch="axis",
    cuda=kernels.window_sum,
    samples=shaped(
        ([(5,)], {"size": 2}),
        ([(2, 6)], {"size": 3, "axis": 1, "step": 2}),
        ([(3, 2)], {"size": 1, "axis": -2, "step": 2}),
        ([(3, 0)], {"size": 2, "axis": 0}),
    ),
    errors=[
        ([np.ones(2), 3], {}, ShapeError, r"window_sum.*\(2,\)"),
        ([np.ones(2), 0], {}, ArgumentError, "size=0"),
        ([np.ones(2), 1], {"axis": 1}, AxisError, "axis 1"),
    ],
)
def window_sum(xp, x, /, size, *, axis=-1, step=1):
    """Sums of windows along an axis; `avg_pool2d` calls it.

    Args:
        size: int, elements in a window.
        step: int, from one window to the next.

    Returns:
        Tensor with the windows' places along the axis.
    """
    (size,) = ints("window_sum", "size", size, 1, 1)
    (step,) = ints("window_sum", "step", step, 1, 1)
    check_axis("window_sum", axis, x.shape)
    axis %= x.ndim
    if size > x.shape[axis]:
        raise ShapeError(f"window_sum: {size} elements do not fit in axis {axis} of {x.shape}.")
    return _sums(x, size, axis, step)


def _sums(x, size, axis, step):
    places = (x.shape[axis] - size) // step + 1
    lead = (slice(None),) * axis
    parts = [x[(*lead, strided(t, places, step))] for t in range(size)]
    out = parts[0].copy() if size == 1 else parts[0] + parts[1]
    for part in parts[2:]:
        out += part
    return out


@functools.lru_cache(maxsize=256)
def _shares(length, size, step, padding, places, count_include_pad):
    """Taps that divide each window's sum by its number of elements; None if all have `size`.

    Windows that reach over the padding at the end, as with `ceil_mode`, have fewer.
    """
    first = np.arange(places) * step - padding
    last = np.minimum(first + size, length + (padding if count_include_pad else 0))
    counts = last - (first if count_include_pad else np.maximum(first, 0))
    if (counts == size).all():
        return None
    return Taps(np.arange(places)[:, None], 1 / counts[:, None], places)


def _mean_of_windows(
    xp, name, n, x, kernel_size, stride, padding, ceil_mode, count_include_pad, divisor_override
):
    size, step, _, pairs = pool_geometry(name, n, x, kernel_size, stride, padding, 1, ceil_mode)
    padding = ints(name, "padding", padding, n, 0)
    if divisor_override is not None:
        check_numbers(name, "iuf", divisor_override=divisor_override)
        if not divisor_override:
            raise ArgumentError(f"{name}: divisor_override={divisor_override!r} must not be 0.")
    lengths, divisor = x.shape[x.ndim - n :], divisor_override or 1
    x = pad_last(xp, x, pairs)
    for k, axis in enumerate(range(x.ndim - n, x.ndim)):
        if xp is NUMPY:
            x = _sums(x, size[k], axis, step[k])
        else:
            x = xp.window_sum(x, size[k], axis=axis, step=step[k])
        if divisor_override is not None:
            continue
        shares = _shares(
            lengths[k], size[k], step[k], padding[k], x.shape[axis], bool(count_include_pad)
        )
        if shares is None:
            divisor *= size[k]
        else:
            x = xp.resample(x, shares, axis=axis)
    return x / divisor


def _avg_ref(x, *args, count_include_pad=True, divisor_override=None, **keywords):
    def mean(window, places):
        size = places if count_include_pad else window[0, 0].size
        return window.sum(tuple(range(2, window.ndim))) / (divisor_override or size)

    return pool_ref(mean, x, *args, **keywords)


def _avg_pool(n, example, *cases, errors=()):
    name = f"avg_pool{n}d"
    errors = [*wrong_pool(name, n), *errors]

    @spatial(n, example, ref=_avg_ref, kinds="fc", samples=shaped(*cases), errors=errors)
    def avg_pool(
        xp, x, /, kernel_size, stride=None, padding=0, ceil_mode=False, count_include_pad=True,
        divisor_override=None,
    ):  # fmt: skip
        """Mean of each window {where}.

        Args:
            x: array of shape {shape}.
            kernel_size: {each}, lengths of a window.
            stride: {each}, from one window to the next; None for `kernel_size`.
            padding: {each}, zeros added at each side; at most half of a window.
            ceil_mode: whether windows may reach over the end, if they begin before it.
            count_include_pad: whether the zeros are counted in the mean.
            divisor_override: divides the sums, instead of the number of elements.

        Returns:
            Tensor of shape (N, C, *number of windows), or without N.
        """
        options = padding, ceil_mode, count_include_pad, divisor_override
        return _mean_of_windows(xp, name, n, x, kernel_size, stride, *options)

    return avg_pool


avg_pool1d = _avg_pool(
    1,
    ("[[[1.0, 3.0, 2.0, 0.0]]], 2", "[[[2. 1.]]]"),
    ([(1, 2, 5)], {"kernel_size": 2}),
    ([(1, 1, 5)], {"kernel_size": 2, "stride": 1, "divisor_override": 3}),
    ([(1, 1, 6)], {"kernel_size": 3, "stride": 2, "padding": 1, "ceil_mode": True}),
    ([(1, 1, 2)], {"kernel_size": 3, "ceil_mode": True}),
)
_PARTIAL = {"padding": 1, "count_include_pad": False}
avg_pool2d = _avg_pool(
    2,
    ("[[[1.0, 3.0], [2.0, 0.0]]], 2", "[[[1.5]]]"),
    ([(1, 2, 2, 4)], {"kernel_size": 2}),
    ([(1, 1, 4, 5)], {"kernel_size": 3, "stride": 2, "ceil_mode": True, **_PARTIAL}),
    errors=[([np.ones((1, 1, 3, 3)), 2], {"divisor_override": 0}, ArgumentError, "override=0")],
)
avg_pool3d = _avg_pool(
    3,
    ("[[[[1.0, 3.0], [2.0, 0.0]]]], (1, 2, 2)", "[[[[1.5]]]]"),
    ([(1, 1, 2, 3, 2)], {"kernel_size": 2, "stride": 1}),
    ([(1, 1, 3, 2, 2)], {"kernel_size": 2, **_PARTIAL}),
)


def _lp_ref(x, norm_type, kernel_size, stride=None, ceil_mode=False):
    n = x.ndim - 2
    means = _avg_ref(x**norm_type, kernel_size, stride, ceil_mode=ceil_mode)
    return (means * kernel_size**n) ** (1 / norm_type)


def _lp_pool(n, example, *cases):
    name = f"lp_pool{n}d"
    samples = shaped(*cases, domain=(0.5, 2.0))
    x = np.ones((1, 1, *(3,) * n))
    errors = [([x, p, 2], {}, ArgumentError, f"norm_type={p}") for p in (0, -1)]
    errors.append(([x, 2, 4], {}, ShapeError, f"{name}: windows"))
    errors.append(([np.ones(3), 2, 2], {}, ShapeError, f"{name}: x must"))

    @spatial(n, example, ref=_lp_ref, samples=samples, errors=errors)
    def lp_pool(xp, x, /, norm_type, kernel_size, stride=None, ceil_mode=False):
        """The root ``sum(x**p) ** (1 / p)`` of each window {where}. The gradient at 0 is 0.

        Args:
            x: array of shape {shape}.
            norm_type: the positive number p; the sum itself for 1.
            kernel_size: {each}, lengths of a window.
            stride: {each}, from one window to the next; None for `kernel_size`.
            ceil_mode: whether windows may reach over the end. As in torch their sums are then
                scaled up by the number of elements that they lack.

        Returns:
            Tensor of shape (N, C, *number of windows), or without N; NaN where the sum is
            negative and p is not 1.
        """
        check_numbers(name, "biuf", norm_type=norm_type)
        if not 0 < norm_type < math.inf:
            raise ArgumentError(f"{name}: norm_type={norm_type!r} must be a positive number.")
        size = math.prod(ints(name, "kernel_size", kernel_size, n, 1))
        options = 0, ceil_mode, True, None
        means = _mean_of_windows(xp, name, n, x**norm_type, kernel_size, stride, *options)
        total = size * means
        if norm_type == 1 and not isinstance(norm_type, Tensor):  # whose gradient a tape may want
            return total
        nothing = total == 0  # where the root has no finite derivative: its gradient is 0
        root = xp.where(nothing, 1, total) ** (1 / norm_type)
        return xp.where(nothing, 0, root)

    return lp_pool


lp_pool1d = _lp_pool(
    1,
    ("[[[3.0, 4.0, 0.0, 0.0]]], 2, 2", "[[[5. 0.]]]"),
    ([(1, 2, 5)], {"norm_type": 2, "kernel_size": 2}),
    ([(1, 1, 4)], {"norm_type": 3.0, "kernel_size": 3, "stride": 2, "ceil_mode": True}),
)
lp_pool2d = _lp_pool(
    2,
    ("[[[1.0, 1.0], [1.0, 1.0]]], 2, 2", "[[[2.]]]"),
    ([(1, 2, 2, 4)], {"norm_type": 2, "kernel_size": 2}),
    ([(1, 1, 2, 3)], {"norm_type": 1, "kernel_size": 2, "stride": 1}),
)
lp_pool3d = _lp_pool(
    3,
    ("gg.ones((1, 2, 2, 1)), 1, (2, 2, 1)", "[[[[4.]]]]"),
    ([(1, 2, 2, 2, 4)], {"norm_type": 2, "kernel_size": 2}),
    ([(1, 1, 2, 3, 2)], {"norm_type": 1, "kernel_size": 2, "stride": 1}),
)
