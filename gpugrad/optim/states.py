"""What an optimizer keeps for each Variable, and what of it moves together."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from gpugrad.core import devices
from gpugrad.core.backend import READINGS
from gpugrad.core.variable import Variable
from gpugrad.optim.arrays import Average, flat, reals, state_dtype

__all__ = ["State", "Work", "grouped"]


class State:
    """What an optimizer keeps for one Variable: how often it was moved, and averages by name."""

    __slots__ = ("averages", "step", "variable")

    def __init__(self, variable: Variable, slots: Sequence[str]) -> None:
        data = flat(variable._data)
        lib, dtype = READINGS[type(data)].lib, state_dtype(data.dtype)
        with devices.formulas_on(data):
            self.averages = {slot: Average(lib.zeros(data.shape, dtype=dtype)) for slot in slots}
        self.step = 0
        self.variable = variable

    @property
    def fits(self) -> bool:
        """Whether the averages are of as many elements as the Variable has now."""
        size = reals(self.variable._data)
        for average in self.averages.values():  # noqa: SIM110 - all() takes four times as long
            if average.array.size != size:
                return False
        return True


Work = tuple[State, Any, Any]
"""A Variable's state, its array, and its gradient: flat, or IndexedSlices."""


def grouped(work: Sequence[Work]) -> list[list[Work]]:
    """What one launch can move: of one dtype and GPU, and for the same number of steps so far."""
    groups: dict[Any, list[Work]] = {}
    for one in work:
        state, data, _ = one
        groups.setdefault((data.dtype, devices.device_of(data), state.step), []).append(one)
    return list(groups.values())
