"""Products of float32 and float64 matrices by a copy of NumPy's BLAS, cut over the pool."""

from __future__ import annotations

import ctypes
import functools
import math
from typing import Any

import numpy as np

from gpugrad.core.for_shapes import shapes_suffice
from gpugrad.kernels.cpu import blas
from gpugrad.kernels.cpu.large import WIDE, errors_raise, kernels

LEAST = 1 << 18
"""Multiply-adds from which a product is cut; OpenBLAS computes smaller ones on one thread, too."""
LEAST_SIZES = 1 << 22
"""Product of the sizes of two matrices from which it is worth asking `product`: 45 x 45."""
_LEAST_OF_VECTOR = 1 << 13
"""The same for a matrix and a vector."""

_NAMES = ("sgemm", "dgemm", "sgemv", "dgemv")


@functools.cache
def library() -> Any:
    """The functions of products.cpp and blas.h, with NumPy's BLAS; None if there is none."""
    # `import gpugrad` loads this module, but not the compiler's
    in_c = kernels("pool").Kernels(
        "products", shared=True, flags=("-O2",), set_blas="p l", product="ooo l > l"
    )
    functions = _blas_functions() if in_c.loaded else []
    if not functions:
        return None
    *addresses, longs = functions
    in_c.set_blas((ctypes.c_void_p * 4)(*addresses), longs)
    return in_c


def _blas_functions() -> list[Any]:
    """Addresses of gemm and gemv, and whether integers are long."""
    names = blas.names()
    if names is None:
        return []
    products = blas.addresses(names.of_c, _NAMES)
    return [*products, names.long_integers] if all(products) else []


def product(x1: Any, x2: Any, out: Any = None) -> Any:
    """``x1 @ x2``, in `out` if given; NotImplemented for what NumPy does as well.

    Args:
        x1, x2: arrays of any dtypes and shapes.
        out: C-contiguous, of the result's shape and dtype.
    """
    wide = WIDE.get(x1.dtype)
    if wide is None or x2.dtype != x1.dtype or not x1.ndim or not x2.ndim:
        return NotImplemented
    if x1.ndim == 1 or x2.ndim == 1:
        return _of_vector(x1, x2) if out is None else NotImplemented
    *stack, m, k = x1.shape
    columns = x2.shape[-1]
    if x2.shape[-2] != k:
        return NotImplemented  # the formula raises the error
    if x2.ndim > 2 and list(x2.shape[:-2]) != stack:
        try:
            stack = list(np.broadcast_shapes(stack, x2.shape[:-2]))
        except ValueError:
            return NotImplemented
    least = _LEAST_OF_VECTOR if m == 1 or columns == 1 else LEAST
    if math.prod(stack) * m * k * columns < least:
        return NotImplemented
    if shapes_suffice() and out is None:
        return np.zeros((*stack, m, columns), x1.dtype)
    products = library()
    if products is None or errors_raise():
        return NotImplemented
    result = np.empty((*stack, m, columns), x1.dtype) if out is None else out
    done = products.product(x1, x2, result, wide)
    if done < 0:  # BLAS cannot read one of them
        copies = np.ascontiguousarray(x1), np.ascontiguousarray(x2)
        done = products.product(*copies, result, wide)
    return result if done > 0 else NotImplemented


def _of_vector(x1: Any, x2: Any) -> Any:
    """The product with a vector, as a matrix of one row or column."""
    if x1.ndim == x2.ndim:
        return NotImplemented
    result = product(x1[None] if x1.ndim == 1 else x1, x2[:, None] if x2.ndim == 1 else x2)
    if result is NotImplemented:
        return result
    return result[..., 0, :] if x1.ndim == 1 else result[..., 0]


def matmul_for(x1: Any, x2: Any) -> Any:
    """The function ``(x1, x2, out)`` that multiplies large arrays of these shapes and dtypes.

    None if the pool does not help.
    """
    if x1.dtype not in WIDE or x2.dtype != x1.dtype or min(len(x1.shape), len(x2.shape)) < 2:
        return None
    stack = np.broadcast_shapes(x1.shape[:-2], x2.shape[:-2])
    work = math.prod(stack) * math.prod(x1.shape[-2:]) * x2.shape[-1]
    return _matmul if work >= LEAST and library() is not None else None


def _matmul(x1: Any, x2: Any, out: Any = None) -> Any:
    result = product(x1, x2, out)
    return np.matmul(x1, x2, out) if result is NotImplemented else result
