"""`gg.scipy.optimize` against SciPy: values, derivatives of solutions, warnings and errors."""

import doctest
import inspect
import math
import warnings

import numpy as np
import pytest
import scipy.optimize as theirs

import gpugrad as gg
from gpugrad.errors import ArgumentError, DTypeError, SingularMatrixError
from gpugrad.scipy.optimize import on_gpu
from gpugrad.testing import check_grads

ours = gg.scipy.optimize
T = gg.asarray
A, B = np.array([[2.0, 0.3], [0.3, 1.0]]), np.array([1.0, -0.5])
START, LOW = [0.3, 0.2], np.array([-1.0, -0.2])


def bowl(x, b):
    """A convex function whose second derivatives vary."""
    return gg.sum(x @ A @ x) / 2 + 0.1 * gg.sum(x**4) - gg.sum(b * x)


def minimum(b, **options):
    return ours.minimize(bowl, START, args=(b,), **options).x


def check(f, *args, eps=1e-3, order=2):
    """Compare derivatives with differences of solutions, which are only as exact as the solver."""
    check_grads(f, args, order=order, eps=eps, rtol=1e-4, atol=1e-5)


METHODS = ["Nelder-Mead", "CG", "BFGS", "L-BFGS-B", "Newton-CG", "TNC", "SLSQP", "trust-constr",
           "dogleg", "trust-ncg", "trust-exact", "trust-krylov"]  # fmt: skip
EXACT = minimum(T(B), method="trust-exact", tol=1e-12)
SLOPE = gg.inv(A + np.diag(1.2 * np.asarray(EXACT) ** 2))


@pytest.mark.filterwarnings("ignore::scipy.optimize.OptimizeWarning", "ignore::RuntimeWarning")
@pytest.mark.thin(4)
@pytest.mark.parametrize("method", METHODS)
def test_each_method_finds_a_minimum_with_its_derivative(method):
    tol = {"Nelder-Mead": 1e-10, "trust-krylov": 1e-6}.get(method, 1e-8)
    slope = gg.jacobian(lambda b: minimum(b, method=method, tol=tol))(T(B))
    np.testing.assert_allclose(minimum(T(B), method=method, tol=tol), EXACT, atol=1e-5)
    np.testing.assert_allclose(slope, SLOPE, atol=1e-4)
    again = gg.hessian(lambda b: gg.sum(minimum(b, method=method, tol=tol)))(T(B))
    expected = gg.hessian(lambda b: gg.sum(minimum(b, method="trust-exact", tol=1e-12)))(T(B))
    np.testing.assert_allclose(again, expected, atol=1e-3)


def test_scipys_calls_are_as_many_as_with_a_gradient_of_the_user():
    mine = ours.minimize(ours.rosen, [1.3, 0.7, 0.8])
    scipys = theirs.minimize(theirs.rosen, [1.3, 0.7, 0.8], jac=theirs.rosen_der)
    np.testing.assert_allclose(mine.x, scipys.x, atol=1e-6)
    assert (mine.nit, mine.nfev, mine.njev) == (scipys.nit, scipys.nfev, scipys.njev)
    assert mine.keys() == scipys.keys()
    assert all(isinstance(mine[key], gg.Tensor) for key in ("x", "fun", "jac", "hess_inv"))


def constrained(kind):
    def solved(b, c):
        limits = {
            "eq": [{"type": "eq", "fun": lambda x, c: x[0] + 2 * x[1] - c, "args": (c,)}],
            "ineq": [{"type": "ineq", "fun": lambda x: c / 10 - gg.sum(x * x)}],
            "not active": {"type": "ineq", "fun": lambda x: 9 + c - gg.sum(x * x)},
            "linear": theirs.LinearConstraint(np.array([[1.0, 2.0]]), -9, -0.8),
            "nonlinear": theirs.NonlinearConstraint(lambda x: gg.stack([x @ x, x[0]]), 0, [0.1, 9]),
        }[kind]
        return minimum(b, constraints=limits, method="SLSQP", tol=1e-12)

    return solved


PARAMETER = np.array(0.4)
TIMES = np.linspace(0, 2, 6)
DATA = 1.3 * np.exp(-0.7 * TIMES) + 0.05 * np.sin(9 * TIMES)
SIGMA = 0.1 + 0.02 * TIMES
COVARIANCE = np.diag(SIGMA) + 0.01
M = np.random.default_rng(0).normal(size=(5, 3))
TIGHT = {"xtol": 1e-14, "ftol": 1e-14}


def decay(t, a, b):
    return a * gg.exp(-b * t)


def residuals(p, y):
    return decay(TIMES, *p) - y


def pair(x, a):
    return gg.stack([x[0] + x[1] ** 3 - a[0], x[0] * x[1] - a[1]])


def cube(x, a):
    return x**3 - a


