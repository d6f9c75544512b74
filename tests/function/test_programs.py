"""Small user programs (models, filters, solvers), each compared with a known result."""

import numpy as np
import scipy.linalg
import scipy.optimize
import scipy.stats

import gpugrad as gg


def differences(f, x, eps=1e-6):
    """The gradient of a NumPy function by central differences."""
    steps = eps * np.eye(x.size).reshape(-1, *x.shape)
    return np.array([(f(x + s) - f(x - s)) / (2 * eps) for s in steps]).reshape(x.shape)


def test_private_training_clips_the_gradient_of_each_example(rng):
    x, y = rng.normal(size=(8, 3)), rng.normal(size=8)
    model = {"w": gg.asarray(rng.normal(size=3)), "b": gg.constant(0.5, dtype="float64")}

    def loss(model, x, y):
        return (gg.tanh(x @ model["w"] + model["b"]) - y) ** 2

    each = gg.vmap(gg.grad(loss), in_axes=(None, 0, 0))(model, x, y)
    norms = gg.sqrt(sum(gg.sum(gg.reshape(g, (8, -1)) ** 2, axis=1) for g in each.values()))
    scale = gg.minimum(1.0, 1.0 / norms)
    clipped = {k: gg.tensordot(scale, g, axes=1) / 8 for k, g in each.items()}

    t = np.tanh(x @ model["w"].numpy() + 0.5)
    slope = 2 * (t - y) * (1 - t**2)
    by_hand = np.column_stack([slope[:, None] * x, slope])
    assert (np.linalg.norm(by_hand, axis=1) > 1).any()  # some of them are clipped
    by_hand /= np.maximum(np.linalg.norm(by_hand, axis=1, keepdims=True), 1)
    np.testing.assert_allclose(clipped["w"].numpy(), by_hand.mean(axis=0)[:3])
    np.testing.assert_allclose(clipped["b"].numpy(), by_hand.mean(axis=0)[3])


def test_runge_kutta_of_a_linear_system_gives_the_matrix_exponential(rng):
    def solution(a, y, steps=40):
        h = 1.0 / steps
        for _ in range(steps):
            k1 = a @ y
            k2 = a @ (y + h / 2 * k1)
            k3 = a @ (y + h / 2 * k2)
            k4 = a @ (y + h * k3)
            y = y + h / 6 * (k1 + 2 * k2 + 2 * k3 + k4)
        return y

    a, y, direction = np.array([[0.0, 1.0], [-2.0, -0.3]]), np.ones(2), rng.normal(size=(2, 2))
    by_start = gg.jacobian(solution, argnums=1)(a, y)
    np.testing.assert_allclose(by_start.numpy(), scipy.linalg.expm(a), rtol=1e-5)
    _, derivative = scipy.linalg.expm_frechet(a, direction)
    _, tangent = gg.jvp(solution, [a, y], [direction, np.zeros(2)])
    np.testing.assert_allclose(tangent.numpy(), derivative @ y, rtol=1e-5)
    gradient = gg.grad(lambda a: gg.sum(solution(a, y)))(a)
    np.testing.assert_allclose(gg.sum(gradient * direction), derivative @ y @ np.ones(2), rtol=1e-5)


def test_kalman_filter_gives_the_likelihood_of_the_joint_normal(rng):
    y, n = rng.normal(size=6), 6

    def log_likelihood(theta):  # x' = a x + noise q, y = x + noise r
        a, q, r = theta[0], gg.exp(theta[1]), gg.exp(theta[2])
        mean, variance, total = 0.0, 1.0, 0.0
        for value in y:
            mean, variance = a * mean, a * a * variance + q
            s, error = variance + r, value - mean
            total = total - 0.5 * (gg.log(2 * np.pi * s) + error**2 / s)
            gain = variance / s
            mean, variance = mean + gain * error, (1 - gain) * variance
        return total

    def joint(theta):
        a, q, r = theta[0], *np.exp(theta[1:])
        steps = np.tril(a ** np.maximum(np.subtract.outer(np.arange(n), np.arange(n)), 0))
        start = a ** np.arange(1, n + 1)
        covariance = np.outer(start, start) + q * steps @ steps.T + r * np.eye(n)
        return scipy.stats.multivariate_normal(np.zeros(n), covariance).logpdf(y)

    theta = np.array([0.8, -1.0, 0.2])
    value, gradient = gg.value_and_grad(log_likelihood)(theta)
    np.testing.assert_allclose(float(value), joint(theta))
    np.testing.assert_allclose(gradient.numpy(), differences(joint, theta), rtol=1e-6)
    curvature = gg.hessian(log_likelihood)(theta).numpy()
    rows = [differences(lambda t, k=k: differences(joint, t, 1e-4)[k], theta, 1e-4) for k in (0, 2)]
    np.testing.assert_allclose(curvature[[0, 2]], rows, rtol=1e-4, atol=1e-5)


