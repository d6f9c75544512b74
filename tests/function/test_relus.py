"""The `join_relus` pass: batch norms joined with the relu that follows, and with its gradient."""

import numpy as np
import pytest
from comparing import near_largest
from needs import needs_shim
from test_fuse import program_of

import gpugrad as gg
from gpugrad.core.backend import NUMPY, as_dtype
from gpugrad.function.passes import relus
from gpugrad.function.passes.relus import join_relus
from gpugrad.kernels.by_hand import channel_norms
from gpugrad.testing.cuda import shim

pytestmark = needs_shim

TOLERANCES = {"float32": 1e-4, "float16": 1e-2, "bfloat16": 6e-2}
PARAMS = {"axis": (0, 2, 3), "along": 1, "eps": 1e-3}


def norm(x, weight, bias):
    return gg.batch_norm(x, None, None, weight, bias, training=True)


def plain(x, weight, bias, r):
    y, mean, var = norm(x, weight, bias)
    return gg.relu(y) * 2, mean, var


def with_block_input(x, weight, bias, r):
    y, mean, var = norm(x, weight, bias)
    return gg.relu(r + y) * 2, mean, var


def two_norms(x, weight, bias, r):
    y, mean, var = norm(x, weight, bias)
    z, *_ = norm(r * 2, weight, bias)
    return gg.relu(z + y), mean, var


def chain(x, weight, bias, r):
    out = gg.relu(r + norm(x, weight, bias)[0])
    y, mean, var = norm(out * 1.5, weight, bias)
    return gg.relu(y + out), mean, var


def read_twice(x, weight, bias, r):
    y, mean, var = norm(x, weight, bias)
    return gg.relu(y) + y, mean, var


MODELS = {
    "plain": (plain, 1, 1),
    "with the block's input": (with_block_input, 1, 1),
    "two norms": (two_norms, 1, 1),
    "a chain": (chain, 2, 2),
    "read before relu": (read_twice, 0, 0),
}
"""Models, and how many norms are joined forward and backward."""


def arrays_for(rng, dtype, last=False):
    shapes = [(3, 8, 5, 4), (8,), (8,), (3, 8, 5, 4)]
    arrays = [rng.normal(size=s).astype(as_dtype(dtype)) for s in shapes]
    if last:
        arrays = [
            np.moveaxis(np.ascontiguousarray(np.moveaxis(a, 1, -1)), -1, 1) if a.ndim == 4 else a
            for a in arrays
        ]
    return arrays


def step_of(model):
    def step(*arrays):
        with gg.GradientTape() as tape:
            tape.watch(arrays)
            out, mean, var = model(*arrays)
            loss = gg.sum(gg.sin(gg.astype(out, "float32")))
        return [out, mean, var, *tape.gradient(loss, arrays, unconnected_gradients="zero")]

    return step


@pytest.mark.parametrize("last", [False, True])
@pytest.mark.parametrize("dtype", TOLERANCES)
@pytest.mark.parametrize("name", MODELS)
@pytest.mark.thin(3)
def test_joined_steps_give_the_results_of_the_separate_ones(name, dtype, last, cuda, rng):
    step = step_of(MODELS[name][0])
    function = gg.function(step)
    for _ in range(3):
        arrays = arrays_for(rng, dtype, last)
        actual = function(*(gg.constant(a, device=cuda) for a in arrays))
        desired = step(*(gg.constant(a, device="cpu") for a in arrays))
        for a, d in zip(actual, desired, strict=True):
            near_largest(a.numpy(), d.numpy(), TOLERANCES[dtype])
    steps = [s.name for s in next(iter(function._plans.values())).replay.program.steps]
    assert sum("standardize_affine + " in s for s in steps) == MODELS[name][1], steps
    assert sum("+ standardize_affine_grads" in s for s in steps) == MODELS[name][2], steps


@pytest.mark.parametrize("name", ["plain", "with the block's input"])
def test_declined_launches_run_the_separate_steps(name, cuda, rng, monkeypatch):
    for declining in ("with_relu", "with_relu_grads"):
        monkeypatch.setattr(relus, declining, lambda *args, **params: NotImplemented)
    arrays = arrays_for(rng, "float32")
    step = step_of(MODELS[name][0])
    function = gg.function(step)
    for _ in range(2):
        actual = function(*(gg.constant(a, device=cuda) for a in arrays))
        for a, d in zip(actual, step(*map(gg.constant, arrays)), strict=True):
            near_largest(a.numpy(), d.numpy(), 1e-4)


def test_a_cotangent_that_an_earlier_step_needs_is_not_joined(cuda, rng):
    def step(x, weight, bias, r):
        with gg.GradientTape() as tape:
            tape.watch([x, r])
            y = norm(x, weight, bias)[0] + gg.tanh(r)
            loss = gg.sum(gg.sin(gg.relu(y)))
        return tape.gradient(loss, [r, x])

    arrays = arrays_for(rng, "float32")
    function = gg.function(step)
    for _ in range(2):
        actual = function(*(gg.constant(a, device=cuda) for a in arrays))
        for a, d in zip(actual, step(*map(gg.constant, arrays)), strict=True):
            near_largest(a.numpy(), d.numpy(), 1e-4)


