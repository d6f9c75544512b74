"""stop_gradient, custom_gradient, recompute_grad and grad_pass_through."""

import copy
import pickle

import numpy as np
import pytest
from comparing import value
from taping import tape_gradient, taped

import gpugrad as gg
from gpugrad.errors import ArgumentError, NoGradientError, ShapeError, StructureError, TapeError

C = gg.constant


def gradient(f, *xs, **keywords):
    """Gradients of the sum of f(*xs) by each of `xs`."""
    tape, y = taped(f, *xs)
    return [value(g) for g in tape.gradient(y, xs, **keywords)]


# ---- stop_gradient --------------------------------------------------------------------------


def test_stop_gradient_is_a_constant():
    x = C(3.0)
    assert gradient(lambda x: gg.stop_gradient(x) * x, x) == [3.0]
    assert gradient(lambda x: gg.stop_gradient(x) * 2, x) == [None]
    assert gradient(gg.stop_gradient, x, unconnected_gradients="zero") == [0.0]


@pytest.mark.parametrize("data", [[1.0, 2.0], np.ones(2), C([1, 2]), C([True, False])])
def test_stop_gradient_accepts_any_array_like(data):
    assert gg.stop_gradient(data).tolist() == C(data).tolist()


def test_stop_gradient_is_a_new_tensor_that_can_be_watched():
    x = C(3.0)
    with gg.GradientTape() as tape:
        tape.watch(x)
        s = gg.stop_gradient(x * x)
        tape.watch(s)
        y = s * s
    assert [value(g) for g in tape.gradient(y, [x, s])] == [None, 18.0]


def test_stop_gradient_still_marks_a_variable_as_watched():
    v = gg.Variable(3.0)
    with gg.GradientTape() as tape:
        gg.stop_gradient(v)
    assert tape.watched_variables() == (v,)


# ---- custom_gradient: arguments and results -------------------------------------------------


@gg.custom_gradient
def log1pexp(x):
    e = gg.exp(x)
    return gg.log(1 + e), lambda dy: dy * (1 - 1 / (1 + e))


def test_custom_gradient_replaces_the_gradient():
    with np.errstate(over="ignore"):  # exp(100) is infinite in float32: that is the point
        assert gradient(log1pexp, C(100.0)) == [1.0]
    assert log1pexp(C(0.0)).item() == pytest.approx(np.log(2), rel=1e-6)


def test_custom_gradient_keeps_name_and_doc_and_works_on_methods_and_with_parentheses():
    class Layer:
        scale = 7.0

        @gg.custom_gradient
        def call(self, x):
            """Call it."""
            return x * self.scale, lambda dy: dy * 100

    @gg.custom_gradient()
    def plain(x):
        return x * 2, lambda dy: dy * 3

    assert Layer.call.__name__ == "call"
    assert Layer.call.__doc__ == "Call it."
    assert Layer.call.__wrapped__ is not None
    assert gradient(Layer().call, C(1.0)) == [100.0]
    assert gradient(plain, C(1.0)) == [3.0]


def test_custom_gradient_of_several_arguments_and_results():
    seen = []

    @gg.custom_gradient
    def both(x, y):
        def grad(da, db):
            seen.append((da.tolist(), db.tolist()))
            return da * 10, db * 100

        return (x * y, x + y), grad

    x, y = C([1.0, 2.0]), C([3.0, 4.0])
    tape, (a, b) = taped(both, x, y, persistent=True)
    assert [value(g) for g in tape.gradient([a, b], [x, y])] == [[10.0] * 2, [100.0] * 2]
    assert [value(g) for g in tape.gradient(a, [x, y])] == [[10.0] * 2, [0.0] * 2]
    assert seen == [([1.0, 1.0], [1.0, 1.0]), ([1.0, 1.0], [0.0, 0.0])]  # unused: zeros


def test_custom_gradient_unused_integer_result_gets_integer_zeros():
    seen = []

    @gg.custom_gradient
    def both(x):
        def grad(da, db):
            seen.append((db.dtype, db.tolist()))
            return da

        return (x * 1, gg.astype(x, gg.int32)), grad

    x = C([1.0, 2.0])
    tape, (a, i) = taped(both, x)
    assert tape.gradient(a, x).tolist() == [1.0, 1.0]
    assert i.dtype == gg.int32
    assert seen == [(gg.int32, [0, 0])]


