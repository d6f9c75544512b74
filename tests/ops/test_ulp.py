"""Digits of smooth ops and of their first two derivatives, near 0 and in their tails.

The expected values are mpmath's. An op that is neither in `EXACT` nor in `ELSEWHERE` fails a test.
"""

import functools

import ml_dtypes
import mpmath as mp
import numpy as np
import pytest
from mpmath import exp, expm1, log, log1p, mpf, sqrt, tanh
from taping import taped

import gpugrad as gg
from gpugrad import special
from gpugrad.function.cpu import c_program
from gpugrad.function.cpu.blocks import SMALLEST
from gpugrad.kernels.cpu.large import FEW
from gpugrad.ops._blocks import BLOCK
from gpugrad.ops.math import transcendental

SIZES = [
    1e-30, 1e-20, 1e-8, 1e-4, 1e-2, 1.0, 2.5, 3.0, 5.0, 9.0, 20.0, 40.0, 80.0, 300.0, 1e3, 1e6,
    1e10,
]  # fmt: skip
POINTS = [*SIZES, *(-s for s in SIZES)]
EVERYWHERE, POSITIVE, INSIDE = (-np.inf, np.inf), (0, np.inf), (-0.99, 0.99)
SMALL = (-301, 301)  # mpmath takes minutes beyond
DIGITS, STEP = 250, mpf(10) ** -30  # of mpmath's numbers, and of its differences
SCALE, ALPHA = mpf(1.0507009873554805), mpf(1.6732632423543772)


def sigmoid(x):
    return 1 / (1 + exp(-x))


def softplus(x):
    return log1p(exp(x))


def normal(x):
    return mp.erfc(-x / sqrt(2)) / 2


def gelu_tanh(x):
    return x * sigmoid(2 * sqrt(2 / mp.pi) * (x + mpf(0.044715) * x**3))


def elu(x):
    return x if x > 0 else expm1(x)


# name: (function of an mpmath number, domain)
EXACT = {
    "acosh": (mp.acosh, (1.001, np.inf)),
    "acos": (mp.acos, INSIDE),
    "asin": (mp.asin, INSIDE),
    "asinh": (mp.asinh, EVERYWHERE),
    "atan": (mp.atan, EVERYWHERE),
    "atanh": (mp.atanh, INSIDE),
    "cbrt": (mp.cbrt, POSITIVE),
    "celu": (elu, EVERYWHERE),
    "cos": (mp.cos, EVERYWHERE),
    "cosh": (mp.cosh, EVERYWHERE),
    "cosm1": (lambda x: -2 * mp.sin(x / 2) ** 2, EVERYWHERE),
    "elu": (elu, EVERYWHERE),
    "cosdg": (lambda x: mp.cos(x * mp.pi / 180), (-81, 81)),
    "sindg": (lambda x: mp.sin(x * mp.pi / 180), (-81, 81)),
    "wrightomega": (lambda x: mp.lambertw(exp(x)).real, (-10, 301)),
    "erf": (mp.erf, EVERYWHERE),
    "erfi": (mp.erfi, (-6, 6)),
    "erfc": (mp.erfc, EVERYWHERE),
    "exp": (exp, EVERYWHERE),
    "exp10": (lambda x: mpf(10) ** x, EVERYWHERE),
    "exp2": (lambda x: mpf(2) ** x, EVERYWHERE),
    "expm1": (expm1, EVERYWHERE),
    "exprel": (lambda x: expm1(x) / x, EVERYWHERE),
    "gelu": (lambda x: x * normal(x), EVERYWHERE),
    "gelu_tanh": (gelu_tanh, EVERYWHERE),
    "i0": (lambda x: mp.besseli(0, x), SMALL),
    "i1": (lambda x: mp.besseli(1, x), SMALL),
    "j0": (lambda x: mp.besselj(0, x), (-90, 90)),
    "j1": (lambda x: mp.besselj(1, x), (-90, 90)),
    "log": (log, POSITIVE),
    "log10": (mp.log10, POSITIVE),
    "log1p": (log1p, (-0.99, np.inf)),
    "log2": (lambda x: mp.log(x, 2), POSITIVE),
    "log_cosh": (lambda x: log(mp.cosh(x)), EVERYWHERE),
    "log_sigmoid": (lambda x: -softplus(-x), EVERYWHERE),
    "logaddexp": (softplus, EVERYWHERE),
    "mish": (lambda x: x * tanh(softplus(x)), EVERYWHERE),
    "ndtr": (normal, EVERYWHERE),
    "quick_gelu": (lambda x: x * sigmoid(mpf(1.702) * x), (-81, np.inf)),
    "reciprocal": (lambda x: 1 / x, EVERYWHERE),
    "rsqrt": (lambda x: 1 / sqrt(x), POSITIVE),
    "selu": (lambda x: SCALE * (x if x > 0 else ALPHA * expm1(x)), EVERYWHERE),
    "shi": (mp.shi, SMALL),
    "sigmoid": (sigmoid, EVERYWHERE),
    "silu": (lambda x: x * sigmoid(x), EVERYWHERE),
    "sigmoid_cross_entropy": (lambda x: softplus(-x), EVERYWHERE),
    "sin": (mp.sin, EVERYWHERE),
    "sinh": (mp.sinh, EVERYWHERE),
    "softplus": (softplus, EVERYWHERE),
    "softsign": (lambda x: x / (1 + abs(x)), EVERYWHERE),
    "sqrt": (sqrt, POSITIVE),
    "square": (lambda x: x * x, EVERYWHERE),
    "tan": (mp.tan, EVERYWHERE),
    "tanh": (tanh, EVERYWHERE),
    "tanhshrink": (lambda x: x - tanh(x), EVERYWHERE),
}
CALLS = {
    "gelu_tanh": lambda x: gg.gelu(x, approximate="tanh"),
    "logaddexp": lambda x: gg.logaddexp(x, 0.0),
    "sigmoid_cross_entropy": lambda x: gg.sigmoid_cross_entropy(x, 1.0),
    "shi": lambda x: special.shichi(x)[0],
}

