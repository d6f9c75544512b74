"""NumPy's BLAS and LAPACK in a copy of their own, which computes on the thread that calls it.

OpenBLAS has one number of threads for the whole process. Our pool cuts products itself, so each of
its pieces needs a BLAS of one thread; but a limit set for a moment would change the last bits of
other threads' NumPy products, overwrite limits that the user sets, and stay in a forked child. So
the file of NumPy's BLAS is loaded once more, and only the copy has one thread. It is a file in the
cache of compiled kernels, or in memory.
"""

from __future__ import annotations

import contextlib
import ctypes
import functools
import importlib
import os
from collections.abc import Sequence
from typing import Any, NamedTuple

from gpugrad.kernels.cpu.large import kernels


class Names(NamedTuple):
    """How a build of BLAS names its functions.

    Attributes:
        of_c: those for C, such as sgemm.
        of_threads: those that say how it computes on several threads.
        of_fortran: those for Fortran, such as dpotrf.
        long_integers: whether integers have 64 bits.
    """

    of_c: str
    of_threads: str
    of_fortran: str
    long_integers: bool


_BUILDS = (
    Names("scipy_cblas_{}64_", "scipy_openblas_{}64_", "scipy_{}_64_", True),
    Names("scipy_cblas_{}", "scipy_openblas_{}", "scipy_{}_", False),
    Names("cblas_{}64_", "openblas_{}64_", "{}_64_", True),
    Names("cblas_{}", "openblas_{}", "{}_", False),
)


class _Symbol(ctypes.Structure):
    """The answer of `dladdr` about an address."""

    _fields_ = (
        ("file", ctypes.c_char_p),
        ("base", ctypes.c_void_p),
        ("name", ctypes.c_char_p),
        ("address", ctypes.c_void_p),
    )


_PTHREADS = 1  # what get_parallel returns: 0 for no threads, 2 for OpenMP, whose user decides


def _numpys() -> Any:
    """The library that NumPy calls; its symbols are those of its dependencies too."""
    file = importlib.import_module("numpy._core._multiarray_umath").__file__
    return None if file is None else ctypes.CDLL(file)  # None: built into the interpreter


def _copy(file: str) -> Any:
    """A library that is loaded a second time: another file, as the loader knows the first one."""
    mode = os.RTLD_LOCAL | os.RTLD_NOW
    with contextlib.suppress(OSError):  # the cache is read-only, or full
        if (cache := kernels("compiler").cache()) and (kept := cache.copy(file, mode)) is not None:
            return kept
    with open(file, "rb") as original, open(os.memfd_create("gpugrad-blas"), "wb") as copy:
        size, done = os.fstat(original.fileno()).st_size, 0
        while done < size:
            done += os.sendfile(copy.fileno(), original.fileno(), done, size - done)
        return ctypes.CDLL(f"/proc/self/fd/{copy.fileno()}", mode=mode)


@functools.cache
def _loaded() -> tuple[Any, Names] | None:
    """The copy and its names; None if NumPy's BLAS is an unknown one, or cannot be copied."""
    numpys = _numpys()
    with contextlib.suppress(OSError, AttributeError):  # an old kernel has no memfd_create
        for names in _BUILDS:
            needed = [names.of_threads.format(f) for f in ("set_num_threads", "get_parallel")]
            if not all(hasattr(numpys, f) for f in (*needed, names.of_c.format("sgemm"))):
                continue
            symbol = _Symbol()
            ctypes.CDLL(None).dladdr(getattr(numpys, needed[0]), ctypes.byref(symbol))
            copy = _copy(os.fsdecode(symbol.file))
            set_threads, parallel = (getattr(copy, f) for f in needed)
            if parallel() > _PTHREADS:
                return None
            set_threads(1)
            with contextlib.suppress(AttributeError):
                copy.blas_thread_shutdown_()  # those that loading it has started
            return copy, names
    return None


def names() -> Names | None:
    """How NumPy's BLAS names its functions; None if it is an unknown one."""
    loaded = _loaded()
    return loaded and loaded[1]


def addresses(form: str, functions: Sequence[str]) -> list[int | None]:
    """The addresses of functions under a build's names; None for what it lacks."""
    loaded = _loaded()

    def address(name: str) -> int | None:
        function = getattr(loaded and loaded[0], name, None)
        return function and ctypes.cast(function, ctypes.c_void_p).value

    return [address(form.format(name)) for name in functions]
