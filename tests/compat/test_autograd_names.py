"""Autograd's names: operators, primitives, distributions and boxes, beside formulas by hand."""

import subprocess
import sys
import types
import warnings

import numpy as onp
import pytest
import scipy.integrate
import scipy.linalg
import scipy.signal
import scipy.stats

import gpugrad as gg
import gpugrad.compat.autograd.numpy as np
import gpugrad.compat.autograd.scipy as scipys
from gpugrad.compat import autograd as ag
from gpugrad.compat.autograd import extend, misc
from gpugrad.compat.autograd.boxes import ArrayBox
from gpugrad.compat.autograd.misc import fixed_points, optimizers
from gpugrad.compat.autograd.test_util import check_grads, combo_check

R = onp.random.default_rng(0)
X, M = R.normal(size=3), R.normal(size=(3, 3))
C = X + 1j * X[::-1]


def test_operators_agree_with_formulas():
    f = lambda x: np.sum(np.sin(x) * x)  # noqa: E731
    df, ddf = onp.sin(X) + X * onp.cos(X), 2 * onp.cos(X) - X * onp.sin(X)
    v = onp.ones(3)
    value, gradient = ag.value_and_grad(f)(X)
    both, aux = ag.grad_and_aux(lambda x: (f(x), x))(X)
    checks = [
        (gradient, df), (value, onp.sum(onp.sin(X) * X)), (ag.hessian(f)(X), onp.diag(ddf)),
        (ag.elementwise_grad(np.sin)(X), onp.cos(X)), (ag.deriv(np.sin)(X), onp.cos(X)),
        (ag.jacobian(np.sin)(X), onp.diag(onp.cos(X))), (ag.make_hvp(f)(X)[0](v), ddf),
        (ag.make_jvp(np.sin)(X)(v), (onp.sin(X), onp.cos(X))), (both, df), (aux, X),
        (ag.hessian_vector_product(f)(X, v), ddf), (ag.checkpoint(np.sin)(X), onp.sin(X)),
        (ag.vector_jacobian_product(np.sin)(X, v), onp.cos(X)),
        (ag.grad(ag.checkpoint(lambda x: f(x)))(X), df),
        (ag.grad_named(lambda a, x: f(x), "x")(1, X), df),
        (ag.multigrad_dict(lambda x, y: f(x) * y)(X, 2.0)["x"], 2 * df),
        (ag.make_ggnvp(np.sin)(X)(v), onp.cos(X) ** 2),
        (ag.grad(lambda x: ag.grad(lambda y: x * y)(3.0))(2.0), 1.0),  # by a closure
    ]  # fmt: skip
    for got, expected in checks:
        assert not isinstance(got, (ArrayBox, gg.Tensor))
        for a, b in zip(onp.atleast_1d(got), onp.atleast_1d(expected), strict=True):
            onp.testing.assert_allclose(a, b, 1e-12)


def test_complex_gradients_are_not_conjugated():
    onp.testing.assert_allclose(ag.holomorphic_grad(lambda z: np.sum(z * z))(C), 2 * C)
    squares = ag.grad(lambda z: np.real(np.sum(z * np.conj(z))))(C)
    onp.testing.assert_allclose(squares, 2 * C.conj())


def test_nests_keep_their_structure():
    nest = {"a": [X, 2.0], "b": (1.0, {"c": M})}
    g = ag.grad(lambda p: np.sum(p["a"][0]) * p["a"][1] + np.sum(p["b"][1]["c"] ** 2))(nest)
    assert type(g["b"]) is tuple
    onp.testing.assert_allclose(g["a"][0], 2 * onp.ones(3))
    assert (g["a"][1], g["b"][0]) == (X.sum(), 0)
    onp.testing.assert_allclose(g["b"][1]["c"], 2 * M)
    flat, unflatten = misc.flatten(nest)
    onp.testing.assert_array_equal(unflatten(flat)["b"][1]["c"], M)
    for optimize in (optimizers.sgd, optimizers.rmsprop, optimizers.adam):
        descended = optimize(lambda p, i: p, {"w": X}, num_iters=30)
        assert onp.abs(descended["w"]).sum() < onp.abs(X).sum()


