"""Slopes of the incomplete gamma and beta functions by their parameters, against the formulas."""

import numpy as np
import pytest

import gpugrad as gg
from gpugrad.core.backend import NUMPY, OPS
from gpugrad.kernels.cpu import incomplete

pytestmark = pytest.mark.skipif(not incomplete._IN_C, reason="needs a C++ compiler")

LAUNCHERS = {
    "gammainc_grad_a": incomplete.gamma_slopes,
    "betainc_grad_a": incomplete.beta_slopes(False),
    "betainc_grad_b": incomplete.beta_slopes(True),
}
names = pytest.mark.parametrize("name", LAUNCHERS)
N = incomplete.LEAST + 89  # the last vector is not full


def points(name, low=0.02, high=50.0):
    """Parameters over some decades, and points on both sides of the mean."""
    rng = np.random.default_rng(0)
    parameters = np.exp(rng.uniform(np.log(low), np.log(high), (1 + name.startswith("beta"), N)))
    inverse = NUMPY.special.betaincinv if len(parameters) == 2 else NUMPY.special.gammaincinv
    return [*parameters, np.clip(inverse(*parameters, rng.uniform(0, 1, N)), 1e-9, None)]


def by_formula(name, *arrays):
    """Of parts that the kernel declines."""
    parts = [
        np.asarray(OPS[name].eager(*[a[i : i + 256] if np.ndim(a) else a for a in arrays]))
        for i in range(0, N, 256)
    ]
    return np.concatenate(parts)


@names
@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_slopes_are_those_of_the_formula(name, dtype):
    arrays = [a.astype(dtype) for a in points(name)]
    actual = LAUNCHERS[name](NUMPY, *arrays)
    assert actual.dtype == dtype
    desired = by_formula(name, *[a.astype(np.float64) for a in arrays])
    np.testing.assert_allclose(actual, desired, 1e-11 if dtype == np.float64 else 1e-6, 1e-38)


@names
def test_one_parameter_for_all_points_gives_the_same_bits(name):
    *parameters, x = points(name)
    alone = [p[3] for p in parameters]
    full = LAUNCHERS[name](NUMPY, *[np.full(N, p) for p in alone], x)
    np.testing.assert_array_equal(LAUNCHERS[name](NUMPY, *alone, x), full)
    np.testing.assert_array_equal(
        np.asarray(OPS[name].eager(*alone, x)), full
    )  # the op calls the kernel


@names
def test_arrays_of_other_dtypes_and_shapes_are_broadcast(name):
    *parameters, x = points(name)
    first = np.float32(parameters[0][:3, None])
    expected = by_formula(name, *[np.full(N, float(first[1, 0])), *parameters[1:], x])
    actual = LAUNCHERS[name](NUMPY, first, *parameters[1:], x)
    assert (actual.dtype, actual.shape) == (np.float64, (3, N))
    np.testing.assert_allclose(actual[1], expected, 1e-10, 1e-38)
    traced = gg.function(lambda *a: OPS[name].eager(*a))
    with pytest.raises(gg.errors.ShapeError):
        traced(*[np.ones(N)] * len(parameters), np.ones(N + 1))


@names
def test_limits_and_wrong_arguments_are_those_of_the_formula(name):
    inf, nan = np.inf, np.nan
    parameters = [[-1.0, 0.0, 0.1, 0.3, 1.0, 7.0, inf, nan]] * (1 + name.startswith("beta"))
    grid = np.meshgrid(*parameters, [-1.0, 0.0, 1e-280, 0.3, 0.9, 1.0, 8.0, inf, nan])
    arrays = [np.resize(a, N) for a in grid]
    with np.errstate(all="ignore"):
        actual, desired = LAUNCHERS[name](NUMPY, *arrays), by_formula(name, *arrays)
    np.testing.assert_allclose(actual, desired, 1e-10, 1e-16)  # beside 0 the formula cancels
    limits = desired == 0
    np.testing.assert_array_equal(np.signbit(actual[limits]), np.signbit(desired[limits]))


@names
def test_a_series_of_too_many_terms_is_left_to_the_formula(name):
    arrays = [np.full(N, 1e12)] * (1 + name.startswith("beta"))
    arrays.append(np.full(N, 0.5 if name.startswith("beta") else 1e12))
    assert LAUNCHERS[name](NUMPY, *arrays) is NotImplemented
    assert LAUNCHERS[name](NUMPY, *[a[:9] for a in arrays]) is NotImplemented  # few elements


@names
def test_a_trace_calls_the_kernel(name):
    arrays = [gg.asarray(a) for a in points(name)]
    traced = gg.function(lambda *a: OPS[name].eager(*a))
    np.testing.assert_array_equal(traced(*arrays), OPS[name].eager(*arrays))
