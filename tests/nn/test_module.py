"""Modules: names, state, freezing, hooks, the summary, and calls with other values."""

import copy
import dataclasses
import pickle
import threading
import warnings

import numpy as np
import pytest

import gpugrad as gg
from gpugrad.errors import ArgumentError, DTypeError, ShapeError, StructureError
from gpugrad.nn import layers
from gpugrad.nn.of_functions import FunctionLayer

nn = gg.nn


def small_model():
    return nn.Sequential(nn.Dense(2, 3, gg.tanh), nn.BatchNorm(3), nn.Dense(3, 1))


class Shared(nn.Module):
    """Two uses of one table, parts in a dict and a tuple, and a reference to itself."""

    def __init__(self):
        self.table = nn.Embedding(5, 2)
        self.parts = {"head": nn.Dense(2, 2), "pair": (nn.Dense(2, 2), gg.Variable([1.0, 2.0]))}
        self.tied = self.table.weight
        self.me = self

    def forward(self, i):
        x = self.parts["pair"][0](self.parts["head"](self.table(i))) * self.parts["pair"][1]
        return x @ gg.matrix_transpose(self.tied)


def test_variables_are_named_by_their_path():
    model = Shared()
    assert [v.name for v in model.variables] == list(model.state())
    assert model.parts["pair"][1].name == "parts.pair.1"
    assert model.tied.name == "table.weight"  # the first of two paths


@dataclasses.dataclass(eq=False)
class Wrapped(nn.Module):
    layer: nn.Module

    def forward(self, x):
        return self.layer(x)


@dataclasses.dataclass(eq=False)
class WrappedAndMore(Wrapped):
    width: int = 2

    def __post_init__(self):
        self.extra = gg.Variable(gg.ones(self.width))


@pytest.mark.parametrize(("make", "more"), [(Wrapped, []), (WrappedAndMore, ["extra"])])
def test_a_dataclass_names_its_parts(make, more):
    model = make(nn.Dense(3, 2))
    assert [v.name for v in model.variables] == ["layer.kernel", "layer.bias", *more]
    with pytest.raises(ShapeError, match=r"^layer: Dense: the last axis"):
        model(gg.ones((1, 2)))


def test_a_layer_that_is_assigned_later_is_named_by_its_path():
    model = nn.Sequential(nn.Dense(2, 3), nn.TransformerBlock(4, 2))
    model[1].out = nn.Sequential(nn.Dense(16, 4))
    model.head, tied = nn.Dense(4, 4), model[0]
    model.again = tied  # which has its name already
    tied.parent = model
    assert [v.name for v in model.variables] == [*model.state()]
    with pytest.raises(ShapeError, match=r"^layers\.1\.out\.layers\.0: Dense"):
        model[1].out(gg.ones((1, 2)))


def test_two_parts_with_one_path_are_refused():
    class Model(nn.Module):
        def __init__(self):
            self.parts = {1: gg.Variable(1.0), "1": gg.Variable(2.0)}

    with pytest.raises(StructureError, match=r"Model: two parts have the path 'parts\.1'"):
        Model()
    later = small_model()
    later.parts = {1: gg.Variable(1.0), "1": gg.Variable(2.0)}
    with pytest.raises(StructureError, match=r"Sequential: two parts have the path 'parts\.1'"):
        later.state()


def test_errors_begin_with_the_path_of_the_innermost_layer():
    class Outer(nn.Module):
        def __init__(self):
            self.blocks = [small_model(), small_model()]

        def forward(self, x):
            return self.blocks[1](x)

    with pytest.raises(ShapeError, match=r"^blocks\.1\.layers\.0: Dense: the last axis"):
        Outer()(gg.ones((4, 7)))
    model = nn.Sequential(nn.Conv2d(1, 2, 3), nn.MaxPool2d(9))
    with pytest.raises(ShapeError, match=r"^layers\.1: max_pool2d"):
        model(gg.ones((1, 1, 5, 5)))


def test_an_optimizer_names_the_variable_by_its_path():
    model = small_model()
    with pytest.raises(ShapeError, match=r"layers\.2\.kernel"):
        gg.optim.SGD(0.1).apply_gradients([(gg.ones(4), model.layers[2].kernel)])


def test_copies_and_pickles_of_a_model_keep_names_values_and_frozen_parts():
    model = small_model()
    model.layers[0].freeze()
    for other in (copy.deepcopy(model), pickle.loads(pickle.dumps(model))):
        assert list(other.state()) == list(model.state())
        assert [v.name for v in other.variables] == [v.name for v in model.variables]
        for a, b in zip(model.variables, other.variables, strict=True):
            assert a is not b
            assert a.trainable == b.trainable
            np.testing.assert_array_equal(a.numpy(), b.numpy())
        assert len(other.unfreeze().trainable_variables) == 6


