"""Functions of vectors: their distance from the exact value, in units in the last place."""

import ctypes

import mpmath
import numpy as np
import pytest
from needs import needs_compiler

from gpugrad.kernels.codegen import cpp
from gpugrad.kernels.cpu import compiler

pytestmark = needs_compiler

LIMIT = 4
TYPES = {np.float32: "float", np.float64: "double"}

EXACT = {
    **{name: getattr(mpmath, name) for name in (
        "exp", "expm1", "log", "log10", "log1p", "sin", "cos", "tan", "asin", "acos", "atan",
        "sinh", "cosh", "tanh", "asinh", "acosh", "atanh", "erf", "erfc", "sqrt",
    )},
    "exp2": lambda x: mpmath.mpf(2) ** x,
    "exp10": lambda x: mpmath.mpf(10) ** x,
    "log2": lambda x: mpmath.log(x, 2),
    "cbrt": lambda x: mpmath.sign(x) * mpmath.cbrt(abs(x)),
    "expit": lambda x: 1 / (1 + mpmath.exp(-x)),
    "log_expit": lambda x: -mpmath.log1p(mpmath.exp(-x)),
    "logit": lambda x: mpmath.log(x / (1 - x)),
    "normcdf": mpmath.ncdf,
    "entr": lambda x: -x * mpmath.log(x),
}  # fmt: skip

POSITIVE = {"log", "log2", "log10", "sqrt", "entr"}
UP_TO_ONE = {"asin", "acos", "atanh"}
WORST = {  # intervals where the error was largest, of all float32 numbers
    "erf": (0.95, 1.05), "log": (0.7, 1.4), "tan": (4.6, 4.8), "exp": (-16, 17),
    "tanh": (0.6, 0.8), "expit": (-15, -1), "normcdf": (-10, -1), "logit": (0.2, 0.8),
}  # fmt: skip


def arguments(name, dtype, n=64):
    """Arguments of all sizes, more of them where the error is largest."""
    rng = np.random.default_rng(0)
    x = [rng.normal(size=n), rng.uniform(-10, 10, n), rng.uniform(-85, 85, n)]
    x += [10 ** rng.uniform(-30, 4, n) * rng.choice([-1, 1], n), 1 + rng.normal(size=n) / 100]
    if name in UP_TO_ONE:
        x = [rng.uniform(-1, 1, 3 * n), 10 ** rng.uniform(-30, 0, n)]
    if name == "logit":
        x = [rng.uniform(0.001, 0.999, 2 * n), 0.5 + rng.normal(size=n) / 1000]
    x = np.concatenate([*x, rng.uniform(*WORST.get(name, (0.3, 0.9)), 2 * n)])
    x = abs(x) if name in POSITIVE else x
    x = {"log1p": x[x > -1], "acosh": 1 + abs(x)}.get(name, x).astype(dtype)
    return x[: len(x) // 16 * 16]


@pytest.fixture(scope="module")
def library():
    """Each function of one argument, for both dtypes and both numbers of lanes."""
    text = [cpp.prelude()]
    for name in sorted(EXACT.keys() & cpp.functions()):
        for t in TYPES.values():
            for lanes in (4, 8) if t == "float" else (8,):
                text.append(
                    f'extern "C" void {name}_{t}_{lanes}(const {t}* x, {t}* y, long n) {{'
                    f"constexpr int N = LANES<{lanes}>; for (long j = 0; j < n; j += N)"
                    f"store<N>(y + j, {name}(load<N, N>(x + j))); }}"
                )
    return compiler.load("\n".join(text), what="functions of vectors")


def call(library, name, x, lanes=None):
    y, t = np.empty_like(x), TYPES[x.dtype.type]
    function = getattr(library, f"{name}_{t}_{lanes or x.itemsize}")
    pointers = (ctypes.c_void_p(a.ctypes.data) for a in (x, y))
    function(*pointers, ctypes.c_long(len(x)))
    return y


@pytest.mark.parametrize("dtype", TYPES)
@pytest.mark.parametrize("name", sorted(EXACT.keys() & cpp.functions()))
def test_functions_are_near_the_exact_value(name, dtype, library):
    x = arguments(name, dtype)
    y = call(library, name, x)
    with mpmath.workprec(140), np.errstate(over="ignore", under="ignore"):
        for at, result in zip(x, y, strict=True):
            exact = EXACT[name](mpmath.mpf(float(at)))
            rounded = dtype(float(exact))
            if not np.isfinite(rounded):
                assert result == rounded, at
                continue
            unit = mpmath.mpf(float(np.spacing(abs(rounded))))
            assert abs(mpmath.mpf(float(result)) - exact) <= LIMIT * unit, (name, at, result)


SPECIAL = [np.nan, np.inf, -np.inf, -0.0, 0.0, 1e-40, -1e-40, 3e38, -3e38, 1.0, -1.0, 2.0, -2.0]
NUMPYS = ["exp", "log", "tanh", "expm1", "log1p", "sin", "cos", "tan", "sqrt", "sinh", "cosh"]


@pytest.mark.parametrize("dtype", TYPES)
@pytest.mark.parametrize("name", [n for n in NUMPYS if n in cpp.functions()])
def test_special_values_are_those_of_numpy(name, dtype, library):
    x = np.resize(np.array(SPECIAL, dtype), 16)
    with np.errstate(all="ignore"):
        expected = getattr(np, name)(x)
    result = call(library, name, x)
    np.testing.assert_allclose(result, expected, rtol=1e-6)
    zeros = expected == 0
    np.testing.assert_array_equal(np.signbit(result[zeros]), np.signbit(expected[zeros]))


def test_erf_of_special_values(library):
    x = np.resize(np.array(SPECIAL, np.float32), 16)
    y = call(library, "erf", x)
    np.testing.assert_array_equal(y[:5], [np.nan, 1, -1, 0, 0])
    assert np.signbit(y[3])
    assert not np.signbit(y[4])


@pytest.mark.parametrize("name", ["exp", "log", "tanh", "erf", "expit"])
def test_a_float_does_not_depend_on_the_number_of_lanes(name, library):
    x = arguments(name, np.float32)
    np.testing.assert_array_equal(call(library, name, x, 4), call(library, name, x, 8))


def test_functions_compile_without_libmvec():
    text = "#define LIBMVEC 0\n#include <vector.h>\n".replace("<vector.h>", '"vector.h"')
    text += """
    extern "C" void f(const float* x, float* y) {
      constexpr int N = LANES<4>;
      const V<float, N> v = load<N, N>(x);
      store<N>(y, exp(v) + log(v) + tanh(v) + erf(v) + expit(v));
    }"""
    x, y = np.linspace(0.1, 3, 16, dtype=np.float32), np.zeros(16, np.float32)
    compiler.load(text, what="a test").f(*(ctypes.c_void_p(a.ctypes.data) for a in (x, y)))
    lanes = np.count_nonzero(y)
    erf = np.vectorize(lambda v: float(mpmath.erf(float(v))))
    expected = np.exp(x) + np.log(x) + np.tanh(x) + erf(x) + 1 / (1 + np.exp(-x))
    assert lanes >= 4
    np.testing.assert_allclose(y[:lanes], expected[:lanes], rtol=1e-6)
