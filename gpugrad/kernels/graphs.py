"""CUDA graphs: launches that are written down once and then launched together."""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from gpugrad.backend import Namespace, cupy
from gpugrad.kernels.launch import launch

__all__ = ["INSTANCES", "Graph", "Numbers", "RefusedError"]

INSTANCES = (("numbers.cu", "put_numbers"),)
ROOM = 480  # words of 8 bytes, as numbers.cu has it
THREADS = 128


_last: dict[int, Any] = {}  # the stream on which a graph was launched, by device


def _in_order() -> None:
    """What comes on the current stream waits for graphs launched on others: they share memory."""
    cp = cupy()
    device, current = int(cp.cuda.Device().id), cp.cuda.get_current_stream()
    before = _last.get(device, current)
    if before.ptr != current.ptr:
        current.wait_event(before.record())
    _last[device] = current


_dead: list[tuple[int, Any]] = []  # devices and pools of graphs that are no more


def _give_back() -> None:
    """Give the device what the pools of such graphs keep: CuPy's do not when they die."""
    for device, pool in [_dead.pop() for _ in range(len(_dead))]:
        with cupy().cuda.Device(device):
            pool.free_all_blocks()
            if pool.total_bytes():  # an array of it is held
                _dead.append((device, pool))


class RefusedError(Exception):
    """CuPy, or CUDA, cannot capture something; nothing of it has run."""


class Graph:
    """What a function launches, as one CUDA graph on memory of its own.

    Its first call runs the function as it is, so that kernels are compiled and the pool has what
    it takes; the second captures it. A graph has fixed addresses: arguments are copied to where it
    reads them, and its results are where they are until the next call.

    Args:
        run: function of a list of arrays that returns a list of arrays and does nothing but
            launch kernels.
        arrays: like those of the calls.
    """

    def __init__(self, run: Callable[[Sequence[Any]], list[Any]], arrays: Sequence[Any]) -> None:
        cp = cupy()
        _give_back()
        self._device = int(cp.cuda.Device().id)
        # not the pool that others use, who would write to what is free between two launches
        self._pool = cp.cuda.MemoryPool()
        self._stream = cp.cuda.Stream(non_blocking=True)
        self._run, self._graph = run, None
        self._results: list[Any] | None = None
        with cp.cuda.using_allocator(self._pool.malloc):
            self._arguments = [cp.empty(a.shape, dtype=a.dtype) for a in arrays]

    def __call__(self, arrays: Sequence[Any]) -> list[Any]:
        """Launch on the current stream; the results are valid until the next call.

        Raises:
            RefusedError: something cannot be captured.
        """
        _in_order()
        for own, given in zip(self._arguments, arrays, strict=True):
            own[...] = given
        if self._results is None:
            self._results = self._once()
            return self._results
        if self._graph is None:
            self._results = None  # what it takes again is what it gives back here
            self._capture()
        self._graph.launch()  # type: ignore[attr-defined]
        return self._results  # type: ignore[return-value]

    def __del__(self) -> None:
        self._graph = self._results = None
        self._arguments = []
        _dead.append((self._device, self._pool))
        if not sys.is_finalizing():
            _give_back()

    def _once(self) -> list[Any]:
        cp = cupy()
        current = cp.cuda.get_current_stream()
        self._stream.wait_event(current.record())
        with cp.cuda.using_allocator(self._pool.malloc), self._stream:
            results = self._run(self._arguments)
        current.wait_event(self._stream.record())
        return results

    def _capture(self) -> None:
        with cupy().cuda.using_allocator(self._pool.malloc), self._stream:
            self._stream.begin_capture()
            try:
                try:
                    self._results = self._run(self._arguments)
                finally:
                    self._graph = self._stream.end_capture()
            except (RuntimeError, NotImplementedError) as error:
                raise RefusedError(str(error)) from error


class Numbers:
    """Numbers on the device that the host writes anew before each launch of a graph.

    Args:
        xp: reading of the arrays to make.
        like: NumPy arrays, each of as many bytes as those of the calls.

    Attributes:
        live: an array on the device for each.
    """

    def __init__(self, xp: Namespace, like: Sequence[Any]) -> None:
        sizes = [-(-a.nbytes // 16) * 2 for a in like]  # words, to boundaries of 16 bytes
        self._starts = np.cumsum([0, *sizes]).tolist()
        self._host = np.zeros(self._starts[-1], np.uint64)
        self._device = xp.lib.empty(max(1, self._starts[-1]), dtype=np.uint64)
        self.live = [
            self._device[at : at + n].view(a.dtype)[: a.size]
            for at, n, a in zip(self._starts[:-1], sizes, like, strict=True)
        ]

    def __call__(self, numbers: Sequence[Any]) -> None:
        """Write numbers, on the current stream."""
        for at, a in zip(self._starts[:-1], numbers, strict=True):
            self._host[at : at + -(-a.nbytes // 8)].view(np.uint8)[: a.nbytes] = a.view(np.uint8)
        for at in range(0, self._host.size, ROOM):
            part = np.zeros(ROOM, np.uint64)
            n = min(ROOM, self._host.size - at)
            part[:n] = self._host[at : at + n]
            by_value = part.view([("at", np.uint64, ROOM)])[0]
            to = self._device[at : at + n]
            launch("numbers.cu", "put_numbers", 1, THREADS, (by_value, to, np.int32(n)))