def test_load_state_that_is_not_strict_reports_what_did_not_match():
    model = nn.Dense(1, 2)
    report = model.load_state({"kernel": [[3.0, 4.0]], "extra": 1.0}, strict=False)
    assert report == (["bias"], ["extra"])
    np.testing.assert_array_equal(model.kernel.numpy(), [[3.0, 4.0]])
    with pytest.raises(StructureError, match=r"missing \['bias'\], unexpected \['extra'\]"):
        model.load_state({"kernel": [[3.0, 4.0]], "extra": 1.0})
    with pytest.raises(ShapeError, match="kernel"):  # not strict about names only
        model.load_state({"bias": [9.0, 9.0], "kernel": [1.0]}, strict=False)
    np.testing.assert_array_equal(model.bias.numpy(), [0.0, 0.0])


def test_frozen_variables_get_no_gradient_and_running_statistics_stay_as_they_are():
    model = small_model()
    assert model.freeze() is model
    with gg.GradientTape() as tape, nn.training():
        loss = gg.sum(model(gg.ones((4, 2))))
    assert tape.watched_variables() == ()
    assert loss.shape == ()
    model.unfreeze()
    assert [v.name for v in model.variables if not v.trainable] == [
        "layers.1.running_mean",
        "layers.1.running_var",
    ]


def test_summary_does_not_call_the_cells_of_a_layer_unused():
    table = nn.GRU(2, 3).summary(gg.ones((1, 4, 2)))
    assert "not called" not in table
    assert "GRUCell  in a loop" in table


def test_trainable_may_be_set_on_a_module():
    model = small_model()
    model.layers[1].trainable = model.layers[0].trainable = False
    assert [v.name for v in model.trainable_variables] == ["layers.2.kernel", "layers.2.bias"]
    assert (model.trainable, model.layers[0].trainable) == (True, False)
    model.trainable = True
    assert len(model.trainable_variables) == 6


def test_hooks_run_in_order_may_replace_and_can_be_removed():
    layer, calls = nn.Identity(), []
    first = layer.register_forward_pre_hook(lambda m, args: calls.append("before"))
    second = layer.register_forward_pre_hook(lambda m, args: (args[0] + 1,))
    third = layer.register_forward_hook(lambda m, args, y: y * 10)
    assert layer(1.0).item() == 20
    second.remove()
    second.remove()
    assert layer(1.0).item() == 10
    third.remove()
    assert layer(1.0).item() == 1
    first.remove()
    layer(1.0)
    assert calls == ["before"] * 3
    with pytest.raises(ArgumentError, match=r"Identity: the hook must be callable"):
        layer.register_forward_hook(3)


def test_hooks_stay_without_their_handles():
    layer, calls = nn.Identity(), []
    for k in range(5):
        layer.register_forward_pre_hook(lambda m, args, k=k: calls.append(k))
        layer.register_forward_hook(lambda m, args, y, k=k: calls.append(10 + k))
    layer.summary(1.0)  # which adds and removes one of its own
    calls.clear()
    layer(1.0)
    assert calls == [0, 1, 2, 3, 4, 10, 11, 12, 13, 14]
    copied = copy.deepcopy(layer)
    copied(1.0)
    assert len(calls) == 20


def test_summary_changes_nothing_in_training_mode():
    model = nn.Sequential(nn.Dense(2, 3), nn.BatchNorm(3), nn.Dropout(0.5))
    before, draws = model.layers[1].running_mean.numpy(), gg.random.default_generator().state
    with nn.training():
        model.summary(gg.ones((4, 2)))
    np.testing.assert_array_equal(model.layers[1].running_mean.numpy(), before)
    assert gg.random.default_generator().state == draws


def test_summary_counts_shared_variables_once_and_says_what_was_not_called():
    class Unused(nn.Module):
        def __init__(self):
            self.used, self.unused = nn.Dense(2, 2), nn.Dense(2, 2).freeze()

        def forward(self, x):
            return {"y": self.used(x), "x": x}

    text = Unused().summary(gg.ones((1, 2)))
    rows = {line.split()[0]: line for line in text.splitlines()}
    assert "(1, 2)" in rows["used"]
    assert "not called" in rows["unused"]
    assert text.endswith("12 parameters (48 B), 6 of them trainable")
    model = Shared()
    assert model.summary().endswith("24 parameters (96 B), 24 of them trainable")
    with gg.GradientTape() as tape:
        model.summary(gg.constant([1]))
    assert tape.watched_variables() == ()


