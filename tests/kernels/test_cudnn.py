"""Convolution and attention by cuDNN, on a stand-in that computes what the graphs describe."""

import functools
import importlib.metadata
import itertools
import json
import pickle
from pathlib import Path

import numpy as np
import pytest
from comparing import near_largest
from conftest import REAL_GPU
from fakes import cudnn as fake_cudnn
from fresh import output_of
from needs import needs_shim
from taping import taped

import gpugrad as gg
from gpugrad.core import backend, nest
from gpugrad.core.backend import BFLOAT16, NUMPY
from gpugrad.function.passes import pieces
from gpugrad.function.passes.fuse import launches
from gpugrad.kernels.libraries import cudnn
from gpugrad.kernels.runtime.graphs import CudaGraph
from gpugrad.testing.cuda import shim

DTYPES = [np.float32, np.float64, np.float16, BFLOAT16]
HALF = [np.float16, BFLOAT16]
TOLERANCE = {"float64": 1e-12, "float32": 1e-5, "float16": 4e-3, "bfloat16": 3e-2}


@pytest.fixture
def calls(request, monkeypatch):
    """The graphs that the stand-in for cuDNN executed."""
    if REAL_GPU:
        pytest.skip(reason="the stand-in cannot read a GPU's memory")
    monkeypatch.setattr(cudnn, "binding", lambda: fake_cudnn)
    cudnn._handle.cache_clear()
    cudnn._plans.clear()
    fake_cudnn.calls.clear()
    fake_cudnn.built.clear()
    yield fake_cudnn.calls
    cudnn._handle.cache_clear()
    cudnn._plans.clear()
    cudnn._captured.clear()


def near(actual, desired, dtype):
    assert actual.dtype == desired.dtype
    near_largest(actual, desired, TOLERANCE[np.dtype(dtype).name])


def both(name, arrays, cuda, **params):
    """An op's results on the device and by its formula on the CPU, as lists."""
    op = gg.OPS[name]
    results = op.eager(*(a if a is None else gg.constant(a, device=cuda) for a in arrays), **params)
    desired = op.bare(NUMPY)(*arrays, **params)
    if op.outputs == 1:
        results, desired = [results], [desired]
    return [t.numpy() for t in results], list(desired)


# ---- convolution

CONVOLUTIONS = {
    "plain": ((2, 3, 5, 4), (4, 3, 2, 2), {}),
    "rectangle": ((2, 3, 7, 6), (4, 3, 3, 1), {"stride": (2, 1), "padding": (1, 0)}),
    "more padding behind": ((1, 2, 6, 5), (3, 2, 3, 2), {"padding": ((1, 2), (0, 1)), "stride": 2}),
    "dilated": ((1, 2, 8, 7), (2, 2, 3, 2), {"dilation": (2, 3), "padding": "same"}),
    "groups": ((2, 4, 5, 5), (6, 2, 2, 3), {"groups": 2, "padding": 1}),
    "depthwise": ((2, 3, 4, 4), (6, 1, 3, 3), {"groups": 3, "stride": 2, "padding": 1}),
    "1d": ((2, 3, 9), (4, 3, 2), {"stride": 2, "padding": ((1, 0),), "dilation": 2}),
    "3d": ((1, 2, 4, 3, 5), (2, 2, 2, 1, 3), {"stride": (1, 1, 2), "padding": (1, 0, 1)}),
    "stride leaves a remainder": ((1, 1, 8, 8), (1, 1, 3, 3), {"stride": 3}),
}


def convolutions(x_shape, w_shape, dtype, rng, **params):
    """The three ops on arrays of these shapes: (cuDNN's name, op, arrays, keywords)."""
    x, w = (rng.normal(size=s).astype(dtype) for s in (x_shape, w_shape))
    g = rng.normal(size=gg.convolution(x, w, **params).shape).astype(dtype)
    yield "conv_fprop", "convolution", (x, w), params
    yield "conv_dgrad", "convolution_input_grad", (g, w), {"shape": x_shape[2:], **params}
    yield "conv_wgrad", "convolution_weight_grad", (x, g), {"kernel": w_shape[2:], **params}


@pytest.mark.parametrize("case", CONVOLUTIONS)
@pytest.mark.parametrize("dtype", [np.float32, BFLOAT16], ids=["float32", "bfloat16"])
def test_convolution_and_its_gradients_run_in_cudnn(case, dtype, cuda, rng, calls):
    x, w, params = CONVOLUTIONS[case]
    for name, op, arrays, keywords in convolutions(x, w, dtype, rng, **params):
        (actual,), (desired,) = both(op, arrays, cuda, **keywords)
        near(actual, desired, dtype)
        assert calls.pop()["name"] == name
    assert calls == []


