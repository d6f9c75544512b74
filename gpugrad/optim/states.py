"""The state that an optimizer keeps for each Variable, and kernel launches that update it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Protocol

from gpugrad.core import devices
from gpugrad.core.backend import READINGS
from gpugrad.core.variable import Variable
from gpugrad.kernels.by_hand.optim import step as launch_step
from gpugrad.optim.arrays import Average, count_reals, ravel_reals, state_dtype

__all__ = ["State", "Stepper", "Work", "group_by_launch", "launch_group"]


class State:
    """The state of one Variable: the number of its steps, and averages by name."""

    __slots__ = ("averages", "step", "variable")

    def __init__(self, variable: Variable, slots: Sequence[str]) -> None:
        data = ravel_reals(variable._data)
        lib, dtype = READINGS[type(data)].lib, state_dtype(data.dtype)
        with devices.formulas_on(data):
            self.averages = {slot: Average(lib.zeros(data.shape, dtype=dtype)) for slot in slots}
        self.step = 0
        self.variable = variable

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


class Stepper(Protocol):
    """The part of an optimizer that a traced `apply_gradients` uses at each replay.

    `Optimizer` implements it. The protocol is here so that `apply_step` need not import
    `Optimizer`.
    """

    slots: tuple[str, ...]
    kernel: str
    iterations: int
    _states: dict[int, State]

    def build(self, var_list: Any) -> None:
        """Make the state of Variables that have none yet."""

    def _check_and_apply(self, pairs: Any, when: Any) -> None: ...
    def _apply(self, pairs: Any, when: Any = True) -> None: ...
    def _rate_now(self) -> float: ...
    def _settings(self, step: int, rate: float) -> tuple[float, ...]: ...


def group_by_launch(work: Sequence[Work]) -> list[list[Work]]:
    """Split `work` into launches: one dtype, one GPU and one step number each."""
    groups: dict[Any, list[Work]] = {}
    for item in work:
        state, data, _ = item
        groups.setdefault((data.dtype, devices.device_of(data), state.step), []).append(item)
    return list(groups.values())


def launch_group(
    optimizer: Stepper, group: Sequence[Work], settings: tuple[float, ...], live: Any = None
) -> None:
    """Launch the kernel that updates arrays of one dtype on one GPU.

    `live` is the argument of that name of `kernels.by_hand.optim.step`.
    """
    states, data, grads = zip(*group, strict=True)
    with devices.formulas_on(data[0]):
        averages = [[s.averages[slot].multiply_out() for s in states] for slot in optimizer.slots]
        arrays = [[ravel_reals(d) for d in data], grads, *averages]
        launch_step(optimizer.kernel, arrays, settings, live)
