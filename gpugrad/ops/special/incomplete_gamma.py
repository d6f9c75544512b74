"""The incomplete gamma functions, with gradients by both arguments.

The gradient by the parameter a is an integral whose integrand changes sign at ln t = digamma(a).
Over the side of x on which the sign does not change there is no cancellation.
With D = digamma(a + 1) - ln x, K = x^a e^-x / gamma(a + 1) and t = x e^(+-s),

    dP/da = -K int_0^inf (1 - a D + a s) exp(a s - x (e^s - 1)) ds                   if D < 0,
    dP/da = -K (D + x int_0^inf (D + s) exp(-(a + 1) s + x (1 - e^-s)) ds)           if not,

where the second comes from P(a, x) = K + P(a + 1, x) (DLMF 8.8.5), so that it also holds for small
a. The integrals belong to one family, closed under differentiation: `gamma_moment`. For
large arrays on a CPU, `kernels/cpu/incomplete.cpp` differentiates a series or a continued fraction
instead.
"""

import functools

import numpy as np

from gpugrad.core.backend import NUMPY
from gpugrad.core.devices import device_of
from gpugrad.core.samples import grid
from gpugrad.errors import ShapeError
from gpugrad.kernels.cpu import incomplete
from gpugrad.kernels.cpu.large import steps_unless
from gpugrad.ops.special.common import double, need_real, scipy_op
from gpugrad.registry.record import elementwise, op

DECAY = 34.0  # an integral stops where its integrand has fallen by exp(-DECAY), about 2e-15
NEWTON = 8  # steps towards that point, from beyond it
_GAUSS = np.polynomial.legendre.leggauss(34)  # on [-1, 1]
NODES, WEIGHTS = (0.5 + 0.5 * _GAUSS[0]).tolist(), (0.5 * _GAUSS[1]).tolist()
BLOCK = 1 << 20  # nodes times elements that are in memory at a time


@functools.cache
def _rule(lib, device):
    """Nodes and weights on [0, 1]; cached, as a CUDA graph cannot copy them from the host."""
    return lib.asarray(NODES), lib.asarray(WEIGHTS)


