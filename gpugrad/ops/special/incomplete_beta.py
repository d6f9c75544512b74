"""The incomplete beta functions, with gradients by all three arguments.

As for the incomplete gamma functions (see there), the gradient by a is an integral over the side
of x on which the integrand does not change sign. With D = digamma(a + 1) - digamma(a + b) - ln x,
y = 1 - x, n = a + b + 1, K = x^a y^b gamma(a + b) / (gamma(a + 1) gamma(b + 1)), and s the
distance from x in the logarithm of the odds, z = y + x e^-s, w = x + y e^-s,

    dI/da = -K b (D + x int ((a + b) (D + s + ln z) - 1) e^(-(a + 1) s) z^-n ds),
    dI/da = -K (1 - a D + y int ((a + b) (1 - a D - a ln w) + a) e^(-(b + 1) s) w^-n ds),

the first for (a + b) D > 1, else the second. Both use a recurrence once (DLMF 8.17.20 and 8.17.21),
so that they also hold for small a and b. The gradient by b is that of 1 - I(b, a, y) by its first
argument. The integrals belong to one family, closed under differentiation: `beta_moment`. For
large arrays on a CPU, `kernels/cpu/incomplete.cpp` differentiates a continued fraction instead.
"""

from typing import Any

import numpy as np

from gpugrad.core.backend import NUMPY
from gpugrad.core.samples import grid
from gpugrad.errors import ShapeError
from gpugrad.kernels.cpu import incomplete
from gpugrad.kernels.cpu.large import steps_unless
from gpugrad.ops._scipy import library_has
from gpugrad.ops.math.arithmetic import unless_infinite
from gpugrad.ops.special.common import double, need_real, scipy_op
from gpugrad.ops.special.incomplete_gamma import DECAY, add_node_axis, integrate, mask_limits
from gpugrad.registry.record import elementwise, op

NEWTON = 14  # steps towards the point where an integrand has vanished, from beyond it
_SAMPLES = grid(3, ((0.4, 4), (0.4, 4), (0.1, 0.9)))


def _few_samples(rng):
    """Fewer than `_SAMPLES`, for ops whose checks take long."""
    for a, b, x in (((3,), (3,), (3,)), ((2, 1), (2,), ()), ((0, 2), (), ())):
        arrays = rng.uniform(0.4, 4, a), rng.uniform(0.4, 4, b), rng.uniform(0.1, 0.9, x)
        yield [np.asarray(v) for v in arrays], {}


def _beta_moment(xp, c, n, x, y, j, k):
    """The decay c s + n ln z is convex: Newton's method from beyond never overshoots.

    Where ln(x / y) is positive the integrand is flat up to that point, with poles near it in the
    complex plane, so the integral is split there.
    """
    lib = xp.lib
    need_real(xp, j, k)
    c, n, x, y, dtype = double(xp, c, n, x, y)
    end = lib.minimum((DECAY - n * lib.log(y)) / c, DECAY / lib.maximum(c - n * x, 1e-300))
    for _ in range(NEWTON):
        e = lib.exp(-end)
        z = y + x * e
        end = end - (c * end + n * lib.log(z) - DECAY) / (c - n * x * e / z)
    middle = lib.minimum(lib.maximum(lib.log(x / y), 0.0), end)
    c, n, x, y, j, k = add_node_axis(c, n, x, y, j, k)
    rest = x + y - 1  # only rounding, unless x and y are varied independently

    def integrand(s):
        change = rest + x * lib.expm1(-s)
        near = change > -0.5
        far = lib.log(lib.where(near, 1.0, y + x * lib.exp(-s)))
        log = lib.where(near, lib.log1p(lib.where(near, change, 0.0)), far)
        return s**j * log**k * lib.exp(-c * s - n * log)

    first = integrate(xp, integrand, 0 * end, middle)
    second = integrate(xp, integrand, middle, end - middle)
    return lib.asarray(first + second).astype(dtype)


