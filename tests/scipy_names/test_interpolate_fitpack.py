"""FITPACK's functions and classes, and scattered points, beside SciPy; with gradients."""

import copy
import pickle

import numpy as np
import pytest
import scipy.interpolate

import gpugrad as gg
from gpugrad.scipy.interpolate import smoothed

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


BALL = np.arccos(2 * SPREAD[:, 0] - 1), 6 * SPREAD[:, 1]
ON_BALL = 1 + 0.3 * np.cos(BALL[0]) + 0.2 * np.sin(BALL[0]) * np.cos(BALL[1]) + 0.1 * SPREAD[:, 0]
LATTICE = np.array([0.4, 1, 1.7, 2.4, 2.9]), np.arange(6.0), RNG.random((5, 6))
NET = np.argwhere(np.ones((3, 3))) + 0.2 * RNG.random((9, 2))


def fixed(f, a, kind, *args, **options):
    return getattr(f, kind)(*args, **options).ev(a, a)


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
    "SmoothBivariate": (lambda f, z, w, a: fixed(
        f, a, "SmoothBivariateSpline", *SPREAD.T, z, w, kx=2, ky=2, s=9.0
    ), SPREAD[:, 0] ** 3, 1 + SPREAD[:, 1], SPREAD[:4, 0]),
    "LSQSphere": (lambda f, t, r, w, a: fixed(
        f, a, "LSQSphereBivariateSpline", t, BALL[1], r, [1.2, 2.0], [2.0, 4.5], w
    ), BALL[0], ON_BALL, 1 + SPREAD[:, 0], AT),
    "CloughTocher": (lambda f, p, v, a: f.CloughTocher2DInterpolator(
        p, v, tol=1e-15, rescale=True)(a), NET, NET[:, 0] ** 2, NET[[0, 1, 3, 4]] + 0.3),
    "RectSphere": (lambda f, r, a: fixed(f, a, "RectSphereBivariateSpline", *LATTICE[:2], r,
        pole_values=(0.3, None)), LATTICE[2], AT),
    "LinearND": (lambda f, p, v: f.LinearNDInterpolator(p, v)(INSIDE), PLANE, PLANE[:, 0] ** 2),
    "NearestND": (lambda f, v: f.NearestNDInterpolator(PLANE, v)(INSIDE), PLANE[:, 0]),
    "griddata": (lambda f, v: [
        f.griddata(PLANE, v, INSIDE), f.griddata(PLANE, v, INSIDE, "nearest"),
        f.griddata(X, v[:7], AT, "cubic"), f.griddata(PLANE, v, INSIDE, "cubic"),
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


SMOOTHED = {
    "Univariate": (lambda f, x, y, w: f.UnivariateSpline(x, y, w, s=0.9)(AT), X, Y, 1 + Y**2),
    "splrep": (lambda f, x, y, w: f.splev(AT, f.splrep(x, y, w, s=0.9)), X, Y, 1 + Y**2),
    "make_splrep": (lambda f, x, y, w: f.make_splrep(x, y, w=w, s=0.9)(AT), X, Y, 1 + Y**2),
    "make_splprep": (lambda f, x, y: f.make_splprep([x, y], s=0.3)[0](AT / 9)[1], X, Y),
    "splprep": (lambda f, x, y: f.splev(AT / 9, f.splprep([x, y], s=0.3)[0])[1], X, Y),
    "bisplrep": (lambda f, z: f.bisplev(AT / 3, AT / 3, f.bisplrep(*SPREAD.T, z, s=0.02)),
                 np.sin(5 * SPREAD[:, 0]) * SPREAD[:, 1]),
    "Rect": (lambda f, z: f.RectBivariateSpline(GRID, GRID, z, s=3.0)(AT, AT),
             RNG.normal(size=(7, 7))),
    "Smooth": (lambda f, z: f.SmoothBivariateSpline(*SPREAD.T, z, s=0.02).ev(AT / 3, AT / 3),
               np.sin(5 * SPREAD[:, 0]) * SPREAD[:, 1]),
    "Sphere": (lambda f, r: f.SmoothSphereBivariateSpline(*BALL, r, s=0.03).ev(AT, AT), ON_BALL),
}  # fmt: skip


@pytest.mark.thin(2)
@pytest.mark.parametrize("name", SMOOTHED)
def test_a_smoothed_spline_has_scipys_values_and_gradients(name):
    """SciPy finds the residual only to a thousandth, so that its own slopes are inexact."""
    call, *arrays = SMOOTHED[name]
    expected, tensors = call(scipy.interpolate, *arrays), [*map(gg.asarray, arrays)]
    np.testing.assert_allclose(call(gg.scipy.interpolate, *tensors), expected, atol=1e-9)
    jump = [1e-3 * RNG.normal(size=a.shape) for a in arrays[-1:]]
    y, slope = gg.jvp(
        lambda z: call(gg.scipy.interpolate, *tensors[:-1], z), tensors[-1:], [gg.asarray(*jump)]
    )
    np.testing.assert_allclose(y, expected, atol=1e-9)
    assert 0 < np.abs(slope.numpy()).max() < 0.1


@pytest.mark.slow
@pytest.mark.parametrize(
    "name",
    [
        "Univariate",
        "splrep",
        "Rect",
        "Sphere",
        "make_splrep",
        "make_splprep",
        "splprep",
        "bisplrep",
    ],
)
def test_slopes_of_a_smoothed_spline_are_those_of_scipys_fits(name):
    call, *arrays = SMOOTHED[name]
    *fixed, z = arrays[:2] if len(arrays) == 3 else arrays
    rest = [arrays[2]] if len(arrays) == 3 else []
    jump = np.random.default_rng(1).normal(size=z.shape)

    def fit(f, z):
        return call(f, *fixed, z, *rest)

    _, slope = gg.jvp(lambda z: fit(gg.scipy.interpolate, z), [gg.asarray(z)], [gg.asarray(jump)])
    ends = [np.asarray(fit(scipy.interpolate, z + 1e-3 * sign * jump)) for sign in (1, -1)]
    error = np.linalg.norm((ends[0] - ends[1]) / 2e-3 - slope.numpy())
    assert error < 0.01 * np.linalg.norm(slope.numpy())  # more if SciPy moves a knot between them


def test_a_fit_that_is_no_smoothed_spline_raises():
    def fit(r):
        sphere = gg.scipy.interpolate.SmoothSphereBivariateSpline(*BALL, r, s=20.0)
        return gg.sum(sphere.ev(AT, AT))

    with pytest.raises(gg.errors.DTypeError, match="smaller s"):
        gg.grad(fit)(gg.asarray(ON_BALL))


def test_a_smoothed_fit_has_exact_derivatives():
    t, at = np.r_[[0.0] * 4, 0.3, 0.4, 0.8, [1.0] * 4], gg.asarray(np.linspace(0, 1, 12))
    rough = smoothed.jumps(gg.asarray(t), 3)
    basis = smoothed.fitpack.basis_matrix(t, 3, at, 0)

    def fit(z, w):
        return smoothed.least_squares(w[:, None] * basis, rough, w * z, None, 0.6)

    z = RNG.normal(size=12)
    gg.testing.check_grads(fit, (z, 1 + z**2 / 9), order=2, rtol=1e-4, atol=1e-5)
    assert np.abs(fit(gg.asarray(z), 1.0 + 0 * gg.asarray(z)).numpy()).max() > 0.1


def test_fits_without_a_derivative_raise_rather_than_cut_a_gradient():
    for call in (
        lambda f, y: f.make_smoothing_spline(X, y)(AT),
        lambda f, y: f.splprep([X, y], s=0.5, nest=20)[0][1][0],
    ):
        np.testing.assert_allclose(
            np.asarray(call(gg.scipy.interpolate, Y)), call(scipy.interpolate, Y)
        )
        with pytest.raises(gg.errors.DTypeError, match="cut"):
            gg.grad(lambda y, call=call: gg.sum(call(gg.scipy.interpolate, y)))(gg.asarray(Y))
    for call in (
        lambda f, y: f.LSQSphereBivariateSpline(*BALL, ON_BALL, y, [2.0, 4.5]),
        lambda f, y: f.RectSphereBivariateSpline(y, LATTICE[1], LATTICE[2]),
        lambda f, y: f.RectSphereBivariateSpline(*LATTICE[:2], LATTICE[2] * y[0], s=1.0),
    ):
        with pytest.raises(gg.errors.DTypeError, match="cut"):
            gg.grad(lambda y, call=call: call(gg.scipy.interpolate, y).get_coeffs()[0])(
                gg.asarray(LATTICE[0])
            )


FITS = {name: CALLS[name] for name in ("SmoothBivariate", "LSQSphere", "CloughTocher", "LinearND")}
FITS |= {name: SMOOTHED[name] for name in ("Univariate", "Rect", "Sphere")}


@pytest.mark.device
@pytest.mark.thin(3)
@pytest.mark.parametrize("name", FITS)
def test_fits_on_a_device_have_the_gradients_of_the_cpu(name, cuda):
    call, *arrays = FITS[name]
    slopes = []
    for device in (cuda, "cpu"):
        tensors = [gg.asarray(a, device=device) for a in arrays]
        with gg.GradientTape() as tape:
            tape.watch(tensors)
            total = gg.sum(_flat(call(gg.scipy.interpolate, *tensors))[0] ** 2)
        slopes.append(tape.gradient(total, tensors))
    assert slopes[0][0].device == cuda
    for ours, expected in zip(*slopes, strict=True):
        np.testing.assert_allclose(ours.numpy(), expected, rtol=1e-6, atol=1e-7)


def test_a_fitted_curve_can_be_copied_and_pickled():
    for s in (None, 0, 0.5):
        curve = gg.scipy.interpolate.UnivariateSpline(X, Y, s=s)
        for other in (copy.copy(curve), pickle.loads(pickle.dumps(curve))):
            assert type(other) is type(curve)
            np.testing.assert_array_equal(other(AT), curve(AT))
