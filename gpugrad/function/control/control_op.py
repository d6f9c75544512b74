"""What stands in the place of an op in a step of control flow."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from gpugrad.core.tensor import Tensor
from gpugrad.registry.fields import Replay

__all__ = ["ControlOp"]


class ControlOp(Replay):
    """The op of a step that is not a registered op: a function of Tensors with its own gradient.

    Passes and replays ask it what they ask a registered op, with the defaults as answers.

    Attributes:
        name: of the step.
        kind: ``"control"``: passes and replays leave such a step as it is.
        arrays: empty: its arguments have no names, and there may be any number of them.
        outputs: above 1, because its function returns a list, whatever its length.
        variadic, is_library_function: as for an op; it is neither.
    """

    kind = "control"
    arrays: tuple[str, ...] = ()
    outputs = 2
    variadic = is_library_function = False

    def __init__(self, name: str) -> None:
        self.name = name

    def eager(self, *tensors: Tensor) -> list[Tensor]:
        """The results, recorded by the recorders of this thread."""
        raise NotImplementedError

    def bare(self, xp: Any) -> Callable[..., list[Any]]:
        """The function on plain arrays that a replay calls."""
        raise NotImplementedError
