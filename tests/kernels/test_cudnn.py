"""Convolution and attention by cuDNN: its graphs, checked by a model that computes from them."""

import functools
import importlib.metadata
import itertools
import json
import pickle
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from comparing import near_largest
from fakes import cudnn as fake_cudnn
from needs import needs_shim

import gpugrad as gg
from gpugrad.core import backend, nest
from gpugrad.core.backend import BFLOAT16, NUMPY
from gpugrad.function.passes.fuse import launches
from gpugrad.kernels.libraries import cudnn
from gpugrad.kernels.runtime.graphs import CudaGraph
from gpugrad.testing.cuda import shim

DTYPES = [np.float32, np.float64, np.float16, BFLOAT16]
HALF = [np.float16, BFLOAT16]
TOLERANCE = {"float64": 1e-12, "float32": 1e-5, "float16": 4e-3, "bfloat16": 3e-2}


@pytest.fixture
def calls(request, monkeypatch):
    """What the stand-in for cuDNN was asked."""
    if backend.cupy().__spec__.loader is not None:
        pytest.skip(reason="a GPU is here, and memory that the stand-in cannot read")
    monkeypatch.setattr(cudnn, "binding", lambda: fake_cudnn)
    cudnn._handle.cache_clear()
    cudnn._plans.clear()
    fake_cudnn.calls.clear()
    fake_cudnn.built.clear()
    yield fake_cudnn.calls
    cudnn._handle.cache_clear()
    cudnn._plans.clear()
    cudnn._captured.clear()


def near(found, desired, dtype):
    assert found.dtype == desired.dtype
    near_largest(found, desired, TOLERANCE[np.dtype(dtype).name])


def both(name, arrays, cuda, **params):
    """An op's results on the device and by its formula on the CPU, as lists."""
    op = gg.OPS[name]
    found = op.eager(*(a if a is None else gg.constant(a, device=cuda) for a in arrays), **params)
    desired = op.bare(NUMPY)(*arrays, **params)
    if op.outputs == 1:
        found, desired = [found], [desired]
    return [t.numpy() for t in found], list(desired)


# ---- convolution

CONVOLUTIONS = {
    "plain": ((2, 3, 5, 4), (4, 3, 2, 2), {}),
    "rectangle": ((2, 3, 7, 6), (4, 3, 3, 1), {"stride": (2, 1), "padding": (1, 0)}),
    "more zeros behind": ((1, 2, 6, 5), (3, 2, 3, 2), {"padding": ((1, 2), (0, 1)), "stride": 2}),
    "dilated": ((1, 2, 8, 7), (2, 2, 3, 2), {"dilation": (2, 3), "padding": "same"}),
    "groups": ((2, 4, 5, 5), (6, 2, 2, 3), {"groups": 2, "padding": 1}),
    "channels alone": ((2, 3, 4, 4), (6, 1, 3, 3), {"groups": 3, "stride": 2, "padding": 1}),
    "a line": ((2, 3, 9), (4, 3, 2), {"stride": 2, "padding": ((1, 0),), "dilation": 2}),
    "a volume": ((1, 2, 4, 3, 5), (2, 2, 2, 1, 3), {"stride": (1, 1, 2), "padding": (1, 0, 1)}),
    "steps that leave some over": ((1, 1, 8, 8), (1, 1, 3, 3), {"stride": 3}),
}


def convolutions(x_shape, w_shape, dtype, rng, **given):
    """The three ops on arrays of these shapes: (name of cuDNN's, op, arrays, keywords)."""
    x, w = (rng.normal(size=s).astype(dtype) for s in (x_shape, w_shape))
    g = rng.normal(size=gg.convolution(x, w, **given).shape).astype(dtype)
    yield "conv_fprop", "convolution", (x, w), given
    yield "conv_dgrad", "convolution_input_grad", (g, w), {"shape": x_shape[2:], **given}
    yield "conv_wgrad", "convolution_weight_grad", (x, g), {"kernel": w_shape[2:], **given}


@pytest.mark.parametrize("case", CONVOLUTIONS)
@pytest.mark.parametrize("dtype", [np.float32, BFLOAT16], ids=["float32", "bfloat16"])
def test_a_convolution_and_its_gradients_are_cudnns(case, dtype, cuda, rng, calls):
    x, w, given = CONVOLUTIONS[case]
    for name, op, arrays, keywords in convolutions(x, w, dtype, rng, **given):
        (found,), (desired,) = both(op, arrays, cuda, **keywords)
        near(found, desired, dtype)
        assert calls.pop()["name"] == name
    assert calls == []


