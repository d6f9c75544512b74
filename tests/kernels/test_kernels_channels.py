"""Batch norm's kernels with channels last or before spatial axes, run on the CPU by the shim."""

import numpy as np
import pytest
from comparing import DTYPES, by_kernel, compare
from needs import each_architecture, needs_nvrtc, needs_shim

import gpugrad as gg
from gpugrad.core.backend import NUMPY
from gpugrad.kernels.by_hand import channel_norms
from gpugrad.kernels.runtime.cooperative import blocks_at_once
from gpugrad.kernels.runtime.launch import full_source, launch
from gpugrad.testing.cuda import nvrtc, shim

pytestmark = needs_shim

SHAPES = [
    ((1, 1), 1), ((7, 5), 1), ((300, 24), 1), ((41, 264), 1), ((3, 2, 5, 8), -1),
    ((2, 3, 49), 1), ((3, 4, 8), 1), ((2, 2, 12), 1), ((1, 2, 4100), 1), ((3, 5, 7), 0),
]  # fmt: skip
"""(shape, channel axis): whole and partial packs, short and long rows."""


@pytest.fixture(scope="module", autouse=True)
def _compiled():
    """Compile all at once, which takes as long as a few of them one by one."""
    with shim.deferred() as launches:
        for source, name in channel_norms.INSTANCES:
            launch(source, name, 1, 1, [])
    launches.compile()


def drawn(rng, dtype, *shape):
    return (rng.normal(size=shape) * 3 + 1).astype(DTYPES[dtype][0])


def of_norm(rng, dtype, shape, axis, weight=True):
    """A gradient, an array, its statistics, their gradients, weights; and keywords."""
    axis %= len(shape)
    others = tuple(a for a in range(len(shape)) if a != axis)
    x = drawn(rng, dtype, *shape)
    wide = x.astype(np.float64 if dtype == "float64" else np.float32)
    mean, var = wide.mean(others, keepdims=True), wide.var(others, keepdims=True)
    small = [rng.normal(size=mean.shape).astype(wide.dtype) for _ in range(2)]
    weights = [drawn(rng, dtype, shape[axis])] if weight else []
    arrays = [drawn(rng, dtype, *shape), x, mean, var, *small, *weights]
    return arrays, {"axis": others, "along": axis}


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize(("shape", "axis"), SHAPES)
@pytest.mark.thin(3)
def test_channels_of_any_shape(shape, axis, dtype, rng):
    arrays, params = of_norm(rng, dtype, shape, axis)
    bias = drawn(rng, dtype, *arrays[-1].shape)
    compare("standardize_affine", dtype, arrays[1], arrays[-1], bias, **params, eps=1e-3)
    compare("standardize_affine_grads", dtype, *arrays, **params, eps=1e-3)
    compare("standardize_affine_grad", dtype, *arrays[:-1], **params, eps=1e-3)


@pytest.mark.parametrize("schedule", shim.SCHEDULES[1:])
@pytest.mark.parametrize(("shape", "axis"), [((40, 24), 1), ((2, 3, 49), 1)])
def test_every_schedule_gives_the_same_bits(shape, axis, schedule, rng):
    arrays, params = of_norm(rng, "float32", shape, axis)
    for name, inputs in (
        ("standardize_affine", arrays[1:2]), ("standardize_affine_grads", arrays),
    ):  # fmt: skip
        first, second = (by_kernel(name, *inputs, **params, schedule=s)
                         for s in (shim.SCHEDULES[0], schedule))  # fmt: skip
        for a, b in zip(first, second, strict=True):
            np.testing.assert_array_equal(a, b)


@pytest.mark.parametrize(("shape", "axis"), [((70_000, 2), 1), ((3, 1, 30_000), 1)])
def test_channels_of_many_parts_and_pieces(shape, axis, rng):
    arrays, params = of_norm(rng, "float32", shape, axis)
    channels = channel_norms.channels_of(NUMPY, arrays[1], *params.values())
    _, (_, parts), plan = channels.plan(*arrays[:2])
    assert parts > 8
    assert (plan["pieces"] > 1) == (len(shape) == 3)
    compare("standardize_affine", "float32", arrays[1], **params)
    compare("standardize_affine_grads", "float32", *arrays, **params)


