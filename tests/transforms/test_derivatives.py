"""linearize, custom_jvp, implicit_diff, checkpoint; and products beside masked branches."""

import dataclasses
import functools
from typing import Any

import numpy as np
import pytest
from comparing import near
from taping import taped

import gpugrad as gg
from gpugrad.core import nest
from gpugrad.errors import ArgumentError, DTypeError, ShapeError, SingularMatrixError
from gpugrad.testing import check_grads

C = gg.constant
X = gg.constant([4.0, 9.0, 2.0], dtype=gg.float64)


def test_linearize_pushes_tangents_without_calling_the_function():
    calls = []

    def f(x, y):
        calls.append(1)
        return {"a": gg.sin(x) * y["s"], "b": x @ y["s"]}

    y = {"s": X}
    out, push = gg.linearize(f, X, y)
    near(out["a"], np.sin(X.numpy()) * X.numpy())
    for t in (gg.ones_like(X), X):
        pushed = push(t, {"s": X})
        _, expected = gg.jvp(f, [X, y], [t, {"s": X}])
        near(pushed["a"], expected["a"])
        near(pushed["b"], expected["b"])
        calls.clear()
        push(t, {"s": X})
        assert not calls


def test_linearize_gives_zero_tangents_of_integers():
    _, push = gg.linearize(lambda x: (x * x, gg.argmax(x)), X)
    pushed, of_integers = push(gg.ones_like(X))
    near(pushed, 2 * X)
    assert of_integers.item() == 0


@gg.custom_jvp
def scaled(x, n):
    return gg.sin(x) * n


@scaled.defjvp
def _(primals, tangents):
    (x, n), (t, _) = primals, tangents
    return scaled(x, n), 3 * gg.cos(x) * n * t  # the wrong factor 3 shows that this rule is used


def test_custom_jvp_applies_in_both_modes_and_under_vmap():
    expected = 3 * np.cos(X.numpy()) * 2
    near(gg.jvp(lambda x: scaled(x, 2), [X], [gg.ones_like(X)])[1], expected)
    near(gg.grad(lambda x: gg.sum(scaled(x, 2)))(X), expected)
    near(gg.vmap(gg.grad(lambda x: scaled(x, 2)))(X), expected)
    near(gg.hessian(lambda x: gg.sum(scaled(x, 2)))(X), np.diag(-6 * np.sin(X.numpy())))


def test_forward_mode_runs_the_rule_of_custom_jvp_once_and_transposes_nothing():
    cube, calls = gg.custom_jvp(lambda x: x**3), []
    cube.defjvp(lambda ps, ts: calls.append(1) or (cube(*ps), ts[0] * 3.0 * ps[0] ** 2.0))
    assert float(gg.jvp(cube, [2.0], [1.0])[1]) == 12.0
    assert calls == [1]
    assert float(gg.jvp(gg.grad(cube), [2.0], [1.0])[1]) == 12.0
    assert float(gg.grad(lambda x: gg.jvp(cube, [x], [1.0])[1])(2.0)) == 12.0
    assert float(gg.jvp(lambda x: gg.jvp(cube, [x], [1.0])[1], [2.0], [1.0])[1]) == 12.0


def test_custom_jvp_without_a_rule_raises_with_a_hint():
    @gg.custom_jvp
    def lonely(x):
        return x

    with pytest.raises(ArgumentError, match=r"@lonely\.defjvp"):
        lonely(X)


def newton(a):
    x = a
    for _ in range(40):
        x = 0.5 * (x + a / x)
    return x


ROOTS = {
    "root": gg.implicit_diff(lambda x, a: x * x - a)(newton),
    "fixed_point": gg.implicit_diff(lambda x, a: 0.5 * (x + a / x), kind="fixed_point")(newton),
    "argmin": gg.implicit_diff(lambda x, a: gg.sum(x**3 / 3 - a * x), kind="argmin")(newton),
}


@pytest.mark.parametrize("kind", ROOTS)
def test_implicit_derivatives_are_those_of_the_solution(kind):
    root = ROOTS[kind]
    near(gg.grad(lambda a: gg.sum(root(a)))(X), 0.5 / np.sqrt(X.numpy()))
    near(gg.jvp(root, [X], [X])[1], 0.5 * np.sqrt(X.numpy()))
    near(gg.vmap(gg.grad(root))(X), 0.5 / np.sqrt(X.numpy()))
    near(gg.hessian(lambda a: gg.sum(root(a)))(X), np.diag(-0.25 * X.numpy() ** -1.5))
    check_grads(root, (X,))


