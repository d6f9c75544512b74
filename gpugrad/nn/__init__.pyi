# Written by ci/stubs from the functions themselves, with NumPy 2.4 and SciPy 1.17; do not edit.
from collections.abc import Mapping, Sequence
from gpugrad.core.tensor import Tensor
from gpugrad.nn.of_functions import FunctionLayer
from gpugrad.ops.random.generator import Generator
from gpugrad.typing import ArrayLike, Axis, DTypeLike, Shape, UfuncKeywords
from os import PathLike
from typing import Any, SupportsIndex, Unpack
from gpugrad.core.settings import training as training
from gpugrad.nn import functional as functional
from gpugrad.nn import initializers as initializers
from gpugrad.nn.attention import KeyValueCache as KeyValueCache
from gpugrad.nn.attention import MultiHeadAttention as MultiHeadAttention
from gpugrad.nn.convolution import Conv1d as Conv1d
from gpugrad.nn.convolution import Conv2d as Conv2d
from gpugrad.nn.convolution import Conv3d as Conv3d
from gpugrad.nn.convolution import ConvTranspose1d as ConvTranspose1d
from gpugrad.nn.convolution import ConvTranspose2d as ConvTranspose2d
from gpugrad.nn.convolution import ConvTranspose3d as ConvTranspose3d
from gpugrad.nn.layers import AlphaDropout as AlphaDropout
from gpugrad.nn.layers import Bilinear as Bilinear
from gpugrad.nn.layers import Dense as Dense
from gpugrad.nn.layers import Dropout as Dropout
from gpugrad.nn.layers import Embedding as Embedding
from gpugrad.nn.layers import EmbeddingBag as EmbeddingBag
from gpugrad.nn.layers import Flatten as Flatten
from gpugrad.nn.layers import Identity as Identity
from gpugrad.nn.layers import Sequential as Sequential
from gpugrad.nn.module import Module as Module
from gpugrad.nn.module import functional_call as functional_call
from gpugrad.nn.normalization import BatchNorm as BatchNorm
from gpugrad.nn.normalization import GroupNorm as GroupNorm
from gpugrad.nn.normalization import InstanceNorm as InstanceNorm
from gpugrad.nn.normalization import LayerNorm as LayerNorm
from gpugrad.nn.normalization import RMSNorm as RMSNorm
from gpugrad.nn.of_functions import PReLU as PReLU
from gpugrad.nn.recurrent import GRU as GRU
from gpugrad.nn.recurrent import GRUCell as GRUCell
from gpugrad.nn.recurrent import LSTM as LSTM
from gpugrad.nn.recurrent import LSTMCell as LSTMCell
from gpugrad.nn.recurrent import RNN as RNN
from gpugrad.nn.recurrent import RNNCell as RNNCell
from gpugrad.nn.torch_report import TorchReport as TorchReport
from gpugrad.nn.transformer import TransformerBlock as TransformerBlock

__all__: list[str]

class AdaptiveAvgPool1d(FunctionLayer):
    output_size: Shape
    def __init__(self, output_size: Shape) -> None:
        """The layer that calls `gg.nn.adaptive_avg_pool1d`, whose options it takes."""

class AdaptiveAvgPool2d(FunctionLayer):
    output_size: Shape
    def __init__(self, output_size: Shape) -> None:
        """The layer that calls `gg.nn.adaptive_avg_pool2d`, whose options it takes."""

class AdaptiveAvgPool3d(FunctionLayer):
    output_size: Shape
    def __init__(self, output_size: Shape) -> None:
        """The layer that calls `gg.nn.adaptive_avg_pool3d`, whose options it takes."""

class AdaptiveMaxPool1d(FunctionLayer):
    output_size: Shape
    def __init__(self, output_size: Shape) -> None:
        """The layer that calls `gg.nn.adaptive_max_pool1d`, whose options it takes."""

class AdaptiveMaxPool2d(FunctionLayer):
    output_size: Shape
    def __init__(self, output_size: Shape) -> None:
        """The layer that calls `gg.nn.adaptive_max_pool2d`, whose options it takes."""

class AdaptiveMaxPool3d(FunctionLayer):
    output_size: Shape
    def __init__(self, output_size: Shape) -> None:
        """The layer that calls `gg.nn.adaptive_max_pool3d`, whose options it takes."""

class AvgPool1d(FunctionLayer):
    kernel_size: Shape
    stride: Shape | None
    padding: Shape | str
    ceil_mode: bool
    count_include_pad: bool
    divisor_override: Any
    def __init__(
        self,
        kernel_size: Shape,
        stride: Shape | None = None,
        padding: Shape | str = 0,
        ceil_mode: bool = False,
        count_include_pad: bool = True,
        divisor_override: Any = None,
    ) -> None:
        """The layer that calls `gg.nn.avg_pool1d`, whose options it takes."""

class AvgPool2d(FunctionLayer):
    kernel_size: Shape
    stride: Shape | None
    padding: Shape | str
    ceil_mode: bool
    count_include_pad: bool
    divisor_override: Any
    def __init__(
        self,
        kernel_size: Shape,
        stride: Shape | None = None,
        padding: Shape | str = 0,
        ceil_mode: bool = False,
        count_include_pad: bool = True,
        divisor_override: Any = None,
    ) -> None:
        """The layer that calls `gg.nn.avg_pool2d`, whose options it takes."""

