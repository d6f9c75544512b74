"""Metrics against their definitions, over batches."""

import numpy as np
import pytest

import gpugrad as gg
from gpugrad.errors import ArgumentError, IndexOutOfBoundsError, ShapeError, TraceError

train = gg.train
RNG = np.random.default_rng(0)
OUTPUTS = RNG.normal(size=(50, 4)).astype("f4")
LABELS = RNG.integers(0, 4, 50)


def over_batches(metric, outputs, labels, sizes=(20, 20, 10)):
    total, at = 0.0, 0
    for n in sizes:
        total = total + metric.sums(outputs[at : at + n], labels[at : at + n]).numpy()
        at += n
    return metric.result(total)


def f1(guess, labels, classes, average):
    scores, counts = [], np.zeros(3)
    for c in range(classes):
        right = ((guess == c) & (labels == c)).sum()
        guesses, truth = (guess == c).sum(), (labels == c).sum()
        counts += right, guesses, truth
        if guesses + truth:
            scores.append(2 * right / (guesses + truth))
    return np.mean(scores) if average == "macro" else 2 * counts[0] / (counts[1] + counts[2])


@pytest.mark.parametrize("traced", [False, True])
def test_metrics_match_their_definitions(traced):
    guess = OUTPUTS.argmax(-1)
    place = (-OUTPUTS).argsort(-1).argsort(-1)[np.arange(50), LABELS]
    table = [
        (train.Accuracy(), (guess == LABELS).mean()),
        (train.TopK(2), (place < 2).mean()),
        (train.F1(4), f1(guess, LABELS, 4, "macro")),
        (train.F1(4, "micro"), f1(guess, LABELS, 4, "micro")),
        (train.Mean(gg.nn.cross_entropy), gg.nn.cross_entropy(OUTPUTS, LABELS).item()),
        (
            train.Mean(lambda o, t: gg.nn.cross_entropy(o, t, reduction="none"), "each"),
            gg.nn.cross_entropy(OUTPUTS, LABELS).item(),
        ),
    ]
    for metric, desired in table:
        if traced:
            metric.sums = gg.function(metric.sums)
        outputs, labels = gg.constant(OUTPUTS), gg.constant(LABELS)
        assert over_batches(metric, outputs, labels) == pytest.approx(desired, rel=1e-5)


def test_accuracy_of_binary_outputs_is_by_sign():
    metric = train.Accuracy()
    outputs, labels = np.array([[2.0], [-1.0], [0.5], [-3.0]]), np.array([[1], [0], [0], [1]])
    assert over_batches(metric, outputs, labels, (3, 1)) == 0.5
    sequences = np.eye(3)[None].repeat(2, 0)  # (examples, positions, classes)
    assert over_batches(metric, sequences, np.array([[0, 1, 2], [0, 1, 0]]), (2,)) == pytest.approx(
        5 / 6
    )


def test_shapes_that_do_not_fit_raise():
    with pytest.raises(ShapeError, match=r"Accuracy: outputs of shape \(50, 4\) need labels"):
        train.Accuracy().sums(OUTPUTS, LABELS[:3])
    with pytest.raises(ShapeError, match="TopK: outputs"):
        train.TopK(2).sums(OUTPUTS, OUTPUTS)
    with pytest.raises(ShapeError, match="do not fit to 3 classes"):
        train.F1(3).sums(OUTPUTS, LABELS)
    for make in (lambda: train.TopK(0), lambda: train.F1(3, "weighted"), lambda: train.Mean(3)):
        with pytest.raises(ArgumentError):
            make()


def test_no_examples_give_nan():
    assert np.isnan(train.Accuracy().result(np.zeros(2)))
    assert train.F1(2).result(np.zeros(6)) == 0


def test_accuracy_refuses_labels_that_may_be_one_hot():
    outputs, labels = np.array([[2.0, 1.0], [-1.0, 1.0]]), np.array([[1, 0], [1, 0]])
    with pytest.raises(ShapeError, match=r"one-hot, pass class numbers.*multilabel=True"):
        train.Accuracy().sums(outputs, labels)
    assert over_batches(train.Accuracy(multilabel=True), outputs, labels, (2,)) == 0.25


def test_accuracy_of_class_numbers_compares_them():
    guesses, labels = np.array([2, 1, 0, 2]), np.array([2, 2, 1, 2])
    assert over_batches(train.Accuracy(), guesses, labels, (3, 1)) == 0.5


def test_labels_that_are_no_class_raise():
    for wrong in (-1, 4):
        labels = np.where(np.arange(len(LABELS)) == 3, wrong, LABELS)
        with pytest.raises(IndexOutOfBoundsError, match=f"{wrong}.*classes from 0 to 3"):
            train.TopK(2).sums(OUTPUTS, labels)


def test_mean_takes_one_value_or_one_for_each_example():
    per_token = train.Mean(lambda y, t: (y - t) ** 2)
    with pytest.raises(ShapeError, match=r"each of 2 examples, got values of shape \(2, 5\)"):
        per_token.sums(np.ones((2, 5)), np.zeros((2, 5)))
    column = np.array([[1.0], [2.0], [4.0]])
    assert over_batches(per_token, column, 0 * column, (2, 1)) == 7


@pytest.mark.parametrize("dtype", ["float16", "bfloat16"])
@pytest.mark.parametrize("f", [lambda y, _: gg.mean(y), lambda y, _: y])
def test_mean_of_16_bit_values_adds_in_float32(f, dtype):
    metric, outputs = train.Mean(f), gg.full((70_001,), 3.0, dtype=dtype)
    assert metric.result(metric.sums(outputs, outputs).numpy()) == 3


class Right(train.Metric):
    name = "right"

    def sums(self, outputs, labels):
        return gg.sum(gg.argmax(outputs, axis=-1) == labels, keepdims=True)

    def result(self, sums):
        return float(sums[0])


METRICS = [train.Accuracy(), train.TopK(2), train.F1(4), train.Mean(gg.nn.cross_entropy), Right()]


@pytest.mark.parametrize("metric", METRICS, ids=lambda m: m.name)
@pytest.mark.parametrize("at_once", [2, 64])
def test_a_loop_by_hand_has_the_numbers_of_evaluate(metric, at_once, monkeypatch):
    monkeypatch.setattr("gpugrad.train.metrics._AT_ONCE", at_once)
    ends = [(0, 20), (20, 40), (40, 50)]
    batches = [(gg.constant(OUTPUTS[i:j]), gg.constant(LABELS[i:j])) for i, j in ends]
    for _ in range(2):  # two epochs
        assert np.isnan(metric.result())
        with gg.GradientTape() as tape:
            for outputs, labels in batches:
                tape.watch(outputs)
                metric.update(outputs, labels)
        assert not tape.log
        by_fit = train.evaluate(lambda x: x, batches, [metric])
        assert metric.result() == pytest.approx(by_fit[metric.name])
        metric.reset()


def test_an_update_in_a_traced_function_raises():
    metric = train.Accuracy()
    with pytest.raises(TraceError, match=r"Accuracy: update .* call update outside"):
        gg.function(metric.update)(OUTPUTS, LABELS)
    assert np.isnan(metric.result())
