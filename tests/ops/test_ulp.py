"""Digits of smooth ops and of their first two derivatives, near 0 and in their tails.

The expected values are mpmath's. An op that is neither in `EXACT` nor in `ELSEWHERE` fails a test.
"""

import mpmath as mp
import numpy as np
import pytest
from mpmath import exp, expm1, log, log1p, mpf, sqrt, tanh

import gpugrad as gg
from gpugrad import special

SIZES = [1e-30, 1e-20, 1e-8, 1e-4, 1e-2, 1.0, 5.0, 20.0, 80.0, 300.0, 1e3, 1e6, 1e10]
POINTS = [*SIZES, *(-s for s in SIZES)]
EVERYWHERE, POSITIVE, INSIDE = (-np.inf, np.inf), (0, np.inf), (-0.99, 0.99)
BY_RESULT = (-2, 2)  # the slopes of tanh and sigmoid are 1 - y * y and y * (1 - y)
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
    "erf": (mp.erf, EVERYWHERE),
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
    "log_cosh": (lambda x: log(mp.cosh(x)), BY_RESULT),
    "log_sigmoid": (lambda x: -softplus(-x), EVERYWHERE),
    "logaddexp": (softplus, BY_RESULT),
    "mish": (lambda x: x * tanh(softplus(x)), EVERYWHERE),
    "ndtr": (normal, EVERYWHERE),
    "quick_gelu": (lambda x: x * sigmoid(mpf(1.702) * x), (-81, np.inf)),
    "reciprocal": (lambda x: 1 / x, EVERYWHERE),
    "rsqrt": (lambda x: 1 / sqrt(x), POSITIVE),
    "selu": (lambda x: SCALE * (x if x > 0 else ALPHA * expm1(x)), EVERYWHERE),
    "shi": (mp.shi, SMALL),
    "sigmoid": (sigmoid, (0.1, 2)),  # the second derivative is s * (1 - s) * (1 - 2 * s)
    "silu": (lambda x: x * sigmoid(x), EVERYWHERE),
    "sin": (mp.sin, EVERYWHERE),
    "sinh": (mp.sinh, EVERYWHERE),
    "softplus": (softplus, EVERYWHERE),
    "softsign": (lambda x: x / (1 + abs(x)), EVERYWHERE),
    "sqrt": (sqrt, POSITIVE),
    "square": (lambda x: x * x, EVERYWHERE),
    "tan": (mp.tan, EVERYWHERE),
    "tanh": (tanh, BY_RESULT),
    "tanhshrink": (lambda x: x - tanh(x), BY_RESULT),
}
CALLS = {
    "gelu_tanh": lambda x: gg.gelu(x, approximate="tanh"),
    "logaddexp": lambda x: gg.logaddexp(x, 0.0),
    "shi": lambda x: special.shichi(x)[0],
}

LIBRARY = "a difference of the library's functions, which cancels far out"
GAMMA = "SciPy's function, with poles"
ELSEWHERE = {
    "i0e": LIBRARY, "i1e": LIBRARY, "k0": LIBRARY, "k1": LIBRARY, "k0e": LIBRARY, "k1e": LIBRARY,
    "y0": LIBRARY, "y1": LIBRARY, "erfcx": LIBRARY, "dawsn": LIBRARY, "log_ndtr": LIBRARY,
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


def expected_values(f, x):
    """f(x), f'(x), f''(x) and f'''(x), the last for the condition number of the one before."""
    with mp.workdps(DIGITS):
        x = mpf(float(x))
        return [f(x), *(mp.diff(f, x, n, h=abs(x) * STEP) for n in (1, 2, 3))]


def actual_values(call, x):
    with gg.GradientTape() as second:
        second.watch(x)
        with gg.GradientTape() as first:
            first.watch(x)
            y = call(x)
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
        expected = expected_values(function, at)
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