class AvgPool3d(FunctionLayer):
    kernel_size: Shape
    stride: Shape | None
    padding: Shape | str
    ceil_mode: bool
    count_include_pad: bool
    divisor_override: Any
    def __init__(
        self,
        kernel_size: Shape,
        stride: Shape | None = None,
        padding: Shape | str = 0,
        ceil_mode: bool = False,
        count_include_pad: bool = True,
        divisor_override: Any = None,
    ) -> None:
        """The layer that calls `gg.nn.avg_pool3d`, whose options it takes."""

class CELU(FunctionLayer):
    alpha: ArrayLike
    def __init__(self, alpha: ArrayLike = 1.0) -> None:
        """The layer that calls `gg.nn.celu`, whose options it takes."""

class ChannelShuffle(FunctionLayer):
    groups: SupportsIndex
    def __init__(self, groups: SupportsIndex) -> None:
        """The layer that calls `gg.nn.channel_shuffle`, whose options it takes."""

class ELU(FunctionLayer):
    alpha: ArrayLike
    def __init__(self, alpha: ArrayLike = 1.0) -> None:
        """The layer that calls `gg.nn.elu`, whose options it takes."""

class Fold(FunctionLayer):
    output_size: Shape
    kernel_size: Shape
    dilation: Shape
    padding: Shape | str
    stride: Shape
    def __init__(
        self,
        output_size: Shape,
        kernel_size: Shape,
        dilation: Shape = 1,
        padding: Shape | str = 0,
        stride: Shape = 1,
    ) -> None:
        """The layer that calls `gg.nn.fold`, whose options it takes."""

class GEGLU(FunctionLayer):
    axis: Axis
    def __init__(self, axis: Axis = -1) -> None:
        """The layer that calls `gg.nn.geglu`, whose options it takes."""

class GELU(FunctionLayer):
    approximate: str
    def __init__(self, approximate: str = "none") -> None:
        """The layer that calls `gg.nn.gelu`, whose options it takes."""

class GLU(FunctionLayer):
    axis: Axis
    def __init__(self, axis: Axis = -1) -> None:
        """The layer that calls `gg.nn.glu`, whose options it takes."""

class Hardshrink(FunctionLayer):
    lambd: ArrayLike
    def __init__(self, lambd: ArrayLike = 0.5) -> None:
        """The layer that calls `gg.nn.hardshrink`, whose options it takes."""

class Hardsigmoid(FunctionLayer):
    def __init__(self) -> None:
        """The layer that calls `gg.nn.hardsigmoid`, whose options it takes."""

class Hardswish(FunctionLayer):
    def __init__(self) -> None:
        """The layer that calls `gg.nn.hardswish`, whose options it takes."""

class Hardtanh(FunctionLayer):
    min_val: ArrayLike
    max_val: ArrayLike
    def __init__(self, min_val: ArrayLike = -1.0, max_val: ArrayLike = 1.0) -> None:
        """The layer that calls `gg.nn.hardtanh`, whose options it takes."""

class LPPool1d(FunctionLayer):
    norm_type: ArrayLike
    kernel_size: Shape
    stride: Shape | None
    ceil_mode: bool
    def __init__(
        self,
        norm_type: ArrayLike,
        kernel_size: Shape,
        stride: Shape | None = None,
        ceil_mode: bool = False,
    ) -> None:
        """The layer that calls `gg.nn.lp_pool1d`, whose options it takes."""

class LPPool2d(FunctionLayer):
    norm_type: ArrayLike
    kernel_size: Shape
    stride: Shape | None
    ceil_mode: bool
    def __init__(
        self,
        norm_type: ArrayLike,
        kernel_size: Shape,
        stride: Shape | None = None,
        ceil_mode: bool = False,
    ) -> None:
        """The layer that calls `gg.nn.lp_pool2d`, whose options it takes."""

class LPPool3d(FunctionLayer):
    norm_type: ArrayLike
    kernel_size: Shape
    stride: Shape | None
    ceil_mode: bool
    def __init__(
        self,
        norm_type: ArrayLike,
        kernel_size: Shape,
        stride: Shape | None = None,
        ceil_mode: bool = False,
    ) -> None:
        """The layer that calls `gg.nn.lp_pool3d`, whose options it takes."""

class LeakyReLU(FunctionLayer):
    negative_slope: ArrayLike
    def __init__(self, negative_slope: ArrayLike = 0.01) -> None:
        """The layer that calls `gg.nn.leaky_relu`, whose options it takes."""

class LocalResponseNorm(FunctionLayer):
    size: Shape
    alpha: ArrayLike
    beta: ArrayLike
    k: ArrayLike
    axis: Axis
    def __init__(
        self,
        size: Shape,
        *,
        alpha: ArrayLike = 0.0001,
        beta: ArrayLike = 0.75,
        k: ArrayLike = 1.0,
        axis: Axis = 1,
    ) -> None:
        """The layer that calls `gg.nn.local_response_norm`, whose options it takes."""

class LogSigmoid(FunctionLayer):
    def __init__(self) -> None:
        """The layer that calls `gg.nn.log_sigmoid`, whose options it takes."""

class LogSoftmax(FunctionLayer):
    axis: Axis
    def __init__(self, axis: Axis = -1) -> None:
        """The layer that calls `gg.nn.log_softmax`, whose options it takes."""

class MaxPool1d(FunctionLayer):
    kernel_size: Shape
    stride: Shape | None
    padding: Shape | str
    dilation: Shape
    ceil_mode: bool
    def __init__(
        self,
        kernel_size: Shape,
        stride: Shape | None = None,
        padding: Shape | str = 0,
        dilation: Shape = 1,
        ceil_mode: bool = False,
    ) -> None:
        """The layer that calls `gg.nn.max_pool1d`, whose options it takes."""

