"""Functions whose results depend on more than their arguments: each replay calls them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from gpugrad.core.devices import Device
from gpugrad.core.tensor import Tensor, wrap


class Repeated:
    """The call of an effect that changes no Variable, such as a sum over processes.

    Args:
        function: of plain arrays; returns a list of them.
        device: where they are.
        captured: whether a CUDA graph may hold the function.
        early: whether it comes as early as it can, as what begins work on another stream.
        forks: whether it begins or awaits such work, so that both belong in one graph.
        eager: the function on Tensors, which tapes record: a branch or loop body runs it.
    """

    version = 0

    def __init__(
        self,
        function: Callable[..., Sequence[Any]],
        device: Device,
        captured: bool,
        early: bool = False,
        forks: bool = False,
        eager: Callable[..., Tensor] | None = None,
    ) -> None:
        self._function, self.device, self._captured = function, device, captured
        self.early, self.forks, self.eager = early, forks, eager

    def __call__(self, *tensors: Tensor) -> list[Tensor]:
        """The results on Tensors of real arrays."""
        return [*map(wrap, self._function(*[t._data for t in tensors]))]

    @property
    def launched(self) -> Repeated | None:
        """The effect itself, if a CUDA graph may hold it."""
        return self if self._captured and self.device.kind == "cuda" else None

    def numbers(self) -> list[Any]:
        """No numbers on the device differ between runs."""
        return []

    def uncount(self) -> None:
        """Undo nothing: runs are not counted."""

    def launch(self, arrays: list[Any], values: list[Any], live: list[Any]) -> list[Any]:
        """The results on plain arrays."""
        return list(self._function(*arrays))


def nothing_to_undo() -> Callable[[], None]:
    """The `undo` of an effect that leaves nothing behind."""
    return lambda: None
