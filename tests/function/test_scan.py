"""`scan` as a loop over plain arrays: in C if the body is, and its gradient as another loop."""

import gc
import threading
import weakref

import numpy as np
import pytest
from comparing import near

import gpugrad as gg
from gpugrad.errors import IndexOutOfBoundsError
from gpugrad.function.control import control_step, loop_gradient, scanning
from gpugrad.function.control.loop_gradient import Repeated
from gpugrad.function.cpu import c_program, loop_memory
from gpugrad.function.cpu.c_loop import CLoop
from gpugrad.function.cpu.runs import in_runs
from gpugrad.kernels.cpu import compiler

N, BATCH, WIDTH = 6, 4, 5

HAS_COMPILER = not compiler.status().startswith("C kernels: none")


@pytest.fixture(params=["0", "1", "always"])
def setting(request, monkeypatch):
    """How kernels are compiled; see `GPUGRAD_CPU_KERNELS`."""
    monkeypatch.setattr(c_program, "setting", lambda: request.param)
    return request.param


@pytest.fixture
def loops(monkeypatch):
    """The gradients of loops that were traced, in order; None for one that needs a tape."""
    traced, trace = [], scanning.Scan._traced

    def noted(self, *args):
        traced.append(trace(self, *args))
        return traced[-1]

    monkeypatch.setattr(scanning.Scan, "_traced", noted)
    return traced


def arrays(dtype=np.float64):
    rng = np.random.default_rng(0)
    shapes = {"x": (N, BATCH, WIDTH), "h": (BATCH, WIDTH), "w": (WIDTH, WIDTH), "b": (WIDTH,)}
    shapes |= {"gates": (2 * WIDTH, 4 * WIDTH), "s": ()}
    return {k: gg.constant((rng.normal(size=s) * 0.5).astype(dtype)) for k, s in shapes.items()}


def elman(p, h, x):
    h = gg.tanh(x @ p["w"] + h @ gg.transpose(p["w"]) + p["b"])
    return h, h


def lstm(p, carry, x):
    h, c = carry
    z = gg.concat([x, h], axis=1) @ p["gates"]
    i, f, g, o = (z[:, k * WIDTH : (k + 1) * WIDTH] for k in range(4))
    c = gg.sigmoid(f) * c + gg.sigmoid(i) * gg.tanh(g)
    return (gg.sigmoid(o) * gg.tanh(c), c), None


def counted(p, carry, x):
    """An integer, a value of no axes, and one that stays the same in the carry."""
    h, k, total, same = carry
    h = h * 0.9 + x * gg.astype(k, h.dtype) @ p["w"] * p["s"]
    return (h, k + 1, total + gg.sum(h), same), (same, total, h[:, ::2])


def deep(p, h, x):
    """Products of stacks, and of a matrix with itself."""
    y = gg.stack([x, h]) @ p["w"]
    scores = gg.sum(gg.softmax(h * p["b"])) + gg.sum(gg.logsumexp(h * p["b"], axis=1))
    return h + gg.sum(y, axis=0) * 0.1, gg.transpose(x) @ x + scores


def sorts(p, h, x):
    """Steps that are functions of arrays in C."""
    y = gg.sort(x @ p["w"], axis=1) + gg.sort(x, axis=0, descending=True)
    order = gg.argsort(x, axis=1)
    y = y + gg.take_along_axis(h, order, axis=1) * gg.astype(gg.argmax(h, axis=1)[:, None], h.dtype)
    y = gg.where(gg.all(x > -0.5, axis=1, keepdims=True), y, gg.where(gg.any(h > 0, axis=0), -y, h))
    return h + 0.1 * y, gg.cumsum(h * p["s"], axis=0)


def indexed(p, carry, x):
    """Reads and writes at places that differ between steps, and at fixed ones."""
    h, k = carry
    row, column = h[k % BATCH], gg.take(x, gg.stack([k % WIDTH, -1]), axis=1)
    y = gg.index_add(h * p["s"], gg.stack([row, row]), index=(gg.stack([k % BATCH, k % 2]),))
    y[k % BATCH] = row * 0.5
    y[1, 2:4] = p["b"][:2] * x[0, 0]
    y = y + gg.index_add(x, h[:2], index=[1, 1, 0][:2]) + gg.sum(column)
    return (gg.tanh(y), k + gg.astype(gg.any(row > 0), k.dtype) + 1), y[[3, 0, 0]]


