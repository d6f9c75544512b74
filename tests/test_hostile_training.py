"""Hostile values in the place of every argument of gg.data, gg.train, layers and optimizers.

Each call returns, or raises a documented error that names the class or function.
"""

import atexit
import contextlib
import inspect
import shutil
import tempfile
from pathlib import Path

import numpy as np
import pytest
from hostile import EACH_THIRD, bounded_calls, complaints, split

import gpugrad as gg
from gpugrad.nn.of_functions import FunctionLayer

nn, data, train, optim = gg.nn, gg.data, gg.train, gg.optim
X, LABELS = np.ones((4, 2), np.float32), np.array([0, 1, 1, 0])
IMAGES = np.ones((2, 1, 4, 4), np.float32)
FILES = Path(tempfile.mkdtemp())
atexit.register(shutil.rmtree, FILES, ignore_errors=True)
(FILES / "a.txt").write_text("one\ntwo\n")
np.save(FILES / "a.npy", X)


def used(make, use):
    """A function that makes an object and uses it: some arguments are only checked then."""

    def call(*args, **keywords):
        with contextlib.chdir(FILES):  # where a path that is hostile but valid may stay
            return use(make(*args, **keywords))

    call.__signature__ = inspect.signature(make)
    return call


def read(loader):
    try:
        return list(loader)
    finally:
        loader.close()


class Stop(train.Callback):
    def end_of_epoch(self, run):
        run.stop()


def run_with(*callbacks):
    model = nn.Dense(2, 2)
    return train.fit(
        (model, nn.cross_entropy), [(X, LABELS)], optimizer=optim.SGD(), progress=False,
        callbacks=callbacks, metrics=[train.Accuracy()],
    )  # fmt: skip


def measure(metric):
    return metric.result(metric.sums(gg.constant(X), LABELS).numpy())


def stepped(optimizer):
    v = gg.Variable([[1.0, 2.0], [3.0, 4.0]])
    optimizer.apply_gradients([(gg.ones((2, 2)), v)])


def stepped_pair(optimizer):
    pair = gg.Variable([0.0, 0.0]), gg.Variable(gg.eye(2))
    optimizer.apply_gradients([((gg.ones(2), gg.eye(2)), pair)])


def minimized(optimizer):
    v = gg.Variable([1.0, 2.0])
    optimizer.minimize(lambda: gg.sum(v * v), [v])


def averaged(average):
    average.update()
    with average.apply():
        pass


def at_steps(schedule):
    return [schedule(n) for n in (0, 1, 5)]


def minimize_lbfgs(loss=None, var_list=None):
    v = gg.Variable([1.0, 2.0])
    optim.LBFGS().minimize((lambda: gg.sum(v * v)) if loss is None else loss, var_list)


def natural_step(pairs=None, gradients=None):
    pair = gg.Variable([0.0, 0.0]), gg.Variable(gg.eye(2))
    gradients = (gg.ones(2), gg.eye(2)) if gradients is None else gradients
    optim.NaturalGradient().apply_gradients([(gradients, pair)] if pairs is None else pairs)


def loader_state(state=(0, 1)):
    data.DataLoader(X).load_state(state)


def saved(step=1, metadata=None):
    train.Checkpoints(FILES / "saved", v=gg.Variable(1.0)).save(step, metadata)


def restored(path=None):
    train.Checkpoints(FILES / "saved", v=gg.Variable(1.0)).restore(path)


def metric_of(make):
    return lambda outputs=X, labels=LABELS: make().sums(outputs, labels)


