"""gg.cond, gg.while_loop, gg.scan and gg.debug.print: traced calls equal eager ones."""

import gc
import threading
import weakref

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from needs import needs_shim
from taping import taped

import gpugrad as gg
from gpugrad.core.listening import graphs, threads
from gpugrad.errors import ArgumentError, DTypeError, ShapeError, StructureError, TraceError
from gpugrad.function.passes import pass_names
from gpugrad.kernels.cpu import compiler

RNG = np.random.default_rng(0)
X = gg.constant(RNG.normal(size=3))
XS = gg.constant(RNG.normal(size=(5, 3)))
EACH = gg.constant(RNG.normal(size=(4, 3)))
A = gg.constant(RNG.normal(size=(3, 3)) * 0.5)
W = gg.Variable(RNG.normal(size=(3, 3)) * 0.5, name="w")


def near(a, b, tolerance=1e-10):
    """Assert that two structures have leaves of the same values and dtypes."""
    one, two = gg_leaves(a), gg_leaves(b)
    assert len(one) == len(two)
    for x, y in zip(one, two, strict=True):
        np.testing.assert_allclose(np.asarray(x), np.asarray(y), rtol=tolerance, atol=tolerance)
        assert getattr(x, "dtype", None) == getattr(y, "dtype", None)


def gg_leaves(structure):
    if isinstance(structure, dict):
        return [leaf for v in structure.values() for leaf in gg_leaves(v)]
    if isinstance(structure, (list, tuple)):
        return [leaf for v in structure for leaf in gg_leaves(v)]
    return [] if structure is None else [structure]


def total(structure):
    return sum(gg.sum(gg.sin(leaf)) for leaf in gg_leaves(structure))


# ---- results and derivatives -------------------------------------------------------------


def branches(x):
    """Both branches read captured values and return nested structures."""
    twice = x * 2
    return gg.cond(
        gg.sum(x) > 0,
        lambda a, k: {"a": gg.tanh(W @ a["b"]) * twice, "n": [k * gg.sum(x), 1]},
        lambda a, k: {"a": a["b"] ** 2 * gg.exp(-twice), "n": [gg.sum(A @ x) * k, 0]},
        {"b": x}, 3,
    )  # fmt: skip


def elman(x):
    """A recurrent network with nested outputs."""

    def step(carry, v):
        h, n = carry
        h = gg.tanh(W @ h + v * gg.sum(x))
        return (h, n + 1), {"h": h * 2, "n": n}

    return gg.scan(step, (gg.zeros(3, dtype="float64"), 0), XS * x)


def backwards(x):
    return gg.scan(lambda c, v: (c * v[0] + v[1], c), x, (XS, gg.cos(XS)), reverse=True)


def branch_in_scan(x):
    def step(c, v):
        c = gg.cond(gg.sum(c * v) > 0, lambda: gg.sin(c) + v, lambda: c * (A @ v))
        return c, gg.cond(c[0] > 0, lambda: c[0], lambda: gg.zeros((), dtype="float64"))

    return gg.scan(step, x, XS)


def counting(x):
    return gg.scan(lambda c, _: (gg.sin(c) * 2, None), x, None, length=4)


def doubling(x):
    """Its number of iterations depends on the values."""
    return gg.while_loop(
        lambda c: gg.sum(c[0] ** 2) < 100 + gg.sum(x), lambda c: (c[0] * 1.7 + A @ c[0], c[1] + 1),
        (x + 0.1, 0),
    )  # fmt: skip


def bounded(x):
    return gg.while_loop(lambda c: True, lambda c: gg.sin(c) * x, x, maximum_iterations=3)


def scan_in_branch_in_while(x):
    def body(c):
        return gg.cond(
            c[0] > 0, lambda c: gg.scan(lambda a, v: (a + v * c, None), c, XS)[0],
            lambda c: c * 1.5 + 0.1 * gg.scan(lambda a, v: (gg.tanh(a) + v, a), x, XS)[1][2], c,
        )  # fmt: skip

    return gg.while_loop(lambda c: gg.sum(gg.abs(c)) < 50, body, x * 2)


@gg.custom_gradient
def steep(x, y):
    """Reads a Variable, and has an argument without a gradient."""
    root = gg.sqrt(1 + x * x) + W[0]

    def gradient(g, variables):
        return (g * gg.sin(root) * y, None), [gg.ones_like(v) * gg.sum(g * x) for v in variables]

    return root, gradient


@gg.custom_jvp
def bent(x):
    return gg.sin(x)


@bent.defjvp
def _(primals, tangents):
    return bent(primals[0]), 3 * gg.cos(primals[0]) * tangents[0]


@gg.implicit_diff(lambda y, a: y**3 + y - a)
def solved(a):
    return gg.while_loop(
        lambda c: c[1] < 9,
        lambda c: (c[0] - (c[0] ** 3 + c[0] - a) / (3 * c[0] ** 2 + 1), c[1] + 1), (a, 0),
    )[0]  # fmt: skip


def custom_derivatives(x):
    again = gg.recompute_grad(lambda x, v: gg.tanh(W @ x) * gg.sum(v))
    rounded = gg.grad_pass_through(gg.round)

    def step(c, v):
        c = gg.cond(c[0] > 0, lambda c: steep(c, v) - bent(c * x), lambda c: again(c, x) + v, c)
        return 0.3 * rounded(c) + c, gg.grad(lambda c: gg.sum(bent(c) * steep(c, x)))(c)

    last, slopes = gg.scan(step, x, XS[:3])
    return last, slopes, gg.cond(x[0] > 0, lambda: solved(x), lambda: x)


