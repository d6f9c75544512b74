"""What `Function.lower` returns: a planned program, to be read and looked at."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from gpugrad.function.cpu.replay import Replay
from gpugrad.function.inspect.dot import dot
from gpugrad.function.inspect.page import page
from gpugrad.function.inspect.timing import step_times
from gpugrad.function.memory import Memory, measured
from gpugrad.trace.program import Program

__all__ = ["Lowered"]


class Lowered:
    """The program of one signature of a traced function, as it is replayed; ``print`` shows it.

    Attributes:
        name: of the function.
        program: its steps, after the passes and in groups.
    """

    def __init__(
        self, name: str, program: Program, replay: Replay, arrays: Sequence[Any] = ()
    ) -> None:
        self.name, self.program = name, program
        self._replay, self._arrays = replay, list(arrays)

    def __str__(self) -> str:
        return str(self.program)

    def __repr__(self) -> str:
        return f"<lowered {self.name}: {len(self.program.steps)} steps>"

    def memory(self) -> Memory:
        """What a replay takes of memory."""
        return measured(self.program, self._replay)

    def times(self) -> list[float | None]:
        """Seconds for each step, run alone on the arguments that were lowered with.

        The best of some runs, on a GPU with its launch, in a CUDA graph where it can be captured.
        None for effects, which do not run: nothing is drawn or moved.
        """
        return step_times(self.program, self._arrays, self._replay.xp)

    def dot(self) -> str:
        """The program as a graph for Graphviz: ``dot -Tsvg``.

        >>> print(gg.function(lambda x: gg.exp(x)).lower(gg.ones(3)).dot().splitlines()[0])
        digraph "<lambda>" {
        """
        return dot(self.program, self.name)

    def html(self, times: bool = True) -> str:
        """The program as a page that needs no network: time and bytes for each step.

        Args:
            times: whether to run each step alone, to measure it; if not the page says so.
        """
        found = self.times() if times else [None] * len(self.program.steps)
        return page(self.name, self.program, found, self.memory(), self._replay.buffered)

    def save_html(self, path: str | Path, times: bool = True) -> None:
        """Write that page to a file."""
        Path(path).write_text(self.html(times), encoding="utf-8")
