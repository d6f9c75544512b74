"""Traced functions on a GPU: kernels, products, CUDA graphs and their memory."""

import gc
import sys
import threading

import numpy as np
import pytest
from needs import needs_shim
from steps import training_step
from taping import taped

import gpugrad as gg
from gpugrad.core import backend, devices, nest
from gpugrad.core.devices import gpu_count
from gpugrad.function.gpu import replay
from gpugrad.function.gpu.variables import VariableMemory
from gpugrad.function.passes.in_place import overwriting
from gpugrad.kernels.libraries import cublaslt
from gpugrad.kernels.runtime.graphs import CudaGraph, Upload, _dead, allocate_like
from gpugrad.testing.cuda import driver

pytestmark = [
    pytest.mark.device,
    pytest.mark.skipif(gpu_count() == 0, reason="needs a CUDA device"),
    needs_shim,
]


def softmax(x):
    e = gg.exp(x - gg.max(x, axis=-1, keepdims=True))
    return e / gg.sum(e, axis=-1, keepdims=True)


def value_and_gradient(x, g):
    tape, y = taped(lambda x: softmax(x) * 2, x)
    return y, tape.gradient(y, x, g)


def plan_of(function):
    return next(iter(function._plans.values()))


def test_a_function_on_a_gpu_is_one_graph_launched_at_each_call(rng):
    function = gg.function(value_and_gradient)
    pairs = []
    for _ in range(4):
        x, g = rng.normal(size=(2, 5, 12)).astype(np.float32)
        desired = value_and_gradient(gg.constant(x, device="cpu"), gg.constant(g, device="cpu"))
        actual = function(gg.constant(x, device="cuda:0"), gg.constant(g, device="cuda:0"))
        assert all(t.device == gg.device("cuda:0") for t in actual)
        pairs += [(f, d.numpy()) for f, d in zip(actual, desired, strict=True)]
    for f, d in pairs:  # compared last: later calls must not change earlier results
        np.testing.assert_allclose(f.numpy(), d, 2e-5, 2e-6)
    launches = plan_of(function).replay
    assert [run.fixed for run in launches.runs] == [True]
    assert launches._captured.graphs[0]
    assert function.cache_info().traces == 1


def training(device):
    with gg.device(device):
        gg.set_seed(0)
        model = gg.nn.Sequential(
            gg.nn.Dense(6, 8, activation=gg.relu), gg.nn.Dense(8, 4, activation=gg.tanh),
            gg.nn.Dense(4, 3),
        )  # fmt: skip
        model(gg.zeros((1, 6)))
        return model, training_step(model, gg.optim.Adam(0.05))


@pytest.mark.parametrize("examples", [(7,), (2, 5)], ids=str)
def test_training_on_a_gpu_equals_the_cpu(examples, rng):
    (one, eager), (two, step) = training("cpu"), training("cuda:0")
    for a, b in zip(one.trainable_variables, two.trainable_variables, strict=True):
        b.assign(a.to_device("cuda:0"))
    traced = gg.function(step)
    x, labels = rng.normal(size=(*examples, 6)).astype(np.float32), rng.integers(0, 3, examples)
    snapshots = []
    for _ in range(4):
        desired = eager(gg.constant(x, device="cpu"), gg.constant(labels, device="cpu"))
        snapshots.append((two.trainable_variables[0].value(), two.trainable_variables[0].numpy()))
        actual = traced(gg.constant(x, device="cuda:0"), gg.constant(labels, device="cuda:0"))
        np.testing.assert_allclose(actual.numpy(), desired.numpy(), rtol=1e-5)
    for tensor, values in snapshots:
        np.testing.assert_array_equal(tensor.numpy(), values)
    for a, b in zip(one.trainable_variables, two.trainable_variables, strict=True):
        np.testing.assert_allclose(b.numpy(), a.numpy(), 1e-4, 1e-6)
    assert traced.cache_info().traces == 1
    launches = plan_of(traced).replay
    if cublaslt.binding() is not None:  # including the optimizer
        assert [run.fixed for run in launches.runs] == [True]
        assert launches._captured.graphs[0]


@pytest.mark.parametrize("examples", [(7,), (2, 5)], ids=str)
def test_products_use_epilogues_for_the_steps_that_follow(examples, rng):
    binding = cublaslt.binding()
    if not hasattr(binding, "calls"):
        pytest.skip(reason="the real cuBLASLt does not record its calls")
    _, step = training("cuda:0")
    traced = gg.function(step)
    x, labels = rng.normal(size=(*examples, 6)).astype(np.float32), rng.integers(0, 3, examples)
    binding.calls.clear()
    traced(gg.constant(x, device="cuda:0"), gg.constant(labels, device="cuda:0"))  # is traced
    traced(gg.constant(x, device="cuda:0"), gg.constant(labels, device="cuda:0"))
    used = {int(call["desc"].get(7, 1)) for call in binding.calls}
    known = cublaslt.EPILOGUES
    assert {known[n] for n in ("bias", "relu_aux_bias", "drelu_bgrad", "bgrad_b")} <= used


@pytest.mark.parametrize(
    ("layer", "shapes"),
    [
        (lambda x, w, table: gg.relu(x @ w + table[:, 1]), ((3, 4), (4, 5), (5, 2))),
        (lambda x, w, h, u: gg.relu(x @ w + h @ u), ((1, 4), (4, 5), (1, 5), (5, 5))),
    ],
    ids=["strided bias", "sum of two products of one row"],
)
def test_a_relu_of_a_product_and_a_sum_is_right_on_a_device(layer, shapes, rng):
    traced = gg.function(layer)
    arrays = [rng.normal(size=s).astype(np.float32) for s in shapes]
    for _ in range(2):
        actual = traced(*(gg.constant(a, device="cuda:0") for a in arrays))
        desired = layer(*(gg.constant(a, device="cpu") for a in arrays))
        np.testing.assert_allclose(actual.numpy(), desired.numpy(), 1e-5, 1e-6)


def test_a_relu_gradient_does_not_also_sum_the_factor(rng):
    """cuBLASLt writes the sum of the result to the same place."""

    def step(x, w, bias, v, g):
        tape, y = taped(lambda w: gg.relu(x @ w + bias) @ v, w)
        return tape.gradient(y, w, g), gg.sum(gg.matrix_transpose(v), axis=0)

    traced, shapes = gg.function(step), [(8, 6), (6, 4), (4,), (4, 5), (8, 5)]
    arrays = [rng.normal(size=s).astype(np.float32) for s in shapes]
    for _ in range(2):
        actual = traced(*(gg.constant(a, device="cuda:0") for a in arrays))
        desired = step(*(gg.constant(a, device="cpu") for a in arrays))
        for f, d in zip(actual, desired, strict=True):
            np.testing.assert_allclose(f.numpy(), d.numpy(), 1e-5, 1e-5)


def test_a_16_bit_einsum_is_a_16_bit_product(rng):
    binding = cublaslt.binding()
    if not hasattr(binding, "calls"):
        pytest.skip(reason="the real cuBLASLt does not record its calls")
    x, y = (gg.astype(gg.constant(rng.normal(size=s), device="cuda:0"), "bfloat16")
            for s in ((2, 3, 4), (4, 5)))  # fmt: skip
    binding.calls.clear()
    actual = gg.einsum("bij,jk->bik", x, y)
    (call,) = binding.calls
    assert call["dtypes"] == {gg.bfloat16}
    desired = np.einsum("bij,jk->bik", *(a.numpy().astype(float) for a in (x, y)))
    np.testing.assert_allclose(actual.numpy().astype(float), desired, 2e-2, 2e-2)


