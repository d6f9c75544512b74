"""tf.optimizers: Keras' formulas and defaults, which differ from those of `gpugrad.optim`.

`gpugrad.compat.tf.v1.train` runs the same formulas on Tensors.
"""

from __future__ import annotations

import inspect
from typing import Any, ClassVar

import gpugrad as gg
from gpugrad.compat.names import forwarding
from gpugrad.core.arguments import BELOW_1, NOT_NEGATIVE, Range
from gpugrad.optim.adam import averages, decay_factors, momentum_product, warm_momentum
from gpugrad.optim.state import State


class Optimizer(gg.optim.Optimizer):
    """The base of Keras' optimizers: each step first takes ``lr * weight_decay`` of the weights.

    A Variable's ``constraint`` is applied after its step.
    """

    hyper = gg.optim.ranges(weight_decay=NOT_NEGATIVE)
    begins: ClassVar[dict[str, str]] = {}
    """The setting that is the first value of an average which is not 0 at first."""
    rate = 0.001
    weight_decay = 0.0

    def __init_subclass__(cls, **keywords: Any) -> None:
        super().__init_subclass__(**keywords)
        names = [name for name in cls.hyper if name != "weight_decay"]
        if "settings" not in vars(cls):
            cls.settings = ("learning_rate", *names, *cls.flags, "weight_decay")
        kind = inspect.Parameter.POSITIONAL_OR_KEYWORD
        defaults = {
            "learning_rate": cls.rate,
            **{key: getattr(cls, key) for key in cls.settings[1:]},
        }
        shown = [inspect.Parameter(key, kind, default=d) for key, d in defaults.items()]
        others = inspect.Parameter("options", inspect.Parameter.VAR_KEYWORD)
        cls.__signature__ = inspect.Signature([*shown, others])  # type: ignore[attr-defined]

    settings: ClassVar[tuple[str, ...]] = ()
    """The arguments in their order."""

    def __init__(self, *args: Any, **options: Any) -> None:
        if len(args) > len(self.settings):
            raise TypeError(f"{type(self).__name__}: at most {len(self.settings)} arguments.")
        given = dict(zip(self.settings, args, strict=False))
        rate = options.pop("lr", options.pop("learning_rate", given.pop("learning_rate", None)))
        given |= {key: value for key, value in options.items() if value is not None}
        for key in [key for key in given if key in self.settings]:
            setattr(self, key, given.pop(key))
        super().__init__(self.rate if rate is None else rate, given.pop("name", None), **given)

    def numbers(self, h: Any, rate: Any, step: Any) -> dict[str, Any]:
        """The settings, with the part of the weights that is kept."""
        return {**super().numbers(h, rate, step), "keep": 1 - rate * h.weight_decay}

    def _state(self, variable: gg.Variable) -> State:
        is_new = variable._id not in self._states
        state = super()._state(variable)
        if is_new:
            for slot, setting in self.begins.items():
                state.averages[slot].fill(getattr(self, setting))
        return state

    def apply_gradients(self, grads_and_vars, *others, **options) -> None:
        """A step along pairs of a gradient and a Variable."""
        pairs = list(grads_and_vars)
        super().apply_gradients(pairs)
        constrain(v for _, v in pairs)

    def apply(self, grads, trainable_variables) -> None:
        self.apply_gradients(zip(grads, trainable_variables, strict=True))

    def minimize(  # type: ignore[override]
        self, loss, var_list, grad_loss=None, name=None, tape=None
    ) -> None:
        if tape is None:
            with gg.GradientTape() as tape:
                value = loss()
        else:
            value = loss
        variables = var_list() if callable(var_list) else list(var_list)
        grads = tape.gradient(value, variables, output_gradients=grad_loss)
        self.apply_gradients(zip(grads, variables, strict=True))

    lr = property(
        lambda self: self.learning_rate, lambda self, value: setattr(self, "learning_rate", value)
    )


def constrain(variables) -> None:
    """Replace the value of each Variable that has a constraint by the constraint's."""
    for v in variables:
        if getattr(v, "constraint", None) is not None:
            v.assign(v.constraint(v.value()))


