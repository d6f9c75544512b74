"""The result of `Function.lower`: a planned program to read, draw and time."""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import Any

from gpugrad.core.format import format_html
from gpugrad.function.cpu.replay import CpuReplay
from gpugrad.function.inspect.page import dot, page
from gpugrad.function.inspect.timing import step_times
from gpugrad.function.memory import Memory, measure
from gpugrad.trace.program import Program


class Lowered:
    """The program that a traced function replays for one signature; ``print`` shows it.

    Attributes:
        name: the function's name.
        program: its steps, after the passes and in groups.
    """

    def __init__(
        self, name: str, program: Program, replay: CpuReplay, arrays: Sequence[Any] = ()
    ) -> None:
        self.name, self.program = name, program
        self._replay, self._arrays = replay, list(arrays)

    def __str__(self) -> str:
        return str(self.program)

    def __repr__(self) -> str:
        return f"<lowered {self.name}: {len(self.program.steps)} steps>"

    def _repr_html_(self) -> str:
        return format_html(repr(self)[1:-1], str(self))

    def memory(self) -> Memory:
        """The memory that a replay takes."""
        return measure(self.program, self._replay)

    def times(self) -> list[float | None]:
        """Seconds that each step takes alone, on the arguments given to `Function.lower`.

        The best of several runs. On a GPU the launch is included, in a CUDA graph where the step
        can be captured. None for effects: they do not run, so nothing is drawn or updated.
        """
        return step_times(self.program, self._arrays, self._replay.xp)

    def dot(self) -> str:
        """The program as a graph for Graphviz: ``dot -Tsvg``.

        >>> print(gg.function(lambda x: gg.exp(x)).lower(gg.ones(3)).dot().splitlines()[0])
        digraph "<lambda>" {
        """
        return dot(self.program, self.name)

    def html(self, times: bool = True) -> str:
        """The program as a page that needs no network: time, bytes, module and line of each step.

        It shows the steps in order, sorted by time, or folded by module, in a tree of their paths.

        Args:
            times: whether to time each step by running it alone; otherwise the page says
                "not measured".
        """
        seconds = self.times() if times else [None] * len(self.program.steps)
        return page(self.name, self.program, seconds, self.memory(), self._replay.buffered)

    def save_html(self, path: str | os.PathLike[str], times: bool = True) -> None:
        """Write that page to a file."""
        with open(path, "w", encoding="utf-8") as file:
            file.write(self.html(times))
