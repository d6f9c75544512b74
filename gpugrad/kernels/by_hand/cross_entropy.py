"""Softmax cross entropy, forward and backward: one kernel each."""

from __future__ import annotations

import functools
from collections.abc import Sequence
from typing import Any

import numpy as np

from gpugrad.core.backend import HALF, Reading
from gpugrad.kernels.by_hand.rows import FLOATS, Rows, as_rows, max_held, plan, share_dtype
from gpugrad.kernels.runtime.cooperative import barrier_of
from gpugrad.kernels.runtime.launch import architecture, launch, type_name

_MOST = {"sparse_forward": 8, "sparse_backward": 16, "dense_forward": 8, "dense_backward": 8}
"""Most packs of a row per thread; kernels for dense labels hold two rows."""

MOST_ADDED = 8192
"""Most losses that `loss_and_gradient` adds up: one block does so, and a grid adds more faster."""


def softmax_cross_entropy(xp: Reading, logits: Any, labels: Any, axis: int = -1) -> Any:
    """The launcher of softmax_cross_entropy."""
    rows = as_rows(xp, axis, logits, labels)
    if rows is None:
        return NotImplemented
    losses = xp.lib.ndarray(rows.outer_shape, logits.dtype)
    _run(
        "dense_forward", rows, (logits.dtype,), [rows.to_rows(logits), rows.to_rows(labels), losses]
    )
    return losses


def softmax_cross_entropy_grad(
    xp: Reading, g_: Any, logits: Any, labels: Any, axis: int = -1, *, over: bool = False
) -> Any:
    """The launcher of softmax_cross_entropy_grad; `over`: write it over the logits."""
    rows = as_rows(xp, axis, logits, labels)
    if rows is None or not share_dtype(logits, g_) or g_.shape != rows.outer_shape:
        return NotImplemented
    x = rows.to_rows(logits)
    dx = x if over else rows.empty(logits.dtype)
    g_, step = _cotangent(xp, g_)
    arrays = [g_, x, rows.to_rows(labels), dx, step]
    _run("dense_backward", rows, (logits.dtype,), arrays)
    return rows.from_rows(dx)


def sparse_softmax_cross_entropy(
    xp: Reading,
    logits: Any,
    labels: Any,
    *,
    ignore_index: int | None = None,
    label_smoothing: float = 0.0,
    dtype: Any = None,
) -> Any:
    """The launcher of sparse_softmax_cross_entropy."""
    rows = _rows_of_classes(xp, logits, labels, label_smoothing)
    of = logits.dtype if dtype is None else np.dtype(dtype)
    if rows is None or of not in _loss_dtypes(logits.dtype):
        return NotImplemented
    losses = xp.lib.ndarray(rows.outer_shape, of)
    arrays = [rows.to_rows(logits), _as_int64(xp, labels), losses]
    _run("sparse_forward", rows, (logits.dtype, of), arrays, ignore_index, label_smoothing)
    return losses


def sparse_softmax_cross_entropy_grad(
    xp: Reading,
    g_: Any,
    logits: Any,
    labels: Any,
    *,
    ignore_index: int | None = None,
    label_smoothing: float = 0.0,
    over: bool = False,
    losses: Sequence[Any] = (None,) * 5,
    count: int = 1,
) -> Any:
    """The launcher of sparse_softmax_cross_entropy_grad; `over`: write it over the logits.

    `losses` has arrays, or None, for the losses, where `label_smoothing` must be 0, for their sum,
    with its `place` and its divisor (None: `count`), and for the kernel's `is_last_block`.
    """
    rows = _rows_of_classes(xp, logits, labels, label_smoothing)
    if rows is None or g_.dtype not in _loss_dtypes(logits.dtype) or g_.shape != rows.outer_shape:
        return NotImplemented
    x = rows.to_rows(logits)
    dx = x if over else rows.empty(logits.dtype)
    g_, step = _cotangent(xp, g_)
    arrays = [g_, x, _as_int64(xp, labels), dx, *losses, step]
    labelling = ignore_index, label_smoothing, count
    _run("sparse_backward", rows, (logits.dtype, g_.dtype), arrays, *labelling)
    return dx


