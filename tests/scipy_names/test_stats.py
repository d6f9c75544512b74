"""gg.scipy.stats: values against SciPy's under a tape, gradients, samples, all modes, bad input."""

import functools
import tracemalloc
import warnings

import numpy as np
import pytest
import scipy.stats as S
from scipy.stats._distr_params import distcont, distdiscrete

import gpugrad as gg
from gpugrad.errors import DTypeError
from gpugrad.testing import check_grads

G = gg.scipy.stats
RNG = np.random.default_rng(0)

UNTRIED = {"kstwobign", "levy_stable", "nchypergeom_fisher", "poisson_binom"}

FIXED = {  # parameters without a derivative: counts, orders of special functions, limits of cases
    "betabinom": "n", "betanbinom": "n", "binom": "n", "boltzmann": "N", "gausshyper": "abcz",
    "genhyperbolic": "p", "geninvgauss": "p", "hypergeom": "MnN", "irwinhall": "n",
    "kappa4": "hk", "ksone": "n", "kstwo": "n", "nchypergeom_wallenius": "MnN",
    "nhypergeom": "Mnr", "randint": ["low", "high"], "zipfian": "n",
}  # fmt: skip
SLOW = {"argus", "crystalball", "gausshyper", "kappa4", "ncf", "nct", "ncx2", "norminvgauss",
        "rel_breitwigner", "studentized_range"}  # fmt: skip
LAWS = {name: [float(a) for a in args] for name, args in [*distcont, *distdiscrete]
        if isinstance(name, str) and name not in UNTRIED}  # fmt: skip

LAWS["fatiguelife"] = [2.0]  # SciPy's 29 has points too close to a limit for differences


def _has_formula(name, method):
    """Whether SciPy has one of its own; without one, it integrates numerically, and slowly."""
    home = getattr(type(getattr(S, name)), f"_{method}").__module__
    return method in ("pdf", "pmf") or not home.endswith("_distn_infrastructure")


ALL = [
    (name, method)
    for name in LAWS
    for method in ("pmf" if hasattr(getattr(S, name), "pmf") else "pdf", "logcdf", "sf", "ppf",
                   "stats", "entropy")
    if name not in SLOW and (method in ("logcdf", "sf") or _has_formula(name, method))
]  # fmt: skip
ALL += [pytest.param("studentized_range", m, marks=pytest.mark.slow) for m in ("pdf", "cdf")]


def call(module, name, method, free):
    """The method as a function of the point and all parameters, and where to try it."""
    law = getattr(S, name)
    discrete = hasattr(law, "pmf")
    names = [
        *(law.shapes.split(", ") if law.shapes else []),
        "loc",
        *([] if discrete else ["scale"]),
    ]
    args = [*LAWS[name], *([0.0] if discrete else [0.3, 1.7])]
    fixed = set(FIXED.get(name, ())) | ({"loc"} if discrete else set())
    q = np.array([0.15, 0.4, 0.77])
    point = [] if method in ("stats", "entropy") else [q]
    if point and method not in ("ppf", "isf"):
        point = [law.ppf(q, *args)]
    tries = [*point, *map(np.asarray, args)]
    is_free = [*[not discrete] * len(point), *(n not in fixed for n in names)]

    def function(*given):
        given, keywords = iter(given), {"moments": "mv"} if method == "stats" else {}
        both = [next(given) if f else x for f, x in zip(is_free, tries, strict=True)]
        return getattr(getattr(module, name), method)(*(both if free else tries), **keywords)

    return function, [x for f, x in zip(is_free, tries, strict=True) if f]


@pytest.mark.thin(17)
@pytest.mark.parametrize(("name", "method"), ALL)
def test_a_distribution_has_scipys_values_and_gradients(name, method):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        function, free = call(G, name, method, True)
        expected = call(S, name, method, True)[0](*free)
        tensors = [gg.asarray(x) for x in free]
        with gg.GradientTape() as tape:  # so that the ops run, and not SciPy
            tape.watch(tensors)
            result = function(*tensors)
        for a, b in zip(*((x if isinstance(x, tuple) else (x,)) for x in (result, expected)),
                        strict=True):  # fmt: skip
            np.testing.assert_allclose(a.numpy(), b, rtol=1e-8, atol=1e-300)
        finite = np.isfinite(np.asarray(expected)).all()
        if free and finite and not (hasattr(getattr(S, name), "pmf") and method in ("ppf", "isf")):
            check_grads(function, free, order=1, rtol=1e-4, atol=1e-5)


