"""Adam and its variants: AdamW, NAdam, RAdam and Adamax."""

from __future__ import annotations

import functools
import math
from typing import Any, Unpack

from gpugrad.core.arguments import ABOVE_0, BELOW_1, FLAG, NOT_NEGATIVE, takes
from gpugrad.optim.groups import Options, ranges
from gpugrad.optim.optimizer import Optimizer
from gpugrad.optim.step import Schedule


def decay_factors(h: Any) -> dict[str, float]:
    """The parts of the old averages and of the gradient in the new averages."""
    return {"beta_1": h.beta_1, "add_1": 1 - h.beta_1, "beta_2": h.beta_2, "add_2": 1 - h.beta_2}


def averages(xp: Any, s: Any, g: Any, m: Any, v: Any) -> tuple[Any, Any]:
    """The new averages of the gradient and of its square."""
    return s.beta_1 * m + s.add_1 * g, s.beta_2 * v + s.add_2 * xp.square(g)


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
        self.beta_1, self.beta_2, self.epsilon, self.amsgrad = beta_1, beta_2, epsilon, amsgrad
        self.slots = ("m", "v", "v_max") if amsgrad else ("m", "v")
        super().__init__(learning_rate, name, **options)

    def numbers(self, h: Any, rate: float, step: int) -> dict[str, float]:
        """The decay factors, and the rate and epsilon with the bias corrections."""
        root = math.sqrt(1 - h.beta_2**step)
        return {
            **decay_factors(h),
            "keep": 1 - rate * (h.weight_decay if "weight_decay" in self.hyper else 0.0),
            "stride": rate * root / (1 - h.beta_1**step),
            "epsilon": h.epsilon * root,
        }

    def formula(self, xp: Any, s: Any, p: Any, g: Any, m: Any, v: Any, *slots: Any) -> Any:
        """The step of one element."""
        m, v = averages(xp, s, g, m, v)
        slots = tuple(xp.maximum(v_max, v) for v_max in slots)  # of AMSGrad
        square = slots[0] if slots else v
        return s.keep * p - s.stride * (m / (xp.sqrt(square) + s.epsilon)), m, v, *slots


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


class _Variant(Optimizer):
    """The settings that the variants share."""

    hyper = ranges(beta_1=BELOW_1, beta_2=BELOW_1, epsilon=ABOVE_0, weight_decay=NOT_NEGATIVE)
    flags = ("decays",)
    slots = ("m", "v")

    def __init__(
        self,
        learning_rate: Schedule = 0.002,
        beta_1: float = 0.9,
        beta_2: float = 0.999,
        epsilon: float = 1e-8,
        weight_decay: float = 0.0,
        name: str | None = None,
        **options: Unpack[Options],
    ) -> None:
        self.beta_1, self.beta_2, self.epsilon = beta_1, beta_2, epsilon
        self.weight_decay = weight_decay
        super().__init__(learning_rate, name, **options)

    def numbers(self, h: Any, rate: float, step: int) -> dict[str, float]:
        return {"weight_decay": h.weight_decay, **decay_factors(h)}

    def formula(self, xp: Any, s: Any, p: Any, g: Any, m: Any, v: Any) -> Any:
        """The step of one element."""
        if self.decays:
            g = g + s.weight_decay * p
        m, v = self._averages(xp, s, g, m, v)
        return p - self._step_of(xp, s, g, m, v), m, v

    def _step_of(self, xp: Any, s: Any, g: Any, m: Any, v: Any) -> Any:
        raise NotImplementedError(type(self).__name__)

    def _averages(self, xp: Any, s: Any, g: Any, m: Any, v: Any) -> tuple[Any, Any]:
        return averages(xp, s, g, m, v)


