"""RMSprop."""

from __future__ import annotations

from typing import Any, Unpack

from gpugrad.core.arguments import ABOVE_0, BELOW_1, FLAG, NOT_NEGATIVE, takes
from gpugrad.optim.groups import Options, ranges
from gpugrad.optim.optimizer import Optimizer
from gpugrad.optim.step import Schedule


class RMSprop(Optimizer):
    """RMSprop: gradients divided by the root of a decaying average of their squares.

    With gradient g and learning rate lr, as in torch::

        v = rho * v + (1 - rho) * g**2
        mean = rho * mean + (1 - rho) * g                   # centered=True
        update = g / (sqrt(v - mean**2) + epsilon)          # mean = 0 if centered=False
        velocity = momentum * velocity + update             # momentum > 0
        variable -= lr * velocity

    Hinton 2012, lecture 6e of "Neural Networks for Machine Learning"; centered: Graves 2013,
    "Generating Sequences With Recurrent Neural Networks".

    Args:
        learning_rate: a number, or a function of the number of steps taken so far.
        rho: decay factor of the averages, from 0 to below 1.
        momentum: decay factor of the velocity, from 0 to below 1.
        epsilon: above 0; keeps steps finite where the gradient is 0.
        centered: whether to divide by the standard deviation in place of the root mean square.
        weight_decay: 0 or above; the factor of an L2 penalty, half the squared norm.
        **options: limits of the gradients, groups and others, as for `Optimizer`.

    >>> gg.optim.RMSprop(0.01)
    RMSprop(learning_rate=0.01, iterations=0)
    """

    hyper = ranges(rho=BELOW_1, momentum=BELOW_1, epsilon=ABOVE_0, weight_decay=NOT_NEGATIVE)
    flags = ("centered", "decays", "slots")

    @takes(centered=FLAG)
    def __init__(
        self,
        learning_rate: Schedule = 0.001,
        rho: float = 0.9,
        momentum: float = 0.0,
        epsilon: float = 1e-7,
        centered: bool = False,
        weight_decay: float = 0.0,
        name: str | None = None,
        **options: Unpack[Options],
    ) -> None:
        self.rho, self.momentum, self.epsilon = rho, momentum, epsilon
        self.centered, self.weight_decay = centered, weight_decay
        super().__init__(learning_rate, name, **options)
        self.slots = ("v",)
        if centered:
            self.slots += ("mean",)
        if self.any_of("momentum"):
            self.slots += ("velocity",)

    def numbers(self, h: Any, rate: float, step: int) -> dict[str, float]:
        """The settings."""
        return {
            "weight_decay": h.weight_decay,
            "rho": h.rho,
            "add": 1 - h.rho,
            "epsilon": h.epsilon,
            "momentum": h.momentum,
            "rate": rate,
        }

    def formula(self, xp: Any, s: Any, p: Any, g: Any, v: Any, *slots: Any) -> Any:
        """The step of one element."""
        if self.decays:
            g = g + s.weight_decay * p
        new = [s.rho * v + s.add * xp.square(g)]
        square = new[0]
        if self.centered:
            new.append(s.rho * slots[0] + s.add * g)
            # rounding may make it negative
            square = xp.maximum(square - xp.square(new[1]), 0.0)
        update = g / (xp.sqrt(square) + s.epsilon)
        if len(self.slots) > len(new):
            new.append(s.momentum * slots[-1] + update)
            update = new[-1]
        return p - s.rate * update, *new