@pytest.mark.parametrize("dtype", ["float16", "bfloat16"])
def test_16_bit_products_include_gelu_and_its_gradient(dtype, rng):
    binding = cublaslt.binding()
    if not hasattr(binding, "calls"):
        pytest.skip(reason="the real cuBLASLt does not record its calls")

    def f(x, w, b, v):
        tape, y = taped(lambda x, w, b, v: gg.gelu(x @ w + b, approximate="tanh") @ v, x, w, b, v)
        return y, tape.gradient(y, [x, w, b, v])

    arrays = [rng.normal(size=s).astype(np.float32) for s in ((2, 5, 6), (6, 16), (16,), (16, 8))]
    args = [gg.astype(gg.constant(a, device="cuda:0"), dtype) for a in arrays]
    desired = f(*(gg.astype(g.to_device("cpu"), dtype) for g in args))
    traced = gg.function(f)
    traced(*args)
    binding.calls.clear()
    actual = traced(*args)
    used = {int(call["desc"].get(7, 1)) for call in binding.calls}
    assert {cublaslt.EPILOGUES[n] for n in ("gelu_aux_bias", "dgelu_bgrad")} <= used
    assert "gelu" not in " ".join(s.name for s in plan_of(traced).replay.program.steps if s.op)
    for a, d in zip(nest.flatten(actual), nest.flatten(desired), strict=True):
        assert a.dtype == d.dtype
        d = d.numpy().astype(float)
        np.testing.assert_allclose(a.numpy().astype(float), d, 5e-2, 2e-2 * np.abs(d).max())


@pytest.mark.parametrize("dtype", ["float32", "bfloat16"])
def test_gradients_of_a_reused_weight_are_added_by_their_products(dtype, rng):
    def step(x, w):
        with gg.GradientTape() as tape:
            tape.watch(w)
            y = x
            for _ in range(3):
                y = gg.tanh(y @ w)
        return tape.gradient(y, w)

    arrays = [rng.normal(size=s).astype(np.float32) for s in ((2, 5, 8), (8, 8))]
    args = [gg.astype(gg.constant(a, device="cuda:0"), dtype) for a in arrays]
    traced, desired = gg.function(step), step(*(g.to_device("cpu") for g in args))
    tolerance = {"float32": 1e-5, "bfloat16": 4e-2}[dtype]
    for _ in range(2):
        actual, right = (t.numpy().astype(float) for t in (traced(*args), desired))
        np.testing.assert_allclose(actual, right, tolerance, tolerance * np.abs(right).max())
    names = [s.name for s in plan_of(traced).replay.program.steps]
    assert names.count("matmul + add") == 2
    assert "add" not in names


def test_snapshots_of_a_variable_assigned_in_a_graph_do_not_change():
    v = gg.Variable([1.0, 2.0, 3.0], device="cuda:0")

    @gg.function
    def step(x):
        v.assign(gg.tanh(v) * 2 + x)
        return v * 3

    mirror, snapshots = np.array([1.0, 2.0, 3.0], np.float32), []
    for k in range(4):
        out = step(gg.full(3, float(k), device="cuda:0"))
        mirror = np.tanh(mirror) * 2 + k
        snapshots.append((v.value(), mirror))
        np.testing.assert_allclose(out.numpy(), mirror * 3, rtol=1e-5)
    for tensor, values in snapshots:
        np.testing.assert_allclose(tensor.numpy(), values, rtol=1e-5)


def test_steps_that_cannot_be_captured_run_between_graphs(rng):
    @gg.function
    def f(x):
        y = gg.tanh(x) * 2 + 1
        waves = gg.real(gg.fft.fft(y))
        return gg.tanh(waves) * y

    for _ in range(3):
        x = rng.normal(size=9)
        actual = f(gg.constant(x, device="cuda:0"))
        y = np.tanh(x) * 2 + 1
        np.testing.assert_allclose(actual.numpy(), np.tanh(np.fft.fft(y).real) * y)
    assert [run.fixed for run in plan_of(f).replay.runs] == [True, False, True]


def test_a_run_frees_arrays_that_no_later_step_reads(rng):
    def chain(x):
        for _ in range(12):
            x = gg.cumulative_sum(x, axis=0)
        return x

    function, x = gg.function(chain), gg.constant(rng.normal(size=(64, 64)), device="cuda:0")
    function(x)
    (run,) = plan_of(function).replay.runs
    gg.cuda.reset_peak()
    before = gg.cuda.memory_stats().in_use
    (result,) = run([x._data])
    assert gg.cuda.memory_stats().peak - before <= 4 * result.nbytes
    np.testing.assert_array_equal(result.get(), chain(x).numpy())


def test_a_cross_entropy_gradient_overwrites_scores_that_nothing_else_reads(rng):
    def step(x, w, labels, then):
        with gg.GradientTape() as tape:
            tape.watch([x, w])
            scores = x @ w
            loss = gg.nn.cross_entropy(gg.reshape(scores, (-1, 5)), gg.reshape(labels, -1))
        return loss, tape.gradient(loss, [x, w]), then(scores)

    arrays = [rng.normal(size=s).astype(np.float32) for s in ((2, 3, 8), (8, 5))]
    arrays.append(rng.integers(0, 5, (2, 3)))
    for then, expected in (
        (lambda scores: None, True), (lambda scores: scores, False),
        (lambda scores: gg.argmax(scores, axis=-1), False),
        (lambda scores: gg.reshape(scores, -1), False),
    ):  # fmt: skip
        function = gg.function(step)
        on_gpu, on_cpu = ([gg.constant(a, device=d) for a in arrays] for d in ("cuda:0", "cpu"))
        desired = nest.flatten(step(*on_cpu, then))
        for _ in range(3):
            for a, d in zip(nest.flatten(function(*on_gpu, then)), desired, strict=True):
                if d is not None:
                    np.testing.assert_allclose(a.numpy(), d.numpy(), 1e-5, 1e-6)
        program = plan_of(function).replay.program
        assert bool(overwriting(program)) == expected


def test_the_gradient_of_a_traced_function_on_a_gpu_equals_the_cpu(rng):
    f = gg.function(lambda x: gg.sum(softmax(x) ** 2))
    x = rng.normal(size=(3, 8))
    desired = gg.grad(lambda x: gg.sum(softmax(x) ** 2))(gg.constant(x, device="cpu"))
    for _ in range(2):
        actual = gg.grad(f)(gg.constant(x, device="cuda:0"))
        assert devices.device_of(actual._data) == gg.device("cuda:0")
        np.testing.assert_allclose(actual.numpy(), desired.numpy(), 1e-9, 1e-12)


# ---- Variables, optimizers and random numbers in graphs


def regression(device, optimizer, dropped=0.0):
    """A Variable and a step without a matrix product, so that all of it is captured."""
    w = gg.Variable(np.linspace(-1, 1, 6).astype(np.float32), device=device)

    def step(x):
        with gg.GradientTape() as tape:
            y = gg.tanh(w * x)
            if dropped:
                y = gg.where(gg.random.uniform(6, device=device) < dropped, 0, y)
                y = y + 0.1 * gg.random.normal(6, device=device)
            loss = gg.sum((y - 0.5) ** 2)
        optimizer.apply_gradients([(tape.gradient(loss, w), w)])
        return loss

    return w, step


