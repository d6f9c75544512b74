"""Reductions that leave NaNs out; the gradients of NaNs are 0.

Where a line holds nothing else, sums are 0, products 1 and all others NaN, with no warning.
"""

from __future__ import annotations

import math
import warnings
from typing import Any

import numpy as np

from gpugrad.core.backend import as_dtype
from gpugrad.core.samples import calls, uniform
from gpugrad.errors import AxisError, ShapeError
from gpugrad.ops._axes import expand
from gpugrad.registry.record import op


def _one_nan(rng, *shape):
    x = uniform(rng, *shape)
    if x.size > 2:
        x.flat[rng.integers(x.size)] = np.nan
    return x


_EVERY = calls(
    lambda rng: [_one_nan(rng, 4)],
    lambda rng: ([_one_nan(rng, 3, 2)], {"axis": 0}),
    lambda rng: ([_one_nan(rng, 2, 3, 2)], {"axis": (-1, 1), "keepdims": True}),
    lambda rng: [uniform(rng)],
    lambda rng: ([uniform(rng, 0, 2)], {"axis": 1}),
)
_ONE = calls(
    lambda rng: [_one_nan(rng, 4)],
    lambda rng: ([_one_nan(rng, 3, 2)], {"axis": 0}),
    lambda rng: ([_one_nan(rng, 2, 3)], {"axis": -1, "keepdims": True}),
)
_RUNNING = calls(
    lambda rng: [_one_nan(rng, 4)],
    lambda rng: ([_one_nan(rng, 3, 2)], {"axis": 0}),
    lambda rng: ([_one_nan(rng, 2, 3)], {"axis": -1, "include_initial": True}),
)
_NO_AXIS: list[Any] = [([np.ones((2, 3))], {"axis": 2}, AxisError, "axis 2 is out of bounds")]
_EMPTY: list[Any] = [*_NO_AXIS, ([np.ones((0, 3))], {"axis": 0}, ShapeError, "zero-size|empty")]


def quiet(name):
    """NumPy's function, without its warnings of lines of NaNs."""

    def reference(x, *args, **keywords):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return getattr(np, name)(x, *args, **keywords)

    return reference


def _filled(xp, x, value):
    """`x` with a number in the place of NaNs."""
    return x if x.dtype.kind in "biu" else xp.where(xp.isnan(x), value, x)


def _counted(xp, x, axis, keepdims):
    """How many elements are not NaN, as real numbers of the precision of `x`."""
    real = {"complex64": np.float32, "complex128": np.float64}.get(x.dtype.name, x.dtype)
    return xp.sum(xp.astype(~xp.isnan(x), real), axis=axis, keepdims=keepdims)


def _or_nan(xp, n):
    """A divisor that gives NaN, and no warning, where it is not positive."""
    return xp.where(n > 0, n, float("nan"))


def _in_dtype(xp, f, x, dtype):
    """``f(x)`` in a dtype; of 16-bit floats in float32, rounded once at the end."""
    made = x.dtype if dtype is None else as_dtype(dtype)
    half = made.char in "eE"
    wide = np.dtype(np.float32) if half else made
    out = f(x if x.dtype == wide else xp.astype(x, wide))
    return xp.astype(out, made) if half else out


# ---- sums and products -------------------------------------------------------------------


@op(keeps_half=True, kinds="fc", samples=_EVERY, errors=_NO_AXIS)
def nansum(xp, x, /, axis=None, *, dtype=None, keepdims=False):
    """Sum along axes of what is not NaN; 0 where there is nothing to add.

    Args:
        dtype: of the result; None as for `sum`.

    >>> print(gg.nansum([1.0, float("nan"), 2.0]))
    3.0
    """
    return xp.sum(_filled(xp, x, 0), axis=axis, dtype=dtype, keepdims=keepdims)


@op(keeps_half=True, kinds="fc", samples=_EVERY, errors=_NO_AXIS)
def nanprod(xp, x, /, axis=None, *, dtype=None, keepdims=False):
    """Product along axes of what is not NaN; 1 where there is nothing to multiply.

    Args:
        dtype: of the result; None as for `prod`.

    >>> print(gg.nanprod([2.0, float("nan"), 3.0]))
    6.0
    """
    return xp.prod(_filled(xp, x, 1), axis=axis, dtype=dtype, keepdims=keepdims)


@op(
    keeps_half=True,
    kinds="fc",
    samples=_RUNNING,
    errors=[([np.ones((2, 3))], {}, AxisError, "axis= is needed")],
    ref=lambda x, axis=None, include_initial=False: np.cumulative_sum(
        np.where(np.isnan(x), 0, x), axis=axis, include_initial=include_initial
    ),
)
def nancumsum(xp, x, /, axis=None, *, dtype=None, include_initial=False):
    """Running sum along an axis in which NaNs count as 0.

    Args:
        x: array of at least one axis.
        axis: int; None for an array of one axis.
        dtype: of the result; None as for `cumulative_sum`.
        include_initial: whether the sum of nothing, 0, comes first.

    Returns:
        Tensor of the same shape (one longer along the axis with `include_initial`).

    >>> print(gg.nancumsum([1.0, float("nan"), 2.0]))
    [1. 1. 3.]
    """
    x = _filled(xp, x, 0)
    return xp.cumulative_sum(x, axis=axis, dtype=dtype, include_initial=include_initial)


