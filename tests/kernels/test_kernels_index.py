"""Scatter and gather kernels, in any order and in one order, run on the CPU by the shim."""

import numpy as np
import pytest
from needs import needs_nvrtc, needs_shim
from taping import tape_gradient

import gpugrad as gg
from gpugrad.core.backend import NUMPY, as_dtype
from gpugrad.kernels.by_hand import scatter
from gpugrad.kernels.runtime import launch
from gpugrad.testing.cuda import nvrtc, shim

pytestmark = needs_shim

FLOATS = {"float64": 1e-12, "float32": 2e-5, "float16": 4e-3, "bfloat16": 3e-2}
DTYPES = (*FLOATS, "complex64", "int32", "int64", "uint32")


@pytest.fixture(params=[False, True], ids=["any order", "one order"])
def order(request):
    gg.set_deterministic(request.param)
    yield request.param
    gg.set_deterministic(False)


@pytest.fixture
def in_order():
    gg.set_deterministic()
    yield
    gg.set_deterministic(False)


def drawn(shape, dtype, rng):
    dtype, values = as_dtype(dtype), rng.normal(size=shape)
    if dtype.kind in "iu":
        values = (values * 10).astype(np.int64)
    elif dtype.kind == "c":
        values = values + 1j * rng.normal(size=shape)
    return values.astype(dtype)


def wide(x):
    return x if x.dtype.kind in "iu" else x.astype(np.complex128 if x.dtype.kind == "c" else float)


def added(values, indices, shape):
    """The sums, in the widest type."""
    out = np.zeros(shape, wide(values).dtype)
    np.add.at(out, indices, wide(values))
    return out


def assert_near(actual, desired, dtype):
    assert actual.dtype == as_dtype(dtype)
    tolerance = FLOATS.get(dtype, 2e-5)
    np.testing.assert_allclose(wide(actual), desired, rtol=tolerance, atol=4 * tolerance)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("width", [(), (3,), (8,), (5, 8)])
def test_scattered_rows_are_summed(dtype, width, order):
    rng = np.random.default_rng(0)
    indices = rng.integers(-7, 7, 90).astype(np.int32)
    values = drawn((90, *width), dtype, rng)
    desired = added(values, indices, (7, *width))
    for schedule in shim.SCHEDULES:
        with shim.running(schedule):
            actual = scatter.scatter_rows(NUMPY, values, indices, shape=(7, *width))
        assert_near(actual, desired, dtype)


