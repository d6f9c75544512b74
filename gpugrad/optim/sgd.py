"""Stochastic gradient descent."""

from __future__ import annotations

from typing import Any, NamedTuple, Unpack

from gpugrad.core.backend import READINGS
from gpugrad.errors import ArgumentError
from gpugrad.kernels.by_hand.optim import sgd_settings
from gpugrad.ops.arrays.index_rules import add_at
from gpugrad.optim.arrays import add_scaled
from gpugrad.optim.clip import Limits
from gpugrad.optim.optimizer import Optimizer, Schedule
from gpugrad.optim.states import State

__all__ = ["SGD"]


# ---- steps of one Variable, by numbers in the order in which their kernels take them


class _Step(NamedTuple):
    stride: float

    @property
    def kernel(self) -> str:
        return "sgd"

    def __call__(self, p: Any, g: Any, t: Any) -> None:
        add_scaled(p, self.stride, g, t)


class _MomentumStep(NamedTuple):
    add: float
    stride: float

    @property
    def kernel(self) -> str:
        return "momentum"

    def __call__(self, p: Any, g: Any, v: Any, t: Any) -> None:
        add_scaled(v, self.add, g, t)
        add_scaled(p, self.stride, v, t)


class _NesterovStep(NamedTuple):
    add: float
    stride: float
    stride_of_gradient: float

    @property
    def kernel(self) -> str:
        return "nesterov"

    def __call__(self, p: Any, g: Any, v: Any, t: Any) -> None:
        add_scaled(v, self.add, g, t)
        add_scaled(p, self.stride, v, t)
        add_scaled(p, self.stride_of_gradient, g, t)


class SGD(Optimizer):
    """Stochastic gradient descent, optionally with momentum.

    With gradient g and learning rate lr::

        velocity = momentum * velocity + g
        variable -= lr * velocity                       # nesterov=False
        variable -= lr * (g + momentum * velocity)      # nesterov=True

    Args:
        learning_rate: a number, or a function of the number of steps taken so far.
        momentum: decay factor of the velocity, from 0 to below 1.
        nesterov: whether to use Nesterov momentum, which looks one velocity ahead.
        clipnorm, clipvalue, global_clipnorm: limits of the gradients, as for `Optimizer`.

    >>> gg.optim.SGD(0.1, momentum=0.9)
    SGD(learning_rate=0.1, iterations=0)
    """

    def __init__(
        self,
        learning_rate: Schedule = 0.01,
        momentum: float = 0.0,
        nesterov: bool = False,
        name: str | None = None,
        **limits: Unpack[Limits],
    ) -> None:
        super().__init__(learning_rate, name, **limits)
        if not 0 <= momentum < 1:
            raise ArgumentError(f"SGD: momentum must be in [0, 1), got {momentum}.")
        if nesterov and not momentum:
            raise ArgumentError("SGD: nesterov=True needs a momentum above 0.")
        self.momentum, self.nesterov = float(momentum), bool(nesterov)
        self.slots = ("velocity",) if momentum else ()
        self.kernel = "sgd_momentum" if momentum else "sgd"
        self.takes_rows = not momentum

    def _begin(self, state: State, rate: float) -> Any:
        state.step += 1
        if not self.momentum:
            return _Step(-rate)
        velocity = state.averages["velocity"]
        velocity.decay(self.momentum)
        scale = velocity.scale
        if self.nesterov:
            return _NesterovStep(1 / scale, -rate * self.momentum * scale, -rate)
        return _MomentumStep(1 / scale, -rate * scale)

    def _settings(self, step: int, rate: float) -> tuple[float, ...]:
        return sgd_settings(rate, self.momentum, self.nesterov)

    def _move_rows(self, data: Any, indices: Any, values: Any, rate: float) -> None:
        # a row that is named twice moves twice
        add_at("apply_gradients", READINGS[type(data)], data, (indices,), values * -rate)
