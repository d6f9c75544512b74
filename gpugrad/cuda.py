"""CUDA devices: streams, synchronization, memory, and batches prefetched to a GPU.

Memory comes from CuPy's pool of the device, which keeps what is freed. Where a request does not
fit, the pool first gives back what it keeps, collects what Python's cycles hold, and tries again;
only then does an op raise `gpugrad.OutOfMemoryError`.
"""

from __future__ import annotations

import contextlib
import threading
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from typing import Any, NamedTuple

import numpy as np

from gpugrad.core import backend, devices, nest
from gpugrad.core.backend import cupy
from gpugrad.core.convert import constant
from gpugrad.core.devices import Device
from gpugrad.core.indexed_slices import IndexedSlices
from gpugrad.core.tensor import Tensor, wrap
from gpugrad.errors import ArgumentError
from gpugrad.kernels.runtime.launch import TYPES
from gpugrad.kernels.runtime.staging import Staging

__all__ = [
    "MemoryStats",
    "empty_cache",
    "is_available",
    "memory_stats",
    "prefetch_to_device",
    "reset_peak",
    "set_memory_limit",
    "stream",
    "synchronize",
]


def is_available() -> bool:
    """Whether a GPU answers.

    >>> gg.cuda.is_available() == (len(gg.devices()) > 1)
    True
    """
    return devices.gpu_count() > 0


@contextlib.contextmanager
def _on(what: str, name: Any) -> Iterator[Any]:
    """CuPy, with the GPU of that name current; by default that where new arrays go, or cuda:0."""
    d = devices.default_device() if name is None else devices.device(name)
    if d.kind == "cpu" and name is not None:
        raise ArgumentError(f"cuda.{what}: a CUDA device is needed, got {d}.")
    index = devices.require(devices.device("cuda:0") if d.kind == "cpu" else d).index
    with backend.cupy().cuda.Device(index):
        yield backend.cupy()


def synchronize(device: str | Device | None = None) -> None:
    """Wait until the GPU has done all that was launched on it, on any stream.

    Args:
        device: the GPU; the default device if None, or the first GPU if that is the CPU.

    Raises:
        DeviceError: there is no such GPU.
        ArgumentError: the device is the CPU.

    >>> if gg.cuda.is_available():
    ...     gg.cuda.synchronize()
    """
    with _on("synchronize", device) as cupy:
        cupy.cuda.Device().synchronize()


# ---- streams ----------------------------------------------------------------------------


class stream:
    """A stream of its own for what is launched in a ``with`` block.

    The stream first waits for what was launched before the block, and what is launched after the
    block waits for the stream. So a block is no other program with it than without; it runs beside
    what *other threads* launch on streams of theirs, and beside the host. Memory is safe by the
    same rule: an array that dies in the block is reused only behind it.

    Args:
        other: a stream to use instead of a new one: any object of the CUDA stream protocol
            (``__cuda_stream__``), as CuPy, torch and cuda.core have it.
        device: the GPU; the default device if None, or the first GPU if that is the CPU.
        priority: of a new stream; lower numbers go first.

    Raises:
        DeviceError: there is no such GPU.
        ArgumentError: `other` is no stream, or the device is the CPU.

    >>> if gg.cuda.is_available():
    ...     with gg.device("cuda:0"), gg.cuda.stream() as s:
    ...         y = gg.ones((1000, 1000)) @ gg.ones((1000, 1000))
    ...     s.synchronize()
    """

    def __init__(
        self, other: Any = None, *, device: str | Device | None = None, priority: int | None = None
    ) -> None:
        if other is not None and not hasattr(other, "__cuda_stream__"):
            raise ArgumentError(
                f"cuda.stream: a {type(other).__name__} is no stream: it has no __cuda_stream__."
            )
        with _on("stream", device) as cupy:
            self._cupy, self._index = cupy, int(cupy.cuda.Device().id)
            # non-blocking: the default stream and this one do not wait for each other by themselves
            self.raw = (
                cupy.cuda.Stream(non_blocking=True, priority=priority)
                if other is None else cupy.cuda.Stream.from_external(other)
            )  # fmt: skip
        self._entered = threading.local()

    @property
    def ptr(self) -> int:
        """The address by which CUDA knows the stream."""
        return int(self.raw.ptr)

    @property
    def device(self) -> Device:
        """The GPU that it belongs to."""
        return devices.device(f"cuda:{self._index}")

    def __cuda_stream__(self) -> tuple[int, int]:
        return 0, self.ptr

    def synchronize(self) -> None:
        """Wait until all that was launched on the stream is done."""
        self.raw.synchronize()

    def __enter__(self) -> stream:
        held: list[Any] = self._entered.__dict__.setdefault("held", [])
        here = self._cupy.cuda.Device(self._index)
        here.__enter__()
        outer = self._cupy.cuda.get_current_stream()
        self.raw.wait_event(outer.record())
        self.raw.__enter__()
        held.append((here, outer))
        return self

    def __exit__(self, *exc: Any) -> None:
        here, outer = self._entered.held.pop()
        self.raw.__exit__(*exc)
        outer.wait_event(self.raw.record())
        here.__exit__(*exc)

    def __repr__(self) -> str:
        return f"<stream {self.ptr:#x} on {self.device}>"


# ---- memory -----------------------------------------------------------------------------