FUNCTIONS = [branches, elman, backwards, branch_in_scan, counting, doubling, bounded,
             scan_in_branch_in_while, custom_derivatives]  # fmt: skip
POINTS = [X, -X, X * 0.3, -X * 2 + 0.1]


@pytest.mark.parametrize("f", FUNCTIONS, ids=lambda f: f.__name__)
def test_replay_equals_eager(f):
    traced = gg.function(f)
    for x in (*POINTS, *POINTS):
        near(traced(x), f(x))
    assert traced.cache_info().traces == 1


def gradients(f, *more):
    def g(x):
        with gg.GradientTape() as tape:
            tape.watch((x, *more))
            y = total(f(x))
        return y, tape.gradient(y, (x, W, *more), unconnected_gradients="zero")

    return g


def second(f, *more):
    return lambda x: gradients(gradients(f, *more), *more)(x)[1]


def tangent(f):
    return lambda x: gg.jvp(lambda x: total(f(x)), [x], [gg.cos(x)])[1]


def hvp(f):
    return lambda x: gg.hvp(lambda x: total(f(x)), [x], [gg.cos(x)])


def hessian(f):
    return lambda x: gg.hessian(lambda x: total(f(x)))(x)


ORDERS = [gradients, second, tangent, hvp, hessian]


@pytest.mark.parametrize("order", ORDERS, ids=lambda f: f.__name__)
@pytest.mark.parametrize("f", FUNCTIONS, ids=lambda f: f.__name__)
@pytest.mark.thin(2)
def test_derivatives_in_a_function_equal_eager(f, order):
    traced = gg.function(order(f))
    for x in POINTS:
        near(traced(x), order(f)(x))
    assert traced.cache_info() == (3, 1, 0)


@pytest.mark.parametrize("order", ORDERS, ids=lambda f: f.__name__)
@pytest.mark.parametrize("f", FUNCTIONS, ids=lambda f: f.__name__)
@pytest.mark.thin(2)
def test_derivatives_of_a_function_equal_eager(f, order):
    traced = order(gg.function(f))
    for x in POINTS[:2]:
        near(traced(x), order(f)(x))


@pytest.mark.parametrize("order", [gradients, second], ids=lambda f: f.__name__)
@pytest.mark.parametrize("f", FUNCTIONS, ids=lambda f: f.__name__)
@pytest.mark.thin(5)
def test_constants_that_a_tape_in_the_function_watches_have_gradients(f, order):
    def square(x):
        return f(gg.tanh(A) @ x)

    traced = gg.function(order(square, A))
    for x in POINTS:
        near(traced(x), order(square, A)(x))


def test_copies_of_a_constant_that_a_tape_in_the_function_watches_have_gradients_or_raise():
    again = gg.recompute_grad(lambda a, v: gg.sin(a) * v)  # which copies its arguments

    def f(a):
        return gg.scan(lambda c, v: (c + a * again(a, v), None), X * 0, XS)[0]

    for order in (gradients, second, tangent):
        near(gg.function(lambda order=order: order(f)(X))(), order(f)(X))
    with pytest.raises(TraceError, match=r"scan: .*copies.*gg\.positive"):
        gg.function(
            lambda: gradients(lambda a: gg.scan(lambda c, v: (c + gg.constant(a), v), X, XS)[0])(X)
        )()


def test_a_nested_gradient_reads_a_constant_that_a_tape_in_the_function_watches():
    def f(a, x):
        own = gg.custom_gradient(lambda x: (gg.sin(x), lambda g: g * a * x))
        return gg.sum(gg.scan(lambda c, v: (c + own(x * v), None), x * 0, XS)[0])

    def mixed(a, x):
        return gg.grad(lambda a: gg.sum(gg.grad(f, 1)(a, x)))(a)

    near(gg.function(mixed)(X, -X), mixed(X, -X))
    near(gg.function(lambda: mixed(X, -X))(), mixed(X, -X))


def test_an_error_in_a_custom_gradient_is_raised_only_if_it_is_taken():
    @gg.custom_gradient
    def f(x):
        def gradient(g):
            raise RuntimeError("no way back")

        return x * 2, gradient

    def looped(x):
        return gg.scan(lambda c, v: (f(c) * v, None), x, XS)[0]

    near(gg.function(looped)(X), looped(X))
    with pytest.raises(RuntimeError, match="no way back"):
        gg.function(gradients(looped))(X)


def drawing(x):
    """Random numbers in a body, in a body that never runs, and in a branch."""

    def step(c, v):
        return c + gg.random.normal(3, dtype="float64") * v, gg.sum(c)

    c, sums = gg.scan(step, x, XS)
    more = gg.scan(step, c, XS[:0])
    return gg.cond(gg.sum(x) > 0, lambda: c * gg.random.uniform((3,), dtype="float64"),
                   lambda: gg.scan(step, c, x[:, None])[0]), sums, more  # fmt: skip


