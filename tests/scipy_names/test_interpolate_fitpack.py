"""FITPACK's functions and classes, and scattered points, beside SciPy; with gradients."""

import numpy as np
import pytest
import scipy.interpolate

import gpugrad as gg

pytestmark = pytest.mark.filterwarnings("ignore:.*removed in SciPy 1.20")  # lagrange, pade
RNG = np.random.default_rng(0)
X, Y, PLANE = np.sort(RNG.random(7)) * 3, RNG.normal(size=7), RNG.random((8, 2))
AT = np.linspace(X[0] + 0.01, X[-1] - 0.01, 5)
GRID = np.linspace(0, 3, 7) + 0.1 * np.sin(np.arange(7))
T, C = np.r_[0.0, 0, 0, 0, 1, 2, 3, 3, 3, 3], np.r_[1.0, -1, 2, -1, 1.5, -2, 0, 0, 0, 0]
INSIDE = PLANE[:3].mean(axis=0)[None]


def padded(c):
    return np.append(c, T[:4]) if isinstance(c, np.ndarray) else gg.numpy.append(c, T[:4])


def univariate(f, x, y):
    q = f.InterpolatedUnivariateSpline(x, y)
    parts = [q(AT), q(AT, 1), q.derivative()(AT), q.antiderivative()(AT), q.integral(X[1], X[4])]
    return [*parts, q.derivatives(AT[2]), q.get_coeffs(), q.get_knots()]


def rectangle(f, x, y, z):
    q = f.RectBivariateSpline(x, y, z)
    return [q(AT, AT[:2]), q(AT, AT[:2], dx=1), q.ev(AT, AT), q.integral(*X[[0, 2, 1, 3]])]


SPREAD = RNG.random((30, 2))


def scattered(f, at, z, w):
    q = f.LSQBivariateSpline(*at.T, z, [0.4, 0.6], [0.5], w, [0, 1, -0.1, None], kx=2, ky=1)
    parts = [q([0.3, 0.5], [0.2, 0.7]), q.ev([0.3, 0.7], 0.5, dx=1), q.get_residual()]
    return [*parts, *q.get_knots(), q.integral(0.1, 0.6, 0.2, 0.5)]


CALLS = {  # calls, and the arrays that gradients are by
    "lagrange": (lambda f, x, y: f.lagrange(x, y).coef, X[:4], Y[:4]),
    "pade": (lambda f, a: [p.coef for p in f.pade(a, 2)], X[:6]),
    "Rbf": (lambda f, x, y: f.Rbf(x, y)(AT), X, Y),
    "FloaterHormann": (lambda f, x, y: f.FloaterHormannInterpolator(x, y, d=2)(AT), X, Y),
    "bisplev": (lambda f, x, c: f.bisplev(x, x, (T, T[[0, 1, 2, 7, 8, 9]], c, 3, 2), 1, 1), AT,
                RNG.normal(size=18)),
    "insert": (lambda f, c: f.insert(1.3, (T, c, 3), 2)[1], C),
    "spalde": (lambda f, c: f.spalde(1.3, (T, c, 3)), C),
    "sproot": (lambda f, c: f.sproot((T, padded(c), 3)), C[:6]),
    "make_smoothing_spline": (lambda f, x, y, w: f.make_smoothing_spline(x, y, w=w, lam=0.3)(AT),
                              X, Y, 1 + Y**2),
    "make_splrep": (lambda f, x, y: f.make_splrep(x, y)(AT), X, Y),
    "make_splprep": (lambda f, x, y: [*f.make_splprep([x, y])[0](AT / 9)], X, Y),
    "splprep": (lambda f, x, y: f.splev(AT / 9, f.splprep([x, y], s=0)[0]), X, Y),
    "Univariate": (univariate, X, Y),
    "UnivariateSpline": (lambda f, x, y: f.UnivariateSpline(x, y, s=0, k=2, ext=1)(AT + 1), X, Y),
    "LSQUnivariateSpline": (lambda f, x, y: f.LSQUnivariateSpline(x, y, [1.1])(AT), X, Y),
    "RectBivariateSpline": (rectangle, GRID, GRID * 1.1, RNG.normal(size=(7, 7))),
    "LSQBivariateSpline": (scattered, SPREAD, SPREAD[:, 0] ** 3 - SPREAD[:, 1], 1 + SPREAD[:, 0]),
    "LinearND": (lambda f, p, v: f.LinearNDInterpolator(p, v)(INSIDE), PLANE, PLANE[:, 0] ** 2),
    "NearestND": (lambda f, v: f.NearestNDInterpolator(PLANE, v)(INSIDE), PLANE[:, 0]),
    "griddata": (lambda f, v: [
        f.griddata(PLANE, v, INSIDE), f.griddata(PLANE, v, INSIDE, "nearest"),
        f.griddata(X, v[:7], AT, "cubic"),
    ], PLANE[:, 1]),
}  # fmt: skip


def _flat(value):
    return [*value] if isinstance(value, (list, tuple)) else [value]


@pytest.mark.parametrize("name", CALLS)
def test_results_are_scipys(name):
    call, *arrays = CALLS[name]
    expected = _flat(call(scipy.interpolate, *map(np.copy, arrays)))
    for x, y in zip(_flat(call(gg.scipy.interpolate, *arrays)), expected, strict=True):
        np.testing.assert_allclose(np.asarray(x), y, rtol=1e-7, atol=1e-7)


@pytest.mark.thin(4)
@pytest.mark.parametrize("name", CALLS)
def test_results_have_gradients(name):
    call, *arrays = CALLS[name]
    gg.testing.check_grads(
        lambda *a: _flat(call(gg.scipy.interpolate, *a)), [*map(gg.asarray, arrays)]
    )


def test_smoothed_splines_raise_rather_than_cut_a_gradient():
    for call in (
        lambda f, y: f.UnivariateSpline(X, y, s=1.0)(AT),
        lambda f, y: f.make_smoothing_spline(X, y)(AT),
        lambda f, y: f.CloughTocher2DInterpolator(PLANE[:7], y)(INSIDE),
    ):
        np.testing.assert_allclose(
            np.asarray(call(gg.scipy.interpolate, Y)), call(scipy.interpolate, Y)
        )
        with pytest.raises(gg.errors.DTypeError, match="cut"):
            gg.grad(lambda y, call=call: gg.sum(call(gg.scipy.interpolate, y)))(gg.asarray(Y))
