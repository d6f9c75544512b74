"""Arrays in files that may be larger than memory: they are read where they are indexed.

``gg.checkpoint.load(path, mmap=True)`` does so for safetensors files.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import numpy as np

from gpugrad.core.arguments import PATH
from gpugrad.errors import ArgumentError

Array = np.ndarray[Any, Any]
Path_ = str | os.PathLike[str]


def open_npy(path: Path_) -> Array:
    """The array of an ``.npy`` file, memory-mapped and read-only.

    Raises:
        ArgumentError: there is no such file, or it is not an ``.npy`` file.

    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     np.save(f"{folder}/x.npy", np.arange(6).reshape(3, 2))
    ...     gg.data.open_npy(f"{folder}/x.npy")[2].tolist()
    [4, 5]
    """
    try:
        array: Array = np.lib.format.open_memmap(_existing("open_npy", path), "r")
    except (OverflowError, ValueError) as error:
        raise ArgumentError(f"open_npy: {path} is not an .npy file: {error}.") from error
    return array


def open_text(path: Path_) -> Array:
    """The bytes of a file as uint8, memory-mapped and read-only; `Windows` cuts them into examples.

    Raises:
        ArgumentError: there is no such file, or it is empty.
    """
    return map_bytes("open_text", path)


def map_bytes(name: str, path: Path_) -> Array:
    """`open_text` for the function `name`."""
    return np.memmap(_existing(name, path), np.uint8, "r")


def _existing(name: str, path: Path_) -> Path:
    file: Path = PATH(name, "path", path)
    if not file.is_file():
        raise ArgumentError(f"{name}: there is no file {file}.")
    if not file.stat().st_size:
        raise ArgumentError(f"{name}: {file} is empty.")
    return file