def trained_on_both(make, rng, between=lambda k, w, optimizer: None, steps=5, dropped=0.0):
    """Train eagerly on the CPU and with graphs, from one seed; return the traced function."""
    on_cpu, on_gpu = make(), make()
    (v, eager), (w, step) = (
        regression("cpu", on_cpu, dropped),
        regression("cuda:0", on_gpu, dropped),
    )
    traced, batches = gg.function(step), rng.normal(size=(steps, 6)).astype(np.float32)
    gg.set_seed(3)
    desired = []
    for k, x in enumerate(batches):
        between(k, v, on_cpu)
        desired.append(eager(gg.constant(x, device="cpu")).item())
    gg.set_seed(3)
    for k, x in enumerate(batches):
        between(k, w, on_gpu)
        actual = traced(gg.constant(x, device="cuda:0")).item()
        np.testing.assert_allclose(actual, desired[k], 1e-5)
    np.testing.assert_allclose(w.numpy(), v.numpy(), 1e-5, 1e-6)
    assert on_gpu.iterations == on_cpu.iterations == steps
    return traced


OPTIMIZERS = {
    "sgd": lambda: gg.optim.SGD(0.1),
    "momentum": lambda: gg.optim.SGD(0.1, momentum=0.9),
    "adam": lambda: gg.optim.Adam(lambda k: 0.1 / (k + 1)),
    "adamw": lambda: gg.optim.AdamW(0.1, weight_decay=0.1),
}


@pytest.mark.parametrize("name", OPTIMIZERS)
def test_a_step_with_its_optimizer_is_one_graph(name, rng):
    launches = plan_of(trained_on_both(OPTIMIZERS[name], rng)).replay
    assert [run.fixed for run in launches.runs] == [True]
    assert launches._captured.graphs[0]._graph is not None


def test_a_learning_rate_set_between_steps_reaches_the_graph(rng):
    def between(k, w, optimizer):
        optimizer.learning_rate = 0.1 * (k + 1)

    launches = plan_of(trained_on_both(OPTIMIZERS["momentum"], rng, between)).replay
    assert launches._captured.graphs[0]._graph is not None


def test_random_numbers_in_a_graph_equal_eager(rng):
    launches = plan_of(trained_on_both(OPTIMIZERS["adam"], rng, dropped=0.3)).replay
    assert [run.fixed for run in launches.runs] == [True]
    assert launches._captured.graphs[0]._graph is not None


def test_random_numbers_in_and_between_graphs_keep_their_order():
    def f(generator, x):
        first = generator.normal((3,), device="cuda:0") * x
        order = generator.permutation(5, device="cuda:0")  # on the host
        return first, order, gg.tanh(generator.uniform((2, 2), device="cuda:0"))

    eager, own = gg.random.Generator(7), gg.random.Generator(7)
    traced = gg.function(lambda x: f(own, x))
    for k in range(5):
        x = gg.constant(float(k), device="cuda:0")
        for a, b in zip(traced(x), f(eager, x), strict=True):
            np.testing.assert_allclose(a.numpy(), b.numpy(), 1e-6)
    runs = plan_of(traced).replay.runs
    assert [run.fixed for run in runs] == [True, False, True]


def test_a_call_that_falls_back_to_python_updates_and_draws_once():
    def training(wrapped):
        w = gg.Variable(np.ones(3, np.float32), device="cuda:0")
        optimizer, generator = gg.optim.Adam(0.1), gg.random.Generator(1)

        def step(x):
            positive = x[x > 0]
            noise = generator.normal((3,), device="cuda:0")
            return optimizer.minimize(lambda: gg.sum(w * noise) * gg.sum(positive), [w])

        step = wrapped(step)
        losses = [step(gg.constant(x, device="cuda:0")).item() for x in data]
        return losses, w.numpy(), optimizer.iterations, generator.state

    data = np.array([[1, 2, -1], [2, 3, -3], [5, 2, -3], [1, 1, 1], [-1, 2, -1], [3, 2, -1]], "f")
    *actual, state = training(gg.function)
    *desired, same = training(lambda f: f)
    for a, b in zip(actual, desired, strict=True):
        np.testing.assert_allclose(a, b, 1e-5)
    assert state == same


class _Closed:
    """A stream that raises BrokenPipeError once it is closed."""

    def __init__(self):
        self.closed = False

    def write(self, text):
        if self.closed:
            raise BrokenPipeError

    def flush(self):
        pass


@pytest.mark.parametrize("hold", [False, True])
def test_a_failure_keeps_the_optimizer_update_before_it_and_skips_the_one_after(hold, monkeypatch):
    stream = _Closed()
    monkeypatch.setattr(sys, "stdout", stream)
    v, w = (gg.Variable(np.ones(3, np.float32), device="cuda:0") for _ in range(2))
    first, second = gg.optim.Adam(0.1), gg.optim.Adam(0.1)
    generator = gg.random.Generator(3)

    @gg.function
    def step(x):
        first.apply_gradients([(x + generator.normal((3,), device="cuda:0") * 0, v)])
        gg.debug.print("{}", v)
        second.apply_gradients([(x * generator.normal((3,), device="cuda:0"), w)])

    x = gg.constant(np.ones(3, np.float32), device="cuda:0")
    held = []
    for _ in range(4):
        step(x)
        held += [v.value(), w.value()] if hold else []
    before = v.numpy(), w.numpy(), generator.state["counter"]
    stream.closed = True
    with pytest.raises(BrokenPipeError):
        step(x)
    assert (first.iterations, second.iterations) == (5, 4)
    np.testing.assert_allclose(v.numpy(), before[0] - 0.1, 1e-4)
    np.testing.assert_array_equal(w.numpy(), before[1])
    assert generator.state["counter"] == before[2] + 1
    stream.closed = False
    step(x)
    assert (first.iterations, second.iterations) == (6, 5)
    np.testing.assert_allclose(v.numpy(), before[0] - 0.2, 1e-4)


@pytest.mark.parametrize("hold", [False, True])
def test_a_replay_that_runs_out_of_memory_changes_nothing(hold, failing, rng):
    w, count = (gg.Variable(a, device="cuda:0") for a in (np.ones((5, 3), "f"), np.zeros((), "f")))
    optimizer, generator = gg.optim.Adam(0.1), gg.random.Generator(5)
    x = gg.constant(rng.normal(size=(4, 5)), "float32", device="cuda:0")

    @gg.function
    def step(x):
        with gg.GradientTape() as tape:
            y = gg.tanh(x @ w) + generator.normal((4, 3), device="cuda:0")
            loss = gg.mean(y * y)
        optimizer.apply_gradients([(tape.gradient(loss, w), w)])
        count.assign_add(1)
        return loss, y

    def state():
        return [*w.numpy().ravel(), count.item(), optimizer.iterations, generator.state["counter"]]

    held = []
    for _ in range(4):
        step(x)
        held += [w.value()] * hold
    failures = 0
    while failing.done:
        failures += 1
        before = state()
        failing.after(failures)
        try:
            step(x)
        except gg.OutOfMemoryError:
            assert state() == before
        held += [w.value()] * hold
    failing.after(0)
    assert failures > 3
    before = state()
    step(x)
    assert [b - a for a, b in zip(before, state(), strict=True)][-3:-1] == [1, 1]