@pytest.mark.parametrize("dtype", ["float32", "bfloat16"])
def test_unaligned_and_strided_arrays(dtype, rng):
    arrays, params = of_norm(rng, dtype, (5, 8, 3, 8), 1)
    flat = drawn(rng, dtype, arrays[1].size + 1)
    unaligned = flat[1:].reshape(arrays[1].shape)
    gaps = drawn(rng, dtype, 5, 8, 3, 16)[..., ::2]
    for x in (unaligned, gaps):
        compare("standardize_affine", dtype, x, **params)
        compare("standardize_affine_grads", dtype, x, unaligned, *arrays[2:], **params)


def test_each_direction_is_one_cooperative_launch(rng):
    arrays, params = of_norm(rng, "float32", (300, 24), 1)
    bias = drawn(rng, "float32", 24)
    with shim.deferred() as launches:
        for name, args in (
            ("standardize_affine", [arrays[1], arrays[-1], bias]),
            ("standardize_affine_grads", arrays),
        ):
            gg.OPS[name].cuda(NUMPY, *args, **params)
    names = [name.partition("<")[0] for name in launches.names]
    assert names == ["channel_forward", "channel_backward"]
    assert [params["cooperative"] for *_, params in launches.launches] == [True, True]
    blocks = [np.prod(grid) for _, _, grid, *_ in launches.launches]
    most = blocks_at_once(arrays[1], channel_norms.BLOCKS)
    assert all(1 < n <= most for n in blocks)


def test_more_channels_than_blocks_take_turns(rng):
    arrays, params = of_norm(rng, "float32", (3, 70, 12), 1)
    most = blocks_at_once(arrays[1], channel_norms.BLOCKS)
    assert arrays[2].size > 2 * most
    compare("standardize_affine", "float32", arrays[1], **params)
    compare("standardize_affine_grads", "float32", *arrays, **params)


def test_arrays_with_channels_last_in_memory_are_not_copied(rng):
    arrays, params = of_norm(rng, "float32", (4, 8, 3, 5), 1)
    x = np.moveaxis(np.ascontiguousarray(np.moveaxis(arrays[1], 1, -1)), -1, 1)
    y, *_ = compare("standardize_affine", "float32", x, **params)
    dx, *_ = compare("standardize_affine_grads", "float32", arrays[0], x, *arrays[2:], **params)
    assert y.strides == dx.strides == x.strides
    assert np.shares_memory(channel_norms.channels_of(NUMPY, x, *params.values()).to_kernel(x), x)


def test_several_channel_axes_and_standardize_without_weights(rng):
    x = drawn(rng, "float32", 6, 3, 4, 5)
    weight = drawn(rng, "float32", 3, 4)
    compare("standardize_affine", "float32", x, weight, axis=(0, 3), along=(1, 2))
    arrays, params = of_norm(rng, "float32", (6, 7), 1, weight=False)
    g, x, _, var, *small = arrays
    compare("standardize", "float32", x, axis=params["axis"])
    compare("standardize_grad", "float32", g, x, var, *small, axis=params["axis"])


def test_unsupported_arguments_are_declined():
    x = np.ones((3, 4, 5), np.float32)
    for args, params in (
        ([x, x[0, 0]], {"axis": (0, 1, 2)}), ([x], {"axis": (0, 0), "along": 1}),
        ([x, x[0, :, 0]], {"axis": (0, 2), "along": 0}), ([x], {"axis": 1}),
        ([x[:0]], {"axis": (0, 2)}),
        ([x, np.ones(4)], {"axis": (0, 2), "along": 1}), ([x], {"axis": (0, 3)}),
        ([x], {"axis": (0, 2), "centered": False}),
    ):  # fmt: skip
        result = gg.OPS["standardize_affine"].cuda(NUMPY, *args, **params)
        assert result is NotImplemented, params


