"""Ops that read or write elements by an array of indices: take, gather and their adjoints."""

import functools
import math

import numpy as np

from gpugrad.autodiff.batched import Each, all_batched, batch_axis_of
from gpugrad.core.backend import ARRAYS, NUMPY, TENSOR, innermost_array
from gpugrad.core.indexed_slices import IndexedSlices
from gpugrad.core.samples import calls, uniform
from gpugrad.core.tensor import Tensor, tensor
from gpugrad.errors import AxisError, DTypeError, IndexOutOfBoundsError, ShapeError, saying_where
from gpugrad.kernels.by_hand import scatter
from gpugrad.kernels.cpu.large import MIDDLE, kernels
from gpugrad.ops._axes import check_axis, index_along
from gpugrad.ops.arrays import moves_in_c
from gpugrad.ops.arrays.creation import arange
from gpugrad.ops.arrays.index_rules import (
    add_at,
    as_int64,
    check_range,
    counted_from_0,
    flat_indices,
    index_error,
    sum_at,
    taken,
)
from gpugrad.ops.arrays.index_vmap import getitem_batch, scatter_at_batch
from gpugrad.registry.record import op

_takes = functools.partial(op, native_half=True, kinds="fc")


def _check_integers(name, indices):
    """`indices` as int64; DTypeError if they are not integers."""
    if indices.dtype.kind not in "iu":
        raise DTypeError(
            f"{name}: indices must be integers, not {indices.dtype}. Convert them with "
            "gg.astype(indices, 'int64')."
        )
    return as_int64(indices)


def _take_batch(name):
    """The vmap rule of `take` and `gather`, where indices may differ between examples."""

    def batch(xp, batched, x, indices, *, axis):
        if axis is None:
            axis, lead = 0, x.shape[: batched[0]]
            x = xp.reshape(x, (*lead, math.prod(x.shape[batched[0] :])))
        if not batched[1]:
            return getattr(xp, name)(x, indices, axis=batch_axis_of(axis, x.ndim - 1))
        if not batched[0]:
            axis = axis % x.ndim
            return xp.moveaxis(getattr(xp, name)(x, indices, axis=axis), axis, 0)
        places = innermost_array(indices)
        if name == "gather" and places.size:  # its indices do not count from the end
            check_range(name, places, x.shape[batch_axis_of(axis, x.ndim - 1)], axis, first=0)
        index = index_along(axis % (x.ndim - 1), Each(indices))
        return getitem_batch(xp, (True,), x, index=index)

    return batch


def _take_vjp(xp, g, x_shape, indices, axis):
    if axis is None:
        out = xp.scatter_at(g, index=(indices,), shape=(math.prod(x_shape),))
        return xp.reshape(out, x_shape)
    return xp.scatter_at(g, index=index_along(axis % len(x_shape), indices), shape=x_shape)


def _take_samples(rng):
    yield [uniform(rng, 4), np.array([0, 2, 0])], {}
    yield [uniform(rng, 3, 2), np.array([2, -1])], {"axis": 0}
    yield [uniform(rng, 2, 3, 2), np.array([[1, 0], [1, 2]])], {"axis": -2}
    yield [uniform(rng, 2, 3), np.array(1)], {"axis": 1}
    yield [uniform(rng, 2, 3), np.array([], dtype=np.int64)], {"axis": 1}
    yield [uniform(rng, 2, 3), np.array([5, 0, -1])], {}


@_takes(
    vjp=[_take_vjp, None],
    linear="each",
    batch=_take_batch("take"),
    samples=_take_samples,
    cuda=scatter.take,
    c_call=moves_in_c.take,
    errors=[
        ([np.ones((2, 3)), np.array([3])], {"axis": 1}, IndexOutOfBoundsError, "take: index 3"),
        ([np.ones((2, 3)), np.array([6])], {}, IndexOutOfBoundsError, "take: index 6"),
        ([np.ones(3), np.array([0.5])], {}, DTypeError, "take: indices must be integers"),
        ([np.ones(3), np.array([0])], {"axis": 1}, AxisError, "take: axis 1"),
    ],
)
def take(xp, x, indices, /, axis=None):
    """Take slices of an array along an axis.

    Args:
        x: array of at least one axis.
        indices: integers, of any shape; negative ones count from the end.
        axis: int; None takes elements of the flattened array.

    Returns:
        Tensor with the shape of `indices` in place of that axis.

    >>> print(gg.take([[1.0, 2.0, 3.0]], [2, 0], axis=1))
    [[3. 1.]]
    """
    x, axis = (x.reshape(-1), 0) if axis is None else (x, check_axis("take", axis, x.shape))
    indices = _check_integers("take", indices)
    if xp is not NUMPY:
        check_range("take", indices, x.shape[axis], axis)
    try:
        part = taken(xp, x, indices, axis)
    except IndexError as error:
        raise index_error("take", x.shape, error) from error
    return part if type(part) in ARRAYS else xp.lib.asarray(part)


