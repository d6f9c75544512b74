"""Layers: objects that own Variables and find the Variables of the layers inside them.

The functions of `gpugrad.nn.functional` are available here too: ``gg.nn.relu``.
"""

from typing import Any

from gpugrad.core.known_as import missing
from gpugrad.core.settings import is_training, training
from gpugrad.nn import functional, initializers
from gpugrad.nn.attention import KeyValueCache, MultiHeadAttention, rotary_embedding
from gpugrad.nn.convolution import (
    Conv1d,
    Conv2d,
    Conv3d,
    ConvTranspose1d,
    ConvTranspose2d,
    ConvTranspose3d,
)
from gpugrad.nn.layers import (
    AlphaDropout,
    Bilinear,
    Dense,
    Dropout,
    Embedding,
    EmbeddingBag,
    Flatten,
    Identity,
    Sequential,
)
from gpugrad.nn.load_torch import load_torch
from gpugrad.nn.module import Module, functional_call
from gpugrad.nn.normalization import BatchNorm, GroupNorm, InstanceNorm, LayerNorm, RMSNorm
from gpugrad.nn.of_functions import PReLU, layer_of
from gpugrad.nn.recurrent import GRU, LSTM, RNN, GRUCell, LSTMCell, RNNCell
from gpugrad.nn.torch_report import TorchReport
from gpugrad.nn.transformer import TransformerBlock

__all__ = [
    "CELU",
    "ELU",
    "GEGLU",
    "GELU",
    "GLU",
    "GRU",
    "LSTM",
    "RNN",
    "SELU",
    "AdaptiveAvgPool1d",
    "AdaptiveAvgPool2d",
    "AdaptiveAvgPool3d",
    "AdaptiveMaxPool1d",
    "AdaptiveMaxPool2d",
    "AdaptiveMaxPool3d",
    "AlphaDropout",
    "AvgPool1d",
    "AvgPool2d",
    "AvgPool3d",
    "BatchNorm",
    "Bilinear",
    "ChannelShuffle",
    "Conv1d",
    "Conv2d",
    "Conv3d",
    "ConvTranspose1d",
    "ConvTranspose2d",
    "ConvTranspose3d",
    "Dense",
    "Dropout",
    "Embedding",
    "EmbeddingBag",
    "Flatten",
    "Fold",
    "GRUCell",
    "GroupNorm",
    "Hardshrink",
    "Hardsigmoid",
    "Hardswish",
    "Hardtanh",
    "Identity",
    "InstanceNorm",
    "KeyValueCache",
    "LPPool1d",
    "LPPool2d",
    "LPPool3d",
    "LSTMCell",
    "LayerNorm",
    "LeakyReLU",
    "LocalResponseNorm",
    "LogSigmoid",
    "LogSoftmax",
    "MaxPool1d",
    "MaxPool2d",
    "MaxPool3d",
    "Mish",
    "Module",
    "MultiHeadAttention",
    "Normalize",
    "PReLU",
    "PixelShuffle",
    "PixelUnshuffle",
    "QuickGELU",
    "RMSNorm",
    "RNNCell",
    "ReGLU",
    "ReLU",
    "ReLU6",
    "Sequential",
    "SiLU",
    "Sigmoid",
    "Softmax",
    "Softmin",
    "Softplus",
    "Softshrink",
    "Softsign",
    "Sparsemax",
    "SquaredReLU",
    "SwiGLU",
    "Tanh",
    "Tanhshrink",
    "Threshold",
    "TorchReport",
    "TransformerBlock",
    "Unfold",
    "Upsample",
    "functional",
    "functional_call",
    "initializers",
    "is_training",
    "load_torch",
    "rotary_embedding",
    "training",
]

# ---- layers without weights: activations, pooling and others