class NAdam(_Variant):
    """Adam with Nesterov momentum: Dozat 2016, "Incorporating Nesterov Momentum into Adam".

    The momentum warms up: in step t it is ``beta_1 * (1 - 0.96**(t * momentum_decay) / 2)``.

    Args:
        learning_rate: a number, or a function of the number of steps taken so far.
        beta_1, beta_2, epsilon: as for `Adam`.
        weight_decay: 0 or above; the factor of an L2 penalty, half the squared norm.
        momentum_decay: 0 or above.
        **options: limits of the gradients, groups and others, as for `Optimizer`.

    >>> gg.optim.NAdam(0.01)
    NAdam(learning_rate=0.01, iterations=0)
    """

    hyper = ranges(**_Variant.hyper, momentum_decay=NOT_NEGATIVE)

    def __init__(
        self,
        learning_rate: Schedule = 0.002,
        beta_1: float = 0.9,
        beta_2: float = 0.999,
        epsilon: float = 1e-8,
        weight_decay: float = 0.0,
        momentum_decay: float = 0.004,
        name: str | None = None,
        **options: Unpack[Options],
    ) -> None:
        self.momentum_decay = momentum_decay
        super().__init__(learning_rate, beta_1, beta_2, epsilon, weight_decay, name, **options)

    def numbers(self, h: Any, rate: float, step: int) -> dict[str, float]:
        """The decay factors, and the parts of the gradient and of the average in the step."""
        now, later = (warm_momentum(h.beta_1, h.momentum_decay, t) for t in (step, step + 1))
        product = momentum_product(h.beta_1, h.momentum_decay, step)
        root = math.sqrt(1 - h.beta_2**step)
        return {
            **super().numbers(h, rate, step),
            "of_gradient": rate * root * (1 - now) / (1 - product),
            "of_average": rate * root * later / (1 - product * later),
            "epsilon": h.epsilon * root,
        }

    def _step_of(self, xp: Any, s: Any, g: Any, m: Any, v: Any) -> Any:
        return (s.of_gradient * g + s.of_average * m) / (xp.sqrt(v) + s.epsilon)


def warm_momentum(beta: float, decay: float, step: int) -> float:
    """NAdam's momentum in a step."""
    return beta * (1 - 0.5 * 0.96 ** (step * decay))


@functools.lru_cache(maxsize=64)
def momentum_product(beta: float, decay: float, step: int) -> float:
    """The product of the momenta of steps 1 to `step`; it falls to 0."""
    product = 1.0
    for t in range(1, step + 1):
        product *= warm_momentum(beta, decay, t)
        if not product:
            break
    return product


class RAdam(_Variant):
    """Adam with a rectified variance, which needs no warm-up of the learning rate.

    While too few gradients were seen to estimate their variance, the step is that of momentum:
    Liu et al. 2020, "On the Variance of the Adaptive Learning Rate and Beyond".

    Args:
        learning_rate: a number, or a function of the number of steps taken so far.
        beta_1, beta_2, epsilon: as for `Adam`.
        weight_decay: 0 or above; the factor of an L2 penalty, half the squared norm.
        **options: limits of the gradients, groups and others, as for `Optimizer`.

    >>> gg.optim.RAdam(0.01)
    RAdam(learning_rate=0.01, iterations=0)
    """

    def numbers(self, h: Any, rate: float, step: int) -> dict[str, float]:
        """The decay factors, the rectified rate, and the part of the variance: 0 or 1."""
        power = h.beta_2**step
        longest = 2 / (1 - h.beta_2) - 1
        length = longest - 2 * step * power / (1 - power)  # of the average of g**2
        stride, variance, epsilon = rate / (1 - h.beta_1**step), 0.0, 1.0
        if length > 5:
            variance, epsilon = 1.0, h.epsilon
            rectified = (length - 4) * (length - 2) * longest
            rectified /= (longest - 4) * (longest - 2) * length
            stride *= math.sqrt((1 - power) * rectified)
        return {
            **super().numbers(h, rate, step),
            "stride": stride,
            "variance": variance,
            "epsilon": epsilon,
        }

    def _step_of(self, xp: Any, s: Any, g: Any, m: Any, v: Any) -> Any:
        return s.stride * (m / (s.variance * xp.sqrt(v) + s.epsilon))


class Adamax(_Variant):
    """Adam with the largest decayed gradient in place of the root of their squares.

    With gradient g, learning rate lr, and t the number of steps of the Variable::

        m = beta_1 * m + (1 - beta_1) * g
        v = maximum(beta_2 * v, abs(g) + epsilon)
        variable -= lr / (1 - beta_1**t) * m / v

    This is algorithm 2 of Kingma and Ba 2015.

    Args:
        learning_rate: a number, or a function of the number of steps taken so far.
        beta_1, beta_2, epsilon: as for `Adam`.
        weight_decay: 0 or above; the factor of an L2 penalty, half the squared norm.
        **options: limits of the gradients, groups and others, as for `Optimizer`.

    >>> gg.optim.Adamax(0.01)
    Adamax(learning_rate=0.01, iterations=0)
    """

    def numbers(self, h: Any, rate: float, step: int) -> dict[str, float]:
        """The decay factors, and the rate with the bias correction."""
        stride = rate / (1 - h.beta_1**step)
        return {**super().numbers(h, rate, step), "stride": stride, "epsilon": h.epsilon}

    def _averages(self, xp: Any, s: Any, g: Any, m: Any, v: Any) -> tuple[Any, Any]:
        m = s.beta_1 * m + s.add_1 * g
        return m, xp.maximum(s.beta_2 * v, xp.absolute(g) + s.epsilon)

    def _step_of(self, xp: Any, s: Any, g: Any, m: Any, v: Any) -> Any:
        return s.stride * (m / v)
