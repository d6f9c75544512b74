"""CUDA devices: streams, synchronization, checks of indices, memory, and prefetching of batches.

Memory comes from CuPy's pool for the device, which keeps freed blocks. If a request does not fit,
the pool returns its free blocks to the device, runs the garbage collector, and tries again; only
then does an op raise `gpugrad.OutOfMemoryError`.
"""

from __future__ import annotations

import contextlib
import numbers
import threading
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from typing import Any, NamedTuple

import numpy as np

from gpugrad.core import backend, devices, nest
from gpugrad.core.arguments import whole
from gpugrad.core.backend import cupy
from gpugrad.core.convert import constant
from gpugrad.core.devices import Device
from gpugrad.core.dlpack import from_dlpack
from gpugrad.core.forking import new_lock
from gpugrad.core.index_checks import check_indices, raise_late
from gpugrad.core.indexed_slices import IndexedSlices
from gpugrad.core.known_as import answer_missing
from gpugrad.core.tensor import Tensor, wrap
from gpugrad.core.views import View
from gpugrad.errors import ArgumentError, DTypeError, GpugradError, reraise, saying_where
from gpugrad.kernels.runtime.launch import TYPES
from gpugrad.kernels.runtime.staging import Staging

__all__ = [
    "MemoryStats",
    "check_indices",
    "empty_cache",
    "is_available",
    "memory_stats",
    "prefetch_to_device",
    "reset_peak",
    "set_memory_limit",
    "stream",
    "synchronize",
]

answer_missing(__name__)


def __dir__() -> list[str]:
    return __all__


def is_available() -> bool:
    """Whether a GPU answers.

    >>> gg.cuda.is_available() == (len(gg.devices()) > 1)
    True
    """
    return devices.gpu_count() > 0


@contextlib.contextmanager
def _current_gpu(what: str, name: Any) -> Iterator[Any]:
    """CuPy with the GPU `name` current; by default the default device if a GPU, or else cuda:0."""
    d = devices.default_device() if name is None else devices.device(name)
    if d.kind == "cpu" and name is not None:
        raise ArgumentError(f"cuda.{what}: a CUDA device is needed, got {d}.")
    index = devices.require(devices.device("cuda:0") if d.kind == "cpu" else d).index
    with backend.cupy().cuda.Device(index):
        yield backend.cupy()


def synchronize(device: str | Device | None = None) -> None:
    """Wait until the GPU has finished all work, on every stream.

    Args:
        device: the GPU; the default device if None, or the first GPU if that is the CPU.

    Raises:
        DeviceError: there is no such GPU.
        IndexOutOfBoundsError: an earlier op had an index out of bounds: see `check_indices`.
        ArgumentError: the device is the CPU.

    >>> if gg.cuda.is_available():
    ...     gg.cuda.synchronize()
    """
    with _current_gpu("synchronize", device) as cupy:
        cupy.cuda.Device().synchronize()
    raise_late()


# ---- streams ----------------------------------------------------------------------------


class stream:
    """A CUDA stream for the work launched in a ``with`` block.

    The stream first waits for work launched before the block, and work launched after the block
    waits for the stream. So the results are the same with and without it; the block runs
    concurrently with work that *other threads* launch on their streams, and with the host. The
    memory of an array that is freed in the block is reused only after the block. The current
    stream belongs to the thread: an asyncio task must not await inside the block.

    Args:
        other: a stream to use instead of a new one: any object with the CUDA stream protocol
            (``__cuda_stream__``), such as a stream of CuPy, torch or cuda.core.
        device: the GPU; the default device if None, or the first GPU if that is the CPU.
        priority: priority of a new stream; lower numbers run first.

    Raises:
        DeviceError: there is no such GPU.
        ArgumentError: `other` is not a stream, `priority` not a whole number of 32 bits, or the
            device is the CPU.

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
                f"cuda.stream: a {type(other).__name__} is not a stream: it has no __cuda_stream__."
            )
        if priority is not None:  # CUDA brings it into the range that the device has
            priority = whole(-(2**31), 2**31 - 1)("cuda.stream", "priority", priority)
        with _current_gpu("stream", device) as cupy:
            self._cupy, self._index = cupy, int(cupy.cuda.Device().id)
            if other is None:  # non-blocking: it and the default stream do not wait for each other
                self.raw = cupy.cuda.Stream(non_blocking=True, priority=priority)
            else:
                self.raw = cupy.cuda.Stream.from_external(other)
        self._entered = threading.local()

    @property
    def ptr(self) -> int:
        """The address of the CUDA stream."""
        return int(self.raw.ptr)

    @property
    def device(self) -> Device:
        """The GPU of the stream."""
        return devices.device(f"cuda:{self._index}")

    def __cuda_stream__(self) -> tuple[int, int]:
        return 0, self.ptr

    def synchronize(self) -> None:
        """Wait until the stream has finished all its work."""
        self.raw.synchronize()
        raise_late()

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
        reserved: held by the pool, in arrays or in free blocks.
        peak: the maximum of `in_use` since `reset_peak`; None before its first call.
        limit: the most that the pool may reserve; 0 if there is no limit.
        free: free memory of the device, for any process.
        total: memory of the device.

    >>> stats = gg.cuda.MemoryStats(2**20, reserved=2**21, peak=None, limit=0, free=0, total=0)
    >>> stats.reserved - stats.in_use
    1048576
    """

    in_use: int
    reserved: int
    peak: int | None
    limit: int
    free: int
    total: int


