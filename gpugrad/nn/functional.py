"""Activations, convolutions, norms, attention and losses, under torch's names.

Each function is also in `gpugrad.nn`: ``gg.nn.conv2d`` is ``gg.nn.functional.conv2d``.

>>> print(gg.nn.glu(gg.constant([1.0, 2.0, 0.0, 0.0])))
[0.5 1. ]
"""

# fmt: off
# ruff: noqa: I001  # packed lines
from gpugrad.core.known_as import answer_missing
from gpugrad.ops.nn.activations import (
    relu, relu6, selu, sigmoid, log_sigmoid, softsign, silu, mish, quick_gelu, squared_relu,
    hardsigmoid, hardswish, tanhshrink,
)
from gpugrad.ops.nn.activations_adjustable import (
    hardtanh, elu, celu, softplus, hardshrink, softshrink, threshold_ as threshold,
    leaky_relu, gelu,
)
from gpugrad.ops.nn.pooling_adaptive import (
    adaptive_avg_pool1d, adaptive_avg_pool2d, adaptive_avg_pool3d, adaptive_max_pool1d,
    adaptive_max_pool2d, adaptive_max_pool3d,
)
from gpugrad.ops.nn.attention import masked_softmax, scaled_dot_product_attention
from gpugrad.ops.nn.pooling_average import (
    avg_pool1d, avg_pool2d, avg_pool3d, lp_pool1d, lp_pool2d, lp_pool3d,
)
from gpugrad.ops.nn.losses_binary import (
    binary_cross_entropy, binary_cross_entropy_with_logits, bce_with_logits_loss,
    sigmoid_focal_loss, multilabel_soft_margin_loss, multilabel_margin_loss,
)
from gpugrad.ops.nn.normalization_channels import (
    batch_norm, group_norm, instance_norm, local_response_norm,
)
from gpugrad.ops.nn.losses_class import nll_loss, cross_entropy
from gpugrad.ops.nn.cross_entropy import softmax_cross_entropy, sparse_softmax_cross_entropy
from gpugrad.ops.nn.convolution_layers import (
    conv1d, conv2d, conv3d, conv_transpose1d, conv_transpose2d, conv_transpose3d,
)
from gpugrad.ops.nn.distances import normalize, cosine_similarity, pairwise_distance, cdist
from gpugrad.ops.nn.dropout import dropout, alpha_dropout, gumbel_softmax
from gpugrad.ops.math.transcendental import tanh
from gpugrad.ops.nn.activations_gated import glu, swiglu, geglu, reglu, prelu, softmin, sparsemax
from gpugrad.ops.nn.layers import linear, bilinear, embedding, embedding_bag
from gpugrad.ops.nn.losses import (
    mse, mse_loss, l1_loss, huber_loss, smooth_l1_loss, log_cosh_loss,
    poisson_nll_loss, gaussian_nll_loss, kl_div_loss, kl_div_loss as kl_div,
)
from gpugrad.ops.nn.losses_margin import (
    hinge_loss, squared_hinge_loss, hinge_embedding_loss, soft_margin_loss, margin_ranking_loss,
    multi_margin_loss, cosine_embedding_loss, triplet_margin_loss,
)
from gpugrad.ops.nn.softmax import softmax, log_softmax, one_hot
from gpugrad.ops.nn.normalization import layer_norm, rms_norm
from gpugrad.ops.nn.patches import unfold, fold, pixel_shuffle, pixel_unshuffle, channel_shuffle
from gpugrad.ops.nn.pooling_max import max_pool1d, max_pool2d, max_pool3d
from gpugrad.ops.nn.resample import interpolate
from gpugrad.ops.nn.losses_ctc import ctc_loss
from gpugrad.ops.nn.warp import affine_grid, grid_sample

__all__ = [
    "adaptive_avg_pool1d", "adaptive_avg_pool2d", "adaptive_avg_pool3d", "adaptive_max_pool1d",
    "adaptive_max_pool2d", "adaptive_max_pool3d", "affine_grid", "alpha_dropout", "avg_pool1d",
    "avg_pool2d", "avg_pool3d", "batch_norm", "bce_with_logits_loss", "bilinear",
    "binary_cross_entropy", "binary_cross_entropy_with_logits", "cdist", "celu",
    "channel_shuffle", "conv1d", "conv2d", "conv3d", "conv_transpose1d", "conv_transpose2d",
    "conv_transpose3d", "cosine_embedding_loss", "cosine_similarity", "cross_entropy", "ctc_loss",
    "dropout", "elu", "embedding", "embedding_bag", "fold", "gaussian_nll_loss", "geglu", "gelu",
    "glu", "grid_sample", "group_norm", "gumbel_softmax", "hardshrink", "hardsigmoid",
    "hardswish", "hardtanh", "hinge_embedding_loss", "hinge_loss", "huber_loss", "instance_norm",
    "interpolate", "kl_div", "kl_div_loss", "l1_loss", "layer_norm", "leaky_relu", "linear",
    "local_response_norm", "log_cosh_loss", "log_sigmoid", "log_softmax", "lp_pool1d",
    "lp_pool2d", "lp_pool3d", "margin_ranking_loss", "masked_softmax", "max_pool1d", "max_pool2d",
    "max_pool3d", "mish", "mse", "mse_loss", "multi_margin_loss", "multilabel_margin_loss",
    "multilabel_soft_margin_loss", "nll_loss", "normalize", "one_hot", "pairwise_distance",
    "pixel_shuffle", "pixel_unshuffle", "poisson_nll_loss", "prelu", "quick_gelu", "reglu",
    "relu", "relu6", "rms_norm", "scaled_dot_product_attention", "selu", "sigmoid",
    "sigmoid_focal_loss", "silu", "smooth_l1_loss", "soft_margin_loss", "softmax",
    "softmax_cross_entropy", "softmin", "softplus", "softshrink", "softsign",
    "sparse_softmax_cross_entropy", "sparsemax", "squared_hinge_loss", "squared_relu", "swiglu",
    "tanh", "tanhshrink", "threshold", "triplet_margin_loss", "unfold",
]

answer_missing(__name__)


def __dir__() -> list[str]:
    return __all__
