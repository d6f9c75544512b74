"""Slopes of tanh and sigmoid on NumPy arrays: from the result, and in the tails from the argument.

1 - y * y is the slope of y = tanh(x) in two passes, but from |x| = 9 on it is 0 in float32. So the
slopes are ops of both: an exponential of x is exact everywhere. Kernels always compute it. NumPy
does so for few elements, which take less time than a look at all y, and from the first block on in
which some y is near 1.
"""

import functools
from typing import Any

import numpy as np

from gpugrad.core.backend import NUMPY, OPS
from gpugrad.core.samples import shaped
from gpugrad.kernels.cpu.large import MIDDLE, kernels
from gpugrad.ops._blocks import BLOCK
from gpugrad.registry.on_arrays import through_float32, typed

FEW_DIGITS = 0.02
"""A difference from 1 below this may be wrong by more than 25 ulp."""

ONE: dict[str, Any] = {"f": np.asarray(1, np.float32), "d": np.asarray(1, np.float64)}
"""By dtype; NumPy takes twice as long to subtract from a Python number."""


@functools.cache
def _loop_in_c(name):
    """The formula of an op of two arrays as a loop in C."""
    return kernels("elementwise").forward_of(OPS[name])


def slope_of_many(name, by_result, by_argument, x, y, out):
    """A slope of more than `FEW` elements.

    Args:
        name: of the op, whose formula is a loop in C for large arrays.
        by_result: ``(y, one, out)``; returns the smallest difference from 1.
        by_argument: ``(x, y, one, out)``.
        x: the argument.
        y: the function's result, in the same shape and dtype: float32 or float64.
        out: the slope's memory, or None.
    """
    if out is None and x.size >= MIDDLE:
        result = _loop_in_c(name)((x, y), None)
        if result is not NotImplemented:
            return result
    one = ONE[x.dtype.char]
    if x.size <= BLOCK:
        if out is None:
            out = np.empty_like(y)
        if not by_result(y, one, out) >= FEW_DIGITS:
            by_argument(x, y, one, out)
        return out
    if out is None:
        out = np.empty(x.shape, x.dtype)
    flat = [a.reshape(-1) for a in (x, y, out)]
    in_tail = False
    for i in range(0, x.size, BLOCK):
        some_x, some_y, part = (a[i : i + BLOCK] for a in flat)
        in_tail = in_tail or not by_result(some_y, one, part) >= FEW_DIGITS
        if in_tail:
            by_argument(some_x, some_y, one, part)
    return out


def smallest(array):
    """The smallest element, or NaN; `min` takes five times as long to start."""
    return array.item(array.argmin())


def slope_of_any(formula, x, y):
    """``formula(xp, x, y)`` of numbers, 16-bit floats, complex numbers, or several shapes."""
    args = np.broadcast_arrays(*typed(x, y))
    return through_float32(functools.partial(formula, NUMPY))(*args)


def of_result(function):
    """Samples of a slope: an argument and the function's result."""

    def sampler(rng):
        for (x,), _ in shaped([(3,)], [()], [(0, 2)], [(2, 3)])(rng):
            yield [x, function(x)], {}

    return sampler


@functools.cache
def has_vectors(ufunc):
    """Whether NumPy runs a ufunc with vector instructions on this CPU."""
    loops = np.lib.introspect.opt_func_info(func_name=f"^{ufunc.__name__}$")
    return not loops[ufunc.__name__]["ff"]["current"].startswith("baseline")
