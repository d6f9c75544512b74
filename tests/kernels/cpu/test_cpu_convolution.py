"""Convolutions in C against the formula in float64, in every geometry that users may ask for."""

import numpy as np
import pytest
from needs import needs_compiler

import gpugrad as gg
from gpugrad.core.backend import NUMPY
from gpugrad.kernels.cpu import convolution, pool, volumes
from gpugrad.ops.nn.convolution import _places

pytestmark = needs_compiler


@pytest.fixture(autouse=True)
def take_small_arrays(monkeypatch):
    monkeypatch.setattr(convolution, "LEAST", 0)
    before = pool.threads()
    pool.set_threads(3)
    yield
    pool.set_threads(before)


def arguments(x, w, keywords, dtype=np.float32):
    """Each of the three ops with arrays and keywords, for an input and weights of these shapes."""
    rng = np.random.default_rng(0)
    g = (x[0], w[0], *_places(x, w, keywords).places)
    x_, w_, g_ = (rng.normal(size=shape).astype(dtype) for shape in (x, w, g))
    yield "convolution", (x_, w_), keywords
    yield "convolution_input_grad", (g_, w_), {**keywords, "shape": x[2:]}
    yield "convolution_weight_grad", (x_, g_), {**keywords, "kernel": w[2:]}


def assert_equal_to_formula(x, w, **keywords):
    for name, arrays, params in arguments(x, w, keywords):
        op = gg.OPS[name]
        actual = op.cpu(NUMPY, *arrays, **_full(params))
        assert actual is not NotImplemented, name
        assert actual.dtype == np.float32
        wide = [a.astype(np.float64) for a in arrays]
        desired = op.forward(NUMPY, *wide, **params)
        most = op.forward(NUMPY, *map(np.abs, wide), **params)  # what rounding is relative to
        assert actual.shape == desired.shape, (name, x, w, keywords)
        error = np.abs(actual - desired)
        assert np.all(error <= 2e-6 * most + 1e-30), (name, x, w, keywords, np.max(error))


def _full(params):
    return {"stride": 1, "padding": 0, "dilation": 1, "groups": 1} | params


@pytest.mark.parametrize("width", [1, 2, 3, 4, 5, 7, 8, 9, 13, 16, 17, 28, 33])
def test_every_width_of_an_image(width):
    assert_equal_to_formula((2, 5, 6, width), (20, 5, 3, 3), padding=1)


@pytest.mark.parametrize("stride", [1, 2, 3, (4, 5)])
@pytest.mark.parametrize("dilation", [1, 2, (1, 3)])
@pytest.mark.parametrize("padding", [0, 1, 4, ((1, 0), (0, 2)), "same", "valid"])
def test_every_stride_dilation_and_padding(stride, dilation, padding):
    for kernel in ((1, 1), (2, 2), (3, 3), (3, 1)):
        w = (18, 4, *kernel)
        assert_equal_to_formula((2, 4, 11, 9), w, stride=stride, dilation=dilation, padding=padding)


@pytest.mark.parametrize(
    ("x", "w", "groups"),
    [
        ((2, 8, 12, 12), (8, 1, 3, 3), 8),  # depthwise
        ((2, 8, 12, 40), (16, 1, 3, 3), 8),
        ((2, 8, 9, 9), (4, 4, 3, 3), 2),
        ((2, 32, 9, 9), (64, 16, 3, 3), 2),
        ((2, 3, 9, 9), (60, 1, 5, 5), 3),
    ],
)
@pytest.mark.parametrize("stride", [1, 2])
def test_groups_of_channels(x, w, groups, stride):
    assert_equal_to_formula(x, w, groups=groups, stride=stride, padding=1)


@pytest.mark.parametrize(
    ("x", "w", "keywords"),
    [
        ((1, 3, 70, 90), (16, 3, 7, 7), {"stride": 2, "padding": 3}),
        ((40, 32, 6, 6), (48, 32, 3, 3), {"padding": 1}),
        ((1, 64, 150, 150), (16, 64, 3, 3), {"padding": 1}),  # several strips
        ((2, 300, 5, 5), (33, 300, 3, 3), {"padding": 1}),  # several blocks of channels
        ((1, 20, 1, 1), (40, 20, 1, 1), {}),
        ((2, 24, 8, 16), (20, 24, 1, 1), {}),  # read where it is
        ((2, 3, 16, 32), (4, 3, 1, 1), {}),
    ],
)
def test_large_and_deep_images(x, w, keywords):
    assert_equal_to_formula(x, w, **keywords)


