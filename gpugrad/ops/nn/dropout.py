"""Dropout, and draws from a softmax.

A `Generator` draws the mask, and registered ops apply it. The functions themselves are not ops,
because each call draws new numbers. On a GPU dropout keeps no mask: an op gets the position of its
numbers in the stream, and draws them again for the gradient.
"""

from __future__ import annotations

import math
import operator
from typing import Any

import numpy as np

from gpugrad.core.arguments import check_numbers
from gpugrad.core.backend import TENSOR
from gpugrad.core.devices import full_on_device_of
from gpugrad.core.samples import calls, shaped
from gpugrad.core.tensor import Tensor, argument
from gpugrad.errors import ArgumentError, DTypeError, ShapeError, saying_where
from gpugrad.kernels.by_hand import random as kernels
from gpugrad.kernels.cpu import random as cpu_kernels
from gpugrad.ops.nn.activations import SELU_ALPHA, SELU_SCALE
from gpugrad.ops.random import philox
from gpugrad.ops.random.generator import default_generator
from gpugrad.ops.random.sampling import Source
from gpugrad.registry.record import op


def check_probability(name: str, argument: str, p: float) -> None:
    """Refuse a value that is not a probability."""
    if not isinstance(p, (int, float, np.number)) or not 0 <= p <= 1:
        raise ArgumentError(f"{name}: {argument}={p!r:.60} must be a probability, from 0 to 1.")


def kept(x: Tensor, shape: Any, p: float, generator: Source) -> Tensor:
    """Booleans of a shape, on the device of `x`, each True with probability 1 - p."""
    draw = (generator or default_generator()).uniform(tuple(shape), device=x.device)
    return TENSOR.greater_equal(draw, p)


def _floating(name: str, x: Any) -> Tensor:
    x = argument(name, x)
    if x.dtype.kind in "biu":
        raise DTypeError(f"{name}: x is {x.dtype}; convert it with gg.astype(x, 'float32') first.")
    return x


@saying_where
def dropout(
    x: Any, p: float = 0.5, *, training: bool = True, noise_shape=None, generator: Source = None
) -> Tensor:
    """Set elements to 0 with probability `p`, and multiply the others by 1 / (1 - p).

    Args:
        x: array of any shape.
        p: from 0 to 1.
        training: if False, `x` is returned unchanged.
        noise_shape: shape of the mask, which broadcasts to `x`: (n, c, 1, 1) drops whole
            channels. None for the shape of `x`.
        generator: the default generator if None.

    Returns:
        Tensor of the shape of `x`. The gradient keeps only the mask, on a GPU only its position
        in the random stream.

    Raises:
        ArgumentError: `p` is not from 0 to 1.
        DTypeError: `x` is not floating point or complex.
        ShapeError: `noise_shape` does not fit.

    Srivastava et al. 2014, "Dropout: A Simple Way to Prevent Neural Networks from Overfitting".

    >>> g = gg.random.Generator(0)
    >>> x = gg.nn.dropout(gg.ones(1000), 0.5, generator=g)
    >>> sorted(set(x.tolist()))
    [0.0, 2.0]
    """
    check_probability("dropout", "p", p)
    x = _floating("dropout", x)
    if not training or p == 0:
        return x
    shape = x.shape if noise_shape is None else tuple(noise_shape)
    if len(shape) > x.ndim or any(
        n not in (1, m) for n, m in zip(shape[::-1], x.shape[::-1], strict=False)
    ):
        raise ShapeError(f"dropout: noise_shape {shape} does not broadcast to x's shape {x.shape}.")
    if p == 1:
        return TENSOR.where(False, x, 0)
    if x.device.kind != "cpu" and shape == x.shape:
        place = (generator or default_generator())._place(x.size, 32)
        if place is not None:
            return TENSOR.stream_dropout(x, key=place[0], first=place[1], p=p)
    keep = kept(x, shape, p, generator)
    return TENSOR.where(keep, x * (1 / (1 - p)), 0)