@pytest.mark.parametrize("dtype", DTYPES, ids=lambda d: np.dtype(d).name)
def test_a_step_of_a_convolution_is_three_graphs(dtype, cuda, rng, calls):
    x, w = (rng.normal(size=s).astype(dtype) for s in ((2, 3, 5, 5), (4, 3, 3, 3)))

    def run(device):
        a, b = gg.constant(x, device=device), gg.constant(w, device=device)
        with gg.GradientTape() as tape:
            tape.watch([a, b])
            y = gg.convolution(a, b, padding=1)
            loss = gg.sum(y * y)
        return [y.numpy(), *(t.numpy() for t in tape.gradient(loss, [a, b]))]

    for found, desired in zip(run(cuda), run("cpu"), strict=True):
        near(found, desired, dtype)
    assert {c["name"] for c in calls} == {"conv_fprop", "conv_dgrad", "conv_wgrad"}
    assert len(calls) == 3


@pytest.mark.parametrize(
    ("dtype", "precision", "barred"),
    [(np.float32, "highest", {"TENSOR_CORE", "DOWN_CONVERT_INPUTS"}), (np.float32, "high", set()),
     (np.float32, "medium", set()), (np.float64, "highest", set()),
     (np.float16, "highest", {"REDUCED_PRECISION_REDUCTION"})],
)  # fmt: skip
def test_the_precision_of_float32_is_that_of_products(dtype, precision, barred, cuda, rng, calls):
    arrays = [rng.normal(size=s).astype(dtype) for s in ((1, 8, 6, 6), (8, 8, 3, 3))]
    gg.set_matmul_precision(precision)
    try:
        (found,), (desired,) = both("convolution", arrays, cuda)
    finally:
        gg.set_matmul_precision("highest")
    assert set(calls[0]["notes"]) == barred
    rounded = np.abs(found.astype(float) - desired.astype(float)).max() > 1e-4
    assert rounded == (precision != "highest")


def test_kernels_whose_results_vary_are_barred_where_they_must_not(cuda, calls):
    x, w = gg.ones((1, 1, 4, 4), device=cuda), gg.ones((1, 1, 2, 2), device=cuda)
    gg.convolution(x, w)
    gg.set_deterministic()
    try:
        gg.convolution(x, w)
    finally:
        gg.set_deterministic(False)
    assert ["NONDETERMINISTIC" in c["notes"] for c in calls] == [False, True]
    assert len(fake_cudnn.built) == 2


# ---- convolution with what follows it


def layer(x, w, b, relu=True, last=False, **given):
    """A convolution plus a number for each channel, and relu of it; channels are second or last."""
    y = gg.convolution(gg.moveaxis(x, -1, 1) if last else x, w, **given)
    y = gg.moveaxis(y, 1, -1) + b if last else y + gg.reshape(b, (-1, *[1] * (y.ndim - 2)))
    return gg.relu(y) if relu else y


def layer_arrays(case, dtype, rng, last=False):
    """x, weights and a bias, and keywords."""
    x, w, given = CONVOLUTIONS[case]
    shapes = (x[0], *x[2:], x[1]) if last else x, w, w[:1]
    return [rng.normal(size=s).astype(dtype) for s in shapes], given


def here(arrays):
    return [gg.constant(a, device="cpu") for a in arrays]


def traced(f, arrays, cuda, calls):
    """Results of a traced function on the device, what was asked then, and the launches."""
    function, there = gg.function(f), [gg.constant(a, device=cuda) for a in arrays]
    function(*there)
    calls.clear()
    found = [t.numpy() for t in nest.flatten(function(*there))]
    (plan,) = function._plans.values()
    return found, [c["name"] for c in calls], launches(plan.replay.program)


LAYOUTS = pytest.mark.parametrize("last", [False, True], ids=["channels first", "channels last"])


