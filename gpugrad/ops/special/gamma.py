"""The gamma and beta functions, their logarithms and logarithmic derivatives."""

import math
from typing import Any

import numpy as np

from gpugrad.core.backend import NUMPY, SCALARS
from gpugrad.core.samples import grid, shaped
from gpugrad.errors import ArgumentError
from gpugrad.ops._loops import check_order
from gpugrad.ops._scipy import library
from gpugrad.ops.math.arithmetic import unless_infinite
from gpugrad.ops.special.common import library_of_order, scipy_op
from gpugrad.registry.record import elementwise, op

_POSITIVE: dict[str, Any] = {"singular": True, "domain": (0.3, 4)}

gamma = scipy_op("gamma(x)", lambda xp, out, x: out * xp.digamma(x), **_POSITIVE, captures=True)(
    doc="Gamma function: (x - 1)! for an integer `x`.", example=("[1.0, 5.0]", "[ 1. 24.]")
)

gammaln = scipy_op("gammaln(x)", lambda xp, x: xp.digamma(x), **_POSITIVE, cpu=True)(
    doc="Logarithm of the absolute value of `gamma`, without its overflow.",
    example=("[1.0, 1000.0]", "[   0.     5905.2207]"),
)

loggamma = scipy_op("loggamma(x)", lambda xp, x: xp.digamma(x), **_POSITIVE, captures=True)(
    doc="Logarithm of `gamma`, without its overflow, also for complex numbers; NaN for real x < 0.",
    example=("[1.0, 1000.0]", "[   0.     5905.2207]"),
)


def _rgamma_d(xp, out, x):
    """By reflection below 1/2 (DLMF 5.5.3), so that it is exact at the poles of gamma."""
    low = x < 0.5
    mirror, right = 1 - xp.where(low, x, 0), xp.where(low, 1, x)
    slope = xp.cos(math.pi * x) - xp.sin(math.pi * x) / math.pi * xp.digamma(mirror)
    return xp.where(low, xp.gamma(mirror) * slope, -xp.masked_multiply(out, xp.digamma(right)))


rgamma = scipy_op("rgamma(x)", _rgamma_d, domain=(-2, 4), captures=True)(
    doc="1 / gamma(x): 0 at 0, -1, -2, ..., where its derivatives are exact too.",
    example=("[0.0, 4.0]", "[0.        0.1666667]"),
)

gammasgn = scipy_op("gammasgn(x)", differentiable=False)(
    doc="Sign of the gamma function. Its gradient is None.", example=("[-0.5, 2.0]", "[-1.  1.]")
)

_ROOT = -0.5040830082644554


def _digamma(xp, x):
    """SciPy's, but not beside its first negative root, where SciPy adds up a series of zetas.

    There digamma(x + 2) is small, and for float32 in float64 nothing is lost.
    """
    if xp is not NUMPY or type(x) is not np.ndarray or x.dtype != np.float32:
        return _library(xp, x)
    wide = x.astype(np.float64)
    beside = np.abs(wide - _ROOT) < 0.3
    out = np.asarray(_library(xp, wide + 2 * beside))
    near = wide[beside]
    out[beside] -= (2 * near + 1) / (near * (near + 1))
    return out.astype(np.float32)


_library = library("digamma")

digamma = scipy_op(
    "digamma(x)",
    lambda xp, x: xp.polygamma(1, unless_infinite(x)),
    **_POSITIVE,
    captures=True,
    forward=_digamma,
    cpu=True,
)(doc="Derivative of `gammaln`.", example=("[1.0, 2.0]", "[-0.5772157  0.4227843]"))

trigamma = elementwise(
    "trigamma(x)",
    forward=lambda xp, x: xp.polygamma(1, x),
    **_POSITIVE,
    d=[lambda xp, x: xp.polygamma(2, x)],
    ref=lambda x: NUMPY.special.polygamma(1, x),
    doc="Derivative of `digamma`.",
    example=("[1.0, 2.0]", "[1.6449341 0.6449341]"),
)


def _order_samples(rng):
    """An integer order, as an array and as a number, and x."""
    for n, shape in (([0, 1, 3], (3,)), (2, ()), ([[1], [2]], (2, 3)), (1, (0, 2))):
        yield [np.asarray(n) if shape else n, np.asarray(rng.uniform(0.5, 3, shape))], {}


