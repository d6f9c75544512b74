"""ForwardAccumulator, and the transforms grad, vjp, jvp, hvp, jacobian and hessian."""

import threading

import numpy as np
import pytest
from comparing import value
from taping import tape_gradient

import gpugrad as gg
from gpugrad.autodiff import forward
from gpugrad.autodiff import recorder as recorder_module
from gpugrad.core import listening
from gpugrad.errors import ArgumentError, DTypeError, ShapeError, StructureError, TapeError

C = gg.constant


def push(f, x, t):
    """J @ t of f at x, computed with an accumulator."""
    with gg.ForwardAccumulator(x, t) as acc:
        y = f(x)
    return acc.jvp(y)


def test_accumulator_accepts_and_returns_structures():
    x, y = C(2.0), C([1.0, 2.0])
    with gg.ForwardAccumulator({"x": x, "y": [y]}, {"y": [C([0.0, 1.0])], "x": C(10.0)}) as acc:
        z = x * y
        s = x * 2
    tangents = acc.jvp({"z": z, "s": (s,)})
    assert tangents["z"].tolist() == [10.0, 22.0]
    assert tangents["s"][0].item() == 20.0


def test_accumulator_converts_numbers_lists_and_arrays():
    assert push(lambda x: x * x, C(3.0), 1.0).item() == 6.0
    assert push(lambda x: x * x, C([3.0, 1.0]), [1.0, 0.0]).tolist() == [6.0, 0.0]
    assert push(lambda x: x * x, C([3.0]), np.ones(1, np.float32)).tolist() == [6.0]


@pytest.mark.parametrize(
    ("primals", "tangents", "kind", "words"),
    [
        (C(1.0), C([1.0]), ShapeError, r"\(\).*\(1,\)"),
        (C(1.0), np.float64(1.0), DTypeError, "float32.*float64"),
        ([C(1.0)], C(1.0), StructureError, "tangents"),
        ([C(1.0), C(1.0)], [C(1.0)], StructureError, "2"),
        ({"a": C(1.0)}, {"b": C(1.0)}, StructureError, "keys"),
        (3.0, 1.0, DTypeError, "primals"),
        (C(3), C(1), DTypeError, "int64"),
    ],
    ids=["shape", "dtype", "structure", "length", "keys", "number", "integer"],
)
def test_accumulator_refuses_tangents_that_do_not_match(primals, tangents, kind, words):
    with pytest.raises(kind, match=words):
        gg.ForwardAccumulator(primals, tangents)


def test_accumulator_refuses_the_same_primal_twice():
    x = C(1.0)
    with pytest.raises(ArgumentError, match="twice"):
        gg.ForwardAccumulator([x, x], [C(1.0), C(1.0)])


def test_jvp_before_inside_and_after_the_block():
    x = C(3.0)
    acc = gg.ForwardAccumulator(x, C(2.0))
    assert acc.jvp(x).item() == 2.0
    outside = x * x
    with acc:
        y = x * x
        assert acc.jvp(y).item() == 12.0
    assert acc.jvp(y).item() == 12.0
    assert acc.jvp(outside) is None
    with acc:  # entering again continues the recording
        z = y * 2
    assert acc.jvp(z).item() == 24.0


def test_accumulator_cannot_be_entered_while_it_records():
    acc = gg.ForwardAccumulator(C(1.0), C(1.0))
    with acc, pytest.raises(TapeError, match="cannot be entered again"):
        acc.__enter__()
    acc.__exit__(None, None, None)  # an extra exit is harmless
    assert not listening.recorders


def test_accumulator_records_only_its_own_thread():
    x, results = C(3.0), []
    with gg.ForwardAccumulator(x, C(1.0)) as acc:
        worker = threading.Thread(target=lambda: results.append(x * x))
        worker.start()
        worker.join()
    assert acc.jvp(results[0]) is None