def test_custom_gradient_accepts_and_returns_nested_structures():
    @gg.custom_gradient
    def f(pair, more):
        (x, y), z = pair, more["z"]
        return {"a": x * y, "b": [z]}, lambda da, db: ([da * 1, da * 2], {"z": db * 3})

    x, y, z = C(2.0), C(3.0), C(5.0)
    tape, out = taped(lambda x, y, z: f([x, y], {"z": z}), x, y, z)
    assert sorted(out) == ["a", "b"]
    assert [value(g) for g in tape.gradient(out, [x, y, z])] == [1.0, 2.0, 3.0]


def test_custom_gradient_result_is_never_the_argument_itself():
    @gg.custom_gradient
    def same(x):
        return x, lambda dy: dy * 5

    x = C(2.0)
    tape, y = taped(same, x)
    assert y is not x
    assert tape.gradient(y, x).item() == 5.0


def test_custom_gradient_of_none_is_no_gradient():
    @gg.custom_gradient
    def f(x, y):
        return x * y, lambda dy: (None, dy)

    assert gradient(f, C(2.0), C(3.0)) == [None, 1.0]
    assert gradient(f, C(2.0), C(3.0), unconnected_gradients="zero") == [0.0, 1.0]


def test_custom_gradients_of_an_argument_passed_twice_are_summed():
    @gg.custom_gradient
    def f(x, y):
        return x * y, lambda dy: (dy * 2, dy * 5)

    assert gradient(lambda x: f(x, x), C(2.0)) == [7.0]


def test_custom_gradient_accepts_numbers_and_arrays():
    @gg.custom_gradient
    def f(x, y, flag):
        return x * y, lambda dy: (dy * 2, dy * 5, None)

    for factor in (2.0, 2, np.float32(2.0), np.array(2.0, np.float32)):
        assert gradient(lambda x, factor=factor: f(x, factor, True), C(3.0)) == [2.0]


def test_custom_gradient_returns_a_slot_for_each_number_but_none_for_text():
    @gg.custom_gradient
    def f(x, factor, mode):
        assert mode == "double"
        return x * factor, lambda dy: (dy * factor, None)

    assert gradient(lambda x: f(x, 2.0, "double"), C(3.0)) == [2.0]


@pytest.mark.parametrize("place", [0, 1, 2])
@pytest.mark.parametrize("other", [None, "text"])
def test_custom_gradient_may_return_none_for_an_argument_that_is_no_number(other, place):
    @gg.custom_gradient
    def f(*args):
        numbers = [a for a in args if isinstance(a, gg.Tensor)]
        grads = [None if a is other else k for k, a in enumerate(args)]

        def grad(dy):
            return tuple(None if k is None else dy * (7.0 + k) for k in grads)

        return numbers[0] * numbers[1], grad

    x = [gg.constant(2.0), gg.constant(3.0)]
    slopes = gg.grad(lambda x: f(*x[:place], other, *x[place:]))(x)
    assert [s.item() for s in slopes] == [7.0 + k for k in range(3) if k != place]


def test_custom_gradient_is_converted_to_the_dtype_of_the_argument():
    @gg.custom_gradient
    def f(x):
        return x * 2, lambda dy: np.array([1.0, 2.0])  # float64 array for a float32 argument

    x = C([1.0, 1.0])
    g = tape_gradient(f, x)
    assert (g.tolist(), g.dtype) == ([1.0, 2.0], gg.float32)


def test_custom_gradient_gives_captured_tensors_no_gradient():
    """Only arguments (and trainable Variables) get a gradient through the result."""
    k, side = C(5.0), []

    @gg.custom_gradient
    def f(x):
        side.append(x * k)
        return side[0] * 1, lambda dy: dy

    x = C(2.0)
    tape, y = taped(lambda x, k: f(x), x, k, persistent=True)
    assert [value(g) for g in tape.gradient(y, [x, k])] == [1.0, None]
    assert [value(g) for g in tape.gradient(side[0], [x, k])] == [5.0, 2.0]


