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
from gpugrad.compat.tf.v1.graph import GraphKeys
from gpugrad.compat.tf.v1.scopes import add_to_collection, get_variable, variable_scope

_CHANNELS = {"channels_last": "NHWC", "channels_first": "NCHW"}


def _weighted(
    inputs, default_name: str, shape, units: int, make: Callable[..., Any], options: dict[str, Any]
) -> Any:
    """A product of the inputs by a kernel of a shape, a bias added, an activation."""
    of_weights = ("initializer", "regularizer", "constraint")
    known: dict[str, Any] = {f"{w}_{key}": None for w in ("kernel", "bias") for key in of_weights}
    known |= dict.fromkeys(("activation", "activity_regularizer", "name", "reuse"))
    known |= {"use_bias": True, "trainable": True, "data_format": "channels_last"}
    for without in options.keys() - known.keys():
        raise TypeError(f"tf.layers.{default_name}: unexpected keyword argument {without!r}")
    settings = known | options

    def weight(name: str, shape) -> Any:
        given = {key: settings[f"{name}_{key}"] for key in of_weights}
        if name == "bias":
            given["initializer"] = given["initializer"] or zeros_initializer()
        return get_variable(name, shape, inputs.dtype, trainable=settings["trainable"], **given)

    with variable_scope(settings["name"], default_name, reuse=settings["reuse"]):
        y = make(weight("kernel", shape))
        if settings["use_bias"]:
            y = v1.nn.bias_add(y, weight("bias", [units]), _CHANNELS[settings["data_format"]])
    y = y if settings["activation"] is None else settings["activation"](y)
    if settings["activity_regularizer"] is not None:
        penalty = settings["activity_regularizer"](y)
        add_to_collection(GraphKeys.REGULARIZATION_LOSSES, penalty)
    return y


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
    if data_format == "channels_first" and len(inputs.shape) > 2:  # as TensorFlow does
        inputs = v1.transpose(inputs, [0, *range(2, len(inputs.shape)), 1])
    return v1.reshape(inputs, [-1, math.prod(inputs.shape[1:])])


__getattr__, __dir__ = forwarding(__name__, own=globals())