def test_a_failed_launch_advances_no_optimizer_and_no_generator(monkeypatch):
    w, optimizer = gg.Variable(np.ones(3, np.float32), device="cuda:0"), gg.optim.Adam(0.1)
    generator = gg.random.Generator(5)

    @gg.function
    def step(x):
        optimizer.apply_gradients([(x * generator.normal((3,), device="cuda:0"), w)])

    x, original = gg.constant(np.ones(3, np.float32), device="cuda:0"), CudaGraph.__call__
    step(x)
    before = w.numpy(), generator.state
    monkeypatch.setattr(CudaGraph, "__call__", lambda self: (_ for _ in ()).throw(MemoryError()))
    with pytest.raises(MemoryError):
        step(x)
    np.testing.assert_array_equal(w.numpy(), before[0])
    assert (optimizer.iterations, generator.state) == (1, before[1])
    monkeypatch.setattr(CudaGraph, "__call__", original)
    step(x)
    assert optimizer.iterations == 2


def test_optimizer_state_that_was_loaded_or_updated_eagerly_is_used(rng):
    states = []

    def between(k, w, optimizer):
        if k == 2:
            states.append(optimizer.state_dict())
        if k == 3:  # an eager step
            optimizer.apply_gradients([(gg.ones_like(w), w)])
            optimizer.iterations -= 1
        if k == 4:
            optimizer.load_state_dict(states[-1])
            optimizer.iterations = 4

    trained_on_both(OPTIMIZERS["adam"], rng, between)


def test_a_replay_is_one_upload_and_one_graph_launch(rng):
    if not driver.is_active():
        pytest.skip(reason="a GPU does not log its work")
    w, step = regression("cuda:0", gg.optim.Adam(0.1), dropped=0.3)
    traced = gg.function(step)
    x, *rest = gg.constant(rng.normal(size=(4, 6)).astype(np.float32), device="cuda:0")
    for _ in range(3):
        traced(x)
    with driver.logged() as work:
        for x in rest:
            traced(x)
    launches = [w.name for w in work if w.way == "run" and w.kind in ("kernel", "graph")]
    assert launches == ["put", "launch"] * 3  # "put" uploads the inputs and the loss's address
    assert w.device == "cuda:0"


def test_a_graph_updates_a_variable_in_place_until_something_else_holds_its_array(rng):
    w, step = regression("cuda:0", gg.optim.SGD(0.1))
    traced = gg.function(step)
    x = gg.constant(rng.normal(size=6).astype(np.float32), device="cuda:0")
    for _ in range(3):
        traced(x)
    address, graph = w._data.data.ptr, plan_of(traced).replay._captured.graphs[0]
    traced(x)
    assert w._data.data.ptr == address
    assert plan_of(traced).replay._captured.graphs[0] is graph
    average = gg.Variable(w)  # holds the array
    held, copies = w.value(), w.numpy()
    graphs = set()
    for _ in range(4):
        traced(x)
        graphs.add(id(plan_of(traced).replay._captured.graphs[0]))
        snapshot = w.value(), w.numpy()
        traced(x)
        np.testing.assert_array_equal(snapshot[0].numpy(), snapshot[1])
    np.testing.assert_array_equal(held.numpy(), copies)
    np.testing.assert_array_equal(average.numpy(), copies)
    assert len(graphs) == 1  # captured again only once


def test_a_replay_is_settled_until_something_else_sees_or_moves_its_variables(rng):
    w, step = regression("cuda:0", gg.optim.Adam(0.1))
    v, same = regression("cpu", gg.optim.Adam(0.1))
    traced, look = gg.function(step), gg.function(lambda x: gg.sum(gg.exp(w * x)))
    batches = rng.normal(size=(30, 6)).astype(np.float32)
    settled, held = [], []

    def between(k):
        if k == 5:
            held.append(w.value())
        if k == 12:
            for variable in (v, w):
                variable.assign(gg.ones_like(variable))
        if k > 22:
            look(gg.ones(6, device="cuda:0"))

    for k, x in enumerate(batches):
        loss = traced(gg.constant(x, device="cuda:0"))
        np.testing.assert_allclose(loss.numpy(), same(gg.constant(x)).numpy(), 1e-4, 1e-5)
        np.testing.assert_allclose(w.numpy(), v.numpy(), 1e-4, 1e-5)
        settled.append(plan_of(traced).replay._steady is not None)
        between(k)
    assert settled[:6] == [False, True, True, True, True, True]
    assert not any(settled[6:])  # `w.value()` made it move; w's array is copied from then on
    np.testing.assert_allclose(
        look(gg.ones(6, device="cuda:0")).numpy(), np.exp(w.numpy()).sum(), 1e-5
    )


def test_a_settled_replay_reads_new_arguments_settings_and_states(rng):
    rates = {"cpu": 0.1, "cuda:0": 0.1}
    results = {}
    for device in rates:
        w, step = regression(device, gg.optim.SGD(lambda k: 0.1 if k < 4 else 0.01, momentum=0.5))
        traced, other = gg.function(step), gg.function(step)
        values = []
        for k, x in enumerate(np.random.default_rng(0).normal(size=(12, 6)).astype(np.float32)):
            x = gg.constant(x, device=device)
            values += [(other if k in (6, 9) else traced)(x).numpy(), w.numpy()]
        results[device] = values
    for a, b in zip(*results.values(), strict=True):
        np.testing.assert_allclose(a, b, 1e-5)


@pytest.mark.parametrize("view", ["reshaped", "transposed"])
def test_a_variable_whose_first_array_is_a_view_is_copied_once(view, rng):
    """Initial weights are often reshaped random numbers."""
    x = gg.constant(rng.normal(size=(2, 3)).astype(np.float32), device="cuda:0")
    flat = gg.constant(rng.normal(size=6).astype(np.float32), device="cuda:0")
    first = flat.numpy()
    with gg.device("cuda:0"):
        start = gg.reshape(flat, (2, 3))
        v = gg.Variable(
            start if view == "reshaped" else gg.matrix_transpose(gg.reshape(flat, (3, 2)))
        )
    assert v._data.base is not None
    optimizer = gg.optim.SGD(0.5)
    step = gg.function(lambda x: optimizer.apply_gradients([(x * 2, v)]))
    desired = v.numpy()
    for k in range(4):
        step(x)
        desired = desired - x.numpy()
        np.testing.assert_allclose(v.numpy(), desired, 1e-5)
        (memory,) = plan_of(step).replay._memories.values()
        assert k < 1 or v._data is memory.own
    np.testing.assert_array_equal(flat.numpy(), first)
    np.testing.assert_array_equal(start.numpy(), first.reshape(2, 3))
    held, values = v.value(), v.numpy()
    step(x)
    np.testing.assert_array_equal(held.numpy(), values)


def test_memory_of_a_variable_is_written_after_graphs_that_read_it(monkeypatch):
    """They may still run on another stream."""
    calls, load = [], VariableMemory.load
    monkeypatch.setattr(replay, "order_after_graphs", lambda: calls.append("order"))
    monkeypatch.setattr(VariableMemory, "load", lambda m: calls.append("load") or load(m))
    with gg.device("cuda:0"):
        v = gg.Variable(np.ones(8, np.float32))
        f = gg.function(lambda: v.assign(v * 2.0))
        for _ in range(4):
            f()
            v.assign(np.ones(8, np.float32))
    assert calls[-2:] == ["order", "load"]
    assert "load, load" not in ", ".join(calls)


def test_functions_share_the_memory_of_a_variable(rng):
    w, step = regression("cuda:0", gg.optim.Adam(0.1))
    train, look = gg.function(step), gg.function(lambda x: gg.sum(gg.exp(w * x)))
    x = gg.constant(rng.normal(size=6).astype(np.float32), device="cuda:0")
    for k in range(4):
        train(x)
        np.testing.assert_allclose(look(x).numpy(), np.exp(w.numpy() * x.numpy()).sum(), 1e-5)
        if k == 2:
            w.assign(gg.zeros_like(w))
            np.testing.assert_allclose(look(x).numpy(), 6)
    memories = [*plan_of(train).replay._memories.values(), *plan_of(look).replay._memories.values()]
    assert memories[0] is memories[1]


