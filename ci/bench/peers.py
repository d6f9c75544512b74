"""Timing for the benches: peers that are installed, interleaved, medians and ratios.

These machines are noisy: a single time says little. Every contestant runs once a round, in a
new order each round, and what is compared are the medians over all rounds.
"""

from __future__ import annotations

import importlib.util
import json
import multiprocessing
import os
import random
import statistics
import time
from collections.abc import Callable
from typing import Any


def installed(name: str) -> bool:
    """Whether a peer can be imported."""
    return importlib.util.find_spec(name) is not None


def race(
    contestants: dict[str, Callable[[], object]], rounds: int = 30, inner: int = 1
) -> dict[str, float]:
    """Median seconds of one call, a contestant, from interleaved rounds of `inner` calls."""
    times: dict[str, list[float]] = {name: [] for name in contestants}
    order = list(contestants)
    shuffle = random.Random(0)
    for run in contestants.values():  # warm up: imports, caches, compilation
        for _ in range(3):
            run()
    for _ in range(rounds):
        shuffle.shuffle(order)
        for name in order:
            run = contestants[name]
            start = time.perf_counter()
            for _ in range(inner):
                run()
            times[name].append((time.perf_counter() - start) / inner)
    return {name: statistics.median(t) for name, t in times.items()}


def race_apart(
    makers: dict[str, Callable[[], Callable[[], object]]], rounds: int = 30, inner: int = 1
) -> dict[str, float]:
    """What `race` gives, of contestants that are made in processes of their own.

    Threads of a library that wait for work spin on the cores that the next contestant needs:
    in one process torch's step took five times as long beside ours as alone. So they take turns
    after a pause, in which those threads fall asleep, and a call that is not timed, which wakes
    those of the contestant and fills the caches.
    """
    context = multiprocessing.get_context("spawn")
    pipes, times, shuffle = {}, {name: [] for name in makers}, random.Random(0)
    for name, make in makers.items():
        pipes[name], far = context.Pipe()
        context.Process(target=_take_turns, args=(make, inner, far), daemon=True).start()
        far.close()
        pipes[name].recv()  # one after the other: compilation takes all cores
    order = list(makers)
    for _ in range(rounds):
        shuffle.shuffle(order)
        for name in order:
            time.sleep(0.05)
            pipes[name].send(None)
            times[name].append(pipes[name].recv())
    return {name: statistics.median(t) for name, t in times.items()}


def _take_turns(make: Callable[[], Callable[[], object]], inner: int, pipe: Any) -> None:
    run = make()
    for _ in range(10):
        run()
    pipe.send(None)
    while True:
        try:
            pipe.recv()
        except EOFError:  # the race is over
            return
        run()
        start = time.perf_counter()
        for _ in range(inner):
            run()
        pipe.send((time.perf_counter() - start) / inner)


def table(title: str, medians: dict[str, float], reach: dict[str, float] | None = None) -> bool:
    """Print medians and our ratio to each; True if every ratio in `reach` is reached.

    They are added to the file that GPUGRAD_BENCH_FIGURES names, as a line of JSON.
    """
    if path := os.environ.get("GPUGRAD_BENCH_FIGURES"):
        with open(path, "a") as figures:
            figures.write(json.dumps({"title": title, "seconds": medians}) + "\n")
    ours, good = medians["gpugrad"], True
    print(f"\n{title}")
    for name, t in sorted(medians.items(), key=lambda item: item[1]):
        line = f"  {name:28s} {t * 1e6:12.1f} us"
        if name != "gpugrad":
            line += f"   gpugrad is {ours / t:5.2f} of it"
            if reach and name in reach:
                reached = ours <= reach[name] * t
                good = good and reached
                line += f" (reach: {reach[name]:.2f}{'' if reached else ' MISSED'})"
        print(line)
    return good
