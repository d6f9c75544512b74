"""gg.function with Variables, optimizers and random numbers: state changes as in eager calls."""

import contextlib
import copy
import functools

import numpy as np
import pytest
from comparing import near, same, same_unless_compiled
from steps import masked_gradient

import gpugrad as gg
from gpugrad.core.devices import gpu_count
from gpugrad.errors import TraceError

RNG = np.random.default_rng(0)
X = gg.constant(RNG.normal(size=(4, 3)))


def test_variables_are_read_at_each_call_and_assigned_in_order():
    v = gg.Variable([1.0, 2.0])

    @gg.function
    def f(x):
        before = v * 1
        v.assign(v + x)
        v.assign_add(x)
        return before, v * 2

    for k in range(3):
        start = v.numpy()
        before, after = f(gg.ones(2))
        same(before, start)
        same(after, 2 * (start + 2))
        same(v, start + 2)
        v.assign([k * 10.0, 0.0])


@pytest.mark.parametrize("device", ["cpu", "cuda:0"])
def test_a_constant_is_assigned_in_each_call(device):
    v = gg.Variable([1.0, 2.0], device=device)

    @gg.function
    def f(x):
        sum_ = v + x
        v.assign([0.0, 0.0])
        return sum_

    for k in range(3):
        v.assign([k + 1.0, 2.0])
        same(f(gg.ones(2, device=device)).numpy(), [k + 2.0, 3.0])
        same(v.numpy(), [0.0, 0.0])
    assert f.cache_info().hits == 2


@pytest.mark.parametrize("device", ["cpu", "cuda:0"])
@pytest.mark.parametrize("under_tape", [False, True])
def test_a_variable_of_another_shape_is_another_program(device, under_tape):
    w = gg.Variable(np.ones(4, np.float32), device=device, shape=(None,))
    f = gg.function(lambda x: gg.mean(gg.tanh(w)) * w.shape[0] * x)
    x = gg.constant(2.0, device=device)
    for n in (4, 4, 4, 1, 5, 4):
        w.assign(gg.ones(n, device=device))
        with gg.GradientTape() if under_tape else contextlib.nullcontext() as tape:
            y = f(x)
        near(y.numpy(), 2 * n * np.tanh(1), 1e-6)
        if under_tape:
            near(tape.gradient(y, w).numpy(), np.full(n, 2 / np.cosh(1) ** 2), 1e-6)


def test_snapshots_and_results_of_earlier_calls_never_change():
    v = gg.Variable(np.ones(3))
    optimizer = gg.optim.SGD(0.5)

    @gg.function
    def step(x):
        y = optimizer.minimize(lambda: gg.sum(v * x), [v])
        return y, v.value(), x * 2

    snapshots = [(v.value(), v.numpy())]
    for k in range(4):
        results = step(gg.constant(np.full(3, 1.0 + k)))
        snapshots += [(r, r.numpy()) for r in results]
        snapshots.append((v.value(), v.numpy()))
    for tensor, values in snapshots:
        same(tensor, values)


def test_values_read_before_an_update_keep_the_old_value():
    v, w = (gg.Variable(np.ones((2, 2))) for _ in range(2))

    def training(v):
        optimizer = gg.optim.SGD(0.5)

        def step(x):
            before, turned = v.value(), gg.transpose(v)
            optimizer.apply_gradients([(x, v)])
            return before + 0, turned * 1, v * 1

        return step

    one, two = training(v), gg.function(training(w))
    for k in range(3):
        x = gg.constant(np.arange(4.0).reshape(2, 2) + k)
        for a, b in zip(one(x), two(x), strict=True):
            same(a, b)


def test_an_error_while_tracing_leaves_variables_as_they_were():
    v = gg.Variable([1.0, 2.0])

    @gg.function
    def f(x):
        v.assign(v * 100)
        raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        f(X)
    same(v, [1.0, 2.0])
    same(v * 2, [2.0, 4.0])


def test_an_error_in_a_replay_leaves_variables_as_they_were():
    v = gg.Variable([1.0, 2.0])

    @gg.function
    def f(x, i):
        v.assign(v * 100)
        return gg.take(x, i)

    f(gg.ones(3), gg.constant([0]))
    with pytest.raises(gg.errors.IndexOutOfBoundsError):
        f(gg.ones(3), gg.constant([7]))
    same(v, [100.0, 200.0])