def scalar_root(method):
    more = {"newton": {"x0": 1.0}, "halley": {"x0": 1.0}, "secant": {"x0": 1.0, "x1": 2.0}}
    options = more.get(method, {"bracket": [0.1, 5]})
    return lambda a: ours.root_scalar(cube, args=(a,), method=method, **options).root


def robust(loss):
    options = {"loss": loss, "f_scale": 0.5, "gtol": 1e-14, **TIGHT}
    return lambda y: ours.least_squares(residuals, [1.0, 1.0], args=(y,), **options).x


def fit(x, y, s, **options):
    return ours.curve_fit(decay, x, y, sigma=s, **options)


TWO, PAIR = np.array(2.0), np.array([2.0, 1.1])
SOLUTIONS = {
    "minimum": (lambda b: ours.minimize(bowl, START, (b,), tol=1e-9), B),
    "bounds": (
        lambda b, low: minimum(b, bounds=[(low[0], None), (low[1], 1)], tol=1e-12), B, LOW),
    "Bounds": (lambda low: minimum(B, bounds=ours.Bounds(low, [1.0, 1.0]), tol=1e-12), LOW),
    **{kind: (constrained(kind), B, PARAMETER) for kind in ("eq", "ineq", "not active")},
    **{kind: (lambda b, k=kind: constrained(k)(b, 0.4), B) for kind in ("linear", "nonlinear")},
    "scalar": (lambda a: ours.minimize_scalar(lambda x: x**4 - a * x, (0.1, 1), tol=1e-9).x, TWO),
    "on bound": (lambda a: ours.minimize_scalar(lambda x: x * a, bounds=(1, 2)).x, TWO),
    "root": (lambda a: ours.root(pair, [1.0, 1.0], (a,), tol=1e-13).x, PAIR),
    "krylov": (lambda a: ours.root(pair, [1.6, 0.6], (a,), "krylov", tol=1e-12).x, PAIR),
    "fsolve": (lambda a: ours.fsolve(pair, [1.0, 1.0], (a,), xtol=1e-13), PAIR),
    **{m: (scalar_root(m), TWO) for m in ("newton", "halley", "secant", "brentq", "bisect")},
    "toms748": (lambda a: ours.toms748(cube, 0, 5, (a,), full_output=True)[0], TWO),
    "newton array": (lambda a: ours.newton(cube, [1.0, 1.2], None, (a,), tol=1e-13), PAIR),
    "fixed point": (
        lambda a: ours.fixed_point(lambda x: gg.cos(a * x), 1.0, xtol=1e-13), PARAMETER),
    **{x: (robust(x), DATA) for x in ("linear", "soft_l1", "huber", "cauchy", "arctan")},
    "box": (
        lambda y, u: ours.least_squares(residuals, [1.0, 0.5], bounds=([0, 0], u), args=(y,)).x,
        DATA, np.array([1.2, 2.0])),
    "leastsq": (lambda y: ours.leastsq(residuals, [1.0, 1.0], (y,), **TIGHT)[0], DATA),
    "curve": (lambda x, y, s: fit(x, y, s, **TIGHT), TIMES, DATA, SIGMA),
    "covariance": (
        lambda y, s: fit(TIMES, y, s + s.T, absolute_sigma=True, **TIGHT), DATA, COVARIANCE),
    "nnls": (lambda m, b: ours.nnls(m, b)[0], M, M @ [1.0, -2.5, 2.0]),
    "box of lines": (
        lambda m, b, u: ours.lsq_linear(m, b, (-1.0, u)).x,
        M, M @ [1.0, -0.5, 2.0], np.array([2.0, 1.0, 1.5])),
    "differences": (lambda a: ours.approx_fprime([1.0, 2.0], lambda x: a * gg.sum(x * x)), TWO),
}  # fmt: skip


FIRST = {"box", "differences", "ineq", "linear", "nonlinear", "krylov", "cauchy"}


@pytest.mark.thin(5)
@pytest.mark.filterwarnings("ignore::scipy.optimize.OptimizeWarning")
@pytest.mark.parametrize("name", SOLUTIONS)
def test_solutions_have_derivatives(name):
    f, *args = SOLUTIONS[name]
    if name == "minimum":
        check(lambda b: (f(b).x, f(b).fun), *args)
    else:
        check(f, *args, order=1 if name in FIRST else 2)


@pytest.mark.parametrize("name", SOLUTIONS)
def test_solutions_are_those_without_a_tape(name):
    f, *args = SOLUTIONS[name]
    f = (lambda b: ours.minimize(bowl, START, (b,), tol=1e-9).x) if name == "minimum" else f
    plain = f(*map(T, args))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", theirs.OptimizeWarning)
        with gg.GradientTape() as tape:
            tape.watch(tensors := [T(a) for a in args])
            taped = f(*tensors)
    for x, y in zip(*(v if isinstance(v, tuple) else (v,) for v in (plain, taped)), strict=True):
        np.testing.assert_allclose(x, y, rtol=1e-5, atol=1e-12)