class MaxPool2d(FunctionLayer):
    kernel_size: Shape
    stride: Shape | None
    padding: Shape | str
    dilation: Shape
    ceil_mode: bool
    def __init__(
        self,
        kernel_size: Shape,
        stride: Shape | None = None,
        padding: Shape | str = 0,
        dilation: Shape = 1,
        ceil_mode: bool = False,
    ) -> None:
        """The layer that calls `gg.nn.max_pool2d`, whose options it takes."""

class MaxPool3d(FunctionLayer):
    kernel_size: Shape
    stride: Shape | None
    padding: Shape | str
    dilation: Shape
    ceil_mode: bool
    def __init__(
        self,
        kernel_size: Shape,
        stride: Shape | None = None,
        padding: Shape | str = 0,
        dilation: Shape = 1,
        ceil_mode: bool = False,
    ) -> None:
        """The layer that calls `gg.nn.max_pool3d`, whose options it takes."""

class Mish(FunctionLayer):
    def __init__(self) -> None:
        """The layer that calls `gg.nn.mish`, whose options it takes."""

class Normalize(FunctionLayer):
    p: ArrayLike
    axis: Axis
    eps: ArrayLike
    def __init__(self, p: ArrayLike = 2.0, axis: Axis = 1, *, eps: ArrayLike = 1e-12) -> None:
        """The layer that calls `gg.nn.normalize`, whose options it takes."""

class PixelShuffle(FunctionLayer):
    upscale_factor: SupportsIndex
    def __init__(self, upscale_factor: SupportsIndex) -> None:
        """The layer that calls `gg.nn.pixel_shuffle`, whose options it takes."""

class PixelUnshuffle(FunctionLayer):
    downscale_factor: SupportsIndex
    def __init__(self, downscale_factor: SupportsIndex) -> None:
        """The layer that calls `gg.nn.pixel_unshuffle`, whose options it takes."""

class QuickGELU(FunctionLayer):
    def __init__(self) -> None:
        """The layer that calls `gg.nn.quick_gelu`, whose options it takes."""

class ReGLU(FunctionLayer):
    axis: Axis
    def __init__(self, axis: Axis = -1) -> None:
        """The layer that calls `gg.nn.reglu`, whose options it takes."""

class ReLU(FunctionLayer):
    def __init__(self) -> None:
        """The layer that calls `gg.nn.relu`, whose options it takes."""

class ReLU6(FunctionLayer):
    def __init__(self) -> None:
        """The layer that calls `gg.nn.relu6`, whose options it takes."""

class SELU(FunctionLayer):
    def __init__(self) -> None:
        """The layer that calls `gg.nn.selu`, whose options it takes."""

class SiLU(FunctionLayer):
    def __init__(self) -> None:
        """The layer that calls `gg.nn.silu`, whose options it takes."""

class Sigmoid(FunctionLayer):
    def __init__(self) -> None:
        """The layer that calls `gg.nn.sigmoid`, whose options it takes."""

class Softmax(FunctionLayer):
    axis: Axis
    def __init__(self, axis: Axis = -1) -> None:
        """The layer that calls `gg.nn.softmax`, whose options it takes."""

class Softmin(FunctionLayer):
    axis: Axis
    def __init__(self, axis: Axis = -1) -> None:
        """The layer that calls `gg.nn.softmin`, whose options it takes."""

class Softplus(FunctionLayer):
    beta: ArrayLike
    def __init__(self, beta: ArrayLike = 1.0) -> None:
        """The layer that calls `gg.nn.softplus`, whose options it takes."""

class Softshrink(FunctionLayer):
    lambd: ArrayLike
    def __init__(self, lambd: ArrayLike = 0.5) -> None:
        """The layer that calls `gg.nn.softshrink`, whose options it takes."""

class Softsign(FunctionLayer):
    def __init__(self) -> None:
        """The layer that calls `gg.nn.softsign`, whose options it takes."""

class Sparsemax(FunctionLayer):
    axis: Axis
    def __init__(self, axis: Axis = -1) -> None:
        """The layer that calls `gg.nn.sparsemax`, whose options it takes."""

class SquaredReLU(FunctionLayer):
    def __init__(self) -> None:
        """The layer that calls `gg.nn.squared_relu`, whose options it takes."""

class SwiGLU(FunctionLayer):
    axis: Axis
    def __init__(self, axis: Axis = -1) -> None:
        """The layer that calls `gg.nn.swiglu`, whose options it takes."""

class Tanh(FunctionLayer):
    def __init__(self) -> None:
        """The layer that calls `gg.nn.tanh`, whose options it takes."""

class Tanhshrink(FunctionLayer):
    def __init__(self) -> None:
        """The layer that calls `gg.nn.tanhshrink`, whose options it takes."""

class Threshold(FunctionLayer):
    threshold: ArrayLike
    value: ArrayLike
    def __init__(self, threshold: ArrayLike, value: ArrayLike) -> None:
        """The layer that calls `gg.nn.threshold`, whose options it takes."""

class Unfold(FunctionLayer):
    kernel_size: Shape
    dilation: Shape
    padding: Shape | str
    stride: Shape
    def __init__(
        self, kernel_size: Shape, dilation: Shape = 1, padding: Shape | str = 0, stride: Shape = 1
    ) -> None:
        """The layer that calls `gg.nn.unfold`, whose options it takes."""

