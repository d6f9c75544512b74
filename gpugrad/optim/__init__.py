"""Optimizers: update Variables in place from their gradients."""

from gpugrad.optim import schedules
from gpugrad.optim.adafactor import Adafactor
from gpugrad.optim.adagrad import Adadelta, Adagrad
from gpugrad.optim.adam import Adam, AdamW
from gpugrad.optim.adamax import Adamax, NAdam, RAdam
from gpugrad.optim.averages import EMA, SWA
from gpugrad.optim.clip import all_finite, clip_by_global_norm
from gpugrad.optim.groups import ABOVE_0, BELOW_1, NOT_NEGATIVE, ranges
from gpugrad.optim.lamb import LAMB, LARS
from gpugrad.optim.lbfgs import LBFGS
from gpugrad.optim.lion import Lion
from gpugrad.optim.loss_scale import LossScale, LossScaleOptimizer
from gpugrad.optim.muon import Muon
from gpugrad.optim.natural_gradient import NaturalGradient
from gpugrad.optim.optimizer import Optimizer
from gpugrad.optim.rmsprop import RMSprop
from gpugrad.optim.sgd import SGD

__all__ = [
    "ABOVE_0",
    "BELOW_1",
    "EMA",
    "LAMB",
    "LARS",
    "LBFGS",
    "NOT_NEGATIVE",
    "SGD",
    "SWA",
    "Adadelta",
    "Adafactor",
    "Adagrad",
    "Adam",
    "AdamW",
    "Adamax",
    "Lion",
    "LossScale",
    "LossScaleOptimizer",
    "Muon",
    "NAdam",
    "NaturalGradient",
    "Optimizer",
    "RAdam",
    "RMSprop",
    "all_finite",
    "clip_by_global_norm",
    "ranges",
    "schedules",
]
