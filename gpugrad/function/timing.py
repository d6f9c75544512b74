"""How long each step of a program takes, by running it alone."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Sequence
from typing import Any

import numpy as np

from gpugrad.function.numpy_replay import Replay
from gpugrad.program import Program, Step, Value

__all__ = ["step_times"]

LONG_ENOUGH = 0.002  # seconds of runs of one step, from which on the best of them is believed
RUNS = 30


def step_times(program: Program, arrays: Sequence[Any]) -> list[float | None]:
    """Seconds for each step: the best of some runs; None for what is not measured.

    Every step runs on what the steps before it have made. Effects do not run: they would draw
    numbers and move Variables. Ones stand in the place of what they return, and a step that
    cannot do with them is not measured either.

    Args:
        program: in groups, as it is replayed.
        arrays: of its inputs.
    """
    now: dict[int, Any] = dict(zip(map(id, program.inputs), arrays, strict=True))
    now.update((id(v), variable._data) for variable, v in program.reads)
    found: list[float | None] = []
    for step in program.steps:
        seconds, made = None, _stand_ins(step, now)
        if step.op is not None or step.parts:
            with contextlib.suppress(Exception):  # what an op raises of ones for numbers drawn
                seconds, made = _measured(step, now)
        found.append(seconds)
        now.update(zip(map(id, step.outs), made, strict=True))
    return found


def _measured(step: Step, now: dict[int, Any]) -> tuple[float, list[Any]]:
    alone = Program()
    alone.inputs = list({id(v): v for v in step.inputs if v.constant is None}.values())
    alone.steps, alone.outputs = [step], list(step.outs)
    replay = Replay(alone)
    best, spent, runs = float("inf"), 0.0, 0
    while runs < 2 or (spent < LONG_ENOUGH and runs < RUNS):
        given = [now[id(v)] for v in alone.inputs]
        start = time.perf_counter()
        made = replay(given)
        took = time.perf_counter() - start
        best, spent, runs = min(best, took), spent + took, runs + 1
    return best, made


def _stand_ins(step: Step, now: dict[int, Any]) -> list[Any]:
    n = len(step.variables)
    moved = [
        now[id(a)] if isinstance(a, Value) and a.constant is None else np.ones(v.shape, v.dtype)
        for a, v in zip(step.args[len(step.args) - n :], step.outs[len(step.outs) - n :],
                        strict=True)
    ]  # fmt: skip
    return [np.ones(v.shape, v.dtype) for v in step.outs[: len(step.outs) - n]] + moved