class Upsample(FunctionLayer):
    size: Shape | None
    scale_factor: Any
    mode: str
    align_corners: bool
    recompute_scale_factor: bool
    antialias: bool
    def __init__(
        self,
        size: Shape | None = None,
        scale_factor: Any = None,
        mode: str = "nearest",
        align_corners: bool = False,
        recompute_scale_factor: bool = False,
        antialias: bool = False,
    ) -> None:
        """The layer that calls `gg.nn.interpolate`, whose options it takes."""

def adaptive_avg_pool1d(x: ArrayLike, /, output_size: Shape) -> Tensor:
    """Means of a fixed number of windows along one axis; with one window, global average
    pooling.
    """

def adaptive_avg_pool2d(x: ArrayLike, /, output_size: Shape) -> Tensor:
    """Means of a fixed number of windows of images; with one window, global average pooling."""

def adaptive_avg_pool3d(x: ArrayLike, /, output_size: Shape) -> Tensor:
    """Means of a fixed number of windows of volumes; with one window, global average pooling."""

def adaptive_max_pool1d(x: ArrayLike, /, output_size: Shape) -> Tensor:
    """Largest elements of a fixed number of windows along one axis."""

def adaptive_max_pool2d(x: ArrayLike, /, output_size: Shape) -> Tensor:
    """Largest elements of a fixed number of windows of images."""

def adaptive_max_pool3d(x: ArrayLike, /, output_size: Shape) -> Tensor:
    """Largest elements of a fixed number of windows of volumes."""

def affine_grid(theta: ArrayLike, /, size: Shape, align_corners: bool = False) -> Tensor:
    """Places of a result's elements in its source, under affine maps: for `grid_sample`."""

def alpha_dropout(
    x: ArrayLike, p: float = 0.5, *, training: bool = True, generator: Generator | None = None
) -> Tensor:
    """Dropout that keeps mean 0 and variance 1: for networks of `selu`."""

def avg_pool1d(
    x: ArrayLike,
    /,
    kernel_size: Shape,
    stride: Shape | None = None,
    padding: Shape | str = 0,
    ceil_mode: bool = False,
    count_include_pad: bool = True,
    divisor_override: Any = None,
) -> Tensor:
    """Mean of each window along one axis."""

def avg_pool2d(
    x: ArrayLike,
    /,
    kernel_size: Shape,
    stride: Shape | None = None,
    padding: Shape | str = 0,
    ceil_mode: bool = False,
    count_include_pad: bool = True,
    divisor_override: Any = None,
) -> Tensor:
    """Mean of each window of images."""

def avg_pool3d(
    x: ArrayLike,
    /,
    kernel_size: Shape,
    stride: Shape | None = None,
    padding: Shape | str = 0,
    ceil_mode: bool = False,
    count_include_pad: bool = True,
    divisor_override: Any = None,
) -> Tensor:
    """Mean of each window of volumes."""

def batch_norm(
    x: ArrayLike,
    /,
    running_mean: ArrayLike | None = None,
    running_var: ArrayLike | None = None,
    weight: ArrayLike | None = None,
    bias: ArrayLike | None = None,
    *,
    training: bool = False,
    momentum: ArrayLike = 0.1,
    eps: ArrayLike = 1e-05,
    axis: Axis = 1,
) -> tuple[Tensor, Tensor, Tensor]:
    """Batch normalisation: (x - mean) / sqrt(var + eps) * weight + bias, for each channel."""

def bce_with_logits_loss(
    x: ArrayLike,
    y: ArrayLike,
    /,
    weight: ArrayLike | None = None,
    pos_weight: ArrayLike | None = None,
    *,
    reduction: str = "mean",
) -> Tensor:
    """Cross entropy of the sigmoid of scores, without overflow; with torch's options."""

def bilinear(
    x1: ArrayLike, x2: ArrayLike, weight: ArrayLike, /, bias: ArrayLike | None = None
) -> Tensor:
    """Sum over i and j of x1[i] weight[k, i, j] x2[j], plus bias[k]."""

def binary_cross_entropy(
    x: ArrayLike, y: ArrayLike, /, weight: ArrayLike | None = None, *, reduction: str = "mean"
) -> Tensor:
    """Cross entropy of probabilities. From scores use `bce_with_logits_loss`, which is exact."""

def binary_cross_entropy_with_logits(logits: ArrayLike, labels: ArrayLike, /) -> Tensor:
    """Cross entropy of the sigmoid of scores against probabilities, elementwise and exact."""

def cdist(x1: ArrayLike, x2: ArrayLike, /, *, p: ArrayLike = 2.0) -> Tensor:
    """Distances between all pairs of vectors of two sets."""

def celu(x: ArrayLike, /, alpha: ArrayLike = 1.0) -> Tensor:
    """`x` where it is positive, else alpha * (exp(x / alpha) - 1): smooth for any `alpha`."""

def channel_shuffle(x: ArrayLike, /, groups: SupportsIndex) -> Tensor:
    """Reorder channels: the first of each group, then the second of each, and so on."""

def conv1d(
    x: ArrayLike,
    weight: ArrayLike,
    bias: ArrayLike | None = None,
    stride: Shape = 1,
    padding: Shape | str = 0,
    dilation: Shape = 1,
    groups: SupportsIndex = 1,
) -> Tensor:
    """Convolution along one axis: a layer's weighted sums over windows."""

def conv2d(
    x: ArrayLike,
    weight: ArrayLike,
    bias: ArrayLike | None = None,
    stride: Shape = 1,
    padding: Shape | str = 0,
    dilation: Shape = 1,
    groups: SupportsIndex = 1,
) -> Tensor:
    """Convolution of images: a layer's weighted sums over windows."""

