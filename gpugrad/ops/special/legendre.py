"""Legendre functions with their derivatives, as SciPy returns them: all orders, and stacked.

Legendre's equation gives the second derivative from the function and its slope, so the pair is
differentiable to any order (DLMF 14.2; in the polar angle 14.30). CuPy lacks these functions.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from gpugrad.core.backend import NUMPY
from gpugrad.core.backend import TENSOR as xp
from gpugrad.core.samples import shaped
from gpugrad.core.tensor import operand, tensor
from gpugrad.errors import ArgumentError, ShapeError, saying_where
from gpugrad.ops._loops import check_order
from gpugrad.ops._scipy import refuse_lack
from gpugrad.ops.special.common import need_real
from gpugrad.ops.special.primitives import few
from gpugrad.registry.record import op


def _legendre_second(xp, out, n, m, z):
    rest = 1 - z * z
    return (2 * z * out[1] - (n * (n + 1) - m * m / rest) * out[0]) / rest


def _polar_second(xp, out, n, m, z):
    sine = xp.sin(z)
    return (m * m / (sine * sine) - n * (n + 1)) * out[0] - xp.cos(z) / sine * out[1]


def _by_point(second):
    def rule(xp, g, out, n, m, z, z_shape):
        slope = g[0] * out[1] + xp.masked_multiply(g[1], second(xp, out, n, m, z))
        return xp.sum_to(slope, z_shape)

    return rule


def _pair(name, xp, *args, **how):
    """The function and its derivative in the dtype of the last argument, by SciPy in float64."""
    *orders, z = map(xp.lib.asarray, args)
    need_real(xp, z)
    try:
        function = getattr(xp.special, name)
    except AttributeError as error:
        refuse_lack(xp, name, args, error)
        raise
    dtype = xp.lib.result_type(z, xp.lib.float32)
    out = function(*orders, z.astype(xp.lib.float64, copy=False), diff_n=1, **how)
    return out[0].astype(dtype), out[1].astype(dtype)


_ORDERS = ([1, 2, 3], [0, 1, -1])
_RECORD: Any = {
    "outputs": 2,
    "batch": "stack",
    "errors": [([2, np.ones(2, int), np.ones(3)], {}, ShapeError, r"\(2,\).*\(3,\)")],
}


@op(
    [None, None, _by_point(_legendre_second)],
    samples=few(*_ORDERS, (-0.8, 0.8)),
    ref=lambda n, m, z, norm=False: tuple(
        NUMPY.special.assoc_legendre_p(n, m, z, norm=norm, diff_n=1)
    ),
    **_RECORD,
)
def legendre_pair(xp, n, m, z, /, *, branch_cut=2, norm=False):
    """The associated Legendre function of degree `n` and order `m`, and its derivative by `z`.

    Args:
        branch_cut: 2: along the real axis beyond -1 and 1; 3: between them.
        norm: whether the squares have the integral 1.

    >>> print(*gg.legendre_pair(1, 0, 0.5))
    0.5 1.0
    """
    return _pair("assoc_legendre_p", xp, n, m, z, branch_cut=branch_cut, norm=norm)


@op(
    [None, None, _by_point(_polar_second)],
    samples=few(*_ORDERS, (0.3, 2.8)),
    ref=lambda n, m, z: tuple(NUMPY.special.sph_legendre_p(n, m, z, diff_n=1)),
    **_RECORD,
)
def sph_legendre_pair(xp, n, m, z, /):
    """The spherical Legendre function of degree `n` and order `m`, and its derivative by `z`.

    >>> print(*gg.sph_legendre_pair(1, 0, 0.0))
    0.48860252 -0.0
    """
    return _pair("sph_legendre_p", xp, n, m, z)


def _stacked(pair: tuple[Any, Any], second: Any, n: Any, m: Any, z: Any, diff_n: int) -> Any:
    """The function and its first `diff_n` derivatives, stacked along a new first axis."""
    parts = [*pair, second(xp, pair, n, m, z)] if diff_n == 2 else [*pair]
    return xp.stack(parts[: diff_n + 1], axis=0)


_MOST = 10_000
"""The largest degree and order of which all below are computed."""


def _grid(name: str, n: int, m: int, z: Any) -> tuple[Any, Any]:
    """Degrees 0 to n and orders 0 to m, then -m to -1, before the axes of z."""
    n, m = (check_order(name, what, x, 0, _MOST) for what, x in (("n", n), ("m", m)))
    ones = (1,) * z.ndim
    degrees = np.arange(n + 1).reshape(-1, 1, *ones)
    orders = np.concatenate([np.arange(m + 1), np.arange(-m, 0)]).reshape(1, -1, *ones)
    return degrees, orders


def _count(name: str, diff_n: Any) -> int:
    return check_order(name, "diff_n", diff_n, 0, 2)


_RETURNS = """Returns:
        Tensor of shape (diff_n + 1, {axes}...): the values, then the derivatives by `{x}`, which
        are differentiable to any order.

    Raises:
        ArgumentError: `diff_n` is not 0, 1 or 2.
        DeviceError: `{x}` is on a GPU, since CuPy lacks the function."""


def _documented(axes: str, x: str) -> Any:
    def decorate(function: Any) -> Any:
        function.__doc__ = function.__doc__.replace("RETURNS", _RETURNS.format(axes=axes, x=x))
        return saying_where(function)

    return decorate


@_documented("", "z")
def legendre_p(n: Any, z: Any, *, diff_n: int = 0) -> Any:
    """Legendre polynomial of degree `n` and its derivatives, as SciPy's function of the name.

    Args:
        n: integers.
        z: array that broadcasts with `n`.
        diff_n: the number of derivatives.

    Returns:
    >>> print(gg.special.legendre_p(2, 0.5, diff_n=1))
    [-0.125  1.5  ]
    """
    return assoc_legendre_p(n, 0, z, diff_n=diff_n)


@_documented("n + 1, ", "z")
def legendre_p_all(n: int, z: Any, *, diff_n: int = 0) -> Any:
    """Legendre polynomials of all degrees up to `n`, and their derivatives.

    Args:
        n: int.
        z: array of any shape.
        diff_n: the number of derivatives.

    Returns:
    >>> print(gg.special.legendre_p_all(2, 0.5))
    [[ 1.     0.5   -0.125]]
    """
    z = tensor(z)
    return assoc_legendre_p(_grid("legendre_p_all", n, 0, z)[0][:, 0], 0, z, diff_n=diff_n)


@_documented("", "z")
def assoc_legendre_p(
    n: Any, m: Any, z: Any, *, branch_cut: Any = 2, norm: bool = False, diff_n: int = 0
) -> Any:
    """Associated Legendre function of degree `n` and order `m`, and its derivatives.

    Args:
        n: integers.
        m: integers.
        z: array that broadcasts with `n` and `m`.
        branch_cut: 2: along the real axis beyond -1 and 1; 3: between them.
        norm: whether the squares have the integral 1.
        diff_n: the number of derivatives.

    Returns:
    >>> print(gg.special.assoc_legendre_p(2, 1, 0.6))
    [-1.44]
    """
    diff_n, z = _count("assoc_legendre_p", diff_n), tensor(z)
    pair = xp.legendre_pair(n, m, z, branch_cut=branch_cut, norm=norm)
    return _stacked(pair, _legendre_second, n, m, z, diff_n)


@_documented("n + 1, 2 m + 1, ", "z")
def assoc_legendre_p_all(
    n: int, m: int, z: Any, *, branch_cut: Any = 2, norm: bool = False, diff_n: int = 0
) -> Any:
    """Associated Legendre functions of all degrees up to `n` and orders from -m to m.

    Args:
        n: int.
        m: int; the orders are 0 to m, then -m to -1.
        z: array of any shape.
        branch_cut: as for `assoc_legendre_p`.
        norm: as for `assoc_legendre_p`.
        diff_n: the number of derivatives.

    Returns:
    >>> gg.special.assoc_legendre_p_all(2, 1, [0.6, 0.8]).shape
    (1, 3, 3, 2)
    """
    z = tensor(z)
    how: Any = {"branch_cut": branch_cut, "norm": norm, "diff_n": diff_n}
    return assoc_legendre_p(*_grid("assoc_legendre_p_all", n, m, z), z, **how)


@_documented("", "theta")
def sph_legendre_p(n: Any, m: Any, theta: Any, *, diff_n: int = 0) -> Any:
    """Spherical Legendre function of the polar angle: `sph_harm_y` at the azimuth 0.

    Args:
        n: integers, the degrees.
        m: integers, the orders.
        theta: array that broadcasts with `n` and `m`.
        diff_n: the number of derivatives.

    Returns:
    >>> print(gg.special.sph_legendre_p(1, 0, 0.0))
    [0.48860252]
    """
    diff_n, theta = _count("sph_legendre_p", diff_n), tensor(theta)
    pair = xp.sph_legendre_pair(n, m, theta)
    return _stacked(pair, _polar_second, n, m, theta, diff_n)


@_documented("n + 1, 2 m + 1, ", "theta")
def sph_legendre_p_all(n: int, m: int, theta: Any, *, diff_n: int = 0) -> Any:
    """Spherical Legendre functions of all degrees up to `n` and orders from -m to m.

    Args:
        n: int.
        m: int; the orders are 0 to m, then -m to -1.
        theta: array of any shape.
        diff_n: the number of derivatives.

    Returns:
    >>> gg.special.sph_legendre_p_all(2, 1, [0.6, 0.8]).shape
    (1, 3, 3, 2)
    """
    theta = tensor(theta)
    return sph_legendre_p(*_grid("sph_legendre_p_all", n, m, theta), theta, diff_n=diff_n)


@saying_where
def sph_harm_y_all(n: int, m: int, theta: Any, phi: Any, *, diff_n: int = 0) -> Any:
    """Spherical harmonics of all degrees up to `n` and orders from -m to m.

    Args:
        n: int.
        m: int; the orders are 0 to m, then -m to -1.
        theta: array, the polar angle.
        phi: array that broadcasts with `theta`, the azimuth.
        diff_n: the number of derivatives.

    Returns:
        complex Tensor of shape (n + 1, 2 m + 1, ...). With `diff_n`, a tuple: then the gradient of
        shape (n + 1, 2 m + 1, ..., 2), and for 2 the Hessian (n + 1, 2 m + 1, ..., 2, 2).

    Raises:
        ArgumentError: `diff_n` is not 0, 1 or 2.
        DeviceError: the angles are on a GPU, since CuPy lacks the function.

    >>> gg.special.sph_harm_y_all(2, 1, [0.6, 0.8], 0.5).shape
    (3, 3, 2)
    """
    diff_n, theta, phi = _count("sph_harm_y_all", diff_n), operand(theta, phi), operand(phi, theta)
    shape = np.broadcast_shapes(theta.shape, phi.shape)
    theta, phi = xp.broadcast_to(theta, shape), xp.broadcast_to(phi, shape)
    degrees, orders = _grid("sph_harm_y_all", n, m, theta)
    parts = sph_legendre_p(degrees, orders, theta, diff_n=diff_n)
    turn = 1j * xp.astype(tensor(orders), parts.dtype)  # integers would widen float32
    y = [parts[k] * xp.exp(turn * phi) for k in range(diff_n + 1)]
    if diff_n == 0:
        return y[0]
    result = [y[0], xp.stack([y[1], turn * y[0]], axis=-1)]
    if diff_n == 2:
        rows = [[y[2], turn * y[1]], [turn * y[1], turn * turn * y[0]]]
        result.append(xp.stack([xp.stack(row, axis=-1) for row in rows], axis=-2))
    return tuple(result)


# ---- functions of the second kind: all degrees along a new axis -----------------------------


def _second_kind(xp, g, out, z, m, n):
    """Legendre's equation, where the orders and degrees are the last two axes."""
    z = xp.getitem(z, index=(Ellipsis, None, None))
    orders, degrees = np.arange(m + 1.0)[:, None], np.arange(n + 1.0)
    second = _legendre_second(xp, out, degrees, orders, z)
    return xp.sum(g[0] * out[1] + xp.masked_multiply(g[1], second), axis=(-2, -1))


