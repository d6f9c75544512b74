"""Numeric conventions: what the gradient is at kinks, ties, zeros and infinities.

One row a case: the point, and the gradient of the sum of the result. Rows follow TensorFlow
2.21; those marked FINITE are where TensorFlow prints NaN, infinity or a wrong number, and a
finite subgradient exists (or the exact derivative does).
"""

import numpy as np
import pytest

import gpugrad as gg

inf, nan = np.inf, np.nan
FINITE = "finite on purpose"


# name: (function, arguments, gradients by each argument; None is no gradient[, FINITE])
ROWS = {
    # ---- absolute value, sign, rounding
    "abs at 0": (gg.abs, [0.0], [0.0]),
    "abs at -0": (gg.abs, [-0.0], [0.0]),
    "abs at nan": (gg.abs, [nan], [nan]),
    "sign": (gg.sign, [[-1.0, 0.0, 1.0]], [[0.0, 0.0, 0.0]]),
    "floor": (gg.floor, [[0.5, 1.0]], [None]),
    "ceil": (gg.ceil, [[0.5, 1.0]], [None]),
    "round": (gg.round, [[0.5, 1.0]], [None]),
    "trunc": (gg.trunc, [[0.5, 1.0]], [None]),
    "x - floor(x)": (lambda x: x - gg.floor(x), [[0.5, 1.0]], [[1.0, 1.0]]),
    "argmax": (gg.argmax, [[0.5, 1.0]], [None]),
    "x < 1 as float": (lambda x: gg.astype(x < 1, gg.float64), [0.5], [None]),
    "cast through int": (lambda x: gg.astype(gg.astype(x, gg.int32), gg.float64), [1.5], [None]),
    "ones_like": (gg.ones_like, [[2.0]], [None]),
    "zeros_like + x": (lambda x: gg.zeros_like(x) + x, [[2.0]], [[1.0]]),
    "any as float": (lambda x: gg.astype(gg.any(x > 0), gg.float64), [[2.0]], [None]),
    "one_hot(argmax) * x": (
        lambda x: gg.one_hot(gg.argmax(x), 2) * x, [[1.0, 3.0]], [[0.0, 1.0]]),
    # ---- roots and powers
    "sqrt at 0": (gg.sqrt, [0.0], [inf]),
    "sqrt at -1": (gg.sqrt, [-1.0], [nan]),
    "rsqrt at 0": (gg.rsqrt, [0.0], [-inf]),
    "square at 0": (gg.square, [0.0], [0.0]),
    "x**0 at 0": (lambda x: x**0, [0.0], [0.0], FINITE),
    "x**0. at 0": (lambda x: x**0.0, [[0.0, 2.0]], [[0.0, 0.0]], FINITE),
    "x**1 at 0": (lambda x: x**1, [0.0], [1.0]),
    "x**2 at 0": (lambda x: x**2, [0.0], [0.0]),
    "x**3 at 0": (lambda x: x**3, [0.0], [0.0]),
    "x**-1 at 0": (lambda x: x**-1, [0.0], [-inf]),
    "x**0.5 at 0": (lambda x: x**0.5, [0.0], [inf]),
    "x**1.5 at 0": (lambda x: x**1.5, [0.0], [0.0]),
    "x**2 at -2": (lambda x: x**2, [-2.0], [-4.0]),
    "x**3. at -2": (lambda x: x**3.0, [-2.0], [12.0]),
    "x**0.5 at -2": (lambda x: x**0.5, [-2.0], [nan]),
    "pow(0, 0)": (gg.power, [0.0, 0.0], [0.0, 0.0], FINITE),
    "pow(0, 1)": (gg.power, [0.0, 1.0], [1.0, 0.0]),
    "pow(0, 2)": (gg.power, [0.0, 2.0], [0.0, 0.0]),
    "pow(0, 0.5)": (gg.power, [0.0, 0.5], [inf, 0.0]),
    "pow(0, -1)": (gg.power, [0.0, -1.0], [-inf, 0.0], FINITE),
    "pow(-2, 2)": (gg.power, [-2.0, 2.0], [-4.0, 0.0]),
    "pow(-2, 3)": (gg.power, [-2.0, 3.0], [12.0, 0.0]),
    "pow(-2, 0.5)": (gg.power, [-2.0, 0.5], [nan, 0.0], FINITE),
    "pow(2, 0)": (gg.power, [2.0, 0.0], [0.0, np.log(2.0)]),
    "2**y": (lambda y: 2**y, [3.0], [8 * np.log(2.0)]),
    "0**y": (lambda y: 0**y, [2.0], [0.0]),
    "0**y at 0": (lambda y: 0**y, [0.0], [0.0]),
    "(-2)**y": (lambda y: (-2) ** y, [2.0], [0.0]),
    # ---- maxima and minima
    "max, tie of two": (gg.max, [[1.0, 2.0, 2.0]], [[0.0, 0.5, 0.5]]),
    "max, tie of four": (gg.max, [[2.0] * 4], [[0.25] * 4]),
    "min, tie": (gg.min, [[1.0, 1.0, 2.0]], [[0.5, 0.5, 0.0]]),
    "max with nan": (gg.max, [[1.0, nan, 2.0]], [[nan, nan, nan]]),
    "max of -inf": (gg.max, [[-inf, -inf]], [[0.5, 0.5]]),
    "max of inf": (gg.max, [[inf, inf, 1.0]], [[0.5, 0.5, 0.0]]),
    "max along an axis": (
        lambda x: gg.max(x, axis=1), [[[1.0, 1.0], [0.0, 3.0]]], [[[0.5, 0.5], [0.0, 1.0]]]),
    "max keepdims": (lambda x: gg.max(x, axis=1, keepdims=True), [[[2.0, 2.0]]], [[[0.5, 0.5]]]),
    "maximum, tie": (gg.maximum, [2.0, 2.0], [1.0, 0.0]),
    "minimum, tie": (gg.minimum, [2.0, 2.0], [1.0, 0.0]),
    "maximum(nan, 1)": (gg.maximum, [nan, 1.0], [0.0, 1.0]),
    "maximum(1, nan)": (gg.maximum, [1.0, nan], [0.0, 1.0]),
    "maximum(x, 0) at 0": (lambda x: gg.maximum(x, 0.0), [0.0], [1.0]),
    "maximum(0, x) at 0": (lambda x: gg.maximum(0.0, x), [0.0], [0.0]),
    "minimum(x, 0) at 0": (lambda x: gg.minimum(x, 0.0), [0.0], [1.0]),
    "clip at its bounds": (
        lambda x: gg.clip(x, -1.0, 1.0), [[-2.0, -1.0, 0.0, 1.0, 2.0]],
        [[0.0, 1.0, 1.0, 1.0, 0.0]]),
    "min(max(x))": (
        lambda x: gg.minimum(gg.maximum(x, -1.0), 1.0),
        [[-2.0, -1.0, 0.0, 1.0, 2.0]], [[0.0, 1.0, 1.0, 1.0, 0.0]]),
    "clip, gradients of the bounds": (
        gg.clip, [[-2.0, 0.0, 2.0], -1.0, 1.0], [[0.0, 1.0, 0.0], 1.0, 1.0]),
    "clip at its lower bound": (gg.clip, [-1.0, -1.0, 1.0], [1.0, 0.0, 0.0]),
    "sort, tie": (
        lambda x: gg.sort(x) * gg.constant([1.0, 10.0, 100.0]), [[2.0, 2.0, 1.0]],
        [[10.0, 100.0, 1.0]]),
    "top_k of one, tie": (lambda x: gg.top_k(x, k=1)[0], [[2.0, 2.0, 1.0]], [[1.0, 0.0, 0.0]]),
    "top_k of two, tie": (
        lambda x: gg.top_k(x, k=2)[0] * gg.constant([1.0, 10.0]), [[2.0] * 3], [[1.0, 10.0, 0.0]]),
    # ---- activations
    "relu": (gg.relu, [[-1.0, 0.0, -0.0, 1.0, nan]], [[0.0, 0.0, 0.0, 1.0, 0.0]]),
    "relu6": (gg.relu6, [[0.0, 3.0, 6.0, 7.0]], [[0.0, 1.0, 0.0, 0.0]]),
    "leaky_relu at 0": (lambda x: gg.leaky_relu(x, negative_slope=0.2), [0.0], [0.2]),
    "elu at 0": (gg.elu, [0.0], [1.0]),
    "selu at 0": (gg.selu, [0.0], [1.0507009873554805]),
    "gelu at 0": (gg.gelu, [0.0], [0.5]),
    "softplus": (gg.softplus, [[0.0, 100.0, -100.0]], [[0.5, 1.0, 3.720075976020836e-44]]),
    "softsign at 0": (gg.softsign, [0.0], [1.0]),
    "silu at 0": (gg.silu, [0.0], [0.5]),
    "log_sigmoid at -200": (gg.log_sigmoid, [-200.0], [1.0]),
    "tanh at 100": (gg.tanh, [100.0], [0.0]),
    # ---- norms
    "norm of 0": (gg.vector_norm, [[0.0, 0.0]], [[0.0, 0.0]], FINITE),
    "norm of (3, 4)": (gg.vector_norm, [[3.0, 4.0]], [[0.6, 0.8]]),
    "1-norm": (lambda x: gg.vector_norm(x, ord=1), [[0.0, -2.0, 1.0]], [[0.0, -1.0, 1.0]]),
    "inf-norm, tie": (
        lambda x: gg.vector_norm(x, ord=inf), [[2.0, -2.0, 1.0]], [[0.5, -0.5, 0.0]]),
    "hypot of 0": (gg.hypot, [0.0, 0.0], [0.0, 0.0], FINITE),
    "std of equal numbers": (gg.std, [[1.0, 1.0]], [[0.0, 0.0]], FINITE),
    "var": (gg.var, [[1.0, 3.0]], [[-1.0, 1.0]]),
    "mean of nothing": (gg.mean, [[]], [[]]),
    # ---- quotients
    "1/x at 0": (lambda x: 1 / x, [0.0], [-inf]),
    "1/0": (gg.divide, [1.0, 0.0], [inf, -inf]),
    "reciprocal at 0": (gg.reciprocal, [0.0], [-inf]),
    "x*y at (inf, 0)": (gg.multiply, [inf, 0.0], [0.0, inf]),
    "x % y": (gg.remainder, [7.0, 2.0], [1.0, -3.0]),
    "x % y of a negative": (gg.remainder, [-7.0, 2.0], [1.0, 4.0]),
    "x % y at a multiple": (gg.remainder, [4.0, 2.0], [1.0, -2.0]),
    "x % y by a negative": (gg.remainder, [5.5, -2.0], [1.0, 3.0]),
    "x // y": (gg.floor_divide, [7.0, 2.0], [None, None]),
    # ---- a masked branch never poisons a gradient
    "where log": (lambda x: gg.where(x > 0, gg.log(x), 0.0), [[0.0, 2.0]], [[0.0, 0.5]], FINITE),
    "where log of -1": (lambda x: gg.where(x > 0, gg.log(x), 0.0), [-1.0], [0.0], FINITE),
    "where sqrt": (lambda x: gg.where(x > 0, gg.sqrt(x), 0.0), [[0.0, 4.0]], [[0.0, 0.25]]),
    "where 1/x": (lambda x: gg.where(x > 0, 1 / x, 0.0), [[0.0, 2.0]], [[0.0, -0.25]], FINITE),
    "where reciprocal": (lambda x: gg.where(x > 0, gg.reciprocal(x), 0.0), [0.0], [0.0]),
    "where x/y": (lambda x, y: gg.where(y > 0, x / y, 0.0), [1.0, 0.0], [0.0, 0.0], FINITE),
    "where x**0.5 at 0": (lambda x: gg.where(x > 0, x**0.5, 0.0), [0.0], [0.0], FINITE),
    "where x**0.5 at -1": (lambda x: gg.where(x > 0, x**0.5, 0.0), [-1.0], [0.0], FINITE),
    "where x**-1": (lambda x: gg.where(x > 0, x**-1.0, 0.0), [0.0], [0.0], FINITE),
    "where norm": (
        lambda x: gg.where(gg.sum(x) > 0, gg.sqrt(gg.sum(x * x)), 0.0), [[0.0, 0.0]], [[0.0, 0.0]]),
    "where acos": (lambda x: gg.where(x < 1, gg.acos(x), 0.0), [1.0], [0.0], FINITE),
    "where asin": (lambda x: gg.where(x < 1, gg.asin(x), 0.0), [1.0], [0.0], FINITE),
    "where log1p": (lambda x: gg.where(x > -1, gg.log1p(x), 0.0), [-1.0], [0.0], FINITE),
    "where atanh": (lambda x: gg.where(x < 1, gg.atanh(x), 0.0), [1.0], [0.0], FINITE),
    "where sin(x)/x": (lambda x: gg.where(x != 0, gg.sin(x) / x, 1.0), [0.0], [0.0], FINITE),
    "where within where": (
        lambda x: gg.where(x > 0, gg.log(gg.where(x > 0, x, 1.0)), 0.0), [0.0], [0.0]),
    "where, both branches": (
        lambda x, y: gg.where(gg.constant([True, False]), x, y), [[1.0, 2.0], [3.0, 4.0]],
        [[1.0, 0.0], [0.0, 1.0]]),
    "where, a broadcast number": (
        lambda x, y: gg.where(gg.constant([True, False]), x, y), [[1.0, 2.0], 3.0],
        [[1.0, 0.0], 1.0]),
    "huber by where": (
        lambda x: gg.where(gg.abs(x) < 1, 0.5 * x * x, gg.abs(x) - 0.5), [[0.0, 1.0, -1.0]],
        [[0.0, 1.0, -1.0]]),
    # ---- products and sums
    "prod with a zero": (gg.prod, [[0.0, 2.0, 3.0]], [[6.0, 0.0, 0.0]]),
    "prod with two zeros": (gg.prod, [[0.0, 0.0, 3.0]], [[0.0, 0.0, 0.0]]),
    "cumulative_prod": (gg.cumulative_prod, [[2.0, 4.0, 3.0]], [[17.0, 8.0, 8.0]]),
    "cumulative_prod with a zero": (
        gg.cumulative_prod, [[2.0, 0.0, 3.0]], [[1.0, 8.0, 0.0]], FINITE),
    "cumulative_prod with two zeros": (
        gg.cumulative_prod, [[0.0, 0.0, 3.0]], [[1.0, 0.0, 0.0]], FINITE),
    # ---- logarithms and exponentials
    "log at 0": (gg.log, [0.0], [inf]),
    "log1p at -1": (gg.log1p, [-1.0], [inf]),
    "exp at 1000": (gg.exp, [1000.0], [inf]),
    "logsumexp(-inf, 0)": (gg.logsumexp, [[-inf, 0.0]], [[0.0, 1.0]]),
    "logsumexp(1000, 1000)": (gg.logsumexp, [[1000.0, 1000.0]], [[0.5, 0.5]]),
    "logaddexp(1000, 1000)": (gg.logaddexp, [1000.0, 1000.0], [0.5, 0.5]),
    "log_softmax of -inf": (lambda x: gg.log_softmax(x)[0], [[0.0, -inf]], [[0.0, 0.0]]),
    "softmax of a large one": (lambda x: gg.softmax(x)[0], [[1000.0, 0.0]], [[0.0, 0.0]]),
    # ---- angles
    "atan2(0, 0)": (gg.atan2, [0.0, 0.0], [0.0, 0.0], FINITE),
    "acos at 1": (gg.acos, [1.0], [-inf]),
    "asin at 1": (gg.asin, [1.0], [inf]),
    "acosh at 1": (gg.acosh, [1.0], [inf]),
    "atanh at 1": (gg.atanh, [1.0], [inf]),
    "sinh at 0": (gg.sinh, [0.0], [1.0]),
    "erf at 0": (gg.erf, [0.0], [2 / np.sqrt(np.pi)]),
    # ---- matrices
    "det of a singular matrix": (
        gg.det, [[[1.0, 2.0], [2.0, 4.0]]], [[[4.0, -2.0], [-2.0, 1.0]]], FINITE),
    "det of zeros": (gg.det, [[[0.0, 0.0], [0.0, 0.0]]], [[[0.0, 0.0], [0.0, 0.0]]], FINITE),
    "slogdet of a negative one": (
        lambda x: gg.slogdet(x)[1], [[[1.0, 2.0], [3.0, 4.0]]], [[[-2.0, 1.5], [1.0, -0.5]]]),
    "cholesky": (
        gg.cholesky, [[[4.0, 2.0], [2.0, 3.0]]],
        [[[0.21338834764831846, 0.07322330470336313], [0.07322330470336313, 0.3535533905932738]]]),
    "trace": (gg.trace, [[[1.0, 2.0], [3.0, 4.0]]], [[[1.0, 0.0], [0.0, 1.0]]]),
    "inv": (gg.inv, [[[2.0, 1.0], [1.0, 3.0]]], [[[-0.16, -0.08], [-0.08, -0.04]]]),
    "squared_difference": (gg.squared_difference, [3.0, 1.0], [4.0, -4.0]),
}  # fmt: skip