def _beta_moment_ref(c, n, x, y, j, k):
    from scipy.integrate import quad

    def one(c, n, x, y, j, k):
        def f(s):
            z = y + x * np.exp(-s)
            return s**j * np.log(z) ** k * np.exp(-c * s) * z**-n

        return quad(f, 0, 3, epsabs=0, epsrel=1e-13)[0] + quad(f, 3, 25, epsabs=1e-18)[0]

    return np.vectorize(one, otypes=[float])(c, n, x, y, j, k)


def _by_z(xp, c, n, x, y, j, k):
    """The integral of the derivative of ln^k(z) z^-n by z."""
    d = -n * xp.beta_moment(c, n + 1, x, y, j, k)
    if type(k) is int and k == 0:
        return d
    return d + k * xp.beta_moment(c, n + 1, x, y, j, k - 1 + (k == 0))


def _beta_moment_samples(rng):
    for shape, j, k in (((3,), 0, 0), ((2, 2), 1, 0), ((0, 2), 0, 1), ((), 0, 1)):
        c, n = rng.uniform(3, 4, shape), rng.uniform(3, 4, shape)
        x = rng.uniform(0.3, 0.7, shape)
        yield [np.asarray(v) for v in (c, n, x, 1 - x)] + [j, k], {}


beta_moment = elementwise(
    "beta_moment(c, n, x, y, j, k)",
    forward=_beta_moment,
    ref=_beta_moment_ref,
    vjp=[
        lambda xp, g, c, n, x, y, j, k: -g * xp.beta_moment(c, n, x, y, j + 1, k),
        lambda xp, g, c, n, x, y, j, k: -g * xp.beta_moment(c, n, x, y, j, k + 1),
        lambda xp, g, c, n, x, y, j, k: g * _by_z(xp, c + 1, n, x, y, j, k),
        lambda xp, g, c, n, x, y, j, k: g * _by_z(xp, c, n, x, y, j, k),
        None,
        None,
    ],
    samples=_beta_moment_samples,
    errors=[([np.ones(2), np.ones(3), 0.5, 0.5, 0, 0], {}, ShapeError, r"\(2,\).*\(3,\)")],
    doc="Integral of s^j ln(z)^k e^(-c s) z^-n for positive s, where z = y + x e^-s.\n\n"
    "`x` + `y` is 1, c is above n x, and `j` and `k` are integers.",
    example=("2.0, 2.0, 0.5, 0.5, 0, 0", "0.77258873"),
    captures=True,
)


def _beta_log_scale(xp, a, b, x, y):
    a, b, x, y, dtype = double(xp, a, b, x, y)
    powers = xp.special.xlogy(a, x) + xp.special.xlogy(b, y)
    shift = xp.lib.log((a + b) * (a + b + 1))  # where a or b is 0, only B(a + 1, b + 1) is finite
    return (powers - xp.special.betaln(a + 1, b + 1) - shift).astype(dtype)


def _beta_log_scale_samples(rng):
    for arrays, _ in _SAMPLES(rng):
        yield [*arrays, np.asarray(1 - arrays[2])], {}


def _log_scale_a(xp, a, b, x):
    return xp.log(x) - xp.digamma(a + 1) + xp.digamma(a + b)


beta_log_scale = elementwise(
    "beta_log_scale(a, b, x, y)",
    forward=_beta_log_scale,
    singular=True,
    ref=lambda a, b, x, y: np.log(x**a * y**b / (a * b * NUMPY.special.beta(a, b))),
    d=[
        lambda xp, a, b, x: _log_scale_a(xp, a, b, x),
        lambda xp, a, b, y: _log_scale_a(xp, b, a, y),
        lambda xp, a, x: a / unless_infinite(x),
        lambda xp, b, y: b / unless_infinite(y),
    ],
    samples=_beta_log_scale_samples,
    errors=[([np.ones(2), np.ones(3), 0.5, 0.5], {}, ShapeError, r"\(2,\).*\(3,\)")],
    doc="log(x^a y^b gamma(a + b) / (gamma(a + 1) gamma(b + 1))).",
    example=("1.0, 1.0, 0.5, 0.5", "-1.3862944"),
    captures=True,
)


