"""NumPy's functions that make an array longer or shorter along an axis."""

from __future__ import annotations

import math

import numpy as np

from gpugrad.autodiff.batched import Batched
from gpugrad.core.backend import NAMESPACES, SCALARS, TENSOR
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
from gpugrad.ops.arrays.creation import full
from gpugrad.registry.record import op


def flat_or_axis(xp, name, x, axis):
    """`x`, flat if `axis` is None; and the axis counted from 0."""
    if axis is None:
        return xp.reshape(x, (x.size,)), 0
    if not -x.ndim <= axis < x.ndim:
        raise AxisError(f"{name}: axis {axis} is out of bounds for the shape {x.shape}.")
    return x, axis % x.ndim


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
    """Fill a shape with the elements of an array, from the start again when they run out.

    Args:
        new_shape: tuple of ints, or one int.

    Returns:
        Tensor of that shape; of zeros if `x` is empty.

    >>> print(gg.resize([1.0, 2.0], (2, 3)))
    [[1. 2. 1.]
     [2. 1. 2.]]
    """
    shape = (new_shape,) if isinstance(new_shape, (int, np.integer)) else tuple(new_shape)
    if any(n < 0 for n in shape):
        raise ShapeError(f"resize: a shape has no negative lengths, got {shape}.")
    n = math.prod(shape)
    if not x.size:
        return xp.broadcast_to(xp.astype(xp.sum(x), x.dtype), shape)
    flat = xp.tile(xp.reshape(x, (x.size,)), -(-n // x.size))
    return xp.reshape(xp.getitem(flat, index=slice(0, n)), shape)


@op(
    kinds="fc",
    samples=shaped(
        ([(3,), (2,)], {}),
        ([(2, 3), (1, 3)], {"axis": 0}),
        ([(2, 2), (2, 1)], {"axis": -1}),
        ([(2, 2), ()], {}),
        ([(0,), (2,)], {}),
    ),
    errors=[
        ([np.ones((2, 2)), np.ones((1, 3))], {"axis": 0}, ShapeError, r"\(2, 2\).*\(1, 3\)"),
        ([np.ones((2, 2)), 1.0], {"axis": 0}, ShapeError, "append.*number"),
    ],
)
def append(xp, x, values, /, axis=None):
    """Put values behind an array.

    Args:
        values: array of the shape of `x` but for `axis`; any array, or a number, without one.
        axis: along which; None takes the elements of both in row-major order.

    Returns:
        Tensor, longer along that axis.

    >>> print(gg.append([1.0, 2.0], 3.0))
    [1. 2. 3.]
    """
    if type(values) in SCALARS:
        if axis is not None:
            raise ShapeError(f"append: a number has no axis {axis}. Leave out axis, or see gg.pad.")
        x = xp.astype(x, result_type(x.dtype, values))
        return xp.pad(xp.reshape(x, (x.size,)), (0, 1), constant_values=values)
    if type(x) in SCALARS:
        raise DTypeError("append: the first argument is an array, not a number.")
    return xp.concat([x, values], axis=axis)


# ---- an index that decides about the shape -----------------------------------------------


def _host_index(obj):
    """`obj` of insert and delete, as NumPy takes it: it decides about the shape."""
    if isinstance(obj, Tensor):
        return obj.numpy()
    return np.asarray(obj) if isinstance(obj, (list, tuple)) else obj


def _kept(name, obj, n):
    """Which of `n` slices `delete` keeps: a boolean NumPy array."""
    obj = _host_index(obj)
    if not isinstance(obj, slice):
        obj = np.asarray(obj)
        if not obj.size:
            obj = obj.astype(np.int64)
        if obj.dtype.kind not in "biu":
            raise DTypeError(f"{name}: obj is made of integers or booleans, not of {obj.dtype}.")
        if obj.dtype.kind == "b" and obj.shape != (n,):
            raise ShapeError(f"{name}: a mask of shape {obj.shape} for an axis of length {n}.")
        if obj.dtype.kind != "b" and obj.size and (obj.min() < -n or obj.max() >= n):
            worst = int(obj.max()) if obj.max() >= n else int(obj.min())
            raise IndexOutOfBoundsError(
                f"{name}: index {worst} is out of bounds for an axis of {n}."
            )
    kept = np.ones(n, dtype=bool)
    kept[obj] = False
    return kept


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
    """Leave out slices along an axis.

    Args:
        x: array, of any shape but ().
        obj: which: an int, a slice, a list or array of ints, or a mask.
        axis: along which; None takes the elements in row-major order.

    Returns:
        Tensor, shorter along that axis.

    >>> print(gg.delete([1.0, 2.0, 3.0], 1))
    [1. 3.]
    """
    x, axis = flat_or_axis(xp, "delete", x, axis)
    kept = np.flatnonzero(_kept("delete", obj, x.shape[axis]))
    return xp.getitem(x, index=(*(slice(None),) * axis, kept))


def _inserted(obj, n, given):
    """Where `insert` takes each slice of its result from: those from `n` on are new ones."""
    if isinstance(obj, slice):
        places = np.arange(*obj.indices(n))
    else:
        places = np.asarray(obj)
        if places.dtype.kind == "b":
            places = np.flatnonzero(places)
        elif not places.size:
            places = places.astype(np.int64)
    if places.dtype.kind not in "iu":
        raise DTypeError(f"insert: obj is made of integers or booleans, not of {places.dtype}.")
    if places.size and (places.min() < -n or places.max() > n):
        worst = int(places.max()) if places.max() > n else int(places.min())
        raise IndexOutOfBoundsError(
            f"insert: there is no place {worst} in an axis of length {n}; from {-n} to {n}."
        )
    places = np.where(places < 0, places + n, places)
    if places.size == 1:
        places = np.full(given, places.reshape(()))
    new = np.argsort(places, kind="stable")
    return np.insert(np.arange(n), places[new], n + new), places.size


def _insert_ref(x, values, obj, axis=None):
    return np.insert(x, obj, values, axis)


@op(
    name="insert",
    kinds="fc",
    ref=_insert_ref,
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
        ([np.ones(3), np.ones(1)], {"obj": 4}, IndexOutOfBoundsError, "insert: there is no place"),
        ([np.ones(3), np.ones(1)], {"obj": 0.5}, DTypeError, "insert.*float64"),
        ([np.ones(3), np.ones(2)], {"obj": [0, 1, 2]}, ShapeError, r"\(2,\).*\(3,\)"),
        ([np.ones(3), np.ones(1)], {"obj": 0, "axis": 1}, AxisError, "insert: axis 1"),
    ],
)
def _insert(xp, x, values, /, obj, axis=None):
    """Put slices between those of an array: the op behind `insert`.

    Args:
        x: array, of any shape but ().
        values: array that broadcasts to the new slices.
        obj: before which slices of `x`: an int, a slice, a list or array of ints, or a mask.
        axis: along which; None takes the elements in row-major order.

    Returns:
        Tensor of the dtype of `x`, longer along that axis.

    >>> print(gg.insert([1.0, 2.0, 3.0], 1, [9.0]))
    [1. 9. 2. 3.]
    """
    obj = _host_index(obj)
    x, axis = flat_or_axis(xp, "insert", x, axis)
    values = xp.astype(values, x.dtype)
    one = not isinstance(obj, slice) and np.ndim(obj) == 0
    extra = 0 if one else max(values.ndim - x.ndim, 0)  # NumPy lets values have ones in front
    values = xp.reshape(values, (1,) * (x.ndim - values.ndim) + tuple(values.shape[extra:]))
    if one:  # values are one slice, or several
        values = xp.moveaxis(values, 0, axis)
    lead = (slice(None),) * axis
    source, count = _inserted(obj, x.shape[axis], values.shape[axis])
    values = xp.broadcast_to(values, (*x.shape[:axis], count, *x.shape[axis + 1 :]))
    return xp.getitem(xp.concat([x, values], axis=axis), index=(*lead, source))


@saying_where
def insert(arr, obj, values, axis=None):
    """Put slices between those of an array.

    Args:
        arr: array, of any shape but ().
        obj: before which slices of `arr`: an int, a slice, a list or array of ints, or a mask.
        values: array that broadcasts to the new slices, or a number; cast to the dtype of `arr`.
        axis: along which; None takes the elements in row-major order.

    Returns:
        Tensor of the dtype of `arr`, longer along that axis.

    Raises:
        IndexOutOfBoundsError: a place beyond the end.
        DTypeError: `obj` is neither integer nor boolean.
        ShapeError: the values do not fit.
        AxisError: an axis that `arr` does not have.

    >>> print(gg.insert([1.0, 2.0, 3.0], 1, 9.0))
    [1. 9. 2. 3.]
    """
    arr = tensor(arr)
    if type(values) in SCALARS:
        values = full((), values, dtype=arr.dtype, device=arr.device)
    return _insert(arr, values, obj=obj, axis=axis)


# ---- a length that the values decide about -----------------------------------------------


@saying_where
def trim_zeros(filt, /, trim="fb", axis=None):
    """Leave out the zeros at the edges of an array.

    Args:
        filt: array. Its values are looked at, so `vmap` cannot run this.
        trim: ``"f"`` at the front, ``"b"`` at the back, ``"fb"`` at both.
        axis: an int, or a tuple of them: along which axes; None for all.

    Returns:
        Tensor with as many axes, shorter.

    Raises:
        ArgumentError: another `trim`; or inside `vmap`, where each example has values of its own.
        AxisError: `filt` has no such axis.

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
            "trim_zeros: how long the result is depends on the values, so vmap cannot run it. "
            "Mask the zeros instead, or call it outside."
        )
    given = range(x.ndim) if axis is None else np.atleast_1d(axis).tolist()
    axes = {flat_or_axis(TENSOR, "trim_zeros", x, a)[1] for a in given}
    index = [slice(None)] * x.ndim
    for a, places in enumerate(NAMESPACES[type(x._data)].lib.nonzero(x._data)):
        if a in axes:
            first, last = (int(places.min()), int(places.max())) if places.size else (0, -1)
            index[a] = slice(
                first if "f" in trim.lower() or last < 0 else None,
                last + 1 if "b" in trim.lower() or last < 0 else None,
            )
    return TENSOR.getitem(x, index=tuple(index))
