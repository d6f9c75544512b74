"""Runs CUDA kernels on the CPU: g++ compiles the source that NVRTC gets, against C++ headers.

`cudashim.h` documents what is modelled. Each array is copied between two pages that may be neither
read nor written: directly before the second one, or in the last schedule directly after the first.
"""

from __future__ import annotations

import contextlib
import ctypes
import functools
import mmap
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from gpugrad.core.forking import new_lock
from gpugrad.kernels.runtime import launch
from gpugrad.testing.cuda.shim.build import (
    ShimError,
    Source,
    build_kernels,
    build_runtime,
    unavailable,
)

__all__ = [
    "SCHEDULES",
    "KernelLibrary",
    "ShimError",
    "compile_module",
    "deferred",
    "join_sources",
    "module",
    "running",
    "unavailable",
]

SCHEDULES = ("round robin", "warp by warp", "backwards")
"""The orders in which the threads of a block run; a race may show only in some of them. The blocks
run one after the other, in the last schedule from the last one to the first."""

_running = new_lock()  # a library holds the state of the running block
_ALIGNED = 16  # bytes of a thread's widest access
_COOPERATIVE = 16  # as in cudashim.cpp
_PAGE = mmap.PAGESIZE
_NONE, _ALL = 0, 3  # page protection


class KernelLibrary:
    """Compiled kernels of one source; `compile_module` returns it."""

    def __init__(self, library: ctypes.CDLL, names: Sequence[str], first: int = 0) -> None:
        self._library = library
        self._position = {name: k for k, name in enumerate(names, first)}

    def run(
        self,
        name: str,
        grid: int | Sequence[int],
        block: int | Sequence[int],
        args: Sequence[Any],
        *,
        shared: int = 0,
        cooperative: bool = False,
        schedule: str = "round robin",
    ) -> None:
        """Run a kernel; it writes to arrays among `args` in place.

        Args:
            name: a name passed to `compile_module`.
            grid, block: numbers of blocks and threads, in one to three dimensions.
            args: NumPy arrays, which become pointers to their first element, None for a null
                pointer, and NumPy scalars of exactly the types of the parameters.
            shared: bytes of dynamic shared memory.
            cooperative: whether blocks may wait for each other.
            schedule: one of `SCHEDULES`.

        Raises:
            ShimError: wrong arguments, a deadlock, or an access outside an array.
        """
        k = self._position[name]
        at_end = schedule != SCHEDULES[-1]
        copies = {id(a): _Guarded(a, at_end) for a in args if isinstance(a, np.ndarray)}
        guarded = [copies.get(id(a)) for a in args]  # an array passed twice shares its copy
        values = [
            np.array(
                [g.pointer if g else 0 if a is None else a], np.uintp if g or a is None else None
            )
            for a, g in zip(args, guarded, strict=True)
        ]
        self._check_sizes(name, k, [v.itemsize for v in values])
        run = getattr(self._library, f"shim_run_{k}")
        run.restype = ctypes.c_char_p
        pointers = (ctypes.c_void_p * len(values))(*(v.ctypes.data for v in values))
        size = (ctypes.c_uint * 6)(*launch.pad_to_3d(grid), *launch.pad_to_3d(block))
        order = SCHEDULES.index(schedule) + _COOPERATIVE * cooperative
        with _running:
            error = run(pointers, size, ctypes.c_size_t(shared), order)
            fault = _runtime().shim_fault() or 0
        arrays = [(k, g) for k, g in enumerate(guarded) if g]
        if error:
            near = [f", next to argument {k}" for k, g in arrays if g.contains(fault)]
            raise ShimError(f"{name} ({schedule}): {error.decode()}{''.join(near[:1])}.")
        for k, g in arrays:
            if not g.is_intact():
                raise ShimError(f"{name} ({schedule}): wrote outside of argument {k}.")
        for _, g in arrays:
            g.copy_back()

    def _check_sizes(self, name: str, k: int, args: list[int]) -> None:
        sizes = (ctypes.c_size_t * 64)()
        n = getattr(self._library, f"shim_sizes_{k}")(sizes)
        if list(sizes[:n]) != args:
            raise ShimError(
                f"{name}: its parameters have {list(sizes[:n])} bytes, the arguments {args}."
            )


@contextlib.contextmanager
def running(schedule: str = "round robin") -> Iterator[None]:
    """Context manager that runs kernels launched on NumPy arrays on the CPU.

    Args:
        schedule: one of `SCHEDULES`.

    >>> from gpugrad.testing.cuda import shim
    >>> with shim.running("backwards"):
    ...     pass  # call a launcher of gpugrad.kernels on NumPy arrays
    """

    def run(source: str, name: str, *args: Any, **params: Any) -> None:
        module(source, name).run(name, *args, **params, schedule=schedule)

    previous, launch.on_host = launch.on_host, run
    try:
        yield
    finally:
        launch.on_host = previous


class deferred:
    """Context manager that collects launches; `run` compiles all kernels together.

    That is a hundred times as fast as compiling them one by one. Results exist after `run`, or
    after repeating the same calls within `running`, which finds the kernels compiled.

    >>> from gpugrad.testing.cuda import shim
    >>> with shim.deferred() as launches:
    ...     pass  # call launchers of gpugrad.kernels on NumPy arrays
    >>> launches.run("backwards")
    """

    def __init__(self) -> None:
        self.launches: list[tuple[Any, ...]] = []

    def __enter__(self) -> deferred:
        self._previous = launch.on_host
        launch.on_host = lambda *args, **params: self.launches.append((*args, params))
        return self

    def __exit__(self, *exc: object) -> None:
        launch.on_host = self._previous

    @property
    def source(self) -> str:
        """The joined source of all kernels."""
        return join_sources([source for source, *_ in self.launches])

    @property
    def names(self) -> list[str]:
        """The names of the kernels."""
        return list(dict.fromkeys(name for _, name, *_ in self.launches))

    def run(self, schedule: str = "round robin") -> None:
        """Run the collected launches in order; may be called again after arrays have changed."""
        self.compile()
        for source, name, grid, block, args, params in self.launches:
            module(source, name).run(name, grid, block, args, **params, schedule=schedule)

    def compile(self) -> None:
        """Compile all kernels, once."""
        if self.launches and (self.launches[0][:2] not in _ready):
            compiled = compile_module(self.source, self.names)
            _ready.update({(source, name): compiled for source, name, *_ in self.launches})