def _valid(xp, a, b, x, y):
    parameters = xp.logical_and(xp.logical_and(a >= 0, b >= 0), a + b > 0)
    return xp.logical_and(parameters, xp.logical_and(x >= 0, y >= 0))


def _gradient(xp, a, b, x, y):
    """The derivative of I(a, b, x) by a; y is 1 - x.

    It is NaN for finite parameters of 2^50 or more, where its terms cancel to no digit.
    """
    everything = a + b + x + 0.0
    known = xp.logical_or(a + b < 2.0**50, xp.isinf(a + b))
    valid = xp.logical_and(_valid(xp, a, b, x, y), known)
    inside = xp.logical_and(xp.logical_and(x > 0, y > 0), xp.isfinite(everything))
    ordinary = xp.logical_and(valid, inside)
    a, b, x, y = (xp.where(ordinary, v, safe) for v, safe in ((a, 1), (b, 1), (x, 0.5), (y, 0.5)))
    total = a + b
    d = xp.digamma(a + 1) - xp.digamma(total) - xp.log(x)
    below = total * d > 1
    c = xp.where(below, a, b) + 1
    near, far = xp.where(below, x, y), xp.where(below, y, x)
    zeroth = xp.beta_moment(c, total + 1, near, far, 0, 0)
    first = xp.beta_moment(c, total + 1, near, far, 1, 0)
    log = xp.beta_moment(c, total + 1, near, far, 0, 1)
    lower = b * (d + x * ((total * d - 1) * zeroth + total * (first + log)))
    rest = 1 - a * d
    upper = rest + y * ((total * rest + a) * zeroth - total * a * log)
    gradient = -xp.exp(xp.beta_log_scale(a, b, x, y)) * xp.where(below, lower, upper)
    return xp.astype(mask_limits(xp, valid, ordinary, gradient), everything.dtype)


def _betainc_grad_a_ref(a, b, x):
    from scipy.integrate import quad

    def one(a, b, x):
        def f(s):
            t = x * np.exp(-s)
            return (np.log(t) - mean) * np.exp(-a * s) * (1 - t) ** (b - 1)

        mean = NUMPY.special.digamma(a) - NUMPY.special.digamma(a + b)
        whole = quad(f, 0, 2, epsrel=1e-13)[0] + quad(f, 2, 60 / a, epsrel=1e-13, limit=500)[0]
        return whole * x**a / NUMPY.special.beta(a, b)

    return np.vectorize(one, otypes=[float])(a, b, x)


_WRONG: list[Any] = [([np.ones(2), np.ones(3), 0.5], {}, ShapeError, r"\(2,\).*\(3,\)")]


def _betainc_grad(name, gradient, ref, position):
    """`betainc_grad_a` or `betainc_grad_b`."""

    def betainc_grad(xp, a, b, x, /):
        return gradient(xp, a, b, x)

    betainc_grad.__doc__ = f"""The derivative of `betainc` by its {position} parameter.

    Its relative error is about 1e-12, and 1e-10 for `a` and `b` of 1e4. On a CPU, arrays of 512
    elements are computed in C, in float64.
    """
    return op(
        name=name,
        cpu=incomplete.beta_slopes(position == "second"),
        opens=steps_unless(incomplete.takes),
        samples=_few_samples,
        ref=ref,
        errors=_WRONG,
    )(betainc_grad)


betainc_grad_a = _betainc_grad(
    "betainc_grad_a",
    lambda xp, a, b, x: _gradient(xp, a, b, x, 1 - x),
    _betainc_grad_a_ref,
    "first",
)

betainc_grad_b = _betainc_grad(
    "betainc_grad_b",
    lambda xp, a, b, x: -_gradient(xp, b, a, 1 - x, x),
    lambda a, b, x: -_betainc_grad_a_ref(b, a, 1 - x),
    "second",
)


