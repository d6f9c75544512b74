"""Convolutions, norms and layers without weights against the functions that they call."""

import inspect

import numpy as np
import pytest

import gpugrad as gg
from gpugrad.errors import ArgumentError
from gpugrad.nn import functional
from gpugrad.nn.of_functions import FunctionLayer

nn = gg.nn

# functions that are no layers: losses, distances, and those with a class under another name
NOT_LAYERS = {
    "affine_grid", "bce_with_logits_loss", "binary_cross_entropy",
    "binary_cross_entropy_with_logits", "cdist", "cosine_embedding_loss", "cosine_similarity",
    "cross_entropy", "ctc_loss", "gaussian_nll_loss", "grid_sample", "gumbel_softmax",
    "hinge_embedding_loss", "hinge_loss", "huber_loss", "kl_div", "kl_div_loss", "l1_loss",
    "log_cosh_loss", "margin_ranking_loss", "masked_softmax", "mse", "mse_loss",
    "multi_margin_loss", "multilabel_margin_loss", "multilabel_soft_margin_loss", "nll_loss",
    "one_hot", "pairwise_distance", "poisson_nll_loss", "scaled_dot_product_attention",
    "sigmoid_focal_loss", "smooth_l1_loss", "soft_margin_loss", "softmax_cross_entropy",
    "sparse_softmax_cross_entropy", "squared_hinge_loss", "triplet_margin_loss",
}  # fmt: skip
FUNCTION_LAYERS = [n for n in nn.__all__ if FunctionLayer in getattr(getattr(nn, n), "__mro__", ())]
CLASSES = {"linear": "Dense", "interpolate": "Upsample", "lp_pool1d": "LPPool1d",
           "lp_pool2d": "LPPool2d", "lp_pool3d": "LPPool3d"}  # fmt: skip


def numbers(*shape):
    return np.random.default_rng(0).normal(size=shape).astype("f4")


@pytest.mark.parametrize("name", sorted(set(functional.__all__) - NOT_LAYERS))
def test_every_function_that_is_used_as_a_layer_has_its_class(name):
    wanted = CLASSES.get(name, name.replace("_", "")).lower()
    assert wanted in {n.lower() for n in nn.__all__}


CALLS = {
    "CELU": {"alpha": 0.5},
    "ELU": {"alpha": 0.5},
    "GELU": {"approximate": "tanh"},
    "LeakyReLU": {"negative_slope": 0.2},
    "Softmax": {"axis": 1},
    "Threshold": {"threshold": 0.1, "value": 7.0},
    "AdaptiveAvgPool1d": {"output_size": 2},
    "AdaptiveMaxPool1d": {"output_size": 2},
    "AvgPool1d": {"kernel_size": 2},
    "LPPool1d": {"norm_type": 2.0, "kernel_size": 2},
    "MaxPool1d": {"kernel_size": 2, "stride": 1},
    "ChannelShuffle": {"groups": 2},
    "LocalResponseNorm": {"size": 2},
    "Upsample": {"scale_factor": 2},
}
IMAGES = {
    "AdaptiveAvgPool2d": {"output_size": 2},
    "AdaptiveMaxPool2d": {"output_size": 2},
    "AvgPool2d": {"kernel_size": 2},
    "LPPool2d": {"norm_type": 2.0, "kernel_size": 2},
    "MaxPool2d": {"kernel_size": 2},
    "PixelShuffle": {"upscale_factor": 2},
    "PixelUnshuffle": {"downscale_factor": 2},
    "Unfold": {"kernel_size": 2},
}
VOLUMES = {
    "AdaptiveAvgPool3d": {"output_size": 2},
    "AdaptiveMaxPool3d": {"output_size": 2},
    "AvgPool3d": {"kernel_size": 2},
    "LPPool3d": {"norm_type": 2.0, "kernel_size": 2},
    "MaxPool3d": {"kernel_size": 2},
}