def test_values_read_before_an_update_keep_the_old_value(rng):
    w = gg.Variable(np.ones(4, np.float32), device="cuda:0")
    optimizer = gg.optim.SGD(0.5)

    @gg.function
    def step(x):
        before = w * 1 + 0
        old = w.value()
        optimizer.apply_gradients([(x, w)])
        return old, before + w, w.value()

    for k in range(4):
        old, total, now = step(gg.ones(4, device="cuda:0"))
        np.testing.assert_allclose(old.numpy(), 1 - 0.5 * k)
        np.testing.assert_allclose(now.numpy(), 0.5 - 0.5 * k)
        np.testing.assert_allclose(total.numpy(), 1.5 - k)
        np.testing.assert_allclose(w.numpy(), 0.5 - 0.5 * k)


def test_a_variable_argument_of_another_shape_is_traced_again():
    w = gg.Variable(np.ones(4, np.float32), device="cuda:0", shape=(None,))
    f = gg.function(lambda x, w: gg.sum(gg.tanh(w)) * x)
    x = gg.constant(2.0, device="cuda:0")
    for shape in (4, 4, 4, 5, 5, 5, 4, 4, 5):
        w.assign(gg.ones(shape, device="cuda:0"))
        np.testing.assert_allclose(f(x, w).numpy(), 2 * shape * np.tanh(1), 1e-6)
    assert f.cache_info() == (7, 2, 0)


def test_several_steps_are_one_graph(rng):
    batches, results = rng.normal(size=(4, 3, 6)).astype(np.float32), []
    for device in ("cpu", "cuda:0"):
        w, step = regression(device, gg.optim.Adam(lambda k: 0.1 / (k + 1)), dropped=0.3)
        gg.set_seed(3)
        if device == "cpu":
            losses = [[step(gg.constant(x, device=device)).item() for x in b] for b in batches]
        else:
            many = gg.function(step, steps_per_call=3)
            losses = [many(gg.constant(b, device=device)).numpy() for b in batches]
        results.append((np.array(losses), w.numpy()))
    for desired, actual in zip(*results, strict=True):
        np.testing.assert_allclose(actual, desired, 1e-5, 1e-6)
    launches = plan_of(many).replay
    assert launches.repeats
    assert [*launches._captured.graphs] == [0]
    assert launches._captured.graphs[0]._graph is not None
    assert many.cache_info() == (11, 1, 0)


def test_assigned_values_carry_over_between_the_steps_of_a_graph():
    v = gg.Variable([1.0, 2.0], device="cuda:0")

    @gg.function(steps_per_call=3)
    def step(x):
        v.assign(gg.tanh(v) * 2 + x)
        return v * 3

    mirror = np.array([1.0, 2.0], np.float32)
    for k in range(4):
        x = np.arange(6.0, dtype=np.float32).reshape(3, 2) + k
        desired = []
        for part in x:
            mirror = np.tanh(mirror) * 2 + part
            desired.append(mirror * 3)
        np.testing.assert_allclose(step(gg.constant(x, device="cuda:0")).numpy(), desired, 1e-5)
        np.testing.assert_allclose(v.numpy(), mirror, 1e-5)
    assert plan_of(step).replay.repeats


def test_an_assignment_after_an_update_holds_for_the_next_step():
    def training(device, wrapped):
        with gg.device(device):
            v, optimizer = gg.Variable([1.0, 2.0]), gg.optim.SGD(0.5)

            def step(x):
                optimizer.apply_gradients([(v * x, v)])
                v.assign(gg.clip(v, 0.3, 1.0))
                return v.value()

            call = wrapped(step)
            return [call(gg.constant([0.5, 0.25])).numpy() for _ in range(4)]

    def each(step):
        return lambda xs: gg.stack([step(x) for x in xs])

    actual = training("cuda:0", lambda f: gg.function(f, steps_per_call=2))
    np.testing.assert_allclose(actual, training("cpu", each), 1e-6)


def test_each_step_returns_the_value_before_the_next_update():
    w, optimizer = gg.Variable([4.0], device="cuda:0"), gg.optim.SGD(1.0)

    @gg.function(steps_per_call=2)
    def step(x):
        optimizer.apply_gradients([(x, w)])
        return w.value()

    for k in range(3):
        actual = step(gg.ones((2, 1), device="cuda:0"))
        np.testing.assert_array_equal(actual.numpy(), [[3.0 - 2 * k], [2.0 - 2 * k]])


@pytest.mark.parametrize("length", [1, 1000])
def test_upload_takes_more_numbers_and_arrays_than_one_launch(length):
    numbers = [np.arange(3.0), np.arange(length, dtype=np.uint64), np.arange(5, dtype=np.float32)]
    host = [np.arange(k % 7 + 20 * (k == 9), dtype=np.int8) for k in range(200)]
    host.append(np.arange(6.0).reshape(2, 3).T)  # not contiguous
    arrays = [devices.put(a, gg.device("cuda:0")) for a in host]
    put, places = Upload(numbers, arrays), allocate_like(arrays)
    for scale in (1, 2):
        put([a * a.dtype.type(scale) for a in numbers], arrays, places)
        for live, a in zip(put.live, numbers, strict=True):
            np.testing.assert_array_equal(devices.host(live), a * a.dtype.type(scale))
        for own, a in zip(places, host, strict=True):
            np.testing.assert_array_equal(devices.host(own), a)


def test_upload_copies_arrays_to_addresses_that_are_on_the_device():
    host = [np.arange(k % 7 + 20 * (k == 9), dtype=np.int8) for k in range(200)]
    arrays = [devices.put(a, gg.device("cuda:0")) for a in host]
    addresses = Upload([np.zeros(len(arrays), np.uint64)], [])
    put = Upload((), arrays, addresses.live[0])
    for _ in range(2):
        places = allocate_like(arrays)
        addresses([np.array([a.data.ptr for a in places], np.uint64)], [], [])
        put((), arrays, arrays)
        for own, a in zip(places, host, strict=True):
            np.testing.assert_array_equal(devices.host(own), a)


def test_steps_that_cupy_refuses_to_capture_run_outside_of_graphs(rng):
    @gg.op(vjp=[lambda xp, g: xp.flip(g, 0)], captures=True)  # which is not true
    def flipped_on_host(xp, x, /):
        return xp.lib.asarray(np.flip(devices.host(x), 0))

    w = gg.Variable(np.ones(6, np.float32), device="cuda:0")
    mirror, optimizer = gg.Variable(np.ones(6, np.float32), device="cpu"), gg.optim.SGD(0.1)

    def step(x, w):
        with gg.GradientTape() as tape:
            y = flipped_on_host(gg.cumulative_sum(gg.tanh(w * x)) * w)
            loss = gg.sum(gg.softmax(y) * x)
        optimizer.apply_gradients([(tape.gradient(loss, w), w)])
        return loss

    traced = gg.function(step)
    for x in rng.normal(size=(20, 6)).astype(np.float32):
        actual = traced(gg.constant(x, device="cuda:0"), w)
        desired = step(gg.constant(x, device="cpu"), mirror)
        np.testing.assert_allclose(actual.numpy(), desired.numpy(), 1e-4, 1e-6)
        np.testing.assert_allclose(w.numpy(), mirror.numpy(), 1e-4, 1e-6)
    launches = plan_of(traced).replay
    uncaptured = [run for run in launches.runs if not run.fixed]
    assert uncaptured
    assert all([s.name for s, _ in run.steps] == ["flipped_on_host"] for run in uncaptured)
    for k, run in enumerate(launches.runs):
        assert not run.fixed or launches._captured.graphs[k]._graph is not None


