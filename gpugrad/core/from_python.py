"""NumPy arrays of Python numbers, nested lists and other libraries' arrays on the host.

Also the checks of conversions that would lose a value.
"""

from __future__ import annotations

import contextlib
import ctypes
from typing import Any

import numpy as np

from gpugrad.core.backend import BFLOAT16, SCALARS, as_dtype
from gpugrad.errors import DTypeError, NumberOverflowError, ShapeError


def numbers_only(value: Any) -> bool:
    """Whether a value is a Python number, or nested lists of nothing but Python numbers."""
    if isinstance(value, (list, tuple)):
        return all(numbers_only(v) for v in value)
    return type(value) in SCALARS


def to_numpy(value: Any, dtype: Any = None) -> np.ndarray[Any, Any]:
    """A NumPy array of `value`; without a `dtype`, Python floats become float32."""
    if isinstance(value, str) or value is None:
        raise DTypeError(f"{value!r} is not a number, an array, or nested lists of them.")
    if isinstance(value, np.ndarray) and type(value) is not np.ndarray and np.ma.is_masked(value):
        raise DTypeError("A masked element has no value: choose one with x.filled(value).")
    try:
        array = np.asarray(value)
        if array.dtype.kind == "f" and dtype is not None and as_dtype(dtype).kind in "iu":
            array = _exact_integers(value, array)
    except ValueError as error:
        raise ShapeError(f"Nested lists of unequal lengths are not an array: {error}") from error
    except (RuntimeError, TypeError) as error:
        if not hasattr(value, "__dlpack__"):
            raise
        array = _of_another_library(value, error)
    if array.dtype.kind not in "biufc" and array.dtype != BFLOAT16:
        raise DTypeError(
            f"A {type(value).__name__} with elements of dtype {array.dtype} is not an array of "
            "numbers."
        )
    if not array.dtype.isnative:
        array = array.astype(array.dtype.newbyteorder("="))
    if dtype is None and array.dtype.kind in "fc" and numbers_only(value):
        return array.astype(np.complex64 if array.dtype.kind == "c" else np.float32)
    if isinstance(value, (list, tuple)) and not array.size:
        return array.astype(np.float32)
    return array


def _exact_integers(value: Any, array: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    """Integers that NumPy rounds to float64, as it does if they fit no one integer dtype."""
    if isinstance(value, (list, tuple)):
        objects = np.array(value, dtype=object)
        if all(isinstance(v, (int, np.integer)) for v in objects.flat):
            return objects.astype(np.uint64 if (objects >= 0).all() else np.int64)
    return array


def _of_another_library(value: Any, error: Exception) -> np.ndarray[Any, Any]:
    """The NumPy array of an array that makes none itself: torch makes none of bfloat16."""
    if isinstance(error, TypeError):
        with contextlib.suppress(BufferError, RuntimeError, TypeError, ValueError):
            return from_host(value)
    raise DTypeError(f"A {type(value).__name__} becomes no NumPy array: {error}") from error


def no_part_lost(what: str, old: np.dtype[Any], new: np.dtype[Any]) -> np.dtype[Any]:
    """`new`; DTypeError if a complex number would lose its imaginary part."""
    if old.kind == "c" and new.kind != "c":
        raise DTypeError(f"{what}: a {old} value does not become {new}; say which part you want.")
    return new


def no_value_lost(what: str, array: np.ndarray[Any, Any], dtype: np.dtype[Any]) -> None:
    """DTypeError if a Python number loses its fraction, or overflows, as an integer of `dtype`."""
    if array.size and dtype.kind in "iu" and array.dtype.kind in "fiu":
        bounds = np.iinfo(dtype)
        beyond = (array < bounds.min).any() or (array > bounds.max).any()
        if beyond or not (array == np.trunc(array)).all():
            kind = NumberOverflowError if beyond else DTypeError
            raise kind(f"{what}: {array.tolist()!r:.60} does not fit {dtype} unchanged.")


# ---- arrays of other libraries, by DLPack; NumPy knows no bfloat16 -------------------------

UINT, BFLOAT = 1, 4  # DLDataTypeCode


def relabeled(capsule: Any, old: int, new: int) -> Any:
    """A DLPack capsule of 16-bit numbers with another type code: NumPy knows no bfloat16."""
    pointer = ctypes.pythonapi.PyCapsule_GetPointer
    pointer.restype, pointer.argtypes = ctypes.c_void_p, [ctypes.py_object, ctypes.c_char_p]
    is_valid = ctypes.pythonapi.PyCapsule_IsValid
    is_valid.argtypes = [ctypes.py_object, ctypes.c_char_p]
    # offsets of DLTensor.dtype in DLManagedTensor and in DLManagedTensorVersioned
    name, offset = b"dltensor", 20
    if is_valid(capsule, b"dltensor_versioned"):
        name, offset = b"dltensor_versioned", 52
    code, bits = (ctypes.c_uint8 * 2).from_address(pointer(capsule, name) + offset)
    if (code, bits) != (old, 16):
        raise TypeError("the array is not of bfloat16")
    (ctypes.c_uint8 * 1).from_address(pointer(capsule, name) + offset)[0] = new
    return capsule


class _AsUint16:
    """An array of bfloat16 on the CPU, which NumPy reads as one of uint16."""

    def __init__(self, x: Any) -> None:
        self.x = x

    def __dlpack__(self, **options: Any) -> Any:
        return relabeled(self.x.__dlpack__(), BFLOAT, UINT)

    def __dlpack_device__(self) -> tuple[int, int]:
        return (1, 0)  # the CPU


def from_host(x: Any) -> Any:
    """The NumPy array that shares the memory of an array on the host."""
    try:
        return np.from_dlpack(x)
    except (BufferError, RuntimeError):  # of bfloat16?
        try:
            return np.from_dlpack(_AsUint16(x)).view(BFLOAT16)
        except TypeError:
            pass
        raise
