"""Lion."""

from __future__ import annotations

from typing import Any, Unpack

from gpugrad.core.arguments import BELOW_1, NOT_NEGATIVE
from gpugrad.optim.groups import Options, ranges
from gpugrad.optim.optimizer import Optimizer
from gpugrad.optim.step import Schedule


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
        return {
            "beta_1": h.beta_1,
            "add_1": 1 - h.beta_1,
            "beta_2": h.beta_2,
            "add_2": 1 - h.beta_2,
            "keep": 1 - rate * h.weight_decay,
            "rate": rate,
        }

    def formula(self, xp: Any, s: Any, p: Any, g: Any, m: Any) -> Any:
        """The step of one element."""
        update = xp.sign(s.beta_1 * m + s.add_1 * g)
        return s.keep * p - s.rate * update, s.beta_2 * m + s.add_2 * g
