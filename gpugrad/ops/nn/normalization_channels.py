"""Norms of arrays with channels, by default along axis 1 as in torch.

Examples are along axis 0. Weights and biases have shape (channels,).
"""

import math

import numpy as np

from gpugrad.core.backend import HALF, on_gpu
from gpugrad.core.samples import shaped, uniform
from gpugrad.errors import ArgumentError, AxisError, ShapeError
from gpugrad.kernels.cpu import rows
from gpugrad.kernels.cpu.large import MIDDLE, are_numpys
from gpugrad.ops.nn.normalization import affine, affine_ref, standardize_ref
from gpugrad.ops.nn.normalization_fused import narrowed
from gpugrad.registry.on_arrays import wide
from gpugrad.registry.record import op


def _channel_axis(name, x, axis, at_least=2):
    """The axis of the channels, counted from 0."""
    if x.ndim < at_least or not -x.ndim <= axis < x.ndim:
        raise AxisError(
            f"{name}: x must have at least {at_least} axes, with channels along axis {axis}; its "
            f"shape is {x.shape}."
        )
    return axis % x.ndim


def _others(ndim, *axes):
    return tuple(a for a in range(ndim) if a not in axes)


def _batch_ref(x, running_mean=None, running_var=None, weight=None, bias=None, **params):
    axis, eps, momentum = (
        params.get("axis", 1),
        params.get("eps", 1e-5),
        params.get("momentum", 0.1),
    )
    axes = tuple(a for a in range(x.ndim) if a != axis % x.ndim)
    mean, var = x.mean(axes), x.var(axes)
    if not params.get("training"):
        old_mean, old_var = (np.expand_dims(a, axes) for a in (running_mean, running_var))
        y = (x - old_mean) / np.sqrt(old_var + eps)
        return affine_ref(y, weight, bias, axis), running_mean, running_var
    n = x.size / mean.size
    var = var * n / (n - 1)
    if running_mean is not None:
        mean = (1 - momentum) * running_mean + momentum * mean
    if running_var is not None:
        var = (1 - momentum) * running_var + momentum * var
    return affine_ref(standardize_ref(x, axes, eps)[0], weight, bias, axis), mean, var


def _running(xp, x, old, new, momentum):
    if old is not None:
        new = wide(xp, old) * (1 - momentum) + new * momentum
    return narrowed(xp, new, x, old) if x.dtype in HALF else new


def _normalized(xp, x, weight, bias, axes, along, eps):
    """The result, mean and variance: by one op on GPUs and for large arrays, else by two."""
    large = x.size >= MIDDLE and rows.has_channels(getattr(x, "_data", x), axes, eps)
    large = large and are_numpys(weight, bias)  # no numbers either
    if large or on_gpu(x) or x.dtype in HALF:
        y, mean, var = xp.standardize_affine(x, weight, bias, axis=axes, along=along, eps=eps)
        if not large or np.isfinite(getattr(var, "_data", var)).all():
            return y, mean, var
    out, mean, std = xp.standardize(x, axis=axes, eps=eps)  # whose gradient does not overflow
    return affine(xp, "batch_norm", out, weight, bias, along), mean, std * std


def _batch_samples(rng):
    for params in ({}, {"training": True, "momentum": 0.3, "eps": 0.1}):
        arrays = uniform(rng, 3, 2), uniform(rng, 2), uniform(rng, 2, low=0.5), uniform(rng, 2)
        yield [*arrays], {"bias": uniform(rng, 2), **params}
    yield [uniform(rng, 2, 2, 3), None, None, uniform(rng, 2)], {"training": True}
    yield [uniform(rng, 2, 2, 3)], {"training": True, "axis": -1}


