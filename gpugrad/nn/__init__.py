"""Layers: objects that own Variables and find those of the objects inside them.

The functions (`relu`, `softmax`, losses) are ops of the top level; they are here again so that
``gg.nn`` has what a model needs.
"""

from gpugrad.nn import initializers
from gpugrad.nn.layers import Dense, Flatten, Sequential
from gpugrad.nn.module import Module
from gpugrad.ops.activations import (
    elu,
    gelu,
    hardtanh,
    leaky_relu,
    log_sigmoid,
    mish,
    relu,
    relu6,
    selu,
    sigmoid,
    silu,
    softplus,
    softsign,
)
from gpugrad.ops.elementwise import tanh
from gpugrad.ops.nn import (
    binary_cross_entropy_with_logits,
    log_softmax,
    mse,
    one_hot,
    softmax,
    softmax_cross_entropy,
    sparse_softmax_cross_entropy,
)

__all__ = [
    "Dense",
    "Flatten",
    "Module",
    "Sequential",
    "binary_cross_entropy_with_logits",
    "elu",
    "gelu",
    "hardtanh",
    "initializers",
    "leaky_relu",
    "log_sigmoid",
    "log_softmax",
    "mish",
    "mse",
    "one_hot",
    "relu",
    "relu6",
    "selu",
    "sigmoid",
    "silu",
    "softmax",
    "softmax_cross_entropy",
    "softplus",
    "softsign",
    "sparse_softmax_cross_entropy",
    "tanh",
]
