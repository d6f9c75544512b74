"""Softmax and log-softmax along an axis, forward and backward, and logsumexp.

Along another axis than the last, the array is transposed before and a view is given back.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from gpugrad.core.backend import Reading
from gpugrad.kernels.by_hand.rows import FLOATS, alike, as_rows, most_held, plan
from gpugrad.kernels.runtime.launch import launch, type_name

__all__ = [
    "INSTANCES",
    "VECTOR",
    "log_softmax",
    "log_softmax_grad",
    "logsumexp",
    "softmax",
    "softmax_grad",
]

_FORWARD, _BACKWARD = 16, 8  # packs of a row that a thread holds: two rows are held in backward


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
    launch("softmax.cu", name, grid, block, [rows.of(x), y, *sizes])
    return rows.back(y)


def _backward(xp: Reading, g: Any, out: Any, axis: int, log: str) -> Any:
    rows = as_rows(xp, axis, g, out)
    if rows is None:
        return NotImplemented
    dx = rows.empty(out.dtype)
    held, grid, block = plan(rows.rows, rows.n, out.dtype, _BACKWARD)
    name = f"softmax_backward<{type_name(out.dtype)}, {held}, {log}>"
    sizes = np.int64(rows.rows), np.int32(rows.n)
    launch("softmax.cu", name, grid, block, [rows.of(g), rows.of(out), dx, *sizes])
    return rows.back(dx)


def logsumexp(xp: Reading, x: Any, axis: Any = None, *, keepdims: bool = False) -> Any:
    """The launcher of logsumexp, along one axis or all."""
    if axis is None and alike(x) and x.ndim:
        found = logsumexp(xp, x.reshape(-1), axis=0)
        shape = (1,) * (x.ndim if keepdims else 0)
        return found if found is NotImplemented else found.reshape(shape)
    rows = as_rows(xp, axis, x)
    if rows is None:
        return NotImplemented
    y = xp.lib.empty(rows.moved, dtype=x.dtype)
    _, grid, block = plan(rows.rows, rows.n, x.dtype, _FORWARD)
    sizes = np.int64(rows.rows), np.int32(rows.n)
    launch("softmax.cu", f"logsumexp<{type_name(x.dtype)}>", grid, block, [rows.of(x), y, *sizes])
    return xp.lib.expand_dims(y, rows.axis) if keepdims else y


def _names() -> list[str]:
    return [
        *(
            f"softmax_{way}<{type_name(dtype)}, {held}, {log}>"
            for way, most in (("forward", (0, 1, 2, 4, 8, 16)), ("backward", (0, 1, 2, 4, 8)))
            for dtype in FLOATS for held in most for log in ("false", "true")
            if held <= most_held(dtype, 16)
        ),
        *(f"logsumexp<{type_name(dtype)}>" for dtype in FLOATS),
    ]  # fmt: skip


INSTANCES = tuple(("softmax.cu", name) for name in _names())
"""Every kernel that may be launched: (source, name)."""

VECTOR = tuple(_names())
"""Those that must read 16 bytes at a time: all."""
