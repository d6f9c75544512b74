"""The names of scipy.fft, .linalg and .special that CuPy has, and SciPy's call forms of them."""

import inspect
import warnings

import numpy as np
import pytest
import scipy.fft
import scipy.linalg
import scipy.special

import gpugrad as gg
from gpugrad.errors import ArgumentError

NAMES = {  # public names of cupyx.scipy 14, but for get_fft_plan: CuPy keeps plans by itself
    "fft": """dct dctn dst dstn fft fft2 fftfreq fftn fftshift fht hfft hfft2 hfftn idct idctn idst
        idstn ifft ifft2 ifftn ifftshift ifht ihfft ihfft2 ihfftn irfft irfft2 irfftn next_fast_len
        rfft rfft2 rfftfreq rfftn""",
    "linalg": """bandwidth block_diag circulant companion convolution_matrix dft expm fiedler
        fiedler_companion hadamard hankel helmert hilbert khatri_rao leslie lu lu_factor lu_solve
        solve_triangular toeplitz""",
    "special": """bdtr bdtrc bdtri beta betainc betaincinv betaln binom boxcox boxcox1p btdtr btdtri
        cbrt chdtr chdtrc chdtri cosdg cosm1 cotdg digamma ellipeinc ellipj ellipk ellipkinc
        ellipkm1 entr erf erfc erfcinv erfcx erfinv exp1 exp10 exp2 expi expit expm1 expn exprel
        fdtr fdtrc fdtri gamma gammainc gammaincc gammainccinv gammaincinv gammaln gammasgn gdtr
        gdtrc huber i0 i0e i1 i1e inv_boxcox inv_boxcox1p j0 j1 k0 k0e k1 k1e kl_div lambertw
        log1p log_expit log_ndtr log_softmax loggamma logit logsumexp lpmv multigammaln nbdtr
        nbdtrc nbdtri ndtr ndtri pdtr pdtrc pdtri poch polygamma pseudo_huber psi radian rel_entr
        rgamma round shichi sici sinc sindg softmax sph_harm_y spherical_yn tandg wright_bessel
        xlog1py xlogy y0 y1 yn zeta zetac""",
}
OWN = {  # parameters of SciPy that gpugrad lacks, or that it places elsewhere
    "fftfreq": "SciPy's xp", "rfftfreq": "SciPy's xp", "lu": "p_indices: indices have no gradient",
    "zeta": "out", "bandwidth": "",
}  # fmt: skip


@pytest.mark.parametrize("space", NAMES)
def test_names_of_cupy_are_here(space):
    assert not [n for n in NAMES[space].split() if n not in getattr(gg, space).__all__]


def signatures():
    for space in ("fft", "linalg", "special"):
        theirs = getattr(scipy, space)
        for name in NAMES[space].split():
            function = getattr(theirs, name, None)
            if callable(function) and not isinstance(function, np.ufunc) and name not in OWN:
                yield pytest.param(getattr(gg, f"{space}"), function, id=f"{space}.{name}")


@pytest.mark.parametrize(("space", "theirs"), [*signatures()])
def test_parameters_have_the_names_and_places_of_scipy(space, theirs):
    ours = list(inspect.signature(getattr(space, theirs.__name__)).parameters.values())
    given = list(inspect.signature(theirs).parameters.values())
    if any(p.kind is p.VAR_KEYWORD or p.kind is p.VAR_POSITIONAL for p in (*ours, *given)):
        return  # a constant matrix: SciPy reads its arguments
    arrays = [p for p in ours if p.kind is p.POSITIONAL_ONLY]
    rest = [p.name for p in ours if p.kind is p.POSITIONAL_OR_KEYWORD]
    places = [p.name for p in given if p.kind is not p.KEYWORD_ONLY][len(arrays) :]
    assert rest[: len(places)] == places


RNG = np.random.default_rng(0)
X = RNG.normal(size=(3, 4))
CALLS = [
    *[(n, (X, 1, (2, 3), None, "ortho", True, 1)) for n in ("dctn", "idctn", "dstn", "idstn")],
    *[(n, (X, 2, 3, 0, None, True, None)) for n in ("dct", "idct", "dst", "idst")],
    *[(n, (X, 5, 0, None, True, 1)) for n in ("fft", "ifft", "rfft", "irfft", "hfft", "ihfft")],
    *[(n, (X, (2, 3), None, "forward", True)) for n in ("fftn", "hfftn", "ihfftn", "rfft2")],
    *[(n, (X, 0.7, mu, 0.2, q)) for n in ("fht", "ifht") for mu, q in ((0.0, 0), (1.5, 0.3))],
]


@pytest.mark.parametrize("dtype", [np.float64, np.float32, np.float16])
@pytest.mark.parametrize(("name", "args"), CALLS)
def test_transforms_have_scipys_values_and_dtype(name, args, dtype):
    args = (args[0].astype(dtype), *args[1:])
    result = getattr(gg.fft, name)(*args).numpy()
    expected = getattr(scipy.fft, name)(*args)  # second: it may overwrite the argument
    assert result.dtype == expected.dtype
    near = 1e-10 if dtype is np.float64 else 1e-5
    np.testing.assert_allclose(result, expected, rtol=near, atol=near)


@pytest.mark.parametrize("trans", [0, 1, 2, "T", "C"])
def test_triangular_systems_are_solved_with_the_transpose(trans):
    a = RNG.normal(size=(3, 3)) + 1j * RNG.normal(size=(3, 3))
    for lower in (False, True):
        expected = scipy.linalg.solve_triangular(a, X[:, 0], trans, lower)
        result = gg.linalg.solve_triangular(a, X[:, 0], trans, lower, overwrite_b=True).numpy()
        np.testing.assert_allclose(result, expected)


