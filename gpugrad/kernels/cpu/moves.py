"""Functions in C that move elements or run along an axis, as steps of programs: see moves.cpp.

They are for arrays that one thread finishes soon; an op's own function is as fast for larger ones.
"""

from __future__ import annotations

import ctypes
import functools
import math
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from gpugrad.kernels.cpu.large import LARGEST_STEP
from gpugrad.kernels.cpu.pool import Kernels

_TYPES = {np.dtype(c): t for c, t in zip("fdil", ["float", "double", "int", "long"], strict=True)}
_PLACES = (np.dtype(np.int32), np.dtype(np.int64))


class Function(NamedTuple):
    """A C function that computes a step of a program.

    Attributes:
        address: of the function, which gets the numbers, and the step's arrays: what it reads, the
            tables, and the results, all contiguous. If it returns another number than 0, Python
            computes the step.
        numbers: whole numbers.
        tables: constant arrays.
        owners: objects that own memory whose addresses are among the numbers.
    """

    address: int
    numbers: Sequence[int]
    tables: Sequence[Any] = ()
    owners: Sequence[Any] = ()


def runs(n_arrays: int, itemsize: int, table: Any, constants: Any) -> Any:
    """Elements of several arrays, and of `constants`, in runs."""
    numbers = (itemsize, len(table), n_arrays + 1)
    return _function("runs", numbers, (constants, table))


def take(x: Any, places: Any, shape: Sequence[int], axis: int) -> Any:
    """``x.reshape(shape).take(places, axis)``."""
    m = math.prod(places.shape)
    return _along("take", shape, axis, m, places, x.dtype.itemsize)


def take_along(x: Any, places: Any, axis: int) -> Any:
    """Elements along an axis, by places of the same shape but for that axis."""
    if not _match(x.shape, places.shape, axis):
        return NotImplemented
    return _along("take_along", x.shape, axis, places.shape[axis], places, x.dtype.itemsize)


def add_along(values: Any, places: Any, axis: int, shape: Sequence[int]) -> Any:
    """Values added to zeros along an axis: the adjoint of `take_along`."""
    name = _typed("add_along", values.dtype)
    if values.shape != places.shape or not _match(shape, places.shape, axis):
        return NotImplemented
    return _along(name, shape, axis, places.shape[axis], places)


def put(
    how: str,
    shape: Sequence[int],
    axis: int,
    values: Any,
    places: Any,
    arrays: Sequence[int],
    tables: Sequence[Any] = (),
) -> Any:
    """Values that are added to, or written over, slices of an array along an axis.

    Args:
        how: ``"add"`` or ``"set"``.
        shape: of the result.
        axis: the axis.
        values: an array or a value of a program, with the places' shape in that of the axis.
        places: integers.
        arrays: which arrays of the step are the base (-1: zeros), the values and the places.
        tables: see `Function`.
    """
    after = tuple(shape)
    if values.shape != (*after[:axis], *places.shape, *after[axis + 1 :]):
        return NotImplemented
    out = max(arrays) + 1
    t, m = _TYPES.get(values.dtype), math.prod(places.shape)
    most = math.prod(values.shape) if arrays[0] >= 0 else None  # the base may be written in place
    name = t and f"put<{t}, {str(how == 'add').lower()}>"
    return _along(name, shape, axis, m, places, *arrays, out, tables=tables, most=most)


def running_sum(x: Any, axis: int, back: bool) -> Any:
    """The running sum of floats or wide integers; with `back` from the end."""
    return _along(_typed("running_sum", x.dtype), x.shape, axis, 0, None, back)


def sort(x: Any, axis: int, places: bool, falls: bool = False) -> Any:
    """The sorted elements, or their places."""
    return _along(_typed("sorted", x.dtype), x.shape, axis, 0, None, places, falls)


def extreme(dtype: Any, shape: Sequence[int], axis: int, least: bool) -> Any:
    """The place of the largest or of the least element."""
    return _along(_typed("extreme", dtype), shape, axis, 0, None, least)


def total(x: Any, first: int, last: int, is_mean: bool = False) -> Any:
    """The sum over the axes from `first` to `last`, or the mean of floats."""
    n = math.prod(x.shape[first : last + 1])
    shape = (*x.shape[:first], n, *x.shape[last + 1 :])
    return _along(_typed("sum", x.dtype), shape, first, 0, None, n * is_mean)


def test(x: Any, first: int, last: int, every: bool) -> Any:
    """Whether any element over the axes from `first` to `last` is not 0; or all of them."""
    n = math.prod(x.shape[first : last + 1])
    t = "bool" if x.dtype == np.bool_ else _TYPES.get(x.dtype)
    name = t and f"test<{t}, {str(every).lower()}>"
    return _along(name, (*x.shape[:first], n, *x.shape[last + 1 :]), first, 0, None)


def _match(shape: Sequence[int], other: Sequence[int], axis: int) -> bool:
    """Whether two shapes differ along one axis alone."""
    pairs = enumerate(zip(shape, other, strict=False))
    return len(shape) == len(other) and all(a == b for k, (a, b) in pairs if k != axis)


def _typed(name: str, dtype: Any) -> str | None:
    t = _TYPES.get(dtype)
    return t and f"{name}<{t}>"


def _along(
    name: str | None,
    shape: Sequence[int],
    axis: int,
    m: int,
    places: Any,
    *more: int,
    tables: Any = (),
    most: int | None = None,
) -> Any:
    """A function of an array with an axis; `m` is the number of places along it.

    `most` elements are moved; by default all.
    """
    outer, n, inner = math.prod(shape[:axis]), shape[axis], math.prod(shape[axis + 1 :])
    most = outer * max(n, m) * inner if most is None else most
    if places is not None and (places.dtype not in _PLACES or not m):
        return NotImplemented
    if not name or not 0 < most < LARGEST_STEP or not n:
        return NotImplemented
    size = () if places is None else (places.dtype.itemsize,)
    return _function(name, (outer, n, inner, m, *size, *map(int, more)), tables)


def _function(name: str, numbers: Sequence[int], tables: Sequence[Any]) -> Any:
    address = _address(name)
    return NotImplemented if address is None else Function(address, numbers, tables)


@functools.cache
def _address(name: str) -> int | None:
    """The address of a function of moves.cpp; None without a compiler."""
    head = f"#define FUNCTION {name}\n" + "#define SORTS\n" * name.startswith("sorted")
    library = Kernels("moves", head).loaded
    if library is None:
        return None
    return ctypes.cast(library.gpugrad_function, ctypes.c_void_p).value