LIBRARY = "a difference of the library's functions, which cancels far out"
BY_FORMULAS = "its derivatives are tested against their formulas, in FAR_OUT"
GAMMA = "SciPy's function, with poles"
ELSEWHERE = {
    "i0e": BY_FORMULAS, "i1e": BY_FORMULAS, "k0e": BY_FORMULAS, "k1e": BY_FORMULAS,
    "erfcx": BY_FORMULAS, "dawsn": BY_FORMULAS, "log_ndtr": BY_FORMULAS,
    "k0": LIBRARY, "k1": LIBRARY, "y0": LIBRARY, "y1": LIBRARY,
    "tandg": "poles", "cotdg": "poles", "wofz": "complex", "ndtri_exp": "singular at 0",
    "zetac": "without derivatives", **dict.fromkeys(("ber", "bei", "ker", "kei"), LIBRARY),
    **dict.fromkeys(("berp", "beip", "kerp", "keip"), LIBRARY),
    **dict.fromkeys(("itstruve0", "it2struve0", "itmodstruve0"), LIBRARY),
    **dict.fromkeys(("kolmogorov", "kolmogi"), LIBRARY),
    "sinc": "sin(pi x) of large x", "gamma": GAMMA, "gammaln": GAMMA, "loggamma": GAMMA,
    "rgamma": GAMMA, "digamma": GAMMA, "trigamma": GAMMA,
    "ellipk": "singular at 1", "ellipkm1": "singular at 0", "ellipe": "singular at 1",
    "elliptic_d": "singular at 0", "exp1": "singular at 0", "expi": "singular at 0",
    "spence": "singular at 0", "erfinv": "singular at 1", "erfcinv": "singular at 0",
    "ndtri": "singular at 0", "logit": "singular at 0", "entr": "singular at 0",
    "abs": "a kink", "fabs": "a kink", "sign": "a kink", "relu": "a kink", "relu6": "a kink",
    "squared_relu": "a kink", "hardsigmoid": "a kink", "hardswish": "a kink",
    "hardshrink": "a kink", "softshrink": "a kink", "hardtanh": "a kink", "leaky_relu": "a kink",
    "unit_huber": "a kink", "negative": "linear", "positive": "linear", "deg2rad": "linear",
    "rad2deg": "linear", "real": "linear", "imag": "linear", "conj": "linear", "astype": "linear",
}  # fmt: skip
SLOPES = {name for name in gg.OPS if name.endswith("_slope")}  # first derivatives of the others


def test_every_smooth_op_of_one_number_has_its_digits_tested_or_a_reason():
    ops = {n for n, op in gg.OPS.items() if op.by_element and op.differentiable}
    ops = {n for n in ops if len(gg.OPS[n].arrays) == 1}
    assert ops - SLOPES <= {*EXACT} | {*ELSEWHERE}


@functools.cache  # most points are numbers of both dtypes
def expected_values(f, x):
    """f(x), f'(x), f''(x) and f'''(x), the last for the condition number of the one before."""
    with mp.workdps(DIGITS):
        x, h = mpf(x), abs(mpf(x)) * STEP
        a, b, y, c, d = (f(x + k * h) for k in (-2, -1, 0, 1, 2))
        return [y, (c - b) / (2 * h), (c - 2 * y + b) / h**2, (d - 2 * c + 2 * b - a) / (2 * h**3)]


def actual_values(call, x):
    with gg.GradientTape() as second:
        second.watch(x)
        first, y = taped(call, x)
        g = first.gradient(y, x)
    h = second.gradient(g, x)
    return [y.numpy(), g.numpy(), np.zeros(x.shape) if h is None else h.numpy()]


