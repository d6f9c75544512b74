"""Hypergeometric functions, Airy and Kelvin functions, Fresnel integrals and their relatives.

SciPy's functions, with derivatives by x: DLMF 9.2, 10.6, 10.61, 11.4.27, 13.3, 15.5, 16.3 and 7.2.
CuPy has `wright_bessel` only, so the others run on the CPU.
"""

import functools
import math

import numpy as np

from gpugrad.core.backend import NUMPY
from gpugrad.core.samples import grid, shaped
from gpugrad.errors import ArgumentError, DTypeError, ShapeError
from gpugrad.ops._loops import check_order
from gpugrad.ops._scipy import library
from gpugrad.ops.math.arithmetic import unless_infinite
from gpugrad.ops.special.common import formula, scipy_op
from gpugrad.registry.record import op
from gpugrad.registry.rules import conjugate

_NOT_KNOWN = " The gradients by other arguments are not known; asking for one raises."


def _of_x(signature, by_x, doc, example, *, domain, **record):
    """A function of parameters and x, whose derivative by x alone is known."""
    n = signature.count(",")
    wrong = [([*[1.0] * (n - 1), np.ones(2), np.ones(3)], {}, ShapeError, r"\(2,\).*\(3,\)")]
    rules = {"vjp": [*[...] * n, by_x], "samples": grid(n + 1, domain), "errors": wrong}
    return scipy_op(signature, **rules | record)(doc=doc + _NOT_KNOWN, example=example)


_PARAMETER = (0.6, 3)

hyp0f1 = _of_x(
    "hyp0f1(v, x)",
    lambda xp, g, v, x: g * xp.hyp0f1(v + 1, x) / v,
    "Confluent hypergeometric limit function 0F1.",
    ("1.0, [0.0, 1.0]", "[1.        2.2795854]"),
    domain=(_PARAMETER, (-2, 2)),
)
hyp1f1 = _of_x(
    "hyp1f1(a, b, x)",
    lambda xp, g, a, b, x: g * a / b * xp.hyp1f1(a + 1, b + 1, x),
    "Confluent hypergeometric function 1F1, Kummer's M.",
    ("1.0, 1.0, [0.0, 1.0]", "[1.        2.7182817]"),
    domain=(_PARAMETER, _PARAMETER, (-2, 2)),
)
hyp2f1 = _of_x(
    "hyp2f1(a, b, c, x)",
    lambda xp, g, a, b, c, x: g * a * b / c * xp.hyp2f1(a + 1, b + 1, c + 1, x),
    "Gauss's hypergeometric function 2F1.",
    ("1.0, 1.0, 2.0, [0.0, 0.5]", "[1.        1.3862944]"),
    domain=(_PARAMETER, _PARAMETER, _PARAMETER, (-0.9, 0.6)),
)
hyperu = _of_x(
    "hyperu(a, b, x)",
    lambda xp, g, a, b, x: -g * a * xp.hyperu(a + 1, b + 1, x),
    "Confluent hypergeometric function U, Tricomi's.",
    ("1.0, 2.0, [1.0, 2.0]", "[1.  0.5]"),
    domain=(_PARAMETER, _PARAMETER, (0.5, 3)),
)
wright_bessel = _of_x(
    "wright_bessel(a, b, x)",
    lambda xp, g, a, b, x: g * xp.wright_bessel(a, b + a, x),
    "Wright's generalised Bessel function: the sum of x^k / (k! gamma(a k + b)).",
    ("1.0, 1.0, [0.0, 1.0]", "[1.        2.2795854]"),
    domain=(_PARAMETER, _PARAMETER, (0.3, 2)),
    captures=True,
)
log_wright_bessel = _of_x(
    "log_wright_bessel(a, b, x)",
    lambda xp, g, out, a, b, x: g * xp.exp(xp.log_wright_bessel(a, b + a, x) - out),
    "The logarithm of `wright_bessel`, which does not overflow.",
    ("1.0, 1.0, [0.0, 1.0]", "[0.         0.82399356]"),
    domain=(_PARAMETER, _PARAMETER, (0.3, 2)),
)
struve = _of_x(
    "struve(v, x)",
    lambda xp, g, out, v, x: g * (xp.struve(v - 1, x) - v / x * out),
    "Struve function H.",
    ("0.0, [0.0, 1.0]", "[0.        0.5686566]"),
    domain=((0.3, 2), (0.5, 3)),
)
modstruve = _of_x(
    "modstruve(v, x)",
    lambda xp, g, out, v, x: g * (xp.modstruve(v - 1, x) - v / x * out),
    "Modified Struve function L.",
    ("0.0, [0.0, 1.0]", "[0.         0.71024317]"),
    domain=((0.3, 2), (0.5, 3)),
)
zetac = scipy_op("zetac(x)", vjp=[...], domain=(1.5, 4), captures=True)(
    doc="Riemann's zeta function minus 1, exact also where that is near 0.\n\nThe gradient is not "
    "known; asking for it raises NoGradientError.",
    example=("[2.0, 4.0]", "[0.6449341  0.08232323]"),
)

# ---- error functions of complex numbers, and their relatives -------------------------------

_ROOT = 2 / math.sqrt(math.pi)

erfi = scipy_op("erfi(x)", lambda xp, x: _ROOT * xp.exp(x * x), kinds="fc")(
    doc="Imaginary error function, -i erf(i x).", example=("[0.0, 1.0]", "[0.        1.6504257]")
)


def _wofz(xp, z):
    z = xp.lib.asarray(z)
    return library("wofz")(xp, z.astype(xp.lib.result_type(z, xp.lib.complex64), copy=False))