@op(
    keeps_half=True,
    kinds="fc",
    samples=_RUNNING,
    errors=[([np.ones((2, 3))], {}, AxisError, "axis= is needed")],
    ref=lambda x, axis=None, include_initial=False: np.cumulative_prod(
        np.where(np.isnan(x), 1, x), axis=axis, include_initial=include_initial
    ),
)
def nancumprod(xp, x, /, axis=None, *, dtype=None, include_initial=False):
    """Running product along an axis in which NaNs count as 1.

    Args:
        x: array of at least one axis.
        axis: int; None for an array of one axis.
        dtype: of the result; None as for `cumulative_prod`.
        include_initial: whether the product of nothing, 1, comes first.

    Returns:
        Tensor of the same shape (one longer along the axis with `include_initial`).

    >>> print(gg.nancumprod([2.0, float("nan"), 3.0]))
    [2. 2. 6.]
    """
    x = _filled(xp, x, 1)
    return xp.cumulative_prod(x, axis=axis, dtype=dtype, include_initial=include_initial)


# ---- mean and spread ---------------------------------------------------------------------


def _nanmean(xp, x, axis, keepdims):
    if x.dtype.kind in "biu":
        return xp.mean(x, axis=axis, keepdims=keepdims)
    n = _or_nan(xp, _counted(xp, x, axis, keepdims))
    return xp.nansum(x, axis=axis, keepdims=keepdims) / n


@op(keeps_half=True, kinds="fc", samples=_EVERY, ref=quiet("nanmean"), errors=_NO_AXIS)
def nanmean(xp, x, /, axis=None, *, dtype=None, keepdims=False):
    """Arithmetic mean along axes of what is not NaN.

    Args:
        x: array of any shape; integers give float64.
        dtype: to compute in, and of the result; None is that of `x`.

    Returns:
        Tensor without the reduced axes; NaN where there is nothing else.

    >>> print(gg.nanmean([1.0, float("nan"), 2.0]))
    1.5
    """
    return _in_dtype(xp, lambda x: _nanmean(xp, x, axis, keepdims), x, dtype)


_SPREAD = calls(
    lambda rng: [_one_nan(rng, 4)],
    lambda rng: ([_one_nan(rng, 4, 2)], {"axis": 0, "correction": 1}),
    lambda rng: ([_one_nan(rng, 2, 3, 2)], {"axis": (-1, 1), "keepdims": True}),
)


def _nanvar(xp, x, axis, correction, keepdims):
    if x.dtype.kind in "biu":
        return xp.var(x, axis=axis, correction=correction, keepdims=keepdims)
    d = xp.where(xp.isnan(x), 0.0, x - _nanmean(xp, x, axis, True))
    squares = xp.real(d * xp.conj(d)) if d.dtype.kind == "c" else d * d
    n = _or_nan(xp, _counted(xp, x, axis, keepdims) - correction)
    return xp.sum(squares, axis=axis, keepdims=keepdims) / n


@op(keeps_half=True, kinds="fc", samples=_SPREAD, ref=quiet("nanvar"), errors=_NO_AXIS)
def nanvar(xp, x, /, axis=None, *, dtype=None, correction=0.0, keepdims=False, ddof=None):
    """Variance along axes of what is not NaN.

    Args:
        dtype: to compute in, and of the result; None is that of `x`.

    Returns:
        Real Tensor without the reduced axes; NaN where the divisor is not positive.

    >>> print(gg.nanvar([1.0, float("nan"), 3.0]))
    1.0
    """
    correction = correction if ddof is None else ddof
    return _in_dtype(xp, lambda x: _nanvar(xp, x, axis, correction, keepdims), x, dtype)


def _nanstd(xp, x, axis, correction, keepdims):
    v = _nanvar(xp, x, axis, correction, keepdims)
    none = xp.equal(v, 0)
    return xp.where(none, 0.0, xp.sqrt(xp.where(none, 1.0, v)))


@op(keeps_half=True, kinds="fc", samples=_SPREAD, ref=quiet("nanstd"), errors=_NO_AXIS)
def nanstd(xp, x, /, axis=None, *, dtype=None, correction=0.0, keepdims=False, ddof=None):
    """Standard deviation along axes of what is not NaN, with gradient 0 where it is 0.

    Args:
        dtype: to compute in, and of the result; None is that of `x`.

    Returns:
        Real Tensor without the reduced axes; NaN where the divisor is not positive.

    >>> print(gg.nanstd([1.0, float("nan"), 3.0]))
    1.0
    """
    correction = correction if ddof is None else ddof
    return _in_dtype(xp, lambda x: _nanstd(xp, x, axis, correction, keepdims), x, dtype)