@LAYOUTS
@pytest.mark.parametrize("case", CONVOLUTIONS)
@pytest.mark.parametrize("dtype", DTYPES, ids=lambda d: np.dtype(d).name)
def test_a_bias_and_relu_are_done_by_the_convolution(dtype, case, last, cuda, rng, calls):
    arrays, given = layer_arrays(case, dtype, rng, last)
    for relu in (True, False):
        f = functools.partial(layer, relu=relu, last=last, **given)
        (found,), asked, launched = traced(f, arrays, cuda, calls)
        near(found, f(*here(arrays)).numpy(), dtype)
        assert asked == ["conv_fprop + bias" + " + relu" * relu]
        assert launched == ["convolution + bias" + " + relu" * relu]


def test_what_lies_with_channels_last_is_read_and_written_so(cuda, rng, calls, monkeypatch):
    arrays, given = layer_arrays("groups", np.float32, rng, last=True)
    lib, copied = backend.cupy(), []
    real = lib.ascontiguousarray
    monkeypatch.setattr(
        lib, "ascontiguousarray", lambda a: copied.append(not a.flags.c_contiguous) or real(a)
    )
    traced(functools.partial(layer, last=True, **given), arrays, cuda, calls)
    assert not any(copied)


def layer_with_gradients(x, w, b, **given):
    with gg.GradientTape() as tape:
        tape.watch([x, w, b])
        loss = gg.sum(gg.astype(layer(x, w, b, **given), "float32") ** 2)
    return [loss, *tape.gradient(loss, [x, w, b])]


@needs_shim
@LAYOUTS
@pytest.mark.parametrize("dtype", [np.float32, np.float16], ids=["float32", "float16"])
def test_in_training_bias_and_relu_are_done_by_the_convolution(
    dtype, last, cuda, rng, calls, monkeypatch
):
    arrays, given = layer_arrays("rectangle", dtype, rng, last)
    f = functools.partial(layer_with_gradients, last=last, **given)
    found, asked, launched = traced(f, arrays, cuda, calls)
    for a, desired in zip(found, f(*here(arrays)), strict=True):
        near(a, desired.numpy(), dtype)
    assert sorted(asked) == ["conv_dgrad", "conv_fprop + bias + relu", "conv_wgrad"]
    assert launched[0] == "convolution + bias + relu"
    assert not any("relu" in name for name in launched[1:])
    monkeypatch.setattr(cudnn, "binding", lambda: None)
    *_, apart = traced(f, arrays, cuda, calls)
    assert apart[0] == "convolution"
    assert "add, relu" in apart[1]
    assert len(launched) == len(apart)  # what is left of the kernel squares and masks


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
        function(x, weights, biases)  # is traced
        return len(launches(next(iter(function._plans.values())).replay.program))

    joined = count(model), count(step)
    monkeypatch.setattr(cudnn, "binding", lambda: None)
    # without it the last layer's bias and relu are in the kernel of the loss
    assert (joined[0], joined[1] + 2) == (3, count(step))
    assert count(model) == 6


@needs_shim
@LAYOUTS
def test_where_cudnn_refuses_they_run_as_they_would_without_it(last, cuda, rng, calls, monkeypatch):
    real = fake_cudnn.pygraph.check_support

    def refuses(graph):
        if "bias" in graph.name:
            raise fake_cudnn.cudnnGraphNotSupportedError("no plan")
        real(graph)

    monkeypatch.setattr(fake_cudnn.pygraph, "check_support", refuses)
    (x, w, b), given = layer_arrays("dilated", np.float32, rng, last)
    arrays = [x, w, rng.normal(size=(3, *b.shape, 4, 5)).astype(np.float32)]

    def f(x, w, b):  # its sum is written as others, which changes what the step reads
        return layer(x, w, gg.sum(b, axis=(0, 2, 3)), last=last, **given)

    (found,), asked, launched = traced(f, arrays, cuda, calls)
    near(found, f(*here(arrays)).numpy(), np.float32)
    assert asked == ["conv_fprop"]
    assert launched[-1] == "convolution + bias + relu"


@needs_shim
def test_what_others_read_is_not_left_out(cuda, rng, calls):
    arrays, _ = layer_arrays("plain", np.float32, rng)

    def of_result(x, w, b):
        y = gg.convolution(x, w)
        return y, gg.relu(y + gg.reshape(b, (-1, 1, 1)))

    def of_sum(x, w, b):
        y = gg.convolution(x, w) + gg.reshape(b, (-1, 1, 1))
        return gg.relu(y), y

    for f, name in ((of_result, "conv_fprop"), (of_sum, "conv_fprop + bias")):
        found, asked, launched = traced(f, arrays, cuda, calls)
        for a, desired in zip(found, f(*here(arrays)), strict=True):
            near(a, desired.numpy(), np.float32)
        assert asked == [name]
        assert len(launched) == 2


