"""NumPy's functions that make indices: of triangles and diagonals, and in row-major order."""

from __future__ import annotations

import math
import operator

import numpy as np

from gpugrad.core.backend import TENSOR
from gpugrad.core.samples import calls
from gpugrad.core.tensor import tensor
from gpugrad.errors import (
    ArgumentError,
    DTypeError,
    IndexOutOfBoundsError,
    ShapeError,
    saying_where,
)
from gpugrad.ops.arrays.grids import made_on
from gpugrad.registry.record import op


@saying_where
def broadcast_shapes(*shapes):
    """The shape that arrays of some shapes have when they are broadcast against each other.

    Args:
        *shapes: tuples of ints, or ints.

    Returns:
        Tuple of ints.

    Raises:
        ShapeError: they do not go together.

    >>> gg.broadcast_shapes((2, 1), (3,))
    (2, 3)
    """
    try:
        return np.broadcast_shapes(*shapes)
    except ValueError as error:
        given = ", ".join(map(str, shapes))
        raise ShapeError(
            f"broadcast_shapes: {given} do not go together. They must agree, counted from the "
            "last axis; a 1 stretches."
        ) from error


# ---- triangles and diagonals -------------------------------------------------------------


@saying_where
def tril_indices(n, k=0, m=None, *, device=None):
    """Indices of the lower triangle of a matrix, of the k-th diagonal and below.

    Args:
        n, m: numbers of rows and of columns; m is n if None.
        k: the diagonal; 0 is the main one, those above it are positive.
        device: the default device if None.

    Returns:
        Tuple of two int64 Tensors: rows and columns.

    >>> rows, columns = gg.tril_indices(2)
    >>> print(rows, columns)
    [0 1 1] [0 0 1]
    """
    return tuple(made_on(i, device=device) for i in np.tril_indices(n, k, m))


@saying_where
def triu_indices(n, k=0, m=None, *, device=None):
    """Indices of the upper triangle of a matrix, of the k-th diagonal and above.

    Args:
        n, m: numbers of rows and of columns; m is n if None.
        k: the diagonal; 0 is the main one, those above it are positive.
        device: the default device if None.

    Returns:
        Tuple of two int64 Tensors: rows and columns.

    >>> rows, columns = gg.triu_indices(2)
    >>> print(rows, columns)
    [0 0 1] [0 1 1]
    """
    return tuple(made_on(i, device=device) for i in np.triu_indices(n, k, m))


def _matrix(name, arr):
    x = tensor(arr)
    if x.ndim != 2:
        raise ShapeError(f"{name}: a matrix is needed, the shape is {x.shape}.")
    return x


@saying_where
def tril_indices_from(arr, k=0):
    """Indices of the lower triangle of a given matrix: `tril_indices` of its shape.

    Args:
        arr: array of two axes.
        k: the diagonal; 0 is the main one, those above it are positive.

    Returns:
        Tuple of two int64 Tensors: rows and columns.

    Raises:
        ShapeError: `arr` has not two axes.

    >>> print(gg.tril_indices_from(gg.zeros((2, 2)))[0])
    [0 1 1]
    """
    x = _matrix("tril_indices_from", arr)
    return tril_indices(x.shape[0], k, x.shape[1], device=x.device)


@saying_where
def triu_indices_from(arr, k=0):
    """Indices of the upper triangle of a given matrix: `triu_indices` of its shape.

    Args:
        arr: array of two axes.
        k: the diagonal; 0 is the main one, those above it are positive.

    Returns:
        Tuple of two int64 Tensors: rows and columns.

    Raises:
        ShapeError: `arr` has not two axes.

    >>> print(gg.triu_indices_from(gg.zeros((2, 2)))[0])
    [0 0 1]
    """
    x = _matrix("triu_indices_from", arr)
    return triu_indices(x.shape[0], k, x.shape[1], device=x.device)