def test_a_program_keeps_its_other_steps_in_order(rng):
    arrays = [gg.constant(a) for a in arrays_for(rng, "float16")]
    before = program_of(step_of(chain), *arrays)
    after = join_relus(before)
    known = {id(v) for v in (*after.inputs, *(v for _, v in after.reads))}
    for step in after.steps:
        assert all(id(v) in known or v.constant is not None for v in step.inputs)
        known.update(id(v) for v in step.outs)
    assert all(id(v) in known for v in after.outputs)


SHAPES = [(4, 16, 3, 5), (3, 5, 7, 7), (2, 3, 1, 40), (33, 264, 1, 1)]


@pytest.mark.parametrize("schedule", shim.SCHEDULES)
@pytest.mark.parametrize("dtype", ["float64", *TOLERANCES])
@pytest.mark.thin(5)
def test_kernels_add_and_apply_relu_as_the_formulas_do(dtype, schedule, rng):
    forward, backward = (
        gg.OPS[n].bare(NUMPY) for n in ("standardize_affine", "standardize_affine_grads")
    )
    for shape in SHAPES if dtype == "float32" else SHAPES[:3]:
        x, r, g, h = (rng.normal(size=shape).astype(as_dtype(dtype)) for _ in range(4))
        weight, bias = (rng.normal(size=shape[1]).astype(x.dtype) for _ in range(2))
        g[0, 0, 0, 0] = np.nan
        x = x if shape[1] % 2 else np.moveaxis(np.moveaxis(x, 1, -1).copy(), -1, 1)
        for added in (None, r):
            y, mean, var = forward(x, weight, bias, **PARAMS)
            y = y if added is None else y + added
            out = np.maximum(y, 0).astype(x.dtype)
            with shim.running(schedule):
                results = channel_norms.with_relu(NUMPY, x, weight, bias, added, **PARAMS)
            for actual, desired in zip(results, (out, mean, var), strict=True):
                near_largest(actual, desired, TOLERANCES.get(dtype, 1e-10))
            masked = ((g if added is None else g + h) * (out > 0)).astype(x.dtype)
            small = [rng.normal(size=mean.shape).astype(mean.dtype) for _ in range(2)]
            rest = x, mean, var, *small, weight
            with shim.running(schedule):
                *grads, own = channel_norms.with_relu_grads(
                    NUMPY, g, out, *rest, None if added is None else h, **PARAMS
                )
            np.testing.assert_array_equal(own.astype(float), masked.astype(float))
            desired_grads = backward(masked, *rest, **PARAMS)
            for actual, desired in zip(grads, desired_grads, strict=True):
                near_largest(actual, desired, TOLERANCES.get(dtype, 1e-10))


@pytest.mark.parametrize("dtype", ["float64", *TOLERANCES])
def test_a_relu_computed_again_gives_the_bits_of_the_one_read(dtype, rng):
    for shape in SHAPES if dtype == "float32" else SHAPES[:3]:
        x, g, h = (rng.normal(size=shape).astype(as_dtype(dtype)) for _ in range(3))
        weight, bias = (rng.normal(size=shape[1]).astype(x.dtype) for _ in range(2))
        g[0, 0, 0, 0] = np.nan
        x = x if shape[1] % 2 else np.moveaxis(np.moveaxis(x, 1, -1).copy(), -1, 1)
        with shim.running():
            relu, mean, var = channel_norms.with_relu(NUMPY, x, weight, bias, **PARAMS)
            zero = np.zeros_like(mean)
            for added in (None, h):
                args = [g, relu, x, mean, var, zero, zero, weight, added]
                *read, _ = channel_norms.with_relu_grads(NUMPY, *args, **PARAMS)
                args[1] = None
                again = channel_norms.with_relu_grads(NUMPY, *args, **PARAMS, bias=bias)
                for a, b in zip(again, read, strict=True):
                    np.testing.assert_array_equal(a.astype(float), b.astype(float))


@pytest.mark.parametrize(("name", "again"), [("plain", 1), ("with the block's input", 0)])
def test_only_the_relu_of_a_norm_alone_is_computed_again(name, again, cuda, rng):
    function = gg.function(step_of(MODELS[name][0]))
    function(*(gg.constant(a, device=cuda) for a in arrays_for(rng, "float32")))
    program = next(iter(function._plans.values())).replay.program
    (step,) = (s for s in program.steps if "+ standardize_affine_grads" in s.name)
    assert (step.args[0] is not None) == again
    assert len(step.outs) == 4 - again  # the masked cotangent is a result only if it is read


def test_arrays_of_another_shape_or_dtype_are_declined():
    x, row = np.ones((2, 3, 4, 4), np.float32), np.ones(3, np.float32)
    for added in (x[:1], x.astype(np.float16)):
        assert channel_norms.with_relu(NUMPY, x, row, row, added, **PARAMS) is NotImplemented
