"""NumPy's functions that lengthen or shorten an array along an axis."""

import math

import numpy as np

from gpugrad.autodiff.batched import Batched
from gpugrad.core.backend import READINGS, SCALARS, TENSOR
from gpugrad.core.dtypes import result_type
from gpugrad.core.samples import shaped
from gpugrad.core.tensor import Tensor, tensor
from gpugrad.errors import (
    ArgumentError,
    AxisError,
    DTypeError,
    IndexOutOfBoundsError,
    ShapeError,
    saying_where,
)
from gpugrad.ops._axes import arrays_of, as_tuple, check_axis, flatten_or_check_axis, index_along
from gpugrad.ops.arrays.creation import full
from gpugrad.ops.arrays.index_rules import check_range
from gpugrad.registry.record import op


@op(
    kinds="fci",
    samples=shaped(
        ([(2, 3)], {"new_shape": (2, 5)}),
        ([(2, 3)], {"new_shape": (2,)}),
        ([(3,)], {"new_shape": 7}),
        ([()], {"new_shape": (2, 2)}),
        ([(0,)], {"new_shape": (2,)}),
        ([(2,)], {"new_shape": (0, 2)}),
    ),
    errors=[([np.ones(3)], {"new_shape": (2, -1)}, ShapeError, r"resize.*\(2, -1\)")],
)
def resize(xp, x, /, new_shape):
    """Fill a shape with the elements of an array, repeated as needed.

    Args:
        new_shape: tuple of ints, or one int.

    Returns:
        Tensor of that shape; of zeros if `x` is empty.

    >>> print(gg.resize([1.0, 2.0], (2, 3)))
    [[1. 2. 1.]
     [2. 1. 2.]]
    """
    shape = as_tuple(new_shape)
    if any(n < 0 for n in shape):
        raise ShapeError(f"resize: lengths must not be negative, got {shape}.")
    n = math.prod(shape)
    if not x.size:
        return xp.broadcast_to(xp.astype(xp.sum(x), x.dtype), shape)
    copies = xp.tile(xp.reshape(x, (x.size,)), -(-n // x.size))
    return xp.reshape(xp.getitem(copies, index=slice(0, n)), shape)


@op(
    kinds="fc",
    samples=shaped(
        [(3,), (2,)],
        ([(2, 3), (1, 3)], {"axis": 0}),
        ([(2, 2), (2, 1)], {"axis": -1}),
        [(2, 2), ()],
        [(0,), (2,)],
        [(), (2,)],
    ),
    errors=[
        ([np.ones((2, 2)), np.ones((1, 3))], {"axis": 0}, ShapeError, r"\(2, 2\).*\(1, 3\)"),
        ([np.ones((2, 2)), 1.0], {"axis": 0}, ShapeError, "append.*number"),
    ],
)
def append(xp, x, values, /, axis=None):
    """Append values to an array.

    Args:
        values: array of the shape of `x` except along `axis`; any array, or a number, without one.
        axis: int; None joins the flattened arrays.

    Returns:
        Tensor, longer along that axis.

    >>> print(gg.append([1.0, 2.0], 3.0))
    [1. 2. 3.]
    """
    if type(values) in SCALARS:
        if axis is not None:
            raise ShapeError(f"append: a number has no axis {axis}. Omit axis, or use gg.pad.")
        x = xp.astype(x, result_type(x.dtype, values))
        return xp.pad(xp.reshape(x, (x.size,)), (0, 1), constant_values=values)
    return xp.concat(arrays_of(xp, x, values), axis=axis)


def _host_index(obj):
    """The index of `insert` or `delete` for NumPy: it determines the shape of the result."""
    if isinstance(obj, Tensor):
        return obj.numpy()
    return np.asarray(obj) if isinstance(obj, (list, tuple)) else obj


def _index_array(name, obj):
    """An index that is not a slice, as a NumPy array of integers or booleans."""
    obj = np.asarray(obj)
    obj = obj if obj.size else obj.astype(np.int64)
    if obj.dtype.kind not in "biu":
        raise DTypeError(f"{name}: obj must be integers or booleans, not {obj.dtype}.")
    return obj


def _kept_slices(obj, n, axis):
    """The indices of the slices that `delete` keeps, of `n` slices."""
    obj = _host_index(obj)
    if not isinstance(obj, slice):
        obj = _index_array("delete", obj)
        if obj.dtype.kind != "b":
            check_range("delete", obj, n, axis)
        elif obj.shape != (n,):
            raise ShapeError(f"delete: a mask of shape {obj.shape} for an axis of length {n}.")
    kept = np.ones(n, dtype=bool)
    kept[obj] = False
    return np.flatnonzero(kept)


@op(
    kinds="fci",
    samples=shaped(
        ([(4,)], {"obj": 1}),
        ([(2, 3)], {"obj": [0, -1, 0], "axis": 1}),
        ([(2, 3)], {"obj": slice(None, None, 2), "axis": -1}),
        ([(2, 3)], {"obj": 4}),
        ([(3, 2)], {"obj": np.array([True, False, True]), "axis": 0}),
        ([(3,)], {"obj": []}),
    ),
    errors=[
        ([np.ones(3)], {"obj": 3}, IndexOutOfBoundsError, "delete: index 3"),
        ([np.ones(3)], {"obj": 0.5}, DTypeError, "delete.*float64"),
        ([np.ones(3)], {"obj": np.array([True])}, ShapeError, r"delete.*\(1,\)"),
        ([np.ones(3)], {"obj": 0, "axis": 1}, AxisError, "delete: axis 1"),
    ],
)
def delete(xp, x, /, obj, axis=None):
    """Remove slices along an axis.

    Args:
        x: array of at least one axis.
        obj: the slices to remove: an int, a slice, a list or array of ints, or a mask.
        axis: int; None removes elements of the flattened array.

    Returns:
        Tensor, shorter along that axis.

    >>> print(gg.delete([1.0, 2.0, 3.0], 1))
    [1. 3.]
    """
    x, axis = flatten_or_check_axis(xp, "delete", x, axis)
    return xp.getitem(x, index=index_along(axis, _kept_slices(obj, x.shape[axis], axis)))


def _sources(obj, n, count):
    """The slices that `insert` concatenates, new ones from `n` on; and how many are new.

    `n` is the length of the axis of the array, `count` that of the values.
    """
    if isinstance(obj, slice):
        places = np.arange(*obj.indices(n))
    else:
        places = _index_array("insert", obj)
        if places.dtype.kind == "b":
            places = np.flatnonzero(places)
    if places.size and (places.min() < -n or places.max() > n):
        worst = int(places.max()) if places.max() > n else int(places.min())
        raise IndexOutOfBoundsError(
            f"insert: position {worst} is out of bounds; an axis of length {n} has positions "
            f"{-n} to {n}."
        )
    places = np.where(places < 0, places + n, places)
    if places.size == 1:
        places = np.full(count, places.reshape(()))
    new = np.argsort(places, kind="stable")
    return np.insert(np.arange(n), places[new], n + new), places.size


@op(
    name="insert",
    kinds="fc",
    ref=lambda x, values, obj, axis=None: np.insert(x, obj, values, axis),
    samples=shaped(
        ([(3,), ()], {"obj": 1}),
        ([(2, 3), (2,)], {"obj": -1, "axis": 1}),
        ([(2, 3), (2, 2)], {"obj": [2, 0], "axis": 1}),
        ([(2, 2), (3,)], {"obj": [1, 1, 4]}),
        ([(3, 2), (2,)], {"obj": slice(0, 2), "axis": 0}),
        ([(2, 3), (2, 2)], {"obj": [1], "axis": -1}),
        ([(0,), (2,)], {"obj": 0}),
    ),
    errors=[
        ([np.ones(3), np.ones(1)], {"obj": 4}, IndexOutOfBoundsError, "insert: position 4"),
        ([np.ones(3), np.ones(1)], {"obj": 0.5}, DTypeError, "insert.*float64"),
        ([np.ones(3), np.ones(2)], {"obj": [0, 1, 2]}, ShapeError, r"\(2,\).*\(3,\)"),
        ([np.ones(3), np.ones(1)], {"obj": 0, "axis": 1}, AxisError, "insert: axis 1"),
    ],
)
def _insert(xp, x, values, /, obj, axis=None):
    """The op behind `gg.insert`."""
    obj = _host_index(obj)
    x, axis = flatten_or_check_axis(xp, "insert", x, axis)
    values = xp.astype(values, x.dtype)
    is_int = not isinstance(obj, slice) and np.ndim(obj) == 0
    extra = 0 if is_int else max(values.ndim - x.ndim, 0)  # NumPy allows ones in front
    values = xp.reshape(values, (1,) * (x.ndim - values.ndim) + tuple(values.shape[extra:]))
    if is_int:  # the first axis of the values counts slices
        values = xp.moveaxis(values, 0, axis)
    source, count = _sources(obj, x.shape[axis], values.shape[axis])
    values = xp.broadcast_to(values, (*x.shape[:axis], count, *x.shape[axis + 1 :]))
    return xp.getitem(xp.concat([x, values], axis=axis), index=index_along(axis, source))


@saying_where
def insert(arr, obj, values, axis=None) -> Tensor:
    """Insert slices into an array.

    Args:
        arr: array of at least one axis.
        obj: the slices of `arr` to insert before: an int, a slice, a list or array of ints, or a
            mask.
        values: array that broadcasts to the new slices, or a number; cast to the dtype of `arr`.
        axis: int; None inserts into the flattened array.

    Returns:
        Tensor of the dtype of `arr`, longer along that axis.

    Raises:
        IndexOutOfBoundsError: a position is out of bounds.
        DTypeError: `obj` is neither integer nor boolean.
        ShapeError: the values do not broadcast to the new slices.
        AxisError: `arr` does not have the axis.

    >>> print(gg.insert([1.0, 2.0, 3.0], 1, 9.0))
    [1. 9. 2. 3.]
    """
    arr = tensor(arr)
    if type(values) in SCALARS:
        values = full((), values, dtype=arr.dtype, device=arr.device)
    return _insert(arr, values, obj=obj, axis=axis)


@saying_where
def trim_zeros(filt, /, trim="fb", axis=None) -> Tensor:
    """Remove the zeros at the edges of an array.

    Args:
        filt: array.
        trim: ``"f"`` at the front, ``"b"`` at the back, ``"fb"`` at both.
        axis: int, tuple of ints, or None for all axes.

    Returns:
        Tensor with the same number of axes.

    Raises:
        ArgumentError: `trim` is none of these; or inside `vmap`: the length depends on the values.
        AxisError: `filt` does not have the axis.

    >>> print(gg.trim_zeros([0.0, 1.0, 0.0, 2.0, 0.0]))
    [1. 0. 2.]
    """
    x = tensor(filt)
    if not x.ndim:
        return x
    if not trim or not set(trim.lower()) <= set("fb"):
        raise ArgumentError(f"trim_zeros: trim={trim!r} is not 'f', 'b' or 'fb'.")
    if type(x._data) is Batched:
        raise ArgumentError(
            "trim_zeros: the length of the result depends on the values, so vmap cannot run it. "
            "Mask the zeros instead, or call it outside."
        )
    axes = range(x.ndim) if axis is None else as_tuple(axis)
    axes = {check_axis("trim_zeros", a, x.shape) for a in axes}
    index = [slice(None)] * x.ndim
    for a, places in enumerate(READINGS[type(x._data)].lib.nonzero(x._data)):
        if a in axes:
            first, last = (int(places.min()), int(places.max())) if places.size else (0, -1)
            index[a] = slice(
                first if "f" in trim.lower() or last < 0 else None,
                last + 1 if "b" in trim.lower() or last < 0 else None,
            )
    return TENSOR.getitem(x, index=tuple(index))