class SGD(Optimizer):
    """``velocity = momentum * velocity - lr * g``, which is added to the Variable."""

    hyper = gg.optim.ranges(momentum=BELOW_1, weight_decay=NOT_NEGATIVE)
    flags, slots = ("nesterov",), ("velocity",)
    rate, momentum, nesterov = 0.01, 0.0, False

    def formula(self, xp: Any, s: Any, p: Any, g: Any, velocity: Any) -> Any:
        """The step of one element."""
        velocity = s.momentum * velocity - s.rate * g
        step = s.momentum * velocity - s.rate * g if self.nesterov else velocity
        return s.keep * p + step, velocity


class Adam(Optimizer):
    """Adam with epsilon beside the root of v before v is corrected: Kingma and Ba, section 2."""

    hyper = gg.optim.ranges(
        beta_1=BELOW_1, beta_2=BELOW_1, epsilon=NOT_NEGATIVE, weight_decay=NOT_NEGATIVE
    )
    flags: ClassVar[tuple[str, ...]] = ("amsgrad",)
    beta_1, beta_2, epsilon, amsgrad = 0.9, 0.999, 1e-7, False

    def __init__(self, *args: Any, **options: Any) -> None:
        super().__init__(*args, **options)
        self.slots = ("m", "v", "v_max") if self.amsgrad else ("m", "v")

    def numbers(self, h: Any, rate: Any, step: Any) -> dict[str, Any]:
        """The decay factors, and the rate with the bias corrections."""
        stride = rate * (1 - h.beta_2**step) ** 0.5 / (1 - h.beta_1**step)
        return {**super().numbers(h, rate, step), **decay_factors(h), "stride": stride}

    formula = gg.optim.Adam.formula


class AdamW(Adam):
    """`Adam` whose weights decay."""

    weight_decay = 0.004
    settings = ("learning_rate", "weight_decay", "beta_1", "beta_2", "epsilon", "amsgrad")


class Adamax(Adam):
    """Adam with the largest decayed gradient in place of the root of their squares."""

    flags: ClassVar = ()
    slots = ("m", "u")

    def __init__(self, *args: Any, **options: Any) -> None:
        Optimizer.__init__(self, *args, **options)

    def numbers(self, h: Any, rate: Any, step: Any) -> dict[str, Any]:
        """The decay factors, and the rate with the bias correction."""
        return {**super().numbers(h, rate, step), "stride": rate / (1 - h.beta_1**step)}

    def formula(self, xp: Any, s: Any, p: Any, g: Any, m: Any, u: Any) -> Any:
        """The step of one element."""
        m = s.beta_1 * m + s.add_1 * g
        u = xp.maximum(s.beta_2 * u, xp.absolute(g))
        return s.keep * p - s.stride * (m / (u + s.epsilon)), m, u


class Nadam(Adamax):
    """Adam with Nesterov momentum, which warms up fast."""

    slots = ("m", "v")

    def numbers(self, h: Any, rate: Any, step: Any) -> dict[str, Any]:
        """The decay factors, and the parts of the gradient and of the average in the step."""
        now, later = (warm_momentum(h.beta_1, 1.0, t) for t in (step, step + 1))
        product, root = momentum_product(h.beta_1, 1.0, step), (1 - h.beta_2**step) ** 0.5
        return {
            **super().numbers(h, rate, step),
            "of_gradient": rate * root * (1 - now) / (1 - product),
            "of_average": rate * root * later / (1 - product * later),
            "epsilon": h.epsilon * root,
        }

    def formula(self, xp: Any, s: Any, p: Any, g: Any, m: Any, v: Any) -> Any:
        """The step of one element."""
        m, v = averages(xp, s, g, m, v)
        return s.keep * p - (s.of_gradient * g + s.of_average * m) / (xp.sqrt(v) + s.epsilon), m, v


class RMSprop(Optimizer):
    """RMSprop with epsilon in the root; the velocity holds the learning rate."""

    hyper = gg.optim.ranges(
        rho=BELOW_1, momentum=BELOW_1, epsilon=NOT_NEGATIVE, weight_decay=NOT_NEGATIVE
    )
    flags, slots = ("centered",), ("v", "mean", "velocity")
    begins: ClassVar = {"v": "first"}
    rho, momentum, epsilon, centered, first = 0.9, 0.0, 1e-7, False, 0.0

    def numbers(self, h: Any, rate: Any, step: Any) -> dict[str, Any]:
        """The settings, and the part of the gradient in the averages."""
        return {**Optimizer.numbers(self, h, rate, step), "add": 1 - h.rho}

    def formula(self, xp: Any, s: Any, p: Any, g: Any, v: Any, mean: Any, velocity: Any) -> Any:
        """The step of one element."""
        v = s.rho * v + s.add * xp.square(g)
        square = v
        if self.centered:
            mean = s.rho * mean + s.add * g
            square = v - xp.square(mean)
        velocity = s.momentum * velocity + s.rate * g / xp.sqrt(square + s.epsilon)
        return s.keep * p - velocity, v, mean, velocity


