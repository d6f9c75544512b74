"""Roots of sums of powers, for norms and deviations whose squares leave the dtype's range."""

import numpy as np

from gpugrad.core.backend import NUMPY
from gpugrad.core.float_errors import no_overflow
from gpugrad.kernels.cpu.large import MIDDLE, kernels
from gpugrad.ops._axes import cast_back

_EXPONENTS = {"f": 126, "d": 1022}
"""The largest exponent whose negative is one of a normal number, by real dtype."""

_LEAST = {c: 2.0 ** -(n - n // 8) for c, n in _EXPONENTS.items()}
"""Sums of squares above these have lost nothing to underflow."""

_RANGE = {c: (np.array(low, c), np.array(np.inf, c)) for c, low in _LEAST.items()}


def _power(lib, x, p):
    if p == 2:
        return x * x if x.dtype.kind == "f" else x.real**2 + x.imag**2
    return lib.abs(x) ** p


def all_in_range(total, smallest=True):
    """Whether sums have neither overflowed nor, if `smallest` matters, lost digits to underflow."""
    char = total.dtype.char
    if not total.ndim:
        return _LEAST[char] < total < np.inf
    low, high = _RANGE[char]  # as arrays, which compare in half the time
    inside = (total > low) & (total < high) if smallest else total < high
    return np.count_nonzero(inside) == total.size


def root_of_powers(xp, x, p, axis, keepdims, divisor=1):
    """``(sum(abs(x)**p) / divisor) ** (1 / p)`` of a plain array, wherever it is representable.

    On the CPU a sum that overflows or underflows is taken again of `x` over a power of two, so that
    others cost one comparison per sum and stay as they are to the last bit. A GPU does not wait for
    the sum: there float32 is squared in float64, and other powers are always scaled.
    """
    if xp is NUMPY:
        if p == 2 and divisor == 1 and x.size >= MIDDLE:
            norms = kernels("sums").norms(x, axis, keepdims)
            if norms is not NotImplemented:
                return norms
        with no_overflow():
            total = np.add.reduce(_power(np, x, p), axis, keepdims=keepdims)
        if all_in_range(total) or not x.size:
            return _root(np, total, p, divisor)
    elif p == 2 or not x.size:
        wide = cast_back(xp, x, np.result_type(x.dtype, np.float64))
        total = xp.sum(_power(xp, wide, p), axis=axis, keepdims=keepdims)
        return cast_back(xp, _root(xp, total, p, divisor), np.finfo(x.dtype).dtype)
    lib = xp.lib
    scale = _scale(lib, x, p, axis)
    total = xp.add_reduce(_power(lib, x / scale, p), axis=axis, keepdims=keepdims)
    return _root(lib, total, p, divisor) * scale.reshape(total.shape)


def _root(lib, total, p, divisor):
    total = total if divisor == 1 else total / divisor
    return lib.sqrt(total) if p == 2 else total ** (1 / p)


def _scale(lib, x, p, axis):
    """A power of two near the element that dominates a sum of powers; any if that is 0 or inf.

    Numbers stand in ufuncs only: elsewhere CuPy would copy them from the host, which a graph
    cannot hold.
    """
    extreme = lib.max if p > 0 else lib.min
    size = extreme(lib.abs(x), axis=axis, keepdims=True)
    one, most = lib.ones_like(size), _EXPONENTS[size.dtype.char]
    exponent = lib.frexp(lib.where((size > 0) & (size < np.inf), size, one))[1]
    return lib.ldexp(one, lib.minimum(lib.maximum(exponent, -most), most))
