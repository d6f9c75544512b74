"""gg.scipy.linalg's decompositions, equations and banded matrices beside SciPy, and gradients."""

import inspect

import numpy as np
import pytest
import scipy.linalg

import gpugrad as gg
from gpugrad.errors import ArgumentError, ShapeError, SingularMatrixError

RNG = np.random.default_rng(0)
A, B = RNG.normal(size=(4, 4)), RNG.normal(size=(4, 4))
E = RNG.normal(size=(3, 3))
REAL = E @ np.diag([1.0, 2, 3.5]) @ np.linalg.inv(E)  # real eigenvalues
TURN = np.random.default_rng(0).normal(size=(4, 4)) + 3 * np.kron(
    np.eye(2), [[0, 1], [-1, 0]]
)  # pairs of complex ones
S, C, M, V = A @ A.T + np.eye(4), A + 1j * B, RNG.normal(size=(4, 2)), RNG.normal(size=4)
PAIR = np.random.default_rng(0).normal(size=(2, 3, 3)) + np.array([0 * E, 2 * np.eye(3)])
WIDE = RNG.normal(size=(6, 3))
BAND = RNG.normal(size=(3, 4)) + np.array([[0.0], [6.0], [0.0]])
Q, R = scipy.linalg.qr(A[:, :3], mode="economic")
INDEFINITE = np.array([[0, 1.0, 2], [1, 0, 3], [2, 3, 0]])


def by_basis(q):
    return q @ q.conj().T if isinstance(q, np.ndarray) else q @ gg.conj(gg.matrix_transpose(q))


CALLS = {  # the calls, and the arrays that gradients are by
    "cosm": (lambda f, a: [f.cosm(a), f.sinm(a), f.tanm(a), f.coshm(a), f.tanhm(a)], A),
    "sinhm": (lambda f, a, c: [f.sinhm(a), f.cosm(c)], A, C),
    "signm": (lambda f, a: f.signm(a), A),
    "expm": (lambda f, a, e: [f.expm_frechet(a, e), f.expm_cond(a)], A, B),
    "power": (lambda f, a: [f.fractional_matrix_power(a, t) for t in (0.3, -2)], S),
    "funm": (lambda f, a: f.funm(a, lambda x: x * x * x + 1), TURN),
    "lyapunov": (lambda f, a, q: [
        f.solve_continuous_lyapunov(a, q), f.solve_lyapunov(a, q),
        *(f.solve_discrete_lyapunov(a, q, method) for method in (None, "bilinear")),
    ], A, B),
    "continuous_are": (lambda f, a, b, s: f.solve_continuous_are(a, b, S, np.eye(2), S, s),
                       A, M, 0.1 * M),
    "discrete_are": (lambda f, a, b: f.solve_discrete_are(a, b, S, np.eye(2)), A, M),
    "toeplitz": (lambda f, c, r, x: [
        f.solve_toeplitz((c, r), x), f.solve_toeplitz(c, x), f.matmul_toeplitz((c, r), x),
        f.matmul_toeplitz(c, x[:, 0]), f.solve_circulant(c, x),
    ], V + np.eye(4)[0] * 5, V, M),
    "banded": (lambda f, ab, b: [f.solve_banded((1, 1), ab, b), f.solve_banded((2, 0), ab + 3, b)],
               BAND, M),
    "hermitian_banded": (lambda f, ab, b: [
        f.solveh_banded(ab[:2], b), f.solveh_banded(ab[1:], b, lower=True),
        f.eigvals_banded(ab[:2]), f.eigvals_banded(ab[1:], True, select="i", select_range=(1, 2)),
        f.cho_solve_banded((f.cholesky_banded(ab[:2]), False), b),
        f.cho_solve_banded((f.cholesky_banded(ab[1:], lower=True), True), b),
    ], BAND, M),
    "tridiagonal": (lambda f, d, e: [
        f.eigvalsh_tridiagonal(d, e), abs(f.eigh_tridiagonal(d, e)[1]),
        f.eigvalsh_tridiagonal(d, e, "v", (0, 2)),
    ], np.arange(4.0), V[:3]),
    "schur": (lambda f, a, b: [f.schur(a), f.schur(b)], REAL, TURN),
    "complex_schur": (lambda f, a: [f.schur(a)[0], f.rsf2csf(*f.schur(a))], TURN),
    "hessenberg": (lambda f, a, c: [f.hessenberg(a, True), f.hessenberg(c)], A, C),
    "qz": (lambda f, a, b: [
        f.qz(a, b), f.ordqz(a, b, "rhp")[:2], np.divide(*f.ordqz(a, b, "rhp")[2:4]),
    ], *PAIR),
    "ldl": (lambda f, a, b: [*f.ldl(a)[:2], *f.ldl(b, lower=False)[:2]], S, INDEFINITE),
    "rq": (lambda f, a, b: [f.rq(a), *(f.rq(b, mode=m) for m in ("economic", "r"))], M, A),
    "qr_multiply": (lambda f, a, c: [
        f.qr_multiply(a, c), f.qr_multiply(a, c[:2], "left"), f.qr_multiply(a, c, conjugate=True)
    ], M, A),
    "qr_update": (lambda f, q, r, u, v: [
        f.qr_update(q, r, u, v), f.qr_insert(q, r, v, 1), f.qr_insert(q, r, u, 1, "col"),
        f.qr_delete(q, r, 1), f.qr_delete(q, r, 1, 1, "col"),
    ], Q, R, V, V[:3]),
    "bases": (lambda f, a, b, c: [
        by_basis(f.orth(a)), by_basis(f.null_space(a.T)), f.subspace_angles(c[:, :2], b),
        f.subspace_angles(c, c + 1e-3 * b),
    ], M, WIDE, WIDE[::-1] ** 2),
    "procrustes": (lambda f, a, b: f.orthogonal_procrustes(a, b), A, B),
    "balance": (lambda f, a: f.matrix_balance(a), A * [1, 1e3, 1, 1]),
    "pinvh": (lambda f, a: [f.pinvh(a), f.pinvh(a, lower=False), f.diagsvd(a[0], 4, 5)], S),
    "cdf2rdf": (lambda f, a: [abs(x) for x in f.cdf2rdf(*f.eig(a))], TURN),
}  # fmt: skip


