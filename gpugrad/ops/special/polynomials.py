"""Orthogonal polynomials, associated Legendre functions and spherical harmonics.

Derivatives by x follow DLMF 18.9.15 to 18.9.28 and 14.10.5; those of the harmonics use the
neighbouring orders, which divides by nothing at the poles (DLMF 14.10.1). Derivatives by the degree
and by the parameters are not known.
"""

from typing import Any

import numpy as np

from gpugrad.errors import ShapeError
from gpugrad.ops.special.common import are_arrays, counted, formula, library_of_order, scipy_op
from gpugrad.ops.special.distributions import floored

_DEGREES = [0, 1, 2, 5]
_NOT_KNOWN = "\n\nGradients by other arguments than `x` are not known; asking for one raises."


def _lower(xp, n, slope):
    """`slope` of the degree n - 1, and 0 where `n` is 0."""
    if not hasattr(n, "dtype"):
        return slope(n - 1) if n >= 1 else 0.0 * slope(0)
    return xp.where(n < 1, 0, slope(xp.where(n < 1, 0, n - 1)))


def _polynomial(signature, by_x, what, example, parameters=0):
    """An op of a degree, parameters and x."""
    wrong = [1, *[1.0] * parameters, np.ones(2)]
    wrong[-2] = np.ones(3, int if parameters == 0 else float)
    return scipy_op(
        signature,
        forward=library_of_order(signature.partition("(")[0]),
        vjp=[None, *[...] * parameters, by_x],
        samples=counted([_DEGREES], *[(0.5, 2)] * parameters, (-0.9, 0.9)),
        errors=[(wrong, {}, ShapeError, r"\(3,\).*\(2,\)")],
    )(doc=f"{what} of degree `n`." + (_NOT_KNOWN if parameters else ""), example=example)


eval_jacobi = _polynomial(
    "eval_jacobi(n, alpha, beta, x)",
    lambda xp, g, n, alpha, beta, x: (
        g
        * _lower(
            xp, n, lambda n: (n + alpha + beta + 2) / 2 * xp.eval_jacobi(n, alpha + 1, beta + 1, x)
        )
    ),
    "Jacobi polynomial",
    ("1, 0.0, 0.0, [0.0, 0.5]", "[0.  0.5]"),
    parameters=2,
)
eval_gegenbauer = _polynomial(
    "eval_gegenbauer(n, alpha, x)",
    lambda xp, g, n, alpha, x: (
        g * _lower(xp, n, lambda n: 2 * alpha * xp.eval_gegenbauer(n, alpha + 1, x))
    ),
    "Gegenbauer polynomial",
    ("1, 0.5, [0.0, 0.5]", "[0.  0.5]"),
    parameters=1,
)
eval_genlaguerre = _polynomial(
    "eval_genlaguerre(n, alpha, x)",
    lambda xp, g, n, alpha, x: -g * _lower(xp, n, lambda n: xp.eval_genlaguerre(n, alpha + 1, x)),
    "Generalised Laguerre polynomial",
    ("1, 0.0, [0.0, 0.5]", "[1.  0.5]"),
    parameters=1,
)
eval_laguerre = _polynomial(
    "eval_laguerre(n, x)",
    lambda xp, g, n, x: -g * _lower(xp, n, lambda n: xp.eval_genlaguerre(n, 1.0, x)),
    "Laguerre polynomial",
    ("1, [0.0, 0.5]", "[1.  0.5]"),
)
eval_legendre = _polynomial(
    "eval_legendre(n, x)",
    lambda xp, g, n, x: g * _lower(xp, n, lambda n: (n + 2) / 2 * xp.eval_jacobi(n, 1.0, 1.0, x)),
    "Legendre polynomial",
    ("2, [0.0, 0.5]", "[-0.5   -0.125]"),
)
eval_chebyt = _polynomial(
    "eval_chebyt(n, x)",
    lambda xp, g, n, x: g * _lower(xp, n, lambda n: (n + 1) * xp.eval_chebyu(n, x)),
    "Chebyshev polynomial of the first kind",
    ("2, [0.0, 0.5]", "[-1.  -0.5]"),
)
eval_chebyu = _polynomial(
    "eval_chebyu(n, x)",
    lambda xp, g, n, x: 2 * g * _lower(xp, n, lambda n: xp.eval_gegenbauer(n, 2.0, x)),
    "Chebyshev polynomial of the second kind",
    ("2, [0.0, 0.5]", "[-1.  0.]"),
)
eval_hermite = _polynomial(
    "eval_hermite(n, x)",
    lambda xp, g, n, x: 2 * g * _lower(xp, n, lambda n: (n + 1) * xp.eval_hermite(n, x)),
    "Hermite polynomial of the physicists",
    ("2, [0.0, 0.5]", "[-2. -1.]"),
)
eval_hermitenorm = _polynomial(
    "eval_hermitenorm(n, x)",
    lambda xp, g, n, x: g * _lower(xp, n, lambda n: (n + 1) * xp.eval_hermitenorm(n, x)),
    "Hermite polynomial of the probabilists",
    ("2, [0.0, 0.5]", "[-1.   -0.75]"),
)

eval_sh_jacobi = _polynomial(
    "eval_sh_jacobi(n, p, q, x)",
    lambda xp, g, n, p, q, x: (
        g
        / xp.binom(2.0 * n + p - 1, 1.0 * n)
        * _lower(xp, n, lambda n: (n + p + 1) * xp.eval_jacobi(n, p - q + 1, q, 2 * x - 1))
    ),
    "Jacobi polynomial, shifted to [0, 1] and with the leading coefficient 1,",
    ("1, 1.0, 1.0, [0.5, 1.0]", "[0.  0.5]"),
    parameters=2,
)

