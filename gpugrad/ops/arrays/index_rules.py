"""Checks and conversion of indices, and writes to NumPy or CuPy arrays at an index."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from gpugrad.core.backend import ARRAYS, NUMPY, SCALARS
from gpugrad.core.devices import device_of, host
from gpugrad.core.index_checks import extremes, when, within
from gpugrad.core.settings import deterministic
from gpugrad.core.tensor import Tensor, index_parts
from gpugrad.errors import DeviceError, DTypeError, IndexOutOfBoundsError, ShapeError
from gpugrad.kernels.by_hand.scatter import check_later
from gpugrad.kernels.cpu.large import LARGE, MIDDLE, kernels
from gpugrad.kernels.runtime.launch import is_captured
from gpugrad.ops.arrays.index_vmap import array_of

BASIC = frozenset((int, slice, type(None), type(Ellipsis)))
"""Types that an index may contain besides arrays."""


class ResolvedIndex(tuple[Any, ...]):
    """An index whose arrays are integers on the right device, with bounds already checked."""

    __slots__ = ()


def is_by_axes(index: list[Any]) -> bool:
    """Whether a list has an entry for each axis, as TensorFlow's: slices, None or ``...``."""
    return not _NO_NUMBERS.isdisjoint(map(type, index))


_NO_NUMBERS = BASIC - {int}


def has_arrays(index: Any) -> bool:
    """Whether an index contains more than ints, slices, None and ``...``."""
    return not BASIC.issuperset(map(type, index if isinstance(index, tuple) else (index,)))


def resolve_index(name: str, xp: Any, shape: tuple[int, ...], index: Any) -> ResolvedIndex:
    """A constant index as `ResolvedIndex`, with masks converted to integers."""
    parts: list[Any] = []
    for part in index_parts(index):
        if type(part) not in BASIC:
            part = array_of(part) if isinstance(part, (list, tuple)) else part
            part = host(part) if type(part) in ARRAYS else part
            if getattr(part, "ndim", 0) and part.dtype.kind == "b":
                parts += part.nonzero()
                continue
        parts.append(part)
    return ResolvedIndex(library_index(name, xp, shape, tuple(parts)))


def as_int64(indices):
    """Integers as int64. A larger uint64 is clipped, so that it stays out of bounds."""
    if indices.dtype == np.int64:
        return indices
    if indices.dtype == np.uint64:
        indices = np.minimum(indices, np.uint64(2**63 - 1))
    return indices.astype(np.int64, copy=False)


def _array_entry(name, xp, part):
    """An entry of an index as an int, a bool, or an array of the library of `xp`."""
    if isinstance(part, np.integer):
        return int(part)
    if isinstance(part, (bool, np.bool_)):
        return bool(part)
    if isinstance(part, Tensor):
        array = part._data
        if (type(array) is np.ndarray) is not (xp is NUMPY):
            raise DeviceError(
                f"{name}: the index is on {device_of(array)}, the array is not. Move one with "
                "x.to_device(device)."
            )
    else:
        array = array_of(part) if isinstance(part, (list, tuple)) else part
        array = array if type(array) in ARRAYS else np.asarray(array)
    if array.dtype.kind not in "biu":
        raise DTypeError(
            f"{name}: an index must be made of integers, slices or booleans, not of {array.dtype} "
            f"({part!r:.60}). Convert it with gg.astype(index, 'int64')."
        )
    array = as_int64(array) if array.dtype == np.uint64 else array
    # row-major, so that the last of several writes to one element stays
    return np.asarray(array, order="C") if xp is NUMPY else xp.lib.asarray(array)


def is_basic(index):
    """Whether an index is an int, a slice, None, ``...``, or a tuple of these."""
    return type(index) in BASIC or (type(index) is tuple and BASIC.issuperset(map(type, index)))


def library_index(name, xp, shape, index, checked=True):
    """`index` for the array library: Tensors and lists in it become its arrays."""
    if is_basic(index) or type(index) is ResolvedIndex:
        return index
    if type(index) is not tuple:
        index = tuple(index) if type(index) is list and is_by_axes(index) else (index,)
    index = tuple(p if type(p) in BASIC else _array_entry(name, xp, p) for p in index)
    if checked and xp is not NUMPY:  # NumPy checks bounds itself, CuPy wraps around
        _check_bounds(name, index, shape)
    return index