def moved(p, h, x):
    """Steps that only move elements; products of vectors; a sum over axes in the middle."""
    y = gg.roll(h, 1, axis=1) + gg.pad(x[1:, :-2], ((0, 1), (1, 1)), "reflect")
    y = y + gg.repeat(gg.flip(h[:, :1], axis=0), WIDTH, axis=1) + gg.tile(h[1:2], (BATCH, 1))
    one, *rest = gg.split(y, WIDTH, axis=1)
    y = gg.concat([*rest, gg.where(x[:, :1] > 0, one, -one)], axis=1) @ p["w"]
    v = gg.einsum("i,ij->j", p["b"], p["w"]) + p["w"] @ x[0] + h[0] * (h[1] @ p["b"])
    return gg.tanh(y + v + gg.einsum("ij,kj->ik", h, p["w"])), gg.diagonal(y)


def left(p, h, x):
    """Steps of Python, between others."""
    m = x @ gg.transpose(x) + 3 * gg.eye(BATCH, dtype=x.dtype)
    return gg.tanh(gg.linalg.solve(m, h) @ p["w"]), gg.cumprod(h, axis=1)


def products_alone(p, h, x):
    return h @ p["w"], x


def forgets(p, h, x):
    """The carry that is returned does not depend on the one that is taken."""
    return x * p["b"], gg.sum(h, axis=0) * 2


def nested(p, h, x):
    """A loop in the body, and the gradient of one."""

    def inner(h):
        return gg.scan(lambda c, v: (gg.tanh(c @ p["w"] + v), c[0, 0]), h, x, reverse=True)

    slope = gg.grad(lambda h: gg.sum(inner(h)[0] ** 2))(h)
    last, ys = inner(h + p["b"])
    return last * p["s"] + 0.1 * slope, ys


def chosen(p, h, x):
    """Control flow that depends on values."""

    def inner(h):
        return gg.cond(x[0, 0] > 0, lambda h: h @ p["w"], lambda h: gg.sin(h) - p["b"], h)

    slope = gg.grad(lambda h: gg.sum(inner(h) ** 2))(h)
    return inner(h * p["s"]) + 0.1 * slope, gg.sum(h)


def halved(p, h, x):
    """A loop of as many iterations as values say."""
    y = gg.while_loop(lambda y: gg.sum(y * y) > 0.3, lambda y: y * 0.5 + 0.1 * p["s"] * x, h)
    last = gg.while_loop(lambda k: k < 3, lambda k: k + 1, gg.argmax(y), maximum_iterations=2)
    return y, gg.astype(last, y.dtype)


def halved_in_halved(p, h, x):
    """Loops of unknown length in one another, in a branch, and with a branch or a scan in them."""

    def smaller(y):
        y = gg.while_loop(lambda y: gg.max(y) > 0.4, lambda y: y * 0.8 - 0.02 * p["b"], y)
        y = gg.cond(gg.sum(y) > 0, lambda y: y * p["s"], lambda y: gg.sin(y), y)
        return gg.scan(lambda y, v: (y * 0.8 + 0.01 * v, None), y, p["w"])[0]

    def many(h):
        k, y = gg.while_loop(
            lambda c: gg.sum(c[1] ** 2) > 1e-3, lambda c: (c[0] + 1, c[1] * 0.9 + x * 0), (0, h + x)
        )
        return y * gg.astype(k, y.dtype)

    y = gg.while_loop(lambda y: gg.sum(y * y) > 0.1, smaller, h, maximum_iterations=3)
    return gg.cond(x[0, 0] > 0, many, lambda h: h * 0.5, h) + y, None


BODIES = {
    elman: lambda p: p["h"],
    lstm: lambda p: (p["h"], gg.zeros_like(p["h"])),
    counted: lambda p: (p["h"], gg.constant(0), gg.zeros_like(p["s"]), p["b"]),
    deep: lambda p: p["h"],
    sorts: lambda p: p["h"],
    indexed: lambda p: (p["h"], gg.constant(0)),
    moved: lambda p: p["h"],
    left: lambda p: p["h"],
    products_alone: lambda p: p["h"],
    forgets: lambda p: p["h"],
}  # fmt: skip


def scanned(body, p, reverse=False):
    first = BODIES[body](p) if body in BODIES else p["h"]
    return gg.scan(lambda c, x: body(p, c, x), first, p["x"], reverse=reverse)


