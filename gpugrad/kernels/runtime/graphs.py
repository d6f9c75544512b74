"""CUDA graphs: kernel launches that are captured once and replayed together."""

from __future__ import annotations

import sys
from collections import deque
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from gpugrad.core.backend import cupy
from gpugrad.core.ranks import ranks
from gpugrad.kernels.runtime.launch import PER_THREAD, get_kernel, takes_structures, this_thread

INSTANCES = (("put.cu", "put"),)
VECTOR = ("put",)
ROOM = 480  # words of 8 bytes in one launch, as in put.cu
THREADS = 256
BLOCKS = 132 * 8


_last: dict[int, tuple[Any, object]] = {}  # by device: stream of the last graph launch, its thread


def order_after_graphs() -> None:
    """Make the current stream wait for graphs launched on other streams: they share memory."""
    cp = cupy()
    device, current = int(cp.cuda.Device().id), (cp.cuda.get_current_stream(), this_thread())
    (previous, thread), (stream, here) = _last.get(device, current), current
    if previous.ptr == PER_THREAD and thread is not here:
        previous = cp.cuda.Stream.null  # which waits for it: the address means this thread's now
    if previous.ptr != stream.ptr:
        stream.wait_event(previous.record())
    _last[device] = current


_dead: deque[tuple[int, Any]] = deque()  # devices and memory pools of deleted graphs


def _free_dead_pools() -> None:
    """Free the memory of deleted graphs: a CuPy pool does not do so when it is deleted."""
    for _ in range(len(_dead)):
        try:
            device, pool = _dead.popleft()
        except IndexError:  # another thread emptied the queue
            return
        with cupy().cuda.Device(device):
            pool.free_all_blocks()
            if pool.total_bytes():  # an array in it is still referenced
                _dead.append((device, pool))


class RefusedError(Exception):
    """CuPy or CUDA cannot capture the launches; none of them has run."""


class CudaGraph:
    """The kernel launches of a function as one CUDA graph, with its own memory pool.

    The first call runs the function directly, which compiles its kernels and fills the pool. The
    second call captures it. A graph has fixed addresses: its inputs must stay where they were,
    and the next call overwrites its results.

    Args:
        run: function that returns a list of arrays and only launches kernels.
    """

    _pool: Any = None  # until __init__ has made it

    def __init__(self, run: Callable[[], list[Any]]) -> None:
        cp = cupy()
        _free_dead_pools()
        self._device = int(cp.cuda.Device().id)
        # other users of a shared pool would write to memory that is free between two launches
        self._pool = cp.cuda.MemoryPool()
        self._stream = cp.cuda.Stream(non_blocking=True)
        self._run = run
        self._graph: Any = None
        self._collectives = 0  # how many it holds
        self._results: list[Any] | None = None

    @property
    def is_captured(self) -> bool:
        """Whether the next call only launches."""
        return self._graph is not None

    def __call__(self) -> list[Any]:
        """Launch on the current stream; the results are valid until the next call.

        Raises:
            RefusedError: a launch cannot be captured.
        """
        if self._results is None:
            self._results = self._run_directly()
            return self._results
        if self._graph is None:
            self._results = None  # returns their memory to the pool, which the capture takes again
            self._results = self._capture()
        if self._collectives:
            ranks.launch(self._collectives, self._graph.launch)
        else:
            self._graph.launch()
        return self._results

    def __del__(self) -> None:
        self._graph = self._results = None
        self._run = _already_captured
        if self._pool is not None:
            _dead.append((self._device, self._pool))
        if not sys.is_finalizing():
            _free_dead_pools()

    def _run_directly(self) -> list[Any]:
        cp = cupy()
        current = cp.cuda.get_current_stream()
        self._stream.wait_event(current.record())
        with cp.cuda.using_allocator(self._pool.malloc), self._stream:
            results = self._run()
        current.wait_event(self._stream.record())
        return results

    def _capture(self) -> list[Any]:
        before = ranks.captured
        with cupy().cuda.using_allocator(self._pool.malloc), self._stream:
            self._stream.begin_capture()
            try:
                try:
                    results = self._run()
                finally:
                    self._graph = self._stream.end_capture()
            except BaseException as error:
                self._graph = None  # it may be incomplete
                if isinstance(error, (RuntimeError, NotImplementedError)):
                    raise RefusedError(str(error)) from error
                raise
        self._collectives = ranks.captured - before
        self._run = _already_captured  # the function may hold a reference to the graph
        return results