# ---- custom_gradient: keywords --------------------------------------------------------------


def test_custom_gradient_applies_to_keyword_arguments():
    """TensorFlow ignores it silently when all arguments are keywords."""

    @gg.custom_gradient
    def f(x, y):
        return x * y, lambda dy: (dy * 10, dy * 100)

    for call in (lambda x, y: f(x, y=y), lambda x, y: f(y=y, x=x), f):
        assert gradient(call, C(2.0), C(3.0)) == [10.0, 100.0]


def test_custom_gradient_of_keyword_only_arguments_may_be_left_out():
    @gg.custom_gradient
    def f(x, *, y):
        return x * y, lambda dy: dy * 10

    @gg.custom_gradient
    def g(x, *, y):
        return x * y, lambda dy: (dy * 10, dy * 100)

    assert gradient(lambda x, y: f(x, y=y), C(2.0), C(3.0)) == [10.0, None]
    assert gradient(lambda x, y: g(x, y=y), C(2.0), C(3.0)) == [10.0, 100.0]


# ---- custom_gradient: Variables -------------------------------------------------------------


def test_custom_gradient_passes_the_variables_that_were_read():
    v, w, k = gg.Variable(2.0), gg.Variable(3.0), gg.Variable(5.0, trainable=False)
    seen = []

    @gg.custom_gradient
    def f(x):
        def grad(dy, variables=None):
            seen.append(variables)
            return dy * 10, [dy * 100, dy * 1000]

        return x * w * v * k, grad

    x = C(1.0)
    tape, y = taped(lambda x, k: f(x), x, k)
    assert [value(g) for g in tape.gradient(y, [x, v, w, k])] == [10.0, 100.0, 1000.0, None]
    assert len(seen) == 1
    assert [s is t for s, t in zip(seen[0], (v, w), strict=True)] == [True, True]


@pytest.mark.parametrize("style", ["named", "keyword only", "any keyword"])
def test_custom_gradient_passes_variables_in_three_ways(style):
    v = gg.Variable(2.0)

    @gg.custom_gradient
    def f(x):
        def named(dy, variables):
            return dy, [dy * 7]

        def only(dy, *, variables):
            return named(dy, variables)

        def anything(dy, **kw):
            return named(dy, kw["variables"])

        return x * v, {"named": named, "keyword only": only, "any keyword": anything}[style]

    with gg.GradientTape() as tape:
        y = f(C(1.0))
    assert tape.gradient(y, v).item() == 7.0


def test_custom_gradient_without_a_variables_parameter_is_refused_when_called():
    v = gg.Variable(2.0, name="scale")

    @gg.custom_gradient
    def f(x):
        return x * v, lambda dy: dy

    with pytest.raises(StructureError, match=r"f: .*'scale'.*`variables`"):
        f(C(1.0))


def test_custom_gradient_must_return_as_many_gradients_as_variables():
    v = gg.Variable(2.0)

    @gg.custom_gradient
    def f(x):
        return x * v, lambda dy, variables: (dy, [])

    @gg.custom_gradient
    def g(x):
        return x * v, lambda dy, variables: dy

    for function, words in ((f, "0 gradients for 1 variables"), (g, "gradients of the variables")):
        with gg.GradientTape() as tape:
            y = function(C(1.0))
        with pytest.raises(StructureError, match=words):
            tape.gradient(y, v)


def test_custom_gradient_of_a_variable_argument():
    v = gg.Variable(3.0)

    @gg.custom_gradient
    def f(x):
        return x * 2, lambda dy: dy * 7

    with gg.GradientTape() as tape:
        y = f(v)
    assert tape.gradient(y, v).item() == 7.0


def test_custom_gradient_trains_a_variable():
    v, losses = gg.Variable(4.0), []

    @gg.custom_gradient
    def loss(x):
        return x * 1, lambda dy: gg.sign(x) * dy

    for _ in range(5):
        with gg.GradientTape() as tape:
            y = loss(v)
        losses.append(y.item())
        v.assign_sub(tape.gradient(y, v))
    assert losses == [4.0, 3.0, 2.0, 1.0, 0.0]


