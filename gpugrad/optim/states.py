"""The state that an optimizer keeps for each Variable, and kernel launches that update it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Protocol

from gpugrad.core import devices
from gpugrad.core.backend import READINGS
from gpugrad.core.variable import Variable
from gpugrad.optim.arrays import Average, count_reals, ravel_reals, state_dtype
from gpugrad.optim.groups import Group

__all__ = ["Settings", "State", "Stepper", "Work", "group_by_launch", "launch_group"]


class State:
    """The state of one Variable: its group, the number of its steps, and averages by name."""

    __slots__ = ("averages", "group", "step", "variable")

    def __init__(self, variable: Variable, slots: Sequence[str], group: Group) -> None:
        self.averages: dict[str, Average] = {}
        self.step = 0
        self.variable, self.group = variable, group
        for slot in slots:
            self.add(slot)

    def add(self, slot: str) -> Average:
        """Begin an average of zeros."""
        data = ravel_reals(self.variable._data)
        lib, dtype = READINGS[type(data)].lib, state_dtype(data.dtype)
        with devices.formulas_on(data):
            average = self.averages[slot] = Average(lib.zeros(data.shape, dtype=dtype))
        return average

    @property
    def matches(self) -> bool:
        """Whether the averages have as many elements as the Variable has now."""
        size = count_reals(self.variable._data)
        for average in self.averages.values():  # noqa: SIM110 - all() takes four times as long
            if average.array.size != size:
                return False
        return True


Work = tuple[State, Any, Any]
"""A Variable's state, its array, and its gradient as a flat array or IndexedSlices."""

Settings = Callable[[State], tuple[float, ...]]
"""The numbers of the next step of a Variable."""


class Stepper(Protocol):
    """The part of an optimizer that a traced `apply_gradients` uses at each replay.

    `Optimizer` implements it. The protocol is here so that `apply_step` need not import
    `Optimizer`.
    """

    slots: tuple[str, ...]
    iterations: int
    _states: dict[int, State]

    def build(self, var_list: Any) -> None:
        """Make the state of Variables that have none yet."""

    @property
    def _captures(self) -> bool: ...
    def _check_and_apply(self, pairs: Any, when: Any) -> None: ...
    def _apply(self, pairs: Any, when: Any = True) -> None: ...
    def _settings_now(self) -> Settings: ...
    def _launch(self, columns: Sequence[Any], settings: Any, live: Any) -> None: ...


def group_by_launch(work: Sequence[Work]) -> list[list[Work]]:
    """Split `work` into launches: one dtype, one GPU, one group and one step number each."""
    groups: dict[Any, list[Work]] = {}
    for item in work:
        state, data, _ = item
        key = data.dtype, devices.device_of(data), state.group, state.step
        groups.setdefault(key, []).append(item)
    return list(groups.values())


def launch_group(
    optimizer: Stepper, group: Sequence[Work], settings: tuple[float, ...], live: Any = None
) -> None:
    """Launch the kernel that updates arrays of one dtype on one GPU.

    `live` is the argument of that name of `kernels.codegen.steps.StepKernel.step`.
    """
    states, data, grads = zip(*group, strict=True)
    with devices.formulas_on(data[0]):
        averages = [[s.averages[slot].multiply_out() for s in states] for slot in optimizer.slots]
        arrays = [[ravel_reals(d) for d in data], grads, *averages]
        optimizer._launch(arrays, settings, live)