@needs_shim
@pytest.mark.parametrize(
    ("shape", "dtype"),
    [((2, 4, 4, 3), np.float32), ((4, 4, 1), np.float32), ((3,), np.float32),
     ((4, 1, 1), np.float64)],
    ids=["as large", "of lines", "of columns", "wider"],
)  # fmt: skip
def test_what_is_added_otherwise_is_no_bias(shape, dtype, cuda, rng, calls):
    arrays, _ = layer_arrays("plain", np.float32, rng)
    arrays[2] = rng.normal(size=shape).astype(dtype)

    def f(x, w, b):
        return gg.relu(gg.convolution(x, w) + b)

    (found,), asked, launched = traced(f, arrays, cuda, calls)
    desired = f(*here(arrays)).numpy()
    near(found.astype(np.float32), desired.astype(np.float32), np.float32)
    assert asked == ["conv_fprop"]
    assert launched[0] == "convolution"


@needs_shim
@pytest.mark.parametrize(
    ("move", "joined"),
    [(lambda y: gg.permute_dims(y, (0, 2, 3, 1)), True),
     (lambda y: gg.permute_dims(y, (0, 3, 2, 1)), False),
     (lambda y: gg.swapaxes(y, 1, 3), False)],
    ids=["channels last", "places turned", "swapped"],
)  # fmt: skip
def test_channels_that_are_last_come_behind_places_in_order(move, joined, cuda, rng, calls):
    arrays, _ = layer_arrays("plain", np.float32, rng)

    def f(x, w, b):
        return gg.relu(move(gg.convolution(x, w)) + b)

    (found,), asked, _ = traced(f, arrays, cuda, calls)
    near(found, f(*here(arrays)).numpy(), np.float32)
    assert asked == ["conv_fprop + bias + relu" if joined else "conv_fprop"]


def test_a_bias_between_others_is_read_as_it_lies(cuda, rng, calls):
    (x, w, b), given = layer_arrays("plain", np.float32, rng)
    table = np.stack([b, 2 * b], 1)

    def f(x, w, table):
        return layer(x, w, table[:, 1], **given)

    (found,), asked, _ = traced(f, [x, w, table], cuda, calls)
    near(found, f(*here([x, w, table])).numpy(), np.float32)
    assert asked == ["conv_fprop + bias + relu"]


@needs_shim
def test_examples_that_are_none_are_ours(cuda, rng, calls):
    (x, w, b), _ = layer_arrays("plain", np.float32, rng)
    (found,), asked, _ = traced(layer, [x[:0], w, b], cuda, calls)
    assert found.shape == (0, 4, 4, 3)
    assert asked == []


def test_a_relu_that_cudnn_does_keeps_nan(cuda, rng, calls):
    (x, w, b), _ = layer_arrays("plain", np.float32, rng)
    b[1] = np.nan
    (found,), asked, _ = traced(layer, [x, w, b], cuda, calls)
    np.testing.assert_array_equal(np.isnan(found), np.isnan(layer(*here([x, w, b])).numpy()))
    assert np.isnan(found[:, 1]).all()
    assert asked == ["conv_fprop + bias + relu"]


@needs_shim
def test_a_graph_holds_what_cudnn_launches(cuda, rng, calls):
    function = gg.function(layer)
    for _ in range(3):
        arrays, _ = layer_arrays("plain", np.float32, rng)
        found = function(*(gg.constant(a, device=cuda) for a in arrays))
        near(found.numpy(), layer(*here(arrays)).numpy(), np.float32)
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
    "shared heads": ((2, 6, 3, 8), (2, 2, 4, 8), (2, 2, 4, 8), {"enable_gqa": True}),
    "one head": ((2, 1, 3, 8), (2, 1, 4, 8), (2, 1, 4, 8), {"is_causal": True}),
    "no heads": ((3, 8), (4, 8), (4, 8), {}),
    "several axes of examples": ((2, 3, 2, 4, 8), (2, 3, 2, 4, 8), (2, 3, 2, 4, 8), {}),
}


