"""Loss scaling for training in float16, so that gradients do not underflow."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np

from gpugrad.core.backend import HALF, TENSOR
from gpugrad.core.convert import constant
from gpugrad.core.indexed_slices import IndexedSlices
from gpugrad.core.scopes import InterruptsDeferred, updating
from gpugrad.core.tensor import Tensor, tensor
from gpugrad.core.variable import Variable
from gpugrad.errors import ArgumentError, CheckpointError, DeviceError
from gpugrad.optim.checks import Gradient
from gpugrad.optim.clip import all_finite
from gpugrad.optim.optimizer import Optimizer, Schedule
from gpugrad.trace.array import current_trace

__all__ = ["LossScaleOptimizer"]


class LossScaleOptimizer:
    """An optimizer with dynamic loss scaling; names as in Keras.

    Gradients below 6e-8 are 0 in float16. So the loss is multiplied by a scale before the backward
    pass, and gradients are divided by it afterwards. If a gradient is not finite, the scale was too
    large: the step is skipped and the scale is halved. After `dynamic_growth_steps` good steps in a
    row the scale is doubled (Micikevicius et al. 2018, "Mixed Precision Training", section 3.2). It
    never falls below 1.

    Keep Variables in float32 and cast them in the model: gradients then reach the optimizer in
    float32, where the division loses nothing. In `gg.function` all of this is part of the program.
    The scale lives on the device that is the default when the optimizer is created.

    Args:
        inner_optimizer: the optimizer that takes the steps.
        initial_scale: at least 1; a power of 2 avoids rounding.
        dynamic_growth_steps: an int, at least 1.

    >>> v = gg.Variable([1.0, 2.0])
    >>> optimizer = gg.optim.LossScaleOptimizer(gg.optim.SGD(0.5), initial_scale=2.0**20)
    >>> for _ in range(6):
    ...     with gg.GradientTape() as tape:
    ...         loss = optimizer.scale_loss(gg.mean(gg.astype(v, "float16")))
    ...     optimizer.apply_gradients([(tape.gradient(loss, v), v)])
    >>> print(optimizer.loss_scale, optimizer.iterations, v.value())
    32768.0 1 [0.75 1.75]
    """

    def __init__(
        self,
        inner_optimizer: Optimizer,
        initial_scale: float = 2.0**15,
        dynamic_growth_steps: int = 2000,
        name: str | None = None,
    ) -> None:
        self.name = name or type(self).__name__
        if not isinstance(inner_optimizer, Optimizer):
            raise ArgumentError(
                f"{self.name}: inner_optimizer must be an optimizer of gg.optim, got "
                f"{type(inner_optimizer).__name__} {inner_optimizer!r:.60}."
            )
        if not 1 <= initial_scale < 2.0**127:
            raise ArgumentError(
                f"{self.name}: initial_scale must be in [1, 2**127), got {initial_scale}."
            )
        if type(dynamic_growth_steps) is not int or dynamic_growth_steps < 1:
            raise ArgumentError(
                f"{self.name}: dynamic_growth_steps must be an int of at least 1, got "
                f"{dynamic_growth_steps!r:.60}."
            )
        self.inner_optimizer = inner_optimizer
        self.dynamic_growth_steps = dynamic_growth_steps
        self._scale = Variable(np.float32(initial_scale), trainable=False, name="loss_scale")
        self._good = Variable(np.int32(0), trainable=False, name="good_steps")

    @property
    def loss_scale(self) -> Tensor:
        """The factor of the next loss: a 0-d float32 Tensor."""
        return self._scale.value()

    @property
    def learning_rate(self) -> Schedule:
        """The learning rate of the inner optimizer."""
        return self.inner_optimizer.learning_rate

    @learning_rate.setter
    def learning_rate(self, value: Schedule) -> None:
        self.inner_optimizer.learning_rate = value

    @property
    def iterations(self) -> int:
        """The number of steps taken, without skipped ones."""
        return self.inner_optimizer.iterations

    def scale_loss(self, loss: Tensor) -> Tensor:
        """The loss times the scale, at least in float32; differentiate this.

        Args:
            loss: Tensor of any shape and a floating dtype.

        Raises:
            DeviceError: the loss is on another device than the scale.
        """
        loss = tensor(loss)
        if loss.device != self._scale.device:
            raise DeviceError(
                f"{self.name}: the loss is on {loss.device}, the scale is on {self._scale.device}, "
                "the default device when the optimizer was made. Make the optimizer inside "
                f'with gg.device("{loss.device}").'
            )
        if loss.dtype in HALF:  # the largest float16 is 65504, so the product could overflow
            loss = TENSOR.astype(loss, np.float32)
        return loss * TENSOR.astype(self._scale, loss.dtype)

    def apply_gradients(self, grads_and_vars: Iterable[tuple[Gradient | None, Variable]]) -> None:
        """Take a step with gradients of the scaled loss, if all of them are finite.

        Args:
            grads_and_vars: pairs, as for the inner optimizer.

        Raises:
            ArgumentError, ShapeError, DTypeError, DeviceError: as for the inner optimizer; neither
                a Variable nor the scale changes then.
        """
        pairs = self.inner_optimizer._check_pairs(grads_and_vars)
        if current_trace() is not None:
            self._apply(pairs)
            return
        with updating, InterruptsDeferred():  # the Variables and the scale change together
            self._apply(pairs)

    def _apply(self, pairs: Sequence[tuple[Gradient, Variable]]) -> None:
        finite = all_finite([g for g, _ in pairs])
        xp, scale = TENSOR, self._scale.value()
        good = xp.where(finite, self._good + 1, 0)
        grow = (good >= self.dynamic_growth_steps) & (scale < 2.0**126)
        grown = xp.where(grow, scale * 2, scale)
        next_scale = xp.where(finite, grown, xp.maximum(scale / 2, 1.0))
        next_good = xp.where(grow, 0, good)
        self.inner_optimizer.apply_gradients(
            [(_unscale(g, scale), variable) for g, variable in pairs], when=finite
        )
        self._scale.assign(next_scale)
        self._good.assign(next_good)

    def state_dict(self, names: Mapping[str, Variable] | None = None) -> dict[str, Tensor]:
        """The state of the inner optimizer, with ``loss_scale`` and ``good_steps``."""
        own = {v.name: v.value() for v in (self._scale, self._good)}
        return {**self.inner_optimizer.state_dict(names), **own}

    def load_state_dict(
        self, state: Mapping[str, Any], names: Mapping[str, Variable] | None = None
    ) -> None:
        """Load a state that `state_dict` returned: all of it, or on an error nothing.

        Raises:
            CheckpointError: as for the inner optimizer, or the state has no scale.
        """
        inner, own = dict(state), {}
        for variable in (self._scale, self._good):
            if variable.name not in inner:
                raise CheckpointError(
                    f"{self.name}: the state lacks '{variable.name}': it belongs to an optimizer "
                    "without a loss scale. Load it into inner_optimizer."
                )
            value = tensor(inner.pop(variable.name))
            if value.shape:
                raise CheckpointError(
                    f"{self.name}: '{variable.name}' must be a number, got {value.dtype} "
                    f"{value.shape}."
                )
            own[variable] = constant(value, variable.dtype, device=variable.device)
        self.inner_optimizer.load_state_dict(inner, names)
        for variable, value in own.items():
            variable.assign(value)

    def __repr__(self) -> str:
        return f"{self.name}({self.inner_optimizer!r}, loss_scale={self._scale.numpy():g})"


def _unscale(g: Any, scale: Tensor) -> Any:
    if isinstance(g, IndexedSlices):
        return IndexedSlices(_unscale(g.values, scale), g.indices, g.dense_shape)
    return TENSOR.astype(
        g / scale, g.dtype
    )  # dividing in float32: a scale of 2**16 overflows float16