def test_equal_elements_become_the_bias(rng):
    x, bias = np.full((70, 6), 0.1, np.float32), np.arange(6, dtype=np.float32)
    params = {"axis": 0, "along": 1, "eps": 0.0}
    y, mean, var = by_kernel("standardize_affine", x, np.ones_like(bias), bias, **params)
    np.testing.assert_array_equal(y, np.broadcast_to(bias, y.shape))
    np.testing.assert_array_equal(mean, np.broadcast_to(np.float32(0.1), mean.shape))
    assert (var == 0).all()


@pytest.mark.parametrize("far", [1e4, -3e5])
@pytest.mark.parametrize(("shape", "axis"), [((900, 3), 1), ((3, 2, 300), 1)])
def test_large_mean_or_outlier_costs_no_precision(shape, axis, far, rng):
    x = rng.normal(size=shape).astype(np.float32) + np.float32(far)
    others = tuple(a for a in range(len(shape)) if a != axis)
    x.reshape(-1)[0] += 1000  # the channel's first element, which is subtracted from the others
    _, mean, var = by_kernel("standardize_affine", x, axis=others, eps=0.0)
    wide = x.astype(np.float64)
    np.testing.assert_allclose(mean, wide.mean(others, keepdims=True), rtol=3e-7)
    np.testing.assert_allclose(var, wide.var(others, keepdims=True), rtol=1e-5)


def test_nan_and_infinity_stay_in_their_channel(rng):
    x = drawn(rng, "float32", 50, 8)
    x[3, 1], x[4, 2] = np.nan, np.inf
    y, mean, var = by_kernel("standardize_affine", x, axis=0)
    for result in (y, mean, var):
        np.testing.assert_array_equal(np.isfinite(result).all(0), [True, False, False, *[True] * 5])


@pytest.mark.parametrize("dtype", ["float32", "bfloat16"])
@pytest.mark.parametrize("axis", [1, -1])
@pytest.mark.parametrize("training", [True, False])
def test_batch_norm_on_a_gpu_matches_the_cpu(training, axis, dtype, cuda, rng):
    """Running statistics in float32 do not widen the result of 16-bit arrays."""
    x = drawn(rng, dtype, 4, 8, 3, 8)
    weights = [drawn(rng, dtype, 8) for _ in range(2)]
    running = [rng.uniform(1, 2, 8).astype(np.float32) for _ in range(2)]

    def results(device):
        with gg.device(device):
            inputs = [gg.constant(a) for a in (x, *weights)]
            statistics = [gg.constant(a) for a in running]
            with gg.GradientTape() as tape:
                tape.watch(inputs)
                y, mean, var = gg.nn.batch_norm(
                    inputs[0], *statistics, *inputs[1:], training=training, axis=axis
                )
                loss = gg.sum(gg.astype(y, "float32") ** 3) + gg.sum(mean * var)
            return [y, *tape.gradient(loss, inputs), mean, var]

    actual = results(cuda)
    assert [a.dtype for a in actual] == [*[x.dtype] * 4, np.float32, np.float32]
    for a, b in zip(actual, results("cpu"), strict=True):
        assert a.dtype == b.dtype
        wide = [t.numpy().astype(np.float64) for t in (a, b)]
        tolerance = 10 * DTYPES[dtype][1]
        scale = np.abs(wide[1]).max()
        np.testing.assert_allclose(*wide, rtol=tolerance, atol=tolerance * scale)


@needs_nvrtc
@each_architecture
def test_kernels_do_not_spill_and_move_16_bytes(architecture):
    """Kernels of one dtype; ci/compile_kernels compiles all of them."""
    names = [name for _, name in channel_norms.INSTANCES if "<__nv_bfloat16, 8" in name]
    kernels = nvrtc.compile_all(architecture, full_source("channel_norms.cu"), names)
    for name in names:
        assert kernels[name].spilled == 0, name
        assert name not in channel_norms.VECTOR or "ld.global.nc.v4" in kernels[name].ptx, name
        if name in channel_norms.VECTOR and ("forward" in name or "backward" in name):
            assert "st.global.wb.v4" in kernels[name].ptx, name
