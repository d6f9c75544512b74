"""Threads for work on bare NumPy arrays, which lets go of the interpreter's lock.

They are for milliseconds of work. A thread that is woken while the other cores are busy starts on
the core of the thread that woke it, and after a matrix product they are: OpenBLAS's threads spin
for 27 ms. Adam on 535,000 floats took 2.0 ms on one thread and, as half of it waited, 2.2 on two;
on 5 million 17 and 12. And what needs the lock often waits for it: a piece should be few calls
on many elements.
"""

from __future__ import annotations

import concurrent.futures
import functools
import os
from collections import deque
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

__all__ = ["spread", "workers"]


@functools.cache
def workers() -> int:
    """How many threads work at once: one for each core that this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


@functools.cache
def _pool() -> concurrent.futures.ThreadPoolExecutor:
    # the settings of np.errstate are each thread's own
    return concurrent.futures.ThreadPoolExecutor(
        max(workers() - 1, 1), "gpugrad", functools.partial(np.seterr, all="ignore")
    )


if hasattr(os, "register_at_fork"):  # threads do not come along
    os.register_at_fork(after_in_child=_pool.cache_clear)


def spread(call: Callable[..., Any], jobs: Sequence[Sequence[Any]]) -> list[Any]:
    """``[call(*job) for job in jobs]``, on this thread and those of the pool, without warnings."""
    results: list[Any] = [None] * len(jobs)
    left = deque(enumerate(jobs))

    def work() -> None:
        while True:
            try:
                k, job = left.popleft()
            except IndexError:
                return
            results[k] = call(*job)

    helpers = [_pool().submit(work) for _ in range(min(workers(), len(jobs)) - 1)]
    try:
        with np.errstate(all="ignore"):
            work()
    finally:
        for helper in helpers:
            if not helper.cancel():  # nothing is left for one that has not started
                helper.result()
    return results