def test_implicit_gradient_does_not_differentiate_the_solver():
    steps = []

    @gg.implicit_diff(lambda x, a: x - gg.sin(a))
    def solve(a):
        steps.append(len(gg.GradientTape.__mro__))
        return gg.stop_gradient(gg.sin(a))  # whose own gradient is None

    near(gg.grad(lambda a: gg.sum(solve(a)))(X), np.cos(X.numpy()))
    assert len(steps) == 1


def test_implicit_solutions_and_arguments_may_be_nested_and_read_variables():
    v = gg.Variable([2.0, 3.0, 5.0], dtype=gg.float64)

    @gg.implicit_diff(
        lambda x, p: {"s": x["s"] - p["a"] * v, "t": x["t"] - gg.sum(x["s"]) * p["b"]}
    )
    def solve(p):
        s = p["a"] * v
        return {"s": s, "t": gg.sum(s) * p["b"]}

    p = {"a": X, "b": gg.constant(0.5, dtype=gg.float64)}

    def of_parts(solver, p):
        x = solver(p)
        return gg.sum(x["s"] ** 2) + x["t"] ** 2

    tape, y = taped(lambda p: of_parts(solve, p), p)
    grads = tape.gradient(y, [p["a"], p["b"], v])
    tape, y = taped(lambda p: of_parts(solve.__wrapped__, p), p)
    for g, expected in zip(grads, tape.gradient(y, [p["a"], p["b"], v]), strict=True):
        near(g, expected)


def _cubic(a, w):
    """The root y of y^3 + y sin(w) = 2 a, whose equation closes over both Tensors."""
    b, c = 2 * a, gg.sin(w)

    @gg.implicit_diff(lambda y: y**3 + y * c - b)
    def solve():
        y = gg.stop_gradient(b)
        for _ in range(30):
            y = y - (y**3 + y * c - b) / (3 * y * y + c)
        return y

    return solve()


def test_implicit_diff_differentiates_by_tensors_that_the_condition_closes_over():
    a, w = np.array([0.7, 0.9]), np.array([1.1, 0.8])
    check_grads(_cubic, (a, w), order=2)

    def loss(a, w):
        return gg.sum(_cubic(a, w))

    expected = gg.grad(loss, (0, 1))(a, w)
    for result in (
        gg.grad(gg.function(loss), (0, 1))(a, w),
        gg.function(gg.grad(loss, (0, 1)))(a, w),
        gg.vmap(gg.grad(_cubic, (0, 1)))(a, w),
    ):
        np.testing.assert_allclose(result, expected)
    shared = gg.grad(lambda w: gg.sum(gg.vmap(lambda a: _cubic(a, w))(gg.asarray(a))))(w[0])
    np.testing.assert_allclose(shared, gg.grad(loss, 1)(a, w[[0, 0]]).sum())


def test_implicit_diff_in_a_loop_differentiates_by_what_it_closes_over():
    a, w = np.array([0.7, 0.9]), np.array([1.1, 0.8])

    def twice(a, w):
        step = lambda state: (state[0] + 1, _cubic(state[1], w))  # noqa: E731
        return gg.sum(gg.while_loop(lambda state: state[0] < 2, step, (gg.asarray(0), a))[1])

    expected = gg.grad(lambda a, w: gg.sum(_cubic(_cubic(a, w), w)), (0, 1))(a, w)
    for f in (gg.grad(gg.function(twice), (0, 1)), gg.function(gg.grad(twice, (0, 1)))):
        np.testing.assert_allclose(f(gg.asarray(a), gg.asarray(w)), expected)


def test_implicit_diff_reads_a_variable_once():
    a = np.array([0.7, 0.9])
    v = gg.Variable(a)  # the tape watches it, and it is closed over
    with gg.GradientTape() as tape:
        y = _cubic(v, v)
    expected = gg.grad(lambda a: gg.sum(_cubic(a, a)))(a)
    np.testing.assert_allclose(tape.gradient(y, v), expected)


