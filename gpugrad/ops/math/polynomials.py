"""NumPy's polynomials: vectors of coefficients, highest power first.

Leading zeros stay: the length of a result does not depend on values.
"""

import math
import operator
from typing import Any

import numpy as np

from gpugrad.core.samples import shaped
from gpugrad.errors import ArgumentError, ShapeError
from gpugrad.ops._axes import arrays_of
from gpugrad.ops._loops import check_order
from gpugrad.registry.on_arrays import widened
from gpugrad.registry.record import op

_PAIRS = shaped([(4,), (2,)], [(2,), (3,)], [(3,), (3,)], [(1,), (2,)], [(), (2,)])
_MATRIX: list[Any] = [([np.ones((2, 2)), np.ones(2)], {}, ShapeError, r"\(2, 2\)")]


def _vectors(name, *values):
    """ShapeError unless all are one-dimensional."""
    for x in values:
        shape = getattr(x, "shape", ())
        if len(shape) != 1:
            raise ShapeError(f"{name}: coefficients must be vectors, got shape {tuple(shape)}.")


def _lines(xp, name, *values):
    """Vectors of coefficients; a number is a polynomial of degree 0."""
    lines = [x if x.ndim else xp.reshape(x, (1,)) for x in arrays_of(xp, *values)]
    _vectors(name, *lines)
    return lines


@op(
    kinds="fci",
    samples=shaped([(3,), (2, 3)], [(4,), ()], [(1,), (2,)], [(0,), (2,)]),
    errors=[([np.ones((2, 2)), np.ones(2)], {}, ShapeError, r"polyval: .*\(2, 2\)")],
)
def polyval(xp, p, x, /):
    """Value of a polynomial at `x`, by Horner's scheme.

    Args:
        p: array of shape (n,): its coefficients, highest power first.
        x: array of any shape, or a number.

    Returns:
        Tensor of the shape of `x`.

    >>> print(gg.polyval([1.0, 0.0, 2.0], [1.0, 2.0]))
    [3. 6.]
    """
    _vectors("polyval", p)
    if not p.size:
        return x * 0
    y = xp.getitem(p, index=(0,))
    if p.size == 1:  # with the shape and dtype of a longer one
        return x * 0 + y
    for k in range(1, p.size):
        y = y * x + xp.getitem(p, index=(k,))
    return y


@op(
    kinds="fci",
    ref=lambda p, m=1: np.polyder(p, m),
    samples=shaped([(4,)], ([(4,)], {"m": 2}), [(1,)], ([(3,)], {"m": 0})),
    errors=[
        ([np.ones((2, 2))], {}, ShapeError, r"\(2, 2\)"),
        ([np.ones(2)], {"m": -1}, ArgumentError, "polyder: .*m=-1"),
    ],
)
def polyder(xp, p, /, m=1):
    """Coefficients of a derivative of a polynomial.

    Args:
        p: array of shape (n,): coefficients, highest power first.
        m: how many times to differentiate.

    Returns:
        Tensor of shape (max(n - m, 0),).

    >>> print(gg.polyder([1.0, 5.0, 2.0]))
    [2. 5.]
    """
    _vectors("polyder", p)
    if m < 0:
        raise ArgumentError(f"polyder: m must not be negative, got m={m}.")
    n = max(p.size - m, 0)
    kept = xp.getitem(p, index=(slice(n),))
    if not n or not m:
        return kept
    kept = widened(kept)  # NumPy's factors are int64
    powers = [math.perm(p.size - 1 - k, m) for k in range(n)]
    return xp.stack([powers[k] * xp.getitem(kept, index=(k,)) for k in range(n)])


def _in_front(xp, x, n):
    """`x` with zeros in front, n long."""
    return x if x.size == n else xp.pad(x, (n - x.size, 0))


def _polynomial_sum(name, combine, what, result):
    def total(xp, x1, x2, /):
        x1, x2 = _lines(xp, name, x1, x2)
        n = max(x1.size, x2.size)
        return combine(_in_front(xp, x1, n), _in_front(xp, x2, n))

    total.__doc__ = f"""Coefficients of a {what} of polynomials.

    Args:
        x1, x2: arrays of one axis, or numbers: coefficients, highest power first.

    Returns:
        Tensor, as long as the longer one.

    >>> print(gg.{name}([1.0, 2.0, 3.0], [1.0, 1.0]))
    {result}
    """
    return op(name=name, kinds="fc", samples=_PAIRS, errors=_MATRIX)(total)