@pytest.mark.parametrize(
    ("f", "args"),
    [
        (lambda x: np.r_[x, 1.0] @ np.c_[np.ones(4), np.ones(4)], (X,)),
        (lambda x: np.array([x[0], [x[1]][0], 2.0]) / (1 + x), (X,)),
        (lambda a: np.linalg.eigh(a, "U")[0], (M,)),
        (lambda a: np.where(a > 0, a**2, -a), (M,)),
        (lambda a: np.einsum("ij,kj->ik", a, a)[np.int64(np.array(1.0))], (M,)),
        (lambda a: scipys.linalg.sqrtm(a + a.T), (M,)),  # a complex root of a real matrix
        (lambda a, b: scipys.linalg.solve_banded((1, 1), a, b), (onp.add(M, [[0], [9], [0]]), X)),
        (lambda a, b: scipys.linalg.solve_banded((0, 2), a, b), (onp.add(M, [[0], [0], [9]]), M)),
        (lambda a, b: scipys.linalg.solve_triangular(a, b, trans="T", lower=True),
         (M + 4 * onp.eye(3), X)),
        (lambda a, b: scipys.special.logsumexp(a, axis=1, b=b * b), (M, M)),
        (lambda y, a: scipys.integrate.odeint(
            lambda y, t, a: a * np.sin(y) + t, y, [0, 0.5, 1.0], (a,), rtol=1e-10, atol=1e-10
        ), (X, 0.7)),
    ],
)  # fmt: skip
def test_functions_are_numpys_and_scipys_with_gradients(f, args):
    check_grads(f, tuple(range(len(args))), modes=["rev"], order=1)(*args)


