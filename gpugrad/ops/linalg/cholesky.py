"""Cholesky factors of matrices and stacks of them.

Formulas: I. Murray, arXiv:1602.07527. For complex matrices the transpose becomes the conjugate
transpose.
"""

import math

import numpy as np

from gpugrad.core.backend import NUMPY
from gpugrad.core.samples import uniform
from gpugrad.errors import ShapeError, SingularMatrixError
from gpugrad.kernels.cpu import lapack
from gpugrad.kernels.cpu.large import steps_unless
from gpugrad.kernels.libraries import cusolver
from gpugrad.ops.linalg.common import (
    NOT_SQUARE,
    SQUARE,
    STACKS,
    as_inexact,
    matrices,
    need_square,
    singular,
)
from gpugrad.ops.math.products import adjoint
from gpugrad.registry.record import op


def _cholesky_vjp(xp, g, out, upper):
    if upper:
        g, out = adjoint(xp, g), adjoint(xp, out)
    return xp.cholesky_grad(g, out)


def _cholesky_grad_ref(g, out):
    p = np.tril(out.swapaxes(-1, -2).conj() @ g)
    p = p - np.eye(p.shape[-1]) * p / 2
    inverse = np.linalg.inv(np.tril(out))
    return _hermitian(inverse.swapaxes(-1, -2).conj() @ p @ inverse)


def _cholesky_grad_samples(rng):
    for make in matrices(*SQUARE):
        (x,), _ = make(rng)
        yield [uniform(rng, *x.shape), np.tril(x)], {}


@op(
    cpu=lapack.cholesky_grad,
    large=lapack.LEAST_SIZE,
    opens=steps_unless(lambda g, _: math.prod(g.shape) >= lapack.LEAST_SIZE),
    kinds="fc",
    ref=_cholesky_grad_ref,
    samples=_cholesky_grad_samples,
    errors=[
        ([np.eye(2), np.zeros((2, 2))], {}, SingularMatrixError, "triangular.*singular"),
        ([np.ones((2, 2)), np.ones((2, 3))], {}, ShapeError, r"cholesky_grad.*\(2, 3\)"),
    ],
)
def cholesky_grad(xp, g, out, /):
    """The gradient of `cholesky` by its input."""
    need_square("cholesky_grad", out)
    p = xp.matmul(adjoint(xp, out), g)
    p = (xp.tril(p) + xp.tril(p, k=-1)) / 2  # lower triangle, half of the diagonal
    s = xp.solve_triangular(out, p, lower=True, adjoint=True)
    s = xp.solve_triangular(out, adjoint(xp, s), lower=True, adjoint=True)
    return (s + adjoint(xp, s)) / 2


def _hermitian(x):
    return (x + x.swapaxes(-1, -2).conj()) / 2


def _cholesky_ref(x, upper=False):
    factor = np.linalg.cholesky(_hermitian(x))
    return factor.swapaxes(-1, -2).conj() if upper else factor


def _cholesky_samples(rng):
    for k, make in enumerate(matrices(*SQUARE, shift=4.0)):
        (x,), _ = make(rng)
        yield [_hermitian(x)], {"upper": k % 2 == 1}


@op(
    [_cholesky_vjp],
    cpu=lapack.cholesky,
    large=lapack.LEAST_SIZE,
    ref=_cholesky_ref,
    samples=_cholesky_samples,
    errors=[
        NOT_SQUARE,
        ([np.ones((2, 2)) - np.eye(2)], {}, SingularMatrixError, "cholesky.*positive definite"),
    ],
    **STACKS,
)
def cholesky(xp, x, /, *, upper=False):
    """Triangular factor L of positive definite matrices: L times its conjugate transpose.

    The matrix read is (x + x^H) / 2, so the gradient is symmetric, as in JAX and TensorFlow.

    Args:
        x: array of shape (..., n, n), symmetric (Hermitian) and positive definite.
        upper: whether to return the conjugate transpose of L.

    Returns:
        Tensor of the shape of `x`, 0 above (with `upper`, below) the diagonal.

    >>> print(gg.cholesky([[4.0, 2.0], [2.0, 2.0]]))
    [[2. 0.]
     [1. 1.]]
    """
    need_square("cholesky", x)
    x = as_inexact(x)
    x = (x + adjoint(xp, x)) / 2
    out = NotImplemented if xp is NUMPY else cusolver.factor(xp.lib, x)
    if out is NotImplemented:
        out = xp.lib.linalg.cholesky(x)
    # cuSOLVER does not raise, but leaves a pivot that is not positive on the diagonal
    if xp is not NUMPY and not (xp.diagonal(out, 0, -2, -1).real > 0).all():
        raise singular("cholesky", "the matrix is not positive definite")
    return adjoint(xp, out) if upper else out
