"""Adagrad, Adadelta and RMSprop: gradients divided by the root of their squares."""

from __future__ import annotations

from typing import Any, Unpack

from gpugrad.core.arguments import ABOVE_0, BELOW_1, FLAG, NOT_NEGATIVE, takes
from gpugrad.optim.groups import Options, ranges
from gpugrad.optim.optimizer import Optimizer
from gpugrad.optim.step import Schedule


class Adagrad(Optimizer):
    """Adagrad: gradients divided by the root of the sum of all their squares.

    With gradient g, learning rate lr, and t the number of steps of the Variable::

        total = total + g**2                        # at first initial_accumulator_value
        variable -= lr / (1 + (t - 1) * learning_rate_decay) * g / (sqrt(total) + epsilon)

    IndexedSlices update only their rows if there is no weight decay. Duchi, Hazan and Singer 2011,
    "Adaptive Subgradient Methods for Online Learning and Stochastic Optimization".

    Args:
        learning_rate: a number, or a function of the number of steps taken so far.
        initial_accumulator_value: the first value of the sum, 0 or above.
        epsilon: above 0; keeps steps finite where the gradient is 0.
        learning_rate_decay: 0 or above.
        weight_decay: 0 or above; the factor of an L2 penalty, half the squared norm.
        **options: limits of the gradients, groups and others, as for `Optimizer`.

    >>> gg.optim.Adagrad(0.01)
    Adagrad(learning_rate=0.01, iterations=0)
    """

    hyper = ranges(
        initial_accumulator_value=NOT_NEGATIVE,
        epsilon=ABOVE_0,
        learning_rate_decay=NOT_NEGATIVE,
        weight_decay=NOT_NEGATIVE,
    )
    flags = ("decays", "begins_above_0")
    slots = ("total",)

    def __init__(
        self,
        learning_rate: Schedule = 0.01,
        initial_accumulator_value: float = 0.0,
        epsilon: float = 1e-10,
        learning_rate_decay: float = 0.0,
        weight_decay: float = 0.0,
        name: str | None = None,
        **options: Unpack[Options],
    ) -> None:
        self.initial_accumulator_value, self.epsilon = initial_accumulator_value, epsilon
        self.learning_rate_decay, self.weight_decay = learning_rate_decay, weight_decay
        super().__init__(learning_rate, name, **options)

    @property
    def begins_above_0(self) -> bool:
        """Whether a sum begins with a number above 0."""
        return self.any_of("initial_accumulator_value")

    def numbers(self, h: Any, rate: float, step: int) -> dict[str, float]:
        """The settings, and the rate of this step."""
        return super().numbers(h, rate / (1 + (step - 1) * h.learning_rate_decay), step)

    def formula(self, xp: Any, s: Any, p: Any, g: Any, total: Any) -> Any:
        """The step of one element."""
        if self.decays:
            g = g + s.weight_decay * p
        total = total + xp.square(g)
        whole = total + s.initial_accumulator_value if self.begins_above_0 else total
        return p - s.rate * (g / (xp.sqrt(whole) + s.epsilon)), total

    def takes_rows(self, h: Any) -> bool:
        """Whether there is no weight decay."""
        return not h.weight_decay


class Adadelta(Optimizer):
    """Adadelta: steps of the size of earlier steps.

    With gradient g and learning rate lr::

        v = rho * v + (1 - rho) * g**2
        delta = sqrt(u + epsilon) / sqrt(v + epsilon) * g
        u = rho * u + (1 - rho) * delta**2
        variable -= lr * delta

    Zeiler 2012, "ADADELTA: An Adaptive Learning Rate Method".

    Args:
        learning_rate: a number, or a function of the number of steps taken so far; 1 in the paper.
        rho: decay factor of the averages, from 0 to below 1.
        epsilon: above 0.
        weight_decay: 0 or above; the factor of an L2 penalty, half the squared norm.
        **options: limits of the gradients, groups and others, as for `Optimizer`.

    >>> gg.optim.Adadelta(0.5)
    Adadelta(learning_rate=0.5, iterations=0)
    """

    hyper = ranges(rho=BELOW_1, epsilon=ABOVE_0, weight_decay=NOT_NEGATIVE)
    flags = ("decays",)
    slots = ("v", "u")

    def __init__(
        self,
        learning_rate: Schedule = 1.0,
        rho: float = 0.9,
        epsilon: float = 1e-6,
        weight_decay: float = 0.0,
        name: str | None = None,
        **options: Unpack[Options],
    ) -> None:
        self.rho, self.epsilon, self.weight_decay = rho, epsilon, weight_decay
        super().__init__(learning_rate, name, **options)

    def numbers(self, h: Any, rate: float, step: int) -> dict[str, float]:
        """The settings, and the part of the gradient in the averages."""
        return {**super().numbers(h, rate, step), "add": 1 - h.rho}

    def formula(self, xp: Any, s: Any, p: Any, g: Any, v: Any, u: Any) -> Any:
        """The step of one element."""
        if self.decays:
            g = g + s.weight_decay * p
        v = s.rho * v + s.add * xp.square(g)
        delta = xp.sqrt(u + s.epsilon) / xp.sqrt(v + s.epsilon) * g
        u = s.rho * u + s.add * xp.square(delta)
        return p - s.rate * delta, v, u


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
        """The settings, and the part of the gradient in the averages."""
        return {**super().numbers(h, rate, step), "add": 1 - h.rho}

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