_peaks: dict[int, int] = {}
_peaks_lock = new_lock()


def memory_stats(device: str | Device | None = None) -> MemoryStats:
    """The memory use of a GPU: arrays, the pool, and the device.

    Args:
        device: the GPU; the default device if None, or the first GPU if that is the CPU.

    Raises:
        DeviceError: there is no such GPU.
        ArgumentError: the device is the CPU.

    >>> if gg.cuda.is_available():
    ...     assert gg.cuda.memory_stats().in_use <= gg.cuda.memory_stats().total
    """
    with _current_gpu("memory_stats", device) as cupy:
        pool = cupy.get_default_memory_pool()
        free, total = cupy.cuda.runtime.memGetInfo()
        peak = _peaks.get(int(cupy.cuda.Device().id))
        return MemoryStats(
            pool.used_bytes(), pool.total_bytes(), peak, pool.get_limit(), free, total
        )


def reset_peak(device: str | Device | None = None) -> None:
    """Measure the peak of a GPU's memory use from now on; `memory_stats` reports it.

    After the first call, measuring adds about a microsecond to each allocation.

    Args:
        device: the GPU; the default device if None, or the first GPU if that is the CPU.

    Raises:
        DeviceError: there is no such GPU.
        ArgumentError: the device is the CPU, or an allocator was set, so that memory does not come
            from CuPy's default pool.

    >>> if gg.cuda.is_available():
    ...     gg.cuda.reset_peak()
    """
    with _current_gpu("reset_peak", device) as cupy:
        pool = cupy.get_default_memory_pool()
        if cupy.cuda.get_allocator() not in (pool.malloc, _malloc_with_peak):
            raise ArgumentError(
                "cuda.reset_peak: an allocator was set with cupy.cuda.set_allocator, so "
                "memory does not come from CuPy's default pool; ask that allocator."
            )
        cupy.cuda.set_allocator(_malloc_with_peak)
        _peaks[int(cupy.cuda.Device().id)] = pool.used_bytes()


def _malloc_with_peak(size: int) -> Any:
    """CuPy's allocator, which also updates the peak."""
    cupy = backend.cupy()
    pool = cupy.get_default_memory_pool()
    memory, index = pool.malloc(size), int(cupy.cuda.Device().id)
    with _peaks_lock:
        if index in _peaks:
            _peaks[index] = max(_peaks[index], pool.used_bytes())
    return memory


def empty_cache(device: str | Device | None = None) -> int:
    """Return the pool's free blocks to the GPU, for other libraries and processes.

    Args:
        device: the GPU; the default device if None, or the first GPU if that is the CPU.

    Returns:
        The number of bytes returned.

    Raises:
        DeviceError: there is no such GPU.
        ArgumentError: the device is the CPU.

    >>> if gg.cuda.is_available():
    ...     n_bytes = gg.cuda.empty_cache()
    """
    with _current_gpu("empty_cache", device) as cupy:
        pool = cupy.get_default_memory_pool()
        before = pool.total_bytes()
        pool.free_all_blocks()
        return int(before - pool.total_bytes())


