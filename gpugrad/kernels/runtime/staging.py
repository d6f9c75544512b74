"""Copies of host arrays to a GPU that overlap with kernels."""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Any

import numpy as np

from gpugrad.core.backend import cupy
from gpugrad.core.forking import import_module
from gpugrad.core.tensor import ALONE


class _Buffer:
    """Pinned host memory and the device array that it is copied to."""

    def __init__(self, array: Any) -> None:
        cupyx = import_module("cupyx")
        self.pinned = cupyx.empty_pinned(array.shape, dtype=array.dtype)
        self.array = cupy().empty(array.shape, dtype=array.dtype)
        self.copied: Any = None  # event: the copy is done
        # event: the array may be overwritten; its memory may still be in use by earlier kernels
        self.read: Any = cupy().cuda.get_current_stream().record()


class Staging:
    """Copies arrays to the current GPU on its own stream.

    Start a copy some time before it is needed, so that kernels run meanwhile. Pinned and device
    memory is reused once nobody else references the array and the kernels launched until then on
    the current stream have read it.
    """

    def __init__(self) -> None:
        self._stream = cupy().cuda.Stream(non_blocking=True)
        self._free: dict[Any, list[_Buffer]] = {}
        self._lent: list[_Buffer] = []

    def __call__(self, values: np.ndarray[Any, Any]) -> Callable[[], Any]:
        """Start a copy and return a function that waits for it.

        That function makes the current stream wait and returns the array on the GPU. It must be
        called once, because the memory belongs to the current stream.
        """
        self._reclaim()
        spare = self._free.get((values.shape, values.dtype))
        buffer = spare.pop() if spare else _Buffer(values)
        if buffer.copied is not None:
            buffer.copied.synchronize()  # usually done long ago
        buffer.pinned[...] = values
        self._stream.wait_event(buffer.read)
        buffer.array.set(buffer.pinned, stream=self._stream)
        buffer.copied = self._stream.record()
        return lambda: self._wait_for(buffer)

    def finish(self) -> None:
        """Wait for all copies, so that pinned memory can be freed and reused."""
        self._stream.synchronize()

    def _wait_for(self, buffer: _Buffer) -> Any:
        cupy().cuda.get_current_stream().wait_event(buffer.copied)
        self._lent.append(buffer)
        return buffer.array

    def _reclaim(self) -> None:
        """Reuse the buffers whose arrays nobody else references."""
        lent, self._lent = self._lent, []
        for buffer in lent:
            if sys.getrefcount(buffer.array) > ALONE:
                self._lent.append(buffer)
                continue
            buffer.read = cupy().cuda.get_current_stream().record()
            self._free.setdefault((buffer.array.shape, buffer.array.dtype), []).append(buffer)