def _lqmn_ref(z, m, n):
    out = NUMPY.special.lqmn(m, n, z) if z.size else (np.empty((m + 1, n + 1, *z.shape)),) * 2
    return tuple(np.moveaxis(x, (0, 1), (-2, -1)) for x in out)


@op(
    [_second_kind],
    outputs=2,
    batch="stack",
    samples=shaped(
        ([(3,)], {"m": 1, "n": 2}),
        ([()], {"m": 0, "n": 2}),
        ([(0, 2)], {"m": 1, "n": 1}),
        domain=(-0.8, 0.8),
    ),
    ref=_lqmn_ref,
    errors=[([np.ones(2)], {"m": -1, "n": 2}, ArgumentError, "m=-1")],
)
def legendre_second_kind(xp, z, /, *, m, n):
    """Legendre functions of the second kind of orders up to m and degrees up to n, and derivatives.

    Args:
        z: array of any shape.
        m: non-negative int, the highest order.
        n: non-negative int, the highest degree.

    Returns:
        Two Tensors of shape (..., m + 1, n + 1).

    >>> print(gg.legendre_second_kind(0.5, m=0, n=1)[0])
    [[ 0.54930615 -0.7253469 ]]
    """
    m = check_order("legendre_second_kind", "m", m, 0, 1000)
    n = check_order("legendre_second_kind", "n", n, 0, 1000)
    lib = xp.lib
    need_real(xp, z)
    z, dtype = lib.asarray(z), lib.result_type(z, lib.float32)
    try:
        function = xp.special.lqmn
    except AttributeError as error:
        refuse_lack(xp, "lqmn", [z], error)
        raise
    if not z.size:
        return (lib.empty((*z.shape, m + 1, n + 1), dtype),) * 2
    out = function(m, n, z.astype(lib.float64))
    return tuple(lib.moveaxis(x, (0, 1), (-2, -1)).astype(dtype) for x in out)


