"""NumPy's functions that create indices: of triangles and diagonals, and in row-major order."""

import math
import operator

import numpy as np

from gpugrad.core.arguments import check_numbers
from gpugrad.core.backend import TENSOR
from gpugrad.core.samples import calls
from gpugrad.core.tensor import Tensor, tensor
from gpugrad.errors import (
    ArgumentError,
    DTypeError,
    IndexOutOfBoundsError,
    ShapeError,
    saying_where,
)
from gpugrad.ops import _axes
from gpugrad.ops.arrays.grids import from_numpy
from gpugrad.ops.arrays.index_rules import check_range
from gpugrad.registry.record import op


@saying_where
def broadcast_shapes(*shapes) -> tuple[int, ...]:
    """The shape that results from broadcasting shapes against each other.

    Args:
        *shapes: tuples of ints, or ints.

    Returns:
        Tuple of ints.

    Raises:
        ShapeError: the shapes do not broadcast.

    >>> gg.broadcast_shapes((2, 1), (3,))
    (2, 3)
    """
    return _axes.broadcast_shapes("broadcast_shapes", shapes)


def _triangle_indices(name, which, diagonals, columns):
    """`tril_indices` or `triu_indices`."""

    def triangle_indices(n, k=0, m=None, *, device=None) -> tuple[Tensor, ...]:
        return tuple(from_numpy(i, device=device) for i in getattr(np, name)(n, k, m))

    triangle_indices.__name__ = triangle_indices.__qualname__ = name
    triangle_indices.__doc__ = f"""Indices of the {which} triangle of a matrix: the k-th diagonal \
and those {diagonals}.

    Args:
        n, m: numbers of rows and of columns; m is n if None.
        k: the diagonal; 0 is the main one, positive ones lie above it.
        device: the default device if None.

    Returns:
        Tuple of two int64 Tensors: rows and columns.

    >>> rows, columns = gg.{name}(2)
    >>> print(columns)
    {columns}
    """
    return saying_where(triangle_indices)


def _triangle_indices_from(indices, name, which, columns):
    """`tril_indices_from` or `triu_indices_from`."""

    def triangle_indices_from(arr, k=0) -> tuple[Tensor, ...]:
        x = tensor(arr)
        if x.ndim != 2:
            raise ShapeError(f"{name}: arr must be a matrix, its shape is {x.shape}.")
        return indices(x.shape[0], k, x.shape[1], device=x.device)

    triangle_indices_from.__name__ = triangle_indices_from.__qualname__ = name
    triangle_indices_from.__doc__ = f"""Indices of the {which} triangle of a matrix.

    Args:
        arr: array of two axes.
        k: the diagonal; 0 is the main one, positive ones lie above it.

    Returns:
        Tuple of two int64 Tensors: rows and columns.

    Raises:
        ShapeError: `arr` does not have two axes.

    >>> print(gg.{name}(gg.zeros((2, 2)))[1])
    {columns}
    """
    return saying_where(triangle_indices_from)


tril_indices = _triangle_indices("tril_indices", "lower", "below it", "[0 0 1]")
triu_indices = _triangle_indices("triu_indices", "upper", "above it", "[0 1 1]")
tril_indices_from = _triangle_indices_from(tril_indices, "tril_indices_from", "lower", "[0 0 1]")
triu_indices_from = _triangle_indices_from(triu_indices, "triu_indices_from", "upper", "[0 1 1]")


@saying_where
def diag_indices(n, ndim=2, *, device=None) -> tuple[Tensor, ...]:
    """Indices of the main diagonal of an array whose axes have the same length.

    Args:
        n: the length of each axis.
        ndim: number of axes.
        device: the default device if None.

    Returns:
        Tuple of `ndim` int64 Tensors.

    >>> rows, columns = gg.diag_indices(2)
    >>> print(rows, columns)
    [0 1] [0 1]
    """
    return (from_numpy(np.arange(n), device=device),) * ndim


