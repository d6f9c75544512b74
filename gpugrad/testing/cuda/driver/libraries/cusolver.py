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


def _register(letter: str, name: str, kinds: str, function: Callable[..., None]) -> None:
    LIBRARY.function(f"cusolverDn{letter}{name}", kinds)(function)


def _register_size(letter: str, name: str, kinds: str) -> None:
    """Register ``name_bufferSize``, whose upper-case P in `kinds` points to the result."""
    at = kinds.index("P")

    def buffer_size(*args: int) -> None:
        write(args[at], "i4", _WORK)

    _register(letter, f"{name}_bufferSize", kinds.lower(), buffer_size)


def _register_cholesky(letter: str, dtype: Any) -> None:
    def replace(name: str, pointer: int, uplo: int, n: int, lda: int, **options: int) -> int:
        a = _matrix(pointer, dtype, n, n, lda)
        result, status = _lapack(name, a)(a, lower=uplo == 0, **options)
        inside = np.tri(n, dtype=bool) if uplo == 0 else np.tri(n, dtype=bool).T
        a[inside] = np.asarray(result)[inside]  # the other triangle stays
        return int(status)

    def factor(pointer: int, uplo: int, n: int, lda: int) -> int:
        return replace("potrf", pointer, uplo, n, lda, clean=0)

    def solve(uplo: int, n: int, columns: int, a: int, lda: int, b: int, ldb: int) -> None:
        right = _matrix(b, dtype, n, columns, ldb)
        matrix = _matrix(a, dtype, n, n, lda)
        right[...] = _lapack("potrs", matrix)(matrix, right, lower=uplo == 0)[0]

    def potrf(*args: int) -> None:
        handle, uplo, n, a, lda, _area, _size, info = args
        _work(handle, "potrf", lambda: write(info, "i4", factor(a, uplo, n, lda)))

    def potri(*args: int) -> None:
        handle, uplo, n, a, lda, _area, _size, info = args
        _work(handle, "potri", lambda: write(info, "i4", replace("potri", a, uplo, n, lda)))

    def potrs(*args: int) -> None:
        handle, uplo, n, columns, a, lda, b, ldb, info = args
        _work(handle, "potrs", lambda: solve(uplo, n, columns, a, lda, b, ldb))
        write(info, "i4", 0)

    def potrf_batched(
        handle: int, uplo: int, n: int, a: int, lda: int, info: int, batch: int
    ) -> None:
        def run() -> None:
            for k, pointer in enumerate(view(a, "u8", (batch,)).tolist()):
                view(info, "i4", (batch,))[k] = factor(pointer, uplo, n, lda)

        _work(handle, "potrfBatched", run)

    def potrs_batched(*args: int) -> None:
        handle, uplo, n, columns, a, lda, b, ldb, info, batch = args

        def run() -> None:
            both = zip(*(view(p, "u8", (batch,)).tolist() for p in (a, b)), strict=True)
            for pa, pb in both:
                solve(uplo, n, columns, pa, lda, pb, ldb)
            write(info, "i4", 0)

        _work(handle, "potrsBatched", run)

    for name, function in (("potrf", potrf), ("potri", potri)):
        _register_size(letter, name, "piipiP")
        _register(letter, name, "piipipip", function)
    _register(letter, "potrs", "piiipipip", potrs)
    _register(letter, "potrfBatched", "piipipi", potrf_batched)
    _register(letter, "potrsBatched", "piiipipipi", potrs_batched)


def _register_lu(letter: str, dtype: Any) -> None:
    def getrf(*args: int) -> None:
        handle, m, n, a, lda, _area, pivots, info = args

        def run() -> None:
            matrix = _matrix(a, dtype, m, n, lda)
            lu, rows, status = _lapack("getrf", matrix)(matrix)
            matrix[...] = lu
            if pivots:
                view(pivots, "i4", (min(m, n),))[:] = rows + 1
            write(info, "i4", status)

        _work(handle, "getrf", run)

    def getrs(*args: int) -> None:
        handle, t, n, columns, a, lda, pivots, b, ldb, info = args

        def run() -> None:
            lu, right = _matrix(a, dtype, n, n, lda), _matrix(b, dtype, n, columns, ldb)
            rows = view(pivots, "i4", (n,)) - 1
            right[...] = _lapack("getrs", lu)(lu, rows, right, trans=t)[0]
            write(info, "i4", 0)

        _work(handle, "getrs", run)

    _register_size(letter, "getrf", "piipiP")
    _register(letter, "getrf", "piipippp", getrf)
    _register(letter, "getrs", "piiipippip", getrs)


def _register_qr(letter: str, dtype: Any) -> None:
    unitary = "ungqr" if dtype.kind == "c" else "orgqr"

    def geqrf(*args: int) -> None:
        handle, m, n, a, lda, tau, _area, _size, info = args

        def run() -> None:
            matrix = _matrix(a, dtype, m, n, lda)
            qr, factors, _, status = _lapack("geqrf", matrix)(matrix)
            matrix[...] = qr
            view(tau, dtype, (min(m, n),))[:] = factors
            write(info, "i4", status)

        _work(handle, "geqrf", run)

    def orgqr(*args: int) -> None:
        handle, m, n, k, a, lda, tau, _area, _size, info = args

        def run() -> None:
            matrix = _matrix(a, dtype, m, n, lda)
            q, _, status = _lapack(unitary, matrix)(matrix, view(tau, dtype, (k,)))
            matrix[...] = q
            write(info, "i4", status)

        _work(handle, unitary, run)

    _register_size(letter, "geqrf", "piipiP")
    _register(letter, "geqrf", "piipippip", geqrf)
    _register_size(letter, unitary, "piiipipP")
    _register(letter, unitary, "piiipippip", orgqr)


