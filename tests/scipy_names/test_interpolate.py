"""`gg.scipy.interpolate` against SciPy: values, gradients by all arrays, traces, vmap, errors."""

import numpy as np
import pytest
import scipy.interpolate as S
import scipy.sparse.linalg

import gpugrad as gg
from gpugrad.testing import check_grads

G = gg.scipy.interpolate
rng = np.random.default_rng(0)


def r(*shape):
    return rng.uniform(-1, 1, shape)


x = np.array([0.0, 0.4, 1.1, 1.9, 2.5, 3.2, 4.0])
y, Y = r(7), r(2, 7)
ring = np.append(y[:6], y[0])
at = np.array([[0.1, 0.9], [2.3, 3.7]])
t = np.array([0.0, 0.3, 0.9, 1.0, 1.6, 2.2, 2.9, 3.1, 3.8, 4.5])
grid = (np.array([0.0, 0.5, 1.2, 1.9, 3.0, 3.3, 4.1]), np.array([0.0, 1.0, 1.3, 2.2, 3.1, 4.0]))
table, points = r(7, 6), np.array([[0.3, 0.7], [2.4, 3.3], [4.0, 0.2]])
places, heights, near = r(9, 2), r(9), r(4, 2)
CASES = {}
METHODS = "linear nearest slinear cubic quintic pchip slinear_legacy cubic_legacy quintic_legacy"
KINDS = "linear nearest nearest-up zero slinear quadratic cubic previous next"
KERNELS = """linear thin_plate_spline cubic quintic multiquadric inverse_multiquadric
inverse_quadratic gaussian"""
OUTSIDE = {"bounds_error": False, "fill_value": (1.0, 2.0)}


def case(name, f, *arrays):
    """A function of a module and of arrays, by all of which it is differentiated."""
    assert name not in CASES
    CASES[name] = (f, arrays)


for kind in ("CubicSpline", "PchipInterpolator", "Akima1DInterpolator"):
    case(kind, lambda M, x, y, at, kind=kind: getattr(M, kind)(x, y)(at), x, y, at)
    case(
        kind + " axis",
        lambda M, x, y, at, kind=kind: getattr(M, kind)(x, y, axis=1)(at, 1),
        x, Y, at,
    )  # fmt: skip
for bc in ("natural", "clamped", ((1, 0.5), (2, 1.0))):
    case(f"CubicSpline {bc}", lambda M, x, y, bc=bc: M.CubicSpline(x, y, bc_type=bc)(at), x, y)
case(
    "CubicSpline periodic",
    lambda M, x, y: M.CubicSpline(x, loop(y), bc_type="periodic")(at + 5.0),
    x, y,
)  # fmt: skip
case("CubicSpline of three", lambda M, x, y: M.CubicSpline(x, y)(at), x[:3], y[:3])
case("makima", lambda M, x, y: M.Akima1DInterpolator(x, y, method="makima")(at), x, y)
case("Hermite", lambda M, x, y, d: M.CubicHermiteSpline(x, y, d)(at, 2), x, y, ring)
case("pchip_interpolate", lambda M, x, y: M.pchip_interpolate(x, y, at, der=1), x, y)
for k in (0, 1, 2, 3, 4, 5):
    case(f"make_interp_spline {k}", lambda M, x, y, k=k: M.make_interp_spline(x, y, k)(at), x, y)
for k in (2, 3):
    case(
        f"make_interp_spline periodic {k}",
        lambda M, x, y, k=k: M.make_interp_spline(x, loop(y), k, bc_type="periodic")(at),
        x, y,
    )  # fmt: skip
ends = ([(1, 0.5)], [(2, -1.0)])
case("bc_type", lambda M, x, y: M.make_interp_spline(x, y, bc_type=ends)(at), x, y)
knots = np.array([0.0] * 4 + [1.7] + [4.0] * 4)
weights = np.linspace(0.5, 2.0, 7)
for method in ("qr", "norm-eq"):
    case(
        f"make_lsq_spline {method}",
        lambda M, y, w, m=method: M.make_lsq_spline(x, y, knots, 3, w, method=m)(at),
        y, weights,
    )  # fmt: skip
for nu in (0, 1, 3, 4):
    case(f"BSpline {nu}", lambda M, t, c, at, nu=nu: M.BSpline(t, c, 3)(at, nu), t, r(6, 2), at)
