"""Factors and systems by LAPACK over the pool: against NumPy, for every layout and stack."""

import numpy as np
import pytest
from taping import gradients, tape_gradient

import gpugrad as gg
from gpugrad.core.backend import NUMPY, OPS
from gpugrad.kernels.cpu import lapack

pytestmark = [
    pytest.mark.skipif(lapack._library() is None, reason="needs a C++ compiler and LAPACK"),
    pytest.mark.usefixtures("threads"),
]

DTYPES = [np.float32, np.float64]
SHAPES = [(102, 102), (128, 128), (257, 257), (10, 70, 70), (2, 3, 100, 100)]
both = pytest.mark.parametrize("dtype", DTYPES)
shapes = pytest.mark.parametrize("shape", SHAPES)


def normal(*shape, seed=0):
    return np.random.default_rng(seed).standard_normal(shape)


def regular(shape, dtype):
    """Matrices far from singular."""
    return (normal(*shape) / shape[-1] ** 0.5 + 3 * np.eye(shape[-1])).astype(dtype)


def definite(shape, dtype):
    x = normal(*shape)
    return (x @ x.swapaxes(-1, -2) / shape[-1] + np.eye(shape[-1])).astype(dtype)


def check(actual, desired, dtype, factor=50):
    """Equal up to rounding, relative to the largest element."""
    assert actual.dtype == dtype
    assert actual.shape == desired.shape
    atol = factor * np.finfo(dtype).eps * np.abs(desired).max()
    np.testing.assert_allclose(actual, desired, 0, atol)


def layouts(x):
    """The array, and the same values with columns in memory."""
    yield x
    yield np.ascontiguousarray(x.swapaxes(-1, -2)).swapaxes(-1, -2)


@both
@shapes
@pytest.mark.parametrize("upper", [False, True])
def test_the_cholesky_factor_is_numpys(shape, dtype, upper):
    x = definite(shape, dtype)
    desired = np.linalg.cholesky((x + x.swapaxes(-1, -2)) / 2)
    for a in layouts(x):
        actual = lapack.cholesky(NUMPY, a, upper=upper)
        check(actual.swapaxes(-1, -2) if upper else actual, desired, dtype, 4)
        assert not np.any(np.tril(actual, -1) if upper else np.triu(actual, 1))


@both
@shapes
def test_the_gradient_of_cholesky_is_the_formulas(shape, dtype):
    out = np.linalg.cholesky(definite(shape, np.float64))
    g = normal(*shape, seed=1)
    desired = OPS["cholesky_grad"].forward(NUMPY, g, out)
    actual = lapack.cholesky_grad(NUMPY, g.astype(dtype), out.astype(dtype))
    check(actual, desired, dtype)
    np.testing.assert_array_equal(actual, actual.swapaxes(-1, -2))


@both
@pytest.mark.parametrize("unit_diagonal", [False, True])
@pytest.mark.parametrize("adjoint", [False, True])
@pytest.mark.parametrize("lower", [False, True])
def test_triangular_systems_are_solved(lower, adjoint, unit_diagonal, dtype):
    for *stack, n, columns in [(130, 101), (257, 40), (7, 80, 70)]:
        x = regular((*stack, n, n), dtype)  # also where it is not to be read
        b = normal(*stack, n, columns, seed=1).astype(dtype)
        a = np.tril(x) if lower else np.triu(x)
        if unit_diagonal:
            a = a / 3  # far from singular
            x = x / 3
            a[..., np.arange(n), np.arange(n)] = 1
        a = a.swapaxes(-1, -2) if adjoint else a
        desired = np.linalg.solve(a.astype(np.float64), b.astype(np.float64))
        options = {"lower": lower, "adjoint": adjoint, "unit_diagonal": unit_diagonal}
        for each in layouts(x.astype(dtype)):
            check(lapack.solve_triangular(NUMPY, each, b, **options), desired, dtype)


@both
@shapes
def test_solutions_and_their_gradients_are_numpys(shape, dtype):
    a, columns = regular(shape, np.float64), 19
    for b_shape in [(*shape[:-1], columns)] + [shape[-1:]] * (len(shape) == 2):
        b, g = normal(*b_shape, seed=1), normal(*b_shape, seed=2)
        y = np.linalg.solve(a.swapaxes(-1, -2), g)
        x = np.linalg.solve(a, b)
        last = [v[:, None] if v.ndim == 1 else v for v in (x, y)]
        desired = [-last[1] @ last[0].swapaxes(-1, -2), y]
        for each in layouts(a.astype(dtype)):
            out, grads = gradients(gg.solve, [each, b.astype(dtype)], g.astype(dtype))
            check(out, x, dtype)
            for actual, expected in zip(grads, desired, strict=True):
                check(actual, expected, dtype)


