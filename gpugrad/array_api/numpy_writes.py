"""NumPy's functions that write to an argument: `copyto`, `put`, `putmask`, `fill_diagonal`, ..."""

from __future__ import annotations

from typing import Any

import numpy as np

from gpugrad.array_api.writes import begin_write, whole
from gpugrad.core.backend import SCALARS, TENSOR
from gpugrad.core.convert import constant
from gpugrad.core.from_python import no_value_lost
from gpugrad.core.tensor import Tensor, operand
from gpugrad.errors import ArgumentError, DTypeError, ShapeError, saying_where
from gpugrad.ops.arrays import indexing
from gpugrad.ops.arrays.gather import index_along_axis, nonzero
from gpugrad.ops.arrays.shape_numpy import diagonal_slice


def _writable(name: str, x: Any) -> Tensor:
    if not isinstance(x, Tensor):
        raise DTypeError(f"{name}: it writes to a Tensor, got a {type(x).__name__}.")
    begin_write(x)
    return x


def _repeated(name: str, x: Tensor, values: Any, n: int) -> Tensor:
    """The first `n` of the values for `x`, which repeat if there are fewer."""
    flat = TENSOR.ravel(operand(values, x))
    if n and not flat.size:
        raise ArgumentError(f"{name}: there are no values to write.")
    places = constant(np.arange(n) % max(flat.size, 1), device=flat.device)
    return TENSOR.take(flat, places, axis=0)


@saying_where
def copyto(dst: Tensor, src: Any, casting: str = "same_kind", where: Any = True) -> None:
    """Write `src` to `dst`, as NumPy's ``copyto``; differentiable.

    Args:
        dst: the Tensor to write to.
        src: array that broadcasts to its shape.
        casting: what casts are allowed: ``"no"``, ``"equiv"``, ``"safe"``, ``"same_kind"`` or
            ``"unsafe"``.
        where: mask that broadcasts to the shape: the elements to write.

    Raises:
        DTypeError: `dst` is not a Tensor, or `casting` forbids the cast.
        ShapeError: the shapes do not match.

    >>> x = gg.zeros(3)
    >>> gg.copyto(x, [1.0, 2.0, 3.0], where=[True, False, True])
    >>> print(x)
    [1. 0. 3.]
    """
    x = _writable("copyto", dst)
    values = operand(src, x)
    extra = values.ndim - x.ndim
    if extra > 0 and set(values.shape[:extra]) == {1}:  # as in x[...] = src
        values = TENSOR.reshape(values, values.shape[extra:])
    weak = values.ndim == 0 and not isinstance(src, Tensor) and not hasattr(src, "dtype")
    if weak and type(src) in SCALARS:  # it has a kind, but no size
        rank = {"b": 0, "u": 1, "i": 1, "f": 2, "V": 2, "c": 3}
        source = rank[np.dtype(type(src)).kind]
        allowed = casting == "unsafe" or source <= rank[x.dtype.kind]
        if x.dtype.kind in "iu" and type(src) is int:
            no_value_lost("copyto", np.asarray(src), x.dtype)
    else:
        allowed = bool(np.can_cast(values.dtype, x.dtype, casting))  # type: ignore[arg-type]
    if not allowed:
        raise DTypeError(
            f"copyto: casting={casting!r} forbids a cast from {values.dtype} to {x.dtype}."
        )
    values = TENSOR.broadcast_to(TENSOR.astype(values, x.dtype), x.shape)
    x[...] = values if where is True else TENSOR.where(where, values, x)


@saying_where
def putmask(a: Tensor, mask: Any, values: Any) -> None:
    """Write the values at the places of a mask, as NumPy's ``putmask``; differentiable.

    Args:
        a: the Tensor to write to.
        mask: booleans of its shape.
        values: array; it repeats, in row-major order, if it has fewer elements than `a`.

    Raises:
        DTypeError: `a` is not a Tensor.
        ArgumentError: there are no values.

    >>> x = gg.zeros(4)
    >>> gg.putmask(x, [True, False, True, True], [1.0, 2.0])
    >>> print(x)
    [1. 0. 1. 2.]
    """
    x = _writable("putmask", a)
    filled = TENSOR.reshape(_repeated("putmask", x, values, x.size), x.shape)
    x[...] = TENSOR.where(mask, TENSOR.astype(filled, x.dtype), x)