TAILS = ["norm", "gamma", "beta", "t", "logistic", "truncnorm", "weibull_min", "gumbel_r", "expon"]


@pytest.mark.parametrize("name", TAILS)
def test_tails_are_as_exact_as_scipys(name):
    law, args = getattr(S, name), LAWS[name]
    q = np.array([1e-200, 1e-30, 1e-9, 1 - 1e-9])
    q = q[2:] if name == "truncnorm" else q  # else x is the lower limit
    with gg.GradientTape() as tape:
        p = gg.asarray(q)
        tape.watch(p)
        low, high = getattr(G, name).ppf(p, *args), getattr(G, name).isf(p, *args)
        logs = getattr(G, name).logcdf(low, *args), getattr(G, name).logsf(high, *args)
    np.testing.assert_allclose(low, law.ppf(q, *args), rtol=1e-9)
    np.testing.assert_allclose(high, law.isf(q, *args), rtol=1e-9)
    np.testing.assert_allclose(logs[0], law.logcdf(low.numpy(), *args), rtol=1e-9)
    np.testing.assert_allclose(logs[1], law.logsf(high.numpy(), *args), rtol=1e-9)
    assert np.isfinite(tape.gradient(logs[0], p).numpy()).all()


def test_second_derivatives_vmap_and_function():
    x, a = np.array([0.3, 1.5]), np.array(2.5)
    for method, *args in ((G.gamma.logcdf, x, a), (G.poisson.logpmf, np.array(2.0), a),
                          (G.betaprime.ppf, x / 2, a, np.array(3.5))):  # fmt: skip
        function = functools.partial(method, args[0])
        check_grads(function, args[1:], order=2, rtol=1e-4, atol=1e-5)
    check_grads(G.skewnorm.ppf, (x / 2, a), order=2, rtol=1e-4, atol=1e-5)
    slope = gg.grad(lambda q, b: G.betaprime.ppf(q, 2.0, b), argnums=1)
    q, b = gg.asarray([0.2, 0.7]), gg.asarray(3.0)
    expected = [slope(one, b) for one in q]
    np.testing.assert_allclose(gg.vmap(slope, in_axes=(0, None))(q, b), expected, rtol=1e-10)
    traced = gg.function(gg.vmap(slope, in_axes=(0, None)))
    np.testing.assert_allclose(traced(q, b), expected, rtol=1e-10)


@pytest.mark.parametrize("name", ["gamma", "vonmises", "invgauss", "truncnorm", "skewnorm", "norm"])
def test_samples_have_the_law_and_gradients_at_a_fixed_probability(name):
    args = [np.asarray(v) for v in (*LAWS[name], 0.5, 2.0)]

    def samples(*args):
        return getattr(G, name).rvs(*args, size=(40,), random_state=3)

    x = samples(*args)
    assert S.kstest(getattr(S, name).cdf(x.numpy(), *args), "uniform").pvalue > 1e-3
    p = getattr(S, name).cdf(x.numpy(), *args)
    tensors = [gg.asarray(v) for v in args]
    with gg.GradientTape(persistent=True) as tape:
        tape.watch(tensors)
        drawn = samples(*tensors)
        quantiles = getattr(G, name).ppf(p, *tensors)
    np.testing.assert_allclose(drawn, x)
    for tensor in tensors:
        pair = [tape.gradient(y, tensor).numpy() for y in (drawn, quantiles)]
        np.testing.assert_allclose(*pair, rtol=1e-4, atol=1e-6)


@pytest.mark.thin(12)
@pytest.mark.parametrize("name", [n for n in LAWS if n not in SLOW])
def test_samples_of_all_laws(name):
    law, args = getattr(S, name), LAWS[name]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        x = getattr(G, name).rvs(*args, size=(500,), random_state=1).numpy()
        if x.dtype.kind == "f":
            assert S.kstest(law.cdf(x, *args), "uniform").pvalue > 1e-4
        else:
            low, high = law.cdf(x - 1, *args), law.cdf(x, *args)
            assert S.kstest(low + RNG.uniform(size=500) * (high - low), "uniform").pvalue > 1e-4


