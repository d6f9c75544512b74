"""Numeric conventions: what the gradient is at kinks, ties, zeros and infinities.

Each row is one case: the point, and the gradient of the sum of the result. Rows follow
TensorFlow 2.21, except those marked FINITE: there TensorFlow returns NaN, infinity or a wrong
number, although a finite subgradient (or the exact derivative) exists. `test_edges` covers the
ops that TensorFlow does not have.
"""

import numpy as np
import pytest
from taping import tape_gradient

import gpugrad as gg

inf, nan = np.inf, np.nan
FINITE = "finite on purpose"
special, linalg, nn = gg.special, gg.linalg, gg.nn
EYE = [[1.0, 0.0], [0.0, 1.0]]
Z = 1.0 + 2.0j


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
    "rint": (gg.rint, [[0.5, 1.0]], [None]),
    "trunc": (gg.trunc, [[0.5, 1.0]], [None]),
    "x - floor(x)": (lambda x: x - gg.floor(x), [[0.5, 1.0]], [[1.0, 1.0]]),
    "argmax": (gg.argmax, [[0.5, 1.0]], [None]),
    "x < 1 as float": (lambda x: gg.astype(x < 1, gg.float64), [0.5], [None]),
    "cast through int": (lambda x: gg.astype(gg.astype(x, gg.int32), gg.float64), [1.5], [None]),
    "ones_like": (gg.ones_like, [[2.0]], [None]),
    "zeros_like + x": (lambda x: gg.zeros_like(x) + x, [[2.0]], [[1.0]]),
    "nextafter": (gg.nextafter, [1.0, 2.0], [1.0, 0.0]),
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
    "pow(-2, 0.5)": (gg.power, [-2.0, 0.5], [nan, nan]),
    "-2 to the power of 0.5": (lambda y: gg.power(-2.0, y), [0.5], [nan]),
    "pow(nan, 0.5)": (gg.power, [nan, 0.5], [nan, nan]),
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
    "max of a part of sort": (
        lambda x: gg.max(gg.sort(x)[1:2]), [[3.0, 1.0, 2.0]], [[0.0, 0.0, 1.0]]),
    "max_pool, tie": (
        lambda x: nn.max_pool2d(x, (1, 2)), [[[[1.0, 1.0], [1.0, 1.0]]]],
        [[[[1.0, 0.0], [1.0, 0.0]]]]),
    "segment_max, tie": (
        lambda x: gg.segment_max(x, [0, 0, 1], 2), [[1.0, 1.0, 2.0]], [[0.5, 0.5, 1.0]]),
    "segment_min, tie": (
        lambda x: gg.segment_min(x, [0, 0, 1], 2), [[1.0, 1.0, 2.0]], [[0.5, 0.5, 1.0]]),
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
    "linalg.norm of 0": (linalg.norm, [[0.0, 0.0]], [[0.0, 0.0]], FINITE),
    "sqrt of a sum of squares at 0": (lambda x: gg.sqrt(gg.sum(x * x)), [[0.0, 0.0]], [[nan, nan]]),
    "normalize of 0": (  # divides by at least eps = 1e-12, TensorFlow by 1e-6
        lambda x: nn.normalize(x, axis=0), [[0.0, 0.0]], [[1e12, 1e12]]),
    "norm of (3, 4)": (gg.vector_norm, [[3.0, 4.0]], [[0.6, 0.8]]),
    "1-norm": (lambda x: gg.vector_norm(x, ord=1), [[0.0, -2.0, 1.0]], [[0.0, -1.0, 1.0]]),
    "inf-norm, tie": (
        lambda x: gg.vector_norm(x, ord=inf), [[2.0, -2.0, 1.0]], [[0.5, -0.5, 0.0]]),
    "hypot of 0": (gg.hypot, [0.0, 0.0], [0.0, 0.0], FINITE),
    "std of equal numbers": (gg.std, [[1.0, 1.0]], [[0.0, 0.0]], FINITE),
    "var": (gg.var, [[1.0, 3.0]], [[-1.0, 1.0]]),
    "mean of []": (gg.mean, [[]], [[]]),
    # ---- quotients
    "1/x at 0": (lambda x: 1 / x, [0.0], [-inf]),
    "1/0": (gg.divide, [1.0, 0.0], [inf, -inf]),
    "0/0": (gg.divide, [0.0, 0.0], [inf, nan]),
    "divide_no_nan(1, 0)": (special.divide_no_nan, [1.0, 0.0], [0.0, 0.0]),
    "divide_no_nan(1, 2)": (special.divide_no_nan, [1.0, 2.0], [0.5, -0.25]),
    "multiply_no_nan(inf, 0)": (special.multiply_no_nan, [inf, 0.0], [0.0, inf]),
    "xlogy(0, 0)": (special.xlogy, [0.0, 0.0], [0.0, 0.0]),
    "xlogy(0, 2)": (special.xlogy, [0.0, 2.0], [np.log(2.0), 0.0], FINITE),
    "xlogy(0, -1)": (special.xlogy, [0.0, -1.0], [0.0, 0.0]),
    "xlogy(2, 0)": (special.xlogy, [2.0, 0.0], [-inf, inf]),
    "xdivy(0, 0)": (special.xdivy, [0.0, 0.0], [0.0, 0.0]),
    "xdivy(0, 2)": (special.xdivy, [0.0, 2.0], [0.5, 0.0], FINITE),
    "xlog1py(0, -1)": (special.xlog1py, [0.0, -1.0], [0.0, 0.0]),
    "xlog1py(0, -2)": (special.xlog1py, [0.0, -2.0], [0.0, 0.0]),
    "xlog1py(0, 1)": (special.xlog1py, [0.0, 1.0], [np.log(2.0), 0.0], FINITE),
    "sin(x)/x at 0": (lambda x: gg.sin(x) / x, [0.0], [nan]),
    "reciprocal at 0": (gg.reciprocal, [0.0], [-inf]),
    "x*y at (inf, 0)": (gg.multiply, [inf, 0.0], [0.0, inf]),
    "x % y": (gg.remainder, [7.0, 2.0], [1.0, -3.0]),
    "x % y of a negative": (gg.remainder, [-7.0, 2.0], [1.0, 4.0]),
    "x % y at a multiple": (gg.remainder, [4.0, 2.0], [1.0, -2.0]),
    "x % y by a negative": (gg.remainder, [5.5, -2.0], [1.0, 3.0]),
    "x % y where x / y rounds up": (gg.remainder, [1.0, 0.1], [1.0, -9.0], FINITE),
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
    "logsumexp(-inf, -inf)": (gg.logsumexp, [[-inf, -inf]], [[nan, nan]]),
    "logsumexp(inf, 0)": (gg.logsumexp, [[inf, 0.0]], [[nan, 0.0]]),
    "cumulative_logsumexp": (gg.cumulative_logsumexp, [[0.0, 0.0]], [[1.5, 0.5]]),
    "log(sigmoid) at -1000": (lambda x: gg.log(gg.sigmoid(x)), [-1000.0], [nan]),
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
    # ---- special functions
    "erfinv at 1": (special.erfinv, [[1.0, -1.0]], [[inf, inf]]),
    "gammaln": (special.gammaln, [[0.0, -1.0]], [[-inf, nan]]),  # torch; TensorFlow: NaN at 0
    "digamma at its poles": (special.digamma, [[0.0, -1.0]], [[inf, inf]]),
    "gammainc(1, 1)": (special.gammainc, [1.0, 1.0], [-0.43172971063, 0.36787944117]),
    "betainc(2, 3, 0.5)": (  # TensorFlow: None by the parameters
        special.betainc, [2.0, 3.0, 0.5], [-0.19528868663, 0.15410849392, 1.5], FINITE),
    "polygamma(1, 2)": (lambda x: special.polygamma(1, x), [2.0], [-0.40411381]),
    "zeta(2, 3)": (lambda q: special.zeta(2.0, q), [3.0], [-0.15411381]),
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
    "eigvalsh of I": (lambda x: linalg.eigvalsh(x) * [1.0, 2.0], [EYE], [[[1.0, 0.0], [0.0, 2.0]]]),
    "eigh of I, values": (
        lambda x: linalg.eigh(x)[0] * [1.0, 2.0], [EYE], [[[1.0, 0.0], [0.0, 2.0]]]),
    "eigh of I, a vector": (lambda x: linalg.eigh(x)[1][:, 0], [EYE], [np.zeros((2, 2))]),
    "svdvals of I": (lambda x: linalg.svdvals(x) * [1.0, 2.0], [EYE], [[[1.0, 0.0], [0.0, 2.0]]]),
    "squared_difference": (gg.squared_difference, [3.0, 1.0], [4.0, -4.0]),
    # ---- complex numbers: the gradient is g * conj(derivative)
    "z * z": (lambda z: z * z, [Z], [2 - 4j]),
    "exp(z)": (gg.exp, [Z], [np.exp(1 - 2j)]),
    "conj(z)": (gg.conj, [Z], [1.0]),
    "real(z)": (gg.real, [Z], [1.0]),
    "imag(z)": (gg.imag, [Z], [1j]),
    "abs(z)": (gg.abs, [Z], [Z / abs(Z)]),
    "abs(z)**2": (lambda z: gg.abs(z) ** 2, [Z], [2 + 4j]),
    "abs(z) at 0": (gg.abs, [0j], [0.0]),
    "real(z * z)": (lambda z: gg.real(z * z), [Z], [2 - 4j]),
    "real(z * conj(z))": (lambda z: gg.real(z * gg.conj(z)), [Z], [2 + 4j]),
    "angle(z)": (gg.angle, [Z], [-0.4 + 0.2j]),
    "angle(z) at 0": (gg.angle, [0j], [0.0], FINITE),
    "1j * z": (lambda z: 1j * z, [Z], [-1j]),
    "sqrt(z)": (gg.sqrt, [Z], [np.conj(0.5 / np.sqrt(Z))]),
    "1 / z": (lambda z: 1 / z, [Z], [0.12 - 0.16j]),
    "log(z)": (gg.log, [Z], [0.2 + 0.4j]),
    "sin(z)": (gg.sin, [Z], [np.conj(np.cos(Z))]),
    "complex(a, b)**2": (lambda a, b: gg.complex(a, b) ** 2, [1.0, 2.0], [2.0, -4.0]),
    "real x, complex result": (lambda x: gg.astype(x, "complex128") * (3 + 4j), [2.0], [3.0]),
}  # fmt: skip


