"""Compiles kernels on first use and launches them on arrays.

CuPy compiles with NVRTC and caches the binaries in memory and on disk (``CUPY_CACHE_DIR``). A
kernel is compiled only for the template arguments that are launched.
"""

from __future__ import annotations

import functools
import os
import re
import threading
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from gpugrad.core.backend import ARRAYS, BFLOAT16, cupy
from gpugrad.core.devices import gpu_count
from gpugrad.core.forking import new_lock
from gpugrad.core.progress import compiling
from gpugrad.errors import KernelError

OPTIONS = ("-std=c++17",)

TYPES = {
    np.dtype(np.float32): "float", np.dtype(np.float64): "double",
    np.dtype(np.float16): "__half", BFLOAT16: "__nv_bfloat16",
    np.dtype(np.bool_): "bool", np.dtype(np.int8): "signed char",
    np.dtype(np.uint8): "unsigned char", np.dtype(np.int16): "short",
    np.dtype(np.uint16): "unsigned short", np.dtype(np.int32): "int",
    np.dtype(np.uint32): "unsigned int", np.dtype(np.int64): "long long",
    np.dtype(np.uint64): "unsigned long long",
    np.dtype(np.complex64): "Complex<float>", np.dtype(np.complex128): "Complex<double>",
}  # fmt: skip
"""The C++ type of each dtype."""

_INCLUDE = re.compile(r'^#include "(\w+\.cuh)"$', re.MULTILINE)

_NULL = np.uintp(0)

on_host: Callable[..., None] | None = None
"""Runs kernels on NumPy arrays; `gpugrad.testing.cuda.shim` sets it."""


def type_name(dtype: Any) -> str:
    """The C++ type of a dtype: ``float`` for float32."""
    return TYPES[np.dtype(dtype)]


def cpp_bool(value: object) -> str:
    """A bool as a C++ template argument."""
    return "true" if value else "false"


def pointer(array: Any) -> int:
    """The address of the first element of a NumPy or CuPy array."""
    return int(array.ctypes.data if type(array) is np.ndarray else array.data.ptr)


@functools.cache
def headers(*names: str) -> str:
    """The headers that precede the text of a generated kernel."""
    return "".join(map(read_source, names))


@functools.cache
def read_source(name: str) -> str:
    """The text of a CUDA source or header on one of the shelves of `gpugrad/kernels`."""
    kernels = os.path.dirname(os.path.dirname(__file__))
    paths = (os.path.join(kernels, shelf, name) for shelf in os.listdir(kernels))
    with open(next(filter(os.path.exists, paths)), encoding="utf-8") as file:
        return file.read()


@functools.cache
def full_source(source: str) -> str:
    """The full text of a source, which is a file name (``softmax.cu``) or CUDA C++ itself.

    ``common.cuh`` comes first, and the headers that a file includes are inlined.
    """
    if source.endswith(".cu"):
        source = _INCLUDE.sub(lambda match: read_source(match[1]), read_source(source))
    return read_source("common.cuh") + source


def launch(
    source: str,
    name: str,
    grid: int | Sequence[int],
    block: int | Sequence[int],
    args: Sequence[Any],
    shared: int = 0,
    *,
    cooperative: bool = False,
) -> None:
    """Run a kernel on the current device and stream.

    Args:
        source: a file name under `gpugrad/kernels`, as ``"softmax.cu"``, or CUDA C++ itself.
        name: the kernel with its template arguments: ``"softmax_forward<float, 256>"``.
        grid, block: numbers of blocks and of threads, in up to three dimensions.
        args: arrays, and NumPy scalars of exactly the types of the parameters. An array is passed
            as the pointer to its first element, None as a null pointer, a scalar of a structured
            dtype as a struct by value.
        shared: bytes of dynamic shared memory.
        cooperative: whether blocks may wait for each other: see `blocks_at_once`.

    Raises:
        KernelError: the source does not compile, or CuPy's launch was given NumPy arrays.
    """
    if np.ndarray in map(type, args) or (
        on_host is not None and ARRAYS.isdisjoint(map(type, args))
    ):
        if on_host is None:
            raise KernelError(f"{name}: kernels run on CuPy arrays, got NumPy arrays.")
        size = pad_to_3d(grid), pad_to_3d(block)
        on_host(full_source(source), name, *size, args, shared=shared, cooperative=cooperative)
        return
    loaded = _compile(source, name, _current())
    if shared > loaded.shared:
        loaded.allow(shared)
    kernel = loaded.kernel
    params = [_NULL if a is None else a for a in args]
    if not takes_structures():
        params = [np.asarray(a) if type(a) is np.void else a for a in params]
    # a RawKernel looks its function up at each launch; a cooperative one also links a library
    kernel = getattr(kernel, "kernel", kernel)
    size = pad_to_3d(grid), pad_to_3d(block)
    kernel(*size, tuple(params), shared_mem=shared, enable_cooperative_groups=cooperative)