def test_jvp_of_an_unconnected_result_is_none_or_zeros():
    x, k = C(3.0), C([1.0, 2.0], gg.float64)
    with gg.ForwardAccumulator(x, C(1.0)) as acc:
        y = k * 2
    assert acc.jvp(y) is None
    zeros = acc.jvp(y, unconnected_gradients="zero")
    assert (zeros.tolist(), zeros.dtype) == ([0.0, 0.0], gg.float64)
    with pytest.raises(ArgumentError, match="nonsense"):
        acc.jvp(y, unconnected_gradients="nonsense")
    with pytest.raises(DTypeError):
        acc.jvp(3.0)


@pytest.mark.parametrize(
    "f",
    [gg.floor, gg.argmax, gg.stop_gradient, lambda x: gg.astype(x, gg.int32), lambda x: x > 1],
    ids=["floor", "argmax", "stop_gradient", "int", "greater"],
)
def test_jvp_stops_at_ops_without_a_derivative(f):
    assert push(f, C([1.5, 2.5]), C([1.0, 1.0])) is None


def test_jvp_of_variables_does_not_pass_through_assign():
    v, x = gg.Variable(3.0, trainable=False), C(2.0)
    with gg.ForwardAccumulator([v, x], [C(1.0), C(1.0)]) as acc:
        y = v * v
        v.assign(x * x)
        z = v * v
    assert acc.jvp(v).item() == 1.0
    assert [value(t) for t in acc.jvp([y, z])] == [6.0, 8.0]  # assign carries no tangent


def test_nested_accumulators_give_second_derivatives():
    x = C(2.0)
    with gg.ForwardAccumulator(x, C(1.0)) as outer:
        with gg.ForwardAccumulator(x, C(1.0)) as inner:
            y = x * x * x
        d = inner.jvp(y)
    assert d.item() == 12.0
    assert outer.jvp(y).item() == 12.0
    assert outer.jvp(d).item() == 12.0
    assert inner.jvp(outer.jvp(y)) is None  # the inner accumulator does not see the outer one


def test_nested_accumulators_give_third_derivatives():
    x = C(1.3, gg.float64)
    one = C(1.0, gg.float64)
    with gg.ForwardAccumulator(x, one) as a, gg.ForwardAccumulator(x, one) as b:
        with gg.ForwardAccumulator(x, one) as c:
            y = x**3.5
        d1 = c.jvp(y)
        d2 = b.jvp(d1)
    d3 = a.jvp(d2)
    expected = [3.5 * 1.3**2.5, 3.5 * 2.5 * 1.3**1.5, 3.5 * 2.5 * 1.5 * 1.3**0.5]
    assert [d1.item(), d2.item(), d3.item()] == pytest.approx(expected, rel=1e-12)


def test_nesting_follows_the_order_of_entering_not_of_creation():
    x = C(2.0)
    inner, outer = gg.ForwardAccumulator(x, C(1.0)), gg.ForwardAccumulator(x, C(1.0))
    with outer:
        with inner:
            y = x * x * x
        d = inner.jvp(y)
    assert outer.jvp(d).item() == 12.0


def test_forward_over_reverse():
    x = C([1.0, 2.0])
    with gg.ForwardAccumulator(x, C([1.0, 10.0])) as acc:
        g = tape_gradient(lambda x: x[0] * x[0] * x[1], x)
    assert acc.jvp(g).tolist() == [24.0, 2.0]  # [[2 x1, 2 x0], [2 x0, 0]] @ t
    assert recorder_module.threads.stack == []


def test_forward_over_reverse_outside_the_accumulator_is_none():
    x = C(2.0)
    with gg.ForwardAccumulator(x, C(1.0)) as acc, gg.GradientTape() as tape:
        tape.watch(x)
        y = x * x
    assert acc.jvp(tape.gradient(y, x)) is None