case("BSpline periodic", lambda M, t, c: M.BSpline(t, c, 2, "periodic")(at + 3.2), t, r(7))
case("BSpline.integrate", lambda M, t, c: M.BSpline(t, c, 3).integrate(1.2, 2.5), t, r(6))
case("BSpline.antiderivative", lambda M, t, c: M.BSpline(t, c, 3).antiderivative(2)(at), t, r(6))
case("BSpline.derivative", lambda M, t, c: M.BSpline(t, c, 3).derivative()(at), t, r(6))
case("splev", lambda M, x, y, at: M.splev(at, M.splrep(x, y), der=1), x, y, at)
case("splev outside", lambda M, x, y: M.splev(at * 2 - 1, M.splrep(x, y), ext=3), x, y)
case("splint", lambda M, x, y: M.splint(-1.0, 2.3, M.splrep(x, y)), x, y)
for kind in ("PPoly", "BPoly"):
    case(f"{kind}", lambda M, c, x, at, n=kind: getattr(M, n)(c, x)(at, 1), r(4, 6), x, at)
    case(f"{kind} of degree 0", lambda M, c, n=kind: getattr(M, n)(c, x)(at), r(1, 6))
    case(f"{kind}.derivative", lambda M, c, n=kind: getattr(M, n)(c, x).derivative()(at), r(4, 6))
    case(
        f"{kind}.antiderivative",
        lambda M, c, x, n=kind: getattr(M, n)(c, x).antiderivative(2)(at),
        r(3, 6, 2), x,
    )  # fmt: skip
    case(
        f"{kind}.integrate",
        lambda M, c, a, b, n=kind: getattr(M, n)(c, x).integrate(a, b),
        r(3, 6), np.array(2.7), np.array(0.2),
    )  # fmt: skip
case("periodic integral", lambda M, c: M.PPoly(c, x).integrate(1.0, 13.0, "periodic"), r(3, 6))
case("descending", lambda M, c, x: M.PPoly(c, x)(at), r(3, 6), x[::-1].copy())
case("from_bernstein", lambda M, c: M.PPoly.from_bernstein_basis(M.BPoly(c, x))(at), r(4, 6))
case("from_power", lambda M, c: M.BPoly.from_power_basis(M.PPoly(c, x))(at), r(4, 6))
case("from_derivatives", lambda M, y: M.BPoly.from_derivatives([0.0, 2.0, 4.0], y)(at), r(3, 2))
case("from_spline", lambda M, y: M.PPoly.from_spline(M.make_interp_spline(x, y))(at), y)
nd = (np.array([0.0, 1.0, 4.5]), np.array([0.0, 1.0, 2.0, 5.0]))
case("NdPPoly", lambda M, c, p: M.NdPPoly(c, nd)(p, (1, 0)), r(3, 4, 2, 3), points)
case(
    "NdPPoly.integrate",
    lambda M, c: M.NdPPoly(c, nd).integrate([(0.1, 2), (1.5, 0)]),
    r(3, 4, 2, 3),
)
SOLVER = lambda: {"solver": scipy.sparse.linalg.spsolve}  # noqa: E731  # a test may replace it
for method in METHODS.split():
    case(
        f"grid {method}",
        lambda M, a, b, v, p, m=method: M.RegularGridInterpolator(
            (a, b), v, m, **SOLVER() if M is S and m in EXACT else {}
        )(p),
        *grid, table, points,
    )  # fmt: skip
EXACT = ("slinear", "cubic", "quintic")  # where SciPy's own solver iterates
outside = np.array([[-1.0, 2.0], [1.0, np.nan], [1.0, 1.0]])
case("outside", lambda M, v: M.interpn(grid, v, outside, bounds_error=False, fill_value=7.0), table)
for kind in KINDS.split():
    case(f"interp1d {kind}", lambda M, x, y, at, k=kind: M.interp1d(x, y, k, 1)(at), x, Y, at)