def conv3d(
    x: ArrayLike,
    weight: ArrayLike,
    bias: ArrayLike | None = None,
    stride: Shape = 1,
    padding: Shape | str = 0,
    dilation: Shape = 1,
    groups: SupportsIndex = 1,
) -> Tensor:
    """Convolution of volumes: a layer's weighted sums over windows."""

def conv_transpose1d(
    x: ArrayLike,
    weight: ArrayLike,
    bias: ArrayLike | None = None,
    stride: Shape = 1,
    padding: Shape | str = 0,
    output_padding: Shape = 0,
    groups: SupportsIndex = 1,
    dilation: Shape = 1,
) -> Tensor:
    """Transposed convolution along one axis: the gradient of `conv1d` by its input, as a layer."""

def conv_transpose2d(
    x: ArrayLike,
    weight: ArrayLike,
    bias: ArrayLike | None = None,
    stride: Shape = 1,
    padding: Shape | str = 0,
    output_padding: Shape = 0,
    groups: SupportsIndex = 1,
    dilation: Shape = 1,
) -> Tensor:
    """Transposed convolution of images: the gradient of `conv2d` by its input, as a layer."""

def conv_transpose3d(
    x: ArrayLike,
    weight: ArrayLike,
    bias: ArrayLike | None = None,
    stride: Shape = 1,
    padding: Shape | str = 0,
    output_padding: Shape = 0,
    groups: SupportsIndex = 1,
    dilation: Shape = 1,
) -> Tensor:
    """Transposed convolution of volumes: the gradient of `conv3d` by its input, as a layer."""

def cosine_embedding_loss(
    x1: ArrayLike,
    x2: ArrayLike,
    y: ArrayLike,
    /,
    *,
    margin: ArrayLike = 0.0,
    reduction: str = "mean",
) -> Tensor:
    """1 - cos where the label is 1, max(cos - margin, 0) where it is -1."""

def cosine_similarity(
    x1: ArrayLike, x2: ArrayLike, /, axis: Axis = 1, *, eps: ArrayLike = 1e-08
) -> Tensor:
    """Cosine of the angle between vectors along an axis."""

def cross_entropy(
    x: ArrayLike,
    labels: ArrayLike,
    /,
    weight: ArrayLike | None = None,
    *,
    ignore_index: SupportsIndex = -100,
    reduction: str = "mean",
    label_smoothing: ArrayLike = 0.0,
) -> Tensor:
    """Cross entropy of the softmax of scores, against class numbers or probabilities."""

def ctc_loss(
    log_probs: ArrayLike,
    targets: ArrayLike,
    input_lengths: ArrayLike,
    target_lengths: ArrayLike,
    /,
    *,
    blank: SupportsIndex = 0,
    reduction: str = "mean",
    zero_infinity: bool = False,
) -> Tensor:
    """Connectionist temporal classification: label sequences that are shorter than the input."""

def dropout(
    x: ArrayLike,
    p: float = 0.5,
    *,
    training: bool = True,
    noise_shape: Any = None,
    generator: Generator | None = None,
) -> Tensor:
    """Set elements to 0 with probability `p`, and multiply the others by 1 / (1 - p)."""

def elu(x: ArrayLike, /, alpha: ArrayLike = 1.0) -> Tensor:
    """`x` where it is positive, else alpha * (exp(x) - 1)."""

def embedding(
    indices: ArrayLike,
    weight: ArrayLike,
    /,
    *,
    padding_idx: SupportsIndex | None = None,
    sparse: bool = False,
) -> Tensor:
    """Rows of a table of vectors."""

def embedding_bag(
    indices: ArrayLike,
    weight: ArrayLike,
    /,
    per_sample_weights: ArrayLike | None = None,
    *,
    mode: str = "mean",
    padding_idx: SupportsIndex | None = None,
    sparse: bool = False,
) -> Tensor:
    """Sums, means or maxima of rows of a table: one for each bag of indices."""

def fold(
    x: ArrayLike,
    /,
    output_size: Shape,
    kernel_size: Shape,
    dilation: Shape = 1,
    padding: Shape | str = 0,
    stride: Shape = 1,
) -> Tensor:
    """Images from their patches, which add up where they overlap (col2im): the adjoint of
    `unfold`.
    """

def gaussian_nll_loss(
    x: ArrayLike,
    y: ArrayLike,
    var: ArrayLike,
    /,
    *,
    full: bool = False,
    eps: ArrayLike = 1e-06,
    reduction: str = "mean",
) -> Tensor:
    """Negative log-likelihood of normal distributions with means and variances."""

def geglu(x: ArrayLike, /, axis: Axis = -1) -> Tensor:
    """`gelu` of the first half of an array times the second."""

def gelu(x: ArrayLike, /, approximate: str = "none") -> Tensor:
    """`x` times the probability that a standard normal number is below `x`."""

def glu(x: ArrayLike, /, axis: Axis = -1) -> Tensor:
    """The first half of an array times the sigmoid of the second."""

def grid_sample(
    x: ArrayLike,
    grid: ArrayLike,
    /,
    mode: str = "bilinear",
    padding_mode: str = "zeros",
    align_corners: bool = False,
) -> Tensor:
    """Values of images or volumes at arbitrary places, interpolated between elements."""

def group_norm(
    x: ArrayLike,
    /,
    weight: ArrayLike | None = None,
    bias: ArrayLike | None = None,
    *,
    num_groups: SupportsIndex,
    eps: ArrayLike = 1e-05,
    axis: Axis = 1,
) -> Tensor:
    """Group normalisation: `layer_norm` over groups of channels and all places."""

