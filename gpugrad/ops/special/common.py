"""Elementary functions with SciPy's names, and what the files of special functions share.

SciPy's own functions run on the CPU, CuPy's on a GPU. Where CuPy lacks one, its forward here
is a formula; `jv`, `yv`, `iv`, `ive`, `kv` and `kve` have none and raise `DeviceError` there.
"""

from __future__ import annotations

import math

import numpy as np

from gpugrad.core.backend import NUMPY
from gpugrad.core.samples import shaped
from gpugrad.errors import ArgumentError, DeviceError, DTypeError
from gpugrad.registry.on_arrays import typed
from gpugrad.registry.record import elementwise, op


def has(xp, name):
    """Whether the array library's ``special`` has a function of that name."""
    return hasattr(xp.special, name)


def library(name):
    """The forward of an op that is a function of the array library's ``special``."""

    def forward(xp, *arrays):
        if not has(xp, name):
            raise DeviceError(
                f"{name}: cupyx.scipy.special does not have it, so it runs on the CPU only. "
                "Move its arguments there with x.to_device('cpu')."
            )
        # some of SciPy's functions take a number for a float64
        return getattr(xp.special, name)(*typed(*arrays))

    return forward


def of_order(name):
    """`library` for a function of an order and `x`: whole orders do not widen float32."""
    function = library(name)

    def forward(xp, n, x):
        out = function(xp, xp.lib.asarray(n), x)  # CuPy's polygamma takes arrays only
        keeps = hasattr(x, "dtype") and getattr(n, "dtype", np.dtype(int)).kind in "iu"
        return out.astype(xp.lib.result_type(x, xp.lib.float32)) if keeps else out

    return forward


def double(xp, *arrays):
    """Arguments in float64, in which SciPy computes float32 too, and the dtype of the result."""
    dtype = xp.lib.result_type(*arrays, xp.lib.float32)
    return *(xp.lib.asarray(a, dtype=xp.lib.float64) for a in arrays), dtype


def horner(x, coefficients):
    """Polynomial with these coefficients, the highest power's first."""
    total = 0 * x
    for c in coefficients:
        total = total * x + c
    return total


# ---- functions that are closed under differentiation, with their order as metadata ---------


def _exponential_remainder_vjp(xp, g, z, order):
    r = xp.exponential_remainder(z, order=order)
    return g * (r - order * xp.exponential_remainder(z, order=order + 1))


def _exponential_remainder_ref(z, order=1):
    terms = [z**n / math.factorial(n + order) for n in range(60)]
    return np.sum(terms, axis=0) if z.size else z


@op(
    vjp=[_exponential_remainder_vjp],
    batch=lambda xp, batched, z, order: xp.exponential_remainder(z, order=order),
    samples=shaped(([(4,)], {}), ([()], {"order": 2}), ([(0, 2)], {}), ([(2, 3)], {"order": 3})),
    ref=_exponential_remainder_ref,
    errors=[([np.ones(2)], {"order": 0}, ArgumentError, "order")],
    captures=True,
)
def exponential_remainder(xp, z, /, *, order=1):
    """What the Taylor polynomial of exp leaves: the sum of z^n / (n + order)! from n = 0.

    These are the phi functions of exponential integrators; order 1 is `exprel`. The derivative
    is ``phi_k - k phi_(k+1)``.

    Args:
        order: int, 1 or more.

    >>> print(gg.exponential_remainder([0.0, 1.0], order=2))
    [0.5       0.7182818]
    """
    if order < 1:
        raise ArgumentError(f"exponential_remainder: order={order} is not 1 or more.")
    lib = xp.lib
    z, dtype = double(xp, z)
    near = lib.abs(z) < 1
    small, large = lib.where(near, z, 0.0), lib.where(near, 1.0, z)
    series = horner(small, [1 / math.factorial(n + order) for n in range(19, -1, -1)])
    direct = lib.expm1(lib.minimum(large, 709.78)) / large
    direct = lib.where(large > 709.78, lib.inf, direct)  # exp overflows, without a warning
    for k in range(1, order):
        direct = (direct - 1 / math.factorial(k)) / large
    return lib.where(near, series, direct).astype(dtype)


def _spherical_jn_vjp(xp, g, z, n):
    """DLMF 10.51.2 with 10.51.1: no division by z."""
    above = xp.spherical_jn(z, n=n + 1)
    if n == 0:
        return -g * above
    return g * ((n * xp.spherical_jn(z, n=n - 1) - (n + 1) * above) / (2 * n + 1))


