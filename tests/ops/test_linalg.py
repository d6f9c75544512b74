"""gg.linalg where derivatives are delicate: equal and zero eigenvalues, free vectors; and names."""

import functools
import itertools

import numpy as np
import pytest

import gpugrad as gg
import gpugrad.linalg

KINDS = pytest.mark.parametrize("kind", ["real", "complex"])


def _random(rng, kind, *shape):
    x = rng.normal(size=shape)
    return x + 1j * rng.normal(size=shape) if kind == "complex" else x


def _adjoint(x):
    x = gg.matrix_transpose(x)
    return gg.conj(x) if x.dtype.kind == "c" else x


def _weighted(function, weights, x):
    return _inner(weights, getattr(gg.linalg, function)(x))


def _inner(weights, y):
    return gg.sum(gg.real(gg.constant(weights.conj()) * y))


def _gradient(f, x):
    return gg.grad(f)(gg.constant(x)).numpy()


def _along(f, x, direction, eps=1e-5):
    """The directional derivative of f at x, by finite differences."""
    ends = [f(gg.constant(x + sign * eps * direction)).item() for sign in (1, -1)]
    return (ends[0] - ends[1]) / (2 * eps)


def _check(f, x, rng, kind):
    t = _random(rng, kind, *x.shape)
    t = (t + t.conj().T) / 2 if x.shape[0] == x.shape[1] and np.allclose(x, x.conj().T) else t
    g = _gradient(f, x)
    assert np.sum((g.conj() * t).real) == pytest.approx(_along(f, x, t), rel=1e-5, abs=1e-7)


def _with_eigenvalues(rng, kind, values):
    q = np.linalg.qr(_random(rng, kind, len(values), len(values)))[0]
    x = (q * np.array(values)) @ q.conj().T
    return (x + x.conj().T) / 2


@KINDS
@pytest.mark.parametrize("values", [[1, 1, 1, 3], [0, 0, 2, 5], [2, 2, 2, 2]])
def test_eigh_of_equal_eigenvalues_differentiates_sums_and_projectors(rng, kind, values):
    x, weights = _with_eigenvalues(rng, kind, values), _random(rng, kind, 4, 4)
    k = values.count(values[0])

    def projected(x):
        w, v = gg.linalg.eigh(x)
        part = v[:, :k]
        return _inner(weights, part @ _adjoint(part)) + gg.sum(w[:k])

    _check(projected, x, rng, kind)


@pytest.mark.parametrize("name", ["eigh", "eig", "svd"])
def test_vectors_of_equal_eigenvalues_have_finite_gradients(name):
    for x in (np.eye(3), np.zeros((3, 3)), np.diag([1.0, 1.0, 2.0])):

        def loss(x):
            return sum(gg.sum(gg.real(y) ** 3) for y in getattr(gg.linalg, name)(x))

        assert np.isfinite(_gradient(loss, x)).all()


@KINDS
@pytest.mark.parametrize("function", ["expm", "logm", "sqrtm"])
def test_matrix_function_gradients_are_exact_at_equal_eigenvalues(rng, kind, function):
    weights = _random(rng, kind, 3, 3)
    defective = 2 * np.eye(3) + np.eye(3, k=1)
    for x in (np.eye(3), defective):
        x = x.astype(weights.dtype)
        t = _random(rng, kind, 3, 3)
        f = functools.partial(_weighted, function, weights)
        actual = np.sum((_gradient(f, x).conj() * t).real)
        assert actual == pytest.approx(_along(f, x, t), rel=1e-6)


@KINDS
@pytest.mark.parametrize(("shape", "rank"), [((5, 5), 2), ((6, 4), 2), ((4, 6), 1), ((4, 4), 3)])
def test_svd_of_a_low_rank_matrix_differentiates_functions_of_it(rng, kind, shape, rank):
    x = _random(rng, kind, shape[0], rank) @ _random(rng, kind, rank, shape[1])
    weights = _random(rng, kind, *shape)

    def f(x):
        u, s, vh = gg.linalg.svd(x, full_matrices=False)
        return _inner(weights, (u * gg.sin(s)) @ vh)

    _check(f, x, rng, kind)


@KINDS
def test_polar_of_a_unitary_matrix_has_the_right_gradient(rng, kind):
    x, weights = np.linalg.qr(_random(rng, kind, 3, 3))[0], _random(rng, kind, 3, 3)
    _check(lambda x: _inner(weights, gg.linalg.polar(x)[0]), x, rng, kind)
    _check(lambda x: _inner(weights, gg.linalg.polar(x, "left")[1]), x, rng, kind)


@KINDS
def test_complementary_columns_of_qr_and_svd_differentiate_their_projector(rng, kind):
    x, weights = _random(rng, kind, 5, 2), _random(rng, kind, 5, 5)

    def of(columns):
        rest = columns[:, 2:]
        return _inner(weights, rest @ _adjoint(rest))

    _check(lambda x: of(gg.linalg.qr(x, mode="complete").Q), x, rng, kind)
    _check(lambda x: of(gg.linalg.svd(x).U), x, rng, kind)
    _check(lambda x: of(_adjoint(gg.linalg.svd(_adjoint(x)).Vh)), x, rng, kind)