@saying_where
def diag_indices_from(arr) -> tuple[Tensor, ...]:
    """Indices of the main diagonal of an array: `diag_indices` of its shape.

    Args:
        arr: array of at least two axes of the same length.

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
            f"diag_indices_from: arr needs two or more axes of one length; its shape is {x.shape}."
        )
    return diag_indices(x.shape[0], x.ndim, device=x.device)


@saying_where
def unravel_index(indices, shape) -> tuple[Tensor, ...]:
    """Convert flat indices, which count in row-major order, to indices along each axis.

    Args:
        indices: integers, of any shape.
        shape: tuple of ints.

    Returns:
        Tuple of int64 Tensors of the shape of `indices`, one for each axis.

    Raises:
        IndexOutOfBoundsError: an index is out of bounds.
        DTypeError: `indices` are not integers.

    >>> rows, columns = gg.unravel_index([1, 5], (2, 3))
    >>> print(rows, columns)
    [0 1] [1 2]
    """
    shape = _axes.as_tuple(shape)
    rows = TENSOR.unraveled(tensor(indices), shape=shape)
    return tuple(TENSOR.getitem(rows, index=k) for k in range(len(shape)))


@op(
    differentiable=False,
    kinds="i",
    batch=lambda xp, batched, x, *, shape: xp.moveaxis(xp.unraveled(x, shape=shape), 0, 1),
    ref=lambda x, shape: np.array(np.unravel_index(x, shape), dtype=np.int64),
    samples=calls(
        lambda rng: ([rng.integers(0, 6, (2, 2))], {"shape": (2, 3)}),
        lambda rng: ([np.array(5)], {"shape": (2, 1, 3)}),
        lambda rng: ([np.array(0)], {"shape": ()}),
        lambda rng: ([np.array([], dtype=np.int64)], {"shape": (2, 2)}),
    ),
    errors=[
        ([np.array([6])], {"shape": (2, 3)}, IndexOutOfBoundsError, r"unraveled: 6.*\(2, 3\)"),
        ([np.ones(2)], {"shape": (2, 3)}, DTypeError, "unraveled.*float64"),
        ([np.array([1])], {"shape": (2, 3.5)}, ArgumentError, "unraveled.*an int"),
    ],
)
def unraveled(xp, x, /, *, shape):
    """The op behind `gg.unravel_index`.

    Returns:
        int64 Tensor of shape (len(shape), *x.shape).
    """
    if x.dtype.kind not in "iu":
        raise DTypeError(f"unraveled: indices must be integers, not {x.dtype}.")
    n = math.prod(map(operator.index, shape))
    if x.size and (int(x.min()) < 0 or int(x.max()) >= n):
        worst = int(x.max()) if int(x.max()) >= n else int(x.min())
        raise IndexOutOfBoundsError(f"unraveled: {worst} is out of bounds for the shape {shape}.")
    steps = [math.prod(shape[k + 1 :]) for k in range(len(shape))]
    rows = [(x // step) % length for step, length in zip(steps, shape, strict=True)]
    if not rows:  # of a 0-d array
        return xp.lib.zeros((0, *x.shape), dtype="int64")
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
        ([[np.array([0])]], {"dims": (2.5,)}, ArgumentError, "an int"),
    ],
)
def ravel_multi_index(xp, multi_index, /, dims, mode="raise"):
    """Convert indices along each axis to flat indices, which count in row-major order.

    Args:
        multi_index: list of arrays of integers, one for each axis, broadcast against each other.
        dims: tuple of ints: the shape.
        mode: what to do with an index out of bounds: ``"raise"`` an error, ``"wrap"`` around,
            ``"clip"`` to the first and last; or a tuple with one mode for each axis.

    Returns:
        int64 Tensor of the broadcast shape. Its gradient is None.

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
            raise DTypeError(f"ravel_multi_index: indices must be integers, not {i.dtype}.")
        if how not in ("raise", "wrap", "clip"):
            raise ArgumentError(f"ravel_multi_index: no mode {how!r}; use raise, wrap or clip.")
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
    """`x`, checked to be in bounds, which waits for a GPU; `ravel_multi_index` calls it."""
    check_numbers("checked_index", "iu", x=x)
    check_range("checked_index", x, length, axis=0, first=0)
    return x