@saying_where
def lqmn(m: int, n: int, z: Any) -> tuple[Any, Any]:
    """Associated Legendre functions of the second kind of all orders and degrees up to m and n.

    Args:
        m: non-negative int.
        n: non-negative int.
        z: array of any shape.

    Returns:
        Two Tensors of shape (m + 1, n + 1, ...): the functions and their derivatives.

    Raises:
        ArgumentError: `m` or `n` is negative.

    >>> print(gg.special.lqmn(0, 1, 0.5)[0])
    [[ 0.54930615 -0.7253469 ]]
    """
    pair = xp.legendre_second_kind(z, m=m, n=n)
    return tuple(xp.moveaxis(x, (-2, -1), (0, 1)) for x in pair)


@saying_where
def lqn(n: int, z: Any) -> tuple[Any, Any]:
    """Legendre functions of the second kind of all degrees up to `n`.

    Args:
        n: non-negative int.
        z: array of any shape.

    Returns:
        Two Tensors of shape (n + 1, ...): the functions and their derivatives.

    Raises:
        ArgumentError: `n` is negative.

    >>> print(gg.special.lqn(1, 0.5)[0])
    [ 0.54930615 -0.7253469 ]
    """
    values, slopes = lqmn(0, n, z)
    return values[0], slopes[0]