def leaves(structure):
    if isinstance(structure, (tuple, list)):
        return [leaf for part in structure for leaf in leaves(part)]
    return [] if structure is None else [structure]


def loss(body, p, reverse):
    outs = [out for out in leaves(scanned(body, p, reverse)) if out.dtype.kind != "i"]
    return sum(gg.sum(gg.sin(out)) for out in outs)


def gradients(body, names, reverse=False):
    def f(p):
        with gg.GradientTape() as tape:
            tape.watch([p[name] for name in names])
            y = loss(body, p, reverse)
        return [y, *tape.gradient(y, [p[name] for name in names], unconnected_gradients="zero")]

    return f


@pytest.mark.parametrize("reverse", [False, True])
@pytest.mark.parametrize("body", BODIES, ids=lambda f: f.__name__)
@pytest.mark.thin(5)
def test_a_loop_returns_what_python_does(body, reverse, setting):
    p = arrays()
    f = gg.function(lambda p: scanned(body, p, reverse))
    for _ in range(2):
        for a, b in zip(leaves(f(p)), leaves(scanned(body, p, reverse)), strict=True):
            near(a, b, 1e-12)


@pytest.mark.parametrize("reverse", [False, True])
@pytest.mark.parametrize("names", [["x", "h", "w", "b", "gates", "s"], ["w"], ["x"], ["h", "b"]])
@pytest.mark.parametrize("body", BODIES, ids=lambda f: f.__name__)
@pytest.mark.thin(9)
def test_gradients_of_a_loop_are_those_of_python(body, names, reverse, setting):
    p, f = arrays(), gradients(body, names, reverse)
    traced = gg.function(f)
    for _ in range(2):
        for a, b in zip(traced(p), f(p), strict=True):
            near(a, b, 1e-12)


@pytest.mark.parametrize("body", BODIES, ids=lambda f: f.__name__)
@pytest.mark.thin(5)
def test_second_gradients_of_a_loop_are_those_of_python(body, setting):
    p, first = arrays(), gradients(body, ["w", "h"])

    def f(p):
        with gg.GradientTape() as tape:
            tape.watch([p["w"], p["x"]])
            y = sum(gg.sum(g * g) for g in first(p)[1:])
        return tape.gradient(y, [p["w"], p["x"]], unconnected_gradients="zero")

    for a, b in zip(gg.function(f)(p), f(p), strict=True):
        near(a, b, 1e-11)


def second(p, body):
    def f(w, x):
        y, *first = gradients(body, ["w", "h"])({**p, "w": w, "x": x})
        return y + sum(gg.sum(g * g) for g in first)

    return gg.grad(f, argnums=(0, 1))(p["w"], p["x"])


def jacobians(p, body):
    def last(b):
        return leaves(scanned(body, {**p, "b": b}))[0]

    return [gg.jacobian(last, mode=mode)(p["b"]) for mode in ("reverse", "forward")]


def hessian(p, body):
    return [gg.hessian(lambda b: loss(body, {**p, "b": b}, True))(p["b"])]


def each_gradient(p, body):
    each = gg.vmap(
        gg.grad(lambda b, s: loss(body, {**p, "b": b, "s": s}, False)), in_axes=(0, None)
    )
    return [each(gg.stack([p["b"], -p["b"]]), p["s"])]


DERIVATIVES = [second, jacobians, hessian, each_gradient]


@pytest.mark.parametrize(
    ("body", "derivative", "compiled"),
    [
        *((body, f, "0") for body in (*BODIES, nested, chosen) for f in DERIVATIVES),
        *((body, second, "always") for body in (elman, indexed, chosen)),
        (nested, hessian, "always"),
    ],
)
@pytest.mark.thin(18)
def test_derivatives_of_a_loop_are_loops(body, derivative, compiled, monkeypatch):
    monkeypatch.setattr(c_program, "setting", lambda: compiled)
    p = arrays()
    expected = derivative(p, body)

    def fails(*args):
        raise AssertionError("a loop runs op by op, or for one example after the other")

    monkeypatch.setattr(scanning, "scan_slices", fails)
    monkeypatch.setattr(control_step, "_call_for_each", fails)
    f = gg.function(lambda p: derivative(p, body))
    for _ in range(2):
        for a, b in zip(f(p), expected, strict=True):
            near(a, b, 1e-11)


