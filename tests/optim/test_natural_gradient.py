"""Natural gradients of Gaussian posteriors."""

import numpy as np
import pytest

import gpugrad as gg
from gpugrad import optim
from gpugrad.errors import ArgumentError, CheckpointError, ShapeError


def regression(rng, n=4, batch=()):
    """The posterior of weights with the prior N(0, 1) in a linear regression with unit noise."""
    x, y = rng.normal(size=(*batch, 7, n)), rng.normal(size=(*batch, 7))
    precision = np.eye(n) + np.swapaxes(x, -1, -2) @ x
    mean = np.linalg.solve(precision, (np.swapaxes(x, -1, -2) @ y[..., None]))[..., 0]
    return x, y, mean, np.linalg.inv(precision)


def negative_elbo(x, y, mean, factor):
    """Up to a constant."""
    x, y = gg.constant(x), gg.constant(y)
    residual = y - (x @ mean.value()[..., None])[..., 0]
    fit = gg.sum(residual**2) + gg.sum((x @ factor) ** 2)
    prior = gg.sum(mean**2) + gg.sum(factor**2)
    return (fit + prior) / 2 - gg.sum(gg.log(gg.abs(gg.linalg.diagonal(factor))))


def start(rng, n, batch=()):
    mean = rng.normal(size=(*batch, n))
    return mean, np.tril(rng.normal(size=(*batch, n, n))) * 0.3 + np.eye(n)


@pytest.mark.parametrize("device", ["cpu", "cuda:0"])
@pytest.mark.parametrize("wrapped", [lambda f: f, gg.function], ids=["eager", "function"])
@pytest.mark.parametrize("batch", [(), (3,)])
def test_one_step_is_exact_for_a_conjugate_likelihood(batch, wrapped, device, rng):
    x, y, expected, covariance = regression(rng, batch=batch)
    with gg.device(device):
        mean, factor = map(gg.Variable, start(rng, 4, batch))
        optimizer = optim.NaturalGradient(1.0)
        step = wrapped(
            lambda: optimizer.minimize(lambda: negative_elbo(x, y, mean, factor), [(mean, factor)])
        )
        first, second = step(), step()
    np.testing.assert_allclose(mean.numpy(), expected, 1e-9)
    lower = factor.numpy()
    np.testing.assert_allclose(lower @ np.swapaxes(lower, -1, -2), covariance, 1e-9, 1e-12)
    np.testing.assert_array_equal(np.triu(lower, 1), 0)
    assert second.item() < first.item()
    assert optimizer.iterations == 2


def test_one_step_is_exact_for_a_covariance(rng):
    x, y, expected, covariance = regression(rng)
    mean, lower = start(rng, 4)
    mean, matrix = gg.Variable(mean), gg.Variable(lower @ lower.T)

    def loss():
        residual = gg.constant(y) - gg.constant(x) @ mean
        fit = gg.sum(residual**2) + gg.sum((gg.constant(x) @ matrix) * gg.constant(x))
        log_det = gg.linalg.slogdet(matrix)[1]
        return (fit + gg.sum(mean**2) + gg.trace(matrix) - log_det) / 2

    optim.NaturalGradient(1.0, of="covariance").minimize(loss, [(mean, matrix)])
    np.testing.assert_allclose(mean.numpy(), expected, 1e-9)
    np.testing.assert_allclose(matrix.numpy(), covariance, 1e-9, 1e-12)


def test_a_step_moves_the_natural_parameters_against_the_gradient_of_the_expectations(rng):
    # the definition, by explicit inverses and the gradient through (m, S + m m^T) -> (m, L)
    mean, lower = start(rng, 3)
    a, b = rng.normal(size=3), rng.normal(size=(3, 3))

    def loss(m, factor):
        return gg.sum(gg.sin(m) * a) + gg.sum(gg.cos(factor @ gg.matrix_transpose(factor)) * b)

    def of_expectations(first, second):
        moved = second - first[:, None] * first[None, :]
        return loss(first, gg.linalg.cholesky((moved + gg.matrix_transpose(moved)) / 2))

    covariance = lower @ lower.T
    first, second = gg.constant(mean), gg.constant(covariance + np.outer(mean, mean))
    g1, g2 = (g.numpy() for g in gg.grad(of_expectations, argnums=(0, 1))(first, second))
    rate, inverse = 0.05, np.linalg.inv(covariance)
    natural = inverse @ mean - rate * g1, -inverse / 2 - rate * g2
    new_covariance = np.linalg.inv(-2 * natural[1])

    m, factor = gg.Variable(mean), gg.Variable(lower)
    optimizer = optim.NaturalGradient(lambda step: rate)
    optimizer.minimize(lambda: loss(m.value(), factor.value()), [(m, factor)])
    new = factor.numpy()
    np.testing.assert_allclose(new @ new.T, new_covariance, 1e-8)
    np.testing.assert_allclose(m.numpy(), new_covariance @ natural[0], 1e-8)


def test_wrong_arguments_change_nothing(rng):
    m, factor = gg.Variable(np.zeros(2), name="m"), gg.Variable(np.eye(2), name="L")
    optimizer = optim.NaturalGradient(1.0)
    g = gg.zeros(2, dtype="float64"), gg.constant(np.diag([-5.0, 0.0]))
    with pytest.raises(ArgumentError, match=r"learning rate 1\.0 the covariance 'L' would not be"):
        optimizer.apply_gradients([(g, (m, factor))])
    with pytest.raises(ShapeError, match=r"'m' of shape \(2,\) needs .* 'v' has \(3,\)"):
        optimizer.apply_gradients([(g, (m, gg.Variable(np.zeros(3), name="v")))])
    with pytest.raises(ShapeError, match="'L' has shape"):
        optimizer.apply_gradients([((g[0], g[0]), (m, factor))])
    with pytest.raises(ArgumentError, match="the gradient of 'm' is None"):
        optimizer.apply_gradients([((None, g[1]), (m, factor))])
    with pytest.raises(ArgumentError, match="got no gradients"):
        optimizer.apply_gradients([])
    with pytest.raises(ArgumentError, match='of must be "cholesky"'):
        optim.NaturalGradient(of="precision")
    with pytest.raises(ArgumentError, match="must be above 0"):
        optim.NaturalGradient(0.0)
    with pytest.raises(CheckpointError, match="unexpected state"):
        optimizer.load_state_dict(optim.SGD().state_dict() | {"x": np.ones(2)})
    assert optimizer.iterations == 0
    np.testing.assert_array_equal(factor.numpy(), np.eye(2))