@pytest.mark.parametrize("device", ["cpu", "cuda:0"])
@pytest.mark.parametrize("passes", [None, ()])
def test_an_error_written_after_an_optimizer_update_is_raised_before_it(device, passes):
    if device != "cpu" and gpu_count() == 0:
        pytest.skip(reason="needs a CUDA device")
    v, optimizer = gg.Variable([1.0, 2.0], device=device), gg.optim.SGD(0.5)

    @functools.partial(gg.function, passes=passes)
    def f(x):
        before = v * 3
        optimizer.minimize(lambda: gg.sum(v * v), [v])
        return before, gg.linalg.cholesky(x), v * 1

    one = gg.eye(2, device=device)
    before, _, after = f(one)
    same(before.numpy(), [3.0, 6.0])
    same(after.numpy(), [0.0, 0.0])
    v.assign([1.0, 2.0])
    for _ in range(2):
        with pytest.raises(gg.errors.SingularMatrixError):
            f(-one)
        same(v.numpy(), [1.0, 2.0])
        assert optimizer.iterations == 1
    before, _, after = f(one)
    same(before.numpy(), [3.0, 6.0])
    same(after.numpy(), [0.0, 0.0])


@pytest.mark.parametrize("branch", [False, True])
def test_an_error_while_tracing_leaves_optimizers_and_generators_as_they_were(branch):
    v, optimizer, generator = gg.Variable([1.0, 2.0]), gg.optim.Adam(0.5), gg.random.Generator(3)
    optimizer.apply_gradients([(gg.ones(2), v)])
    before, drawn = v.numpy(), gg.random.Generator(3).normal((2,))

    @gg.function
    def f(g):
        if branch:
            noise = gg.cond(gg.sum(g) > 0, lambda: generator.normal((2,)), lambda: gg.zeros(2))
        else:
            noise = generator.normal((2,))
        optimizer.apply_gradients([(g * noise, v)])
        raise ZeroDivisionError

    state = {name: x.numpy() for name, x in optimizer.state_dict().items()}
    with pytest.raises(ZeroDivisionError):
        f(gg.ones(2))
    same(v, before)
    for name, x in optimizer.state_dict().items():
        same(x, state[name])
    same(generator.normal((2,)), drawn)


def test_a_variable_is_read_at_each_call_after_a_refused_update():
    v, optimizer = gg.Variable([1.0, 2.0]), gg.optim.SGD(0.5)

    @gg.function
    def f(x):
        with contextlib.suppress(gg.errors.ShapeError):
            optimizer.apply_gradients([(gg.ones(3), v)])
        return v * x

    for start in ([1.0, 2.0], [3.0, 4.0]):
        v.assign(start)
        same(f(gg.ones(2)), start)


PARTS = {
    "part": lambda v, x, i: v[:2].assign(x),
    "number": lambda v, x, i: v[1].assign(5.0),
    "at an index": lambda v, x, i: v[i].assign(5.0),
    "rows": lambda v, x, i: v.scatter_add(gg.IndexedSlices(x, gg.constant([0, 2]), (3,))),
    "at rows": lambda v, x, i: v.scatter_update(gg.IndexedSlices([7.0], gg.stack([i]), (3,))),
}


@pytest.mark.parametrize("how", PARTS)
def test_parts_of_a_variable_that_is_not_read_are_assigned_in_each_call(how):
    v, w = gg.Variable([1.0, 2.0, 3.0]), gg.Variable([1.0, 2.0, 3.0])
    f = gg.function(lambda x, i: PARTS[how](w, x, i))
    for x, i in (([1.0, 2.0], 0), ([3.0, 5.0], 2)):
        PARTS[how](v, gg.constant(x), gg.constant(i))
        f(gg.constant(x), gg.constant(i))
        same(w, v)


OPTIMIZERS = {
    "sgd": lambda: gg.optim.SGD(0.1),
    "momentum": lambda: gg.optim.SGD(0.1, momentum=0.9, nesterov=True),
    "adam": lambda: gg.optim.Adam(lambda step: 0.1 / (1 + step)),
    "adamw": lambda: gg.optim.AdamW(0.01, weight_decay=0.1),
}


@pytest.mark.usefixtures("numpy_replay")
@pytest.mark.parametrize("name", OPTIMIZERS)
def test_training_with_random_numbers_is_bitwise_equal_to_eager(name):
    gg.set_seed(3)
    first = gg.nn.Sequential(gg.nn.Dense(3, 8, activation=gg.gelu), gg.nn.Dense(8, 2))
    second = copy.deepcopy(first)

    def training(model, optimizer, generator):
        def step(x, labels):
            with gg.GradientTape() as tape:
                noise = generator.normal(x.shape, dtype=x.dtype)
                logits = model(x + 0.1 * noise)
                loss = gg.mean(gg.sparse_softmax_cross_entropy(logits, labels))
            variables = model.trainable_variables
            gradients = tape.gradient(loss, variables)
            optimizer.apply_gradients(zip(gradients, variables, strict=True))
            return loss

        return step

    one = training(first, OPTIMIZERS[name](), gg.random.Generator(7))
    two = gg.function(training(second, OPTIMIZERS[name](), gg.random.Generator(7)))
    rng = np.random.default_rng(2)
    for _ in range(10):
        x = gg.constant(rng.normal(size=(5, 3)).astype("f4"))
        labels = gg.constant(rng.integers(0, 2, 5))
        same(one(x, labels), two(x, labels))
    for a, b in zip(first.trainable_variables, second.trainable_variables, strict=True):
        same(a, b)
    assert two.cache_info() == (9, 1, 0)