def test_gradients_on_a_device_are_those_of_the_cpu(cuda):
    def slopes(f, device):
        points = [gg.asarray(np.array(v), device=device) for v in ([0.3, 0.7], 2.5)]
        y, slopes = gg.value_and_grad(lambda *xs: gg.sum(f(*xs)), argnums=(0, 1))(*points)
        assert y.device == points[0].device
        return [x.numpy() for x in (y, *slopes)]

    for f in (
        G.gamma.logpdf,
        G.lognorm.logcdf,
        G.poisson.pmf,
        lambda q, a: G.expon.ppf(q, scale=a),
        lambda x, a: G.norm.rvs(x, a, random_state=1),
        lambda x, a: G.zscore(x) * a,
    ):
        for ours, expected in zip(slopes(f, cuda), slopes(f, "cpu"), strict=True):
            np.testing.assert_allclose(ours, expected, rtol=1e-9)


def test_frozen_laws_and_other_methods_are_scipys():
    a = gg.asarray(np.array(2.5))
    with gg.GradientTape() as tape:
        tape.watch(a)
        for args, make in (((a,), lambda m, a: m.gamma(a, loc=1, scale=2)),
                           *(((x,), lambda m, a: m.poisson(a, loc=1))
                             for x in (a, 2.5))):  # fmt: skip
            ours, theirs = make(G, *args), make(S, 2.5)
            for name, *given in (("mean",), ("std",), ("median",), ("interval", 0.8), ("support",),
                                 ("moment", 3), ("stats", "mvsk"), ("expect",),
                                 ("expect", lambda x: x * x), ("entropy",), ("cdf", 3.0),
                                 ("ppf", 0.3)):  # fmt: skip
                both = [getattr(m, name)(*given) for m in (ours, theirs)]
                np.testing.assert_allclose(*map(np.asarray, map(gg.stop_gradient, both[:1])),
                                           both[1], rtol=1e-7)  # fmt: skip


def test_bad_parameters_are_nan_or_raise_as_in_scipy():
    x, bad = gg.asarray([0.5, 1.5]), gg.asarray([-1.0, 2.0])
    with gg.GradientTape() as tape:
        tape.watch(bad)
        result = G.gamma.pdf(x, bad)
        second = result[1]
    np.testing.assert_allclose(result, S.gamma.pdf(x.numpy(), bad.numpy()))
    slope = tape.gradient(second, bad).numpy()
    assert slope[0] == 0
    assert np.isfinite(slope[1])
    for call in (lambda m: m.gamma.pdf(1.0), lambda m: m.gamma.pdf(1.0, 2.0, wrong=1)):
        with pytest.raises(TypeError) as theirs:
            call(S)
        with pytest.raises(TypeError) as ours:
            call(G)
        assert str(ours.value) == str(theirs.value)
    with pytest.raises(ValueError, match="Domain error"):
        G.gamma.rvs(-1.0)
    with pytest.raises(ValueError, match="size does not match"):
        G.norm.rvs([0.0, 1.0], size=3)
    with pytest.raises(DTypeError, match="cut"):
        gg.grad(lambda x: G.ppcc_max(x))(gg.asarray(X[:, 0]))


def test_landaus_tails_have_exact_slopes():
    x = np.array([-3.5, -2.0, 5.0, 1e4, 1e7])
    law, point, slopes = S.landau, gg.asarray(x), []
    for method in (G.landau.logcdf, G.landau.logsf):
        slopes.append(gg.grad(lambda x, method=method: gg.sum(method(x)))(point))
    np.testing.assert_allclose(slopes[0], law.pdf(x) / law.cdf(x), rtol=1e-6)
    np.testing.assert_allclose(slopes[1], -law.pdf(x) / law.sf(x), rtol=1e-6)
    assert float(gg.grad(G.landau.pdf)(-9.0)) == 0


X, Y = RNG.uniform(0.5, 2, (7, 2)), RNG.uniform(0.5, 2, (7, 2))
P, Q = X[:, 0] / X[:, 0].sum(), Y[:, 0] / Y[:, 0].sum()
A = np.cov(RNG.normal(size=(3, 9))) + np.eye(3)
V, M, ALPHA = RNG.normal(size=(4, 3)), RNG.normal(size=3), np.array([1.5, 2.0, 3.0])


def symmetric(a):
    return (a + a.T) / 2