def _axes_used(part):
    """Number of axes that an entry of an index consumes."""
    if part is None or part is Ellipsis or type(part) is bool:
        return 0
    return part.ndim if type(part) in ARRAYS and part.dtype.kind == "b" else 1


def _check_bounds(name, index, shape):
    rest = len(shape) - sum(map(_axes_used, index))
    axis = 0
    for part in index:
        if type(part) in ARRAYS and part.dtype.kind != "b" and axis < len(shape):
            check_range(name, part, shape[axis], axis)
        axis += rest if part is Ellipsis else _axes_used(part)


def check_range(name, indices, n, axis, first=None):
    """IndexOutOfBoundsError if an integer index is not from `first` (None: -n) to n - 1.

    Returns whether it is known to have no negative integers.
    """
    first = -n if first is None else first
    if (first <= 0 and within(indices, n)) or not indices.size:
        return True
    if is_deferred(name, indices, n, first):
        return False
    low, high = extremes(indices)
    if low < first or high >= n:
        raise IndexOutOfBoundsError(
            f"{name}: index {low if low < first else high} is out of bounds for axis {axis}, whose "
            f"length is {n}. Indices run from {first} to {n - 1}."
        )
    return low >= 0


def is_deferred(name, indices, n, first=0):
    """Whether a check that indices run from `first` to n - 1 is not for now.

    On a GPU it is launched and reported later, or omitted: see `gg.cuda.check_indices`. In a CUDA
    graph it is for now, which splits the graph: a replay would report at a flag of another call.
    """
    on_host = isinstance(indices, (np.ndarray, np.generic))
    if on_host or when() == "now" or is_captured(indices):
        return False
    if when() == "later":
        check_later(name, as_int64(indices), n, first)
    return True


def index_error(name, shape, error):
    """NumPy's or CuPy's IndexError as an error of gpugrad."""
    if isinstance(error, IndexOutOfBoundsError):
        return error
    message = str(error).rstrip(".")
    cls = ShapeError if "broadcast" in message else IndexOutOfBoundsError
    return cls(f"{name}: {message}. The shape is {tuple(shape)}.")


def may_repeat(index):
    """Whether an index can select an element twice, which only arrays of integers can."""
    if not has_arrays(index):
        return False
    parts = index if isinstance(index, tuple) else (index,)
    entries = (p._data if isinstance(p, Tensor) else p for p in parts)
    return any(
        isinstance(p, (list, tuple)) or (type(p) in ARRAYS and p.dtype.kind in "iu" and p.size > 1)
        for p in entries
    )


def add_at(name: str, xp: Any, out: Any, index: Any, values: Any) -> None:
    """Add to a new row-major array in place; values at repeated indices all count."""
    try:
        if xp is NUMPY and type(index) is tuple and index and _is_rows(index, out.ndim):
            _add_rows(name, out, index, values)
        elif not may_repeat(index):
            out[index] += values
        elif xp is NUMPY and values.size >= MIDDLE and (run := _longest_run(index, out.shape)):
            axis, start, stop = run
            places = index[axis]
            whole = (slice(None),) * axis
            first = slice(places[start], places[stop - 1] + 1)
            out[(*whole, first)] += values[(*whole, slice(start, stop))]
            rest = np.r_[:start, stop : places.size]
            atomic_add(np, out, (*whole, places[rest]), values[(*whole, rest)])
        elif xp is NUMPY or not deterministic():
            atomic_add(xp.lib, out, index, values)
        else:
            _add_in_order(xp, out, index, values)
    except IndexError as error:
        raise index_error(name, out.shape, error) from error


def _longest_run(index, shape):
    """(axis, start, stop) of places in steps of 1, if they are most of an index along one axis.

    The index of a padded array is one: a slice takes a fifth of the time of ``np.add.at``.
    """
    if type(index) is not tuple:
        return None
    if any(type(p) is not slice or p != slice(None) for p in index[:-1]):
        return None
    places = index[-1]
    fits = isinstance(places, np.ndarray) and places.ndim == 1 and places.dtype.kind == "i"
    if not fits or not places.size:
        return None
    ends = np.r_[0, np.flatnonzero(np.diff(places) != 1) + 1, places.size]
    k = np.argmax(np.diff(ends))
    start, stop = int(ends[k]), int(ends[k + 1])
    axis, inside = len(index) - 1, places[start] >= 0 and places[stop - 1] < shape[len(index) - 1]
    return (axis, start, stop) if inside and 2 * (stop - start) > places.size else None


