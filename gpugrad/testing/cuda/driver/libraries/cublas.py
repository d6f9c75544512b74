"""cuBLAS by NumPy and SciPy, on column-major device memory."""

from __future__ import annotations

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
    read,
    register_handles,
    view,
    work,
    write,
)

LIBRARY = Library("libcublas.so.13", failed=14, missing=15)
register_handles(LIBRARY, "cublas", "_v2")


@LIBRARY.function("cublasGetVersion_v2", "pp")
def get_version(handle: int, to: int) -> None:
    """The version of CUDA 13.0."""
    write(to, "i4", 130000)


def _register_mode(name: str, attribute: str) -> None:
    def set_mode(handle: int, mode: int) -> None:
        setattr(HANDLES[handle], attribute, mode)

    def get_mode(handle: int, to: int) -> None:
        write(to, "i4", getattr(HANDLES[handle], attribute))

    LIBRARY.function(f"cublasSet{name}", "pi")(set_mode)
    LIBRARY.function(f"cublasGet{name}", "pp")(get_mode)


_register_mode("PointerMode_v2", "pointer_mode")  # of numbers and results: 0 host, 1 device
_register_mode("MathMode", "math_mode")  # whether TF32 may be used, on which no result depends


def _number(handle: int, pointer: int, dtype: Any) -> Callable[[], Any]:
    """A function that reads alpha or beta: now from the host, or later from the device."""
    if HANDLES[handle].pointer_mode:
        return lambda: read(pointer, dtype)
    value = read(pointer, dtype)
    return lambda: value


def _work(handle: int, name: str, run: Callable[[], object]) -> None:
    def quiet() -> None:
        with np.errstate(all="ignore"):
            run()

    work(HANDLES[handle].stream, "cublas", name, quiet)


def _transposed(a: Any, operation: int) -> Any:
    """``op(A)`` of matrices in the last two axes."""
    a = np.swapaxes(a, -1, -2) if operation else a
    return a.conj() if operation == 2 else a


def _wide(a: Any) -> Any:
    return a.astype(np.float32) if a.dtype.itemsize == 2 else a


def _update(c: Any, alpha: Any, product: Any, beta: Any) -> None:
    """``C = alpha product + beta C``; C is not read if beta is 0."""
    result = alpha * product
    c[...] = (result + beta * _wide(c) if beta else result).astype(c.dtype)


def _each(batch: int, *pointers: int) -> list[tuple[int, ...]]:
    """For each matrix of a batch, its address in each of these arrays of addresses."""
    return list(zip(*(view(p, "u8", (batch,)).tolist() for p in pointers), strict=True))


def _lapack(name: str, matrix: Any) -> Any:
    return get_lapack_funcs((name,), (matrix,))[0]


# ---- products of matrices


def _matrices(
    pointer: int, dtype: Any, rows: int, columns: int, lead: int, stride: int, batch: int
) -> Any:
    return view(pointer, dtype, (batch, rows, columns), (stride, 1, lead))


def _gemm(
    handle: int,
    name: str,
    operations: tuple[int, int],
    sizes: tuple[int, int, int],
    numbers: tuple[int, int, Any],
    a: tuple[Any, ...],
    b: tuple[Any, ...],
    c: tuple[Any, ...],
    batch: int = 1,
) -> None:
    """Products; a, b and c are pointer, dtype, leading dimension and stride of the batch."""
    (ta, tb), (m, n, k), (alpha_at, beta_at, scale) = operations, sizes, numbers
    alpha, beta = _number(handle, alpha_at, scale), _number(handle, beta_at, scale)

    def load(operand: tuple[Any, ...], rows: int, columns: int) -> Any:
        pointer, dtype, lead, stride = operand
        return _matrices(pointer, dtype, rows, columns, lead, stride, batch)

    def run() -> None:
        x = _transposed(_wide(load(a, *((k, m) if ta else (m, k)))), ta)
        y = _transposed(_wide(load(b, *((n, k) if tb else (k, n)))), tb)
        _update(load(c, m, n), alpha(), np.matmul(x, y), beta())

    _work(handle, name, run)


