"""`gg.scipy.integrate` against SciPy: values, gradients, lockstep, events, errors."""

import math
import tracemalloc
import warnings
from contextlib import nullcontext

import numpy as np
import pytest
import scipy.integrate as S

import gpugrad as gg
from gpugrad.testing import check_grads

G = gg.scipy.integrate
METHODS = ["RK23", "RK45", "DOP853", "Radau", "BDF"]
TOLERANCE = {"RK23": 1e-4, "Radau": 1e-5, "BDF": 1e-5}  # of methods of low order
TIMES = np.array([0.2, 0.9, 1.5])
START = np.array([1.2, 0.7])
RATE = np.array(1.5)


def predators(t, y, rate):
    """A right-hand side for arrays and Tensors, which also depends on the time."""
    stack, sin = (gg.stack, gg.sin) if isinstance(y, gg.Tensor) else (np.array, np.sin)
    return stack([y[0] * (rate - y[1]) + sin(t), -y[1] * (1.0 - y[0])])


def solved(module, y0, rate, method="RK45", span=(0.0, 1.5), times=TIMES, **options):
    tolerances = {"rtol": TOLERANCE.get(method, 1e-7), "atol": 1e-9}
    return module.solve_ivp(
        predators, span, y0, method, times, args=(rate,), **{**tolerances, **options}
    )


def constant(a):
    return gg.asarray(np.asarray(a, float))


def watched(*arrays):
    tape = gg.GradientTape(persistent=True).__enter__()
    tensors = [constant(a) for a in arrays]
    tape.watch(tensors)
    return tape, tensors


@pytest.mark.thin(4)
@pytest.mark.parametrize("method", [*METHODS, "LSODA"])
@pytest.mark.parametrize("times", [None, TIMES])
def test_solve_ivp_returns_scipys_states(method, times):
    expected = solved(S, START, 1.5, method, times=times)
    result = solved(G, constant(START), 1.5, method, times=times)
    np.testing.assert_array_equal(result.y.numpy(), expected.y)
    assert (result.nfev, result.status, result.message) == (
        expected.nfev, expected.status, expected.message,
    )  # fmt: skip
    if method == "LSODA":
        return
    with gg.GradientTape() as tape:
        tape.watch(rate := constant(1.5))
        result = solved(G, constant(START), rate, method, times=times)
        end = gg.sum(result.y[:, -1])
    if times is not None or method[:2] == "RK":
        np.testing.assert_allclose(gg.stop_gradient(result.y).numpy(), expected.y, rtol=1e-4)
    fine = [solved(S, START, 1.5 + e, "DOP853", rtol=1e-12).y[:, -1].sum() for e in (-1e-5, 1e-5)]
    slope, close = float(tape.gradient(end, rate)), 100 * TOLERANCE.get(method, 1e-7)
    np.testing.assert_allclose(slope, np.diff(fine)[0] / 2e-5, rtol=close)


@pytest.mark.thin(3)
@pytest.mark.parametrize("method", METHODS[:3])
def test_gradients_by_all_that_a_solution_depends_on(method):
    """The step sizes are constants: fixed ones have the differences' derivatives."""

    def f(y0, rate, t0, end, times):
        result = solved(
            G, y0, rate, method, (t0, end), times, first_step=0.25, max_step=0.25,
            rtol=1e-6 if method in ("Radau", "BDF") else 0.1, atol=1e-6,
        )  # fmt: skip
        return result.y

    args = START, RATE, np.array(0.1), np.array(1.05), np.array([0.3, 1.0])
    check_grads(f, args, order=1, rtol=1e-4)
    check_grads(lambda rate: f(args[0], rate, *args[2:]), (RATE,), rtol=1e-4)


