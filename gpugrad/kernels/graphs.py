"""CUDA graphs: launches that are written down once and then launched together."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from gpugrad.backend import cupy

__all__ = ["Graph"]


class Graph:
    """What a function launches, as one CUDA graph on memory of its own.

    A graph has fixed addresses: arguments are copied to where it reads them, and its results are
    where they are until it is launched again.

    Args:
        run: function of a list of arrays that returns a list of arrays and does nothing but
            launch kernels. It runs once before it is captured, so that kernels are compiled.
        arrays: like those of the calls that follow.

    Raises:
        Exception: what CuPy raises for something that cannot be captured.
    """

    def __init__(self, run: Callable[[Sequence[Any]], list[Any]], arrays: Sequence[Any]) -> None:
        cp = cupy()
        # not the pool that others use, who would write to what is free between two launches
        self._pool = cp.cuda.MemoryPool()
        stream = cp.cuda.Stream(non_blocking=True)
        cp.cuda.get_current_stream().synchronize()
        with cp.cuda.using_allocator(self._pool.malloc), stream:
            self._arguments = [a.copy() for a in arrays]
            run(self._arguments)
            stream.synchronize()
            stream.begin_capture()
            try:
                self._results = run(self._arguments)
            finally:
                self._graph = stream.end_capture()

    def __call__(self, arrays: Sequence[Any]) -> list[Any]:
        """Launch on the current stream; the results are valid until the next launch."""
        for own, given in zip(self._arguments, arrays, strict=True):
            own[...] = given
        self._graph.launch()
        return self._results