def test_functional_call_differentiates_by_the_values_and_leaves_the_variables():
    model = Shared()
    before = {name: v.numpy() for name, v in model.state().items()}
    values = {name: gg.constant(a + 1) for name, a in before.items()}
    i = gg.constant([0, 3, 3])

    def loss(values):
        return gg.sum(nn.functional_call(model, values, i) ** 2)

    gradients = gg.grad(loss)(values)
    for name, v in model.state().items():
        np.testing.assert_array_equal(v.numpy(), before[name])
        v.assign(values[name])
    with gg.GradientTape() as tape:
        desired = gg.sum(model(i) ** 2)
    np.testing.assert_allclose(loss(values).item(), desired.item(), rtol=1e-6)
    for name, g in zip(before, tape.gradient(desired, model.variables), strict=True):
        np.testing.assert_allclose(gradients[name].numpy(), gg.convert_to_tensor(g).numpy(), 1e-5)


def test_functional_call_keeps_containers_without_parts_and_follows_methods():
    class Model(nn.Module):
        def __init__(self):
            self.calls, self.scale, self.function = [], gg.Variable(2.0), self.scaled

        def scaled(self, x):
            return x * self.scale

        def forward(self, x):
            self.calls.append(x)
            return self.function(x)

    model = Model()
    assert nn.functional_call(model, {"scale": 5.0}, 1.0).item() == 5
    assert (model(1.0).item(), model.calls) == (2.0, [1.0, 1.0])


def test_functional_call_under_vmap_runs_an_ensemble():
    models = [nn.Sequential(nn.Dense(2, 4, gg.tanh), nn.Dense(4, 1)) for _ in range(3)]
    stacked = {
        name: gg.stack([m.state()[name].value() for m in models]) for name in models[0].state()
    }
    x = gg.constant(np.random.default_rng(0).normal(size=(5, 2)).astype("f4"))
    ys = gg.vmap(lambda s: nn.functional_call(models[0], s, x))(stacked)
    for y, model in zip(ys, models, strict=True):
        np.testing.assert_allclose(y.numpy(), model(x).numpy(), rtol=1e-5)


def test_functional_call_with_part_of_the_state_trains_the_running_statistics():
    model = small_model()
    with nn.training():
        nn.functional_call(model, {"layers.0.bias": gg.ones(3)}, gg.ones((4, 2)))
    assert np.any(model.layers[1].running_mean.numpy() != 0)
    with nn.training(), pytest.raises(ArgumentError, match="Leave them out"):
        nn.functional_call(model, {"layers.1.running_mean": gg.ones(3)}, gg.ones((4, 2)))


def test_functional_call_names_what_does_not_fit():
    model = small_model()
    with pytest.raises(StructureError, match=r"functional_call: .'nothing'"):
        nn.functional_call(model, {"nothing": 1.0}, gg.ones((4, 2)))
    with pytest.raises(ShapeError, match=r"functional_call: layers\.0\.bias"):
        nn.functional_call(model, {"layers.0.bias": gg.ones(4)}, gg.ones((4, 2)))


def test_a_slice_of_a_sequential_is_one_and_its_variables_keep_their_names():
    model = small_model()
    names, x = [v.name for v in model.variables], gg.ones((4, 2))
    head, tail = model[:1], model[1:]
    assert isinstance(tail, nn.Sequential)
    np.testing.assert_array_equal(tail(head(x)).numpy(), model(x).numpy())
    assert [v.name for v in head.variables + tail.variables] == names
    assert tail[0] is model[1]


LAYERS = {
    "Dense": (lambda d: nn.Dense(2, 3, dtype=d), (4, 2)),
    "Bilinear": (lambda d: nn.Bilinear(2, 2, 3, dtype=d), (4, 2)),
    "Conv1d": (lambda d: nn.Conv1d(2, 3, 1, dtype=d), (1, 2, 4)),
    "Conv2d": (lambda d: nn.Conv2d(2, 3, 1, dtype=d), (1, 2, 4, 4)),
    "Conv3d": (lambda d: nn.Conv3d(2, 3, 1, dtype=d), (1, 2, 4, 4, 4)),
    "ConvTranspose1d": (lambda d: nn.ConvTranspose1d(2, 3, 1, dtype=d), (1, 2, 4)),
    "ConvTranspose2d": (lambda d: nn.ConvTranspose2d(2, 3, 1, dtype=d), (1, 2, 4, 4)),
    "ConvTranspose3d": (lambda d: nn.ConvTranspose3d(2, 3, 1, dtype=d), (1, 2, 4, 4, 4)),
    "LayerNorm": (lambda d: nn.LayerNorm(2, dtype=d), (4, 2)),
    "RMSNorm": (lambda d: nn.RMSNorm(2, dtype=d), (4, 2)),
    "BatchNorm": (lambda d: nn.BatchNorm(2, dtype=d), (4, 2)),
    "GroupNorm": (lambda d: nn.GroupNorm(1, 2, dtype=d), (1, 2, 3)),
    "InstanceNorm": (lambda d: nn.InstanceNorm(2, dtype=d), (1, 2, 3)),
    "PReLU": (lambda d: nn.PReLU(2, dtype=d), (1, 2)),
    "RNN": (lambda d: nn.RNN(2, 3, dtype=d), (1, 4, 2)),
    "LSTM": (lambda d: nn.LSTM(2, 3, dtype=d), (1, 4, 2)),
    "GRU": (lambda d: nn.GRU(2, 3, dtype=d), (1, 4, 2)),
    "RNNCell": (lambda d: nn.RNNCell(2, 3, dtype=d), (1, 2)),
    "LSTMCell": (lambda d: nn.LSTMCell(2, 3, dtype=d), (1, 2)),
    "GRUCell": (lambda d: nn.GRUCell(2, 3, dtype=d), (1, 2)),
    "MultiHeadAttention": (lambda d: nn.MultiHeadAttention(2, 1, dtype=d), (1, 4, 2)),
    "TransformerBlock": (lambda d: nn.TransformerBlock(2, 1, dtype=d), (1, 4, 2)),
}
WITHOUT_ARRAYS = {"Embedding", "EmbeddingBag"}  # they take indices