def _density(xp, a, b, x):
    """dI/dx = x^(a - 1) (1 - x)^(b - 1) / B(a, b), finite at 0 for a = 1."""
    valid = _valid(xp, a, b, x, 1 - x)
    ordinary = xp.logical_and(valid, xp.isfinite(a + b))
    a, b, x = (xp.where(ordinary, v, safe) for v, safe in ((a, 1), (b, 1), (x, 0.5)))
    edge = xp.logical_or(x == 0, x == 1)  # where logarithms have no derivatives, but powers do
    inside, scale = xp.where(edge, 0.5, x), xp.betaln(a, b)
    log = xp.xlogy(a - 1, inside) + xp.xlog1py(b - 1, -inside) - scale
    power = xp.where(edge, x, 0.5)
    power = power ** (a - 1) * (1 - power) ** (b - 1) * xp.exp(xp.minimum(-scale, 80.0))
    return mask_limits(xp, valid, ordinary, xp.where(edge, power, xp.exp(log)))


_SINGULAR = {"singular": True, "errors": _WRONG, "captures": True}

betainc = scipy_op(
    "betainc(a, b, x)",
    lambda xp, a, b, x: xp.betainc_grad_a(a, b, x),
    lambda xp, a, b, x: xp.betainc_grad_b(a, b, x),
    _density,
    samples=_few_samples,
    **_SINGULAR,
)(
    doc="Regularised incomplete beta function, with gradients by all three arguments.\n\n"
    "The integral of t^(a - 1) (1 - t)^(b - 1) from 0 to `x`, divided by beta(a, b).",
    example=("1.0, 2.0, [0.0, 0.5]", "[0.   0.75]"),
)


def _betaincc(xp, a, b, x):
    if library_has(xp, "betaincc"):
        return xp.special.betaincc(a, b, x)
    return xp.special.betainc(b, a, 1 - x)  # by symmetry: CuPy has no betaincc


betaincc = scipy_op(
    "betaincc(a, b, x)",
    lambda xp, a, b, x: -xp.betainc_grad_a(a, b, x),
    lambda xp, a, b, x: -xp.betainc_grad_b(a, b, x),
    lambda xp, a, b, x: -_density(xp, a, b, x),
    forward=_betaincc,
    samples=_few_samples,
    **_SINGULAR,
)(
    doc="1 - `betainc`, the integral from `x` to 1, exact also where that is near 0.",
    example=("1.0, 2.0, [0.0, 0.5]", "[1.   0.25]"),
)


def _by_parameter(xp, d, a, b, x):
    """Derivative of the root x of I(a, b, x) = y by a parameter; `d` is the derivative of I."""
    return -d / _density(xp, a, b, x)


betaincinv = scipy_op(
    "betaincinv(a, b, y)",
    lambda xp, out, a, b: _by_parameter(xp, xp.betainc_grad_a(a, b, out), a, b, out),
    lambda xp, out, a, b: _by_parameter(xp, xp.betainc_grad_b(a, b, out), a, b, out),
    lambda xp, out, a, b: 1 / _density(xp, a, b, out),
    samples=grid(3, ((0.5, 4), (0.5, 4), (0.1, 0.9))),
    **_SINGULAR,
)(doc="The `x` for which betainc(a, b, x) is `y`.", example=("1.0, 2.0, [0.0, 0.75]", "[0.  0.5]"))


def _betainccinv(xp, a, b, y):
    if library_has(xp, "betainccinv"):
        return xp.special.betainccinv(a, b, y)
    return 1 - xp.special.betaincinv(b, a, y)  # by symmetry: CuPy has no betainccinv


betainccinv = scipy_op(
    "betainccinv(a, b, y)",
    lambda xp, out, a, b: _by_parameter(xp, xp.betainc_grad_a(a, b, out), a, b, out),
    lambda xp, out, a, b: _by_parameter(xp, xp.betainc_grad_b(a, b, out), a, b, out),
    lambda xp, out, a, b: -1 / _density(xp, a, b, out),
    forward=_betainccinv,
    samples=_few_samples,
    **_SINGULAR,
)(doc="The `x` for which betaincc(a, b, x) is `y`.", example=("1.0, 2.0, [1.0, 0.25]", "[0.  0.5]"))
