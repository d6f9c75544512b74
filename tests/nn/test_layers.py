"""Layers, and how they differ in training."""

import threading

import numpy as np
import pytest

import gpugrad as gg
from gpugrad.core import known_as
from gpugrad.errors import ArgumentError, DTypeError, ShapeError


def close(actual, desired, rtol=1e-6):
    np.testing.assert_allclose(actual.numpy(), np.asarray(desired), rtol, 1e-6)


def test_conv2d_layer_matches_the_function(rng):
    layer = gg.nn.Conv2d(2, 4, (3, 2), gg.relu, stride=2, padding=1, groups=2)
    assert layer.weight.shape == (4, 1, 3, 2)
    layer.bias.assign(rng.normal(size=4).astype(np.float32))
    x = rng.normal(size=(2, 2, 5, 6)).astype(np.float32)
    desired = gg.nn.conv2d(x, layer.weight, layer.bias, stride=2, padding=1, groups=2)
    close(layer(x), gg.relu(desired).numpy())
    assert gg.nn.Conv2d(2, 4, 3, use_bias=False).bias is None


def test_conv2d_initializer_gets_height_width_in_and_out():
    def numbered(shape, *, generator=None, dtype="float32"):
        assert shape == (3, 2, 4, 5)  # height, width, in, out
        return gg.reshape(gg.arange(120, dtype=dtype), shape)

    weight = gg.nn.Conv2d(4, 5, (3, 2), weight_initializer=numbered).weight
    assert weight.shape == (5, 4, 3, 2)
    assert weight.value()[4, 3, 2, 1].item() == 119
    assert weight.value()[1, 0, 0, 0].item() == 1
    gg.set_seed(0)
    drawn = gg.nn.Conv2d(64, 64, 3, weight_initializer=gg.nn.initializers.he_normal).weight
    assert np.var(drawn.numpy()) == pytest.approx(2 / (64 * 9), rel=0.05)


def test_embedding_reads_rows_and_its_gradient_may_be_sparse():
    layer = gg.nn.Embedding(5, 3, sparse=True, padding_idx=0)
    with gg.GradientTape() as tape:
        y = layer([[1, 0], [4, 1]])
    close(y, layer.weight.numpy()[[[1, 0], [4, 1]]])
    grad = tape.gradient(y, layer.weight)
    assert isinstance(grad, gg.IndexedSlices)
    close(grad.to_dense(), [[0] * 3, [2] * 3, [0] * 3, [0] * 3, [1] * 3])


@pytest.mark.parametrize("initial", [np.ones((3, 2), np.float32), gg.ones((3, 2))])
def test_embedding_does_not_write_to_its_initializers_array(initial):
    layer = gg.nn.Embedding(3, 2, padding_idx=1, initializer=lambda shape, **how: initial)
    close(layer.weight, [[1, 1], [0, 0], [1, 1]])
    np.testing.assert_array_equal(initial, np.ones((3, 2)))


def test_layer_norm_normalizes_the_last_axes(rng):
    layer = gg.nn.LayerNorm((3, 2), eps=1e-3)
    layer.weight.assign(rng.normal(size=(3, 2)).astype(np.float32))
    layer.bias.assign(rng.normal(size=(3, 2)).astype(np.float32))
    x = rng.normal(size=(4, 3, 2)).astype(np.float32)
    standard = (x - x.mean((1, 2), keepdims=True)) / np.sqrt(x.var((1, 2), keepdims=True) + 1e-3)
    close(layer(x), standard * layer.weight.numpy() + layer.bias.numpy(), 1e-5)
    assert gg.nn.LayerNorm(3, use_bias=False).bias is None


@pytest.mark.parametrize("dtype", ["float32", "float16"])
def test_batch_norm_uses_the_batch_in_training_and_running_statistics_after(rng, dtype):
    layer = gg.nn.BatchNorm(2, momentum=0.5)
    x = rng.normal(3, 2, size=(8, 2, 4)).astype(dtype)
    wide = x.astype(np.float64)
    mean, var = wide.mean((0, 2)), wide.var((0, 2))
    rtol = 1e-2 if dtype == "float16" else 1e-5
    with gg.nn.training():
        y = layer(x)
    assert y.dtype == dtype
    standard = (wide - mean[:, None]) / np.sqrt(var[:, None] + 1e-5)
    np.testing.assert_allclose(y.numpy(), standard, rtol, 1e-2 * (dtype == "float16") + 1e-5)
    close(layer.running_mean, mean / 2, rtol)
    close(layer.running_var, 0.5 + var / 2 * 32 / 31, rtol)
    kept = layer.running_mean.numpy(), layer.running_var.numpy()
    after = (wide - kept[0][:, None]) / np.sqrt(kept[1][:, None] + 1e-5)
    np.testing.assert_allclose(layer(x).numpy(), after, rtol, 1e-2 * (dtype == "float16") + 1e-5)
    close(layer.running_mean, kept[0])
    assert list(layer.state_dict()) == ["weight", "bias", "running_mean", "running_var"]
    assert len(layer.trainable_variables) == 2


