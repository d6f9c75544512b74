"""Normalisation layers: mean 0 and variance 1, then a trainable scale and shift."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, ClassVar

from gpugrad.autodiff.batched import levels_of
from gpugrad.core.arguments import COUNT, FLAG, FRACTION, NOT_NEGATIVE, optional, takes
from gpugrad.core.backend import TENSOR
from gpugrad.core.settings import is_training
from gpugrad.core.tensor import Tensor
from gpugrad.core.variable import Variable
from gpugrad.errors import ArgumentError, DTypeError, ShapeError
from gpugrad.nn import functional
from gpugrad.nn.initializers import ones, zeros
from gpugrad.nn.layers import warn_without_training
from gpugrad.nn.module import Module, beside


class _Norm(Module):
    """The base of the norms: a scale and a shift, which start as ones and zeros."""

    weight: Variable | None
    bias: Variable | None
    _shown: ClassVar[tuple[str, ...]] = ("channels",)

    def _scale_and_shift(
        self, shape: tuple[int, ...], affine: bool, dtype: Any, use_bias: bool = True
    ) -> None:
        self.weight = Variable(ones(shape, dtype=dtype)) if affine else None
        self.bias = Variable(zeros(shape, dtype=dtype)) if affine and use_bias else None

    def _by(self, function: Callable[..., Any], x: Any, **how: Any) -> Tensor:
        """The result of a norm of `gg.nn`, with the scale and the shift beside `x`."""
        x = self._input(x, self.weight)
        return function(x, *beside(x, self.weight, self.bias), **how)


class LayerNorm(_Norm):
    """Layer normalisation over the last axes: (x - mean) / sqrt(var + eps) * weight + bias.

    Args:
        shape: lengths of the last axes, or one length.
        eps: added to the variance.
        affine: whether there are weight and bias.
        use_bias: whether there is a bias.
        dtype: dtype of the Variables.

    Attributes:
        weight: Variable of shape `shape`, initially ones, or None.
        bias: Variable of shape `shape`, initially zeros, or None.

    >>> print(gg.nn.LayerNorm(2, eps=0)([[1.0, 3.0]]))
    [[-1.  1.]]
    """

    _shown = ("shape",)

    @takes(eps=NOT_NEGATIVE, affine=FLAG, use_bias=FLAG)
    def __init__(
        self,
        shape: int | tuple[int, ...],
        *,
        eps: float = 1e-5,
        affine: bool = True,
        use_bias: bool = True,
        dtype: Any = "float32",
    ) -> None:
        self.shape, self.eps = _lengths("LayerNorm", shape), eps
        self._scale_and_shift(self.shape, affine, dtype, use_bias)

    def forward(self, x: Any) -> Tensor:
        """Normalise x of shape (..., *shape); raises as `gg.nn.layer_norm` does."""
        axes = tuple(range(-len(self.shape), 0))
        return self._by(functional.layer_norm, x, axis=axes, eps=self.eps)


class RMSNorm(Module):
    """RMS normalisation over the last axes: x / sqrt(mean(x^2) + eps) * weight.

    Zhang and Sennrich 2019, "Root Mean Square Layer Normalization".

    Args:
        shape: lengths of the last axes, or one length.
        eps: added to the mean square; if None, the smallest step of the dtype.
        affine: whether there is a weight.
        dtype: dtype of the Variable.

    Attributes:
        weight: Variable of shape `shape`, initially ones, or None.

    >>> print(gg.nn.RMSNorm(2, eps=0)([[3.0, 3.0]]))
    [[1. 1.]]
    """

    _shown = ("shape",)

    @takes(eps=optional(NOT_NEGATIVE), affine=FLAG)
    def __init__(
        self,
        shape: int | tuple[int, ...],
        *,
        eps: float | None = None,
        affine: bool = True,
        dtype: Any = "float32",
    ) -> None:
        self.shape, self.eps = _lengths("RMSNorm", shape), eps
        self.weight = Variable(ones(self.shape, dtype=dtype)) if affine else None

    def forward(self, x: Any) -> Tensor:
        """Normalise x of shape (..., *shape); raises as `gg.nn.rms_norm` does."""
        x, axes = self._input(x, self.weight), tuple(range(-len(self.shape), 0))
        return functional.rms_norm(x, *beside(x, self.weight), axis=axes, eps=self.eps)


class GroupNorm(_Norm):
    """Normalisation of groups of channels of each example, then a scale and shift by channel.

    Wu and He 2018, "Group Normalization".

    Args:
        groups: number of groups; must divide `channels`.
        channels: number of channels.
        eps: added to the variance.
        affine: whether there are a trainable scale and shift.
        axis: axis of the channels.
        dtype: dtype of the Variables.

    Attributes:
        weight, bias: Variables of shape (channels,), initially ones and zeros, or None.

    >>> gg.nn.GroupNorm(2, 4)(gg.ones((1, 4, 3, 3))).shape
    (1, 4, 3, 3)
    """

    _shown = ("groups", "channels")

    @takes(groups=COUNT, channels=COUNT, eps=NOT_NEGATIVE, affine=FLAG)
    def __init__(
        self,
        groups: int,
        channels: int,
        *,
        eps: float = 1e-5,
        affine: bool = True,
        axis: int = 1,
        dtype: Any = "float32",
    ) -> None:
        if channels % groups:
            raise ArgumentError(f"GroupNorm: groups={groups} must divide channels={channels}.")
        self.groups, self.channels, self.eps, self.axis = groups, channels, eps, axis
        self._scale_and_shift((channels,), affine, dtype)

    def forward(self, x: Any) -> Tensor:
        """Normalise x; raises as `gg.nn.group_norm` does."""
        how = {"num_groups": self.groups, "eps": self.eps, "axis": self.axis}
        return self._by(functional.group_norm, x, **how)


class InstanceNorm(_Norm):
    """Normalisation of each channel of each example over its other axes.

    Ulyanov et al. 2016, "Instance Normalization".

    Args:
        channels: number of channels.
        eps: added to the variance.
        affine: whether there are a trainable scale and shift, as in Keras; torch has none unless
            asked.
        axis: axis of the channels.
        dtype: dtype of the Variables.

    Attributes:
        weight, bias: Variables of shape (channels,), initially ones and zeros, or None.

    >>> print(gg.nn.InstanceNorm(1, eps=0)([[[1.0, 3.0]]]))
    [[[-1.  1.]]]
    """

    @takes(channels=COUNT, eps=NOT_NEGATIVE, affine=FLAG)
    def __init__(
        self,
        channels: int,
        *,
        eps: float = 1e-5,
        affine: bool = True,
        axis: int = 1,
        dtype: Any = "float32",
    ) -> None:
        self.channels, self.eps, self.axis = channels, eps, axis
        self._scale_and_shift((channels,), affine, dtype)

    def forward(self, x: Any) -> Tensor:
        """Normalise x; raises as `gg.nn.instance_norm` does."""
        return self._by(functional.instance_norm, x, eps=self.eps, axis=self.axis)


def _lengths(layer: str, shape: Any) -> tuple[int, ...]:
    lengths = shape if isinstance(shape, (tuple, list)) else (shape,)
    return tuple(COUNT(layer, f"length {k}", n) for k, n in enumerate(lengths))


class BatchNorm(_Norm):
    """Batch normalisation of each channel: (x - mean) / sqrt(var + eps) * weight + bias.

    In `gg.nn.training`, mean and variance come from the batch and update the running statistics;
    otherwise the running statistics are used. Ioffe and Szegedy 2015, "Batch Normalization".

    Args:
        channels: number of channels.
        momentum: weight of the new statistics in the running ones, as in torch. (In Keras it is
            the weight of the old ones: 0.99 there is 0.01 here.)
        eps: added to the variance.
        affine: whether there are a trainable scale and shift.
        axis: axis of the channels.
        dtype: dtype of the Variables. Intermediate results for 16-bit inputs are float32.

    Raises:
        ArgumentError: `momentum` is not between 0 and 1, or `eps` is below 0.

    Attributes:
        weight, bias: Variables of shape (channels,), initially ones and zeros, or None.
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

    @takes(channels=COUNT, momentum=FRACTION, eps=NOT_NEGATIVE, affine=FLAG)
    def __init__(
        self,
        channels: int,
        *,
        momentum: float = 0.1,
        eps: float = 1e-5,
        affine: bool = True,
        axis: int = 1,
        dtype: Any = "float32",
    ) -> None:
        self.channels, self.momentum, self.eps, self.axis = channels, momentum, eps, axis
        shape = (channels,)
        self._scale_and_shift(shape, affine, dtype)
        self.running_mean = Variable(zeros(shape, dtype=dtype), trainable=False)
        self.running_var = Variable(ones(shape, dtype=dtype), trainable=False)

    def forward(self, x: Any) -> Tensor:
        """Normalise x; also raises as `gg.nn.batch_norm` does.

        Raises:
            ShapeError: in training, a channel has fewer than two values.
            DTypeError: x is complex.
            ArgumentError: in training, under vmap.
        """
        x, trains = self._input(x, self.running_mean), is_training()
        warn_without_training(self)
        if x.dtype.kind == "c":
            raise DTypeError(
                f"BatchNorm: x is {x.dtype}. Normalise real and imaginary parts separately."
            )
        if trains:
            self._check_batch(x)
        weight, bias = beside(x, self.weight, self.bias)
        y, mean, var = self._normalised(x, weight, bias, trains)
        if trains:
            for variable, new in ((self.running_mean, mean), (self.running_var, var)):
                if not isinstance(variable, Variable):
                    raise ArgumentError(
                        "BatchNorm: functional_call got a Tensor for the running statistics, "
                        "which training assigns to. Leave them out of its state."
                    )
                variable.assign(TENSOR.astype(new, variable.dtype))
        return y

    def _normalised(self, x: Tensor, weight: Any, bias: Any, training: bool) -> Any:
        """The result and, in training, the new running statistics."""
        running = self.running_mean, self.running_var
        settings: dict[str, Any] = {"momentum": self.momentum, "eps": self.eps, "axis": self.axis}
        return functional.batch_norm(x, *running, weight, bias, training=training, **settings)

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
