"""Layers that normalise: to mean 0 and variance 1, then scaled and moved by Variables."""

from __future__ import annotations

from typing import Any

from gpugrad.backend import HALF, TENSOR
from gpugrad.nn import functional
from gpugrad.nn.initializers import ones, zeros
from gpugrad.nn.layers import check_lengths
from gpugrad.nn.module import Module
from gpugrad.tensor import Tensor, tensor
from gpugrad.training import is_training
from gpugrad.variable import Variable

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

    >>> import gpugrad as gg
    >>> print(gg.nn.LayerNorm(2, eps=0)([[1.0, 3.0]]))
    [[-1.  1.]]
    """

    def __init__(
        self, shape: int | tuple[int, ...], eps: float = 1e-5, use_bias: bool = True, *,
        dtype: Any = "float32",
    ) -> None:  # fmt: skip
        self.shape = (shape,) if isinstance(shape, int) else tuple(shape)
        check_lengths("LayerNorm", **{f"length {k}": n for k, n in enumerate(self.shape)})
        self.eps = eps
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
        momentum: of the new statistics in the running ones.
        eps: added to the variance.
        axis: of the channels.
        dtype: of the Variables. 16-bit inputs are computed in float32 on the way.

    Attributes:
        weight, bias: Variables of shape (channels,), of ones and zeros at first.
        running_mean, running_var: such Variables, of zeros and ones, not trainable.

    >>> import gpugrad as gg
    >>> layer = gg.nn.BatchNorm(1, eps=0)
    >>> with gg.nn.training():
    ...     print(layer([[1.0], [3.0]]))
    [[-1.]
     [ 1.]]
    >>> print(layer.running_mean.value())
    [0.2]
    """

    def __init__(
        self, channels: int, momentum: float = 0.1, eps: float = 1e-5, *, axis: int = 1,
        dtype: Any = "float32",
    ) -> None:  # fmt: skip
        check_lengths("BatchNorm", channels=channels)
        self.channels, self.momentum, self.eps, self.axis = channels, momentum, eps, axis
        shape = (channels,)
        self.weight = Variable(ones(shape, dtype=dtype), name="weight")
        self.bias = Variable(zeros(shape, dtype=dtype), name="bias")
        self.running_mean, self.running_var = (
            Variable(made(shape, dtype=dtype), trainable=False, name=name)
            for made, name in ((zeros, "running_mean"), (ones, "running_var"))
        )

    def forward(self, x: Any) -> Tensor:
        """Map x to its shape; errors as of `gg.nn.batch_norm`."""
        x, trains = tensor(x), is_training()
        weight, bias = self.weight, self.bias
        if x.dtype in HALF:
            weight, bias = (TENSOR.astype(v, x.dtype) for v in (weight, bias))
        y, mean, var = functional.batch_norm(
            x, self.running_mean, self.running_var, weight, bias, training=trains,
            momentum=self.momentum, eps=self.eps, axis=self.axis,
        )  # fmt: skip
        if trains:
            self.running_mean.assign(mean)
            self.running_var.assign(var)
        return y

    def _said(self) -> str:
        return f"{self.channels}"