# ---- extremes ----------------------------------------------------------------------------


def _extreme(xp, x, axis, keepdims, reduced, beyond):
    """The extreme of all but NaNs, for which `beyond` stands."""
    if x.dtype.kind in "biu":
        return reduced(x, axis=axis, keepdims=keepdims)
    nan = xp.lib.isnan(x)
    found = reduced(xp.lib.where(nan, beyond, x), axis=axis, keepdims=keepdims)
    only = xp.lib.all(nan, axis=axis, keepdims=keepdims)
    return xp.lib.where(only, math.nan, found)


def _extreme_vjp(xp, g, out, x, axis, keepdims):
    """Equal extremes share the gradient; a NaN equals nothing."""
    hit = xp.astype(x == expand(xp, out, x.shape, axis, keepdims), x.dtype)
    share = xp.maximum(xp.sum(hit, axis=axis, keepdims=True), 1)
    return hit * (expand(xp, g, x.shape, axis, keepdims) / share)


def _from_end(x, axis):
    """Axes of one example, counted from the end, where axis 0 of `x` is the batch."""
    n = x.ndim - 1
    axes = range(n) if axis is None else axis if isinstance(axis, (tuple, list)) else (axis,)
    return tuple(a - n if a >= 0 else a for a in axes)


def _nanmax_batch(xp, batched, x, *, axis, keepdims):
    return xp.nanmax(x, axis=_from_end(x, axis), keepdims=keepdims)


def _nanmin_batch(xp, batched, x, *, axis, keepdims):
    return xp.nanmin(x, axis=_from_end(x, axis), keepdims=keepdims)


@op(
    vjp=[_extreme_vjp],
    batch=_nanmax_batch,
    kinds="fc",
    samples=_EVERY,
    ref=quiet("nanmax"),
    errors=_EMPTY,
)
def nanmax(xp, x, /, axis=None, *, keepdims=False):
    """Largest element along axes that is not NaN; equal ones share the gradient.

    Args:
        x: array of any shape, not of length 0 along a reduced axis.

    Returns:
        Tensor without the reduced axes; NaN where there is nothing else.

    >>> print(gg.nanmax([1.0, float("nan"), 2.0]))
    2.0
    """
    return _extreme(xp, x, axis, keepdims, xp.lib.max, -np.inf)


@op(
    vjp=[_extreme_vjp],
    batch=_nanmin_batch,
    kinds="fc",
    samples=_EVERY,
    ref=quiet("nanmin"),
    errors=_EMPTY,
)
def nanmin(xp, x, /, axis=None, *, keepdims=False):
    """Smallest element along axes that is not NaN; equal ones share the gradient.

    Args:
        x: array of any shape, not of length 0 along a reduced axis.

    Returns:
        Tensor without the reduced axes; NaN where there is nothing else.

    >>> print(gg.nanmin([1.0, float("nan"), 2.0]))
    1.0
    """
    return _extreme(xp, x, axis, keepdims, xp.lib.min, np.inf)


def _place(xp, x, extreme, axis, keepdims):
    """Where the extreme stands first; -1 in a line of NaNs."""
    out = extreme(x, axis=axis, keepdims=True)
    found = xp.argmax(xp.astype(xp.equal(x, out), np.int8), axis=axis, keepdims=keepdims)
    if x.dtype.kind in "biu":
        return found
    nothing = xp.isnan(out)
    return xp.where(xp.reshape(nothing, found.shape), -1, found)


@op(samples=_ONE, errors=_EMPTY)
def nanargmax(xp, x, /, axis=None, *, keepdims=False):
    """Index of the largest element that is not NaN, the first of equal ones. No gradient.

    Args:
        x: array of any shape, not empty.
        axis: int, or None to count through all elements.
        keepdims: whether the reduced axis stays, with length 1.

    Returns:
        int64 Tensor without the reduced axis; -1 where there is nothing but NaNs.

    >>> print(gg.nanargmax([1.0, float("nan"), 2.0]))
    2
    """
    return _place(xp, x, xp.nanmax, axis, keepdims)


@op(samples=_ONE, errors=_EMPTY)
def nanargmin(xp, x, /, axis=None, *, keepdims=False):
    """Index of the smallest element that is not NaN, the first of equal ones. No gradient.

    Args:
        x: array of any shape, not empty.
        axis: int, or None to count through all elements.
        keepdims: whether the reduced axis stays, with length 1.

    Returns:
        int64 Tensor without the reduced axis; -1 where there is nothing but NaNs.

    >>> print(gg.nanargmin([2.0, float("nan"), 1.0]))
    2
    """
    return _place(xp, x, xp.nanmin, axis, keepdims)