def integrate(xp, f, start, length):
    """Gauss-Legendre integral of `f` from `start` over `length`, a few nodes at a time.

    `f` gets its points with a last axis for the nodes.
    """
    nodes, weights = _rule(xp.lib, device_of(length))
    step, total = max(1, BLOCK // max(1, length.size)), 0.0
    for i in range(0, len(NODES), step):
        points = start[..., None] + length[..., None] * nodes[i : i + step]
        total = total + (f(points) * weights[i : i + step]).sum(axis=-1)
    return length * total


def add_node_axis(*values):
    """Arrays with a last axis for the nodes of `integrate`; numbers and 0-d arrays unchanged."""
    return tuple(v[..., None] if getattr(v, "ndim", 0) else v for v in values)


def _gamma_moment(xp, c, x, upper, j, m):
    """The decay x expm1(s) - c s is convex: Newton's method from beyond never overshoots."""
    lib = xp.lib
    need_real(xp, j, m)
    c, x, dtype = double(xp, c, x)
    upper = lib.asarray(upper)
    sign = lib.where(upper, 1.0, -1.0)
    excess = lib.maximum(lib.abs(sign * x - c), 1e-300)
    ratio = DECAY / lib.where(upper, x, lib.abs(c))
    end = lib.minimum(DECAY / excess, lib.where(upper, 0.0, ratio) + lib.sqrt(2 * ratio))
    end = lib.minimum(end, 700.0)
    for _ in range(NEWTON):
        slope = x * sign * lib.exp(sign * end) - c
        end = end - (x * lib.expm1(sign * end) - c * end - DECAY) / slope
    c, x, sign, j, m = add_node_axis(c, x, sign, j, m)

    def integrand(s):
        e = lib.expm1(sign * s)
        return s**j * e**m * lib.exp(c * s - x * e)

    return lib.asarray(integrate(xp, integrand, 0 * end, end)).astype(dtype)


def _gamma_moment_ref(c, x, upper, j, m):
    from scipy.integrate import quad

    def one(c, x, upper, j, m):
        sign = 1 if upper else -1
        f = lambda s: s**j * np.expm1(sign * s) ** m * np.exp(c * s - x * np.expm1(sign * s))  # noqa: E731
        return quad(f, 0, 60 if not upper else 6, epsabs=0, epsrel=1e-13, limit=200)[0]

    return np.vectorize(one, otypes=[float])(c, x, upper, j, m)


def _gamma_moment_samples(rng):
    for shape, upper, j, m in (((3,), True, 0, 0), ((2, 2), False, 1, 0), ((0, 2), True, 0, 1)):
        c = rng.uniform(0.2, 1.5, shape) if upper else rng.uniform(-6, -4, shape)
        yield [c, np.asarray(rng.uniform(2, 3.5, shape)), np.full(shape, upper), j, m], {}


gamma_moment = elementwise(
    "gamma_moment(c, x, upper, j, m)",
    forward=_gamma_moment,
    ref=_gamma_moment_ref,
    vjp=[
        lambda xp, g, c, x, upper, j, m: g * xp.gamma_moment(c, x, upper, j + 1, m),
        lambda xp, g, c, x, upper, j, m: -g * xp.gamma_moment(c, x, upper, j, m + 1),
        None,
        None,
        None,
    ],
    samples=_gamma_moment_samples,
    errors=[([np.ones(2), np.ones(3), True, 0, 0], {}, ShapeError, r"\(2,\).*\(3,\)")],
    doc="Integral of s^j e^m exp(c s - x e) for positive s, where `j` and `m` are integers.\n\n"
    "e is expm1(s) if `upper`, which needs x > c, else expm1(-s), which needs x < -c.",
    example=("0.0, 2.0, True, 0, 0", "0.36132863"),
    captures=True,
)


_SAMPLES = grid(2, ((0.3, 4), (0.3, 8)))
_INVERSE = {"singular": True, "samples": grid(2, ((0.5, 4), (0.1, 0.9)))}


def _scale(xp, a, x):
    """x^a e^-x / gamma(a + 1)."""
    return xp.exp(xp.gamma_log_scale(a, x))


def _gamma_log_scale(xp, a, x):
    """Near x = a it is -a (u - log1p(u)) with u = (x - a) / a, without cancellation."""
    lib = xp.lib
    a, x, dtype = double(xp, a, x)
    large = a > 20
    b = lib.where(large, a, 20.0)
    u = (x - b) / b
    near = lib.abs(u) < 0.5
    log = lib.where(near, lib.log1p(lib.where(near, u, 0.0)), 0.0)
    direct = xp.special.xlogy(a, x) - x - xp.special.gammaln(a + 1)
    inverse = 1 / b
    square = inverse * inverse  # Stirling's series, DLMF 5.11.1
    stirling = inverse * (
        1 / 12 - square * (1 / 360 - square * (1 / 1260 - square * (1 / 1680 - square / 1188)))
    )
    about = -b * (u - log) - 0.5 * lib.log(2 * np.pi * b) - stirling
    return lib.where(large & near, about, direct).astype(dtype)


gamma_log_scale = elementwise(
    "gamma_log_scale(a, x)",
    forward=_gamma_log_scale,
    singular=True,
    ref=lambda a, x: a * np.log(x) - x - NUMPY.special.gammaln(a + 1),
    d=[lambda xp, a, x: xp.log(x) - xp.digamma(a + 1), lambda xp, a, x: a / x - 1],
    samples=grid(2, ((0.3, 30), (0.5, 30))),
    doc="log(x^a e^-x / gamma(a + 1)), accurate also where `a` and `x` are large and close.",
    example=("1.0, 1.0", "-1.0"),
)


def mask_limits(xp, valid, ordinary, values):
    """`values` where arguments are ordinary, 0 at the limits of the valid ones, NaN beyond."""
    return xp.where(ordinary, values, xp.where(valid, 0 * values, float("nan")))


def _density(xp, a, x):
    """dP/dx = x^(a - 1) e^-x / gamma(a), which is 1 at 0 for a = 1."""
    valid = xp.logical_and(a >= 0, x >= 0)
    ordinary = xp.logical_and(valid, xp.isfinite(a + x))
    a, x = xp.where(ordinary, a, 1), xp.where(ordinary, x, 1)
    inside = xp.where(x > 0, x, 1)
    large = a > 1  # there x^a may underflow where x^(a - 1) does not
    far = _scale(xp, xp.where(large, a - 1, a), inside) * xp.where(large, 1, a / inside)
    at_zero = x ** (a - 1) * xp.exp(-xp.gammaln(a))
    return mask_limits(xp, valid, ordinary, xp.where(x > 0, far, at_zero))


def _gammainc_grad_a_ref(a, x):
    from scipy.integrate import quad

    def one(a, x):
        f = lambda s: (  # noqa: E731
            (np.log(x) - s - NUMPY.special.digamma(a)) * np.exp(-a * s - x * np.exp(-s))
        )
        whole = quad(f, 0, 2, epsrel=1e-13)[0] + quad(f, 2, 60 / a, epsrel=1e-13, limit=500)[0]
        return x**a / NUMPY.special.gamma(a) * whole

    return np.vectorize(one, otypes=[float])(a, x)


@op(
    cpu=incomplete.gamma_slopes,
    opens=steps_unless(incomplete.takes),
    samples=_SAMPLES,
    ref=_gammainc_grad_a_ref,
    errors=[([np.ones(2), np.ones(3)], {}, ShapeError, r"\(2,\).*\(3,\)")],
)
def gammainc_grad_a(xp, a, x, /):
    """The derivative of `gammainc` by its parameter.

    Its relative error is about 1e-12, and 1e-10 for `a` of 1e5. On a CPU, arrays of 512 elements
    are computed in C, in float64.
    """
    both = a + x + 0.0
    valid = xp.logical_and(a >= 0, x >= 0)
    ordinary = xp.logical_and(xp.logical_and(valid, x > 0), xp.isfinite(both))
    a, x = xp.where(ordinary, a, 1), xp.where(ordinary, x, 1)
    d = xp.digamma(a + 1) - xp.log(x)
    upper = d < 0
    c = xp.where(upper, a, -a - 1)
    zeroth = xp.gamma_moment(c, x, upper, 0, 0)
    first = xp.gamma_moment(c, x, upper, 1, 0)
    above = (1 - a * d) * zeroth + a * first
    below = d + x * (d * zeroth + first)
    gradient = -_scale(xp, a, x) * xp.where(upper, above, below)
    return xp.astype(mask_limits(xp, valid, ordinary, gradient), both.dtype)


_SINGULAR = {"singular": True, "samples": _SAMPLES, "captures": True}

gammainc = scipy_op(
    "gammainc(a, x)", lambda xp, a, x: xp.gammainc_grad_a(a, x), _density, **_SINGULAR
)(
    doc="Regularised lower incomplete gamma function, with gradients by both arguments.\n\n"
    "The integral of t^(a - 1) e^-t from 0 to `x`, divided by gamma(a).",
    example=("1.0, [0.0, 1.0]", "[0.        0.6321206]"),
)

gammaincc = scipy_op(
    "gammaincc(a, x)",
    lambda xp, a, x: -xp.gammainc_grad_a(a, x),
    lambda xp, a, x: -_density(xp, a, x),
    **_SINGULAR,
)(
    doc="1 - `gammainc`, the integral from `x` to infinity, exact also where that is near 0.",
    example=("1.0, [0.0, 1.0]", "[1.        0.3678794]"),
)

gammaincinv = scipy_op(
    "gammaincinv(a, y)",
    lambda xp, out, a: -xp.gammainc_grad_a(a, out) / _density(xp, a, out),
    lambda xp, out, a: 1 / _density(xp, a, out),
    **_INVERSE,
    captures=True,
)(
    doc="The `x` for which gammainc(a, x) is `y`.",
    example=("1.0, [0.0, 0.5]", "[0.        0.6931472]"),
)

gammainccinv = scipy_op(
    "gammainccinv(a, y)",
    lambda xp, out, a: -xp.gammainc_grad_a(a, out) / _density(xp, a, out),
    lambda xp, out, a: -1 / _density(xp, a, out),
    **_INVERSE,
    captures=True,
)(
    doc="The `x` for which gammaincc(a, x) is `y`.",
    example=("1.0, [1.0, 0.5]", "[0.        0.6931472]"),
)