def example(name):
    """Options and an input of a layer class."""
    if name == "Fold":
        return {"output_size": (4, 4), "kernel_size": 2}, numbers(2, 4, 9)
    for table, shape in ((IMAGES, (2, 4, 4, 6)), (VOLUMES, (1, 2, 4, 4, 4))):
        if name in table:
            return table[name], numbers(*shape)
    return CALLS.get(name, {}), numbers(2, 4, 6)


@pytest.mark.parametrize(
    "name", [n for n in nn.__all__ if FunctionLayer in getattr(getattr(nn, n), "__mro__", ())]
)
def test_layers_of_functions_call_them_with_their_attributes(name):
    options, x = example(name)
    layer = getattr(nn, name)(**options)
    function = type(layer)._function
    desired, actual = function(x, **options), layer(x)
    np.testing.assert_array_equal(actual.numpy(), desired.numpy())
    for option, value in options.items():
        assert getattr(layer, option) == value
        assert f"{option}={value!r}" in repr(layer)
    parameters = list(inspect.signature(function).parameters)[1:]
    if parameters[: len(options)] == list(options):  # also by position
        again = getattr(nn, name)(*options.values())(x)
        np.testing.assert_array_equal(again.numpy(), desired.numpy())
    assert set(parameters) <= set(vars(layer))
    with pytest.raises(TypeError, match=f"^{name}: .*unknown"):
        getattr(nn, name)(**options, unknown=1)


def test_missing_options_name_the_layer():
    with pytest.raises(TypeError, match="MaxPool2d: missing a required argument: 'kernel_size'"):
        nn.MaxPool2d()


def test_prelu_has_a_slope_for_each_channel_or_one():
    x = -np.ones((2, 3, 4), "f4")
    layer = nn.PReLU(3)
    layer.weight.assign([1.0, 2.0, 3.0])
    np.testing.assert_array_equal(layer(x).numpy()[0, :, 0], [-1.0, -2.0, -3.0])
    np.testing.assert_array_equal(nn.PReLU(initial=0.5)(x).numpy(), x / 2)


CONVOLUTIONS = {
    "Conv1d": (nn.Conv1d, functional.conv1d, (2, 4, 9), {"padding": "same", "dilation": 2}),
    "Conv2d": (nn.Conv2d, functional.conv2d, (2, 4, 9, 8), {"stride": 2, "padding": 1}),
    "Conv3d": (nn.Conv3d, functional.conv3d, (2, 4, 5, 6, 5), {}),
    "ConvTranspose1d": (
        nn.ConvTranspose1d, functional.conv_transpose1d, (2, 4, 9),
        {"stride": 2, "output_padding": 1},
    ),
    "ConvTranspose2d": (
        nn.ConvTranspose2d, functional.conv_transpose2d, (2, 4, 5, 6), {"padding": 1},
    ),
    "ConvTranspose3d": (
        nn.ConvTranspose3d, functional.conv_transpose3d, (2, 4, 3, 4, 3), {"dilation": 2},
    ),
}  # fmt: skip


@pytest.mark.parametrize("groups", [1, 2])
@pytest.mark.parametrize("name", CONVOLUTIONS)
def test_convolution_layers_call_the_function_with_their_attributes(name, groups):
    make, function, shape, options = CONVOLUTIONS[name]
    layer, x = make(4, 6, 3, gg.tanh, groups=groups, **options), numbers(*shape)
    layer.bias.assign(numbers(6))
    desired = gg.tanh(function(x, layer.weight, layer.bias, groups=groups, **options))
    np.testing.assert_array_equal(layer(x).numpy(), desired.numpy())
    for option, value in options.items():
        assert getattr(layer, option) == value
        assert f"{option}={value!r}" in repr(layer)
    assert make(4, 6, 3, use_bias=False).bias is None


