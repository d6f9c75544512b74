"""The gamma and the beta function, their logarithms and logarithmic derivatives."""

from __future__ import annotations

import math

import numpy as np

from gpugrad.core.backend import NUMPY
from gpugrad.core.samples import grid, shaped
from gpugrad.errors import ArgumentError
from gpugrad.ops.special.common import library, of_order
from gpugrad.registry.record import elementwise, op

gamma = elementwise(
    "gamma(x)",
    forward=library("gamma"),
    ref="scipy.special.gamma",
    singular=True,
    d=[lambda xp, out, x: out * xp.digamma(x)],
    domain=(0.3, 4),
    doc="Gamma function: (x - 1)! for a whole number `x`.",
    example=("[1.0, 5.0]", "[ 1. 24.]"),
    captures=True,
)

gammaln = elementwise(
    "gammaln(x)",
    forward=library("gammaln"),
    ref="scipy.special.gammaln",
    singular=True,
    d=[lambda xp, x: xp.digamma(x)],
    domain=(0.3, 4),
    doc="Logarithm of the absolute value of `gamma`, without its overflow.",
    example=("[1.0, 1000.0]", "[   0.     5905.2207]"),
)

loggamma = elementwise(
    "loggamma(x)",
    forward=library("loggamma"),
    ref="scipy.special.loggamma",
    singular=True,
    d=[lambda xp, x: xp.digamma(x)],
    domain=(0.3, 4),
    doc=(
        "Logarithm of `gamma`, without its overflow: NaN where a real `x` is negative. It takes"
        " complex numbers too, and has one derivative there."
    ),
    example=("[1.0, 1000.0]", "[   0.     5905.2207]"),
    captures=True,
)


def _rgamma_d(xp, out, x):
    """By reflection below 1/2 (DLMF 5.5.3), so that it is exact at the poles of gamma."""
    low = x < 0.5
    mirror, right = 1 - xp.where(low, x, 0), xp.where(low, 1, x)
    slope = xp.cos(math.pi * x) - xp.sin(math.pi * x) / math.pi * xp.digamma(mirror)
    return xp.where(low, xp.gamma(mirror) * slope, -xp.masked_multiply(out, xp.digamma(right)))


rgamma = elementwise(
    "rgamma(x)",
    forward=library("rgamma"),
    ref="scipy.special.rgamma",
    d=[_rgamma_d],
    domain=(-2, 4),
    doc="One over the gamma function: 0 at 0, -1, -2, ..., with the derivatives that it has there.",
    example=("[0.0, 4.0]", "[0.        0.1666667]"),
    captures=True,
)

gammasgn = elementwise(
    "gammasgn(x)",
    forward=library("gammasgn"),
    ref="scipy.special.gammasgn",
    differentiable=False,
    doc="Sign of the gamma function. Its gradient is None.",
    example=("[-0.5, 2.0]", "[-1.  1.]"),
)

digamma = elementwise(
    "digamma(x)",
    forward=library("digamma"),
    ref="scipy.special.digamma",
    singular=True,
    d=[lambda xp, x: xp.polygamma(1, x)],
    domain=(0.3, 4),
    doc="Derivative of `gammaln`.",
    example=("[1.0, 2.0]", "[-0.5772157  0.4227843]"),
    captures=True,
)

trigamma = elementwise(
    "trigamma(x)",
    forward=lambda xp, x: xp.polygamma(1, x),
    singular=True,
    domain=(0.3, 4),
    d=[lambda xp, x: xp.polygamma(2, x)],
    ref=lambda x: NUMPY.special.polygamma(1, x),
    doc="Derivative of `digamma`.",
    example=("[1.0, 2.0]", "[1.6449341 0.6449341]"),
)


def _ordered(rng):
    """An integer order, as an array and as a number, and x."""
    for n, shape in (([0, 1, 3], (3,)), (2, ()), ([[1], [2]], (2, 3)), (1, (0, 2))):
        yield [np.asarray(n) if shape else n, np.asarray(rng.uniform(0.5, 3, shape))], {}


polygamma = elementwise(
    "polygamma(n, x)",
    forward=of_order("polygamma"),
    ref="scipy.special.polygamma",
    vjp=[None, lambda xp, g, n, x: xp.masked_multiply(g, xp.polygamma(n + 1, x))],
    samples=_ordered,
    doc=(
        "Derivative of order `n` of `digamma`. There is no gradient by `n`, which must be whole"
        " and not negative."
    ),
    example=("1, [1.0, 2.0]", "[1.6449341 0.6449341]"),
)

