"""Casts of many arrays in one launch: the kernel, and the `join_casts` pass."""

import re

import numpy as np
import pytest
from needs import needs_nvrtc, needs_shim
from test_fuse import assert_right, program_of

import gpugrad as gg
from gpugrad.function.passes import half
from gpugrad.function.passes.fuse import fuse_groups
from gpugrad.function.passes.half import join_casts
from gpugrad.function.passes.products import find_products
from gpugrad.kernels.by_hand.casts import INSTANCES, NARROW, cast_all, straighten, turn_all
from gpugrad.kernels.runtime.launch import full_source
from gpugrad.kernels.runtime.tables import CHUNK, arrays_per_launch
from gpugrad.testing.cuda import nvrtc, shim

SIZES = [1, 7, 8, 64, CHUNK - 1, CHUNK, 2 * CHUNK + 9]


@needs_shim
@pytest.mark.parametrize("schedule", shim.SCHEDULES)
@pytest.mark.parametrize("dtype", NARROW, ids=str)
def test_cast_all_rounds_arrays_of_any_size_and_alignment(dtype, schedule, rng):
    flat = (rng.normal(size=sum(SIZES) + 99) * 1000).astype(np.float32)
    corners = np.array([0, -0.0, np.inf, -np.inf, np.nan, 65520, 1e-41, 3e38], np.float32)
    begins = np.cumsum([1, *SIZES])
    arrays = [flat[i : i + n] for i, n in zip(begins, SIZES, strict=False)]
    arrays += [corners, flat[:60].reshape(3, 20)[:, ::-2], np.zeros((2, 0), np.float32)]
    with shim.running(schedule):
        results = cast_all(arrays, dtype)
    for a, actual in zip(arrays, results, strict=True):
        assert (actual.dtype, actual.shape) == (dtype, a.shape)
        with np.errstate(over="ignore"):
            desired = a.astype(dtype).astype(np.float32)
        np.testing.assert_array_equal(actual.astype(np.float32), desired)


@needs_shim
def test_cast_all_takes_more_arrays_than_fit_one_launch(rng):
    arrays = [
        rng.normal(size=k % 4).astype(np.float32) for k in range(2 * arrays_per_launch(2) + 3)
    ]
    with shim.running():
        results = cast_all(arrays, np.float16)
    for a, actual in zip(arrays, results, strict=True):
        np.testing.assert_array_equal(actual, a.astype(np.float16))


TURNED = [
    (64, 32, 3, 3), (3, 5, 7), (2, 3, 40, 40), (1, 700, 3, 3), (5, 1, 4), (4, 3, 1, 1),
    (2, 2, 3, 67, 33), (1, 2, 70, 70),
]  # fmt: skip
"""Whole packs and others, several tiles of rows or columns of a slice, one channel, one place."""


@needs_shim
@pytest.mark.parametrize("schedule", shim.SCHEDULES)
@pytest.mark.parametrize("dtype", NARROW, ids=str)
def test_turn_all_rounds_and_puts_channels_last_in_memory(dtype, schedule, rng):
    arrays = [(rng.normal(size=s) * 1000).astype(np.float32) for s in TURNED]
    flat = rng.normal(size=65).astype(np.float32)
    arrays.append(flat[1:].reshape(2, 4, 8))  # not aligned
    with shim.running(schedule):
        results = turn_all(arrays, dtype)
    for a, actual in zip(arrays, results, strict=True):
        assert np.moveaxis(actual, 1, -1).flags.c_contiguous
        np.testing.assert_array_equal(actual, a.astype(dtype))


