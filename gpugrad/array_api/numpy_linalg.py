"""Adapters, as in `numpy_adapters`, of numpy.linalg and numpy.fft."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import numpy as np

from gpugrad.array_api.numpy_adapters import public, real_if_all_are
from gpugrad.core import backend
from gpugrad.core.backend import TENSOR
from gpugrad.core.tensor import tensor


def _pinv(a: Any, /, rcond: Any = None, *, rtol: Any = None) -> Any:
    return public().linalg.pinv(a, rtol if rcond is None else rcond)


def _matrix_rank(A: Any, /, tol: Any = None, *, rtol: Any = None) -> Any:
    """``matrix_rank``, also of a vector, and by an absolute tolerance."""
    A = tensor(A)
    if A.ndim < 2:
        return TENSOR.astype(TENSOR.any(A != 0), np.int64)
    if tol is None:
        return public().linalg.matrix_rank(A, rtol)
    above = TENSOR.svdvals(A) > TENSOR.expand_dims(tensor(tol), axis=-1)
    return TENSOR.sum(above, axis=-1)


def _lstsq(a: Any, b: Any, /, rcond: Any = None) -> Any:
    """``lstsq``; NumPy's residuals have one axis, and are empty unless m > n is the rank."""
    a = tensor(a)
    rcond = None if rcond is not None and rcond < 0 else rcond  # the dtype's epsilon
    x, residuals, rank, s = public().linalg.lstsq(a, b, rcond=rcond)
    m, n = a.shape
    is_nested = backend.READINGS[type(a._data)].nesting
    is_known = m > n and (is_nested or rank.item() == n)
    residuals = residuals.reshape(-1) if is_known else residuals.reshape(-1)[:0]
    return x, residuals, TENSOR.astype(rank, np.int32), s


def _svd(a: Any, /, full_matrices: bool = True, compute_uv: bool = True) -> Any:
    if not compute_uv:
        return TENSOR.svdvals(a)
    return public().linalg.svd(a, full_matrices=full_matrices)


_IS_REAL = np.lib.NumpyVersion(np.__version__) < "2.5.0"
"""Whether NumPy's `eig` and `eigvals` are real if all eigenvalues are; later ones are complex."""


def _eig(a: Any, /) -> Any:
    """``eig`` with the dtypes of NumPy's."""
    result = public().linalg.eig(a)
    values = real_if_all_are(result.eigenvalues) if _IS_REAL else result.eigenvalues
    if values.dtype.kind == "c":
        return result
    return result._replace(eigenvalues=values, eigenvectors=result.eigenvectors.real)


def _eigvals(a: Any, /) -> Any:
    values = public().linalg.eigvals(a)
    return real_if_all_are(values) if _IS_REAL else values


def _real_fft(name: str, a: Any, /, n: Any = None, axis: Any = -1, norm: Any = None) -> Any:
    """``irfft`` or ``hfft``; of float16, NumPy's results are float16."""
    norm = "backward" if norm is None else norm
    result = getattr(public().fft, name)(a, n=n, axis=axis, norm=norm)
    return TENSOR.astype(result, a.dtype) if a.dtype == np.float16 else result


LINALG_ADAPTERS: dict[str, Callable[..., Any]] = {
    "fft.hfft": functools.partial(_real_fft, "hfft"),
    "fft.irfft": functools.partial(_real_fft, "irfft"),
    "linalg.eig": _eig,
    "linalg.eigvals": _eigvals,
    "linalg.lstsq": _lstsq,
    "linalg.matrix_rank": _matrix_rank,
    "linalg.pinv": _pinv,
    "linalg.svd": _svd,
}