@op(
    arrays=("x", "running_mean", "running_var", "weight", "bias"),
    outputs=3,
    native_half=True,
    ref=_batch_ref,
    samples=_batch_samples,
    errors=[
        ([np.ones((2, 3))], {}, ArgumentError, "batch_norm.*running_mean"),
        ([np.ones(3)], {"training": True}, AxisError, r"batch_norm.*\(3,\)"),
        ([np.ones((2, 3)), np.ones(2), np.ones(3)], {}, ShapeError, r"running_mean.*\(2,\)"),
    ],
)
def batch_norm(
    xp, x, /, running_mean=None, running_var=None, weight=None, bias=None, *, training=False,
    momentum=0.1, eps=1e-5, axis=1,
):  # fmt: skip
    """Batch normalisation: (x - mean) / sqrt(var + eps) * weight + bias, for each channel.

    Nothing changes in place. In training, assign the second and third result to the Variables of
    the running statistics yourself. 16-bit `x` and weights give a 16-bit result, also with
    running statistics in float32.

    Args:
        x: array with examples along axis 0 and channels along `axis`.
        running_mean, running_var: arrays of shape (channels,), used as mean and variance if not
            in training. In training they only enter the new statistics, and may be None.
        weight, bias: arrays of shape (channels,); None for 1 and 0.
        training: whether to compute mean and variance from `x`, over all other axes.
        momentum: weight of the statistics of `x` in the new running ones.
        axis: int, of the channels.

    Returns:
        Three Tensors: the result, of the shape of `x`, and running mean and variance. In training
        these are updated (or taken from `x` alone, if they are None), with the unbiased variance
        as in torch.

    Ioffe and Szegedy 2015, "Batch Normalization".

    >>> y, mean, var = gg.batch_norm([[1.0], [3.0]], training=True, eps=0)
    >>> print(y, mean, var)
    [[-1.]
     [ 1.]] [2.] [2.]
    """
    axis = _channel_axis("batch_norm", x, axis)
    if not training:
        if running_mean is None or running_var is None:
            raise ArgumentError("batch_norm: without training, running_mean and _var are needed.")
        inverse = xp.rsqrt(wide(xp, running_var) + eps)
        mean = wide(xp, running_mean)
        y = affine(xp, "batch_norm", wide(xp, x), None, -mean, axis, bias_name="running_mean")
        y = affine(xp, "batch_norm", y, inverse, None, axis, weight_name="running_var")
        y = affine(xp, "batch_norm", y, wide(xp, weight), wide(xp, bias), axis)
        y = narrowed(xp, y, x, weight, bias) if x.dtype in HALF else y
        return y, xp.positive(running_mean), xp.positive(running_var)
    others = _others(x.ndim, axis)
    y, mean, var = _normalized(xp, x, weight, bias, others, axis, eps)
    channels = (x.shape[axis],)
    n = x.size // max(channels[0], 1)
    var = xp.reshape(var, channels) * (n / max(n - 1, 1))
    mean = _running(xp, x, running_mean, xp.reshape(mean, channels), momentum)
    return y, mean, _running(xp, x, running_var, var, momentum)


