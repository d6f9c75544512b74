"""Loss scaling for training in float16, so that gradients do not underflow."""

from __future__ import annotations

import weakref
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, cast

import numpy as np

from gpugrad.autodiff.recorder import recording_stopped
from gpugrad.autodiff.scaled_losses import declare_scale, scale_of
from gpugrad.core.arguments import COUNT, Range, takes
from gpugrad.core.backend import HALF, TENSOR
from gpugrad.core.convert import constant
from gpugrad.core.indexed_slices import IndexedSlices
from gpugrad.core.replaceable import SignalsDeferred
from gpugrad.core.scopes import updating
from gpugrad.core.tensor import Tensor, tensor
from gpugrad.core.variable import Variable
from gpugrad.errors import ArgumentError, CheckpointError, DeviceError, saying_where
from gpugrad.optim.checks import Gradient, check_count, check_number
from gpugrad.optim.clip import all_finite
from gpugrad.optim.optimizer import Optimizer
from gpugrad.optim.step import Schedule
from gpugrad.trace.array import current_trace
from gpugrad.trace.tracing import Tracing

_SCALE = Range(lambda x: 1 <= x < 2.0**127, "at least 1 and below 2**127")
_FINITE, _OVERFLOWED = 1, 2  # outcomes of a step; 0 before any optimizer has applied gradients


