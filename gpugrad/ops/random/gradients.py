"""Derivatives of samples by the parameters of their distribution (implicit reparameterisation).

A sample x of a distribution function F(x; a) is the quantile of some probability. With that
probability fixed, dx/da = -(dF/da) / (dF/dx) (Figurnov, Mohamed and Mnih 2018). For the gamma
distribution this is an integral, computed here for log(x), where nothing underflows. Beta,
Dirichlet, chi-square and Student's t follow by composition.

With f(t; a) = t^(a-1) e^-t / gamma(a), two families are closed under differentiation, so that
all orders exist:

- `gamma_score`, B_k = (d^k f / da^k) / f at x,
- `gamma_sensitivity`, R_k = -(d^k F / da^k) / (x f(x)); R_1 is d log(x) / da.
"""

import functools
import math

import numpy as np

from gpugrad.core.backend import NUMPY
from gpugrad.core.samples import calls, uniform
from gpugrad.errors import ArgumentError, DTypeError, ShapeError
from gpugrad.registry.on_arrays import typed
from gpugrad.registry.record import op

_NODES = np.polynomial.legendre.leggauss(32)
_CUT = 38.0  # e^-38 is less than float64 resolves
_TERMS = 22  # of a series in x <= 1: 1 / 22! is less than float64 resolves


def _float64(lib, alpha, log_x, order):
    if order < 1:
        raise ArgumentError(f"order must be 1 or more, got {order}.")
    dtype = lib.result_type(alpha.dtype, log_x.dtype)
    if dtype.kind == "c":
        raise DTypeError("The parameters and samples must be real.")
    return dtype, lib.asarray(alpha, dtype=lib.float64), lib.asarray(log_x, dtype=lib.float64)


def _bell(first, psi, order):
    """The complete Bell polynomial B of the arguments first, -psi'(a), -psi''(a), ..."""
    bell = [1.0]
    for n in range(order):
        terms = [bell[n] * first]
        terms += [-math.comb(n, j) * bell[n - j] * psi[j] for j in range(1, n + 1)]
        bell.append(sum(terms[1:], terms[0]))
    return bell[-1]


def _polygammas(special, a, order):
    """digamma(a) and its derivatives, by Hurwitz's zeta function (DLMF 25.11.12)."""
    signed = [(j, (-1.0) ** (j + 1) * math.factorial(j)) for j in range(1, order)]
    return [special.digamma(a), *(c * special.zeta(j + 1.0, a) for j, c in signed)]


def _score_alpha(xp, g, out, alpha, log_x, alpha_shape, order):
    more = xp.gamma_score(alpha, log_x, order=order + 1)
    return xp.sum_to(g * (more - out * xp.gamma_score(alpha, log_x, order=1)), alpha_shape)


def _score_log_x(xp, g, alpha, log_x, log_x_shape, order):
    d = order if order == 1 else order * xp.gamma_score(alpha, log_x, order=order - 1)
    return xp.sum_to(g * d, log_x_shape)


def _score_ref(alpha, log_x, *, order=1):
    d = log_x - NUMPY.special.digamma(alpha)
    return d if order == 1 else d * d - NUMPY.special.polygamma(1, alpha)


def _points(*orders):
    """Shapes that broadcast, and log(x) on both sides of 0 and of log(alpha)."""
    return calls(
        lambda rng: ([uniform(rng, 4, low=0.3, high=4), uniform(rng, 4)], {"order": orders[0]}),
        lambda rng: (
            [uniform(rng, 2, 1, low=2, high=9), uniform(rng, 3, low=1, high=3)],
            {"order": orders[-1]},
        ),
        lambda rng: [uniform(rng, low=0.3, high=2), uniform(rng, 2, low=-9, high=0)],
        lambda rng: [uniform(rng, 0, low=1, high=2), uniform(rng, 0)],
    )


_BAD = [
    ([np.ones(2), np.ones(3)], {}, ShapeError, r"\(2,\).*\(3,\)"),
    ([np.ones(2), np.ones(2)], {"order": 0}, ArgumentError, "order"),
]
_family = functools.partial(op, batch="stack", samples=_points(1, 2), errors=_BAD)


