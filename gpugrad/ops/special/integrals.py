"""Elliptic, exponential and trigonometric integrals, and the dilogarithm."""

import functools
import math

import numpy as np

from gpugrad.core.backend import NUMPY
from gpugrad.core.samples import shaped
from gpugrad.errors import DTypeError
from gpugrad.ops._scipy import library_has
from gpugrad.ops.special.common import double, horner, library_of_order, over_x, scipy_op
from gpugrad.registry.record import elementwise, op

# Complete elliptic integrals of m, the square of the modulus:
# K' = (K - D) / (2 (1 - m)), E' = -D / 2 with D = (K - E) / m: no cancellation.


def _elliptic_d(xp, p):
    """By the arithmetic-geometric mean, DLMF 19.8.6: (K - E) / K is the sum of 2^(n - 1) c_n^2.

    c_0^2 = m, c_1 = m / (2 (1 + sqrt(p))) and c_(n + 1) = c_n^2 / (4 a_(n + 1)). The loop carries
    r_n = c_n / m, which avoids a division by m at the end.
    """
    lib = xp.lib
    p, dtype = double(xp, p)
    inside, zero = p > 0, p == 0
    p = lib.where(inside, p, 1.0)
    a, b, m = lib.ones_like(p), lib.sqrt(p), 1 - p
    r, total = 0.5 / (1 + b), 0.5
    for n in range(9):
        square = m * r * r
        total = total + 2**n * square
        a, b = 0.5 * (a + b), lib.sqrt(a * b)
        r = square / (2 * (a + b))
    end = lib.where(zero, math.inf, math.nan)
    return lib.where(inside, total * math.pi / (a + b), end).astype(dtype)


def _elliptic_d_p(xp, out, p):
    """-(K - (1 + p) D) / (2 p (1 - p)), near p = 1 by the series of 2F1(1/2, 3/2; 2; 1 - p)."""
    near = xp.abs(1 - p) < 0.05
    terms, q = [], math.pi / 4
    for n in range(16):
        q *= (n + 0.5) * (n + 1.5) / ((n + 1) * (n + 2))
        terms.append((n + 1) * q)
    series = horner(xp.where(near, 1 - p, 0), terms[::-1])
    safe = xp.where(near, 0.5, p)
    d = (xp.ellipkm1(safe) - (1 + safe) * out) / (2 * safe * (1 - safe))
    return -xp.where(near, series, d)


elliptic_d = elementwise(
    "elliptic_d(p)",
    forward=_elliptic_d,
    ref=lambda p: (NUMPY.special.ellipk(1 - p) - NUMPY.special.ellipe(1 - p)) / (1 - p),
    d=[_elliptic_d_p],
    domain=(0.2, 0.9),
    singular=True,
    doc="The integral (K(m) - E(m)) / m for m = 1 - `p`; NaN for negative `p`.",
    example=("[0.5, 1.0]", "[1.0068616 0.7853982]"),
)


def _ellipk_m(xp, out, m):
    end = m == 1  # K and D are both infinite
    p = xp.where(end, 1, 1 - m)
    d = (xp.where(end, 0, out) - xp.elliptic_d(p)) / (2 * p)
    return xp.where(end, float("inf"), d)


def _ellipkm1_p(xp, out, p):
    end = p == 0
    p = xp.where(end, 1, p)
    return -xp.where(end, float("inf"), (xp.where(end, 0, out) - xp.elliptic_d(p)) / (2 * p))


def _ellipe(xp, m):
    if library_has(xp, "ellipe"):
        return xp.special.ellipe(m)
    end, dtype = m == 1, xp.lib.result_type(m, xp.lib.float32)
    m = xp.lib.where(end, 0.0, m)
    out = xp.special.ellipk(m) - m * _elliptic_d(xp, 1 - m)  # CuPy has no ellipe
    return xp.lib.where(end, 1.0, out).astype(dtype)


ellipk = scipy_op("ellipk(m)", _ellipk_m, domain=(-2, 0.9), singular=True, captures=True)(
    doc="Complete elliptic integral of the first kind, of the parameter `m`; NaN above 1.",
    example=("[0.0, 0.5]", "[1.5707964 1.8540747]"),
)

ellipkm1 = scipy_op("ellipkm1(p)", _ellipkm1_p, domain=(0.1, 3), singular=True, captures=True)(
    doc="`ellipk` of 1 - `p`, exact for small `p`.",
    example=("[1.0, 1e-30]", "[ 1.5707964 35.92507  ]"),
)

ellipe = scipy_op(
    "ellipe(m)",
    lambda xp, m: -0.5 * xp.elliptic_d(1 - m),
    forward=_ellipe,
    singular=True,
    domain=(-2, 0.9),
    captures=True,
)(
    doc="Complete elliptic integral of the second kind, of the parameter `m`; NaN above 1.",
    example=("[0.0, 0.5]", "[1.5707964 1.3506439]"),
)


_NEAR_POLE = {"kinds": "fc", "singular": True, "domain": (0.3, 3), "captures": True}

exp1 = scipy_op("exp1(x)", lambda xp, x: -xp.exp(-x) / x, **_NEAR_POLE)(
    doc="Integral of exp(-t) / t from `x` to infinity.",
    example=("[1.0, 2.0]", "[0.2193839 0.0489005]"),
)

