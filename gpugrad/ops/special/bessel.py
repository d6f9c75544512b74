"""Bessel functions and modified Bessel functions, without derivatives by the order.

Derivatives follow DLMF 10.6 and 10.29. Functions of any order run on the CPU only: CuPy has those
of order 0 and 1, and `yn`.
"""

import math

import numpy as np

from gpugrad.ops.special.common import horner, library_of_order, over_x, scipy_op

# I1(x) / x as a polynomial of x^2, highest power first. That of J1 has alternating signs.
_I1_OVER_X = [0.5 / (4**k * math.factorial(k) * math.factorial(k + 1)) for k in range(8, -1, -1)]
_J1_OVER_X = [c * (-1) ** k for k, c in enumerate(_I1_OVER_X)]


_TERMS = 16


def _asymptotic_terms(order, sign):
    """Coefficients of the derivative of x^-1/2 times the sum of sign^k a_k / x^k, last one first.

    That sum is sqrt(2 pi) I e^-x with sign -1, and sqrt(2 / pi) K e^x with sign 1 (DLMF 10.40.1-2).
    """
    a, terms = 1.0, []
    for k in range(_TERMS):
        terms.append(-(k + 0.5) * a)
        a *= sign * (4 * order**2 - (2 * k + 1) ** 2) / (8 * (k + 1))
    return terms[::-1]


def _scaled_slope(order, sign, near):
    """The rule of a scaled function: `near`, but far out, where that cancels, a series."""
    terms = _asymptotic_terms(order, sign)
    scale = math.sqrt(0.5 / math.pi if sign < 0 else 0.5 * math.pi)

    def d(xp, out, x):
        size, far = xp.abs(x), 10.0 if x.dtype == np.float32 else 30.0
        inverse = 1 / xp.where(size > far, size, far)
        series = scale * inverse**1.5 * horner(inverse, terms)
        if sign < 0 and order == 0:  # of an even function
            series = xp.sign(x) * series
        return xp.where(size > far, series, near(xp, out, x))

    return d


_POSITIVE = {"singular": True, "domain": (0.3, 3)}

i0 = scipy_op("i0(x)", lambda xp, x: xp.i1(x), cpu=True)(
    doc="Modified Bessel function of the first kind, of order 0.",
    example=("[0.0, 1.0]", "[1.        1.2660658]"),
)

i1 = scipy_op("i1(x)", lambda xp, out, x: xp.i0(x) - over_x(xp, out, x, _I1_OVER_X), cpu=True)(
    doc="Modified Bessel function of the first kind, of order 1.",
    example=("[0.0, 1.0]", "[0.        0.5651591]"),
)

i0e = scipy_op(
    "i0e(x)",
    _scaled_slope(0, -1, lambda xp, out, x: xp.i1e(x) - xp.sign(x) * out),
    captures=True,
    cpu=True,
)(
    doc="exp(-|x|) times `i0`, which does not overflow. The gradient at 0 is 0.",
    example=("[0.0, 1.0]", "[1.        0.4657596]"),
)

i1e = scipy_op(
    "i1e(x)",
    _scaled_slope(
        1,
        -1,
        lambda xp, out, x: (
            xp.i0e(x) - xp.sign(x) * out - over_x(xp, out, x, _I1_OVER_X, xp.exp(-xp.abs(x)))
        ),
    ),
    captures=True,
    cpu=True,
)(
    doc="exp(-|x|) times `i1`, which does not overflow.",
    example=("[0.0, 1.0]", "[0.        0.2079104]"),
)

k0 = scipy_op("k0(x)", lambda xp, x: -xp.k1(x), **_POSITIVE, captures=True)(
    doc="Modified Bessel function of the second kind, of order 0: infinite at 0, NaN below.",
    example=("[1.0, 2.0]", "[0.4210244 0.1138939]"),
)

k1 = scipy_op("k1(x)", lambda xp, out, x: -xp.k0(x) - out / x, **_POSITIVE, captures=True)(
    doc="Modified Bessel function of the second kind, of order 1: infinite at 0, NaN below.",
    example=("[1.0, 2.0]", "[0.6019072 0.1398659]"),
)

k0e = scipy_op(
    "k0e(x)",
    _scaled_slope(0, 1, lambda xp, out, x: xp.where(x == 0, -float("inf"), out - xp.k1e(x))),
    **_POSITIVE,
    captures=True,
)(
    doc="exp(x) times `k0`, which does not vanish for large `x`.",
    example=("[1.0, 2.0]", "[1.1444631 0.8415682]"),
)

k1e = scipy_op(
    "k1e(x)",
    _scaled_slope(
        1, 1, lambda xp, out, x: xp.where(x == 0, -float("inf"), out - xp.k0e(x) - out / x)
    ),
    **_POSITIVE,
    captures=True,
)(
    doc="exp(x) times `k1`, which does not vanish for large `x`.",
    example=("[1.0, 2.0]", "[1.6361535 1.0334768]"),
)

