"""Bessel functions and modified ones. There is no derivative by the order.

Derivatives are those of DLMF 10.6 and 10.29. Functions of any order run on the CPU only:
CuPy has those of order 0 and 1, and `yn`.
"""

from __future__ import annotations

import numpy as np

from gpugrad.ops.special.common import library, of_order
from gpugrad.registry.record import elementwise

# ---- of order 0 and 1 ---------------------------------------------------------------------


def _over(xp, value, x, at_zero):
    """The quotient `value` / x, and its limit at 0."""
    return xp.where(x == 0, at_zero, value / xp.where(x == 0, 1, x))


i0 = elementwise(
    "i0(x)",
    forward=library("i0"),
    ref="scipy.special.i0",
    d=[lambda xp, x: xp.i1(x)],
    doc="Modified Bessel function of the first kind, of order 0.",
    example=("[0.0, 1.0]", "[1.        1.2660658]"),
)

i1 = elementwise(
    "i1(x)",
    forward=library("i1"),
    ref="scipy.special.i1",
    d=[lambda xp, out, x: xp.i0(x) - _over(xp, out, x, 0.5)],
    doc="Modified Bessel function of the first kind, of order 1.",
    example=("[0.0, 1.0]", "[0.        0.5651591]"),
)

i0e = elementwise(
    "i0e(x)",
    forward=library("i0e"),
    ref="scipy.special.i0e",
    d=[lambda xp, out, x: xp.i1e(x) - xp.sign(x) * out],
    doc="exp(-|x|) times `i0`, which does not overflow. The gradient at 0 is 0.",
    example=("[0.0, 1.0]", "[1.        0.4657596]"),
    captures=True,
)

i1e = elementwise(
    "i1e(x)",
    forward=library("i1e"),
    ref="scipy.special.i1e",
    d=[lambda xp, out, x: xp.i0e(x) - xp.sign(x) * out - _over(xp, out, x, 0.5)],
    doc="exp(-|x|) times `i1`, which does not overflow.",
    example=("[0.0, 1.0]", "[0.        0.2079104]"),
    captures=True,
)

k0 = elementwise(
    "k0(x)",
    forward=library("k0"),
    ref="scipy.special.k0",
    singular=True,
    domain=(0.3, 3),
    d=[lambda xp, x: -xp.k1(x)],
    doc="Modified Bessel function of the second kind, of order 0: infinite at 0, NaN below.",
    example=("[1.0, 2.0]", "[0.4210244 0.1138939]"),
    captures=True,
)

k1 = elementwise(
    "k1(x)",
    forward=library("k1"),
    ref="scipy.special.k1",
    singular=True,
    domain=(0.3, 3),
    d=[lambda xp, out, x: -xp.k0(x) - out / x],
    doc="Modified Bessel function of the second kind, of order 1: infinite at 0, NaN below.",
    example=("[1.0, 2.0]", "[0.6019072 0.1398659]"),
    captures=True,
)

k0e = elementwise(
    "k0e(x)",
    forward=library("k0e"),
    ref="scipy.special.k0e",
    singular=True,
    domain=(0.3, 3),
    d=[lambda xp, out, x: xp.where(x == 0, -float("inf"), out - xp.k1e(x))],
    doc="exp(x) times `k0`, which does not vanish for large `x`.",
    example=("[1.0, 2.0]", "[1.1444631 0.8415682]"),
    captures=True,
)

k1e = elementwise(
    "k1e(x)",
    forward=library("k1e"),
    ref="scipy.special.k1e",
    singular=True,
    domain=(0.3, 3),
    d=[lambda xp, out, x: xp.where(x == 0, -float("inf"), out - xp.k0e(x) - out / x)],
    captures=True,
    doc="exp(x) times `k1`, which does not vanish for large `x`.",
    example=("[1.0, 2.0]", "[1.6361535 1.0334768]"),
)

j0 = elementwise(
    "j0(x)",
    forward=library("j0"),
    ref="scipy.special.j0",
    d=[lambda xp, x: -xp.j1(x)],
    doc="Bessel function of the first kind, of order 0.",
    example=("[0.0, 1.0]", "[1.        0.7651977]"),
)

j1 = elementwise(
    "j1(x)",
    forward=library("j1"),
    ref="scipy.special.j1",
    d=[lambda xp, out, x: xp.j0(x) - _over(xp, out, x, 0.5)],
    doc="Bessel function of the first kind, of order 1.",
    example=("[0.0, 1.0]", "[0.        0.4400506]"),
)

y0 = elementwise(
    "y0(x)",
    forward=library("y0"),
    ref="scipy.special.y0",
    singular=True,
    domain=(0.3, 3),
    d=[lambda xp, x: -xp.y1(x)],
    doc="Bessel function of the second kind, of order 0: -inf at 0, NaN below.",
    example=("[1.0, 2.0]", "[0.08825696 0.5103757 ]"),
)