@needs_shim
@pytest.mark.parametrize(
    ("f", "order"),
    [
        (branches, gradients),
        (scan_in_branch_in_while, gradients),
        (drawing, lambda f: f),
        (custom_derivatives, gradients),
    ],
    ids=["branches", "nested", "drawing", "custom"],
)
def test_replay_on_a_gpu_equals_eager(f, order, monkeypatch):
    with gg.device("cuda:0"):
        for name in ("XS", "A"):
            monkeypatch.setitem(globals(), name, globals()[name].to_device("cuda:0"))
        monkeypatch.setitem(globals(), "W", gg.Variable(W.numpy()))
        results = []
        for g in (order(f), gg.function(order(f)), order(gg.function(f))):
            gg.set_seed(3)
            outputs = [gg_leaves(g(x.to_device("cuda:0"))) for x in POINTS[:2] * 2]
            leaves = [t for one in outputs for t in one if isinstance(t, gg.Tensor)]
            results.append([t.numpy() for t in leaves])
    near(results[1], results[0])
    near(results[2], results[0])


def test_gradients_equal_finite_differences():
    for f in FUNCTIONS[:-1]:
        gg.testing.check_grads(gg.function(lambda x, f=f: total(f(x))), [X], order=1)


@pytest.mark.parametrize("passes", [(), *[(p,) for p in pass_names("both", "cpu")], None])
def test_every_pass_alone_equals_eager(passes):
    for f in (branches, branch_in_scan, doubling):
        traced = gg.function(gradients(f), passes=passes)
        for x in POINTS:
            near(traced(x), gradients(f)(x))


# ---- edge cases and effects --------------------------------------------------------------


def test_the_branch_not_taken_does_not_run():
    singular = gg.constant(np.zeros((3, 3)))

    @gg.function
    def f(x, m):
        return gg.cond(
            gg.any(m != 0), lambda: gg.linalg.cholesky(m) @ x,
            lambda: gg.while_loop(lambda c: gg.all(m == 0) & (c[0] < 3), lambda c: c + 1, x * 0),
        )  # fmt: skip

    for _ in range(2):
        near(f(X, singular), np.full(3, 3.0))
        near(f(X, gg.constant(np.eye(3) * 4)), 2 * X.numpy())
    assert f.cache_info().traces == 1


def test_a_loop_of_no_iterations_returns_its_initial_value():
    f = gg.function(lambda x: gg.while_loop(lambda c: c[0] > 1e9, lambda c: c / 0, x))
    g = gg.function(gg.grad(lambda x: gg.sum(gg.while_loop(lambda c: c[0] > 9, gg.sin, x) ** 2)))
    for x in (X, X + 10):
        near(f(x), x)
    for x in (X, X + 10):
        near(g(x), 2 * x.numpy() if x is X else np.sin(2 * x.numpy()))


@pytest.mark.parametrize("wrap", [lambda f: f, gg.function], ids=["eager", "function"])
def test_scan_of_length_zero(wrap):
    def f(x, xs):
        with gg.GradientTape() as tape:
            tape.watch((x, xs))
            c, ys = gg.scan(lambda c, v: (c * v, {"y": gg.stack([c, v])}), x, xs)
            z = gg.sum(c)
        return c, ys["y"], tape.gradient(z, (x, xs), unconnected_gradients="zero")

    c, ys, (gx, gxs) = wrap(f)(X, XS[:0])
    near(c, X)
    assert ys.shape == (0, 2, 3)
    near((gx, gxs), (np.ones(3), np.zeros((0, 3))))


def test_a_body_is_traced_once_for_a_loop_of_any_length():
    calls = []

    @gg.function
    def f(x):
        def body(c, v):
            calls.append(1)
            return c + v, None

        return gg.scan(body, x, gg.ones((1000, 3), dtype="float64"))[0]

    near(f(X), X.numpy() + 1000)
    assert len(calls) == 1
    assert len(f.lower(X).program.steps) == 1


def test_a_constant_pred_selects_a_branch_while_tracing():
    for pred in (True, np.True_, gg.constant(True), 1.0):
        f = gg.function(lambda x, pred=pred: gg.cond(pred, lambda: x * 2, lambda: x))
        near(f(X), 2 * X.numpy())
        assert "cond" not in str(f.lower(X))


def test_effects_in_branches_and_bodies_happen_at_each_run_in_order():
    def f(x):
        noise, _ = gg.scan(
            lambda c, _: (c + gg.random.normal(3, dtype="float64"), None), x, None, length=3
        )
        return gg.cond(gg.sum(x) > 0, lambda: noise * gg.random.uniform((3,), dtype="float64"),
                       lambda: noise)  # fmt: skip

    results = []
    for g in (f, gg.function(f)):
        gg.set_seed(3)
        results.append([g(x) for x in POINTS])
    near(*results)
    results = []
    for g in (gradients(f), gg.function(gradients(f)), gradients(gg.function(f))):
        gg.set_seed(3)
        results.append([g(x) for x in POINTS])
    near(results[0], results[1])
    near(results[0], results[2])
    with pytest.raises(TraceError, match="draw other numbers"):
        gg.function(second(f))(X)


def test_a_nan_gradient_is_that_of_the_masked_pass():
    def f(x):
        with gg.GradientTape() as tape:
            tape.watch(x)
            y, _ = gg.scan(
                lambda c, v: (c + gg.sum(gg.where(v > 0, gg.sqrt(gg.abs(v)), 0)), None), 0.0, x
            )
        return tape.gradient(y, x)

    traced = gg.function(f)
    for x in ([1.0, 2.0], [0.0, 2.0], [3.0, -2.0]):
        near(traced(gg.constant(x)), f(gg.constant(x)))


def test_a_gradient_inside_a_body_equals_eager():
    def newton(x):
        def step(c, _):
            g = gg.grad(lambda c: gg.sum(c**2 + gg.where(c > 0, gg.sqrt(gg.abs(c)), 0)))(c)
            return c - 0.1 * g, gg.sum(g)

        return gg.scan(step, x, None, length=3)

    traced = gg.function(newton)
    for x in (*POINTS, X * 0):
        near(traced(x), newton(x))
    near(gg.function(gradients(newton))(X), gradients(newton)(X))