def attended(shapes, dtype, cuda, rng, **given):
    """Attention, its logarithms and its gradients, on the device and on the CPU."""
    arrays = [rng.normal(size=s).astype(dtype) for s in (*shapes, (*shapes[0][:-1], shapes[2][-1]))]

    def run(device):
        *given_to, weights = (gg.constant(a, device=device) for a in arrays)
        with gg.GradientTape() as tape:
            tape.watch(given_to)
            out, lse = gg.OPS["flash_attention"].eager(*given_to, **given)
            loss = gg.sum(weights * out)
        return [t.numpy() for t in (out, lse, *tape.gradient(loss, given_to))]

    return list(zip(run(cuda), run("cpu"), strict=True))


@pytest.mark.parametrize("case", ATTENTIONS)
@pytest.mark.parametrize("dtype", HALF, ids=lambda d: np.dtype(d).name)
def test_attention_and_its_gradients_are_cudnns(case, dtype, cuda, rng, calls):
    *shapes, given = ATTENTIONS[case]
    for found, desired in attended(shapes, dtype, cuda, rng, **given):
        near(found, desired, dtype)
    assert [c["name"] for c in calls] == ["sdpa", "sdpa_backward"]


@pytest.fixture
def attention(cuda, rng):
    """Three arguments on the device, their values, and a loss of float16 attention."""
    arrays = [rng.normal(size=(1, 2, n, 8)).astype(np.float16) for n in (3, 4, 4)]

    def loss(query, key, value):
        out = gg.nn.scaled_dot_product_attention(query, key, value)
        return gg.sum(gg.astype(out, "float32") ** 2)

    return [gg.constant(a, device=cuda) for a in arrays], arrays, loss


def taped(loss, arguments):
    with gg.GradientTape(persistent=True) as tape:
        tape.watch(arguments)
        y = loss(*arguments)
    return tape, y


def gradients_of(loss, arguments):
    arguments = [a if isinstance(a, gg.Tensor) else gg.constant(a, device="cpu") for a in arguments]
    tape, y = taped(loss, arguments)
    return [t.numpy() for t in tape.gradient(y, arguments)]


def test_gradients_that_are_asked_for_one_by_one_are_right(attention, calls):
    there, arrays, loss = attention
    tape, y = taped(loss, there)
    here = [gg.constant(a, device="cpu") for a in arrays]
    again, z = taped(loss, here)
    desired = again.gradient(z, here)
    for i in (1, 0, 2, 1):
        near(tape.gradient(y, there[i]).numpy(), desired[i].numpy(), np.float16)
    assert [c["name"] for c in calls] == ["sdpa"] + ["sdpa_backward"] * 4


def test_gradients_of_other_arrays_are_not_handed_out(attention, calls):
    there, arrays, _ = attention
    grad, made = gg.OPS["flash_attention_grad"], []
    for given in (there, [gg.constant(a, device="cpu") for a in arrays]):
        out, lse = gg.OPS["flash_attention"].eager(*given)
        one, two = out * 0 + 1, out * 0 + 2  # both are there
        for g, of in ((one, "query"), (two, "key"), (one, "value"), (one, "query")):
            made.append(grad.eager(g, *given, out, lse, of=of).numpy())
    for found, desired in zip(made[:4], made[4:], strict=True):
        near(found, desired, np.float16)


def test_gradients_that_nobody_asks_for_are_let_go(attention, calls):
    there, _, loss = attention
    tape, y = taped(loss, there)
    assert tape.gradient(y, there[0]) is not None
    assert [c["name"] for c in calls] == ["sdpa", "sdpa_backward"]
    assert cudnn._spare_grads.grads == {}


def test_a_gradient_by_the_logarithms_is_ours(attention, calls):
    there, arrays, _ = attention

    def loss(*arguments):
        out, lse = gg.OPS["flash_attention"].eager(*arguments)
        return gg.sum(gg.astype(out, "float32")) + gg.sum(lse * lse)

    for found, desired in zip(gradients_of(loss, there), gradients_of(loss, arrays), strict=True):
        near(found, desired, np.float16)
    assert [c["name"] for c in calls] == ["sdpa"]