def test_a_gradient_uses_the_factors_of_its_own_matrix():
    """Also if the matrix has changed, or others were solved with in between."""
    a, b = regular((128, 128), np.float64), normal(128, 16)
    others = [regular((128, 128), np.float64) + k for k in range(6)]
    for matrices in ([a], [a, *others]):
        for x in matrices:
            lapack.solve(NUMPY, x, b)
        check(lapack.solve(NUMPY, a.T, b), np.linalg.solve(a.T, b), np.float64)
    lapack.solve(NUMPY, a, b)
    a[-1, -1] += 1
    check(lapack.solve(NUMPY, a.T, b), np.linalg.solve(a.T, b), np.float64)


def test_the_second_derivative_of_a_solution_is_the_difference_of_first_ones():
    a, b, v = regular((128, 128), np.float64), normal(128, 8), normal(128, 128, seed=3)

    def gradient(x):
        inverse = np.linalg.inv(x)
        return -(inverse.T @ np.ones((128, 8))) @ (inverse @ b).T

    x = gg.asarray(a)
    with gg.GradientTape() as outer:
        outer.watch(x)
        first = tape_gradient(lambda x: gg.sum(gg.solve(x, gg.asarray(b))), x)
    second = outer.gradient(first, x, gg.asarray(v)).numpy()
    check(first.numpy(), gradient(a), np.float64)
    eps = 1e-6
    desired = (gradient(a + eps * v) - gradient(a - eps * v)) / (2 * eps)
    np.testing.assert_allclose(second, desired, 0, 1e-6 * np.abs(second).max())


@both
@pytest.mark.parametrize("full_matrices", [False, True])
@pytest.mark.parametrize("shape", [(128, 128), (200, 90), (90, 200), (30, 40, 45), (30, 45, 40)])
def test_singular_values_and_vectors_are_numpys(shape, full_matrices, dtype):
    x = normal(*shape).astype(dtype)
    actual = lapack.svd(NUMPY, x, full_matrices=full_matrices)
    desired = np.linalg.svd(x, full_matrices=full_matrices)
    for part, expected in zip(actual, desired, strict=True):
        check(part, expected, dtype, 1e4)
    u, s, vh = (a.astype(np.float64) for a in actual)
    k = s.shape[-1]
    check(((u[..., :k] * s[..., None, :]) @ vh[..., :k, :]).astype(dtype), x, dtype)


@both
def test_matrices_without_factors_raise_numpys_errors(dtype):
    n = 140
    singular, indefinite = np.eye(n, dtype=dtype), np.eye(n, dtype=dtype)
    singular[100, 100], indefinite[100, 100] = 0, -1
    b = np.ones((n, 80), dtype)
    with pytest.raises(gg.errors.SingularMatrixError, match=r"solve.*[Ss]ingular"):
        gg.solve(singular, b)
    with pytest.raises(gg.errors.SingularMatrixError, match=r"cholesky.*positive definite"):
        gg.cholesky(indefinite)
    with pytest.raises(gg.errors.SingularMatrixError, match="a 0 in row 100"):
        gg.solve_triangular(singular, b, lower=True)
    with pytest.raises(gg.errors.ArgumentError, match=r"svd.*converge"):
        gg.linalg.svd(np.full((n, n), np.nan, dtype))
    with pytest.raises(gg.errors.SingularMatrixError, match=r"cholesky.*positive definite"):
        gg.cholesky(np.stack([np.eye(n, dtype=dtype), indefinite]))


@both
def test_nan_gives_what_it_gives_in_numpy(dtype):
    x = definite((130, 130), dtype)
    x[70, 70] = np.nan
    b = np.ones((130, 3), dtype)
    np.testing.assert_array_equal(np.isnan(gg.solve(x, b).numpy()), np.isnan(np.linalg.solve(x, b)))
    try:
        desired = np.linalg.cholesky(x)
    except np.linalg.LinAlgError:
        with pytest.raises(gg.errors.SingularMatrixError):
            gg.cholesky(x)
    else:
        np.testing.assert_array_equal(np.isnan(gg.cholesky(x).numpy()), np.isnan(desired))


@pytest.mark.parametrize("names", [(), ("scipy_{}_of_no_build",)])
def test_without_lapacks_functions_numpy_computes(names, monkeypatch):
    """As with a BLAS of unknown names, or one that lacks a function."""
    found = names and lapack.blas.names()._replace(of_fortran=names[0])
    monkeypatch.setattr(lapack.blas, "names", lambda: found or None)
    monkeypatch.setattr(lapack, "_library", lapack._library.__wrapped__)
    x = definite((128, 128), np.float32)
    assert lapack.cholesky(NUMPY, x) is NotImplemented
    assert lapack.solve(NUMPY, x, x) is NotImplemented
    assert lapack.svd(NUMPY, x) is NotImplemented
    np.testing.assert_array_equal(gg.solve(x, x).numpy(), np.linalg.solve(x, x))