def test_branches_and_bodies_may_write_only_to_their_own_tensors():
    def changed(x, value):
        x, y = x + 0, gg.zeros_like(x)
        x[0], y[1] = value, value
        x[1:] += gg.sum(x) * y[1:]
        return x

    def chosen(x):
        return gg.cond(gg.sum(x) > 0, lambda x: changed(x, 0.5), lambda x: changed(x * 2, x[1]), x)

    def looped(x):
        return gg.while_loop(
            lambda c: c[1] < 3, lambda c: (gg.tanh(changed(*c)), c[1] + 1), (x, 0.0)
        )[0]  # fmt: skip

    def scanned(x):
        return gg.scan(lambda c, v: (changed(c, v), changed(c * v, gg.sum(c))), x, x)

    for f in (chosen, looped, scanned):
        for g in (f, gradients(f)):
            traced = gg.function(g)
            for x in (X, -X):
                near(traced(x), g(x))

    def outer(x):
        def body(c, v):
            x[0] = v
            return c, v

        return gg.scan(body, 0.0, x)

    with pytest.raises(TraceError, match=r"test_control.py:\d+ writes to a Tensor"):
        gg.function(outer)(gg.constant([1.0, 2.0]))
    assert not graphs
    assert not threads.stack


@pytest.mark.usefixtures("numpy_replay")
@pytest.mark.parametrize(
    "f",
    [
        lambda x: gg.while_loop(lambda c: gg.sum(c) < 10, lambda c: c + 1, x),
        lambda x: gg.scan(lambda c, v: (c * v, None), x, gg.constant([0.5, 1.5]))[0],
        lambda x: gg.scan(lambda c, v: (c * v, None), 1.0, x)[0],
        lambda x: gg.cond(x[0] > 0, lambda x: x * 2, lambda x: x, x),
    ],
    ids=["while_loop", "scan's carry", "scan's xs", "cond"],
)
def test_loops_and_branches_accept_tensors_that_were_written_to(f):
    def write_first(v):
        x = gg.ones(2)
        x[0] = v
        refs.append(weakref.ref(x))
        return f(x)

    refs = []
    for g in (write_first, gradients(write_first)):
        traced = gg.function(g)
        for v in (2.0, -2.0, 3.0):
            near(traced(gg.constant(v)), g(gg.constant(v)))
        gc.collect()
        assert all(x() is None for x in refs)  # no program holds the initial value of its loop


def test_a_wrong_custom_gradient_raises_only_if_it_is_taken():
    @gg.custom_gradient
    def wrong(x):
        return x * 2, lambda g: (g, g, g)

    def f(x):
        start = gg.zeros(2)
        start[0] = x[0]  # the error must not hold this: written tensors must not outlive the trace
        return gg.scan(lambda c, e: (wrong(c), c), gg.sum(start), x)[1]

    x = gg.ones(3)
    near(gg.function(f)(x), f(x))
    with pytest.raises(StructureError, match="3 gradients for 1 arguments"):
        gg.function(gradients(f))(x)


# ---- Variables ---------------------------------------------------------------------------


def test_variables_are_read_at_each_run_and_watched():
    v, w = gg.Variable(2.0), gg.Variable(3.0)

    def f(x):
        with gg.GradientTape() as tape:
            y = gg.cond(gg.sum(x) > 0, lambda: v * gg.sum(x), lambda: v + w)
        return (
            y,
            tape.gradient(y, [v, w], unconnected_gradients="zero"),
            len(tape.watched_variables()),
        )

    traced = gg.function(f)
    for x in (gg.ones(2), -gg.ones(2)):
        y, (gv, gw), n = traced(x)
        s = gg.sum(x)
        near(y, v * s if s > 0 else v + w)
        assert float(gv) == (2.0 if s > 0 else 1.0)
        assert float(gw) == (0.0 if s > 0 else 1.0)
        assert n == 2
        v.assign(5.0)


@pytest.mark.parametrize("constant", [True, False])
@pytest.mark.parametrize("control", ["cond", "while_loop", "scan"])
def test_gradients_by_variables_that_were_assigned_before(control, constant):
    """A Variable that was assigned a constant is no constant for the tape."""

    def call(x, w):
        if control == "cond":
            return gg.cond(gg.sum(x) > 0, lambda: gg.sum(w @ x), lambda: gg.sum(w @ w @ x))
        if control == "while_loop":
            return gg.sum(gg.while_loop(lambda c: gg.sum(c * c) < 1e3, lambda c: 2 * c + w @ c, x))
        return gg.scan(lambda c, x: (c + gg.sum(w @ x), c), gg.sum(0 * x), gg.stack([x, 2 * x]))[0]

    weights = np.abs(W.numpy())

    def step_of(w):
        def step(x):
            with gg.GradientTape() as tape:
                w.assign(weights if constant else x * weights)
                y = call(x, w)
            return y, tape.gradient(y, w)

        return step

    traced = gg.function(step_of(gg.Variable(W)))
    eager = step_of(gg.Variable(W))
    for x in (X, -X, gg.abs(X)):
        near(traced(x), eager(x))