case(
    "interp1d outside",
    lambda M, x, y: M.interp1d(x, y, "cubic", **OUTSIDE)(at * 2 - 1),
    x, y,
)  # fmt: skip
for kind in ("Krogh", "Barycentric"):
    case(
        kind, lambda M, x, y, at, n=kind: getattr(M, n + "Interpolator")(x, y, 1)(at), x, Y, at
    )  # fmt: skip
    case(
        f"{kind} derivatives",
        lambda M, x, y, n=kind: getattr(M, n.lower() + "_interpolate")(x, y, at, der=[0, 1]),
        x[:4], y[:4],
    )  # fmt: skip
case("at a node", lambda M, x, y, z: M.BarycentricInterpolator(x, y)(z), x[:5], y[:5], x[1:3])
for kernel in KERNELS.split():
    case(
        f"RBF {kernel}",
        lambda M, p, d, q, k=kernel: M.RBFInterpolator(p, d, None, 0.1, k, 1.3)(q),
        places, heights, near,
    )  # fmt: skip
case("RBF neighbors", lambda M, d, q: M.RBFInterpolator(places, d, neighbors=6)(q), heights, near)


def loop(y):
    """Values of which the last is the first."""
    return (gg if isinstance(y, gg.Tensor) else np).concatenate([y[:-1], y[:1]])


def constants(arrays):
    return [gg.asarray(a) for a in arrays]


@pytest.mark.parametrize("name", CASES)
def test_values_are_scipys(name):
    f, arrays = CASES[name]
    expected = np.asarray(f(S, *arrays))
    plain = f(G, *constants(arrays))
    with gg.GradientTape() as tape:
        tensors = constants(arrays)
        tape.watch(tensors)
        watched = gg.stop_gradient(f(G, *tensors))
    for result in (plain, watched):
        assert isinstance(result, gg.Tensor)
        assert (result.shape, result.dtype) == (expected.shape, expected.dtype)
        np.testing.assert_allclose(result.numpy(), expected, rtol=1e-8, atol=1e-9)


def finite(result):
    return gg.where(gg.isnan(result), 0.0, result)


JUMPS = ("make_interp_spline 0", "interp1d zero", "at a node")  # differences would cross one


@pytest.mark.thin(24)
@pytest.mark.parametrize("name", [n for n in CASES if n not in JUMPS])
def test_gradients_are_those_of_differences(name):
    f, arrays = CASES[name]
    check_grads(lambda *a: finite(f(G, *a)), arrays, order=2, rtol=1e-4, atol=1e-5)


@pytest.mark.thin(12)
@pytest.mark.parametrize("name", [n for n in CASES if n != "RBF neighbors"])
def test_all_arrays_are_traced_and_batched(name):
    f, arrays = CASES[name]
    expected = np.asarray(f(G, *constants(arrays)))
    traced = gg.function(lambda *a: f(G, *a))(*constants(arrays))
    np.testing.assert_allclose(traced.numpy(), expected, rtol=1e-8, atol=1e-9)
    rows = [gg.asarray(np.stack([a, a])) for a in arrays]
    batched = gg.vmap(lambda *a: f(G, *a))(*rows).numpy()
    np.testing.assert_allclose(batched, [expected] * 2, rtol=1e-8, atol=1e-9)


def test_a_node_of_a_barycentric_interpolator_is_no_exception():
    slope = gg.grad(lambda z: gg.sum(G.BarycentricInterpolator(x[:4], y[:4])(z)))(
        gg.asarray(x[1:3])
    )
    expected = S.BarycentricInterpolator(x[:4], y[:4]).derivative(x[1:3])
    np.testing.assert_allclose(slope.numpy(), expected, rtol=1e-9)


def test_roots_have_gradients_by_what_they_depend_on():
    def ours(x, y, cut):
        return G.CubicSpline(x, y).solve(cut)

    arrays = x, y, np.array(0.05)
    expected = S.CubicSpline(x, y).solve(0.05)
    assert expected.size
    np.testing.assert_allclose(ours(*constants(arrays)).numpy(), expected)
    check_grads(ours, arrays, rtol=1e-4)
    steps = np.array([[-1.0, 1.0]])  # which changes its sign at a breakpoint
    slopes = gg.grad(lambda x: G.PPoly(steps, x).roots()[0])(gg.asarray(x[:3]))
    np.testing.assert_array_equal(slopes.numpy(), [0.0, 1.0, 0.0])


