"""The addresses of functions in NumPy's BLAS and LAPACK."""

from __future__ import annotations

import ctypes
import functools
import importlib
from collections.abc import Sequence
from typing import Any, NamedTuple


class Names(NamedTuple):
    """How a build of BLAS names its functions.

    Attributes:
        of_c: those for C, such as sgemm.
        of_threads: those that count threads.
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
    Names("cblas_{}_64", "MKL_{}", "{}_64", True),
    Names("cblas_{}", "openblas_{}", "{}_", False),
)


@functools.cache
def _blas() -> Any:
    file = importlib.import_module("numpy._core._multiarray_umath").__file__
    if file is None:  # built into the interpreter
        return None
    return ctypes.CDLL(file)  # whose symbols are those of its dependencies too


def addresses(form: str, functions: Sequence[str]) -> list[int | None]:
    """The addresses of functions under a build's names; None for what it lacks."""

    def address(name: str) -> int | None:
        try:
            return ctypes.cast(getattr(_blas(), name), ctypes.c_void_p).value
        except AttributeError:
            return None

    return [address(form.format(name)) for name in functions]


@functools.cache
def names() -> Names | None:
    """How NumPy's BLAS names its functions; None if it is an unknown one."""
    for build in _BUILDS:
        counts = addresses(build.of_threads, ("get_num_threads", "set_num_threads"))
        if all(addresses(build.of_c, ("sgemm",))) and all(counts):
            return build
    return None