def test_check_finite_raises_only_if_asked_for():
    a, b = np.eye(2), np.array([1.0, np.nan])
    bad, la = np.diag(b), gg.linalg
    calls = [
        lambda how: la.lu(bad, **how), lambda how: la.lu_factor(bad, **how),
        lambda how: la.lu_solve(la.lu_factor(a), b, **how),
        lambda how: la.cho_solve(la.cho_factor(a), b, **how),
        lambda how: la.solve_triangular(a, b, lower=True, **how),
    ]  # fmt: skip
    for call in calls:
        call({})
        with pytest.raises(ArgumentError, match="check_finite"):
            call({"check_finite": True})


FAR = [  # name, arguments in the tails; mpmath's value and derivative by the last argument
    ("chdtrc", (3.0, 80.0)), ("chdtr", (3.0, 1e-6)), ("fdtrc", (3.0, 5.0, 1e4)),
    ("gdtrc", (2.0, 3.0, 30.0)), ("pdtrc", (9, 1e-2)), ("bdtrc", (8, 10, 1e-3)),
    ("stdtr", (3.5, -200.0)), ("owens_t", (6.0, 0.5)), ("ellipkinc", (1.2, 1e-9)),
    ("ellipeinc", (1.2, -3.0)), ("voigt_profile", (50.0, 1.0, 0.5)),
]  # fmt: skip


def exact(mp):
    def betainc(a, b, x):
        return mp.betainc(a, b, 0, x, regularized=True)

    def upper(a, x):
        return mp.gammainc(a, x, mp.inf, regularized=True)

    def owen(h, a):
        return mp.quad(lambda x: mp.exp(-h * h * (1 + x * x) / 2) / (1 + x * x), [0, a]) / 2 / mp.pi

    def voigt(x, s, gamma):
        z = mp.mpc(x, gamma) / s / mp.sqrt(2)
        return (mp.exp(-z * z) * mp.erfc(-1j * z)).real / s / mp.sqrt(2 * mp.pi)

    return {
        "chdtrc": lambda v, x: upper(v / 2, x / 2),
        "chdtr": lambda v, x: 1 - upper(v / 2, x / 2),
        "fdtrc": lambda m, n, x: betainc(n / 2, m / 2, n / (n + m * x)),
        "gdtrc": lambda a, b, x: upper(b, a * x),
        "pdtrc": lambda k, m: 1 - upper(k + 1, m),
        "bdtrc": lambda k, n, p: betainc(k + 1, n - k, p),
        "stdtr": lambda n, t: betainc(n / 2, mp.mpf(1) / 2, n / (n + t * t)) / 2,
        "owens_t": owen, "ellipkinc": mp.ellipf, "ellipeinc": mp.ellipe, "voigt_profile": voigt,
    }  # fmt: skip


@pytest.mark.parametrize(("name", "args"), FAR)
def test_tails_have_the_digits_of_mpmath(name, args):
    import mpmath as mp

    with mp.workdps(60):
        *first, last = map(mp.mpf, args)
        f, h = exact(mp)[name], abs(last) * mp.mpf(10) ** -20
        value = f(*first, last)
        slope = (f(*first, last + h) - f(*first, last - h)) / (2 * h)
    call = gg.OPS[name].eager
    y, gradient = gg.value_and_grad(lambda x: call(*args[:-1], x))(gg.constant(np.array(args[-1])))
    assert abs(y.item() / value - 1) < 1e-12
    assert abs(gradient.item() / slope - 1) < 1e-10


@pytest.mark.parametrize("dtype", ["bool", "int8", "float16", "float32", "float64"])
@pytest.mark.parametrize("name", ["cbrt", "entr", "erf", "xlogy", "chdtr", "airy", "logsumexp"])
def test_special_of_scipys_namespace_has_scipys_dtypes(name, dtype):
    theirs, ours = getattr(scipy.special, name), getattr(gg.scipy.special, name)
    x = np.array([1, 0, 1], dtype)
    args = [x] * getattr(theirs, "nin", 1)
    results, expected = ours(*map(gg.asarray, args)), theirs(*args)
    for y, z in zip(*((r if type(r) is tuple else (r,)) for r in (results, expected)), strict=True):
        assert y.dtype == z.dtype
        np.testing.assert_allclose(y.numpy(), z, rtol=1e-3 if dtype == "float16" else 1e-5)


def test_special_of_scipys_namespace_has_every_name_and_its_gradients():
    assert not {n for n in scipy.special.__all__ if not hasattr(gg.scipy.special, n)}
    half = gg.zeros(2, dtype="bfloat16")
    assert gg.scipy.special.erf(half).dtype == half.dtype  # SciPy has none
    counts, x = np.array([1, 2]), np.array([0.5, 0.5], "float32")
    assert gg.scipy.special.bdtr(gg.asarray(counts), 2, gg.asarray(x)).dtype == np.float64
    slope = gg.grad(lambda x: gg.scipy.special.erf(gg.astype(x, "float16")))
    assert slope(gg.constant(0.0)).item() == pytest.approx(2 / np.pi**0.5, 1e-3)


@pytest.mark.parametrize("name", ["gdtr", "gdtrc", "fdtr", "fdtrc", "chdtr", "bdtr", "nbdtr"])
def test_distributions_are_nan_where_scipys_are(name):
    theirs, values = getattr(scipy.special, name), [-1.5, -1.0, 0.0, 0.5, 1.0, 2.0]
    args = [x.ravel() for x in np.meshgrid(*[values] * theirs.nin)]
    with warnings.catch_warnings(action="ignore"):  # of counts that are rounded, and of 0 / 0
        result, expected = getattr(gg.special, name)(*args).numpy(), theirs(*args)
    np.testing.assert_allclose(result, expected, atol=1e-12)