# ---- custom_gradient: errors ----------------------------------------------------------------


@pytest.mark.parametrize("returned", [lambda x: x, lambda x: (x, x), lambda x: (x, x, x)])
def test_custom_gradient_must_return_a_pair(returned):
    @gg.custom_gradient
    def f(x):
        return returned(x)

    with pytest.raises(StructureError, match=r"f: .*\(result, grad_fn\)"):
        f(C(1.0))


@pytest.mark.parametrize("count", [0, 1, 3])
def test_custom_gradient_with_the_wrong_count_is_refused(count):
    @gg.custom_gradient
    def f(x, y):
        return x * y, lambda dy: [dy] * count

    with pytest.raises(StructureError, match=f"f: .*{count} gradients for 2 arguments"):
        gradient(f, C(1.0), C(2.0))


def test_custom_gradient_with_the_wrong_shape_is_refused():
    @gg.custom_gradient
    def f(x):
        return x * 2, lambda dy: gg.ones(5)

    with pytest.raises(ShapeError, match=r"f: .*\(5,\).*\(2,\)"):
        gradient(f, C([1.0, 2.0]))


def test_custom_gradient_errors_propagate_unchanged():
    @gg.custom_gradient
    def f(x):
        def grad(dy):
            raise KeyError("mine")

        return x * 2, grad

    with pytest.raises(KeyError, match="mine"):
        gradient(f, C(1.0))

    @gg.custom_gradient
    def g(x):
        raise KeyError("body")

    with pytest.raises(KeyError, match="body"), gg.GradientTape():
        g(C(1.0))
    assert gradient(lambda x: x * x, C(3.0)) == [6.0]  # nothing is left recording


# ---- custom_gradient: second order ----------------------------------------------------------


def test_custom_gradient_second_order_differentiates_its_function():
    @gg.custom_gradient
    def f(x):
        return x * x, lambda dy: dy * x**3

    x, u = C(2.0), C(1.0)
    outer, g = taped(lambda x, u: tape_gradient(f, x, output_gradients=u), x, u, persistent=True)
    assert g.item() == 8.0
    assert outer.gradient(g, x).item() == 12.0
    assert outer.gradient(g, u).item() == 8.0


def test_custom_gradient_second_order_can_be_overridden_too():
    @gg.custom_gradient
    def first_order(x, dy):
        return dy * 3 * x * x, lambda ddy: (ddy * 1000, ddy * 3 * x * x)

    @gg.custom_gradient
    def cube(x):
        return x * x * x, lambda dy: first_order(x, dy)

    x = C(2.0)
    outer, g = taped(lambda x: tape_gradient(cube, x), x)
    assert g.item() == 12.0
    assert outer.gradient(g, x).item() == 1000.0


def test_custom_gradient_in_forward_mode_is_its_transpose():
    """TensorFlow uses the body's own derivative there."""

    @gg.custom_gradient
    def f(x, y):
        return (x * y, x + y), lambda da, db: (da * 10 + db, da * 100)

    x, y = C(2.0), C(3.0)
    with gg.ForwardAccumulator([x, y], [C(1.0), C(1.0)]) as acc:
        a, b = f(x, y)
    assert [value(t) for t in acc.jvp([a, b])] == [110.0, 1.0]


def test_custom_gradient_in_forward_mode_of_none_is_none():
    @gg.custom_gradient
    def f(x):
        return x * 2, lambda dy: None

    x = C(2.0)
    with gg.ForwardAccumulator(x, C(1.0)) as acc:
        y = f(x)
    assert acc.jvp(y) is None


@gg.custom_gradient
def custom_square(x):
    return x * x, lambda g: 2 * x * g


@gg.custom_jvp
def jvp_square(x):
    return x * x


@jvp_square.defjvp
def square_rule(primals, tangents):
    (x,), (t,) = primals, tangents
    return x * x, 2 * x * t


