"""Hankel functions, scaled Bessel and Airy functions, and integrals of Bessel functions.

Derivatives by x follow DLMF 10.6 and 9.2, and for an integral its integrand: DLMF 10.22, 11.7,
9.10 and 7.2. The functions run on the CPU only, as CuPy lacks them.
"""

import math

import numpy as np

from gpugrad.errors import DTypeError
from gpugrad.ops._scipy import library
from gpugrad.ops.special.bessel import _half_difference, _order_op
from gpugrad.ops.special.common import need_real, scipy_op
from gpugrad.ops.special.primitives import few, primitive

_NO_ORDER = " The gradient by the order `v` is not known; asking for it raises NoGradientError."

jve = _order_op("jve(v, x)", (0.3, 5), lambda xp, g, v, x: g * _half_difference(xp.jve, v, x))(
    doc=f"`jv`: the scale exp(-|Im x|) differs from 1 for complex numbers only.{_NO_ORDER}",
    example=("0, [0.0, 1.0]", "[1.        0.7651977]"),
)
yve = _order_op(
    "yve(v, x)", (0.5, 5), lambda xp, g, v, x: xp.masked_multiply(g, _half_difference(xp.yve, v, x))
)(
    doc=f"`yv`: the scale exp(-|Im x|) differs from 1 for complex numbers only.{_NO_ORDER}",
    example=("0, [1.0, 2.0]", "[0.08825696 0.5103757 ]"),
)


def _hankel(name, turn, doc, example):
    """A Hankel function, times exp(-`turn` z)."""
    function = library(name)

    def forward(xp, v, z):
        need_real(xp, v)
        floats = [a for a in (v, z) if not hasattr(a, "dtype") or a.dtype.kind in "fc"]
        dtype = xp.lib.result_type(*floats, xp.lib.complex64)  # a number is weak
        v, z = xp.lib.asarray(v), xp.lib.asarray(z)
        if z.dtype.kind == "O":  # a Python int of more than 64 bits
            z = z.astype(xp.lib.float64)
        return xp.lib.asarray(
            function(xp, v.astype(xp.lib.float64), z.astype("complex128"))
        ).astype(dtype)

    def by_z(xp, g, out, v, z):
        slope = _half_difference(getattr(xp, name), v, z) - turn * out
        g = g * xp.conj(slope)
        return g if z.dtype.kind == "c" else xp.real(g)

    return scipy_op(
        f"{name}(v, z)",
        forward=forward,
        vjp=[..., by_z],
        kinds="fc",
        samples=few((0.4, 2), (0.5, 4)),
    )(doc=f"{doc}, a complex number.{_NO_ORDER}", example=("0.0, [1.0, 2.0]", example))


hankel1 = _hankel(
    "hankel1",
    0,
    "Hankel function of the first kind, of real order",
    "[0.7651977 +0.08825696j 0.22389078+0.5103757j ]",
)
hankel2 = _hankel(
    "hankel2",
    0,
    "Hankel function of the second kind, of real order",
    "[0.7651977 -0.08825696j 0.22389078-0.5103757j ]",
)
hankel1e = _hankel(
    "hankel1e", 1j, "exp(-i z) times `hankel1`", "[0.48770374-0.5962062j  0.37091184-0.41597453j]"
)
hankel2e = _hankel(
    "hankel2e", -1j, "exp(i z) times `hankel2`", "[0.48770374+0.5962062j  0.37091184+0.41597453j]"
)


def _besselpoly_a(xp, g, out, a, lmb, nu):
    """As J_nu' = nu / y J_nu - J_(nu + 1), without a division where nu is 0."""
    more = 2 * xp.besselpoly(a, lmb + 1, nu + 1)
    none = xp.equal(nu, 0)
    return g * (xp.where(none, 0, nu * out / xp.where(none, 1, a)) - more)


besselpoly = scipy_op(
    "besselpoly(a, lmb, nu)", vjp=[_besselpoly_a, ..., ...], domain=((0.3, 2), (0.2, 2), (0.3, 2))
)(
    doc="Integral of x^lmb J_nu(2 a x) from 0 to 1.\n\n"
    "The gradients by `lmb` and `nu` are not known; asking for one raises.",
    example=("1.0, 0.0, 0.0", "0.71288514"),
)

# ---- of one argument: a function and its slope, or several of both --------------------------


def _integrals(name, count, d, doc, returns, example, domain=(0.3, 4)):
    """Functions of one argument x; `d` are their derivatives, ``(xp, out, x)``."""
    if count == 1:
        return scipy_op(f"{name}(x)", lambda xp, x: d(xp, None, x)[0], domain=domain)(
            doc=doc, example=example
        )

    def by_x(xp, g, out, x):
        terms = [a * b for a, b in zip(g, d(xp, out, x), strict=True)]
        return sum(terms[1:], terms[0])

    return primitive(
        f"{name}(x)",
        [by_x],
        doc,
        f"{returns}, of the shape of `x`.",
        example,
        outputs=count,
        samples=few(domain),
        errors=[(["text"], {}, DTypeError, "number")],
    )