class LossScale:
    """The factor of a loss, which optimizers that share a backward pass share.

    It changes once a step, however many optimizers have applied gradients of that step: it is
    halved if a gradient of any of them was not finite, and doubled after `dynamic_growth_steps`
    good steps in a row. A step ends when the next loss is scaled, or when one of the optimizers
    applies gradients again. The scale never falls below 1.

    Args:
        initial_scale: at least 1; a power of 2 avoids rounding.
        dynamic_growth_steps: an int, at least 1.

    >>> scale = gg.optim.LossScale(2.0**10)
    >>> encoder = gg.optim.LossScaleOptimizer(gg.optim.Adam(0.1), scale)
    >>> decoder = gg.optim.LossScaleOptimizer(gg.optim.SGD(0.5), scale)
    >>> v, w = gg.Variable(1.0), gg.Variable(2.0)
    >>> with gg.GradientTape() as tape:
    ...     loss = scale.scale_loss(v * w)
    >>> dv, dw = tape.gradient(loss, [v, w])
    >>> encoder.apply_gradients([(dv, v)])
    >>> decoder.apply_gradients([(dw, w)])
    >>> print(w.value())
    1.5
    """

    name = "LossScale"

    @saying_where
    @takes(initial_scale=_SCALE, dynamic_growth_steps=COUNT)
    def __init__(self, initial_scale: float = 2.0**15, dynamic_growth_steps: int = 2000) -> None:
        self.dynamic_growth_steps = dynamic_growth_steps
        self._scale = Variable(np.float32(initial_scale), trainable=False, name="loss_scale")
        self._good = Variable(np.int32(0), trainable=False, name="good_steps")
        self._outcome = Variable(np.int32(0), trainable=False, name="outcome")
        self._step = Variable(np.int32(0), trainable=False, name="step")
        self._is_used = False  # whether a loss was scaled, or the factor was read
        self._calls = 0  # of scale_loss
        self._trace: Any = None  # a reference to the trace of the last of them
        declare_scale(self, self._scale)

    @property
    def value(self) -> Tensor:
        """The factor of the next loss: a 0-d float32 Tensor."""
        self._is_used = True
        return self._as_tensor(self._next(*self._values())[0])

    @saying_where
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
                "the default device when it was made. Make it inside "
                f'with gg.device("{loss.device}").'
            )
        if loss.dtype in HALF:  # the largest float16 is 65504, so the product could overflow
            loss = TENSOR.astype(loss, np.float32)
        with recording_stopped(keep=Tracing):
            self._end_step()
        trace = current_trace()
        self._calls, self._trace = self._calls + 1, trace and weakref.ref(trace)
        self._is_used = True
        return loss * self._scale

    def _values(self, applied: Variable | None = None) -> tuple[Any, list[Any]]:
        """Scale, good steps, outcome and step: NumPy's, or Tensors in a trace.

        Args:
            applied: the number of a step. If not None, the outcome is 0 in all other steps.
        """
        at = self._step if applied is None else applied
        variables = (self._scale, self._good, self._outcome, self._step, at)
        xp: Any = np if current_trace() is None else TENSOR  # NumPy's functions are faster
        values = [v.numpy() if xp is np else v.value() for v in variables]
        if applied is not None:
            values[2] = xp.where(xp.equal(values[4], values[3]), values[2], 0)
        return xp, values[:4]

    def _next(self, xp: Any, values: Sequence[Any]) -> tuple[Any, Any]:
        """The scale and the number of good steps after this step; takes the result of `_values`."""
        scale, good, outcome, _ = values
        finite, overflowed = xp.equal(outcome, _FINITE), xp.equal(outcome, _OVERFLOWED)
        good = xp.where(finite, good + 1, xp.where(overflowed, 0, good))
        grows = finite & (good >= self.dynamic_growth_steps) & (scale < 2.0**126)
        factor = xp.where(overflowed, 0.5, xp.where(grows, 2.0, 1.0))
        return xp.maximum(scale * factor, 1.0), xp.where(grows, 0, good)

    def _end_step(self, applied: Variable | None = None) -> None:
        """Begin another step if gradients were applied in this one; for `applied` see `_values`."""
        xp, values = self._values(applied)
        outcome = values[2]
        if xp is np and not outcome:
            return
        scale, good = self._next(xp, values)
        _assign(self._scale, scale)
        _assign(self._good, good)
        _assign(self._outcome, 0 if xp is np else self._outcome - outcome)
        _assign(self._step, values[3] + xp.minimum(outcome, 1))

    def _as_tensor(self, value: Any) -> Tensor:
        return constant(value, np.float32, device=self._scale.device)

    def _note(self, finite: Tensor) -> None:
        """Note whether all gradients of an optimizer were finite in this step."""
        xp, (_, _, outcome, _) = self._values()
        now = xp.where(finite.numpy() if xp is np else finite, _FINITE, _OVERFLOWED)
        _assign(self._outcome, xp.maximum(outcome, now))

    def __getstate__(self) -> dict[str, Any]:
        """The attributes for a copy or a pickle."""
        return {**self.__dict__, "_trace": None}

    def __setstate__(self, state: dict[str, Any]) -> None:
        """Restore the attributes of a copy, whose Variable has another number."""
        self.__dict__.update(state)
        declare_scale(self, self._scale)

    def __repr__(self) -> str:
        return f"{self.name}({self._next(*self._values())[0]:g})"


