"""The density of a Gaussian, with the gradient that trains Gaussian processes.

The gradient by the covariance K is (a a^T - K^-1) / 2 with a = K^-1 (x - mean): C. Rasmussen and
C. Williams, "Gaussian Processes for Machine Learning" (2006), equation 5.9. It costs a Cholesky
factor and an inverse from it, together n^3 multiplications and additions; the general derivative of
the factor (`cholesky`) would cost about three times as much.
"""

import math

import numpy as np

from gpugrad.autodiff.batched import aligned, need_axes
from gpugrad.core.backend import NUMPY
from gpugrad.core.samples import uniform
from gpugrad.errors import ShapeError, SingularMatrixError
from gpugrad.kernels.libraries import cusolver
from gpugrad.ops.linalg.common import as_inexact, need_square, square_op
from gpugrad.registry.record import op


def _positive_definite(rng, *shape):
    x = uniform(rng, *shape, low=-1, high=1)
    return x @ np.swapaxes(x, -1, -2) + 2 * np.eye(shape[-1])


def _symmetric(xp, x):
    return (x + xp.matrix_transpose(x)) / 2


def _not_positive_definite(where=""):
    return SingularMatrixError(
        f"spd_inverse: the matrix is not positive definite{where}. Add a small multiple of the "
        "identity."
    )


def _spd_inverse_samples(rng):
    for shape in ((1, 1), (3, 3), (2, 2, 2), (0, 2, 2), (0, 0)):
        yield [_positive_definite(rng, *shape)], {}


@square_op(
    [lambda xp, g, out: -xp.matmul(xp.matmul(out, _symmetric(xp, g)), out)],
    kinds="f",
    samples=_spd_inverse_samples,
    ref=lambda x: np.linalg.inv((x + np.swapaxes(x, -1, -2)) / 2),
    errors=[([-np.eye(2)], {}, SingularMatrixError, "spd_inverse.*positive definite")],
)
def spd_inverse(xp, x, /):
    """Inverse of symmetric positive definite matrices, for the gradient of `gaussian_log_density`.

    Half the work of `inv`, and symmetric to the last bit. It reads (x + x^T) / 2, so the gradient
    is symmetric.
    """
    need_square("spd_inverse", x)
    x = as_inexact(x)
    if not x.size:
        return x.copy()
    if xp is not NUMPY:
        out = cusolver.inverse(xp.lib, _symmetric(xp, x))
        if out is None:
            raise _not_positive_definite()
        if out is not NotImplemented:
            return out
        factor = xp.cholesky(x)
        eye = xp.lib.broadcast_to(xp.lib.eye(x.shape[-1], dtype=x.dtype), x.shape)
        half = xp.solve_triangular(factor, eye, lower=True)
        return _symmetric(xp, xp.matmul(xp.matrix_transpose(half), half))
    x = _symmetric(xp, x)
    out = np.empty_like(x)
    potrf, potri = xp.linalg.get_lapack_funcs(("potrf", "potri"), (x,))
    for i in np.ndindex(x.shape[:-2]):
        factor, at = potrf(x[i].T, lower=True, overwrite_a=True)
        if at:
            raise _not_positive_definite(f": pivot {at - 1}")
        half, _ = potri(factor, lower=True, overwrite_c=True)
        half = np.tril(half)
        out[i] = half + np.tril(half, -1).T
    return out


def _weights(xp, residual, cov):
    """K^-1 times the residual."""
    factor, columns = xp.cholesky(cov), xp.expand_dims(residual, axis=-1)
    columns = xp.solve_triangular(factor, columns, lower=True)
    columns = xp.solve_triangular(factor, columns, lower=True, adjoint=True)
    return xp.squeeze(columns, axis=-1)


def _residual_vjp(xp, g, residual, cov):
    g = -xp.expand_dims(g, axis=-1) * _weights(xp, residual, cov)
    return xp.sum_to(g, residual.shape)


def _covariance_vjp(xp, g, residual, cov):
    inverse = xp.spd_inverse(cov)
    a = xp.matvec(inverse, residual)
    slope = xp.expand_dims(a, axis=-1) * xp.expand_dims(a, axis=-2) - inverse
    return xp.sum_to(xp.reshape(g, (*g.shape, 1, 1)) * slope / 2, cov.shape)


def _density_batch(xp, batched, residual, cov):
    """Residuals are columns for a moment, so that both stacks get the same number of axes."""
    need_axes("gaussian_log_density", batched, (residual, cov), (1, 2))
    columns, cov = aligned(xp, batched, (xp.expand_dims(residual, axis=-1), cov))
    return xp.gaussian_log_density(xp.squeeze(columns, -1), cov)


