"""The Gaussian log-density: its gradient with respect to the covariance, and the cost of it."""

import numpy as np
import pytest
import scipy.linalg
from taping import taped

import gpugrad as gg


def textbook(x, mean, cov):
    """The log-density through the Cholesky factor, differentiated by its general rule."""
    factor = gg.linalg.cholesky(cov)
    z = gg.linalg.solve_triangular(factor, gg.expand_dims(x - mean, axis=-1), lower=True)
    log_det = 2 * gg.sum(gg.log(gg.diagonal(factor)))
    return -0.5 * (gg.sum(z * z) + log_det + x.shape[0] * np.log(2 * np.pi))


@pytest.fixture
def points(rng):
    a = rng.normal(size=(40, 40))
    return [
        gg.constant(v) for v in (rng.normal(size=40), rng.normal(size=40), a @ a.T + np.eye(40))
    ]


def test_value_and_gradients_equal_the_cholesky_formula(points):
    for k in range(3):
        actual, desired = (
            gg.grad(gg.gaussian_log_likelihood, k)(*points),
            gg.grad(textbook, k)(*points),
        )
        np.testing.assert_allclose(actual.numpy(), desired.numpy(), 1e-8, 1e-8)
    actual, desired = gg.gaussian_log_likelihood(*points), textbook(*points)
    np.testing.assert_allclose(actual.numpy(), desired.numpy(), 1e-12)


def test_covariance_gradient_costs_one_factorization_and_one_inverse(points, monkeypatch):
    x, mean, cov = points
    counted, real = [], scipy.linalg.get_lapack_funcs

    def counting(names, arrays):
        counted.extend(names)
        return real(names, arrays)

    tape, y = taped(lambda cov: gg.gaussian_log_likelihood(x, mean, cov), cov)
    monkeypatch.setattr(scipy.linalg, "get_lapack_funcs", counting)
    tape.gradient(y, cov)
    assert counted == ["potrf", "potri"]


def test_spd_inverse_is_symmetric_to_the_last_bit(points):
    inverse = gg.spd_inverse(points[2]).numpy()
    np.testing.assert_array_equal(inverse, inverse.T)
    np.testing.assert_allclose(inverse @ points[2].numpy(), np.eye(40), atol=1e-9)