OF_A_VARIABLE = {
    "custom_gradient": custom_square,
    "custom_jvp": jvp_square,
    "recompute_grad": gg.recompute_grad(lambda x: x * x),
    "keyword": lambda v: gg.recompute_grad(lambda *, x: x * x)(x=v),
    "structure": lambda v: gg.recompute_grad(lambda xs: xs["a"] * xs["a"])({"a": v}),
}


@pytest.mark.parametrize("f", OF_A_VARIABLE.values(), ids=OF_A_VARIABLE)
@pytest.mark.parametrize("traced", [False, True], ids=["eager", "function"])
def test_an_assignment_does_not_change_the_gradient_of_an_earlier_call(f, traced):
    v = gg.Variable(3.0)

    def derivatives():
        v.assign(3.0)
        with gg.GradientTape() as outer:
            with gg.GradientTape() as tape:
                y = f(v)
                v.assign(10.0)
            first = tape.gradient(y, v)
            v.assign(20.0)
        return first, outer.gradient(first, v)

    run = gg.function(derivatives) if traced else derivatives
    for _ in range(2):
        assert [value(d) for d in run()] == [6.0, 2.0]
        assert v.numpy() == 20.0


# ---- recompute_grad -------------------------------------------------------------------------


def test_recompute_grad_calls_its_function_once_forward_and_once_backward():
    calls = []

    @gg.recompute_grad
    def f(x):
        calls.append(1)
        return gg.sin(x) * x

    x = C(0.5, gg.float64)
    tape, y = taped(f, x)
    assert len(calls) == 1
    assert tape.gradient(y, x).item() == pytest.approx(np.sin(0.5) + 0.5 * np.cos(0.5), rel=1e-12)
    assert len(calls) == 2


def test_recompute_grad_keeps_no_activations():
    activations = []

    @gg.recompute_grad
    def f(x):
        activations.append(gg.exp(x))
        return activations[-1] * activations[-1]

    x = C([1.0, 2.0])
    tape, y = taped(f, x)
    assert len(tape.log) == 1
    np.testing.assert_allclose(tape.gradient(y, x).numpy(), 2 * np.exp([2.0, 4.0]), rtol=1e-6)


def test_recompute_grad_differentiates_captured_variables():
    v = gg.Variable(3.0)
    f = gg.recompute_grad(lambda x: x * v * v)
    x = C(2.0)
    tape, y = taped(f, x)
    assert [value(g) for g in tape.gradient(y, [x, v])] == [9.0, 12.0]


def test_recompute_grad_refuses_to_lose_the_gradient_of_captured_tensors():
    x, k = C(2.0), C(3.0)
    with gg.GradientTape() as tape:
        tape.watch([x, k])
        with pytest.raises(TapeError, match=r"test_custom_gradient.py:\d+ \(multiply\)"):
            gg.recompute_grad(lambda x: x * k)(x)
        y = gg.recompute_grad(lambda x: x * gg.stop_gradient(k) * C(2.0))(x)
    assert [value(g) for g in tape.gradient(y, [x, k])] == [6.0, None]
    with pytest.raises(TapeError, match="not an argument"):
        gg.grad(lambda k: gg.checkpoint(lambda x: x * k)(x))(k)
    with pytest.raises(TapeError, match="not an argument"):
        gg.grad(lambda k: gg.checkpoint(lambda y: gg.checkpoint(lambda x: x * y)(x))(k))(k)
    assert value(gg.grad(lambda k: gg.checkpoint(lambda x, k: x * k)(x, k))(k)) == 2.0


@pytest.mark.parametrize("wrapped", [lambda f: f, gg.function], ids=["eager", "function"])
@pytest.mark.parametrize("inner", [lambda f: f, gg.function, gg.recompute_grad])
def test_recompute_grad_has_the_variables_of_the_call_and_assigns_once(inner, wrapped):
    v, calls, x = gg.Variable(2.0), gg.Variable(0.0, trainable=False), C(5.0)

    @inner
    def f(x):
        y = x * v
        v.assign(v * 3.0)
        calls.assign_add(1.0)
        return y * v * calls

    @wrapped
    def step(x):
        tape, y = taped(gg.recompute_grad(f), x, persistent=True)
        v.assign(100.0)
        return [y, *tape.gradient(y, [x, v]), *tape.gradient(y, [x, v]), v, calls]

    for k in (1, 2, 3):
        v.assign(2.0)  # y = k x v (3 v)
        assert [value(r) for r in step(x)] == [60.0 * k, *(12.0 * k, 40.0 * k) * 2, 100.0, k]