@pytest.mark.parametrize("dtype", DTYPES, ids=lambda d: np.dtype(d).name)
def test_training_step_of_a_convolution_is_three_graphs(dtype, cuda, rng, calls):
    x, w = (rng.normal(size=s).astype(dtype) for s in ((2, 3, 5, 5), (4, 3, 3, 3)))

    def run(device):
        a, b = gg.constant(x, device=device), gg.constant(w, device=device)
        with gg.GradientTape() as tape:
            tape.watch([a, b])
            y = gg.convolution(a, b, padding=1)
            loss = gg.sum(y * y)
        return [y.numpy(), *(t.numpy() for t in tape.gradient(loss, [a, b]))]

    for actual, desired in zip(run(cuda), run("cpu"), strict=True):
        near(actual, desired, dtype)
    assert {c["name"] for c in calls} == {"conv_fprop", "conv_dgrad", "conv_wgrad"}
    assert len(calls) == 3


@pytest.mark.parametrize(
    ("dtype", "precision", "barred"),
    [(np.float32, "highest", {"TENSOR_CORE", "DOWN_CONVERT_INPUTS"}), (np.float32, "high", set()),
     (np.float32, "medium", set()), (np.float64, "highest", set()),
     (np.float16, "highest", {"REDUCED_PRECISION_REDUCTION"})],
)  # fmt: skip
def test_float32_convolution_follows_matmul_precision(dtype, precision, barred, cuda, rng, calls):
    arrays = [rng.normal(size=s).astype(dtype) for s in ((1, 8, 6, 6), (8, 8, 3, 3))]
    gg.set_matmul_precision(precision)
    try:
        (actual,), (desired,) = both("convolution", arrays, cuda)
    finally:
        gg.set_matmul_precision("highest")
    assert set(calls[0]["notes"]) == barred
    rounded = np.abs(actual.astype(float) - desired.astype(float)).max() > 1e-4
    assert rounded == (precision != "highest")


def test_deterministic_mode_bars_nondeterministic_kernels(cuda, calls):
    x, w = gg.ones((1, 1, 4, 4), device=cuda), gg.ones((1, 1, 2, 2), device=cuda)
    gg.convolution(x, w)
    gg.set_deterministic()
    try:
        gg.convolution(x, w)
    finally:
        gg.set_deterministic(False)
    assert ["NONDETERMINISTIC" in c["notes"] for c in calls] == [False, True]
    assert len(fake_cudnn.built) == 2


# ---- convolution fused with bias and relu


def layer(x, w, b, relu=True, last=False, **params):
    """A convolution plus a bias per channel, then relu; channels are second or last."""
    y = gg.convolution(gg.moveaxis(x, -1, 1) if last else x, w, **params)
    y = gg.moveaxis(y, 1, -1) + b if last else y + gg.reshape(b, (-1, *[1] * (y.ndim - 2)))
    return gg.relu(y) if relu else y


def layer_arrays(case, dtype, rng, last=False):
    """x, weights and a bias, and keywords."""
    x, w, params = CONVOLUTIONS[case]
    shapes = (x[0], *x[2:], x[1]) if last else x, w, w[:1]
    return [rng.normal(size=s).astype(dtype) for s in shapes], params


def here(arrays):
    return [gg.constant(a, device="cpu") for a in arrays]


def traced(f, arrays, cuda, calls):
    """Results of a traced function on the device, the graphs it executed, and the launches."""
    function, there = gg.function(f), [gg.constant(a, device=cuda) for a in arrays]
    function(*there)
    calls.clear()
    results = [t.numpy() for t in nest.flatten(function(*there))]
    (plan,) = function._plans.values()
    return results, [c["name"] for c in calls], launches(plan.replay.program)


LAYOUTS = pytest.mark.parametrize("last", [False, True], ids=["channels first", "channels last"])


@LAYOUTS
@pytest.mark.parametrize("case", CONVOLUTIONS)
@pytest.mark.parametrize("dtype", DTYPES, ids=lambda d: np.dtype(d).name)
def test_bias_and_relu_are_fused_into_the_convolution(dtype, case, last, cuda, rng, calls):
    arrays, params = layer_arrays(case, dtype, rng, last)
    for relu in (True, False):
        f = functools.partial(layer, relu=relu, last=last, **params)
        (actual,), asked, launched = traced(f, arrays, cuda, calls)
        near(actual, f(*here(arrays)).numpy(), dtype)
        assert asked == ["conv_fprop + bias" + " + relu" * relu]
        assert launched == ["convolution + bias" + " + relu" * relu]