# ---- whole models


def language_model(device, rng, dtype):
    """A training step of a small transformer: products in `dtype`, the rest in float32."""
    shapes = {"table": (11, 8), "mix": (8, 24), "bias": (24,), "out": (8, 8), "up": (8, 16),
              "down": (16, 8)}  # fmt: skip
    weights = {k: gg.Variable(rng.normal(size=s).astype(np.float32) / 3, device=device)
          for k, s in shapes.items()}  # fmt: skip
    optimizer = gg.optim.AdamW(0.01)

    def step(tokens, following):
        with gg.GradientTape() as tape:
            w = {k: gg.astype(v, dtype) for k, v in weights.items()}
            x = gg.take_rows(tokens, weights["table"])
            n, length, _ = x.shape
            normed = gg.astype(gg.nn.layer_norm(x), dtype)
            parts = gg.reshape(normed @ w["mix"] + w["bias"], (n, length, 3, 2, 4))
            q, k, v = (gg.permute_dims(parts[:, :, i], (0, 2, 1, 3)) for i in range(3))
            mixed = gg.nn.scaled_dot_product_attention(q, k, v, is_causal=True)
            x = x + gg.reshape(gg.permute_dims(mixed, (0, 2, 1, 3)), x.shape) @ w["out"]
            up = gg.gelu(gg.astype(x, dtype) @ w["up"], approximate="tanh")
            scores = gg.nn.linear(gg.astype(x + up @ w["down"], dtype), w["table"])
            loss = gg.nn.cross_entropy(
                gg.reshape(gg.astype(scores, "float32"), (-1, 11)), gg.ravel(following)
            )
        variables = list(weights.values())
        optimizer.apply_gradients(zip(tape.gradient(loss, variables), variables, strict=True))
        return loss

    return gg.function(step)


@pytest.mark.parametrize(("dtype", "tolerance"), [("float32", 1e-4), ("bfloat16", 1e-2)])
def test_a_step_of_a_transformer_is_one_graph(dtype, tolerance):
    text, losses = np.random.default_rng(1).integers(0, 11, (2, 6)), []
    for device in ("cpu", "cuda:0"):
        step = language_model(device, np.random.default_rng(0), dtype)
        args = [gg.constant(a, device=device) for a in (text[:, :-1], text[:, 1:])]
        losses.append([step(*args).item() for _ in range(4)])
    np.testing.assert_allclose(losses[1], losses[0], tolerance)
    launches = plan_of(step).replay
    products = [s for s in launches.program.steps if s.name.startswith("matmul")]
    assert {v.dtype for s in products for v in s.inputs} == {gg.zeros((), dtype).dtype}
    names = [s.name for s in launches.program.steps]
    assert {"matmul + bias", "matmul + sum of b", "3 pieces"} <= {*names}
    if cublaslt.binding() is not None:
        assert [run.fixed for run in launches.runs] == [True]
        assert launches._captured.graphs[0]._graph is not None
        assert not any(memory._is_separate for memory in launches._memories.values())


def test_an_index_out_of_bounds_gives_nan_in_a_graph():
    @gg.function
    def rows(table, index):
        tape, read = taped(lambda table: gg.take_rows(index, table), table)
        return read, tape.gradient(read, table)

    table = gg.ones((5, 3), device="cuda:0")
    for _ in range(3):
        read, gradient = rows(table, gg.constant([4, 0], device="cuda:0"))
        np.testing.assert_array_equal(read.numpy(), np.ones((2, 3)))
        np.testing.assert_array_equal(gradient.numpy().sum(1), [3, 0, 0, 0, 3])
    assert plan_of(rows).replay._captured.graphs[0]._graph is not None
    read, gradient = rows(table, gg.constant([1, 7], device="cuda:0"))
    np.testing.assert_array_equal(np.isnan(read.numpy()), [[False] * 3, [True] * 3])
    assert np.isnan(gradient.numpy()).all()
    gg.cuda.synchronize()  # a graph reports nothing
    with (
        gg.cuda.check_indices("now"),
        pytest.raises(gg.errors.IndexOutOfBoundsError, match="take_rows: index 7"),
    ):
        gg.take_rows(gg.constant([1, 7], device="cuda:0"), table)


def test_an_integer_index_out_of_bounds_reads_and_adds_nothing_in_a_graph():
    @gg.function
    def rows(table, index):
        return gg.take(table, index, axis=0), gg.scatter_rows(index, index, shape=(5,))

    table = gg.constant(np.arange(5), device="cuda:0")
    for _ in range(3):
        rows(table, gg.constant([4, 1], device="cuda:0"))
    read, added = rows(table, gg.constant([7, 1], device="cuda:0"))
    np.testing.assert_array_equal(read.numpy(), [0, 1])
    np.testing.assert_array_equal(added.numpy(), [0, 1, 0, 0, 0])


def test_a_function_on_a_device_that_is_not_the_current_one(second):
    w = gg.Variable(np.ones((4, 3), np.float32), device=second)

    @gg.function
    def step(x):
        with gg.GradientTape() as tape:
            y = gg.sum(gg.tanh(x @ w) * gg.ones(3, device=second))
        w.assign_sub(tape.gradient(y, w))
        return y

    x, mirror = np.ones((2, 4), np.float32), np.ones((4, 3), np.float32)
    for _ in range(3):
        y = np.tanh(x @ mirror)
        np.testing.assert_allclose(step(gg.constant(x, device=second)).numpy(), y.sum(), 1e-5)
        mirror = mirror - x.T @ (1 - y * y)


def test_python_numbers_do_not_widen_bfloat16_in_a_function():
    x = np.linspace(-1, 2, 6).astype(backend.BFLOAT16)
    traced = gg.function(lambda x: gg.sum((gg.tanh(x) - 1.5) ** 2 * 0.5))
    desired = np.sum((np.tanh(x.astype(float)) - 1.5) ** 2 * 0.5)
    for _ in range(3):
        actual = traced(gg.constant(x, device="cuda:0"))
        assert actual.dtype == backend.BFLOAT16
        np.testing.assert_allclose(float(actual), desired, 2e-2)


def test_a_training_step_in_bfloat16_equals_the_cpu(rng):
    values, x = (rng.normal(size=s).astype(backend.BFLOAT16) for s in ((3,), (4, 3)))

    def training(device, wrapped):
        w, optimizer = gg.Variable(gg.constant(values, device=device)), gg.optim.SGD(0.1)

        def step(x):
            optimizer.minimize(lambda: gg.mean((gg.softmax(x * w) - 0.5) ** 2), [w])

        for _ in range(3):
            wrapped(step)(gg.constant(x, device=device))
        return w.numpy().astype(float)

    desired = training("cpu", lambda f: f)
    for wrapped in (lambda f: f, gg.function):
        np.testing.assert_allclose(training("cuda:0", wrapped), desired, atol=2e-2)


