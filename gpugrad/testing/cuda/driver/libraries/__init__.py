"""NVIDIA's libraries in Python: one module a library, which registers its functions by symbol.

The stubs (`native/stub.h`) ask `address_of` for a function when it is first called. A function gets
its arguments as integers (pointers too) and returns a status: None is success, and an exception
becomes the library's code for an internal error. `work` puts what it computes on a stream.
"""

from __future__ import annotations

import ctypes
import importlib
import itertools
import sys
import traceback
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import ml_dtypes
import numpy as np

from gpugrad.testing.cuda.driver import control

_KINDS: dict[str, Any] = {
    "i": ctypes.c_int,
    "p": ctypes.c_size_t,
    "l": ctypes.c_longlong,
    "d": ctypes.c_double,
    "f": ctypes.c_float,
    "u": ctypes.c_uint,
}
_MODULES = {
    "libnvrtc.so.13": "nvrtc",
    "libcublas.so.13": "cublas",
    "libcusolver.so.12": "cusolver",
    "libcusparse.so.12": "cusparse",
    "libcufft.so.12": "cufft",
    "libcurand.so.10": "curand",
    "libnccl.so.2": "nccl",
}


class StatusError(Exception):
    """Makes a library's function return this status."""

    def __init__(self, status: int) -> None:
        super().__init__(status)
        self.status = status


class Library:
    """The functions of one library.

    Args:
        name: that of the shared object.
        failed: the status of an internal error.
        missing: the status of what is not supported.
    """

    def __init__(self, name: str, failed: int, missing: int) -> None:
        self.name, self.failed, self.missing = name, failed, missing
        self.functions: dict[str, tuple[str, Callable[..., Any]]] = {}
        self._kept: list[Any] = []  # callbacks, which live as long as the process

    def function(self, symbol: str, kinds: str) -> Callable[[Any], Any]:
        """Decorator that registers a function.

        Args:
            symbol: its name in the library.
            kinds: a letter for each parameter: i int, u unsigned, l int64, p pointer or size_t,
                d double, f float.
        """

        def register(function: Callable[..., Any]) -> Callable[..., Any]:
            self.functions[symbol] = (kinds, function)
            return function

        return register

    def address_of(self, symbol: str) -> int:
        """The address of a C function that calls the one registered, or that refuses."""
        kinds, function = self.functions.get(symbol, ("", None))
        prototype = ctypes.CFUNCTYPE(ctypes.c_long, *(_KINDS[k] for k in kinds))
        callback = prototype(self._guarded(symbol, function))
        self._kept.append(callback)
        return ctypes.cast(callback, ctypes.c_void_p).value or 0

    def _guarded(self, symbol: str, function: Callable[..., Any] | None) -> Callable[..., int]:
        def call(*args: Any) -> int:
            if function is None:
                print(f"gpugrad.testing.cuda.driver: {symbol} is missing", file=sys.stderr)
                return self.missing
            try:
                return function(*args) or 0
            except StatusError as error:
                return error.status
            except Exception:
                traceback.print_exc()
                return self.failed

        return call


@dataclass
class Handle:
    """The state behind a library's handle.

    Attributes:
        stream: the stream of its work.
        pointer_mode: 0 where numbers such as alpha are read from the host, 1 from the device.
        math_mode: cuBLAS's.
    """

    stream: int = 0
    pointer_mode: int = 0
    math_mode: int = 0


HANDLES: dict[int, Handle] = {}
"""The handles of all libraries."""
_numbers = itertools.count(0x7000)


def new_handle(to: int) -> None:
    """Make a handle and write it to an address."""
    number = next(_numbers)
    HANDLES[number] = Handle()
    write(to, "u8", number)


def register_handles(library: Library, prefix: str, suffix: str = "") -> None:
    """Register the functions that create and destroy a library's handles and set streams."""
    library.function(f"{prefix}Create{suffix}", "p")(new_handle)
    library.function(f"{prefix}Destroy{suffix}", "p")(_destroy)
    library.function(f"{prefix}SetStream{suffix}", "pp")(_set_stream)
    library.function(f"{prefix}GetStream{suffix}", "pp")(_get_stream)