def test_channels_last_arrays_are_not_copied(cuda, rng, calls, monkeypatch):
    arrays, params = layer_arrays("groups", np.float32, rng, last=True)
    lib, copied = backend.cupy(), []
    real = lib.ascontiguousarray
    monkeypatch.setattr(
        lib, "ascontiguousarray", lambda a: copied.append(not a.flags.c_contiguous) or real(a)
    )
    traced(functools.partial(layer, last=True, **params), arrays, cuda, calls)
    assert not any(copied)


def layer_with_gradients(x, w, b, **params):
    with gg.GradientTape() as tape:
        tape.watch([x, w, b])
        loss = gg.sum(gg.astype(layer(x, w, b, **params), "float32") ** 2)
    return [loss, *tape.gradient(loss, [x, w, b])]


@needs_shim
@LAYOUTS
@pytest.mark.parametrize("dtype", [np.float32, np.float16], ids=["float32", "float16"])
def test_training_step_fuses_bias_and_relu_into_the_convolution(
    dtype, last, cuda, rng, calls, monkeypatch
):
    arrays, params = layer_arrays("rectangle", dtype, rng, last)
    f = functools.partial(layer_with_gradients, last=last, **params)
    results, asked, launched = traced(f, arrays, cuda, calls)
    for a, desired in zip(results, f(*here(arrays)), strict=True):
        near(a, desired.numpy(), dtype)
    assert sorted(asked) == ["conv_dgrad", "conv_fprop + bias + relu", "conv_wgrad"]
    assert launched[0] == "convolution + bias + relu"
    assert not any("relu" in name for name in launched[1:])
    monkeypatch.setattr(cudnn, "binding", lambda: None)
    *_, apart = traced(f, arrays, cuda, calls)
    assert apart[0] == "convolution"
    assert "add, relu" in apart[1]
    assert len(launched) == len(apart)  # the rest of that kernel squares and masks


@LAYOUTS
def test_three_layers_are_three_launches(last, cuda, rng, calls, monkeypatch):
    x = gg.constant(rng.normal(size=(2, 5, 5, 3) if last else (2, 3, 5, 5)), device=cuda)
    shapes = [(4, channels, 3, 3) for channels in (3, 4, 4)]
    weights = [gg.constant(rng.normal(size=s), device=cuda) for s in shapes]
    biases = [gg.constant(rng.normal(size=4), device=cuda) for _ in shapes]

    def model(x, weights, biases):
        for w, b in zip(weights, biases, strict=True):
            x = layer(x, w, b, last=last, padding=1)
        return x

    def step(x, weights, biases):
        with gg.GradientTape() as tape:
            tape.watch([*weights, *biases])
            loss = gg.mean(model(x, weights, biases) ** 2)
        return loss, tape.gradient(loss, [*weights, *biases])

    def count(f):
        function = gg.function(f)
        function(x, weights, biases)  # traces
        return len(launches(next(iter(function._plans.values())).replay.program))

    joined = count(model), count(step)
    monkeypatch.setattr(cudnn, "binding", lambda: None)
    # without cuDNN the last layer's bias and relu are fused into the loss
    assert (joined[0], joined[1] + 2) == (3, count(step))
    assert count(model) == 6


@needs_shim
@LAYOUTS
def test_fusion_that_cudnn_refuses_runs_as_separate_kernels(last, cuda, rng, calls, monkeypatch):
    real = fake_cudnn.pygraph.check_support

    def refuses(graph):
        if "bias" in graph.name:
            raise fake_cudnn.cudnnGraphNotSupportedError("no plan")
        real(graph)

    monkeypatch.setattr(fake_cudnn.pygraph, "check_support", refuses)
    (x, w, b), params = layer_arrays("dilated", np.float32, rng, last)
    arrays = [x, w, rng.normal(size=(3, *b.shape, 4, 5)).astype(np.float32)]

    def f(x, w, b):  # the sum gets its own kernel, which changes what the step reads
        return layer(x, w, gg.sum(b, axis=(0, 2, 3)), last=last, **params)

    (actual,), asked, launched = traced(f, arrays, cuda, calls)
    near(actual, f(*here(arrays)).numpy(), np.float32)
    assert asked == ["conv_fprop"]
    assert launched[-1] == "convolution + bias + relu"