@pytest.mark.skipif(not HAS_COMPILER, reason="needs a C++ compiler")
def test_threads_share_a_loop_within_a_loop(monkeypatch):
    monkeypatch.setattr(c_program, "setting", lambda: "always")
    x, table = gg.constant(np.linspace(0, 1, 40)), gg.arange(5.0, dtype="float64")
    steps = gg.arange(50)

    @gg.function
    def f(x, at):
        def outer(c, v):
            return gg.scan(lambda c, k: (gg.sin(c) + v + table[at], None), c, steps)[0], c

        return gg.scan(outer, x[0], x)[1]

    expected, results = f(x, gg.constant(2)), []
    runs = [lambda: results.append(f(x, gg.constant(2)))] * 4
    threads = [threading.Thread(target=run) for run in runs]
    for act in (threading.Thread.start, threading.Thread.join):
        for thread in threads:
            act(thread)
    for result in results:
        near(result, expected, 0)
    with pytest.raises(IndexOutOfBoundsError, match="getitem: index 7 is out of bounds"):
        f(x, gg.constant(7))
    near(f(x, gg.constant(2)), expected, 0)


@pytest.mark.parametrize("body", [elman, lstm, deep], ids=lambda f: f.__name__)
@pytest.mark.thin(3)
def test_examples_of_a_vmap_are_as_by_themselves(body, setting):
    p = arrays()
    many = gg.stack([p["x"], p["x"] * 0.5, -p["x"]])
    f = gg.vmap(lambda x: gradients(body, ["w", "x"])({**p, "x": x})[0])
    near(gg.function(f)(many), f(many), 1e-12)
    g = gg.vmap(gg.grad(lambda x: loss(body, {**p, "x": x}, True)))
    near(gg.function(g)(many), g(many), 1e-12)


@pytest.mark.parametrize("dtype", ["float32", "float16", "bfloat16"])
def test_narrow_floats_are_near_those_of_python(dtype, setting):
    p = {k: gg.astype(v, dtype) for k, v in arrays().items()}
    f = gradients(lstm, ["gates", "x"])
    for a, b in zip(gg.function(f)(p), f(p), strict=True):
        assert a.dtype == b.dtype == gg.astype(a, dtype).dtype
        near(gg.astype(a, "float64"), gg.astype(b, "float64"), 1e-6 if dtype == "float32" else 0.05)


@pytest.mark.skipif(not HAS_COMPILER, reason="needs a C++ compiler")
@pytest.mark.parametrize("body", [*BODIES, nested, chosen], ids=lambda f: f.__name__)
@pytest.mark.thin(2)
def test_a_loop_is_one_call_and_python_computes_little_in_it(body, loops, monkeypatch):
    monkeypatch.setattr(c_program, "setting", lambda: "always")
    gg.function(gradients(body, ["w", "gates", "x"]))(arrays())
    (loop,) = (loop for loop in loops if loop._times == N)
    for repeated in (loop._forward, loop._backward):
        assert isinstance(repeated._in_c, CLoop)
        compiled = repeated._in_c._compiled
        names = {s.name for s in compiled.program.steps if id(s) in compiled.left}
        assert names <= LEFT.get(body, set())


@pytest.mark.skipif(not HAS_COMPILER, reason="needs a C++ compiler")
@pytest.mark.parametrize(
    ("body", "name", "copies"), [(elman, "w", [1, 0]), (lstm, "gates", [0, 1])]
)
def test_a_weight_that_products_read_transposed_is_copied_once(
    body, name, copies, loops, monkeypatch
):
    monkeypatch.setattr(c_program, "setting", lambda: "always")
    gg.function(gradients(body, [name]))(arrays())
    (loop,) = loops
    both = [repeated._in_c.body for repeated in (loop._forward, loop._backward)]
    assert [len(body.transposes) for body in both] == copies


def test_a_vector_of_a_weight_in_a_product_of_stacks_is_no_transpose(monkeypatch):
    monkeypatch.setattr(c_program, "setting", lambda: "always")
    p = arrays()
    f = gradients(lambda p, h, x: (h + gg.sum(gg.stack([x, h]) @ p["w"][:, 0]), x), ["w"])
    for a, b in zip(gg.function(f)(p), f(p), strict=True):
        near(a, b, 1e-12)