@_family(vjp=[_score_alpha, _score_log_x], ref=_score_ref)
def gamma_score(xp, alpha, log_x, /, *, order=1):
    """Derivative of the gamma density over it, for the gradient of `gamma_sensitivity`.

    Args:
        order: of the derivative, at least 1.

    Returns:
        Tensor of the broadcast shape; for order 1 it is log(x) - digamma(alpha).
    """
    dtype, a, y = _float64(xp.lib, alpha, log_x, order)
    psi = _polygammas(xp.special, a, order)
    return _bell(y - psi[0], psi, order).astype(dtype)


def _sensitivity_alpha(xp, g, out, alpha, log_x, alpha_shape, order):
    more = xp.gamma_sensitivity(alpha, log_x, order=order + 1)
    return xp.sum_to(g * (more - out * xp.gamma_score(alpha, log_x, order=1)), alpha_shape)


def _sensitivity_log_x(xp, g, out, alpha, log_x, log_x_shape, order):
    d = xp.gamma_score(alpha, log_x, order=order) + out * (alpha - xp.exp(log_x))
    return xp.sum_to(-g * d, log_x_shape)


def _sensitivity_ref(alpha, log_x, *, order=1):
    """The integral of f(t) B(log t) over log t from far below to log x, by Simpson's rule."""
    a, y = np.broadcast_arrays(alpha, log_x)
    length = (60 / np.minimum(a, 2))[..., None]
    v = np.linspace(0, 1, 4001)  # the distance from log x is length * v^2
    t = y[..., None] - length * v * v
    f = np.exp(a[..., None] * (t - y[..., None]) - np.exp(t) + np.exp(y)[..., None])
    values = f * _score_ref(a[..., None], t, order=order) * (2 * length * v)
    weights = 2.0 + 2.0 * (np.arange(4001) % 2)
    weights[[0, -1]] = 1
    return -np.sum(values * weights, axis=-1) / 12_000


@_family(vjp=[_sensitivity_alpha, _sensitivity_log_x], ref=_sensitivity_ref)
def gamma_sensitivity(xp, alpha, log_x, /, *, order=1):
    """Derivative of a gamma sample's logarithm by alpha; `random_gamma_grad` calls it.

    Its relative error is below 1e-11 for alpha up to 1e4; it is computed in float64.

    Args:
        alpha: array of shape parameters above 0.
        log_x: array of the samples' logarithms, broadcast against `alpha`.
        order: k of -(d^k F / d alpha^k) / (x f(x)); 1 gives d log(x) / d alpha.

    Returns:
        Tensor of the broadcast shape.
    """
    lib = xp.lib
    dtype, a, y = _float64(lib, alpha, log_x, order)
    a, y = lib.broadcast_arrays(a, y)
    if lib is not np:  # selecting elements would wait for the device
        low = _series(lib, xp.special, a, lib.minimum(y, 0.0), order)
        return lib.where(y <= 0, low, _quadrature(lib, xp.special, a, y, order)).astype(dtype)
    result = np.empty(a.shape)
    for where, formula in ((y <= 0, _series), (~(y <= 0), _quadrature)):
        result[where] = formula(lib, xp.special, a[where], y[where], order)
    return result.astype(dtype)


def _series(lib, special, a, y, order):
    """For x <= 1: F is the sum of q_n = x^(a+n) e^-x / gamma(a+n+1), each with a Bell polynomial.

    q_n / (x f(x)) is x^n / (a (a+1) ... (a+n)): a series of Kummer (DLMF 8.7.1).
    """
    x, t = lib.exp(y), 1.0 / a
    psi = _polygammas(special, a, order)
    total = lib.zeros_like(a)
    for n in range(_TERMS):  # psi^(j)(b + 1) = psi^(j)(b) + (-1)^j j! / b^(j+1)
        b = a + n
        psi = [p + (-1.0) ** j * math.factorial(j) / b ** (j + 1) for j, p in enumerate(psi)]
        total = total - t * _bell(y - psi[0], psi, order)
        t = t * x / (b + 1.0)
    return total