def test_reverse_over_forward():
    x = C([1.0, 2.0])
    with gg.GradientTape() as tape:
        tape.watch(x)
        with gg.ForwardAccumulator(x, C([1.0, 10.0])) as acc:
            y = x[0] * x[0] * x[1]
        d = acc.jvp(y)
    assert d.item() == 14.0
    assert tape.gradient(d, x).tolist() == [24.0, 2.0]


def test_tape_inside_an_accumulator_does_not_see_its_tangents():
    x = C(2.0)
    with gg.ForwardAccumulator(x, C(1.0)) as acc, gg.GradientTape() as tape:
        tape.watch(x)
        y = x * x
        d = acc.jvp(y)
    assert tape.gradient(d, x) is None


def test_stop_recording_of_a_tape_does_not_pause_accumulators():
    x = C(2.0)
    acc, tape = gg.ForwardAccumulator(x, C(1.0)), gg.GradientTape()
    with acc, tape, tape.stop_recording():
        y = x * x
    assert acc.jvp(y).item() == 4.0


def test_forward_over_reverse_hvp_equals_reverse_over_reverse():
    rng = np.random.default_rng(5)
    w, b = gg.Variable(rng.normal(size=(3, 2))), gg.Variable(rng.normal(size=2))
    x = C(rng.normal(size=(4, 3)))
    tangents = [C(rng.normal(size=(3, 2))), C(rng.normal(size=2))]

    def loss():
        return gg.sum(gg.tanh(x @ w + b) ** 2)

    with gg.ForwardAccumulator([w, b], tangents) as acc:
        with gg.GradientTape() as tape:
            y = loss()
        grads = tape.gradient(y, [w, b])
    forward = acc.jvp(grads)
    with gg.GradientTape() as outer, gg.GradientTape() as inner:
        y = loss()
        grads = inner.gradient(y, [w, b])
        dot = gg.sum(grads[0] * tangents[0]) + gg.sum(grads[1] * tangents[1])
    backward = outer.gradient(dot, [w, b])
    for f, r in zip(forward, backward, strict=True):
        np.testing.assert_allclose(f.numpy(), r.numpy(), rtol=1e-10)


def test_grad_of_nested_grads():
    f = gg.grad(gg.grad(gg.grad(lambda x: x**4)))
    assert f(2.0).item() == 48.0


def test_grad_argnums_pick_the_arguments():
    def f(x, y, *, k=1.0):
        return x * x * y * k

    assert gg.grad(f)(2.0, 3.0).item() == 12.0
    assert gg.grad(f, 1)(2.0, 3.0, k=10.0).item() == 40.0
    assert [g.item() for g in gg.grad(f, (0, 1))(2.0, 3.0)] == [12.0, 4.0]
    assert gg.grad(f, -1)(2.0, 3.0).item() == 4.0
    with pytest.raises(ArgumentError, match="argnums"):
        gg.grad(f, 2)(2.0, 3.0)


def test_grad_of_a_structure_has_the_same_structure():
    params = {"w": C([1.0, 2.0]), "b": [C(3.0)]}
    g = gg.grad(lambda p: gg.sum(p["w"] ** 2) * p["b"][0])(params)
    assert g["w"].tolist() == [6.0, 12.0]
    assert g["b"][0].item() == 5.0


def test_grad_of_a_list_of_numbers_is_one_array():
    assert gg.grad(lambda x: gg.sum(x * x))([1.0, 2.0]).tolist() == [2.0, 4.0]


def test_grad_of_one_tensor_passed_twice_separates_the_arguments():
    x = C(3.0)
    assert [g.item() for g in gg.grad(lambda a, b: a * a * b, (0, 1))(x, x)] == [18.0, 9.0]


def test_grad_of_an_unused_argument_is_zero():
    assert gg.grad(lambda x, y: x * 1, 1)(C(2.0), C([1.0, 2.0])).tolist() == [0.0, 0.0]


