"""NumPy's ufuncs of large float arrays, on the pool's threads and with NumPy's bits.

NumPy runs a ufunc on one thread, which alone does not keep the memory busy. A ufunc object holds
its loops for arrays of each dtype, as C functions: threads run the same loop on pieces of arrays.
"""

from __future__ import annotations

import ctypes
import functools
import math
from typing import Any

import numpy as np

from gpugrad.kernels.cpu import copies
from gpugrad.kernels.cpu.large import LARGE, WIDE
from gpugrad.kernels.cpu.pool import Kernels

_APART = 64  # bytes between elements from which a copy is faster than a loop with such steps
_EXACT, _LARGEST = 2**53, 3.4e38  # integers that are float64, and floats that are float32
_WARNINGS = ("divide", "over", "under", "invalid")


class _UFunc(ctypes.Structure):
    """The first fields of NumPy's public struct PyUFuncObject, after the header."""

    _fields_ = (
        ("counts", ctypes.c_int * 4),  # of inputs, of outputs, of both; its identity
        ("loops", ctypes.POINTER(ctypes.c_void_p)),
        ("data", ctypes.POINTER(ctypes.c_void_p)),
        ("types", ctypes.c_int),
        ("reserved", ctypes.c_int),
        ("name", ctypes.c_char_p),
        ("numbers", ctypes.POINTER(ctypes.c_ubyte)),
    )


_IN_C = Kernels("ufuncs", ufunc="aa l ooo > l")


@functools.cache
def _loop(ufunc: Any, char: str) -> tuple[Any, Any, np.dtype[Any]] | None:
    """The loop of a ufunc for a dtype, what NumPy passes to it, and the dtype of the result."""
    if type(ufunc) is not np.ufunc or ufunc.nout != 1 or ufunc.nin > 2 or _IN_C.loaded is None:
        return None
    struct = _UFunc.from_address(id(ufunc) + object.__basicsize__)
    counts = [ufunc.nin, ufunc.nout, ufunc.nargs]
    if list(struct.counts[:3]) != counts or struct.types != ufunc.ntypes:
        return None  # another layout than that of NumPy 1 and 2
    if struct.name != ufunc.__name__.encode():
        return None
    for k, types in enumerate(ufunc.types):
        if types.startswith(char * ufunc.nin + "->"):
            numbers = [np.dtype(c).num for c in types.replace("->", "")]
            if struct.numbers[k * ufunc.nargs : (k + 1) * ufunc.nargs] != numbers:
                return None
            data = struct.data[k] if struct.data else None
            return struct.loops[k], data, np.dtype(types[-1])
    return None


def on_threads(ufunc: Any, *args: Any, out: Any = None) -> Any:
    """``ufunc(*args, out=out)`` of plain arrays and Python numbers, of which one array is large.

    `out` is None, one of the arrays, or an array in other memory.
    """
    result = _on_threads(ufunc, args, out)
    return ufunc(*args, out=out) if result is NotImplemented else result


def _on_threads(ufunc: Any, args: tuple[Any, ...], out: Any = None) -> Any:
    arrays = [a for a in args if type(a) is np.ndarray]
    if not arrays:
        return NotImplemented
    dtype = arrays[0].dtype
    same = all(a.dtype == dtype and a.flags.aligned for a in arrays) and dtype in WIDE
    if not same or not all(type(a) is np.ndarray or _is_exact(a) for a in args):
        return NotImplemented
    found = _loop(ufunc, dtype.char)
    if found is None:
        return NotImplemented
    arrays = [a if type(a) is np.ndarray else np.array(a, dtype) for a in args]
    result = _result(arrays, found[2])
    if result is None or result.size < LARGE:
        return NotImplemented
    if out is not None:
        same = out.shape == result.shape and out.dtype == result.dtype
        if not same or _reports(15) or any(_overlap(a, out) for a in arrays):
            return NotImplemented  # NumPy could not start again
        result = out
    arrays = [_beside(a, result) for a in arrays]
    raised = _IN_C.ufunc(*found[:2], len(arrays) + 1, arrays[0], arrays[-1], result)
    return NotImplemented if raised and _reports(raised) else result


def _is_exact(number: Any) -> bool:
    """Whether a Python number takes the dtype of an array without a warning or an error."""
    if type(number) is float:
        return abs(number) <= _LARGEST or not math.isfinite(number)
    return type(number) in (int, bool) and abs(number) <= _EXACT


def _result(arrays: list[Any], dtype: Any) -> Any:
    """A new array for the result, that lies in memory as the first whole one; None for an error."""
    shape = arrays[0].shape
    if any(a.shape != shape for a in arrays):
        try:
            shape = np.broadcast(*arrays).shape
        except ValueError:
            return None
    # an array that is broadcast already would give the result an order of its own
    whole = next((a for a in arrays if a.shape == shape and 0 not in a.strides), None)
    return np.empty(shape, dtype) if whole is None else np.empty_like(whole, dtype)


def _beside(x: Any, out: Any) -> Any:
    """An array, or a copy of it if its elements are far apart where those of `out` are not."""
    if x.shape != out.shape or x.strides == out.strides:
        return x
    axis = min(range(x.ndim), key=lambda k: (out.shape[k] == 1, abs(out.strides[k])))
    if abs(x.strides[axis]) < _APART:
        return x
    near = np.empty_like(out, x.dtype)
    return near if copies.copy(x, near) else x


def _overlap(x: Any, out: Any) -> bool:
    """Whether an array shares memory with `out`, but is not `out`."""
    return x is not out and np.may_share_memory(x, out)


def _reports(raised: int) -> bool:
    """Whether NumPy reports one of the floating-point errors, which it does itself."""
    modes: Any = np.geterr()
    return any(raised >> k & 1 and modes[name] != "ignore" for k, name in enumerate(_WARNINGS))
