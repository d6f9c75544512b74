"""A stand-in for ``nvmath.bindings.cusolverDn`` that runs LAPACK on column-major device memory.

Like cuSOLVER it reads and writes only one triangle, needs a work area of the size that it reports,
and writes the index of the first non-positive pivot to the device. It refuses to be captured, as
CuPy's cuSOLVER does. Names and signatures are those of nvmath-python 1.0.
"""

from __future__ import annotations

import sys
from typing import Any

import numpy as np
import scipy.linalg

from fakes.cublaslt import _read
from fakes.streams import enqueue, is_capturing

WORK = 64

calls: list[tuple[str, int, int]] = []
"""Routine, triangle and stream of each call, for tests to inspect."""

_stream = [0]


def create() -> int:
    return 0x7000


def set_stream(handle: int, stream_id: int) -> None:
    assert handle == 0x7000
    _stream[0] = stream_id


def dpotrf_buffer_size(handle: int, uplo: int, n: int, a: int, lda: int) -> int:
    assert lda >= n
    return WORK


spotrf_buffer_size = dpotri_buffer_size = spotri_buffer_size = dpotrf_buffer_size


def _run(
    name: str, dtype: Any, uplo: int, n: int, a: int, lda: int, work: int, lwork: int, info: int
) -> None:
    if is_capturing(_stream[0]):
        raise RuntimeError("the fake cuSOLVER cannot be captured")
    assert work
    assert lwork >= WORK
    calls.append((name, uplo, _stream[0]))

    def launch() -> None:
        matrix = _read(a, dtype, (n, n), (1, lda))
        routine = scipy.linalg.get_lapack_funcs(name[1:], (matrix,))
        result, status = routine(np.array(matrix, order="F"), lower=uplo == 0)
        inside = np.tri(n, dtype=bool) if uplo == 0 else np.tri(n, dtype=bool).T
        matrix[inside] = np.asarray(result)[inside]
        _read(info, np.int32)[...] = status

    enqueue(_stream[0], name, launch)


def dpotrf(
    handle: int, uplo: int, n: int, a: int, lda: int, workspace: int, lwork: int, dev_info: int
) -> None:
    _run("dpotrf", np.float64, uplo, n, a, lda, workspace, lwork, dev_info)


def spotrf(
    handle: int, uplo: int, n: int, a: int, lda: int, workspace: int, lwork: int, dev_info: int
) -> None:
    _run("spotrf", np.float32, uplo, n, a, lda, workspace, lwork, dev_info)


def dpotri(
    handle: int, uplo: int, n: int, a: int, lda: int, work: int, lwork: int, dev_info: int
) -> None:
    _run("dpotri", np.float64, uplo, n, a, lda, work, lwork, dev_info)


def spotri(
    handle: int, uplo: int, n: int, a: int, lda: int, work: int, lwork: int, dev_info: int
) -> None:
    _run("spotri", np.float32, uplo, n, a, lda, work, lwork, dev_info)


def install() -> None:
    """Make ``import nvmath.bindings.cusolverDn`` import this module; call after cublaslt's."""
    sys.modules["nvmath.bindings.cusolverDn"] = sys.modules[__name__]
