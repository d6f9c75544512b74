"""Pooling kernels, run on the CPU by the shim, match the formulas of their ops."""

import numpy as np
import pytest
from needs import needs_nvrtc, needs_shim

import gpugrad as gg
from gpugrad.core.backend import NUMPY, as_dtype
from gpugrad.kernels.by_hand import windows
from gpugrad.kernels.runtime import launch
from gpugrad.testing.cuda import nvrtc, shim

pytestmark = needs_shim

FLOATS = {"float64": 1e-12, "float32": 2e-5, "float16": 4e-3, "bfloat16": 3e-2}
POOLS = [  # shape, size, step, dilation, padding
    ((7,), (3,), (2,), (1,), ((1, 1),)), ((2, 9), (3,), (1,), (2,), ((2, 0),)),
    ((2, 3, 8, 9), (2, 2), (2, 2), (1, 1), ((0, 0), (0, 0))),
    ((3, 7, 6), (3, 2), (1, 2), (1, 2), ((1, 1), (0, 1))),
    ((2, 5, 4, 6), (2, 3, 2), (2, 1, 3), (2, 1, 1), ((1, 0), (1, 1), (0, 1))),
    ((4, 5), (1, 1), (3, 2), (1, 1), ((0, 0), (0, 0))),
    ((300, 2), (2,), (2,), (1,), ((0, 0),)),
]  # fmt: skip


def ran(name, *arrays, schedule="round robin", **params):
    with shim.running(schedule):
        return getattr(windows, name)(NUMPY, *arrays, **params)


def formula(name, *arrays, **params):
    return gg.OPS[name].bare(NUMPY)(*arrays, **params)


def pool(size, step, dilation, padding):
    return {"size": size, "step": step, "dilation": dilation, "padding": padding}


def drawn(shape, dtype="float64", ties=False):
    rng = np.random.default_rng(0)
    x = rng.integers(0, 3, shape) if ties else rng.normal(size=shape)
    return x.astype(as_dtype(dtype))


@pytest.mark.parametrize("ties", [False, True])
@pytest.mark.parametrize(("shape", "size", "step", "dilation", "padding"), POOLS)
@pytest.mark.parametrize("dtype", FLOATS)
def test_max_pooling_and_its_gradient(dtype, shape, size, step, dilation, padding, ties):
    x, params = drawn(shape, dtype, ties), pool(size, step, dilation, padding)
    out, desired = ran("window_max", x, **params), formula("window_max", x, **params)
    np.testing.assert_array_equal(out, desired)
    where = ran("window_argmax", x, out, **params)
    np.testing.assert_array_equal(where, formula("window_argmax", x, out, **params))
    g, lengths = drawn(out.shape, dtype), shape[len(shape) - len(size) :]
    for schedule in shim.SCHEDULES:
        actual = ran("window_scatter", g, where, lengths=lengths, schedule=schedule, **params)
        desired = formula("window_scatter", g, where, lengths=lengths, **params)
        assert actual.dtype == g.dtype
        tolerance = FLOATS[dtype]
        np.testing.assert_allclose(
            actual.astype(float), desired.astype(float), rtol=tolerance, atol=tolerance
        )


def test_nan_is_the_largest_and_gets_the_gradient():
    x = np.array([1.0, np.nan, 3.0, np.inf, 2.0, 0.0])
    params = pool((2,), (2,), (1,), ((0, 0),))
    out = ran("window_max", x, **params)
    np.testing.assert_array_equal(out, [np.nan, np.inf, 2.0])
    np.testing.assert_array_equal(ran("window_argmax", x, out, **params), [1, 3, 4])


@pytest.mark.parametrize("dtype", ["int32", "int64"])
def test_max_pooling_of_integers(dtype):
    x, params = drawn((3, 9), dtype, ties=True) - 5, pool((3,), (2,), (1,), ((1, 1),))
    np.testing.assert_array_equal(
        ran("window_max", x, **params), formula("window_max", x, **params)
    )


def test_scatter_ignores_out_of_bounds_indices():
    params = pool((2,), (1,), (1,), ((0, 0),))
    where = np.array([-1, 7, 2])
    actual = ran("window_scatter", np.ones(3), where, lengths=(4,), **params)
    np.testing.assert_array_equal(actual, [0, 0, 1, 0])


@pytest.mark.parametrize("shape", [(17,), (3, 17), (17, 5), (2, 17, 33)])
@pytest.mark.parametrize(("size", "step"), [(1, 1), (3, 1), (2, 2), (3, 2), (2, 5), (17, 1)])
@pytest.mark.parametrize("dtype", FLOATS)
def test_sums_of_windows_and_their_adjoint(dtype, size, step, shape):
    axis = shape.index(17)
    x, tolerance = drawn(shape, dtype), FLOATS[dtype]
    actual = ran("window_sum", x, size, axis=axis, step=step)
    desired = formula("window_sum", x, size, axis=axis, step=step)
    assert actual.dtype == desired.dtype
    np.testing.assert_allclose(
        actual.astype(float), desired.astype(float), rtol=tolerance, atol=9 * tolerance
    )
    g = np.broadcast_to(drawn(actual.shape, dtype)[..., None], (*actual.shape, size))
    back = ran("overlap_add", g, axis=axis, length=17, step=step)
    desired = formula("overlap_add", g, axis=axis, length=17, step=step)
    np.testing.assert_allclose(
        back.astype(float), desired.astype(float), rtol=tolerance, atol=9 * tolerance
    )


@pytest.mark.parametrize(
    ("step", "dilation", "length"), [(1, 1, 7), (2, 1, 12), (2, 3, 16), (5, 1, 24)]
)
def test_overlapping_windows_are_added(step, dilation, length):
    x = drawn((2, 5, 3, 3))
    for schedule in shim.SCHEDULES:
        params = {"axis": 1, "length": length, "step": step, "dilation": dilation}
        actual = ran("overlap_add", x, schedule=schedule, **params)
        np.testing.assert_allclose(actual, formula("overlap_add", x, **params), rtol=1e-12)


def test_empty_arrays_and_strides():
    params = pool((2,), (1,), (1,), ((0, 0),))
    assert ran("window_max", np.ones((0, 3)), **params).shape == (0, 2)
    x = drawn((9, 8)).T[::-1, 1:]
    np.testing.assert_array_equal(
        ran("window_max", x, **params), formula("window_max", x, **params)
    )
    np.testing.assert_allclose(ran("window_sum", x, 2), formula("window_sum", x, 2))


def test_unsupported_arguments_are_declined():
    params = pool((3,), (1,), (1,), ((0, 0),))
    assert ran("window_max", np.ones(2), **params) is NotImplemented
    assert ran("window_max", np.ones(3, np.int8), **params) is NotImplemented
    assert ran("window_argmax", np.ones(3), np.ones(2), **params) is NotImplemented
    four = pool((1,) * 4, (1,) * 4, (1,) * 4, ((0, 0),) * 4)
    assert ran("window_max", np.ones((2, 2, 2, 2)), **four) is NotImplemented
    assert ran("window_sum", np.ones(2), 3) is NotImplemented
    assert ran("overlap_add", np.ones((3, 2)), axis=0, length=3) is NotImplemented


@needs_nvrtc
@pytest.mark.parametrize("kernel", ["window_max", "window_argmax", "window_scatter"])
def test_kernels_do_not_spill(kernel):
    compiled = nvrtc.compile_for("sm_90", launch.full_source("windows.cu"), f"{kernel}<double>")
    assert compiled.spilled == 0
