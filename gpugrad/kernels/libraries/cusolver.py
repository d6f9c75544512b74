"""Cholesky factors, and inverses from them, by cuSOLVER through nvmath-python.

CuPy factors the upper triangle, which takes longer, and has no inverse from a factor (potri);
triangular solves and a product cost three times as much. Here both use the lower triangle.

cuSOLVER's matrices are column-major, ours row-major: the lower triangle of one is the upper
triangle of the other. The input is symmetric, so nothing is copied.
"""

from __future__ import annotations

import functools
from typing import Any

import numpy as np

from gpugrad.core.backend import cupy
from gpugrad.core.forking import import_module, new_lock
from gpugrad.kernels.runtime.launch import gpu_of, pointer

_LOWER = 0  # cublasFillMode_t
_LETTERS = {np.dtype(np.float32): "s", np.dtype(np.float64): "d"}
_lock = new_lock()
"""A handle has one stream at a time, which each call sets."""


@functools.cache
def binding() -> Any:
    """The module ``nvmath.bindings.cusolverDn``, or None where it is not installed."""
    try:
        return import_module("nvmath.bindings.cusolverDn")
    except (ImportError, RuntimeError):
        return None


@functools.cache
def _handle(device: int) -> int | None:
    """CuSOLVER's handle for a device; None if the binding is installed without cuSOLVER."""
    try:
        return int(binding().create())
    except RuntimeError:
        return None


def factor(lib: Any, a: Any) -> Any:
    """The lower triangular Cholesky factor of a symmetric matrix, or NotImplemented.

    If the matrix is not positive definite, a pivot on the diagonal is not positive.

    Args:
        lib: the array library.
        a: array of shape (n, n), which may be overwritten.
    """
    columns = _factor_columns(lib, a)
    return columns if columns is NotImplemented else lib.tril(columns.T)


def inverse(lib: Any, a: Any) -> Any:
    """The inverse of a symmetric positive definite matrix, from its factor.

    Args:
        lib: the array library.
        a: array of shape (n, n), which may be overwritten.

    Returns:
        The inverse, symmetric to the last bit; None if the matrix is not positive definite;
        NotImplemented if cuSOLVER is not installed or not the better choice.
    """
    columns = _factor_columns(lib, a)
    if columns is NotImplemented:
        return columns
    if not (lib.diagonal(columns) > 0).all():
        return None
    _call(lib, "potri", columns)
    return lib.triu(columns) + lib.triu(columns, 1).T


def _factor_columns(lib: Any, a: Any) -> Any:
    """An array with the factor's columns as rows, in and above the diagonal."""
    if a.ndim != 2 or not a.size or len(a) > 2**31 - 1 or a.dtype not in _LETTERS:
        return NotImplemented  # CuPy factors a stack of small matrices at once
    if binding() is None or _handle(gpu_of(a)) is None:
        return NotImplemented
    a = lib.ascontiguousarray(a)
    _call(lib, "potrf", a)
    return a


def _call(lib: Any, name: str, a: Any) -> None:
    """Run a LAPACK routine that overwrites its matrix."""
    run = getattr(binding(), _LETTERS[a.dtype] + name)
    size = getattr(binding(), f"{_LETTERS[a.dtype]}{name}_buffer_size")
    handle, n = _handle(gpu_of(a)), len(a)
    with _lock:
        binding().set_stream(handle, int(cupy().cuda.get_current_stream().ptr))
        length = size(handle, _LOWER, n, pointer(a), n)
        work, info = lib.empty(max(length, 1), dtype=a.dtype), lib.empty(1, dtype=np.int32)
        run(handle, _LOWER, n, pointer(a), n, pointer(work), length, pointer(info))
