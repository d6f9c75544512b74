"""``cupyx.profiler``: `benchmark` measures a function."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

import gpugrad as gg
from gpugrad.compat.names import forwarding


class _Times:
    """Seconds of a function's calls."""

    def __init__(self, name: str, seconds: Sequence[float]) -> None:
        self.name, self.cpu_times, self.gpu_times = name, np.array(seconds), np.array([seconds])

    def __repr__(self) -> str:
        us = self.cpu_times * 1e6
        return f"{self.name}: {us.mean():.3f} us +/- {us.std():.3f} (min: {us.min():.3f})"


def benchmark(
    func: Callable[..., Any],
    args: Any = (),
    kwargs: Any = None,
    n_repeat: int = 10000,
    *,
    name: str = "",
    n_warmup: int = 10,
    max_duration: float = np.inf,
    devices: Any = None,
) -> _Times:
    """The times of calls, each until the GPU has finished, if there is one.

    >>> from gpugrad.compat.cupyx.profiler import benchmark
    >>> len(benchmark(lambda: gg.zeros(3), n_repeat=5).cpu_times)
    5
    """
    seconds: list[float] = []
    for k in range(-n_warmup, n_repeat):
        start = time.perf_counter()
        func(*args, **(kwargs or {}))
        if gg.cuda.is_available():
            gg.cuda.synchronize()
        if k >= 0:
            seconds.append(time.perf_counter() - start)
        if sum(seconds) > max_duration:
            break
    return _Times(name or getattr(func, "__name__", "function"), seconds)


__getattr__, __dir__ = forwarding(__name__, own=globals())