@pytest.mark.parametrize(
    "keywords", [{}, {"padding": 2, "stride": 3}, {"groups": 2, "dilation": 2}]
)
def test_one_axis(keywords):
    groups = keywords.get("groups", 1)
    assert_equal_to_formula((2, 6, 30), (20, 6 // groups, 5), **keywords)


def test_results_do_not_depend_on_the_number_of_threads():
    x, w = (9, 20, 12, 13), (40, 20, 3, 3)
    for name, arrays, params in arguments(x, w, {"padding": 1}):
        results = []
        for n in (1, 2, 5):
            pool.set_threads(n)
            results.append(gg.OPS[name].cpu(NUMPY, *arrays, **_full(params)))
        assert np.array_equal(results[0], results[1])
        assert np.array_equal(results[0], results[2])


@pytest.mark.parametrize(("w", "groups"), [((16, 4, 3, 3), 1), ((4, 1, 3, 3), 4)])
def test_borders_stay_clear_of_infinities(w, groups):
    """An infinite pixel changes only the results that it is part of.

    An infinite weight is multiplied by the zeros of the padding, as in other libraries.
    """
    for name, arrays, params in arguments((1, 4, 9, 21), w, {"groups": groups, "stride": 2}):
        for k in (0, 1) if name == "convolution_weight_grad" else (0,):
            broken, touched = [a.copy() for a in arrays], [np.ones_like(a) for a in arrays]
            broken[k].flat[-1] = np.inf
            touched[k][...] = 0
            touched[k].flat[-1] = 1
            op = gg.OPS[name]
            actual = op.cpu(NUMPY, *broken, **_full(params))
            part = op.forward(NUMPY, *touched, **params) != 0
            assert np.array_equal(~np.isfinite(actual), part), name


def test_arrays_need_not_be_contiguous():
    for name, arrays, params in arguments((2, 5, 8, 7), (20, 5, 3, 3), {"padding": 1}):
        op = gg.OPS[name]
        desired = op.cpu(NUMPY, *arrays, **_full(params))
        strided = [np.asfortranarray(a) for a in arrays]
        assert np.array_equal(op.cpu(NUMPY, *strided, **_full(params)), desired)


@pytest.mark.parametrize("most", [1, 1 << 22])
@pytest.mark.parametrize("stride", [1, (3, 1, 2)])
@pytest.mark.parametrize(
    "keywords",
    [{}, {"padding": 4, "dilation": (2, 1, 1)}, {"padding": ((3, 0), (0, 1), (1, 1)), "groups": 2}],
)
def test_three_axes(stride, keywords, most, monkeypatch):
    monkeypatch.setattr(volumes, "MOST", most)
    groups = keywords.get("groups", 1)
    assert_equal_to_formula((3, 4, 6, 5, 7), (6, 4 // groups, 2, 3, 1), stride=stride, **keywords)
    assert_equal_to_formula((2, 2, 4, 4, 4), (2, 2, 4, 1, 1), **keywords | {"groups": 1})


@pytest.mark.parametrize(
    ("x", "w", "dtype"),
    [
        ((2, 3, 8, 8), (4, 3, 3, 3), np.float64),
        ((2, 3, 8, 8), (4, 3, 3, 3), np.float16),
        ((2, 3, 8, 8), (4, 3, 3, 3), np.complex64),
        ((2, 3, 5, 5, 5), (4, 3, 3, 3, 3), np.float64),
        ((0, 3, 8, 8), (4, 3, 3, 3), np.float32),
    ],
)
def test_other_convolutions_are_left_to_numpy(x, w, dtype):
    for name, arrays, params in arguments(x, w, {}, dtype):
        assert gg.OPS[name].cpu(NUMPY, *arrays, **_full(params)) is NotImplemented


def test_small_convolutions_are_left_to_numpy(monkeypatch):
    monkeypatch.setattr(convolution, "LEAST", 1 << 15)
    for name, arrays, params in arguments((2, 3, 4, 4), (4, 3, 3, 3), {}):
        assert gg.OPS[name].cpu(NUMPY, *arrays, **_full(params)) is NotImplemented


@pytest.mark.parametrize(
    "name", ["convolution", "convolution_input_grad", "convolution_weight_grad"]
)
def test_the_op_passes_its_checks_with_the_kernel(name):
    gg.testing.check_op(name)


def test_16_bit_floats_run_through_the_kernel(monkeypatch):
    calls, launchers = [], convolution._Launchers
    plain = launchers._run
    monkeypatch.setattr(launchers, "_run", lambda *args: calls.append(args[1]) or plain(*args))
    for name, arrays, params in arguments((2, 3, 9, 9), (8, 3, 3, 3), {}, np.float16):
        result = gg.OPS[name].eager(*arrays, **params).numpy()
        desired = gg.OPS[name].forward(NUMPY, *(a.astype(np.float64) for a in arrays), **params)
        assert result.dtype == np.float16
        np.testing.assert_allclose(result, desired, 1e-2, 1e-2)
    assert calls == ["", "_input", "_weights"]


@pytest.mark.parametrize(
    ("x", "w", "keywords"),
    [
        ((2, 3, 9, 9), (8, 3, 3, 3), {"padding": 1}),
        ((2, 3, 9, 7), (8, 3, 3, 2), {"stride": 2, "padding": "same"}),
        ((2, 8, 6, 6), (8, 1, 3, 3), {"groups": 8, "dilation": 2}),
        ((3, 4, 20), (20, 4, 5), {}),
    ],
)
@pytest.mark.parametrize("swapped", [False, True])
def test_a_program_in_c_computes_convolutions_in_its_run(x, w, keywords, swapped, monkeypatch):
    monkeypatch.setenv("GPUGRAD_CPU_KERNELS", "always")

    def gradients(x, w):
        with gg.GradientTape() as tape:
            tape.watch((x, w))
            x_ = gg.sin(x)
            if swapped:  # a view that a convolution cannot read where it is
                x_ = gg.matrix_transpose(gg.cos(gg.matrix_transpose(x_)))
            y = gg.tanh(gg.convolution(x_, w * 0.1, **keywords))
        return y, *tape.gradient(y, [x, w])

    rng = np.random.default_rng(0)
    args = [gg.constant(rng.normal(size=shape).astype(np.float32)) for shape in (x, w)]
    traced = gg.function(gradients)
    for _ in range(2):
        for actual, desired in zip(traced(*args), gradients(*args), strict=True):
            np.testing.assert_allclose(actual.numpy(), desired.numpy(), 1e-5, 1e-5)
    (plan,) = traced._plans.values()
    assert "convolution" in str(traced.lower(*args))
    assert "convolution" not in plan.replay.source
    strided = gg.matrix_transpose(gg.constant(np.swapaxes(args[0].numpy(), -1, -2).copy()))
    for actual, desired in zip(traced(strided, args[1]), traced(*args), strict=True):
        np.testing.assert_array_equal(actual.numpy(), desired.numpy())


def test_training_with_the_kernel_equals_training_without(monkeypatch):
    def train():
        rng = np.random.default_rng(0)
        w = gg.Variable(rng.normal(size=(16, 3, 3, 3)).astype(np.float32))
        x = gg.constant(rng.normal(size=(4, 3, 16, 16)).astype(np.float32))

        @gg.function
        def step():
            with gg.GradientTape() as tape:
                loss = gg.mean(gg.tanh(gg.convolution(x, w, padding=1, stride=2)) ** 2)
            w.assign_sub(tape.gradient(loss, w))
            return loss

        return [float(step()) for _ in range(5)]

    actual = train()
    for library in ("_SUMS", "_WEIGHTS"):
        monkeypatch.setattr(convolution, library, None)
    np.testing.assert_allclose(actual, train(), rtol=1e-5)
