"""Cholesky factors and inverses by cuSOLVER, on a stand-in that calls LAPACK."""

import importlib
import importlib.metadata
import inspect
import json
import re

import numpy as np
import pytest
from conftest import REAL_GPU
from fakes import cusolver as fake_cusolver
from fresh import output_of

import gpugrad as gg
from gpugrad.errors import SingularMatrixError
from gpugrad.kernels.libraries import cusolver

needs_the_stand_in = pytest.mark.skipif(
    REAL_GPU, reason="reads the calls that the stand-in recorded"
)


@pytest.fixture
def calls(monkeypatch):
    monkeypatch.setattr(fake_cusolver, "calls", [])
    return fake_cusolver.calls


def positive(rng, n, dtype="float64"):
    a = rng.normal(size=(n, n))
    return (a @ a.T + n * np.eye(n)).astype(dtype)


@pytest.mark.parametrize("dtype", ["float64", "float32"])
@pytest.mark.parametrize("n", [1, 2, 33])
def test_factors_and_inverses_match_lapack(n, dtype, cuda, rng):
    a, rtol = positive(rng, n, dtype), 1e-9 if dtype == "float64" else 1e-3
    x = gg.constant(a, device=cuda)
    lower = gg.linalg.cholesky(x).numpy()
    assert lower.dtype == dtype
    np.testing.assert_allclose(lower, np.linalg.cholesky(a), rtol, rtol)
    np.testing.assert_array_equal(lower, np.tril(lower))
    np.testing.assert_array_equal(gg.linalg.cholesky(x, upper=True).numpy(), lower.T)
    inverse = gg.spd_inverse(x).numpy()
    np.testing.assert_allclose(inverse, np.linalg.inv(a), rtol, rtol)
    np.testing.assert_array_equal(inverse, inverse.T)
    np.testing.assert_array_equal(x.numpy(), a)


@needs_the_stand_in
def test_likelihood_gradient_reuses_the_cholesky_factor(cuda, rng, calls):
    arrays = rng.normal(size=9), rng.normal(size=9), positive(rng, 9)
    x, mean, cov = (gg.constant(a, device=cuda) for a in arrays)
    with gg.cuda.stream(device=cuda) as stream, gg.GradientTape() as tape:
        tape.watch(cov)
        y = gg.gaussian_log_likelihood(x, mean, cov)
        forward = list(calls)
        actual = tape.gradient(y, cov)
    lower = 0
    assert forward == [("dpotrf", lower, stream.ptr)]
    assert calls[1:] == [*forward, ("dpotri", lower, stream.ptr)]
    desired = gg.grad(gg.gaussian_log_likelihood, 2)(*arrays)
    np.testing.assert_allclose(actual.numpy(), desired.numpy(), 1e-9)


@pytest.mark.parametrize("op", [gg.linalg.cholesky, gg.spd_inverse])
def test_matrix_that_is_not_positive_definite_is_refused(op, cuda):
    with pytest.raises(SingularMatrixError, match="not positive definite"):
        op(gg.constant(np.diag([1.0, -1.0, 2.0]), device=cuda))


@needs_the_stand_in
@pytest.mark.parametrize("op", [gg.linalg.cholesky, gg.spd_inverse])
def test_batches_and_missing_cusolver_fall_back_to_cupy(op, cuda, rng, calls, monkeypatch):
    stack = np.stack([positive(rng, 4), positive(rng, 4)])
    actual = op(gg.constant(stack, device=cuda)).numpy()
    np.testing.assert_allclose(actual, op(stack).numpy(), 1e-9)

    def absent():
        raise RuntimeError("no libcusolver")

    cusolver._handle.cache_clear()
    monkeypatch.setattr(fake_cusolver, "create", absent)
    try:
        actual = op(gg.constant(stack[0], device=cuda)).numpy()
    finally:
        cusolver._handle.cache_clear()
    np.testing.assert_allclose(actual, op(stack[0]).numpy(), 1e-9)
    monkeypatch.setattr(cusolver, "binding", lambda: None)
    np.testing.assert_array_equal(op(gg.constant(stack[0], device=cuda)).numpy(), actual)
    assert calls == []


def test_stand_in_has_the_names_and_signatures_of_the_binding():
    try:
        importlib.metadata.version("nvmath-python")
    except importlib.metadata.PackageNotFoundError:
        pytest.skip(reason="nvmath-python is not installed")
    script = """
import json, nvmath.bindings.cusolverDn as dn, nvmath.bindings.cublas as blas
print(json.dumps([int(blas.FillMode.LOWER),
                  {n: (getattr(dn, n).__doc__ or "").splitlines()[:1] for n in dir(dn)}]))
"""
    lower, docs = json.loads(output_of("-c", script))
    assert lower == cusolver._LOWER
    for name, function in inspect.getmembers(fake_cusolver, inspect.isfunction):
        if name.startswith("_") or name == "install":
            continue
        signature = re.sub(r"(intptr_t|int) ", "", docs[name][0]).split(" ->")[0]
        assert signature == f"{name}({', '.join(inspect.signature(function).parameters)})"