def test_implicit_diff_accepts_a_linear_solver():
    products = []

    def conjugate_gradients(matvec, b):
        products.append(1)
        x, r = gg.zeros_like(b), b
        p = r
        for _ in range(b.shape[0] + 2):
            ap = matvec(p)
            alpha = gg.sum(r * r) / gg.maximum(gg.sum(p * ap), 1e-300)
            x, new = x + alpha * p, r - alpha * ap
            p = new + gg.sum(new * new) / gg.maximum(gg.sum(r * r), 1e-300) * p
            r = new
        return x

    root = gg.implicit_diff(lambda x, a: x * x - a, solve=conjugate_gradients)(newton)
    near(gg.grad(lambda a: gg.sum(root(a)))(X), 0.5 / np.sqrt(X.numpy()))
    assert products


def test_implicit_diff_errors_name_the_problem():
    with pytest.raises(ArgumentError, match=r"kind.*'roots'"):
        gg.implicit_diff(lambda x: x, kind="roots")
    flat = gg.implicit_diff(lambda x, a: 0 * x + a)(lambda a: a)
    with pytest.raises(SingularMatrixError, match="Singular"):
        gg.grad(lambda a: gg.sum(flat(a)))(X)


def test_checkpoint_is_both_the_module_and_the_transform():
    f = gg.checkpoint(lambda x: gg.sum(gg.sin(x) * x))
    near(gg.grad(f)(X), np.cos(X.numpy()) * X.numpy() + np.sin(X.numpy()))
    assert callable(gg.checkpoint.save)


BAD = gg.constant([0.0, 1.0, 2.0])


@pytest.mark.filterwarnings("ignore::RuntimeWarning")  # NumPy's, for the branch not taken
@pytest.mark.parametrize(
    ("f", "expected"),
    [
        (lambda x: gg.where(x > 0, x * gg.log(x), 0), [0, 1, 1 + np.log(2)]),
        (lambda x: gg.where(x > 0, (1 / x) * x * x, 0), [0, 1, 1]),
        (lambda x: gg.where(x > 0, gg.square(1 / x), 0), [0, -2, -0.25]),
        (lambda x: gg.where(x > 0, (1 / x)[:, None] @ gg.ones((1, 1)), 0)[:, 0], None),
        (lambda x: gg.where(x > 0, gg.tanh(1 / x) * gg.exp(1 / x), 0), None),
        (lambda x: gg.where(gg.prod(1 / x) < 2, gg.prod(1 / x), x), [1, 1, 1]),
        (lambda x: gg.where(x > 5, gg.nn.layer_norm(1 / x, axis=-1), x), [1, 1, 1]),
    ],
)
def test_masked_branch_does_not_poison_products(f, expected):
    g = gg.grad(lambda x: gg.sum(f(x)))(BAD)
    assert np.isfinite(g.numpy()).all()
    assert expected is not None or g.numpy()[0] == 0
    if expected is not None:
        near(g, expected, 1e-6)
    assert np.isfinite(gg.hessian(lambda x: gg.sum(f(x)))(BAD).numpy()).all()


@pytest.mark.filterwarnings("ignore::RuntimeWarning")
def test_unmasked_gradient_stays_infinite_or_nan():
    x = gg.constant([0.0, 1.0])
    assert np.isnan(gg.grad(lambda x: gg.sum(x * gg.log(x)))(x).tolist()[0])
    assert np.isnan(gg.grad(lambda x: gg.sum(gg.sqrt(x) * gg.log(x) * gg.nan))(x).tolist()[0])


@pytest.mark.filterwarnings("ignore::RuntimeWarning")
def test_only_masked_rows_of_a_matrix_product_stay_finite():
    w = gg.constant([[1.0, gg.inf], [1.0, 1.0]])
    keep = gg.constant([[1.0, 0.0], [1.0, 1.0]])

    def f(x):
        y = x @ w
        return gg.sum(gg.where(keep == 1, y, 0))

    g = gg.grad(f)(gg.ones((2, 2))).tolist()
    assert g[0] == [1.0, 1.0]
    assert np.isnan(g[1][0])