CELU = layer_of("CELU", functional.celu)
ELU = layer_of("ELU", functional.elu)
GELU = layer_of("GELU", functional.gelu)
GEGLU = layer_of("GEGLU", functional.geglu)
GLU = layer_of("GLU", functional.glu)
Hardshrink = layer_of("Hardshrink", functional.hardshrink)
Hardsigmoid = layer_of("Hardsigmoid", functional.hardsigmoid)
Hardswish = layer_of("Hardswish", functional.hardswish)
Hardtanh = layer_of("Hardtanh", functional.hardtanh)
LeakyReLU = layer_of("LeakyReLU", functional.leaky_relu)
LogSigmoid = layer_of("LogSigmoid", functional.log_sigmoid)
LogSoftmax = layer_of("LogSoftmax", functional.log_softmax)
Mish = layer_of("Mish", functional.mish)
QuickGELU = layer_of("QuickGELU", functional.quick_gelu)
ReGLU = layer_of("ReGLU", functional.reglu)
ReLU = layer_of("ReLU", functional.relu)
ReLU6 = layer_of("ReLU6", functional.relu6)
SELU = layer_of("SELU", functional.selu)
SiLU = layer_of("SiLU", functional.silu)
Sigmoid = layer_of("Sigmoid", functional.sigmoid)
Softmax = layer_of("Softmax", functional.softmax)
Softmin = layer_of("Softmin", functional.softmin)
Softplus = layer_of("Softplus", functional.softplus)
Softshrink = layer_of("Softshrink", functional.softshrink)
Softsign = layer_of("Softsign", functional.softsign)
Sparsemax = layer_of("Sparsemax", functional.sparsemax)
SquaredReLU = layer_of("SquaredReLU", functional.squared_relu)
SwiGLU = layer_of("SwiGLU", functional.swiglu)
Tanh = layer_of("Tanh", functional.tanh)
Tanhshrink = layer_of("Tanhshrink", functional.tanhshrink)
Threshold = layer_of("Threshold", functional.threshold)

AdaptiveAvgPool1d = layer_of("AdaptiveAvgPool1d", functional.adaptive_avg_pool1d)
AdaptiveAvgPool2d = layer_of("AdaptiveAvgPool2d", functional.adaptive_avg_pool2d)
AdaptiveAvgPool3d = layer_of("AdaptiveAvgPool3d", functional.adaptive_avg_pool3d)
AdaptiveMaxPool1d = layer_of("AdaptiveMaxPool1d", functional.adaptive_max_pool1d)
AdaptiveMaxPool2d = layer_of("AdaptiveMaxPool2d", functional.adaptive_max_pool2d)
AdaptiveMaxPool3d = layer_of("AdaptiveMaxPool3d", functional.adaptive_max_pool3d)
AvgPool1d = layer_of("AvgPool1d", functional.avg_pool1d)
AvgPool2d = layer_of("AvgPool2d", functional.avg_pool2d)
AvgPool3d = layer_of("AvgPool3d", functional.avg_pool3d)
LPPool1d = layer_of("LPPool1d", functional.lp_pool1d)
LPPool2d = layer_of("LPPool2d", functional.lp_pool2d)
LPPool3d = layer_of("LPPool3d", functional.lp_pool3d)
MaxPool1d = layer_of("MaxPool1d", functional.max_pool1d)
MaxPool2d = layer_of("MaxPool2d", functional.max_pool2d)
MaxPool3d = layer_of("MaxPool3d", functional.max_pool3d)

ChannelShuffle = layer_of("ChannelShuffle", functional.channel_shuffle)
Fold = layer_of("Fold", functional.fold)
LocalResponseNorm = layer_of("LocalResponseNorm", functional.local_response_norm)
Normalize = layer_of("Normalize", functional.normalize)
PixelShuffle = layer_of("PixelShuffle", functional.pixel_shuffle)
PixelUnshuffle = layer_of("PixelUnshuffle", functional.pixel_unshuffle)
Unfold = layer_of("Unfold", functional.unfold)
Upsample = layer_of("Upsample", functional.interpolate)


def __getattr__(name: str) -> Any:
    if name in functional.__all__:
        value = globals()[name] = getattr(functional, name)  # found without this the next time
        return value
    raise missing(__name__, name, functional.__all__)


def __dir__() -> list[str]:
    return [*__all__, *functional.__all__]