def bound(expected, order, x):
    """64 ulp, more where the result depends on x that much; None where differences lack digits."""
    value, slope = expected[order], expected[order + 1]
    noise = mpf(10) ** (20 - DIGITS) * abs(expected[0]) / (abs(mpf(float(x))) * STEP) ** order
    if not mp.isfinite(value) or abs(value) <= noise:
        return None
    return 64 + 4 * min(abs(mpf(float(x)) * slope / value), mpf(10) ** 15)


@pytest.mark.filterwarnings("ignore::RuntimeWarning")
@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize("name", EXACT)
def test_value_and_two_derivatives_have_the_digits_of_mpmath(name, dtype):
    function, (low, high) = EXACT[name]
    x = np.array([p for p in POINTS if low < p < high], dtype)
    call = CALLS.get(name) or gg.OPS[name].eager
    limits, wrong = np.finfo(dtype), []
    for at, *actual in zip(x, *actual_values(call, gg.constant(x)), strict=True):
        expected = expected_values(function, float(at))
        for order, value in enumerate(actual):
            size, ulps = abs(expected[order]), bound(expected, order, at)
            if ulps is None or size > limits.max * 0.99:
                continue
            if size < 4 * limits.tiny:
                error = 0 if abs(value) < 8 * limits.tiny else mp.inf
            else:
                error = abs(mpf(float(value)) - expected[order]) / size / limits.eps
            if not error <= ulps:
                true = mp.nstr(expected[order], 9)
                wrong.append(f"derivative {order} at {at}: {value}, not {true}")
    assert not wrong, f"{name}: " + "; ".join(wrong)


def scaled_i(order):
    def values(x):
        a, b = (mp.besseli(n, x) * exp(-x) for n in (0, 1))
        slopes = b - a, a - b - b / x
        second = slopes[1] - slopes[0], slopes[0] - slopes[1] - slopes[1] / x + b / x**2
        return (a, b)[order], slopes[order], second[order]

    return values


def scaled_k(order):
    def values(x):
        a, b = (mp.besselk(n, x) * exp(x) for n in (0, 1))
        slopes = a - b, b - a - b / x
        second = slopes[0] - slopes[1], slopes[1] - slopes[0] - slopes[1] / x + b / x**2
        return (a, b)[order], slopes[order], second[order]

    return values


def erfcx(x):
    y = mp.erfc(x) * exp(x * x)
    slope = 2 * x * y - 2 / sqrt(mp.pi)
    return y, slope, 2 * y + 2 * x * slope


def dawsn(x):
    y = exp(-x * x) * mp.erfi(x) * sqrt(mp.pi) / 2
    slope = 1 - 2 * x * y
    return y, slope, -2 * y - 2 * x * slope


def log_ndtr(x):
    with mp.workdps(500):  # 1 - 1e-300 is not 1
        slope = exp(-x * x / 2) / sqrt(2 * mp.pi) / normal(x)
        return log(normal(x)), slope, -slope * (x + slope)


FAR_OUT = {  # name: (function giving the value and two derivatives, up to where it is tested)
    "i0e": (scaled_i(0), 1e5), "i1e": (scaled_i(1), 1e5),
    "k0e": (scaled_k(0), 1e5), "k1e": (scaled_k(1), 1e5),
    "erfcx": (erfcx, 1e4), "dawsn": (dawsn, 50.0), "log_ndtr": (log_ndtr, 12.5),
}  # fmt: skip
ULPS = 1024, 256, 1 << 14  # of the value, which is SciPy's, and of two derivatives


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize("name", FAR_OUT)
@pytest.mark.thin(2)
def test_derivatives_far_out_have_their_digits(name, dtype):
    """Where they are small differences of the function and others, or their squares overflow."""
    function, end = FAR_OUT[name]
    x = np.append(np.geomspace(0.1, end, 25), [4.9, 5.1, 9.9, 10.1, 29.9, 30.1]).astype(dtype)
    x = x[x <= end]
    x = np.append(x, -x[x < 5] if name == "erfcx" else [] if name[0] == "k" else -x).astype(dtype)
    wrong = []
    for at, *actual in zip(x, *actual_values(gg.OPS[name].eager, gg.constant(x)), strict=True):
        with mp.workdps(60):
            size = mpf(abs(float(at)))
            odd = -1 if at < 0 else 1  # i0e is even, and i1e and dawsn are odd
            signs = {"i0e": (1, odd, 1), "i1e": (odd, 1, odd), "dawsn": (odd, 1, odd)}.get(name)
            true = function(size if signs else mpf(float(at)))
            true = [t * s for t, s in zip(true, signs or (1, 1, 1), strict=True)]
            for order, value in enumerate(actual):
                error = abs(mpf(float(value)) - true[order]) / abs(true[order])
                if not error <= ULPS[order] * np.finfo(dtype).eps:
                    wrong.append(f"derivative {order} at {at}: {value}")
    assert not wrong, f"{name}: " + "; ".join(wrong)