FUNCTIONS = {
    name: (lambda m, *args, name=name, keywords=keywords: getattr(m, name)(*args, **keywords), args)
    for name, args, keywords in [
        *((n, (X,), {}) for n in ("zscore", "gzscore", "iqr", "skew", "kurtosis", "sem", "gmean",
                                  "hmean", "variation", "tmean", "tvar", "tstd", "tsem", "gstd",
                                  "median_abs_deviation", "circmean", "circvar", "circstd")),
        *((n, (X, Y), {}) for n in ("zmap", "ttest_ind", "ttest_rel")),
        *((n, (X[:, 0],), {}) for n in ("differential_entropy", "jarque_bera", "kstat", "lmoment")),
        *((n, (P, Q), {}) for n in ("entropy", "wasserstein_distance", "energy_distance",
                                    "pearsonr", "linregress", "bartlett", "levene")),
        ("f_oneway", (X[:, 0], Y[:, 0]), {}),
        ("moment", (X,), {"order": 3}), ("pmean", (X,), {"p": 3}),
        ("trim_mean", (X,), {"proportiontocut": 0.2}), ("theilslopes", (P, Q), {}),
        ("boxcox", (P,), {"lmbda": 0.5}),
        ("yeojohnson", (P,), {"lmbda": 0.5}), ("boxcox_llf", (np.array(0.5), P), {}),
        ("yeojohnson_llf", (np.array(0.5), P), {}), ("power_divergence", (P,), {}),
    ]
} | {
    "describe": (lambda m, x: list(m.describe(x))[2:], (X,)),
    "quantile": (lambda m, x: m.quantile(x, 0.3), (P,)),
    "multivariate_normal": (
        lambda m, x, mean, c: m.multivariate_normal.logpdf(x, mean, symmetric(c)), (V, M, A)),
    "multivariate_normal of equal eigenvalues": (
        lambda m, c: m.multivariate_normal.logpdf(V, M, symmetric(c)), (np.eye(3),)),
    "multivariate_normal frozen": (
        lambda m, c: m.multivariate_normal(M, symmetric(c)).entropy(), (A,)),
    "multivariate_t": (lambda m, x, c, df: m.multivariate_t.logpdf(x, M, symmetric(c), df),
                       (V, A, np.array(3.5))),
    "dirichlet": (lambda m, a: m.dirichlet.logpdf([0.2, 0.3, 0.5], a), (ALPHA,)),
    "dirichlet entropy": (lambda m, a: m.dirichlet.entropy(a), (ALPHA,)),
    "dirichlet_multinomial": (
        lambda m, a: m.dirichlet_multinomial.logpmf(np.array([1, 2, 3]), a, 6), (ALPHA,)),
    "multinomial": (lambda m, p: m.multinomial.logpmf([1, 2, 3], 6, p / p.sum()), (ALPHA / 6.5,)),
    "wishart": (lambda m, x, s: m.wishart.logpdf(symmetric(x), 5.0, symmetric(s)), (A + 1, A)),
    "invwishart": (lambda m, x, s: m.invwishart.logpdf(symmetric(x), 5.0, symmetric(s)),
                   (A + np.eye(3), A)),
    "matrix_normal": (
        lambda m, x, c: m.matrix_normal.logpdf(x, None, 2 * np.eye(4), symmetric(c)), (V, A)),
    "gaussian_kde": (lambda m, data, x: m.gaussian_kde(data)(x), (P, Q)),
    "gaussian_kde logpdf": (lambda m, data, x: m.gaussian_kde(data, bw_method=0.5).logpdf(x),
                            (X.T, 0.5 * Y.T)),
}  # fmt: skip


def flat(result):
    is_many = isinstance(result, (tuple, list))
    parts = [x for part in result for x in flat(part)] if is_many else [result]
    return [x for x in parts if not isinstance(x, str)]