def flat(value):
    return (
        [x for part in value for x in flat(part)] if isinstance(value, (list, tuple)) else [value]
    )


@pytest.mark.parametrize("name", CALLS)
def test_results_are_scipys(name):
    call, *arrays = CALLS[name]
    expected = flat(call(scipy.linalg, *map(np.copy, arrays)))
    for x, y in zip(flat(call(gg.scipy.linalg, *map(gg.asarray, arrays))), expected, strict=True):
        assert (x.dtype, x.shape) == (y.dtype, y.shape)
        np.testing.assert_allclose(x.numpy(), y, rtol=1e-7, atol=1e-9)


@pytest.mark.thin(4)
@pytest.mark.parametrize("name", CALLS)
def test_results_have_gradients(name):
    call, *arrays = CALLS[name]

    def function(*arrays):
        return [x for x in flat(call(gg.scipy.linalg, *arrays)) if x.dtype.kind in "fc"]

    gg.testing.check_grads(function, [*map(gg.asarray, arrays)])


def test_a_power_has_a_gradient_by_the_exponent():
    def power(t):
        return gg.scipy.linalg.fractional_matrix_power(gg.asarray(S), t)

    gg.testing.check_grads(power, [gg.constant(np.float64(0.3))])


@pytest.mark.parametrize(("call", "error"), [
    (lambda f: f.solve_banded((1, 1), BAND, V[:3]), ShapeError),
    (lambda f: f.solve_banded((1, 1), 0 * BAND, V), SingularMatrixError),
    (lambda f: f.solve_circulant([1.0, 1.0], [1.0, 2.0]), SingularMatrixError),
    (lambda f: f.cosm(M), ShapeError), (lambda f: f.funm(A, gg.exp, disp=False), ArgumentError),
    (lambda f: f.eig_banded(BAND, select="x"), ArgumentError),
    (lambda f: f.solve_discrete_lyapunov(A, B, "x"), ArgumentError),
    (lambda f: f.diagsvd(V, 2, 3), ArgumentError), (lambda f: f.schur(M), ShapeError),
    (lambda f: f.rq(A, mode="x"), ArgumentError),
    (lambda f: f.cdf2rdf(V[:3] + 1j, B[:3, :3]), ArgumentError),
])  # fmt: skip
def test_wrong_arguments_raise(call, error):
    with pytest.raises(error):
        call(gg.scipy.linalg)