def _stream_dropout_ref(x, key, first, p):
    words = np.random.Generator(np.random.Philox(key=np.array(key, np.uint64), counter=first - 1))
    keep = words.random(x.size, np.float32).reshape(x.shape) >= p
    return np.where(keep, x / (1 - p), 0)


def _stream_dropout_batch(xp, batched, x, *, key, first, p):
    """The same mask for all examples: the dropout of ones gives their scales."""
    ones = full_on_device_of(x, x.shape[1:], x.dtype, 1)
    scales = xp.stream_dropout(ones, key=key, first=first, p=p)
    return xp.where(xp.not_equal(scales, 0), x * scales, 0)


@op(
    vjp=[lambda xp, g, key, first, p: xp.stream_dropout(g, key=key, first=first, p=p)],
    linear=True,
    native_half=True,
    kinds="fc",
    ref=_stream_dropout_ref,
    cuda=kernels.stream_dropout,
    cpu=cpu_kernels.stream_dropout,
    batch=_stream_dropout_batch,
    samples=shaped(
        ([(9,)], {"key": (1, 2), "first": 3, "p": 0.5}),
        ([(3, 7)], {"key": (2**64 - 1, 0), "first": 2**32, "p": 0.1}),
        ([()], {"key": (0, 0), "first": 1, "p": 0.25}),
        ([(0,)], {"key": (3, 4), "first": 1, "p": 0}),
    ),
    errors=[([np.ones(2)], {"key": (1, 2), "first": 0, "p": 1.0}, ArgumentError, "p=1.0")],
)
def stream_dropout(xp, x, /, *, key, first, p):
    """Dropout by the numbers at one position of a random stream; `dropout` calls it.

    The gradient is the op itself at the same position: nothing is kept for it.

    Args:
        key: two ints, the stream's key.
        first: int, the counter at which its float32 numbers begin (see `ops.random.philox`).
    """
    if not 0 <= p < 1:
        raise ArgumentError(f"stream_dropout: p={p} must be from 0 to below 1.")
    key = [operator.index(word) for word in key]
    numbers = philox.uniform(key, operator.index(first), x.size, np.float32).reshape(x.shape)
    scale = x.dtype.type(1 / (1 - p))  # rounded as in a product with a Python number
    return xp.lib.where(xp.lib.asarray(numbers >= np.float32(p)), x * scale, x.dtype.type(0))


def _stream_mask_ref(stream, shape, p):
    words = np.random.Philox(key=stream[:2], counter=[stream[2] - np.uint64(1), 0, stream[3], 0])
    return np.random.Generator(words).random(shape, np.float32) >= np.float32(p)


def _stream_mask_batch(xp, batched, stream, **params):
    each = (xp.getitem(stream, index=k) for k in range(stream.shape[0]))
    return xp.stack([xp.stream_mask(one, **params) for one in each], axis=0)


@op(
    vjp=[None],
    differentiable=False,
    kinds="i",
    ref=_stream_mask_ref,
    cuda=kernels.stream_mask,
    cpu=cpu_kernels.stream_mask,
    batch=_stream_mask_batch,
    samples=calls(
        lambda rng: ([kernels.state_of((1, 2), 3)], {"shape": (9,), "p": 0.5}),
        lambda rng: ([kernels.state_of((2**64 - 1, 0), 2**33)], {"shape": (3, 7), "p": 0.1}),
        lambda rng: ([kernels.state_of((3, 4), 1)], {"shape": (0, 2), "p": 0.1}),
    ),
    errors=[
        ([np.ones(4)], {"shape": (2,), "p": 0.5}, DTypeError, "stream_mask.*float64"),
        ([np.ones(3, np.uint64)], {"shape": (2,), "p": 0.5}, ShapeError, r"stream_mask.*\(3,\)"),
    ],
)
def stream_mask(xp, stream, /, *, shape, p):
    """Where numbers of a random stream are `p` or more; `flash_attention` calls it.

    Args:
        stream: uint64 array (4,): the stream's key, the counter at which its float32 numbers begin
            (see `gpugrad.ops.random.philox`), and word 2 of it.

    Returns:
        Tensor of booleans.
    """
    if stream.dtype != np.uint64:
        raise DTypeError(f"stream_mask: the stream is {stream.dtype}; it must be uint64.")
    if stream.shape != (4,):
        raise ShapeError(f"stream_mask: the stream has shape {stream.shape}; it must be (4,).")
    check_numbers("stream_mask", "biuf", p=p)
    k0, k1, first, third = stream.tolist()
    numbers = philox.uniform((k0, k1), first + (third << 128), math.prod(shape), np.float32)
    return xp.lib.asarray((numbers >= np.float32(p)).reshape(shape))