@pytest.mark.parametrize("give", ["tensor twice", "variable twice", "value and captured"])
def test_recompute_grad_sums_the_gradients_of_an_argument_passed_twice(give):
    v = gg.Variable(3.0)
    f = gg.recompute_grad(lambda a, b: a * b)
    g = gg.recompute_grad(lambda a: a * v)
    x = C(3.0)
    with gg.GradientTape() as tape:
        tape.watch(x)
        y = {"tensor twice": lambda: f(x, x), "variable twice": lambda: f(v, v),
             "value and captured": lambda: g(v.value())}[give]()  # fmt: skip
    assert tape.gradient(y, x if give == "tensor twice" else v).item() == 6.0


def test_recompute_grad_accepts_structures_and_keywords():
    @gg.recompute_grad
    def f(pair, *, scale):
        return {"a": pair[0] * scale, "b": pair[1] * 2}

    x, y, s = C(2.0), C(3.0), C(5.0)
    tape, out = taped(lambda x, y, s: f((x, y), scale=s), x, y, s)
    assert [value(g) for g in tape.gradient(out, [x, y, s])] == [5.0, 2.0, 2.0]


def test_recompute_grad_of_unused_arguments_is_zero_and_of_integers_none():
    f = gg.recompute_grad(lambda x, y, i: x * gg.astype(i, gg.float32))
    x, y, i = C(2.0), C(3.0), C(4)
    tape, out = taped(lambda x, y: f(x, y, i), x, y)
    assert [value(g) for g in tape.gradient(out, [x, y, i])] == [4.0, 0.0, None]


@pytest.mark.parametrize("wrapped", [lambda f: f, gg.function], ids=["eager", "function"])
@pytest.mark.parametrize("nested", [False, True])
@pytest.mark.parametrize("device", ["cpu", "cuda:0"])
def test_recompute_grad_repeats_the_random_numbers_of_the_forward_pass(
    cuda, device, wrapped, nested
):
    inner = gg.recompute_grad(lambda x: gg.nn.dropout(x, 0.5) * gg.random.gamma((200,), 2.0))

    @gg.recompute_grad
    def noisy(x):
        scale = gg.random.uniform((200,))
        x = gg.nn.dropout(x, 0.3) * scale
        scale[0] = 7.0  # changes this Tensor, not the drawn numbers
        return inner(x) if nested else x

    @wrapped
    def both(x):
        tape, y = taped(noisy, x, persistent=True)
        return y, tape.gradient(y, x), tape.gradient(y, x)

    with gg.device(device):
        x = gg.ones(200)  # y is linear in x, so its gradient is y
        gg.set_seed(0)
        for _ in range(3):
            y, once, twice = both(x)
            np.testing.assert_allclose(once.numpy(), y.numpy(), 1e-5)
            np.testing.assert_allclose(twice.numpy(), y.numpy(), 1e-5)
        after = gg.random.uniform((3,))
        gg.set_seed(0)
        for _ in range(3):
            noisy(x)
        np.testing.assert_array_equal(after.numpy(), gg.random.uniform((3,)).numpy())


class Lazy:
    """Creates its Variable, with a drawn first value, in its first call."""

    def __init__(self, n):
        self.n, self.w = n, None

    def __call__(self, x):
        if self.w is None:
            self.w = gg.Variable(gg.random.normal((self.n,)))
        return gg.sum(gg.nn.dropout(x, 0.5)) * gg.sum(self.w)


