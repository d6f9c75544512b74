"""Elementary functions with SciPy's names, and the helpers of all special functions.

SciPy's functions run on the CPU, CuPy's on a GPU. Where CuPy lacks one, the forward here is a
formula; `jv`, `yv`, `iv`, `ive`, `kv` and `kve` have none and raise `DeviceError` on a GPU.
"""

import functools
import math

import numpy as np

from gpugrad.core.backend import NUMPY
from gpugrad.core.samples import grid, shaped
from gpugrad.errors import ArgumentError, DTypeError, ShapeError
from gpugrad.kernels.cpu.large import MIDDLE
from gpugrad.ops._loops import check_order
from gpugrad.ops._scipy import library
from gpugrad.ops.math.arithmetic import unless_infinite
from gpugrad.registry.record import elementwise, names_in, op
from gpugrad.registry.rules import conjugate


def scipy_op(signature, *d, forward=None, **rules):
    """`elementwise` for a function of ``scipy.special``, its forward and reference.

    `d` are its partial derivatives. It remains to call the result with `doc` and `example`.
    """
    name, _ = names_in(signature)
    rules |= {"forward": forward or library(name), "ref": f"scipy.special.{name}"}
    return functools.partial(elementwise, signature, d=d or None, **rules)


def formula(signature, body, *, doc, example, ref=None, **record):
    """Declare a composite ``(xp, x, y, /)`` that is SciPy's function of the name.

    `domain` or `samples` are those of `elementwise`, as are `doc` and `example`.
    """
    name, arrays = names_in(signature)
    wrong = [(["text"], {}, DTypeError, "number")]
    if len(arrays) > 1:
        lengths = [np.ones(k) for k in (2, 3, 3, 3)]
        wrong = [(lengths[: len(arrays)], {}, ShapeError, r"\(2,\).*\(3,\)")]
    samples = grid(len(arrays), record.pop("domain", (-2.0, 2.0)))
    record = {"samples": samples, "errors": wrong, "ref": ref or f"scipy.special.{name}"} | record
    body.__doc__ = f"{doc}\n\n>>> print(gg.special.{name}({example[0]}))\n{example[1]}\n"
    return op(name=name, **record)(body)


def counted(integers, *domains):
    """Samples whose first arrays are integers, of the given choices, and the others floats."""

    def samples(rng):
        for shape in ((3,), (), (2, 2), (0, 2)):
            first = [np.asarray(rng.choice(choices, shape)) for choices in integers]
            yield [*first, *(np.asarray(rng.uniform(*d, shape)) for d in domains)], {}

    return samples


_MOST = 10**7


def library_of_order(name):
    """`library` for functions of an order and others, where integers do not widen float32."""
    function = library(name)

    def forward(xp, n, *xs):
        need_real(xp, n)
        orders = np.asarray(n) if xp.lib is np else np.empty(0)
        is_counted = orders.dtype.kind in "iu" and orders.size
        if is_counted and not -_MOST <= orders.min() <= orders.max() <= _MOST:
            raise ArgumentError(f"{name}: the order must be {_MOST} at most: SciPy counts to it.")
        out = function(xp, *map(xp.lib.asarray, (n, *xs)))  # CuPy's polygamma takes arrays only
        # SciPy's yn gives float64 for integer orders, CuPy's for all
        arrays = any(hasattr(x, "dtype") for x in xs)
        is_integer = arrays and getattr(n, "dtype", np.dtype(type(n))).kind in "iu"
        dtype = xp.lib.result_type(*(() if is_integer else (n,)), *xs, xp.lib.float32)
        return out.astype(dtype, copy=False)

    return forward


def are_arrays(*arrays):
    """Whether no argument is a number, which `library_of_order` would copy from the host."""
    return all(hasattr(a, "shape") for a in arrays)


def need_real(xp, *arrays):
    """DTypeError if there is a complex number, of which a cast would drop the imaginary part."""
    if xp.lib.result_type(*arrays).kind == "c":
        raise DTypeError("Complex numbers are not supported. Take gg.real(x) if that is meant.")


def double(xp, *arrays):
    """Arguments in float64, as SciPy computes float32 too, and the dtype of the result."""
    need_real(xp, *arrays)
    dtype = xp.lib.result_type(*arrays, xp.lib.float32)
    return *(xp.lib.asarray(a, dtype=xp.lib.float64) for a in arrays), dtype


def horner(x, coefficients):
    """A polynomial, by its coefficients from the highest power down."""
    total = 0 * x
    for c in coefficients:
        total = total * x + c
    return total


def over_x(xp, value, x, terms, scale=1):
    """``value / x``; near 0 a polynomial of x^2 times `scale`, whose derivatives do not cancel."""
    near = xp.abs(x) < 0.5
    small = xp.where(near, x, 0)
    return xp.where(near, scale * horner(small * small, terms), value / xp.where(near, 1, x))


# ---- families closed under differentiation, with the order as metadata ---------------------