@saying_where
def set_memory_limit(
    size: int | None = None, *, fraction: float | None = None, device: str | Device | None = None
) -> None:
    """Limit the memory of a GPU that the pool may reserve; beyond it ops raise OutOfMemoryError.

    Args:
        size: bytes.
        fraction: of the device's memory, instead of `size`. Without either there is no limit.
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
    with _current_gpu("set_memory_limit", device) as cupy:
        cupy.get_default_memory_pool().set_limit(size=size, fraction=fraction)


# ---- prefetching --------------------------------------------------------------------------


def prefetch_to_device(batches: Iterable[Any], device: Any = None, size: int = 2) -> Iterator[Any]:
    """Iterate over batches, copying the next ones to a device while it computes.

    On a GPU the copies run on a separate stream, from pinned memory, concurrently with the kernels
    of the current batch. On the CPU it only converts arrays to Tensors.

    Args:
        batches: an iterable of nested structures (tuples, lists, dicts, ...), such as a
            `gg.data.DataLoader` or one of torch. Arrays of any library with DLPack become Tensors
            on `device`; numbers, text and None are unchanged.
        device: the target; the default device if None.
        size: how many batches are copied or being copied, at least 1; 2 is enough to overlap.

    Returns:
        An iterator of the same structures. In a loop over it, the `state` of a
        `gg.data.DataLoader` is the position after the batch that the loop got last.

    Raises:
        ArgumentError: `size` is not a positive int.
        DeviceError: there is no such device.
        DTypeError: a batch holds anything else, such as an image of PIL or text in an array.

    >>> batches = [(np.ones(3, np.float32) * k, k) for k in range(3)]
    >>> for x, k in gg.prefetch_to_device(batches):
    ...     print(gg.sum(x).item(), k)
    0.0 0
    3.0 1
    6.0 2
    """
    if type(size) is not int or size < 1:
        raise ArgumentError(f"prefetch_to_device: size must be a positive int, got {size!r}.")
    source = batches
    try:
        batches = iter(batches)
    except (TypeError, GpugradError):
        raise ArgumentError(
            f"prefetch_to_device: batches must be iterable, got {batches!r:.60}."
        ) from None
    d = devices.require(devices.device(device))
    if d.kind == "cpu":
        return (_on_host(batch, d) for batch in batches)
    return _prefetch_to_gpu(batches, d, size, _Position(source))


_ARRAYS = frozenset((Tensor, np.ndarray))


def _on_host(batch: Any, d: devices.Device) -> Any:
    if type(batch) is tuple and _ARRAYS.issuperset(map(type, batch)):  # in half of the time
        return tuple([x if type(x) is Tensor and x.device == d else _convert(x, d) for x in batch])
    return nest.map_structure(lambda x: _convert(_read(x), d), batch)


class _Position:
    """The position of a `gg.data.DataLoader`, if that is what the batches come from.

    It is some batches ahead of the loop; what the loop sees as its state must not be.
    """

    def __init__(self, source: Any) -> None:
        known = hasattr(source, "note_returned")
        self.read: Callable[[], Any] = source.state if known else lambda: None
        self.set: Callable[[Any], None] = source.note_returned if known else lambda _: None


def _read(leaf: Any) -> Any:
    """A leaf of a batch, as NumPy array or Tensor if it is an array of another library."""
    if isinstance(leaf, (np.ndarray, Tensor, IndexedSlices, *_UNCHANGED)):
        return leaf
    try:
        if hasattr(leaf, "__dlpack__"):
            shared = from_dlpack(leaf)
            on_host = type(shared._data) is np.ndarray
            return shared._data if on_host else shared
        if hasattr(leaf, "__array__"):
            return np.asarray(leaf)
    except GpugradError as error:
        reraise(error, "prefetch_to_device", {}, {})
    raise DTypeError(
        f"prefetch_to_device: a batch holds a {type(leaf).__name__}, {leaf!r:.60}, which is no "
        "array. Convert it where the batches are made, as in DataLoader(collate_fn=)."
    )


_UNCHANGED = (str, bytes, numbers.Number, np.generic, type(None))


def _convert(leaf: Any, d: Device) -> Any:
    if isinstance(leaf, IndexedSlices):
        values, indices = (constant(part, device=d) for part in (leaf.values, leaf.indices))
        return IndexedSlices(values, indices, leaf.dense_shape)
    if not isinstance(leaf, (np.ndarray, Tensor)):
        return leaf
    try:
        return constant(leaf, device=d)
    except GpugradError as error:
        reraise(error, "prefetch_to_device", {}, {})


def _prefetch_to_gpu(
    batches: Iterable[Any], d: Device, size: int, position: _Position
) -> Iterator[Any]:
    with cupy().cuda.Device(d.index):
        staging = Staging()

    def start_leaf(leaf: Any) -> Callable[[], Any]:
        leaf = _read(leaf)
        array = leaf._data if type(leaf) in (Tensor, View) else leaf
        if type(array) is not np.ndarray or array.dtype not in TYPES:
            return lambda: _convert(leaf, d)
        finish_copy = staging(array)
        return lambda: wrap(finish_copy())

    def start(batch: Any) -> tuple[Any, Any, list[Callable[[], Any]]]:
        with cupy().cuda.Device(d.index):
            return position.read(), batch, [start_leaf(leaf) for leaf in nest.flatten(batch)]

    def finish(batch: Any, leaves: list[Callable[[], Any]]) -> Any:
        with cupy().cuda.Device(d.index):
            return nest.pack(batch, [leaf() for leaf in leaves])

    def oldest() -> Any:
        after, *started = waiting.popleft()
        position.set(after)
        return finish(*started)

    waiting: deque[tuple[Any, Any, list[Callable[[], Any]]]] = deque()
    failure: Exception | None = None
    try:
        try:
            for batch in batches:
                waiting.append(start(batch))
                if len(waiting) >= size:
                    yield oldest()
        except Exception as error:  # raised after the batches that came before it
            failure = error
        end = position.read()
        while waiting:
            yield oldest()
        if failure is not None:
            raise failure
        position.set(end)
    finally:
        while waiting:  # the caller stopped: copies must finish before their memory is freed
            finish(*waiting.popleft()[1:])
        staging.finish()