def _gather_vjp(xp, g, params_shape, indices, axis):
    if axis % len(params_shape):
        return _take_vjp(xp, g, params_shape, indices, axis)
    n = indices.size
    values = xp.reshape(g, (n, *params_shape[1:]))
    return IndexedSlices(values, xp.reshape(indices, (n,)), params_shape)


@_takes(
    vjp=[_gather_vjp, None],
    linear="each",
    batch=_take_batch("gather"),
    cuda=scatter.gather,
    ref=lambda params, indices, axis=0: np.take(params, indices, axis),
    samples=calls(
        lambda rng: [uniform(rng, 4), np.array([0, 2, 0])],
        lambda rng: [uniform(rng, 3, 2), np.array([[2, 1], [2, 0]])],
        lambda rng: ([uniform(rng, 2, 3, 2), np.array([2, 2])], {"axis": 1}),
        lambda rng: ([uniform(rng, 3, 2), np.array(1)], {"axis": -2}),
        lambda rng: [uniform(rng, 3, 2), np.array([], dtype=np.int64)],
    ),
    errors=[
        ([np.ones((2, 3)), np.array([2])], {}, IndexOutOfBoundsError, "gather: index 2"),
        ([np.ones((2, 3)), np.array([-1])], {}, IndexOutOfBoundsError, "gather: index -1"),
        ([np.ones(3), np.array([0.5])], {}, DTypeError, "gather: indices must be integers"),
        ([np.ones(3), np.array([0])], {"axis": 1}, AxisError, "gather: axis 1"),
    ],
)
def gather(xp, params, indices, /, axis=0):
    """Take slices of an array along an axis, like TensorFlow's gather: rows of an embedding.

    Along axis 0 the gradient with respect to `params` is `IndexedSlices`: only the rows read.

    Args:
        indices: integers from 0, of any shape. (`take` accepts negative ones.)

    Returns:
        Tensor with the shape of `indices` in place of that axis.

    >>> table = gg.Variable([[1.0, 2.0], [3.0, 4.0], [5.0, 6.0]])
    >>> with gg.GradientTape() as tape:
    ...     rows = gg.gather(table, [2, 0])
    >>> print(rows)
    [[5. 6.]
     [1. 2.]]
    >>> print(tape.gradient(rows, table).indices)
    [2 0]
    """
    axis = check_axis("gather", axis, params.shape)
    indices = _check_integers("gather", indices)
    check_range("gather", indices, params.shape[axis], axis, first=0)
    part = taken(xp, params, indices, axis)
    return part if type(part) in ARRAYS else xp.lib.asarray(part)


def scatter_ref(values, index, shape):
    """Values added into zeros by NumPy, for the references of ops that scatter."""
    out = np.zeros(shape, values.dtype)
    np.add.at(out, index, values)
    return out


def _scatter_rows_batch(xp, batched, values, indices, *, shape):
    if batched[1]:
        values, indices = all_batched(xp, batched, (values, indices))
        return scatter_at_batch(xp, (True,), values, index=Each(indices), shape=shape)
    shape = (shape[0], values.shape[0], *shape[1:])
    return xp.moveaxis(xp.scatter_rows(xp.moveaxis(values, 0, 1), indices, shape=shape), 1, 0)


@op(
    vjp=[lambda xp, g, indices: xp.take(g, indices, axis=0), None],
    linear="each",
    batch=_scatter_rows_batch,
    kinds="fc",
    ref=scatter_ref,
    cuda=scatter.scatter_rows,
    samples=calls(
        lambda rng: ([uniform(rng, 3, 2), np.array([1, 0, 1])], {"shape": (4, 2)}),
        lambda rng: ([uniform(rng, 3), np.array([1, 0, 1])], {"shape": (2,)}),
        lambda rng: ([uniform(rng, 0, 2), np.array([], dtype=np.int64)], {"shape": (2, 2)}),
    ),
    errors=[
        ([np.ones((1, 2)), np.array([3])], {"shape": (3, 2)}, IndexOutOfBoundsError, "index 3"),
        ([np.ones((1, 2)), np.array([0])], {"shape": (3, 3)}, ShapeError, "scatter_rows: values"),
        ([np.ones((1, 2)), np.array([0.5])], {"shape": (3, 2)}, DTypeError, "must be integers"),
    ],
)
def scatter_rows(xp, values, indices, /, *, shape):
    """Add rows into an array of zeros; repeated indices add up.

    Args:
        values: array of shape (n, ...).
        indices: integers of shape (n,): the row of each value.
        shape: shape of the result, (rows, ...).

    Returns:
        Tensor of that shape.

    >>> print(gg.scatter_rows([[1.0], [2.0], [4.0]], [0, 2, 0], shape=(3, 1)))
    [[5.]
     [0.]
     [2.]]
    """
    if indices.ndim != 1 or values.shape != (*indices.shape, *shape[1:]):
        raise ShapeError(
            f"scatter_rows: values {values.shape} and indices {indices.shape} do not match the "
            f"shape {tuple(shape)}."
        )
    indices = _check_integers("scatter_rows", indices)
    if xp is not NUMPY:
        check_range("scatter_rows", indices, shape[0], 0)
    out = sum_at(xp, (indices,), values, tuple(shape))
    if out is NotImplemented:
        out = xp.lib.zeros(shape, dtype=values.dtype)
        add_at("scatter_rows", xp, out, (indices,), values)
    return out