polyadd = _polynomial_sum("polyadd", operator.add, "sum", "[1. 3. 4.]")
polysub = _polynomial_sum("polysub", operator.sub, "difference", "[1. 1. 2.]")


@op(kinds="fc", samples=_PAIRS, errors=_MATRIX)
def polymul(xp, x1, x2, /):
    """Coefficients of a product of polynomials.

    Args:
        x1, x2: arrays of one axis, or numbers: coefficients, highest power first.

    Returns:
        Tensor of shape (x1.size + x2.size - 1,).

    >>> print(gg.polymul([1.0, 2.0], [1.0, 3.0]))
    [1. 5. 6.]
    """
    return xp.convolve(*_lines(xp, "polymul", x1, x2))


@op(
    outputs=2,
    kinds="fc",
    samples=shaped([(4,), (2,)], [(3,), (3,)], [(2,), (1,)], [(3,), ()], domain=(0.5, 2)),
    errors=[*_MATRIX, ([np.ones(2), np.ones(0)], {}, ShapeError, "polydiv.*no coefficients")],
)
def polydiv(xp, u, v, /):
    """Quotient and remainder of polynomials, by long division.

    Args:
        u: array of one axis, or a number: coefficients of the dividend, highest power first.
        v: array of one axis, or a number: coefficients of the divisor; the first is not 0.

    Returns:
        Two Tensors: the quotient, of shape (max(u.size - v.size + 1, 1),), and the remainder,
        with one coefficient fewer than `v` (at least one).

    >>> quotient, rest = gg.polydiv([1.0, 5.0, 7.0], [1.0, 2.0])
    >>> print(quotient, rest)
    [1. 3.] [1.]
    """
    u, v = _lines(xp, "polydiv", u, v)
    if not v.size:
        raise ShapeError("polydiv: the divisor has no coefficients.")
    first, steps = xp.getitem(v, index=slice(0, 1)), u.size - v.size + 1
    quotient, rest = [], u
    for _ in range(steps):
        factor = xp.getitem(rest, index=slice(0, 1)) / first
        quotient.append(factor)
        product = xp.pad(factor * v, (0, rest.size - v.size))
        rest = xp.getitem(rest - product, index=slice(1, rest.size))
    if not quotient:
        return xp.broadcast_to(xp.sum(u * 0), (1,)), u
    if not rest.size:
        rest = xp.broadcast_to(xp.sum(rest), (1,))
    return xp.concat(quotient, axis=0), rest


@op(
    kinds="fc",
    ref=lambda p, m=1, k=None: np.polyint(p, m, k),
    samples=shaped(
        [(3,)], ([(3,)], {"m": 2, "k": [1.0, 2.0]}), ([(2,)], {"m": 0}), ([(2,)], {"k": 3.0})
    ),
    errors=[
        ([np.ones((2, 2))], {}, ShapeError, r"\(2, 2\)"),
        ([np.ones(2)], {"m": -1}, ArgumentError, "polyint: m=-1"),
        ([np.ones(2)], {"m": 2, "k": [1.0]}, ArgumentError, "polyint: 1 constants"),
    ],
)
def polyint(xp, p, /, m=1, k=None):
    """Coefficients of an antiderivative of a polynomial.

    Args:
        p: array of one axis: coefficients, highest power first.
        m: how many times to integrate, from 0 to 100.
        k: the constants of integration, one for each time, or one for all; None is 0.

    Returns:
        Tensor of shape (p.size + m,).

    >>> print(gg.polyint([4.0, 1.0]))
    [2. 1. 0.]
    """
    (p,) = _lines(xp, "polyint", p)
    m = check_order("polyint", "m", m, 0, 100)
    constants = [0.0 if k is None else k] * m if isinstance(k, (int, float, type(None))) else k
    if len(constants) != m:
        raise ArgumentError(f"polyint: {len(constants)} constants for m={m} integrations.")
    for constant in constants:
        terms = [xp.getitem(p, index=slice(i, i + 1)) / (p.size - i) for i in range(p.size)]
        p = xp.pad(xp.concat(terms, axis=0) if terms else p, (0, 1), constant_values=constant)
    return p


