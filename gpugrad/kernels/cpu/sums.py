"""Sums in C: running ones, over axes, over all elements, and of rows by index.

Running sums and those by index have NumPy's bits.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from gpugrad.core.float_errors import no_overflow
from gpugrad.kernels.cpu.copies import differ_along, row_major
from gpugrad.kernels.cpu.large import LARGE, MIDDLE, WIDE, errors_raise
from gpugrad.kernels.cpu.pool import Kernels, apart

_PIECE = 1 << 14  # see sums.cpp
_LARGEST = 3.4028235e38  # of float32
_IN_C = [
    apart(
        "sums",
        f"#define TYPE {t}\n",
        running="l oo llll",
        squares="oo ll",
        products="oo l",
        extremes="l ppp lll > l",
        sum_middle="pp lll",
        add_rows="pppp lll > l",
        add_along="ppp llll > l",
        totals="oo l",
        reduce_rows="l oo ll",
    )
    for t in ("float", "double")
]


def _in_c(function: str, x: Any) -> Kernels:
    """The library that has a function for arrays like x; false without a compiler."""
    return _IN_C[WIDE[x.dtype]][function]


_RUNNING = {"add": 0, "multiply": 1, "maximum": 2, "minimum": 3}
"""The numbers by which sums.cpp knows NumPy's ufuncs."""


def running_sum(x: Any, axis: int, back: bool = False, what: str = "add") -> Any:
    """Sums of elements up to each one along an axis, or of those from it on if `back`.

    Or products, or the largest or smallest elements: `what` is the name of NumPy's ufunc.
    """
    fits = x.size >= MIDDLE and x.dtype in WIDE and -x.ndim <= axis < x.ndim
    if not fits or errors_raise() or not (in_c := _in_c("running", x)):
        return NotImplemented
    out, axis = np.empty(x.shape, x.dtype), axis % x.ndim
    sizes = math.prod(x.shape[:axis]), x.shape[axis], math.prod(x.shape[axis + 1 :])
    in_c.running(_RUNNING[what], row_major(x), out, *sizes, back)
    return out


def add_rows(out: Any, index: Any, values: Any, base: Any = None) -> bool:
    """Fill `out` with `base`, and add row i of `values` to row ``index[i]``, in order.

    Args:
        out: contiguous array (rows, width).
        index: ints (n,), from -rows to rows - 1.
        values: array (n, width).
        base: contiguous array (rows, width), perhaps `out`; None for zeros.

    Returns:
        False if NumPy has to, as for an index out of bounds; what is in `out` is then of no use.
    """
    fits = values.size >= MIDDLE and out.dtype == values.dtype and out.dtype in WIDE
    if not fits or not (in_c := _in_c("add_rows", out)):
        return False
    arrays = row_major(values), base, out, np.ascontiguousarray(index, np.int64)
    return bool(in_c.add_rows(*arrays, *values.shape, out.shape[0]))


def add_along(values: Any, index: Any, axis: int, shape: tuple[int, ...]) -> Any:
    """Zeros of a shape, and each element of `values` added at its index along an axis.

    Args:
        values: array of that shape but for the axis.
        index: ints of the same shape, which count along the axis, perhaps from its end.
    """
    fits = values.size >= MIDDLE and values.dtype in WIDE and index.dtype.kind == "i"
    n = values.ndim
    if not fits or index.shape != values.shape or not -n <= axis < n:
        return NotImplemented
    axis %= n
    outer, inner = math.prod(shape[:axis]), math.prod(shape[axis + 1 :])
    in_c = _in_c("add_along", values)
    if not differ_along(values.shape, shape, axis) or outer < 4 or not in_c:
        return NotImplemented  # each slice is one thread's
    out = np.empty(shape, values.dtype)
    arrays = row_major(values), out, np.ascontiguousarray(index, np.int64)
    sizes = outer, values.shape[axis], inner, shape[axis]
    good = in_c.add_along(*arrays, *sizes)
    return out if good else NotImplemented


def _axes(axis: Any, n: int) -> list[int] | None:
    """The axes of a reduction of n axes, sorted; None if NumPy refuses them."""
    listed = range(n) if axis is None else axis if isinstance(axis, (tuple, list)) else (axis,)
    if not all(type(k) is int or isinstance(k, np.integer) for k in listed):
        return None
    if not all(-n <= k < n for k in listed):
        return None
    axes = sorted(int(k) % n for k in listed)
    return axes if len({*axes}) == len(axes) else None