def _check_rank(name, indices, shape):
    if indices.ndim != len(shape):
        raise ShapeError(
            f"{name}: the indices have {indices.ndim} axes, the array {len(shape)}; the numbers "
            "must be equal."
        )


def _index_along_axis(name, xp, indices, shape, axis):
    """The index of the elements that `indices` selects along an axis: an array for each axis."""
    _check_rank(name, indices, shape)
    indices = _check_integers(name, indices)
    if xp is NUMPY:
        indices = counted_from_0(name, indices, shape[axis], axis)
    else:
        check_range(name, indices, shape[axis], axis)
    index = [
        xp.lib.arange(n).reshape((-1,) + (1,) * (len(shape) - k - 1)) for k, n in enumerate(shape)
    ]
    index[axis] = indices
    return tuple(index)


def _along_samples(rng):
    yield [uniform(rng, 4), np.array([3, 0, 3])], {}
    yield [uniform(rng, 2, 3), np.array([[0, 0], [2, -1]])], {"axis": 1}
    yield [uniform(rng, 3, 2), np.array([[2, 0], [1, 0]])], {"axis": 0}
    yield [uniform(rng, 2, 3), np.array([[2, 0]])], {"axis": -1}
    yield [uniform(rng, 2, 0), np.zeros((2, 0), np.int64)], {"axis": -1}


@_takes(
    vjp=[
        lambda xp, g, x_shape, indices, axis: xp.scatter_along_axis(
            g, indices, axis=axis, shape=x_shape
        ),
        None,
    ],
    linear="each",
    batch="axis",
    samples=_along_samples,
    cuda=scatter.take_along_axis,
    c_call=moves_in_c.take_along_axis,
    ref=lambda x, indices, axis=-1: np.take_along_axis(x, indices, axis),
    errors=[
        ([np.ones(3), np.array([3])], {}, IndexOutOfBoundsError, "take_along_axis: index 3"),
        ([np.ones((2, 3)), np.array([0])], {}, ShapeError, "take_along_axis: the indices have 1"),
        ([np.ones((2, 3)), np.zeros((5, 1), int)], {"axis": 1}, ShapeError, "take_along_axis"),
        ([np.ones(3), np.array([0.5])], {}, DTypeError, "take_along_axis: indices must be int"),
        ([np.ones(3), np.array([0])], {"axis": 1}, AxisError, "take_along_axis: axis 1"),
    ],
)
def take_along_axis(xp, x, indices, /, axis=-1):
    """Take elements along an axis, by indices that may differ between the other axes.

    Args:
        indices: integers, with as many axes as `x`; except along `axis` they broadcast with it.

    Returns:
        Tensor of the (broadcast) shape of `indices`.

    >>> print(gg.take_along_axis([[1.0, 2.0], [3.0, 4.0]], [[1], [0]]))
    [[2.]
     [3.]]
    """
    axis = check_axis("take_along_axis", axis, x.shape)
    if xp is NUMPY and x.size >= MIDDLE and indices.ndim == x.ndim:
        part = kernels("copies").take_along_axis(x, indices, axis)
        if part is not NotImplemented:
            return part
    try:
        index = _index_along_axis("take_along_axis", xp, indices, x.shape, axis)
        if xp is NUMPY and x.flags.c_contiguous:  # in half the time
            return x.reshape(-1).take(flat_indices(index, x.shape), mode="clip")
        return x[index]
    except IndexError as error:
        raise index_error("take_along_axis", x.shape, error) from error


def _scatter_along_samples(rng):
    yield [uniform(rng, 3), np.array([3, 0, 3])], {"axis": -1, "shape": (4,)}
    yield [uniform(rng, 2, 2), np.array([[0, 0], [2, -1]])], {"axis": 1, "shape": (2, 3)}
    yield [uniform(rng, 2, 2), np.array([[2, 0]])], {"axis": -1, "shape": (2, 3), "unique": True}
    yield [uniform(rng, 2, 0), np.zeros((2, 0), np.int64)], {"axis": -1, "shape": (2, 0)}