@pytest.mark.parametrize("where", ["cond", "scan", "while_loop"])
def test_assigning_a_variable_inside_is_refused_by_name(where):
    v = gg.Variable(1.0, name="counter")
    optimizer = gg.optim.SGD(0.1)

    def assign(c):
        v.assign_add(1.0)
        return c

    def optimize(c):
        optimizer.apply_gradients([(gg.ones(()), v)])
        return c

    flows = {
        "cond": lambda change, x: gg.cond(gg.sum(x) > 0, change, lambda c: c, x),
        "scan": lambda change, x: gg.scan(lambda c, _: (change(c), None), x, None, length=2),
        "while_loop": lambda change, x: gg.while_loop(lambda c: gg.sum(c) < 0, change, x),
    }
    for change in (assign, optimize):
        with pytest.raises(TraceError, match=rf"{where}.*'counter' is assigned"):
            gg.function(flows[where])(change, X)
    assert v.numpy() == 1


def test_a_variable_created_in_a_body_is_refused_by_name():
    f = gg.function(lambda x: gg.scan(lambda c, _: (c * gg.Variable(2.0), None), x, None, length=2))
    with pytest.raises(TraceError, match=r"scan.*creates the Variable"):
        f(gg.ones(3))


def test_lowering_before_a_call_has_no_effect(capsys):
    @gg.function
    def f(x):
        return gg.scan(lambda c, _: (c + gg.random.normal(3), None), x, None, length=2)[0]

    gg.set_seed(1)
    text = str(f.lower(gg.ones(3)))
    assert "random normal" in text
    first = f(gg.ones(3))
    gg.set_seed(1)
    near(f(gg.ones(3)), first)
    with pytest.raises(ArgumentError, match=r"print.*cannot be undone"):
        gg.function(lambda x: gg.cond(x[0] > 0, lambda: gg.debug.print("a"), lambda: None)).lower(X)
    assert not capsys.readouterr().out


# ---- errors ------------------------------------------------------------------------------

RETURNS = [
    (lambda x: {"a": x}, lambda x: {"b": x}, StructureError, "true_fn.*'a'.*false_fn.*'b'"),
    (lambda x: (x, x), lambda x: x, StructureError, "structure"),
    (lambda x: {"a": (x, x)}, lambda x: {"a": (x, x[:2])}, ShapeError,
     r"float64 \(3,\) at \['a'\]\[1\].*float64 \(2,\)"),
    (lambda x: x, lambda x: gg.astype(x, "float32"), DTypeError, "float64.*float32"),
    (lambda x: x, lambda x: None, StructureError, "None"),
    (lambda x: "one", lambda x: "two", StructureError, "'one'.*'two'"),
]  # fmt: skip


@pytest.mark.parametrize(("yes", "no", "error", "words"), RETURNS)
def test_branches_that_differ_raise_and_name_the_leaf(yes, no, error, words):
    f = gg.function(lambda x: gg.cond(gg.sum(x) > 0, yes, no, x))
    for x in (X, -X):
        with pytest.raises(error, match=words):
            f(x)
    with pytest.raises(error, match=words):
        gg.vmap(lambda x: gg.cond(x[0] > 0, yes, no, x))(XS)


CARRIES = [
    (lambda c: c[:2], ShapeError, r"init gives float64 \(3,\).*float64 \(2,\)"),
    (lambda c: gg.astype(c, "float32"), DTypeError, "float64.*float32"),
    (lambda c: (c, c), StructureError, "structure"),
]


@pytest.mark.parametrize("wrap", [lambda f: f, gg.function], ids=["eager", "function"])
@pytest.mark.parametrize(("body", "error", "words"), CARRIES)
def test_a_carry_that_changes_raises_and_names_the_change(wrap, body, error, words):
    with pytest.raises(error, match="scan.*" + words):
        wrap(lambda x: gg.scan(lambda c, _: (body(c), None), x, None, length=2))(X)
    with pytest.raises(error, match="while_loop.*" + words):
        wrap(lambda x: gg.while_loop(lambda c: gg.sum(c) < 99, body, x))(X)


@pytest.mark.parametrize("wrap", [lambda f: f, gg.function], ids=["eager", "function"])
def test_invalid_arguments_are_refused(wrap):
    with pytest.raises(ShapeError, match=r"pred must have one element.*\(3,\).*gg\.where"):
        wrap(lambda x: gg.cond(x > 0, lambda: x, lambda: x))(X)
    with pytest.raises(ShapeError, match=r"cond_fn.*\(3,\)"):
        wrap(lambda x: gg.while_loop(lambda c: c > 0, lambda c: c, x))(X)
    with pytest.raises(ShapeError, match="lengths along axis 0 differ"):
        wrap(lambda x: gg.scan(lambda c, v: (c, v), x, (x, x[:2])))(X)
    with pytest.raises(ShapeError, match="lengths along axis 0 differ"):
        wrap(lambda x: gg.scan(lambda c, v: (c, v), x, x, length=2))(X)
    with pytest.raises(ArgumentError, match="length="):
        wrap(lambda x: gg.scan(lambda c, v: (c, v), x, None))(X)
    with pytest.raises(StructureError, match="must return a pair"):
        wrap(lambda x: gg.scan(lambda c, v: c, x, x))(X)


def test_an_error_in_a_branch_is_raised_unchanged_and_leaves_variables_usable():
    v = gg.Variable([1.0, 2.0])

    def broken():
        v + 1
        raise ZeroDivisionError

    f = gg.function(lambda x: gg.cond(gg.sum(x) > 0, lambda: x, broken))
    with pytest.raises(ZeroDivisionError):
        f(X)
    near(v * 2, np.array([2.0, 4.0], "f4"))
    with gg.GradientTape() as tape:
        y = v * v
    near(tape.gradient(y, v), np.array([2.0, 4.0], "f4"))


