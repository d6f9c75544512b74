"""Running extremes, and the running logarithm of a sum of exponentials."""

from __future__ import annotations

from typing import Any

import numpy as np

from gpugrad.core.backend import NUMPY
from gpugrad.core.samples import shaped
from gpugrad.errors import AxisError
from gpugrad.kernels.by_hand import scan
from gpugrad.registry.record import op


def _axis_of(name, shape, axis):
    """`axis` counted from 0; it may be left out for one axis only."""
    n = len(shape)
    if axis is None and n != 1:
        raise AxisError(f"{name}: axis= is needed, since the array has {n} axes, not one.")
    axis = 0 if axis is None else axis
    if not -n <= axis < n:
        raise AxisError(f"{name}: axis {axis} is out of bounds for the shape {shape}.")
    return axis % n


def _accumulated(xp, name, combine, x, axis):
    """Each element combined with all those before it."""
    axis = _axis_of(name, x.shape, axis)
    if xp is NUMPY:
        return combine.accumulate(x, axis=axis)
    x, reach = xp.lib.moveaxis(x, axis, 0), 1  # CuPy's ufuncs do not: log2(n) steps instead
    while reach < x.shape[0]:
        x = xp.lib.concat([x[:reach], combine(x[reach:], x[:-reach])], axis=0)
        reach *= 2
    return xp.lib.moveaxis(x, 0, axis)


_RUNNING = shaped(
    ([(5,)], {}), ([(3, 2)], {"axis": 0}), ([(2, 3)], {"axis": -1}), ([(0,)], {}),
    ([(2, 0)], {"axis": 1}),
)  # fmt: skip
_ERRORS: list[Any] = [
    ([np.ones((2, 3))], {}, AxisError, "axis= is needed"),
    ([np.ones(3)], {"axis": 1}, AxisError, "axis 1"),
]

# ---- extremes ----------------------------------------------------------------------------


def _extreme_vjp(xp, g, out, x, axis):
    """The gradient goes to the place where the extreme was last reached."""
    axis = 0 if axis is None else axis
    reached = xp.astype((x == out) | xp.isnan(x), np.int64)
    count = xp.cumulative_sum(reached * 0 + 1, axis=axis)
    place = xp.cumulative_max(reached * (count - 1), axis=axis)
    return xp.scatter_along_axis(g, place, axis=axis, shape=x.shape)


def _behind_batch(name):
    """How `vmap` runs an op: along the axis of an example."""

    def batch(xp, batched, x, *, axis):
        return getattr(xp, name)(x, axis=1 + _axis_of(name, x.shape[1:], axis))

    return batch


@op(
    vjp=[_extreme_vjp], kinds="fci", keeps_half=True, samples=_RUNNING, errors=_ERRORS,
    batch=_behind_batch("cumulative_max"),
    ref=lambda x, axis=0: np.maximum.accumulate(x, axis), cuda=scan.cumulative_max,
)  # fmt: skip
def cumulative_max(xp, x, /, axis=None):
    """Largest element so far along an axis; of equal ones the last gets the gradient.

    Args:
        x: array of at least one axis.
        axis: int; None for an array of one axis.

    Returns:
        Tensor of the shape of `x`; NaN from the first NaN on.

    Raises:
        AxisError: no axis was given, or `x` has no such axis.

    >>> print(gg.cumulative_max([1.0, 3.0, 2.0]))
    [1. 3. 3.]
    """
    return _accumulated(xp, "cumulative_max", xp.lib.maximum, x, axis)


@op(
    vjp=[_extreme_vjp], kinds="fci", keeps_half=True, samples=_RUNNING, errors=_ERRORS,
    batch=_behind_batch("cumulative_min"),
    ref=lambda x, axis=0: np.minimum.accumulate(x, axis), cuda=scan.cumulative_min,
)  # fmt: skip
def cumulative_min(xp, x, /, axis=None):
    """Smallest element so far along an axis; of equal ones the last gets the gradient.

    Args:
        x: array of at least one axis.
        axis: int; None for an array of one axis.

    Returns:
        Tensor of the shape of `x`; NaN from the first NaN on.

    Raises:
        AxisError: no axis was given, or `x` has no such axis.

    >>> print(gg.cumulative_min([2.0, 1.0, 3.0]))
    [2. 1. 1.]
    """
    return _accumulated(xp, "cumulative_min", xp.lib.minimum, x, axis)


# ---- logarithm of a sum ------------------------------------------------------------------


def _cumulative_logsumexp_vjp(xp, g, out, x, axis):
    """Return exp(x_k - y_k) r_k, r_k = g_k + exp(y_k - y_(k + 1)) r_(k + 1).

    As y ascends, no exponential is above 1, and nothing cancels.
    """
    axis = (0 if axis is None else axis) % x.ndim
    finite = xp.where(out == -np.inf, 0.0, out)  # -inf - -inf is NaN; the exponential is 0
    lead = (slice(None),) * axis
    after = xp.getitem(finite, index=(*lead, slice(1, None)))
    last = xp.getitem(finite, index=(*lead, slice(-1, None)))
    factor = xp.exp(out - xp.concat([after, last], axis=axis))
    return xp.exp(x - finite) * xp.recurrence(factor, g, axis=axis, reverse=True)


@op(
    vjp=[_cumulative_logsumexp_vjp], samples=_RUNNING, errors=_ERRORS,
    batch=_behind_batch("cumulative_logsumexp"),
    ref=lambda x, axis=0: np.log(np.cumsum(np.exp(x), axis)), cuda=scan.cumulative_logsumexp,
)  # fmt: skip
def cumulative_logsumexp(xp, x, /, axis=None):
    """log(cumulative_sum(exp(x))) along an axis, without overflow.

    Args:
        x: array of at least one axis.
        axis: int; None for an array of one axis.

    Returns:
        Tensor of the shape of `x`.

    Raises:
        AxisError: no axis was given, or `x` has no such axis.

    >>> print(gg.cumulative_logsumexp([1000.0, 1000.0]))
    [1000.     1000.6931]
    """
    x = x if x.dtype.kind == "f" else x.astype(np.float64)
    return _accumulated(xp, "cumulative_logsumexp", xp.lib.logaddexp, x, axis)
