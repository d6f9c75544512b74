"""Runs after Keras' backend/numpy/nn.py, in its namespace."""

# ruff: noqa: D103
from __future__ import annotations

from keras.src import backend
from keras.src.backend.common.backend_utils import (
    check_conv_input_channels,
    check_conv_transpose_input_channels,
)
from keras.src.backend.gpugrad.core import cast, convert_to_tensor

import gpugrad as gg
from gpugrad.compat.tf import nn as tf_nn


def _format(data_format, n):
    last = backend.standardize_data_format(data_format) == "channels_last"
    axes = {1: "W", 2: "HW", 3: "DHW"}[n]
    return f"N{axes}C" if last else f"NC{axes}"


def _together(inputs, kernel):
    x, w = convert_to_tensor(inputs), convert_to_tensor(kernel)
    dtype = backend.result_type(x.dtype, w.dtype)
    return cast(x, dtype), cast(w, dtype)


def conv(inputs, kernel, strides=1, padding="valid", data_format=None, dilation_rate=1):
    x, w = _together(inputs, kernel)
    layout = _format(data_format, x.ndim - 2)
    channels = x.shape[-1] if layout.endswith("C") else x.shape[1]
    if channels % w.shape[-2]:
        raise ValueError(
            "The number of input channels must be evenly divisible by "
            f"kernel's in_channels. Received input channels {channels} and "
            f"kernel in_channels {w.shape[-2]}. "
        )
    f = getattr(tf_nn, f"conv{x.ndim - 2}d")
    result = f(x, w, strides, padding, layout, dilation_rate)
    if not all(result.shape[1:]):
        raise ValueError(
            "The convolution operation resulted in an empty output. "
            f"Output shape: {result.shape}. This can happen if the input is too small for the "
            "given kernel size, strides, dilation rate, and padding mode."
        )
    return result


def depthwise_conv(inputs, kernel, strides=1, padding="valid", data_format=None, dilation_rate=1):
    x, w = _together(inputs, kernel)
    layout = _format(data_format, x.ndim - 2)
    check_conv_input_channels(x, w, backend.standardize_data_format(data_format))
    w = gg.reshape(w, (*w.shape[:-2], 1, w.shape[-2] * w.shape[-1]))
    return getattr(tf_nn, f"conv{x.ndim - 2}d")(x, w, strides, padding, layout, dilation_rate)


def conv_transpose(
    inputs,
    kernel,
    strides=1,
    padding="valid",
    output_padding=None,
    data_format=None,
    dilation_rate=1,
):
    x, w = _together(inputs, kernel)
    n = x.ndim - 2
    data_format = backend.standardize_data_format(data_format)
    check_conv_transpose_input_channels(x, w, data_format)
    pairs = compute_conv_transpose_padding_args_for_jax(  # noqa: F821  # of Keras' own module
        input_shape=x.shape,
        kernel_shape=w.shape,
        strides=strides,
        padding=padding,
        output_padding=output_padding,
        dilation_rate=dilation_rate,
    )
    stride, dilation = (v if isinstance(v, int) else tuple(v) for v in (strides, dilation_rate))
    last = data_format == "channels_last"
    x = gg.moveaxis(x, -1, 1) if last else x
    f = getattr(gg.nn.functional, f"conv_transpose{n}d")
    w = gg.permute_dims(w, (n + 1, n, *range(n)))
    full = f(x, w, None, stride, dilation=dilation)  # of all that the windows reach
    each = (dilation,) * n if isinstance(dilation, int) else dilation
    index, widths = [slice(None)] * 2, [(0, 0)] * 2
    for length, d, (low, high) in zip(w.shape[2:], each, pairs, strict=True):
        low, high = low - d * (length - 1), high - d * (length - 1)
        index.append(slice(max(-low, 0), high if high < 0 else None))
        widths.append((max(low, 0), max(high, 0)))
    result = full[tuple(index)]
    result = gg.pad(result, widths) if any(map(any, widths)) else result
    return gg.moveaxis(result, 1, -1) if last else result


def _pool(kind, inputs, pool_size, strides, padding, data_format):
    x = convert_to_tensor(inputs)
    n = x.ndim - 2
    f = getattr(tf_nn, f"{kind}_pool{n}d")
    return f(x, pool_size, strides, padding, _format(data_format, n))


def max_pool(inputs, pool_size, strides=None, padding="valid", data_format=None):
    return _pool("max", inputs, pool_size, strides, padding, data_format)


def average_pool(inputs, pool_size, strides=None, padding="valid", data_format=None):
    return _pool("avg", inputs, pool_size, strides, padding, data_format)


def _adaptive_pool(kind, inputs, output_size, data_format):
    x = convert_to_tensor(inputs)
    n = x.ndim - 2
    last = backend.standardize_data_format(data_format) == "channels_last"
    size = (output_size,) * n if isinstance(output_size, int) else tuple(output_size)
    f = getattr(gg.nn.functional, f"adaptive_{kind}_pool{n}d")
    result = f(gg.moveaxis(x, -1, 1) if last else x, size)
    return gg.moveaxis(result, 1, -1) if last else result


def adaptive_average_pool(inputs, output_size, data_format=None):
    return _adaptive_pool("avg", inputs, output_size, data_format)


def adaptive_max_pool(inputs, output_size, data_format=None):
    return _adaptive_pool("max", inputs, output_size, data_format)


def one_hot(x, num_classes, axis=-1, dtype=None, sparse=False):
    if sparse:
        raise ValueError("Unsupported value `sparse=True` with gpugrad backend")
    x = convert_to_tensor(x)
    hot = gg.expand_dims(x, axis=-1) == gg.arange(int(num_classes), dtype=x.dtype)
    hot = cast(hot, dtype or "float32")
    return hot if axis == -1 else gg.moveaxis(hot, -1, axis)
