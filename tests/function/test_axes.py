"""The `split_axes` pass: reductions over any axes become reductions that kernels support."""

import numpy as np
import pytest
from comparing import same_unless_compiled
from needs import needs_shim

import gpugrad as gg
from gpugrad.core.devices import gpu_count
from gpugrad.function.cpu.replay import CpuReplay
from gpugrad.function.passes import pass_names
from gpugrad.function.passes.axes import merge_and_split_axes, split_axes
from gpugrad.function.passes.fuse import FusedKernel, fuse_groups, reduction

SHAPE = (3, 4, 5, 6)


def rewritten(f, *args, by=split_axes):
    """Return the program before and after the pass; assert that both give the same results."""
    function = gg.function(f, passes=pass_names("both"))
    desired = function(*args)
    before = function.lower(*args).program
    after = by(before)
    (actual,) = CpuReplay(after)([x._data for x in args])
    assert actual.dtype == desired.dtype
    assert actual.shape == desired.shape
    tolerance = 2e-3 if desired.dtype.itemsize == 2 else 1e-6
    np.testing.assert_allclose(actual.astype(float), desired.numpy().astype(float), tolerance, 1e-6)
    return before, after


def unsupported(program):
    """Names of the reductions that no kernel supports."""
    reducing = [s for s in program.steps if s.op.reduces or s.name == "sum_of_products"]
    return [s.name for s in reducing if not reduction(s)]


@pytest.mark.parametrize("dtype", ["float32", "float16"])
@pytest.mark.parametrize("keepdims", [False, True])
@pytest.mark.parametrize("axis", [(2, 3), (1, 2, 3), (0,), (0, 1), (0, 2, 3), (0, 3), (-1, 0)])
@pytest.mark.parametrize("how", ["sum", "mean", "max"])
def test_reductions_over_leading_and_trailing_axes_are_split(how, axis, keepdims, dtype, rng):
    x = gg.constant(rng.normal(size=SHAPE).astype(dtype))
    _, after = rewritten(lambda x: getattr(gg, how)(x, axis=axis, keepdims=keepdims), x)
    in_front = any(a % 4 == 0 for a in axis)
    if how != "max" or not in_front:  # no kernel has a maximum over leading axes
        assert not unsupported(after)


def test_reductions_of_gradients_are_split(rng):
    x = gg.constant(rng.normal(size=SHAPE))
    sum_to, products = gg.OPS["sum_to"].eager, gg.OPS["sum_of_products"].eager
    for f in (
        lambda x: sum_to(x, (1, 4, 1, 1)), lambda x: sum_to(x, (4, 5, 1)),
        lambda x: products(x, x * 2, axis=(0, 2, 3)), lambda x: products(x, x, axis=-1),
        lambda x: products(x, x, axis=(0, 1, 2, 3)),
    ):  # fmt: skip
        assert not unsupported(rewritten(f, x)[1])


def test_other_reductions_are_unchanged(rng):
    x, wide = gg.constant(rng.normal(size=SHAPE)), gg.constant(rng.integers(0, 9, SHAPE))
    for f, args in (
        (lambda x: gg.sum(x, axis=1), x), (lambda x: gg.sum(x, axis=(1, 3)), x),
        (lambda x: gg.sum(x, axis=(0, 2)), x), (lambda x: gg.sum(x, axis=(2, 3)), wide),
        (lambda x: gg.sum(gg.permute_dims(x, (0, 2, 3, 1)), axis=(2, 3)), x),
        (lambda x: gg.sum(x, axis=-1), x), (lambda x: gg.sum(x), x),
        (lambda x: gg.sum(x, axis=(2, 3), dtype=np.float32), x),
    ):  # fmt: skip
        before, after = rewritten(f, args)
        assert str(after) == str(before)


CENTRED = {
    "a value per channel": (lambda x, c: x * 2 + c, 1),
    "a number": (lambda x, c: gg.exp(x) / 2 + 1, 1),
    "a value per row of pixels": (lambda x, c: x + gg.mean(x, axis=0)[:, :, :1], None),
    "a mask": (lambda x, c: gg.where(x > c, x, 0), 1),
    "a transposed array": (
        lambda x, c: x + gg.permute_dims(gg.reshape(x, (3, 4, 6, 5)), (0, 1, 3, 2)),
        None,
    ),
}
"""Formulas of an array and of a value per channel, and kernels with a mean over the others."""


@pytest.mark.parametrize("name", CENTRED)
@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_steps_before_and_after_a_reduction_have_its_rows(name, dtype, rng):
    formula, kernels = CENTRED[name]
    x, c = (gg.constant(rng.normal(size=s).astype(dtype)) for s in (SHAPE, (4, 1, 1)))

    def f(x, c):
        y = formula(x, c)
        return gg.sum(gg.mean(y * y, axis=(0, 2, 3)) * gg.sum(gg.tanh(y)))

    _, after = rewritten(f, x, c, by=merge_and_split_axes)
    assert not unsupported(after)
    fused = [s for s in fuse_groups(after).steps if isinstance(s, FusedKernel)]
    large = [s for s in fused if np.prod(s.shape) == np.prod(SHAPE)]
    assert kernels is None or len(large) == kernels