@pytest.mark.filterwarnings("ignore::RuntimeWarning")
@pytest.mark.parametrize(
    "h", [gg.softmax, gg.sort, gg.cumulative_prod, gg.nn.layer_norm, gg.log_softmax, gg.flip]
)
def test_zero_cotangent_beside_a_masked_branch_has_a_derivative(h):
    x = gg.astype(BAD, gg.float64)
    at = h(x)

    def masked(x):
        return gg.where(x > 0, x * gg.log(x), 0)

    def both(x):
        return h(x) + masked(x)

    def loss(x):
        return gg.sum((h(x) - at) ** 2)  # its cotangents are 0 at x

    near(gg.linearize(both, x)[1](X), gg.jvp(both, [x], [X])[1])
    near(
        gg.hessian(lambda x: loss(x) + gg.sum(masked(x)))(x),
        gg.hessian(loss)(x) + gg.hessian(lambda x: gg.sum(masked(x)))(x),
    )
    within = gg.function(
        lambda x: gg.scan(lambda c, _: (gg.linearize(h, c)[1](X), None), x, None, length=1)[0]
    )
    near(within(x), gg.jvp(h, [x], [X])[1])


@pytest.mark.parametrize("chunk_bytes", [1, 1 << 20])
@pytest.mark.parametrize("mode", ["forward", "auto"])
def test_jacobian_by_columns_is_that_by_rows(mode, chunk_bytes, rng):
    w, p = C(rng.normal(size=(50, 36))), C(rng.normal(size=36))
    q = {"s": C(2.0), "t": C(rng.normal(size=(2, 3))), "name": "q"}

    def f(p, q):
        p[0] *= 2.0  # on a copy of the argument
        return {"a": gg.tanh(w @ p) * q["s"], "of": None, "b": [gg.sum(p) * q["t"], gg.outer(p, p)]}

    rows = gg.jacobian(f, (0, 1))(p, q)
    columns = gg.jacobian(f, (0, 1), mode=mode, chunk_bytes=chunk_bytes)(p, q)
    assert _others(columns) == _others(rows)
    for a, b in zip(_arrays(columns), _arrays(rows), strict=True):
        assert (a.shape, a.dtype) == (b.shape, b.dtype)
        np.testing.assert_allclose(a, b, 1e-6, 1e-12)


def test_jacobian_in_forward_mode_nests_and_refuses(rng):
    forward = functools.partial(gg.jacobian, mode="forward")
    x = C(rng.normal(size=3))
    exact = np.zeros((3, 3, 3))
    exact[*np.diag_indices(3, 3)] = 6 * x.numpy()
    for f in (forward(forward(lambda x: x**3)), gg.jacobian(forward(lambda x: x**3))):
        near(f(x), exact)
        near(gg.function(f)(x), exact)
        near(gg.vmap(f)(gg.stack([x, x]))[1], exact)
    assert forward(lambda x: x * x)(gg.ones(0)).shape == (0, 0)
    with pytest.raises(ArgumentError, match='mode must be "reverse" or "forward" or "auto"'):
        gg.jacobian(gg.tanh, mode="backward")
    with pytest.raises(DTypeError, match=r'^jacobian: mode="forward" takes real'):
        forward(lambda x: x * 1j)(x)
    with pytest.raises(DTypeError, match=r"^jacobian: the function must return Tensors, got 3"):
        forward(lambda x: 3)(x)
    assert gg.jacobian(lambda x: x * 1j, mode="auto")(x[:1]).shape == (1, 1)


def test_batch_jacobian_is_the_jacobian_of_each_example(rng):
    x, w = rng.normal(size=(4, 3)), rng.normal(size=(3, 2))

    def f(x):
        return gg.tanh(x @ w)

    jacobians = gg.batch_jacobian(f)(x)
    assert jacobians.shape == (4, 2, 3)
    for row, example in zip(jacobians, x, strict=True):
        np.testing.assert_allclose(row.numpy(), gg.jacobian(f)(example).numpy())
    with pytest.raises(ShapeError, match="batch axis"):
        gg.batch_jacobian(gg.tanh)(x[0])


@dataclasses.dataclass
class Layer:
    kernel: Any
    name: str = "layer"
    bias: Any = None
    activation: Any = gg.tanh


def _layer_loss(layer, scale=2.0):
    return gg.sum(layer.activation(layer.kernel) * scale)


STRUCTURES = {  # a structure and its loss
    "None in a dict": ({"a": C([1.0, 2.0]), "b": None}, lambda p: gg.sum(p["a"] ** 3)),
    "None in a list": ([None, C([1.0, 2.0])], lambda p: gg.sum(p[1] ** 3)),
    "dataclass": (Layer(C([1.0, 2.0])), _layer_loss),
    "nested": ({"l": [Layer(C([1.0, 2.0]))], "n": ("x", None)}, lambda p: _layer_loss(p["l"][0])),
}


