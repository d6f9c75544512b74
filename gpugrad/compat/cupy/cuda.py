"""CuPy's ``cuda``: CuPy's own where there is a GPU; else nothing to wait for, and no memory in use.

>>> import gpugrad.compat.cupy as cp
>>> with cp.cuda.Device(0), cp.cuda.Stream() as stream:
...     y = cp.arange(3.0) + 1
>>> stream.synchronize()
"""

from __future__ import annotations

import contextlib
import time
import types
from typing import Any

import gpugrad as gg
from gpugrad.compat.names import forwarding
from gpugrad.core.backend import cupy
from gpugrad.errors import DeviceError


def is_available() -> bool:
    """Whether a GPU answers."""
    return gg.cuda.is_available()


class Device:
    """A GPU: within ``with`` or after `use`, new Tensors are on it. Without one, 0 is the CPU."""

    def __init__(self, device: Any = None) -> None:
        current = gg.device()
        self.id = int(current.index if device is None else getattr(device, "id", device))
        is_cpu = current.kind == "cpu" if device is None else not is_available() and self.id == 0
        self._device = gg.device("cpu" if is_cpu else f"cuda:{self.id}")

    def __enter__(self) -> Device:
        self._device.__enter__()
        return self

    def __exit__(self, *exc: object) -> None:
        self._device.__exit__(*exc)

    def use(self) -> Device:
        """Make it the default device."""
        gg.set_device(self._device)
        return self

    def synchronize(self) -> None:
        """Wait until it has finished all work."""
        if self._device.kind != "cpu":
            gg.cuda.synchronize(self._device)

    def __int__(self) -> int:
        return self.id

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Device) and self.id == other.id

    def __hash__(self) -> int:
        return hash(self.id)

    def __getattr__(self, name: str) -> Any:
        if name.startswith("_") or not is_available():
            raise AttributeError(f"Device {self.id} has no {name!r} without a GPU.", name=name)
        return getattr(cupy().cuda.Device(self.id), name)


class _Idle(contextlib.nullcontext[Any]):
    """A stream, an event or a pool without a GPU: a context whose methods do nothing; counts are 0.

    An event that is recorded, also by a stream, notes the time.
    """

    done, ptr, seconds = True, 0, 0.0
    null: Any

    def __init__(self, *args: Any, **keywords: Any) -> None:
        super().__init__(self)

    def record(self, other: Any = None) -> Any:
        """The event, or a new one, at this moment."""
        event = _Idle() if self is _Idle.null and other is None else other or self
        event.seconds = self.seconds = time.perf_counter()
        return event

    def synchronize(self, *args: Any, **keywords: Any) -> None:
        """Do nothing."""

    def used_bytes(self, *args: Any, **keywords: Any) -> int:
        """0."""
        return 0

    malloc = staticmethod(bytearray)
    use = wait_event = free_all_blocks = set_limit = synchronize
    total_bytes = free_bytes = n_free_blocks = get_limit = used_bytes


_Idle.null = _Idle()
_nothing, _zero = _Idle.null.synchronize, _Idle.null.used_bytes
_without_gpu = types.SimpleNamespace(
    **dict.fromkeys(("Stream", "ExternalStream", "Event", "MemoryPool", "PinnedMemoryPool"), _Idle),
    **dict.fromkeys(("alloc", "alloc_pinned_memory"), bytearray),
    **dict.fromkeys(("set_allocator", "set_pinned_memory_allocator"), _nothing),
    get_device_id=_zero,
    using_allocator=_Idle,
    get_current_stream=lambda device_id=-1: _Idle.null,
    get_elapsed_time=lambda start, end: (end.seconds - start.seconds) * 1e3,
    nvtx=types.SimpleNamespace(RangePush=_nothing, RangePop=_nothing, Mark=_nothing),
    profiler=types.SimpleNamespace(start=_nothing, stop=_nothing, profile=_Idle),
    runtime=types.SimpleNamespace(
        **dict.fromkeys(("getDeviceCount", "getDevice", "runtimeGetVersion"), _zero),
        **dict.fromkeys(("setDevice", "deviceSynchronize"), _nothing),
        memGetInfo=lambda: (0, 0),
        CUDARuntimeError=DeviceError,
    ),
)
"""Names that programs ask of ``cupy.cuda``, where there is no GPU."""
_without_gpu.stream = _without_gpu.memory = _without_gpu


def __getattr__(name: str) -> Any:
    source = cupy().cuda if is_available() else _without_gpu
    return forwarding(__name__, source, own=globals())[0](name)


def __dir__() -> list[str]:
    source = cupy().cuda if is_available() else _without_gpu
    return forwarding(__name__, source, own=globals())[1]()
