"""Optimizers: update Variables in place from their gradients.

- `SGD`, with momentum; `LARS` for large batches
- `Adam`, `AdamW`, `NAdam`, `RAdam`, `Adamax`, `Lion`; `LAMB` for large batches
- `RMSprop`, `Adagrad`, `Adadelta`
- `Adafactor` and `Muon`, which treat matrices as such
- `LBFGS`, a quasi-Newton method; `NaturalGradient`, for Gaussian posteriors
- `EMA` and `SWA`: averages of weights
- `schedules`: learning rates as functions of the step
- `LossScaleOptimizer` and `LossScale`: for gradients in float16

All but `LBFGS` and `NaturalGradient` take the options of `Optimizer`: groups of settings, clipping,
accumulation of gradients, and skipping of steps that are not finite.
"""

from gpugrad.core.arguments import ABOVE_0, BELOW_1, NOT_NEGATIVE
from gpugrad.core.known_as import answer_missing
from gpugrad.optim import schedules
from gpugrad.optim.adafactor import Adafactor
from gpugrad.optim.adagrad import Adadelta, Adagrad, RMSprop
from gpugrad.optim.adam import Adam, Adamax, AdamW, NAdam, RAdam
from gpugrad.optim.averages import EMA, SWA
from gpugrad.optim.clip import all_finite, clip_by_global_norm
from gpugrad.optim.groups import ranges
from gpugrad.optim.lamb import LAMB, LARS
from gpugrad.optim.lbfgs import LBFGS
from gpugrad.optim.loss_scale import LossScale, LossScaleOptimizer
from gpugrad.optim.muon import Muon
from gpugrad.optim.natural_gradient import NaturalGradient
from gpugrad.optim.optimizer import Optimizer
from gpugrad.optim.sgd import SGD, Lion

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


answer_missing(__name__)


def __dir__() -> list[str]:
    return __all__
