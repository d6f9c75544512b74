"""The `read_narrow_directly` pass: losses read 16-bit scores without a cast to float32."""

import numpy as np
import pytest
from comparing import same_unless_compiled
from needs import needs_shim
from test_fuse import program_of

import gpugrad as gg
from gpugrad.core import nest
from gpugrad.core.backend import NUMPY, as_dtype
from gpugrad.function.gpu.replay import Launches
from gpugrad.function.passes.half import read_narrow_directly
from gpugrad.testing.cuda import shim

LABELS = np.array([[0, 3, 1], [4, 2, 4]])


def mixed(x, w, then=lambda scores: None, shape=(-1, 5)):
    """A loss of a 16-bit product cast to float32, and its gradients."""
    with gg.GradientTape() as tape:
        tape.watch([x, w])
        scores = gg.astype(x @ w, "float32")
        loss = gg.nn.cross_entropy(gg.reshape(scores, shape), gg.reshape(LABELS, shape[:-1]))
    return loss, tape.gradient(loss, [x, w]), then(scores)


def arguments(rng, dtype):
    return [gg.constant(rng.normal(size=s).astype(np.float32)).astype(dtype)
            for s in ((2, 3, 8), (8, 5))]  # fmt: skip


def losses(program):
    return [s for s in program.steps if "cross_entropy" in s.name]


@pytest.mark.parametrize("dtype", ["float16", "bfloat16"])
def test_loss_and_gradient_read_the_16_bit_scores(dtype, rng):
    before = program_of(mixed, *arguments(rng, dtype))
    after = read_narrow_directly(before)
    wide, narrow = np.dtype(np.float32), as_dtype(dtype)
    assert [s.args[-2].dtype for s in losses(before)] == [wide] * 2
    assert [s.args[-2].dtype for s in losses(after)] == [narrow] * 2
    assert [s.outs[0].dtype for s in losses(after)] == [wide, narrow]
    large = [v for s in after.steps for v in s.outs if v.shape in ((2, 3, 5), (6, 5))]
    assert {v.dtype for v in large} == {narrow}
    assert sum(v.nbytes for v in before.values()) > sum(v.nbytes for v in after.values())


def test_scores_are_still_widened_for_other_readers(rng):
    after = read_narrow_directly(
        program_of(lambda x, w: mixed(x, w, lambda s: s * 2), *arguments(rng, "e"))
    )
    assert "astype" in [s.name for s in after.steps]
    assert {s.args[-2].dtype for s in losses(after)} == {np.dtype(np.float16)}


def test_a_float32_gradient_reads_float32_scores(rng):
    def f(x):
        with gg.GradientTape() as tape:
            wide = gg.astype(x, "float32")
            tape.watch(wide)
            loss = gg.nn.cross_entropy(wide, [0, 1, 2])
        return tape.gradient(loss, wide)

    x = gg.constant(rng.normal(size=(3, 5)).astype(np.float16))
    after = read_narrow_directly(program_of(f, x))
    (gradient,) = [s for s in losses(after) if s.name.endswith("grad")]
    assert gradient.args[1].dtype == gradient.outs[0].dtype == np.float32


@pytest.mark.parametrize("dtype", ["float16", "bfloat16"])
def test_optimizer_reads_16_bit_gradients(dtype, cuda, rng):
    def training(device, wrapped):
        w, b = (gg.Variable(np.full(n, 0.5, np.float32), device=device) for n in ((4, 3), 3))
        optimizer = gg.optim.AdamW(0.1)

        @wrapped
        def step(x):
            with gg.GradientTape() as tape:
                y = gg.astype(x, dtype) @ gg.astype(w, dtype)
                loss = gg.sum((gg.astype(y, "float32") + b) ** 2)
            optimizer.apply_gradients(zip(tape.gradient(loss, [w, b]), [w, b], strict=True))
            return loss

        for x in data:
            step(gg.constant(x, device=device))
        return step, w.numpy(), b.numpy()

    data = rng.normal(size=(4, 2, 4)).astype(np.float32)
    step, *actual = training("cuda:0", gg.function)
    (plan,) = step._plans.values()
    (applied,) = [s for s in plan.replay.program.steps if s.launched]
    dtypes = [as_dtype(dtype), *[np.dtype(np.float32)] * 3, as_dtype(dtype)]
    assert [a.dtype for a in applied.args] == dtypes  # gradients, Variables, the copy of w
    for a, b in zip(actual, training("cpu", lambda f: f)[1:], strict=True):
        np.testing.assert_allclose(a, b, 2e-2)


def test_float32_scores_are_unchanged(rng):
    before = program_of(mixed, *arguments(rng, "float32"))
    assert [s.name for s in read_narrow_directly(before).steps] == [s.name for s in before.steps]


@needs_shim
@pytest.mark.parametrize("dtype", ["float16", "bfloat16"])
def test_results_equal_eager(dtype, rng):
    args = arguments(rng, dtype)
    desired = nest.flatten(mixed(*args))
    run = Launches(program_of(mixed, *args), NUMPY)
    with shim.running("round robin"):
        actual = run([x._data for x in args])
    for a, d in zip(actual, desired, strict=False):
        assert a.dtype == d.dtype
        a, d = np.asarray(a, np.float32), np.asarray(gg.astype(d, "float32"))
        np.testing.assert_allclose(a, d, 2e-2 if dtype == "bfloat16" else 2e-3, 2e-3)


@pytest.mark.parametrize("dtype", ["float16", "bfloat16"])
def test_losses_of_16_bit_scores_may_be_float32(dtype, rng):
    x = gg.constant(rng.normal(size=(3, 5)).astype(np.float32)).astype(dtype)

    def both(x, dtype):
        with gg.GradientTape() as tape:
            tape.watch(x)
            y = gg.sparse_softmax_cross_entropy(x, LABELS.ravel()[:3], dtype=dtype)
        return y, tape.gradient(y, x)

    y, dx = both(x, "float32")
    wide, wide_dx = both(gg.astype(x, "float32"), None)
    assert (y.dtype, dx.dtype) == (np.float32, x.dtype)
    same_unless_compiled(y, wide, 1e-6)
    np.testing.assert_array_equal(gg.astype(dx, "float32"), wide_dx.astype(dtype).astype("float32"))