def test_grad_with_aux_returns_the_auxiliary_value():
    f = gg.value_and_grad(lambda x: (x * x, {"double": x * 2}), has_aux=True)
    (value_, aux), g = f(3.0)
    assert (value_.item(), aux["double"].item(), g.item()) == (9.0, 6.0, 6.0)
    g, aux = gg.grad(lambda x: (x * x, "aux"), has_aux=True)(3.0)
    assert (g.item(), aux) == (6.0, "aux")
    for bad in (lambda x: x * x, lambda x: gg.stack([x, x]), lambda x: (x, x, x)):
        with pytest.raises(StructureError, match=r"has_aux=True it must return a pair.*returned"):
            gg.grad(bad, has_aux=True)(3.0)


@pytest.mark.parametrize(
    "f", [lambda x: x, lambda x: 3.0, lambda x: gg.astype(gg.sum(x), gg.int32), lambda x: None]
)
def test_grad_requires_a_floating_point_scalar(f):
    with pytest.raises(ShapeError, match="one floating-point Tensor"):
        gg.grad(f)(C([1.0, 2.0]))


@pytest.mark.parametrize("x", [3, True, C([1, 2])], ids=["int", "bool", "tensor"])
def test_grad_with_respect_to_integers_is_refused(x):
    with pytest.raises(DTypeError, match=r"int64|bool"):
        gg.grad(lambda x: gg.sum(x * 2.0))(x)


@pytest.mark.parametrize(
    "derivative",
    [
        lambda f, *args: gg.grad(f, argnums=1)(*args),
        lambda f, *args: gg.jacobian(f, argnums=1)(*args),
        lambda f, *args: gg.vjp(f, *args),
        lambda f, *args: gg.jvp(f, args, args),
    ],
    ids=["grad", "jacobian", "vjp", "jvp"],
)
@pytest.mark.parametrize(
    ("leaf", "words"), [(object(), "A object .* is not an array"), (4, "int64 has no gradient")]
)
def test_error_for_a_nondifferentiable_argument_names_the_function(derivative, leaf, words):
    def model(x, params):
        return gg.sum(x * params["w"])

    with pytest.raises(DTypeError, match=f"derivative of model: argument 1: {words}"):
        derivative(model, C(1.0), {"w": C(2.0), "setting": leaf})


def test_grad_keeps_the_functions_name():
    def loss(x):
        """Loss."""
        return x * x

    assert gg.grad(loss).__name__ == "loss"
    assert gg.value_and_grad(loss).__doc__ == "Loss."


def test_grad_with_respect_to_a_variable():
    v = gg.Variable(3.0)
    assert gg.grad(lambda v: v * v)(v).item() == 6.0


def test_grad_inside_a_tape_is_differentiated():
    x = C(2.0)
    assert tape_gradient(lambda x: gg.grad(lambda x: x * x * x)(x), x).item() == 12.0


def test_vjp_pulls_back_several_cotangents():
    y, pull = gg.vjp(lambda x, k: x * x * k, C([1.0, 2.0]), C(3.0))
    assert y.tolist() == [3.0, 12.0]
    for scale in (1.0, 2.0):
        gx, gk = pull(C([scale, 0.0]))
        assert gx.tolist() == [6.0 * scale, 0.0]
        assert gk.item() == scale
    with pytest.raises(ShapeError):
        pull(C(1.0))


def test_vjp_of_a_structure():
    y, pull = gg.vjp(lambda x: {"a": x * 2, "b": [x * x]}, C(3.0))
    assert y["b"][0].item() == 9.0
    assert pull({"a": 1.0, "b": [10.0]})[0].item() == 62.0


def test_jvp_returns_value_and_tangent_and_checks_its_arguments():
    y, t = gg.jvp(lambda x, k: (x * k, x), [C([1.0, 2.0]), C(3.0)], [C([1.0, 0.0]), C(1.0)])
    assert [v.tolist() for v in y] == [[3.0, 6.0], [1.0, 2.0]]
    assert [v.tolist() for v in t] == [[4.0, 2.0], [1.0, 0.0]]
    with pytest.raises(StructureError):
        gg.jvp(lambda x: x, [1.0], [1.0, 2.0])
    with pytest.raises(ShapeError):
        gg.jvp(lambda x: x, [C([1.0, 2.0])], [C(1.0)])


