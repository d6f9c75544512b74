"""Batches on their way to a GPU while it computes."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Iterator
from typing import Any

import numpy as np

from gpugrad.core import devices, nest
from gpugrad.core.backend import cupy
from gpugrad.core.indexed_slices import IndexedSlices
from gpugrad.core.tensor import Tensor, constant, wrap
from gpugrad.errors import ArgumentError
from gpugrad.kernels.runtime.launch import TYPES
from gpugrad.kernels.runtime.staging import Staging

__all__ = ["prefetch_to_device"]


def prefetch_to_device(batches: Iterable[Any], device: Any = None, size: int = 2) -> Iterator[Any]:
    """Go over batches with their arrays on a device, copied there while it computes.

    On a GPU the copies of the next batches run on a stream of their own, from pinned memory,
    while the kernels of this batch run. On the CPU arrays become Tensors, and that is all.

    Args:
        batches: an iterable of nested structures (tuples, lists, dicts, ...). NumPy arrays and
            Tensors in them come out as Tensors on `device`, other values as they are.
        device: where to; the default device if None.
        size: how many batches are on their way or there, from 1; 2 is enough to overlap.

    Returns:
        An iterator of the same structures.

    Raises:
        ArgumentError: `size` is not an int from 1.
        DeviceError: there is no such device.

    >>> import numpy as np
    >>> import gpugrad as gg
    >>> batches = [(np.ones(3, np.float32) * k, k) for k in range(3)]
    >>> for x, k in gg.prefetch_to_device(batches):
    ...     print(gg.sum(x).item(), k)
    0.0 0
    3.0 1
    6.0 2
    """
    if type(size) is not int or size < 1:
        raise ArgumentError(f"prefetch_to_device: size is an int from 1, not {size!r}.")
    d = devices.require(devices.device(device))
    return _on_gpu(batches, d, size) if d.kind != "cpu" else _placed(batches, d)


def _placed(batches: Iterable[Any], d: devices.Device) -> Iterator[Any]:
    for batch in batches:
        yield nest.map_structure(lambda leaf: _moved(leaf, d), batch)


def _moved(leaf: Any, d: devices.Device) -> Any:
    if isinstance(leaf, IndexedSlices) or not isinstance(leaf, (np.ndarray, Tensor)):
        return leaf
    return constant(leaf, device=d)


def _on_gpu(batches: Iterable[Any], d: devices.Device, size: int) -> Iterator[Any]:
    with cupy().cuda.Device(d.index):
        staging = Staging()

    def begun(leaf: Any) -> Callable[[], Any]:
        array = leaf._data if type(leaf) is Tensor else leaf
        if type(array) is not np.ndarray or array.dtype not in TYPES:
            return lambda: _moved(leaf, d)
        arrive = staging(array)
        return lambda: wrap(arrive())

    def begin(batch: Any) -> tuple[Any, list[Callable[[], Any]]]:
        with cupy().cuda.Device(d.index):
            return batch, [begun(leaf) for leaf in nest.flatten(batch)]

    def arrive(batch: Any, leaves: list[Callable[[], Any]]) -> Any:
        with cupy().cuda.Device(d.index):
            return nest.pack(batch, [leaf() for leaf in leaves])

    waiting: deque[tuple[Any, list[Callable[[], Any]]]] = deque()
    failed: Exception | None = None
    try:
        try:
            for batch in batches:
                waiting.append(begin(batch))
                if len(waiting) >= size:
                    yield arrive(*waiting.popleft())
        except Exception as error:  # what came before it goes first
            failed = error
        while waiting:
            yield arrive(*waiting.popleft())
        if failed is not None:
            raise failed
    finally:
        while waiting:  # it was stopped: what is on its way must arrive before its memory goes
            arrive(*waiting.popleft())
        staging.finish()