@needs_shim
def test_returned_intermediates_are_not_fused_away(cuda, rng, calls):
    arrays, _ = layer_arrays("plain", np.float32, rng)

    def of_result(x, w, b):
        y = gg.convolution(x, w)
        return y, gg.relu(y + gg.reshape(b, (-1, 1, 1)))

    def of_sum(x, w, b):
        y = gg.convolution(x, w) + gg.reshape(b, (-1, 1, 1))
        return gg.relu(y), y

    for f, name in ((of_result, "conv_fprop"), (of_sum, "conv_fprop + bias")):
        results, asked, launched = traced(f, arrays, cuda, calls)
        for a, desired in zip(results, f(*here(arrays)), strict=True):
            near(a, desired.numpy(), np.float32)
        assert asked == [name]
        assert len(launched) == 2


@needs_shim
@pytest.mark.parametrize(
    ("shape", "dtype"),
    [((2, 4, 4, 3), np.float32), ((4, 4, 1), np.float32), ((3,), np.float32),
     ((4, 1, 1), np.float64)],
    ids=["same shape", "per channel and row", "per column", "wider dtype"],
)  # fmt: skip
def test_only_one_number_per_channel_is_fused_as_a_bias(shape, dtype, cuda, rng, calls):
    arrays, _ = layer_arrays("plain", np.float32, rng)
    arrays[2] = rng.normal(size=shape).astype(dtype)

    def f(x, w, b):
        return gg.relu(gg.convolution(x, w) + b)

    (actual,), asked, launched = traced(f, arrays, cuda, calls)
    desired = f(*here(arrays)).numpy()
    near(actual.astype(np.float32), desired.astype(np.float32), np.float32)
    assert asked == ["conv_fprop"]
    assert launched[0] == "convolution"


@needs_shim
@pytest.mark.parametrize(
    ("move", "joined"),
    [(lambda y: gg.permute_dims(y, (0, 2, 3, 1)), True),
     (lambda y: gg.permute_dims(y, (0, 3, 2, 1)), False),
     (lambda y: gg.swapaxes(y, 1, 3), False)],
    ids=["channels last", "spatial axes swapped", "channels and columns swapped"],
)  # fmt: skip
def test_bias_is_fused_only_if_spatial_axes_keep_their_order(move, joined, cuda, rng, calls):
    arrays, _ = layer_arrays("plain", np.float32, rng)

    def f(x, w, b):
        return gg.relu(move(gg.convolution(x, w)) + b)

    (actual,), asked, _ = traced(f, arrays, cuda, calls)
    near(actual, f(*here(arrays)).numpy(), np.float32)
    assert asked == ["conv_fprop + bias + relu" if joined else "conv_fprop"]


def test_strided_bias_is_fused(cuda, rng, calls):
    (x, w, b), params = layer_arrays("plain", np.float32, rng)
    table = np.stack([b, 2 * b], 1)

    def f(x, w, table):
        return layer(x, w, table[:, 1], **params)

    (actual,), asked, _ = traced(f, [x, w, table], cuda, calls)
    near(actual, f(*here([x, w, table])).numpy(), np.float32)
    assert asked == ["conv_fprop + bias + relu"]


@needs_shim
def test_empty_batch_does_not_use_cudnn(cuda, rng, calls):
    (x, w, b), _ = layer_arrays("plain", np.float32, rng)
    (actual,), asked, _ = traced(layer, [x[:0], w, b], cuda, calls)
    assert actual.shape == (0, 4, 4, 3)
    assert asked == []


def test_fused_relu_propagates_nan(cuda, rng, calls):
    (x, w, b), _ = layer_arrays("plain", np.float32, rng)
    b[1] = np.nan
    (actual,), asked, _ = traced(layer, [x, w, b], cuda, calls)
    np.testing.assert_array_equal(np.isnan(actual), np.isnan(layer(*here([x, w, b])).numpy()))
    assert np.isnan(actual[:, 1]).all()
    assert asked == ["conv_fprop + bias + relu"]


@needs_shim
def test_cuda_graph_captures_the_fused_convolution(cuda, rng, calls):
    function = gg.function(layer)
    for _ in range(3):
        arrays, _ = layer_arrays("plain", np.float32, rng)
        actual = function(*(gg.constant(a, device=cuda) for a in arrays))
        near(actual.numpy(), layer(*here(arrays)).numpy(), np.float32)
    replay = next(iter(function._plans.values())).replay
    assert [run.fixed for run in replay.runs] == [True]
    assert replay._captured.graphs[0]
    assert cudnn._captured