def forward_mode(f):
    return lambda x: gg.jvp(f, [x], [gg.ones_like(x)])[1]


def reverse_mode(f):
    return gg.grad(lambda x: gg.sum(f(x)))


def slopes_of_tanh(x):
    return mp.sech(x) ** 2, -2 * tanh(x) * mp.sech(x) ** 2


def slopes_of_sigmoid(x):
    return mp.sech(x / 2) ** 2 / 4, -tanh(x / 2) * mp.sech(x / 2) ** 2 / 4


SLOPES_OF = {"tanh": slopes_of_tanh, "sigmoid": slopes_of_sigmoid}
MODES = {"reverse": reverse_mode, "forward": forward_mode, "vmap": lambda f: gg.vmap(gg.grad(f))}


def wrong_slopes(name, order, x, result):
    """Elements of `result` that differ from mpmath's slopes of an array at `x`."""
    limits, wrong = np.finfo(x.dtype), []
    for at, value in zip(map(float, x), result.numpy(), strict=True):
        true = SLOPES_OF[name](mpf(at))[order - 1]
        error = abs(mpf(value.item()) - true) / abs(true) / limits.eps if true else 0
        if not error <= 64 + 8 * abs(at) and abs(true) > 4 * limits.tiny:
            wrong.append(f"{value} at {at}, not {mp.nstr(true, 9)}")
    return wrong


def tails(name, dtype):
    """Numbers up to where the slope of a function is no longer a normal number."""
    end = np.log(np.finfo(dtype).max) / (2 if name == "tanh" else 1)
    return np.linspace(-end, end, 40).astype(dtype)


@pytest.mark.parametrize("order", [1, 2])
@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("name", ["tanh", "sigmoid"])
def test_slopes_have_their_digits_in_the_tails_in_every_mode(name, mode, dtype, order):
    """Also where 1 - tanh(x)^2 and 1 - sigmoid(x) are 0: eager and in replays."""
    f, x = getattr(gg, name), tails(name, dtype)
    call = MODES[mode](f if order == 1 else gg.grad(f) if mode == "vmap" else reverse_mode(f))
    traced = gg.function(call)
    for run in (call, traced, traced):
        assert not wrong_slopes(name, order, x, run(gg.constant(x)))


@pytest.mark.parametrize(("kernels", "vectors"), [("0", True), ("0", False), ("always", True)])
@pytest.mark.parametrize("count", [FEW + 1, BLOCK + 1, SMALLEST])
@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize("name", ["tanh", "sigmoid"])
def test_slopes_of_many_elements_have_their_digits_in_the_tails(
    name, dtype, count, kernels, vectors, monkeypatch
):
    monkeypatch.setattr(c_program, "setting", lambda: kernels)
    monkeypatch.setattr(transcendental, "has_vectors", lambda ufunc: vectors)
    x = np.full(count, 0.5, dtype)
    x[-40:] = tails(name, dtype)  # the blocks before have none
    call = reverse_mode(getattr(gg, name))
    for run in (call, gg.function(call)):
        assert not wrong_slopes(name, 1, x[-41:], run(gg.constant(x))[-41:])


def test_slopes_of_many_elements_keep_shape_order_and_nan():
    x = np.linspace(-3, 3, 2 * BLOCK).reshape(2, -1)
    x[1, 5] = np.nan
    for array in (x, np.asfortranarray(x), x[:, ::2], x[:, :9], x[:, :0], x.T[: FEW + 1]):
        for f in (gg.tanh, gg.sigmoid):
            slope = reverse_mode(f)(gg.constant(array)).numpy()
            y = f(array).numpy()
            expected = 1 - y * y if f is gg.tanh else y * (1 - y)
            np.testing.assert_allclose(slope, expected, rtol=1e-12)


@pytest.mark.parametrize("half", ["float16", "bfloat16"])
@pytest.mark.parametrize("name", ["tanh", "sigmoid"])
def test_slopes_of_16_bit_floats_have_their_digits_in_the_tails(name, half):
    x = gg.constant(np.linspace(-9, 9, 37), dtype=half)
    slope = reverse_mode(getattr(gg, name))(x)
    exact = reverse_mode(getattr(gg, name))(gg.astype(x, "float64"))
    limits = ml_dtypes.finfo(slope.numpy().dtype)
    error = np.abs(slope.numpy().astype(np.float64) - exact.numpy())
    allowed = 32 * float(limits.eps) * exact.numpy() + float(limits.smallest_subnormal)
    assert (error <= allowed).all()