def gradients_at(f, arguments):
    xs = [gg.constant(a, gg.float64) for a in arguments]
    with gg.GradientTape() as tape, np.errstate(all="ignore"):
        tape.watch(xs)
        y = f(*xs)
    return tape.gradient(y, xs)


@pytest.mark.parametrize("name", ROWS)
def test_gradient_convention(name):
    f, arguments, expected, *_ = ROWS[name]
    for found, number in zip(gradients_at(f, arguments), expected, strict=True):
        if number is None:
            assert found is None
        else:
            assert found is not None
            np.testing.assert_allclose(found.numpy(), number, rtol=1e-9, atol=1e-12)


@pytest.mark.parametrize("name", [n for n, row in ROWS.items() if row[2] != [None] * len(row[2])])
def test_gradient_convention_holds_while_an_outer_tape_records(name):
    """The same formulas on Tensors: the first derivative must not depend on who looks on."""
    f, arguments, expected, *_ = ROWS[name]
    xs = [gg.constant(a, gg.float64) for a in arguments]
    with gg.GradientTape() as outer, np.errstate(all="ignore"):
        outer.watch(xs)
        with gg.GradientTape() as inner:
            inner.watch(xs)
            y = f(*xs)
        for found, number in zip(inner.gradient(y, xs), expected, strict=True):
            if number is not None:
                np.testing.assert_allclose(found.numpy(), number, rtol=1e-9, atol=1e-12)