def constants(arguments):
    return [gg.constant(np.asarray(a)) for a in arguments]


def assert_gradients(actual, expected):
    for gradient, number in zip(actual, expected, strict=True):
        if number is None:
            assert gradient is None
        else:
            assert gradient is not None
            np.testing.assert_allclose(gradient.numpy(), number, rtol=1e-7, atol=1e-12)


def check_gradient(f, arguments, expected, *_):
    xs = constants(arguments)
    with gg.GradientTape() as tape, np.errstate(all="ignore"):
        tape.watch(xs)
        y = f(*xs)
    with np.errstate(all="ignore"):
        assert_gradients(tape.gradient(y, xs), expected)


def check_gradient_of_tensors(f, arguments, expected, *_):
    """The same formulas on Tensors: the first derivative must not depend on an outer tape."""
    xs = constants(arguments)
    with gg.GradientTape() as outer, np.errstate(all="ignore"):
        outer.watch(xs)
        assert_gradients(tape_gradient(lambda xs: f(*xs), xs), expected)


def check_forward_mode(f, arguments, expected, *_):
    """The sum of J @ 1 is the sum of the gradients, conjugate where the result is complex."""
    xs = constants(arguments)
    tangents = [gg.ones_like(x) for x in xs]
    with np.errstate(all="ignore"), gg.ForwardAccumulator(xs, tangents) as acc:
        y = f(*xs)
    with np.errstate(all="ignore"):
        actual = np.sum(acc.jvp(y).numpy())
    total = np.conj(sum(np.sum(g) for g in expected))
    if not all(np.iscomplexobj(v) for v in (actual, *(x.numpy() for x in xs))):
        actual, total = np.real(actual), np.real(total)
    np.testing.assert_allclose(actual, total, rtol=1e-7, atol=1e-12)