class LossScaleOptimizer:
    """An optimizer with dynamic loss scaling; names as in Keras.

    Gradients below 6e-8 are 0 in float16. So the loss is multiplied by a scale before the backward
    pass, and gradients are divided by it afterwards. If a gradient is not finite, the scale was too
    large: the step is skipped and the scale is halved. After `dynamic_growth_steps` good steps in a
    row the scale is doubled (Micikevicius et al. 2018, "Mixed Precision Training", section 3.2). It
    never falls below 1.

    Clip gradients with an option of the inner optimizer, as in ``SGD(0.1, global_clipnorm=1.0)``: a
    step divides by the scale first. Optimizers that take gradients of one loss share a `LossScale`.

    Keep Variables in float32 and cast them in the model: gradients then reach the optimizer in
    float32, where the division loses nothing. In `gg.function` all of this is part of the program.
    The scale lives on the device that is the default when the optimizer is created.

    Args:
        inner_optimizer: the optimizer that takes the steps.
        initial_scale: at least 1; a power of 2 avoids rounding. Or a `LossScale` to share.
        dynamic_growth_steps: an int, at least 1; that of a shared `LossScale` if there is one.

    >>> v = gg.Variable([1.0, 2.0])
    >>> optimizer = gg.optim.LossScaleOptimizer(gg.optim.SGD(0.5), initial_scale=2.0**20)
    >>> for _ in range(6):
    ...     with gg.GradientTape() as tape:
    ...         loss = optimizer.scale_loss(gg.mean(gg.astype(v, "float16")))
    ...     optimizer.apply_gradients([(tape.gradient(loss, v), v)])
    >>> print(optimizer.loss_scale, optimizer.iterations, v.value())
    32768.0 1 [0.75 1.75]
    """

    @saying_where
    def __init__(
        self,
        inner_optimizer: Optimizer,
        initial_scale: float | LossScale = 2.0**15,
        dynamic_growth_steps: int = 2000,
        name: str | None = None,
    ) -> None:
        self.name = name or type(self).__name__
        if not isinstance(inner_optimizer, Optimizer):
            raise ArgumentError(
                f"{self.name}: inner_optimizer must be an optimizer of gg.optim, got "
                f"{type(inner_optimizer).__name__} {inner_optimizer!r:.60}."
            )
        self.inner_optimizer = inner_optimizer
        if not isinstance(initial_scale, LossScale):
            initial_scale = LossScale(initial_scale, dynamic_growth_steps)
        self.scale = initial_scale
        """The `LossScale`, which other optimizers may share."""
        at = self.scale._step.device
        self._applied = Variable(np.int32(-1), trainable=False, name="applied", device=at)
        self._calls = 0  # of scale.scale_loss, at the last step

    @property
    def loss_scale(self) -> Tensor:
        """The factor of the next loss: a 0-d float32 Tensor."""
        return self.scale.value

    @property
    def dynamic_growth_steps(self) -> int:
        """The number of good steps after which the scale is doubled."""
        return self.scale.dynamic_growth_steps

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

    @property
    def skipped(self) -> int:
        """The number of steps that were skipped."""
        return self.inner_optimizer.skipped

    def build(self, var_list: Any) -> None:
        """Create the state of Variables that have none yet, as `Optimizer.build`."""
        self.inner_optimizer.build(var_list)

    def scale_loss(self, loss: Tensor) -> Tensor:
        """The loss times the scale, as `LossScale.scale_loss`; differentiate this."""
        return self.scale.scale_loss(loss)

    def minimize(self, loss: Callable[[], Tensor], var_list: Any = None) -> Tensor:
        """Scale a loss and take one step that makes it smaller, as `Optimizer.minimize`.

        Args:
            loss: a function without arguments that computes the loss.
            var_list: as for the inner optimizer.

        Returns:
            The loss before the step, without the scale.

        >>> v = gg.Variable(4.0)
        >>> optimizer = gg.optim.LossScaleOptimizer(gg.optim.SGD(0.25))
        >>> print(optimizer.minimize(lambda: v * v), v.value())
        16.0 2.0
        """
        if not callable(loss):
            raise ArgumentError(
                f"{self.name}: minimize needs a function that computes the loss, because the loss "
                f"is scaled on the tape. Got a {type(loss).__name__}."
            )
        losses: list[Tensor] = []

        def scaled() -> Tensor:
            losses.append(loss())
            return self.scale_loss(losses[-1])

        Optimizer.minimize(cast(Any, self), scaled, var_list)
        return losses[-1]

    def apply_gradients(self, grads_and_vars: Iterable[tuple[Gradient | None, Variable]]) -> None:
        """Take a step with gradients of the scaled loss, if all of them are finite.

        Args:
            grads_and_vars: pairs, as for the inner optimizer.

        Raises:
            ArgumentError: the loss was scaled by another `LossScale`, or none ever was.
            ArgumentError, ShapeError, DTypeError, DeviceError: as for the inner optimizer; neither
                a Variable nor the scale changes then.
        """
        pairs = self.inner_optimizer._check_pairs(grads_and_vars)
        for g, v in pairs:
            if scale_of(g) not in (None, self.scale):
                raise ArgumentError(
                    f"{self.name}: the gradient of '{v.name}' is that of a loss which another "
                    "LossScale has scaled. Give both optimizers one: scale = gg.optim.LossScale(), "
                    "then LossScaleOptimizer(optimizer, scale) for each."
                )
        if not self.scale._is_used:
            raise ArgumentError(
                f"{self.name}: no loss was multiplied by the scale that divides gradients. "
                "Differentiate the result of scale_loss(loss)."
            )
        if current_trace() is not None:
            self._apply(pairs)
            return
        with updating, SignalsDeferred():  # the Variables and the scale change together
            self._apply(pairs)

    def _apply(self, pairs: Sequence[tuple[Gradient, Variable]]) -> None:
        scale = self.scale
        # a step also ends when this optimizer applies gradients again
        applied = None if self._follows_a_loss() else self._applied
        with recording_stopped(keep=Tracing):
            finite = all_finite([g for g, _ in pairs])
            value = scale._scale.value()
            if applied is not None:
                value = scale._as_tensor(scale._next(*scale._values(applied))[0])
            unscaled = [(_unscale(g, value), variable) for g, variable in pairs]
        self.inner_optimizer.apply_gradients(unscaled, when=finite)
        with recording_stopped(keep=Tracing):
            if applied is not None:
                scale._end_step(applied)
            scale._note(finite)
            self._applied.assign(scale._step)
        self._calls = scale._calls

    def _follows_a_loss(self) -> bool:
        """Whether a loss was scaled since this optimizer's last step, as far as Python knows.

        In a trace it must have been in the same trace, because replays do not count calls.
        """
        trace = self.scale._trace
        return self._calls != self.scale._calls and (trace and trace()) is current_trace()

    def state_dict(self, names: Mapping[str, Variable] | None = None) -> dict[str, Tensor]:
        """The state of the inner optimizer, with ``loss_scale`` and ``good_steps``."""
        scale, good = (self.scale._as_tensor(x) for x in self.scale._next(*self.scale._values()))
        own = {"loss_scale": scale, "good_steps": TENSOR.astype(good, np.int32)}
        return {**self.inner_optimizer.state_dict(names), **own}

    def load_state_dict(
        self, state: Mapping[str, Any], names: Mapping[str, Variable] | None = None
    ) -> None:
        """Load a state that `state_dict` returned: all of it, or on an error nothing.

        Raises:
            CheckpointError: as for the inner optimizer, or the state has no scale or a wrong one.
        """
        inner, own = dict(state), {}
        for variable in (self.scale._scale, self.scale._good):
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
            if variable is self.scale._good:
                check_count(self.name, variable.name, value.numpy())
            else:
                check_number(self.name, variable.name, value.numpy(), 0.0, 2.0**127)
            own[variable] = constant(value, variable.dtype, device=variable.device)
        self.inner_optimizer.load_state_dict(inner, names)
        self.scale._end_step()
        for variable, value in own.items():
            variable.assign(value)

    def __repr__(self) -> str:
        return f"{self.name}({self.inner_optimizer!r}, loss_scale={self.loss_scale.numpy():g})"


def _assign(variable: Variable, value: Any) -> None:
    variable.assign(constant(value, variable.dtype, device=variable.device))


def _unscale(g: Any, scale: Tensor) -> Any:
    if isinstance(g, IndexedSlices):
        return IndexedSlices(_unscale(g.values, scale), g.indices, g.dense_shape)
    return TENSOR.astype(
        g / scale, g.dtype
    )  # dividing in float32: a scale of 2**16 overflows float16
