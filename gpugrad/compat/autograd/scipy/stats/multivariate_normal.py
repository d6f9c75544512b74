"""The multivariate normal distribution of ``scipy.stats``."""

from typing import Any

import numpy as np

import gpugrad as gg
from gpugrad.compat.autograd.scipy.stats.common import LOG_2PI, distribution, tensors


def _logpdf(x: Any, mean: Any = None, cov: Any = 1.0, allow_singular: bool = False) -> Any:
    if allow_singular:
        return _singular(x, 0.0 if mean is None else mean, cov)
    x, mean, cov = tensors(x, 0.0 if mean is None else mean, cov)
    if cov.ndim == 0:
        cov = cov * np.eye(x.shape[-1] if x.ndim else 1)
    z = x - mean
    z = gg.reshape(z, (1,)) if z.ndim == 0 else z
    solved = gg.linalg.solve(cov, gg.matrix_transpose(z) if z.ndim > 1 else z[:, None])
    solved = gg.matrix_transpose(solved) if z.ndim > 1 else solved[:, 0]
    log_det = gg.linalg.slogdet(cov)[1]
    return -0.5 * (cov.shape[-1] * LOG_2PI + log_det + gg.sum(z * solved, axis=-1))


def _singular(x: Any, mean: Any, cov: Any) -> Any:
    """The logarithm of the density on the subspace where it is not 0, for a constant `cov`."""
    if isinstance(cov, gg.Tensor):
        raise NotImplementedError(
            "The multivariate normal pdf is not differentiable w.r.t. a singular covariance matrix"
        )
    values = np.linalg.eigvalsh(cov)
    values = values[values > 1e6 * np.finfo(float).eps * np.abs(values).max()]  # as SciPy has it
    x, mean, inverse = tensors(x, mean, np.linalg.pinv(cov, hermitian=True))
    z = x - mean
    constant = len(values) * LOG_2PI + float(np.log(values).sum())
    return -0.5 * (constant + gg.sum(z * (z @ inverse), axis=-1))


def _entropy(mean: Any = None, cov: Any = 1.0) -> Any:
    (cov,) = tensors(cov)
    return 0.5 * gg.linalg.slogdet(2 * np.pi * np.e * cov)[1]


distribution(globals(), "multivariate_normal", logpdf=_logpdf, entropy=_entropy)