@pytest.mark.thin(2)
@pytest.mark.parametrize("method", ["Radau", "BDF"])
def test_gradients_of_implicit_steps(method):
    def end(module, y0, rate, t0, t1, **options):
        return module.solve_ivp(predators, (t0, t1), y0, method, args=(rate,), **options).y[:, -1]

    args = [START, RATE, np.array(0.1), np.array(1.0)]
    with gg.GradientTape() as tape:
        tensors = [constant(a) for a in args]
        tape.watch(tensors)
        total = gg.sum(end(G, *tensors, rtol=1e-6, atol=1e-8))
    for i, slope in enumerate(tape.gradient(total, tensors)):
        moved = ([a + e * (i == j) for j, a in enumerate(args)] for e in (-1e-5, 1e-5))
        ends = [solved(S, *a[:2], "DOP853", a[2:], None, rtol=1e-12).y[:, -1].sum() for a in moved]
        np.testing.assert_allclose(slope.numpy().sum(), np.diff(ends)[0] / 2e-5, rtol=2e-4)


def test_implicit_steps_have_second_derivatives():
    def end(rate):
        return gg.sum(solved(G, constant(START), rate, "Radau", times=None).y[:, -1])

    fine = [
        solved(S, START, 1.5 + e, "DOP853", rtol=1e-12).y[:, -1].sum() for e in (-1e-3, 0, 1e-3)
    ]
    second = gg.grad(gg.grad(end))(constant(1.5))
    np.testing.assert_allclose(float(second), np.diff(fine, 2)[0] / 1e-6, rtol=1e-4)


@pytest.mark.thin(3)
@pytest.mark.parametrize("method", ["RK23", "RK45", "DOP853"])
def test_lockstep_takes_the_steps_of_each_example(method):
    starts = constant([START, START / 2, START * 3])
    one = lambda y0: solved(G, y0, 1.5, method).y  # noqa: E731
    expected = [solved(S, y0, 1.5, method).y for y0 in starts.numpy()]
    np.testing.assert_allclose(gg.vmap(one)(starts).numpy(), expected, rtol=1e-7)
    np.testing.assert_allclose(gg.function(one)(starts[0]).numpy(), expected[0], rtol=1e-7)
    total = gg.value_and_grad(
        lambda y0, rate: gg.sum(solved(G, y0, rate, method).y), argnums=(0, 1)
    )
    args = starts[1], constant(1.5)
    eager = total(*args)[1]
    for slopes in (
        gg.function(total)(*args)[1],
        [s[0] for s in gg.vmap(total)(*(a[None] for a in args))[1]],
    ):
        for ours, other in zip(slopes, eager, strict=True):
            np.testing.assert_allclose(ours.numpy(), other.numpy(), rtol=1e-6)


@pytest.mark.thin(4)
@pytest.mark.parametrize("method", ["DOP853", "LSODA", *METHODS])
@pytest.mark.parametrize("times", [TIMES[:2], None])
def test_checkpoints_and_the_adjoint_equation_have_the_gradient_of_the_steps(method, times):
    """By the state, an argument, limits, times, a Tensor that is closed over, and a Variable."""
    args = [constant(a) for a in (START, RATE, 0.1, 1.0, [1.0, 0.5])]
    args.append(gg.Variable(0.5, dtype="float64"))
    args += [] if times is None else [constant(times)]
    exact = 1e-8 if method in ("RK45", "DOP853", "LSODA") else 1e-5

    def slopes(method, gradient):
        with gg.GradientTape() as tape:
            tape.watch(args)
            y0, rate, t0, end, w, v, *at = args
            right = lambda t, y, rate: predators(t, y, rate) * w * v  # noqa: E731
            more = {"args": (rate,), "rtol": exact, "atol": 1e-10, "gradient": gradient}
            y = G.solve_ivp(right, (t0, end), y0, method, *at, **more).y
            total = gg.sum(y if at else y[:, -1])
        return tape.gradient(total, args, unconnected_gradients="zero")

    expected = slopes("DOP853" if method == "LSODA" else method, "steps")
    for gradient in ("adjoint",) if method == "LSODA" else ("checkpoints", "adjoint"):
        close = 1e-12 if gradient == "checkpoints" else 1e-5 if exact < 1e-7 else 1e-2
        for ours, other in zip(slopes(method, gradient), expected, strict=True):
            np.testing.assert_allclose(ours.numpy(), other.numpy(), rtol=close, atol=close)