@KINDS
def test_pinv_of_low_rank_differentiates_along_matrices_of_that_rank(rng, kind):
    left, right = _random(rng, kind, 5, 2), _random(rng, kind, 2, 4)
    moved_left, moved_right = _random(rng, kind, 5, 2), _random(rng, kind, 2, 4)
    weights = _random(rng, kind, 4, 5)

    def f(x):
        return _inner(weights, gg.linalg.pinv(x, rtol=1e-9))

    def on(e):
        return f(gg.constant((left + e * moved_left) @ (right + e * moved_right))).item()

    g = _gradient(f, left @ right)
    actual = np.sum((g.conj() * (moved_left @ right + left @ moved_right)).real)
    assert actual == pytest.approx((on(1e-5) - on(-1e-5)) / 2e-5, rel=1e-6)


def test_second_derivative_is_right_at_equal_eigenvalues():
    def norm_of_gradient(x):
        g = gg.grad(lambda x: gg.sum(gg.linalg.eigvalsh(x) ** 2))(x)  # 2 x
        return gg.sum(g * g)

    x = np.diag([1.0, 1.0, 2.0])
    np.testing.assert_allclose(_gradient(norm_of_gradient, x), 8 * x)


@pytest.mark.parametrize("scale", [1e-200, 1e200])
def test_expm_gradient_is_linear_in_a_huge_or_tiny_upstream_gradient(rng, scale):
    x, weights = rng.normal(size=(2, 3, 3))

    def f(c):
        return _gradient(lambda x: _inner(c * weights, gg.linalg.expm(x)), x)

    np.testing.assert_allclose(f(scale) / scale, f(1.0), rtol=1e-12)


def test_norm_accepts_the_arguments_of_numpy(rng):
    orders = (None, 1, 2, 3, -1, -2, 0, np.inf, -np.inf, "fro", "nuc", 0.5)
    axes = (None, 0, -1, (0,), (0, 1), (1, 0), (-1, 0))
    for shape, ord, axis, keepdims in itertools.product(
        ((3,), (2, 3), (2, 3, 4)), orders, axes, (False, True)
    ):
        x = rng.normal(size=shape)
        try:
            desired = np.linalg.norm(x, ord, axis, keepdims)
        except Exception:
            with pytest.raises(gg.errors.GpugradError):
                gg.linalg.norm(x, ord, axis, keepdims=keepdims)
            continue
        actual = gg.linalg.norm(x, ord, axis, keepdims=keepdims)
        np.testing.assert_allclose(actual.numpy(), desired)
        assert actual.shape == np.shape(desired)


def test_results_have_the_field_names_of_the_standard():
    x = np.diag([1.0, 2.0])
    assert gg.linalg.eigh(x)._fields == ("eigenvalues", "eigenvectors")
    assert gg.linalg.eig(x)._fields == ("eigenvalues", "eigenvectors")
    assert gg.linalg.qr(x)._fields == ("Q", "R")
    assert gg.linalg.slogdet(x)._fields == ("sign", "logabsdet")
    assert gg.linalg.svd(x)._fields == ("U", "S", "Vh")


def test_qr_mode_r_returns_only_r(rng):
    x = rng.normal(size=(4, 2))
    np.testing.assert_allclose(gg.linalg.qr(x, mode="r").numpy(), np.linalg.qr(x, mode="r"))


def test_tolerance_may_be_an_array_or_vmapped():
    x = np.stack([np.diag([1.0, 1e-3])] * 2)
    assert gg.linalg.matrix_rank(x, rtol=np.array([1e-2, 1e-4])).tolist() == [1, 2]
    ranks = gg.vmap(lambda x, t: gg.linalg.matrix_rank(x, rtol=t))(x, np.array([1e-2, 1e-4]))
    assert ranks.tolist() == [1, 2]


@pytest.mark.parametrize("name", ["qr", "svd", "eigh", "eig", "inv", "expm", "lu", "norm"])
def test_integers_give_float64(name):
    actual = getattr(gg.linalg, name)(np.array([[2, 1], [1, 3]]))
    actual = actual if isinstance(actual, tuple) else (actual,)
    assert {y.dtype.name for y in actual} <= {"float64", "complex128"}


def test_diagonal_and_trace_use_the_axes_of_numpy_or_of_the_array_api(rng):
    x = rng.normal(size=(2, 3, 3))
    np.testing.assert_array_equal(gg.diagonal(x), np.diagonal(x))
    np.testing.assert_array_equal(gg.trace(x), np.trace(x))
    np.testing.assert_array_equal(gg.linalg.diagonal(x), np.linalg.diagonal(x))
    np.testing.assert_array_equal(gg.linalg.trace(x), np.linalg.trace(x))
    np.testing.assert_array_equal(gg.constant(x).trace(), x.trace())


def test_solve_triangular_requires_lower():
    with pytest.raises(TypeError, match="lower"):
        gg.linalg.solve_triangular(np.eye(2), np.ones(2))
