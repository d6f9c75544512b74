"""Layers whose results depend on the data of all ranks."""

from __future__ import annotations

from typing import Any

from gpugrad.core.backend import TENSOR
from gpugrad.core.devices import full_on_device_of
from gpugrad.core.tensor import Tensor, wrap
from gpugrad.distributed.ops import all_reduce
from gpugrad.distributed.world import world
from gpugrad.errors import DTypeError, saying_where
from gpugrad.nn.module import Module
from gpugrad.nn.normalization import BatchNorm


class SyncBatchNorm(BatchNorm):
    """`gg.nn.BatchNorm` with mean and variance of the batches of all ranks together.

    The running statistics are the same on all ranks then. Arguments and attributes are those of
    `gg.nn.BatchNorm`; `convert` turns its layers in a model into these.

    >>> layer = gg.distributed.SyncBatchNorm(1, eps=0)
    >>> with gg.nn.training():
    ...     print(layer([[1.0], [3.0]]))
    [[-1.]
     [ 1.]]
    """

    def _normalised(self, x: Tensor, weight: Any, bias: Any, training: bool) -> Any:
        """The result and, in training, the new running statistics of all ranks."""
        if world().size == 1 or not training:
            return super()._normalised(x, weight, bias, training)
        axis = self.axis % x.ndim
        axes = tuple(k for k in range(x.ndim) if k != axis)
        shape = tuple(n if k == axis else 1 for k, n in enumerate(x.shape))
        wide = TENSOR.astype(x, "float32") if x.dtype.itemsize == 2 else x
        number = full_on_device_of(wide._data, (self.channels,), wide.dtype, x.size / self.channels)
        count = all_reduce(wrap(number))

        def mean(values: Tensor) -> Tensor:
            return all_reduce(TENSOR.sum(values, axis=axes)) / count

        center = mean(wide)
        distance = wide - TENSOR.reshape(center, shape)
        variance = mean(distance * distance)
        y = distance * TENSOR.reshape(TENSOR.rsqrt(variance + self.eps), shape)
        if weight is not None:
            y = y * TENSOR.reshape(weight, shape) + TENSOR.reshape(bias, shape)
        old, unbiased = 1 - self.momentum, variance * count / (count - 1)
        running = [
            before * old + TENSOR.astype(now, before.dtype) * self.momentum
            for before, now in ((self.running_mean, center), (self.running_var, unbiased))
        ]
        return TENSOR.astype(y, x.dtype), *running


@saying_where
def convert(model: Module) -> Module:
    """Turn each `gg.nn.BatchNorm` of a model into a `SyncBatchNorm`, in place; return the model.

    Variables, names and hooks stay.

    >>> model = gg.nn.Sequential(gg.nn.Dense(3, 4), gg.nn.BatchNorm(4))
    >>> type(gg.distributed.convert(model)[1]).__name__
    'SyncBatchNorm'
    """
    if not isinstance(model, Module):
        raise DTypeError(f"convert: model must be a gg.nn.Module, got a {type(model).__name__}.")
    for _, layer in model.named_modules():
        if type(layer) is BatchNorm:
            layer.__class__ = SyncBatchNorm
    return model
