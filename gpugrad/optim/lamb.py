"""LAMB and LARS: steps whose size follows the norm of each Variable."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any, Unpack

import numpy as np

from gpugrad.core.arguments import ABOVE_0, BELOW_1, NOT_NEGATIVE
from gpugrad.core.variable import Variable
from gpugrad.kernels.codegen.update_kernel import NORMS
from gpugrad.optim.adam import averages, decay_factors
from gpugrad.optim.groups import Options, ranges
from gpugrad.optim.optimizer import Optimizer
from gpugrad.optim.step import Schedule

_UNKNOWN = dict.fromkeys(NORMS, 0.0)


class _Normed(Optimizer):
    """An optimizer whose formula reads ``s.p_norm`` and ``s.u_norm``.

    A subclass implements `measure`, which returns ``(u, *slots)``.
    """

    def measure(self, *args: Any, **keywords: Any) -> Sequence[Any]:
        """The direction u and the new averages from ``(xp, s, p, g, *slots)``."""
        raise NotImplementedError(f"{type(self).__name__} does not implement measure.")

    def by_array(self, variable: Variable) -> bool:
        """Whether the Variable is on the CPU; a GPU has kernels."""
        return variable.device.kind == "cpu"

    def move_array(self, xp: Any, s: Any, p: Any, g: Any, averages: Mapping[str, Any]) -> Any:
        p, g = p.reshape(-1), g.reshape(-1)
        for name, value in vars(s).items():
            setattr(s, name, p.dtype.type(value))
        u, *slots = self.measure(xp, s, p, g, *averages.values())
        s.p_norm, s.u_norm = (
            p.dtype.type(math.sqrt(np.dot(a, a))) for a in (x.astype(np.float64) for x in (p, u))
        )
        p, *slots = self.formula(xp, s, p, g, *slots)
        for average, new in zip(averages.values(), slots, strict=True):
            average[...] = new
        return p


def _ratio(xp: Any, s: Any, above: Any, below: Any) -> Any:
    """Above / below; 1 where a norm is 0."""
    return xp.where((s.p_norm > 0) & (s.u_norm > 0), above / xp.where(below > 0, below, 1), 1)


class LAMB(_Normed):
    """LAMB: Adam's steps, scaled to the norm of each Variable, for very large batches.

    With gradient g, learning rate lr, and t the number of steps of the Variable::

        m = beta_1 * m + (1 - beta_1) * g
        v = beta_2 * v + (1 - beta_2) * g**2
        u = m / (1 - beta_1**t) / (sqrt(v / (1 - beta_2**t)) + epsilon) + weight_decay * variable
        variable -= lr * norm(variable) / norm(u) * u       # lr * u if a norm is 0

    You et al. 2020, "Large Batch Optimization for Deep Learning: Training BERT in 76 Minutes". On a
    GPU a step is two launches.

    Args:
        learning_rate: a number, or a function of the number of steps taken so far.
        beta_1, beta_2, epsilon: as for `Adam`.
        weight_decay: 0 or above.
        **options: limits of the gradients, groups and others, as for `Optimizer`.

    >>> gg.optim.LAMB(0.01)
    LAMB(learning_rate=0.01, iterations=0)
    """

    hyper = ranges(beta_1=BELOW_1, beta_2=BELOW_1, epsilon=ABOVE_0, weight_decay=NOT_NEGATIVE)
    slots = ("m", "v")

    def __init__(
        self,
        learning_rate: Schedule = 0.001,
        beta_1: float = 0.9,
        beta_2: float = 0.999,
        epsilon: float = 1e-6,
        weight_decay: float = 0.01,
        name: str | None = None,
        **options: Unpack[Options],
    ) -> None:
        self.beta_1, self.beta_2, self.epsilon = beta_1, beta_2, epsilon
        self.weight_decay = weight_decay
        super().__init__(learning_rate, name, **options)

    def numbers(self, h: Any, rate: float, step: int) -> dict[str, float]:
        """The settings, with the bias corrections."""
        return {
            **super().numbers(h, rate, step),
            **decay_factors(h),
            "first": 1 / (1 - h.beta_1**step),
            "second": 1 / (1 - h.beta_2**step),
            **_UNKNOWN,
        }

    def _direction(self, xp: Any, s: Any, p: Any, m: Any, v: Any) -> Any:
        return s.first * m / (xp.sqrt(s.second * v) + s.epsilon) + s.weight_decay * p

    def measure(self, xp: Any, s: Any, p: Any, g: Any, m: Any, v: Any) -> Any:
        """The direction and the averages."""
        m, v = averages(xp, s, g, m, v)
        return self._direction(xp, s, p, m, v), m, v

    def formula(self, xp: Any, s: Any, p: Any, g: Any, m: Any, v: Any) -> Any:
        """The step of one element."""
        trust = _ratio(xp, s, s.p_norm, s.u_norm)
        return p - s.rate * trust * self._direction(xp, s, p, m, v), m, v


class LARS(_Normed):
    """LARS: momentum with steps scaled to the norm of each Variable, for very large batches.

    With gradient g and learning rate lr::

        trust = trust_coefficient * norm(variable) / (
            norm(g) + weight_decay * norm(variable) + epsilon)      # 1 if a norm is 0
        velocity = momentum * velocity + lr * trust * (g + weight_decay * variable)
        variable -= velocity

    You, Gitman and Ginsburg 2017, "Large Batch Training of Convolutional Networks". On a GPU a step
    is two launches.

    Args:
        learning_rate: a number, or a function of the number of steps taken so far.
        momentum: decay factor of the velocity, from 0 to below 1.
        weight_decay: 0 or above.
        trust_coefficient: above 0.
        epsilon: above 0.
        **options: limits of the gradients, groups and others, as for `Optimizer`.

    >>> gg.optim.LARS(0.1)
    LARS(learning_rate=0.1, iterations=0)
    """

    hyper = ranges(
        momentum=BELOW_1, weight_decay=NOT_NEGATIVE, trust_coefficient=ABOVE_0, epsilon=ABOVE_0
    )
    slots = ("velocity",)

    def __init__(
        self,
        learning_rate: Schedule = 0.1,
        momentum: float = 0.9,
        weight_decay: float = 0.0,
        trust_coefficient: float = 0.001,
        epsilon: float = 1e-9,
        name: str | None = None,
        **options: Unpack[Options],
    ) -> None:
        self.momentum, self.weight_decay = momentum, weight_decay
        self.trust_coefficient, self.epsilon = trust_coefficient, epsilon
        super().__init__(learning_rate, name, **options)

    def numbers(self, h: Any, rate: float, step: int) -> dict[str, float]:
        """The settings, and the norms, which the kernel fills in."""
        return {**super().numbers(h, rate, step), **_UNKNOWN}

    def measure(self, xp: Any, s: Any, p: Any, g: Any, velocity: Any) -> Any:
        """The gradient, whose norm the formula reads."""
        return g, velocity

    def formula(self, xp: Any, s: Any, p: Any, g: Any, velocity: Any) -> Any:
        """The step of one element."""
        below = s.u_norm + s.weight_decay * s.p_norm + s.epsilon
        trust = _ratio(xp, s, s.trust_coefficient * s.p_norm, below)
        velocity = s.momentum * velocity + s.rate * trust * (g + s.weight_decay * p)
        return p - velocity, velocity