@pytest.mark.thin(2)
@pytest.mark.parametrize("gradient", ["checkpoints", "adjoint"])
def test_gradients_that_keep_less_have_second_derivatives(gradient):
    def mixed(gradient):
        total = lambda y0, w: gg.sum(  # noqa: E731
            G.solve_ivp(
                lambda t, y: predators(t, y, 1.5) * w, (0, 1), y0, t_eval=[0.5, 1.0], rtol=1e-8,
                atol=1e-10, gradient=gradient,
            ).y
        )  # fmt: skip
        slope = lambda w: gg.sum(gg.grad(total)(constant(START), w) * START)  # noqa: E731
        return gg.grad(slope)(constant([1.0, 0.5]))

    np.testing.assert_allclose(mixed(gradient), mixed("steps"), rtol=1e-5)


def test_checkpoints_keep_less_than_all_steps():
    def kept(gradient):
        w = constant(np.ones(2000))
        with gg.GradientTape() as tape:
            tape.watch(w)
            tracemalloc.start()
            decay = lambda t, y: -gg.sin(gg.exp(w * y) - 1.0)  # noqa: E731
            more = {"t_eval": [5.0], "max_step": 0.25, "gradient": gradient}
            y = G.solve_ivp(decay, (0, 5), np.ones(2000), **more).y
            total, size = gg.sum(y), tracemalloc.get_traced_memory()[0]
            tracemalloc.stop()
        assert tape.gradient(total, w).shape == w.shape
        return size

    steps, checkpoints, adjoint = map(kept, ("steps", "checkpoints", "adjoint"))
    assert checkpoints < steps / 3
    assert adjoint < checkpoints / 5


def test_events_and_dense_output_have_gradients():
    def event(t, y, rate):
        return y[0] - 2.0

    event.terminal = True
    expected = solved(S, START, 1.5, events=event, times=None)

    def of(rate, t):
        result = solved(G, constant(START), rate, events=event, times=None, dense_output=True)
        return result.t_events[0][0], result.y[1, -1], result.sol(t)[0]

    tape, (rate, t) = watched(1.5, 0.4)
    time, state, inside = of(rate, t)
    assert expected.status == 1
    np.testing.assert_allclose(float(gg.stop_gradient(time)), expected.t_events[0][0], rtol=1e-8)
    ends = [
        solved(S, START, 1.5 + e, "DOP853", events=event, times=None, rtol=1e-12)
        for e in (-1e-5, 1e-5)
    ]
    pairs = ((time, [r.t_events[0][0] for r in ends]), (state, [r.y[1, -1] for r in ends]))
    for ours, values in pairs:
        np.testing.assert_allclose(
            float(tape.gradient(ours, rate)), np.diff(values)[0] / 2e-5, rtol=1e-5
        )
    y = solved(S, START, 1.5, times=[0.4]).y[:, 0]
    slope = predators(0.4, y, 1.5)[0]
    np.testing.assert_allclose(float(tape.gradient(inside, t)), slope, rtol=1e-5)
    tape.__exit__(None, None, None)


def test_odeint_has_gradients_where_something_follows():
    args = START, np.append(0.0, TIMES), 1.5
    right = lambda y, t, rate: predators(t, y, rate)  # noqa: E731
    expected = S.odeint(right, args[0], args[1], (1.5,))
    f = lambda y0: G.odeint(right, y0, args[1], (1.5,))  # noqa: E731
    np.testing.assert_array_equal(f(constant(START)).numpy(), expected)
    np.testing.assert_allclose(gg.vmap(f)(constant([START])).numpy()[0], expected, rtol=1e-6)
    check_grads(lambda y0: f(y0)[-1], (START,), order=1, rtol=1e-3)