class MemoryStats(NamedTuple):
    """Bytes of one GPU's memory.

    Attributes:
        in_use: held by arrays.
        reserved: held by the pool: by arrays, or kept to be used again.
        peak: the most that arrays held at once since `reset_peak`; None before its first call.
        limit: the most that the pool may reserve; 0 where there is no limit.
        free: what the device has left, for anybody.
        total: what the device has.
    """

    in_use: int
    reserved: int
    peak: int | None
    limit: int
    free: int
    total: int


_peaks: dict[int, int] = {}
_peaks_lock = threading.Lock()


def memory_stats(device: str | Device | None = None) -> MemoryStats:
    """How much memory of a GPU is used, by whom.

    Args:
        device: the GPU; the default device if None, or the first GPU if that is the CPU.

    Raises:
        DeviceError: there is no such GPU.
        ArgumentError: the device is the CPU.

    >>> if gg.cuda.is_available():
    ...     assert gg.cuda.memory_stats().in_use <= gg.cuda.memory_stats().total
    """
    with _on("memory_stats", device) as cupy:
        pool = cupy.get_default_memory_pool()
        free, total = cupy.cuda.runtime.memGetInfo()
        peak = _peaks.get(int(cupy.cuda.Device().id))
        return MemoryStats(
            pool.used_bytes(), pool.total_bytes(), peak, pool.get_limit(), free, total
        )


def reset_peak(device: str | Device | None = None) -> None:
    """Count the peak of a GPU's memory from now on: `memory_stats` has it.

    From the first call on every allocation is counted, which takes it about a microsecond more.

    Args:
        device: the GPU; the default device if None, or the first GPU if that is the CPU.

    Raises:
        DeviceError: there is no such GPU.
        ArgumentError: the device is the CPU; or memory does not come from CuPy's default pool,
            because an allocator was set.

    >>> if gg.cuda.is_available():
    ...     gg.cuda.reset_peak()
    """
    with _on("reset_peak", device) as cupy:
        pool = cupy.get_default_memory_pool()
        if cupy.cuda.get_allocator() not in (pool.malloc, _counted):
            raise ArgumentError(
                "cuda.reset_peak: an allocator was set with cupy.cuda.set_allocator, so "
                "memory does not come from CuPy's default pool; ask that allocator."
            )
        cupy.cuda.set_allocator(_counted)
        _peaks[int(cupy.cuda.Device().id)] = pool.used_bytes()


def _counted(size: int) -> Any:
    """CuPy's allocator, which here keeps the peak too."""
    cupy = backend.cupy()
    pool = cupy.get_default_memory_pool()
    made, index = pool.malloc(size), int(cupy.cuda.Device().id)
    with _peaks_lock:
        if index in _peaks:
            _peaks[index] = max(_peaks[index], pool.used_bytes())
    return made


def empty_cache(device: str | Device | None = None) -> int:
    """Give back to the GPU what the pool keeps and no array uses, so that others can have it.

    Args:
        device: the GPU; the default device if None, or the first GPU if that is the CPU.

    Returns:
        How many bytes were given back.

    Raises:
        DeviceError: there is no such GPU.
        ArgumentError: the device is the CPU.

    >>> if gg.cuda.is_available():
    ...     given_back = gg.cuda.empty_cache()
    """
    with _on("empty_cache", device) as cupy:
        pool = cupy.get_default_memory_pool()
        before = pool.total_bytes()
        pool.free_all_blocks()
        return int(before - pool.total_bytes())


def set_memory_limit(
    size: int | None = None, *, fraction: float | None = None, device: str | Device | None = None
) -> None:
    """Set how much memory of a GPU the pool may reserve; beyond it ops raise OutOfMemoryError.

    Args:
        size: bytes.
        fraction: of the device's memory, instead of `size`. With neither there is no limit.
        device: the GPU; the default device if None, or the first GPU if that is the CPU.

    Raises:
        DeviceError: there is no such GPU.
        ArgumentError: both are given, one is out of range, or the device is the CPU.

    >>> if gg.cuda.is_available():
    ...     gg.cuda.set_memory_limit(fraction=0.5)
    ...     gg.cuda.set_memory_limit()
    """
    if size is not None and fraction is not None:
        raise ArgumentError("cuda.set_memory_limit: give size or fraction, not both.")
    if size is not None and size <= 0:
        raise ArgumentError(f"cuda.set_memory_limit: size must be above 0, got {size}.")
    if fraction is not None and not 0 < fraction <= 1:
        raise ArgumentError(
            f"cuda.set_memory_limit: fraction must be above 0 and at most 1, got {fraction}."
        )
    with _on("set_memory_limit", device) as cupy:
        cupy.get_default_memory_pool().set_limit(size=size, fraction=fraction)


# ---- batches on their way to a GPU --------------------------------------------------------


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


def _placed(batches: Iterable[Any], d: Device) -> Iterator[Any]:
    for batch in batches:
        yield nest.map_structure(lambda leaf: _moved(leaf, d), batch)


def _moved(leaf: Any, d: Device) -> Any:
    if isinstance(leaf, IndexedSlices) or not isinstance(leaf, (np.ndarray, Tensor)):
        return leaf
    return constant(leaf, device=d)


def _on_gpu(batches: Iterable[Any], d: Device, size: int) -> Iterator[Any]:
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
