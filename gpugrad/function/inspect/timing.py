"""How long each step of a program takes, by running it alone."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from gpugrad.core.backend import NUMPY, Namespace, cupy
from gpugrad.core.devices import formulas_on, full_beside
from gpugrad.function.cpu.replay import Replay
from gpugrad.function.gpu.runs import argument, call_of
from gpugrad.kernels.runtime.graphs import Graph, RefusedError
from gpugrad.trace.program import Program, Step, Value

__all__ = ["step_times"]

LONG_ENOUGH = 0.002  # seconds of runs of one step, from which on the best of them is believed
RUNS = 30
IN_A_ROW = 10  # launches on a GPU for which the host waits together


def step_times(program: Program, arrays: Sequence[Any], xp: Namespace) -> list[float | None]:
    """Seconds for each step: the best of some runs; None for what is not measured.

    Every step runs on what the steps before it have made. Effects do not run: they would draw
    numbers and move Variables. Ones stand in the place of what they return, and a step that
    cannot do with them is not measured either.

    Args:
        program: as it is replayed.
        arrays: of its inputs.
        xp: their namespace.
    """
    now: dict[int, Any] = dict(zip(map(id, program.inputs), arrays, strict=True))
    now.update((id(v), variable._data) for variable, v in program.reads)
    constants = [v.constant for v in program.values() if v.constant is not None]
    every = [*now.values(), *constants]
    like = next((a for a in every if type(a) is not np.ndarray), np.zeros(()))
    measured = _measured if xp is NUMPY else _measured_on_gpu
    found: list[float | None] = []
    with formulas_on(like):
        for step in program.steps:
            seconds, made = None, _stand_ins(step, now, like)
            if step.call is None:
                with contextlib.suppress(Exception):  # what an op raises of ones for numbers drawn
                    seconds, made = measured(step, now, xp)
            found.append(seconds)
            now.update(zip(map(id, step.outs), made, strict=True))
    return found


def _measured(step: Step, now: dict[int, Any], xp: Namespace) -> tuple[float, list[Any]]:
    alone = Program()
    alone.inputs = list({id(v): v for v in step.inputs if v.constant is None}.values())
    alone.steps, alone.outputs = [step], list(step.outs)
    replay = Replay(alone)
    return _best(lambda: replay([now[id(v)] for v in alone.inputs]))


def _measured_on_gpu(step: Step, now: dict[int, Any], xp: Namespace) -> tuple[float, list[Any]]:
    call, fixed = call_of(step, xp)
    args = [argument(a, now) for a in step.args]
    made = call(*args)  # kernels are compiled
    stream = cupy().cuda.get_current_stream()

    def in_a_row(run: Callable[[], Any]) -> float:
        def all_of_them() -> None:
            for _ in range(IN_A_ROW):
                run()
            stream.synchronize()

        stream.synchronize()
        return _best(all_of_them)[0] / IN_A_ROW

    if fixed:
        with contextlib.suppress(RefusedError):
            return in_a_row(Graph(lambda: call(*args))), made
    return in_a_row(lambda: call(*args)), made


def _best(run: Callable[[], Any]) -> tuple[float, Any]:
    """Seconds of the fastest of some runs, and what the last one returned."""
    best, spent, runs = float("inf"), 0.0, 0
    while runs < 2 or (spent < LONG_ENOUGH and runs < RUNS):
        start = time.perf_counter()
        made = run()
        took = time.perf_counter() - start
        best, spent, runs = min(best, took), spent + took, runs + 1
    return best, made


def _stand_ins(step: Step, now: dict[int, Any], like: Any) -> list[Any]:
    n = len(step.variables)
    moved = [
        now[id(a)] if isinstance(a, Value) and a.constant is None else _ones(v, like)
        for a, v in zip(step.args[len(step.args) - n :], step.outs[len(step.outs) - n :],
                        strict=True)
    ]  # fmt: skip
    return [_ones(v, like) for v in step.outs[: len(step.outs) - n]] + moved


def _ones(v: Value, like: Any) -> Any:
    if v.dtype == object:  # what a loop keeps for its gradient; a GPU has no such arrays
        return np.ones(v.shape, v.dtype)
    return full_beside(like, v.shape, v.dtype, 1)
