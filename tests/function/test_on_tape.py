"""gg.function under a tape: recorded as one entry, whose gradient is replayed too."""

import copy

import numpy as np
import pytest
from comparing import near, same
from steps import masked_gradient
from taping import tape_gradient, taped

import gpugrad as gg
from gpugrad.core.listening import graphs, threads
from gpugrad.errors import TraceError

RNG = np.random.default_rng(0)
X = gg.constant(RNG.normal(size=(4, 3)))


def gradients(f, x, v):
    """Gradients of a loss of `f` with respect to an argument and a Variable."""
    tape, z = taped(lambda x: gg.sum(f(x)["y"] ** 2), x)
    return tape.gradient(z, [x, v])


def second_gradients(f, x, v):
    """The first gradients, and the gradients of a function of them."""
    with gg.GradientTape() as outer:
        outer.watch(x)
        first = gradients(f, x, v)
        total = gg.sum(first[0] ** 2) + gg.sum(first[1] ** 3)
    return [*first, *outer.gradient(total, [x, v])]


def test_under_a_tape_function_and_gradient_are_replayed():
    v = gg.Variable(RNG.normal(size=(3, 2)))
    calls = []

    def f(x):
        calls.append(1)
        return {"y": gg.tanh(x @ v) * gg.sum(x), "arg": gg.argmax(x, axis=1), "n": 3}

    traced = gg.function(f)
    for k in range(4):
        got = gradients(traced, X + k, v)
        for a, b in zip(got, gradients(f, X + k, v), strict=True):
            near(a, b)
        if k == 0:
            calls.clear()
    assert len(calls) == 3  # of the plain function
    assert traced.cache_info().traces == 1


def test_under_a_tape_that_watches_only_a_variable_or_nothing():
    v = gg.Variable(RNG.normal(size=(3, 2)))
    f = gg.function(lambda x: gg.tanh(x @ v))
    for _ in range(2):
        with gg.GradientTape() as tape:
            y = f(X)
        near(tape.gradient(y, v), gg.grad(lambda w: gg.sum(gg.tanh(X @ w)))(v.value()))
        with gg.GradientTape(watch_accessed_variables=False) as tape:
            y = f(X)
        assert tape.gradient(y, v) is None


def test_second_gradients_equal_eager():
    v = gg.Variable(RNG.normal(size=(3, 2)))

    def f(x):
        return {"y": gg.tanh(x @ v) * gg.sum(x)}

    for a, b in zip(second_gradients(gg.function(f), X, v), second_gradients(f, X, v), strict=True):
        near(a, b, 1e-10)


@pytest.mark.parametrize("device", ["cpu", "cuda:0"])
@pytest.mark.parametrize("order", ["jacobian", "second"])
def test_writes_after_a_call_under_a_tape_do_not_change_its_derivatives(order, device):
    def derivative(f):
        v = gg.Variable([2.0], device=device)
        fixed = gg.Variable([3.0], device=device, trainable=False)
        start, scale = gg.constant([1.0, 2.0], device=device), np.array([3.0, 4.0], np.float32)
        with gg.GradientTape() as outer, gg.GradientTape() as tape:
            for t in (outer, tape):
                t.watch(start)
            x = copy.copy(start)
            y = f(x, scale, v, fixed)
            x[0], scale[1] = 100.0, 100.0
            for w in (v, fixed):
                w.assign([100.0])
        if order == "jacobian":
            return tape.jacobian(y, start)
        with outer:
            g = tape.gradient(y, start)
        return outer.gradient(g, start)

    def f(x, scale, v, fixed):
        return x**3 * gg.asarray(scale).to_device(device) * v * fixed

    same(derivative(gg.function(f)).numpy(), derivative(f).numpy())


def test_derivatives_rerun_the_function_on_the_default_device_of_its_call():
    x, f = gg.ones(2, device="cuda:0"), gg.function(lambda x: x**2 * gg.ones(2))
    with gg.device("cuda:0"), gg.GradientTape() as tape:
        tape.watch(x)
        y = f(x)
    with gg.device("cpu"):
        assert tape.jacobian(y, x).tolist() == [[2.0, 0.0], [0.0, 2.0]]