_ATOMIC = frozenset(("int32", "uint32", "uint64", "float16", "float32", "float64"))


def atomic_add(lib: Any, out: Any, index: Any, values: Any) -> None:
    """``lib.add.at``, also for dtypes that CuPy does not support there."""
    if lib is np and np.ndim(values) > 1 and isinstance(index, tuple):
        # NumPy 2.4 reads beyond the shape of values with more axes than out[index], and crashes
        shape = np.broadcast_to(False, out.shape)[index].shape
        if np.ndim(values) > len(shape):
            raise ShapeError(
                f"Values of shape {values.shape} do not broadcast to {shape}, the shape of the "
                "elements at the index."
            )
    if lib is np or out.dtype.name in _ATOMIC:
        lib.add.at(out, index, values)
    elif out.dtype.kind == "c":
        values = lib.asarray(values)
        lib.add.at(out.real, index, values.real)
        lib.add.at(out.imag, index, values.imag)
    else:  # integers modulo 2**64, bfloat16 in float32
        wide = "float32" if out.dtype.kind == "V" else "uint64"
        total = lib.zeros(out.shape, dtype=wide)
        lib.add.at(total, index, lib.asarray(values).astype(wide))
        out += total.astype(out.dtype)


def taken(xp: Any, x: Any, indices: Any, axis: int) -> Any:
    """``x.take(indices, axis)``, of large NumPy arrays on several threads."""
    if xp is NUMPY and x.size >= LARGE:
        part = kernels("copies").take(x, indices, axis)
        if part is not NotImplemented:
            return part
    return x.take(indices, axis=axis)


def elements_at(xp: Any, x: Any, indices: Any) -> Any:
    """``x[indices]``, of large NumPy arrays on several threads."""
    large = xp is NUMPY and x.size >= LARGE and x.flags.c_contiguous
    return taken(xp, x, indices, 0) if large and indices.dtype.kind in "iu" else x[indices]


def write(xp: Any, out: Any, index: Any, values: Any) -> None:
    """``out[index] = values``, of large NumPy arrays on several threads."""
    large = xp is NUMPY and values.size >= LARGE and not has_arrays(index)
    if not large or not kernels("copies").copy(values, out[index]):
        out[index] = values


def sum_at(xp: Any, index: Any, values: Any, shape: tuple[int, ...], base: Any = None) -> Any:
    """A copy of `base`, or zeros, with many rows added at an index; else NotImplemented.

    The index is an array of integers, perhaps behind slices of whole axes.
    """
    large = xp is NUMPY and type(values) is np.ndarray and values.size >= MIDDLE
    if not large or type(index) is not tuple or not 0 < len(index) <= len(shape):
        return NotImplemented
    *whole, rows = index
    axis = len(whole)
    if any(type(p) is not slice or p != slice(None) for p in whole) or not _is_rows((rows,), 1):
        return NotImplemented
    outer, width = math.prod(shape[:axis]), math.prod(shape[axis + 1 :])
    if values.shape != shape[:axis] + rows.shape + shape[axis + 1 :]:
        return NotImplemented
    if (base is not None and base.dtype != values.dtype) or (axis and _longest_run(index, shape)):
        return NotImplemented
    out, add_rows = np.empty(shape, values.dtype), kernels("sums").add_rows
    places, sizes = as_int64(rows).reshape(-1), (outer, shape[axis], width)
    given = kernels("copies").row_major(values).reshape(outer, -1, width)
    bases: Any = None if base is None else kernels("copies").row_major(base).reshape(sizes)
    for k, total in enumerate(out.reshape(sizes)):
        if not add_rows(total, places, given[k], None if bases is None else bases[k]):
            return NotImplemented
    return out


def _is_rows(index, ndim):
    """Whether an index consists of integer arrays only."""
    return len(index) <= ndim and all(type(p) is np.ndarray and p.dtype.kind != "b" for p in index)


