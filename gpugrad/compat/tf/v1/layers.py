"""tf.compat.v1.layers: functions that declare their weights in the graph, by name and scope.

>>> from gpugrad.compat.tf import v1 as tf
>>> with tf.Graph().as_default():
...     y = tf.layers.dense(tf.placeholder(tf.float32, [None, 3]), 2, name="line")
...     print(y.shape, [v.name for v in tf.trainable_variables()])
(None, 2) ['line/kernel:0', 'line/bias:0']
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable
from typing import Any

from gpugrad.compat.names import forwarding
from gpugrad.compat.tf import v1
from gpugrad.compat.tf.convert import ints
from gpugrad.compat.tf.initializers import zeros_initializer
from gpugrad.compat.tf.v1.graph import get_default_graph

_CHANNELS = {"channels_last": "NHWC", "channels_first": "NCHW"}


def _weighted(
    inputs, default_name: str, shape, units: int, make: Callable[..., Any], options: dict[str, Any]
) -> Any:
    """A product of the inputs by a kernel of a shape, a bias added, an activation."""
    known = {"kernel_initializer", "bias_initializer", "activation", "use_bias", "trainable"}
    settings = {name: options.pop(name) for name in known & options.keys()}
    name, reuse = options.pop("name", None), options.pop("reuse", None)
    for without in options.keys() - {"kernel_regularizer", "bias_regularizer"}:
        raise TypeError(f"tf.layers.{default_name}: unexpected keyword argument {without!r}")
    trainable, dtype = settings.get("trainable", True), inputs.dtype
    with v1.variable_scope(name or get_default_graph().unique_name(default_name), reuse=reuse):
        initializer = settings.get("kernel_initializer")
        y = make(v1.get_variable("kernel", shape, dtype, initializer, trainable=trainable))
        if settings.get("use_bias", True):
            zeros = settings.get("bias_initializer") or zeros_initializer()
            bias = v1.get_variable("bias", [units], dtype, zeros, trainable=trainable)
            y = v1.nn.bias_add(y, bias, _CHANNELS[options.get("data_format", "channels_last")])
    activation = settings.get("activation")
    return y if activation is None else activation(y)


def dense(inputs, units, activation=None, use_bias=True, **options) -> Any:
    """A linear map of the last axis, of shape (..., units)."""
    options |= {"activation": activation, "use_bias": use_bias}
    n = inputs.shape[-1]
    last = [[len(inputs.shape) - 1], [0]]
    product = lambda kernel: v1.tensordot(inputs, kernel, last)
    return _weighted(inputs, "dense", [n, units], units, product, options)


def conv2d(
    inputs, filters, kernel_size, strides=1, padding="valid", data_format="channels_last", **options
) -> Any:
    layout, rate = _CHANNELS[data_format], options.pop("dilation_rate", 1)
    channels = inputs.shape[-1 if layout == "NHWC" else 1]
    shape = [*_pair(kernel_size), channels, filters]
    make = lambda w: v1.nn.conv2d(
        inputs, w, _pair(strides), padding.upper(), data_format=layout, dilations=_pair(rate)
    )
    return _weighted(inputs, "conv2d", shape, filters, make, options)


def _pair(value) -> list[int]:
    found = list(ints(value))
    return found * 2 if len(found) == 1 else found


def _pooling2d(
    kind: str, inputs, pool_size, strides, padding="valid", data_format="channels_last", name=None
) -> Any:
    """The greatest element or the mean of each window."""
    layout = _CHANNELS[data_format]
    f = getattr(v1.nn, f"{kind}_pool2d")
    return f(inputs, _pair(pool_size), _pair(strides), padding.upper(), layout)


max_pooling2d = functools.partial(_pooling2d, "max")
average_pooling2d = functools.partial(_pooling2d, "avg")


def dropout(inputs, rate=0.5, noise_shape=None, seed=None, training=False, name=None) -> Any:
    """`tf.nn.dropout` in training, which may be a placeholder, else the inputs."""
    dropped = v1.nn.dropout(inputs, rate=rate, noise_shape=noise_shape, seed=seed)
    if isinstance(training, bool):
        return dropped if training else v1.identity(inputs)
    return v1.cond(training, lambda: dropped, lambda: inputs)


def flatten(inputs, name=None, data_format="channels_last") -> Any:
    return v1.reshape(inputs, [-1, math.prod(inputs.shape[1:])])


__getattr__, __dir__ = forwarding(__name__, own=globals())