@saying_where
def diag_indices(n, ndim=2, *, device=None):
    """Indices of the main diagonal of an array whose axes are all of one length.

    Args:
        n: the length of each axis.
        ndim: how many axes there are.
        device: the default device if None.

    Returns:
        Tuple of `ndim` int64 Tensors.

    >>> rows, columns = gg.diag_indices(2)
    >>> print(rows, columns)
    [0 1] [0 1]
    """
    return (made_on(np.arange(n), device=device),) * ndim


@saying_where
def diag_indices_from(arr):
    """Indices of the main diagonal of a given array: `diag_indices` of its shape.

    Args:
        arr: array of at least two axes, all of one length.

    Returns:
        Tuple of int64 Tensors, one for each axis.

    Raises:
        ShapeError: `arr` has fewer axes, or their lengths differ.

    >>> print(gg.diag_indices_from(gg.zeros((2, 2)))[0])
    [0 1]
    """
    x = tensor(arr)
    if x.ndim < 2 or len(set(x.shape)) != 1:
        raise ShapeError(
            f"diag_indices_from: two or more axes of one length are needed; the shape is {x.shape}."
        )
    return diag_indices(x.shape[0], x.ndim, device=x.device)


# ---- one number for several indices ------------------------------------------------------


@saying_where
def unravel_index(indices, shape):
    """The indices along each axis of places that are counted in row-major order.

    Args:
        indices: integers, of any shape.
        shape: tuple of ints.

    Returns:
        Tuple of int64 Tensors of the shape of `indices`, one for each axis.

    Raises:
        IndexOutOfBoundsError: a place beyond the end.
        DTypeError: `indices` are no integers.

    >>> rows, columns = gg.unravel_index([1, 5], (2, 3))
    >>> print(rows, columns)
    [0 1] [1 2]
    """
    shape = (shape,) if isinstance(shape, (int, np.integer)) else tuple(shape)
    places = TENSOR.unraveled(tensor(indices), shape=shape)
    return tuple(TENSOR.getitem(places, index=k) for k in range(len(shape)))