def test_a_second_gradient_goes_through_the_logarithms(attention, calls):
    there, arrays, loss = attention

    def penalty(*arguments):
        tape, y = taped(loss, arguments)
        made = tape.gradient(y, arguments)
        return sum(gg.sum(gg.astype(g, "float32") ** 2) for g in made)

    for found, desired in zip(
        gradients_of(penalty, there), gradients_of(penalty, arrays), strict=True
    ):
        np.testing.assert_allclose(found, desired, 2e-2, 2e-2 * np.abs(desired).max())
    assert [c["name"] for c in calls] == ["sdpa"]  # the rest is the formula


def test_the_gradients_algorithm_is_deterministic_where_it_must(attention, calls):
    there, _, loss = attention
    gg.set_deterministic()
    try:
        gradients_of(loss, there)
    finally:
        gg.set_deterministic(False)
    assert {"deterministic algorithm", "NONDETERMINISTIC"} <= set(calls[-1]["notes"])


def test_heads_that_lie_side_by_side_are_read_as_they_lie(cuda, rng, calls, monkeypatch):
    x = rng.normal(size=(2, 5, 3 * 4 * 8)).astype(np.float16)

    def attend(device):
        qkv = gg.constant(x, device=device).reshape(2, 5, 3, 4, 8)
        query, key, value = (gg.transpose(qkv[:, :, i], (0, 2, 1, 3)) for i in range(3))
        return gg.nn.scaled_dot_product_attention(query, key, value, is_causal=True).numpy()

    real, copied = cudnn._layout, []
    monkeypatch.setattr(cudnn, "_layout", lambda a: copied.append(a.flags.c_contiguous) or real(a))
    near(attend(cuda), attend("cpu"), np.float16)
    assert copied == [False] * 3
    assert len(calls) == 1


@pytest.mark.parametrize(
    ("query", "key", "dtype", "mask"),
    [((2, 3, 8), (2, 3, 8), np.float32, None), ((2, 3, 6), (2, 3, 6), np.float16, None),
     ((2, 2, 3, 8), (1, 2, 3, 8), np.float16, None), ((2, 0, 8), (2, 3, 8), np.float16, None),
     ((2, 3, 8), (2, 3, 8), np.float16, np.eye(3, dtype=bool))],
    ids=["float32", "short lines", "broadcast", "no queries", "mask"],
)  # fmt: skip
def test_attention_that_cudnn_is_not_given(query, key, dtype, mask, cuda, rng, calls):
    arrays = [rng.normal(size=s).astype(dtype) for s in (query, key, key)]
    found, desired = both("flash_attention", [*arrays, mask], cuda)
    near(found[0], desired[0], dtype)
    assert calls == []


def test_attention_with_dropout_is_ours(attention, calls):
    there, arrays, _ = attention
    stream = np.array([1, 2, 3, 0], np.uint64)

    def loss(query, key, value):
        at = gg.constant(stream, device=query.device)
        out = gg.OPS["flash_attention"].eager(query, key, value, None, at, dropout_p=0.4)[0]
        return gg.sum(gg.astype(out, "float32") ** 2)

    for found, desired in zip(gradients_of(loss, there), gradients_of(loss, arrays), strict=True):
        near(found, desired, np.float16)
    assert calls == []


# ---- plans


def test_a_problem_is_planned_once_and_old_plans_are_dropped(cuda, calls, monkeypatch):
    monkeypatch.setattr(cudnn, "PLANS", 3)
    w = gg.ones((1, 1, 2, 2), device=cuda)
    for n in (4, 5, 4, 6, 7, 4):
        gg.convolution(gg.ones((1, 1, n, n), device=cuda), w)
    assert len(fake_cudnn.built) == 4
    assert len(cudnn._plans) == 3


def test_what_cudnn_has_no_plan_for_is_ours_and_asked_for_once(cuda, rng, calls, monkeypatch):
    asked = []

    def refuses(graph):
        asked.append(graph)
        raise fake_cudnn.cudnnGraphNotSupportedError("no plan")

    monkeypatch.setattr(fake_cudnn.pygraph, "check_support", refuses)
    arrays = [rng.normal(size=s) for s in ((1, 2, 4, 4), (2, 2, 2, 2))]
    for _ in range(2):
        (found,), (desired,) = both("convolution", arrays, cuda)
        near(found, desired, np.float64)
    assert len(asked) == 1
    assert calls == []


def test_arrays_that_begin_between_16_bytes_are_ours(cuda, rng, calls):
    x = rng.normal(size=(3, 1, 3, 3)).astype(np.float32)
    w = rng.normal(size=(1, 1, 2, 2)).astype(np.float32)

    def run(device):
        return gg.convolution(gg.constant(x, device=device)[1:], gg.constant(w, device=device))

    near(run(cuda).numpy(), run("cpu").numpy(), np.float32)
    assert calls == []


