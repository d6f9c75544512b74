"""Steps that one launch does."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from gpugrad.core.backend import Namespace
from gpugrad.trace.program import Program, Step, Value

__all__ = ["Joined", "with_instead"]


class Joined(Step):
    """Several steps as one.

    Attributes:
        apart: the steps, as a program of the arguments: they run where the launch declines.
    """

    __slots__ = ("apart",)
    overwrites: int | None = None
    """As of an op: the position of the argument that `run` writes over with ``over=True``."""

    def __init__(
        self, name: str, args: Sequence[Any], steps: list[Step], outs: list[Value]
    ) -> None:
        self.apart = Program()
        self.apart.inputs, self.apart.steps, self.apart.outputs = list(args), steps, outs
        super().__init__(None, args, steps[0].params, outs, name=name)

    def run(self, xp: Namespace, *arrays: Any, over: bool = False) -> Any:
        """Their results, of bare arrays, or NotImplemented."""
        raise NotImplementedError


def with_instead(program: Program, instead: dict[int, list[Step]]) -> Program:
    """The program with other steps in the places of some, by their ids."""
    made = program.copy()
    made.steps = [s for step in program.steps for s in instead.get(id(step), [step])]
    return made
