"""Layers and modules, the kinks of activations, and the numerics of the fused losses."""

import numpy as np
import pytest
import scipy.special
from taping import tape_gradient

import gpugrad as gg
from gpugrad import nn
from gpugrad.errors import ArgumentError, ShapeError, StructureError


def gradient(function, x):
    x = gg.constant(x)
    return tape_gradient(function, x).numpy()


@pytest.mark.parametrize(
    "activation",
    [
        gg.relu, gg.relu6, gg.elu, gg.selu, gg.sigmoid, gg.log_sigmoid, gg.softplus, gg.softsign,
        gg.silu, gg.mish, gg.gelu, gg.leaky_relu, gg.hardtanh,
        lambda x: gg.gelu(x, approximate="tanh"),
    ],
)  # fmt: skip
def test_activation_and_gradient_are_finite_far_out(activation):
    x = np.array([-1e4, -500, -30, 0, 30, 500, 1e4], np.float32)
    assert np.isfinite(activation(x).numpy()).all()
    assert np.isfinite(gradient(activation, x)).all()


def test_saturated_ops_keep_their_small_values():
    x = np.array([-50.0])
    assert gg.softplus(x).item() == pytest.approx(np.exp(-50), rel=1e-12)
    assert gg.log_sigmoid(-x).item() == pytest.approx(-np.exp(-50), rel=1e-12)
    assert gradient(gg.softplus, x).item() == pytest.approx(np.exp(-50), rel=1e-12)
    assert gradient(gg.log_sigmoid, -x).item() == pytest.approx(np.exp(-50), rel=1e-12)
    assert gg.gelu([-10.0]).item() == pytest.approx(-10 * scipy.special.ndtr(-10), rel=1e-5)
    assert gradient(gg.softsign, np.float32([1e9])).item() == pytest.approx(1e-18)


def test_softmax_of_large_scores_does_not_overflow():
    np.testing.assert_allclose(gg.softmax([1e4, 1e4]).numpy(), 0.5)
    np.testing.assert_allclose(gg.log_softmax([0.0, 1e4]).numpy(), [-1e4, 0])


@pytest.mark.filterwarnings("ignore:invalid value")
def test_class_with_logit_minus_infinity_and_label_zero_adds_no_loss():
    x = np.array([[0.0, -np.inf, 1.0]])
    for loss in (
        lambda x: gg.softmax_cross_entropy(x, np.array([[1.0, 0.0, 0.0]])),
        lambda x: gg.sparse_softmax_cross_entropy(x, [0]),
    ):
        assert loss(x).item() == pytest.approx(np.log1p(np.e))
        p = 1 / (1 + np.e)
        np.testing.assert_allclose(gradient(loss, x), [[p - 1, 0, 1 - p]])


def test_binary_cross_entropy_is_accurate_for_a_confident_right_label():
    x = np.float32([20.0])
    actual = gg.binary_cross_entropy_with_logits(x, 1.0).item()
    assert actual == pytest.approx(np.exp(-20), rel=1e-6)


def test_mean_squared_error_of_empty_arrays_is_nan_without_a_warning():
    assert np.isnan(gg.mse(np.zeros(0), np.zeros(0)).item())


class Net(nn.Module):
    def __init__(self):
        self.first = nn.Dense(2, 3, gg.relu)
        self.blocks = [nn.Dense(3, 3), {"side": nn.Dense(3, 1, use_bias=False)}]
        self.scale = gg.Variable(2.0, trainable=False)
        self.again = self.first

    def forward(self, x):
        return self.blocks[1]["side"](self.blocks[0](self.first(x))) * self.scale


def test_module_finds_variables_by_dotted_name_once_each():
    names = [
        "first.kernel", "first.bias", "blocks.0.kernel", "blocks.0.bias", "blocks.1.side.kernel",
        "scale",
    ]  # fmt: skip
    model = Net()
    assert [name for name, _ in model.named_variables()] == names
    assert list(model.state_dict()) == names
    assert len(model.variables) == 6
    assert len(model.trainable_variables) == 5