def _register_gemm(letter: str, dtype: Any) -> None:
    def gemm(*args: int) -> None:
        handle, ta, tb, m, n, k, alpha, a, lda, b, ldb, beta, c, ldc = args
        operands = ((a, dtype, lda, 0), (b, dtype, ldb, 0), (c, dtype, ldc, 0))
        _gemm(handle, "gemm", (ta, tb), (m, n, k), (alpha, beta, dtype), *operands)

    def strided(*args: int) -> None:
        handle, ta, tb, m, n, k, alpha, a, lda, sa, b, ldb, sb, beta, c, ldc, sc, batch = args
        operands = ((a, dtype, lda, sa), (b, dtype, ldb, sb), (c, dtype, ldc, sc))
        numbers = (alpha, beta, dtype)
        _gemm(handle, "gemmStridedBatched", (ta, tb), (m, n, k), numbers, *operands, batch)

    def batched(*args: int) -> None:
        handle, ta, tb, m, n, k, alpha, a, lda, b, ldb, beta, c, ldc, batch = args
        for pa, pb, pc in _each(batch, a, b, c):
            gemm(handle, ta, tb, m, n, k, alpha, pa, lda, pb, ldb, beta, pc, ldc)

    LIBRARY.function(f"cublas{letter}gemm_v2", "piiiiippipippi")(gemm)
    LIBRARY.function(f"cublas{letter}gemmStridedBatched", "piiiiippilpilppili")(strided)
    LIBRARY.function(f"cublas{letter}gemmBatched", "piiiiippipippii")(batched)


def _scale_dtype(compute: int) -> Any:
    """The dtype of alpha and beta for a ``cublasComputeType_t``; complex is the caller's."""
    if compute in (64, 65):
        return np.dtype(np.float16)
    return np.dtype(np.float64 if compute in (70, 71) else np.float32)


def _complex_scale(compute: int, dtype: Any) -> Any:
    scale = _scale_dtype(compute)
    return np.result_type(scale, np.complex64) if dtype.kind == "c" else scale


@LIBRARY.function("cublasGemmEx", "piiiiippiipiippiiii")
def gemm_ex(*args: int) -> None:
    """A product with 16-bit operands or a chosen precision."""
    handle, ta, tb, m, n, k, alpha, a, atype = args[:9]
    lda, b, btype, ldb, beta, c, ctype, ldc, compute, _algorithm = args[9:]
    at, bt, ct = (CUDA_DTYPES[t] for t in (atype, btype, ctype))
    operands = ((a, at, lda, 0), (b, bt, ldb, 0), (c, ct, ldc, 0))
    numbers = (alpha, beta, _complex_scale(compute, ct))
    _gemm(handle, "gemmEx", (ta, tb), (m, n, k), numbers, *operands)


@LIBRARY.function("cublasSgemmEx", "piiiiippiipiippii")
def sgemm_ex(*args: int) -> None:
    """A product that is computed in float32."""
    handle, ta, tb, m, n, k, alpha, a, atype, lda, b, btype, ldb, beta, c, ctype, ldc = args
    gemm_ex(
        handle, ta, tb, m, n, k, alpha, a, atype, lda, b, btype, ldb, beta, c, ctype, ldc, 68, -1
    )


@LIBRARY.function("cublasGemmStridedBatchedEx", "piiiiippiilpiilppiiliii")
def gemm_strided_batched_ex(*args: int) -> None:
    """A batch of products of matrices at equal distances."""
    handle, ta, tb, m, n, k, alpha, a, atype, lda, sa = args[:11]
    b, btype, ldb, sb, beta, c, ctype, ldc, sc, batch, compute, _algorithm = args[11:]
    at, bt, ct = (CUDA_DTYPES[t] for t in (atype, btype, ctype))
    operands = ((a, at, lda, sa), (b, bt, ldb, sb), (c, ct, ldc, sc))
    numbers = (alpha, beta, _complex_scale(compute, ct))
    _gemm(handle, "gemmStridedBatchedEx", (ta, tb), (m, n, k), numbers, *operands, batch)


# ---- vectors


def _vector(pointer: int, dtype: Any, n: int, step: int) -> Any:
    return view(pointer, dtype, (n,), (step,))


def _register_reduction(symbol: str, dtype: Any, result: Any, f: Callable[[Any], Any]) -> None:
    def reduction(handle: int, n: int, x: int, step: int, to: int) -> None:
        _work(handle, symbol, lambda: write(to, result, f(_vector(x, dtype, n, step))))

    LIBRARY.function(symbol, "pipip")(reduction)


