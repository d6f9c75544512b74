"""The C library's allocator, told to keep the memory that NumPy frees.

glibc gives large blocks back to the system when they are freed, and the next array takes them anew,
page by page: in a training step that may take a quarter of the time.
"""

from __future__ import annotations

import ctypes
import os

from gpugrad.core import environment

_TRIM_THRESHOLD, _MMAP_THRESHOLD = -1, -3  # M_* of malloc.h
_LARGEST_TRIM, _LARGEST_MMAP = 2**31 - 1, 2**25  # the most that mallopt accepts

untouched = [True]
"""Empty once `keep_freed_memory` was called."""


def keep_freed_memory() -> bool:
    """Let glibc keep freed blocks of up to 32 MiB; returns whether it does.

    The first tape or traced function calls it, once a process. It does nothing with another C
    library, if the environment variable GPUGRAD_MALLOC is 0, or if one of glibc's own says how to
    allocate (MALLOC_TRIM_THRESHOLD_, MALLOC_MMAP_THRESHOLD_, GLIBC_TUNABLES).
    """
    keeps = environment.choose("GPUGRAD_MALLOC", "1", "0") == "1"
    untouched.clear()
    own = ("MALLOC_TRIM_THRESHOLD_", "MALLOC_MMAP_THRESHOLD_", "GLIBC_TUNABLES")
    if not keeps or any(name in os.environ for name in own):
        return False
    try:
        is_glibc = (os.confstr("CS_GNU_LIBC_VERSION") or "").startswith("glibc")
        mallopt = ctypes.CDLL(None).mallopt if is_glibc else None
    except (AttributeError, OSError, ValueError):  # other systems lack confstr, or the name
        return False
    return mallopt is not None and bool(
        mallopt(_TRIM_THRESHOLD, _LARGEST_TRIM) and mallopt(_MMAP_THRESHOLD, _LARGEST_MMAP)
    )