def test_axes_that_another_reduction_needs_are_not_merged(rng):
    x = gg.constant(rng.normal(size=SHAPE))
    for f in (
        lambda x: gg.mean(x * 2, axis=(2, 3)) + gg.mean(gg.max(x * 2, axis=-1), axis=-1),
        lambda x: gg.mean(x * 2, axis=(2, 3))[0, 0] + gg.sum(x * 2, axis=(0, 1, 2)),
        lambda x: gg.sum(x * 2, axis=-1),
    ):
        _, after = rewritten(f, x, by=merge_and_split_axes)
        assert any(s.name == "multiply" and s.outs[0].shape == SHAPE for s in after.steps)


def normalized(device, weights):
    """A training step of a network with a batch norm, and its Variables."""
    w = gg.Variable(weights, device=device)
    scale, shift = (gg.Variable(np.full(4, v, np.float32), device=device) for v in (1, 0))
    variables, optimizer = [w, scale, shift], gg.optim.SGD(0.1, momentum=0.9)

    def step(x, labels):
        with gg.GradientTape() as tape:
            h = gg.nn.conv2d(x, w, padding=1)
            h, _, _ = gg.nn.batch_norm(h, weight=scale, bias=shift, training=True)
            h = gg.mean(gg.relu(h), axis=(2, 3))
            loss = gg.mean(gg.sparse_softmax_cross_entropy(h, labels))
        gradients = tape.gradient(loss, variables)
        optimizer.apply_gradients(zip(gradients, variables, strict=True))
        return loss

    return gg.function(step), variables


@needs_shim
@pytest.mark.skipif(gpu_count() == 0, reason="needs a CUDA device")
def test_a_step_with_a_batch_norm_is_one_graph(rng):
    x, labels = rng.normal(size=(2, 3, 8, 8)).astype(np.float32), np.array([0, 1])
    weights, results = rng.normal(size=(4, 3, 3, 3)).astype(np.float32), []
    for device in ("cpu", "cuda:0"):
        step, variables = normalized(device, weights)
        args = [gg.constant(a, device=device) for a in (x, labels)]
        losses = [step(*args).item() for _ in range(4)]
        results.append((losses, [v.numpy() for v in variables]))
    replay = next(iter(step._plans.values())).replay
    assert [run.fixed for run in replay.runs] == [True]
    assert "standardize_affine_grads" in [s.name for s in replay.program.steps]
    (desired, cpu), (actual, gpu) = results
    np.testing.assert_allclose(actual, desired, 1e-4)
    for a, b in zip(gpu, cpu, strict=True):
        np.testing.assert_allclose(a, b, 1e-3, 1e-5)


@needs_shim
@pytest.mark.skipif(gpu_count() == 0, reason="needs a CUDA device")
def test_a_traced_gradient_of_a_batch_norm_is_differentiable(rng):
    x, w = rng.normal(size=(3, 2, 4)).astype(np.float32), rng.normal(size=2).astype(np.float32)

    def gradients(x, w):
        with gg.GradientTape() as tape:
            tape.watch([x, w])
            y, _, _ = gg.nn.batch_norm(x, weight=w, training=True)
            z = gg.sum(y**3)
        return tape.gradient(z, [x, w])

    def second(f, device):
        args = [gg.constant(a, device=device) for a in (x, w)]
        with gg.GradientTape() as tape:
            tape.watch(args)
            dx, dw = f(*args)
            z = gg.sum(dx**2) + gg.sum(dw)
        return [g.numpy() for g in tape.gradient(z, args)]

    desired = second(gradients, "cpu")
    for actual in (second(gradients, "cuda:0"), second(gg.function(gradients), "cuda:0")):
        for a, d in zip(actual, desired, strict=True):
            np.testing.assert_allclose(a, d, 1e-3, 1e-3)


@pytest.mark.parametrize(
    ("move", "shape"),
    [
        (lambda x: gg.expand_dims(x, axis=-1), (2, 3)),
        (lambda x: gg.squeeze(x, axis=0), (1, 1, 3)),
        (lambda x: gg.reshape(x, (3, -1)), (2, 3)),
        (lambda x: gg.moveaxis(x, 0, -1), (2, 3, 4)),
        (lambda x: gg.permute_dims(x, (1, 2, 0)), (2, 3, 4)),
        (lambda x: gg.flip(gg.roll(x, 1, axis=0), axis=-1), (2, 3)),
    ],
)
def test_a_move_of_axes_that_is_done_twice_is_done_twice(move, shape):
    x = gg.reshape(gg.arange(float(np.prod(shape))), shape)
    for f in (lambda x: gg.sin(move(move(gg.sin(x)))), lambda x: gg.sin(move(move(x)))):
        same_unless_compiled(gg.function(f)(x), f(x), 1e-6)
