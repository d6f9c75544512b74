"""Entries of outer products at the pattern of a sparse matrix, in C."""

from __future__ import annotations

from typing import Any

import numpy as np

from gpugrad.kernels.cpu.copies import row_major
from gpugrad.kernels.cpu.large import LARGE, WIDE, errors_raise
from gpugrad.kernels.cpu.pool import Kernels

_IN_C = Kernels(
    "sparse",
    flags=("-fassociative-math", "-fno-signed-zeros", "-fno-trapping-math"),
    sampled="ll ppppp ll",
)
_INTEGERS = {np.dtype(np.int32): 0, np.dtype(np.int64): 1}


def sampled(x: Any, y: Any, indices: Any, indptr: Any) -> Any:
    """`gpugrad.ops.scipy.sparse.products.csr_sampled` of a pattern that was checked."""
    fits = x.dtype == y.dtype and x.dtype in WIDE and indices.dtype in _INTEGERS
    k = x.size // max(1, x.shape[0])
    large = indices.size * k >= LARGE
    if not fits or indptr.dtype != indices.dtype or not large or errors_raise() or not _IN_C:
        return NotImplemented
    x, y, indices, indptr = map(row_major, (x, y, indices, indptr))
    out = np.empty(indices.size, x.dtype)
    how = WIDE[x.dtype], _INTEGERS[indices.dtype]
    _IN_C.sampled(*how, x, y, indices, indptr, out, x.shape[0], k)
    return out
