"""Convolution's kernels on both engines and the direct ones, run on the CPU by the shim."""

import numpy as np
import pytest
from comparing import near_largest
from needs import each_architecture, needs_nvrtc, needs_shim

import gpugrad as gg
from gpugrad.core.backend import NUMPY, as_dtype
from gpugrad.kernels.by_hand import convolution as kernels
from gpugrad.kernels.runtime import launch
from gpugrad.testing.cuda import nvrtc, shim

pytestmark = needs_shim

TOLERANCES = {"float64": 1e-11, "float32": 2e-5, "float16": 4e-3, "bfloat16": 3e-2}
PLAIN = {"stride": 1, "padding": 0, "dilation": 1, "groups": 1}


def drawn(rng, shape, dtype):
    return rng.normal(size=shape).astype(as_dtype(dtype))


def assert_near(actual, desired, dtype):
    assert actual.dtype == desired.dtype
    near_largest(actual, desired, TOLERANCES[dtype])


def calls(x_shape, w_shape, dtype, params):
    """The three ops on arrays of these shapes: (op, arrays, keywords)."""
    rng, params = np.random.default_rng(0), PLAIN | params
    x, w = drawn(rng, x_shape, dtype), drawn(rng, w_shape, dtype)
    g = drawn(rng, gg.OPS["convolution"].bare(NUMPY)(x, w, **params).shape, dtype)
    yield gg.OPS["convolution"], (x, w), params
    yield gg.OPS["convolution_input_grad"], (g, w), {"shape": x_shape[2:], **params}
    yield gg.OPS["convolution_weight_grad"], (x, g), {"kernel": w_shape[2:], **params}


def check(x_shape, w_shape, dtype, schedules=shim.SCHEDULES, **params):
    for op, arrays, keywords in calls(x_shape, w_shape, dtype, params):
        desired = op.bare(NUMPY)(*arrays, **keywords)
        for schedule in schedules:
            with shim.running(schedule):
                actual = op.cuda(NUMPY, *arrays, **keywords)
            assert actual is not NotImplemented
            assert_near(actual, desired, dtype)


@pytest.fixture
def noted(launches_of):
    """The names of the kernels that are launched."""
    return launches_of(kernels)


CASES = {
    "1d": ((2, 5, 50), (6, 5, 3), {"padding": 1}),
    "2d": ((2, 7, 9, 8), (17, 7, 3, 2), {"stride": (2, 1), "padding": ((1, 0), (0, 2))}),
    "3d": ((1, 6, 4, 5, 4), (5, 6, 2, 3, 2), {"dilation": (1, 2, 1), "padding": "same"}),
    "groups": ((2, 10, 6, 6), (14, 5, 3, 3), {"groups": 2, "stride": 3, "padding": 2}),
}


@pytest.mark.parametrize("case", CASES)
@pytest.mark.parametrize(
    ("architecture", "dtype"),
    [("sm_90", "float64"), ("sm_90", "float32"), ("sm_75", "float16"), ("sm_90", "bfloat16")],
)
def test_products_of_every_geometry(architecture, dtype, case, monkeypatch):
    monkeypatch.setattr(kernels, "architecture", lambda: architecture)
    x, w, params = CASES[case]
    check(x, w, dtype, shim.SCHEDULES if case == "2d" else shim.SCHEDULES[:1], **params)


@pytest.mark.parametrize("dtype", ["float32", "float16"])
def test_more_rows_and_columns_than_one_tile(dtype, noted):
    check((2, 130, 9, 9), (70, 130, 1, 1), dtype, shim.SCHEDULES[1:2])
    assert sum("convolution_product" in name for name in noted) == 3


@pytest.mark.parametrize("dtype", ["float64", "bfloat16"])
def test_split_depth_is_summed_in_order(dtype, noted):
    check((3, 5, 20, 20), (6, 5, 3, 3), dtype)
    assert f"convolution_sum<{launch.type_name(as_dtype(dtype))}>" in noted


DEPTHWISE = {
    "depthwise": ((2, 6, 7, 6), (6, 1, 3, 3), {"groups": 6, "padding": 1}),
    "two filters": ((2, 3, 9), (6, 1, 4), {"groups": 3, "stride": 2, "dilation": 2}),
    "few channels": ((2, 3, 5, 4, 3), (4, 3, 2, 2, 1), {"padding": "same"}),
}