def test_jvp_of_a_constant_result_is_zero():
    assert gg.jvp(lambda x: gg.floor(x), [1.5], [1.0])[1].item() == 0.0


def test_hvp_is_the_hessian_times_the_vector():
    rng = np.random.default_rng(7)
    a = rng.normal(size=(3, 3))
    x, v = rng.normal(size=3), rng.normal(size=3)

    def f(x):
        return gg.sum(x * (C(a) @ x)) + gg.sum(x**3)

    h = gg.hessian(f)(C(x)).numpy()
    np.testing.assert_allclose(h, a + a.T + np.diag(6 * x), rtol=1e-10)
    np.testing.assert_allclose(gg.hvp(f, [C(x)], [C(v)])[0].numpy(), h @ v, rtol=1e-10)


def test_hvp_of_two_arguments():
    x, y = C(2.0), C(3.0)
    hx, hy = gg.hvp(lambda x, y: x * x * y, [x, y], [C(1.0), C(10.0)])
    assert (hx.item(), hy.item()) == (6.0 + 40.0, 4.0)


def test_jacobian_of_several_arguments_and_hessian_of_one():
    def f(x, y):
        return x * gg.sum(y)

    jx, jy = gg.jacobian(f, (0, 1))(C([1.0, 2.0]), C([3.0, 4.0]))
    assert jx.tolist() == [[7.0, 0.0], [0.0, 7.0]]
    assert jy.tolist() == [[1.0, 1.0], [2.0, 2.0]]
    h = gg.hessian(lambda x, y: gg.sum(x * x * y), 0)(C([1.0, 2.0]), C([3.0, 4.0]))
    assert h.tolist() == [[6.0, 0.0], [0.0, 8.0]]


@pytest.mark.parametrize("call", [lambda f: f, gg.function], ids=["eager", "traced"])
def test_hessian_of_a_structure_has_a_block_for_each_pair(call, rng):
    w, b, x = rng.normal(size=(3, 2)), rng.normal(size=2), rng.normal(size=3)

    def loss(params, x):
        return gg.sum(gg.tanh(x @ params["w"] + params["b"]) ** 2)

    blocks = call(gg.hessian(loss))({"w": C(w), "b": C(b)}, C(x))
    joined = gg.hessian(lambda v: loss({"w": v[:6].reshape(3, 2), "b": v[6:]}, x))
    whole = joined(np.append(w, b)).numpy()
    parts = {"w": slice(0, 6), "b": slice(6, 8)}
    for row, column in [("w", "w"), ("w", "b"), ("b", "w"), ("b", "b")]:
        block = blocks[row][column].numpy()
        assert block.shape == ({"w": w, "b": b}[row].shape + {"w": w, "b": b}[column].shape)
        np.testing.assert_allclose(block.ravel(), whole[parts[row], parts[column]].ravel())
    several = gg.hessian(lambda w, b: loss({"w": w, "b": b}, x), (0, 1))(C(w), C(b))
    np.testing.assert_array_equal(several[0][1].numpy(), blocks["w"]["b"].numpy())


def test_jacobian_of_a_nested_result_has_its_structure():
    jacobian = gg.jacobian(lambda x: {"square": x * x, "sum": (gg.sum(x),)})(C([1.0, 2.0]))
    assert jacobian["square"].tolist() == [[2.0, 0.0], [0.0, 4.0]]
    assert jacobian["sum"][0].tolist() == [1.0, 1.0]
    jacobians = gg.batch_jacobian(lambda x: (x * x, x[:, :1]))(C([[1.0, 2.0]]))
    assert [t.tolist() for t in jacobians] == [[[[2.0, 0.0], [0.0, 4.0]]], [[[1.0, 0.0]]]]