# ---- attention


ATTENTIONS = {
    "plain": ((2, 3, 4, 8), (2, 3, 5, 8), (2, 3, 5, 16), {}),
    "causal": ((2, 2, 5, 8), (2, 2, 3, 8), (2, 2, 3, 8), {"is_causal": True}),
    "causal with more keys": ((1, 2, 3, 8), (1, 2, 6, 8), (1, 2, 6, 8), {"is_causal": True}),
    "scaled": ((1, 2, 4, 8), (1, 2, 4, 8), (1, 2, 4, 8), {"scale": 0.7}),
    "grouped heads": ((2, 6, 3, 8), (2, 2, 4, 8), (2, 2, 4, 8), {"enable_gqa": True}),
    "one head": ((2, 1, 3, 8), (2, 1, 4, 8), (2, 1, 4, 8), {"is_causal": True}),
    "no heads": ((3, 8), (4, 8), (4, 8), {}),
    "several batch axes": ((2, 3, 2, 4, 8), (2, 3, 2, 4, 8), (2, 3, 2, 4, 8), {}),
}


def attended(shapes, dtype, cuda, rng, **params):
    """Attention, its logsumexp and its gradients, on the device and on the CPU."""
    arrays = [rng.normal(size=s).astype(dtype) for s in (*shapes, (*shapes[0][:-1], shapes[2][-1]))]

    def run(device):
        *inputs, weights = (gg.constant(a, device=device) for a in arrays)
        with gg.GradientTape() as tape:
            tape.watch(inputs)
            out, lse = gg.OPS["flash_attention"].eager(*inputs, **params)
            loss = gg.sum(weights * out)
        return [t.numpy() for t in (out, lse, *tape.gradient(loss, inputs))]

    return list(zip(run(cuda), run("cpu"), strict=True))


@pytest.mark.parametrize("case", ATTENTIONS)
@pytest.mark.parametrize("dtype", HALF, ids=lambda d: np.dtype(d).name)
def test_attention_and_its_gradients_run_in_cudnn(case, dtype, cuda, rng, calls):
    *shapes, params = ATTENTIONS[case]
    for actual, desired in attended(shapes, dtype, cuda, rng, **params):
        near(actual, desired, dtype)
    assert [c["name"] for c in calls] == ["sdpa", "sdpa_backward"]


@pytest.fixture
def attention(cuda, rng):
    """Three arguments on the device, their values, and a loss of float16 attention."""
    arrays = [rng.normal(size=(1, 2, n, 8)).astype(np.float16) for n in (3, 4, 4)]

    def loss(query, key, value):
        out = gg.nn.scaled_dot_product_attention(query, key, value)
        return gg.sum(gg.astype(out, "float32") ** 2)

    return [gg.constant(a, device=cuda) for a in arrays], arrays, loss


def gradients_of(loss, arguments):
    arguments = [a if isinstance(a, gg.Tensor) else gg.constant(a, device="cpu") for a in arguments]
    tape, y = taped(loss, *arguments, persistent=True)
    return [t.numpy() for t in tape.gradient(y, arguments)]


def test_gradients_requested_one_by_one_are_right(attention, calls):
    there, arrays, loss = attention
    tape, y = taped(loss, *there, persistent=True)
    here = [gg.constant(a, device="cpu") for a in arrays]
    again, z = taped(loss, *here, persistent=True)
    desired = again.gradient(z, here)
    for i in (1, 0, 2, 1):
        near(tape.gradient(y, there[i]).numpy(), desired[i].numpy(), np.float16)
    assert [c["name"] for c in calls] == ["sdpa"] + ["sdpa_backward"] * 4


def test_spare_gradients_are_not_reused_for_other_arrays(attention, calls):
    there, arrays, _ = attention
    grad, grads = gg.OPS["flash_attention_grad"], []
    for inputs in (there, [gg.constant(a, device="cpu") for a in arrays]):
        out, lse = gg.OPS["flash_attention"].eager(*inputs)
        one, two = out * 0 + 1, out * 0 + 2  # both stay alive
        for g, of in ((one, "query"), (two, "key"), (one, "value"), (one, "query")):
            grads.append(grad.eager(g, *inputs, out, lse, of=of).numpy())
    for actual, desired in zip(grads[:4], grads[4:], strict=True):
        near(actual, desired, np.float16)