BAD = {
    "t_eval falls": {"times": [0.5, 0.2]},
    "t_eval outside": {"times": [0.5, 9.0]},
    "first step": {"first_step": 9.0},
    "max_step": {"max_step": -1.0},
    "method": {"method": "Euler"},
    "matrix": {"y0": np.ones((2, 2))},
    "NaN": {"y0": START * np.nan},
    "complex": {"y0": START + 0j, "method": "Radau"},
    "atol": {"atol": -1.0},
}


@pytest.mark.parametrize("name", BAD)
def test_what_scipy_refuses_is_refused(name):
    options = {"y0": START, **BAD[name]}
    y0 = options.pop("y0")
    with pytest.raises(ValueError) as theirs:  # noqa: PT011  # SciPy's message, which is compared
        solved(S, y0, 1.5, **options)
    for follow in (False, True):
        rate = constant(1.5)
        with gg.GradientTape() as tape:
            tape.watch([rate] * follow)
            with pytest.raises(ValueError) as ours:  # noqa: PT011
                solved(G, gg.asarray(y0), rate, **options)
        assert str(ours.value)[:30] == str(theirs.value)[:30]


SPECIAL = {
    "empty": ((lambda t, y: -y), (0, 1), np.zeros(0), "RK45"),
    "no time": ((lambda t, y: -y), (1, 1), START, "RK45"),
    "backwards": ((lambda t, y: -y), (1, 0), START, "DOP853"),
    "a pole": ((lambda t, y: y * y), (0, 2), START, "RK45"),
    "complex": ((lambda t, y: 1j * y), (0, 1), START + 0j, "RK45"),
    "stiff, explicit": ((lambda t, y: -2000.0 * (y - 1.0)), (0, 0.1), START, "RK45"),
    "stiff, implicit": ((lambda t, y: -2000.0 * (y - 1.0)), (0, 0.1), START, "BDF"),
}


@pytest.mark.thin(3)
@pytest.mark.parametrize("name", SPECIAL)
def test_unusual_problems_end_as_in_scipy(name):
    fun, span, y0, method = SPECIAL[name]
    expected = S.solve_ivp(fun, span, y0, method)
    stiff = pytest.warns(RuntimeWarning, match="the system is stiff at t=0.*gives RK45 the step")
    with gg.GradientTape() as tape, stiff if name == "stiff, explicit" else nullcontext():
        tape.watch(start := gg.asarray(y0))
        result = G.solve_ivp(fun, span, start, method)
    assert (result.status, result.message) == (expected.status, expected.message)
    assert (result.nfev == expected.nfev) == (method != "BDF")
    if expected.status == 0:
        np.testing.assert_allclose(
            gg.stop_gradient(result.y).numpy()[:, -1:], expected.y[:, -1:], rtol=1e-5
        )
    if method != "BDF":
        traced = gg.function(lambda y: G.solve_ivp(fun, span, y, method, [*span[1:]]))(
            gg.asarray(y0)
        )
        assert int(traced["status"]) == expected.status


def test_methods_without_lockstep_say_so():
    few = ({"times": None}, {"method": "BDF"}, {"dense_output": True}, {"gradient": "adjoint"})
    for options in few:
        with pytest.raises(gg.errors.ArgumentError, match=r"solve_ivp: .*in gg.function and gg.vm"):
            gg.function(lambda y, options=options: solved(G, y, 1.5, **options).y)(constant(START))
    with pytest.raises(gg.errors.ArgumentError, match="gradient='none' must be one of"):
        solved(G, START, 1.5, gradient="none")
    with pytest.raises(gg.errors.ArgumentError, match="not of dense_output and events"):
        gg.grad(lambda r: solved(G, START, r, gradient="adjoint", dense_output=True).y[0, 0])(1.5)