@op(
    kinds="fc",
    samples=shaped([(3,)], [(1,)]),
    errors=[([np.ones((2, 2))], {}, ShapeError, r"poly.*\(2, 2\)")],
)
def poly(xp, x, /):
    """Coefficients of the polynomial with these roots and the first coefficient 1.

    Args:
        x: array of one axis, not empty: the roots.

    Returns:
        Tensor of shape (x.size + 1,), highest power first.

    >>> print(gg.poly([1.0, 2.0]))
    [ 1. -3.  2.]
    """
    _vectors("poly", x)
    if not x.size:
        raise ShapeError("poly: at least one root is needed, the shape is (0,).")
    x = xp.astype(x, np.float64) if x.dtype.kind in "biu" else x
    factors = [
        xp.pad(-xp.getitem(x, index=slice(k, k + 1)), (1, 0), constant_values=1.0)
        for k in range(x.size)
    ]
    out = factors[0]
    for factor in factors[1:]:
        out = xp.convolve(out, factor)
    return out


def _polyfit_samples(rng):
    x = np.linspace(-1.0, 1.0, 5) + rng.uniform(-0.1, 0.1, 5)
    yield [x, rng.normal(size=5)], {"deg": 2}
    yield [x, rng.normal(size=(5, 2))], {"deg": 1}


@op(
    samples=_polyfit_samples,
    errors=[
        ([np.ones(3), np.ones(2)], {"deg": 1}, ShapeError, r"polyfit.*\(3,\).*\(2,\)"),
        ([np.ones(3), np.ones(3)], {"deg": -1}, ArgumentError, "polyfit: deg=-1"),
    ],
)
def polyfit(xp, x, y, /, deg):
    """Coefficients of the least squares fit of a polynomial to points.

    Args:
        x: array of shape (m,).
        y: array of shape (m,); or (m, k), for k polynomials.
        deg: degree of the polynomial; m > deg points determine it.

    Returns:
        Tensor of shape (deg + 1,), or (deg + 1, k): highest power first.

    >>> print(gg.polyfit([0.0, 1.0, 2.0], [1.0, 3.0, 5.0], 1))
    [2. 1.]
    """
    if x.ndim != 1 or y.ndim not in (1, 2) or y.shape[0] != x.shape[0]:
        raise ShapeError(f"polyfit: x {x.shape} and y {y.shape}: one y for each x is needed.")
    if deg < 0:
        raise ArgumentError(f"polyfit: deg={deg} is negative.")
    powers = xp.vander(x, deg + 1)
    scale = xp.sqrt(xp.sum(powers * powers, axis=0))  # columns of equal length: better conditioned
    scaled = xp.lstsq(powers / scale, y)
    return scaled / (scale if y.ndim == 1 else xp.expand_dims(scale, axis=-1))


def _separate_roots(rng):
    for roots in ([1.0, -2.0, 0.3], [0.5 + 1j, 0.5 - 1j], [2.0], []):
        exact = np.atleast_1d(np.real(np.poly(roots)))
        yield [exact * (1 + rng.uniform(0, 0.1, exact.size))], {}


@op(
    kinds="f",
    samples=_separate_roots,
    ref=lambda p: np.roots(p).astype(np.complex64 if p.dtype == np.float32 else np.complex128),
    errors=[
        ([np.ones((2, 2))], {}, ShapeError, r"roots.*\(2, 2\)"),
        ([np.ones(0)], {}, ShapeError, "roots.*no coefficients"),
    ],
)
def roots(xp, p, /):
    """Roots of a polynomial: the eigenvalues of its companion matrix.

    Args:
        p: array of one axis: coefficients, highest power first, which is not 0.

    Returns:
        Complex Tensor of shape (p.size - 1,). Equal roots have no gradient.

    >>> print(gg.real(gg.roots([1.0, -2.0])))
    [2.]
    """
    _vectors("roots", p)
    if not p.size:
        raise ShapeError("roots: there are no coefficients.")
    p = xp.astype(p, np.float64) if p.dtype.kind in "biu" else p
    n = p.size - 1
    if not n:
        return xp.astype(xp.getitem(p, index=slice(1, 1)), np.result_type(p.dtype, np.complex64))
    top = -xp.getitem(p, index=slice(1, n + 1)) / xp.getitem(p, index=slice(0, 1))
    ones = xp.pad(xp.getitem(top, index=slice(0, 0)), (0, n - 1), constant_values=1.0)
    below = xp.diagonal_scatter(ones, offset=0, shape=(n - 1, n))
    return xp.eigvals(xp.concat([xp.expand_dims(top, axis=0), below], axis=0))