def _svd(a: int, dtype: Any, m: int, n: int, lda: int, s: int) -> tuple[Any, Any]:
    """Writes the singular values and returns both matrices of vectors."""
    u, values, vh = scipy.linalg.svd(_matrix(a, dtype, m, n, lda), check_finite=False)
    view(s, dtype.char.lower(), values.shape)[:] = values
    return u, vh


def _register_svd(letter: str, dtype: Any) -> None:
    real = np.dtype(dtype.char.lower())

    def gesvd(*args: int) -> None:
        handle, jobu, jobv, m, n, a, lda, s, u, ldu, v, ldv, _area, _size, _rwork, info = args

        def run() -> None:
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

        _work(handle, "gesvd", run)

    def jacobi(*args: int) -> None:
        vectors, econ, m, n, a, lda, s, u, ldu, v, ldv = args
        left, right = _svd(a, dtype, m, n, lda, s)
        if vectors:
            rows, columns = (min(m, n),) * 2 if econ else (n, m)
            _matrix(u, dtype, m, columns, ldu)[...] = left[:, :columns]
            _matrix(v, dtype, n, rows, ldv)[...] = right[:rows].conj().T

    def gesvdj(*args: int) -> None:
        handle, vectors, econ, m, n, a, lda, s, u, ldu, v, ldv, _area, _size, info, _params = args
        _work(handle, "gesvdj", lambda: jacobi(vectors, econ, m, n, a, lda, s, u, ldu, v, ldv))
        write(info, "i4", 0)

    def gesvdj_batched(*args: int) -> None:
        handle, vectors, m, n, a, lda, s, u, ldu, v, ldv, _area, _size, info, _params, batch = args

        def run() -> None:
            for k in range(batch):
                item, place = dtype.itemsize, k * min(m, n) * real.itemsize
                pa, pu, pv = a + k * lda * n * item, u + k * ldu * m * item, v + k * ldv * n * item
                jacobi(vectors, 0, m, n, pa, lda, s + place, pu, ldu, pv, ldv)
            view(info, "i4", (batch,))[:] = 0

        _work(handle, "gesvdjBatched", run)

    _register_size(letter, "gesvd", "piiP")
    _register(letter, "gesvd", "piiiipippipipipp", gesvd)
    _register_size(letter, "gesvdj", "piiiipippipiPp")
    _register(letter, "gesvdj", "piiiipippipipipp", gesvdj)
    _register_size(letter, "gesvdjBatched", "piiipippipiPpi")
    _register(letter, "gesvdjBatched", "piiipippipipippi", gesvdj_batched)


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


def _register_symmetric(letter: str, dtype: Any) -> None:
    name = "heev" if dtype.kind == "c" else "syev"

    def syevd(*args: int) -> None:
        handle, vectors, uplo, n, a, lda, w, _area, _size, info = args
        _work(handle, f"{name}d", lambda: _eigh(vectors, uplo, n, a, dtype, lda, w))
        write(info, "i4", 0)

    def syevj(*args: int) -> None:
        handle, vectors, uplo, n, a, lda, w, area, size, info, _params = args
        syevd(handle, vectors, uplo, n, a, lda, w, area, size, info)

    def syevj_batched(*args: int) -> None:
        handle, vectors, uplo, n, a, lda, w, _area, _size, info, _params, batch = args
        real = np.dtype(dtype.char.lower()).itemsize

        def run() -> None:
            for k in range(batch):
                at = a + k * lda * n * dtype.itemsize
                _eigh(vectors, uplo, n, at, dtype, lda, w + k * n * real)
            view(info, "i4", (batch,))[:] = 0

        _work(handle, f"{name}jBatched", run)

    _register_size(letter, f"{name}d", "piiipipP")
    _register(letter, f"{name}d", "piiipippip", syevd)
    _register_size(letter, f"{name}j", "piiipipPp")
    _register(letter, f"{name}j", "piiipippipp", syevj)
    _register_size(letter, f"{name}jBatched", "piiipipPpi")
    _register(letter, f"{name}jBatched", "piiipippippi", syevj_batched)


@LIBRARY.function("cusolverDnXsyevd_bufferSize", "ppiiliplipipp")
def xsyevd_buffer_size(*args: int) -> None:
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


@LIBRARY.function("cusolverDnXgeev_bufferSize", "ppiiliplipipliplipp")
def xgeev_buffer_size(*args: int) -> None:
    """No work area is needed; CuPy allocates what this says."""
    for to in args[-2:]:
        write(to, "u8", _WORK)


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


for _letter, _dtype in DTYPES.items():
    for _function in (
        _register_cholesky,
        _register_lu,
        _register_qr,
        _register_svd,
        _register_symmetric,
    ):
        _function(_letter.upper(), _dtype)