def test_gradients_nobody_requests_are_freed(attention, calls):
    there, _, loss = attention
    tape, y = taped(loss, *there, persistent=True)
    assert tape.gradient(y, there[0]) is not None
    assert [c["name"] for c in calls] == ["sdpa", "sdpa_backward"]
    assert cudnn._spare_grads.results == {}


def test_gradient_through_logsumexp_does_not_use_cudnn(attention, calls):
    there, arrays, _ = attention

    def loss(*arguments):
        out, lse = gg.OPS["flash_attention"].eager(*arguments)
        return gg.sum(gg.astype(out, "float32")) + gg.sum(lse * lse)

    for actual, desired in zip(gradients_of(loss, there), gradients_of(loss, arrays), strict=True):
        near(actual, desired, np.float16)
    assert [c["name"] for c in calls] == ["sdpa"]


def test_second_order_gradient_uses_the_formula(attention, calls):
    there, arrays, loss = attention

    def penalty(*arguments):
        tape, y = taped(loss, *arguments, persistent=True)
        grads = tape.gradient(y, arguments)
        return sum(gg.sum(gg.astype(g, "float32") ** 2) for g in grads)

    for actual, desired in zip(
        gradients_of(penalty, there), gradients_of(penalty, arrays), strict=True
    ):
        np.testing.assert_allclose(actual, desired, 2e-2, 2e-2 * np.abs(desired).max())
    assert [c["name"] for c in calls] == ["sdpa"]  # the rest is the formula


def test_deterministic_mode_requests_a_deterministic_backward(attention, calls):
    there, _, loss = attention
    gg.set_deterministic()
    try:
        gradients_of(loss, there)
    finally:
        gg.set_deterministic(False)
    assert {"deterministic algorithm", "NONDETERMINISTIC"} <= set(calls[-1]["notes"])


def test_interleaved_heads_are_read_without_a_copy(cuda, rng, calls, monkeypatch):
    x = rng.normal(size=(2, 5, 3 * 4 * 8)).astype(np.float16)

    def attend(device):
        qkv = gg.constant(x, device=device).reshape(2, 5, 3, 4, 8)
        query, key, value = (gg.transpose(qkv[:, :, i], (0, 2, 1, 3)) for i in range(3))
        return gg.nn.scaled_dot_product_attention(query, key, value, is_causal=True).numpy()

    real, copied = cudnn._layout, []
    monkeypatch.setattr(cudnn, "_layout", lambda a: copied.append(a.flags.c_contiguous) or real(a))
    near(attend(cuda), attend("cpu"), np.float16)
    assert copied == [False] * 4  # the result has the layout of the queries
    assert len(calls) == 1


@pytest.mark.parametrize(
    ("query", "key", "dtype", "mask"),
    [((2, 3, 8), (2, 3, 8), np.float32, None), ((2, 3, 6), (2, 3, 6), np.float16, None),
     ((2, 2, 3, 8), (1, 2, 3, 8), np.float16, None), ((2, 0, 8), (2, 3, 8), np.float16, None),
     ((2, 3, 8), (2, 3, 8), np.float16, np.eye(3, dtype=bool))],
    ids=["float32", "head size 6", "broadcast", "no queries", "mask"],
)  # fmt: skip
def test_unsupported_attention_does_not_use_cudnn(query, key, dtype, mask, cuda, rng, calls):
    arrays = [rng.normal(size=s).astype(dtype) for s in (query, key, key)]
    actual, desired = both("flash_attention", [*arrays, mask], cuda)
    near(actual[0], desired[0], dtype)
    assert calls == []


def test_attention_with_dropout_does_not_use_cudnn(attention, calls):
    there, arrays, _ = attention
    stream = np.array([1, 2, 3, 0], np.uint64)

    def loss(query, key, value):
        at = gg.constant(stream, device=query.device)
        out = gg.OPS["flash_attention"].eager(query, key, value, None, at, dropout_p=0.4)[0]
        return gg.sum(gg.astype(out, "float32") ** 2)

    for actual, desired in zip(gradients_of(loss, there), gradients_of(loss, arrays), strict=True):
        near(actual, desired, np.float16)
    assert calls == []


# ---- plans


