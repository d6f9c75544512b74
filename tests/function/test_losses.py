"""The `join_losses` pass: one step computes a loss and its gradient."""

import numpy as np
import pytest
from needs import needs_shim
from taping import taped
from test_fuse import assert_right, program_of

import gpugrad as gg
from gpugrad.core import nest
from gpugrad.core.backend import cupy
from gpugrad.function.passes.half import read_narrow_directly
from gpugrad.function.passes.losses import join_losses
from gpugrad.kernels.by_hand.cross_entropy import MOST_ADDED
from gpugrad.testing.cuda import driver

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
    assert order.index("argmax") < order.index("loss and gradient") < order.index("exp")
    assert_right(step, *arguments(rng))


def reductions(program):
    return [s.name for s in program.steps if s.name in ("sum", "mean", "masked_divide")]


@needs_shim
@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize(("then", "outside"), [(gg.sum, []), (gg.mean, []), (masked, ["sum"])])
def test_the_launch_of_the_losses_adds_them_up(then, outside, dtype, rng):
    step, args = training(then), arguments(rng, dtype)
    assert reductions(join_losses(program_of(step, *args))) == outside
    assert_right(step, *args)


@needs_shim
@pytest.mark.parametrize("ignored", [-1, 3, 7])
def test_the_launch_of_the_losses_averages_those_that_count(ignored, rng):
    def step(x, w, labels):
        with gg.GradientTape() as tape:
            tape.watch([x, w])
            scores = gg.reshape(x @ w, (6, 4))
            loss = gg.nn.cross_entropy(scores, labels, ignore_index=ignored)
        return loss, tape.gradient(loss, [x, w])

    for labels in (np.maximum(LABELS, 0), np.full(6, 3)):  # of the second perhaps none counts
        args = [*arguments(rng), gg.constant(labels)]
        program = join_losses(program_of(step, *args))
        assert reductions(program) == ["sum"]  # of the labels that count
        assert_right(step, *args)


@needs_shim
@pytest.mark.parametrize(
    ("then", "outside"),
    [
        (lambda losses: gg.sum(gg.reshape(losses, (2, 3)), axis=0), ["sum"]),
        (lambda losses: gg.sum(losses, axis=0, keepdims=True), ["sum"]),
        (lambda losses: gg.sum(losses, dtype="float64"), ["sum"]),
        (lambda losses: gg.max(losses), []),
        (lambda losses: gg.sum(losses * losses), ["sum"]),
    ],
    ids=["part of them", "kept axis", "other dtype", "maximum", "other values"],
)
def test_what_is_not_the_sum_of_all_losses_stays_a_step(then, outside, rng):
    def step(x):
        with gg.GradientTape() as tape:
            tape.watch(x)
            losses = gg.sparse_softmax_cross_entropy(x, gg.constant([1, 0, 3, 3, 1, 2]))
            with tape.stop_recording():
                result = then(losses)
        return result, losses, tape.gradient(losses, x)

    x = gg.constant(rng.normal(size=(6, 4)), "float32")
    program = join_losses(program_of(step, x))
    assert names(program) == ["loss and gradient"]
    assert reductions(program) == outside
    assert_right(step, x)


def test_many_losses_are_added_up_by_a_grid(rng):
    for n, outside in ((MOST_ADDED, []), (MOST_ADDED + 1, ["mean"])):
        labels = gg.constant(rng.integers(0, 2, n))

        def step(x, labels=labels):
            tape, loss = taped(lambda x: gg.mean(gg.sparse_softmax_cross_entropy(x, labels)), x)
            return loss, tape.gradient(loss, x)

        program = join_losses(program_of(step, gg.zeros((n, 2))))
        assert (names(program), reductions(program)) == (["loss and gradient"], outside)


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
    assert [str(v.dtype) for v in both.outs] == ["float32", dtype, "float32"]


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


@needs_shim
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


