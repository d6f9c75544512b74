"""Layers without weights: activations, pooling and others that only call a function of `gg.nn`."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any, ClassVar

from gpugrad.core.arguments import COUNT, takes
from gpugrad.core.backend import as_dtype
from gpugrad.core.convert import constant
from gpugrad.core.tensor import Tensor
from gpugrad.core.variable import Variable
from gpugrad.nn import functional
from gpugrad.nn.module import Module, named_keywords


class _Layer(Module):
    """A function of one array with fixed options, which are attributes of the layer."""

    _function: ClassVar[Callable[..., Any]]
    _parameters: ClassVar[inspect.Signature]

    def __init__(self, *args: Any, **keywords: Any) -> None:
        try:
            options = self._parameters.bind(*args, **keywords)
        except TypeError as error:
            named = TypeError(f"{type(self).__name__}: {error}")
            raise named_keywords(type(self).__name__, keywords, named) from None
        options.apply_defaults()
        self.__dict__.update(options.arguments)

    def forward(self, x: Any) -> Tensor:
        """Call the function."""
        options = {name: getattr(self, name) for name in self._parameters.parameters}
        return type(self)._function(x, **options)

    def _repr_args(self) -> str:
        return ", ".join(
            f"{name}={getattr(self, name)!r}"
            for name, p in self._parameters.parameters.items()
            if getattr(self, name) is not p.default
        )


def _layer(name: str, function: Callable[..., Any]) -> type[_Layer]:
    """The layer class that calls a function; its options are the function's, without the array."""
    _, *options = inspect.signature(function).parameters.values()
    first_line = f"The layer that calls `gg.nn.{function.__name__}`, whose options it takes."
    return type(
        name,
        (_Layer,),
        {
            "__doc__": first_line,
            "__module__": __name__,
            "_function": staticmethod(function),
            "_parameters": inspect.Signature(options),
        },
    )


# ---- activations

CELU = _layer("CELU", functional.celu)
ELU = _layer("ELU", functional.elu)
GELU = _layer("GELU", functional.gelu)
GEGLU = _layer("GEGLU", functional.geglu)
GLU = _layer("GLU", functional.glu)
Hardshrink = _layer("Hardshrink", functional.hardshrink)
Hardsigmoid = _layer("Hardsigmoid", functional.hardsigmoid)
Hardswish = _layer("Hardswish", functional.hardswish)
Hardtanh = _layer("Hardtanh", functional.hardtanh)
LeakyReLU = _layer("LeakyReLU", functional.leaky_relu)
LogSigmoid = _layer("LogSigmoid", functional.log_sigmoid)
LogSoftmax = _layer("LogSoftmax", functional.log_softmax)
Mish = _layer("Mish", functional.mish)
QuickGELU = _layer("QuickGELU", functional.quick_gelu)
ReGLU = _layer("ReGLU", functional.reglu)
ReLU = _layer("ReLU", functional.relu)
ReLU6 = _layer("ReLU6", functional.relu6)
SELU = _layer("SELU", functional.selu)
SiLU = _layer("SiLU", functional.silu)
Sigmoid = _layer("Sigmoid", functional.sigmoid)
Softmax = _layer("Softmax", functional.softmax)
Softmin = _layer("Softmin", functional.softmin)
Softplus = _layer("Softplus", functional.softplus)
Softshrink = _layer("Softshrink", functional.softshrink)
Softsign = _layer("Softsign", functional.softsign)
Sparsemax = _layer("Sparsemax", functional.sparsemax)
SquaredReLU = _layer("SquaredReLU", functional.squared_relu)
SwiGLU = _layer("SwiGLU", functional.swiglu)
Tanh = _layer("Tanh", functional.tanh)
Tanhshrink = _layer("Tanhshrink", functional.tanhshrink)
Threshold = _layer("Threshold", functional.threshold)


class PReLU(Module):
    """max(x, 0) + weight * min(x, 0), with a trainable slope for each channel or one for all.

    He et al. 2015, "Delving Deep into Rectifiers".

    Args:
        channels: number of slopes: 1, or the length of the channels' axis.
        initial: first value of the slopes.
        axis: axis of the channels.
        dtype: dtype of the Variable.

    Attributes:
        weight: Variable of shape (channels,).

    >>> print(gg.nn.PReLU()([-4.0, 4.0]))
    [-1.  4.]
    """

    @takes(channels=COUNT)
    def __init__(
        self, channels: int = 1, initial: float = 0.25, *, axis: int = 1, dtype: Any = "float32"
    ) -> None:
        self.axis = axis
        self.weight = Variable(constant(initial, as_dtype(dtype), (channels,)))

    def forward(self, x: Any) -> Tensor:
        """Apply `gg.nn.prelu`; raises as it does."""
        x = self._input(x, self.weight)
        axis = self.axis if self.weight.size > 1 else -1
        return functional.prelu(x, self.weight, axis=axis)


# ---- pooling

AdaptiveAvgPool1d = _layer("AdaptiveAvgPool1d", functional.adaptive_avg_pool1d)
AdaptiveAvgPool2d = _layer("AdaptiveAvgPool2d", functional.adaptive_avg_pool2d)
AdaptiveAvgPool3d = _layer("AdaptiveAvgPool3d", functional.adaptive_avg_pool3d)
AdaptiveMaxPool1d = _layer("AdaptiveMaxPool1d", functional.adaptive_max_pool1d)
AdaptiveMaxPool2d = _layer("AdaptiveMaxPool2d", functional.adaptive_max_pool2d)
AdaptiveMaxPool3d = _layer("AdaptiveMaxPool3d", functional.adaptive_max_pool3d)
AvgPool1d = _layer("AvgPool1d", functional.avg_pool1d)
AvgPool2d = _layer("AvgPool2d", functional.avg_pool2d)
AvgPool3d = _layer("AvgPool3d", functional.avg_pool3d)
LPPool1d = _layer("LPPool1d", functional.lp_pool1d)
LPPool2d = _layer("LPPool2d", functional.lp_pool2d)
LPPool3d = _layer("LPPool3d", functional.lp_pool3d)
MaxPool1d = _layer("MaxPool1d", functional.max_pool1d)
MaxPool2d = _layer("MaxPool2d", functional.max_pool2d)
MaxPool3d = _layer("MaxPool3d", functional.max_pool3d)

# ---- others

ChannelShuffle = _layer("ChannelShuffle", functional.channel_shuffle)
Fold = _layer("Fold", functional.fold)
LocalResponseNorm = _layer("LocalResponseNorm", functional.local_response_norm)
Normalize = _layer("Normalize", functional.normalize)
PixelShuffle = _layer("PixelShuffle", functional.pixel_shuffle)
PixelUnshuffle = _layer("PixelUnshuffle", functional.pixel_unshuffle)
Unfold = _layer("Unfold", functional.unfold)
Upsample = _layer("Upsample", functional.interpolate)
