"""NumPy arrays of other libraries' arrays on the host, by DLPack; NumPy knows no bfloat16."""

from __future__ import annotations

import ctypes
from typing import Any

import numpy as np

from gpugrad.core import backend

UINT, BFLOAT = 1, 4  # DLDataTypeCode


def relabeled(capsule: Any, old: int, new: int) -> Any:
    """A DLPack capsule of 16-bit numbers with another type code: NumPy knows no bfloat16.

    Raises:
        TypeError: the capsule's numbers are of another type.
    """
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
            return np.from_dlpack(_AsUint16(x)).view(backend.BFLOAT16)
        except TypeError:
            pass
        raise
