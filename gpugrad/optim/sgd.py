"""Stochastic gradient descent, and Lion: steps along a momentum, or along its sign."""

from __future__ import annotations

from typing import Any, Unpack

from gpugrad.core.arguments import BELOW_1, FLAG, NOT_NEGATIVE, takes
from gpugrad.core.backend import READINGS
from gpugrad.core.indexed_slices import IndexedSlices
from gpugrad.errors import ArgumentError
from gpugrad.ops.arrays.index_rules import add_at
from gpugrad.optim.adam import decay_factors
from gpugrad.optim.groups import Options, ranges
from gpugrad.optim.optimizer import Optimizer
from gpugrad.optim.state import State
from gpugrad.optim.step import Schedule


class SGD(Optimizer):
    """Stochastic gradient descent, optionally with momentum.

    With gradient g and learning rate lr::

        g = g + weight_decay * variable
        velocity = momentum * velocity + g
        variable -= lr * velocity                       # nesterov=False
        variable -= lr * (g + momentum * velocity)      # nesterov=True

    Args:
        learning_rate: a number, or a function of the number of steps taken so far.
        momentum: decay factor of the velocity, from 0 to below 1.
        nesterov: whether to use Nesterov momentum, which looks one velocity ahead.
        weight_decay: 0 or above; the factor of an L2 penalty, half the squared norm.
        **options: limits of the gradients, groups and others, as for `Optimizer`.

    >>> gg.optim.SGD(0.1, momentum=0.9)
    SGD(learning_rate=0.1, iterations=0)
    """

    hyper = ranges(momentum=BELOW_1, weight_decay=NOT_NEGATIVE)
    flags = ("nesterov", "decays", "slots")

    @takes(nesterov=FLAG)
    def __init__(
        self,
        learning_rate: Schedule = 0.01,
        momentum: float = 0.0,
        nesterov: bool = False,
        weight_decay: float = 0.0,
        name: str | None = None,
        **options: Unpack[Options],
    ) -> None:
        self.momentum, self.nesterov, self.weight_decay = momentum, nesterov, weight_decay
        super().__init__(learning_rate, name, **options)
        if self.any_of("momentum"):
            self.slots = ("velocity",)
        elif nesterov:
            raise ArgumentError(f"{self.name}: nesterov=True needs a momentum above 0.")

    def numbers(self, h: Any, rate: float, step: int) -> dict[str, float]:
        """The settings."""
        return {"rate": rate, "momentum": h.momentum, "weight_decay": h.weight_decay}

    def formula(self, xp: Any, s: Any, p: Any, g: Any, *slots: Any) -> tuple[Any, ...]:
        """The step of one element."""
        if self.decays:
            g = g + s.weight_decay * p
        if not slots:
            return (p - s.rate * g,)
        velocity = s.momentum * slots[0] + g
        if not self.nesterov:
            return p - s.rate * velocity, velocity
        return p - s.rate * s.momentum * velocity - s.rate * g, velocity

    def takes_rows(self, h: Any) -> bool:
        """Whether there is neither momentum nor weight decay."""
        return not (self.slots or h.weight_decay)

    def _move_rows(self, state: State, data: Any, rows: IndexedSlices, settings: Any) -> None:
        # the step is linear, so a row that is named twice moves twice
        xp, rate = READINGS[type(data)], settings[0]
        add_at("apply_gradients", xp, data, (rows.indices._data,), rows.values._data * -rate)


class Lion(Optimizer):
    """Lion: steps of the sign of a momentum, with half of Adam's memory.

    With gradient g and learning rate lr::

        update = sign(beta_1 * m + (1 - beta_1) * g)
        variable -= lr * (update + weight_decay * variable)
        m = beta_2 * m + (1 - beta_2) * g

    Every element moves by the learning rate, so that should be 3 to 10 times smaller than for
    AdamW, and the weight decay as many times larger. Chen et al. 2023, "Symbolic Discovery of
    Optimization Algorithms".

    Args:
        learning_rate: a number, or a function of the number of steps taken so far.
        beta_1, beta_2: decay factors of the momentum, for the step and for the next one.
        weight_decay: 0 or above.
        **options: limits of the gradients, groups and others, as for `Optimizer`.

    >>> gg.optim.Lion(0.001)
    Lion(learning_rate=0.001, iterations=0)
    """

    hyper = ranges(beta_1=BELOW_1, beta_2=BELOW_1, weight_decay=NOT_NEGATIVE)
    slots = ("m",)

    def __init__(
        self,
        learning_rate: Schedule = 0.0001,
        beta_1: float = 0.9,
        beta_2: float = 0.99,
        weight_decay: float = 0.0,
        name: str | None = None,
        **options: Unpack[Options],
    ) -> None:
        self.beta_1, self.beta_2, self.weight_decay = beta_1, beta_2, weight_decay
        super().__init__(learning_rate, name, **options)

    def numbers(self, h: Any, rate: float, step: int) -> dict[str, float]:
        """The settings."""
        return {**decay_factors(h), "keep": 1 - rate * h.weight_decay, "rate": rate}

    def formula(self, xp: Any, s: Any, p: Any, g: Any, m: Any) -> Any:
        """The step of one element."""
        update = xp.sign(s.beta_1 * m + s.add_1 * g)
        return s.keep * p - s.rate * update, s.beta_2 * m + s.add_2 * g
