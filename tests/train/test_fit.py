"""fit, evaluate and callbacks."""

import csv
import errno
import json
import sys
from pathlib import Path

import numpy as np
import pytest

import gpugrad as gg
from gpugrad.core import nest
from gpugrad.errors import ArgumentError, NumericsError

train = gg.train
RNG = np.random.default_rng(0)
X = RNG.normal(size=(60, 4)).astype("f4")
LABELS = (X[:, 0] > 0).astype(int) + (X[:, 1] > 0)


def model_and_data(seed=0):
    generator = gg.random.Generator(seed)
    model = gg.nn.Sequential(
        gg.nn.Dense(4, 16, gg.tanh, generator=generator), gg.nn.Dense(16, 3, generator=generator)
    )
    return model, gg.data.DataLoader(gg.data.Arrays(X, LABELS), 16, shuffle=True)


def loss(outputs, labels):
    return gg.nn.cross_entropy(outputs, labels)


def fit(*args, **keywords):
    return train.fit(*args, progress=False, **keywords)


def test_fit_trains_as_the_loop_by_hand():
    model, data = model_and_data()
    run = fit((model, loss), data, 3, optimizer=gg.optim.Adam(0.05), metrics=[train.Accuracy()])

    by_hand, data = model_and_data()
    optimizer, history = gg.optim.Adam(0.05), []
    for _ in range(3):
        total = right = 0.0
        for x, labels in data:
            with gg.GradientTape() as tape, gg.nn.training():
                outputs = by_hand(x)
                value = loss(outputs, labels)
            variables = by_hand.trainable_variables
            grads = tape.gradient(value, variables)
            optimizer.apply_gradients(zip(grads, variables, strict=True))
            total += float(value) * len(x)
            right += (outputs.numpy().argmax(-1) == labels).sum()
        history.append((total / 60, right / 60))
    for a, b in zip(model.variables, by_hand.variables, strict=True):
        np.testing.assert_allclose(a.numpy(), b.numpy(), 1e-5, 1e-6)
    actual = [(logs["loss"], logs["accuracy"]) for logs in run.history]
    np.testing.assert_allclose(actual, history, 1e-5)
    assert (run.epoch, run.step, run.interrupted) == (3, 12, False)


class Stream:
    """An iterable without a length."""

    def __iter__(self):
        return iter([np.full(2, k, "f4") for k in range(3)])


def test_data_of_unknown_length_train_too():
    assert fit(lambda x: gg.mean(x), Stream(), 2).step == 6
    run = fit(lambda x: gg.mean(x), gg.data.DataLoader(Stream(), 2), 2)
    assert (run.step, run.steps_per_epoch, run.logs["loss"]) == (4, None, 1.0)


def test_a_step_of_your_own_returns_a_loss_or_numbers():
    batches = [np.ones((2, 3)), np.ones((1, 3)) * 4]
    run = fit(lambda x: gg.mean(x), batches)
    assert run.logs["loss"] == 2.0  # the mean over examples
    assert fit(lambda x: {}, batches).step == 2
    run = fit(lambda x: {"a": gg.mean(x), "b": 7}, batches, 2)
    assert (run.history[1]["a"], run.history[1]["b"]) == (2.0, 7.0)


def test_validation_evaluates_in_inference_mode():
    model = gg.nn.Sequential(gg.nn.Dropout(0.9), gg.nn.Dense(4, 3))
    data = [(X, LABELS)]
    metrics = [train.Accuracy(), train.TopK(2)]
    run = fit((model, loss), data, optimizer=gg.optim.SGD(0.1), metrics=metrics, validation=data)
    with gg.nn.training(False):
        outputs = model(X)
    assert run.logs["val_loss"] == pytest.approx(loss(outputs, LABELS).item(), rel=1e-5)
    assert run.logs["val_accuracy"] == pytest.approx((outputs.numpy().argmax(-1) == LABELS).mean())
    assert set(run.logs) == {
        "loss", "accuracy", "top2", "val_loss", "val_accuracy", "val_top2", "seconds"
    }  # fmt: skip
    values = train.evaluate(model, data, [train.Mean(loss, "loss"), *metrics])
    assert values == {k: run.logs[f"val_{k}"] for k in values}


