"""Threads for work on plain NumPy arrays, which releases the interpreter's lock.

Threads pay off for jobs that take milliseconds. A thread that wakes while the other cores are busy
starts on the core of the thread that woke it; and after a matrix product they are busy, since
OpenBLAS's threads spin for 27 ms. Adam on 535,000 floats took 2.0 ms on one thread and 2.2 ms on
two, because half of the work waited; on 5 million floats it took 17 and 12 ms. Jobs that need the
lock wait for it, so a job should be few calls on many elements.
"""

from __future__ import annotations

import concurrent.futures
import functools
import os
from collections import deque
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from gpugrad.core.forking import in_child


@functools.cache
def workers() -> int:
    """The number of threads that work at once: one for each core that this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


@functools.cache
def _pool() -> concurrent.futures.ThreadPoolExecutor:
    # np.errstate is set for each thread
    return concurrent.futures.ThreadPoolExecutor(
        max(workers() - 1, 1), "gpugrad", functools.partial(np.seterr, all="ignore")
    )


in_child(_pool.cache_clear)


def run_parallel(call: Callable[..., Any], jobs: Sequence[Sequence[Any]]) -> list[Any]:
    """``[call(*job) for job in jobs]`` on this thread and the pool's, without NumPy's warnings."""
    results: list[Any] = [None] * len(jobs)
    remaining = deque(enumerate(jobs))

    def work() -> None:
        while True:
            try:
                k, job = remaining.popleft()
            except IndexError:
                return
            results[k] = call(*job)

    helpers = [_pool().submit(work) for _ in range(min(workers(), len(jobs)) - 1)]
    try:
        with np.errstate(all="ignore"):
            work()
    finally:
        for helper in helpers:
            if not helper.cancel():  # a thread that has not started finds no job left
                helper.result()
    return results