FITS = [{}, {"sigma": SIGMA}, {"sigma": COVARIANCE}, {"sigma": SIGMA, "absolute_sigma": True}]
FITS += [{"bounds": (0, [1.2, 2]), "p0": [1.0, 1.0]}]


@pytest.mark.parametrize("options", FITS, ids=str)
def test_fits_of_curves_are_scipys(options):
    expected = theirs.curve_fit(lambda x, a, b: a * np.exp(-b * x), TIMES, DATA, **options)
    with gg.GradientTape() as tape:
        tape.watch(y := T(DATA))
        results = [ours.curve_fit(decay, TIMES, y, **options)]
    results.append(ours.curve_fit(decay, TIMES, y, **options))
    for result in results:
        np.testing.assert_allclose(result[0], expected[0], rtol=1e-5)
        np.testing.assert_allclose(result[1], expected[1], rtol=1e-4)


def test_solutions_have_gradients_by_variables_and_by_what_a_function_closes_over():
    w = gg.Variable(B)
    with gg.GradientTape() as tape:
        x = ours.minimize(lambda x: bowl(x, w * 1), START, tol=1e-9).x
    np.testing.assert_allclose(tape.gradient(x, w), SLOPE.sum(0), atol=1e-5)
    closed = gg.jacobian(lambda b: ours.minimize(lambda x: bowl(x, 2 * b), START, tol=1e-9).x)
    np.testing.assert_allclose(closed(T(B / 2)), 2 * SLOPE, atol=1e-5)
    found = gg.jacobian(lambda b: ours.shgo(bowl, [(-2, 2)] * 2, (b,)).x)
    np.testing.assert_allclose(found(T(B)), SLOPE, atol=1e-4)
    many = T(np.ones(1001))  # conjugate gradients

    def loss(a):
        f = lambda x: gg.sum((x - a) ** 2 + (x - a * a) ** 2)  # noqa: E731
        return gg.sum(ours.minimize(f, 0.9 * many, method="L-BFGS-B", tol=1e-12).x ** 2)

    np.testing.assert_allclose(gg.grad(loss)(many), 3 * np.ones(1001), rtol=1e-6)


def test_a_solver_that_did_not_converge_says_so_and_its_gradient_too():
    for solved in (
        lambda b: minimum(b, method="BFGS", options={"maxiter": 1}),
        lambda b: ours.root(lambda z: z**2 + 1 + b * b, [1.0, 0.3]).x,
        lambda b: ours.least_squares(lambda z: gg.exp(z) - b, [4.0, 3.0], max_nfev=2).x,
    ):
        b, message = T(B), "did not converge.*misses 0 by"
        with gg.GradientTape() as tape:
            tape.watch(b)
            with pytest.warns(theirs.OptimizeWarning, match=message):
                x = solved(b)
        with pytest.warns(theirs.OptimizeWarning, match=f"gradient of .*{message}"):
            assert tape.gradient(x, b) is not None
        solved(b)  # SciPy's result tells it


def test_singular_solutions_have_no_gradient():
    with pytest.raises(SingularMatrixError):
        gg.grad(lambda a: gg.sum(ours.root(lambda x: 0 * x + 0 * a, START).x))(T(B))


BAD = {
    "must return a scalar": lambda o, t: o.minimize(lambda x: x, t(B)),
    "only have one dimension": lambda o, t: o.minimize(lambda x: (x * x).sum(), t(A)),
    "Unknown solver": lambda o, t: o.minimize(lambda x: (x * x).sum(), t(B), method="x"),
    "different signs": lambda o, t: o.brentq(lambda x: x * x + 1, 0, 1),
    "outside of provided bounds|infeasible": lambda o, t: o.least_squares(
        lambda x: x, t(B), bounds=(2, 3)
    ),
    "converge after": lambda o, t: o.newton(lambda x: x * x + 1, 1.0),
    "Optimal parameters": lambda o, t: o.curve_fit(
        lambda x, a, b: a * x**b, t(TIMES), t(DATA), [9.0, 9.0], maxfev=2
    ),
    "incompatible|mismatch|broadcast": lambda o, t: o.curve_fit(lambda x, a: a * x, t(B), t(DATA)),
    "1-D array|1-dimensional|one-dim|1D": lambda o, t: o.nnls(t(A), t(A)),
}


@pytest.mark.parametrize("words", BAD)
def test_bad_arguments_raise_scipys_errors(words):
    for module, convert in ((theirs, np.asarray), (ours, T)):
        with pytest.raises((ValueError, RuntimeError), match=words):
            BAD[words](module, convert)