def gumbel_softmax(
    logits: ArrayLike,
    tau: float = 1.0,
    *,
    hard: bool = False,
    axis: int = -1,
    generator: Generator | None = None,
) -> Tensor:
    """Draw from the classes of a softmax, differentiably."""

def hardshrink(x: ArrayLike, /, lambd: ArrayLike = 0.5) -> Tensor:
    """`x` where it is farther than `lambd` from 0, else 0."""

def hardsigmoid(x: ArrayLike, /) -> Tensor:
    """x / 6 + 1/2, but not below 0 and not above 1. The gradient at both bounds is 0."""

def hardswish(x: ArrayLike, /) -> Tensor:
    """`x` times `hardsigmoid` of `x`. The gradient is 0 at -3 and 1 at 3."""

def hardtanh(x: ArrayLike, /, min_val: ArrayLike = -1.0, max_val: ArrayLike = 1.0) -> Tensor:
    """`x`, but not below `min_val` and not above `max_val`."""

def hinge_embedding_loss(
    x: ArrayLike, y: ArrayLike, /, *, margin: ArrayLike = 1.0, reduction: str = "mean"
) -> Tensor:
    """`x` where the label is 1, max(margin - x, 0) where it is -1."""

def hinge_loss(x: ArrayLike, y: ArrayLike, /, *, reduction: str = "mean") -> Tensor:
    """max(1 - x y, 0): scores should have the sign of their labels, and be 1 away from 0."""

def huber_loss(
    x: ArrayLike, y: ArrayLike, /, *, delta: ArrayLike = 1.0, reduction: str = "mean"
) -> Tensor:
    """Half the squares of differences below `delta`, straight lines beyond."""

def instance_norm(
    x: ArrayLike,
    /,
    weight: ArrayLike | None = None,
    bias: ArrayLike | None = None,
    *,
    eps: ArrayLike = 1e-05,
    axis: Axis = 1,
) -> Tensor:
    """Instance normalisation: `layer_norm` over the places of each example and channel."""

def interpolate(
    x: ArrayLike,
    /,
    size: Shape | None = None,
    scale_factor: Any = None,
    mode: str = "nearest",
    align_corners: bool = False,
    recompute_scale_factor: bool = False,
    antialias: bool = False,
) -> Tensor:
    """Resize signals, images or volumes, as torch does."""

def is_training() -> bool:
    """Whether this thread or asyncio task is inside a `training` block."""

def kl_div(
    x: ArrayLike, y: ArrayLike, /, *, reduction: str = "mean", log_target: bool = False
) -> Tensor:
    """Kullback-Leibler divergence: y (log(y) - x), and 0 where y is 0."""

def kl_div_loss(
    x: ArrayLike, y: ArrayLike, /, *, reduction: str = "mean", log_target: bool = False
) -> Tensor:
    """Kullback-Leibler divergence: y (log(y) - x), and 0 where y is 0."""

def l1_loss(x: ArrayLike, y: ArrayLike, /, *, reduction: str = "mean") -> Tensor:
    """Absolute differences; the gradient is 0 where they are 0."""

def layer_norm(
    x: ArrayLike,
    /,
    weight: ArrayLike | None = None,
    bias: ArrayLike | None = None,
    *,
    axis: Axis = -1,
    eps: ArrayLike = 1e-05,
) -> Tensor:
    """Layer normalisation: (x - mean) / sqrt(var + eps) * weight + bias."""

def leaky_relu(x: ArrayLike, /, negative_slope: ArrayLike = 0.01) -> Tensor:
    """`x` where it is positive, else `negative_slope` times `x`."""

def linear(x: ArrayLike, weight: ArrayLike, /, bias: ArrayLike | None = None) -> Tensor:
    """Multiply by a transposed matrix and add a bias: x @ weight.T + bias."""

def load_torch(
    module: Module,
    source: str | PathLike[str] | Mapping[str, Any],
    *,
    names: Any = None,
    as_is: str | Sequence[str] = (),
    strict: bool = True,
) -> TorchReport:
    """Load the weights of a torch model into a Module of the same structure: all, or none."""

def local_response_norm(
    x: ArrayLike,
    /,
    size: Shape,
    *,
    alpha: ArrayLike = 0.0001,
    beta: ArrayLike = 0.75,
    k: ArrayLike = 1.0,
    axis: Axis = 1,
) -> Tensor:
    """Divide by (k + alpha * mean square of the neighbouring channels) ** beta."""

def log_cosh_loss(x: ArrayLike, y: ArrayLike, /, *, reduction: str = "mean") -> Tensor:
    """log(cosh(x - y)): half the square of a small difference, |x - y| - log(2) of a large one."""

def log_sigmoid(x: ArrayLike, /) -> Tensor:
    """Logarithm of the sigmoid of `x`, exact where the sigmoid itself would be 0 or 1."""

def log_softmax(x: ArrayLike, /, axis: Axis = -1) -> Tensor:
    """Logarithm of the softmax along an axis, exact where the softmax itself would be 0."""

def lp_pool1d(
    x: ArrayLike,
    /,
    norm_type: ArrayLike,
    kernel_size: Shape,
    stride: Shape | None = None,
    ceil_mode: bool = False,
) -> Tensor:
    """The root ``sum(x**p) ** (1 / p)`` of each window along one axis. The gradient at 0 is 0."""