def test_load_state_dict_changes_all_or_nothing():
    model = Net()
    before = {name: v.numpy() for name, v in model.state_dict().items()}
    good = {name: value + 1 for name, value in before.items()}
    for wrong, error in (
        ({**good, "scale": np.ones(2, np.float32)}, ShapeError),
        ({k: v for k, v in good.items() if k != "scale"}, StructureError),
        ({**good, "more": np.ones(1)}, StructureError),
    ):
        with pytest.raises(error, match=r"scale|more|shape"):
            model.load_state_dict(wrong)
        for name, v in model.state_dict().items():
            np.testing.assert_array_equal(v.numpy(), before[name])
    model.load_state_dict(good)
    assert model.scale.numpy() == 3


def test_repr_shows_the_parts():
    assert repr(nn.Sequential(nn.Dense(2, 3, gg.relu))) == (
        "Sequential(9 numbers)\n"
        "  layers.0: Dense(2, 3, activation=relu)\n"
        "    kernel: float32 (2, 3)\n"
        "    bias: float32 (3,)"
    )


def test_repr_of_a_module_that_contains_itself_terminates():
    model = nn.Module()
    model.part = nn.Module()
    model.part.parent = model
    model.part.scale = gg.Variable(2.0)
    assert repr(model) == (
        "Module(1 numbers)\n  part: Module(1 numbers)\n    parent: ...\n    scale: float32 ()"
    )


def test_dense_computes_x_times_kernel_plus_bias(rng):
    layer = nn.Dense(3, 2, gg.tanh, bias_initializer=nn.initializers.ones, dtype="float64")
    x = rng.normal(size=(4, 5, 3))
    expected = np.tanh(x @ layer.kernel.numpy() + 1)
    np.testing.assert_allclose(layer(x).numpy(), expected)


def test_dense_errors_name_the_wrong_argument():
    with pytest.raises(ShapeError, match=r"length 3, but its shape is \(4, 2\)"):
        nn.Dense(3, 2)(np.ones((4, 2), np.float32))
    with pytest.raises(ArgumentError, match="units_out"):
        nn.Dense(3, 0)
    with pytest.raises(ArgumentError, match="activation"):
        nn.Dense(3, 1, "relux")


@pytest.mark.parametrize(
    ("initializer", "variance"),
    [
        (nn.initializers.glorot_uniform, 2 / 500),
        (nn.initializers.glorot_normal, 2 / 500),
        (nn.initializers.he_uniform, 2 / 300),
        (nn.initializers.he_normal, 2 / 300),
        (nn.initializers.lecun_normal, 1 / 300),
        (nn.initializers.normal, 0.05**2),
        (nn.initializers.uniform, 0.1**2 / 12),
    ],
)
def test_initializer_has_the_documented_variance(initializer, variance):
    values = initializer((300, 200), generator=gg.random.Generator(1)).numpy()
    assert values.dtype == np.float32
    assert abs(values.mean()) < 5 * np.sqrt(variance / values.size)
    assert values.var() == pytest.approx(variance, rel=0.03)


def test_initializer_counts_the_receptive_field_of_a_convolution():
    values = nn.initializers.he_normal((3, 3, 20, 200), generator=gg.random.Generator(1)).numpy()
    assert values.var() == pytest.approx(2 / 180, rel=0.03)


def test_layers_with_the_same_seed_are_equal():
    a, b = (nn.Dense(3, 2, generator=gg.random.Generator(5)) for _ in range(2))
    np.testing.assert_array_equal(a.kernel.numpy(), b.kernel.numpy())


def test_initializer_that_needs_two_axes_raises_for_one():
    with pytest.raises(ShapeError, match=r"\(3,\)"):
        nn.Dense(2, 3, bias_initializer=nn.initializers.glorot_uniform)


@pytest.mark.parametrize("n", [1, 2, 3])
def test_max_pool_of_padding_only_has_the_gradient_0(n):
    pool, x = getattr(gg.nn, f"max_pool{n}d"), gg.constant(np.full((2, 1, *[1] * n), 3.0))

    def finite(x):
        y = pool(x, 2, stride=1, padding=1, dilation=2)  # its elements lie beside x
        return gg.sum(gg.where(gg.isfinite(y), y, 0.0))

    assert pool(x, 2, stride=1, padding=1, dilation=2).numpy().max() == -np.inf
    for f in (finite, lambda x: gg.sum(pool(x, 2, stride=1, padding=1, dilation=2))):
        assert not gg.grad(f)(x).numpy().any()
    assert not gg.hvp(finite, [x], [gg.ones_like(x)])[0].numpy().any()
    assert gg.jvp(finite, [x], [gg.ones_like(x)])[1].item() == 0