@pytest.mark.skipif(not HAS_COMPILER, reason="needs a C++ compiler")
def test_a_while_loop_in_a_body_is_one_step_in_c(loops, monkeypatch):
    monkeypatch.setattr(c_program, "setting", lambda: "always")
    p, compiled = arrays(), []
    load = CLoop.load
    monkeypatch.setattr(CLoop, "load", lambda self: compiled.append(self) or load(self))
    f = gg.function(lambda p: leaves(scanned(halved, p)))
    for a, b in zip(f(p), leaves(scanned(halved, p)), strict=True):
        near(a, b, 1e-12)
    assert len(compiled) == 5  # two tests and two bodies, and the loop
    assert not any(loop.has_left for loop in compiled)
    f = gradients(halved, ["w", "s", "x"])
    for a, b in zip(gg.function(f)(p), f(p), strict=True):
        near(a, b, 1e-12)
    (loop,) = loops
    assert isinstance(loop._forward._in_c, CLoop)
    assert isinstance(loop._backward._in_c, CLoop)
    assert not any(loop.has_left for loop in compiled)


@pytest.mark.slow
@pytest.mark.parametrize("derivative", [lambda p, f: gradients(f, [*"whxbs"])(p), *DERIVATIVES])
@pytest.mark.parametrize("body", [halved, halved_in_halved], ids=lambda f: f.__name__)
def test_derivatives_of_loops_of_unknown_length_are_those_of_python(body, derivative, setting):
    p = arrays()
    f = gg.function(lambda p: derivative(p, body))
    for _ in range(2):
        for a, b in zip(f(p), derivative(p, body), strict=True):
            near(a, b, 1e-11)


def test_a_loop_in_a_body_runs_once_for_its_value_and_its_gradient():
    xs = gg.constant(np.ones((2, 3)))

    def body(c, x):
        def last(c):
            return gg.sum(gg.scan(lambda c, v: (gg.sin(c) * v, None), c, xs)[0])

        y, slope = gg.value_and_grad(last)(c)
        return slope * x, y

    text = str(gg.function(lambda c: gg.scan(body, c, xs)).lower(xs[0]))
    assert text.count("= scan(") == 3  # the outer one, and forward and back


LEFT = {
    left: {"solve", "cumulative_prod", "recurrence"},
    sorts: {"argsort"},  # descending
    deep: {"sum_of_products"},
}
"""Steps that only Python computes."""


def test_an_error_within_a_loop_in_c_is_that_of_the_op(monkeypatch):
    monkeypatch.setattr(c_program, "setting", lambda: "always")
    table = gg.arange(5.0)
    f = gg.function(lambda at: gg.scan(lambda c, k: (c + table[k], c), 0.0, at)[0])
    assert f(gg.constant([1, 4, -5])).item() == 5
    for bad in (5, -6):
        with pytest.raises(IndexOutOfBoundsError, match=rf"getitem: index {bad} is out of bounds"):
            f(gg.constant([1, bad, 0]))
    assert f(gg.constant([1, 4, -5])).item() == 5


@pytest.mark.parametrize(("body", "names"), [(elman, "w"), (lstm, "gates"), (deep, "w")])
def test_gradients_of_weights_are_one_product_after_the_loop(body, names, loops, setting):
    gg.function(gradients(body, [names]))(arrays())
    (loop,) = loops
    (terms,) = loop._terms.values()
    assert {type(term) for term in terms} == {loop_gradient._Product}


def test_products_of_large_factors_are_summed_in_the_loop(loops, monkeypatch, setting):
    monkeypatch.setattr(loop_gradient, "STACKED", 100)
    p, f = arrays(), gradients(lstm, ["gates"])
    for a, b in zip(gg.function(f)(p), f(p), strict=True):
        near(a, b, 1e-12)
    (terms,) = loops[0]._terms.values()
    assert {type(term) for term in terms} == {loop_gradient._Sum}


def test_a_nan_gradient_is_that_of_the_masked_pass(setting):
    def f(x, w):
        def body(c, v):
            return gg.where(v > 0, gg.sqrt(gg.where(v > 0, v, v * 0)) * w + c, c), None

        return gg.sum(gg.scan(body, gg.zeros_like(x[0]), x)[0])

    x = gg.constant([[1.0, 4.0], [-1.0, 2.0], [0.5, 0.0]])
    g = gg.grad(f, argnums=(0, 1))
    w = gg.constant([1.0, 3.0])
    for a, b in zip(gg.function(g)(x, w), g(x, w), strict=True):
        assert np.isfinite(a.numpy()).all()
        near(a, b, 1e-12)