def test_callbacks_are_called_in_order():
    calls = []

    class Note(train.Callback):
        def __getattribute__(self, name):
            if name in ("begin", "begin_epoch", "end_of_step", "end_of_epoch", "end"):
                return lambda run: calls.append((name, run.epoch, run.step))
            return super().__getattribute__(name)

    fit(lambda x: x, [1.0, 2.0], 2, callbacks=[Note()])
    assert calls == [
        ("begin", 0, 0),
        ("begin_epoch", 0, 0), ("end_of_step", 0, 1), ("end_of_step", 0, 2), ("end_of_epoch", 1, 2),
        ("begin_epoch", 1, 2), ("end_of_step", 1, 3), ("end_of_step", 1, 4), ("end_of_epoch", 2, 4),
        ("end", 2, 4),
    ]  # fmt: skip


@pytest.mark.parametrize("error", [KeyboardInterrupt, ZeroDivisionError])
def test_callbacks_end_when_a_run_is_interrupted(error):
    ended = []

    class Interrupt(train.Callback):
        def end_of_step(self, run):
            if run.step == 3:
                raise error

        def end(self, run):
            ended.append(run.step)

    if error is KeyboardInterrupt:
        run = fit(lambda x: x, [1.0, 2.0], 5, callbacks=[Interrupt()])
        assert run.interrupted
        assert (run.epoch, run.step) == (1, 3)
    else:
        with pytest.raises(ZeroDivisionError):
            fit(lambda x: x, [1.0, 2.0], 5, callbacks=[Interrupt()])
    assert ended == [3]


def test_early_stopping_restores_the_best_weights():
    model = gg.nn.Dense(1, 1, use_bias=False)
    scores = iter([3.0, 1.0, 2.0, 1.0, 5.0, 0.0])

    class Score(train.Callback):
        def end_of_epoch(self, run):
            model.kernel.assign([[float(run.epoch)]])
            run.logs["score"] = next(scores)

    stop = train.EarlyStopping("score", patience=3, restore_best=True)
    data = [(np.ones((1, 1), "f4"), np.ones((1, 1), "f4"))]
    run = fit((model, gg.mse), data, 9, optimizer=gg.optim.SGD(0), callbacks=[Score(), stop])
    assert (run.epoch, stop.best_epoch) == (5, 2)
    assert model.kernel.numpy().item() == 2.0
    with pytest.raises(ArgumentError, match="there is no 'val_loss' among"):
        fit(lambda x: x, [1.0], callbacks=[train.EarlyStopping()])
    with pytest.raises(ArgumentError, match=r"mode must be .*, got 'up'"):
        train.EarlyStopping(mode="up")


def test_logs_are_appended_to_files(tmp_path):
    logs = [train.JSONLog(tmp_path / "a" / "log.jsonl"), train.CSVLog(tmp_path / "log.csv")]
    for _ in range(2):
        fit(lambda x: x, [1.0, 3.0], 2, callbacks=logs)
    lines = [json.loads(line) for line in logs[0].path.read_text().splitlines()]
    assert [line["epoch"] for line in lines] == [1, 2, 1, 2]
    assert all(line["loss"] == 2.0 and line["seconds"] > 0 for line in lines)
    with logs[1].path.open(newline="") as file:
        rows = list(csv.DictReader(file))
    assert [row["step"] for row in rows] == ["2", "4"] * 2
    with pytest.raises(ArgumentError, match=r"has the columns \['epoch'"):
        fit(lambda x: {"other": x}, [1.0], callbacks=[logs[1]])


def test_a_full_disk_is_a_warning_and_leaves_whole_lines(tmp_path, monkeypatch):
    logs = [train.JSONLog(tmp_path / "log.jsonl"), train.CSVLog(tmp_path / "log.csv")]
    full = []

    class Disk(train.Callback):  # full at the end of the second of three epochs
        def end_of_epoch(self, run):
            full[:] = [True] if run.epoch == 2 else []

    opened = Path.open

    def open_on_disk(path, *args, **keywords):
        file = opened(path, *args, **keywords)
        if full and args[:1] == ("a",):
            with file:
                file.write("part of a l")
            raise OSError(errno.ENOSPC, "No space left on device")
        return file

    monkeypatch.setattr(Path, "open", open_on_disk)
    with pytest.warns(RuntimeWarning, match="cannot be written: No space left") as warned:
        run = fit(lambda x: x, [1.0, 3.0], 3, callbacks=[Disk(), *logs])
    assert {str(w.message).partition(":")[0] for w in warned} == {"JSONLog", "CSVLog"}
    assert run.epoch == 3
    lines = [json.loads(line) for line in logs[0].path.read_text().splitlines()]
    assert [line["epoch"] for line in lines] == [1, 3]
    assert [row["epoch"] for row in csv.DictReader(logs[1].path.read_text().splitlines())] == [
        "1",
        "3",
    ]