def test_gaussian_process_is_fitted_with_scipy():
    x = np.linspace(0, 1, 12)
    y, d = np.sin(6 * x) + 0.1 * np.cos(40 * x), x[:, None] - x

    def covariance(xp, theta):
        length, height, noise = (xp.exp(theta[k]) for k in range(3))
        return height**2 * xp.exp(-0.5 * (d / length) ** 2) + noise**2 * np.eye(12)

    def loss(theta):
        c, lower = gg.linalg.cho_factor(covariance(gg, theta), lower=True)
        halves = gg.sum(gg.log(gg.linalg.diagonal(c)))
        return 0.5 * y @ gg.linalg.cho_solve((c, lower), y) + halves + 6 * np.log(2 * np.pi)

    def known(theta):
        return -scipy.stats.multivariate_normal(np.zeros(12), covariance(np, theta)).logpdf(y)

    start, both = np.array([-1.0, 0.0, -1.0]), gg.value_and_grad(loss)
    value, gradient = both(start)
    np.testing.assert_allclose(float(value), known(start))
    np.testing.assert_allclose(gradient.numpy(), differences(known, start), rtol=1e-6)
    result = scipy.optimize.minimize(
        lambda t: [np.asarray(v) for v in both(t)], start, jac=True, bounds=[(-3, 2)] * 3
    )
    assert result.success
    assert result.fun < known(start) - 5
    np.testing.assert_allclose(differences(known, result.x), 0, atol=1e-2)


def test_transport_plan_is_differentiated_at_its_fixed_point(rng):
    cost, eps = rng.uniform(size=(4, 5)), 0.2

    def column_potential(f, cost):
        return -eps * gg.logsumexp((f[:, None] - cost) / eps - np.log(4), axis=0)

    def improved(f, cost):
        f = -eps * gg.logsumexp((column_potential(f, cost) - cost) / eps - np.log(5), axis=1)
        return f - gg.mean(f)  # a constant in f changes nothing

    def sinkhorn(cost):
        f = gg.zeros(4, dtype=gg.float64)
        for _ in range(200):
            f = improved(f, cost)
        return f

    def price(cost, solver):
        f = solver(cost)
        plan = gg.softmax(gg.ravel((f[:, None] + column_potential(f, cost) - cost) / eps))
        return gg.sum(plan * gg.ravel(cost))

    solved = gg.implicit_diff(improved, kind="fixed_point")(sinkhorn)
    gradient = gg.grad(price)(cost, solved)
    np.testing.assert_allclose(gradient.numpy(), gg.grad(price)(cost, sinkhorn).numpy(), atol=1e-9)
    many = gg.vmap(gg.grad(lambda c: price(c, solved)))(np.stack([cost / 2, cost]))
    np.testing.assert_allclose(many.numpy()[1], gradient.numpy(), atol=1e-9)


def test_restoring_a_blurred_signal_gives_the_wiener_filter(rng):
    n, weight = 32, 1e-3
    blur = np.fft.rfft(np.exp(-0.5 * np.minimum(np.arange(n), n - np.arange(n)) ** 2))
    observed = np.fft.irfft(np.fft.rfft(rng.normal(size=n)) * blur, n)

    def loss(signal):
        again = gg.fft.irfft(gg.fft.rfft(signal) * blur, n=n)
        return gg.sum((again - observed) ** 2) + weight * gg.sum(signal**2)

    zero = np.zeros(n)
    restored = -gg.linalg.solve(gg.hessian(loss)(zero), gg.grad(loss)(zero))
    spectrum = np.conj(blur) * np.fft.rfft(observed) / (np.abs(blur) ** 2 + weight)
    np.testing.assert_allclose(restored.numpy(), np.fft.irfft(spectrum, n), atol=1e-9)


def test_gradient_of_a_flow_through_per_example_jacobians(rng):
    x, w = rng.normal(size=(6, 3)), np.eye(3) + 0.3 * rng.normal(size=(3, 3))

    def log_density(x, w):
        jacobian = gg.jacobian(lambda x: gg.sinh(w @ x))(x)
        return gg.linalg.slogdet(jacobian)[1] - 0.5 * gg.sum(gg.sinh(w @ x) ** 2)

    def known(w):
        z = x @ w.T
        volume = np.linalg.slogdet(w)[1] + np.log(np.cosh(z)).sum(axis=1)
        return np.mean(volume - 0.5 * (np.sinh(z) ** 2).sum(axis=1))

    gradient = gg.grad(lambda w: gg.mean(gg.vmap(log_density, in_axes=(0, None))(x, w)))(w)
    np.testing.assert_allclose(gradient.numpy(), differences(known, w), rtol=1e-6)