SECOND = {
    "where log": (lambda x: gg.where(x > 0, gg.log(x), 0.0), 0.0, 0.0),
    "where sqrt": (lambda x: gg.where(x > 0, gg.sqrt(x), 0.0), 0.0, 0.0),
    "where 1/x": (lambda x: gg.where(x > 0, 1 / x, 0.0), 0.0, 0.0),
    "where x**0.5": (lambda x: gg.where(x > 0, x**0.5, 0.0), 0.0, 0.0),
    "x**2 at 0": (lambda x: x**2, 0.0, 2.0),
    "x**1 at 0": (lambda x: x**1, 0.0, 0.0),
    "x**3 at 0": (lambda x: x**3, 0.0, 0.0),
    "prod with a zero": (lambda x: gg.prod(gg.stack([x, x, x + 1.0])), 0.0, 2.0),
    "relu": (lambda x: gg.relu(x) ** 2, 0.0, 0.0),
}  # fmt: skip


@pytest.mark.parametrize("name", SECOND)
def test_second_derivative_stays_finite(name):
    f, at, expected = SECOND[name]
    x = gg.constant(at, gg.float64)
    with gg.GradientTape() as outer, np.errstate(all="ignore"):
        outer.watch(x)
        with gg.GradientTape() as inner:
            inner.watch(x)
            y = f(x)
        g = inner.gradient(y, x)
        h = outer.gradient(g, x, unconnected_gradients="zero")
    assert h.item() == expected


def _finite(row):
    return all(g is not None and np.size(g) and np.all(np.isfinite(g)) for g in row[2])


@pytest.mark.parametrize("name", [n for n, row in ROWS.items() if _finite(row)])
def test_forward_mode_follows_the_same_convention(name):
    """The sum of J @ 1 is the sum of the gradients."""
    f, arguments, expected, *_ = ROWS[name]
    xs = [gg.constant(a, gg.float64) for a in arguments]
    tangents = [gg.ones_like(x) for x in xs]
    with np.errstate(all="ignore"), gg.ForwardAccumulator(xs, tangents) as acc:
        y = f(*xs)
    total = sum(np.sum(g) for g in expected)
    np.testing.assert_allclose(np.sum(acc.jvp(y).numpy()), total, rtol=1e-9, atol=1e-12)