def test_plans_are_cached_and_old_ones_are_dropped(cuda, calls, monkeypatch):
    monkeypatch.setattr(cudnn, "PLANS", 3)
    w = gg.ones((1, 1, 2, 2), device=cuda)
    for n in (4, 5, 4, 6, 7, 4):
        gg.convolution(gg.ones((1, 1, n, n), device=cuda), w)
    assert len(fake_cudnn.built) == 4
    assert len(cudnn._plans) == 3


def test_problem_without_a_plan_is_tried_once_and_uses_our_kernel(cuda, rng, calls, monkeypatch):
    asked = []

    def refuses(graph):
        asked.append(graph)
        raise fake_cudnn.cudnnGraphNotSupportedError("no plan")

    monkeypatch.setattr(fake_cudnn.pygraph, "check_support", refuses)
    arrays = [rng.normal(size=s) for s in ((1, 2, 4, 4), (2, 2, 2, 2))]
    for _ in range(2):
        (actual,), (desired,) = both("convolution", arrays, cuda)
        near(actual, desired, np.float64)
    assert len(asked) == 1
    assert calls == []


def test_unaligned_arrays_do_not_use_cudnn(cuda, rng, calls):
    x = rng.normal(size=(3, 1, 3, 3)).astype(np.float32)
    w = rng.normal(size=(1, 1, 2, 2)).astype(np.float32)

    def run(device):
        return gg.convolution(gg.constant(x, device=device)[1:], gg.constant(w, device=device))

    near(run(cuda).numpy(), run("cpu").numpy(), np.float32)
    assert calls == []


def test_graph_runs_on_the_current_stream(cuda, calls):
    x, w = gg.ones((1, 1, 4, 4), device=cuda), gg.ones((1, 1, 2, 2), device=cuda)
    with gg.cuda.stream(device=cuda) as s:
        gg.convolution(x, w)
    gg.convolution(x, w)
    assert [c["stream"] for c in calls] == [s.ptr, 0]


@pytest.mark.skipif(bool(shim.unavailable()), reason=shim.unavailable() or "g++ is here")
def test_traced_step_captures_cudnn_launches(cuda, rng, calls):
    def step(x, w, heads):
        with gg.GradientTape() as tape:
            tape.watch([w, heads])
            y = gg.convolution(x, w, padding=1)
            out = gg.nn.scaled_dot_product_attention(heads, heads, heads, is_causal=True)
            loss = gg.sum(y * y) + gg.sum(gg.astype(out, "float32"))
        return [y, out, *tape.gradient(loss, [w, heads])]

    function = gg.function(step)
    dtypes = (np.float32, np.float32, np.float16)
    for _ in range(3):
        arrays = [
            rng.normal(size=s).astype(d)
            for s, d in zip(((1, 2, 4, 4), (2, 2, 3, 3), (1, 2, 3, 8)), dtypes, strict=True)
        ]
        actual = function(*(gg.constant(a, device=cuda) for a in arrays))
        desired = step(*(gg.constant(a, device="cpu") for a in arrays))
        for f, d in zip(actual, desired, strict=True):
            near(f.numpy(), d.numpy(), f.dtype)
    names = [c["name"] for c in calls]
    assert names.count("sdpa_backward") == names.count("sdpa") == names.count("conv_wgrad")
    assert cudnn._captured


@pytest.mark.skipif(bool(shim.unavailable()), reason=shim.unavailable() or "g++ is here")
@pytest.mark.parametrize("another_reader", [False, True])
@pytest.mark.parametrize("with_cudnn", [True, False])
def test_gradients_of_one_projection_are_written_where_its_gradient_lies(
    with_cudnn, another_reader, cuda, rng, calls, monkeypatch
):
    if not with_cudnn:
        monkeypatch.setattr(cudnn, "binding", lambda: None)

    def step(x):
        with gg.GradientTape() as tape:
            tape.watch(x)
            parts = gg.permute_dims(gg.reshape(x, (2, 9, 3, 4, 8)), (2, 0, 3, 1, 4))
            query, key, value = gg.unstack(parts)
            y = gg.nn.scaled_dot_product_attention(query, key, value, is_causal=True)
            y = gg.reshape(gg.permute_dims(y, (0, 2, 1, 3)), (2, 9, 32))
            loss = gg.sum(gg.sin(gg.astype(y, "float32")))
        wanted = [x, query] if another_reader else [x]
        return [gg.tanh(d) for d in tape.gradient(loss, wanted)]

    function = gg.function(step)
    copied = []
    real = pieces.Pieces._are_in_place
    monkeypatch.setattr(
        pieces.Pieces, "_are_in_place", lambda *a: copied.append(not real(*a)) or not copied[-1]
    )
    for _ in range(4):
        x = rng.normal(size=(2, 9, 96)).astype(np.float16)
        actual = function(gg.constant(x, device=cuda))
        desired = step(gg.constant(x, device="cpu"))
        for f, d in zip(actual, desired, strict=True):
            near(f.numpy(), d.numpy(), np.float16)
    assert copied == ([] if another_reader else [False] * len(copied))
    assert another_reader or copied
    assert ("sdpa_backward" in {c["name"] for c in calls}) == with_cudnn


