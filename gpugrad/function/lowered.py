"""What `Function.lower` returns: a planned program, to be read and looked at."""

from __future__ import annotations

from gpugrad.function.numpy_replay import Replay
from gpugrad.trace import Program

__all__ = ["Lowered"]


class Lowered:
    """The program of one signature of a traced function, as it is replayed; ``print`` shows it.

    Attributes:
        name: of the function.
        program: its steps, after the passes and in groups.
    """

    def __init__(self, name: str, program: Program, replay: Replay) -> None:
        self.name, self.program = name, program
        self._replay = replay

    def __str__(self) -> str:
        return str(self.program)

    def __repr__(self) -> str:
        return f"<lowered {self.name}: {len(self.program.steps)} steps>"