_ready: dict[tuple[str, str], KernelLibrary] = {}  # compiled kernels by (source, name)


def join_sources(sources: Sequence[str]) -> str:
    """Join sources into one; the text up to the last include guard's end appears once."""
    parts = [source.rpartition("#endif\n") for source in sources]
    heads, texts = dict.fromkeys(h + e for h, e, _ in parts), dict.fromkeys(t for _, _, t in parts)
    return "".join((*heads, *texts))


def module(source: str, name: str) -> KernelLibrary:
    """A module with one kernel, cached."""
    if (source, name) not in _ready:
        _ready[source, name] = compile_module(source, [name])
    return _ready[source, name]


@functools.cache
def _libc() -> ctypes.CDLL:
    return ctypes.CDLL(None)


class _Guarded:
    """A copy of an array's memory between two protected pages, with the array's alignment."""

    def __init__(self, array: np.ndarray[Any, Any], at_end: bool) -> None:
        low, high = np.lib.array_utils.byte_bounds(array)
        if array.size == 0:
            low = high = array.ctypes.data
        self._array, self._low, self._bytes = array, low, high - low
        pages = -(-(self._bytes + _ALIGNED) // _PAGE)
        self._memory = np.frombuffer(mmap.mmap(-1, (pages + 2) * _PAGE), np.uint8)
        self._memory[:] = 0xFF
        self._base, self._last = self._memory.ctypes.data, (pages + 1) * _PAGE
        room = self._last - _PAGE - self._bytes
        offset = low % _ALIGNED  # from the alignment of the widest access
        self._start = _PAGE + ((room - offset) // _ALIGNED * _ALIGNED if at_end else 0) + offset
        self._copy()[...] = self._original()
        self.pointer = self._base + self._start + (array.ctypes.data - low)
        self._protect(_NONE)

    def _protect(self, access: int) -> None:
        for page in (self._base, self._base + self._last):
            if _libc().mprotect(ctypes.c_void_p(page), ctypes.c_size_t(_PAGE), access):
                raise OSError("mprotect")

    def contains(self, address: int) -> bool:
        """Whether an address is in this memory, protected pages included."""
        return 0 <= address - self._base < self._memory.size

    def _copy(self) -> np.ndarray[Any, Any]:
        return self._memory[self._start : self._start + self._bytes]

    def _original(self) -> np.ndarray[Any, Any]:
        memory = (ctypes.c_uint8 * self._bytes).from_address(self._low)
        return np.frombuffer(memoryview(memory), np.uint8) if self._bytes else np.empty(0, np.uint8)

    def is_intact(self) -> bool:
        """Whether the bytes around the array, and between its elements, are unchanged."""
        before = self._memory[_PAGE : self._start]
        after = self._memory[self._start + self._bytes : self._last]
        if not ((before == 0xFF).all() and (after == 0xFF).all()):
            return False
        if self._bytes <= self._array.nbytes:
            return True
        between = np.ones(self._bytes, np.bool_)
        at = self._array.ctypes.data - self._low
        elements = (*self._array.shape, self._array.itemsize), (*self._array.strides, 1)
        np.ndarray(elements[0], np.bool_, between, at, elements[1])[...] = False
        return bool((self._copy() == self._original())[between].all())

    def copy_back(self) -> None:
        """Write the array's elements; what lies between them may be another array's."""
        array = self._array
        if array.flags.writeable:
            at = self._start + array.ctypes.data - self._low
            array[...] = np.ndarray(array.shape, array.dtype, self._memory, at, array.strides)


def compile_module(source: str, names: Sequence[str]) -> KernelLibrary:
    """Compile CUDA source for the CPU, or find it in the cache on disk.

    Args:
        source: the source for NVRTC. ``extern __shared__ T name[];`` is supported.
        names: its kernels with their template arguments: ``"softmax<float, 256>"``.

    Raises:
        ShimError: it does not compile; the message has the compiler's first lines.

    >>> from gpugrad.testing.cuda import shim
    >>> source = '''
    ... __global__ void twice(const float* x, float* y, int n) {
    ...     int i = blockIdx.x * blockDim.x + threadIdx.x;
    ...     if (i < n) y[i] = 2 * x[i];
    ... }'''
    >>> module = shim.compile_module(source, ["twice"])
    >>> x = np.arange(5, dtype=np.float32)
    >>> y = np.empty_like(x)
    >>> module.run("twice", 2, 4, [x, y, np.int32(5)])
    >>> y.tolist()
    [0.0, 2.0, 4.0, 6.0, 8.0]
    """
    _runtime()
    compiled = build_kernels(Source(source, tuple(names)))
    return KernelLibrary(ctypes.CDLL(str(compiled.library)), names, compiled.first)


@functools.cache
def _runtime() -> ctypes.CDLL:
    """The compiled cudashim.cpp. Kernels' libraries are linked to it."""
    library = ctypes.CDLL(str(build_runtime()), mode=ctypes.RTLD_GLOBAL)
    library.shim_fault.restype = ctypes.c_void_p
    return library
