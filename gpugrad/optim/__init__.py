"""Optimizers: update Variables in place from their gradients."""

from gpugrad.optim.adam import Adam, AdamW
from gpugrad.optim.clip import all_finite, clip_by_global_norm
from gpugrad.optim.groups import ABOVE_0, BELOW_1, NOT_NEGATIVE
from gpugrad.optim.loss_scale import LossScale, LossScaleOptimizer
from gpugrad.optim.optimizer import Optimizer
from gpugrad.optim.sgd import SGD

__all__ = [
    "ABOVE_0",
    "BELOW_1",
    "NOT_NEGATIVE",
    "SGD",
    "Adam",
    "AdamW",
    "LossScale",
    "LossScaleOptimizer",
    "Optimizer",
    "all_finite",
    "clip_by_global_norm",
]
