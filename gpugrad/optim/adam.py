"""Adam, and Adam with weight decay."""

from __future__ import annotations

import math
from typing import Any, NamedTuple, Unpack

from gpugrad.core.backend import READINGS
from gpugrad.errors import ArgumentError
from gpugrad.kernels.by_hand.optim import adam_settings
from gpugrad.optim.arrays import add_scaled
from gpugrad.optim.clip import Limits
from gpugrad.optim.optimizer import Optimizer, Schedule
from gpugrad.optim.states import State

__all__ = ["Adam", "AdamW"]


class _Step(NamedTuple):
    """A step of one Variable, by numbers in the order in which its kernels take them."""

    add_m: float
    add_v: float
    epsilon: float
    stride: float
    keep: float

    @property
    def kernel(self) -> str:
        return "adam"

    def __call__(self, p: Any, g: Any, m: Any, v: Any, t: Any) -> None:
        lib = READINGS[type(m)].lib
        add_scaled(m, self.add_m, g, t)
        lib.square(t, t)
        add_scaled(v, self.add_v, t, t)
        lib.sqrt(v, t)
        lib.add(t, self.epsilon, t)
        lib.divide(m, t, t)
        if self.keep != 1:
            lib.multiply(p, self.keep, p)
        add_scaled(p, self.stride, t, t)


class Adam(Optimizer):
    """Adam: steps of about the learning rate, independent of the gradient's size.

    With gradient g, learning rate lr, and t the number of steps of the Variable::

        m = beta_1 * m + (1 - beta_1) * g
        v = beta_2 * v + (1 - beta_2) * g**2
        variable -= lr * (m / (1 - beta_1**t)) / (sqrt(v / (1 - beta_2**t)) + epsilon)

    This is algorithm 1 of Kingma and Ba 2015, and what torch computes. (Keras adds epsilon before
    it corrects v, so its `epsilon` acts like one that is up to 1 / sqrt(1 - beta_2) times as
    large.)

    Args:
        learning_rate: a number, or a function of the number of steps taken so far.
        beta_1, beta_2: decay factors of the averages of g and of g**2, from 0 to below 1.
        epsilon: above 0; keeps steps finite where the gradient is 0.
        clipnorm, clipvalue, global_clipnorm: limits of the gradients, as for `Optimizer`.

    >>> gg.optim.Adam(0.01)
    Adam(learning_rate=0.01, iterations=0)
    """

    slots = ("m", "v")
    kernel = "adam"

    def __init__(
        self,
        learning_rate: Schedule = 0.001,
        beta_1: float = 0.9,
        beta_2: float = 0.999,
        epsilon: float = 1e-8,
        name: str | None = None,
        **limits: Unpack[Limits],
    ) -> None:
        super().__init__(learning_rate, name, **limits)
        for what, beta in (("beta_1", beta_1), ("beta_2", beta_2)):
            if not 0 <= beta < 1:
                raise ArgumentError(
                    f"{self.name}: {what} must be at least 0 and below 1, got {beta}."
                )
        if not 0 < epsilon < math.inf:
            raise ArgumentError(f"{self.name}: epsilon must be above 0, got {epsilon}.")
        self.beta_1, self.beta_2 = float(beta_1), float(beta_2)
        self.epsilon = float(epsilon)
        self.weight_decay = 0.0

    def _begin(self, state: State, rate: float) -> Any:
        state.step += 1
        mean, square = state.averages["m"], state.averages["v"]
        mean.decay(self.beta_1)
        square.decay(self.beta_2)
        # m and v are stored without their scales; these factors apply scale and bias correction
        m_scale = mean.scale / (1 - self.beta_1**state.step)
        v_root = math.sqrt(square.scale / (1 - self.beta_2**state.step))
        add_m = (1 - self.beta_1) / mean.scale
        add_v = (1 - self.beta_2) / square.scale / add_m**2  # of (add_m * g)**2
        keep = 1 - rate * self.weight_decay
        return _Step(add_m, add_v, self.epsilon / v_root, -rate * m_scale / v_root, keep)

    def _settings(self, step: int, rate: float) -> tuple[float, ...]:
        return adam_settings(rate, self.beta_1, self.beta_2, self.epsilon, step, self.weight_decay)


class AdamW(Adam):
    """Adam with decoupled weight decay.

    Each step first multiplies the Variable by 1 - learning_rate * weight_decay, as in torch:
    Loshchilov and Hutter 2019, "Decoupled Weight Decay Regularization".

    Args:
        learning_rate: a number, or a function of the number of steps taken so far.
        weight_decay: 0 or above.
        beta_1, beta_2, epsilon: as for `Adam`.
        clipnorm, clipvalue, global_clipnorm: limits of the gradients, as for `Optimizer`.

    >>> gg.optim.AdamW(0.01, weight_decay=0.1)
    AdamW(learning_rate=0.01, iterations=0)
    """

    def __init__(
        self,
        learning_rate: Schedule = 0.001,
        weight_decay: float = 0.004,
        beta_1: float = 0.9,
        beta_2: float = 0.999,
        epsilon: float = 1e-8,
        name: str | None = None,
        **limits: Unpack[Limits],
    ) -> None:
        super().__init__(learning_rate, beta_1, beta_2, epsilon, name, **limits)
        if not 0 <= weight_decay < math.inf:
            raise ArgumentError(f"AdamW: weight_decay must be 0 or above, got {weight_decay}.")
        self.weight_decay = float(weight_decay)