@pytest.mark.parametrize(
    "lengths", [[(4,), (5,)], [(4,), (4,), (4,), ()], [(4,), (4, 2), (4,), (4,)]]
)
def test_recompute_grad_that_draws_other_numbers_raises(lengths):
    shapes = iter(lengths)
    each = len(lengths) // 2

    def f(x):
        return x * sum(gg.sum(gg.random.uniform(next(shapes))) for _ in range(each))

    with gg.GradientTape() as tape:
        x = gg.Variable(1.0)
        y = gg.recompute_grad(f)(x)
    with pytest.raises(ArgumentError, match="draws other numbers"):
        tape.gradient(y, x)


@pytest.mark.parametrize("n", [4, 500])
def test_recompute_grad_of_a_function_that_creates_variables_raises(n):
    with gg.GradientTape() as tape:
        x = gg.Variable(np.ones(4, np.float32))
        y = gg.recompute_grad(Lazy(n))(x)
    with pytest.raises(
        ArgumentError, match="Create Variables before it, as their first values may be drawn"
    ):
        tape.gradient(y, x)


@pytest.mark.parametrize("device", ["cpu", "cuda:0"])
def test_recompute_grad_of_a_traced_function_repeats_its_random_numbers(cuda, device):
    with gg.device(device):
        x, inner = gg.ones(50), gg.function(lambda x: gg.nn.dropout(x, 0.5))
        for _ in range(3):  # traced, and replayed
            tape, y = taped(lambda x: gg.recompute_grad(inner)(x), x)
            np.testing.assert_array_equal(tape.gradient(y, x).numpy(), y.numpy())


def test_recompute_grad_around_a_traced_scan_that_draws_raises_with_a_hint():
    def body(x):
        return gg.scan(lambda c, _: (gg.nn.dropout(c, 0.5), None), x, None, length=2)[0]

    def slope(x):
        return gg.grad(lambda x: gg.sum(gg.recompute_grad(body)(x)))(x)

    x = gg.ones(20)
    assert slope(x).shape == (20,)
    with pytest.raises(ArgumentError, match="inside them, not around them"):
        gg.function(slope)(x)


def in_branch(f):
    return lambda x: gg.cond(gg.sum(x) > 0, f, lambda x: x, x)


def in_scan(f):
    return lambda x: gg.scan(lambda c, _: (f(c), None), x, None, length=2)[0]


@pytest.mark.parametrize("inside", [lambda f: f, gg.recompute_grad, in_branch, in_scan, gg.vmap])
@pytest.mark.parametrize("kind", ["recompute", "implicit"])
def test_variables_in_recomputed_code_are_read_at_each_replay(inside, kind):
    w = gg.Variable(2.0)
    if kind == "recompute":
        block = gg.recompute_grad(lambda x: x * w * w)
    else:
        block = gg.implicit_diff(lambda y, x: y - x * w * w)(lambda x: x * w * w)
    block = inside(block)

    def step(x):
        tape, loss = taped(lambda x: gg.sum(block(x)), x)
        return loss, *tape.gradient(loss, [x, w])

    traced, x = gg.function(step), gg.constant([1.0, 2.0])
    for number in (2.0, 3.0, -1.0):
        w.assign(number)
        for actual, desired in zip(traced(x), step(x), strict=True):
            np.testing.assert_allclose(actual.numpy(), desired.numpy(), 1e-6)
        np.testing.assert_allclose(gg.function(block)(x).numpy(), block(x).numpy(), 1e-6)


def test_assignments_in_recomputed_code_happen_at_each_replay():
    count = gg.Variable(0.0, trainable=False)

    @gg.recompute_grad
    def block(x):
        count.assign_add(1.0)
        return x * 2

    traced = gg.function(block)
    for k in range(4):
        traced(gg.ones(2))
        assert count.numpy() == k + 1


@gg.recompute_grad
def squared(x):
    return x * x


def test_recompute_grad_is_copied_and_pickled_with_its_function():
    assert pickle.loads(pickle.dumps(squared)) is squared

    class Model(gg.nn.Module):
        def __init__(self):
            self.dense = gg.nn.Dense(2, 2)
            self.again = gg.recompute_grad(self.dense)

    model = Model()
    twin = copy.deepcopy(model)
    twin.dense.kernel.assign(gg.zeros((2, 2)))
    assert not twin.again(gg.ones((1, 2))).numpy().any()
    assert model.again(gg.ones((1, 2))).numpy().any()
    assert model.again.__name__ == "Dense"
    dense = pickle.loads(pickle.dumps(model.again))
    np.testing.assert_array_equal(dense(gg.ones((1, 2))), model.dense(gg.ones((1, 2))))


