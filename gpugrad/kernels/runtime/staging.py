"""Arrays on their way from the host to a GPU, while kernels run there."""

from __future__ import annotations

import importlib
import sys
from collections.abc import Callable
from typing import Any

import numpy as np

from gpugrad.core.backend import cupy
from gpugrad.core.tensor import ALONE

__all__ = ["Staging"]


class _Place:
    """Pinned memory, which the GPU can read by itself, and where it is copied to."""

    def __init__(self, array: Any) -> None:
        cupyx = importlib.import_module("cupyx")
        self.pinned = cupyx.empty_pinned(array.shape, dtype=array.dtype)
        self.array = cupy().empty(array.shape, dtype=array.dtype)
        self.copied: Any = None  # events
        self.read: Any = cupy().cuda.get_current_stream().record()  # its memory was others'


class Staging:
    """Copies arrays to the current GPU on a stream of its own.

    A copy is begun some time before it is needed, so that kernels of the stream that needs it run
    meanwhile. Memory, pinned and of the GPU, is taken again when nobody else holds the array and
    all that was launched on the current stream by then has read it.
    """

    def __init__(self) -> None:
        self._stream = cupy().cuda.Stream(non_blocking=True)
        self._free: dict[Any, list[_Place]] = {}
        self._lent: list[_Place] = []

    def __call__(self, values: np.ndarray[Any, Any]) -> Callable[[], Any]:
        """Begin a copy; the function returned makes the current stream wait for it, once.

        It gives the array on the GPU. It has to be called, as the memory is the current stream's.
        """
        self._collect()
        spare = self._free.get((values.shape, values.dtype))
        place = spare.pop() if spare else _Place(values)
        if place.copied is not None:
            place.copied.synchronize()  # long ago
        place.pinned[...] = values
        self._stream.wait_event(place.read)
        place.array.set(place.pinned, stream=self._stream)
        place.copied = self._stream.record()
        return lambda: self._arrived(place)

    def finish(self) -> None:
        """Wait for all copies: pinned memory that is let go of is the next one's to write to."""
        self._stream.synchronize()

    def _arrived(self, place: _Place) -> Any:
        cupy().cuda.get_current_stream().wait_event(place.copied)
        self._lent.append(place)
        return place.array

    def _collect(self) -> None:
        """Find what nobody holds any more."""
        lent, self._lent = self._lent, []
        for place in lent:
            if sys.getrefcount(place.array) > ALONE:
                self._lent.append(place)
                continue
            place.read = cupy().cuda.get_current_stream().record()
            self._free.setdefault((place.array.shape, place.array.dtype), []).append(place)