_ON_UNIT: dict[str, Any] = {"samples": counted([_DEGREES], (0.1, 0.9))}

eval_sh_legendre = formula(
    "eval_sh_legendre(n, x)",
    lambda xp, n, x, /: xp.eval_legendre(n, 2 * x - 1),
    doc="Legendre polynomial of degree `n`, shifted to [0, 1].",
    example=("1, [0.5, 1.0]", "[0. 1.]"),
    **_ON_UNIT,
)
eval_sh_chebyt = formula(
    "eval_sh_chebyt(n, x)",
    lambda xp, n, x, /: xp.eval_chebyt(n, 2 * x - 1),
    doc="Chebyshev polynomial of the first kind of degree `n`, shifted to [0, 1].",
    example=("1, [0.5, 1.0]", "[0. 1.]"),
    **_ON_UNIT,
)
eval_sh_chebyu = formula(
    "eval_sh_chebyu(n, x)",
    lambda xp, n, x, /: xp.eval_chebyu(n, 2 * x - 1),
    doc="Chebyshev polynomial of the second kind of degree `n`, shifted to [0, 1].",
    example=("1, [0.5, 1.0]", "[0. 2.]"),
    **_ON_UNIT,
)

_ON_TWO: dict[str, Any] = {"samples": counted([_DEGREES], (-1.9, 1.9))}

eval_chebyc = formula(
    "eval_chebyc(n, x)",
    lambda xp, n, x, /: 2 * xp.eval_chebyt(n, 0.5 * x),
    doc="Chebyshev polynomial of the first kind of degree `n` on [-2, 2].",
    example=("1, [1.0, 2.0]", "[1. 2.]"),
    **_ON_TWO,
)
eval_chebys = formula(
    "eval_chebys(n, x)",
    lambda xp, n, x, /: xp.eval_chebyu(n, 0.5 * x),
    doc="Chebyshev polynomial of the second kind of degree `n` on [-2, 2].",
    example=("1, [1.0, 2.0]", "[1. 2.]"),
    **_ON_TWO,
)


def _diric(xp, x, n, /):
    """A Chebyshev polynomial of cos(x / 2), which cancels nowhere (DLMF 18.5.2)."""
    wrong = xp.logical_or(n <= 0, xp.not_equal(n, xp.floor(n)))
    n = xp.where(wrong, 1, n)
    return xp.where(wrong, float("nan"), xp.eval_chebyu(n - 1, xp.cos(0.5 * x)) / floored(xp, n, x))


def _diric_samples(rng):
    for (n, x), _ in counted([[1, 2, 5]], (-6, 6))(rng):
        yield [x, n], {}


diric = formula(
    "diric(x, n)",
    _diric,
    doc="Periodic sinc function sin(n x / 2) / (n sin(x / 2)) of a whole number `n` above 0.",
    example=("[0.0, 1.0], 3", "[1.        0.6935349]"),
    samples=_diric_samples,
)

lpmv = scipy_op(
    "lpmv(m, v, x)",
    forward=library_of_order("lpmv"),
    vjp=[
        None,
        ...,
        lambda xp, g, out, m, v, x: xp.masked_multiply(
            g, ((v + m) * xp.lpmv(m, v - 1, x) - v * x * out) / (1 - x * x)
        ),
    ],
    singular=True,
    samples=counted([[0, 1, 2]], (2.2, 4), (-0.8, 0.8)),
    captures=are_arrays,
    errors=[([1, np.ones(2), np.ones(3)], {}, ShapeError, r"\(2,\).*\(3,\)")],
)(
    doc="Associated Legendre function of order `m` and degree `v`, for `x` inside of (-1, 1).\n\n"
    "The gradient by `v` is not known; asking for it raises. At -1 and 1 that by `x` is NaN.",
    example=("1, 1.0, [0.0, 0.6]", "[-1.  -0.8]"),
)


def _harmonic_theta(xp, g, n, m, theta, phi):
    turn = xp.exp(1j * phi)
    above, below = xp.minimum(m + 1, n), xp.maximum(m - 1, -n)  # those beyond have the factor 0
    up = xp.sqrt(1.0 * (n - m) * (n + m + 1)) * xp.sph_harm_y(n, above, theta, phi) / turn
    down = xp.sqrt(1.0 * (n + m) * (n - m + 1)) * xp.sph_harm_y(n, below, theta, phi) * turn
    return xp.real(g * xp.conj(0.5 * (up - down)))


def _sph_harm_y(xp, n, m, theta, phi):
    n, m = (xp.lib.asarray(k) for k in (n, m))
    dtype = xp.lib.result_type(theta, phi, xp.lib.complex64)
    return xp.lib.asarray(xp.special.sph_harm_y(n, m, theta, phi)).astype(dtype)


sph_harm_y = scipy_op(
    "sph_harm_y(n, m, theta, phi)",
    forward=_sph_harm_y,
    vjp=[None, None, _harmonic_theta, lambda xp, g, out, m: xp.real(g * xp.conj(1j * m * out))],
    samples=counted([[1, 2, 3], [-1, 0, 1]], (0.3, 2.8), (-3, 3)),
    captures=are_arrays,
    errors=[([1, 0, np.ones(2), np.ones(3)], {}, ShapeError, r"\(2,\).*\(3,\)")],
)(
    doc="Spherical harmonic of degree `n` and order `m`, a complex number.\n\n"
    "`theta` is the polar angle and `phi` the azimuth. `n` and `m` are integers.",
    example=("1, 0, [0.0, 1.5707964], 0.0", "[ 4.8860252e-01+0.j -2.1357274e-08+0.j]"),
)