def test_recompute_grad_keeps_the_wrapped_function_and_its_docstring():
    def f(x):
        """Square."""
        return x * x

    g = gg.recompute_grad(f)
    assert g.__wrapped__ is f
    assert g.__doc__ == "Square."


def test_recompute_grad_differentiates_by_nothing_that_no_tape_follows():
    """The order of a Bessel function has no derivative."""
    bessel = gg.recompute_grad(lambda order, x: gg.sum(gg.special.kve(order, x)))
    order, x = gg.constant(0.5), gg.constant([1.0, 2.0])
    np.testing.assert_allclose(
        gg.grad(bessel, 1)(order, x), gg.grad(lambda x: gg.sum(gg.special.kve(order, x)))(x)
    )
    with pytest.raises(NoGradientError, match="kve"):
        gg.grad(bessel)(order, x)


def test_recompute_grad_has_second_order():
    f = gg.recompute_grad(lambda x: x * x * x)
    x = C(2.0)
    outer, g = taped(lambda x: tape_gradient(f, x), x)
    assert (g.item(), outer.gradient(g, x).item()) == (12.0, 12.0)


def test_recompute_grad_works_in_forward_mode():
    f = gg.recompute_grad(lambda x: gg.sin(x) * x)
    _, t = gg.jvp(f, [C(0.5, gg.float64)], [C(1.0, gg.float64)])
    assert t.item() == pytest.approx(np.sin(0.5) + 0.5 * np.cos(0.5), rel=1e-12)


def test_recompute_grad_nests():
    f = gg.recompute_grad(lambda x: gg.recompute_grad(gg.exp)(x) * x)
    assert gradient(f, C(0.0)) == [1.0]


def test_recompute_grad_of_an_empty_tensor():
    assert gradient(gg.recompute_grad(lambda x: x * 2), gg.zeros((0, 3))) == [[]]


@pytest.mark.parametrize("wrap", [lambda f: f, gg.function], ids=["eager", "traced"])
def test_upstream_gradients_have_the_dtype_of_the_result(wrap):
    """NumPy computes the derivative of erf, a float times a bfloat16, in float32."""
    seen = []

    @gg.custom_gradient
    def same(x):
        def grad(g):
            seen.append(g.dtype)
            return g * 1

        return x * 1, grad

    x = C([0.5, 2.0], "bfloat16")
    assert tape_gradient(lambda x: wrap(lambda x: gg.erf(same(x)))(x), x).dtype == gg.bfloat16
    assert seen == [gg.bfloat16]


# ---- grad_pass_through ----------------------------------------------------------------------


def test_grad_pass_through_is_the_straight_through_estimator():
    x = C([1.3, 2.7])
    assert gradient(lambda x: gg.grad_pass_through(gg.round)(x) ** 2, x) == [[2.0, 6.0]]


def test_grad_pass_through_of_assign():
    """The value goes into the Variable, the gradient past it."""
    x, z = gg.Variable(1.0, trainable=False), gg.Variable(3.0)
    with gg.GradientTape() as tape:
        y = gg.grad_pass_through(x.assign)(z**2)
    assert x.numpy() == 9.0
    assert tape.gradient(y, z).item() == 6.0


def test_grad_pass_through_gives_captured_variables_none():
    v, x = gg.Variable(3.0), C(2.0)
    tape, y = taped(lambda x: gg.grad_pass_through(lambda x: x * v)(x), x)
    assert [value(g) for g in tape.gradient(y, [x, v])] == [1.0, None]


def test_grad_pass_through_needs_as_many_results_as_arguments():
    with pytest.raises(StructureError, match="1 gradients for 2"):
        gradient(gg.grad_pass_through(lambda x, y: x), C(1.0), C(2.0))
