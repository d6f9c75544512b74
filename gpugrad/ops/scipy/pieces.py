"""Piecewise polynomials at points, for `interp` and `gpugrad.scipy.interpolate`."""

import math

import numpy as np

from gpugrad.autodiff.batched import all_batched
from gpugrad.core.backend import NUMPY
from gpugrad.core.samples import uniform
from gpugrad.errors import ShapeError
from gpugrad.kernels.cpu.large import kernels, steps_unless
from gpugrad.registry.record import op


def _factors(terms, order):
    """The factors that the derivative of an order gives to its terms, the highest power first."""
    return [float(math.perm(power, order)) for power in range(terms - 1, order - 1, -1)]


def _steps(xp, x, at):
    """The index of the piece of each point, and how far the point is from its start."""
    first, last = (xp.getitem(x, index=(k,)) for k in (0, x.shape[0] - 1))
    sign = xp.where(last >= first, 1.0, -1.0)
    i = xp.searchsorted(sign * x, sign * at, side="right") - 1
    i = xp.clip(i, 0, x.shape[0] - 2)
    return i, at - xp.take(x, i)


def _values(xp, c, factors, i, s):
    """The polynomials of the pieces `i` at the steps `s`."""
    parts, s = xp.take(c, i, axis=1), xp.expand_dims(s, axis=1)
    rows = [f * xp.getitem(parts, index=(q,)) for q, f in enumerate(factors)]
    y = rows[0] if rows else 0.0 * xp.getitem(parts, index=(0,))
    for row in rows[1:]:
        y = y * s + row
    if rows[1:]:
        return xp.where(xp.equal(s, 0), rows[-1], y)
    return xp.where(xp.equal(s, s), y, math.nan)


def _added(xp, rows, factors, i, s, shape):
    """The transpose: rows, added to the coefficients of the pieces `i`."""
    terms, pieces, _ = shape
    i, s = xp.where(xp.equal(s, s), i, -1), xp.expand_dims(s, axis=1)
    products = [rows]
    for _ in factors[1:]:
        products.append(products[-1] * s)
    parts = [f * part for f, part in zip(factors, products[::-1], strict=False)]
    parts += [rows * 0.0] * (terms - len(parts))
    return xp.permute_dims(xp.segment_sum(xp.stack(parts, axis=1), i, pieces), (1, 0, 2))


def _each(xp, function, batched, arrays, **params):
    """A call for each example, where these have breakpoints of their own."""
    rows = zip(*all_batched(xp, batched, arrays), strict=True)
    return xp.stack([function(*row, **params) for row in rows], axis=0)


def _steps_of_batch(xp, x, at, pieces):
    """`_steps` of all points of a batch: the `pieces` of an example stand behind those before."""
    i, s = _steps(xp, x, xp.reshape(at, (-1,)))
    ones = xp.astype(xp.equal(xp.reshape(i, at.shape), xp.reshape(i, at.shape)), "int64")
    return i + pieces * xp.reshape(xp.cumsum(ones, axis=0) - 1, (-1,)), s


def _values_batch(xp, batched, c, x, at, order):
    if batched[1]:
        return _each(xp, xp.piecewise_polynomial, batched, (c, x, at), order=order)
    if not batched[2]:  # the examples are functions of the same points
        n, terms, pieces, width = c.shape
        wide = xp.reshape(xp.moveaxis(c, 0, 2), (terms, pieces, n * width))
        y = xp.piecewise_polynomial(wide, x, at, order=order)
        return xp.moveaxis(xp.reshape(y, (at.shape[0], n, width)), 1, 0)
    n, points = at.shape
    if not batched[0]:
        y = xp.piecewise_polynomial(c, x, xp.reshape(at, (-1,)), order=order)
        return xp.reshape(y, (n, points, c.shape[2]))
    _, terms, pieces, width = c.shape
    long = xp.reshape(xp.moveaxis(c, 0, 1), (terms, n * pieces, width))
    steps = _steps_of_batch(xp, x, at, pieces)
    return xp.reshape(_values(xp, long, _factors(terms, order), *steps), (n, points, width))


def _spread_batch(xp, batched, rows, x, at, *, shape, order):
    if batched[1]:
        add = xp.piecewise_polynomial_spread
        return _each(xp, add, batched, (rows, x, at), shape=shape, order=order)
    terms, pieces, width = shape
    if not batched[2]:
        n = rows.shape[0]
        wide = xp.reshape(xp.moveaxis(rows, 0, 1), (rows.shape[1], n * width))
        shape = terms, pieces, n * width
        c = xp.piecewise_polynomial_spread(wide, x, at, shape=shape, order=order)
        return xp.moveaxis(xp.reshape(c, (terms, pieces, n, width)), 2, 0)
    rows, at = all_batched(xp, (batched[0], True), (rows, at))
    n = at.shape[0]
    steps, flat = _steps_of_batch(xp, x, at, pieces), xp.reshape(rows, (math.prod(at.shape), width))
    c = _added(xp, flat, _factors(terms, order), *steps, (terms, n * pieces, width))
    return xp.moveaxis(xp.reshape(c, (terms, n, pieces, width)), 1, 0)


def _check(name, x, at, rows, pieces):
    if x.ndim != 1 or at.ndim != 1 or x.shape[0] != pieces + 1 or not pieces:
        raise ShapeError(
            f"{name}: {pieces} pieces need {pieces + 1} breakpoints and a sequence of points, the "
            f"shapes are {x.shape} and {at.shape}."
        )
    if rows != at.shape[0]:
        raise ShapeError(f"{name}: {rows} rows for {at.shape[0]} points.")


