"""Kernels of cumulative ops and recurrences, run on the CPU by the shim."""

import numpy as np
import pytest
from comparing import near_largest
from needs import needs_nvrtc, needs_shim

from gpugrad.core.backend import NUMPY, as_dtype
from gpugrad.kernels.by_hand import scan
from gpugrad.kernels.runtime import launch
from gpugrad.testing.cuda import nvrtc, shim

pytestmark = needs_shim

FLOATS = {"float64": 1e-12, "float32": 3e-5, "float16": 4e-3, "bfloat16": 3e-2}
SHAPES = [
    ((1,), 0), ((7,), 0), ((255,), 0), ((257,), 0), ((3, 5), 1), ((40, 9), 1), ((3, 300), -1),
    ((2, 2100), 1), ((5, 3), 0), ((4, 33, 3), 1), ((300, 40), 0), ((2, 3, 4, 5), -2),
]  # fmt: skip
LONG = [((20000,), 0), ((2, 9001), 1), ((3000, 3), 0), ((1, 2500, 33), 1)]  # in several parts

FUNCTIONS = {
    "cumulative_sum": np.cumsum, "cumulative_prod": np.cumprod,
    "cumulative_max": np.maximum.accumulate, "cumulative_min": np.minimum.accumulate,
    "cumulative_logsumexp": np.logaddexp.accumulate,
}  # fmt: skip


def drawn(shape, dtype="float64", seed=0):
    return np.random.default_rng(seed).normal(size=shape).astype(as_dtype(dtype))


def ran(name, *arrays, schedule="round robin", **params):
    with shim.running(schedule):
        return getattr(scan, name)(NUMPY, *arrays, **params)


def near_one(shape, dtype):
    """Factors whose long products stay finite."""
    return (1 + 0.01 * drawn(shape)).astype(as_dtype(dtype))


@pytest.mark.parametrize(("shape", "axis"), SHAPES)
@pytest.mark.parametrize("dtype", FLOATS)
@pytest.mark.parametrize("name", FUNCTIONS)
def test_cumulative_ops_along_every_axis(name, dtype, shape, axis):
    x = near_one(shape, dtype) if name == "cumulative_prod" else drawn(shape, dtype)
    actual = ran(name, x, axis=axis)
    assert actual.dtype == x.dtype
    near_largest(actual, FUNCTIONS[name](x.astype(float), axis), FLOATS[dtype])


@pytest.mark.parametrize("schedule", shim.SCHEDULES)
@pytest.mark.parametrize(("shape", "axis"), LONG)
@pytest.mark.parametrize("name", FUNCTIONS)
def test_long_axes_are_scanned_in_parts(name, shape, axis, schedule):
    x = near_one(shape, "float64") if name == "cumulative_prod" else drawn(shape)
    actual = ran(name, x, axis=axis, schedule=schedule)
    near_largest(actual, FUNCTIONS[name](x, axis), FLOATS["float64"])


@pytest.mark.parametrize(("shape", "axis"), SHAPES + LONG)
def test_suffix_sums(shape, axis):
    x = drawn(shape)
    desired = np.flip(np.cumsum(np.flip(x, axis), axis), axis)
    near_largest(ran("suffix_sum", x, axis=axis), desired, FLOATS["float64"])


@pytest.mark.parametrize(("shape", "axis"), SHAPES + LONG)
@pytest.mark.parametrize("name", ["cumulative_sum", "cumulative_prod"])
def test_include_initial_matches_numpy(name, shape, axis):
    x = near_one(shape, "float32")
    actual = ran(name, x, axis=axis, include_initial=True)
    desired = getattr(np, name)(x.astype(float), axis=axis, include_initial=True)
    assert actual.shape == desired.shape
    near_largest(actual, desired, FLOATS["float32"])


def test_results_are_bitwise_equal_in_every_schedule():
    x = drawn((20001,), "float32") * 1e6
    results = {ran("cumulative_sum", x, axis=0, schedule=s).tobytes() for s in shim.SCHEDULES}
    assert len(results) == 1


@pytest.mark.parametrize("dtype", ["int8", "int32", "int64", "uint8", "uint32", "uint64", "bool"])
@pytest.mark.parametrize("name", ["cumulative_sum", "cumulative_prod"])
def test_integers_are_exact_and_have_numpys_dtype(name, dtype):
    x = np.random.default_rng(0).integers(0, 2 if dtype == "bool" else 100, (3, 70)).astype(dtype)
    actual, desired = ran(name, x, axis=1), getattr(np, name)(x, axis=1)
    assert actual.dtype == desired.dtype
    np.testing.assert_array_equal(actual, desired)


@pytest.mark.parametrize("dtype", ["int32", "int64"])
@pytest.mark.parametrize("name", ["cumulative_max", "cumulative_min"])
def test_extremes_of_integers(name, dtype):
    x = np.random.default_rng(0).integers(-90, 90, (3, 70)).astype(dtype)
    np.testing.assert_array_equal(ran(name, x, axis=0), FUNCTIONS[name](x, 0))


@pytest.mark.parametrize(
    ("dtype", "asked"),
    [("float32", "float64"), ("float16", "float32"), ("int32", "float32"), ("int64", "int32"),
     ("float32", "complex64")],
)  # fmt: skip
def test_sums_in_another_dtype(dtype, asked):
    x = (drawn(50) * 10).astype(dtype)
    actual, desired = ran("cumulative_sum", x, dtype=asked), np.cumsum(x, dtype=asked)
    assert actual.dtype == desired.dtype
    np.testing.assert_allclose(actual, desired, rtol=1e-5, atol=1e-4)


