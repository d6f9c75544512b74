"""The base class of optimizers: steps in place, and state by name."""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable, Iterable, Mapping, Sequence
from threading import get_ident
from typing import Any, Unpack

import numpy as np

from gpugrad.autodiff.recorder import recording_stopped
from gpugrad.autodiff.scaled_losses import scale_of
from gpugrad.autodiff.tape import GradientTape
from gpugrad.core import devices, nest
from gpugrad.core.backend import HALF
from gpugrad.core.indexed_slices import IndexedSlices
from gpugrad.core.scopes import InterruptsDeferred, scopes, updating
from gpugrad.core.settings import numerics
from gpugrad.core.tensor import Tensor, wrap
from gpugrad.core.threads import run_parallel
from gpugrad.core.variable import Variable, put_together, take_together
from gpugrad.errors import (
    ArgumentError,
    CheckpointError,
    DTypeError,
    NumericsError,
    ShapeError,
    reraise,
)
from gpugrad.optim.apply_step import ApplyStep
from gpugrad.optim.arrays import (
    Average,
    launch_steps,
    make_own,
    own_contiguous,
    ravel_reals,
    run_steps,
    scratch_like,
    split_work,
)
from gpugrad.optim.checks import (
    Gradient,
    check_condition,
    check_count,
    check_gradient,
    check_number,
    check_pairs,
)
from gpugrad.optim.clip import Limits, check_limits, clip
from gpugrad.optim.states import State, Work, group_by_launch, launch_group
from gpugrad.trace.array import current_trace
from gpugrad.trace.numerics import check
from gpugrad.trace.tracing import Tracing

__all__ = ["Optimizer", "Schedule"]

Schedule = float | Callable[[int], Any]