def test_random_numbers_advance_as_in_eager_calls():
    f = gg.function(lambda: gg.random.uniform((3,)))
    gg.set_seed(5)
    traced = [f().tolist() for _ in range(3)]
    gg.set_seed(5)
    assert traced == [gg.random.uniform((3,)).tolist() for _ in range(3)]
    assert traced[0] != traced[1]


@pytest.mark.filterwarnings("ignore::RuntimeWarning")  # of the branch not taken
def test_a_gradient_that_is_nan_in_a_replay_is_that_of_the_masked_pass():
    f = gg.function(masked_gradient)
    for x in ([1.0, 2.0], [0.0, 2.0], [3.0, 2.0]):
        same(f(gg.constant(x)), masked_gradient(gg.constant(x)))
    assert f.cache_info() == (1, 1, 1)


@pytest.mark.filterwarnings("ignore::RuntimeWarning")  # of the branch not taken
def test_a_per_example_gradient_that_is_nan_in_a_replay_is_that_of_the_masked_pass():
    def step(x):
        return gg.vmap(gg.grad(lambda v: gg.sum(gg.where(v > 0, v * gg.log(v), 0))))(x)

    f = gg.function(step)
    for x in ([1.0, 2.0], [0.0, 2.0], [3.0, 2.0]):
        same(f(gg.constant(x)), step(gg.constant(x)))
    assert f.cache_info() == (1, 1, 1)


RANDOM = {
    "split": lambda g: g.split(2)[1].normal((3,)),
    "split twice": lambda g: g.split(2)[1].split(1)[0].normal((3,)) + g.normal((3,)),
    "fold_in": lambda g: g.fold_in(7).normal((3,)) + g.split(1)[0].fold_in(2).normal((3,)),
    "created inside": lambda g: gg.random.Generator(3).normal((3,)),
    "drawn between": lambda g: (c := g.split(1)[0]).normal((3,)) + g.normal((3,)) - c.normal((3,)),
}


@pytest.mark.parametrize("name", RANDOM)
def test_generators_created_inside_restart_in_each_call(name):
    draw = RANDOM[name]
    one, two = gg.random.Generator(5), gg.random.Generator(5)
    f = gg.function(lambda: draw(two))
    for _ in range(4):
        same(draw(one), f())
    assert one.state == two.state


def test_a_generator_state_that_is_set_inside_is_set_in_each_call():
    g = gg.random.Generator(5)
    start = g.state

    @gg.function
    def f():
        g.state = start
        return g.normal((3,))

    same(f(), f())
    same(f(), f())


def test_a_layer_that_creates_variables_in_its_first_call_is_traced_afterwards():
    class Lazy:
        w = None

        def __call__(self, x):
            if self.w is None:
                self.w = gg.Variable(g.normal((3, 2), dtype=x.dtype), name="w")
            return x @ self.w

    for wrap in (lambda f: f, gg.function, lambda f: lambda x: gg.grad(gg.function(f))(x)):
        g, layer = gg.random.Generator(5), Lazy()
        f = wrap(lambda x, layer=layer: gg.sum(layer(x)))
        f(X), f(X)
        layer.w.assign(layer.w * 2)
        same(layer.w, 2 * gg.random.Generator(5).normal((3, 2), dtype=X.dtype))
        want = np.ones((4, 1)) * layer.w.numpy().sum(1)  # the gradient
        near(f(X), want if f(X).ndim else np.sum(want * X.numpy()))
        used = gg.random.Generator(5)
        used.normal((3, 2), dtype=X.dtype)  # drawn once
        assert g.state == used.state