def flat_indices(index, shape):
    """Row-major flat indices from integers of at least 0, for each of the first axes an array.

    np.ravel_multi_index takes ten times as long.
    """
    flat: Any = index[0]
    for part, n in zip(index[1:], shape[1:], strict=False):
        flat = flat * n + part
    return flat


def counted_from_0(name, indices, n, axis):
    """Integers of NumPy as int64, those below 0 counted from the end; checks that they are in."""
    is_counted = check_range(name, indices, n, axis)
    indices = as_int64(indices)
    return indices if is_counted else np.where(indices < 0, indices + n, indices)


def _add_rows(name, out, index, values):
    """`add_at` for NumPy and integer arrays, on flat arrays.

    np.add.at is faster there: 5000 rows of 128 floats take 3.4 ms instead of 17 ms.
    """
    index = [counted_from_0(name, part, out.shape[k], k) for k, part in enumerate(index)]
    one = len(index) == 1
    places = index[0].shape if one else np.broadcast_shapes(*(p.shape for p in index))
    shape = places + out.shape[len(index) :]
    values = values if np.shape(values) == shape else np.broadcast_to(values, shape)
    if not values.size:
        return
    rows = flat_indices(index, out.shape)
    width = math.prod(out.shape[len(index) :])
    if values.size >= MIDDLE:
        columns = out.reshape(-1, width), rows.reshape(-1), values.reshape(-1, width)
        if kernels("sums").add_rows(*columns, base=columns[0]):
            return
    flat = rows.reshape(-1, 1) * width + np.arange(width)
    np.add.at(out.reshape(-1), flat.reshape(-1), values.reshape(-1))


def _add_in_order(xp, out, index, values):
    """`add_at` by flat indices, with the kernel that adds in a fixed order."""
    flat = xp.lib.arange(out.size).reshape(out.shape)[index]
    values = xp.lib.broadcast_to(values, flat.shape).reshape(-1)
    sums = xp.scatter_rows(values, flat.reshape(-1), shape=(out.size,))
    out += sums.reshape(out.shape)


def number_writes(xp, shape, index):
    """The number of each write of ``x[index] = v`` in row-major order, and of the write that stays.

    The last write to an element stays, as in NumPy; CuPy by itself leaves the order undefined.
    """
    lib = xp.lib
    region = lib.broadcast_to(lib.zeros((), dtype="uint64"), shape)[index].shape
    writes = lib.arange(math.prod(region), dtype="uint64").reshape(region)
    last = lib.zeros(shape, dtype="uint64")  # the only 64-bit integer of CuPy's maximum.at
    if xp is NUMPY:
        last[index] = writes
    else:
        lib.maximum.at(last, index, writes)
    return writes, last[index]


def cast_values(name, x, values):
    """`values` cast to the dtype of `x`; DTypeError if that loses a fraction or imaginary part."""
    scalar = type(values) in SCALARS
    dtype = np.dtype(type(values)) if scalar else values.dtype
    source, target = ("f" if d.kind == "V" else d.kind for d in (dtype, x.dtype))
    if source in "fc" and "buifc".index(source) > "buifc".index(target):
        raise DTypeError(
            f"{name}: a {dtype} value cannot be written to a {x.dtype} array. Cast one of them "
            "with gg.astype(x, dtype)."
        )
    return values if scalar else values.astype(x.dtype, copy=False)


def assign(name, xp, out, values, index):
    """``out[index] = values`` with checks; of several writes to an element the last stays."""
    values = cast_values(name, out, values)
    try:
        index = library_index(name, xp, out.shape, index)
        if type(values) not in SCALARS and may_repeat(index):
            if xp is NUMPY:
                values = np.asarray(values, order="C")
            else:
                _, last = number_writes(xp, out.shape, index)
                values = xp.lib.broadcast_to(values, last.shape).reshape(-1)[last.astype("int64")]
        elif type(values) in SCALARS and xp is not NUMPY and has_arrays(index):
            values = xp.lib.full((), values, dtype=out.dtype)  # CuPy would copy it from the host
        out[index] = values
    except IndexError as error:
        raise index_error(name, out.shape, error) from error