class Adagrad(Optimizer):
    """Adagrad with epsilon in the root."""

    hyper = gg.optim.ranges(
        initial_accumulator_value=NOT_NEGATIVE, epsilon=NOT_NEGATIVE, weight_decay=NOT_NEGATIVE
    )
    slots = ("total",)
    begins: ClassVar = {"total": "initial_accumulator_value"}
    initial_accumulator_value, epsilon = 0.1, 1e-7

    def formula(self, xp: Any, s: Any, p: Any, g: Any, total: Any) -> Any:
        """The step of one element."""
        total = total + xp.square(g)
        return s.keep * p - s.rate * g / xp.sqrt(total + s.epsilon), total


class Adadelta(Optimizer):
    """Adadelta: steps of the size of earlier steps."""

    hyper = gg.optim.ranges(rho=BELOW_1, epsilon=NOT_NEGATIVE, weight_decay=NOT_NEGATIVE)
    slots = ("v", "u")
    rho, epsilon = 0.95, 1e-7
    numbers = RMSprop.numbers

    def formula(self, xp: Any, s: Any, p: Any, g: Any, v: Any, u: Any) -> Any:
        """The step of one element."""
        v = s.rho * v + s.add * xp.square(g)
        delta = xp.sqrt(u + s.epsilon) / xp.sqrt(v + s.epsilon) * g
        return s.keep * p - s.rate * delta, v, s.rho * u + s.add * xp.square(delta)


class Lion(Optimizer):
    """Lion: steps of the sign of a momentum."""

    hyper = gg.optim.ranges(beta_1=BELOW_1, beta_2=BELOW_1, weight_decay=NOT_NEGATIVE)
    slots = ("m",)
    beta_1, beta_2 = 0.9, 0.99

    def numbers(self, h: Any, rate: Any, step: Any) -> dict[str, Any]:
        """The settings, and the parts of the gradient."""
        return {**super().numbers(h, rate, step), **decay_factors(h)}

    formula = gg.optim.Lion.formula


class Ftrl(Optimizer):
    """FTRL-Proximal: McMahan et al. 2013, "Ad Click Prediction: a View from the Trenches"."""

    hyper = gg.optim.ranges(
        learning_rate_power=Range(lambda x: x <= 0, "0 or below"),
        initial_accumulator_value=NOT_NEGATIVE,
        l1_regularization_strength=NOT_NEGATIVE,
        l2_regularization_strength=NOT_NEGATIVE,
        l2_shrinkage_regularization_strength=NOT_NEGATIVE,
        beta=NOT_NEGATIVE,
        weight_decay=NOT_NEGATIVE,
    )
    slots = ("total", "linear")
    begins: ClassVar = {"total": "initial_accumulator_value"}
    learning_rate_power, initial_accumulator_value, beta = -0.5, 0.1, 0.0
    l1_regularization_strength = l2_regularization_strength = 0.0
    l2_shrinkage_regularization_strength = 0.0

    def numbers(self, h: Any, rate: Any, step: Any) -> dict[str, Any]:
        """The settings with short names."""
        return {
            "keep": 1 - rate * h.weight_decay,
            "rate": rate,
            "power": -h.learning_rate_power,
            "beta": h.beta,
            "l1": h.l1_regularization_strength,
            "l2": 2 * h.l2_regularization_strength,
            "shrinkage": 2 * h.l2_shrinkage_regularization_strength,
        }

    def formula(self, xp: Any, s: Any, p: Any, g: Any, total: Any, linear: Any) -> Any:
        """The step of one element."""
        p = s.keep * p
        new = total + xp.square(g)
        root = new**s.power
        linear = linear + g + s.shrinkage * p - (root - total**s.power) / s.rate * p
        size = xp.maximum(xp.absolute(linear) - s.l1, 0.0)
        return -xp.sign(linear) * size / ((root + s.beta) / s.rate + s.l2), new, linear


__getattr__, __dir__ = forwarding(__name__, own=globals())
