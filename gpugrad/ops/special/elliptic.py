"""Incomplete elliptic integrals, Jacobi's elliptic functions, and the means behind them.

Derivatives by the parameter m follow DLMF 19.4 and 22.16. Where their differences would cancel,
they are integrals of one family, closed under differentiation: `elliptic_moment`.
"""

import math

import numpy as np

from gpugrad.core.samples import grid
from gpugrad.errors import ShapeError
from gpugrad.ops.special.common import double, formula, need_real, scipy_op
from gpugrad.ops.special.incomplete_gamma import add_node_axis, integrate
from gpugrad.registry.record import elementwise, op


def _integrand(xp, phi, m, j, k):
    square = xp.sin(phi) ** 2
    return square**j * (1 - m * square) ** (-k - 0.5)


def _elliptic_moment(xp, phi, m, j, k):
    need_real(xp, j, k)
    phi, m, dtype = double(xp, phi, m)
    length = phi + 0 * m
    m, j, k = add_node_axis(m + 0 * phi, j, k)
    out = integrate(xp, lambda t: _integrand(xp.lib, t, m, j, k), 0 * length, length)
    return xp.lib.asarray(out).astype(dtype)


def _moment_samples(rng):
    for shape, j, k in (((3,), 1, 0), ((2, 2), 1, 1), ((0, 2), 2, 1)):
        yield [rng.uniform(-1.5, 1.5, shape), rng.uniform(-0.4, 0.4, shape), j, k], {}


def _moment_ref(phi, m, j, k):
    from scipy.integrate import quad

    one = np.vectorize(lambda p, m: quad(lambda t: _integrand(np, t, m, j, k), 0, p)[0], ["d"])
    return one(phi, m)


elliptic_moment = elementwise(
    "elliptic_moment(phi, m, j, k)",
    forward=_elliptic_moment,
    ref=_moment_ref,
    vjp=[
        lambda xp, g, phi, m, j, k: g * _integrand(xp, phi, m, j, k),
        lambda xp, g, phi, m, j, k: g * (k + 0.5) * xp.elliptic_moment(phi, m, j + 1, k + 1),
        None,
        None,
    ],
    samples=_moment_samples,
    errors=[([np.ones(2), np.ones(3), 0, 0], {}, ShapeError, r"\(2,\).*\(3,\)")],
    doc="Integral of sin(t)^(2 j) (1 - m sin(t)^2)^(-k - 1/2) from 0 to `phi`.\n\n"
    "m sin(t)^2 is below 1/2, and `j` and `k` are integers.",
    example=("0.5, 0.0, 0, 0", "0.5"),
    captures=True,
)


def _near(xp, phi, m):
    """Whether differences would cancel, and `m` there, and beyond."""
    most = xp.where(xp.abs(phi) < 0.5 * math.pi, xp.sin(phi) ** 2, 1)
    near = xp.logical_and(xp.abs(m) * most < 0.5, xp.abs(phi) < 4)
    return near, xp.where(near, m, 0), xp.where(near, 0.5, m)


def _d(xp, phi, m):
    """(F - E) / m, the integral of sin^2 / sqrt(1 - m sin^2)."""
    near, small, m = _near(xp, phi, m)
    far = (xp.ellipkinc(phi, m) - xp.ellipeinc(phi, m)) / m
    return xp.where(near, xp.elliptic_moment(xp.where(near, phi, 0), small, 1, 0), far)


def _f_m(xp, phi, m):
    near, small, m = _near(xp, phi, m)
    sine = xp.sin(phi)
    edge = sine * xp.cos(phi) / xp.sqrt(1 - m * sine * sine)
    far = 0.5 * (xp.ellipkinc(phi, m) - _d(xp, phi, m) - edge) / (1 - m)
    return xp.where(near, 0.5 * xp.elliptic_moment(xp.where(near, phi, 0), small, 1, 1), far)


_INCOMPLETE = {"domain": ((-1.4, 1.4), (-2, 0.9)), "singular": True, "captures": True}

ellipkinc = scipy_op(
    "ellipkinc(phi, m)", lambda xp, phi, m: _integrand(xp, phi, m, 0, 0), _f_m, **_INCOMPLETE
)(
    doc="Incomplete elliptic integral of the first kind, of the amplitude `phi`.",
    example=("[0.0, 1.0], 0.5", "[0.        1.0832168]"),
)
ellipeinc = scipy_op(
    "ellipeinc(phi, m)",
    lambda xp, phi, m: xp.sqrt(1 - m * xp.sin(phi) ** 2),
    lambda xp, phi, m: -0.5 * _d(xp, phi, m),
    **_INCOMPLETE,
)(
    doc="Incomplete elliptic integral of the second kind, of the amplitude `phi`.",
    example=("[0.0, 1.0], 0.5", "[0.        0.9273299]"),
)


def _ellipj_vjp(xp, g, out, m, u_shape, m_shape):
    """dph/du is dn, and dph/dm is -dn dF/dm; sn, cn and dn are functions of ph and m."""
    (a, b, c, d), (sn, cn, dn, ph) = g, out
    by_u = (a * cn - b * sn + d) * dn - c * m * sn * cn
    by_m = -by_u * _f_m(xp, ph, m) - 0.5 * c * sn * sn / dn
    return xp.sum_to(by_u, u_shape), xp.sum_to(by_m, m_shape)


@op(
    vjp=_ellipj_vjp,
    outputs=4,
    batch="stack",
    ref="scipy.special.ellipj",
    samples=grid(2, ((-2, 2), (0.1, 0.9))),
    errors=[([np.ones(2), np.ones(3)], {}, ShapeError, r"\(2,\).*\(3,\)")],
    captures=True,
)
def ellipj(xp, u, m, /):
    """Jacobi's elliptic functions sn, cn and dn, and the amplitude.

    Args:
        u: array of any shape.
        m: array of any shape, the parameter, from 0 to 1.

    Returns:
        Four Tensors of the broadcast shape: sn(u|m), cn(u|m), dn(u|m) and the amplitude ph, with
        sn = sin(ph) and cn = cos(ph).

    >>> sn, cn, dn, ph = gg.special.ellipj([0.0, 1.0], 0.5)
    >>> print(sn)
    [0.         0.80300194]
    """
    return xp.special.ellipj(u, m)


def _agm(xp, a, b, /):
    """No product of `a` and `b`, which underflows and overflows before they do."""
    total = a + b
    return 0.25 * math.pi * total / xp.ellipkm1(4 * (a / total) * (b / total))


agm = formula(
    "agm(a, b)",
    _agm,
    doc="Arithmetic-geometric mean of two positive numbers.",
    example=("1.0, [1.0, 4.0]", "[1.        2.2430284]"),
    domain=(0.5, 4),
)
