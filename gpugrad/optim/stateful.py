"""The state of an optimizer: created when first needed, saved and loaded by name."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from gpugrad.core import devices, nest
from gpugrad.core.tensor import Tensor, wrap
from gpugrad.core.variable import Variable
from gpugrad.errors import CheckpointError, DTypeError, ShapeError
from gpugrad.optim.arrays import Average
from gpugrad.optim.checks import check_count, check_number
from gpugrad.optim.states import State

__all__ = ["Stateful", "flatten_variables"]


class Stateful:
    """The part of `Optimizer` that keeps state: of a step, a copy, a checkpoint or an undo."""

    name: str
    slots: tuple[str, ...] = ()
    """The averages that a subclass keeps for each Variable."""

    def __init__(self) -> None:
        self.iterations = 0
        """The number of steps taken."""
        self._states: dict[int, State] = {}
        self._warned: set[tuple[int, ...]] = set()

    def build(self, var_list: Any) -> None:
        """Create the state of Variables that have none yet: zeros, as before the first step."""
        for variable in flatten_variables(var_list):
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


def flatten_variables(variables: Any) -> list[Variable]:
    """The Variables in a nested structure; DTypeError if it holds anything else."""
    leaves = nest.flatten(variables)
    for v in leaves:
        if not isinstance(v, Variable):
            raise DTypeError(f"Expected Variables, got a {type(v).__name__} {v!r:.60}.")
    return leaves


def _to_numpy(value: Any) -> np.ndarray[Any, Any]:
    return value.numpy() if isinstance(value, Tensor) else np.asarray(value)