LIMITS = [(0.0, 2.0), (2.0, 0.5), (0.0, np.inf), (np.inf, 1.0), (-np.inf, 1.0), (-np.inf, np.inf)]


@pytest.mark.thin(3)
@pytest.mark.parametrize(("a", "b"), LIMITS)
def test_quadratures_have_scipys_value_and_gradients(a, b):
    def bell(x, width):
        exp = gg.exp if isinstance(x * width, gg.Tensor) else math.exp
        return exp(-width * x * x) * (1.0 + x)

    expected, error = S.quad(bell, a, b, args=(1.3,))
    # with AVX-512, NumPy's exp of the Tensors and that of `math` differ in the last bit
    found = G.quad(bell, a, b, args=(1.3,))
    np.testing.assert_allclose(found[0], expected, rtol=1e-14)
    np.testing.assert_allclose(found[1], error, rtol=1e-6)
    ends = [S.quad(bell, a, b, args=(1.3 + e,), epsabs=1e-13)[0] for e in (-1e-4, 0, 1e-4)]
    slope = lambda w: gg.grad(lambda w: G.quad(bell, a, b, args=(w,))[0])(w)  # noqa: E731
    vector = lambda w: G.quad_vec(lambda x: bell(x, w) * constant([1.0, 2.0]), a, b)[0]  # noqa: E731
    np.testing.assert_allclose(float(slope(constant(1.3))), (ends[2] - ends[0]) / 2e-4, rtol=1e-6)
    np.testing.assert_allclose(
        float(gg.grad(slope)(constant(1.3))), np.diff(ends, 2)[0] / 1e-8, rtol=1e-2
    )
    np.testing.assert_allclose(vector(constant(1.3)).numpy(), [expected, 2 * expected], rtol=1e-7)
    by_vector = gg.grad(lambda w: vector(w)[1])(constant(1.3))
    np.testing.assert_allclose(float(by_vector), (ends[2] - ends[0]) / 1e-4, rtol=1e-6)
    if math.isfinite(a + b):
        by_limits = gg.grad(lambda a, b: G.quad(bell, a, b, args=(1.3,))[0], argnums=(0, 1))
        slopes = [float(s) for s in by_limits(constant(a), constant(b))]
        np.testing.assert_allclose(slopes, [-bell(a, 1.3), bell(b, 1.3)], rtol=1e-6)


def test_a_quadrature_of_a_function_with_branches_has_a_gradient():
    step = lambda p: G.quad(lambda x: p * x if x < 1 else p * p, 0, 2, points=[1.0])[0]  # noqa: E731
    np.testing.assert_allclose(float(gg.grad(step)(constant(1.5))), 0.5 + 3.0)
    with pytest.raises(gg.errors.ArgumentError, match="quad: the intervals depend on values"):
        gg.function(step)(constant(1.5))


SAMPLES = np.random.default_rng(0).normal(size=(2, 9))
POINTS = np.array([0.0, 0.4, 0.9, 1.1, 1.9, 2.2, 2.8, 3.1, 4.0])
SUMS = {
    "trapezoid": lambda M, y, x: M.trapezoid(y, x),
    "simpson": lambda M, y, x: M.simpson(y, x=x),
    "simpson of eight": lambda M, y, x: M.simpson(y[:, :8], x=x[:8]),
    "romb": lambda M, y, x: M.romb(y),
    "cumulative_trapezoid": lambda M, y, x: M.cumulative_trapezoid(y, x, initial=0),
    "cumulative_simpson": lambda M, y, x: M.cumulative_simpson(y, x=x),
    "dx": lambda M, y, x: M.simpson(y, dx=0.3),
    "simpson along another axis": lambda M, y, x: M.simpson(y[:, :8].T, axis=0),
    "trapezoid of a distance": lambda M, y, x: M.trapezoid(y, dx=x[1]),
}