@pytest.mark.parametrize("name", CONVOLUTIONS)
def test_initializers_of_convolutions_get_the_window_then_in_and_out(name):
    make = CONVOLUTIONS[name][0]
    shapes = []

    def numbered(shape, *, generator=None, dtype="float32"):
        shapes.append(shape)
        return gg.reshape(gg.arange(np.prod(shape), dtype=dtype), shape)

    layer = make(4, 6, 2, groups=2, weight_initializer=numbered)
    ((*window, into, out),) = shapes
    assert (window, into, out) == ([2] * len(window), 2, 6)
    assert sorted(layer.weight.numpy().ravel()) == list(range(layer.weight.size))
    values = np.arange(layer.weight.size).reshape(shapes[0])
    for group in range(2):  # input channel i of a group and output channel o of the same
        for i in range(2):
            for o in range(3):
                desired = values[..., i, group * 3 + o]
                at = (group * 2 + i, o) if "Transpose" in name else (group * 3 + o, i)
                np.testing.assert_array_equal(layer.weight.numpy()[at], desired)


def test_transposed_options_of_plain_convolutions_raise():
    with pytest.raises(ArgumentError, match="Conv1d: output_padding=1 is for transposed"):
        nn.Conv1d(1, 1, 3, output_padding=1)


def test_norms_call_their_functions():
    x = numbers(3, 4, 5)
    for layer, function, options in (
        (nn.GroupNorm(2, 4), functional.group_norm, {"num_groups": 2}),
        (nn.InstanceNorm(4), functional.instance_norm, {}),
        (nn.RMSNorm(5), functional.rms_norm, {}),
    ):
        for v in layer.variables:
            v.assign(numbers(*v.shape))
        desired = function(x, *layer.variables, **options)
        np.testing.assert_array_equal(layer(x).numpy(), desired.numpy())
    assert nn.InstanceNorm(4, affine=False).variables == []
    with pytest.raises(ArgumentError, match="groups=3 must divide channels=4"):
        nn.GroupNorm(3, 4)


@pytest.mark.parametrize("training", [False, True])
@pytest.mark.parametrize(
    "make",
    [
        lambda **how: nn.LayerNorm(5, **how),
        lambda **how: nn.RMSNorm(5, **how),
        lambda **how: nn.GroupNorm(2, 4, **how),
        lambda **how: nn.InstanceNorm(4, **how),
        lambda **how: nn.BatchNorm(4, **how),
    ],
)
def test_norms_without_scale_and_shift_are_those_with_ones_and_zeros(make, training):
    x, bare = numbers(3, 4, 5), make(affine=False)
    assert bare.trainable_variables == []
    with nn.training(training):
        np.testing.assert_array_equal(bare(x).numpy(), make()(x).numpy())
        assert bare(gg.constant(x, "bfloat16")).dtype == "bfloat16"


def test_variance_scaling_has_the_variance_it_says():
    for distribution in ("truncated_normal", "normal", "uniform"):
        for mode, fan in (("fan_in", 300), ("fan_out", 200), ("fan_avg", 250)):
            draws = nn.initializers.variance_scaling(
                (300, 200), scale=2.0, mode=mode, distribution=distribution
            ).numpy()
            assert np.var(draws) == pytest.approx(2 / fan, rel=0.05)
    with pytest.raises(ArgumentError, match=r"mode must be .* got 'fan'"):
        nn.initializers.variance_scaling((3, 2), mode="fan")
    with pytest.raises(ArgumentError, match=r"distribution must be .* got 'cauchy'"):
        nn.initializers.variance_scaling((3, 2), distribution="cauchy")
    with pytest.raises(ArgumentError, match="scale must be above 0"):
        nn.initializers.variance_scaling((3, 2), scale=0)


@pytest.mark.parametrize("shape", [(5, 3), (3, 5), (2, 2, 6)])
@pytest.mark.parametrize("dtype", ["float32", "float64", "float16"])
def test_orthogonal_matrices_are_orthogonal(shape, dtype):
    q = nn.initializers.orthogonal(shape, gain=2.0, dtype=dtype)
    assert (q.shape, q.dtype) == (shape, dtype)
    q = q.numpy().reshape(-1, shape[-1]).astype("f8")
    product = q.T @ q if q.shape[0] >= q.shape[1] else q @ q.T
    atol = 1e-2 if dtype == "float16" else 1e-5
    np.testing.assert_allclose(product, 4 * np.eye(len(product)), atol=atol)