@pytest.mark.parametrize(
    ("make", "words"),
    [
        (lambda: gg.nn.Conv2d(0, 1, 1), "Conv2d: channels_in.*got 0"),
        (lambda: gg.nn.Conv2d(1, 1, (3, 0.5)), "Conv2d: size.1..*got 0.5"),
        (lambda: gg.nn.Conv2d(3, 2, 1, groups=2), "groups=2 must divide channels_in=3"),
        (lambda: gg.nn.Conv2d(1, 1, 1, "relux"), "activation must be a function"),
        (lambda: gg.nn.Dense(1, 1, "conv2d"), "activation must be a function"),
        (lambda: gg.nn.Embedding(3, -1), "Embedding: width.*got -1"),
        (lambda: gg.nn.LayerNorm((2, 0)), "LayerNorm: length 1.*got 0"),
        (lambda: gg.nn.BatchNorm("2"), "BatchNorm: channels.*got '2'"),
        (lambda: gg.nn.Dropout(1.5), "Dropout: p.*1.5"),
        (lambda: gg.nn.Dropout("0.5"), "Dropout: p must be a number, got '0.5'"),
        (lambda: gg.nn.Conv2d(3, 4, 3.0), "Conv2d: size.0..*got 3.0"),
        (lambda: gg.nn.Conv2d(3, 4, (3, 3, 3)), "size must be an int or 2 ints"),
        (lambda: gg.nn.LayerNorm(3.0), "LayerNorm: length 0.*got 3.0"),
        (lambda: gg.nn.LayerNorm(3, eps=-1), "LayerNorm: eps.*got -1"),
        (lambda: gg.nn.BatchNorm(3, momentum=99), "BatchNorm: momentum.*to 1, got 99"),
        (lambda: gg.nn.BatchNorm(3, momentum=None), "BatchNorm: momentum.*got None"),
        (lambda: gg.nn.Embedding(3, 2, padding_idx=3), "padding_idx=3 is out of bounds for 3 rows"),
        (lambda: gg.nn.training("yes"), "on must be True or False"),
        (lambda: gg.nn.training(lambda x: x), "write @gg.nn.training"),
    ],
)
def test_layer_names_the_argument_that_is_wrong(make, words):
    with pytest.raises(ArgumentError, match=words):
        make()


def test_sizes_may_be_numpy_integers():
    n = np.prod((3, 4))
    assert gg.nn.Dense(n, 2).kernel.shape == (12, 2)
    assert gg.nn.Conv2d(3, 4, np.int64(3)).weight.shape == (4, 3, 3, 3)
    assert gg.nn.LayerNorm(n).weight.shape == (12,)


def test_padding_row_is_zero_and_an_index_may_be_a_scalar():
    layer = gg.nn.Embedding(3, 2, padding_idx=-1)
    assert layer(2).tolist() == [0, 0]
    assert layer.weight.numpy()[:2].all()


def test_batch_norm_names_what_it_cannot_normalize(rng):
    layer = gg.nn.BatchNorm(3)
    kept = layer.running_var.numpy()
    x = gg.constant(rng.normal(size=(4, 2, 3)), "float32")
    with gg.nn.training():
        for bad in (np.ones((1, 3), "f4"), np.ones((0, 3), "f4")):
            with pytest.raises(ShapeError, match="each of 3 channels needs at least two values"):
                layer(bad)
        with pytest.raises(ArgumentError, match=r"under vmap .*LayerNorm"):
            gg.vmap(layer)(x)
        with pytest.raises(DTypeError, match="x is complex64"):
            layer(np.ones((4, 3), np.complex64))
        np.testing.assert_array_equal(layer.running_var, kept)
    assert gg.vmap(layer)(x).shape == x.shape


def test_loading_names_the_variable_that_does_not_fit():
    model = gg.nn.Sequential(gg.nn.Dense(2, 3), gg.nn.Dense(3, 3))
    values = {k: v.numpy() for k, v in model.state_dict().items()}
    values["layers.1.kernel"] = np.ones((2, 3), np.float32)
    with pytest.raises(ShapeError, match=r"load_state: layers\.1\.kernel: .*\(2, 3\)"):
        model.load_state_dict(values)


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("train", r"with gg\.nn\.training"), ("eval", r"with gg\.nn\.training"),
        ("parameters", "trainable_variables"), ("named_parameters", r"named_variables\(\)"),
        ("zero_grad", r"tape\.gradient returns"), ("to", r"with gg\.device"),
    ],
)  # fmt: skip
def test_names_from_other_libraries_raise_with_the_name_here(name, words):
    with pytest.raises(AttributeError, match=rf"Dense has no attribute '{name}'\. .*{words}"):
        getattr(gg.nn.Dense(1, 1), name)
    assert not hasattr(gg.nn.Dense(1, 1), "weight")


