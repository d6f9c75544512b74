"""Cooperative launches: kernels whose blocks wait for each other at `grid_barrier`.

All blocks of such a grid must be on the GPU at a time. A launcher asks `blocks_at_once` how many
that may be, passes the array of `barrier_of` to the kernel, and calls ``launch(cooperative=True)``,
with which CuPy refuses a grid that is too large. Otherwise it might wait forever.
"""

from __future__ import annotations

import functools
from typing import Any

import numpy as np

from gpugrad.core.backend import cupy
from gpugrad.kernels.runtime.launch import PER_THREAD, gpu_of, is_captured, this_thread

_ON_HOST = 8  # processors that the shim pretends to have

_barriers: dict[tuple[int, int, object], Any] = {}  # by device, stream, and thread if it owns that


def blocks_at_once(array: Any, per_processor: int) -> int:
    """How many blocks the array's GPU can hold if each processor holds `per_processor`."""
    return per_processor * (_ON_HOST if type(array) is np.ndarray else _processors(gpu_of(array)))


@functools.cache
def _processors(device: int) -> int:
    return int(cupy().cuda.runtime.getDeviceProperties(device)["multiProcessorCount"])


def barrier_of(array: Any) -> Any:
    """The memory of `grid_barrier`, or of `is_last_block`, in a launch on the current stream.

    It is on the array's device. Launches that may run at the same time must not share it. Those of
    a stream do not, and a CUDA graph is captured on a stream of its own. Kernels leave it as they
    need it, so it is written only once.
    """
    if type(array) is np.ndarray:
        return np.zeros(1, np.uint32)
    cp = cupy()
    stream = int(cp.cuda.get_current_stream().ptr)
    # the default stream of each thread has the same address in all threads
    key = gpu_of(array), stream, this_thread() if stream == PER_THREAD else None
    barrier = _barriers.get(key)
    if barrier is None:
        if is_captured(array):  # only a node of the graph can write to memory now
            return cp.zeros(1, dtype=np.uint32)
        pool = cp.get_default_memory_pool()  # the current one may be a graph's, which dies with it
        with cp.cuda.using_allocator(pool.malloc):
            barrier = _barriers[key] = cp.zeros(1, dtype=np.uint32)
    return barrier