def _quadrature(lib, special, a, y, order):
    """For x > 1: the integral of f(t) B(log t), from x away from the mode, in s = abs(log(t / x)).

    The exponent h(s) = x expm1(side s) - side a s is convex and 0 at 0; Newton's method finds
    where it reaches _CUT, and Gauss-Legendre does the rest. Below x for x <= a, above it else
    (the integral over all t is 0), so nothing cancels.
    """
    x = lib.exp(y)
    side = lib.where(x > a, 1.0, -1.0)

    def exponent(s):
        return x * lib.expm1(side * s) - side * a * s

    end = 2 * _CUT / (lib.abs(x - a) + lib.sqrt((x - a) ** 2 + 2 * _CUT * x))
    for _ in range(3):
        end = end - (exponent(end) - _CUT) / (side * (x * lib.exp(side * end) - a))
    psi = _polygammas(special, a, order)
    total = lib.zeros_like(a)
    for node, weight in zip(*_NODES, strict=True):
        s = end * (0.5 * (float(node) + 1.0))
        score = _bell(y + side * s - psi[0], psi, order)
        total = total + (0.5 * float(weight)) * lib.exp(-exponent(s)) * score
    return side * end * total


def _reparameterized_alpha(xp, g, out, alpha, alpha_shape, log):
    d = xp.gamma_sensitivity(alpha, out) if log else xp.random_gamma_grad(alpha, out)
    return xp.sum_to(g * d, alpha_shape)


def _reparameterized_ref(alpha, source, sample, *, log=False):
    p = NUMPY.special.gammainc(source, np.exp(sample) if log else sample)
    x = NUMPY.special.gammaincinv(alpha, p)
    return np.log(x) if log else x


def _moved_samples(rng):
    for log in (False, True):
        alpha, x = uniform(rng, 3, low=0.5, high=4), uniform(rng, 2, 3, low=0.3, high=3)
        source = alpha + uniform(rng, 3, low=0.1, high=0.3)
        yield [alpha, source, np.log(x) if log else x], {"log": log}


@op(
    vjp=[_reparameterized_alpha, ..., ...],
    batch="stack",
    ref=_reparameterized_ref,
    samples=_moved_samples,
    errors=[([np.ones(2), np.ones(3), np.ones(3)], {}, ShapeError, r"\(2,\).*\(3,\)")],
)
def gamma_reparameterized(xp, alpha, source, sample, /, *, log=False):
    """Gamma samples by their shape parameter, at a fixed probability; `random.gamma` calls it.

    With ``source = stop_gradient(alpha)`` the result is `sample` itself, with the implicit
    gradient by `alpha`, to any order.

    Args:
        alpha: array of shape parameters above 0.
        source: the shape parameters from which `sample` was drawn; has no gradient rule.
        sample: array of samples, broadcast against `alpha`; has no gradient rule.
        log: whether `sample` and the result are logarithms of samples.

    Returns:
        Tensor of the broadcast shape: the points whose cumulative probability for `alpha` is that
        of `sample` for `source`.
    """
    lib, special = xp.lib, xp.special
    if alpha is source and alpha.shape == sample.shape:
        return sample.copy()
    a, b, sample = lib.broadcast_arrays(alpha, source, sample)
    x = lib.exp(sample) if log else sample
    from_below = special.gammaincinv(a, special.gammainc(b, x))
    from_above = special.gammainccinv(a, special.gammaincc(b, x))
    moved = lib.where(x < b, from_below, from_above)
    return lib.where(a == b, sample, lib.log(moved) if log else moved)


@op(
    ref=lambda alpha, sample: sample * _sensitivity_ref(alpha, np.log(sample)),
    samples=calls(
        lambda rng: [uniform(rng, 2, 1, low=1, high=5), uniform(rng, 3, low=0.3, high=5)],
        lambda rng: [uniform(rng, low=0.3, high=2), uniform(rng, low=0.1, high=1)],
        lambda rng: [uniform(rng, 0, low=1, high=2), uniform(rng, 0, low=1, high=2)],
    ),
    errors=_BAD[:1],
)
def random_gamma_grad(xp, alpha, sample, /):
    """Derivative of gamma samples by alpha: the gradient of `gamma_reparameterized`.

    Returns:
        Tensor of the broadcast shape: -(dF / d alpha) / (dF / dx) at x = `sample`; 0 where the
        sample is 0.
    """
    alpha, sample = typed(alpha, sample)
    above = xp.where(sample > 0, sample, 1)
    return sample * xp.gamma_sensitivity(alpha, xp.log(above))