@pytest.mark.parametrize("case", DEPTHWISE)
@pytest.mark.parametrize("dtype", TOLERANCES)
def test_few_channels_run_the_direct_kernels(dtype, case, noted):
    x, w, params = DEPTHWISE[case]
    check(x, w, dtype, **params)
    assert all("direct" in name for name in noted)


def test_results_are_bitwise_equal_in_every_schedule():
    for op, arrays, keywords in calls((3, 5, 20, 20), (6, 5, 3, 3), "float32", {}):
        results = set()
        for schedule in shim.SCHEDULES:
            with shim.running(schedule):
                results.add(op.cuda(NUMPY, *arrays, **keywords).tobytes())
        assert len(results) == 1


def test_strided_views_match_the_formula():
    rng = np.random.default_rng(0)
    x, w = rng.normal(size=(5, 4, 8, 2)).T, rng.normal(size=(6, 8, 6))[:, ::-1, ::2]
    x = x[:, :, 0]
    desired = gg.OPS["convolution"].bare(NUMPY)(x, w)
    with shim.running():
        actual = gg.OPS["convolution"].cuda(NUMPY, x, w, **PLAIN)
    assert_near(actual, desired, "float64")


@pytest.mark.parametrize("bad", [np.nan, np.inf])
def test_nan_and_infinity_reach_only_their_windows(bad):
    rng = np.random.default_rng(0)
    x, w = rng.normal(size=(1, 2, 20)), rng.normal(size=(6, 2, 3))
    x[0, 1, 7] = bad
    desired = gg.OPS["convolution"].bare(NUMPY)(x, w)
    with shim.running():
        actual = gg.OPS["convolution"].cuda(NUMPY, x, w, **PLAIN)
    np.testing.assert_array_equal(np.isfinite(actual), np.isfinite(desired))
    assert not np.isfinite(actual[:, :, 5:8]).any()


@pytest.mark.parametrize("x_shape", [(0, 2, 5), (2, 0, 5)], ids=str)
def test_empty_batch_or_channels_give_zeros_without_a_launch(x_shape, noted):
    check(x_shape, (6, x_shape[1], 3), "float32", shim.SCHEDULES[:1])
    assert not noted


def test_unsupported_arguments_are_declined():
    op = gg.OPS["convolution"]
    x, w = np.ones((1, 2, 5)), np.ones((3, 2, 2))
    four = np.ones((1, 1, 2, 2, 2, 2))
    for args in (
        (x + 0j, w + 0j),
        (x, w.astype("f")),
        (x.astype(int), w.astype(int)),
        (four, four),
    ):
        with shim.running():
            assert op.cuda(NUMPY, *args, **PLAIN) is NotImplemented
    with pytest.raises(gg.errors.ShapeError, match="convolution"), shim.running():
        op.cuda(NUMPY, x, w[:, :1], **PLAIN)


def test_second_order_gradients_on_a_device_run_the_kernels(cuda, noted):
    grads = []
    for where in ("cpu", cuda):
        rng = np.random.default_rng(0)
        arrays = [rng.normal(size=s) for s in ((2, 5, 6, 6), (6, 5, 3, 3))]
        x, w = (gg.Variable(gg.constant(a, device=where)) for a in arrays)
        with gg.GradientTape() as outer:
            with gg.GradientTape() as tape:
                y = gg.nn.conv2d(x, w, padding=1)
                total = gg.sum(y * y * y)
            gx, gw = tape.gradient(total, [x, w])
            moved = gg.sum(gx * gx) + gg.sum(gw * gw)
        grads.append([g.numpy() for g in outer.gradient(moved, [x, w])])
        assert bool(noted) == (where == cuda)
    for there, here in zip(*grads[::-1], strict=True):
        assert_near(there, here, "float64")


@pytest.mark.slow  # half a minute: ci/compile_kernels compiles them as well
@needs_nvrtc
@each_architecture
def test_kernels_compile_without_spills(architecture):
    since = "sm_75" if architecture == "sm_75" else "sm_80"
    names = [name for name, on in kernels.ARCHITECTURES.items() if since in on]
    compiled = nvrtc.compile_all(architecture, launch.full_source("convolution.cu"), names)
    for name, kernel in compiled.items():
        assert kernel.spilled == 0, name
        if "Mma" in name:
            assert "mma.sync.aligned.m16n8k16" in kernel.ptx, name