MODEL = nn.Dense(2, 2)
OPTIMIZERS = {
    name: (used(getattr(optim, name), stepped), {})
    for name in (
        "SGD", "Adam", "AdamW", "NAdam", "RAdam", "Adamax", "RMSprop", "Adagrad", "Adadelta",
        "Lion", "LAMB", "LARS", "Adafactor", "Muon",
    )
}  # fmt: skip
SCHEDULES = {
    f"schedules.{name}": (used(getattr(optim.schedules, name), at_steps), arguments)
    for name, arguments in {
        "constant": {"learning_rate": 0.1},
        "cosine": {"learning_rate": 0.1, "steps": 3},
        "exponential": {"learning_rate": 0.1, "factor": 0.5},
        "join": {"schedules": [0.1, 0.2], "boundaries": [2]},
        "one_cycle": {"learning_rate": 0.1, "steps": 9},
        "piecewise": {"boundaries": [2], "values": [0.1, 0.2]},
        "polynomial": {"learning_rate": 0.1, "steps": 3},
        "step": {"learning_rate": 0.1, "every": 3},
        "warmup": {"steps": 3, "then": 0.1},
    }.items()
}
CALLS = {
    "Arrays": (used(data.Arrays, lambda d: d[0]), {"arrays": (X,)}),
    "DataLoader": (used(data.DataLoader, read), {"dataset": X, "batch_size": 2}),
    "DataLoader workers": (used(data.DataLoader, read), {"dataset": X, "num_workers": 1}),
    "DataLoader.load_state": (loader_state, {}),
    "Windows": (used(data.Windows, lambda d: d[0]), {"tokens": np.arange(9), "length": 3}),
    "Lines": (used(data.Lines, list), {"path": FILES / "a.txt"}),
    "open_npy": (used(data.open_npy, len), {"path": FILES / "a.npy"}),
    "open_text": (used(data.open_text, len), {"path": FILES / "a.txt"}),
    **{
        name: (getattr(data.augment, name), {"images": IMAGES, **arguments})
        for name, arguments in {
            "random_affine": {"rng": np.random.default_rng(0)},
            "random_crop": {"rng": np.random.default_rng(0), "size": 2},
            "random_flip": {"rng": np.random.default_rng(0)},
        }.items()
    },
    "fit": (train.fit, {
        "step": (MODEL, nn.cross_entropy), "data": [(X, LABELS)], "optimizer": optim.SGD(),
        "callbacks": [Stop()], "progress": False}),
    "fit step": (train.fit, {
        "step": lambda *batch: 0.0, "data": [(X, LABELS)], "callbacks": [Stop()],
        "progress": False}),
    "evaluate": (
        train.evaluate, {"model": MODEL, "data": [(X, LABELS)], "metrics": [train.Accuracy()]}
    ),
    "Checkpoints": (used(train.Checkpoints, run_with), {"folder": "new"}),
    "Checkpoints.save": (saved, {}),
    "Checkpoints.restore": (restored, {}),
    "CSVLog": (used(train.CSVLog, run_with), {"path": "a.csv"}),
    "JSONLog": (used(train.JSONLog, run_with), {"path": "a.jsonl"}),
    "Plot": (used(train.Plot, run_with), {"path": "a.png"}),
    "EarlyStopping": (used(train.EarlyStopping, run_with), {"monitor": "loss"}),
    "Progress": (used(train.Progress, run_with), {}),
    "Accuracy": (used(train.Accuracy, measure), {}),
    "F1": (used(train.F1, measure), {"classes": 2}),
    "Mean": (used(train.Mean, measure), {"f": nn.cross_entropy}),
    "TopK": (used(train.TopK, measure), {"k": 1}),
    "Accuracy.sums": (metric_of(train.Accuracy), {}),
    "F1.sums": (metric_of(lambda: train.F1(2)), {}),
    "TopK.sums": (metric_of(lambda: train.TopK(1)), {}),
    **OPTIMIZERS,
    "LBFGS": (used(optim.LBFGS, minimized), {}),
    "LBFGS.minimize": (minimize_lbfgs, {}),
    "NaturalGradient": (used(optim.NaturalGradient, stepped_pair), {}),
    "NaturalGradient.apply_gradients": (natural_step, {}),
    "EMA": (used(optim.EMA, averaged), {"variables": [gg.Variable(1.0)]}),
    "SWA": (used(optim.SWA, averaged), {"variables": [gg.Variable(1.0)]}),
    **SCHEDULES,
}  # fmt: skip
ALSO = {  # other names in messages
    **dict.fromkeys(
        ("fit", "fit step", "evaluate"), ("evaluate", "prefetch_to_device", "constant")
    ),
    "Checkpoints.restore": ("checkpoint", "load"),
}


SIGNAL, VOLUME = np.ones((1, 4, 4), np.float32), np.ones((1, 4, 4, 4, 4), np.float32)
SAMPLES = {  # arguments that have no default, by the parameter's name
    "downscale_factor": 2, "groups": 2, "kernel_size": 2, "norm_type": 2.0, "output_size": 4,
    "scale_factor": 2, "size": 2, "threshold": 0.5, "upscale_factor": 2, "value": 0.0,
}  # fmt: skip


def function_layers():
    """The layers without weights, called on a suitable array, with arguments."""
    found = {}
    for name in nn.__all__:
        layer = getattr(nn, name)
        if FunctionLayer not in getattr(layer, "__mro__", ()):
            continue
        x = SIGNAL if "1d" in name else VOLUME if "3d" in name else IMAGES
        if name in ("ChannelShuffle", "PixelShuffle"):
            x = np.ones((1, 4, 4, 4), np.float32)
        if name == "Fold":
            x = np.ones((1, 4, 9), np.float32)
        parameters = layer._parameters.parameters.values()
        arguments = {
            p.name: SAMPLES[p.name]
            for p in parameters
            if p.default is p.empty or p.name == "scale_factor"
        }

        def make(*args, layer=layer, **keywords):
            return layer(*args, **keywords)

        make.__signature__ = layer._parameters
        call = used(make, lambda m, x=x: m(x))
        found[f"{name} {layer._function.__name__}"] = call, arguments
    return found


CALLS |= function_layers()


@pytest.mark.parametrize("title", CALLS)
def test_good_arguments_are_accepted(title):
    function, arguments = CALLS[title]
    args, keywords = split(inspect.signature(function).parameters, arguments)
    function(*args, **keywords)


@EACH_THIRD
@pytest.mark.parametrize("title", CALLS)
def test_hostile_arguments_are_accepted_or_raise_a_named_error(title, third, capsys):
    function, arguments = CALLS[title]
    with bounded_calls():
        wrong = complaints(title, function, arguments, third, ALSO.get(title, ()))
    assert not wrong, f"{len(wrong)} calls:\n" + "\n".join(wrong)


def test_every_public_class_has_a_row():
    rows = {word for title in CALLS for word in title.replace(".", " ").split()}
    elsewhere = {  # base classes, kinds, results, and those in test_hostile_calls.py
        "ABOVE_0", "BELOW_1", "NOT_NEGATIVE",
        "Dataset", "LoaderState", "Callback", "Metric", "Run", "TensorBoard", "Optimizer", "ranges",
        "LossScale", "LossScaleOptimizer", "all_finite", "clip_by_global_norm", "Schedule",
    }  # fmt: skip
    for space in (data, data.augment, train, optim, optim.schedules):
        names = {n for n in space.__all__ if callable(getattr(space, n))}
        assert not names - rows - elsewhere, space.__name__