def test_hessian_of_a_linear_function_is_zero():
    assert gg.hessian(lambda x: gg.sum(x * 3))(C([1.0, 2.0])).tolist() == [[0.0] * 2] * 2


def test_transforms_leave_nothing_recording_after_an_error():
    def broken(x):
        raise KeyError("mine")

    for call in (
        lambda: gg.grad(broken)(1.0), lambda: gg.jvp(broken, [1.0], [1.0]),
        lambda: gg.vjp(broken, C(1.0)), lambda: gg.jacobian(broken)(C(1.0)),
        lambda: gg.hvp(broken, [1.0], [1.0]), lambda: gg.hessian(broken)(C(1.0)),
    ):  # fmt: skip
        with pytest.raises(KeyError, match="mine"):
            call()
    assert not recorder_module.threads.stack
    assert not listening.recorders


def test_hvp_and_hessian_of_gathered_rows():
    """The gradient is IndexedSlices, and it is differentiable."""

    def f(w):
        return gg.sum(gg.gather(w, [1, 1]) ** 3)

    w = C([1.0, 2.0])
    assert gg.hvp(f, [w], [C([1.0, 1.0])])[0].tolist() == [0.0, 24.0]
    assert gg.hessian(f)(w).tolist() == [[0.0, 0.0], [0.0, 24.0]]


def test_zero_tangent_stays_zero_where_the_derivative_is_infinite():
    y, t = gg.jvp(gg.sqrt, [[0.0, 4.0]], [[0.0, 1.0]])
    assert (y.tolist(), t.tolist()) == ([0.0, 2.0], [0.0, 0.25])


@pytest.mark.parametrize(
    "read",
    [
        lambda x: x * x[gg.argmax(x)],
        lambda x: gg.take(x**3, gg.argsort(x))[:2],
        lambda x: gg.where(x > 1, x, x[gg.argsort(x)] ** 2),
    ],
)
def test_traced_function_indexes_constant_tangents(read):
    x, t = C([3.0, 1.0, 2.0]), C([1.0, 2.0, 3.0])
    for f in (
        lambda x: gg.jvp(read, [x], [t])[1],
        lambda x: gg.hvp(lambda x: gg.sum(read(x)), [x], [t])[0],
        lambda x: gg.grad(lambda x: gg.sum(gg.jvp(read, [x], [t])[1] ** 2))(x),
    ):
        assert gg.function(f)(x).tolist() == f(x).tolist()


@pytest.mark.parametrize(
    ("op", "arrays"),
    [
        (gg.power, ([[2.0], [0.5], [0.0]], [3.0, 0.0])),
        (gg.special.polygamma, ([1.0, 0.0], [[0.5], [3.0]])),
        (gg.nn.softplus, ([-1.0, 700.0],)),
    ],
)
def test_the_vjp_of_elements_is_their_jvp(op, arrays, monkeypatch):
    assert forward.tangent_by(op.op) == "VJP"
    xs = [np.asarray(a) for a in arrays]
    jvp = lambda *xs: gg.jvp(op, xs, [np.full(x.shape, 1.5) for x in xs])[1]  # noqa: E731
    through = lambda *xs: gg.grad(lambda *xs: gg.sum(jvp(*xs)))(*xs)  # noqa: E731
    direct = jvp(*xs), through(*xs)
    monkeypatch.setattr(forward, "tangent_by", lambda op: "transposed")
    for one, other in zip(direct, (jvp(*xs), through(*xs)), strict=True):
        np.testing.assert_allclose(one.numpy(), other.numpy(), rtol=1e-14)


def test_a_complex_tangent_is_not_the_vjp():
    z, t = np.array([1 + 2j]), np.array([0.5 - 1j])
    np.testing.assert_allclose(gg.jvp(gg.power, [z, 3.0 + 0j], [t, 0j])[1].numpy(), 3 * z**2 * t)