def _by_rows(xp, x, groups, axis, eps):
    """The standardized groups of large arrays as rows, by `layer_norm`'s kernel; else None."""
    if axis != 1 or x.size < MIDDLE:
        return None
    lines = xp.reshape(x, (x.shape[0], groups, math.prod(x.shape[1:]) // groups))
    has_kernel = rows.has_rows(getattr(lines, "_data", lines), -1, eps)
    return xp.layer_norm(lines, eps=eps) if has_kernel else None


_CHANNELS = ("x", "weight", "bias")


def _group_ref(x, weight=None, bias=None, num_groups=1, eps=1e-5, axis=1):
    moved = np.moveaxis(x, axis, 1)
    groups = moved.reshape(len(x), num_groups, -1)
    y = np.moveaxis(standardize_ref(groups, 2, eps)[0].reshape(moved.shape), 1, axis)
    return affine_ref(y, weight, bias, axis)


@op(
    arrays=_CHANNELS,
    ref=_group_ref,
    samples=shaped(
        ([(2, 4), (4,), (4,)], {"num_groups": 2}),
        ([(1, 2, 3), (2,), (2,)], {"num_groups": 1, "eps": 0.1}),
        ([(2, 2, 2), (2,)], {"num_groups": 1, "axis": -1}),
    ),
    errors=[
        ([np.ones((2, 3))], {"num_groups": 2}, ArgumentError, "group_norm.*num_groups=2"),
        ([np.ones(3)], {"num_groups": 1}, AxisError, r"group_norm.*\(3,\)"),
        ([np.ones((2, 3)), np.ones(2)], {"num_groups": 1}, ShapeError, r"weight.*\(2,\)"),
    ],
)
def group_norm(xp, x, /, weight=None, bias=None, *, num_groups, eps=1e-5, axis=1):
    """Group normalisation: `layer_norm` over groups of channels and all places.

    Args:
        x: array with examples along axis 0 and channels along `axis`.
        weight, bias: arrays of shape (channels,); None for 1 and 0.
        num_groups: int, which divides the number of channels.
        axis: int, of the channels.

    Wu and He 2018, "Group Normalization".

    >>> print(gg.group_norm([[1.0, 3.0, 4.0, 2.0]], num_groups=2, eps=0))
    [[-1.  1.  1. -1.]]
    """
    axis = _channel_axis("group_norm", x, axis)
    channels = x.shape[axis]
    if num_groups < 1 or channels % num_groups:
        raise ArgumentError(
            f"group_norm: {channels} channels do not divide into num_groups={num_groups} groups."
        )
    out = _by_rows(xp, x, num_groups, axis, eps)
    if out is None:
        each = (num_groups, channels // num_groups)
        groups = xp.reshape(x, (*x.shape[:axis], *each, *x.shape[axis + 1 :]))
        out, _, _ = xp.standardize(groups, axis=_others(groups.ndim, 0, axis), eps=eps)
    return affine(xp, "group_norm", xp.reshape(out, x.shape), weight, bias, axis)


def _instance_ref(x, weight=None, bias=None, eps=1e-5, axis=1):
    axes = tuple(a for a in range(1, x.ndim) if a != axis % x.ndim)
    return affine_ref(standardize_ref(x, axes, eps)[0], weight, bias, axis)


@op(
    arrays=_CHANNELS,
    ref=_instance_ref,
    samples=shaped(
        [(2, 2, 3), (2,), (2,)], ([(1, 2, 2, 3), (2,)], {"eps": 0.1}), ([(2, 3, 2)], {"axis": -1})
    ),
    errors=[
        ([np.ones((2, 3))], {}, AxisError, r"instance_norm.*\(2, 3\)"),
        ([np.ones((2, 3, 4)), np.ones(4)], {}, ShapeError, r"weight.*\(4,\)"),
    ],
)
def instance_norm(xp, x, /, weight=None, bias=None, *, eps=1e-5, axis=1):
    """Instance normalisation: `layer_norm` over the places of each example and channel.

    Args:
        x: array with examples along axis 0, channels along `axis`, and at least one more axis.
        weight, bias: arrays of shape (channels,); None for 1 and 0.
        axis: int, of the channels.

    Ulyanov et al. 2016, "Instance Normalization: The Missing Ingredient for Fast Stylization".

    >>> print(gg.instance_norm([[[1.0, 3.0], [4.0, 2.0]]], eps=0))
    [[[-1.  1.]
      [ 1. -1.]]]
    """
    axis = _channel_axis("instance_norm", x, axis, at_least=3)
    out = _by_rows(xp, x, x.shape[axis], axis, eps)
    if out is None:
        out, _, _ = xp.standardize(x, axis=_others(x.ndim, 0, axis), eps=eps)
    return affine(xp, "instance_norm", xp.reshape(out, x.shape), weight, bias, axis)


def _response_ref(x, size, alpha=1e-4, beta=0.75, k=1.0, axis=1):
    squares = np.moveaxis(x * x, axis, 0)
    spans = [(max(c - size // 2, 0), c + (size - 1) // 2 + 1) for c in range(len(squares))]
    sums = np.array([squares[first:last].sum(0) for first, last in spans]).reshape(squares.shape)
    return x / (k + alpha / size * np.moveaxis(sums, 0, axis)) ** beta


@op(
    ref=_response_ref,
    samples=shaped(
        ([(2, 4, 2)], {"size": 3, "alpha": 0.5}),
        ([(1, 2, 3)], {"size": 4, "axis": -1, "k": 2.0}),
        ([(2, 3)], {"size": 1, "beta": 0.5}),
    ),
    errors=[
        ([np.ones((2, 3))], {"size": 0}, ArgumentError, "local_response_norm.*size=0"),
        ([np.ones(3)], {"size": 1}, AxisError, r"local_response_norm.*\(3,\)"),
    ],
)
def local_response_norm(xp, x, /, size, *, alpha=1e-4, beta=0.75, k=1.0, axis=1):
    """Divide by (k + alpha * mean square of the neighbouring channels) ** beta.

    Args:
        x: array with examples along axis 0 and channels along `axis`.
        size: int, the number of channels in a mean: size // 2 before the channel itself and
            (size - 1) // 2 after it; missing ones count as 0.
        alpha, beta, k: numbers. As in torch, and unlike TensorFlow, `alpha` multiplies the mean
            and not the sum.
        axis: int, of the channels.

    Krizhevsky et al. 2012, "ImageNet Classification with Deep Convolutional Neural Networks".

    >>> print(gg.local_response_norm([[3.0, 0.0, 2.0]], 1, alpha=1.0, beta=0.5, k=0.0))
    [[1. 0. 1.]]
    """
    if size < 1:
        raise ArgumentError(f"local_response_norm: size={size} must be at least 1.")
    axis = _channel_axis("local_response_norm", x, axis)
    n = x.shape[axis]
    widths = [(0, 0)] * x.ndim
    before, after = min(size // 2, n), min((size - 1) // 2, n)  # beyond are zeros
    widths[axis] = (before, after)
    squares = xp.pad(xp.square(x), tuple(widths))
    until = (slice(None),) * axis
    total = xp.getitem(squares, index=(*until, slice(0, n)))
    for first in range(1, before + after + 1):
        total = total + xp.getitem(squares, index=(*until, slice(first, first + n)))
    return xp.masked_divide(x, (k + total * (alpha / size)) ** beta)