j0 = scipy_op("j0(x)", lambda xp, x: -xp.j1(x), cpu=True)(
    doc="Bessel function of the first kind, of order 0.",
    example=("[0.0, 1.0]", "[1.        0.7651977]"),
)

j1 = scipy_op("j1(x)", lambda xp, out, x: xp.j0(x) - over_x(xp, out, x, _J1_OVER_X))(
    doc="Bessel function of the first kind, of order 1.",
    example=("[0.0, 1.0]", "[0.        0.4400506]"),
)

y0 = scipy_op("y0(x)", lambda xp, x: -xp.y1(x), **_POSITIVE)(
    doc="Bessel function of the second kind, of order 0: -inf at 0, NaN below.",
    example=("[1.0, 2.0]", "[0.08825696 0.5103757 ]"),
)

y1 = scipy_op(
    "y1(x)", lambda xp, out, x: xp.where(x == 0, float("inf"), xp.y0(x) - out / x), **_POSITIVE
)(
    doc="Bessel function of the second kind, of order 1: -inf at 0, NaN below.",
    example=("[1.0, 2.0]", "[-0.7812128 -0.1070324]"),
)


def _orders(low, high, integers):
    """Samples: orders as arrays and as numbers, and x."""

    def samples(rng):
        orders = ([0, 1, 3], 2, [[1], [2]]) if integers else ([0.5, 1.0, 2.5], 1, [[1], [2]])
        for v, shape in zip(orders, ((3,), (), (2, 3)), strict=True):
            v = v if type(v) is int else np.asarray(v)
            yield [v, np.asarray(rng.uniform(low, high, shape))], {}
        yield [1, np.zeros((0, 2))], {}

    return samples


def _order_op(signature, domain, vjp, vjp_of_order=...):
    """`scipy_op` for a function of an order and x; only x has a gradient."""
    forward = library_of_order(signature.partition("(")[0])
    samples = _orders(*domain, integers=vjp_of_order is None)
    rules = {"vjp": [vjp_of_order, vjp], "singular": True}  # the second kind at 0
    return scipy_op(signature, forward=forward, samples=samples, **rules)


def _half_difference(f, v, x):
    return 0.5 * (f(v - 1, x) - f(v + 1, x))


def _half_sum(f, v, x):
    return 0.5 * (f(v - 1, x) + f(v + 1, x))


_NO_ORDER = " The gradient by the order `v` is not known; asking for it raises NoGradientError."

jv = _order_op("jv(v, x)", (0.3, 5), lambda xp, g, v, x: g * _half_difference(xp.jv, v, x))(
    doc=f"Bessel function of the first kind, of real order.{_NO_ORDER}",
    example=("0, [0.0, 1.0]", "[1.        0.7651977]"),
)

yv = _order_op(
    "yv(v, x)", (0.5, 5), lambda xp, g, v, x: xp.masked_multiply(g, _half_difference(xp.yv, v, x))
)(
    doc=f"Bessel function of the second kind, of real order: -inf at 0, NaN below.{_NO_ORDER}",
    example=("0, [1.0, 2.0]", "[0.08825696 0.5103757 ]"),
)

yn = _order_op(
    "yn(n, x)",
    (0.5, 5),
    lambda xp, g, n, x: xp.masked_multiply(g, _half_difference(xp.yn, n, x)),
    vjp_of_order=None,
)(
    doc="Bessel function of the second kind, of integer order `n`: -inf at 0, NaN below.",
    example=("0, [1.0, 2.0]", "[0.08825696 0.5103757 ]"),
)

iv = _order_op("iv(v, x)", (0.3, 3), lambda xp, g, v, x: g * _half_sum(xp.iv, v, x))(
    doc=f"Modified Bessel function of the first kind, of real order.{_NO_ORDER}",
    example=("0, [0.0, 1.0]", "[1.        1.2660658]"),
)

ive = _order_op(
    "ive(v, x)", (0.3, 3), lambda xp, g, out, v, x: g * (_half_sum(xp.ive, v, x) - xp.sign(x) * out)
)(
    doc=f"exp(-|x|) times `iv`, which does not overflow.{_NO_ORDER}",
    example=("0, [0.0, 1.0]", "[1.        0.4657596]"),
)

kv = _order_op(
    "kv(v, x)", (0.5, 3), lambda xp, g, v, x: xp.masked_multiply(g, -_half_sum(xp.kv, v, x))
)(
    doc=f"Modified Bessel function of the second kind, of real order: inf at 0.{_NO_ORDER}",
    example=("0, [1.0, 2.0]", "[0.4210244 0.1138939]"),
)

kve = _order_op(
    "kve(v, x)",
    (0.5, 3),
    lambda xp, g, out, v, x: xp.masked_multiply(g, out - _half_sum(xp.kve, v, x)),
)(
    doc=f"exp(x) times `kv`, which does not vanish for large `x`.{_NO_ORDER}",
    example=("0, [1.0, 2.0]", "[1.1444631 0.8415682]"),
)
