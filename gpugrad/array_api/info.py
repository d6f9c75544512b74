"""The array API's inspection functions: versions, devices, dtypes and capabilities."""

from __future__ import annotations

from typing import Any

import numpy as np

from gpugrad.core.devices import Device, default_device, devices
from gpugrad.core.devices import device as as_device
from gpugrad.core.dtypes import KINDS, isdtype
from gpugrad.errors import ArgumentError

VERSION = "2025.12"
VERSIONS = ("2021.12", "2022.12", "2023.12", "2024.12", VERSION)
"""Versions of the array API standard that gpugrad provides; each extends the one before."""

_DTYPES = (
    "bool int8 int16 int32 int64 uint8 uint16 uint32 uint64 float32 float64 complex64 complex128"
)


class _Info:
    """The inspection functions, as methods."""

    def capabilities(self) -> dict[str, Any]:
        """Return the namespace's capabilities, by name."""
        return {"boolean indexing": True, "data-dependent shapes": True, "max dimensions": 64}

    def default_device(self) -> Device:
        """Return the device of new arrays."""
        return default_device()

    def default_dtypes(self, *, device: Any = None) -> dict[str, np.dtype[Any]]:
        """Return the dtypes that creation functions choose: floats are float32."""
        as_device(device)  # raises if it is not a device
        return {
            "real floating": np.dtype(np.float32),
            "complex floating": np.dtype(np.complex64),
            "integral": np.dtype(np.int64),
            "indexing": np.dtype(np.int64),
        }

    def dtypes(self, *, device: Any = None, kind: Any = None) -> dict[str, np.dtype[Any]]:
        """Return the standard's dtypes of a kind (or tuple of kinds), by name; None for all.

        Raises:
            ArgumentError: there is no such kind.
        """
        as_device(device)
        kinds = tuple(KINDS) if kind is None else kind if isinstance(kind, tuple) else (kind,)
        unknown = [k for k in kinds if k not in KINDS]
        if unknown:
            raise ArgumentError(f"dtypes: {unknown[0]!r} is not a kind; use one of {list(KINDS)}.")
        dtypes = {name: np.dtype(name) for name in _DTYPES.split()}
        return {name: dtype for name, dtype in dtypes.items() if isdtype(dtype, kinds)}

    def devices(self) -> tuple[Device, ...]:
        """Return all devices that answer, the CPU first."""
        return tuple(devices())


def __array_namespace_info__() -> _Info:
    """Return an object whose methods describe the namespace, as the array API requires.

    Its methods are `capabilities`, `default_device`, `default_dtypes`, `dtypes` and `devices`.

    >>> gg.__array_namespace_info__().default_dtypes()["real floating"].name
    'float32'
    """
    return _Info()