def has_weights(layer_class):
    is_layer = layer_class is not nn.Module and issubclass(layer_class, nn.Module)
    return is_layer and not issubclass(layer_class, FunctionLayer)


def test_every_layer_class_with_weights_is_in_the_table():
    plain = {"Dropout", "AlphaDropout", "Flatten", "Identity", "Sequential"}
    classes = {
        n for n in nn.__all__ if isinstance(getattr(nn, n), type) and has_weights(getattr(nn, n))
    }
    assert classes - plain - WITHOUT_ARRAYS == set(LAYERS)


@pytest.mark.parametrize("name", LAYERS)
def test_a_float64_input_of_a_float32_layer_raises(name):
    make, shape = LAYERS[name]
    layer = make("float32")
    xs = [np.ones(shape)] * (2 if name == "Bilinear" else 1)
    with pytest.raises(DTypeError, match="x is float64 and the weights are float32"):
        layer(*xs)
    with pytest.raises(DTypeError, match="x is int64"):
        layer(*[x.astype("i8") for x in xs])
    for dtype in ("float32", "float64"):
        wide = make(dtype)(*[x.astype(dtype) for x in xs])
        leaf = wide
        while isinstance(leaf, tuple):
            leaf = leaf[0]
        assert leaf.dtype == dtype


@pytest.mark.parametrize(
    ("what", "call"),
    [
        ("mask", lambda x: nn.MultiHeadAttention(2, 1)(gg.ones((1, 4, 2)), mask=x)),
        ("per_sample_weights", lambda x: nn.EmbeddingBag(5, 2)(gg.ones((4, 4), dtype="int32"), x)),
    ],
)
def test_other_float64_arguments_of_a_float32_layer_raise(what, call):
    with pytest.raises(DTypeError, match=f"{what} is float64 and the weights are float32"):
        call(np.ones((4, 4)))


@pytest.mark.parametrize(
    "make", [lambda: nn.Dropout(0.5), lambda: nn.BatchNorm(2), lambda: nn.AlphaDropout(0.5)]
)
def test_a_layer_under_a_tape_without_a_mode_warns_once(make, monkeypatch):
    monkeypatch.setattr(layers, "_warned", set())
    x = gg.ones((4, 2))
    layer = make()
    layer(x)  # without a tape
    with gg.GradientTape(), nn.training(False):
        layer(x)  # in a mode that was chosen
    with gg.GradientTape(), pytest.warns(UserWarning, match=r"with gg\.nn\.training\(\)") as caught:
        layer(x)
    assert caught[0].filename == __file__
    with warnings.catch_warnings(), gg.GradientTape():
        warnings.simplefilter("error")
        layer(x)


def test_the_warning_names_the_user_s_line_however_deep_the_layer_is(monkeypatch):
    monkeypatch.setattr(layers, "_warned", set())
    model = nn.Sequential(nn.Sequential(nn.Dropout(0.5)), nn.Sequential(nn.BatchNorm(2)))
    with pytest.warns(UserWarning, match="runs in inference mode") as warned:
        gg.grad(lambda x: gg.sum(model(x)))(gg.ones((4, 2)))
    assert [w.filename for w in warned] == [__file__, __file__]


def test_modules_of_two_threads_do_not_share_values_of_functional_call():
    model, errors = nn.Dense(1, 1, use_bias=False), []

    def run(value):
        for _ in range(200):
            y = nn.functional_call(model, {"kernel": gg.constant([[value]])}, gg.ones((1, 1)))
            if y.item() != value:
                errors.append(y.item())

    threads = [threading.Thread(target=run, args=(float(k),)) for k in range(4)]
    [t.start() for t in threads]
    [t.join() for t in threads]
    assert not errors
