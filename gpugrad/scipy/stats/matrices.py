"""Covariance matrices and Gaussian kernels for `gpugrad.scipy.stats`."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
from scipy.linalg import LinAlgError

from gpugrad.core.backend import TENSOR as xp
from gpugrad.errors import SingularMatrixError
from gpugrad.numpy.creation import asarray
from gpugrad.scipy.stats.common import double
from gpugrad.special import multigammaln


def _cholesky(a: Any, lower: bool = False, **options: Any) -> Any:
    """`scipy.linalg.cholesky`."""
    try:
        factor = xp.cholesky(asarray(a))
    except SingularMatrixError as error:
        raise LinAlgError(str(error)) from None
    return factor if lower else xp.matrix_transpose(factor)


def _cho_factor(a: Any, lower: bool = False, **options: Any) -> Any:
    return _cholesky(a, lower), lower


def _cho_solve(factor: Any, b: Any, **options: Any) -> Any:
    c, lower = factor
    first = c if lower else xp.matrix_transpose(c)
    y = xp.solve(first, b)
    return xp.solve(xp.matrix_transpose(first), y)


LINALG = {"cho_factor": _cho_factor, "cho_solve": _cho_solve, "cholesky": _cholesky}


def covariance_class(scipys: Any) -> Any:
    """`_PSD` by Cholesky's factor, whose gradient is exact where eigenvalues are equal.

    A singular matrix has none: SciPy's class takes its eigenvalues, and raises under a tape.
    """

    class Covariance(scipys):  # type: ignore[misc]
        def __init__(self, M: Any, *args: Any, allow_singular: bool = True, **options: Any) -> None:
            M = asarray(M, dtype=float)
            try:
                factor = xp.cholesky(M)
            except SingularMatrixError:
                super().__init__(M, *args, allow_singular=allow_singular, **options)
                return
            n = M.shape[-1]
            self._M, self.rank, self._pinv = M, n, None
            self.U = xp.matrix_transpose(xp.inv(factor))
            self.log_pdet = 2 * xp.sum(xp.log(xp.diagonal(factor)))
            self.V, self.eps = asarray(np.zeros((n, 0))), 1.0

    return Covariance


def inverse_wishart(self: Any, x: Any, dim: int, df: Any, log_det_scale: Any, C: Any) -> Any:
    """The log density at matrices (dim, dim, n), of the lower Cholesky factor C of the scale."""
    x = xp.permute_dims(asarray(x), (2, 0, 1))
    factor = xp.cholesky(x)
    log_det = 2 * xp.sum(xp.log(xp.diagonal(factor, axis1=-2, axis2=-1)), axis=-1)
    ratio = xp.solve(factor, xp.broadcast_to(C, x.shape))
    constant = 0.5 * df * (log_det_scale - dim * math.log(2)) - multigammaln(double(0.5 * df), dim)
    return constant - 0.5 * ((df + dim + 1) * log_det + xp.sum(ratio * ratio, axis=(-2, -1)))


def _energies(points: Any, xi: Any, factor: Any) -> tuple[Any, Any]:
    """Half of the squared distances in the metric of a covariance, and the kernel's log norm."""
    white = [
        xp.matrix_transpose(xp.solve(factor, xp.matrix_transpose(asarray(p)))) for p in (xi, points)
    ]
    gaps = white[0][:, None] - white[1][None]
    norm = 0.5 * math.log(2 * math.pi) * white[0].shape[-1]
    return 0.5 * xp.sum(gaps * gaps, axis=-1), norm + xp.sum(xp.log(xp.diagonal(factor)))


def _estimate(points: Any, values: Any, xi: Any, factor: Any, dtype: Any = None) -> Any:
    energies, norm = _energies(points, xi, factor)
    return xp.matmul(xp.exp(-energies - norm), values)


def _log_estimate(points: Any, values: Any, xi: Any, factor: Any, dtype: Any = None) -> Any:
    energies, norm = _energies(points, xi, factor)
    log_values = xp.log(xp.matrix_transpose(values))
    return xp.logsumexp(log_values - energies, axis=-1, keepdims=True) - norm


class _ForAll:
    """A function in place of SciPy's table of one for each dtype."""

    def __init__(self, function: Callable[..., Any]) -> None:
        self.function = function

    def __getitem__(self, spec: str) -> Callable[..., Any]:
        return self.function


KERNELS = {
    "gaussian_kernel_estimate": _ForAll(_estimate),
    "gaussian_kernel_estimate_log": _ForAll(_log_estimate),
}
