"""Times each step of a program by running it alone."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from gpugrad.core.backend import NUMPY, Reading, cupy
from gpugrad.core.devices import formulas_on, full_on_device_of
from gpugrad.function.cpu.c_program import CProgram
from gpugrad.function.cpu.c_replay import CReplay
from gpugrad.function.gpu.runs import argument, call_of
from gpugrad.kernels.runtime.graphs import CudaGraph, RefusedError
from gpugrad.trace.program import Program, Step, Value

LONG_ENOUGH = 0.002  # seconds to spend on the runs of a step, at least
RUNS = 30
IN_A_ROW = 10  # launches on a GPU between two synchronizations


def step_times(program: Program, arrays: Sequence[Any], xp: Reading) -> list[float | None]:
    """Seconds for each step: the best of several runs; None if not measured.

    Each step runs on the results of the steps before it. Effects do not run: they would draw
    numbers and update Variables. Arrays of ones replace their results, and a step that raises on
    these is not measured either.

    Args:
        program: the program that is replayed.
        arrays: the arrays of its inputs.
        xp: their namespace.
    """
    now: dict[int, Any] = dict(zip(map(id, program.inputs), arrays, strict=True))
    now.update((id(v), variable._data) for variable, v in program.reads)
    constants = [v.constant for v in program.values() if v.constant is not None]
    every = [*now.values(), *constants]
    like = next((a for a in every if type(a) is not np.ndarray), np.zeros(()))
    time_step = _time_on_cpu if xp is NUMPY else _time_on_gpu
    times: list[float | None] = []
    with formulas_on(like):
        for step in program.steps:
            seconds, results = None, _stand_ins(step, now, like)
            if step.call is None:
                with contextlib.suppress(Exception):  # an op may refuse ones for random numbers
                    seconds, results = time_step(step, now, xp)
            times.append(seconds)
            now.update(zip(map(id, step.outs), results, strict=True))
    return times


def _time_on_cpu(step: Step, now: dict[int, Any], xp: Reading) -> tuple[float, list[Any]]:
    alone = Program()
    alone.inputs = list({id(v): v for v in step.inputs if v.constant is None}.values())
    alone.steps, alone.outputs = [step], list(step.outs)
    compiled = CProgram(alone)
    compiled.load()
    replay = CReplay(compiled)
    return _best(lambda: replay([now[id(v)] for v in alone.inputs]))


def _time_on_gpu(step: Step, now: dict[int, Any], xp: Reading) -> tuple[float, list[Any]]:
    call, fixed = call_of(step, xp)
    args = [argument(a, now) for a in step.args]
    results = call(*args)  # compiles kernels
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
            return in_a_row(CudaGraph(lambda: call(*args))), results
    return in_a_row(lambda: call(*args)), results


def _best(run: Callable[[], Any]) -> tuple[float, Any]:
    """Seconds of the fastest of several runs, and what the last one returned."""
    best, spent, runs = float("inf"), 0.0, 0
    while runs < 2 or (spent < LONG_ENOUGH and runs < RUNS):
        start = time.perf_counter()
        result = run()
        took = time.perf_counter() - start
        best, spent, runs = min(best, took), spent + took, runs + 1
    return best, result


def _stand_ins(step: Step, now: dict[int, Any], like: Any) -> list[Any]:
    """Results of an effect that does not run: ones, and the old values of Variables."""
    n_args, n_outs = len(step.args) - len(step.variables), len(step.outs) - len(step.variables)
    pairs = zip(step.args[n_args:], step.outs[n_outs:], strict=True)
    old = [
        now[id(a)] if isinstance(a, Value) and a.constant is None else _ones(v, like)
        for a, v in pairs
    ]
    return [_ones(v, like) for v in step.outs[:n_outs]] + old


def _ones(v: Value, like: Any) -> Any:
    if v.dtype == object:  # what a loop keeps for its gradient; a GPU has no such arrays
        return np.ones(v.shape, v.dtype)
    return full_on_device_of(like, v.shape, v.dtype, 1)
