"""Random numbers in C: every bit as NumPy computes it, in any number of threads."""

import collections
import functools

import numpy as np
import pytest
from needs import needs_compiler

import gpugrad as gg
from gpugrad.core.backend import NUMPY
from gpugrad.kernels.cpu import random
from gpugrad.ops.random import philox
from gpugrad.ops.random.kinds import KINDS

pytestmark = needs_compiler

PLACES = [((0, 0), 0), ((1, 2), 3), ((2**64 - 1, 2**63), 2**63 + 700), ((5, 6), 9 + (3 << 128))]
FORMULAS = {
    "uniform": philox.uniform,
    **{
        name: functools.partial(philox.in_chunks, getattr(philox, name))
        for name in ("normal", "exponential", "laplace", "gumbel", "logistic")
    },
}


@pytest.mark.parametrize("kind", FORMULAS)
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("n", [random.LEAST, 50_001, 300_007])
def test_noise_has_the_bits_of_the_formula(kind, dtype, n, threads):
    for key, first in PLACES:
        actual = random.noise(kind, key, first, n, np.dtype(dtype))
        desired = FORMULAS[kind](key, first, n, dtype)
        assert actual.dtype == desired.dtype
        bits = np.dtype(f"u{actual.itemsize}")
        assert np.array_equal(actual.view(bits), desired.view(bits))


@pytest.mark.parametrize("n", [random.LEAST, pytest.param(1 << 22, marks=pytest.mark.slow)])
def test_words_are_sorted(n):
    words = philox.words((3, 4), 5, 2 * n).reshape(2, n)
    words[1, : n // 2] |= np.uint64(0x7FF << 53)  # most have their highest bits in common
    words &= ~np.uint64(n - 1)
    words |= np.arange(n, dtype=np.uint64)
    desired = np.sort(words)
    assert random.sort_words(words)
    assert np.array_equal(words, desired)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_extreme_words_have_the_bits_of_the_formula(dtype):
    """Ten million numbers reach the far tails."""
    n = 10_000_000 if dtype == np.float32 else 3_000_000
    actual = random.noise("normal", (7, 8), 1, n, np.dtype(dtype))
    desired = philox.in_chunks(philox.normal, (7, 8), 1, n, dtype)
    assert np.array_equal(actual, desired)
    assert np.max(np.abs(actual)) > 4.9


@pytest.mark.parametrize(
    ("kind", "n", "dtype"),
    [
        ("normal", random.LEAST - 1, np.float32),
        ("normal", 10**6, np.float16),
        ("integers", 10**6, np.int64),
        ("keep", 10**6, np.float32),
    ],
)
def test_other_noise_is_left_to_numpy(kind, n, dtype, monkeypatch):
    monkeypatch.setattr(random, "_calls", collections.Counter())
    assert random.noise(kind, (1, 2), 3, n, np.dtype(dtype)) is NotImplemented


def test_small_draws_that_are_many_have_the_bits_of_the_formula(monkeypatch):
    monkeypatch.setattr(random, "_calls", collections.Counter())
    for kind, dtype in (("normal", np.float32), ("uniform", np.float64)):
        draws = [random.noise(kind, (1, 2), 3, 100, np.dtype(dtype)) for _ in range(20)]
        assert [d is NotImplemented for d in draws] == [k < random.OFTEN for k in range(20)]
        np.testing.assert_array_equal(draws[-1], FORMULAS[kind]((1, 2), 3, 100, dtype))
    for low, high, dtype in ((0, 10, np.int64), (-(2**63), 2**63 - 1, np.int64), (3, 9, np.uint8)):
        draws = [KINDS["integers"][1]((1, 2), 3, 100, dtype, low, high) for _ in range(20)]
        np.testing.assert_array_equal(draws[-1], draws[0])
        assert draws[-1].dtype == draws[0].dtype


def formula_of(name):
    return functools.partial(gg.OPS[name].forward, NUMPY)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("p", [0, 0.1, 0.5, 0.999])
@pytest.mark.parametrize("shape", [(128, 65), (70_001,)])
def test_dropout_has_the_bits_of_the_formula(dtype, p, shape, threads):
    x = np.random.default_rng(0).normal(size=shape).astype(dtype)
    x.flat[:3] = np.inf, np.nan, -0.0
    for key, first in PLACES:
        params = {"key": key, "first": first, "p": p}
        desired = formula_of("stream_dropout")(x, **params)
        actual = random.stream_dropout(NUMPY, x, **params)
        assert actual.dtype == desired.dtype
        assert np.array_equal(actual, desired, equal_nan=True)
        strided = random.stream_dropout(NUMPY, np.asfortranarray(x), **params)
        assert np.array_equal(strided, desired, equal_nan=True)


@pytest.mark.parametrize("p", [0, 0.1, 1 / 3, 1])
def test_masks_have_the_bits_of_the_formula(p, threads):
    for (k0, k1), first in PLACES:
        stream = np.array([k0, k1, first & (2**64 - 1), first >> 128], np.uint64)
        actual = random.stream_mask(NUMPY, stream, shape=(77, 131), p=p)
        desired = formula_of("stream_mask")(stream, shape=(77, 131), p=p)
        assert actual.dtype == bool
        assert np.array_equal(actual, desired)


def test_the_streams_of_users_run_through_the_kernel(monkeypatch):
    drawn, plain = [], random._draw

    def draw(kind, *args, **keywords):
        drawn.append(kind)
        return plain(kind, *args, **keywords)

    monkeypatch.setattr(random, "_draw", draw)
    g = gg.random.Generator(0)
    g.normal((100, 100))
    gg.OPS["stream_mask"].eager(np.array([1, 2, 3, 0], np.uint64), shape=(100, 100), p=0.5)

    @gg.function
    def step(x):
        return gg.nn.dropout(x, 0.5, generator=g)

    for _ in range(3):
        step(gg.ones((100, 100)))
    assert drawn == ["normal", "keep", *["uniform"] * 3]  # the trace, on shapes, draws nothing
