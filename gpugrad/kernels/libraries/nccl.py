"""NCCL, which moves arrays between GPUs, by CuPy's module for it."""

from __future__ import annotations

import contextlib
import ctypes
import importlib.util
import os
from typing import Any

from gpugrad.errors import DistributedError


def load() -> Any:
    """CuPy's module; DistributedError if it has no library to call."""
    folder = importlib.util.find_spec("nvidia.nccl") if importlib.util.find_spec("nvidia") else None
    for place in folder.submodule_search_locations or () if folder is not None else ():
        with contextlib.suppress(OSError):  # what the system finds comes first
            ctypes.CDLL(os.path.join(place, "lib", "libnccl.so.2"), ctypes.RTLD_GLOBAL)
    try:
        from cupy.cuda import nccl
    except ImportError as error:
        raise DistributedError(
            f"distributed: cupy.cuda.nccl does not import ({error}). Install gpugrad[nccl12] or "
            "gpugrad[nccl13], the one of your CUDA version."
        ) from None
    if not nccl.available:
        raise DistributedError(
            "distributed: CuPy finds no libnccl.so.2. Install gpugrad[nccl12] or gpugrad[nccl13]."
        )
    return nccl