@op(
    vjp=[_spherical_jn_vjp],
    batch=lambda xp, batched, z, n: xp.spherical_jn(z, n=n),
    samples=shaped(
        ([(4,)], {}), ([()], {"n": 1}), ([(0, 2)], {}), ([(2, 3)], {"n": 2}), domain=(-9, 9)
    ),
    ref=lambda z, n=0: NUMPY.special.spherical_jn(n, z),
    errors=[([np.ones(2)], {"n": -1}, ArgumentError, "n=-1")],
    captures=True,
)
def spherical_jn(xp, z, /, *, n=0):
    """Spherical Bessel function of the first kind.

    Args:
        n: its order, an int that is not negative. (`gg.special.spherical_jn` takes it first.)

    The power series (DLMF 10.53.1) up to n + 1, from there the recurrence upwards.

    >>> print(gg.spherical_jn([0.0, 1.0]))
    [1.       0.841471]
    """
    if n < 0:
        raise ArgumentError(f"spherical_jn: n={n} is negative.")
    lib = xp.lib
    z, dtype = double(xp, z)
    near = lib.abs(z) < n + 1
    small, large = lib.where(near, z, 0.0), lib.where(near, n + 1.0, z)
    series, square = 0 * small + 1, -0.5 * small * small
    for k in range(20 + 2 * n, 0, -1):
        series = 1 + square / (k * (2 * (n + k) + 1)) * series
    series = series * (small**n / math.prod(range(1, 2 * n + 2, 2)))
    finite = lib.where(lib.isfinite(large), large, 1.0)  # sin(inf) would warn; the limit is 0
    scale = lib.where(lib.isinf(large), 0.0, 1.0)
    below, direct = scale * lib.cos(finite) / large, scale * lib.sin(finite) / large
    for k in range(n):
        below, direct = direct, (2 * k + 1) / large * direct - below
    return lib.where(near, series, direct).astype(dtype)


exprel = elementwise(
    "exprel(x)",
    forward=lambda xp, x: xp.exponential_remainder(x),
    ref="scipy.special.exprel",
    d=[lambda xp, x: xp.exponential_remainder(x) - xp.exponential_remainder(x, order=2)],
    doc="(exp(x) - 1) / x, and 1 at 0.",
    example=("[0.0, 1.0]", "[1.        1.7182819]"),
)

sinc = elementwise(
    "sinc(x)",
    forward=lambda xp, x: xp.lib.sinc(x),
    ref="numpy.sinc",
    d=[lambda xp, x: -math.pi * xp.spherical_jn(math.pi * x, n=1)],
    doc="sin(pi x) / (pi x), and 1 at 0. Its derivatives are exact at 0 and near it.",
    example=("[0.0, 0.5]", "[1.        0.6366198]"),
)

cosm1 = elementwise(
    "cosm1(x)",
    forward=library("cosm1"),
    ref="scipy.special.cosm1",
    d=[lambda xp, x: -xp.sin(x)],
    doc="cos(x) - 1, exact for small `x`.",
    example=("[0.0, 1.0]", "[ 0.        -0.4596977]"),
)

exp10 = elementwise(
    "exp10(x)",
    forward=library("exp10"),
    ref="scipy.special.exp10",
    d=[lambda xp, out: out * math.log(10)],
    doc="10 to the power `x`.",
    example=("[0.0, 2.0]", "[  1. 100.]"),
)

logaddexp2 = elementwise(
    "logaddexp2(x, y)",
    singular=True,
    d=[
        lambda xp, x, y: xp.sigmoid((x - y) * math.log(2)),
        lambda xp, x, y: xp.sigmoid((y - x) * math.log(2)),
    ],
    doc="log2(2^x + 2^y), without overflow.",
    example=("1000.0, 1000.0", "1001.0"),
)

logit = elementwise(
    "logit(x)",
    forward=library("logit"),
    ref="scipy.special.logit",
    singular=True,
    d=[lambda xp, x: 1 / (x * (1 - x))],
    domain=(0.1, 0.9),
    doc="log(x / (1 - x)), the inverse of the sigmoid; NaN outside of [0, 1].",
    example=("[0.0, 0.5]", "[-inf   0.]"),
)

# ---- powers that become logarithms: Box and Cox 1964, "An analysis of transformations" ------


def _boxcox_lmbda(xp, log, lmbda, nowhere):
    """log^2 phi', phi(z) = (e^z - 1) / z at z = lmbda log; exact as lmbda goes to 0."""
    log = xp.where(nowhere, 1, log)
    z = lmbda * log
    d = log * log * (xp.exponential_remainder(z) - xp.exponential_remainder(z, order=2))
    return xp.where(nowhere, 1 / (lmbda * lmbda), d)  # from (x^lmbda - 1) / lmbda at x = 0


