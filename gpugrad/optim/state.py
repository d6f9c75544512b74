"""The state of an optimizer: created when first needed, saved and loaded by name."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from gpugrad.core import devices, nest
from gpugrad.core.backend import READINGS
from gpugrad.core.holders import opened
from gpugrad.core.tensor import Tensor, wrap
from gpugrad.core.variable import Variable
from gpugrad.errors import ArgumentError, DTypeError, ShapeError, saying_where
from gpugrad.optim.arrays import count_reals, drop_subnormals, state_dtype
from gpugrad.optim.checks import (
    check_count,
    check_empty,
    check_number,
    check_rule,
    take_array,
    warn_of_left_out,
    write_rule,
)
from gpugrad.optim.groups import Group

SUM = "gradient"
"""The slot of the sum of gradients, in `State.averages`."""

_STEPS_WITH_SUBNORMALS = 64


class State:
    """The state of one Variable: its group, the number of its steps, and averages by name.

    Attributes:
        summed: whether the sum of gradients, which is one of the averages, holds any.
    """

    __slots__ = ("averages", "group", "size", "step", "summed", "variable")

    def __init__(self, variable: Variable, sizes: Mapping[str, int], group: Group) -> None:
        self.averages: dict[str, Any] = {}
        self.step, self.summed = 0, False
        self.variable, self.group = variable, group
        self.size = count_reals(variable._data)
        for slot, size in sizes.items():
            self.add(slot, size)

    def add(self, slot: str, size: int) -> Any:
        """Begin an average of zeros."""
        data = self.variable._data
        lib, dtype = READINGS[type(data)].lib, state_dtype(data.dtype)
        with devices.formulas_on(data):
            average = self.averages[slot] = lib.zeros(size, dtype=dtype)
        return average

    def count(self) -> None:
        """Count a step; some of them drop the subnormal numbers of averages in NumPy."""
        self.step += 1
        if self.step % _STEPS_WITH_SUBNORMALS == 0:
            for array in self.averages.values():
                if type(array) is np.ndarray:
                    drop_subnormals(array)

    @property
    def matches(self) -> bool:
        """Whether the Variable has as many elements as when the averages began."""
        return count_reals(self.variable._data) == self.size


class Stateful:
    """The part of `Optimizer` that keeps state: of a step, a copy, a checkpoint or an undo."""

    name: str
    slots: tuple[str, ...] = ()
    """The averages that a subclass keeps for each Variable."""

    def __init__(self) -> None:
        self.iterations = 0
        """The number of steps taken."""
        self.skipped = 0
        """The number of steps skipped: by `when`, or for gradients that were not finite."""
        self.groups: list[Group] = []
        self._others = Group(None, {})
        self.accumulate = 1
        self._calls = 0  # of apply_gradients since the last step, where several make a step
        self._paths: dict[int, str] = {}  # of Variables in Modules passed to build, by id
        self._rules: dict[Any, Any] = {}  # compiled formulas
        self._states: dict[int, State] = {}
        self._warned: set[tuple[int, ...]] = set()

    @saying_where
    def build(self, var_list: Any) -> None:
        """Create the state of Variables that have none yet: zeros, as before the first step.

        Args:
            var_list: Variables, possibly in nested lists; or a Module, whose trainable Variables
                are known to the groups of settings by their paths, as ``layers.0.kernel``; or a
                dict of Variables by path.
        """
        if hasattr(var_list, "named_variables"):
            var_list = {path: v for path, v in var_list.named_variables() if v.trainable}
        if isinstance(var_list, Mapping):
            self._paths |= {v._id: path for path, v in var_list.items() if isinstance(v, Variable)}
            for v in var_list.values():  # a group may select them by path now
                if isinstance(v, Variable) and v._id in self._states:
                    self._regroup(v, self._states[v._id])
        for variable in flatten_variables(var_list):
            self._state(variable)

    def _regroup(self, variable: Variable, state: State) -> None:
        if self.sizes(variable).keys() != state.averages.keys() - {SUM}:
            raise ArgumentError(
                f"{self.name}: by its path '{self.path_of(variable)}' the Variable has other "
                "averages than by its name. Call build before the first step."
            )
        state.group = self._group_of(variable)

    def sizes(self, variable: Variable) -> dict[str, int]:
        """The number of elements of each average of a Variable: its own, unless a subclass says."""
        return dict.fromkeys(self.slots, count_reals(variable))

    def _group_of(self, variable: Variable) -> Group:
        name = self.path_of(variable)
        return next((g for g in self.groups if g.selects(name, variable)), self._others)

    def path_of(self, variable: Variable) -> str:
        """The path of a Variable in the Module that was passed to `build`, otherwise its name."""
        return self._paths.get(variable._id, variable.name)

    def _state(self, variable: Variable) -> State:
        state = self._states.get(variable._id)
        if state is None:
            group = self._group_of(variable)
            state = self._states[variable._id] = State(variable, self.sizes(variable), group)
        elif not state.matches:
            raise ShapeError(
                f"{self.name}: the Variable '{variable.name}' now has shape {variable.shape}, but "
                "its averages have another size. Use a new optimizer."
            )
        return state

    def _undo(self) -> Callable[[], None]:
        """A function that restores the current state."""
        counts = self.iterations, self.skipped, self._calls
        warned = set(self._warned)
        before = {
            i: (
                s,
                s.step,
                s.summed,
                {slot: devices.copy_array(array) for slot, array in s.averages.items()},
            )
            for i, s in self._states.items()
        }

        def undo() -> None:
            self.iterations, self.skipped, self._calls = counts
            self._warned, self._states = warned, {}
            for i, (state, step, summed, averages) in before.items():
                state.step, state.summed, state.averages = step, summed, averages
                self._states[i] = state

        return undo

    def _named(self, names: Mapping[str, Variable] | None) -> Mapping[str, Variable]:
        if names is not None:
            return names
        return {str(i): state.variable for i, state in enumerate(self._states.values())}

    def state_dict(self, names: Mapping[str, Variable] | None = None) -> dict[str, Tensor]:
        """A copy of the state as Tensors by name.

        It holds ``iterations``, and for each Variable that was updated ``NAME.step`` and each
        average as ``NAME.SLOT``, with 1 as ``NAME.SLOT.scale`` for older versions. ``rule`` is the
        name of the class, as bytes in UTF-8.

        Args:
            names: Variables by name, as in ``module.state_dict()``. If None, Variables are
                numbered in the order of their first step. A warning names those with a state that
                are not among them.
        """
        if names is not None:
            known = [state.variable for state in self._states.values()]
            warn_of_left_out(self.name, names, known)
        rule = write_rule(type(self).__name__)
        arrays: dict[str, Any] = {"iterations": np.array(self.iterations), "rule": rule}
        arrays |= {k: np.array(n) for k, n in self._counts().items() if n}
        for name, variable in self._named(names).items():
            state = self._states.get(variable._id)
            if state is None:
                continue
            arrays[f"{name}.step"] = np.array(state.step)
            for slot, array in state.averages.items():
                if slot != SUM or state.summed:
                    arrays[f"{name}.{slot}"] = devices.copy_array(array)
                    arrays[f"{name}.{slot}.scale"] = np.array(1.0)  # others in older files
        return {name: wrap(array) for name, array in arrays.items()}

    def _counts(self) -> dict[str, int]:
        """The counts that a state holds if they are not 0."""
        return {"skipped": self.skipped, "accumulated": self._calls}

    @saying_where
    def load_state_dict(
        self, state: Mapping[str, Any], names: Mapping[str, Variable] | None = None
    ) -> None:
        """Load a state that `state_dict` returned: all of it, or on an error nothing.

        Args:
            state: arrays or Tensors by name.
            names: as for `state_dict`. If None, the Variables passed to `build`.

        Raises:
            CheckpointError: the state belongs to another optimizer or to other Variables, or a
                number in it is out of range. Without the entry ``rule``, as in older files, the
                state of another class is loaded if its averages have the same names.
        """
        named = self._named(names)
        left = dict(state)
        check_rule(self.name, type(self).__name__, left)

        def take(key: str, shape: tuple[int, ...], dtype: Any = None) -> np.ndarray[Any, Any]:
            return take_array(self.name, left, key, shape, dtype)

        iterations = check_count(self.name, "iterations", take("iterations", ()))
        skipped, calls = (
            check_count(self.name, key, take(key, ())) if key in left else 0
            for key in self._counts()
        )
        states: dict[int, State] = {}
        for name, variable in named.items():
            if f"{name}.step" not in left:
                continue  # it had no step yet
            loaded = State(variable, self.sizes(variable), self._group_of(variable))
            if f"{name}.{SUM}" in left:
                loaded.add(SUM, loaded.size)
                loaded.summed = True
            step = f"{name}.step"
            loaded.step = check_count(self.name, step, take(step, ()))
            for slot, zeros in loaded.averages.items():
                key = f"{name}.{slot}"
                scale = check_number(self.name, f"{key}.scale", take(f"{key}.scale", ()), 0.0, 1.0)
                array = take(key, zeros.shape, zeros.dtype)
                array = array if scale == 1 else array * array.dtype.type(scale)
                loaded.averages[slot] = devices.put(array, variable.device)
            states[variable._id] = loaded
        check_empty(self.name, left)
        self.iterations, self.skipped, self._calls = iterations, skipped, calls
        self._states = states

    def __getstate__(self) -> dict[str, Any]:
        """The attributes for a copy or a pickle, with the states as a list."""
        paths = {s.variable._id: self._paths.get(s.variable._id) for s in self._states.values()}
        return {
            **self.__dict__,
            "_states": list(self._states.values()),
            "_paths": list(paths.values()),
            "_rules": {},
            "_warned": set(),
        }

    def __setstate__(self, state: dict[str, Any]) -> None:
        """Restore the attributes; copied Variables have new ids, so their states get new keys."""
        self.__dict__.update(state)
        self._states = {s.variable._id: s for s in state["_states"]}
        self._paths = {i: p for i, p in zip(self._states, state["_paths"], strict=True) if p}
        for s in state["_states"]:
            for slot, array in s.averages.items():  # CuPy unpickles arrays to the current GPU
                s.averages[slot] = devices.move(array, s.variable.device)


def flatten_variables(variables: Any) -> list[Variable]:
    """The Variables in a nested structure, or the trainable ones of a Module; or DTypeError."""
    variables = getattr(variables, "trainable_variables", variables)
    leaves = [opened(v) for v in nest.flatten(variables)]
    for v in leaves:
        if not isinstance(v, Variable):
            raise DTypeError(f"Expected Variables, got a {type(v).__name__} {v!r:.60}.")
    return leaves