zeta = elementwise(
    "zeta(x, q)",
    forward=library("zeta"),
    ref="scipy.special.zeta",
    vjp=[..., lambda xp, g, x, q: xp.masked_multiply(g, -x * xp.zeta(x + 1, q))],
    domain=((1.5, 4), (0.5, 3)),
    captures=True,
    doc=(
        "Hurwitz' zeta function, the sum of (k + q)^-x from k = 0; Riemann's where `q` is 1. Its"
        " gradient by `x` is not known, so that asking for it raises NoGradientError."
    ),
    example=("[2.0, 4.0], 1.0", "[1.6449341 1.0823232]"),
)


def _multigammaln_ref(a, d=1):
    return np.vectorize(lambda v: NUMPY.special.multigammaln(v, d), otypes=[float])(a)


@op(
    samples=shaped(([(3,)], {"d": 3}), ([()], {"d": 1}), ([(0, 2)], {"d": 2}), domain=(2, 5)),
    ref=_multigammaln_ref,
    errors=[([np.ones(2)], {"d": 0}, ArgumentError, "multigammaln: d=0")],
)
def multigammaln(xp, a, /, d):
    """Logarithm of the gamma function of several variables.

    Args:
        a: array of any shape, above (d - 1) / 2.
        d: int, 1 or more: the number of variables.

    >>> print(gg.special.multigammaln([3.0], 2))
    [1.5501964]
    """
    if d < 1:
        raise ArgumentError(f"multigammaln: d={d} is not 1 or more. gammaln is the case of 1.")
    total = xp.gammaln(a) + d * (d - 1) / 4 * math.log(math.pi)
    for j in range(1, d):
        total = total + xp.gammaln(a - 0.5 * j)
    return total


poch = elementwise(
    "poch(z, m)",
    forward=library("poch"),
    ref="scipy.special.poch",
    singular=True,
    d=[
        lambda xp, out, z, m: out * (xp.digamma(z + m) - xp.digamma(z)),
        lambda xp, out, z, m: out * xp.digamma(z + m),
    ],
    domain=(0.5, 3),
    doc="Rising factorial gamma(z + m) / gamma(z), also called Pochhammer's symbol.",
    example=("3.0, [0.0, 2.0]", "[ 1. 12.]"),
    captures=True,
)

binom = elementwise(
    "binom(n, k)",
    forward=library("binom"),
    ref="scipy.special.binom",
    singular=True,
    d=[
        lambda xp, out, n, k: out * (xp.digamma(n + 1) - xp.digamma(n - k + 1)),
        lambda xp, out, n, k: out * (xp.digamma(n - k + 1) - xp.digamma(k + 1)),
    ],
    domain=((3, 6), (0.5, 3)),
    doc="Binomial coefficient, of real numbers too.",
    example=("5.0, [0.0, 2.0]", "[ 1. 10.]"),
    captures=True,
)

beta = elementwise(
    "beta(a, b)",
    forward=library("beta"),
    ref="scipy.special.beta",
    singular=True,
    d=[
        lambda xp, out, a, b: out * (xp.digamma(a) - xp.digamma(a + b)),
        lambda xp, out, a, b: out * (xp.digamma(b) - xp.digamma(a + b)),
    ],
    samples=grid(2, (0.5, 3)),
    doc="Beta function, gamma(a) gamma(b) / gamma(a + b).",
    example=("2.0, [1.0, 3.0]", "[0.5       0.0833333]"),
    captures=True,
)

betaln = elementwise(
    "betaln(a, b)",
    forward=library("betaln"),
    ref="scipy.special.betaln",
    singular=True,
    d=[
        lambda xp, a, b: xp.digamma(a) - xp.digamma(a + b),
        lambda xp, a, b: xp.digamma(b) - xp.digamma(a + b),
    ],
    samples=grid(2, (0.5, 3)),
    doc="Logarithm of the absolute value of `beta`, without its underflow.",
    example=("2.0, [1.0, 1000.0]", "[ -0.6931472 -13.81651  ]"),
    captures=True,
)