def test_a_picture_that_cannot_be_written_is_a_warning(tmp_path):
    pytest.importorskip("matplotlib")
    plot = train.Plot(tmp_path / "run.png")

    class InTheWay(train.Callback):
        def end_of_epoch(self, run):
            plot.path.mkdir(exist_ok=True)

    with pytest.warns(RuntimeWarning, match=r"Plot: .*run\.png cannot be written"):
        run = fit(lambda x: x, [1.0], 2, callbacks=[InTheWay(), plot])
    assert run.epoch == 2


def test_tensorboard_reads_what_its_writer_wrote(tmp_path):
    loading = pytest.importorskip("tensorboard.backend.event_processing.event_accumulator")
    fit(lambda x: x, [1.0, 3.0], 3, callbacks=[train.TensorBoard(tmp_path)])
    events = loading.EventAccumulator(str(tmp_path)).Reload()
    assert [(e.step, e.value) for e in events.Scalars("loss")] == [(2, 2.0), (4, 2.0), (6, 2.0)]


def test_a_plot_is_a_picture_with_a_panel_for_each_number(tmp_path):
    image = pytest.importorskip("matplotlib.image")
    model, data = model_and_data()
    fit(
        (model, loss), data, 2, optimizer=gg.optim.SGD(0.1), metrics=[train.Accuracy()],
        validation=data, callbacks=[train.Plot(tmp_path / "new" / "run.png")],
    )  # fmt: skip
    pixels = image.imread(tmp_path / "new" / "run.png")
    assert pixels.shape[:2] == (624, 768)
    assert 0 < (pixels[..., :3].min(-1) < 0.9).mean() < 0.3


@pytest.mark.parametrize(
    ("name", "make"),
    [("matplotlib", lambda: train.Plot("a.png")), ("tensorboard", lambda: train.TensorBoard("a"))],
)
def test_missing_packages_are_named(name, make, monkeypatch):
    for module in [m for m in sys.modules if m.partition(".")[0] == name]:
        monkeypatch.delitem(sys.modules, module)
    monkeypatch.setitem(sys.modules, name, None)
    with pytest.raises(ArgumentError, match=f"pip install {name}"):
        make()


def test_progress_without_tqdm_prints_a_line_for_each_epoch(capsys, monkeypatch):
    monkeypatch.setitem(sys.modules, "tqdm.auto", None)
    train.fit(lambda x: x, [1.0, 3.0], 2)
    assert capsys.readouterr().err == "epoch 1/2: loss 2\nepoch 2/2: loss 2\n"


def test_progress_shows_a_bar_by_tqdm(capsys):
    pytest.importorskip("tqdm")
    train.fit(lambda x: x, [1.0] * 12, 2)
    err = capsys.readouterr().err
    assert "epoch 2/2: 100%" in err
    assert "loss 1" in err


def test_progress_shows_one_bar_of_a_whole_run(capsys):
    pytest.importorskip("tqdm")
    train.fit(lambda x: x, [1.0] * 3, 4, progress=False, callbacks=[train.Progress(whole=True)])
    err = capsys.readouterr().err
    assert "training: 100%" in err
    assert "12/12" in err
    assert "epoch" not in err


def test_numbers_of_a_callback_stand_in_the_history():
    class Validation(train.Callback):
        def end_of_epoch(self, run):
            run.logs["val_loss"] = 10.0 * run.epoch

    seen = train.EarlyStopping("val_loss", patience=1)
    run = fit(lambda x: x, [1.0, 2.0], 3, callbacks=[Validation(), seen])
    assert [logs["val_loss"] for logs in run.history] == [10, 20]
    assert seen.best_epoch == 1


@pytest.mark.parametrize("value", [0.25, np.float32(0.25), gg.constant(0.25), gg.Variable(0.25)])
def test_numbers_of_a_callback_may_be_of_any_kind(value, tmp_path):
    class Rate(train.Callback):
        def end_of_epoch(self, run):
            run.logs["rate"] = value

    checkpoints = train.Checkpoints(tmp_path, v=gg.Variable(0.0))
    logs = [train.JSONLog(tmp_path / "a.jsonl"), train.CSVLog(tmp_path / "a.csv")]
    run = fit(lambda x: x, [1.0], callbacks=[Rate(), *logs, checkpoints, train.Progress()])
    assert run.history[0]["rate"] == 0.25
    assert json.loads(logs[0].path.read_text())["rate"] == 0.25
    Rate.end_of_epoch = lambda self, run: run.logs.update(rate="high")
    with pytest.raises(
        ArgumentError, match="logs must be numbers, but after Rate 'rate' is 'high'"
    ):
        fit(lambda x: x, [1.0], callbacks=[Rate()])


