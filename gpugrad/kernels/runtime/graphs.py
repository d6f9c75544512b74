"""CUDA graphs: launches that are written down once and then launched together."""

from __future__ import annotations

import sys
from collections import deque
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from gpugrad.core.backend import cupy
from gpugrad.kernels.runtime.launch import compiled, takes_structures

__all__ = ["INSTANCES", "VECTOR", "Graph", "Put", "RefusedError", "beside", "in_order"]

INSTANCES = (("put.cu", "put"),)
VECTOR = ("put",)
ROOM = 480  # words of 8 bytes, as put.cu has it
THREADS = 256
BLOCKS = 132 * 8


_last: dict[int, Any] = {}  # the stream on which a graph was launched, by device


def in_order() -> None:
    """What comes on the current stream waits for graphs launched on others: they share memory."""
    cp = cupy()
    device, current = int(cp.cuda.Device().id), cp.cuda.get_current_stream()
    before = _last.get(device, current)
    if before.ptr != current.ptr:
        current.wait_event(before.record())
    _last[device] = current


_dead: deque[tuple[int, Any]] = deque()  # devices and pools of graphs that are no more


def _give_back() -> None:
    """Give the device what the pools of such graphs keep: CuPy's do not when they die."""
    for _ in range(len(_dead)):
        try:
            device, pool = _dead.popleft()
        except IndexError:  # another thread has been here
            return
        with cupy().cuda.Device(device):
            pool.free_all_blocks()
            if pool.total_bytes():  # an array of it is held
                _dead.append((device, pool))


class RefusedError(Exception):
    """CuPy, or CUDA, cannot capture something; nothing of it has run."""


class Graph:
    """What a function launches, as one CUDA graph on memory of its own.

    Its first call runs the function as it is, so that kernels are compiled and the pool has what
    it takes; the second captures it. A graph has fixed addresses: what it reads must lie where it
    did, and its results are where they are until the next call.

    Args:
        run: function that returns a list of arrays and does nothing but launch kernels.
    """

    _pool: Any = None  # as long as it is not made

    def __init__(self, run: Callable[[], list[Any]]) -> None:
        cp = cupy()
        _give_back()
        self._device = int(cp.cuda.Device().id)
        # not the pool that others use, who would write to what is free between two launches
        self._pool = cp.cuda.MemoryPool()
        self._stream = cp.cuda.Stream(non_blocking=True)
        self._run = run
        self._graph: Any = None
        self._results: list[Any] | None = None

    def __call__(self) -> list[Any]:
        """Launch on the current stream; the results are valid until the next call.

        Raises:
            RefusedError: something cannot be captured.
        """
        if self._results is None:
            self._results = self._once()
            return self._results
        if self._graph is None:
            self._results = None  # what it takes again is what it gives back here
            self._results = self._capture()
        self._graph.launch()
        return self._results

    def __del__(self) -> None:
        self._graph = self._results = None
        self._run = _done
        if self._pool is not None:
            _dead.append((self._device, self._pool))
        if not sys.is_finalizing():
            _give_back()

    def _once(self) -> list[Any]:
        cp = cupy()
        current = cp.cuda.get_current_stream()
        self._stream.wait_event(current.record())
        with cp.cuda.using_allocator(self._pool.malloc), self._stream:
            results = self._run()
        current.wait_event(self._stream.record())
        return results

    def _capture(self) -> list[Any]:
        with cupy().cuda.using_allocator(self._pool.malloc), self._stream:
            self._stream.begin_capture()
            try:
                try:
                    results = self._run()
                finally:
                    self._graph = self._stream.end_capture()
            except BaseException as error:
                self._graph = None  # it may be half of one
                if isinstance(error, (RuntimeError, NotImplementedError)):
                    raise RefusedError(str(error)) from error
                raise
        self._run = _done  # what it holds on to may hold on to the graph
        return results


def _done() -> list[Any]:
    raise AssertionError("it was captured")


class Put:
    """Puts numbers of the host, and copies of arrays, to where graphs read them, in one launch.

    Args:
        numbers: NumPy arrays, each of as many bytes as those of the calls.
        arrays: of the device, each of as many bytes as those of the calls.
        into: an array of the device that says where they are put, instead of the calls.

    Attributes:
        live: an array on the device for each of the numbers.
    """

    def __init__(self, numbers: Sequence[Any], arrays: Sequence[Any], into: Any = None) -> None:
        sizes = [-(-a.nbytes // 16) * 2 for a in numbers]  # words, to boundaries of 16 bytes
        starts = np.cumsum([0, *sizes]).tolist()
        n = starts[-1]
        jobs = -(-n // 3) * 3  # three words for each copy, all of them in one launch
        end = jobs + 3 * len(arrays)
        given = np.zeros(-(-end // ROOM), [("at", np.uint64, ROOM)])  # one for each launch
        words = given["at"].reshape(-1)
        table = words[jobs:end].reshape(-1, 3)
        table[:, 2] = [a.nbytes for a in arrays]
        self._table = words.data[jobs:end]  # to write a few words NumPy takes 1.5 us
        device: Any = cupy().empty(n, dtype=np.uint64) if n else None
        self._numbers, self.live = (
            [
                memory[at : at + size].view(a.dtype)[: a.size]
                for at, size, a in zip(starts[:-1], sizes, numbers, strict=True)
            ]
            for memory in (words, device)
        )
        self._kernel = compiled("put.cu", "put")
        self._launches: list[Any] = []
        for k, at in enumerate(range(0, end, ROOM)):
            some, first = (min(max(word - at, 0), ROOM) for word in (n, jobs))
            begin = max(at - jobs, 0) // 3
            copies = table[begin : max(at + ROOM - jobs, 0) // 3, 2]
            most = int(copies.max(initial=0)) // (16 * THREADS)
            pointers = _pointer(device, at), _pointer(into, begin)
            by_value = given[k] if takes_structures() else given[k, ...]
            sizes = [np.int32(size) for size in (some, first, len(copies))]
            grid = (min(max(1, most), BLOCKS), 1, 1)
            self._launches.append((grid, (by_value, *pointers, *sizes)))

    def __call__(
        self, numbers: Sequence[Any], arrays: Sequence[Any], places: Sequence[Any]
    ) -> None:
        """Put numbers to `live` and arrays to contiguous `places`, on the current stream."""
        for own, number in zip(self._numbers, numbers, strict=True):
            own[...] = number
        at, table = 0, self._table
        held = []
        for array, place in zip(arrays, places, strict=True):
            if not array.flags.c_contiguous:
                held.append(array := array.copy())  # until the launch
            table[at], table[at + 1] = array.data.ptr, place.data.ptr
            at += 3
        for grid, args in self._launches:
            self._kernel(grid, (THREADS, 1, 1), args)


def _pointer(array: Any, begin: int) -> Any:
    return np.uintp(0) if array is None else array[begin:]


def beside(arrays: Sequence[Any]) -> list[Any]:
    """Memory for arrays like these."""
    return [type(a)(a.shape, a.dtype) for a in arrays]