def _register_dot(symbol: str, dtype: Any, conjugated: bool) -> None:
    def dot(handle: int, n: int, x: int, dx: int, y: int, dy: int, to: int) -> None:
        product = np.vdot if conjugated else np.dot
        vectors = _vector(x, dtype, n, dx), _vector(y, dtype, n, dy)
        _work(handle, symbol, lambda: write(to, dtype, product(*vectors)))

    LIBRARY.function(symbol, "pipipip")(dot)


def _register_vectors(letter: str, dtype: Any) -> None:
    def axpy(handle: int, n: int, alpha: int, x: int, dx: int, y: int, dy: int) -> None:
        a, u, v = _number(handle, alpha, dtype), _vector(x, dtype, n, dx), _vector(y, dtype, n, dy)
        _work(handle, "axpy", lambda: _update(v, a(), u, dtype.type(1)))

    def scal(handle: int, n: int, alpha: int, x: int, dx: int) -> None:
        a, u = _number(handle, alpha, dtype), _vector(x, dtype, n, dx)
        _work(handle, "scal", lambda: _update(u, a(), u, 0))

    def gemv(*args: int) -> None:
        handle, t, m, n, alpha, a, lda, x, dx, beta, y, dy = args
        numbers = [_number(handle, p, dtype) for p in (alpha, beta)]
        matrix = _transposed(view(a, dtype, (m, n), (1, lda)), t)
        u, v = _vector(x, dtype, matrix.shape[1], dx), _vector(y, dtype, matrix.shape[0], dy)
        _work(handle, "gemv", lambda: _update(v, numbers[0](), matrix @ u, numbers[1]()))

    LIBRARY.function(f"cublas{letter}axpy_v2", "pippipi")(axpy)
    LIBRARY.function(f"cublas{letter}scal_v2", "pippi")(scal)
    LIBRARY.function(f"cublas{letter}gemv_v2", "piiippipippi")(gemv)


def _register_ger(symbol: str, dtype: Any, conjugated: bool) -> None:
    def ger(*args: int) -> None:
        handle, m, n, alpha, x, dx, y, dy, a, lda = args
        number, matrix = _number(handle, alpha, dtype), view(a, dtype, (m, n), (1, lda))
        u, v = _vector(x, dtype, m, dx), _vector(y, dtype, n, dy)

        def run() -> None:
            _update(matrix, number(), np.outer(u, v.conj() if conjugated else v), dtype.type(1))

        _work(handle, symbol, run)

    LIBRARY.function(symbol, "piippipipi")(ger)


# ---- triangular systems, transposes, LU factorizations


def _solve_triangular(
    a: Any, b: Any, alpha: Any, side: int, upper: int, operation: int, unit: int
) -> None:
    """Overwrites b by the solution of ``op(A) X = alpha B``, or of ``X op(A) = alpha B``."""
    options = {"lower": not upper, "unit_diagonal": bool(unit), "check_finite": False}
    if side == 0:
        b[...] = scipy.linalg.solve_triangular(a, alpha * b, trans=operation, **options)
    else:  # X op(A) = B is op(A)^T X^T = B^T
        matrix = a.conj() if operation == 2 else a
        transposed = 1 if operation == 0 else 0
        b[...] = scipy.linalg.solve_triangular(matrix, alpha * b.T, trans=transposed, **options).T


def _register_triangular(letter: str, dtype: Any) -> None:
    def trsm(*args: int) -> None:
        handle, side, uplo, t, diagonal, m, n, alpha, a, lda, b, ldb = args
        number, size = _number(handle, alpha, dtype), n if side else m
        matrix, right = view(a, dtype, (size, size), (1, lda)), view(b, dtype, (m, n), (1, ldb))

        def run() -> None:
            _solve_triangular(matrix, right, number(), side, uplo, t, diagonal)

        _work(handle, "trsm", run)

    def batched(*args: int) -> None:
        handle, side, uplo, t, diagonal, m, n, alpha, a, lda, b, ldb, batch = args
        for pa, pb in _each(batch, a, b):
            trsm(handle, side, uplo, t, diagonal, m, n, alpha, pa, lda, pb, ldb)

    def geam(*args: int) -> None:
        handle, ta, tb, m, n, alpha, a, lda, beta, b, ldb, c, ldc = args
        numbers = [_number(handle, p, dtype) for p in (alpha, beta)]

        def run() -> None:
            total = np.zeros((m, n), dtype)
            for number, p, lead, t in ((numbers[0], a, lda, ta), (numbers[1], b, ldb, tb)):
                if number():
                    shape = (n, m) if t else (m, n)
                    total += number() * _transposed(view(p, dtype, shape, (1, lead)), t)
            view(c, dtype, (m, n), (1, ldc))[...] = total

        _work(handle, "geam", run)

    def dgmm(*args: int) -> None:
        handle, side, m, n, a, lda, x, dx, c, ldc = args
        matrix, result = view(a, dtype, (m, n), (1, lda)), view(c, dtype, (m, n), (1, ldc))
        factors = _vector(x, dtype, n if side else m, dx)
        if side == 0:
            factors = factors[:, None]
        _work(handle, "dgmm", lambda: _update(result, 1, matrix * factors, 0))

    LIBRARY.function(f"cublas{letter}trsm_v2", "piiiiiippipi")(trsm)
    LIBRARY.function(f"cublas{letter}trsmBatched", "piiiiiippipii")(batched)
    LIBRARY.function(f"cublas{letter}geam", "piiiippippipi")(geam)
    LIBRARY.function(f"cublas{letter}dgmm", "piiipipipi")(dgmm)