def test_plans_captured_by_a_cuda_graph_are_kept(cuda, rng, calls, monkeypatch):
    monkeypatch.setattr(cudnn, "PLANS", 1)
    lib, op = backend.cupy(), gg.OPS["convolution"]
    xp = backend.reading(lib.zeros(1))
    params = {"stride": 1, "padding": 0, "dilation": 1, "groups": 1}
    x, w = (rng.normal(size=s).astype(np.float32) for s in ((1, 2, 5, 5), (3, 2, 2, 2)))
    arrays = [lib.array(x), lib.array(w)]
    graph = CudaGraph(lambda: [op.cuda(xp, *arrays, **params)])
    for _ in range(2):  # first runs, then captures
        graph()
    assert len(cudnn._captured) == 1
    op.cuda(xp, lib.array(x), lib.array(w[:1]), **params)
    assert cudnn._captured.isdisjoint(cudnn._plans.values())  # evicted from the cache
    arrays[0][...] = lib.array(2 * x)
    (actual,) = graph()
    near(actual.get(), op.bare(NUMPY)(2 * x, w, **params), np.float32)


def test_without_cudnn_our_kernels_run(cuda, rng, calls, monkeypatch):
    monkeypatch.setattr(cudnn, "binding", lambda: None)
    arrays = [rng.normal(size=s) for s in ((1, 2, 4, 4), (2, 2, 2, 2))]
    (actual,), (desired,) = both("convolution", arrays, cuda)
    near(actual, desired, np.float64)
    assert calls == []


# ---- the stand-in matches cuDNN


def _installed(*names):
    """The first of these distributions that is installed, or None."""
    return next((d.name for n in names for d in importlib.metadata.distributions(name=n)), None)


@pytest.mark.peers
@pytest.mark.parametrize("same", [False, True], ids=["", "deterministic"])
def test_cudnn_has_plans_for_the_graphs_of_these_tests(same, cuda, rng, calls, tmp_path):
    if not _installed("nvidia-cudnn-frontend"):
        pytest.skip(reason="nvidia-cudnn-frontend is not installed")
    if not _installed("nvidia-cudnn-cu12", "nvidia-cudnn-cu13"):
        pytest.skip(reason="cuDNN is not installed")
    if shim.unavailable():
        pytest.skip(reason=shim.unavailable())
    gg.set_deterministic(same)
    try:
        for dtype in DTYPES:
            for x, w, params in CONVOLUTIONS.values():
                for _, op, arrays, keywords in convolutions(x, w, dtype, rng, **params):
                    both(op, arrays, cuda, **keywords)
            for case, relu, last in itertools.product(CONVOLUTIONS, *[(False, True)] * 2):
                arrays, params = layer_arrays(case, dtype, rng, last)
                f = functools.partial(layer, relu=relu, last=last, **params)
                traced(f, arrays, cuda, calls)
        for dtype in HALF:
            for *shapes, params in ATTENTIONS.values():
                attended(shapes, dtype, cuda, rng, **params)
    finally:
        gg.set_deterministic(False)
    asked = [(describe.__name__, problem, notes) for _, describe, problem, notes in cudnn._plans]
    n = len(DTYPES) * len(CONVOLUTIONS)
    followed = 4 * n  # with a bias, with relu; channels first, last
    traced_last = n - len(DTYPES)  # while tracing; with one channel, last is first
    assert len(asked) == 3 * n + traced_last + followed + 2 * len(HALF) * len(ATTENTIONS)
    (tmp_path / "asked").write_bytes(pickle.dumps(asked))
    script = Path(__file__).with_name("cudnn_driver.py")
    output = output_of(script, tmp_path, tmp_path / "asked")
    outcomes = json.loads(output.rpartition("RESULTS")[2])
    declined = [(a, why) for a, why in zip(asked, outcomes, strict=True) if type(why) is str]
    assert declined == []
