"""Running sums and products, and the linear recurrence that is their adjoint."""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np

from gpugrad.core.backend import NUMPY
from gpugrad.core.samples import shaped
from gpugrad.errors import AxisError, ShapeError
from gpugrad.kernels.by_hand import scan
from gpugrad.ops._axes import accumulated, batch_all, batch_axis, cast_back
from gpugrad.registry.record import op


def _one_axis(ndim, axis, name):
    """The axis of a cumulative op; it may be left out for one axis only."""
    if axis is None and ndim != 1:
        raise AxisError(f"{name}: axis= is needed, since the array has {ndim} axes, not one.")
    return 0 if axis is None else axis


def _running(name):
    """How vmap runs a cumulative op: along the same axis of a stack of examples."""

    def batch(xp, batched, x, *, axis, **params):
        axis = batch_axis(_one_axis(x.ndim - 1, axis, name), x.ndim - 1)
        return getattr(xp, name)(x, axis=axis, **params)

    return batch


def _cumulative_sum_vjp(xp, g, x_shape, x_dtype, axis, include_initial):
    g = cast_back(xp, g, x_dtype)
    if not x_shape:
        return xp.getitem(g, index=(-1,))
    axis = 0 if axis is None else axis
    back = xp.suffix_sum(g, axis=axis)
    return _without_first(xp, back, axis) if include_initial else back


def _without_first(xp, x, axis):
    index = (slice(None),) * (axis % x.ndim) + (slice(1, None),)
    return xp.getitem(x, index=index)


_CUMULATIVE = shaped(
    ([(4,)], {}), ([(2, 3)], {"axis": 0}), ([(2, 3)], {"axis": -1, "include_initial": True}),
    ([(0,)], {}), ([(2, 0)], {"axis": 1}), ([(1, 4)], {"axis": 1, "dtype": "complex128"}),
)  # fmt: skip
_NEEDS_AXIS: list[Any] = [([np.ones((2, 3))], {}, AxisError, "axis= is needed")]


@op(vjp=[_cumulative_sum_vjp], linear=True, keeps_half=True, kinds="fci", samples=_CUMULATIVE,
    errors=_NEEDS_AXIS, batch=_running("cumulative_sum"),
    cuda=scan.cumulative_sum)  # fmt: skip
def cumulative_sum(xp, x, /, axis=None, *, dtype=None, include_initial=False):
    """Running sum along an axis.

    Args:
        x: array of at least one axis.
        axis: int; None for an array of one axis.
        dtype: of the result. None: that of `x`; int64 or uint64 for smaller integers.
        include_initial: whether the sum of nothing, 0, comes first.

    Returns:
        Tensor of the same shape (one longer along the axis with `include_initial`).

    Raises:
        AxisError: no axis was given, or `x` has no such axis.
        DTypeError: a real `dtype` for complex numbers.

    >>> print(gg.cumulative_sum([1.0, 2.0, 3.0]))
    [1. 3. 6.]
    """
    axis = _one_axis(x.ndim, axis, "cumulative_sum")
    run = xp.lib.cumulative_sum
    return accumulated("cumulative_sum", run, x, dtype, axis=axis, include_initial=include_initial)


@op(
    keeps_half=True, kinds="fc", cuda=scan.suffix_sum, whole=True,
    ref=lambda x, axis: np.flip(np.cumsum(np.flip(x, axis), axis), axis),
    samples=shaped(([(4,)], {"axis": 0}), ([(2, 3)], {"axis": -1}), ([(2, 3, 2)], {"axis": 1}),
                   ([(2, 0)], {"axis": 1})),
    errors=[([np.ones(3)], {"axis": 1}, AxisError, "axis 1")],
)  # fmt: skip
def suffix_sum(xp, x, /, *, axis):
    """Sum of each element and all those behind it along an axis: the adjoint of `cumulative_sum`.

    Args:
        x: array of at least one axis.
        axis: along which.

    Returns:
        Tensor of the same shape.

    Raises:
        AxisError: `x` has no such axis.

    >>> print(gg.OPS["suffix_sum"].eager([1.0, 2.0, 3.0], axis=0))
    [6. 5. 3.]
    """
    return xp.flip(xp.cumulative_sum(xp.flip(x, axis=axis), axis=axis), axis=axis)