def _register_lu(letter: str, dtype: Any) -> None:
    def getrf(handle: int, n: int, a: int, lda: int, pivots: int, info: int, batch: int) -> None:
        def run() -> None:
            for k, (pointer,) in enumerate(_each(batch, a)):
                matrix = view(pointer, dtype, (n, n), (1, lda))
                lu, rows, status = _lapack("getrf", matrix)(matrix)
                matrix[...] = lu
                view(pivots, "i4", (batch, n), (n, 1))[k] = rows + 1
                view(info, "i4", (batch,))[k] = status

        _work(handle, "getrfBatched", run)

    def getri(*args: int) -> None:
        handle, n, a, lda, pivots, c, ldc, info, batch = args

        def run() -> None:
            for k, (pa, pc) in enumerate(_each(batch, a, c)):
                lu = view(pa, dtype, (n, n), (1, lda))
                rows = view(pivots, "i4", (batch, n), (n, 1))[k] - 1
                inverse = _lapack("getri", lu)(lu, rows)
                view(pc, dtype, (n, n), (1, ldc))[...] = inverse[0]
                view(info, "i4", (batch,))[k] = inverse[1]

        _work(handle, "getriBatched", run)

    def getrs(*args: int) -> None:
        handle, t, n, columns, a, lda, pivots, b, ldb, info, batch = args

        def run() -> None:
            for k, (pa, pb) in enumerate(_each(batch, a, b)):
                lu = view(pa, dtype, (n, n), (1, lda))
                right = view(pb, dtype, (n, columns), (1, ldb))
                rows = view(pivots, "i4", (batch, n), (n, 1))[k] - 1
                right[...] = _lapack("getrs", lu)(lu, rows, right, trans=t)[0]

        _work(handle, "getrsBatched", run)
        write(info, "i4", 0)  # one number on the host, about the arguments

    LIBRARY.function(f"cublas{letter}getrfBatched", "pipippi")(getrf)
    LIBRARY.function(f"cublas{letter}getriBatched", "pipippipi")(getri)
    LIBRARY.function(f"cublas{letter}getrsBatched", "piiipippipi")(getrs)


for _letter, _dtype in DTYPES.items():
    _big, _real = _letter.upper(), np.dtype(_dtype.char.lower())
    _prefix = {"C": "Sc", "Z": "Dz"}.get(_big, _big)
    for _register in (_register_gemm, _register_vectors, _register_triangular, _register_lu):
        _register(_big, _dtype)
    _register_reduction(f"cublas{_prefix}nrm2_v2", _dtype, _real, np.linalg.norm)
    _register_reduction(
        f"cublas{_prefix}asum_v2", _dtype, _real, lambda x: (abs(x.real) + abs(x.imag)).sum()
    )
    _register_reduction(f"cublasI{_letter}amax_v2", _dtype, "i4", lambda x: np.argmax(abs(x)) + 1)
    _register_reduction(f"cublasI{_letter}amin_v2", _dtype, "i4", lambda x: np.argmin(abs(x)) + 1)
    if _dtype.kind == "c":
        for _kind in "uc":
            _register_dot(f"cublas{_big}dot{_kind}_v2", _dtype, _kind == "c")
            _register_ger(f"cublas{_big}ger{_kind}_v2", _dtype, _kind == "c")
    else:
        _register_dot(f"cublas{_big}dot_v2", _dtype, False)
        _register_ger(f"cublas{_big}ger_v2", _dtype, False)
