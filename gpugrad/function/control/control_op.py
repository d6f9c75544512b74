"""The base of what takes an op's place in a step of control flow."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from gpugrad.core.tensor import Tensor
from gpugrad.registry.fields import Replay


class ControlOp(Replay):
    """The op of a step that is not a registered op: a function of Tensors with its own gradient.

    Passes and replays read the same attributes as of a registered op; here they have the defaults.

    Attributes:
        name: the step's name.
        kind: ``"control"``: passes and replays leave such a step unchanged.
        arrays: empty: its arguments have no names, and there may be any number of them.
        outputs: above 1, because its function returns a list, whatever its length.
        variadic, is_library_function: False, as for most ops.
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