def _polygamma_x(xp, g, n, x):
    if type(n) not in SCALARS:
        x = xp.where(xp.equal(n, 0), unless_infinite(x), x)
    elif n == 0:
        x = unless_infinite(x)
    return xp.masked_multiply(g, xp.polygamma(n + 1, x))


polygamma = scipy_op(
    "polygamma(n, x)",
    forward=library_of_order("polygamma"),
    vjp=[None, _polygamma_x],
    singular=True,
    samples=_order_samples,
)(
    doc="n-th derivative of `digamma`; `n` is a non-negative integer, without a gradient.",
    example=("1, [1.0, 2.0]", "[1.6449341 0.6449341]"),
)

zeta = scipy_op(
    "zeta(x, q)",
    vjp=[..., lambda xp, g, x, q: xp.masked_multiply(g, -x * xp.zeta(x + 1, q))],
    singular=True,
    domain=((1.5, 4), (0.5, 3)),
    captures=True,
)(
    doc="Hurwitz' zeta function, the sum of (k + q)^-x from k = 0; Riemann's where `q` is 1.\n\n"
    "The gradient by `x` is not known; asking for it raises NoGradientError.",
    example=("[2.0, 4.0], 1.0", "[1.6449341 1.0823232]"),
)


@op(
    samples=shaped(([(3,)], {"d": 3}), ([()], {"d": 1}), ([(0, 2)], {"d": 2}), domain=(2, 5)),
    ref=np.vectorize(lambda a, d: NUMPY.special.multigammaln(a, d), otypes=[float]),
    errors=[([np.ones(2)], {"d": 0}, ArgumentError, "multigammaln: d=0")],
)
def multigammaln(xp, a, /, d):
    """Logarithm of the gamma function of several variables.

    Args:
        a: array of any shape, above (d - 1) / 2.
        d: int, the number of variables, from 1 to 10,000; for 1 it is `gammaln`.

    >>> print(gg.special.multigammaln([3.0], 2))
    [1.5501964]
    """
    d = check_order("multigammaln", "d", d, 1, 10_000)
    total = xp.gammaln(a) + d * (d - 1) / 4 * math.log(math.pi)
    for j in range(1, d):
        total = total + xp.gammaln(a - 0.5 * j)
    return total


_TWO_POSITIVE = {"singular": True, "samples": grid(2, (0.5, 3))}

poch = scipy_op(
    "poch(z, m)",
    lambda xp, out, z, m: out * (xp.digamma(z + m) - xp.digamma(z)),
    lambda xp, out, z, m: out * xp.digamma(z + m),
    singular=True,
    domain=(0.5, 3),
    captures=True,
)(
    doc="Rising factorial gamma(z + m) / gamma(z), also called Pochhammer's symbol.",
    example=("3.0, [0.0, 2.0]", "[ 1. 12.]"),
)

binom = scipy_op(
    "binom(n, k)",
    lambda xp, out, n, k: out * (xp.digamma(n + 1) - xp.digamma(n - k + 1)),
    lambda xp, out, n, k: out * (xp.digamma(n - k + 1) - xp.digamma(k + 1)),
    singular=True,
    domain=((3, 6), (0.5, 3)),
    captures=True,
)(doc="Binomial coefficient, also of real numbers.", example=("5.0, [0.0, 2.0]", "[ 1. 10.]"))

beta = scipy_op(
    "beta(a, b)",
    lambda xp, out, a, b: out * (xp.digamma(a) - xp.digamma(a + b)),
    lambda xp, out, a, b: out * (xp.digamma(b) - xp.digamma(a + b)),
    **_TWO_POSITIVE,
    captures=True,
)(
    doc="Beta function, gamma(a) gamma(b) / gamma(a + b).",
    example=("2.0, [1.0, 3.0]", "[0.5       0.0833333]"),
)

betaln = scipy_op(
    "betaln(a, b)",
    lambda xp, a, b: xp.digamma(a) - xp.digamma(a + b),
    lambda xp, a, b: xp.digamma(b) - xp.digamma(a + b),
    **_TWO_POSITIVE,
    captures=True,
)(
    doc="Logarithm of the absolute value of `beta`, without its underflow.",
    example=("2.0, [1.0, 1000.0]", "[ -0.6931472 -13.81651  ]"),
)