@pytest.mark.parametrize("name", SUMS)
def test_sums_of_samples(name):
    f, arrays = SUMS[name], (SAMPLES, POINTS)
    expected = f(S, *arrays)
    tensors = [constant(a) for a in arrays]
    for run in (lambda: f(G, *tensors), lambda: gg.function(lambda *a: f(G, *a))(*tensors)):
        np.testing.assert_allclose(run().numpy(), expected, rtol=1e-12)
    rows = gg.vmap(lambda *a: f(G, *a))(*(t[None] for t in tensors))
    np.testing.assert_allclose(rows.numpy()[0], expected, rtol=1e-12)
    check_grads(lambda *a: f(G, *a), arrays)


def test_equally_spaced_samples_are_summed_with_weights_not_by_slices():
    for f in (G.trapezoid, G.simpson, G.romb):
        with gg.GradientTape() as tape:
            tape.watch(y := constant(SAMPLES))
            total = f(y)
        assert {entry[0].name for entry in tape.log} <= {"moveaxis", "vecdot", "multiply"}, f
        assert tape.gradient(total, y).shape == SAMPLES.shape


def test_fixed_quad_is_traced_and_has_gradients():
    f = lambda a, b, p: G.fixed_quad(lambda x: p * gg.sin(x), a, b, n=4)[0]  # noqa: E731
    args = np.array(0.2), np.array(1.4), np.array(0.7)
    expected = S.fixed_quad(lambda x: 0.7 * np.sin(x), 0.2, 1.4, n=4)[0]
    np.testing.assert_allclose(float(gg.function(f)(*map(constant, args))), expected)
    check_grads(f, args)
    with pytest.raises(ValueError, match="finite limits"):
        G.fixed_quad(lambda x: x, 0.0, np.inf)


def test_functions_without_a_derivative_say_so_under_a_tape():
    double = lambda p: G.dblquad(lambda y, x: p * x * y, 0, 1, 0, 1)[0]  # noqa: E731
    np.testing.assert_allclose(double(constant(2.0)), 0.5)
    bvp = lambda p: G.solve_bvp(  # noqa: E731
        lambda x, y: gg.stack([y[1], -p * y[0]]),
        lambda a, b: gg.stack([a[0], b[0] - 1.0]),
        np.linspace(0, 1, 5),
        np.ones((2, 5)),
    )
    assert bvp(constant(1.0)).success
    for name, f in (("dblquad", double), ("solve_bvp", lambda p: bvp(p).y[0, 1])):
        with pytest.raises(gg.errors.DTypeError, match=rf"scipy.integrate.{name}.*gradient"):
            gg.grad(f)(constant(2.0))


def test_all_names_of_scipy_are_there():
    old = {"test", "dop", "lsoda", "vode", "odepack", "quadpack"}
    assert set(G.__all__) == set(S.__all__) - old
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        assert all(getattr(G, name) is not None for name in G.__all__)
    assert issubclass(G.RK45, G.OdeSolver)


@pytest.mark.parametrize(
    ("end", "w", "tol"), [(3.9306816177322896, 9.55402798538837, 1.4584585665958855e-06),
                          (1.437238030618816, 28.379167094181938, 2.8869593776827126e-05)],
)  # fmt: skip
def test_bdf_rejects_a_step_that_the_limit_has_cut(end, w, tol):
    f = lambda t, y: -5 * (y - gg.tanh(20 * gg.sin(w * t)))  # noqa: E731  # its slope jumps
    t = gg.constant(np.float64(end))
    with gg.GradientTape() as tape:
        tape.watch(t)
        settings = {"method": "BDF", "rtol": tol, "atol": tol}
        y = gg.scipy.integrate.solve_ivp(f, (0.0, t), np.array([1.0]), **settings).y[0, -1]
    np.testing.assert_allclose(tape.gradient(y, t), f(t, y), rtol=0.03)  # was 1.7 of it