def _exponential_remainder_slope(xp, z, order):
    """phi_k - k phi_(k+1), or (phi_(k-1) - k phi_k) / z where the first would cancel."""
    r = xp.exponential_remainder(z, order=order)
    far = z < -1
    safe = xp.where(far, z, -1)
    below = xp.exp(safe) if order == 1 else xp.exponential_remainder(safe, order=order - 1)
    left = (below - order * xp.exponential_remainder(safe, order=order)) / safe
    return xp.where(far, left, r - order * xp.exponential_remainder(z, order=order + 1))


def _exponential_remainder_ref(z, order=1):
    terms = [z**n / math.factorial(n + order) for n in range(60)]
    return np.sum(terms, axis=0) if z.size else z


@op(
    vjp=[lambda xp, g, z, order: g * _exponential_remainder_slope(xp, z, order)],
    batch="stack",
    samples=shaped([(4,)], ([()], {"order": 2}), [(0, 2)], ([(2, 3)], {"order": 3})),
    ref=_exponential_remainder_ref,
    errors=[([np.ones(2)], {"order": 0}, ArgumentError, "order")],
    captures=True,
)
def exponential_remainder(xp, z, /, *, order=1):
    """The remainder of exp's Taylor polynomial: the sum of z^n / (n + order)! from n = 0.

    These are the phi functions of exponential integrators; order 1 is `exprel`. Their derivatives
    are ``phi_k - k phi_(k+1)``.

    Args:
        order: int, from 1 to 100.

    >>> print(gg.exponential_remainder([0.0, 1.0], order=2))
    [0.5       0.7182818]
    """
    order = check_order("exponential_remainder", "order", order, 1, 100)
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
    z = unless_infinite(z)
    above = xp.spherical_jn(z, n=n + 1)
    if n == 0:
        return -g * conjugate(xp, above)
    d = (n * xp.spherical_jn(z, n=n - 1) - (n + 1) * above) / (2 * n + 1)
    return g * conjugate(xp, d)


@op(
    vjp=[_spherical_jn_vjp],
    batch="stack",
    samples=shaped([(4,)], ([()], {"n": 1}), [(0, 2)], ([(2, 3)], {"n": 2}), domain=(-9, 9)),
    kinds="fc",
    ref=lambda z, n=0: NUMPY.special.spherical_jn(n, z),
    errors=[([np.ones(2)], {"n": -1}, ArgumentError, "n=-1")],
    captures=True,
)
def spherical_jn(xp, z, /, *, n=0):
    """The op behind `gg.special.spherical_jn`.

    It is the power series (DLMF 10.53.1) up to z = n + 1, and upward recurrence beyond.
    """
    n = check_order("spherical_jn", "n", n, 0, 140)  # float64 holds the factors of the series
    lib = xp.lib
    dtype = lib.result_type(z, lib.float32)
    z = z.astype("complex128" if dtype.kind == "c" else "float64")
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


exprel = scipy_op(
    "exprel(x)",
    lambda xp, x: _exponential_remainder_slope(xp, x, 1),
    forward=lambda xp, x: xp.exponential_remainder(x),
)(doc="(exp(x) - 1) / x, and 1 at 0.", example=("[0.0, 1.0]", "[1.        1.7182819]"))


def _sinc_slope(xp, x):
    """-pi times the spherical Bessel function of order 1 of pi x; a series where terms cancel."""
    t, series = math.pi * x, 1
    near, endless = xp.abs(t) < 1, xp.abs(t) == math.inf
    for k in range(8, 0, -1):
        series = 1 - t * t / (2 * k * (2 * k + 3)) * series
    far = xp.where(near | endless, 1, t)
    slope = xp.where(endless, 0, (xp.sin(far) / far - xp.cos(far)) / far)
    return -math.pi * xp.where(near, xp.where(endless, 0, t) / 3 * series, slope)


sinc = elementwise(
    "sinc(x)",
    forward=lambda xp, x: xp.lib.sinc(x),
    ref="numpy.sinc",
    kinds="fc",
    d=[_sinc_slope],
    doc="sin(pi x) / (pi x), and 1 at 0. Its derivatives are exact at 0 and near it.",
    example=("[0.0, 0.5]", "[1.        0.6366198]"),
    cpu=True,
)

cosm1 = scipy_op("cosm1(x)", lambda xp, x: -xp.sin(x))(
    doc="cos(x) - 1, exact for small `x`.", example=("[0.0, 1.0]", "[ 0.        -0.4596977]")
)

exp10 = scipy_op("exp10(x)", lambda xp, out: out * math.log(10))(
    doc="10 to the power `x`.", example=("[0.0, 2.0]", "[  1. 100.]")
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
    mixed="float32",
    cpu=True,
    large=MIDDLE,
)

