"""`gelu` and its derivative, by the normal distribution, and the derivative of its tanh form.

SciPy computes the error function in double precision, element by element: a tenth of the speed
of a polynomial in float32. That is what a network's activations have on the CPU.
"""

from __future__ import annotations

import math

import numpy as np

from gpugrad.core.backend import NUMPY
from gpugrad.registry.record import elementwise

_ROOT_2, _ROOT_2PI = math.sqrt(2), math.sqrt(2 * math.pi)

_BLOCK = 2**16
"""Elements done at a time: twenty passes over them then read and write a cache."""

# Of Q(x) exp(x * x / 2) = t * P(t) with t = 1 / (1 + 0.32 x), for x >= 0, where Q is the
# probability that a standard normal number is above x: the minimax polynomial P, lowest term
# first, of relative error 3.2e-8.
_STEP = 0.32
_TAIL = (
    0.127661529, 0.127660947, 0.114622361, 0.0878290722, 0.0586541235, -0.00937805005,
    0.0653288569, -0.146708291, 0.0954077055, -0.0210782686,
)  # fmt: skip


def _in_blocks(formula, x):
    flat = x.reshape(-1)
    out = np.empty_like(flat)
    for i in range(0, flat.size, _BLOCK):
        out[i : i + _BLOCK] = formula(flat[i : i + _BLOCK])
    return out.reshape(x.shape)


def _tail(x):
    """|x|, at most 40; the probability above it; and exp(-x * x / 2)."""
    x = np.minimum(np.abs(x), np.float32(40))  # where all is 0: an infinity would meet it
    t = 1 / (1 + _STEP * x)
    p = _TAIL[-1] * t
    for c in _TAIL[-2::-1]:
        p += c
        p *= t
    e = np.exp(-0.5 * x * x)
    p *= e
    return x, p, e


def _gelu(x):
    size, p, _ = _tail(x)
    return np.maximum(x, 0) - size * p


def _slope(x):
    size, p, e = _tail(x)
    return 0.5 + np.copysign(0.5 - p + size * e * (1 / _ROOT_2PI), x)


def gelu(xp, x):
    """`x` times the probability that a standard normal number is below `x`."""
    if xp is NUMPY and x.dtype == np.float32:
        return _in_blocks(_gelu, x)
    return 0.5 * x * xp.special.erfc(x / -_ROOT_2)  # 1 + erf would round to 0 from x = -6 on


def _gelu_slope(xp, x):
    if xp is NUMPY and x.dtype == np.float32:
        return _in_blocks(_slope, x)
    return 0.5 * xp.special.erfc(x / -_ROOT_2) + x * xp.lib.exp(-0.5 * x * x) / _ROOT_2PI


def _gelu_bend(xp, x):
    density = xp.exp(-0.5 * x * x) / _ROOT_2PI
    return xp.masked_multiply(density, 2 - x * x)  # far from 0, x * x may overflow


gelu_slope = elementwise(
    "gelu_slope(x)", forward=_gelu_slope, d=[_gelu_bend],
    ref=lambda x: NUMPY.special.ndtr(x) + x * np.exp(-x * x / 2) / np.sqrt(2 * np.pi), cost=1,
    doc="The derivative of `gelu`.",
    example=("[0.0, 100.0]", "[0.5 1. ]"),
)  # fmt: skip

# ---- the tanh form -----------------------------------------------------------------------

_ROOT_2_OVER_PI = math.sqrt(2 / math.pi)
_CUBE = 0.044715 * _ROOT_2_OVER_PI


def _tanh_parts(tanh, x):
    """The tanh, the slope of what it is of, and what of that slope grows with x."""
    square = x * x
    grows = 3 * _CUBE * square
    return tanh(x * (_ROOT_2_OVER_PI + _CUBE * square)), _ROOT_2_OVER_PI + grows, grows


def gelu_tanh(xp, x):
    """`gelu` by a tanh."""
    return 0.5 * x * (1 + xp.lib.tanh(x * (_ROOT_2_OVER_PI + _CUBE * (x * x))))


def _tanh_slope(xp, x):
    t, inner, _ = _tanh_parts(xp.lib.tanh, x)
    # far from 0, x * inner may overflow where 1 - t * t is 0
    return 0.5 * (1 + t + xp.masked_multiply(1 - t * t, x * inner))


def _tanh_bend(xp, x):
    t, inner, grows = _tanh_parts(xp.tanh, x)
    return xp.masked_multiply(1 - t * t, inner + grows - x * t * inner * inner)


def _tanh_slope_ref(x):
    u, inner = (np.sqrt(2 / np.pi) * (x + f * 0.044715 * x**3) for f in (1, 3))
    return 0.5 * (1 + np.tanh(u) + inner / np.cosh(u) ** 2)


gelu_tanh_slope = elementwise(
    "gelu_tanh_slope(x)", forward=_tanh_slope, d=[_tanh_bend], ref=_tanh_slope_ref, cost=1,
    doc="The derivative of `gelu` with approximate=\"tanh\".",
    example=("[0.0, 100.0]", "[0.5 1. ]"),
)  # fmt: skip