def test_solvers_refuse_traces_and_batches_and_functions_without_derivatives_tapes():
    for transform in (gg.function, gg.vmap):
        with pytest.raises(ArgumentError, match=r"minimize: .*gg.function and gg.vmap"):
            transform(minimum)(T(np.stack([B, B])) if transform is gg.vmap else T(B))
    assert ours.linprog(T([1.0, 1.0]), bounds=[(1, 2), (0, 3)]).x.tolist() == [1.0, 0.0]
    rows, columns = ours.linear_sum_assignment(T(A))
    assert (rows.tolist(), columns.tolist()) == ([0, 1], [1, 0])
    for search in (ours.fmin, ours.fmin_bfgs, ours.broyden1, ours.newton_krylov):
        with pytest.raises(DTypeError, match=rf"{search.__name__}: has no derivative"):
            gg.grad(lambda a, f=search: gg.sum(f(lambda x: gg.sum((x - a) ** 2), [1.0])))(T(1.0))
    with pytest.raises(DTypeError, match=r"linear_sum_assignment.*gradient"):
        gg.grad(lambda x: ours.linear_sum_assignment(x)[0])(T(A))
    assert float(ours.check_grad(ours.rosen, ours.rosen_der, [1.0, 2.0])) < 1e-4
    assert ours.brute(lambda x: bowl(x, B), ((-1, 1), (-1, 1)), Ns=3).shape == (2,)
    search = (lambda x: x @ x), (lambda x: 2 * x), B, -B
    assert ours.line_search(*search)[:3] == theirs.line_search(*search)[:3]
    numpys = ours.minimize(lambda x: float(np.sum(np.asarray(x) ** 2)), START)
    np.testing.assert_allclose(numpys.x, 0, atol=1e-6)  # differenced by SciPy


def test_functions_of_math_are_differenced_and_refused_under_a_tape():
    expected = theirs.minimize(lambda x: math.cos(x[0]) + (x @ x) / 4, [0.5], tol=1e-8).x
    result = ours.minimize(lambda x: math.cos(x[0]) + (x @ x) / 4, [0.5], tol=1e-8)
    np.testing.assert_allclose(result.x, expected, atol=1e-6)
    for f in (lambda x, a: math.cos(x) - x * a, lambda x, a: float(x) - a):
        with pytest.raises(DTypeError, match="math"):
            gg.grad(lambda a, f=f: ours.brentq(f, 0, 2, (a,)))(T(np.array(1.0)))
    with pytest.raises(DTypeError, match="cut"):
        gg.grad(lambda a: ours.brentq(lambda x: x - np.cos(np.asarray(a)), 0, 2))(T(np.array(1.0)))


def test_rosenbrocks_functions_are_scipys():
    x, p = np.array([1.3, 0.7, 0.8]), np.array([0.1, 0.2, 0.3])
    for name in ("rosen", "rosen_der", "rosen_hess", "rosen_hess_prod"):
        args = (x, p) if name == "rosen_hess_prod" else (x,)
        np.testing.assert_allclose(getattr(ours, name)(*args), getattr(theirs, name)(*args))


@pytest.mark.parametrize("memory", [None, 5])
def test_quasi_newton_methods_on_a_device_find_minima(memory):
    x = T(np.full(6, 0.3))
    result = on_gpu.quasi_newton(ours.rosen, x, 1e-8, 500, memory)
    np.testing.assert_allclose(result.x, 1, atol=1e-7)
    assert result.success
    assert not on_gpu.quasi_newton(ours.rosen, x, 1e-8, 3, memory).success


@pytest.mark.device
@pytest.mark.parametrize("method", ["BFGS", "L-BFGS-B", "Newton-CG"])
def test_minima_of_data_on_a_gpu_stay_there(method, cuda):
    def solved(b):
        return ours.minimize(lambda x: gg.sum((x - b) ** 4 + x * x), b * 0, method=method).x

    b = gg.asarray(B, device=cuda)
    x, slope = solved(b), gg.jacobian(solved)(b)
    assert x.device == slope.device == cuda
    np.testing.assert_allclose(x.numpy(), solved(T(B)), atol=1e-5)
    np.testing.assert_allclose(slope.numpy(), gg.jacobian(solved)(T(B)), atol=1e-3)


def test_examples_and_signatures():
    finder = doctest.DocTestFinder(recurse=False)
    for name, value in [("module", ours), *((n, getattr(ours, n)) for n in ours.__all__)]:
        if value is None or "gg.scipy" not in (value.__doc__ or ""):
            continue
        if name != "module" and name != "approx_fprime" and "rosen" not in name:
            assert inspect.signature(value) == inspect.signature(getattr(theirs, name))
        for example in finder.find(value, name, globs={"gg": gg, "np": np}):
            runner = doctest.DocTestRunner(optionflags=doctest.NORMALIZE_WHITESPACE)
            runner.run(example)
            assert not runner.failures, name