def classifying(device, reduction, ignored, dtype="float32", metric=lambda loss, scores: loss):
    """A Variable, and a training step that returns the metric."""
    with gg.device(device):
        w = gg.Variable(np.linspace(-1, 1, 20).reshape(5, 4).astype(dtype))
        optimizer = gg.optim.Adam(0.1)

    def step(x, labels):
        with gg.GradientTape() as tape:
            losses = {"reduction": reduction, "ignore_index": ignored}
            scores = gg.astype(x @ w, "float32")
            loss = gg.nn.cross_entropy(scores, labels, **losses)
        optimizer.apply_gradients([(tape.gradient(loss, w), w)])
        return metric(loss, scores)

    return w, step


def batches(rng, several=1, dtype="float32", n=6):
    x, labels = rng.normal(size=(n, several, 6, 5)), rng.integers(0, 4, (n, several, 6))
    return [*zip(x.astype(dtype), labels, strict=True)]


CASES = [("mean", -1, "float32"), ("mean", 2, "float16"), ("sum", None, "float32")]


@pytest.mark.usefixtures("cuda")
@pytest.mark.parametrize("several", [1, 2])
@pytest.mark.parametrize(("reduction", "ignored", "dtype"), CASES)
def test_each_replay_on_a_device_adds_its_losses_up(reduction, ignored, dtype, several, rng):
    """Also replays on other streams, and of several steps."""
    cp = cupy()
    w, step = classifying("cuda:0", reduction, ignored, dtype)
    v, eager = classifying("cpu", reduction, ignored, dtype)
    traced = gg.function(step, steps_per_call=several)
    streams = [cp.cuda.Stream(non_blocking=True) for _ in range(2)]
    desired, actual = [], []
    for k, batch in enumerate(batches(rng, several, dtype)):
        desired += [eager(*map(gg.constant, each)).item() for each in zip(*batch, strict=True)]
        args = [gg.constant(a, device="cuda:0") for a in batch]
        cp.cuda.Device().synchronize()
        with streams[k % 2]:
            actual.append(traced(*args))
    cp.cuda.Device().synchronize()  # compared last: no call may change earlier results
    near = 1e-5 if dtype == "float32" else 1e-2
    np.testing.assert_allclose([x for a in actual for x in a.tolist()], desired, near)
    np.testing.assert_allclose(*(z.numpy().astype("d") for z in (w, v)), near, near)
    launches = next(iter(traced._plans.values())).replay
    (both,) = [s for s in launches.program.steps if s.name == "loss and gradient"]
    assert len(both.outs) == 3


METRICS = {
    "loss": (lambda loss, scores: loss, False),
    "loss twice": (lambda loss, scores: (loss, {"loss": loss}), False),
    "reshaped loss": (lambda loss, scores: gg.reshape(loss, (1, 1)), True),
    "loss and scores": (lambda loss, scores: (loss, scores), True),
    "scores": (lambda loss, scores: scores, True),
    "nothing": (lambda loss, scores: None, False),
}


@pytest.mark.usefixtures("cuda")
@pytest.mark.parametrize("metric", METRICS)
def test_the_kernel_of_the_losses_writes_their_sum_to_the_result(metric, rng):
    """A graph copies results only if there are others."""
    if not driver.is_active():
        pytest.skip(reason="a GPU does not log its work")
    returns, copies = METRICS[metric]
    steps = {d: classifying(d, "mean", -1, metric=returns)[1] for d in ("cpu", "cuda:0")}
    traced = gg.function(steps["cuda:0"])
    results = []
    for k, batch in enumerate(batches(rng)):
        desired = steps["cpu"](*(gg.constant(a[0]) for a in batch))
        args = [gg.constant(a[0], device="cuda:0") for a in batch]
        with driver.logged() as work:
            results.append((traced(*args), desired))
        if k > 1:  # captured, and then settled
            replayed = [w.name for w in work if w.way == "replay" and w.kind == "kernel"]
            assert ("put" in replayed) == copies, replayed
    for actual, desired in results:
        for a, d in zip(nest.flatten(actual), nest.flatten(desired), strict=True):
            if d is not None:
                np.testing.assert_allclose(a.numpy(), d.numpy(), 1e-5, 1e-6)