@needs_shim
@pytest.mark.parametrize("schedule", shim.SCHEDULES)
def test_straighten_copies_only_what_is_not_contiguous(schedule, rng):
    arrays = []
    for dtype in (np.float32, np.float64, *NARROW):
        for n, c, *spatial in TURNED:
            turned = rng.normal(size=(n, *spatial, c)).astype(dtype)
            arrays.append(np.moveaxis(turned, -1, 1))
    arrays += [rng.normal(size=(3, 4)), rng.normal(size=(4, 6))[:, ::2], np.ones((2, 0, 3))]
    with shim.running(schedule):
        results = straighten(arrays)
    for a, actual in zip(arrays, results, strict=True):
        assert actual.flags.c_contiguous
        assert actual is a or not a.flags.c_contiguous
        np.testing.assert_array_equal(actual, a)


@needs_shim
def test_more_arrays_are_turned_than_fit_one_launch(rng):
    arrays = [rng.normal(size=(2, k % 5 + 1, 3)).astype(np.float32) for k in range(200)]
    with shim.running():
        results = turn_all(arrays, np.float16)
    for a, actual in zip(arrays, results, strict=True):
        np.testing.assert_array_equal(actual, a.astype(np.float16))


@needs_nvrtc
def test_kernels_move_sixteen_bytes_and_do_not_spill():
    for source, name in INSTANCES:
        kernel = nvrtc.compile_for("sm_90", full_source(source), name)
        assert kernel.spilled == 0
        assert re.search(r"ld\.global(\.nc)?\.v[24]", kernel.ptx)
        assert re.search(r"st\.global\.v[24]", kernel.ptx)


def layers(dtype="bfloat16", observe=lambda weights: ()):
    """A step of two dense layers in 16 bits whose weights are float32."""

    def step(x, w, b, v):
        with gg.GradientTape() as tape:
            tape.watch([w, b, v])
            weights = [gg.astype(a, dtype) for a in (w, b, v)]
            y = gg.relu(gg.astype(x, dtype) @ weights[0] + weights[1]) @ weights[2]
            loss = gg.mean(gg.astype(y, "float32") ** 2)
        return loss, tape.gradient(loss, [w, b, v]), observe(weights)

    return step


def arguments(rng):
    return [gg.constant(rng.normal(size=s) / 3, "float32")
            for s in ((6, 9), (9, 8), (8,), (8, 5))]  # fmt: skip


def joined_casts(step, *args):
    program = join_casts(find_products(program_of(step, *args)))
    return [s.name for s in fuse_groups(program).steps if "cast" in s.name]


@needs_shim
@pytest.mark.parametrize("dtype", ["float16", "bfloat16"])
def test_weights_of_a_step_are_cast_in_one_launch(dtype, rng):
    step, args = layers(dtype), arguments(rng)
    assert joined_casts(step, *args) == [f"4 casts to {dtype}"]
    assert_right(step, *args, tolerance=0.05)


@needs_shim
def test_casts_that_fuse_into_a_kernel_are_not_joined(rng):
    step, args = layers(observe=lambda weights: gg.exp(weights[2])), arguments(rng)
    assert joined_casts(step, *args) == ["3 casts to bfloat16"]
    assert_right(step, *args, tolerance=0.05)


def test_large_casts_are_joined_only_if_the_backward_pass_reads_them(rng, monkeypatch):
    def forward(x, w, v):
        return gg.astype(x, "float16") @ gg.astype(w, "float16") @ gg.astype(v, "float16")

    x, w, _, v = arguments(rng)
    assert joined_casts(forward, x, w, v) == ["3 casts to float16"]  # small ones are joined
    monkeypatch.setattr(half, "SMALL", 0)
    assert joined_casts(forward, x, w, v) == []
    assert joined_casts(layers(), *arguments(rng)) == ["2 casts to bfloat16"]  # not of w


def test_casts_of_intermediate_values_are_not_joined(rng):
    def f(x, w):
        return [gg.astype(a, "float16") @ gg.astype(w, "float16") for a in (x, x @ w)]

    x, w = gg.constant(rng.normal(size=(2, 3, 3)).astype(np.float32))
    assert joined_casts(f, x, w) == ["2 casts to float16"]