itj0y0 = _integrals(
    "itj0y0",
    2,
    lambda xp, out, x: (xp.j0(x), xp.y0(x)),
    "Integrals of `j0` and `y0` from 0 to `x`.",
    "Two Tensors",
    ("1.0", "0.9197304 -0.6370694"),
)
iti0k0 = _integrals(
    "iti0k0",
    2,
    lambda xp, out, x: (xp.i0(x), xp.k0(x)),
    "Integrals of `i0` and `k0` from 0 to `x`.",
    "Two Tensors",
    ("1.0", "1.0865211 1.2425098"),
)
it2j0y0 = _integrals(
    "it2j0y0",
    2,
    lambda xp, out, x: ((1 - xp.j0(x)) / x, -xp.y0(x) / x),
    "Integrals of (1 - j0(t)) / t from 0 to `x`, and of y0(t) / t from `x` on.",
    "Two Tensors",
    ("1.0", "0.121165246 0.3952729"),
)
it2i0k0 = _integrals(
    "it2i0k0",
    2,
    lambda xp, out, x: ((xp.i0(x) - 1) / x, -xp.k0(x) / x),
    "Integrals of (i0(t) - 1) / t from 0 to `x`, and of k0(t) / t from `x` on.",
    "Two Tensors",
    ("1.0", "0.12897944 0.2085183"),
)
itairy = _integrals(
    "itairy",
    4,
    lambda xp, out, x: (*xp.airy(x)[::2], *xp.airy(-x)[::2]),
    "Integrals of the Airy functions Ai(t), Bi(t), Ai(-t) and Bi(-t) from 0 to `x`.",
    "Four Tensors",
    ("1.0", "0.23631732 0.87276906 0.46567395 0.37300497"),
    domain=(0.1, 1.5),
)
itstruve0 = _integrals(
    "itstruve0",
    1,
    lambda xp, out, x: (xp.struve(0.0, x),),
    "Integral of the Struve function H of order 0 from 0 to `x`.",
    "",
    ("1.0", "0.30109042"),
)
itmodstruve0 = _integrals(
    "itmodstruve0",
    1,
    lambda xp, out, x: (xp.modstruve(0.0, x),),
    "Integral of the modified Struve function L of order 0 from 0 to `x`.",
    "",
    ("1.0", "0.33647263"),
)
it2struve0 = _integrals(
    "it2struve0",
    1,
    lambda xp, out, x: (-xp.struve(0.0, x) / x,),
    "Integral of the Struve function H of order 0, divided by t, from `x` on.",
    "",
    ("1.0", "0.95719737"),
)


def _airye_slopes(xp, out, z):
    root = xp.sqrt(xp.maximum(z, 0))
    a, da, b, db = out
    return da + root * a, z * a + root * da, db - root * b, z * b - root * db


airye = _integrals(
    "airye",
    4,
    _airye_slopes,
    "Scaled Airy functions of a real number: Ai and Ai' times exp(s), Bi and Bi' times exp(-s).\n\n"
    "With s = 2/3 x^(3/2). Below 0, the first two are NaN.",
    "Four Tensors",
    ("1.0", "0.26351365 -0.30997688 0.61991197 0.47872856"),
)


def _modfresnel(name, sign, doc, example):
    """F = int_x exp(sign i t^2) dt and K = F exp(-sign i (x^2 + pi / 4)) / sqrt(pi): DLMF 7.2."""
    unit = sign * 1j

    def by_x(xp, g, out, x):
        edge = xp.exp(unit * x * x)
        kernel = -np.exp(-0.25 * math.pi * unit) / math.sqrt(math.pi) - 2 * unit * x * out[1]
        return xp.real(g[0] * xp.conj(-edge) + g[1] * xp.conj(kernel))

    return primitive(
        f"{name}(x)",
        [by_x],
        doc,
        "Two complex Tensors of the shape of `x`: F, and K = F exp(-+i (x^2 + pi / 4)) / sqrt(pi).",
        ("1.0", example),
        outputs=2,
        complex_results=True,
        samples=few((0.2, 2)),
        errors=[(["text"], {}, DTypeError, "number")],
    )


modfresnelp = _modfresnel(
    "modfresnelp",
    1,
    "Fresnel's integral F of exp(i t^2) from `x` >= 0 on.",
    "(-0.27786717+0.31638876j) (0.20779406+0.11515989j)",
)
modfresnelm = _modfresnel(
    "modfresnelm",
    -1,
    "Fresnel's integral F of exp(-i t^2) from `x` >= 0 on.",
    "(-0.27786717-0.31638876j) (0.20779406-0.11515989j)",
)
