"""Loops over a program of plain arrays."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from gpugrad.function.cpu.c_loop import Body, CLoop
from gpugrad.function.plan import Options, planned, planned_loop


class Repeated:
    """A body that runs `times` times: as one call in C if all its steps are, else step by step."""

    def __init__(self, body: Body, options: Options, times: int) -> None:
        self._body, self._options, self._times = body, options, times
        self._in_c: CLoop | None = None
        self._replay: Any = None

    def __call__(
        self, carry: Sequence[Any], stacks: Sequence[Any], same: Sequence[Any], back: bool
    ) -> tuple[list[Any], list[Any]]:
        """Run it; with `back` from the end of the stacks to their start.

        Returns:
            The last carry, and for each other result its slices, as an array or a list.
        """
        arrays = [*carry, *(stack[0] for stack in stacks), *same]
        if self._replay is None and self._in_c is None:
            on_host = all(isinstance(a, (np.ndarray, np.generic)) for a in arrays)
            body = self._body
            self._in_c = planned_loop(body, self._options, self._times) if on_host else None
        if self._in_c is not None:
            result = self._in_c.loop(carry, stacks, same, self._times, back)
            if result is not None:
                return result
            self._in_c = None
        return self._step_by_step(carry, stacks, same, back)

    def _step_by_step(
        self, carry: Sequence[Any], stacks: Sequence[Any], same: Sequence[Any], back: bool
    ) -> tuple[list[Any], list[Any]]:
        body, n = self._body, self._times
        if self._replay is None:
            _, self._replay = planned(body.program, self._options, times=n)
        now, columns = list(carry), [[None] * n for _ in body.program.outputs[body.n_carry :]]
        for i in reversed(range(n)) if back else range(n):
            results = self._replay([*now, *(stack[i] for stack in stacks), *same])
            now = results[: body.n_carry]
            for column, result in zip(columns, results[body.n_carry :], strict=True):
                column[i] = result
        return now, list(columns)