@op(
    differentiable=False,
    kinds="i",
    batch=lambda xp, batched, x, *, shape: xp.moveaxis(xp.unraveled(x, shape=shape), 0, 1),
    ref=lambda x, shape: np.array(np.unravel_index(x, shape), dtype=np.int64),
    samples=calls(
        lambda rng: ([rng.integers(0, 6, (2, 2))], {"shape": (2, 3)}),
        lambda rng: ([np.array(5)], {"shape": (2, 1, 3)}),
        lambda rng: ([np.array([], dtype=np.int64)], {"shape": (2, 2)}),
    ),
    errors=[
        ([np.array([6])], {"shape": (2, 3)}, IndexOutOfBoundsError, r"unraveled: 6.*\(2, 3\)"),
        ([np.ones(2)], {"shape": (2, 3)}, DTypeError, "unraveled.*float64"),
        ([np.array([1])], {"shape": (2, 3.5)}, ArgumentError, "unraveled.*An int"),
    ],
)
def unraveled(xp, x, /, *, shape):
    """Indices along each axis of places counted in row-major order: behind `unravel_index`.

    Args:
        x: integers, of any shape.
        shape: tuple of ints.

    Returns:
        int64 Tensor of shape (len(shape), *x.shape).

    >>> print(gg.unraveled([1, 5], shape=(2, 3)))
    [[0 1]
     [1 2]]
    """
    if x.dtype.kind not in "iu":
        raise DTypeError(f"unraveled: indices are integers, not {x.dtype}.")
    n = math.prod(map(operator.index, shape))
    if x.size and (int(x.min()) < 0 or int(x.max()) >= n):
        worst = int(x.max()) if int(x.max()) >= n else int(x.min())
        raise IndexOutOfBoundsError(f"unraveled: {worst} is no place of the {n} of {shape}.")
    steps = [math.prod(shape[k + 1 :]) for k in range(len(shape))]
    rows = [(x // step) % length for step, length in zip(steps, shape, strict=True)]
    return xp.lib.stack(rows).astype("int64")


def _raveled_samples(rng):
    yield [[np.array([0, 1]), np.array([2, 0])]], {"dims": (2, 3)}
    yield [[np.array([[3], [-1]]), np.array([4, 1])]], {"dims": (2, 3), "mode": "wrap"}
    yield [[np.array([5]), np.array([-2])]], {"dims": (2, 3), "mode": "clip"}
    yield [[np.array([3, -1])]], {"dims": (3,), "mode": ("wrap",)}


@op(
    variadic=True,
    kinds="i",
    samples=_raveled_samples,
    ref=lambda multi_index, dims, mode="raise": np.ravel_multi_index(multi_index, dims, mode),
    errors=[
        ([[np.array([2]), np.array([0])]], {"dims": (2, 3)}, IndexOutOfBoundsError, "index 2"),
        ([[np.array([0])]], {"dims": (2, 3)}, ArgumentError, "ravel_multi_index: 1 .* 2"),
        ([[np.array([0])]], {"dims": (2,), "mode": "no"}, ArgumentError, "no mode 'no'"),
        ([[np.array([0.5])]], {"dims": (2,)}, DTypeError, "integers, not float64"),
        ([[np.array([0])]], {"dims": (2.5,)}, ArgumentError, "An int"),
    ],
)
def ravel_multi_index(xp, multi_index, /, dims, mode="raise"):
    """Places counted in row-major order, from their indices along each axis.

    Args:
        multi_index: list of arrays of integers, one for each axis, broadcast against each other.
        dims: tuple of ints: the shape.
        mode: what becomes of an index beyond the end: ``"raise"`` an error, ``"wrap"`` around,
            ``"clip"`` to the first and last; or a tuple of one for each axis.

    Returns:
        int64 Tensor of the broadcast shape. It has no gradient.

    >>> print(gg.ravel_multi_index([[0, 1], [1, 2]], (2, 3)))
    [1 5]
    """
    if len(multi_index) != len(dims):
        raise ArgumentError(
            f"ravel_multi_index: {len(multi_index)} arrays of indices for {len(dims)} axes."
        )
    out = 0
    for k, (i, n) in enumerate(zip(multi_index, dims, strict=True)):
        how, n = mode if isinstance(mode, str) else mode[k], operator.index(n)
        if i.dtype.kind not in "iu":
            raise DTypeError(f"ravel_multi_index: indices are integers, not {i.dtype}.")
        if how not in ("raise", "wrap", "clip"):
            raise ArgumentError(f"ravel_multi_index: no mode {how!r}; 'raise', 'wrap' or 'clip'.")
        if how == "wrap":
            i = xp.remainder(i, n)
        elif how == "clip":
            i = xp.minimum(xp.maximum(i, 0), n - 1)
        else:
            i = xp.checked_index(i, length=n)
        out = out * n + xp.astype(i, "int64")
    return out


@op(
    differentiable=False,
    kinds="i",
    batch="stack",
    ref=lambda x, length: x,
    samples=calls(lambda rng: ([np.array([0, 2])], {"length": 3})),
    errors=[
        ([np.array([3])], {"length": 3}, IndexOutOfBoundsError, "checked_index: index 3"),
        ([np.array([-1])], {"length": 3}, IndexOutOfBoundsError, "checked_index: index -1"),
    ],
)
def checked_index(xp, x, /, *, length):
    """Indices themselves, if they all are from 0 to `length` - 1. It waits for the GPU.

    Args:
        x: integers, of any shape.
        length: of the axis that they are for.

    Returns:
        `x`.

    >>> print(gg.checked_index([0, 2], length=3))
    [0 2]
    """
    if x.size and (int(x.min()) < 0 or int(x.max()) >= length):
        worst = int(x.max()) if int(x.max()) >= length else int(x.min())
        raise IndexOutOfBoundsError(
            f"checked_index: index {worst} is out of bounds for an axis of length {length}."
        )
    return x
