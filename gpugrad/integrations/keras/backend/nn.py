"""Runs after Keras' backend/numpy/nn.py, in its namespace."""

# ruff: noqa: D103
from __future__ import annotations

import functools

from keras.src import backend
from keras.src.backend.common.backend_utils import (
    check_conv_input_channels,
    check_conv_transpose_input_channels,
)
from keras.src.backend.gpugrad.core import cast, convert_to_tensor

import gpugrad as gg
import gpugrad.nn.functional as F
from gpugrad.compat.tf import nn as tf_nn


def _activation(theirs, ours):
    """Keras' function by ours, whose gradient is right also where the formula overflows."""

    @functools.wraps(theirs)
    def call(x, *settings, **names):
        x = convert_to_tensor(x)
        whole = ours not in (gg.relu, gg.relu6) and x.dtype.kind in "iub"
        return ours(cast(x, backend.floatx()) if whole else x, *settings, **names)

    return call


def _along(f):
    """A function along an axis: None is all of them."""

    def call(x, axis=-1):
        return f(x, axis=axis) if axis is not None else gg.reshape(f(gg.ravel(x)), x.shape)

    return call


for _name, _ours in {
    "relu": gg.relu,
    "relu6": gg.relu6,
    "leaky_relu": gg.leaky_relu,
    "elu": gg.elu,
    "selu": gg.selu,
    "celu": F.celu,
    "gelu": lambda x, approximate=True: gg.gelu(x, approximate="tanh" if approximate else "none"),
    "silu": gg.silu,
    "sigmoid": gg.sigmoid,
    "log_sigmoid": gg.log_sigmoid,
    "hard_sigmoid": F.hardsigmoid,
    "hard_silu": F.hardswish,
    "hard_tanh": gg.hardtanh,
    "hard_shrink": F.hardshrink,
    "soft_shrink": F.softshrink,
    "tanh_shrink": F.tanhshrink,
    "softplus": gg.softplus,
    "softsign": gg.softsign,
    "softmax": _along(gg.softmax),
    "log_softmax": _along(gg.log_softmax),
    "threshold": F.threshold,
}.items():
    globals()[_name] = _activation(globals()[_name], _ours)

_binary_crossentropy = binary_crossentropy  # noqa: F821  # Keras' own, of probabilities
_sparse_categorical_crossentropy = sparse_categorical_crossentropy  # noqa: F821


def binary_crossentropy(target, output, from_logits=False):
    target, output = convert_to_tensor(target), convert_to_tensor(output)
    if from_logits and target.shape == output.shape:
        return F.binary_cross_entropy_with_logits(output, target)
    return _binary_crossentropy(target, output, from_logits)


def sparse_categorical_crossentropy(target, output, from_logits=False, axis=-1):
    target, output = convert_to_tensor(target, "int32"), convert_to_tensor(output)
    if target.ndim == output.ndim and target.shape[-1:] == (1,):
        target = gg.squeeze(target, axis=-1)
    last = axis in (-1, output.ndim - 1)
    if from_logits and last and target.shape == output.shape[:-1]:
        return gg.sparse_softmax_cross_entropy(output, target)
    return _sparse_categorical_crossentropy(target, output, from_logits, axis)


def moments(x, axes, keepdims=False, synchronized=False):
    if synchronized:
        raise NotImplementedError("Argument synchronized=True is not supported with gpugrad.")
    x, axes = convert_to_tensor(x), tuple(axes) if isinstance(axes, list) else axes
    mean, variance = (f(x, axis=axes, keepdims=keepdims) for f in (gg.mean, gg.var))
    if x.dtype == "float16":  # a variance that overflows is the largest number, as in Keras
        variance = gg.minimum(variance, gg.finfo("float16").max)
    return mean, variance


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
    f = getattr(F, f"conv_transpose{n}d")
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
    f = getattr(F, f"adaptive_{kind}_pool{n}d")
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


def dot_product_attention(
    query,
    key,
    value,
    bias=None,
    mask=None,
    scale=None,
    is_causal=False,
    flash_attention=None,
    attn_logits_soft_cap=None,
):
    tensors = [convert_to_tensor(x) for x in (query, key, value)]
    if any(x.ndim != 4 for x in tensors):
        raise ValueError(
            "`dot_product_attention` only supports 4D inputs. Received: "
            "query.shape={}, key.shape={}, value.shape={}.".format(*(x.shape for x in tensors))
        )
    dtype = backend.result_type(*(x.dtype for x in tensors))
    mask = None if mask is None else convert_to_tensor(mask, "bool")
    if bias is not None:
        bias = convert_to_tensor(bias, dtype)
        mask = bias if mask is None else gg.where(mask, bias, -float("inf"))
    heads = [gg.swapaxes(cast(x, dtype), 1, 2) for x in tensors]
    result = F.scaled_dot_product_attention(
        *heads, mask, is_causal=is_causal, scale=scale, enable_gqa=True
    )
    return gg.swapaxes(result, 1, 2)