@saying_where
def place(arr: Tensor, mask: Any, vals: Any) -> None:
    """Write values one after the other where a mask is true, as NumPy's ``place``; differentiable.

    Args:
        arr: the Tensor to write to.
        mask: booleans of its shape.
        vals: array; it repeats if it has fewer elements than there are places.

    Raises:
        DTypeError: `arr` is not a Tensor.
        ArgumentError: there are no values.

    >>> x = gg.zeros(4)
    >>> gg.place(x, [True, False, True, True], [1.0, 2.0])
    >>> print(x)
    [1. 0. 2. 1.]
    """
    x = _writable("place", arr)
    index = nonzero(TENSOR.broadcast_to(TENSOR.astype(operand(mask), np.dtype(bool)), x.shape))
    x[index] = _repeated("place", x, vals, index[0].size)


@saying_where
def put(a: Tensor, ind: Any, v: Any, mode: str = "raise") -> None:
    """Write values at positions of the flattened array, as NumPy's ``put``; differentiable.

    Args:
        a: the Tensor to write to.
        ind: integers: positions in row-major order.
        v: array; it repeats if it has fewer elements than `ind`.
        mode: for a position out of bounds: ``"raise"``, ``"wrap"`` or ``"clip"``.

    Raises:
        DTypeError: `a` is not a Tensor.
        IndexOutOfBoundsError: a position is out of bounds.
        ArgumentError: another `mode`.

    >>> x = gg.zeros(4)
    >>> gg.put(x, [0, 2], [1.0, 2.0])
    >>> print(x)
    [1. 0. 2. 0.]
    """
    x, places = _writable("put", a), TENSOR.ravel(operand(ind))
    if not places.size or not np.size(v):  # NumPy writes nothing
        return
    if mode not in ("raise", "wrap", "clip"):
        raise ArgumentError(f"put: mode={mode!r} is not 'raise', 'wrap' or 'clip'.")
    if mode != "raise":
        n = max(x.size, 1)
        places = TENSOR.remainder(places, n) if mode == "wrap" else TENSOR.clip(places, 0, n - 1)
    values = whole(_repeated("put", x, v, places.size), x.dtype)
    flat = TENSOR.setitem(TENSOR.ravel(x), values, index=places)
    x[...] = TENSOR.reshape(flat, x.shape)


@saying_where
def put_along_axis(arr: Tensor, indices: Any, values: Any, axis: int | None) -> None:
    """Write values along an axis, as NumPy's ``put_along_axis``; differentiable.

    Args:
        arr: the Tensor to write to, of at least one axis.
        indices: integers, with as many axes as `arr`; except along `axis` they broadcast with it.
        values: array that broadcasts to the (broadcast) shape of the indices, or a number. If an
            index repeats, its last value stays, and it alone gets a gradient.
        axis: int; None writes to the flattened array, by one-dimensional indices.

    Raises:
        IndexOutOfBoundsError: an index is out of bounds.
        ShapeError: the shapes do not match.
        DTypeError: `arr` is not a Tensor, `indices` are not integers, or a cast of `values` would
            lose a fraction or an imaginary part.
        AxisError: `arr` does not have the axis.

    >>> x = gg.constant([[1.0, 2.0], [3.0, 4.0]])
    >>> gg.put_along_axis(x, [[1], [0]], 9.0, axis=1)
    >>> print(x)
    [[1. 9.]
     [9. 4.]]
    """
    x = _writable("put_along_axis", arr)
    flat = TENSOR.ravel(x) if axis is None else x
    index = index_along_axis("put_along_axis", flat, operand(indices), axis or 0)
    result = TENSOR.setitem(flat, values, index=indexing.frozen_index(index))
    x[...] = TENSOR.reshape(result, x.shape)


@saying_where
def fill_diagonal(a: Tensor, val: Any, wrap: bool = False) -> None:
    """Write a value to the main diagonal, as NumPy's ``fill_diagonal``; differentiable.

    Args:
        a: the Tensor to write to, of two axes, or of more axes of equal length.
        val: number, or array, which repeats if it is shorter than the diagonal.
        wrap: whether the diagonal of a tall matrix restarts after the last column.

    Raises:
        ShapeError: `a` has other axes.
        DTypeError: `a` is not a Tensor, or a cast of `val` would lose a fraction or an imaginary
            part.

    >>> x = gg.ones((2, 2))
    >>> gg.fill_diagonal(x, 0.0)
    >>> print(x)
    [[0. 1.]
     [1. 0.]]
    """
    x = _writable("fill_diagonal", a)
    if x.ndim < 2 or (x.ndim > 2 and len(set(x.shape)) > 1):
        raise ShapeError(
            f"fill_diagonal: a must have two axes, or more of equal length; its shape is {x.shape}."
        )
    places = np.arange(x.size)[diagonal_slice(x.shape, wrap)]
    value = val
    if not isinstance(val, (bool, int, float, complex)):
        value = _repeated("fill_diagonal", x, val, places.size)
    x[tuple(np.unravel_index(places, x.shape))] = value