def lp_pool2d(
    x: ArrayLike,
    /,
    norm_type: ArrayLike,
    kernel_size: Shape,
    stride: Shape | None = None,
    ceil_mode: bool = False,
) -> Tensor:
    """The root ``sum(x**p) ** (1 / p)`` of each window of images. The gradient at 0 is 0."""

def lp_pool3d(
    x: ArrayLike,
    /,
    norm_type: ArrayLike,
    kernel_size: Shape,
    stride: Shape | None = None,
    ceil_mode: bool = False,
) -> Tensor:
    """The root ``sum(x**p) ** (1 / p)`` of each window of volumes. The gradient at 0 is 0."""

def margin_ranking_loss(
    x1: ArrayLike,
    x2: ArrayLike,
    y: ArrayLike,
    /,
    *,
    margin: ArrayLike = 0.0,
    reduction: str = "mean",
) -> Tensor:
    """max(margin - y (x1 - x2), 0): one of two scores should be larger."""

def masked_softmax(
    x: ArrayLike, /, mask: ArrayLike | None = None, *, is_causal: bool = False
) -> Tensor:
    """Softmax along the last axis of the scores that a mask keeps."""

def max_pool1d(
    x: ArrayLike,
    /,
    kernel_size: Shape,
    stride: Shape | None = None,
    padding: Shape | str = 0,
    dilation: Shape = 1,
    ceil_mode: bool = False,
) -> Tensor:
    """Largest element of each window along one axis; the gradient goes to the first of equal
    ones.
    """

def max_pool2d(
    x: ArrayLike,
    /,
    kernel_size: Shape,
    stride: Shape | None = None,
    padding: Shape | str = 0,
    dilation: Shape = 1,
    ceil_mode: bool = False,
) -> Tensor:
    """Largest element of each window of images; the gradient goes to the first of equal ones."""

def max_pool3d(
    x: ArrayLike,
    /,
    kernel_size: Shape,
    stride: Shape | None = None,
    padding: Shape | str = 0,
    dilation: Shape = 1,
    ceil_mode: bool = False,
) -> Tensor:
    """Largest element of each window of volumes; the gradient goes to the first of equal ones."""

def mish(x: ArrayLike, /) -> Tensor:
    """`x` times tanh(softplus(x))."""

def mse(x: ArrayLike, y: ArrayLike, /, *, reduction: str = "mean") -> Tensor:
    """Squared differences. The mean of no elements is NaN."""

def mse_loss(x: ArrayLike, y: ArrayLike, /, *, reduction: str = "mean") -> Tensor:
    """Squared differences. The mean of no elements is NaN."""

def multi_margin_loss(
    x: ArrayLike,
    labels: ArrayLike,
    /,
    weight: ArrayLike | None = None,
    *,
    p: ArrayLike = 1,
    margin: ArrayLike = 1.0,
    reduction: str = "mean",
) -> Tensor:
    """Mean over the other classes of max(margin - x[label] + x[class], 0) ** p."""

def multilabel_margin_loss(
    x: ArrayLike, labels: ArrayLike, /, *, reduction: str = "mean"
) -> Tensor:
    """Sum of max(1 - x[own class] + x[other class], 0) over all such pairs, over the classes."""

def multilabel_soft_margin_loss(
    x: ArrayLike, y: ArrayLike, /, weight: ArrayLike | None = None, *, reduction: str = "mean"
) -> Tensor:
    """Binary cross entropy of scores, as a mean over the classes of each example."""

def nll_loss(
    x: ArrayLike,
    labels: ArrayLike,
    /,
    weight: ArrayLike | None = None,
    *,
    ignore_index: SupportsIndex = -100,
    reduction: str = "mean",
) -> Tensor:
    """Negative log-likelihood of class numbers, from the logarithms of their probabilities."""

def normalize(
    x: ArrayLike, /, p: ArrayLike = 2.0, axis: Axis = 1, *, eps: ArrayLike = 1e-12
) -> Tensor:
    """Vectors of length 1 along an axis: x / max(norm(x), eps)."""

def one_hot(x: ArrayLike, /, num_classes: SupportsIndex, *, dtype: DTypeLike = "float32") -> Tensor:
    """Integers as rows that are 1 at that position and 0 elsewhere."""

def pairwise_distance(
    x1: ArrayLike,
    x2: ArrayLike,
    /,
    *,
    p: ArrayLike = 2.0,
    eps: ArrayLike = 1e-06,
    keepdims: bool = False,
) -> Tensor:
    """Norm of x1 - x2 + eps along the last axis."""

def pixel_shuffle(x: ArrayLike, /, upscale_factor: SupportsIndex) -> Tensor:
    """Channels as pixels: each r * r channels become blocks of one channel."""

def pixel_unshuffle(x: ArrayLike, /, downscale_factor: SupportsIndex) -> Tensor:
    """Pixels as channels: each block of r * r pixels becomes r * r channels."""

def poisson_nll_loss(
    x: ArrayLike,
    y: ArrayLike,
    /,
    *,
    log_input: bool = True,
    full: bool = False,
    eps: ArrayLike = 1e-08,
    reduction: str = "mean",
) -> Tensor:
    """Negative log-likelihood of counts under a Poisson distribution."""

def prelu(x: ArrayLike, weight: ArrayLike, /, *, axis: Axis = 1) -> Tensor:
    """`x` where it is positive, else `x` times a learned slope."""

def quick_gelu(x: ArrayLike, /) -> Tensor:
    """`x` times the sigmoid of 1.702 times `x`: an approximation of `gelu`."""