def connected(rows):
    return [name for name, row in rows.items() if any(g is not None for g in row[2])]


def finite(rows):
    return [
        name for name, (_, _, expected, *_) in rows.items()
        if all(g is not None and np.size(g) and np.all(np.isfinite(g)) for g in expected)
    ]  # fmt: skip


@pytest.mark.parametrize("name", ROWS)
def test_gradient_convention(name):
    check_gradient(*ROWS[name])


@pytest.mark.parametrize("name", connected(ROWS))
def test_gradient_convention_holds_while_an_outer_tape_records(name):
    check_gradient_of_tensors(*ROWS[name])


@pytest.mark.parametrize("name", finite(ROWS))
def test_forward_mode_follows_the_same_convention(name):
    check_forward_mode(*ROWS[name])


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
        g = tape_gradient(f, x)
        h = outer.gradient(g, x, unconnected_gradients="zero")
    assert h.item() == expected


@pytest.mark.parametrize("name", ["power", "xlogy", "float_power"])
@pytest.mark.parametrize("y", [2.0, -1.5, 0.5 + 1j, np.array(-1.5), np.array(2.0 - 0.3j)], ids=str)
@pytest.mark.parametrize("x", [2.0, -2.0, -0.5 + 1j, np.array(-2.0), np.array(1.5 + 1j)], ids=str)
def test_powers_of_numbers_real_and_complex_arrays_have_slopes_of_both_signs(x, y, name):
    if not {type(x), type(y)} & {np.ndarray}:
        return  # of numbers alone
    f, given = getattr(gg, name, None) or getattr(gg.special, name), [x, y]
    if not any(np.iscomplexobj(a) for a in given) and (x < 0 or (name == "xlogy" and y < 0)):
        return  # NaN
    for k in (k for k in (0, 1) if isinstance(given[k], np.ndarray)):
        z = gg.constant(given[k])
        direction = gg.constant(given[k] * 0 + (0.6 if z.dtype.kind == "f" else 0.6 - 0.8j))

        def at(z, k=k):
            return f(*(z if i == k else a for i, a in enumerate(given)))

        h = 1e-6
        slope = (at(z + h * direction) - at(z - h * direction)).item() / (2 * h)
        tangent = gg.jvp(at, [z], [direction])[1].item()
        gradient = gg.grad(lambda z, at=at: gg.real(at(z)))(z).item()
        np.testing.assert_allclose(tangent, slope, rtol=1e-6)
        along = (np.conj(gradient) * direction.item()).real
        np.testing.assert_allclose(along, slope.real, rtol=1e-6, atol=1e-9)
