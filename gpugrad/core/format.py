"""Values of an array and numbers of bytes as text."""

from __future__ import annotations

from typing import Any

import numpy as np

from gpugrad.core import backend, devices
from gpugrad.core.backend import BFLOAT16


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


def format_bytes(n: int) -> str:
    """A number of bytes in readable form.

    >>> format_bytes(100), format_bytes(10_000), format_bytes(123 << 20)
    ('100 B', '9.77 KiB', '123 MiB')
    """
    if n < 1024:
        return f"{n} B"
    unit = min((n.bit_length() - 1) // 10, 4)
    amount = n / (1 << 10 * unit)
    return f"{amount:.{max(0, 3 - len(str(int(amount))))}f} {' KMGT'[unit]}iB"


def format_html(title: str, text: str) -> str:
    """HTML for a notebook: a title, and below it text whose columns stay aligned."""
    signs = {ord("&"): "&amp;", ord("<"): "&lt;", ord(">"): "&gt;"}
    return f"<strong>{title.translate(signs)}</strong><pre>{text.translate(signs)}</pre>"