def test_bodies_that_draw_numbers_have_gradients(loops, setting):
    gg.set_seed(3)

    def f(x):
        def body(c, v):
            return c + v * gg.random.normal((WIDTH,), dtype=v.dtype), None

        return gg.scan(body, x[0], x)[0]

    g = gg.function(gg.grad(lambda x: gg.sum(f(x))))
    x = arrays()["x"][:, 0]
    assert not np.array_equal(g(x).numpy(), g(x).numpy())
    assert not loops


def test_arguments_and_earlier_results_are_not_written_to(setting):
    p = arrays()
    before = {k: v.numpy().copy() for k, v in p.items()}
    f = gg.function(gradients(lstm, ["gates", "x", "h"]))
    first = f(p)
    kept = [a.numpy().copy() for a in first]
    f({k: v * 2 for k, v in p.items()})
    for a, b in zip(first, kept, strict=True):
        np.testing.assert_array_equal(a.numpy(), b)
    for k, v in before.items():
        np.testing.assert_array_equal(p[k].numpy(), v)


def test_a_long_loop_is_several_calls(setting):
    x = gg.constant(np.linspace(0, 1, 1000))
    f = gg.function(lambda x: gg.scan(lambda c, v: (c * 0.9 + v, c), x[0] * 0, x))
    c, cs = 0.0, []
    for v in x.tolist():
        cs.append(c)
        c = c * 0.9 + v
    last, ys = f(x)
    np.testing.assert_allclose(last.numpy(), c, rtol=1e-12)
    np.testing.assert_allclose(ys.numpy(), cs, rtol=1e-12)


@pytest.mark.skipif(not HAS_COMPILER, reason="needs a C++ compiler")
@pytest.mark.parametrize(
    ("f", "shape", "moves"),
    [
        (lambda x: gg.roll(x, 1), (3, 4), True),
        (lambda x: gg.repeat(x, 2, axis=1), (3, 4), True),
        (lambda x: x[[2, 0, 0]], (3, 4), True),
        (lambda x: gg.tile(x, (2, 1)), (1, 1), True),
        (lambda x: gg.tril(x), (3, 4), True),
        (gg.sort, (2,), False),
        (lambda x: gg.cumprod(x), (2,), False),
        (lambda x: gg.cumulative_max(x), (3,), False),
        (lambda x: gg.linalg.inv(x), (2, 2), False),
        (lambda x: gg.OPS["limited"].eager(x), (3,), False),
        (lambda x: gg.fft.dct(x), (2,), False),
    ],
)
def test_only_steps_that_move_elements_are_copied_in_runs(f, shape, moves, monkeypatch):
    @gg.op(differentiable=False)
    def limited(xp, x, /):
        return xp.lib.minimum(x, 100)

    monkeypatch.setitem(gg.OPS, "limited", gg.OPS.pop("limited"))
    x = gg.random.normal(shape)
    steps = [s for s in gg.function(f).lower(x).program.steps if not all(v.view for v in s.outs)]
    assert steps
    assert all((in_runs(s) is not None) == moves for s in steps)


@pytest.mark.skipif(not HAS_COMPILER, reason="needs a C++ compiler")
@pytest.mark.parametrize("body", [nested, chosen])
def test_a_loop_in_c_owns_the_memory_of_loops_and_branches_in_it(body, loops, monkeypatch):
    """Threads that make one loop at the same time replace what the traced steps keep of it."""
    monkeypatch.setattr(c_program, "setting", lambda: "always")
    made = weakref.WeakSet()
    real = loop_memory.LoopMemory.__init__

    def noted(self, *args):
        real(self, *args)
        made.add(self)

    monkeypatch.setattr(loop_memory.LoopMemory, "__init__", noted)
    replaced = []
    keep = Repeated.in_loop

    def forgetful(self, back):
        self._nested.pop(back, None)  # as the other thread does
        replaced.append(self)
        return keep(self, back)

    monkeypatch.setattr(Repeated, "in_loop", forgetful)
    f = gg.function(gradients(body, ["w"]))
    first = [g.numpy() for g in f(arrays())]
    assert replaced
    for repeated in replaced:
        repeated._nested.clear()
    gc.collect()
    steps = [
        function
        for loop in loops
        for repeated in (loop._forward, loop._backward)
        if repeated._in_c is not None
        for function in repeated._in_c._compiled.functions.values()
        if function.owners
    ]
    assert steps
    assert {step.numbers[0] for step in steps} <= {memory._address for memory in made}
    for a, b in zip(f(arrays()), first, strict=True):
        np.testing.assert_array_equal(a, b)