expi = scipy_op("expi(x)", lambda xp, x: xp.exp(x) / x, **_NEAR_POLE)(
    doc="Principal value of the integral of exp(t) / t from -infinity to `x`.",
    example=("[1.0, 2.0]", "[1.8951178 4.954234 ]"),
)


def _expn_x(xp, g, n, x):
    """-E_(n - 1); for n = 0 the derivative of exp(-x) / x, as the library has no E_(-1)."""
    if type(n) is int:
        zeroth, below = n == 0 and x == x, max(n - 1, 0)
    else:
        zeroth, below = n == 0, xp.where(n == 0, 0, n - 1)
    first = xp.exp(-x) * (1 + x) / (x * x)
    return xp.masked_multiply(g, -xp.where(zeroth, first, xp.expn(below, x)))


def _expn_samples(rng):
    for n, shape in (([0, 1, 3], (3,)), (2, ()), ([[1], [0]], (2, 3)), (1, (0, 2))):
        yield [np.asarray(n) if shape else n, np.asarray(rng.uniform(0.5, 3, shape))], {}


expn = scipy_op(
    "expn(n, x)",
    forward=library_of_order("expn"),
    vjp=[None, _expn_x],
    singular=True,
    samples=_expn_samples,
)(
    doc="Integral of exp(-x t) / t^n from 1 to infinity; `n` is an integer, without a gradient.",
    example=("1, [1.0, 2.0]", "[0.2193839 0.0489005]"),
)


def _sici_vjp(xp, g, x):
    return g[0] * xp.sinc(x / math.pi) + xp.masked_multiply(g[1], xp.cos(x) / x)


_SINH_OVER_X = [1 / math.factorial(2 * k + 1) for k in range(8, -1, -1)]


def _shichi_vjp(xp, g, x):
    shi = over_x(xp, xp.sinh(x), x, _SINH_OVER_X)
    return g[0] * shi + xp.masked_multiply(g[1], xp.cosh(x) / x)


_two_integrals = functools.partial(
    op,
    outputs=2,
    batch="stack",
    captures=True,
    samples=shaped([(4,)], [()], [(0, 2)], [(2, 2)], domain=(0.3, 4)),
    errors=[(["text"], {}, DTypeError, "number")],
)


@_two_integrals(vjp=[_sici_vjp], ref="scipy.special.sici")
def sici(xp, x, /):
    """Sine and cosine integral.

    Returns:
        Two Tensors: the integral of sin(t) / t from 0 to `x`, and the integral of -cos(t) / t
        from `x` to infinity.

    >>> print(*gg.special.sici(1.0))
    0.9460831 0.3374039
    """
    return xp.special.sici(x)


@_two_integrals(vjp=[_shichi_vjp], ref="scipy.special.shichi")
def shichi(xp, x, /):
    """Hyperbolic sine and cosine integral.

    Returns:
        Two Tensors: the integral of sinh(t) / t from 0 to `x`, and Euler's constant + log(x) +
        the integral of (cosh(t) - 1) / t from 0 to `x`.

    >>> print(*gg.special.shichi(1.0))
    1.0572509 0.8378669
    """
    return xp.special.shichi(x)


def _spence(xp, x):
    """If the library lacks `spence`: Debye's series in w = -log(1 - u), |w| <= log 2.

    Li2(u) = w - w^2 / 4 + the sum of B_2k w^(2k + 1) / (2k + 1)!, after u = 1 - x has been mapped
    to [-1, 1/2] by Li2(u) = pi^2 / 6 - log(u) log(1 - u) - Li2(1 - u) and its analog for 1 / x.
    """
    if library_has(xp, "spence"):
        return xp.special.spence(x)
    lib = xp.lib
    x, dtype = double(xp, x)
    valid = x >= 0
    x = lib.where(valid, x, 1.0)
    large = x > 2
    y = lib.where(large, 1 / lib.where(large, x, 1.0), x)  # to [0, 2]
    low = y < 0.5
    z = lib.where(low, 1 - y, y)  # to [1/2, 2]
    w = -lib.log(z)
    square = w * w
    out = w - 0.25 * square + w * horner(square, _DEBYE) * square
    log = lib.log(lib.where(low & (y > 0), y, 1.0))
    out = lib.where(low, math.pi**2 / 6 - log * lib.log1p(-lib.where(low, y, 0.0)) - out, out)
    log = lib.log(lib.where(large, x, 1.0))
    out = lib.where(large, -out - 0.5 * log * log, out)
    return lib.where(valid, out, math.nan).astype(dtype)


# B_2k / (2k + 1)!, the largest k first
_BERNOULLI = (1 / 6, -1 / 30, 1 / 42, -1 / 30, 5 / 66, -691 / 2730, 7 / 6, -3617 / 510)
_DEBYE = [b / math.factorial(2 * k + 3) for k, b in enumerate(_BERNOULLI)][::-1]

# log(x) / (1 - x), exact also near 1
spence = scipy_op(
    "spence(x)",
    lambda xp, x: -1 / xp.exprel(xp.log(x)),
    forward=_spence,
    domain=(0.1, 5),
    singular=True,
)(
    doc="Integral of log(t) / (1 - t) from 1 to `x`: the dilogarithm of 1 - x; NaN below 0.",
    example=("[1.0, 2.0]", "[ 0.       -0.822467]"),
)
