"""Values of an array as text, for `repr` and `str`."""

from __future__ import annotations

from typing import Any

import numpy as np

from gpugrad.core import backend, devices
from gpugrad.core.backend import BFLOAT16

__all__ = ["format_values"]


def format_values(array: Any, separator: str = ", ", prefix: str = "") -> str:
    """The values as text. Only the edges of a long array are copied from the device."""
    if backend.READINGS[type(array)].nesting:
        return repr(array)
    is_long = array.size > 1000
    if is_long:  # seven along an axis print as three, dots, three
        for axis, n in enumerate(array.shape):
            if n > 7:
                edges = np.r_[0:4, n - 3 : n]
                array = array[(slice(None),) * axis + (edges,)]
    values = devices.host(array)
    if values.dtype == BFLOAT16:
        values = values.astype(np.float32)
    if not values.ndim:
        return str(values[()])
    threshold = 1 if is_long else 1001
    options: Any = {"threshold": threshold, "edgeitems": 3, "max_line_width": 88}
    return np.array2string(values, separator=separator, prefix=prefix, **options)