@pytest.mark.parametrize("repeats", [1, 15, 16, 17, 33, 700])
@pytest.mark.parametrize("width", [1, 4, 33])
def test_indices_repeated_any_number_of_times_are_summed(repeats, width, in_order):
    rng = np.random.default_rng(repeats)
    indices = rng.permutation(np.repeat(np.arange(720 // repeats), repeats))
    values = drawn((indices.size, width), "float64", rng)
    shape = (int(indices.max()) + 1, width)
    for schedule in shim.SCHEDULES:
        with shim.running(schedule):
            actual = scatter.scatter_rows(NUMPY, values, indices, shape=shape)
        assert_near(actual, added(values, indices, shape), "float64")


def test_one_order_is_bitwise_equal_in_every_schedule(in_order):
    rng = np.random.default_rng(1)
    values, indices = drawn((500, 3), "float32", rng) * 1e6, rng.integers(0, 3, 500)
    results = []
    for schedule in shim.SCHEDULES:
        with shim.running(schedule):
            results.append(scatter.scatter_rows(NUMPY, values, indices, shape=(3, 3)).tobytes())
    assert len(set(results)) == 1


def test_any_order_differs_between_schedules():
    rng = np.random.default_rng(1)
    values, indices = drawn(4000, "float32", rng) * 1e6, np.zeros(4000, np.int64)
    results = []
    for schedule in shim.SCHEDULES:
        with shim.running(schedule):
            results.append(scatter.scatter_rows(NUMPY, values, indices, shape=(1,)).tobytes())
    assert len(set(results)) > 1


def test_large_16_bit_results_need_no_float32_zeros(launches_of):
    names = launches_of(scatter)
    values, indices = np.ones((3, 8), np.float16), np.array([90, 5, 90])
    with shim.running():
        actual = scatter.scatter_rows(NUMPY, values, indices, shape=(100, 8))
    assert "add_sorted<__half, 8>" in names
    assert_near(actual, added(values, indices, (100, 8)), "float16")


def test_sums_of_16_bit_floats_round_once():
    values = np.full(300, 1.0, np.float16)
    values[0] = 2048  # adding 1 to it in float16 changes nothing
    for on in (False, True):
        gg.set_deterministic(on)
        with shim.running():
            actual = scatter.scatter_rows(NUMPY, values, np.zeros(300, np.int64), shape=(1,))
        gg.set_deterministic(False)
        assert actual[0] == np.float16(2347)


@pytest.mark.parametrize("bad", [7, -8, 2**40])
def test_out_of_bounds_rows_are_not_written_but_declined(bad, order):
    indices = np.array([0, bad, 3])
    with shim.running():  # checks the memory around every array
        result = scatter.scatter_rows(NUMPY, np.ones((3, 4)), indices, shape=(7, 4))
    assert result is NotImplemented


def test_unaligned_and_strided_values_are_read(order):
    rng = np.random.default_rng(2)
    indices = rng.integers(0, 4, 20)
    base = drawn(20 * 8 + 1, "float32", rng)
    for values in (
        base[1:].reshape(20, 8),
        base[:-1].reshape(8, 20).T,
        base[-2::-1].reshape(20, 8),
    ):
        with shim.running():
            actual = scatter.scatter_rows(NUMPY, values, indices, shape=(4, 8))
        assert_near(actual, added(values, indices, (4, 8)), "float32")


def test_nan_and_infinity_stay_in_their_rows(order):
    values, indices = np.array([np.nan, 1.0, np.inf, 2.0]), np.array([0, 1, 2, 1])
    with shim.running():
        actual = scatter.scatter_rows(NUMPY, values, indices, shape=(4,))
    np.testing.assert_array_equal(actual, [np.nan, 3.0, np.inf, 0.0])


@pytest.mark.parametrize(
    ("values", "indices", "shape"),
    [
        (np.ones((0, 3)), np.zeros(0, np.int64), (2, 3)),
        (np.ones((2, 3)), np.zeros(2), (2, 3)),
        (np.ones((2, 3), bool), np.zeros(2, np.int64), (2, 3)),
        (np.ones((2, 3)), np.zeros(2, np.int64), (2, 4)),
    ],
)
def test_unsupported_arguments_are_declined(values, indices, shape):
    assert scatter.scatter_rows(NUMPY, values, indices, shape=shape) is NotImplemented


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("axis", [0, 1, -1])
def test_elements_are_scattered_along_an_axis(dtype, axis, order):
    rng = np.random.default_rng(3)
    shape = (4, 5, 6)
    lengths = list(shape)
    lengths[axis] = 9
    indices = rng.integers(-shape[axis], shape[axis], lengths)
    values = drawn(lengths, dtype, rng)
    at = list(np.indices(lengths))
    at[axis] = indices
    desired = added(values, tuple(at), shape)
    for schedule in shim.SCHEDULES:
        with shim.running(schedule):
            actual = scatter.scatter_along_axis(NUMPY, values, indices, axis=axis, shape=shape)
        assert_near(actual, desired, dtype)


@pytest.mark.parametrize("dtype", DTYPES)
def test_unique_indices_are_written_without_sums(dtype):
    rng = np.random.default_rng(4)
    indices = np.argsort(rng.normal(size=(3, 50, 2)), axis=1)[:, :20]
    values = drawn((3, 20, 2), dtype, rng)
    desired = np.zeros((3, 50, 2), values.dtype)
    np.put_along_axis(desired, indices, values, 1)
    with shim.running():
        actual = scatter.scatter_along_axis(
            NUMPY, values, indices, axis=1, shape=(3, 50, 2), unique=True
        )
    np.testing.assert_array_equal(actual, desired)


def test_out_of_bounds_indices_along_an_axis_are_not_written(order):
    for bad in (5, -6):
        with shim.running():
            result = scatter.scatter_along_axis(
                NUMPY, np.ones((2, 2)), np.array([[0, bad], [1, 1]]), axis=1, shape=(2, 5)
            )
        assert result is NotImplemented


@pytest.mark.parametrize(
    "index",
    [
        np.array([3, -1, 3]), (np.array([[0, 2], [2, 2]]),), (slice(None), np.array([4, 4, 0])),
        (slice(None), slice(None), np.array([[1], [1]], np.int16)),
    ],
)  # fmt: skip
def test_slices_are_added_at_an_index(index, order):
    g = np.random.default_rng(5).normal(size=np.zeros((4, 5, 6))[index].shape)
    with shim.running():
        actual = scatter.scatter_at(NUMPY, g, index=index, shape=(4, 5, 6))
    assert_near(actual, added(g, index, (4, 5, 6)), "float64")


@pytest.mark.parametrize(
    "index", [0, slice(2), None, (0, np.array([1])), (np.array([0]), np.array([1])),
              np.array([True, False]), [0, 1], (Ellipsis, np.array([0])), ()]
)  # fmt: skip
def test_other_indices_are_declined(index):
    g = np.zeros((2, 3))
    assert scatter.scatter_at(NUMPY, g, index=index, shape=(2, 3)) is NotImplemented


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("axis", [0, 1, -1])
def test_elements_along_an_axis_are_read(dtype, axis):
    rng = np.random.default_rng(0)
    x = drawn((4, 5, 3), dtype, rng)
    shape = [4, 5, 3]
    shape[axis] = 7
    indices = rng.integers(-x.shape[axis], x.shape[axis], shape)
    for index in (indices, indices.take([0], axis=1 if axis == 0 else 0).astype(np.int32)):
        with shim.running():
            actual = scatter.take_along_axis(NUMPY, x, index, axis=axis)
        full = [index.shape[k] if k == axis % 3 else n for k, n in enumerate(x.shape)]
        wanted = np.broadcast_to(index, full)
        np.testing.assert_array_equal(wide(actual), wide(np.take_along_axis(x, wanted, axis)))
        assert actual.dtype == x.dtype


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("axis", [0, 1, -1])
def test_slices_of_an_axis_are_read(dtype, axis):
    rng = np.random.default_rng(0)
    x = drawn((4, 5, 8), dtype, rng)
    indices = rng.integers(0, 4, (2, 3))
    for schedule in shim.SCHEDULES:
        with shim.running(schedule):
            results = [
                scatter.take(NUMPY, x, indices - 4, axis=axis),
                scatter.gather(NUMPY, x, indices, axis=axis),
                scatter.getitem(NUMPY, x, index=(*[slice(None)] * (axis % 3), indices)),
            ]
        for a, of in zip(results, (indices - 4, indices, indices), strict=True):
            np.testing.assert_array_equal(wide(a), wide(np.take(x, of, axis)))
    with shim.running():
        assert scatter.gather(NUMPY, x, indices - 4, axis=axis) is NotImplemented


@pytest.mark.parametrize("lead", [0, 1])
def test_several_index_arrays_are_combined(lead):
    rng = np.random.default_rng(0)
    x = rng.normal(size=(3, 4, 5, 2))
    arrays = [rng.integers(-n, n, s) for n, s in zip(x.shape[lead:], ((3, 1), (6,)), strict=False)]
    index = (*[slice(None)] * lead, *arrays)
    with shim.running():
        read = scatter.getitem(NUMPY, x, index=index)
        np.testing.assert_array_equal(read, x[index])
        sums = scatter.scatter_at(NUMPY, read, index=index, shape=x.shape)
    np.testing.assert_allclose(sums, added(read, index, x.shape), 1e-12)
    arrays[0][1] = x.shape[lead]  # out of bounds, though its offset lies in the next row
    with shim.running():
        assert scatter.getitem(NUMPY, x, index=index) is NotImplemented


def test_results_are_not_deterministic_by_default():
    assert gg.deterministic() is False


def test_deterministic_setting_applies_to_all_threads(in_order):
    import threading

    seen = []
    thread = threading.Thread(target=lambda: seen.append(gg.deterministic()))
    thread.start()
    thread.join()
    assert seen == [True]


@pytest.mark.parametrize("index", [([0, 1, 1], [2, -1, 2]), (slice(None), [1, 1]), [0, 1, 0]])
def test_gradients_on_a_device_match_the_cpu_in_one_order(index, in_order, cuda):
    grads = []
    for device in ("cpu", cuda):
        x = gg.constant(np.arange(6.0).reshape(2, 3), device=device)
        grads.append(tape_gradient(lambda x: gg.sum(gg.square(x[index])), x).numpy())
    np.testing.assert_allclose(*grads, rtol=1e-12)


@needs_nvrtc
@pytest.mark.parametrize("name", scatter.VECTOR)
@pytest.mark.thin(3)
def test_kernels_read_16_bytes_and_do_not_spill(name):
    kernel = nvrtc.compile_for("sm_90", launch.full_source("scatter.cu"), name)
    assert kernel.spilled == 0
    assert "ld.global.v4" in kernel.ptx or "ld.global.v2" in kernel.ptx