_S = np.array([[4.0, 1.0, 0.5], [1.0, 5.0, 0.2], [0.5, 0.2, 6.0]])
_BAND = np.array([[0.0, 1.0, 1.0], [4.0, 4.0, 4.0]])
_OF_SEVERAL = {
    "solve_banded": ((1, 1), np.array([[0.0, 1, 1], [4, 4, 4], [1, 1, 0]]), np.ones(3)),
    **dict.fromkeys(("solveh_banded",), (_BAND, np.ones(3))),
    **dict.fromkeys(("cholesky_banded", "eig_banded", "eigvals_banded"), (_BAND,)),
    **dict.fromkeys(("eigh_tridiagonal", "eigvalsh_tridiagonal"), (np.ones(3), np.ones(2))),
    **dict.fromkeys(("solve", "solve_triangular", "lstsq"), (_S, np.ones(3))),
    **dict.fromkeys(("solve_toeplitz",), (np.arange(3.0) + 1, np.ones(3))),
    **dict.fromkeys(("qz", "ordqz", "expm_frechet", "orthogonal_procrustes"), (_S, _S + 1)),
    "cho_solve": (scipy.linalg.cho_factor(_S), np.ones(3)),
    "lu_solve": (scipy.linalg.lu_factor(_S), np.ones(3)),
    "cho_solve_banded": ((scipy.linalg.cholesky_banded(_BAND), False), np.ones(3)),
    "qr_update": (*scipy.linalg.qr(_S), np.ones(3), np.ones(3)),
    "qr_insert": (*scipy.linalg.qr(_S), np.ones(3), 0),
    "qr_delete": (*scipy.linalg.qr(_S), 0),
    "rsf2csf": scipy.linalg.schur(_S),
}


def _checking_functions():
    for name in sorted(scipy.linalg.__all__):
        f = getattr(scipy.linalg, name)
        if name == "matmul_toeplitz":  # has the parameter, and does not look at it
            continue
        if inspect.isroutine(f) and "check_finite" in inspect.signature(f).parameters:
            yield name


def _with_nan(args):
    """The arguments with a NaN in the last array of floats."""
    args = list(args)
    for i in reversed(range(len(args))):
        if isinstance(args[i], np.ndarray) and args[i].dtype == float:
            args[i] = args[i].copy()
            args[i].flat[args[i].size // 2] = np.nan
            return args
    raise AssertionError(args)


@pytest.mark.parametrize("name", list(_checking_functions()))
def test_infinities_and_nans_are_refused_where_scipy_refuses_them(name):
    args = _with_nan(_OF_SEVERAL.get(name, (_S,)))
    with pytest.raises(ValueError, match="infs or NaNs"):
        getattr(scipy.linalg, name)(*args)
    with pytest.raises(ValueError, match=f"{name}: an array must not contain infs or NaNs"):
        getattr(gg.scipy.linalg, name)(
            *(gg.asarray(a) if isinstance(a, np.ndarray) else a for a in args)
        )


def test_check_finite_lets_infinities_through():
    x = gg.asarray([[np.nan, 1.0], [1.0, 2.0]])
    assert np.isnan(gg.scipy.linalg.inv(x, check_finite=False).numpy()).any()
    watched = gg.Variable([[np.nan, 1.0], [1.0, 2.0]])
    with gg.GradientTape(), pytest.raises(ValueError, match="infs or NaNs"):
        gg.scipy.linalg.det(watched)
    assert gg.scipy.linalg.lu_factor(_S, check_finite=False)[0].shape == (3, 3)