@pytest.mark.parametrize("look", [str, "{}".format, print, float, lambda x: 1 if x[0] > 0 else 2])
def test_reading_a_traced_value_raises_and_names_alternatives(look):
    with pytest.raises(TraceError, match=r"gg\.cond.*gg\.while_loop.*gg\.scan.*gg\.debug\.print"):
        gg.function(lambda x: look(gg.sum(x) if look is float else x))(X)
    with pytest.raises(TraceError, match=r"test_control\.py.*gg\.cond"):
        gg.function(lambda x: gg.scan(lambda c, v: (c, look(v)), x, X if look is float else XS))(X)


# ---- vmap --------------------------------------------------------------------------------

MAPPED = [branches, elman, backwards, branch_in_scan, counting, doubling, bounded]


@pytest.mark.parametrize("f", MAPPED, ids=lambda f: f.__name__)
def test_vmap_equals_a_python_loop(f):
    def one_by_one(x):
        rows = [gg_leaves(f(v)) for v in x]
        return [gg.stack(column) for column in zip(*rows, strict=True)]

    mapped = gg.vmap(lambda x: gg_leaves(f(x)))
    near(mapped(EACH), one_by_one(EACH))
    traced = gg.function(mapped)
    for x in (EACH, -EACH, EACH * 0.5):
        near(traced(x), one_by_one(x))
    assert traced.cache_info() == (2, 1, 0)


@pytest.mark.parametrize("f", MAPPED, ids=lambda f: f.__name__)
def test_gradients_of_and_in_a_vmap_equal_eager(f):
    inside = gg.vmap(gg.grad(lambda x: total(f(x))))
    near(gg.function(inside)(EACH), gg.stack([gg.grad(lambda x: total(f(x)))(x) for x in EACH]))
    outside = gradients(gg.vmap(lambda x: gg_leaves(f(x))))
    traced = gg.function(outside)
    for x in (EACH, -EACH):
        near(traced(x), outside(x))


def recurrent(w, x):
    """A loss of weights that bodies and branches capture."""
    h, _ = gg.scan(lambda h, v: (gg.tanh(w @ h + gg.tanh(W) @ (v * x)), None), x, XS)
    h = gg.cond(gg.sum(w) > 0, lambda: w @ h, lambda: h * w[0])
    h = gg.while_loop(lambda h: gg.sum(h**2) < 10, lambda h: h * 1.5 + gg.abs(w[1]), h)
    return gg.sum(h**2)


@pytest.mark.parametrize("v", [A, -A], ids=["positive", "negative"])
def test_per_example_gradients_of_shared_weights_equal_eager(v):
    each = gg.vmap(gg.grad(recurrent, argnums=(0, 1)), in_axes=(None, 0))
    traced = gg.function(each)
    for w in (v, v * 0.5):
        near(traced(w, EACH), each(w, EACH))
    near(traced(v, EACH)[0][1], gg.grad(recurrent)(v, EACH[1]))

    def by_constant(x):
        tape, y = taped(lambda v: recurrent(v, x), v)
        return tape.gradient(y, (v, W))

    near(gg.function(gg.vmap(by_constant))(EACH), gg.vmap(by_constant)(EACH))

    def mean(w, x):
        return gg.mean(gg.vmap(recurrent, in_axes=(None, 0))(w, x))

    near(gg.function(gg.grad(mean))(v, EACH), gg.grad(mean)(v, EACH))


def test_nested_vmaps_equal_eager():
    def f(x, y):
        c, ys = gg.scan(lambda c, v: (gg.sin(c) + v * gg.sum(y), c * v), x, XS)
        return gg.while_loop(lambda c: gg.sum(c) < 9, lambda c: c + gg.abs(x) + 1, c), ys

    both = gg.vmap(gg.vmap(f, in_axes=(None, 0)), in_axes=(0, None))
    near(gg.function(both)(EACH, EACH[:2] * 2), both(EACH, EACH[:2] * 2))
    near(both(EACH, EACH[:2] * 2)[0][3, 1], f(EACH[3], EACH[1] * 2)[0])


# ---- printing ----------------------------------------------------------------------------


def test_print_prints_at_each_run_in_order_and_changes_nothing(capsys):
    v = gg.Variable(2.0)

    def f(x):
        gg.debug.print("x {:.1f} of {n}, v {v}", gg.sum(x), n="three", v=v)

        def step(c, k):
            gg.debug.print("step {:.0f}", k)
            return c + k, None

        c, _ = gg.scan(step, gg.sum(x), gg.arange(2, dtype="float32"))
        gg.cond(c > 0, lambda: gg.debug.print("positive"), lambda: gg.debug.print("not"))
        return c * v

    traced = gg.function(f)
    for x in (gg.ones(3), -gg.ones(3), gg.ones(3)):
        near(traced(x), f(x))
        one, two = np.array_split(capsys.readouterr().out.splitlines(), 2)
        assert list(one) == list(two)
    assert list(one) == ["x 3.0 of three, v 2.0", "step 0", "step 1", "positive"]
    assert traced.cache_info() == (2, 1, 0)
    for g in (gradients(f), gg.function(gradients(f)), gradients(traced)):
        for _ in range(2):
            near(g(gg.ones(3))[1][0], np.full(3, 2 * np.cos(8.0), "f4"), 1e-5)
            assert len(capsys.readouterr().out.splitlines()) == 4
    near(gg.function(hessian(f))(X), hessian(f)(X))