CASES = {
    "Conv2D": "Conv2d", "MaxPool3D": "MaxPool3d", "MultiheadAttention": "MultiHeadAttention",
    "CrossEntropyLoss": "cross_entropy", "MSELoss": "mse", "BCEWithLogitsLoss":
    "bce_with_logits_loss", "Leakyrelu": "LeakyReLU",
}  # fmt: skip


CLASSES = {
    name.replace("2d", axes): here.replace("2d", axes.lower())
    for name, here in known_as.table("gg.nn").items()
    for axes in ("1D", "2D", "3D", "1d", "2d", "3d")
    if here[-1] != "." and name.replace("2d", axes) not in dir(gg.nn)
}


@pytest.mark.parametrize(("name", "here"), {**CLASSES, **CASES}.items())
def test_layer_names_from_other_libraries_raise_with_the_name_here(name, here):
    with pytest.raises(AttributeError, match=rf"'{name}'\. It is called gg\.nn\.{here} here"):
        getattr(gg.nn, name)
    assert hasattr(gg.nn, here)


@pytest.mark.parametrize(
    ("name", "words"),
    [("ZeroPad2d", r"gg\.pad"), ("ModuleList", "lists and dicts"), ("Dropout3d", "noise_shape"),
     ("GlobalAveragePooling2D", r"gg\.mean"), ("Parameter", r"gg\.Variable")],
)  # fmt: skip
def test_layers_that_need_none_here_say_what_does_it(name, words):
    with pytest.raises(AttributeError, match=rf"'{name}'\. .*{words}"):
        getattr(gg.nn, name)
    with pytest.raises(AttributeError, match=r"no attribute 'Nothing'\.$"):
        _ = gg.nn.Nothing


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (lambda: gg.nn.Dense(in_features=2), "^Dense: .*in_features is called units_in"),
        (lambda: gg.nn.Dense(2, 3, bias=False), "^Dense: .*'bias'. bias is called use_bias here"),
        (lambda: gg.nn.Conv2d(2, 3, kernel_size=3), "^Conv2d: .*kernel_size is called size here"),
        (lambda: gg.nn.LSTM(2, 3, batch_first=True), "^LSTMCell: .*second-to-last axis"),
        (lambda: gg.nn.GRU(2, hidden_size=3), "^GRU: .*hidden_size is called units"),
        (lambda: gg.nn.Softmax(dim=1), "^Softmax: .*dim is called axis here"),
        (lambda: gg.nn.Dense(2), r"^Dense: missing 1 required positional argument: 'units_out'\.$"),
    ],
)  # fmt: skip
def test_arguments_from_other_libraries_raise_with_the_name_here(call, words):
    with pytest.raises(TypeError, match=words):
        call()


@pytest.mark.parametrize("make", [gg.nn.Dense, gg.nn.Embedding, gg.nn.GRUCell, gg.nn.LSTM])
def test_an_initializer_that_is_no_function_is_refused(make):
    what = "initializer" if make is gg.nn.Embedding else "bias_initializer"
    with pytest.raises(
        ArgumentError, match=rf"{make.__name__}.*: {what} must be a function such as"
    ):
        make(2, 3, **{what: "zeros"})


def test_a_keras_layer_and_values_that_are_no_dict_are_told_what_is_needed():
    class Layer(gg.nn.Module):
        def call(self, x):
            return x

    with pytest.raises(NotImplementedError, match=r"Layer does not implement forward\. Rename"):
        Layer()(1.0)
    with pytest.raises(TypeError, match=r"argument 'training'\. .* with gg\.nn\.training\(\):"):
        gg.nn.Dropout()(1.0, training=True)
    with pytest.raises(DTypeError, match=r"load_state: values must be a dict .* got a list"):
        gg.nn.Dense(1, 1).load_state([1.0])


def test_training_applies_to_its_block_and_thread():
    seen = []
    with gg.nn.training():
        thread = threading.Thread(target=lambda: seen.append(gg.nn.is_training()))
        thread.start()
        thread.join()
        with gg.nn.training(False):
            seen.append(gg.nn.is_training())
        seen.append(gg.nn.is_training())
    with pytest.raises(ZeroDivisionError), gg.nn.training():
        _ = 1 / 0
    seen.append(gg.nn.is_training())
    assert seen == [False, False, True, False]
    assert gg.nn.training()(gg.nn.is_training)()