COMPLEX = {
    "CubicSpline": lambda M, y: M.CubicSpline(x, y)(at),
    "BSpline": lambda M, y: M.make_interp_spline(x, y)(at),
    "make_lsq_spline": lambda M, y: M.make_lsq_spline(x, y, knots)(at),
    "grid": lambda M, y: M.interpn((x,), y, at[0][:, None], method="cubic"),
    "Krogh": lambda M, y: M.KroghInterpolator(x, y)(at),
    "RBF": lambda M, y: M.RBFInterpolator(places[:7], y)(near),
}


@pytest.mark.parametrize("name", COMPLEX)
def test_values_may_be_complex(name):
    values, f = y + 1j * ring, COMPLEX[name]
    expected = f(S, values)
    with gg.GradientTape() as tape:
        tensor = gg.asarray(values)
        tape.watch(tensor)
        result = f(G, tensor)
        size = gg.sum(gg.abs(result) ** 2)
    np.testing.assert_allclose(gg.stop_gradient(result).numpy(), expected, rtol=1e-6, atol=1e-7)
    assert gg.all(gg.isfinite(gg.abs(tape.gradient(size, tensor))))


ERRORS = {
    "knots that fall": lambda M, A: M.CubicSpline(A(x[::-1]), A(y)),
    "knots twice": lambda M, A: M.make_interp_spline(A(x[[0, 0, 1, 2]]), A(y[:4])),
    "NaN": lambda M, A: M.PchipInterpolator(A(x), A(y * np.nan)),
    "lengths": lambda M, A: M.CubicSpline(A(x), A(y[:3])),
    "empty": lambda M, A: M.CubicSpline(A(x[:0]), A(y[:0])),
    "complex knots": lambda M, A: M.CubicSpline(A(x + 0j), A(y)),
    "complex": lambda M, A: M.Akima1DInterpolator(A(x), A(y + 0j)),
    "conditions": lambda M, A: M.CubicSpline(A(x), A(y), bc_type="loose"),
    "ends": lambda M, A: M.CubicSpline(A(x), A(y), bc_type="periodic"),
    "grid": lambda M, A: M.RegularGridInterpolator((A(x[[0, 2, 1]]),), A(y[:3])),
    "too few": lambda M, A: M.RegularGridInterpolator((A(x[:3]),), A(y[:3]), "cubic"),
    "outside": lambda M, A: M.interpn((A(x),), A(y), A(x[:1] - 1)),
    "outside in 1-D": lambda M, A: M.interp1d(A(x), A(y))(A(x[:1] - 1)),
    "order": lambda M, A: M.BSpline(A(t), A(y[:6]), -1),
    "t": lambda M, A: M.BSpline(A(t[::-1]), A(y[:6]), 3),
    "points twice": lambda M, A: M.BarycentricInterpolator(A(x[[0, 0, 1]]), A(y[:3])),
    "singular": lambda M, A: M.RBFInterpolator(A(places[[0, 0, 1, 1]]), A(y[:4])),
    "kernel": lambda M, A: M.RBFInterpolator(A(places), A(heights), kernel="bell"),
    "method": lambda M, A: M.make_lsq_spline(A(x), A(y), A(knots), method="svd"),
    "Schoenberg-Whitney": lambda M, A: M.make_interp_spline(
        A(x), A(y), t=A(np.array([0.0] * 4 + [0.1, 0.2, 0.3] + [4.0] * 4))
    ),
    "derivative": lambda M, A: M.BSpline(A(knots), A(y[:5]), 3).derivative(4),
}  # fmt: skip


@pytest.mark.parametrize("name", ERRORS)
def test_what_scipy_refuses_is_refused(name):
    def watched(a):
        tape.watch(tensor := gg.asarray(a.copy()))
        return tensor

    with pytest.raises(Exception) as theirs:  # noqa: PT011  # SciPy's, whatever it is
        ERRORS[name](S, lambda a: a.copy())
    for array in (lambda a: gg.asarray(a.copy()), watched):
        with gg.GradientTape() as tape, pytest.raises(theirs.type) as ours:
            ERRORS[name](G, array)
        assert str(ours.value)[:20] == str(theirs.value)[:20] or "ingular" in str(ours.value)


def test_all_names_of_scipy_are_there():
    public = {n for n in S.__all__ if n != "test"}
    assert set(G.__all__) == public
    assert all(getattr(G, name) is not None for name in public)
    assert issubclass(G.CubicSpline, G.PPoly)