@pytest.mark.thin(6)
@pytest.mark.parametrize("name", FUNCTIONS)
def test_functions_have_scipys_values_and_gradients(name):
    function, args = FUNCTIONS[name]
    expected = flat(function(S, *args))
    tensors = [gg.asarray(x) for x in args]
    with gg.GradientTape() as tape:
        tape.watch(tensors)
        result = flat(function(G, *tensors))
    for values in (result, flat(function(G, *tensors))):  # the latter by SciPy itself
        for a, b in zip(values, expected, strict=True):
            np.testing.assert_allclose(a.numpy(), b, rtol=1e-9)
            assert a.shape == np.shape(b) or name == "boxcox_llf"
    check_grads(lambda *xs: flat(function(G, *xs)), args, order=1, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("name", ["rankdata", "spearmanr", "kendalltau", "kstest", "somersd"])
def test_functions_without_a_derivative_pass_through_and_raise_under_a_tape(name):
    args = ([P, "norm"] if name == "kstest" else [P, Q])[: 1 if name == "rankdata" else 2]
    tensors = [gg.asarray(x) if isinstance(x, np.ndarray) else x for x in args]
    result, expected = (getattr(m, name)(*a) for m, a in ((G, tensors), (S, args)))
    np.testing.assert_allclose(
        getattr(result, "statistic", result), getattr(expected, "statistic", expected)
    )
    with gg.GradientTape() as tape:
        tape.watch(tensors[0])
        with pytest.raises(DTypeError):
            getattr(G, name)(*tensors)


@pytest.mark.filterwarnings("ignore::RuntimeWarning")  # of SciPy
@pytest.mark.parametrize(("name", "shapes"), [
    ("kappa4", (0.0, 0.0)), ("kappa4", (0.0, 0.5)), ("kappa4", (1.0, 0.0)),
    ("genextreme", (0.0,)), ("genpareto", (0.0,)), ("skewnorm", (0.0,)), ("zipfian", (1.0, 15.0)),
])  # fmt: skip
def test_shapes_at_which_scipy_changes_its_formula_have_gradients(name, shapes):
    """There a limit's formula, chosen by a mask, would have the gradient 0."""
    theirs, law = getattr(S, name), getattr(gg.scipy.stats, name)
    at = theirs.ppf(0.6, *shapes)
    calls = [("pmf" if name == "zipfian" else "logpdf", at), ("cdf", at), ("sf", at)]
    for method, x in calls if name == "zipfian" else [*calls, ("ppf", 0.3), ("logsf", at)]:
        for k in range(len(shapes) - (name == "zipfian")):

            def value(h, f, x=x, method=method, k=k):
                return getattr(f, method)(x, *shapes[:k], shapes[k] + h, *shapes[k + 1 :])

            slope = gg.grad(lambda h, value=value: value(h, law))(gg.constant(np.float64(0.0)))
            expected = (value(1e-5, theirs) - value(-1e-5, theirs)) / 2e-5
            if expected == expected:  # SciPy's quantile is NaN near h = k = 0
                np.testing.assert_allclose(slope.item(), expected, rtol=1e-5, atol=1e-6)


GAMMAS = np.random.default_rng(0).gamma(3.0, size=12)
SEARCHED = {
    "boxcox_normmax": lambda f, x: f.boxcox_normmax(x, method="mle"),
    "yeojohnson_normmax": lambda f, x: f.yeojohnson_normmax(x),
    "expectile": lambda f, x: f.expectile(x, 0.3),
    "expectile, weighted": lambda f, x: f.expectile(x, 0.3, weights=x),
    "siegelslopes": lambda f, x: f.siegelslopes(x**2, x),
    "siegelslopes, separate": lambda f, x: f.siegelslopes(x**2, x, "separate"),
    "poisson_binom": lambda f, x: [
        getattr(f.poisson_binom, m)(np.arange(3), x[:3] / 9) for m in ("pmf", "cdf")
    ],
    "nchypergeom_fisher": lambda f, x: f.nchypergeom_fisher.pmf(np.arange(1, 4), 20, 7, 6, x[0]),
    "kstwobign": lambda f, x: [getattr(f.kstwobign, m)(x / 4) for m in ("pdf", "cdf", "sf")],
}  # fmt: skip


@pytest.mark.parametrize("name", SEARCHED)
def test_results_that_scipy_searches_or_compiles_have_gradients(name):
    def function(x, home=gg.scipy.stats):
        found = SEARCHED[name](home, x)
        return [*found] if isinstance(found, (list, tuple)) else [found]

    expected = function(GAMMAS, S)
    x, direction = gg.asarray(GAMMAS), np.random.default_rng(1).normal(size=12)
    for k, y in enumerate(function(x)):
        np.testing.assert_allclose(y.numpy(), expected[k], rtol=1e-10, atol=1e-14)
        slope = gg.jvp(lambda x, k=k: function(x)[k], (x,), (gg.asarray(direction),))[1].numpy()
        h = 1e-4 * direction
        differences = (function(GAMMAS + h, S)[k] - function(GAMMAS - h, S)[k]) / 2e-4
        np.testing.assert_allclose(slope, differences, rtol=1e-3, atol=1e-5)


@pytest.mark.parametrize("name", ["cosine", "geninvgauss", "vonmises"])
def test_a_distribution_function_of_known_shapes_has_the_derivatives_of_its_density(name):
    law, args = getattr(G, name), LAWS[name]
    x = gg.asarray(getattr(S, name).ppf([0.2, 0.6], *args))
    slope = lambda f: lambda x: gg.sum(gg.grad(f)(x))  # noqa: E731
    cdf, pdf = (lambda x, f=f: gg.sum(f(x, *args)) for f in (law.cdf, law.pdf))
    np.testing.assert_allclose(gg.grad(gg.function(cdf))(x), law.pdf(x, *args), rtol=1e-12)
    for _ in range(3):
        np.testing.assert_allclose(slope(cdf)(x), pdf(x), rtol=1e-9)
        cdf, pdf = slope(cdf), slope(pdf)


@pytest.mark.parametrize(
    ("name", "method", "n", "shapes"),
    [
        ("nct", "pdf", 5000, [14.0, 0.24]),
        ("ncf", "logpdf", 5000, [27.0, 27.0, 0.4]),
        ("rice", "cdf", 5000, [0.7749725210111873]),
        ("irwinhall", "cdf", 300, [10.0]),
        ("studentized_range", "sf", 17, [3.0, 10.0]),
        pytest.param("studentized_range", "logcdf", 17, [3.0, 10.0], marks=pytest.mark.slow),
    ],
)
def test_many_points_take_the_memory_of_few(name, method, n, shapes):
    """Integrals and sums over 100 and more numbers for a point are computed in pieces."""
    law = getattr(gg.scipy.stats, name)
    x = np.linspace(0.5, 3, n)
    points = [gg.asarray(p) for p in (x, *map(np.array, shapes))]

    def gradients(at):
        with gg.GradientTape() as tape:
            given = [gg.asarray(at), *points[1:]]
            tape.watch(given)
            value = gg.sum(getattr(law, method)(*given))
        return tape.gradient(value, given, unconnected_gradients="zero")

    tracemalloc.start()
    whole = gradients(x)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert peak < 80 << 20
    few = [gradients(part) for part in np.array_split(x, 4)]
    np.testing.assert_allclose(whole[0], np.concatenate([g[0] for g in few]), rtol=1e-9)
    for k in range(1, len(whole)):
        np.testing.assert_allclose(whole[k], sum(g[k] for g in few), rtol=1e-8)


def test_pieces_are_differentiated_by_what_a_tape_follows():
    """The order of a Bessel function has no derivative, and nobody asks for one."""
    x, p, a, b = map(gg.asarray, (np.linspace(-1, 2, 5000), *map(np.array, (0.5, 1.5, -0.5))))

    def total(x, b):
        return gg.sum(gg.scipy.stats.genhyperbolic.cdf(x, p, a, b))

    few = [gg.grad(total, 1)(gg.asarray(part), b) for part in np.array_split(x.numpy(), 3)]
    np.testing.assert_allclose(gg.grad(total, 1)(x, b), sum(few), rtol=1e-8)


@pytest.mark.parametrize("name", ["boxcox", "yeojohnson"])
def test_a_power_transform_finds_its_own_parameter_under_a_tape(name):
    x = np.random.default_rng(0).gamma(2.0, size=30)
    theirs, ours = getattr(S, name), getattr(gg.scipy.stats, name)
    with gg.GradientTape(persistent=True) as tape:
        tape.watch(t := gg.asarray(x))
        y, lmbda = ours(t)
        total = gg.sum(y)
    for value, expected in zip((y, lmbda), theirs(x), strict=True):
        np.testing.assert_allclose(value, expected, 1e-6)
    for value, of in ((total, lambda x: theirs(x)[0].sum()), (lmbda, lambda x: theirs(x)[1])):
        steps = 1e-3 * np.eye(30)[:3]  # the search is exact to 1e-8
        slopes = [(of(x + s) - of(x - s)) / 2e-3 for s in steps]
        np.testing.assert_allclose(tape.gradient(value, t)[:3], slopes, 2e-4, 2e-4)