class SaysBuiltFirst:
    """A layer that says that it is built before it creates its Variables, as Keras' optimizers."""

    built = False

    def __init__(self, generator, late=None):
        self.g, self.late = generator, late

    def __call__(self, x):
        if not self.built:
            self.built = True
            self.w = gg.Variable(self.g.normal((3, 2), dtype=x.dtype))
            self.double = gg.Variable(self.w * 2)
            self.b = gg.Variable(gg.zeros(2, dtype=x.dtype))
            self.b.assign_add(gg.ones(2, dtype=x.dtype))
        y = x @ self.w + self.b + gg.sum(self.double)
        if self.late == "length":  # which shapes do not tell
            y = y[gg.flatnonzero(y[:, 0] > -100)]
        if self.late == "error":
            raise RuntimeError("the user's")
        if self.late == "value":
            float(y[0, 0])
        return y + self.g.normal((2,), dtype=x.dtype)


@pytest.mark.parametrize("late", [None, "length", "error", "value"])
def test_an_object_that_says_it_is_built_before_its_variables_is_built_once(late):
    eager, traced = (SaysBuiltFirst(gg.random.Generator(3), late) for _ in range(2))
    f = gg.function(traced)
    for _ in range(3):
        if late in ("error", "value"):
            with contextlib.suppress(RuntimeError):
                eager(X)
            with pytest.raises((RuntimeError, TraceError)):
                f(X)
        else:
            near(f(X), eager(X))
        same(traced.w, eager.w)
        same(traced.double, eager.double)
    if late in (None, "length"):
        same(traced.b, eager.b)
        assert traced.g.state == eager.g.state
        assert f.cache_info().traces <= 2


def test_a_function_that_creates_variables_in_every_call_is_right_and_warns():
    @gg.function
    def f(x):
        v = gg.Variable([1.0, 2.0], name="inside")
        v.assign_add(x)
        return v * 1

    same(f(gg.ones(2)), [2, 3])
    with pytest.warns(UserWarning, match="creates Variables in every call, as 'inside'"):
        same(f(gg.ones(2)), [2, 3])


@pytest.mark.filterwarnings("ignore::RuntimeWarning")  # of the branch not taken
def test_effects_happen_once_where_a_gradient_is_nan_in_a_replay():
    def make():
        v, sgd, g = gg.Variable([1.0, 2.0]), gg.optim.SGD(0.5), gg.random.Generator(3)

        def step(x, late):
            noise = g.normal((2,)) + g.split(1)[0].normal((2,))
            first = x if late else masked_gradient(x)
            sgd.apply_gradients([(x + 1, v)])
            return first, masked_gradient(x), noise, g.normal((2,))

        return step, v, g

    for late in (False, True):
        (step, v, g), (traced, w, h) = make(), make()
        traced = gg.function(traced)
        for values in ([1.0, 2.0], [0.0, 2.0], [0.0, 1.0], [3.0, 1.0]):
            x = gg.constant(values)
            for a, b in zip(step(x, late), traced(x, late), strict=True):
                same(a, b)
            same(v, w)
            assert g.state == h.state
        assert traced.cache_info() == ((3, 1, 0) if late else (1, 2, 1))


@pytest.mark.usefixtures("numpy_replay")
def test_a_gradient_may_follow_an_optimizer_update():
    """Two updates in one step, as for a generator and its critic."""

    def make():
        v, w = (gg.Variable(np.ones((2, 2)) * k) for k in (1, 2))
        one, two = gg.optim.Adam(0.1), gg.optim.SGD(0.1, momentum=0.9)

        def step(x):
            one.minimize(lambda: gg.sum(gg.tanh(x @ v @ w)), [v])
            return two.minimize(lambda: -gg.sum(gg.tanh(x @ v @ w)), [w])

        return step, v, w

    (step, v, w), (traced, *others) = make(), make()
    traced = gg.function(traced)
    for k in range(4):
        x = gg.constant(np.arange(4.0).reshape(2, 2) / (k + 5))
        same_unless_compiled(step(x), traced(x))
        same_unless_compiled(v, others[0]), same_unless_compiled(w, others[1])
    assert traced.cache_info() == (3, 1, 0)


ASKS = {
    "numpy": lambda v: v.numpy(), "item": lambda v: v.item(), "tolist": lambda v: v.tolist(),
    "float": float, "int": int, "bool": lambda v: 1.0 if v else 2.0, "asarray": np.asarray,
    "comparison": lambda v: 1.0 if v > 1 else 2.0, "text": lambda v: float(str(v)),
    "format": lambda v: float(f"{v:.1f}"), "part": lambda v: v[...].item(),
}  # fmt: skip


@pytest.mark.parametrize("ask", ASKS.values(), ids=list(ASKS))
def test_a_variables_value_asked_for_in_a_trace_is_no_silent_constant(ask):
    v = gg.Variable(2.0)
    with pytest.raises(gg.errors.TraceError, match="a value was asked for"):
        gg.function(lambda x: x * ask(v))(X)
    assert v.numpy() == 2.0