def test_print_under_vmap_has_a_line_for_each_example(capsys):
    def f(x):
        gg.debug.print("{} {}", x, 7)
        return gg.vmap(lambda y: gg.debug.print("{} {}", x, y) or y * x)(gg.arange(2))

    x = gg.constant([1.0, 2.0])
    expected = ["1.0 7", "2.0 7", "1.0 0", "1.0 1", "2.0 0", "2.0 1"]
    near(gg.vmap(f)(x), np.array([[0, 1], [0, 2]], "f4").astype(gg.vmap(f)(x).dtype))
    capsys.readouterr()
    traced = gg.function(gg.vmap(f))
    for g in (gg.vmap(f), traced, traced):
        g(x)
        assert capsys.readouterr().out.splitlines() == expected


# ---- text, memory, threads ---------------------------------------------------------------

TEXT = """\
inputs: in0 float64[2, 3]
Variable w float64[3]
t0 float64[3], t1 float64[2] = scan(const[3], in0, w)
    body:
        inputs: in0 float64[3], in1 float64[3], in2 float64[3]
        t0 float64[3] = multiply(in0, in2)
        t1 float64[3] = add(t0, in1)
        t2 float64[] = sum(t1)
        t3 bool[] = greater(t2, 0)
        t4 float64[] = cond(t3, t2, in1)
            true:
                inputs: in0 float64[], in1 float64[3]
                return in0
            false:
                inputs: in0 float64[], in1 float64[3]
                t0 float64[] = sum(in1)
                return t0
        return t1, t4
return t0, t1"""


@pytest.mark.usefixtures("numpy_replay")
def test_lowered_text_shows_nested_programs():
    w = gg.Variable(np.ones(3), name="w")

    @gg.function
    def f(xs):
        def body(c, x):
            c = c * w * 1 + x
            s = gg.sum(c)
            return c, gg.cond(s > 0, lambda: s, lambda: gg.sum(x))

        return gg.scan(body, gg.zeros(3, dtype="float64"), xs)

    f(XS[:2])
    assert str(f.lower(XS[:2])) == TEXT


def test_threads_may_run_one_loop_concurrently():
    traced = gg.function(gradients(branch_in_scan))
    inputs = [gg.constant(RNG.normal(size=3)) for _ in range(6)]
    wanted = [gradients(branch_in_scan)(x) for x in inputs]
    wrong = []

    def work(x, want):
        for _ in range(10):
            try:
                near(traced(x), want)
            except Exception as error:
                wrong.append(error)

    workers = [
        threading.Thread(target=work, args=pair) for pair in zip(inputs, wanted, strict=True)
    ]
    for t in workers:
        t.start()
    for t in workers:
        t.join()
    assert not wrong


def test_many_runs_do_not_leak_and_a_dropped_function_is_freed():
    traced = gg.function(gradients(branch_in_scan))
    for x in POINTS:
        traced(x)
    gc.collect()
    before = len(gc.get_objects())
    for _ in range(50):
        traced(X)
    gc.collect()
    assert len(gc.get_objects()) - before < 50
    gone = weakref.ref(next(iter(traced._plans.values())))
    del traced
    gc.collect()
    assert gone() is None


def test_results_and_values_kept_for_a_gradient_are_not_overwritten():
    def f(x):
        with gg.GradientTape() as tape:
            tape.watch(x)
            a = gg.tanh(x * 2)  # in a buffer, kept by the loop's tape
            c, _ = gg.scan(lambda c, v: (c * v, None), a, gg.stack([a, a]))
            for _ in range(5):
                x = gg.tanh(x) * 2
            y = gg.sum(c) + gg.sum(x)
        for _ in range(5):
            x = gg.tanh(x) * 2
        return a, c, x, tape.gradient(y, tape.watched_variables() or a)

    traced = gg.function(f)
    pairs = [(traced(x), f(x)) for x in POINTS]
    for a, b in pairs:
        near(a, b)


# ---- random programs ---------------------------------------------------------------------

STEPS = [gg.sin, lambda x: x * W[0], lambda x: A @ x, gg.tanh, lambda x: x[::-1] + 0.5]
FLOWS = [
    lambda f, g: lambda x: gg.cond(gg.sum(x) > 0, f, g, x),
    lambda f, g: lambda x: gg.scan(lambda c, v: (gg.tanh(f(c) + v), g(c)), x, XS[:2])[0],
    lambda f, g: lambda x: gg.scan(lambda c, v: (gg.tanh(c), g(v)), x, XS[:2], reverse=True)[1][0],
    lambda f, g: lambda x: gg.while_loop(
        lambda c: gg.sum(c[0]) < 2, lambda c: (gg.tanh(f(c[0])), c[1] + 1), (g(x), 0),
        maximum_iterations=2,
    )[0],
    lambda f, g: lambda x: gg.vmap(lambda y: gg.tanh(f(x) * y))(g(x)[:2])[1],
    lambda f, g: lambda x: g(f(x)),
]  # fmt: skip


@st.composite
def flows(draw, depth=3):
    if not depth or draw(st.integers(0, 3)) == 0:
        return draw(st.sampled_from(STEPS))
    flow = draw(st.sampled_from(FLOWS))
    return flow(draw(flows(depth - 1)), draw(flows(depth - 1)))