y1 = elementwise(
    "y1(x)",
    forward=library("y1"),
    ref="scipy.special.y1",
    singular=True,
    domain=(0.3, 3),
    d=[lambda xp, out, x: xp.where(x == 0, float("inf"), xp.y0(x) - out / x)],
    doc="Bessel function of the second kind, of order 1: -inf at 0, NaN below.",
    example=("[1.0, 2.0]", "[-0.7812128 -0.1070324]"),
)

# ---- of any order -------------------------------------------------------------------------


def _orders(low, high, whole):
    """Orders, which have no gradient, as arrays and as numbers, and x."""

    def samples(rng):
        orders = ([0, 1, 3], 2, [[1], [2]]) if whole else ([0.5, 1.0, 2.5], 1, [[1], [2]])
        for v, shape in zip(orders, ((3,), (), (2, 3)), strict=True):
            v = v if type(v) is int else np.asarray(v)
            yield [v, np.asarray(rng.uniform(low, high, shape))], {}
        yield [1, np.zeros((0, 2))], {}

    return samples


_NO_ORDER = (
    " Its gradient by the order `v` is not known, so that asking for it raises NoGradientError."
)

jv = elementwise(
    "jv(v, x)",
    forward=of_order("jv"),
    ref="scipy.special.jv",
    samples=_orders(0.3, 5, False),
    vjp=[..., lambda xp, g, v, x: g * (0.5 * (xp.jv(v - 1, x) - xp.jv(v + 1, x)))],
    doc="Bessel function of the first kind, of real order." + _NO_ORDER,
    example=("0, [0.0, 1.0]", "[1.        0.7651977]"),
)


yv = elementwise(
    "yv(v, x)",
    forward=of_order("yv"),
    ref="scipy.special.yv",
    samples=_orders(0.5, 5, False),
    vjp=[..., lambda xp, g, v, x: xp.masked_multiply(g, 0.5 * (xp.yv(v - 1, x) - xp.yv(v + 1, x)))],
    doc="Bessel function of the second kind, of real order: -inf at 0, NaN below." + _NO_ORDER,
    example=("0, [1.0, 2.0]", "[0.08825696 0.5103757 ]"),
)

yn = elementwise(
    "yn(n, x)",
    forward=of_order("yn"),
    ref="scipy.special.yn",
    samples=_orders(0.5, 5, True),
    vjp=[
        None,
        lambda xp, g, n, x: xp.masked_multiply(g, 0.5 * (xp.yn(n - 1, x) - xp.yn(n + 1, x))),
    ],
    doc="Bessel function of the second kind, of whole order `n`: -inf at 0, NaN below.",
    example=("0, [1.0, 2.0]", "[0.08825696 0.5103757 ]"),
)

iv = elementwise(
    "iv(v, x)",
    forward=of_order("iv"),
    ref="scipy.special.iv",
    samples=_orders(0.3, 3, False),
    vjp=[..., lambda xp, g, v, x: g * (0.5 * (xp.iv(v - 1, x) + xp.iv(v + 1, x)))],
    doc="Modified Bessel function of the first kind, of real order." + _NO_ORDER,
    example=("0, [0.0, 1.0]", "[1.        1.2660658]"),
)


def _ive_x(xp, g, out, v, x):
    return g * (0.5 * (xp.ive(v - 1, x) + xp.ive(v + 1, x)) - xp.sign(x) * out)


ive = elementwise(
    "ive(v, x)",
    forward=of_order("ive"),
    ref="scipy.special.ive",
    samples=_orders(0.3, 3, False),
    vjp=[..., _ive_x],
    doc="exp(-|x|) times `iv`, which does not overflow." + _NO_ORDER,
    example=("0, [0.0, 1.0]", "[1.        0.4657596]"),
)

kv = elementwise(
    "kv(v, x)",
    forward=of_order("kv"),
    ref="scipy.special.kv",
    samples=_orders(0.5, 3, False),
    vjp=[
        ...,
        lambda xp, g, v, x: xp.masked_multiply(g, -0.5 * (xp.kv(v - 1, x) + xp.kv(v + 1, x))),
    ],
    doc="Modified Bessel function of the second kind, of real order: inf at 0." + _NO_ORDER,
    example=("0, [1.0, 2.0]", "[0.4210244 0.1138939]"),
)


def _kve_x(xp, g, out, v, x):
    return xp.masked_multiply(g, out - 0.5 * (xp.kve(v - 1, x) + xp.kve(v + 1, x)))


kve = elementwise(
    "kve(v, x)",
    forward=of_order("kve"),
    ref="scipy.special.kve",
    samples=_orders(0.5, 3, False),
    vjp=[..., _kve_x],
    doc="exp(x) times `kv`, which does not vanish for large `x`." + _NO_ORDER,
    example=("0, [1.0, 2.0]", "[1.1444631 0.8415682]"),
)
