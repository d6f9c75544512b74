"""A stand-in for ``nvmath.bindings.cusolverDn``, which calls the driver's cuSOLVER.

It needs a work area of the size that it reports, and refuses to be captured, as CuPy's cuSOLVER
does. Names and signatures are those of nvmath-python 1.0.
"""

import sys

import numpy as np

from gpugrad.testing.cuda.driver.libraries import HANDLES, cusolver

calls: list[tuple[str, int, int]] = []
"""Routine, triangle and stream of each call, for tests to inspect."""


def _call(name: str, *args: int) -> None:
    cusolver.LIBRARY.functions[f"cusolverDn{name}"][1](*args)


def _number(name: str, kind: str, *args: int) -> int:
    """The number that a function writes to the address after its other arguments."""
    to = np.zeros((), kind)
    _call(name, *args, to.ctypes.data)
    return int(to)


def _run(
    name: str, handle: int, uplo: int, n: int, a: int, lda: int, work: int, size: int, info: int
) -> None:
    stream = HANDLES[handle].stream
    if sys.modules["cupy"].cuda.runtime.streamIsCapturing(stream):
        raise RuntimeError("the fake cuSOLVER cannot be captured")
    assert work
    assert size >= dpotrf_buffer_size(handle, uplo, n, a, lda)
    calls.append((name, uplo, stream))
    _call(name[0].upper() + name[1:], handle, uplo, n, a, lda, work, size, info)


def create() -> int:
    return _number("Create", "u8")


def set_stream(handle: int, stream_id: int) -> None:
    _call("SetStream", handle, stream_id)


def dpotrf_buffer_size(handle: int, uplo: int, n: int, a: int, lda: int) -> int:
    assert lda >= n
    return _number("Dpotrf_bufferSize", "i4", handle, uplo, n, a, lda)


spotrf_buffer_size = dpotri_buffer_size = spotri_buffer_size = dpotrf_buffer_size


def dpotrf(
    handle: int, uplo: int, n: int, a: int, lda: int, workspace: int, lwork: int, dev_info: int
) -> None:
    _run("dpotrf", handle, uplo, n, a, lda, workspace, lwork, dev_info)


def spotrf(
    handle: int, uplo: int, n: int, a: int, lda: int, workspace: int, lwork: int, dev_info: int
) -> None:
    _run("spotrf", handle, uplo, n, a, lda, workspace, lwork, dev_info)


def dpotri(
    handle: int, uplo: int, n: int, a: int, lda: int, work: int, lwork: int, dev_info: int
) -> None:
    _run("dpotri", handle, uplo, n, a, lda, work, lwork, dev_info)


def spotri(
    handle: int, uplo: int, n: int, a: int, lda: int, work: int, lwork: int, dev_info: int
) -> None:
    _run("spotri", handle, uplo, n, a, lda, work, lwork, dev_info)


def install() -> None:
    """Make ``import nvmath.bindings.cusolverDn`` import this module; call after cublaslt's."""
    sys.modules["nvmath.bindings.cusolverDn"] = sys.modules[__name__]