def _scatter_along_reference(values, indices, axis, shape, unique=False):
    grid = list(np.indices(values.shape))
    grid[axis] = np.broadcast_to(indices, values.shape)
    return scatter_ref(values, tuple(grid), shape)


def _scatter_along_axis_batch(xp, batched, values, indices, *, axis, shape, unique):
    values, indices = all_batched(xp, batched, (values, indices))
    shape = (values.shape[0], *shape)
    axis = batch_axis_of(axis, len(shape) - 1)
    return xp.scatter_along_axis(values, indices, axis=axis, shape=shape, unique=unique)


@op(
    vjp=[lambda xp, g, indices, axis: xp.take_along_axis(g, indices, axis=axis), None],
    linear="each",
    batch=_scatter_along_axis_batch,
    kinds="fc",
    samples=_scatter_along_samples,
    ref=_scatter_along_reference,
    cuda=scatter.scatter_along_axis,
    c_call=moves_in_c.scatter_along_axis,
    errors=[
        ([np.ones(1), np.array([3])], {"axis": 0, "shape": (3,)}, IndexOutOfBoundsError, "index 3"),
        ([np.ones(2), np.array([0])], {"axis": 0, "shape": (3,)}, ShapeError, "scatter_along_axis"),
        ([np.ones(1), np.array([0.5])], {"axis": 0, "shape": (3,)}, DTypeError, "must be integers"),
    ],
)
def scatter_along_axis(xp, values, indices, /, *, axis, shape, unique=False):
    """Add elements into an array of zeros along an axis: the adjoint of `take_along_axis`.

    Args:
        values: array of the (broadcast) shape of the indices.
        indices: integers, with as many axes; except along `axis` they broadcast with `shape`.
        shape: shape of the result.
        unique: whether no index repeats, as after a sort: values are then written, not added. If
            one does repeat, any of its values stays.

    Returns:
        Tensor of that shape; repeated indices add up.

    >>> print(gg.scatter_along_axis([[5.0], [6.0]], [[1], [0]], axis=1, shape=(2, 2)))
    [[0. 5.]
     [6. 0.]]
    """
    if xp is NUMPY and values.size >= MIDDLE and not unique:
        out = kernels("sums").add_along(values, indices, axis, shape)
        if out is not NotImplemented:
            return out
    out = xp.lib.zeros(shape, dtype=values.dtype)
    axis = check_axis("scatter_along_axis", axis, out.shape)
    index = _index_along_axis("scatter_along_axis", xp, indices, out.shape, axis)
    if np.broadcast_shapes(*(p.shape for p in index)) != values.shape:
        raise ShapeError(
            f"scatter_along_axis: values {values.shape} do not match the indices {indices.shape} "
            f"in the shape {tuple(shape)}."
        )
    if xp is NUMPY and (unique or values.size < MIDDLE):  # in half the time
        flat, places = out.reshape(-1), flat_indices(index, out.shape).reshape(-1)
        if unique:
            flat[places] = values.reshape(-1)
        else:
            np.add.at(flat, places, values.reshape(-1))
    elif unique:
        out[index] = values
    else:
        add_at("scatter_along_axis", xp, out, index, values)
    return out


def index_along_axis(name, x, indices, axis):
    """The index of ``x[index]`` for `take_along_axis` and its like: integers for every axis."""
    axis = check_axis(name, axis, x.shape)
    _check_rank(name, indices, x.shape)
    index = [
        TENSOR.reshape(arange(n, device=x.device), (n,) + (1,) * (x.ndim - k - 1))
        for k, n in enumerate(x.shape)
    ]
    index[axis] = _check_integers(name, indices)
    return tuple(index)


@saying_where
def nonzero(x, /) -> tuple[Tensor, ...]:
    """Indices of the elements that are not 0, in row-major order; their gradient is None.

    Args:
        x: array of at least one axis.

    Returns:
        Tuple of one-dimensional int64 Tensors, one for each axis, whose length depends on the
        values.

    Raises:
        ShapeError: `x` is 0-d.
        ArgumentError: inside `vmap`: the length of the result depends on the values.

    >>> (indices,) = gg.nonzero([0.0, 3.0, 4.0])
    >>> print(indices)
    [1 2]
    """
    x = tensor(x)
    if not x.ndim:
        raise ShapeError("nonzero: a 0-d array has no indices; use x != 0.")
    rows = TENSOR.argwhere(x)
    return tuple(TENSOR.getitem(rows, index=(slice(None), k)) for k in range(x.ndim))
