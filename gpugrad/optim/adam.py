"""Adam, and Adam with weight decay."""

from __future__ import annotations

import math
from typing import Any, Unpack

from gpugrad.core.arguments import ABOVE_0, BELOW_1, FLAG, NOT_NEGATIVE, takes
from gpugrad.optim.groups import Options, ranges
from gpugrad.optim.optimizer import Optimizer
from gpugrad.optim.step import Schedule


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
        amsgrad: whether the denominator uses the largest v so far: Reddi et al. 2018, "On the
            Convergence of Adam and Beyond".
        **options: limits of the gradients, groups and others, as for `Optimizer`.

    IndexedSlices become dense, as in Keras: rows without a gradient still move by their averages.

    >>> gg.optim.Adam(0.01)
    Adam(learning_rate=0.01, iterations=0)
    """

    hyper = ranges(beta_1=BELOW_1, beta_2=BELOW_1, epsilon=ABOVE_0)
    flags = ("amsgrad",)

    @takes(amsgrad=FLAG)
    def __init__(
        self,
        learning_rate: Schedule = 0.001,
        beta_1: float = 0.9,
        beta_2: float = 0.999,
        epsilon: float = 1e-8,
        amsgrad: bool = False,
        name: str | None = None,
        **options: Unpack[Options],
    ) -> None:
        self.beta_1, self.beta_2, self.epsilon = beta_1, beta_2, epsilon
        self.amsgrad = amsgrad
        self.slots = ("m", "v", "v_max") if amsgrad else ("m", "v")
        super().__init__(learning_rate, name, **options)

    def numbers(self, h: Any, rate: float, step: int) -> dict[str, float]:
        """The decay factors, and the rate and epsilon with the bias corrections."""
        root = math.sqrt(1 - h.beta_2**step)
        return {
            "beta_1": h.beta_1,
            "add_1": 1 - h.beta_1,
            "beta_2": h.beta_2,
            "add_2": 1 - h.beta_2,
            "keep": 1 - rate * (h.weight_decay if "weight_decay" in self.hyper else 0.0),
            "stride": rate * root / (1 - h.beta_1**step),
            "epsilon": h.epsilon * root,
        }

    def formula(self, xp: Any, s: Any, p: Any, g: Any, m: Any, v: Any, *slots: Any) -> Any:
        """The step of one element."""
        m = s.beta_1 * m + s.add_1 * g
        v = s.beta_2 * v + s.add_2 * xp.square(g)
        if not self.amsgrad:
            return s.keep * p - s.stride * (m / (xp.sqrt(v) + s.epsilon)), m, v
        v_max = xp.maximum(slots[0], v)
        return s.keep * p - s.stride * (m / (xp.sqrt(v_max) + s.epsilon)), m, v, v_max


class AdamW(Adam):
    """Adam with decoupled weight decay.

    Each step first multiplies the Variable by 1 - learning_rate * weight_decay, as in torch:
    Loshchilov and Hutter 2019, "Decoupled Weight Decay Regularization".

    Args:
        learning_rate: a number, or a function of the number of steps taken so far.
        weight_decay: 0 or above.
        beta_1, beta_2, epsilon, amsgrad: as for `Adam`.
        **options: limits of the gradients, groups and others, as for `Optimizer`.

    Biases and scales of norms usually do not decay:

    >>> small = lambda name, variable: variable.ndim < 2
    >>> gg.optim.AdamW(0.01, weight_decay=0.1, groups=[(small, {"weight_decay": 0.0})])
    AdamW(learning_rate=0.01, iterations=0)
    """

    hyper = ranges(**Adam.hyper, weight_decay=NOT_NEGATIVE)

    def __init__(
        self,
        learning_rate: Schedule = 0.001,
        weight_decay: float = 0.004,
        beta_1: float = 0.9,
        beta_2: float = 0.999,
        epsilon: float = 1e-8,
        amsgrad: bool = False,
        name: str | None = None,
        **options: Unpack[Options],
    ) -> None:
        self.weight_decay = weight_decay
        super().__init__(learning_rate, beta_1, beta_2, epsilon, amsgrad, name, **options)