boxcox = elementwise(
    "boxcox(x, lmbda)",
    forward=library("boxcox"),
    ref="scipy.special.boxcox",
    singular=True,
    d=[
        lambda xp, x, lmbda: x ** (lmbda - 1),
        lambda xp, x, lmbda: _boxcox_lmbda(xp, xp.log(x), lmbda, x == 0),
    ],
    domain=((0.3, 3), (-2, 2)),
    doc="(x^lmbda - 1) / lmbda, and log(x) where `lmbda` is 0.",
    example=("[1.0, 3.0], 2.0", "[0. 4.]"),
)

boxcox1p = elementwise(
    "boxcox1p(x, lmbda)",
    forward=library("boxcox1p"),
    ref="scipy.special.boxcox1p",
    singular=True,
    d=[
        lambda xp, x, lmbda: xp.exp((lmbda - 1) * xp.log1p(x)),
        lambda xp, x, lmbda: _boxcox_lmbda(xp, xp.log1p(x), lmbda, x == -1),
    ],
    domain=((-0.7, 2), (-2, 2)),
    doc="((1 + x)^lmbda - 1) / lmbda, and log1p(x) where `lmbda` is 0.",
    example=("[0.0, 2.0], 2.0", "[0. 4.]"),
)


def _inv_boxcox_lmbda(xp, power, x, lmbda):
    """By lmbda of (1 + lmbda x)^(1/lmbda), in w = log1p(lmbda x): exact as lmbda goes to 0."""
    w = xp.log1p(lmbda * x)
    ratio = x / xp.exponential_remainder(w)
    return -power * ratio * ratio * xp.exponential_remainder(-w, order=2)


inv_boxcox = elementwise(
    "inv_boxcox(x, lmbda)",
    forward=library("inv_boxcox"),
    ref="scipy.special.inv_boxcox",
    d=[
        lambda xp, out, x, lmbda: out / (1 + lmbda * x),
        lambda xp, out, x, lmbda: _inv_boxcox_lmbda(xp, out, x, lmbda),
    ],
    domain=((-0.8, 0.8), (-1, 1)),
    singular=True,
    doc="The number whose `boxcox` is `x`: (1 + lmbda x)^(1/lmbda), exp(x) where `lmbda` is 0.",
    example=("[0.0, 4.0], 2.0", "[1. 3.]"),
)

inv_boxcox1p = elementwise(
    "inv_boxcox1p(x, lmbda)",
    forward=library("inv_boxcox1p"),
    ref="scipy.special.inv_boxcox1p",
    d=[
        lambda xp, out, x, lmbda: (1 + out) / (1 + lmbda * x),
        lambda xp, out, x, lmbda: _inv_boxcox_lmbda(xp, 1 + out, x, lmbda),
    ],
    domain=((-0.8, 0.8), (-1, 1)),
    singular=True,
    doc="The number whose `boxcox1p` is `x`.",
    example=("[0.0, 4.0], 2.0", "[0. 2.]"),
)

# ---- the inverse of w e^w -----------------------------------------------------------------


def _lambertw_vjp(xp, g, out, z_dtype):
    g = xp.masked_multiply(g, xp.conj(xp.exp(-out) / (1 + out)))
    return g if z_dtype.kind == "c" else xp.real(g)


@op(
    vjp=[_lambertw_vjp],
    batch=lambda xp, batched, z, k, tol: xp.lambertw(z, k=k, tol=tol),
    kinds="fc",
    ref="scipy.special.lambertw",
    samples=shaped(([(4,)], {}), ([()], {}), ([(0, 2)], {}), ([(2, 2)], {"k": 1}), domain=(0.5, 3)),
    errors=[(["text"], {}, DTypeError, "number")],
    captures=True,
)
def lambertw(xp, z, /, k=0, tol=1e-8):
    """The Lambert W function: w with w exp(w) = z, a complex number.

    Args:
        z: array of any shape, real or complex.
        k: int, which branch of it.
        tol: how near the iteration comes.

    Returns:
        complex Tensor of the shape of `z`; its real part is W of a real z from -1/e on.

    >>> print(gg.real(gg.special.lambertw([0.0, 1.0])))
    [0.         0.56714326]
    """
    out = xp.special.lambertw(z, k, tol)
    return out.astype(xp.lib.result_type(z.dtype, xp.lib.complex64))