def is_captured(array: Any) -> bool:
    """Whether the current stream captures a CUDA graph, so that no value can be read back."""
    return type(array) is not np.ndarray and bool(cupy().cuda.get_current_stream().is_capturing())


PER_THREAD = 2  # the address of a default stream that each thread has for itself


class _Thread(threading.local):
    def __init__(self) -> None:
        self.token = object()


_running = _Thread()


def this_thread() -> object:
    """An object of the running thread; the identifier of one that has ended is given again."""
    return _running.token


def get_kernel(source: str, name: str) -> Any:
    """CuPy's kernel for the current device: a function of grid, block and arguments.

    For callers that launch one kernel often on CuPy arrays; others use `launch`.
    """
    kernel = _compile(source, name, _current()).kernel
    return getattr(kernel, "kernel", kernel)  # saves RawKernel's own lookup at each launch


def _current() -> int:
    return int(cupy().cuda.Device().id) if gpu_count() > 1 else 0


def gpu_of(array: Any) -> int:
    """The index of an array's GPU; 0 without a query where there is only one."""
    return int(array.device.id) if gpu_count() > 1 else 0


@functools.cache
def takes_structures() -> bool:
    """Whether CuPy passes a scalar of a structured dtype by value.

    Before 14.2 it takes an array with that one element, which costs 8 us more.
    """
    return [int(n) for n in cupy().__version__.split(".")[:2]] >= [14, 2]


def architecture() -> str:
    """The compute capability of the current device, as ``sm_90``; the shim counts as sm_90."""
    if on_host is not None:
        return "sm_90"
    return f"sm_{cupy().cuda.Device().compute_capability}"


class _Loaded:
    """CuPy's kernel, and the bytes of dynamic shared memory that it may have."""

    def __init__(self, kernel: Any) -> None:
        self.kernel, self.shared, self._lock = kernel, 0, new_lock()

    def allow(self, shared: int) -> None:
        """Raise the limit, which CUDA starts at 48 KiB minus what the kernel declares itself.

        It is never lowered: another thread may be about to launch the kernel with more.
        """
        with self._lock:
            if shared > self.shared:
                self.kernel.max_dynamic_shared_size_bytes = shared
                self.shared = shared


@functools.cache
def _compile(source: str, name: str, device: int) -> _Loaded:
    module = cupy().RawModule(code=full_source(source), options=OPTIONS, name_expressions=(name,))
    try:
        with compiling(name):
            return _Loaded(module.get_function(name))
    except cupy().cuda.compiler.CompileException as error:
        lines = [line for line in str(error).splitlines() if line.strip()]
        raise KernelError(
            f"{name} does not compile for {architecture()}:\n" + "\n".join(lines[:20])
        ) from error


def pad_to_3d(size: int | Sequence[int]) -> tuple[int, ...]:
    """A size in one to three dimensions, padded with ones to three."""
    if type(size) is tuple and len(size) == 3:
        return size
    sizes = (size,) if isinstance(size, int) else tuple(size)
    return (*sizes, 1, 1)[:3]