class Optimizer:
    """Base class of optimizers. A subclass sets `slots` and implements `_begin`.

    Args:
        learning_rate: a number, or a function of `iterations` that returns one.
        name: name in messages; the class name if None.
        clipnorm: if not None, each gradient whose Euclidean norm is larger is scaled down to it.
        clipvalue: if not None, elements of gradients are limited to [-clipvalue, clipvalue].
        global_clipnorm: if not None, all gradients of a step are scaled down together so that
            their common norm is at most this. At most one of the three may be set. A step clips
            what it uses: with `LossScaleOptimizer`, gradients that were divided by the scale.
    """

    slots: tuple[str, ...] = ()
    takes_rows = False
    """Whether the optimizer implements `_move_rows`; if not, IndexedSlices become dense first."""
    kernel = ""
    """The kernel of `kernels.by_hand.optim` that updates all arrays of a GPU in one launch.

    An optimizer with a kernel implements `_settings`. Without one, `_begin` runs for each array.
    """

    def __init__(
        self, learning_rate: Schedule, name: str | None = None, **limits: Unpack[Limits]
    ) -> None:
        self.name = name or type(self).__name__
        if unknown := limits.keys() - Limits.__annotations__.keys():
            raise TypeError(f"{self.name}: got an unexpected keyword argument {min(unknown)!r}.")
        check_limits(self.name, limits)
        self.limits: Limits = limits if any(limits.values()) else {}
        """The clipping options that are set."""
        self.learning_rate = learning_rate
        self.iterations = 0
        """The number of steps taken."""
        self._states: dict[int, State] = {}
        self._warned: set[tuple[int, ...]] = set()

    @property
    def learning_rate(self) -> Schedule:
        """The number or function; may be set between steps."""
        return self._learning_rate

    @learning_rate.setter
    def learning_rate(self, value: Schedule) -> None:
        if isinstance(value, Variable):
            raise ArgumentError(
                f"{self.name}: the learning rate must be a number or a function, got the Variable "
                f"'{value.name}', whose later values the optimizer would not see. Pass a function "
                "of the number of steps, as lambda _: rate, or set optimizer.learning_rate."
            )
        self._learning_rate = value if callable(value) else self._rate(value)

    def _rate(self, value: Any) -> float:
        try:
            rate = float(value)
        except (TypeError, ValueError) as error:
            raise ArgumentError(
                f"{self.name}: the learning rate must be a number, got {value!r:.60}."
            ) from error
        if not (math.isfinite(rate) and rate >= 0):
            raise ArgumentError(f"{self.name}: the learning rate must be at least 0, got {rate}.")
        return rate

    def _rate_now(self) -> float:
        rate = self._learning_rate
        return self._rate(rate(self.iterations) if callable(rate) else rate)

    # -- stepping

    def apply_gradients(
        self, grads_and_vars: Iterable[tuple[Gradient | None, Variable]], *, when: Any = True
    ) -> None:
        """Update Variables in place from their gradients.

        All gradients are checked before any Variable changes, so an error leaves the model and the
        optimizer unchanged. Tensors read from a Variable earlier keep their values.

        Args:
            grads_and_vars: pairs (gradient, Variable), as ``zip(gradients, variables)``. A
                gradient has the shape, dtype and device of its Variable. IndexedSlices update only
                their rows in `SGD` without momentum; other optimizers make them dense. A Variable
                whose gradient is None is skipped, with a warning (once).
            when: whether to take the step: a bool, or a Tensor of one element. A skipped step is
                not counted. A traced function reads `when` in each run, and on a GPU the host
                waits for it.

        Raises:
            ArgumentError: there are no gradients, all are None, a Variable is repeated, or the
                gradients are those of a scaled loss.
            ShapeError, DTypeError, DeviceError: a gradient does not fit its Variable, or `when`
                does not have one element.

        >>> v = gg.Variable([1.0, 2.0])
        >>> gg.optim.SGD(0.5).apply_gradients([(gg.constant([1.0, 1.0]), v)])
        >>> print(v.value())
        [0.5 1.5]
        """
        pairs = self._check_pairs(grads_and_vars)
        self._refuse_scaled(pairs)
        if when is not True:
            when = check_condition(self.name, when)
        if self.limits:
            pairs = self._clip(pairs)
        if (trace := current_trace()) is not None:
            self._apply_at_replay(trace, pairs, when)
        else:
            self._check_and_apply(pairs, when)

    def _refuse_scaled(self, pairs: Iterable[tuple[Gradient, Variable]]) -> None:
        for g, v in pairs:
            if scale_of(g) is not None:
                raise ArgumentError(
                    f"{self.name}: the gradient of '{v.name}' is that of a scaled loss, so it is "
                    "too large by the scale. Apply it with a LossScaleOptimizer: one for each "
                    "optimizer, which share one gg.optim.LossScale."
                )

    def _clip(self, pairs: list[tuple[Gradient, Variable]]) -> list[tuple[Gradient, Variable]]:
        """The pairs with clipped gradients."""
        grads, variables = [], [v for _, v in pairs]
        for g, v in pairs:
            if not isinstance(g, IndexedSlices):  # which are checked when their values are known
                g = check_gradient(self.name, g, v)
            elif g.dense_shape is None:
                g = IndexedSlices(g.values, g.indices, v.shape)
            grads.append(g)
        with recording_stopped():
            return list(zip(clip(grads, **self.limits), variables, strict=True))

    def _check_and_apply(self, pairs: Iterable[tuple[Gradient, Variable]], when: Any) -> None:
        self._apply(((self._checked_gradient(g, v), v) for g, v in pairs), when)

    def _apply(self, pairs: Iterable[tuple[Gradient, Variable]], when: Any = True) -> None:
        """Take a step with gradients that have been checked."""
        if not numerics():
            self._apply_all(pairs, when)
            return
        pairs = list(pairs)
        before, undo = [(v, v._data) for _, v in pairs], self._undo()
        try:
            self._apply_all(pairs, when)
            for (g, v), (_, data) in zip(pairs, before, strict=True):
                inputs = {"variable": data, "gradient": g}
                check(f"{self.name}.apply_gradients of '{v.name}'", v._data, inputs)
        except NumericsError:
            undo()
            for v, data in before:
                v._data = data
            raise

    def _apply_all(self, pairs: Iterable[tuple[Gradient, Variable]], when: Any) -> None:
        try:
            pairs = list(pairs)
            if not when:
                return
            variables = [variable for _, variable in pairs]
            with updating:
                rate, states = self._rate_now(), [self._state(v) for v in variables]
                if get_ident() in scopes:  # of a trace, which can undo the step, or of a replay
                    self._update(states, pairs, list(map(own_contiguous, variables)), rate)
                    return
                with InterruptsDeferred():
                    arrays = take_together(variables)
                    try:
                        self._update(states, pairs, make_own(arrays), rate)
                    finally:
                        put_together(variables, arrays)
        except MemoryError as error:
            reraise(error, f"{self.name}.apply_gradients", {}, {})

    def _update(
        self,
        states: Sequence[State],
        pairs: Sequence[tuple[Gradient, Variable]],
        arrays: Sequence[Any],
        rate: float,
    ) -> None:
        """Write to the Variables' arrays; everything that can fail comes before."""
        work: list[Work] = []
        for state, (gradient, _), data in zip(states, pairs, arrays, strict=True):
            g = gradient if isinstance(gradient, IndexedSlices) else ravel_reals(gradient._data)
            work.append((state, data, g))
        work = self._launch_all(self._move_all_rows(work, rate), rate)
        for _, data, _ in work:
            if type(data) is not np.ndarray:
                with devices.formulas_on(data):
                    scratch_like(ravel_reals(data))  # fills the pool for the step below
        self._move_all(work, rate)
        self.iterations += 1

    def _move_all(self, work: list[Work], rate: float) -> None:
        """Step each array on its own; those on the CPU by one C kernel, or on several threads."""
        on_cpu: list[Any] = []
        with np.errstate(all="ignore"):
            for state, data, g in work:
                if type(data) is np.ndarray:
                    on_cpu.append(self._begin_with_arrays(state, data, g, rate))
                else:
                    with devices.formulas_on(data):
                        run_steps([self._begin_with_arrays(state, data, g, rate)])
            run_parallel(run_steps, split_work(launch_steps(on_cpu)))

    def _begin_with_arrays(self, state: State, data: Any, g: Any, rate: float) -> Any:
        """A step and its arrays, for `run_steps`."""
        averages = [average.array for average in state.averages.values()]
        return self._begin(state, rate), [ravel_reals(data), g, *averages]

    def _move_all_rows(self, work: list[Work], rate: float) -> list[Work]:
        """Step Variables whose gradients are IndexedSlices, and return the remaining work.

        This comes first because it allocates memory, so it can fail.
        """
        rest: list[Work] = []
        for state, data, g in work:
            if not isinstance(g, IndexedSlices):
                rest.append((state, data, g))
                continue
            with devices.formulas_on(data):
                self._move_rows(data, g.indices._data, g.values._data, rate)
                self._begin(state, rate)
        return rest

    def _launch_all(self, work: list[Work], rate: float) -> list[Work]:
        """Step arrays on GPUs, one launch for each dtype, and return the remaining work."""
        dense: list[Work] = []
        rest: list[Work] = []
        for item in work:
            no_kernel = type(item[1]) is np.ndarray or not self.kernel
            (rest if no_kernel else dense).append(item)
        for group in group_by_launch(dense):
            launch_group(self, group, self._settings(group[0][0].step + 1, rate))
            for state, _, _ in group:
                state.step += 1
        return rest

    def _apply_at_replay(self, trace: Tracing, pairs: list[Any], when: Any) -> None:
        """Add the step to the program that is being traced."""
        read = [] if when is True else [when]
        for g, v in pairs:
            if isinstance(g, IndexedSlices):  # checked again in each run
                read += [g.values, g.indices]
            else:
                read.append(check_gradient(self.name, g, v))
        step = ApplyStep(self, pairs, when is not True)
        trace.effect("apply_gradients", step, read, step.variables, undo=self._undo)

    def _undo(self) -> Callable[[], None]:
        """A function that restores the current state."""
        iterations, warned = self.iterations, set(self._warned)
        before = {
            i: (
                s,
                s.step,
                {k: Average(devices.copy_array(a.array), a.scale) for k, a in s.averages.items()},
            )
            for i, s in self._states.items()
        }

        def undo() -> None:
            self.iterations, self._warned, self._states = iterations, warned, {}
            for i, (state, step, averages) in before.items():
                state.step, state.averages = step, averages
                self._states[i] = state

        return undo

    def minimize(
        self,
        loss: Tensor | Callable[[], Tensor],
        var_list: Any = None,
        tape: GradientTape | None = None,
    ) -> Tensor:
        """Take one step that makes `loss` smaller; return the loss before it.

        Args:
            loss: a function without arguments that computes the loss; or a Tensor, with the
                `tape` that recorded it.
            var_list: Variables to update, possibly in nested lists. If None, `loss` must be a
                function, and all trainable Variables that it reads are updated.

        Raises:
            ArgumentError: `loss` is a Tensor without a tape or `var_list`. Also raises what
                `apply_gradients` raises.

        >>> v = gg.Variable(4.0)
        >>> optimizer = gg.optim.SGD(0.25)
        >>> print(optimizer.minimize(lambda: v * v), v.value())
        16.0 2.0
        """
        if isinstance(loss, Tensor):
            value: Tensor = loss
            if tape is None or var_list is None:
                raise ArgumentError(
                    "minimize: a loss that is a Tensor needs var_list= and the tape= that recorded "
                    "it. Or pass a function that computes the loss."
                )
        else:
            if tape is not None:
                raise ArgumentError(
                    "minimize: drop tape=. A loss that is a function is recorded on its own tape."
                )
            tape = GradientTape()
            with tape:
                value = loss()
        variables = _flatten_variables(tape.watched_variables() if var_list is None else var_list)
        if not variables:
            raise ArgumentError(
                "minimize: the loss read no trainable Variable, so there is nothing to update."
            )
        gradients = tape.gradient(value, variables)
        self.apply_gradients(zip(gradients, variables, strict=True))
        return value

    def build(self, var_list: Any) -> None:
        """Create the state of Variables that have none yet: zeros, as before the first step."""
        for variable in _flatten_variables(var_list):
            self._state(variable)

    def _state(self, variable: Variable) -> State:
        state = self._states.get(variable._id)
        if state is None:
            state = self._states[variable._id] = State(variable, self.slots)
        elif not state.matches:
            raise ShapeError(
                f"{self.name}: the Variable '{variable.name}' now has shape {variable.shape}, but "
                "its averages have another size. Use a new optimizer."
            )
        return state

    def _begin(self, state: State, rate: float) -> Callable[..., None]:
        """Count a step of one Variable, and return the function that updates a block.

        It takes flat arrays (p, g, averages in the order of `slots`, scratch) and may write to all
        but `g`.
        """
        raise NotImplementedError

    def _settings(self, step: int, rate: float) -> tuple[float, ...]:
        """The arguments of `kernel` for a Variable's step number `step`."""
        raise NotImplementedError

    def _move_rows(self, data: Any, indices: Any, values: Any, rate: float) -> None:
        """Update rows of a Variable's array; needed if `takes_rows`."""
        raise NotImplementedError

    # -- checking

    def _check_pairs(self, grads_and_vars: Any) -> list[tuple[Gradient, Variable]]:
        """`check_pairs` with a warning; `stacklevel=3` needs `apply_gradients` as the caller."""
        pairs, skipped = check_pairs(self.name, grads_and_vars)
        key = tuple(v._id for v in skipped)
        if skipped and key not in self._warned:
            self._warned.add(key)
            names = ", ".join(f"'{v.name}'" for v in skipped)
            warnings.warn(
                f"{self.name}: the gradient of {names} is None, so they are not updated. "
                "tape.explain(loss, variable) says why.",
                stacklevel=3,
            )
        return pairs

    def _checked_gradient(self, gradient: Gradient, variable: Variable) -> Gradient:
        g = check_gradient(self.name, gradient, variable)
        keep = not isinstance(g, IndexedSlices) or (self.takes_rows and g.dtype not in HALF)
        return g if keep else g.to_dense()

    # -- state

    def _names(self, names: Mapping[str, Variable] | None) -> Mapping[str, Variable]:
        if names is not None:
            return names
        return {str(i): state.variable for i, state in enumerate(self._states.values())}

    def state_dict(self, names: Mapping[str, Variable] | None = None) -> dict[str, Tensor]:
        """A copy of the state as Tensors by name.

        It holds ``iterations``, and for each Variable that was updated ``NAME.step`` and each
        average as ``NAME.SLOT`` times ``NAME.SLOT.scale``.

        Args:
            names: Variables by name, as in ``module.state_dict()``. If None, Variables are
                numbered in the order of their first step.
        """
        arrays: dict[str, Any] = {"iterations": np.array(self.iterations)}
        for name, variable in self._names(names).items():
            state = self._states.get(variable._id)
            if state is None:
                continue
            arrays[f"{name}.step"] = np.array(state.step)
            for slot, average in state.averages.items():
                arrays[f"{name}.{slot}"] = devices.copy_array(average.array)
                arrays[f"{name}.{slot}.scale"] = np.array(average.scale)
        return {name: wrap(array) for name, array in arrays.items()}

    def load_state_dict(
        self, state: Mapping[str, Any], names: Mapping[str, Variable] | None = None
    ) -> None:
        """Load a state that `state_dict` returned: all of it, or on an error nothing.

        Args:
            state: arrays or Tensors by name.
            names: as for `state_dict`. If None, the Variables passed to `build`.

        Raises:
            CheckpointError: the state belongs to another optimizer or to other Variables, or a
                number in it is out of range.
        """
        named = self._names(names)
        left = {k: _to_numpy(v) for k, v in state.items()}

        def take(key: str, shape: tuple[int, ...]) -> np.ndarray[Any, Any]:
            if key not in left:
                raise CheckpointError(f"{self.name}: the state lacks '{key}'.")
            array = left.pop(key)
            if array.shape != shape:
                raise CheckpointError(
                    f"{self.name}: '{key}' has shape {array.shape}, expected {shape}."
                )
            return array

        iterations = check_count(self.name, "iterations", take("iterations", ()))
        states: dict[int, State] = {}
        for name, variable in named.items():
            if f"{name}.step" not in left:
                continue  # it had no step yet
            loaded = State(variable, self.slots)
            step = f"{name}.step"
            loaded.step = check_count(self.name, step, take(step, ()))
            for slot, average in loaded.averages.items():
                scale = f"{name}.{slot}.scale"
                average.scale = check_number(self.name, scale, take(scale, ()), 0.0, 1.0)
                array = take(f"{name}.{slot}", average.array.shape)
                if array.dtype != average.array.dtype:
                    raise CheckpointError(
                        f"{self.name}: '{name}.{slot}' is {array.dtype}, expected "
                        f"{average.array.dtype}."
                    )
                average.array = devices.put(array, variable.device)
            states[variable._id] = loaded
        if left:
            raise CheckpointError(
                f"{self.name}: unexpected state {sorted(left)[:6]}: it belongs to another "
                "optimizer or model."
            )
        self.iterations, self._states = iterations, states

    def __getstate__(self) -> dict[str, Any]:
        """The attributes for a copy or a pickle, with the states as a list."""
        return {**self.__dict__, "_states": list(self._states.values()), "_warned": set()}

    def __setstate__(self, state: dict[str, Any]) -> None:
        """Restore the attributes; copied Variables have new ids, so their states get new keys."""
        self.__dict__.update(state)
        self._states = {s.variable._id: s for s in state["_states"]}
        for s in state["_states"]:
            for average in s.averages.values():  # CuPy unpickles arrays to the current GPU
                average.array = devices.move(average.array, s.variable.device)

    def __repr__(self) -> str:
        rate = self._learning_rate
        shown = getattr(rate, "__name__", repr(rate)) if callable(rate) else repr(rate)
        return f"{type(self).__name__}(learning_rate={shown}, iterations={self.iterations})"


def _flatten_variables(variables: Any) -> list[Variable]:
    leaves = nest.flatten(variables)
    for v in leaves:
        if not isinstance(v, Variable):
            raise DTypeError(f"Expected Variables, got a {type(v).__name__} {v!r:.60}.")
    return leaves


def _to_numpy(value: Any) -> np.ndarray[Any, Any]:
    return value.numpy() if isinstance(value, Tensor) else np.asarray(value)