def test_numbers_that_json_cannot_hold_are_null(tmp_path):
    log = train.JSONLog(tmp_path / "log.jsonl")
    fit(lambda x: {"a": np.nan, "b": -np.inf, "c": 1.0}, [1.0], callbacks=[log])
    numbers = json.loads(log.path.read_text())
    assert [numbers[k] for k in "abc"] == [None, None, 1.0]


@pytest.mark.parametrize(
    "pack",
    [
        lambda x: x,
        lambda x: (x, 1.0),
        lambda x: {"a": x},
        lambda x: ((x, x), x),
        lambda x: [{1: x}],
    ],
)
def test_batches_of_any_structure_count_their_examples(pack):
    batches = [pack(np.full(n, k, "f4")) for k, n in enumerate((9, 1))]
    first = lambda *parts: gg.mean(nest.flatten(parts)[0])  # noqa: E731
    assert fit(first, batches).logs["loss"] == pytest.approx(0.1)


def test_inputs_may_be_nested():
    class Two(gg.nn.Module):
        def __init__(self):
            self.layers = [gg.nn.Dense(4, 3), gg.nn.Dense(2, 3)]

        def forward(self, inputs):
            return self.layers[0](inputs[0]) + self.layers[1](inputs[1])

    data = gg.data.DataLoader(gg.data.Arrays((X, X[:, :2]), LABELS), 16)
    run = fit((Two(), loss), data, 2, optimizer=gg.optim.SGD(0.1), validation=data)
    assert run.logs["val_loss"] < run.history[0]["loss"]


def test_fit_scales_the_loss_of_an_optimizer_with_a_loss_scale():
    weights = []
    for wrapped in (lambda o: o, gg.optim.LossScaleOptimizer):
        model, data = model_and_data()
        fit((model, loss), data, 2, optimizer=wrapped(gg.optim.SGD(0.1)))
        weights.append([v.numpy() for v in model.variables])
    for plain, scaled in zip(*weights, strict=True):
        np.testing.assert_allclose(plain, scaled, 1e-5, 1e-6)


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (lambda: fit(lambda x: x, []), "the data has no batches"),
        (lambda: fit(lambda x: x, [1.0], epochs=1.5), "epochs must be a whole number"),
        (lambda: fit(lambda x: x, [1.0], metrics=[train.Accuracy()]), "go with a pair"),
        (lambda: fit((model_and_data()[0], loss), []), "needs optimizer="),
        (lambda: fit((3, loss), [], optimizer=gg.optim.SGD(0.1)), "expected a pair"),
        (
            lambda: fit((model_and_data()[0], loss), [X], optimizer=gg.optim.SGD(0.1)),
            "must be a tuple of inputs and labels, got .*Tensor.*DataLoader",
        ),
        (lambda: fit(lambda x: None, [1.0]), "the step must return a loss .* 'loss' is None"),
        (lambda: fit(lambda x: np.ones(2), [1.0]), "the step must return .* 'loss' is array"),
        (lambda: fit(lambda x: {"a": "text"}, [1.0]), "the step must return .* 'a' is 'text'"),
        (lambda: fit(lambda x: x, gg.data.Arrays(X)), "Arrays has single examples"),
        (lambda: fit(lambda x: x, iter([1.0]), 2), "no batches. An iterator can be read only"),
        (lambda: fit((model_and_data()[0], loss), [], optimizer=gg.optim.SGD), "needs optim"),
        (
            lambda: train.evaluate(lambda x: x, [], [train.Accuracy(), train.Accuracy()]),
            "two metrics have one name",
        ),
        (lambda: train.Plot("a.foo"), r"Plot: a.foo must end in one of .*\.png"),
        (lambda: train.evaluate(lambda x: x, [], [train.Accuracy()]), "no batches"),
    ],
)
def test_what_does_not_fit_raises(call, words):
    with pytest.raises(ArgumentError, match=words):
        call()


def test_a_loss_that_is_not_finite_stops_the_run():
    with pytest.raises(NumericsError, match=r"the loss is nan at step 10, in epoch 1.*debug\.nans"):
        fit(lambda x: x, [1.0] * 5 + [float("nan")] * 10, 3)


def test_labels_that_do_not_match_name_the_shapes():
    model, _ = model_and_data()
    with pytest.raises(ValueError, match=r"\(60, 3\).*\(7,\)|\(7,\).*\(60, 3\)"):
        fit((model, loss), [(X, LABELS[:7])], optimizer=gg.optim.SGD(0.1))