def _density_ref(residual, cov):
    from scipy.stats import multivariate_normal

    cov = (cov + np.swapaxes(cov, -1, -2)) / 2
    n = cov.shape[-1]
    stack = np.broadcast_shapes(residual.shape[:-1], cov.shape[:-2])
    residual = np.broadcast_to(residual, (*stack, n))
    cov, out = np.broadcast_to(cov, (*stack, n, n)), np.zeros(stack)
    for i in np.ndindex(stack) if n else ():
        out[i] = multivariate_normal.logpdf(residual[i], np.zeros(n), cov[i])
    return out


_SHAPES = (
    ((3,), (3, 3)),
    ((1,), (1, 1)),
    ((2, 3), (3, 3)),
    ((3,), (2, 3, 3)),
    ((2, 1, 2), (3, 2, 2)),
    ((0, 2), (2, 2)),
    ((0,), (0, 0)),
)


def _density_samples(rng):
    for vector, matrix in _SHAPES:
        yield [uniform(rng, *vector), _positive_definite(rng, *matrix)], {}


@op(
    vjp=[_residual_vjp, _covariance_vjp],
    samples=_density_samples,
    ref=_density_ref,
    batch=_density_batch,
    errors=[
        ([np.ones(2), np.ones((2, 3))], {}, ShapeError, r"gaussian_log_density.*\(2, 3\)"),
        ([np.ones(3), np.eye(2)], {}, ShapeError, r"gaussian_log_density.*\(3,\).*\(2, 2\)"),
        ([np.ones(2), -np.eye(2)], {}, SingularMatrixError, "positive definite"),
    ],
)
def gaussian_log_density(xp, residual, cov, /):
    """The density where the mean is 0; `gaussian_log_likelihood` calls it with a residual."""
    need_square("gaussian_log_density", cov)
    n = cov.shape[-1]
    if not residual.ndim or residual.shape[-1] != n:
        raise ShapeError(
            f"gaussian_log_density: residual {residual.shape} and cov {cov.shape} are not "
            "(..., n) and (..., n, n)."
        )
    factor = xp.cholesky(cov)
    scaled = xp.solve_triangular(factor, as_inexact(residual)[..., None], lower=True)
    roots = xp.lib.log(xp.lib.diagonal(factor, 0, -2, -1)).sum(-1)
    return -(scaled * scaled).sum((-2, -1)) / 2 - roots - n / 2 * math.log(2 * math.pi)


def _likelihood_samples(rng):
    for vector, matrix in _SHAPES:
        x, mean = uniform(rng, *vector), uniform(rng, *vector[-1:])
        yield [x, mean, _positive_definite(rng, *matrix)], {}


@op(
    samples=_likelihood_samples,
    ref=lambda x, mean, cov: _density_ref(np.subtract(x, mean), cov),
    errors=[
        ([np.ones(2), np.ones(2), np.eye(3)], {}, ShapeError, r"\(2,\).*\(3, 3\)"),
        ([np.ones(2), np.ones(3), np.eye(2)], {}, ShapeError, r"\(2,\).*\(3,\)"),
        ([np.ones(2), 0.0, np.zeros((2, 2))], {}, SingularMatrixError, "positive definite"),
    ],
)
def gaussian_log_likelihood(xp, x, mean, cov, /):
    """Logarithm of the density of Gaussians, which Gaussian processes maximise.

    -((x - mean)^T cov^-1 (x - mean) + log det cov + n log(2 pi)) / 2. The gradient by the
    covariance costs one Cholesky factor and one inverse from it.

    Args:
        x: observations: array of shape (..., n).
        mean: array that broadcasts to the shape of `x`.
        cov: covariances: array of shape (..., n, n); (cov + cov^T) / 2 is read.

    Returns:
        Tensor of the stack's shape.

    >>> x, mean = gg.constant([0.0, 2.0]), gg.zeros(2)
    >>> print(gg.gaussian_log_likelihood(x, mean, [[1.0, 0.0], [0.0, 4.0]]))
    -3.0310242
    >>> print(gg.grad(gg.gaussian_log_likelihood, 2)(x, mean, gg.constant([[1.0, 0], [0, 4.0]])))
    [[-0.5  0. ]
     [ 0.   0. ]]
    """
    return xp.gaussian_log_density(xp.subtract(x, mean), cov)