def _arrays(structure):
    return [x.numpy() for x in nest.flatten(structure) if isinstance(x, gg.Tensor)]


def _others(structure):
    return [x for x in nest.flatten(structure) if not isinstance(x, gg.Tensor)]


@pytest.mark.parametrize("name", STRUCTURES)
def test_leaves_that_are_no_numbers_stay_in_every_derivative(name):
    p, loss = STRUCTURES[name]
    (x,) = (leaf for leaf in nest.flatten(p) if isinstance(leaf, gg.Tensor))

    def of_array(x):
        return loss(nest.map_structure(lambda leaf: x if isinstance(leaf, gg.Tensor) else leaf, p))

    ones = nest.map_structure(lambda v: gg.ones(2) if isinstance(v, gg.Tensor) else v, p)
    g = gg.grad(of_array)(x).numpy()
    results = {
        "grad": (gg.grad(loss)(p), g),
        "value_and_grad": (gg.value_and_grad(loss)(p)[1], g),
        "vjp": (gg.vjp(loss, p)[1](C(1.0))[0], g),
        "jacobian": (gg.jacobian(loss)(p), g),
        "jvp": (gg.jvp(loss, [p], [ones])[1], g.sum()),
        "hvp": (gg.hvp(loss, [p], [ones])[0], gg.hessian(of_array)(x).numpy().sum(0)),
        "traced": (gg.function(gg.grad(loss))(p), g),
    }
    for title, (result, desired) in results.items():
        np.testing.assert_allclose(*_arrays(result), desired, err_msg=title, rtol=1e-6)
        if title not in ("jvp", "hvp"):
            assert _others(result) == _others(p), title
    (second,) = _arrays(gg.hessian(loss)(p))
    np.testing.assert_allclose(second, gg.hessian(of_array)(x).numpy(), rtol=1e-6)


def test_vmap_shares_leaves_that_are_no_numbers():
    layers = Layer(C([[1.0, 2.0], [3.0, 4.0]]))
    out = gg.vmap(lambda layer: {"y": _layer_loss(layer), "of": layer.name, "no": None})(layers)
    np.testing.assert_allclose(out["y"], 2 * np.tanh([[1, 2], [3, 4]]).sum(1), rtol=1e-6)
    assert (out["of"], out["no"]) == ("layer", None)
    with pytest.raises(DTypeError, match="None is not a number"):
        gg.vmap(lambda x: None)(C([1.0]))


def test_tape_gives_none_for_none_among_its_sources():
    x = C([1.0, 2.0])
    with gg.GradientTape(persistent=True) as tape:
        tape.watch({"a": x, "b": None})
        y = x * x
    g = tape.gradient([y], {"a": x, "b": None})
    assert (g["a"].tolist(), g["b"]) == ([2.0, 4.0], None)
    assert tape.jacobian(y, [None, x])[0] is None
    for bad in (None, "text", ["text"]):
        with pytest.raises(DTypeError, match="expected Tensors"):
            tape.gradient(y, bad)
        with pytest.raises(DTypeError, match="expected Tensors"):
            tape.gradient(bad, x)


def test_argument_without_a_number_is_refused():
    for bad in (None, "text"):
        with pytest.raises(DTypeError, match="is not a number"):
            gg.grad(lambda x: x)(bad)


def test_gradient_by_a_module_has_its_variables_names():
    model = gg.nn.Sequential([gg.nn.Dense(3, 4), gg.nn.Dense(4, 1)])
    x = gg.ones((2, 3))

    def loss(model, x):
        return gg.sum(model(x) ** 2)

    value, g = gg.value_and_grad(loss)(model, x)
    with gg.GradientTape() as tape:
        desired = loss(model, x)
    variables = {n: v for n, v in model.named_variables() if v.trainable}
    assert value.item() == desired.item()
    for name, d in tape.gradient(desired, variables).items():
        np.testing.assert_array_equal(g[name], d)
    by_both = gg.grad(loss, (0, 1))(model, x)
    assert by_both[0].keys() == variables.keys()
    assert by_both[1].shape == x.shape