def reduced(x: Any, axis: Any, keepdims: bool) -> Any:
    """``np.sum(x, axis, keepdims=keepdims)`` over all axes, the last one, or neighbours before."""
    fits = type(x) is np.ndarray and x.size >= LARGE and x.dtype in WIDE
    if not fits or errors_raise():
        return NotImplemented
    axes = _axes(axis, x.ndim)
    if axes is None:
        return NotImplemented
    if len(axes) == x.ndim:
        total = _total(x)
        return total.reshape((1,) * x.ndim) if keepdims and total is not NotImplemented else total
    if axes == [x.ndim - 1]:
        return _reduce_rows(x, keepdims, products=False)
    if not axes or axes != [*range(axes[0], axes[-1] + 1)] or axes[-1] == x.ndim - 1:
        return NotImplemented
    first, last = axes[0], axes[-1] + 1
    inner = math.prod(x.shape[last:])
    if inner == 1 or not x.flags.c_contiguous:
        return NotImplemented
    if not (in_c := _in_c("sum_middle", x)):
        return NotImplemented
    between = (1,) * len(axes) if keepdims else ()
    out = np.empty((*x.shape[:first], *between, *x.shape[last:]), x.dtype)
    sizes = math.prod(x.shape[:first]), math.prod(x.shape[first:last]), inner
    in_c.sum_middle(x, out, *sizes)
    return out


def product_of_rows(x: Any, axis: Any, keepdims: bool) -> Any:
    """``np.prod(x, axis, keepdims=keepdims)`` along the last axis."""
    fits = x.ndim > 1 and x.size >= MIDDLE and x.dtype in WIDE
    if not fits or axis not in (-1, x.ndim - 1) or errors_raise():
        return NotImplemented
    return _reduce_rows(x, keepdims, products=True)


def _wide(function: str, x: Any) -> Any:
    """A function in C for arrays of float32, whose squares and products double can hold."""
    fits = x.size >= MIDDLE and x.dtype == np.float32 and x.flags.c_contiguous
    return in_c if fits and (in_c := _in_c(function, x)) and not errors_raise() else None


def product(x: Any) -> Any:
    """The product of all elements of an array of float32, in double."""
    in_c = _wide("products", x)
    if in_c is None:
        return NotImplemented
    parts = np.empty(-(-x.size // _PIECE))
    in_c.products(x, parts, x.size)
    total = math.prod(parts.tolist())  # without NumPy's warnings
    if abs(total) > _LARGEST:
        total = math.copysign(math.inf, total)
    return np.array(total, np.float32) if total == total else NotImplemented  # of 0 and inf


def norms(x: Any, axis: Any, keepdims: bool) -> Any:
    """Roots of the sums of squares of all elements, or along the last axis, for float32."""
    n, axes = x.ndim, _axes(axis, x.ndim)
    whole = axes == [*range(n)]
    in_c = _wide("squares", x) if whole or axes == [n - 1] else None
    if in_c is None:
        return NotImplemented
    shape, n = ((), x.size) if whole else (x.shape[:-1], x.shape[-1])
    total = np.empty(shape)
    in_c.squares(x, total, total.size, n)
    if not whole:
        with no_overflow():
            roots = np.sqrt(total).astype(np.float32)
        return roots[..., None] if keepdims else roots
    root = math.sqrt(total.item())
    roots = np.array(root if not root > _LARGEST else math.inf, np.float32)
    return roots.reshape((1,) * x.ndim) if keepdims else roots


def extremes(out: Any, index: Any, values: Any, least: bool) -> bool:
    """Take into row ``index[i]`` of `out` the largest, or smallest, elements of row i of `values`.

    False if NumPy has to, as for an index out of bounds; what is in `out` is then of no use.
    """
    fits = values.size >= MIDDLE and out.dtype == values.dtype and out.dtype in WIDE
    if not fits or not (in_c := _in_c("extremes", out)):
        return False
    arrays = row_major(values), out, np.ascontiguousarray(index, np.int64)
    return bool(in_c.extremes(least, *arrays, *values.shape, out.shape[0]))


def _reduce_rows(x: Any, keepdims: bool, products: bool) -> Any:
    """Sums or products along the last axis, with NumPy's bits."""
    if not x.flags.c_contiguous or not (in_c := _in_c("reduce_rows", x)):
        return NotImplemented
    n = x.shape[-1]
    out = np.empty((*x.shape[:-1], *((1,) if keepdims else ())), x.dtype)
    in_c.reduce_rows(products, x, out, x.size // n, n)
    return out


def _total(x: Any) -> Any:
    """The sum of all elements: of columns of pieces, and then of the pieces."""
    if not x.flags.forc or not (in_c := _in_c("totals", x)):
        return NotImplemented
    parts = np.empty(-(-x.size // _PIECE), x.dtype)
    in_c.totals(x, parts, x.size)
    return np.asarray(np.add.reduce(parts))