def _already_captured() -> list[Any]:
    raise AssertionError("the graph was captured already")


class Upload:
    """Copies host numbers and device arrays to where a graph reads them, in one launch.

    Args:
        numbers: NumPy arrays, each with as many bytes as in the calls.
        arrays: device arrays, each with as many bytes as in the calls.
        into: device array of destination addresses, which replaces those of the calls.

    Attributes:
        live: a device array for each of the numbers.
    """

    def __init__(self, numbers: Sequence[Any], arrays: Sequence[Any], into: Any = None) -> None:
        sizes = [-(-a.nbytes // 16) * 2 for a in numbers]  # words, padded to 16 bytes
        starts = np.cumsum([0, *sizes]).tolist()
        n = starts[-1]
        jobs = -(-n // 3) * 3  # a copy is three words, which must not be split between launches
        end = jobs + 3 * len(arrays)
        blocks = np.zeros(-(-end // ROOM), [("at", np.uint64, ROOM)])  # one per launch
        words = blocks["at"].reshape(-1)
        table = words[jobs:end].reshape(-1, 3)
        table[:, 2] = [a.nbytes for a in arrays]
        self._table = words.data[
            jobs:end
        ]  # a memoryview: writing a few words by NumPy takes 1.5 us
        device: Any = cupy().empty(n, dtype=np.uint64) if n else None
        self._numbers, self.live = (
            [
                memory[at : at + size].view(a.dtype)[: a.size]
                for at, size, a in zip(starts[:-1], sizes, numbers, strict=True)
            ]
            for memory in (words, device)
        )
        self._kernel = get_kernel("put.cu", "put")
        self._launches: list[Any] = []
        for k, at in enumerate(range(0, end, ROOM)):
            some, first = (min(max(word - at, 0), ROOM) for word in (n, jobs))
            begin = max(at - jobs, 0) // 3
            copies = table[begin : max(at + ROOM - jobs, 0) // 3, 2]
            most = int(copies.max(initial=0)) // (16 * THREADS)
            pointers = _pointer(device, at), _pointer(into, begin)
            by_value = blocks[k] if takes_structures() else blocks[k, ...]
            sizes = [np.int32(size) for size in (some, first, len(copies))]
            grid = (min(max(1, most), BLOCKS), 1, 1)
            self._launches.append((grid, (by_value, *pointers, *sizes)))

    def __call__(
        self, numbers: Sequence[Any], arrays: Sequence[Any], places: Sequence[Any] = ()
    ) -> None:
        """Copy numbers to `live` and arrays to contiguous `places`, on the current stream.

        Without `places` arrays go to those of the last call.
        """
        for buffer, number in zip(self._numbers, numbers, strict=True):
            buffer[...] = number
        at, table = 0, self._table
        held = []
        for array in arrays:
            if not array.flags.c_contiguous:
                held.append(array := array.copy())  # keeps the copy alive until the launch
            table[at] = array.data.ptr
            at += 3
        for k, place in enumerate(places):
            table[3 * k + 1] = place.data.ptr
        for grid, args in self._launches:
            self._kernel(grid, (THREADS, 1, 1), args)


def _pointer(array: Any, begin: int) -> Any:
    return np.uintp(0) if array is None else array[begin:]


def allocate_like(arrays: Sequence[Any]) -> list[Any]:
    """Uninitialised arrays of the same types, shapes and dtypes."""
    return [type(a)(a.shape, a.dtype) for a in arrays]
