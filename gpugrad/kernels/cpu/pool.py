"""The pool of threads that all C kernels share, and the C++ files beside this one as libraries.

`pool.cpp` describes the pool. It has as many threads as the process has cores, at most
``OMP_NUM_THREADS``, and starts them with the first job that has work for two. Jobs of several
Python threads do not wait for each other: one gets the pool, the others run on their own thread.
"""

from __future__ import annotations

import ctypes
import functools
import warnings
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from gpugrad.core import environment
from gpugrad.core.for_shapes import shapes_suffice, want
from gpugrad.core.forking import cached_property
from gpugrad.core.threads import workers
from gpugrad.errors import ArgumentError, GpugradWarning
from gpugrad.kernels.cpu import compiler

_POINTER = ctypes.c_void_p
_HOME = Path(__file__).parent
_NOTHING = np.empty(0)
FEW = 4
"""Arrays that ``gpugrad_run_few`` takes."""


class _Pointer:
    """The type of a pointer: an array passes its first element, None a null pointer."""

    @classmethod
    def from_param(cls, x: Any) -> Any:
        return _POINTER(x.ctypes.data) if isinstance(x, np.ndarray) else _POINTER.from_param(x)


_TYPES: dict[str, Any] = {
    "l": ctypes.c_long,
    "w": ctypes.c_uint64,
    "p": _Pointer,
    "a": ctypes.c_void_p,
    "o": ctypes.py_object,
    "d": ctypes.c_double,
    "f": ctypes.c_float,
}


class Kernels:
    """The functions of a C++ file beside this one, compiled when first needed; false without one.

    Args:
        name: of the file, without its ending.
        head: text in front of it, such as definitions that say which of its functions it has.
        shared, flags: as for `compiler.load`.
        functions: the types of their arguments, a letter each: l for long, w for a word of 64 bits,
            p for a pointer, a for an address, which takes less time to pass, o for an array that
            array.h reads, d for double, f for float. The type of a result follows after ">". In
            C++ their names begin with ``gpugrad_``.
    """

    def __init__(
        self,
        name: str,
        head: str = "",
        *,
        shared: bool = False,
        flags: Sequence[str] = (),
        **functions: str,
    ) -> None:
        self._name, self._head, self._shared, self._flags = name, head, shared, flags
        self._functions = functions

    @cached_property
    def loaded(self) -> ctypes.CDLL | None:
        """The library; it may call the pool."""
        if library() is None:
            return None
        source = self._head + (_HOME / f"{self._name}.cpp").read_text()
        loaded = compiler.load(source, what=self._name, shared=self._shared, flags=self._flags)
        for name, types in self._functions.items() if loaded is not None else ():
            arguments, _, result = types.replace(" ", "").partition(">")
            function = getattr(loaded, f"gpugrad_{name}")
            function.argtypes = [_TYPES[letter] for letter in arguments]
            function.restype = _TYPES.get(result)
        return loaded

    def __bool__(self) -> bool:
        if "loaded" not in vars(self) and shapes_suffice():
            want(self)
            return False
        return self.loaded is not None

    def __getattr__(self, name: str) -> Any:
        function = getattr(self.loaded, f"gpugrad_{name}")
        setattr(self, name, function)  # found without this method the next time
        return function


def apart(
    name: str, head: str = "", *, flags: Sequence[str] = (), **functions: str
) -> dict[str, Kernels]:
    """The functions of a file as libraries of their own, so that none waits for the others.

    The file has a function only if its name, in capitals, is defined. The arguments are those of
    `Kernels`.
    """
    return {
        f: Kernels(name, f"{head}#define {f.upper()}\n", shared=False, flags=flags, **{f: types})
        for f, types in functions.items()
    }


@functools.cache
def library() -> ctypes.CDLL | None:
    """The pool, which generated libraries call by the names in pool.h; None without a compiler."""
    pool = compiler.load((_HOME / "pool.cpp").read_text(), what="the pool of threads", shared=True)
    if pool is None:
        return None
    ctypes.c_long.in_dll(pool, "gpugrad_header").value = object.__basicsize__
    if not _reads_arrays(pool):
        return None
    pool.gpugrad_addresses.argtypes = [_POINTER, _POINTER, ctypes.c_long]
    pool.gpugrad_addresses.restype = None
    pool.gpugrad_set_threads.argtypes, pool.gpugrad_set_threads.restype = [ctypes.c_long], None
    pool.gpugrad_threads.argtypes, pool.gpugrad_threads.restype = [], ctypes.c_long
    long: Any = ctypes.c_long
    pool.gpugrad_run.argtypes = [_POINTER, _POINTER, long, long, _POINTER, _POINTER, long]
    pool.gpugrad_run.restype = None
    objects = [ctypes.py_object] * FEW
    pool.gpugrad_run_few.argtypes = [_POINTER, long, long, long, *objects]
    pool.gpugrad_run_few.restype = None
    pool.gpugrad_set_threads(_wanted())
    return pool


def _reads_arrays(pool: ctypes.CDLL) -> bool:
    """Whether NumPy's arrays have the layout of array.h, in this Python."""
    example = np.empty((2, 3, 4))[:, ::2]
    fields = (ctypes.c_longlong * 8)()
    pool.gpugrad_fields.argtypes, pool.gpugrad_fields.restype = [ctypes.py_object, _POINTER], None
    pool.gpugrad_fields(example, fields)
    address = example.__array_interface__["data"][0]
    return list(fields) == [address, 3, *example.shape, *example.strides]


def addresses(arrays: Sequence[Any]) -> Any:
    """Pointers to the elements of arrays, and null for None, as an array of C."""
    pool: Any = library()
    n = len(arrays)
    pointers = (_POINTER * n)()
    objects: list[Any] = [_NOTHING if a is None else a for a in arrays]
    pool.gpugrad_addresses((ctypes.py_object * n)(*objects), pointers, n)
    for k, a in enumerate(arrays):
        if a is None:
            pointers[k] = None
    return pointers


def _wanted() -> int:
    """The number of threads by the settings."""
    try:
        return min(workers(), environment.count("OMP_NUM_THREADS") or workers())
    except ArgumentError as error:  # OpenMP warns and goes on, too
        warnings.warn(str(error), GpugradWarning, stacklevel=2)
        return workers()


def threads() -> int:
    """The number of threads that work on a job; 1 without a compiler."""
    pool = library()
    return 1 if pool is None else pool.gpugrad_threads()


def set_threads(n: int) -> None:
    """Let `n` threads work on the jobs that follow; no result depends on it."""
    pool = library()
    if pool is not None:
        pool.gpugrad_set_threads(n)