def test_a_graph_runs_on_the_current_stream(cuda, calls):
    x, w = gg.ones((1, 1, 4, 4), device=cuda), gg.ones((1, 1, 2, 2), device=cuda)
    with gg.cuda.stream(device=cuda) as s:
        gg.convolution(x, w)
    gg.convolution(x, w)
    assert [c["stream"] for c in calls] == [s.ptr, 0]


@pytest.mark.skipif(bool(shim.unavailable()), reason=shim.unavailable() or "g++ is here")
def test_a_traced_step_captures_cudnns_kernels(cuda, rng, calls):
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
        found = function(*(gg.constant(a, device=cuda) for a in arrays))
        desired = step(*(gg.constant(a, device="cpu") for a in arrays))
        for f, d in zip(found, desired, strict=True):
            near(f.numpy(), d.numpy(), f.dtype)
    names = [c["name"] for c in calls]
    assert names.count("sdpa_backward") == names.count("sdpa") == names.count("conv_wgrad")
    assert cudnn._captured


def test_plans_that_a_cuda_graph_launches_are_kept(cuda, rng, calls, monkeypatch):
    monkeypatch.setattr(cudnn, "PLANS", 1)
    lib, op = backend.cupy(), gg.OPS["convolution"]
    xp = backend.reading(lib.zeros(1))
    given = {"stride": 1, "padding": 0, "dilation": 1, "groups": 1}
    x, w = (rng.normal(size=s).astype(np.float32) for s in ((1, 2, 5, 5), (3, 2, 2, 2)))
    arrays = [lib.array(x), lib.array(w)]
    graph = CudaGraph(lambda: [op.cuda(xp, *arrays, **given)])
    for _ in range(2):  # as it is, then captured
        graph()
    assert len(cudnn._captured) == 1
    op.cuda(xp, lib.array(x), lib.array(w[:1]), **given)
    assert cudnn._captured.isdisjoint(cudnn._plans.values())  # no longer among these
    arrays[0][...] = lib.array(2 * x)
    (found,) = graph()
    near(found.get(), op.bare(NUMPY)(2 * x, w, **given), np.float32)


def test_without_cudnn_the_kernels_are_ours(cuda, rng, calls, monkeypatch):
    monkeypatch.setattr(cudnn, "binding", lambda: None)
    arrays = [rng.normal(size=s) for s in ((1, 2, 4, 4), (2, 2, 2, 2))]
    (found,), (desired,) = both("convolution", arrays, cuda)
    near(found, desired, np.float64)
    assert calls == []


# ---- the stand-in is true to cuDNN


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
            for x, w, given in CONVOLUTIONS.values():
                for _, op, arrays, keywords in convolutions(x, w, dtype, rng, **given):
                    both(op, arrays, cuda, **keywords)
            for case, relu, last in itertools.product(CONVOLUTIONS, *[(False, True)] * 2):
                arrays, given = layer_arrays(case, dtype, rng, last)
                f = functools.partial(layer, relu=relu, last=last, **given)
                traced(f, arrays, cuda, calls)
        for dtype in HALF:
            for *shapes, given in ATTENTIONS.values():
                attended(shapes, dtype, cuda, rng, **given)
    finally:
        gg.set_deterministic(False)
    asked = [(describe.__name__, problem, notes) for _, describe, problem, notes in cudnn._plans]
    n = len(DTYPES) * len(CONVOLUTIONS)
    followed = 4 * n  # with a bias, with relu; channels first, last
    traced_last = n - len(DTYPES)  # while tracing; of one channel last is first
    assert len(asked) == 3 * n + traced_last + followed + 2 * len(HALF) * len(ATTENTIONS)
    (tmp_path / "asked").write_bytes(pickle.dumps(asked))
    script = Path(__file__).with_name("cudnn_driver.py")
    command = [sys.executable, script, tmp_path, tmp_path / "asked"]
    run = subprocess.run(command, capture_output=True, text=True, check=True)
    said = json.loads(run.stdout.rpartition("RESULTS")[2])
    declined = [(a, why) for a, why in zip(asked, said, strict=True) if type(why) is str]
    assert declined == []