def test_under_a_tape_a_variable_or_indexed_slices_may_be_results():
    v = gg.Variable(RNG.normal(size=(4, 3)))

    def f(x):
        with gg.GradientTape() as tape:
            y = gg.sum(gg.gather(v, gg.constant([1, 1])) ** 2 * gg.sum(x))
        return x * v, v, tape.gradient(y, v)

    results = []
    for g in (f, gg.function(f)):
        for _ in range(2):
            with gg.GradientTape() as tape:
                tape.watch(X)
                a, b, slices = g(X)
                assert b is v
                assert isinstance(slices, gg.IndexedSlices)
                total = gg.sum(a * b) + gg.sum(slices.values * 2)
            results.append(tape.gradient(total, [X, v]))
    for gradients_ in results[1:]:
        for g, h in zip(gradients_, results[0], strict=True):
            near(g, h)


ROWS = {
    "once": lambda v, rows: gg.gather(v, rows) ** 2,
    "twice": lambda v, rows: gg.gather(v, rows) ** 2 + gg.gather(v, rows + 1),
    "with a dense gradient": lambda v, rows: gg.sum(gg.gather(v, rows)) + v,
    "in a branch": lambda v, rows: gg.cond(rows[0] > 0, lambda: gg.gather(v, rows), lambda: v[:2]),
    "in a loop": lambda v, rows: gg.scan(lambda c, i: (c * gg.gather(v, i), c), v[0], rows)[0],
}


@pytest.mark.parametrize("device", ["cpu", "cuda:0"])
@pytest.mark.parametrize("name", ROWS)
def test_gradients_of_rows_equal_eager(name, device):
    v = gg.Variable(RNG.normal(size=(4, 3)), device=device)

    def loss(rows):
        return gg.sum(ROWS[name](v, rows))

    def gradient(rows, loss=loss):
        with gg.GradientTape() as tape:
            y = loss(rows)
        return gg.convert_to_tensor(tape.gradient(y, v))

    ways = [gradient, gg.function(gradient), lambda rows: gradient(rows, fast)]
    fast = gg.function(loss)
    for rows in ([1, 1], [0, 2], [2, 1]):
        want, *results = (way(gg.constant(rows, device=device)).numpy() for way in ways)
        for g in results:
            near(g, want)


@pytest.mark.parametrize("device", ["cpu", "cuda:0"])
def test_sources_that_a_result_does_not_depend_on_have_no_gradient(device):
    v, w, x = (gg.Variable(RNG.normal(size=3), device=device) for _ in range(3))
    x = x.value()

    def f(x):
        return v * 2, {"a": gg.sum(x * w), "b": gg.stop_gradient(x) * 3}, gg.sum(x * x) * v

    results = []
    for g in (f, gg.function(f)):
        for _ in range(2):
            with gg.GradientTape() as outer, gg.GradientTape(persistent=True) as tape:
                outer.watch(x)
                tape.watch(x)
                one, two, three = g(x)
            targets = [one, two["a"], two["b"], three, [one, three], [two["b"], one]]
            gradients_ = [d for t in targets for d in tape.gradient(t, [x, v, w])]
            gradients_ += outer.gradient(two["a"], [x, v, w])
            results.append([None if d is None else d.numpy() for d in gradients_])
    for gradients_ in results:
        assert [d is None for d in gradients_] == [d is None for d in results[0]]
        near([d for d in gradients_ if d is not None], [d for d in results[0] if d is not None])


def test_a_persistent_tape_gives_the_gradient_of_a_function_twice():
    f = gg.function(lambda x: gg.sum(gg.sin(x)))
    tape, y = taped(lambda X: f(X) * 2, X, persistent=True)
    for _ in range(2):
        near(tape.gradient(y, X), 2 * np.cos(X.numpy()))


def test_under_a_tape_effects_happen_once_in_every_call():
    v = gg.Variable(1.0)

    @gg.function
    def f(x):
        v.assign_add(1.0)
        return gg.sum(x * gg.random.uniform(x.shape, dtype=x.dtype))

    gg.set_seed(0)
    noise = [gg.random.uniform(X.shape, dtype=X.dtype) for _ in range(3)]
    gg.set_seed(0)
    for k in range(3):
        near(tape_gradient(f, X), noise[k])
        assert v.numpy() == k + 2