def loss_and_gradient(
    xp: Reading,
    g_: Any,
    logits: Any,
    labels: Any,
    divisor: Any = None,
    *,
    ignore_index: int | None = None,
    total: str | None = None,
    over: bool = False,
    place: Any = None,
) -> Any:
    """Losses for class numbers, and the gradient for the cotangent `g_`, in one launch.

    If `total` is ``"sum"`` or ``"mean"``, a third result is that of at most `MOST_ADDED` losses. A
    `divisor`, an array of one element, divides the sum, and 0 by 0 is 0. It is also written to the
    address in the array `place`, when the kernel runs.
    """
    losses = xp.lib.ndarray(g_.shape, g_.dtype)
    added = None if total is None else xp.lib.ndarray((), g_.dtype)
    divisor = None if divisor is None else xp.lib.asarray(divisor)  # NumPy may give a scalar
    arrived = None if total is None else barrier_of(losses)
    d = sparse_softmax_cross_entropy_grad(
        xp,
        g_,
        logits,
        labels,
        ignore_index=ignore_index,
        over=over,
        losses=(losses, added, place, divisor, arrived),
        count=g_.size if total == "mean" else 1,
    )
    if d is NotImplemented:
        return d
    return [losses, d] if added is None else [losses, d, added]


def _rows_of_classes(xp: Reading, logits: Any, labels: Any, label_smoothing: float) -> Rows | None:
    rows = as_rows(xp, -1, logits)
    if rows is None or getattr(labels, "shape", None) != rows.outer_shape:
        return None
    return rows if labels.dtype.kind in "iu" and 0 <= label_smoothing <= 1 else None


def _cotangent(xp: Reading, g: Any) -> tuple[Any, Any]:
    """The cotangent of the losses, and the step from one to the next: 0 if it is broadcast."""
    if not any(g.strides) and g.size:
        return g, np.int32(0)
    return xp.lib.ascontiguousarray(g), np.int32(1)


def _as_int64(xp: Reading, labels: Any) -> Any:
    if labels.dtype != np.int64:
        labels = labels.astype(np.int64)
    return labels if labels.flags.c_contiguous else xp.lib.ascontiguousarray(labels)


def _loss_dtypes(dtype: Any) -> tuple[Any, ...]:
    """The dtypes that the losses may have, for scores of a dtype."""
    return (dtype, np.dtype(np.float32)) if dtype in HALF else (dtype,)


_KEPT = -1  # KEPT of rows.cuh
_SHARED = 99 * 1024 - 512
"""Bytes of a row in shared memory: from sm_80 on a block has 99 KiB, with what kernels declare.

GPT-2's vocabulary of 50,304 in 16 bits must fit.
"""


def _run(
    kernel: str, rows: Rows, dtypes: tuple[Any, ...], arrays: list[Any], *labelling: Any
) -> None:
    held, grid, block = plan(rows.rows, rows.n, dtypes[0], _MOST[kernel])
    shared = 0
    if kernel == "sparse_backward" and (held == 0 or held >= 8) and block[0] > 32:
        packs = -(-rows.n * dtypes[0].itemsize // 16) + 1
        if packs * 16 <= _SHARED and int(architecture()[3:]) >= 80:
            held, shared = _KEPT, packs * 16
    sizes: list[Any] = [np.int64(rows.rows), np.int32(rows.n)]
    if labelling:
        ignored, *numbers = labelling
        sizes += [np.bool_(ignored is not None), np.int64(ignored or 0), *map(np.float64, numbers)]
    name = _name(kernel, dtypes, held)
    launch("cross_entropy.cu", name, grid, block, [*arrays, *sizes], shared)


@functools.cache
def _name(kernel: str, dtypes: tuple[Any, ...], held: int) -> str:
    return f"{kernel}<{', '.join(map(type_name, dtypes))}, {held}>"


INSTANCES = tuple(
    ("cross_entropy.cu", _name(kernel, (dtype, *of), held))
    for kernel, most in _MOST.items()
    for dtype in FLOATS
    for held in (_KEPT, 0, 1, 2, 4, 8, 16)
    if held <= max_held(dtype, most) and (held >= 0 or kernel == "sparse_backward")
    for of in ([(d,) for d in _loss_dtypes(dtype)] if "sparse" in kernel else [()])
)
"""Every kernel that may be launched: (source, name)."""

VECTOR = tuple(name for _, name in INSTANCES)
"""Kernels that must read 16 bytes at a time: all."""