def _cumulative_prod_vjp(xp, g, x, axis, dtype, include_initial):
    """Return (x_0 ... x_{k-1}) r_k, r_k = g_k + x_{k+1} r_{k+1}: no division by zeros."""
    given = x.dtype
    x = x if dtype is None else xp.astype(x, dtype)
    if not x.ndim:
        return cast_back(xp, xp.getitem(g, index=(-1,)), given)
    axis = (0 if axis is None else axis) % x.ndim
    if not x.shape[axis]:
        nothing = xp.getitem(g, index=(slice(None),) * axis + (slice(0, 0),))
        return cast_back(xp, nothing, given)
    if x.dtype.kind == "c":
        x = xp.conj(x)
    if include_initial:
        g = _without_first(xp, g, axis)
    until = (slice(None),) * axis
    before = xp.cumulative_prod(x, axis=axis, include_initial=True)
    before = xp.getitem(before, index=(*until, slice(0, -1)))
    later = xp.concat(
        [_without_first(xp, x, axis), xp.getitem(x, index=(*until, slice(0, 1)))], axis=axis
    )
    return cast_back(xp, before * xp.recurrence(later, g, axis=axis, reverse=True), given)


@op(vjp=[_cumulative_prod_vjp], keeps_half=True, kinds="fci", samples=_CUMULATIVE,
    errors=_NEEDS_AXIS, batch=_running("cumulative_prod"),
    cuda=scan.cumulative_prod)  # fmt: skip
def cumulative_prod(xp, x, /, axis=None, *, dtype=None, include_initial=False):
    """Running product along an axis. Exact gradients beside zeros.

    Args:
        x: array of at least one axis.
        axis: int; None for an array of one axis.
        dtype: of the result; None as for `cumulative_sum`.
        include_initial: whether the product of nothing, 1, comes first.

    Returns:
        Tensor of the same shape (one longer along the axis with `include_initial`).

    Raises:
        AxisError: no axis was given, or `x` has no such axis.
        DTypeError: a real `dtype` for complex numbers.

    >>> print(gg.cumulative_prod([1.0, 2.0, 3.0]))
    [1. 2. 6.]
    """
    axis = _one_axis(x.ndim, axis, "cumulative_prod")
    run = xp.lib.cumulative_prod
    return accumulated("cumulative_prod", run, x, dtype, axis=axis, include_initial=include_initial)


_NUMPYS = shaped(
    ([(4,)], {}), ([(2, 3)], {}), ([(2, 3)], {"axis": 0}), ([(2, 3)], {"axis": -1}), ([()], {}),
)  # fmt: skip
_BEYOND: list[Any] = [([np.ones((2, 3))], {"axis": 2}, AxisError, "axis 2 is out of bounds")]


@op(keeps_half=True, kinds="fci", samples=_NUMPYS, errors=_BEYOND)
def cumsum(xp, x, /, axis=None, dtype=None):
    """Running sum as NumPy's: `cumulative_sum`, of all elements if no axis is given.

    Args:
        x: array of any shape.
        axis: int; None for all elements, in row-major order.
        dtype: of the result; None as for `cumulative_sum`.

    Returns:
        Tensor of the shape of `x`; of shape (x.size,) without an axis.

    Raises:
        AxisError: `x` has no such axis.

    >>> print(gg.cumsum([[1.0, 2.0], [3.0, 4.0]]))
    [ 1.  3.  6. 10.]
    """
    x = xp.reshape(x, (x.size,)) if axis is None else x
    return xp.cumulative_sum(x, axis=0 if axis is None else axis, dtype=dtype)


@op(keeps_half=True, kinds="fci", samples=_NUMPYS, errors=_BEYOND)
def cumprod(xp, x, /, axis=None, dtype=None):
    """Running product as NumPy's: `cumulative_prod`, of all elements if no axis is given.

    Args:
        x: array of any shape.
        axis: int; None for all elements, in row-major order.
        dtype: of the result; None as for `cumulative_sum`.

    Returns:
        Tensor of the shape of `x`; of shape (x.size,) without an axis.

    Raises:
        AxisError: `x` has no such axis.

    >>> print(gg.cumprod([[1.0, 2.0], [3.0, 4.0]]))
    [ 1.  2.  6. 24.]
    """
    x = xp.reshape(x, (x.size,)) if axis is None else x
    return xp.cumulative_prod(x, axis=0 if axis is None else axis, dtype=dtype)