logit = scipy_op(
    "logit(x)", lambda xp, x: 1 / (x * (1 - x)), singular=True, domain=(0.1, 0.9), cpu=True
)(
    doc="log(x / (1 - x)), the inverse of the sigmoid; NaN outside of [0, 1].",
    example=("[0.0, 0.5]", "[-inf   0.]"),
)

# ---- powers that become logarithms: Box and Cox 1964, "An analysis of transformations" ------


def _boxcox_lmbda(xp, log, lmbda, at_end):
    """log^2 phi'(z) with phi(z) = (e^z - 1) / z and z = lmbda log: exact as lmbda goes to 0."""
    log = xp.where(at_end, 1, log)
    z = lmbda * log
    d = log * log * (xp.exponential_remainder(z) - xp.exponential_remainder(z, order=2))
    return xp.where(at_end, 1 / (lmbda * lmbda), d)  # of (x^lmbda - 1) / lmbda at x = 0


def _boxcox_base(xp, x, lmbda):
    """`x`, and NaN where it and the result are infinite but the slope is 0."""
    return xp.where((lmbda >= 0) & (lmbda < 1), unless_infinite(x), x)


boxcox = scipy_op(
    "boxcox(x, lmbda)",
    lambda xp, x, lmbda: _boxcox_base(xp, x, lmbda) ** (lmbda - 1),
    lambda xp, x, lmbda: _boxcox_lmbda(xp, xp.log(x), lmbda, x == 0),
    singular=True,
    domain=((0.3, 3), (-2, 2)),
)(
    doc="(x^lmbda - 1) / lmbda, and log(x) where `lmbda` is 0.",
    example=("[1.0, 3.0], 2.0", "[0. 4.]"),
)

boxcox1p = scipy_op(
    "boxcox1p(x, lmbda)",
    lambda xp, x, lmbda: (1 + _boxcox_base(xp, x, lmbda)) ** (lmbda - 1),
    lambda xp, x, lmbda: _boxcox_lmbda(xp, xp.log1p(x), lmbda, x == -1),
    singular=True,
    domain=((-0.7, 2), (-2, 2)),
)(
    doc="((1 + x)^lmbda - 1) / lmbda, and log1p(x) where `lmbda` is 0.",
    example=("[0.0, 2.0], 2.0", "[0. 4.]"),
)


def _inv_boxcox_lmbda(xp, power, x, lmbda):
    """Derivative of (1 + lmbda x)^(1/lmbda) by lmbda, with w = log1p(lmbda x): exact near 0."""
    w = xp.log1p(lmbda * x)
    ratio = x / xp.exponential_remainder(w)
    return -power * ratio * ratio * xp.exponential_remainder(-w, order=2)


_NEAR_ZERO = {"singular": True, "domain": ((-0.8, 0.8), (-1, 1))}

inv_boxcox = scipy_op(
    "inv_boxcox(x, lmbda)",
    lambda xp, out, x, lmbda: out / (1 + lmbda * x),
    lambda xp, out, x, lmbda: _inv_boxcox_lmbda(xp, out, x, lmbda),
    **_NEAR_ZERO,
)(
    doc="The number whose `boxcox` is `x`: (1 + lmbda x)^(1/lmbda), exp(x) where `lmbda` is 0.",
    example=("[0.0, 4.0], 2.0", "[1. 3.]"),
)

inv_boxcox1p = scipy_op(
    "inv_boxcox1p(x, lmbda)",
    lambda xp, out, x, lmbda: (1 + out) / (1 + lmbda * x),
    lambda xp, out, x, lmbda: _inv_boxcox_lmbda(xp, 1 + out, x, lmbda),
    **_NEAR_ZERO,
)(doc="The number whose `boxcox1p` is `x`.", example=("[0.0, 4.0], 2.0", "[0. 2.]"))

# ---- the inverse of w e^w -----------------------------------------------------------------


def _lambertw_vjp(xp, g, out, z_dtype):
    g = xp.masked_multiply(g, xp.conj(xp.exp(-out) / (1 + unless_infinite(out))))
    return g if z_dtype.kind == "c" else xp.real(g)


@op(
    vjp=[_lambertw_vjp],
    batch="stack",
    kinds="fc",
    ref="scipy.special.lambertw",
    samples=shaped([(4,)], [()], [(0, 2)], ([(2, 2)], {"k": 1}), domain=(0.5, 3)),
    errors=[(["text"], {}, DTypeError, "number")],
    captures=True,
)
def lambertw(xp, z, /, k=0, tol=1e-8):
    """The Lambert W function: the complex w with w exp(w) = z.

    Args:
        z: array of any shape, real or complex.
        k: int, the branch.
        tol: tolerance of the iteration.

    Returns:
        complex Tensor of the shape of `z`; for real z from -1/e on, W is its real part.

    >>> print(gg.real(gg.special.lambertw([0.0, 1.0])))
    [0.         0.56714326]
    """
    need_real(xp, k)
    out = xp.special.lambertw(z, k, tol)
    return out.astype(xp.lib.result_type(z.dtype, xp.lib.complex64))
