"""gpugrad.numpy.random beside NumPy: the same calls; numbers with the same distributions."""

import numpy as np
import pytest
import scipy.stats as st

import gpugrad as gg
import gpugrad.numpy as gnp

A = np.array([[1.5], [2.5]])
B = np.array([3.0, 4.0, 5.0])
ARGUMENTS = {
    "beta": (A, B), "binomial": (9, 0.3), "chisquare": (B,), "dirichlet": (B,),
    "exponential": (B,), "f": (B, 9.0), "gamma": (A, B), "geometric": (1 / B,), "gumbel": (A, B),
    "hypergeometric": (9, [4, 5, 6], 7), "laplace": (A, B), "logistic": (A, 2), "lognormal": (1.0,),
    "logseries": (1 / B,), "multinomial": (9, [0.2, 0.3, 0.5]), "negative_binomial": (B, 0.4),
    "multivariate_normal": ([1.0, 2.0], [[2.0, 1.0], [1.0, 3.0]]), "power": (B,),
    "multivariate_hypergeometric": ([3, 4, 5], 6), "noncentral_chisquare": (A, B), "normal": (A, B),
    "noncentral_f": (B, 9.0, 2.0), "pareto": (B,), "poisson": (B,), "random": (),
    "random_sample": (), "rayleigh": (B,), "standard_cauchy": (), "standard_exponential": (),
    "standard_gamma": (B,), "standard_normal": (), "standard_t": (B,), "tomaxint": (),
    "triangular": (0.5, A, 4.5), "uniform": (A, B), "vonmises": (A, B), "wald": (A, B),
    "weibull": (B,), "zipf": (B,), "choice": ([5, 7, 9], ), "randint": (2, [5, 9]),
    "integers": ([2, 3], 9), "random_integers": (3, 8), "permutation": (9,), "rand": (2, 3),
    "randn": (4, 3), "bytes": (5,), "permuted": (B,), "shuffle": (np.zeros(0),), "seed": (3,),
}  # fmt: skip
NOT_SIZED = ("permutation", "rand", "randn", "bytes", "permuted", "shuffle", "seed")
KINDS = [(gnp.random.RandomState, np.random.RandomState), (gnp.random.Generator, None)]
CALLS = [
    (kind, name)
    for kind in ("RandomState", "Generator")
    for name in ARGUMENTS
    if hasattr(getattr(np.random, kind), name)
]


def both(kind, name, seed=0):
    numpys = np.random.default_rng(seed) if kind == "Generator" else np.random.RandomState(seed)
    return getattr(getattr(gnp.random, kind)(seed), name), getattr(numpys, name)


@pytest.mark.filterwarnings("ignore::DeprecationWarning")
@pytest.mark.parametrize(("kind", "name"), CALLS)
def test_shape_dtype_and_distribution_are_numpys(kind, name):
    ours, numpys = both(kind, name)
    given = ARGUMENTS[name]
    integers = name in ("randint", "integers")
    sizes = [None, (4, 3, 2) if integers else (4, 2, 3)] if name not in NOT_SIZED else [()]
    for size in [{}, *({"size": s} for s in sizes if s)]:
        actual, expected = ours(*given, **size), numpys(*given, **size)
        if isinstance(expected, bytes) or expected is None:
            assert np.size(actual) == np.size(expected)
            continue
        assert (actual.shape, actual.dtype) == (np.shape(expected), np.asarray(expected).dtype)
    if name not in NOT_SIZED:
        shape = (4000, 2, 2 if integers else 3)
        x, y = ours(*given, size=shape).numpy(), numpys(*given, size=shape)
        for i in range(shape[-1]):
            a, b = x[:, 1, i].ravel(), y[:, 1, i].ravel()
            assert st.ks_2samp(a, b, method="asymp").pvalue > 1e-4
    parameters = [gnp.asarray(x) if isinstance(x, (list, np.ndarray)) else x for x in given]
    if name not in ("shuffle", "seed", "bytes"):
        again = both(kind, name)[0](*parameters)
        assert np.array_equal(again.numpy(), both(kind, name)[0](*given).numpy())


def test_every_name_of_numpy_and_of_the_streams_is_there():
    missing = {n for n in np.random.__all__ if not hasattr(gnp.random, n)}
    assert missing == set()
    assert {"rand", "Generator", "ranf", "XORWOW"} <= set(dir(gnp.random))


