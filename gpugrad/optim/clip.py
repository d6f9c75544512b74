"""Gradient clipping."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from gpugrad.backend import HALF, TENSOR
from gpugrad.errors import ArgumentError
from gpugrad.tensor import IndexedSlices, Tensor, tensor

__all__ = ["clip_by_global_norm"]


def clip_by_global_norm(
    grads: Sequence[Tensor | IndexedSlices | None], max_norm: float
) -> tuple[list[Any], Tensor]:
    """Scale gradients down together so that their common Euclidean norm is at most `max_norm`.

    Args:
        grads: Tensors, IndexedSlices, or None (which stays None).
        max_norm: above 0.

    Returns:
        The list of scaled gradients, and their norm before that. If the norm is not finite, all
        gradients become NaN, as in TensorFlow: a scale of 0 would hide the failure.

    Raises:
        ArgumentError: `max_norm` is not above 0, or all gradients are None.

    >>> import gpugrad as gg
    >>> grads, norm = gg.optim.clip_by_global_norm([gg.constant([3.0, 4.0]), None], 1.0)
    >>> print(norm, grads[0], grads[1])
    5.0 [0.6 0.8] None
    """
    if not max_norm > 0:
        raise ArgumentError(f"clip_by_global_norm: max_norm must be above 0, got {max_norm}.")
    xp = TENSOR
    parts = [tensor(g) for g in grads if g is not None]  # dense: rows named twice add up first
    if not parts:
        raise ArgumentError("clip_by_global_norm: all gradients are None.")
    total: Any = 0.0
    for part in parts:
        size = xp.abs(part) if part.dtype.kind == "c" else part
        if size.dtype in HALF:  # the square of 256 is beyond float16
            size = xp.astype(size, np.float32)
        total = total + xp.sum(size * size)
    norm = xp.sqrt(total)
    scale = xp.where(xp.isfinite(norm), max_norm / xp.maximum(norm, max_norm), np.nan)

    def scaled(g: Any) -> Any:
        if isinstance(g, IndexedSlices):
            return IndexedSlices(scaled(g.values), g.indices, g.dense_shape)
        return None if g is None else g * xp.astype(scale, g.dtype)

    return [scaled(g) for g in grads], norm
