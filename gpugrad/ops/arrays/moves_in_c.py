"""How C computes steps that read or write at an index: the field `c_call` of their ops.

An index that differs between runs is in C if it is one array of integers along one axis. One that
is the same in every run is a table of places.
"""

import math

import numpy as np

from gpugrad.kernels.cpu.large import LARGEST_STEP, WIDE, kernels
from gpugrad.trace.program import Argument, takes_arguments


def _axis(index, ndim):
    """The axis that the only array of an index selects from, if all else is whole; or None."""
    parts = index if type(index) is tuple else (index,)
    whole = [p is ... or (type(p) is slice and p == slice(None)) for p in parts]
    others = [k for k, is_whole in enumerate(whole) if not is_whole]
    if not ndim or len(others) != 1 or type(parts[others[0]]) is not Argument:
        return None  # a number has no axis: a boolean selects it
    before = parts[: others[0]]
    if ... in before:
        after = len(parts) - 1 - others[0]
        return ndim - 1 - after
    return others[0]


def _flat(index, shape):
    """The places in a flat array that a fixed index selects, or None."""
    if takes_arguments(index) or math.prod(shape) >= LARGEST_STEP:
        return None
    return np.ascontiguousarray(np.arange(math.prod(shape)).reshape(shape)[index])


def _no_value(array):
    return not hasattr(array, "dtype")


def take(xp, x, indices, axis=None):
    """As `gpugrad.kernels.cpu.moves.Function`, or NotImplemented; so are all of these."""
    if _no_value(x) or _no_value(indices):
        return NotImplemented
    shape = (math.prod(x.shape),) if axis is None else x.shape
    return kernels("moves").take(x, indices, shape, (axis or 0) % len(shape))


def getitem(xp, x, *places, index):
    """Slices at an array of integers."""
    axis = _axis(index, len(x.shape)) if len(places) == 1 else None
    return NotImplemented if axis is None else kernels("moves").take(x, places[0], x.shape, axis)


def scatter_at(xp, values, *places, index, shape):
    """Values added to zeros."""
    return _put("add", None, values, places, index, tuple(shape))


def index_add(xp, x, values, *places, index):
    """Values added to an array."""
    return _put("add", x, values, places, index, x.shape)


def index_put(xp, x, values, *places, index):
    """Values written over those of an array."""
    return _put("set", x, values, places, index, x.shape)


def index_fill(xp, x, *places, index, value=0):
    """A number written over elements of an array."""
    axis = _axis(index, len(x.shape)) if len(places) == 1 else None
    if axis is None or type(value) not in (int, float, bool):
        return NotImplemented
    shape = (*x.shape[:axis], *places[0].shape, *x.shape[axis + 1 :])
    values = np.full(shape, value, x.dtype)
    return kernels("moves").put("set", x.shape, axis, values, places[0], (0, 2, 1), (values,))


def _put(how, x, values, places, index, shape):
    n = x is not None
    if _no_value(values) or (n and x.dtype != values.dtype):
        return NotImplemented
    moves, base = kernels("moves"), n - 1
    if len(places) == 1:
        axis = _axis(index, len(shape))
        if axis is None:
            return NotImplemented
        return moves.put(how, shape, axis, values, places[0], (base, n, n + 1))
    flat = _flat(index, shape)
    if flat is None or flat.shape != values.shape:
        return NotImplemented
    return moves.put(how, (math.prod(shape),), 0, values, flat, (base, n, n + 1), (flat,))


def take_along_axis(xp, x, indices, axis=-1):
    """Elements along an axis."""
    if _no_value(x) or _no_value(indices):
        return NotImplemented
    return kernels("moves").take_along(x, indices, axis % len(x.shape))


def scatter_along_axis(xp, values, indices, *, axis, shape, unique=False):
    """Values added along an axis."""
    if _no_value(values) or _no_value(indices):
        return NotImplemented
    return kernels("moves").add_along(values, indices, axis % len(shape), shape)


def cumulative_sum(xp, x, axis=None, *, dtype=None, include_initial=False):
    """The running sum."""
    if not x.shape or dtype is not None or include_initial or (axis is None and len(x.shape) > 1):
        return NotImplemented
    return kernels("moves").running_sum(x, (axis or 0) % len(x.shape), False)


def suffix_sum(xp, x, *, axis):
    """The running sum from the end."""
    return kernels("moves").running_sum(x, axis % len(x.shape), True)


def sort(xp, x, axis=-1, *, descending=False, stable=True):
    """The sorted elements."""
    if not x.shape:
        return NotImplemented
    return kernels("moves").sort(x, axis % len(x.shape), False, descending)


def argsort(xp, x, axis=-1, *, descending=False, stable=True):
    """Their places."""
    if descending or not x.shape:
        return NotImplemented
    return kernels("moves").sort(x, axis % len(x.shape), True)


def place_of(least):
    """The places of the largest or of the least elements."""

    def planned(xp, x, axis=None, *, keepdims=False):
        if not x.shape:
            return NotImplemented
        shape = (math.prod(x.shape),) if axis is None else x.shape
        return kernels("moves").extreme(x.dtype, shape, (axis or 0) % len(shape), least)

    return planned


def test(every):
    """Whether any elements are true, or all of them."""

    def planned(xp, x, axis=None, *, keepdims=False):
        if _no_value(x):
            return NotImplemented
        if not x.shape:
            return kernels("moves").test(x, 0, -1, every)
        axes = range(len(x.shape)) if axis is None else axis if type(axis) is tuple else (axis,)
        over = sorted({k % len(x.shape) for k in axes})
        if not over or over != list(range(over[0], over[-1] + 1)):
            return NotImplemented
        return kernels("moves").test(x, over[0], over[-1], every)

    return planned


def total(is_mean):
    """The sum or the mean over neighbouring axes but the last, in order, as NumPy's.

    Large arrays are left to kernels that use threads.
    """

    def planned(xp, x, axis=None, *, dtype=None, keepdims=False):
        axes = axis if type(axis) is tuple else (axis,)
        if axis is None or dtype is not None or x.dtype not in WIDE:
            return NotImplemented
        over, size = sorted({k % len(x.shape) for k in axes}), math.prod(x.shape)
        if size >= LARGEST_STEP or not over or over[-1] - over[0] >= len(over):
            return NotImplemented
        if over[-1] == len(x.shape) - 1:
            return NotImplemented
        return kernels("moves").total(x, over[0], over[-1], is_mean)

    return planned


def sum_to(xp, x, *, shape):
    """The sum over neighbouring axes."""
    ones = (1,) * (len(x.shape) - len(shape)) + tuple(shape)
    gone = [k for k, n in enumerate(ones) if n == 1 and x.shape[k] != 1]
    if not gone or any(x.shape[k] != 1 for k in range(gone[0], gone[-1]) if k not in gone):
        return NotImplemented
    return kernels("moves").total(x, gone[0], gone[-1])
