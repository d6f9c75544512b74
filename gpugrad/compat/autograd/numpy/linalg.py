"""The names of ``numpy.linalg``, for boxes too."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy.linalg as _plain

import gpugrad as gg
import gpugrad.numpy as _gnp
from gpugrad.compat.autograd.numpy.wrapping import fill, wrapped, wrapped_names


def _hermitian(a: Any, UPLO: str) -> Any:
    """The matrix that NumPy reads from one triangle of `a`: the other one has no gradient."""
    lower = UPLO.upper() == "L"
    one = gg.tril(a, k=-1) if lower else gg.triu(a, k=1)
    diagonal = gg.tril(gg.triu(a))
    return one + gg.matrix_transpose(gg.conj(one)) + diagonal


def _eigh(a: Any, UPLO: str = "L") -> Any:
    return _gnp.linalg.eigh(_hermitian(a, UPLO), UPLO)


def _eigvalsh(a: Any, UPLO: str = "L") -> Any:
    return _gnp.linalg.eigvalsh(_hermitian(a, UPLO), UPLO)


eigh = wrapped("eigh", _plain.eigh, lambda: _eigh)
eigvalsh = wrapped("eigvalsh", _plain.eigvalsh, lambda: _eigvalsh)
_look_up, _names = wrapped_names(__name__, _plain, _gnp.linalg)
fill(__name__, _look_up, _names())

if TYPE_CHECKING:

    def __getattr__(name: str) -> Any: ...