@settings(max_examples=10, deadline=None)
@given(flows())
def test_random_nestings_and_their_gradients_equal_eager(f):
    one, two = gg.function(gradients(f)), gg.function(f)
    for x in (X, -X):
        near(one(x), gradients(f)(x), 1e-8)
        near(gradients(two)(x), gradients(f)(x), 1e-8)
        near(gg.function(tangent(f))(x), tangent(f)(x), 1e-8)


INNER = {
    "cond": lambda x: gg.cond(gg.sum(x) > 0, lambda x: gg.sum(gg.sin(x)), gg.sum, x),
    "while_loop": lambda x: gg.sum(gg.while_loop(lambda c: c[1] < 2, twice_tanh, (x, 0))[0]),
    "scan": lambda x: gg.sum(gg.scan(lambda c, _: (gg.tanh(c), None), x, None, length=2)[0]),
}


def twice_tanh(carry):
    x, k = carry
    return gg.tanh(gg.tanh(x)), k + 1


@pytest.mark.parametrize("inner", INNER)
@pytest.mark.parametrize("outer", ["cond", "scan"])
def test_a_gradient_within_a_branch_or_body_has_a_gradient(inner, outer):
    def slope(x):
        return gg.sum(gg.grad(INNER[inner])(x) ** 2)

    def loss(x):
        if outer == "cond":
            return gg.cond(gg.sum(x) > 0, slope, gg.sum, x)
        return gg.scan(lambda total, _: (total + slope(x), None), 0.0, None, length=2)[0]

    x = gg.constant([0.5, 0.25])
    actual, desired = gg.function(gg.grad(loss))(x), gg.grad(loss)(x)
    assert desired.numpy().all()
    near(actual, desired, 1e-6)


@pytest.mark.parametrize("inner", INNER)
@pytest.mark.parametrize("outer", ["cond", "scan"])
def test_a_value_within_a_branch_or_body_has_a_gradient_beside_its_own_gradient(inner, outer):
    def both(x):
        tape, y = taped(lambda x: INNER[inner](x), x)
        return gg.sum(tape.gradient(y, x) ** 2) + y * y

    def loss(x):
        if outer == "cond":
            return gg.cond(gg.sum(x) > 0, both, gg.sum, x)
        return gg.scan(lambda total, _: (total + both(x), None), 0.0, None, length=2)[0]

    x = gg.constant([0.5, 0.25])
    tolerance = 1e-5 if compiler.setting() == "always" else 1e-6
    near(gg.function(gg.grad(loss))(x), gg.grad(loss)(x), tolerance)
    near(gg.grad(gg.function(loss))(x), gg.grad(loss)(x), tolerance)


def test_a_bfloat16_scan_is_differentiated_through_an_op_that_gives_float32():
    x = gg.constant([0.5, -1.0], "bfloat16")

    def f(x):
        last, _ = gg.scan(lambda c, z: (gg.tanh(c * 0.5 + z), c * 1), x, gg.stack([x, x]))
        return gg.erf(last)

    grads = []
    for wrap in (lambda f: f, gg.function):
        with gg.GradientTape() as tape:
            tape.watch(x)
            y = wrap(f)(x)
        grads.append(tape.gradient(y, x).numpy().astype(np.float32))
    np.testing.assert_allclose(*grads, rtol=2e-2)


@pytest.mark.parametrize("run", [lambda f: f, gg.function], ids=["eager", "traced"])
def test_branches_and_bodies_write_to_copies_of_their_arguments(run):
    def body(carry):
        i, x = carry
        x += 1
        x[0] *= 2
        i += 1
        return i, x

    def step(carry, x):
        carry += x
        x *= 2
        return carry, x

    def double(x):
        x *= 2
        return x

    def f(x):
        loop = gg.while_loop(lambda carry: carry[0] < 3, body, (gg.constant(0), x))[1]
        carry, ys = gg.scan(step, x[0], x)
        one = gg.cond(gg.sum(x) > 0, double, double, x)
        return loop, carry, ys, one, gg.cond(True, double, double, x), x * 1

    x = gg.constant([1.0, 2.0, 3.0])
    loop, carry, ys, one, other, now = run(f)(x)
    assert loop.tolist() == [22, 5, 6]
    assert carry.item() == 7
    assert ys.tolist() == one.tolist() == other.tolist() == [2, 4, 6]
    assert now.tolist() == x.tolist() == [1, 2, 3]


def test_a_body_that_writes_runs_on_after_other_examples_are_done():
    def body(x):
        x += 1
        return x

    f = gg.vmap(lambda x: gg.while_loop(lambda x: x < 2.5, body, x))
    assert f(gg.constant([0.0, 1.0, 5.0])).tolist() == [3, 3, 5]


def test_branches_read_views_of_what_was_written_outside():
    def f(x):
        y = x * 2
        v, w = y[1:], y.reshape(-1)

        def yes():
            return gg.sum(y * y) + gg.sum(v * 3) + gg.sum(w[0] * v)

        y[0] = gg.cond(gg.sum(x) > 0, yes, lambda: gg.sum(v))
        first = gg.cond(gg.sum(x) > 0, yes, lambda: gg.sum(v))
        far = lambda c: c < 1000.0  # noqa: E731
        return gg.while_loop(far, lambda c: c + gg.sum(v * y[0]) + gg.sum(w), first)

    x = gg.constant([1.0, 2.0, 3.0])
    traced = gg.function(f)
    assert [traced(x).item() for _ in range(2)] == [f(x).item()] * 2
    assert gg.grad(traced)(x).tolist() == gg.grad(f)(x).tolist()
    assert gg.hessian(traced)(x).tolist() == gg.hessian(f)(x).tolist()