@pytest.mark.parametrize(("shape", "axis"), [((9,), 0), ((3, 70), 1), ((3, 70), 0)])
def test_complex_sums(shape, axis):
    x = drawn(shape) + 1j * drawn(shape, seed=1)
    np.testing.assert_allclose(ran("cumulative_sum", x, axis=axis), np.cumsum(x, axis), rtol=1e-12)


def test_sums_of_16_bit_floats_do_not_stop_growing():
    x = np.ones(3000, np.float16)
    assert ran("cumulative_sum", x)[-1] == 3000  # summed in float16 it would stop at 2048


@pytest.mark.parametrize("name", FUNCTIONS)
def test_nan_fills_the_rest_of_the_axis(name):
    x = np.abs(drawn(600))
    x[301] = np.nan
    actual = ran(name, x)
    assert not np.isnan(actual[:301]).any()
    assert np.isnan(actual[301:]).all()


def test_logsumexp_of_infinities():
    x = np.array([-np.inf, -np.inf, 1.0, 1000.0, -np.inf, np.inf, 3.0])
    np.testing.assert_allclose(
        ran("cumulative_logsumexp", x), [-np.inf, -np.inf, 1, 1000, 1000, np.inf, np.inf]
    )


@pytest.mark.parametrize("name", FUNCTIONS)
def test_strided_and_unaligned_arrays(name):
    base = np.abs(drawn(1025))
    for x in (base[1:], base[::-1], base[1:].reshape(4, 256).T, base[1:].reshape(2, 16, 32)[:, 3:]):
        np.testing.assert_allclose(ran(name, x, axis=0), FUNCTIONS[name](x, 0), rtol=1e-9)


def test_empty_arrays_and_unsupported_arguments():
    assert ran("cumulative_sum", np.ones((0, 3)), axis=0).shape == (0, 3)
    assert ran("cumulative_sum", np.ones((0, 3)), axis=0, include_initial=True) is NotImplemented
    assert ran("cumulative_sum", np.ones((2, 3))) is NotImplemented
    assert ran("cumulative_sum", np.ones(3), axis=1) is NotImplemented
    assert ran("cumulative_sum", np.ones(3), dtype="int64") is NotImplemented
    assert ran("cumulative_max", np.ones(3, np.uint32)) is NotImplemented
    assert ran("cumulative_prod", np.ones(3, complex)) is NotImplemented


def steps(a, b, axis, reverse):
    a, b = (np.moveaxis(v.astype(float), axis, 0) for v in (a, b))
    out, last = np.empty_like(b), None
    for k in range(len(b))[:: -1 if reverse else 1]:
        out[k] = last = b[k] if last is None else b[k] + a[k] * last
    return np.moveaxis(out, 0, axis)


@pytest.mark.parametrize("reverse", [False, True])
@pytest.mark.parametrize(("shape", "axis"), [*SHAPES, ((70, 33), 1), ((3, 64), 1), ((9, 130), 0)])
@pytest.mark.parametrize("dtype", FLOATS)
def test_recurrences_along_every_axis(dtype, shape, axis, reverse):
    a, b = 0.7 * drawn(shape, dtype, 1), drawn(shape, dtype, 2)
    a = a.astype(b.dtype)
    actual = ran("recurrence", a, b, axis=axis, reverse=reverse)
    assert actual.dtype == b.dtype
    near_largest(actual, steps(a, b, axis, reverse), FLOATS[dtype])


@pytest.mark.parametrize("schedule", shim.SCHEDULES)
@pytest.mark.parametrize("shape", [(35, 70), (70,)])
def test_recurrences_in_every_schedule(shape, schedule):
    a, b = 0.5 * drawn(shape, seed=1), drawn(shape, seed=2)
    for axis in range(len(shape)):
        actual = ran("recurrence", a, b, axis=axis, schedule=schedule)
        near_largest(actual, steps(a, b, axis, False), FLOATS["float64"])


def test_large_factors_beside_zeros_do_not_overflow():
    a, b = np.full((2, 100), 1e30, np.float32), np.zeros((2, 100), np.float32)
    a[:, 0], b[:, -1] = np.inf, 1  # the first factor is never used
    for x, y, axis in ((a, b, 1), (a.T, b.T, 0)):
        actual = ran("recurrence", x, y, axis=axis)
        np.testing.assert_array_equal(actual, y)


def test_unsupported_recurrences_are_declined():
    one = np.ones(3)
    assert ran("recurrence", one, np.ones(4), axis=0) is NotImplemented
    assert ran("recurrence", one, one.astype(np.float32), axis=0) is NotImplemented
    assert ran("recurrence", one * 1j, one * 1j, axis=0) is NotImplemented
    assert ran("recurrence", one, one, axis=1) is NotImplemented
    assert ran("recurrence", np.ones((2, 0)), np.ones((2, 0)), axis=1).shape == (2, 0)


@needs_nvrtc
@pytest.mark.parametrize("name", scan.VECTOR)
def test_kernels_read_16_bytes_and_do_not_spill(name):
    kernel = nvrtc.compile_for("sm_90", launch.full_source("scan.cu"), name)
    assert kernel.spilled == 0
    assert "ld.global.v4" in kernel.ptx or "ld.global.v2" in kernel.ptx