def _shifted(xp, y, axis, reverse):
    """Put each element in the place of the next one (of the one before, if reverse)."""
    n = y.shape[axis]
    until = (slice(None),) * axis
    kept = xp.getitem(y, index=(*until, slice(1, None) if reverse else slice(0, n - 1)))
    edge = xp.getitem(y, index=(*until, slice(0, 1))) * 0
    return xp.concat([kept, edge] if reverse else [edge, kept], axis=axis)


def _carried(xp, g, a, axis, reverse):
    """The recurrence read backwards: what reaches each step from all the later ones."""
    return xp.recurrence(_shifted(xp, a, axis, not reverse), g, axis=axis, reverse=not reverse)


def _recurrence_a(xp, g, out, a, axis, reverse):
    axis = axis % a.ndim
    d = _shifted(xp, out, axis, reverse)
    a, d = (xp.conj(a), xp.conj(d)) if d.dtype.kind == "c" else (a, d)
    return _carried(xp, g, a, axis, reverse) * d


def _recurrence_b(xp, g, a, axis, reverse):
    a = xp.conj(a) if a.dtype.kind == "c" else a
    return _carried(xp, g, a, axis % a.ndim, reverse)


def _recurrence_batch(xp, batched, a, b, *, axis, reverse):
    a, b = batch_all(xp, batched, (a, b))
    return xp.recurrence(a, b, axis=batch_axis(axis, a.ndim - 1), reverse=reverse)


_FEW = 10
"""Lines of which Python's numbers are faster than NumPy's steps from row to row."""


def _one_by_one(a, out, reverse):
    """The recurrence along axis 0, in place, one line after the other."""
    order = slice(None, None, -1 if reverse else 1)
    for at in np.ndindex(out.shape[1:]):
        factors, line = a[(order, *at)].tolist(), out[(order, *at)].tolist()
        for k in range(1, len(line)):
            line[k] += factors[k] * line[k - 1]
        out[(order, *at)] = line


def _recurrence_ref(a, b, *, axis, reverse=False):
    a, b = np.moveaxis(a, axis, 0), np.moveaxis(b, axis, 0)
    out, y = np.empty_like(b), 0
    for k in range(len(b))[:: -1 if reverse else 1]:
        out[k] = y = b[k] + a[k] * y
    return np.moveaxis(out, 0, axis)


@op(vjp=[_recurrence_a, _recurrence_b], kinds="fc", ref=_recurrence_ref, batch=_recurrence_batch,
    cuda=scan.recurrence,
    samples=shaped(([(4,)] * 2, {"axis": 0}), ([(2, 3)] * 2, {"axis": -1, "reverse": True}),
                   ([(3, 1)] * 2, {"axis": 1})),
    errors=[([np.ones(2), np.ones(3)], {"axis": 0}, ShapeError, "same shape")])  # fmt: skip
def recurrence(xp, a, b, /, *, axis, reverse=False):
    """First-order linear recurrence along an axis: y_k = b_k + a_k y_{k-1}, from y_{-1} = 0.

    Args:
        a, b: arrays of the same shape.
        axis: along which to run.
        reverse: whether to start at the end.

    Returns:
        Tensor of the same shape.

    Raises:
        ShapeError: the shapes differ.
        AxisError: there is no such axis.

    >>> print(gg.recurrence([2.0, 2.0, 2.0], [1.0, 1.0, 1.0], axis=0))
    [1. 3. 7.]
    """
    if a.shape != b.shape:
        raise ShapeError(f"recurrence: a {a.shape} and b {b.shape} must have the same shape.")
    a, b = xp.lib.moveaxis(a, axis, 0), xp.lib.moveaxis(b, axis, 0)
    out = xp.lib.array(b, dtype=xp.lib.result_type(a, b))
    if xp is NUMPY and 0 < out.size < _FEW * len(out):
        _one_by_one(a, out, reverse)
        return np.moveaxis(out, 0, axis)
    steps = range(b.shape[0])[:: -1 if reverse else 1]
    for before, k in itertools.pairwise(steps):
        out[k] += a[k] * out[before]
    return xp.lib.moveaxis(out, 0, axis)
