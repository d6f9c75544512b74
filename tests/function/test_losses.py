"""The `join_losses` pass: one step computes a loss and its gradient."""

import numpy as np
import pytest
from needs import needs_shim
from test_fuse import assert_right, program_of

import gpugrad as gg
from gpugrad.function.passes.half import read_narrow_directly
from gpugrad.function.passes.losses import join_losses

LABELS = np.array([2, 0, -1, 3, 1, 2])


def total(losses):
    return gg.sum(losses) * 0.5


def masked(losses):
    mask = gg.astype(gg.not_equal(gg.constant(LABELS), -1), losses.dtype)
    return gg.sum(losses * mask) / gg.sum(mask)


def training(then, observe=lambda scores, loss: (), **options):
    """A step whose loss is `then` of the per-example losses; `observe` reads values on the way."""

    def step(x, w):
        with gg.GradientTape() as tape:
            tape.watch([x, w])
            scores = gg.reshape(x @ w, (6, 4))
            labels = gg.constant(LABELS)
            loss = then(gg.sparse_softmax_cross_entropy(scores, labels, ignore_index=-1, **options))
        metric = observe(scores, loss)
        return loss, metric, tape.gradient(loss, [x, w])

    return step


def arguments(rng, dtype="float32"):
    return [gg.constant(rng.normal(size=s), dtype) for s in ((2, 3, 5), (5, 4))]


def names(program):
    return [s.name for s in program.steps if "cross_entropy" in s.name or "loss" in s.name]


@needs_shim
@pytest.mark.parametrize("then", [gg.sum, gg.mean, total, masked])
def test_a_loss_and_its_gradient_are_one_step(then, rng):
    step = training(then)
    assert names(join_losses(program_of(step, *arguments(rng)))) == ["loss and gradient"]
    assert_right(step, *arguments(rng))


@needs_shim
def test_other_steps_may_read_the_scores_and_the_loss(rng):
    step = training(gg.mean, lambda scores, loss: (gg.argmax(scores, axis=-1), gg.exp(loss)))
    program = join_losses(program_of(step, *arguments(rng)))
    order = [s.name for s in program.steps]
    assert order.index("argmax") < order.index("loss and gradient") < order.index("mean")
    assert_right(step, *arguments(rng))


@pytest.mark.parametrize("dtype", ["float16", "bfloat16"])
def test_losses_of_16_bit_scores_stay_float32(dtype, rng):
    def step(x, w):
        with gg.GradientTape() as tape:
            tape.watch([x, w])
            scores = gg.astype(gg.reshape(x @ w, (6, 4)), "float32")
            loss = gg.nn.cross_entropy(scores, LABELS, ignore_index=-1)
        return loss, tape.gradient(loss, w)

    program = join_losses(read_narrow_directly(program_of(step, *arguments(rng, dtype))))
    (both,) = [s for s in program.steps if s.name == "loss and gradient"]
    assert [str(v.dtype) for v in both.outs] == ["float32", dtype]


@pytest.mark.parametrize(
    "step",
    [training(lambda losses: gg.sum(losses) ** 2), training(gg.sum, label_smoothing=0.1)],
    ids=["gradient depends on the loss", "label smoothing"],
)
def test_loss_and_gradient_stay_separate(step, rng):
    actual = names(join_losses(program_of(step, *arguments(rng))))
    assert actual == ["sparse_softmax_cross_entropy", "sparse_softmax_cross_entropy_grad"]


def test_a_printed_loss_stays_separate_from_its_gradient(rng, capsys):
    step, args = training(gg.sum, lambda _, loss: gg.debug.print("{}", loss)), arguments(rng)
    traced = gg.function(step, passes=())
    traced(*args)
    assert len(names(join_losses(traced.lower(*args).program))) == 2


def test_two_losses_of_the_same_scores_stay_separate(rng):
    def step(x):
        with gg.GradientTape() as tape:
            tape.watch(x)
            both = [gg.sparse_softmax_cross_entropy(x, gg.constant(v)) for v in ([0, 1], [2, 3])]
            loss = gg.sum(both[0]) + 2 * gg.sum(both[1])
        return loss, tape.gradient(loss, x)

    x = gg.constant(rng.normal(size=(2, 4)))
    assert len(names(join_losses(program_of(step, x)))) == 4  # the pass cannot match them
    assert_right(step, x)


@needs_shim
def test_a_loss_of_scores_weighted_by_another_loss_is_right(rng):
    def step(x, y):
        labels = gg.constant([0, 1])
        with gg.GradientTape(persistent=True) as tape:
            tape.watch([x, y])
            first = gg.sparse_softmax_cross_entropy(x, labels)
            second = gg.sparse_softmax_cross_entropy(y * first[:, None], labels)
        return first, second, tape.gradient(second, y), tape.gradient(first, x)

    x, y = (gg.constant(rng.normal(size=(2, 4)), "float32") for _ in range(2))
    assert_right(step, x, y)
