"""cuSOLVER by SciPy's LAPACK, on column-major device memory."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from typing import Any

import numpy as np
import scipy.linalg
from scipy.linalg.lapack import get_lapack_funcs

from gpugrad.testing.cuda.driver.libraries import (
    CUDA_DTYPES,
    DTYPES,
    HANDLES,
    Library,
    register_handles,
    view,
    work,
    write,
)

LIBRARY = Library("libcusolver.so.12", failed=7, missing=9)
for _prefix in ("cusolverDn", "cusolverSp"):
    register_handles(LIBRARY, _prefix)

_WORK = 64  # elements of a work area that nothing uses
_params = itertools.count(0x100)


@LIBRARY.function("cusolverGetProperty", "ip")
def get_property(which: int, to: int) -> None:
    """The version of CUDA 13.0: 12.0.0."""
    write(to, "i4", 12 if which == 0 else 0)


def _create_params(to: int) -> None:
    write(to, "u8", next(_params))


for _what in ("Params", "SyevjInfo", "GesvdjInfo"):
    LIBRARY.function(f"cusolverDnCreate{_what}", "p")(_create_params)
    LIBRARY.function(f"cusolverDnDestroy{_what}", "p")(lambda params: None)


def _work(handle: int, name: str, run: Callable[[], object]) -> None:
    def quiet() -> None:
        with np.errstate(all="ignore"):
            run()

    work(HANDLES[handle].stream, "cusolver", name, quiet)


def _lapack(name: str, a: Any) -> Any:
    return get_lapack_funcs((name,), (a,))[0]


def _matrix(pointer: int, dtype: Any, rows: int, columns: int, lead: int) -> Any:
    return view(pointer, dtype, (rows, columns), (1, lead))


def _routine(names: str, kinds: str, size: str = "") -> Callable[[Callable[..., None]], Any]:
    """Decorator that registers a routine for every dtype, as the work of its handle's stream.

    It gets the dtype and the arguments after the handle.

    Args:
        names: its name for real and, if that differs, for complex dtypes.
        kinds: see `Library.function`.
        size: the same for its ``_bufferSize``, whose upper-case P points to the result.
    """

    def register(function: Callable[..., None]) -> Any:
        for letter, dtype in DTYPES.items():
            name = names.split()[-1 if dtype.kind == "c" else 0]

            def call(handle: int, *args: int, name: str = name, dtype: Any = dtype) -> None:
                _work(handle, name, lambda: function(dtype, *args))

            def buffer_size(*args: int) -> None:
                write(args[size.index("P")], "i4", _WORK)

            symbol = f"cusolverDn{letter.upper()}{name}"
            LIBRARY.function(symbol, kinds)(call)
            if size:
                LIBRARY.function(f"{symbol}_bufferSize", size.lower())(buffer_size)
        return function

    return register


# ---- Cholesky


def _cholesky(dtype: Any, name: str, uplo: int, n: int, pointer: int, lda: int, **how: int) -> int:
    a = _matrix(pointer, dtype, n, n, lda)
    result, status = _lapack(name, a)(a, lower=uplo == 0, **how)
    inside = np.tri(n, dtype=bool) if uplo == 0 else np.tri(n, dtype=bool).T
    a[inside] = np.asarray(result)[inside]  # the other triangle stays
    return int(status)


@_routine("potrf", "piipipip", size="piipiP")
def _potrf(dtype: Any, uplo: int, n: int, a: int, lda: int, _w: int, _n: int, info: int) -> None:
    write(info, "i4", _cholesky(dtype, "potrf", uplo, n, a, lda, clean=0))


@_routine("potri", "piipipip", size="piipiP")
def _potri(dtype: Any, uplo: int, n: int, a: int, lda: int, _w: int, _n: int, info: int) -> None:
    write(info, "i4", _cholesky(dtype, "potri", uplo, n, a, lda))


@_routine("potrs", "piiipipip")
def _potrs(dtype: Any, *args: int) -> None:
    uplo, n, columns, a, lda, b, ldb, info = args
    right, matrix = _matrix(b, dtype, n, columns, ldb), _matrix(a, dtype, n, n, lda)
    right[...] = _lapack("potrs", matrix)(matrix, right, lower=uplo == 0)[0]
    write(info, "i4", 0)


@_routine("potrfBatched", "piipipi")
def _potrf_batched(dtype: Any, uplo: int, n: int, a: int, lda: int, info: int, batch: int) -> None:
    for k, pointer in enumerate(view(a, "u8", (batch,)).tolist()):
        view(info, "i4", (batch,))[k] = _cholesky(dtype, "potrf", uplo, n, pointer, lda, clean=0)


@_routine("potrsBatched", "piiipipipi")
def _potrs_batched(dtype: Any, *args: int) -> None:
    uplo, n, columns, a, lda, b, ldb, info, batch = args
    for pa, pb in zip(*(view(p, "u8", (batch,)).tolist() for p in (a, b)), strict=True):
        _potrs(dtype, uplo, n, columns, pa, lda, pb, ldb, info)


# ---- LU and QR factorizations


@_routine("getrf", "piipippp", size="piipiP")
def _getrf(dtype: Any, m: int, n: int, a: int, lda: int, _w: int, pivots: int, info: int) -> None:
    matrix = _matrix(a, dtype, m, n, lda)
    lu, rows, status = _lapack("getrf", matrix)(matrix)
    matrix[...] = lu
    if pivots:
        view(pivots, "i4", (min(m, n),))[:] = rows + 1
    write(info, "i4", status)


@_routine("getrs", "piiipippip")
def _getrs(dtype: Any, *args: int) -> None:
    t, n, columns, a, lda, pivots, b, ldb, info = args
    lu, right = _matrix(a, dtype, n, n, lda), _matrix(b, dtype, n, columns, ldb)
    rows = view(pivots, "i4", (n,)) - 1
    right[...] = _lapack("getrs", lu)(lu, rows, right, trans=t)[0]
    write(info, "i4", 0)


@_routine("geqrf", "piipippip", size="piipiP")
def _geqrf(dtype: Any, *args: int) -> None:
    m, n, a, lda, tau, _area, _size, info = args
    matrix = _matrix(a, dtype, m, n, lda)
    qr, factors, _, status = _lapack("geqrf", matrix)(matrix)
    matrix[...] = qr
    view(tau, dtype, (min(m, n),))[:] = factors
    write(info, "i4", status)


@_routine("orgqr ungqr", "piiipippip", size="piiipipP")
def _orgqr(dtype: Any, *args: int) -> None:
    m, n, k, a, lda, tau, _area, _size, info = args
    matrix = _matrix(a, dtype, m, n, lda)
    name = "ungqr" if dtype.kind == "c" else "orgqr"
    q, _, status = _lapack(name, matrix)(matrix, view(tau, dtype, (k,)))
    matrix[...] = q
    write(info, "i4", status)


# ---- singular values


def _svd(a: int, dtype: Any, m: int, n: int, lda: int, s: int) -> tuple[Any, Any]:
    """Writes the singular values and returns both matrices of vectors."""
    u, values, vh = scipy.linalg.svd(_matrix(a, dtype, m, n, lda), check_finite=False)
    view(s, dtype.char.lower(), values.shape)[:] = values
    return u, vh


@_routine("gesvd", "piiiipippipipipp", size="piiP")
def _gesvd(dtype: Any, *args: int) -> None:
    jobu, jobv, m, n, a, lda, s, u, ldu, v, ldv, _area, _size, _rwork, info = args
    left, right = _svd(a, dtype, m, n, lda, s)
    k, u_job, v_job = min(m, n), chr(jobu & 255), chr(jobv & 255)
    if u_job != "N":
        place = (a, lda) if u_job == "O" else (u, ldu)  # O overwrites the matrix
        columns = m if u_job == "A" else k
        _matrix(place[0], dtype, m, columns, place[1])[...] = left[:, :columns]
    if v_job != "N":
        place = (a, lda) if v_job == "O" else (v, ldv)
        rows = n if v_job == "A" else k
        _matrix(place[0], dtype, rows, n, place[1])[...] = right[:rows]
    write(info, "i4", 0)


@_routine("gesvdj", "piiiipippipipipp", size="piiiipippipiPp")
def _gesvdj(dtype: Any, *args: int) -> None:
    vectors, econ, m, n, a, lda, s, u, ldu, v, ldv, _area, _size, info, _params = args
    left, right = _svd(a, dtype, m, n, lda, s)
    if vectors:
        rows, columns = (min(m, n),) * 2 if econ else (n, m)
        _matrix(u, dtype, m, columns, ldu)[...] = left[:, :columns]
        _matrix(v, dtype, n, rows, ldv)[...] = right[:rows].conj().T
    write(info, "i4", 0)


@_routine("gesvdjBatched", "piiipippipipippi", size="piiipippipiPpi")
def _gesvdj_batched(dtype: Any, *args: int) -> None:
    vectors, m, n, a, lda, s, u, ldu, v, ldv, area, size, info, params, batch = args
    item, real = dtype.itemsize, np.dtype(dtype.char.lower()).itemsize
    for k in range(batch):
        place = a + k * lda * n * item, lda, s + k * min(m, n) * real
        both = u + k * ldu * m * item, ldu, v + k * ldv * n * item, ldv
        _gesvdj(dtype, vectors, 0, m, n, *place, *both, area, size, info + 4 * k, params)


# ---- eigenvalues


def _eigh(vectors: int, uplo: int, n: int, a: int, dtype: Any, lda: int, w: int) -> None:
    """Eigenvalues in ascending order; the vectors replace the matrix."""
    matrix = _matrix(a, dtype, n, n, lda)
    result = scipy.linalg.eigh(
        matrix, lower=uplo == 0, eigvals_only=not vectors, check_finite=False, driver="evd"
    )
    values = result[0] if vectors else result
    view(w, np.dtype(dtype.char.lower()), (n,))[:] = values
    if vectors:
        matrix[...] = result[1]


@_routine("syevj heevj", "piiipippipp", size="piiipipPp")
@_routine("syevd heevd", "piiipippip", size="piiipipP")
def _syevd(dtype: Any, *args: int) -> None:
    vectors, uplo, n, a, lda, w, _area, _size, info, *_params = args
    _eigh(vectors, uplo, n, a, dtype, lda, w)
    write(info, "i4", 0)


@_routine("syevjBatched heevjBatched", "piiipippippi", size="piiipipPpi")
def _syevj_batched(dtype: Any, *args: int) -> None:
    vectors, uplo, n, a, lda, w, _area, _size, info, _params, batch = args
    real = np.dtype(dtype.char.lower()).itemsize
    for k in range(batch):
        at = a + k * lda * n * dtype.itemsize
        _eigh(vectors, uplo, n, at, dtype, lda, w + k * n * real)
    view(info, "i4", (batch,))[:] = 0


@LIBRARY.function("cusolverDnXgeev_bufferSize", "ppiiliplipipliplipp")
@LIBRARY.function("cusolverDnXsyevd_bufferSize", "ppiiliplipipp")
def _buffer_sizes(*args: int) -> None:
    """No work area is needed; CuPy allocates what this says."""
    for to in args[-2:]:
        write(to, "u8", _WORK)


@LIBRARY.function("cusolverDnXsyevd", "ppiiliplipippppp")
def xsyevd(*args: int) -> None:
    """Eigenvalues and vectors of a symmetric or Hermitian matrix."""
    handle, _parameters, vectors, uplo, n, kind, a, lda = args[:8]
    _wkind, w, _compute, _device, _device_size, _host, _host_size, info = args[8:]
    _work(handle, "Xsyevd", lambda: _eigh(vectors, uplo, n, a, CUDA_DTYPES[kind], lda, w))
    write(info, "i4", 0)


@LIBRARY.function("cusolverDnXgeev", "ppiiliplipipliplippppp")
def xgeev(*args: int) -> None:
    """Eigenvalues and right eigenvectors of any square matrix."""
    handle, _parameters, _left, right, n, kind, a, lda, wkind, w, _vlkind = args[:11]
    _vl, _ldvl, vrkind, vr, ldvr, _compute, _device, _device_size, _host, _host_size, info = args[
        11:
    ]

    def run() -> None:
        dtype, to = CUDA_DTYPES[kind], CUDA_DTYPES[wkind]
        values, vectors = scipy.linalg.eig(_matrix(a, dtype, n, n, lda), check_finite=False)
        view(w, to, (n,))[:] = values if to.kind == "c" else values.real
        if right:
            target = _matrix(vr, CUDA_DTYPES[vrkind], n, n, ldvr)
            target[...] = vectors if target.dtype.kind == "c" else _packed(values, vectors)
        write(info, "i4", 0)

    _work(handle, "Xgeev", run)


def _packed(values: Any, vectors: Any) -> Any:
    """LAPACK's real form: a conjugate pair is a column of real and one of imaginary parts."""
    columns, result = range(len(values)), np.array(vectors.real)
    for k in columns:
        if values[k].imag < 0:
            result[:, k] = vectors[:, k - 1].imag
    return result