@pytest.mark.parametrize("mode", ["full", "valid", "same"])
def test_convolutions_of_some_axes(mode):
    a, b = R.normal(size=(4, 5)), R.normal(size=(2, 3))
    got = scipys.signal.convolve(a, b, mode=mode)
    onp.testing.assert_allclose(got, scipy.signal.convolve2d(a, b, mode=mode))
    axes = ([1], [0])
    rows = [[onp.convolve(r, c, mode) for c in b.T] for r in a]
    onp.testing.assert_allclose(scipys.signal.convolve(a, b, axes, mode=mode), rows)
    summed = scipys.signal.convolve(a, b[:, :2].repeat(2, 1), axes, ([0], [1]), mode)
    onp.testing.assert_allclose(
        summed, sum(onp.convolve(a[k], b[:, k // 2], mode) for k in range(4))
    )
    combo_check(scipys.signal.convolve, [0, 1], order=1)([a], [b], mode=[mode])


@pytest.mark.parametrize(
    ("name", "functions", "args"),
    [
        ("norm", ["pdf", "logpdf", "cdf", "logcdf", "sf", "logsf"], (X, 0.3, 1.5)),
        ("t", ["pdf", "logpdf", "cdf", "logcdf"], (X, 3.0, 0.3, 1.5)),
        ("beta", ["pdf", "logpdf", "cdf"], (X**2 / 9, 1.5, 2.5)),
        ("gamma", ["pdf", "logpdf", "cdf"], (X**2, 1.5)),
        ("chi2", ["pdf", "logpdf", "cdf"], (X**2, 3.0)),
        ("poisson", ["pmf", "logpmf", "cdf"], (onp.arange(3.0), 1.5)),
        ("dirichlet", ["pdf", "logpdf"], (onp.array([0.2, 0.3, 0.5]), onp.array([1.5, 2.0, 2.5]))),
        ("multivariate_normal", ["pdf", "logpdf"], (X, X[::-1], M @ M.T + onp.eye(3))),
    ],
)  # fmt: skip
def test_distributions_are_scipys_with_gradients(name, functions, args):
    ours, plain = getattr(scipys.stats, name), getattr(scipy.stats, name)
    first = int(
        name in ("poisson", "dirichlet")
    )  # the others have no gradient, or lie on a simplex
    for function in functions:
        f = getattr(ours, function)
        one = ag.make_vjp(lambda x, f=f: f(*args[:first], x, *args[first + 1 :]))(args[first])[1]
        onp.testing.assert_allclose(one, getattr(plain, function)(*args), 1e-9)
        check_grads(f, first, order=1)(*args)
    assert ours.rvs == plain.rvs or ours.rvs.__func__ is plain.rvs.__func__


def test_primitives_serve_both_modes_to_any_order():
    by_vjp, by_jvp, nested = (
        extend.primitive(f)
        for f in (onp.exp, lambda x: onp.exp(x), lambda p, q: {"a": p[0] * q, "b": (p[1] + q,)})
    )
    extend.defvjp(by_vjp, lambda ans, x: lambda g: g * ans)
    extend.defjvp(by_jvp, lambda g, ans, x: g * ans)
    extend.defvjp_argnums(
        nested,
        lambda argnums, ans, args, kw: (
            lambda g: [
                ([g["a"] * args[1], g["b"][0]], np.sum(g["a"] * args[0][0] + g["b"][0]))[k]
                for k in argnums
            ]
        ),
    )
    for f in (by_vjp, by_jvp):
        check_grads(f, modes=["fwd", "rev"], order=2)(X)
    check_grads(lambda p, q: nested(p, q), (0, 1), modes=["rev"], order=2)([X, X], 2.0)
    solve = lambda a: fixed_points.fixed_point(  # noqa: E731
        lambda a: lambda x: np.cos(x) * a, a, 1.0, lambda x, y: abs(x - y), 1e-13
    )
    check_grads(solve, modes=["rev"], order=2)(0.5)


def test_rules_of_a_library_go_before_ours_each_in_its_mode():
    raw = lambda x: x * 2.0  # noqa: E731
    both, used = extend.primitive(raw), []
    extend.defvjp(both, lambda ans, x: lambda g: used.append("vjp") or g * 2.0)
    rule = extend.primitive(lambda g: used.append("jvp") or g * 2.0)  # has no derivative itself
    extend.defjvp(both, lambda g, ans, x: rule(g))
    onp.testing.assert_allclose(ag.make_jvp(both)(X)(X)[1], 2 * X)
    onp.testing.assert_allclose(ag.elementwise_grad(both)(X), 2.0)
    assert used == ["jvp", "vjp"]
    used.clear()
    ag.make_jvp(ag.elementwise_grad(lambda x: both(x) ** 2))(X)(X)  # transposes no VJP
    assert used == ["jvp", "vjp"]
    linear = extend.primitive(raw)
    extend.defvjp(linear, lambda ans, x: lambda g: linear(g))
    extend.defjvp(linear, lambda g, ans, x: linear(g))  # itself, also where it is transposed
    check_grads(linear, modes=["fwd", "rev"], order=3)(X)
    assert np.linalg.cond is np.linalg.cond  # rules belong to one object
    extend.defjvp(np.linalg.det, lambda g, ans, x: 7.0)
    try:
        assert ag.make_jvp(np.linalg.det)(M)(M)[1] == 7.0
        onp.testing.assert_allclose(
            ag.grad(np.linalg.det)(M), onp.linalg.det(M) * onp.linalg.inv(M).T
        )
    finally:
        del ag.core.primitive_jvps[np.linalg.det]


def test_a_rule_may_read_the_boxes_of_its_call_and_leave_gradients_out():
    held = []  # as PennyLane's circuits hold the parameters of a primitive
    cube = extend.primitive(lambda xs, hidden: onp.asarray(hidden(), dtype=object) ** 3)
    rule = lambda g: [g * 3 * getattr(held[-1], "_value", 1.0) ** 2, None, "no leaf"]  # noqa: E731
    extend.defvjp(cube, lambda ans, xs, hidden: rule)

    def f(x, y=1.0):
        held.append(x)
        return cube([x, y], lambda: x)

    assert (ag.grad(f)(2.0), ag.grad(ag.grad(f))(2.0)) == (12.0, 12.0)
    assert ag.grad(f, argnum=1)(2.0, 5.0) == 0.0


def test_a_primitive_runs_once_for_derivatives_of_any_order():
    runs = []
    cube = extend.primitive(lambda x: runs.append(1) or x**3)
    extend.defvjp(cube, lambda ans, x: lambda g: g * 3 * ans / x)  # reads the result
    third = ag.grad(ag.grad(ag.grad(lambda x: cube(x))))
    assert (third(2.0), len(runs)) == (pytest.approx(6.0), 1)


def test_jacobians_in_one_pass_are_those_by_rows(monkeypatch):
    f = lambda x: np.tanh(x) * x[::-1] + np.sum(x)  # noqa: E731
    double = extend.primitive(lambda x: 2 * onp.asarray(x))  # takes no batch of gradients
    extend.defvjp(double, lambda ans, x: lambda g: 2 * onp.asarray(g))
    cases = [(f, X), (lambda x: np.outer(f(x), x[:2]), X), (lambda x: double(x) * 1.0, X)]
    cases += [(lambda z: np.real(z * z), C), (lambda x: onp.ones(3), X)]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of the constant
        found = [ag.jacobian(g)(x) for g, x in cases] + [ag.hessian(lambda x: np.sum(f(x)))(X)]
        monkeypatch.setattr(ag.derivatives.Pullback, "rows", lambda self: None)
        by_rows = [ag.jacobian(g)(x) for g, x in cases] + [ag.hessian(lambda x: np.sum(f(x)))(X)]
    for one, other in zip(found, by_rows, strict=True):
        assert type(one) is onp.ndarray
        onp.testing.assert_allclose(one, other, 1e-12, 1e-15)


def test_gradients_by_a_librarys_arrays_are_of_its_class():
    kind = type("Own", (onp.ndarray,), {})
    ArrayBox.register(kind)
    try:
        x = X.view(kind)
        assert type(ag.grad(lambda x: np.sum(x * x))(x)) is kind
        assert (
            type(ag.grad(lambda p: np.sum(p["a"] * p["b"]))({"a": x, "b": X})["b"]) is onp.ndarray
        )
        square = extend.primitive(lambda x: onp.asarray(x) ** 2)
        extend.defvjp(square, lambda ans, x: lambda g: onp.asarray(2 * x * g))
        assert type(ag.grad(lambda x: np.sum(square(x)))(x)) is onp.ndarray  # as the rule has it
    finally:
        del ArrayBox.type_mappings[kind]


def test_names_stand_in_the_dict_for_libraries_that_copy_it():
    for module in (np, np.linalg, np.fft, np.random):
        assert "__getattr__" not in vars(module)
    assert {"array", "exp", "linalg"} <= vars(np).keys()
    masks = []
    ag.grad(lambda x: np.sum(x * (masks.append(x > 0) or masks[-1])))(X)
    assert type(masks[0]) is onp.ndarray  # no box: it has no gradient


def test_what_is_refused_says_so():
    lacking = extend.primitive(onp.sin)
    for error, words, call in (
        (NotImplementedError, "VJP of sin", lambda: ag.grad(lambda x: lacking(x))(1.0)),
        (
            TypeError,
            "sin: argument 0, a SimpleNamespace, .*'w'",
            lambda: ag.grad(lambda x: lacking(types.SimpleNamespace(w=x)))(1.0),
        ),
        (TypeError, "scalar-output", lambda: ag.grad(np.sin)(X)),
        (TypeError, "differentiate w.r.t. type <class 'int'>", lambda: ag.grad(np.sin)(3)),
        (TypeError, "vector space", lambda: extend.vspace("text")),
        (AttributeError, "nearest names are .*matmul", lambda: np.matmull),
        (NotImplementedError, "explain", lambda: extend.VJPNode()),
        (ValueError, "mode", lambda: scipys.signal.convolve(X, X, mode="half")),
        (TypeError, "float", lambda: ag.grad(lambda x: float(x))(1.0)),
        (TypeError, "^add: ", lambda: ag.grad(lambda x: x + "a")(1.0)),
        (TypeError, "differentiate w.r.t. type <class 'str'>", lambda: ag.grad(np.sin)("a")),
        (TypeError, "object", lambda: ag.grad(np.sum)(onp.array([object(), 1], object))),
        (ValueError, "lengths 3 and 4", lambda: ag.grad(lambda x: np.dot(x, onp.ones(4)))(X)),
        (ImportError, "before", ag.install),
    ):
        before = sys.modules.get("autograd")
        if error is ImportError:
            sys.modules["autograd"] = onp
        try:
            with pytest.raises(error, match=words):
                call()
        finally:
            if error is ImportError:
                sys.modules.pop("autograd")
                if before is not None:
                    sys.modules["autograd"] = before
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        assert ag.grad(lambda x: 3.0)(1.0) == 0
    assert "independent" in str(caught[0].message)


def test_installed_it_is_autograd_for_others():
    code = (
        "import sys, gpugrad.compat.autograd as a; a.install(); a.install()\n"
        "print({'scipy', 'numpy.f2py'}.isdisjoint(sys.modules))\n"  # imported when asked for
        "import autograd, autograd.numpy as np, autograd.misc.optimizers\n"
        "from autograd.numpy.numpy_boxes import ArrayBox\n"
        "from autograd.scipy.stats import norm\n"
        "seen = []\n"
        "autograd.grad(lambda x: seen.append(x) or norm.logpdf(np.tanh(x)))(1.0)\n"
        "box = seen[0]\n"
        "print(type(box) is ArrayBox, type(box).__module__, box._value)\n"
        "print(autograd.isinstance(box, float), autograd.scipy.stats.norm is norm, end=' ')\n"
        "print(sys.modules['autograd.numpy'] is np, 'fft' in vars(np), np.__spec__.name)\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.split() == [
        *("True", "True", "autograd.numpy.numpy_boxes", "1.0"),
        *("True", "True", "True", "True", "gpugrad.compat.autograd.numpy"),
    ]
