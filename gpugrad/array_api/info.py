"""What a program can ask of gpugrad as an array API namespace."""

from __future__ import annotations

from typing import Any

import numpy as np

from gpugrad.core.devices import Device, default_device, devices
from gpugrad.core.devices import device as as_device
from gpugrad.core.dtypes import isdtype
from gpugrad.errors import ArgumentError

__all__ = ["VERSION", "VERSIONS", "__array_namespace_info__"]

VERSION = "2025.12"
VERSIONS = ("2021.12", "2022.12", "2023.12", "2024.12", VERSION)
"""Of the array API standard; each adds to the one before."""

_NAMES = (
    "bool", "int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64", "float32",
    "float64", "complex64", "complex128",
)  # fmt: skip
_KINDS = (
    "bool", "signed integer", "unsigned integer", "integral", "real floating",
    "complex floating", "numeric",
)  # fmt: skip


class _Info:
    """The answers, as methods."""

    def capabilities(self) -> dict[str, Any]:
        """Return what the namespace can do."""
        return {"boolean indexing": True, "data-dependent shapes": True, "max dimensions": 64}

    def default_device(self) -> Device:
        """Return where new arrays go."""
        return default_device()

    def default_dtypes(self, *, device: Any = None) -> dict[str, np.dtype[Any]]:
        """Return the dtypes that creation functions choose: floats are float32."""
        as_device(device)  # raises for no device
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
        kinds = _KINDS if kind is None else kind if isinstance(kind, tuple) else (kind,)
        wrong = [k for k in kinds if k not in _KINDS]
        if wrong:
            raise ArgumentError(f"dtypes: {wrong[0]!r} is not a kind; use one of {_KINDS}.")
        every = {name: np.dtype(name) for name in _NAMES}
        return {name: dtype for name, dtype in every.items() if isdtype(dtype, kinds)}

    def devices(self) -> list[Device]:
        """Return every device that answers, the CPU first."""
        return devices()


def __array_namespace_info__() -> _Info:
    """Return an object whose methods describe the namespace, as the array API asks.

    Its methods are `capabilities`, `default_device`, `default_dtypes`, `dtypes` and `devices`.

    >>> gg.__array_namespace_info__().default_dtypes()["real floating"].name
    'float32'
    """
    return _Info()
