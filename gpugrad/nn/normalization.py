"""Layers that normalise: to mean 0 and variance 1, then scaled and moved by Variables."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from gpugrad.autodiff.batched import levels_of
from gpugrad.core.backend import HALF, TENSOR
from gpugrad.core.settings import is_training
from gpugrad.core.tensor import Tensor, tensor
from gpugrad.core.variable import Variable
from gpugrad.errors import ArgumentError, DTypeError, ShapeError
from gpugrad.nn import functional
from gpugrad.nn.initializers import ones, zeros
from gpugrad.nn.layers import whole_numbers
from gpugrad.nn.module import Module
from gpugrad.ops.random.draws import is_repeated

__all__ = ["BatchNorm", "LayerNorm"]


class LayerNorm(Module):
    """Layer normalisation over the last axes: (x - mean) / sqrt(var + eps) * weight + bias.

    Args:
        shape: lengths of these axes, or the one length.
        eps: added to the variance.
        use_bias: whether there is a bias.
        dtype: of the Variables.

    Attributes:
        weight: Variable of that shape, of ones at first.
        bias: Variable of that shape, of zeros at first, or None.

    >>> print(gg.nn.LayerNorm(2, eps=0)([[1.0, 3.0]]))
    [[-1.  1.]]
    """

    def __init__(
        self, shape: int | tuple[int, ...], *, eps: float = 1e-5, use_bias: bool = True,
        dtype: Any = "float32",
    ) -> None:  # fmt: skip
        given = shape if isinstance(shape, (tuple, list)) else (shape,)
        lengths = {f"length {k}": n for k, n in enumerate(given)}
        self.shape = tuple(whole_numbers("LayerNorm", **lengths))
        self.eps = _within("LayerNorm", "eps", eps, math.inf)
        self.weight = Variable(ones(self.shape, dtype=dtype), name="weight")
        self.bias = Variable(zeros(self.shape, dtype=dtype), name="bias") if use_bias else None

    def forward(self, x: Any) -> Tensor:
        """Map x of shape (..., *shape) to that shape; errors as of `gg.nn.layer_norm`."""
        axes = tuple(range(-len(self.shape), 0))
        made: Tensor = functional.layer_norm(x, self.weight, self.bias, axis=axes, eps=self.eps)
        return made

    def _said(self) -> str:
        return f"{self.shape}"


class BatchNorm(Module):
    """Batch normalisation of each channel: (x - mean) / sqrt(var + eps) * weight + bias.

    In `gg.nn.training` mean and variance are those of the batch, and enter the running ones;
    else the running ones are taken. Ioffe and Szegedy 2015, "Batch Normalization".

    Args:
        channels: how many there are.
        momentum: part of the new statistics in the running ones, as in torch (Keras counts the
            part of the old ones: its 0.99 is 0.01 here).
        eps: added to the variance.
        axis: of the channels.
        dtype: of the Variables. 16-bit inputs are computed in float32 on the way.

    Raises:
        ArgumentError: `momentum` is not from 0 to 1, or `eps` below 0.

    Attributes:
        weight, bias: Variables of shape (channels,), of ones and zeros at first.
        running_mean, running_var: such Variables, of zeros and ones, not trainable.

    >>> layer = gg.nn.BatchNorm(1, eps=0)
    >>> with gg.nn.training():
    ...     print(layer([[1.0], [3.0]]))
    [[-1.]
     [ 1.]]
    >>> print(layer.running_mean.value())
    [0.2]
    """

    def __init__(
        self, channels: int, *, momentum: float = 0.1, eps: float = 1e-5, axis: int = 1,
        dtype: Any = "float32",
    ) -> None:  # fmt: skip
        (channels,) = whole_numbers("BatchNorm", channels=channels)
        self.channels, self.axis = channels, axis
        self.momentum = _within("BatchNorm", "momentum", momentum, 1)
        self.eps = _within("BatchNorm", "eps", eps, math.inf)
        shape = (channels,)
        self.weight = Variable(ones(shape, dtype=dtype), name="weight")
        self.bias = Variable(zeros(shape, dtype=dtype), name="bias")
        self.running_mean, self.running_var = (
            Variable(made(shape, dtype=dtype), trainable=False, name=name)
            for made, name in ((zeros, "running_mean"), (ones, "running_var"))
        )

    def forward(self, x: Any) -> Tensor:
        """Map x to its shape; errors as of `gg.nn.batch_norm`.

        Raises:
            ShapeError: in training, a channel has less than two values.
            DTypeError: x is complex.
            ArgumentError: in training, under vmap.
        """
        x, trains = tensor(x), is_training()
        if x.dtype.kind == "c":
            raise DTypeError(f"BatchNorm: x is {x.dtype}; real and imaginary part need one each.")
        if trains:
            self._check_batch(x)
        weight, bias = self.weight, self.bias
        if x.dtype in HALF:
            weight, bias = (TENSOR.astype(v, x.dtype) for v in (weight, bias))
        y, mean, var = functional.batch_norm(
            x, self.running_mean, self.running_var, weight, bias, training=trains,
            momentum=self.momentum, eps=self.eps, axis=self.axis,
        )  # fmt: skip
        if trains and not is_repeated():  # for a gradient: the batch has been counted
            for variable, new in ((self.running_mean, mean), (self.running_var, var)):
                variable.assign(TENSOR.astype(new, variable.dtype))
        return y

    def _check_batch(self, x: Tensor) -> None:
        if levels_of(x._data):
            raise ArgumentError(
                "BatchNorm: under vmap every example would be a batch of its own. Use it outside "
                "of gg.nn.training there, or gg.nn.LayerNorm."
            )
        if x.size < 2 * self.channels:
            raise ShapeError(
                f"BatchNorm: in training each of {self.channels} channels needs two values or "
                f"more, x has shape {x.shape}."
            )

    def _said(self) -> str:
        return f"{self.channels}"


def _within(layer: str, what: str, value: Any, most: float) -> float:
    if not isinstance(value, (int, float, np.number)) or not 0 <= value <= most:
        till = "on" if most == math.inf else f"to {most}"
        raise ArgumentError(f"{layer}: {what} must be a number from 0 {till}, got {value!r:.60}.")
    return float(value)
