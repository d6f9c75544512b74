"""The order of large arrays, which other sorts compute than that of small ones."""

import numpy as np
import pytest
from taping import taped

import gpugrad as gg
from gpugrad.ops.arrays.sort_numpy import order

INF, NAN = np.inf, np.nan
VALUES = {
    "distinct": lambda rng, shape: rng.standard_normal(shape) * 1e6,
    "equal": lambda rng, shape: rng.integers(-3, 4, shape),
    "extreme": lambda rng, shape: rng.choice(
        [0.0, -0.0, 1.0, -1.0, INF, -INF, NAN, -NAN, 1e-45, -1e-45, 3e38], shape
    ),
}


def stable(x, axis, descending):
    """NumPy's order, with NaN as the largest in both directions."""
    if not descending:
        return np.argsort(x, axis=axis, kind="stable")
    back = np.argsort(np.flip(x, axis), axis=axis, kind="stable")
    return x.shape[axis] - 1 - np.flip(back, axis)


@pytest.mark.parametrize("descending", [False, True])
@pytest.mark.parametrize("dtype", ["f4", "f8", "f2", "i4", "i8", "u4", "i2"])
@pytest.mark.parametrize("values", VALUES)
def test_the_order_of_a_large_array_is_numpys_stable_one(values, dtype, descending):
    rng = np.random.default_rng(0)
    for shape, axis in [((70000,), 0), ((3, 5000), -1), ((300, 9, 7), 0), ((9000, 1), 1)]:
        with np.errstate(invalid="ignore", over="ignore"):
            x = VALUES[values](rng, shape).astype(dtype)
        actual = gg.argsort(x, axis=axis, descending=descending).numpy()
        assert actual.dtype == np.int64
        np.testing.assert_array_equal(actual, stable(x, axis, descending))


@pytest.mark.parametrize("dtype", [np.float32, np.int32])
def test_the_least_and_the_largest_elements_are_in_order(dtype):
    info = np.finfo(dtype) if dtype is np.float32 else np.iinfo(dtype)
    x = np.resize(np.array([info.max, 0, info.min, info.max, info.min, 1], dtype), (8, 2000))
    for descending in (False, True):
        np.testing.assert_array_equal(order(x, 1, descending), stable(x, 1, descending))


@pytest.mark.parametrize("descending", [False, True])
def test_the_gradient_of_a_large_sort_goes_to_each_elements_place(descending):
    rng = np.random.default_rng(0)
    x, g = (rng.integers(0, 50, (40, 300)).astype(np.float32) for _ in range(2))
    x = gg.asarray(x)
    tape, y = taped(lambda x: gg.sort(x, axis=1, descending=descending), x)
    actual = tape.gradient(y, x, gg.asarray(g)).numpy()
    expected = np.empty_like(g)
    np.put_along_axis(expected, stable(x.numpy(), 1, descending), g, 1)
    np.testing.assert_array_equal(actual, expected)


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("side", ["left", "right"])
@pytest.mark.parametrize("n", [0, 1, 2, 5, 1000])
def test_many_numbers_are_searched_as_numpy_searches_them(n, side, dtype):
    rng = np.random.default_rng(n)
    x = np.sort(rng.integers(0, 300, n)).astype(dtype)
    x[n - n // 4 :], x[n - n // 8 :] = np.inf, np.nan
    points = rng.integers(-3, 303, 9001).astype(dtype)
    points[::7], points[::11], points[::13] = np.nan, np.inf, -np.inf
    for v in (points, np.sort(points), points[::-1], points[:9000].reshape(100, 90).T):
        found = gg.searchsorted(gg.asarray(x), gg.asarray(v), side=side)
        np.testing.assert_array_equal(found, np.searchsorted(x, v, side=side))


@pytest.mark.filterwarnings("ignore:invalid value")  # an infinity and the other one
@pytest.mark.parametrize("ends", [{}, {"left": -1.0}, {"left": 5.0, "right": np.inf}])
@pytest.mark.parametrize("n", [1, 2, 40])
def test_many_numbers_are_interpolated_as_numpy_does_it(n, ends):
    rng = np.random.default_rng(n)
    points = np.sort(rng.integers(0, 30, n)).astype(float)  # some are equal
    values = rng.standard_normal(n)
    values[4::9], values[7::9], values[8::9] = np.inf, np.nan, -np.inf
    x = np.concatenate([rng.uniform(-2, 32, 9000), points, [np.nan, np.inf, -np.inf]])
    expected = np.interp(x, points, values, **ends)
    expected[np.isnan(x)] = np.nan  # also of one point
    exact = ~np.isnan(expected) | np.isnan(x)  # NumPy has NaN beside some infinities
    for f in (gg.interp, gg.function(gg.interp)):
        with gg.GradientTape() as tape:
            tape.watch(t := gg.asarray(x))
            y = f(t, points, values, **ends)
        np.testing.assert_allclose(y.numpy()[exact], expected[exact], 1e-12, 1e-12)
        assert tape.gradient(y, t).shape == x.shape
