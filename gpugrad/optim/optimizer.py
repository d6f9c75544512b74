"""What all optimizers share: steps in place, and their state by name."""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

import numpy as np

from gpugrad.autodiff.tape import GradientTape
from gpugrad.core import devices, nest
from gpugrad.core.backend import HALF
from gpugrad.core.indexed_slices import IndexedSlices
from gpugrad.core.tensor import Tensor, wrap
from gpugrad.core.threads import run_parallel
from gpugrad.core.variable import Variable
from gpugrad.errors import ArgumentError, CheckpointError, DTypeError, ShapeError, reraise
from gpugrad.kernels.by_hand.optim import step as launch_step
from gpugrad.optim.applied import Applied
from gpugrad.optim.arrays import Average, flat, move, parts, scratch, writable
from gpugrad.optim.checks import Gradient, fitting, one_element, paired
from gpugrad.optim.states import State, Work, grouped
from gpugrad.trace.array import current_trace
from gpugrad.trace.tracing import Tracing

__all__ = ["Optimizer", "Schedule"]

Schedule = float | Callable[[int], Any]


class Optimizer:
    """Base of the optimizers. A subclass names its `slots` and writes `_begin`.

    Args:
        learning_rate: a number, or a function that is given `iterations` and returns one.
        name: for messages.
    """

    slots: tuple[str, ...] = ()
    takes_rows = False
    """Whether `_move_rows` moves single rows; if not, IndexedSlices are made dense first."""
    kernel = ""
    """Of `kernels.by_hand.optim`, which moves all arrays of a GPU at once; else `_begin` does each.

    An optimizer with a kernel writes `_settings`.
    """

    def __init__(self, learning_rate: Schedule, name: str | None = None) -> None:
        self.name = name or type(self).__name__
        self.learning_rate = learning_rate
        self.iterations = 0
        """How many steps have been taken."""
        self._states: dict[int, State] = {}
        self._warned: set[tuple[int, ...]] = set()

    @property
    def learning_rate(self) -> Schedule:
        """The number or function given; may be set between steps."""
        return self._learning_rate

    @learning_rate.setter
    def learning_rate(self, value: Schedule) -> None:
        if isinstance(value, Variable):
            raise ArgumentError(
                f"{self.name}: the learning rate is the Variable '{value.name}', whose later "
                "values it needs to see. Give a function of the number of steps, as lambda _: "
                "rate, or set optimizer.learning_rate."
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
            raise ArgumentError(f"{self.name}: the learning rate must be 0 or above, got {rate}.")
        return rate

    def _rate_now(self) -> float:
        rate = self._learning_rate
        return self._rate(rate(self.iterations) if callable(rate) else rate)

    # -- stepping

    def apply_gradients(
        self, grads_and_vars: Iterable[tuple[Gradient | None, Variable]], *, when: Any = True
    ) -> None:
        """Move Variables along their gradients, in place.

        All gradients are checked before any Variable is changed, so an error leaves the model
        and the optimizer as they were. Values that were read from a Variable before stay as
        they are.

        Args:
            grads_and_vars: pairs (gradient, Variable), as ``zip(gradients, variables)``. A
                gradient has the shape, dtype and device of its Variable. IndexedSlices move
                their rows alone in `SGD` without momentum; they are made dense elsewhere.
                Variables whose gradient is None are left alone, with a warning (once).
            when: a bool, or a Tensor of one element: whether the step is taken. One that is not
                is not counted either. In a traced function each run asks anew, and on a GPU
                waits for the answer.

        Raises:
            ArgumentError: there are no gradients, all are None, or a Variable comes twice.
            ShapeError, DTypeError, DeviceError: a gradient that does not fit its Variable;
                `when` has more than one element.

        >>> v = gg.Variable([1.0, 2.0])
        >>> gg.optim.SGD(0.5).apply_gradients([(gg.constant([1.0, 1.0]), v)])
        >>> print(v.value())
        [0.5 1.5]
        """
        pairs = self._paired(grads_and_vars)
        if when is not True:
            when = one_element(self.name, when)
        if (trace := current_trace()) is not None:
            self._apply_at_replay(trace, pairs, when)
        else:
            self._apply(((self._fitting(g, v), v) for g, v in pairs), when)

    def _apply(self, pairs: Iterable[tuple[Gradient, Variable]], when: Any = True) -> None:
        """Move Variables along gradients that fit them."""
        try:
            pairs = list(pairs)
            if not when:
                return
            rate = self._rate_now()
            # everything that can fail comes before the first change
            work: list[Work] = []
            for gradient, variable in pairs:
                state = self._state(variable)
                g = gradient if isinstance(gradient, IndexedSlices) else flat(gradient._data)
                work.append((state, writable(variable), g))
            work = self._launch_all(self._move_all_rows(work, rate), rate)
            for _, data, _ in work:
                if type(data) is not np.ndarray:
                    with devices.formulas_on(data):
                        scratch(flat(data))  # given back at once, and found again below
            self._move_all(work, rate)
            self.iterations += 1
        except MemoryError as error:
            reraise(error, f"{self.name}.apply_gradients", {}, {})

    def _move_all(self, work: list[Work], rate: float) -> None:
        """Move each by itself: those on the CPU together, on several threads."""
        on_cpu: list[Any] = []
        with np.errstate(all="ignore"):
            for state, data, g in work:
                if type(data) is np.ndarray:
                    on_cpu.append(self._begun(state, data, g, rate))
                else:
                    with devices.formulas_on(data):
                        move([self._begun(state, data, g, rate)])
            run_parallel(move, parts(on_cpu))

    def _begun(self, state: State, data: Any, g: Any, rate: float) -> Any:
        """A step and what it moves, for `move`."""
        averages = [average.array for average in state.averages.values()]
        return self._begin(state, rate), [flat(data), g, *averages]

    def _move_all_rows(self, work: list[Work], rate: float) -> list[Work]:
        """Move those of which the gradient is rows, which takes memory; the rest of the work."""
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
        """Move what is on GPUs, in one launch for all of one dtype; the rest of the work."""
        dense: list[Work] = []
        rest: list[Work] = []
        for one in work:
            on_cpu = type(one[1]) is np.ndarray or not self.kernel
            (rest if on_cpu else dense).append(one)
        for group in grouped(dense):
            self._launch(group, self._settings(group[0][0].step + 1, rate))
            for state, _, _ in group:
                state.step += 1
        return rest

    def _launch(self, group: Sequence[Work], settings: tuple[float, ...], live: Any = None) -> None:
        """Move arrays of one dtype and one GPU; `live` as for `kernels.by_hand.optim.step`."""
        states, data, gradients = zip(*group, strict=True)
        with devices.formulas_on(data[0]):
            averages = [[s.averages[slot].multiply_out() for s in states] for slot in self.slots]
            launch_step(
                self.kernel, [[flat(d) for d in data], gradients, *averages], settings, live
            )

    def _apply_at_replay(self, trace: Tracing, pairs: list[Any], when: Any) -> None:
        """Apply now and at each replay of what is being traced."""
        read = [] if when is True else [when]
        for g, v in pairs:
            if isinstance(g, IndexedSlices):  # they are looked at in each run
                read += [g.values, g.indices]
            else:
                read.append(fitting(self.name, g, v))
        applied = Applied(self, pairs, when is not True)
        trace.effect("apply_gradients", applied, read, applied.variables, undo=self._undo)

    def _undo(self) -> Callable[[], None]:
        """What brings back the state as it is now."""
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
            loss: a function of no arguments that computes it; or a Tensor, with the `tape`
                that recorded it.
            var_list: Variables to move (nested lists are fine); for a function, all trainable
                ones that it reads if None.

        Raises:
            ArgumentError: a Tensor without its tape or without `var_list`; and what
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
                    "minimize: a loss that is a Tensor needs var_list= and the tape= that "
                    "recorded it; or give a function that computes the loss."
                )
        else:
            if tape is not None:
                raise ArgumentError("minimize: a loss that is a function makes its own tape.")
            tape = GradientTape()
            with tape:
                value = loss()
        variables = _flattened(tape.watched_variables() if var_list is None else var_list)
        if not variables:
            raise ArgumentError(
                "minimize: the loss read no trainable Variable, so there is nothing to move."
            )
        gradients = tape.gradient(value, variables)
        self.apply_gradients(zip(gradients, variables, strict=True))
        return value

    def build(self, var_list: Any) -> None:
        """Make the state of Variables that have none yet: zeros, as before a first step."""
        for variable in _flattened(var_list):
            self._state(variable)

    def _state(self, variable: Variable) -> State:
        state = self._states.get(variable._id)
        if state is None:
            state = self._states[variable._id] = State(variable, self.slots)
        elif not state.fits:
            raise ShapeError(
                f"{self.name}: the Variable '{variable.name}' has shape {variable.shape} now, "
                "and its averages are of a value of another size. Use a new optimizer."
            )
        return state

    def _begin(self, state: State, rate: float) -> Callable[..., None]:
        """Count a step of one Variable, and return what to do to each block of its arrays.

        That is a function of flat arrays (p, g, averages in the order of `slots`, scratch),
        which writes to all but `g`.
        """
        raise NotImplementedError

    def _settings(self, step: int, rate: float) -> tuple[float, ...]:
        """What `kernel` takes for a Variable's step number `step`."""
        raise NotImplementedError

    def _move_rows(self, data: Any, indices: Any, values: Any, rate: float) -> None:
        """Move rows of a Variable's array, for `takes_rows`."""
        raise NotImplementedError

    # -- checking

    def _paired(self, grads_and_vars: Any) -> list[tuple[Gradient, Variable]]:
        """As `paired`; the methods of `apply_gradients` alone call it, for its warning."""
        pairs, skipped = paired(self.name, grads_and_vars)
        key = tuple(v._id for v in skipped)
        if skipped and key not in self._warned:
            self._warned.add(key)
            names = ", ".join(f"'{v.name}'" for v in skipped)
            warnings.warn(
                f"{self.name}: the gradient of {names} is None, so they stay as they are. "
                "tape.explain(loss, variable) says why.",
                stacklevel=3,
            )
        return pairs

    def _fitting(self, gradient: Gradient, variable: Variable) -> Gradient:
        g = fitting(self.name, gradient, variable)
        keep = not isinstance(g, IndexedSlices) or (self.takes_rows and g.dtype not in HALF)
        return g if keep else g.to_dense()

    # -- state

    def _names(self, names: Mapping[str, Variable] | None) -> Mapping[str, Variable]:
        if names is not None:
            return names
        return {str(i): state.variable for i, state in enumerate(self._states.values())}

    def state_dict(self, names: Mapping[str, Variable] | None = None) -> dict[str, Tensor]:
        """The state, as copies by name: ``iterations``, and for each Variable that was moved
        ``NAME.step`` and each average as ``NAME.SLOT`` times ``NAME.SLOT.scale``.

        Args:
            names: Variables by name, as ``module.state_dict()`` gives them; if None they are
                numbered in the order in which the optimizer met them.
        """  # noqa: D205
        made: dict[str, Any] = {"iterations": np.array(self.iterations)}
        for name, variable in self._names(names).items():
            state = self._states.get(variable._id)
            if state is None:
                continue
            made[f"{name}.step"] = np.array(state.step)
            for slot, average in state.averages.items():
                made[f"{name}.{slot}"] = devices.copy_array(average.array)
                made[f"{name}.{slot}.scale"] = np.array(average.scale)
        return {name: wrap(array) for name, array in made.items()}

    def load_state_dict(
        self, state: Mapping[str, Any], names: Mapping[str, Variable] | None = None
    ) -> None:
        """Take over a state that `state_dict` gave; all of it, or on an error nothing.

        Args:
            state: arrays or Tensors by name.
            names: as for `state_dict`. If None, the Variables are those of `build`.

        Raises:
            CheckpointError: it is the state of another optimizer or of other Variables.
        """
        named = self._names(names)
        left = {k: _host(v) for k, v in state.items()}

        def take(key: str, shape: tuple[int, ...]) -> np.ndarray[Any, Any]:
            if key not in left:
                raise CheckpointError(f"{self.name}: the state lacks '{key}'.")
            array = left.pop(key)
            if array.shape != shape:
                raise CheckpointError(
                    f"{self.name}: '{key}' has shape {array.shape}, {shape} is needed."
                )
            return array

        iterations = int(take("iterations", ()))
        made: dict[int, State] = {}
        for name, variable in named.items():
            if f"{name}.step" not in left:
                continue  # it had not been moved yet
            fresh = State(variable, self.slots)
            fresh.step = int(take(f"{name}.step", ()))
            for slot, average in fresh.averages.items():
                average.scale = float(take(f"{name}.{slot}.scale", ()))
                array = take(f"{name}.{slot}", average.array.shape)
                if array.dtype != average.array.dtype:
                    raise CheckpointError(
                        f"{self.name}: '{name}.{slot}' is {array.dtype}, "
                        f"{average.array.dtype} is needed."
                    )
                average.array = devices.put(array, variable.device)
            made[variable._id] = fresh
        if left:
            raise CheckpointError(
                f"{self.name}: nothing here has the state {sorted(left)[:6]}: it belongs to "
                "another optimizer or model."
            )
        self.iterations, self._states = iterations, made

    def __getstate__(self) -> dict[str, Any]:
        """What a copy or a pickle takes: states by the Variables they belong to."""
        kept = {**self.__dict__, "_states": list(self._states.values())}
        return {**kept, "_warned": set()}

    def __setstate__(self, state: dict[str, Any]) -> None:
        """Copied Variables have new serial numbers, so their states get new keys."""
        self.__dict__.update(state)
        self._states = {s.variable._id: s for s in state["_states"]}
        for s in state["_states"]:
            for average in s.averages.values():  # CuPy's are read to the current GPU
                average.array = devices.move(average.array, s.variable.device)

    def __repr__(self) -> str:
        rate = self._learning_rate
        shown = getattr(rate, "__name__", repr(rate)) if callable(rate) else repr(rate)
        return f"{type(self).__name__}(learning_rate={shown}, iterations={self.iterations})"


def _flattened(variables: Any) -> list[Variable]:
    found = nest.flatten(variables)
    for v in found:
        if not isinstance(v, Variable):
            raise DTypeError(f"Variables are needed, got a {type(v).__name__} {v!r:.60}.")
    return found


def _host(value: Any) -> np.ndarray[Any, Any]:
    return value.numpy() if isinstance(value, Tensor) else np.asarray(value)
