"""Traced functions on a GPU, real or fake: kernels, and what can be captured as CUDA graphs."""

import numpy as np
import pytest

import gpugrad as gg
from gpugrad import backend
from gpugrad.backend import gpu_count
from gpugrad.kernels import cublaslt
from gpugrad.testing import shim

pytestmark = [
    pytest.mark.skipif(gpu_count() == 0, reason="needs a CUDA device, real or fake"),
    pytest.mark.skipif(bool(shim.unavailable()), reason=shim.unavailable() or "g++ is here"),
]


def softmax(x):
    e = gg.exp(x - gg.max(x, axis=-1, keepdims=True))
    return e / gg.sum(e, axis=-1, keepdims=True)


def value_and_gradient(x, g):
    with gg.GradientTape() as tape:
        tape.watch(x)
        y = softmax(x) * 2
    return y, tape.gradient(y, x, g)


def plan_of(function):
    return next(iter(function._plans.values()))


def test_a_function_on_a_gpu_is_one_graph_that_is_launched_again(rng):
    function = gg.function(value_and_gradient)
    kept = []
    for _ in range(4):
        x, g = rng.normal(size=(2, 5, 12)).astype(np.float32)
        desired = value_and_gradient(gg.constant(x, device="cpu"), gg.constant(g, device="cpu"))
        found = function(gg.constant(x, device="cuda:0"), gg.constant(g, device="cuda:0"))
        assert all(t.device == gg.device("cuda:0") for t in found)
        kept += [(f, d.numpy()) for f, d in zip(found, desired, strict=True)]
    for f, d in kept:  # also what earlier calls returned
        np.testing.assert_allclose(f.numpy(), d, 2e-5, 2e-6)
    launches = plan_of(function).replay
    assert [run.fixed for run in launches.runs] == [True]
    assert launches._graphs[0]
    assert function.cache_info().traces == 1


def training(device):
    with gg.device(device):
        gg.set_seed(0)
        model = gg.nn.Sequential(
            gg.nn.Dense(6, 8, activation=gg.relu), gg.nn.Dense(8, 4, activation=gg.tanh),
            gg.nn.Dense(4, 3),
        )  # fmt: skip
        model(gg.zeros((1, 6)))
        optimizer = gg.optim.Adam(0.05)

    def step(x, labels):
        with gg.GradientTape() as tape:
            loss = gg.mean(gg.sparse_softmax_cross_entropy(model(x), labels))
        variables = model.trainable_variables
        optimizer.apply_gradients(zip(tape.gradient(loss, variables), variables, strict=True))
        return loss

    return model, step


def test_training_on_a_gpu_goes_as_on_the_cpu(rng):
    (one, eager), (two, step) = training("cpu"), training("cuda:0")
    for a, b in zip(one.trainable_variables, two.trainable_variables, strict=True):
        b.assign(a.to_device("cuda:0"))
    traced = gg.function(step)
    x, labels = rng.normal(size=(7, 6)).astype(np.float32), rng.integers(0, 3, 7)
    snapshots = []
    for _ in range(4):
        desired = eager(gg.constant(x, device="cpu"), gg.constant(labels, device="cpu"))
        snapshots.append((two.trainable_variables[0].value(), two.trainable_variables[0].numpy()))
        found = traced(gg.constant(x, device="cuda:0"), gg.constant(labels, device="cuda:0"))
        np.testing.assert_allclose(found.numpy(), desired.numpy(), rtol=1e-5)
    for tensor, values in snapshots:
        np.testing.assert_array_equal(tensor.numpy(), values)
    for a, b in zip(one.trainable_variables, two.trainable_variables, strict=True):
        np.testing.assert_allclose(b.numpy(), a.numpy(), 1e-4, 1e-6)
    assert traced.cache_info().traces == 1
    launches = plan_of(traced).replay
    if cublaslt.binding() is not None:  # all but the optimizer, which Python calls
        assert [run.fixed for run in launches.runs] == [True, False]
        assert launches._graphs[0]


def test_products_do_what_follows_them(rng):
    binding = cublaslt.binding()
    if not hasattr(binding, "calls"):
        pytest.skip(reason="the real cuBLASLt does not tell what it was asked")
    _, step = training("cuda:0")
    traced = gg.function(step)
    x, labels = rng.normal(size=(7, 6)).astype(np.float32), rng.integers(0, 3, 7)
    binding.calls.clear()
    traced(gg.constant(x, device="cuda:0"), gg.constant(labels, device="cuda:0"))  # is traced
    traced(gg.constant(x, device="cuda:0"), gg.constant(labels, device="cuda:0"))
    used = {int(call["desc"].get(7, 1)) for call in binding.calls}
    known = cublaslt.EPILOGUES
    assert {known[n] for n in ("bias", "relu_aux_bias", "drelu_bgrad", "bgrad_b")} <= used


def test_variables_assigned_in_a_graph_are_snapshots_outside():
    v = gg.Variable([1.0, 2.0, 3.0], device="cuda:0")

    @gg.function
    def step(x):
        v.assign(gg.tanh(v) * 2 + x)
        return v * 3

    mirror, kept = np.array([1.0, 2.0, 3.0], np.float32), []
    for k in range(4):
        out = step(gg.full(3, float(k), device="cuda:0"))
        mirror = np.tanh(mirror) * 2 + k
        kept.append((v.value(), mirror))
        np.testing.assert_allclose(out.numpy(), mirror * 3, rtol=1e-5)
    for tensor, values in kept:
        np.testing.assert_allclose(tensor.numpy(), values, rtol=1e-5)


def test_what_cannot_be_captured_runs_between_graphs(rng):
    @gg.function
    def f(x):
        y = gg.tanh(x) * 2 + 1
        order = gg.sort(y)
        return gg.exp(order) * y

    for _ in range(3):
        x = rng.normal(size=9)
        found = f(gg.constant(x, device="cuda:0"))
        y = np.tanh(x) * 2 + 1
        np.testing.assert_allclose(found.numpy(), np.exp(np.sort(y)) * y)
    assert [run.fixed for run in plan_of(f).replay.runs] == [True, False, True]


def test_the_gradient_of_a_traced_function_on_a_gpu(rng):
    f = gg.function(lambda x: gg.sum(softmax(x) ** 2))
    x = rng.normal(size=(3, 8))
    desired = gg.grad(lambda x: gg.sum(softmax(x) ** 2))(gg.constant(x, device="cpu"))
    for _ in range(2):
        found = gg.grad(f)(gg.constant(x, device="cuda:0"))
        assert backend.device_of(found._data) == gg.device("cuda:0")
        np.testing.assert_allclose(found.numpy(), desired.numpy(), 1e-9, 1e-12)