def test_all_readers_of_a_16_bit_value_see_it_rounded():
    def overflowing(x, w):  # its kernels compute in float32, where 300 * 256 is finite
        y = x * 256
        finite = gg.isfinite(y)  # recomputed by the second kernel
        product = gg.astype(finite, "float16") @ w
        return y, finite + gg.astype(product + 0 * x, "float32")

    x = gg.constant(np.full((4, 4), 300, np.float16), device="cuda:0")
    w = gg.constant(np.eye(4, dtype=np.float16), device="cuda:0")
    traced = gg.function(overflowing)
    for _ in range(3):
        y, finite = traced(x, w)
        assert np.isinf(y.numpy()).all()
        assert not finite.numpy().any()


@pytest.mark.parametrize("dtype", ["float16", "bfloat16"])
def test_a_cast_to_16_bits_rounds_within_a_kernel(dtype, rng):
    """The rounding error, with which a number is split in two."""

    def rest(x):
        return x - gg.astype(gg.astype(x, dtype), "float32")

    x = rng.normal(size=(4, 8)).astype(np.float32)
    desired = rest(gg.constant(x, device="cpu")).numpy()
    actual = gg.function(rest)(gg.constant(x, device="cuda:0")).numpy()
    assert desired.any()
    np.testing.assert_array_equal(actual, desired)


@pytest.mark.parametrize("first", ["scaled", "flipped"])
def test_a_graph_updates_a_variable_whose_array_was_replaced(first):
    """An uncaptured step has given it a new array, or one in another order."""

    def training(device, wrapped):
        with gg.device(device):
            v = gg.Variable([1.0, 2.0])
            optimizer, scaled = gg.optim.SGD(0.5), gg.optim.LossScaleOptimizer(gg.optim.SGD(2.0))
            scaled.scale_loss(gg.constant(1.0))

            def step(x):
                if first == "scaled":
                    scaled.apply_gradients([(v * x, v)])
                else:
                    v.assign(gg.flip(v))
                optimizer.apply_gradients([(v * x, v)])

            call, values = wrapped(step), []
            for x in (0.25, 0.5, 0.125, 0.75):
                call(gg.constant(x))
                values.append(v.numpy())
            return values

    np.testing.assert_allclose(training("cuda:0", gg.function), training("cpu", lambda f: f), 1e-6)


def test_a_variable_may_be_assigned_the_same_array_in_each_step():
    """The graph must not assume that its memory still holds the value after an update."""
    with gg.device("cuda:0"):
        v, optimizer = gg.Variable([1.0, 2.0]), gg.optim.SGD(0.5)

        @gg.function
        def step(x):
            optimizer.apply_gradients([(v + x, v)])
            moved = v + 0
            v.assign(gg.zeros_like(v))
            return moved

        step(gg.constant(1.0))
        for _ in range(3):
            np.testing.assert_array_equal(step(gg.constant(1.0)).numpy(), [-0.5, -0.5])


@pytest.mark.parametrize("steps", [1, 2])
def test_a_variable_may_follow_another_that_an_optimizer_updates(rng, steps):
    def training(device, wrapped):
        w, follower = (gg.Variable(np.ones(6, np.float32), device=device) for _ in range(2))
        optimizer = gg.optim.SGD(0.1)

        def step(x):
            before = w.value()
            loss = optimizer.minimize(lambda: gg.sum(gg.tanh(w * x) ** 2), [w])
            follower.assign(w)
            return loss, before

        call, values = wrapped(step), []
        for x in data:
            results = [a.numpy() for a in call(gg.constant(x, device=device))]
            values.append([*results, w.numpy(), follower.numpy()])
        return values

    data = rng.normal(size=(4, steps, 6)).astype(np.float32)

    def each(step):
        return lambda x: [gg.stack(column) for column in zip(*map(step, x), strict=True)]

    actual = training("cuda:0", lambda f: gg.function(f, steps_per_call=steps))
    for some, others in zip(actual, training("cpu", each), strict=True):
        for a, b in zip(some, others, strict=True):
            np.testing.assert_allclose(a, b, 1e-5, 1e-6)


@pytest.mark.parametrize("kind", ["cond", "scan"])
def test_the_next_call_does_not_overwrite_what_a_branch_keeps_for_its_gradient(kind):
    def gradients(device, wrapped):
        w = gg.Variable([1.0, 2.0, 3.0], device=device)

        def f(x):
            y = gg.tanh(x) * 2
            if kind == "cond":
                return gg.cond(gg.sum(y) > -100, lambda: gg.exp(y) * y * w, lambda: y)
            return gg.scan(lambda c, _: (gg.exp(c) * y * w, None), y, None, length=2)[0]

        f, grads = wrapped(f), []
        for k in range(4):
            a, b = (gg.constant(np.linspace(-1, 1, 3) * (k + j), "float32", device=device)
                    for j in (1, 2))  # fmt: skip
            tape, loss = taped(lambda a, b: gg.sum(f(a)) + gg.sum(f(b) * 2), a, b)
            grads += [g.numpy() for g in tape.gradient(loss, [a, b, w])]
        return grads

    for actual, desired in zip(
        gradients("cuda:0", gg.function), gradients("cpu", lambda f: f), strict=True
    ):
        np.testing.assert_allclose(actual, desired, 1e-4, 1e-5)


def test_a_value_that_a_branch_may_return_is_not_updated_in_place():
    w, optimizer = gg.Variable([1.0], device="cuda:0"), gg.optim.SGD(1.0)

    @gg.function
    def step(p, x):
        old = gg.cond(p > 0, lambda: x, lambda: w.value())
        optimizer.apply_gradients([(gg.ones(1, device="cuda:0"), w)])
        return old

    for _ in range(5):
        before = w.numpy()
        actual = step(gg.constant(-1.0, device="cuda:0"), gg.zeros(1, device="cuda:0"))
        np.testing.assert_array_equal(actual.numpy(), before)


def test_calls_work_after_one_that_failed_half_way(monkeypatch):
    uploads, original = [], Upload.__init__

    def init(self, *args):
        uploads.append(self)
        if len(uploads) == 1:
            raise MemoryError("no room for places")
        original(self, *args)

    traced = gg.function(lambda x: gg.cumulative_sum(gg.tanh(x)) * 2)
    monkeypatch.setattr(Upload, "__init__", init)
    for k in range(5):
        x = gg.constant(np.arange(3.0) + k, device="cuda:0")
        if k == 0:
            with pytest.raises(MemoryError):
                traced(x)
        else:
            np.testing.assert_allclose(traced(x).numpy(), np.cumsum(np.tanh(x.numpy())) * 2)


@pytest.mark.parametrize("dtype", ["int64", "uint8", "uint64", "int8", "bool"])
def test_a_sum_may_be_cast_to_an_integer(dtype, rng):
    def f(x, i):
        total = gg.astype(gg.sum(x, axis=-1) * 2, dtype)
        return (
            total,
            gg.astype(gg.tanh(x - gg.max(x, axis=-1, keepdims=True)) * 9, dtype),
            i + total,
        )

    x, i = rng.integers(1, 5, (3, 4)).astype(np.float32), np.ones(3, dtype)
    traced, desired = gg.function(f), f(gg.constant(x), gg.constant(i))
    if dtype.startswith("u"):
        desired = desired[0], None, desired[2]  # casts of negative numbers are undefined
    for _ in range(3):
        args = [gg.constant(v, device="cuda:0") for v in (x, i)]
        for a, b in zip(traced(*args), desired, strict=True):
            if b is not None:
                np.testing.assert_array_equal(a.numpy(), b.numpy())


