"""The state that an optimizer keeps for each Variable, and kernel launches that update it."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Protocol

import numpy as np

from gpugrad.core import devices
from gpugrad.core.backend import READINGS
from gpugrad.core.variable import Variable
from gpugrad.kernels.runtime.launch import gpu_of
from gpugrad.optim.arrays import as_reals, count_reals, drop_subnormals, state_dtype
from gpugrad.optim.groups import Group

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


Work = tuple[State, Any, Any]
"""A Variable's state, its array, and its gradient as a flat array or IndexedSlices."""

Settings = Callable[[State], tuple[float, ...]]
"""The numbers of the next step of a Variable."""


class Launcher(Protocol):
    """The part of an optimizer that launches its kernel."""

    slots: tuple[str, ...]

    def _launch(
        self, columns: Sequence[Any], settings: Any, live: Any, rounded: Any = None
    ) -> None: ...


class Stepper(Launcher, Protocol):
    """The part of an optimizer that a traced `apply_gradients` uses at each replay.

    `Optimizer` implements it. The protocol is here so that `apply_step` need not import
    `Optimizer`.
    """

    iterations: int
    _states: dict[int, State]

    def build(self, var_list: Any) -> None:
        """Make the state of Variables that have none yet."""

    @property
    def _rule(self) -> Any: ...
    @property
    def kernel(self) -> Any:
        """The kernels of the formula."""

    def sizes(self, variable: Variable) -> dict[str, int]:
        """The number of elements of each average."""

    def _load(self, variables: Sequence[Variable]) -> None: ...
    def _captures(self, variables: Sequence[Variable]) -> bool: ...
    def _check_and_apply(self, pairs: Any, when: Any) -> None: ...
    def _apply(self, pairs: Any, when: Any = True) -> None: ...
    def _settings_now(self) -> Settings: ...


def group_by_launch(work: Sequence[Work]) -> list[list[Work]]:
    """Split `work` into launches: one dtype, one GPU, one group and one step number each."""
    groups: dict[Any, list[Work]] = {}
    for item in work:
        state, data, _ = item
        key = data.dtype, gpu_of(data), state.group, state.step
        groups.setdefault(key, []).append(item)
    return list(groups.values())


def launch_group(
    optimizer: Launcher,
    group: Sequence[Work],
    settings: tuple[float, ...],
    live: Any = None,
    rounded: Sequence[Any] | None = None,
) -> None:
    """Launch the kernel that updates arrays of one dtype on one GPU.

    `live` and `rounded` are the arguments of `kernels.codegen.steps.StepKernel.step`.
    """
    states, data, grads = zip(*group, strict=True)
    with devices.formulas_on(data[0]):
        averages = [[s.averages[slot] for s in states] for slot in optimizer.slots]
        arrays = [[*map(as_reals, data)], grads, *averages]
        optimizer._launch(arrays, settings, live, rounded)
