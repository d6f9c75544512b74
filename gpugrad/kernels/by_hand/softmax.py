"""Softmax and log-softmax along an axis, forward and backward, and logsumexp.

For an axis other than the last, the array is transposed first and the result is a view.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from gpugrad.core.backend import Reading
from gpugrad.kernels.by_hand.rows import BOOLS, FLOATS, as_rows, max_held, names, plan, share_dtype
from gpugrad.kernels.runtime.launch import launch, type_name

_MOST = {"softmax_forward": 16, "softmax_backward": 8}
"""Most packs of a row per thread: the backward pass holds two rows."""


def softmax(xp: Reading, x: Any, axis: int = -1) -> Any:
    """The launcher of softmax."""
    return _run("softmax_forward", "false", xp, axis, x)


def log_softmax(xp: Reading, x: Any, axis: int = -1) -> Any:
    """The launcher of log_softmax."""
    return _run("softmax_forward", "true", xp, axis, x)


def softmax_grad(xp: Reading, g: Any, out: Any, axis: int = -1) -> Any:
    """The launcher of softmax_grad."""
    return _run("softmax_backward", "false", xp, axis, g, out)


def log_softmax_grad(xp: Reading, g: Any, out: Any, axis: int = -1) -> Any:
    """The launcher of log_softmax_grad."""
    return _run("softmax_backward", "true", xp, axis, g, out)


def _run(kernel: str, log: str, xp: Reading, axis: int, *arrays: Any) -> Any:
    rows = as_rows(xp, axis, *arrays)
    if rows is None:
        return NotImplemented
    dtype = arrays[0].dtype
    out = rows.empty(dtype)
    held, grid, block = plan(rows.rows, rows.n, dtype, _MOST[kernel])
    name = f"{kernel}<{type_name(dtype)}, {held}, {log}>"
    sizes = np.int64(rows.rows), np.int32(rows.n)
    launch("softmax.cu", name, grid, block, [*map(rows.to_rows, arrays), out, *sizes])
    return rows.from_rows(out)


def logsumexp(xp: Reading, x: Any, axis: Any = None, *, keepdims: bool = False) -> Any:
    """The launcher of logsumexp, along one axis or all."""
    if axis is None and share_dtype(x) and x.ndim:
        y = logsumexp(xp, x.reshape(-1), axis=0)
        shape = (1,) * (x.ndim if keepdims else 0)
        return y if y is NotImplemented else y.reshape(shape)
    rows = as_rows(xp, axis, x)
    if rows is None:
        return NotImplemented
    y = xp.lib.ndarray(rows.outer_shape, x.dtype)
    _, grid, block = plan(rows.rows, rows.n, x.dtype, _MOST["softmax_forward"])
    args = [rows.to_rows(x), y, np.int64(rows.rows), np.int32(rows.n)]
    launch("softmax.cu", f"logsumexp<{type_name(x.dtype)}>", grid, block, args)
    return xp.lib.expand_dims(y, rows.axis) if keepdims else y


VECTOR = (
    *(
        name
        for kernel, most in _MOST.items()
        for dtype in FLOATS
        for held in (0, 1, 2, 4, 8, 16)
        if held <= max_held(dtype, most)
        for name in names(kernel + "<{}, {}, {}>", [dtype], [held], BOOLS)
    ),
    *names("logsumexp<{}>", FLOATS),
)
"""Kernels that must read 16 bytes at a time: all."""

INSTANCES = tuple(("softmax.cu", name) for name in VECTOR)
"""Every kernel that may be launched: (source, name)."""
