"""L-BFGS and its line search."""

import numpy as np
import pytest

import gpugrad as gg
from gpugrad import optim
from gpugrad.errors import ArgumentError, CheckpointError, DTypeError, ShapeError
from gpugrad.optim.line_search import Point, search


def rosenbrock(x):
    return lambda: gg.sum((1 - x[:-1]) ** 2 + 100 * (x[1:] - x[:-1] ** 2) ** 2)


@pytest.mark.parametrize("device", ["cpu", "cuda:0"])
@pytest.mark.parametrize("wrapped", [lambda f: f, gg.function], ids=["eager", "function"])
def test_lbfgs_reaches_the_minimum_of_rosenbrocks_function(wrapped, device):
    with gg.device(device):
        x, optimizer = gg.Variable(np.linspace(-1.2, 1.0, 6)), optim.LBFGS(max_iterations=200)
        first = optimizer.minimize(wrapped(rosenbrock(x)), [x])
    assert first.item() == pytest.approx(
        rosenbrock(gg.constant(np.linspace(-1.2, 1.0, 6)))().item()
    )
    np.testing.assert_allclose(x.numpy(), 1, atol=1e-5)
    assert 0 < optimizer.iterations < optimizer.evaluations < 100


def test_lbfgs_solves_a_quadratic_over_several_variables(rng):
    a = rng.normal(size=(5, 5))
    a, b = a @ a.T + np.eye(5), rng.normal(size=5)
    x, y = gg.Variable(np.zeros((2, 1))), gg.Variable(np.zeros(3))

    def loss():
        z = gg.concat([gg.reshape(x, (-1,)), y.value()])
        return gg.sum(z * gg.matmul(a, z)) / 2 - gg.sum(b * z)

    optim.LBFGS(max_iterations=50, tolerance_change=0.0).minimize(loss)
    got = np.concatenate([x.numpy().ravel(), y.numpy()])
    np.testing.assert_allclose(got, np.linalg.solve(a, b), atol=1e-6)


def test_lbfgs_of_complex_and_16_bit_variables():
    z = gg.Variable(np.array([1 + 1j, 2 - 1j]))
    w = gg.Variable(gg.constant([3.0], "float16"))

    def loss():
        d = z - (3 - 2j)
        return gg.sum(gg.real(d * gg.conj(d))) + gg.astype(gg.sum((w - 1.0) ** 2), "float64")

    optim.LBFGS().minimize(loss, [z, w])
    np.testing.assert_allclose(z.numpy(), 3 - 2j, atol=1e-3)
    assert (z.dtype, w.dtype) == (np.complex128, np.float16)
    np.testing.assert_allclose(w.numpy(), 1, atol=1e-2)


def test_state_of_lbfgs_continues_bit_for_bit():
    whole, half = (gg.Variable(np.linspace(-1.2, 1.0, 6)) for _ in range(2))
    one, first, second = (optim.LBFGS(max_iterations=4) for _ in range(3))
    for _ in range(6):
        one.minimize(rosenbrock(whole), [whole])
    for _ in range(3):
        first.minimize(rosenbrock(half), [half])
    state = {k: t.numpy() for k, t in first.state_dict().items()}
    second.load_state_dict(state)
    for _ in range(3):
        second.minimize(rosenbrock(half), [half])
    np.testing.assert_array_equal(half.numpy(), whole.numpy())
    assert second.iterations == one.iterations > 12
    with pytest.raises(CheckpointError, match="unexpected state"):
        second.load_state_dict({**state, "other": np.zeros(2)})
    with pytest.raises(CheckpointError, match="lacks one of"):
        second.load_state_dict({k: a for k, a in state.items() if k != "0.step"})


def test_lbfgs_without_a_line_search_takes_steps_of_the_learning_rate():
    x = gg.Variable(np.array([3.0]))
    optimizer = optim.LBFGS(0.5, max_iterations=1, line_search=None)
    optimizer.minimize(lambda: gg.sum(x * x), [x])
    np.testing.assert_allclose(x.numpy(), 3 - 0.5 * min(1, 1 / 6) * 6)
    assert optimizer.evaluations == 1


def test_lbfgs_leaves_the_best_point_after_an_error():
    x, calls = gg.Variable(np.array([3.0, -1.0])), []

    def loss():
        calls.append(x.numpy())
        if len(calls) == 4:
            raise KeyboardInterrupt
        return gg.sum(x**4)

    with pytest.raises(KeyboardInterrupt):
        optim.LBFGS().minimize(loss, [x])
    assert (x.numpy() ** 4).sum() < 82
    assert not (x.numpy() == calls[-1]).all()


def test_lbfgs_refuses_wrong_arguments():
    x = gg.Variable([1.0])
    with pytest.raises(ArgumentError, match="learning_rate must be above 0"):
        optim.LBFGS(0.0)
    with pytest.raises(ArgumentError, match='line_search must be "strong_wolfe" or None'):
        optim.LBFGS(line_search="armijo")
    with pytest.raises(ArgumentError, match="needs a function"):
        optim.LBFGS().minimize(gg.constant(1.0), [x])
    with pytest.raises(ArgumentError, match=r"must be a number, its shape is \(2,\)"):
        optim.LBFGS().minimize(lambda: gg.concat([x * 1.0, x * 2.0]), [x])
    with pytest.raises(ArgumentError, match="read no trainable Variable"):
        optim.LBFGS().minimize(lambda: gg.constant(1.0))
    with pytest.raises(DTypeError, match="'n' is int"):
        optim.LBFGS().minimize(lambda: gg.sum(x * x), [x, gg.Variable([1], name="n")])
    with pytest.raises(ArgumentError, match=r"cannot be traced.*outside of gg.function"):
        gg.function(lambda: optim.LBFGS().minimize(lambda: gg.sum(x * x), [x]))()
    optimizer = optim.LBFGS()
    optimizer.minimize(lambda: gg.sum(x**4), [x])
    y = gg.Variable([1.0, 2.0])
    with pytest.raises(ShapeError, match="have 2 elements, but 1 in earlier calls"):
        optimizer.minimize(lambda: gg.sum(y * y), [y])


@pytest.mark.parametrize(
    "f",
    [
        lambda t: ((t - 3) ** 2, 2 * (t - 3)),
        lambda t: (np.cos(t) + t / 20, -np.sin(t) + 1 / 20),
        lambda t: (t**4 - 2 * t**2 - 0.1 * t, 4 * t**3 - 4 * t - 0.1),
        lambda t: (-t if t < 2 else np.nan, -1.0 if t < 2 else np.nan),
    ],
)
@pytest.mark.parametrize("first", [0.01, 1.0, 50.0])
def test_line_search_satisfies_the_wolfe_conditions_or_stays_below_the_start(f, first):
    def at(t):
        value, slope = f(t)
        return Point(t, float(value), None, float(slope))

    start = at(0.0)
    if start.slope >= 0:
        start = at(0.3)._replace(t=0.0)
        shifted = f
        at = lambda t: Point(t, *(float(v) if i != 1 else None for i, v in enumerate(  # noqa: E731
            (shifted(t + 0.3)[0], 0, shifted(t + 0.3)[1]))))  # fmt: skip
    point, count = search(at, start, first, 25, 1e-9)
    assert count <= 26
    assert point.loss <= start.loss
    if point.loss == point.loss and not np.isnan(f(5.0)[0]):
        assert point.loss <= start.loss + 1e-4 * point.t * start.slope
        assert abs(point.slope) <= -0.9 * start.slope