@pytest.mark.filterwarnings("ignore::RuntimeWarning")  # of the branch not taken
def test_a_nan_gradient_of_a_function_is_that_of_the_masked_pass():
    f = gg.function(lambda x: gg.sum(gg.where(x > 0, x * gg.log(x), 0)))
    for values in ([1.0, 2.0], [0.0, 2.0]):
        x = gg.constant(values)
        near(gg.grad(f)(x), np.where(x.numpy() > 0, 1 + np.log(np.maximum(x.numpy(), 1e-9)), 0),
             1e-6)  # fmt: skip


def test_a_nan_gradient_within_a_function_is_that_of_the_masked_pass():
    f = gg.function(lambda x: masked_gradient(x) * x)
    for values in ([1.0, 2.0], [1.0, 2.0], [0.0, 2.0]):
        x = gg.constant(values, dtype=gg.float64)
        with gg.GradientTape() as tape, np.errstate(all="ignore"):
            tape.watch(x)
            y = f(x)
        logs = np.log(np.where(x.numpy() > 0, x.numpy(), 1))
        near(y, np.where(x.numpy() > 0, logs + 1, 0) * x.numpy())
        near(tape.gradient(y, x), np.where(x.numpy() > 0, logs + 2, 0))


def test_under_a_tape_a_constant_may_be_returned_twice():
    f = gg.function(lambda x: (*[gg.ones(2)] * 2, x * 3))
    x = gg.constant([1.0, 2.0])
    with gg.GradientTape() as tape:
        tape.watch(x)
        a, b, c = f(x)
        y = a * b * c
    same(tape.gradient(y, x), [3.0, 3.0])


@pytest.mark.parametrize("trainable", [True, False])
def test_variables_that_are_arguments_or_watched_have_gradients(trainable):
    v, w = (gg.Variable(RNG.normal(size=(3, 2)), trainable=trainable) for _ in range(2))
    f = gg.function(lambda x, v: gg.sum(gg.tanh(x @ v) * (x @ w)))
    plain = f.__wrapped__
    for watched in ([], [v], [v, w], [w], []):
        got = []
        for function in (f, f, plain):
            with gg.GradientTape() as tape:
                tape.watch([X, *watched])
                y = function(X, v)
            got.append(tape.gradient(y, [X, v, w]))
        for a, b, c in zip(*got, strict=True):
            assert (a is None) == (c is None)
            if c is not None:
                near(a, c), near(b, c)


def test_a_tensor_passed_twice_gets_the_sum_of_its_gradients():
    f = gg.function(lambda a, b: gg.sum(a * b))
    for _ in range(2):
        near(gg.grad(lambda x: f(x, x))(X), 2 * X)


def test_a_captured_tensor_has_a_gradient_if_a_tape_watches_it():
    w = gg.constant([[1.0, 2.0], [3.0, 4.0]], dtype=gg.float64)
    f = gg.function(lambda x: gg.sum(gg.tanh(x @ w)))
    x = gg.constant([0.1, 0.2], dtype=gg.float64)
    gg.grad(f)(x)  # traced without a gradient of w
    for _ in range(2):
        by_x, by_w = tape_gradient(lambda x, w: f(x), x, w)
        near(by_x, gg.grad(lambda x: gg.sum(gg.tanh(x @ w)))(x))
        near(by_w, gg.grad(lambda w: gg.sum(gg.tanh(x @ w)))(w))


def test_jacobians_of_functions_that_write_to_their_own_tensors():
    def f(x):
        x = x + 0
        x[0] = gg.sum(x)
        return {"x": x, "half": x / 2}

    traced = gg.function(f)
    for x in (gg.constant([1.0, 2.0]), gg.constant([3.0, 5.0])):
        same(gg.jacobian(lambda x: traced(x)["x"])(x), gg.jacobian(lambda x: f(x)["x"])(x))

    def writes(x):
        x[0] = 1.0
        return x

    with pytest.raises(TraceError, match="writes to a Tensor"):
        gg.jacobian(gg.function(writes))(x)
    assert not graphs
    assert not threads.stack
