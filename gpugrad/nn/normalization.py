"""Normalisation layers: mean 0 and variance 1, then a trainable scale and shift."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from gpugrad.autodiff.batched import levels_of
from gpugrad.core.backend import HALF, TENSOR
from gpugrad.core.settings import is_training
from gpugrad.core.tensor import Tensor, argument
from gpugrad.core.variable import Variable
from gpugrad.errors import ArgumentError, DTypeError, ShapeError, saying_where
from gpugrad.nn import functional
from gpugrad.nn.initializers import ones, zeros
from gpugrad.nn.layers import whole_numbers
from gpugrad.nn.module import Module
from gpugrad.ops.random.draws import is_repeated

__all__ = ["BatchNorm", "LayerNorm"]


class LayerNorm(Module):
    """Layer normalisation over the last axes: (x - mean) / sqrt(var + eps) * weight + bias.

    Args:
        shape: lengths of the last axes, or one length.
        eps: added to the variance.
        use_bias: whether there is a bias.
        dtype: dtype of the Variables.

    Attributes:
        weight: Variable of shape `shape`, initially ones.
        bias: Variable of shape `shape`, initially zeros, or None.

    >>> print(gg.nn.LayerNorm(2, eps=0)([[1.0, 3.0]]))
    [[-1.  1.]]
    """

    @saying_where
    def __init__(
        self,
        shape: int | tuple[int, ...],
        *,
        eps: float = 1e-5,
        use_bias: bool = True,
        dtype: Any = "float32",
    ) -> None:
        lengths = shape if isinstance(shape, (tuple, list)) else (shape,)
        named = {f"length {k}": n for k, n in enumerate(lengths)}
        self.shape = tuple(whole_numbers("LayerNorm", **named))
        self.eps = _check_range("LayerNorm", "eps", eps, math.inf)
        self.weight = Variable(ones(self.shape, dtype=dtype), name="weight")
        self.bias = Variable(zeros(self.shape, dtype=dtype), name="bias") if use_bias else None

    def forward(self, x: Any) -> Tensor:
        """Normalise x of shape (..., *shape); raises as `gg.nn.layer_norm` does."""
        axes = tuple(range(-len(self.shape), 0))
        y: Tensor = functional.layer_norm(x, self.weight, self.bias, axis=axes, eps=self.eps)
        return y

    def _repr_args(self) -> str:
        return f"{self.shape}"


class BatchNorm(Module):
    """Batch normalisation of each channel: (x - mean) / sqrt(var + eps) * weight + bias.

    In `gg.nn.training`, mean and variance come from the batch and update the running statistics;
    otherwise the running statistics are used. Ioffe and Szegedy 2015, "Batch Normalization".

    Args:
        channels: number of channels.
        momentum: weight of the new statistics in the running ones, as in torch. (In Keras it is
            the weight of the old ones: 0.99 there is 0.01 here.)
        eps: added to the variance.
        axis: axis of the channels.
        dtype: dtype of the Variables. Intermediate results for 16-bit inputs are float32.

    Raises:
        ArgumentError: `momentum` is not between 0 and 1, or `eps` is below 0.

    Attributes:
        weight, bias: Variables of shape (channels,), initially ones and zeros.
        running_mean, running_var: Variables of shape (channels,), initially zeros and ones, not
            trainable.

    >>> layer = gg.nn.BatchNorm(1, eps=0)
    >>> with gg.nn.training():
    ...     print(layer([[1.0], [3.0]]))
    [[-1.]
     [ 1.]]
    >>> print(layer.running_mean.value())
    [0.2]
    """

    @saying_where
    def __init__(
        self,
        channels: int,
        *,
        momentum: float = 0.1,
        eps: float = 1e-5,
        axis: int = 1,
        dtype: Any = "float32",
    ) -> None:
        (channels,) = whole_numbers("BatchNorm", channels=channels)
        self.channels, self.axis = channels, axis
        self.momentum = _check_range("BatchNorm", "momentum", momentum, 1)
        self.eps = _check_range("BatchNorm", "eps", eps, math.inf)
        shape = (channels,)
        self.weight = Variable(ones(shape, dtype=dtype), name="weight")
        self.bias = Variable(zeros(shape, dtype=dtype), name="bias")
        self.running_mean, self.running_var = (
            Variable(fill(shape, dtype=dtype), trainable=False, name=name)
            for fill, name in ((zeros, "running_mean"), (ones, "running_var"))
        )

    def forward(self, x: Any) -> Tensor:
        """Normalise x; also raises as `gg.nn.batch_norm` does.

        Raises:
            ShapeError: in training, a channel has fewer than two values.
            DTypeError: x is complex.
            ArgumentError: in training, under vmap.
        """
        x, trains = argument("BatchNorm", x), is_training()
        if x.dtype.kind == "c":
            raise DTypeError(
                f"BatchNorm: x is {x.dtype}. Normalise real and imaginary parts separately."
            )
        if trains:
            self._check_batch(x)
        weight, bias = self.weight, self.bias
        if x.dtype in HALF:
            weight, bias = (TENSOR.astype(v, x.dtype) for v in (weight, bias))
        y, mean, var = functional.batch_norm(
            x,
            self.running_mean,
            self.running_var,
            weight,
            bias,
            training=trains,
            momentum=self.momentum,
            eps=self.eps,
            axis=self.axis,
        )
        if trains and not is_repeated():  # a recomputation for a gradient must not count again
            for variable, new in ((self.running_mean, mean), (self.running_var, var)):
                variable.assign(TENSOR.astype(new, variable.dtype))
        return y

    def _check_batch(self, x: Tensor) -> None:
        if levels_of(x._data):
            raise ArgumentError(
                "BatchNorm: under vmap every example would be a batch of its own. Use it without "
                "gg.nn.training, or use gg.nn.LayerNorm."
            )
        if x.size < 2 * self.channels:
            raise ShapeError(
                f"BatchNorm: in training each of {self.channels} channels needs at least two "
                f"values, but x has shape {x.shape}."
            )

    def _repr_args(self) -> str:
        return f"{self.channels}"


def _check_range(layer: str, what: str, value: Any, most: float) -> float:
    if not isinstance(value, (int, float, np.number)) or not 0 <= value <= most:
        limits = "of at least 0" if most == math.inf else f"from 0 to {most}"
        raise ArgumentError(f"{layer}: {what} must be a number {limits}, got {value!r:.60}.")
    return float(value)
