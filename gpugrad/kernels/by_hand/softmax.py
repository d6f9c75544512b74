"""Softmax and log-softmax along an axis, forward and backward, and logsumexp.

For an axis other than the last, the array is transposed first and the result is a view.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from gpugrad.core.backend import Reading
from gpugrad.kernels.by_hand.rows import FLOATS, as_rows, max_held, plan, share_dtype
from gpugrad.kernels.runtime.launch import launch, type_name

_FORWARD, _BACKWARD = 16, 8  # most packs of a row per thread: the backward pass holds two rows


def softmax(xp: Reading, x: Any, axis: int = -1) -> Any:
    """The launcher of softmax."""
    return _forward(xp, x, axis, "false")


def log_softmax(xp: Reading, x: Any, axis: int = -1) -> Any:
    """The launcher of log_softmax."""
    return _forward(xp, x, axis, "true")


def softmax_grad(xp: Reading, g: Any, out: Any, axis: int = -1) -> Any:
    """The launcher of softmax_grad."""
    return _backward(xp, g, out, axis, "false")


def log_softmax_grad(xp: Reading, g: Any, out: Any, axis: int = -1) -> Any:
    """The launcher of log_softmax_grad."""
    return _backward(xp, g, out, axis, "true")


def _forward(xp: Reading, x: Any, axis: int, log: str) -> Any:
    rows = as_rows(xp, axis, x)
    if rows is None:
        return NotImplemented
    y = rows.empty(x.dtype)
    held, grid, block = plan(rows.rows, rows.n, x.dtype, _FORWARD)
    name = f"softmax_forward<{type_name(x.dtype)}, {held}, {log}>"
    sizes = np.int64(rows.rows), np.int32(rows.n)
    launch("softmax.cu", name, grid, block, [rows.to_rows(x), y, *sizes])
    return rows.from_rows(y)


def _backward(xp: Reading, g: Any, out: Any, axis: int, log: str) -> Any:
    rows = as_rows(xp, axis, g, out)
    if rows is None:
        return NotImplemented
    dx = rows.empty(out.dtype)
    held, grid, block = plan(rows.rows, rows.n, out.dtype, _BACKWARD)
    name = f"softmax_backward<{type_name(out.dtype)}, {held}, {log}>"
    sizes = np.int64(rows.rows), np.int32(rows.n)
    launch("softmax.cu", name, grid, block, [rows.to_rows(g), rows.to_rows(out), dx, *sizes])
    return rows.from_rows(dx)


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
    _, grid, block = plan(rows.rows, rows.n, x.dtype, _FORWARD)
    sizes = np.int64(rows.rows), np.int32(rows.n)
    launch(
        "softmax.cu", f"logsumexp<{type_name(x.dtype)}>", grid, block, [rows.to_rows(x), y, *sizes]
    )
    return xp.lib.expand_dims(y, rows.axis) if keepdims else y


def _names() -> list[str]:
    return [
        *(
            f"softmax_{way}<{type_name(dtype)}, {held}, {log}>"
            for way, most in (("forward", (0, 1, 2, 4, 8, 16)), ("backward", (0, 1, 2, 4, 8)))
            for dtype in FLOATS
            for held in most
            for log in ("false", "true")
            if held <= max_held(dtype, 16)
        ),
        *(f"logsumexp<{type_name(dtype)}>" for dtype in FLOATS),
    ]


INSTANCES = tuple(("softmax.cu", name) for name in _names())
"""Every kernel that may be launched: (source, name)."""

VECTOR = tuple(_names())
"""Kernels that must read 16 bytes at a time: all."""