def _destroy(handle: int) -> None:
    del HANDLES[handle]


def _set_stream(handle: int, stream: int) -> None:
    HANDLES[handle].stream = stream


def _get_stream(handle: int, to: int) -> None:
    write(to, "u8", HANDLES[handle].stream)


def address_of(library: str, symbol: str) -> int:
    """The address of a library's function."""
    module = importlib.import_module(f"{__name__}.{_MODULES[library]}")
    return int(module.LIBRARY.address_of(symbol))


# ---- memory

DTYPES: dict[str, np.dtype[Any]] = {
    "s": np.dtype(np.float32),
    "d": np.dtype(np.float64),
    "c": np.dtype(np.complex64),
    "z": np.dtype(np.complex128),
}
CUDA_DTYPES: dict[int, np.dtype[Any]] = {
    0: np.dtype(np.float32),
    1: np.dtype(np.float64),
    2: np.dtype(np.float16),
    3: np.dtype(np.int8),
    4: np.dtype(np.complex64),
    5: np.dtype(np.complex128),
    10: np.dtype(np.int32),
    14: np.dtype(ml_dtypes.bfloat16),
}
"""The dtype of a ``cudaDataType_t``."""


def view(pointer: int, dtype: Any, shape: Any = (), strides: Any = None) -> np.ndarray[Any, Any]:
    """An array over device memory; strides in elements, column-major unless they are given."""
    dtype = np.dtype(dtype)
    if strides is None:
        strides = np.cumprod((1, *shape[:-1])).tolist() if shape else ()
    if 0 in shape:
        return np.empty(shape, dtype)
    span = 1 + sum((n - 1) * s for n, s in zip(shape, strides, strict=True))
    memory = (ctypes.c_uint8 * (span * dtype.itemsize)).from_address(pointer)
    return np.ndarray(shape, dtype, memory, 0, tuple(s * dtype.itemsize for s in strides))


def read(pointer: int, dtype: Any) -> Any:
    """The number at an address."""
    return view(pointer, dtype)[()]


def write(pointer: int, dtype: Any, value: Any) -> None:
    """Write a number to an address; null is ignored."""
    if pointer:
        view(pointer, dtype)[...] = value


def work(stream: int, library: str, name: str, run: Callable[[], object]) -> None:
    """Run a function as the work of a stream, or record it while the stream is captured."""
    if control.library().gpugrad_enqueue(stream, library.encode(), name.encode(), run):
        raise RuntimeError(f"{name} failed on its stream")


_NVRTC = (
    "AddNameExpression",
    "CompileProgram",
    "CreateProgram",
    "DestroyProgram",
    "GetCUBIN",
    "GetCUBINSize",
    "GetErrorString",
    "GetLTOIR",
    "GetLTOIRSize",
    "GetLoweredName",
    "GetNumSupportedArchs",
    "GetPTX",
    "GetPTXSize",
    "GetProgramLog",
    "GetProgramLogSize",
    "GetSupportedArchs",
    "Version",
)
_NCCL = "AllGather AllReduce Bcast Broadcast CommAbort CommCount CommCuDevice CommDestroy "
_NCCL += "CommGetAsyncError CommInitAll CommInitRankConfig CommSplit CommUserRank GetErrorString "
_NCCL += "GetUniqueId GetVersion GroupEnd GroupStart Recv Reduce ReduceScatter Send"
SYMBOLS: dict[str, list[str]] = {
    **{name: [] for name in _MODULES},
    "libnvrtc.so.13": [f"nvrtc{name}" for name in _NVRTC],
    "libcusolver.so.12": ["cusolverDnXgeev", "cusolverDnXgeev_bufferSize"],
    "libnccl.so.2": [f"nccl{name}" for name in _NCCL.split()],
}
"""By library: functions that CuPy looks up by name, beyond those that it is linked to."""
