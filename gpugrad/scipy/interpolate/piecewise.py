"""Piecewise polynomials: SciPy's compiled `_ppoly` on Tensors.

An interval is found on values; what follows is a gather of coefficients and a polynomial. Bernstein
polynomials that no tape, trace or vmap follows run SciPy's own code.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from scipy.interpolate import _ppoly
from scipy.special import comb

from gpugrad.core.backend import TENSOR as xp
from gpugrad.core.tensor import Tensor
from gpugrad.scipy.calling import known, new_tensor, on_values, plain_values
from gpugrad.scipy.namespaces import NUMPY


def interval(x: Tensor, at: Tensor) -> Tensor:
    """The index of the interval of the sorted breakpoints that holds each point."""
    x, at = xp.stop_gradient(x), xp.stop_gradient(at)
    sign = NUMPY.where(x[-1] >= x[0], 1.0, -1.0)
    found = NUMPY.searchsorted(sign * x, sign * at, side="right") - 1
    return NUMPY.clip(found, 0, x.shape[0] - 2)


def within(x: Tensor, at: Tensor, extrapolate: Any) -> Tensor:
    """Whether a polynomial has a value at each point."""
    if extrapolate:
        return ~NUMPY.isnan(at)
    low, high = NUMPY.minimum(x[0], x[-1]), NUMPY.maximum(x[0], x[-1])
    return (at >= low) & (at <= high)


def _factor(power: int, nu: int) -> float:
    """The factor of the derivative of order `nu` of x^power."""
    return float(math.perm(power, nu))


def horner(c: Any, s: Any, nu: int = 0) -> Any:
    """The derivative of order `nu` of a polynomial with the highest coefficient first."""
    n = len(c)
    result = 0.0 * c[-1] if n <= nu else _factor(n - 1, nu) * c[0]
    for i in range(1, n - nu):
        result = result * s + _factor(n - 1 - i, nu) * c[i]
    return result


def _check_order(nu: int) -> None:
    if nu < 0:
        raise ValueError("Order of derivative cannot be negative")


def evaluate(self: Any, x: Tensor, nu: int, extrapolate: Any) -> Tensor:
    """`PPoly._evaluate`."""
    c, at = _flat(self.c), self.x
    _check_order(nu)
    parts = (xp.real(c), xp.imag(c)) if c.dtype.kind == "c" else (c,)
    y, *imag = (xp.piecewise_polynomial(part, at, x, order=nu) for part in parts)
    y = xp.complex(y, *imag) if imag else y
    if extrapolate or known(lambda: within(at, x, False).all()):
        return y
    return NUMPY.where(within(at, x, False)[:, None], y, np.nan)


def evaluate_bernstein(self: Any, x: Tensor, nu: int, extrapolate: Any) -> Tensor:
    """`BPoly._evaluate`: sums of binomial terms; a derivative takes differences of coefficients."""
    c, at = _flat(self.c), self.x
    _check_order(nu)
    if plain := plain_values(c, at, x):
        out = np.empty((x.size, c.shape[2]), c.dtype)
        _ppoly.evaluate_bernstein(*map(np.ascontiguousarray, plain), nu, bool(extrapolate), out)
        return new_tensor(out)
    i = interval(at, x)
    start, width = at[i], at[i + 1] - at[i]
    s, parts = ((x - start) / width)[:, None], xp.take(c, i, axis=1)
    for _ in range(nu):
        k = parts.shape[0] - 1
        parts = k * NUMPY.diff(parts, axis=0) / width[:, None] if k else 0.0 * parts
    k = parts.shape[0] - 1
    terms = [comb(k, a) * s**a * (1 - s) ** (k - a) * parts[a] for a in range(k + 1)]
    return NUMPY.where(within(at, x, extrapolate)[:, None], sum(terms), np.nan)


def evaluate_nd(c: Tensor, xs: Any, ks: Any, x: Tensor, nu: Any, extrapolate: bool) -> Tensor:
    """`_ppoly.evaluate_nd`: one dimension after the other."""
    orders, degrees = [int(n) for n in nu], [int(k) for k in ks]
    for order in orders:
        _check_order(order)
    flat: Any = 0
    inside: Any = True
    steps = []
    for d, at in enumerate(xs):
        i = interval(at, x[:, d])
        flat = flat * (at.shape[0] - 1) + i
        inside = inside & within(at, x[:, d], extrapolate)
        steps.append((x[:, d] - at[i])[:, None])
    parts = NUMPY.reshape(xp.take(c, flat, axis=1), (*degrees, x.shape[0], c.shape[2]))
    for step, order in zip(steps, orders, strict=True):
        parts = horner([parts[j] for j in range(parts.shape[0])], step, order)
    return NUMPY.where(inside[:, None], parts, np.nan)


def continuous(c: Tensor, x: Tensor, order: int) -> Tensor:
    """`_ppoly.fix_continuity`: constants of each interval that make derivatives continuous."""
    k, h = c.shape[0], NUMPY.diff(x)[:-1].reshape((-1,) + (1,) * (c.ndim - 2))
    rows = [c[j] for j in range(k)]
    for power in range(order, -1, -1):
        more = [
            math.comb(p, power) * rows[k - 1 - p][:-1] * h ** (p - power)
            for p in range(power + 1, k)
        ]
        row = rows[k - 1 - power]
        steps = NUMPY.cumsum(sum(more), axis=0)
        rows[k - 1 - power] = NUMPY.concatenate([row[:1], row[:1] + steps])
    return NUMPY.stack(rows)


def solve(self: Any, y: Any = 0.0, discontinuity: bool = True, extrapolate: Any = None) -> Any:
    """`PPoly.solve`: SciPy's roots; two of Newton's steps give them their derivatives."""
    extrapolate = self.extrapolate if extrapolate is None else extrapolate
    if self.c.dtype.kind == "c":
        raise ValueError("Root finding is only for real-valued polynomials")
    c, fixed = _flat(self.c), [xp.stop_gradient(v) for v in (self.c, self.x)]
    values = on_values(_ppoly.real_roots)(
        _flat(fixed[0]),
        fixed[1],
        float(xp.stop_gradient(NUMPY.asarray(y))),
        bool(discontinuity),
        bool(extrapolate),
    )
    followed = plain_values(c, self.x, y) is None
    roots = [
        exact_roots(self, NUMPY.asarray(r), c[:, :, j], y) if followed else NUMPY.asarray(r)
        for j, r in enumerate(values)
    ]
    if self.c.ndim == 2:
        return roots[0]
    result = np.empty(len(roots), dtype=object)
    for j, root in enumerate(roots):
        result[j] = root
    return result.reshape(self.c.shape[2:])


def exact_roots(self: Any, r: Tensor, c: Tensor, y: Any) -> Tensor:
    """Roots with the values of `r`, as differentiable functions of the coefficients and of `y`."""
    i, root = interval(self.x, r), r
    start, width = self.x[i], abs(self.x[i + 1] - self.x[i])
    parts = xp.take(c, i, axis=1)
    rows = [parts[j] for j in range(c.shape[0])]
    jumps: Any = False
    for _ in range(2):
        slope = horner(rows, root - start, 1)
        smooth = NUMPY.isfinite(slope) & (slope != 0)  # no derivative of a double root
        step = (horner(rows, root - start) - y) / NUMPY.where(smooth, slope, 1.0)
        jumps = jumps | (abs(xp.stop_gradient(step)) > 1e-6 * xp.stop_gradient(width))
        root = root - NUMPY.where(smooth, step, 0.0)
    root = NUMPY.where(jumps, start, root)  # a change of sign at a breakpoint moves with it
    return r + (root - xp.stop_gradient(root))


def differences(self: Any, a: Any, b: Any, extrapolate: Any = None) -> Any:
    """`integrate` of piecewise polynomials: differences of the antiderivative."""
    total = self.antiderivative()
    if extrapolate is None:
        extrapolate = self.extrapolate
    if extrapolate != "periodic":
        total.extrapolate = extrapolate
        return total(b) - total(a)
    sign = 1
    if known(lambda: b < a):
        a, b, sign = b, a, -1
    start, end = self.x[0], self.x[-1]
    periods, rest = NUMPY.divmod(b - a, end - start)
    result = periods * (total(end) - total(start))
    a = start + (a - start) % (end - start)
    b = a + rest
    inside = total(NUMPY.minimum(b, end)) - total(a)
    beyond = total(start + NUMPY.maximum(b - end, 0.0)) - total(start)
    return sign * (result + inside + beyond)


def _flat(c: Tensor) -> Tensor:
    """Coefficients with one trailing axis."""
    return c.reshape(c.shape[0], c.shape[1], math.prod(c.shape[2:]))