def _wofz_vjp(xp, g, out, z, z_dtype):
    g = g * xp.conj(1j * _ROOT - 2 * z * out)
    return g if z_dtype.kind == "c" else xp.real(g)


wofz = scipy_op("wofz(z)", forward=_wofz, vjp=[_wofz_vjp], kinds="fc")(
    doc="Faddeeva's function exp(-z^2) erfc(-i z), a complex number.",
    example=("[0.0, 1.0]", "[1.        +0.j         0.36787945+0.60715777j]"),
)
voigt_profile = formula(
    "voigt_profile(x, sigma, gamma)",
    lambda xp, x, sigma, gamma, /: (
        xp.real(xp.wofz((x + 1j * gamma) / (math.sqrt(2) * sigma)))
        / (math.sqrt(2 * math.pi) * sigma)
    ),
    doc="Density of a sum of normal and Cauchy variables, of the scales `sigma` > 0 and `gamma`.",
    example=("[0.0, 1.0], 1.0, 1.0", "[0.20870928 0.16579602]"),
    domain=((-2, 2), (0.5, 2), (0.5, 2)),
)
wrightomega = scipy_op("wrightomega(z)", lambda xp, out: out / (1 + out), kinds="f")(
    doc="The solution of w + log(w) = `z`, real `z` only.",
    example=("[1.0, 2.0]", "[1.        1.5571456]"),
)
powm1 = scipy_op(
    "powm1(x, y)",
    lambda xp, x, y: y * x ** (y - 1),
    lambda xp, out, x: (1 + out) * xp.log(x),
    domain=((0.5, 3), (-2, 2)),
)(doc="x^y - 1, exact also where that is near 0.", example=("2.0, [0.0, 3.0]", "[0. 7.]"))


_several = functools.partial(
    op,
    batch="stack",
    samples=shaped([(4,)], [()], [(0, 2)], [(2, 2)]),
    errors=[(["text"], {}, DTypeError, "number")],
)


@_several(
    outputs=2,
    ref="scipy.special.fresnel",
    vjp=[
        lambda xp, g, z: g[0] * xp.sin(0.5 * math.pi * z * z) + g[1] * xp.cos(0.5 * math.pi * z * z)
    ],
)
def fresnel(xp, z, /):
    """Fresnel's integrals of sin(pi t^2 / 2) and cos(pi t^2 / 2) from 0 to `z`.

    Returns:
        Two Tensors of the shape of `z`.

    >>> print(*gg.special.fresnel(1.0))
    0.43825915 0.7798934
    """
    return library("fresnel")(xp, z)


@_several(
    outputs=4,
    ref="scipy.special.airy",
    vjp=[
        lambda xp, g, out, z: g[0] * out[1] + g[1] * z * out[0] + g[2] * out[3] + g[3] * z * out[2]
    ],
)
def airy(xp, z, /):
    """Airy functions and their derivatives.

    Returns:
        Four Tensors of the shape of `z`: Ai, Ai', Bi and Bi'.

    >>> print(*gg.special.airy(0.0))
    0.35502806 -0.25881943 0.61492664 0.44828835
    """
    return library("airy")(xp, z)


# Kelvin functions y(x) = ber, bei, ker, kei: y'' = -+ the other - y' / x.


def _kelvin(name, other, sign, example, domain=(0.5, 4)):
    """A Kelvin function and its derivative, as ops."""
    slope = f"{name}p"
    base = scipy_op(f"{name}(x)", lambda xp, x: getattr(xp, slope)(x), domain=domain)(
        doc=f"Kelvin function {name}.", example=(f"{1.0}", example[0])
    )
    derivative = scipy_op(
        f"{slope}(x)", lambda xp, out, x: sign * getattr(xp, other)(x) - out / x, domain=domain
    )(doc=f"Derivative of the Kelvin function {name}.", example=(f"{1.0}", example[1]))
    return base, derivative


ber, berp = _kelvin("ber", "bei", -1, ("0.98438179", "-0.06244575"))
bei, beip = _kelvin("bei", "ber", 1, ("0.24956604", "0.4973965"))
ker, kerp = _kelvin("ker", "kei", -1, ("0.2867062", "-0.69460387"))
kei, keip = _kelvin("kei", "ker", 1, ("-0.49499464", "0.352369"))

# ---- spherical Bessel functions (DLMF 10.51), as `spherical_jn` ----------------------------


def _spherical(name, sign, what, domain, example):
    """The op of a spherical Bessel function; its derivative is `sign` f_(n+1) + n / z f_n."""

    def vjp(xp, g, out, z, n):
        z = unless_infinite(z)
        slope = sign * getattr(xp, name)(z, n=n + 1) + (n / z * out if n else 0)
        return g * conjugate(xp, slope)

    def forward(xp, z, /, *, n=0):
        n = check_order(name, "n", n, 0, 10_000)
        z = xp.lib.asarray(z)
        return library(name)(xp, xp.lib.asarray(n), z).astype(
            xp.lib.result_type(z, xp.lib.float32), copy=False
        )

    forward.__doc__ = f"""The op behind `gg.special.{name}`: {what} of order `n`."""
    return op(
        vjp=[vjp],
        name=name,
        batch="stack",
        samples=shaped([(4,)], ([()], {"n": 1}), [(0, 2)], ([(2, 3)], {"n": 2}), domain=domain),
        ref=lambda z, n=0: getattr(NUMPY.special, name)(n, z),
        errors=[([np.ones(2)], {"n": -1}, ArgumentError, "n=-1")],
    )(forward)


spherical_yn = _spherical("spherical_yn", -1, "second kind", (0.5, 9), "")
spherical_in = _spherical("spherical_in", 1, "modified, first kind", (-3, 3), "")
spherical_kn = _spherical("spherical_kn", -1, "modified, second kind", (0.5, 4), "")