def reglu(x: ArrayLike, /, axis: Axis = -1) -> Tensor:
    """`relu` of the first half of an array times the second."""

def relu(x: ArrayLike, /) -> Tensor:
    """`x` where it is positive, else 0. The gradient at 0 is 0."""

def relu6(x: ArrayLike, /) -> Tensor:
    """`x`, but not below 0 and not above 6. The gradient at both bounds is 0."""

def rms_norm(
    x: ArrayLike, /, weight: ArrayLike | None = None, *, axis: Axis = -1, eps: Any = None
) -> Tensor:
    """Root-mean-square normalisation: x / sqrt(mean(x * x) + eps) * weight."""

def rotary_embedding(
    x: ArrayLike, positions: ArrayLike | None = None, *, base: float = 10000.0
) -> Tensor:
    """Rotate pairs of features by angles proportional to the position."""

def scaled_dot_product_attention(
    query: ArrayLike,
    key: ArrayLike,
    value: ArrayLike,
    attn_mask: ArrayLike | None = None,
    dropout_p: float = 0.0,
    is_causal: bool = False,
    *,
    scale: float | None = None,
    enable_gqa: bool = False,
    generator: Generator | None = None,
) -> Tensor:
    """softmax(query @ key^T * scale) @ value: each query's mean of the values."""

def selu(x: ArrayLike, /) -> Tensor:
    """1.0507 times `x` where it is positive, else 1.7581 times (exp(x) - 1). The gradient at 0
    is 1.0507.
    """

def sigmoid(x: ArrayLike, /) -> Tensor:
    """1 / (1 + exp(-x)), without overflow."""

def sigmoid_focal_loss(
    x: ArrayLike,
    y: ArrayLike,
    /,
    *,
    alpha: ArrayLike = 0.25,
    gamma: ArrayLike = 2.0,
    reduction: str = "none",
) -> Tensor:
    """Binary cross entropy of scores in which well-classified examples count less."""

def silu(x: ArrayLike, /) -> Tensor:
    """`x` times its sigmoid, also called swish."""

def smooth_l1_loss(
    x: ArrayLike, y: ArrayLike, /, *, beta: ArrayLike = 1.0, reduction: str = "mean"
) -> Tensor:
    """Absolute differences, rounded by a parabola below `beta`: `huber_loss` over `beta`."""

def soft_margin_loss(x: ArrayLike, y: ArrayLike, /, *, reduction: str = "mean") -> Tensor:
    """log(1 + exp(-x y)), without overflow."""

def softmax(x: ArrayLike, /, axis: Axis = -1) -> Tensor:
    """Exponentials divided by their sum along an axis; NaN where all scores along it are -inf."""

def softmax_cross_entropy(logits: ArrayLike, labels: ArrayLike, /, axis: Axis = -1) -> Tensor:
    """Cross entropy of the softmax of scores, against a probability for each class."""

def softmin(x: ArrayLike, /, axis: Axis = -1) -> Tensor:
    """`softmax` of -x: the smallest numbers get the largest shares."""

def softplus(x: ArrayLike, /, beta: ArrayLike = 1.0) -> Tensor:
    """log(1 + exp(beta * x)) / beta, without overflow. The gradient is the sigmoid of beta * x."""

def softshrink(x: ArrayLike, /, lambd: ArrayLike = 0.5) -> Tensor:
    """`x` moved by `lambd` towards 0, but not across it."""

def softsign(x: ArrayLike, /) -> Tensor:
    """x / (1 + |x|)."""

def sparse_softmax_cross_entropy(
    logits: ArrayLike,
    labels: ArrayLike,
    /,
    *,
    ignore_index: SupportsIndex | None = None,
    label_smoothing: ArrayLike = 0.0,
    dtype: DTypeLike = None,
) -> Tensor:
    """Cross entropy of the softmax of scores along the last axis, against class numbers."""

def sparsemax(x: ArrayLike, /, axis: Axis = -1) -> Tensor:
    """The probabilities nearest to the scores: like `softmax`, but with exact zeros."""

def squared_hinge_loss(x: ArrayLike, y: ArrayLike, /, *, reduction: str = "mean") -> Tensor:
    """The square of `hinge_loss`, elementwise."""

def squared_relu(x: ArrayLike, /) -> Tensor:
    """The square of `relu`."""

def swiglu(x: ArrayLike, /, axis: Axis = -1) -> Tensor:
    """`silu` of the first half of an array times the second."""

def tanh(x: ArrayLike, /, **ufunc: Unpack[UfuncKeywords]) -> Tensor:
    """Hyperbolic tangent."""

def tanhshrink(x: ArrayLike, /) -> Tensor:
    """`x` minus its hyperbolic tangent."""

def threshold(x: ArrayLike, /, threshold: ArrayLike, value: ArrayLike) -> Tensor:
    """`x` where it is above a threshold, else a value."""

def triplet_margin_loss(
    anchor: ArrayLike,
    positive: ArrayLike,
    negative: ArrayLike,
    /,
    *,
    margin: ArrayLike = 1.0,
    p: ArrayLike = 2.0,
    eps: ArrayLike = 1e-06,
    swap: bool = False,
    reduction: str = "mean",
) -> Tensor:
    """max(margin + |anchor - positive| - |anchor - negative|, 0), of vectors."""

def unfold(
    x: ArrayLike,
    /,
    kernel_size: Shape,
    dilation: Shape = 1,
    padding: Shape | str = 0,
    stride: Shape = 1,
) -> Tensor:
    """Patches of images as columns (im2col)."""