def test_graphs_dropped_in_several_threads_lose_none_whose_results_are_held(cuda):
    x, held = backend.cupy().ones(8), []
    for _ in range(3):
        graph = CudaGraph(lambda: [x * 2])
        held.append(graph())
        del graph
    before = sys.getswitchinterval()
    sys.setswitchinterval(1e-7)
    try:
        threads = [
            threading.Thread(target=lambda: [CudaGraph(lambda: []) for _ in range(300)])
            for _ in range(2)
        ]
        for step in (threading.Thread.start, threading.Thread.join):
            for thread in threads:
                step(thread)
    finally:
        sys.setswitchinterval(before)
    assert len(_dead) >= 3  # the graphs whose results are held


def test_an_interrupted_capture_starts_again(cuda):
    x, runs = backend.cupy().ones(3, dtype=np.float32), []

    def run():
        runs.append(len(runs))
        doubled = x * 2
        if len(runs) == 2:
            raise KeyboardInterrupt
        return [doubled + 1]

    graph = CudaGraph(run)
    graph()
    with pytest.raises(KeyboardInterrupt):
        graph()
    for _ in range(3):
        (result,) = graph()
        np.testing.assert_array_equal(result.get(), [3, 3, 3])


def test_a_graph_that_fails_to_initialize_is_dropped_silently(cuda, monkeypatch):
    def refused(**options):
        raise RuntimeError("no stream")

    monkeypatch.setattr(backend.cupy().cuda, "MemoryPool", refused)
    with pytest.raises(RuntimeError, match="no stream"):
        CudaGraph(lambda: [])
    gc.collect()  # an exception in __del__ is a warning


# ---- arrays of two devices


def test_a_step_may_begin_on_the_host_and_continue_on_the_device(rng):
    def training(wrapped):
        w, optimizer = gg.Variable(np.ones(3, np.float32), device="cuda:0"), gg.optim.SGD(0.1)

        def step(x, y):
            scaled = x * 2 + 1
            with gg.GradientTape() as tape:
                tape.watch(x)
                loss = gg.sum((x * scaled).to_device("cuda:0") * w + gg.tanh(y))
            of_w, of_x = tape.gradient(loss, [w, x])
            optimizer.apply_gradients([(of_w, w)])
            far = gg.where(scaled > 1, 0, scaled)
            return scaled, far, loss, of_x, gg.concat([x, scaled]), x, y * loss

        step = wrapped(step)
        return [[*step(*pair), w.value()] for pair in zip(*data, strict=True)]

    data = [[gg.constant(a, device=d) for a in rng.normal(size=(4, 3)).astype(np.float32)]
            for d in ("cpu", "cuda:0")]  # fmt: skip
    desired = training(lambda f: f)
    for passes in (None, ()):
        for some, others in zip(
            training(lambda f, p=passes: gg.function(f, passes=p)), desired, strict=True
        ):
            assert [a.device for a in some] == [b.device for b in others]
            for a, b in zip(some, others, strict=True):
                np.testing.assert_allclose(a.numpy(), b.numpy(), 1e-5)


# ---- memory of graphs


def test_each_step_of_a_graph_is_timed_on_the_gpu(rng):
    with gg.device("cuda:0"):
        model = gg.nn.Sequential(gg.nn.Dense(20, 16, activation=gg.relu), gg.nn.Dense(16, 10))
        x = gg.constant(rng.normal(size=(8, 20)), dtype="float32")
        labels = gg.constant(rng.integers(0, 10, 8))
        generator = gg.random.Generator(1)
        step = training_step(model, gg.optim.Adam(0.1))
        lowered = gg.function(lambda x, y: step(x + generator.exponential((20,)), y)).lower(
            x, labels
        )
        before = [v.numpy() for v in model.variables], generator.state
        times = lowered.times()
    by_name = dict(zip([s.name for s in lowered.program.steps], times, strict=True))
    unknown = {name for name, t in by_name.items() if t is None}
    assert unknown == {"random exponential", "apply_gradients"}, by_name
    assert min(t for t in by_name.values() if t is not None) > 0
    np.testing.assert_equal(([v.numpy() for v in model.variables], generator.state), before)
    assert lowered.html().count("not measured") == 2 * 3  # in three views


def test_a_dropped_graph_returns_its_memory_to_the_device(cuda):
    cp = backend.cupy()
    x, held, free = cp.ones(1 << 20, dtype=np.float32), [], []
    for k in range(4):
        graph = CudaGraph(lambda: [x * 2 + 1])
        for _ in range(3):
            (result,) = graph()
        held.append(result if k == 1 else None)  # keeps the memory of its graph
        np.testing.assert_array_equal(result[:2].get(), [3, 3])
        del graph, result
        if k == 2:
            held.clear()
        free.append(cp.cuda.runtime.memGetInfo()[0])
    assert free[3] >= free[0] - (1 << 20)


def assigning(device):
    """A function that assigns Variables in several ways, and the Variables."""
    a, b, c, d = (
        gg.Variable(gg.constant(np.full((2, 3), k, np.float32), device=device)) for k in range(4)
    )

    def step(x):
        old = a.value()
        a.assign(a * 0.5 + x)
        first, second = b.value(), c.value()
        b.assign(second)  # they change places: neither may be overwritten early
        c.assign(first)
        d.assign(a + d)
        return old, d + 1

    return step, (a, b, c, d)


@pytest.mark.parametrize("held", [False, True])
def test_a_graph_writes_the_variables_that_it_assigns(held, rng):
    (eager, here), (step, there) = assigning("cpu"), assigning("cuda:0")
    traced, snapshots = gg.function(step), []
    for _ in range(6):
        x = rng.normal(size=(2, 3)).astype(np.float32)
        actual, desired = (
            f(gg.constant(x, device=d)) for f, d in ((traced, "cuda:0"), (eager, "cpu"))
        )
        snapshots += list(zip(actual, [t.numpy() for t in desired], strict=True))
        if held:
            snapshots += [(v.value(), w.numpy()) for v, w in zip(there, here, strict=True)]
        for v, w in zip(there, here, strict=True):
            np.testing.assert_allclose(v.numpy(), w.numpy(), 1e-6)
    for tensor, values in snapshots:
        np.testing.assert_allclose(tensor.numpy(), values, 1e-6)
    flow = plan_of(traced).replay._flow
    assert {memory.variable._id for _, memory in flow.stored} == {there[0]._id, there[3]._id}
    there[0].assign(gg.ones((2, 3), device="cuda:0"))  # from outside, between two calls
    here[0].assign(np.ones((2, 3), np.float32))
    x = rng.normal(size=(2, 3)).astype(np.float32)
    traced(gg.constant(x, device="cuda:0")), eager(gg.constant(x, device="cpu"))
    np.testing.assert_allclose(there[0].numpy(), here[0].numpy(), 1e-6)


def test_several_steps_per_call_write_the_variables_that_they_assign(rng):
    def total(device):
        v = gg.Variable(gg.zeros((3,), device=device))

        def step(x):
            v.assign(v * 0.5 + x)
            return gg.sum(v * x)

        return step, v

    (eager, here), (step, there) = total("cpu"), total("cuda:0")
    traced = gg.function(step, steps_per_call=3)
    for _ in range(4):
        x = rng.normal(size=(3, 3)).astype(np.float32)
        actual = traced(gg.constant(x, device="cuda:0"))
        desired = [eager(gg.constant(row, device="cpu")).numpy() for row in x]
        np.testing.assert_allclose(np.ravel(actual.numpy()), np.ravel(desired), 1e-5)
        np.testing.assert_allclose(there.numpy(), here.numpy(), 1e-5)
