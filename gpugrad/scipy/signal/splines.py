"""SciPy's spline filters on Tensors: starting values, the separable filter, and evaluation.

The formulas are those of SciPy's C code: sums over the mirrored signal, cut where a weight falls
below the precision. They have gradients by the signal and by the roots.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import numpy as np
from scipy import signal as scipys

from gpugrad.core.backend import TENSOR as xp
from gpugrad.core.tensor import Tensor
from gpugrad.scipy import ndimage
from gpugrad.scipy.namespaces import NUMPY


def first_order_start(signal: Tensor, z1: Any, precision: float) -> Tensor:
    """`_spline.symiirorder1_ic`: x_0 + sum of z1^(k + 1) x_k, for each row."""
    limit = _precision(signal, precision) ** 2
    return signal[:, :1] + _cut_sum(signal, lambda k, z1: z1 ** (k + 1), (z1,), limit)


def second_order_start(signal: Tensor, r: Any, omega: Any, precision: float) -> Tensor:
    """`_spline.symiirorder2_ic_fwd`: the first two results of the forward filter."""
    limit = _precision(signal, precision) ** 2
    before = _forward(np.arange(2.0), r, omega)
    firsts = [before[0] * signal[:, :1], before[0] * signal[:, 1:2] + before[1] * signal[:, :1]]
    for j in range(2):
        weights = lambda k, r, omega, j=j: _forward(k + j + 1, r, omega)  # noqa: E731
        firsts[j] = firsts[j] + _cut_sum(signal, weights, (r, omega), limit)
    return NUMPY.concatenate(firsts, axis=1)


def second_order_end(signal: Tensor, r: Any, omega: Any, precision: float) -> Tensor:
    """`_spline.symiirorder2_ic_bwd`: the last two results of the backward filter."""

    def both(j: int) -> Callable[..., Any]:
        return lambda k, *roots: _both_ways(k - j, *roots) + _both_ways(k + j + 1, *roots)

    limit = _precision(signal, precision)
    sums = [_cut_sum(signal[:, ::-1], both(j), (r, omega), limit) for j in range(2)]
    return NUMPY.concatenate(sums, axis=1)


def _forward(k: Any, r: Any, omega: Any) -> Any:
    """The impulse response of the forward filter."""
    turn = _half_turns(omega)
    scale = (1 - 2 * r * NUMPY.cos(omega) + r * r) * r**k
    if turn is not None:
        return scale * turn**k * (k + 1)
    return scale * NUMPY.sin(omega * (k + 1)) / NUMPY.sin(omega)


def _both_ways(k: Any, r: Any, omega: Any) -> Any:
    """The impulse response of the forward and the backward filter."""
    k, q, turn = np.abs(k), r * r, _half_turns(omega)
    c = (1 - 2 * r * NUMPY.cos(omega) + q) ** 2 * (1 + q) / (1 - q) * q ** (k / 2)
    if turn is not None:
        return c / (1 - q) ** 2 * (1 + (1 - q) / (1 + q) * turn**k * k)
    gamma = (1 - q) / (1 + q) / NUMPY.tan(omega)
    c = c / (1 - 2 * q * NUMPY.cos(2 * omega) + q * q)
    return c * (NUMPY.cos(omega * k) + gamma * NUMPY.sin(omega * k))


def _half_turns(omega: Any) -> int | None:
    """The sign of a double root, which is 1 or -1 for an angle of 0 or pi; else None."""
    return {0.0: 1, np.pi: -1}.get(float(_value(omega)))


def _value(x: Any) -> np.ndarray:
    return xp.stop_gradient(x).numpy() if isinstance(x, Tensor) else np.asarray(x)


def _precision(signal: Tensor, precision: float) -> float:
    if 0 < precision <= 1:
        return precision
    return 1e-6 if signal.dtype.char in "fF" else 1e-11


def _cut_sum(signal: Tensor, weights: Callable[..., Any], roots: Any, limit: float) -> Tensor:
    """Sums of weights times each row, to the first weight whose square is at most `limit`."""
    size, values = 256, [_value(root) for root in roots]
    while True:  # most weights of a long row are small
        k = np.arange(float(min(size, signal.shape[1])))
        small = np.flatnonzero(np.abs(_value(weights(k, *values))) ** 2 <= limit)
        if small.size or k.size == signal.shape[1]:
            break
        size *= 8
    if not small.size:
        raise ValueError("Sum to find symmetric boundary conditions did not converge.")
    n = small[0] + 1
    w = xp.astype(NUMPY.asarray(weights(k[:n], *roots)), signal.dtype)
    return NUMPY.matmul(signal[:, :n], w[:, None])


def separable_filter(image: Tensor, row: Tensor, column: Tensor) -> Tensor:
    """`_spline.sepfir2d`: filters of odd lengths along both axes of a mirrored image."""
    if row.size % 2 == 0 or column.size % 2 == 0:
        raise ValueError("hrow and hcol must be odd length")
    for axis, h in ((1, row), (0, column)):
        x, m = NUMPY.moveaxis(image, axis, -1), h.size
        x = NUMPY.pad(x, [(0, 0), (m // 2, m // 2)], mode="symmetric")
        y = xp.rate_filter(xp.astype(h, x.dtype), x)[..., m - 1 : x.shape[-1]]
        image = NUMPY.moveaxis(y, -1, axis)
    return image


def evaluation(name: str, order: int) -> Callable[..., Any]:
    """`cspline1d_eval` or `qspline1d_eval`: at points mirrored into the signal."""

    @functools.wraps(getattr(scipys, name))
    def call(cj: Any, newx: Any, dx: Any = 1.0, x0: Any = 0) -> Tensor:
        x, c = (NUMPY.asarray(newx) - x0) / dx, NUMPY.asarray(cj)
        if c.size == 0 and x.size:
            raise ValueError("Spline coefficients 'cj' must not be empty.")
        last = c.shape[0] - 1
        x = NUMPY.abs(x) % (2 * last)
        x = NUMPY.where(x > last, 2 * last - x, x)
        return ndimage.map_coordinates(c, x[None], order=order, mode="nearest", prefilter=False)

    return call