def test_dropout_drops_in_training_only(rng):
    layer, x = gg.nn.Dropout(0.25, generator=gg.random.Generator(3)), np.ones(4000, np.float32)
    close(layer(x), x)
    with gg.nn.training():
        dropped = layer(x).numpy()
    assert set(dropped.tolist()) == {0.0, np.float32(4 / 3)}
    assert np.mean(dropped == 0) == pytest.approx(0.25, abs=0.03)


def test_a_function_is_traced_once_for_training_and_once_for_inference(rng):
    norm, drop = gg.nn.BatchNorm(3), gg.nn.Dropout(0.5)
    mirror = gg.nn.BatchNorm(3)
    apply = gg.function(lambda x: drop(norm(x)))
    for x in rng.normal(size=(3, 6, 3)).astype(np.float32):
        with gg.nn.training():
            gg.set_seed(1)
            actual = apply(gg.constant(x))
            gg.set_seed(1)
            close(actual, drop(mirror(x)).numpy(), 1e-5)
        close(apply(gg.constant(x)), mirror(x).numpy(), 1e-5)
    assert apply.cache_info().traces == 2
    close(norm.running_var, mirror.running_var.numpy(), 1e-5)


class Centred(gg.nn.Module):
    """In training it subtracts the mean of the batch; it updates no Variable."""

    def forward(self, x):
        return gg.sum((x - gg.mean(x, axis=0) if gg.nn.is_training() else x * 2) ** 3)


@pytest.mark.parametrize("wrapped", [gg.recompute_grad, gg.function])
def test_gradients_recompute_in_training_mode(rng, wrapped):
    x = gg.constant(rng.normal(size=(5, 2)))

    def gradients(f):
        with gg.GradientTape() as outer:
            outer.watch(x)
            with gg.nn.training(), gg.GradientTape() as inner:
                inner.watch(x)
                y = f(x)
            slope = inner.gradient(y, x)
        return slope, outer.gradient(slope, x)

    desired = gradients(Centred())
    for actual, d in zip(gradients(wrapped(Centred())), desired, strict=True):
        close(actual, d.numpy())


@pytest.mark.parametrize("wrapped", [lambda f: f, gg.function])
def test_a_recomputed_batch_norm_counts_its_batch_once(rng, wrapped):
    x = gg.constant(rng.normal(size=(4, 2)).astype(np.float32))
    twin, norm = gg.nn.BatchNorm(2), gg.nn.BatchNorm(2)
    block = gg.recompute_grad(norm)

    @wrapped
    def step(x):
        with gg.nn.training(), gg.GradientTape(persistent=True) as tape:
            loss = gg.sum(block(x) ** 3)
        return tape.gradient(loss, norm.weight), tape.gradient(loss, norm.bias)

    for _ in range(3):
        step(x)
        with gg.nn.training():
            twin(x)
        close(norm.running_mean, twin.running_mean.numpy())
        close(norm.running_var, twin.running_var.numpy())


def test_training_context_can_be_reentered():
    trains = gg.nn.training()
    with trains, trains:
        assert gg.nn.is_training()
    with trains:
        assert gg.nn.is_training()
    assert not gg.nn.is_training()


def test_retrace_warning_names_training_mode():
    doubled = gg.function(lambda x: x * 2 if gg.nn.is_training() else x)
    for n in range(16):
        doubled(gg.ones(n))
    with gg.nn.training(), pytest.warns(UserWarning, match=r"nn\.training: False, then True"):
        assert doubled(gg.ones(15)).tolist() == [2.0] * 15


@pytest.mark.parametrize("name", ["relu", "tanh", "gelu", "swish", "softmax", "leaky_relu"])
def test_an_activation_may_be_given_by_name(name):
    layer = gg.nn.Dense(3, 4, name)
    by_function = getattr(gg.nn, {"swish": "silu"}.get(name, name))
    assert layer.activation is by_function
    x = gg.ones((2, 3))
    np.testing.assert_array_equal(layer(x), by_function(x @ layer.kernel + layer.bias))


@pytest.mark.parametrize("sizes", [{"stride": 1.0}, {"stride": (1.0, 1)}, {"padding": True - 2}])
def test_sizes_that_are_refused_are_refused_after_equal_ones_that_are_not(sizes):
    x, w = gg.ones((1, 1, 5, 5)), gg.ones((1, 1, 2, 2))
    for call in (lambda **s: gg.conv2d(x, w, **s), lambda **s: gg.avg_pool2d(x, 2, **s)):
        call(stride=1)
        call(stride=(1, 1))
        with pytest.raises(ArgumentError):
            call(**sizes)