def _by_points(xp, g, c, x, at, order):
    """The gradient by points of a sum of `g` times the polynomials."""
    slopes = xp.piecewise_polynomial(c, x, at, order=order + 1)
    return xp.astype(xp.sum(xp.masked_multiply(g, slopes), axis=1), at.dtype)


def _by_breakpoints(xp, g, c, x, at, order):
    """The same by breakpoints, from which a piece's powers count; the last begins no piece."""
    moved = xp.expand_dims(_by_points(xp, g, c, x, at, order), axis=1)
    total = xp.piecewise_polynomial_spread(moved, x, at, shape=(1, x.shape[0] - 1, 1))
    return xp.astype(xp.pad(-xp.reshape(total, (-1,)), ((0, 1),)), x.dtype)


def _takes(values, x, at):
    return kernels("search").takes(values, x, at)


def _samples(rng):
    x = np.array([-1.0, 0.2, 0.9, 2.0])
    at = np.array([-0.6, 0.5, 1.1, 1.7, -0.2])
    yield [uniform(rng, 3, 3, 2), x, at], {}
    yield [uniform(rng, 4, 3, 1), x, at * 2], {"order": 2}
    yield [uniform(rng, 2, 3, 1), x[::-1].copy(), at - 1], {"order": 1}
    yield [uniform(rng, 1, 1, 1), x[:2], at], {"order": 1}
    yield [uniform(rng, 2, 3, 1), x, at[:0]], {}


def _reference(c, x, at, order=0):
    from scipy.interpolate import PPoly

    return PPoly(c, x)(at, order) if order < len(c) else np.zeros((at.size, c.shape[2]))


@op(
    vjp=[
        lambda xp, g, c_shape, x, at, order: xp.piecewise_polynomial_spread(
            g, x, at, shape=c_shape, order=order
        ),
        _by_breakpoints,
        _by_points,
    ],
    samples=_samples,
    ref=_reference,
    batch=_values_batch,
    opens=steps_unless(_takes),
    captures=True,
    errors=[([np.ones((2, 3, 1)), np.ones(3), np.ones(2)], {}, ShapeError, r"\(3,\) and \(2,\)")],
)
def piecewise_polynomial(xp, c, x, at, /, *, order=0):
    """Piecewise polynomials at points, or their derivatives of an order.

    Args:
        c: array of shape (terms, pieces, width): the coefficients of ``(at - start) ** power``,
            the highest power first, of `width` functions.
        x: array of shape (pieces + 1,): the breakpoints, in ascending or descending order. The
            first and the last piece go on beyond them.
        at: array of shape (n,): the points.
        order: int, at least 0.

    Returns:
        Tensor of shape (n, width). At a breakpoint it is the constant term of the piece behind it,
        also if another term is infinite.

    >>> lines = [[[1.0], [2.0]], [[0.0], [1.0]]]
    >>> print(gg.piecewise_polynomial(lines, [0.0, 1.0, 2.0], [0.5, 1.5]).ravel())
    [0.5 2. ]
    """
    terms, pieces, _ = c.shape
    _check("piecewise_polynomial", x, at, at.shape[0], pieces)
    factors = _factors(terms, order)
    if xp is NUMPY:
        out = kernels("search").pieces(c, x, at, None, factors, c.shape)
        if out is not NotImplemented:
            return out
    return _values(xp, c, factors, *_steps(xp, x, at))


def _spread_samples(rng):
    for (c, x, at), how in _samples(rng):
        yield [uniform(rng, at.size, c.shape[2]), x, at], {"shape": c.shape, **how}


def _spread_reference(y, x, at, shape, order=0):
    basis = np.eye(math.prod(shape)).reshape(-1, *shape)
    return np.reshape([(y * _reference(b, x, at, order)).sum() for b in basis], shape)


@op(
    vjp=[
        lambda xp, g, x, at, order: xp.piecewise_polynomial(g, x, at, order=order),
        lambda xp, g, rows, x, at, order: _by_breakpoints(xp, rows, g, x, at, order),
        lambda xp, g, rows, x, at, order: _by_points(xp, rows, g, x, at, order),
    ],
    samples=_spread_samples,
    ref=_spread_reference,
    batch=_spread_batch,
    opens=steps_unless(_takes),
    captures=True,
    errors=[
        (
            [np.ones((1, 1)), np.ones(4), np.ones(2)],
            {"shape": (2, 3, 1)},
            ShapeError,
            "1 rows for 2 points",
        )
    ],
)
def piecewise_polynomial_spread(xp, rows, x, at, /, *, shape, order=0):
    """The transpose of `piecewise_polynomial`: rows at points, added to coefficients.

    Args:
        rows: array of shape (points, width).
        x, at: breakpoints and points, as there; points that are NaN add nothing.
        shape: of the coefficients: (terms, pieces, width).
        order: of the derivative, as there.

    Returns:
        Tensor of that shape.

    >>> print(gg.piecewise_polynomial_spread([[1.0]], [0.0, 1.0], [0.5], shape=(2, 1, 1)).ravel())
    [0.5 1. ]
    """
    terms, pieces, _ = shape
    _check("piecewise_polynomial_spread", x, at, rows.shape[0], pieces)
    factors = _factors(terms, order)
    if xp is NUMPY:
        out = kernels("search").pieces(None, x, at, rows, factors, shape)
        if out is not NotImplemented:
            return out
    return _added(xp, rows, factors, *_steps(xp, x, at), shape)