@saying_where
def alpha_dropout(
    x: Any, p: float = 0.5, *, training: bool = True, generator: Source = None
) -> Tensor:
    """Dropout that keeps mean 0 and variance 1: for networks of `selu`.

    Args:
        x: array of any shape.
        p: probability with which an element becomes selu(-inf); at least 0 and below 1.
        training: if False, `x` is returned unchanged.
        generator: the default generator if None.

    Returns:
        Tensor of the shape of `x`.

    Raises:
        ArgumentError: `p` is negative, or not below 1.
        DTypeError: `x` is not floating point or complex.

    Klambauer et al. 2017, "Self-Normalizing Neural Networks".

    >>> x = gg.random.Generator(0).normal(10000)
    >>> y = gg.nn.alpha_dropout(x, 0.2, generator=gg.random.Generator(1))
    >>> bool(gg.abs(gg.mean(y)) < 0.05), bool(gg.abs(gg.std(y) - 1) < 0.05)
    (True, True)
    """
    if not 0 <= p < 1:
        raise ArgumentError(f"alpha_dropout: p={p} must be from 0 to below 1.")
    x = _floating("alpha_dropout", x)
    if not training or p == 0:
        return x
    low = -SELU_SCALE * SELU_ALPHA
    scale = ((1 - p) * (1 + p * low * low)) ** -0.5
    keep = kept(x, x.shape, p, generator)
    return TENSOR.where(keep, x, low) * scale - scale * p * low


@saying_where
def gumbel_softmax(
    logits: Any, tau: float = 1.0, *, hard: bool = False, axis: int = -1, generator: Source = None
) -> Tensor:
    """Draw from the classes of a softmax, differentiably.

    Args:
        logits: scores, a class along `axis`.
        tau: temperature, above 0: the lower, the closer a draw is to a single class.
        hard: whether to return exactly one class (1, the others 0), with the gradient of the soft
            draw.
        axis: int, of the classes.
        generator: the default generator if None.

    Returns:
        Tensor of the shape of `logits`, with sum 1 along the axis.

    Raises:
        ArgumentError: `tau` is not above 0.
        AxisError: there is no such axis.

    Jang et al. 2017, "Categorical Reparameterization with Gumbel-Softmax".

    >>> y = gg.nn.gumbel_softmax([0.0, 9.0, 0.0], hard=True, generator=gg.random.Generator(0))
    >>> print(y)
    [0. 1. 0.]
    """
    if not tau > 0:
        raise ArgumentError(f"gumbel_softmax: tau={tau} must be above 0.")
    logits = _floating("gumbel_softmax", logits)
    draw = (generator or default_generator()).uniform(logits.shape, device=logits.device)
    # half of the smallest step above 0 replaces 0, which has no logarithm
    noise = -TENSOR.log(-TENSOR.log(TENSOR.maximum(draw, 2.0**-25)))
    soft = TENSOR.softmax((logits + TENSOR.astype(noise, logits.dtype)) / tau, axis=axis)
    if not hard:
        return soft
    places = TENSOR.argmax(soft, axis=axis, keepdims=True)
    ones = TENSOR.take_along_axis(soft, places, axis=axis) * 0 + 1
    one = TENSOR.scatter_along_axis(ones, places, axis=axis, shape=soft.shape, unique=True)
    # soft - soft is exactly 0, so that the values are exactly 0 and 1
    return TENSOR.stop_gradient(one) + (soft - TENSOR.stop_gradient(soft))