@pytest.mark.parametrize(
    ("kind", "name", "given", "keywords"),
    [
        ("RandomState", "randint", (100, 1), {}), ("Generator", "integers", (3, 1), {}),
        ("RandomState", "randint", (300,), {"dtype": "i1"}),
        ("RandomState", "randint", (3,), {"dtype": "f4"}), ("RandomState", "rand", (-1,), {}),
        ("RandomState", "choice", ([[1, 2]],), {}), ("RandomState", "choice", (3, 5, False), {}),
        ("RandomState", "choice", (3,), {"p": [0.5, 0.5]}), ("RandomState", "seed", (1.5,), {}),
        ("RandomState", "permutation", (np.array(1.0),), {}), ("RandomState", "seed", (-1,), {}),
        ("RandomState", "shuffle", (np.array(1.0),), {}), ("RandomState", "normal", (0, -1), {}),
        ("RandomState", "normal", ([1, 2], 1, 3), {}), ("RandomState", "zipf", (1.0,), {}),
        ("RandomState", "multinomial", (3, [0.5, 0.6, 0.1]), {}),
        ("RandomState", "hypergeometric", (3, 4, 8), {}), ("RandomState", "logseries", (1.0,), {}),
        ("RandomState", "hypergeometric", (3, 4, 0), {}), ("Generator", "poisson", (None,), {}),
        ("RandomState", "multivariate_normal", ([0, 0], [[1, 2, 3]]), {}),
        ("RandomState", "triangular", (1, 0, 2), {}), ("Generator", "choice", (3.5,), {}),
        ("Generator", "multivariate_normal", ([0, 0], [[1, 2], [2, 1]]), {"check_valid": "raise"}),
        ("Generator", "multivariate_normal", ([0, 0], [[1, 2], [2, 1]]), {"method": "qr"}),
        ("Generator", "multivariate_hypergeometric", ([3, 4], 8), {}),
        ("Generator", "standard_normal", (3, "i4"), {}),
    ],
)  # fmt: skip
def test_what_numpy_refuses_is_refused_with_its_class(kind, name, given, keywords):
    ours, numpys = both(kind, name)
    with pytest.raises(Exception) as theirs:  # noqa: PT011
        numpys(*given, **keywords)
    with pytest.raises(theirs.type):
        ours(*given, **keywords)


def test_out_is_written_and_checked():
    g, x = gnp.random.default_rng(3), gnp.zeros((2, 3))
    assert g.standard_normal(out=x) is x
    np.testing.assert_array_equal(x, gnp.random.default_rng(3).standard_normal((2, 3)))
    for out, error in (
        (gnp.zeros((2, 3), "f4"), TypeError), (gnp.zeros(4), ValueError),
        (gnp.zeros((2, 3), order="F"), ValueError), (np.zeros((2, 3)), TypeError),
    ):  # fmt: skip
        with pytest.raises(error):
            g.standard_gamma(2.0, (2, 3), out=out)


def test_seeds_states_and_spawned_generators():
    r, seed = gnp.random, np.random.SeedSequence(5)
    state = r.RandomState(5)
    same = (r.default_rng(5), r.Generator(seed), r.Generator(r.PCG64(5)), r.default_rng(state))
    first = [g.random(3).tolist() for g in (*same, r.RandomState(gnp.array([5])))]
    assert all(x == first[0] for x in first)
    assert r.default_rng([1, 2]).random() != r.default_rng([2, 1]).random()
    r.seed(7)
    state, x = r.get_state(), r.rand(3).tolist()
    gg.set_seed(7)
    assert r.random(3).tolist() == x
    r.set_state(state)
    assert r.ranf(3).tolist() == x
    g = r.default_rng(1)
    a, b = g.spawn(2)
    assert a.random() != b.random()
    assert r.default_rng(g) is g
    bits = r.Philox(3)
    assert bits.random_raw(2).dtype == "uint64"
    bits.state = r.Philox(4).state
    assert bits.random_raw() == r.Philox(4).random_raw()


def test_numbers_are_the_same_on_both_devices(cuda):
    for name in ("normal", "hypergeometric", "choice", "permutation", "multinomial"):
        here, there = (
            both("Generator", name)[0](*ARGUMENTS[name], device=d) for d in ("cpu", cuda)
        )
        assert str(there.device) == cuda
        np.testing.assert_allclose(there.numpy(), here.numpy(), rtol=1e-12)


def test_samples_are_differentiable_and_traced():
    def f(loc, scale):
        return gg.sum(gnp.random.normal(loc, scale, (2, 3)) * gnp.random.standard_gamma(scale))

    loc, scale = gnp.ones(3), gnp.full(3, 2.0)
    gnp.random.seed(1)
    eager = gg.grad(f, (0, 1))(loc, scale)
    fast = gg.function(gg.grad(f, (0, 1)))
    gnp.random.seed(1)
    for a, b in zip(eager, fast(loc, scale), strict=True):
        np.testing.assert_allclose(a.numpy(), b.numpy(), rtol=1e-6)
    assert not np.array_equal(fast(loc, scale)[1], eager[1])


def test_shuffle_is_a_recorded_write():
    x, weights = gnp.arange(6.0).reshape(3, 2), gnp.arange(6.0).reshape(3, 2)

    def f(x):
        y = x * 1
        gnp.random.default_rng(4).shuffle(y)
        return gg.sum(y * weights)

    order = gnp.random.default_rng(4).permutation(3).numpy()
    np.testing.assert_array_equal(gg.grad(f)(x).numpy()[order], weights.numpy())
    for kept in (list(range(5)), np.arange(5), gnp.arange(5)):
        gnp.random.shuffle(kept)
        assert sorted(np.asarray(kept).tolist()) == [0, 1, 2, 3, 4]
    g = gnp.random.default_rng(0)
    rows = g.permuted(gnp.tile(gnp.arange(50), (4, 1)), axis=1).numpy()
    assert np.array_equal(np.sort(rows, 1), np.tile(np.arange(50), (4, 1)))
    assert len({tuple(r) for r in rows}) == 4
    assert g.choice([[1, 2, 3], [4, 5, 6]], 2, replace=False, axis=1).shape == (2, 2)


def test_covariance_may_be_singular():
    cov = [[1.0, 1.0], [1.0, 1.0]]
    x = gnp.random.default_rng(0).multivariate_normal([0.0, 1.0], cov, 2000).numpy()
    np.testing.assert_allclose(x[:, 0] + 1, x[:, 1], atol=1e-6)
    assert st.kstest(x[:, 0], "norm").pvalue > 1e-3
