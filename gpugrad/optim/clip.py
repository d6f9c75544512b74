"""Functions of all gradients together: their norm, and whether they are finite."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from gpugrad.core.backend import HALF, READINGS, TENSOR
from gpugrad.core.devices import formulas_on
from gpugrad.core.indexed_slices import IndexedSlices
from gpugrad.core.tensor import Tensor, recorders, tensor, wrap
from gpugrad.errors import ArgumentError
from gpugrad.kernels.by_hand import optim as kernels
from gpugrad.optim.arrays import ravel_reals

__all__ = ["all_finite", "clip_by_global_norm"]


def _on_gpu(parts: Sequence[Tensor]) -> bool:
    """Whether kernels can take all arrays: on one GPU, and nothing records operations on them."""
    kinds = {type(p._data) for p in parts}
    return (
        not recorders
        and len(kinds) == 1
        and np.ndarray not in kinds
        and not any(READINGS[kind].nesting for kind in kinds)
        and len({p.device for p in parts}) == 1
    )


def all_finite(grads: Sequence[Tensor | IndexedSlices | None]) -> Tensor:
    """Whether every element of every gradient is finite, as needed with a scaled loss.

    Args:
        grads: Tensors, IndexedSlices, or None, which is ignored.

    Returns:
        A 0-d bool Tensor on the device of the gradients. The host does not wait for it until its
        value is read.

    Raises:
        ArgumentError: all gradients are None.

    >>> print(gg.optim.all_finite([gg.constant([1.0, 2.0]), None]))
    True
    >>> print(gg.optim.all_finite([gg.constant([1.0, 2.0]), gg.constant(float("inf"))]))
    False
    """
    parts = [
        g.values if isinstance(g, IndexedSlices) else tensor(g) for g in grads if g is not None
    ]
    if not parts:
        raise ArgumentError("all_finite: all gradients are None.")
    if _on_gpu(parts):
        with formulas_on(parts[0]._data):
            return wrap(kernels.all_finite([ravel_reals(p._data) for p in parts]))
    xp = TENSOR
    finite = [xp.all(xp.isfinite(p)) for p in parts]
    return finite[0] if len(finite) == 1 else xp.all(xp.stack(finite))


def clip_by_global_norm(
    grads: Sequence[Tensor | IndexedSlices | None], max_norm: float
) -> tuple[list[Any], Tensor]:
    """Scale gradients down together so that their common Euclidean norm is at most `max_norm`.

    Args:
        grads: Tensors, IndexedSlices, or None, which stays None.
        max_norm: above 0.

    Returns:
        The list of scaled gradients, and their norm before scaling. If the norm is not finite,
        all gradients become NaN, as in TensorFlow: a scale of 0 would hide the failure.

    Raises:
        ArgumentError: `max_norm` is not above 0, or all gradients are None.

    >>> grads, norm = gg.optim.clip_by_global_norm([gg.constant([3.0, 4.0]), None], 1.0)
    >>> print(norm, grads[0], grads[1])
    5.0 [0.6 0.8] None
    """
    if not max_norm > 0:
        raise ArgumentError(f"clip_by_global_norm: max_norm must be above 0, got {max_norm}.")
    xp = TENSOR
    parts = [
        tensor(g) for g in grads if g is not None
    ]  # dense: the norm needs sums of repeated rows
    if not parts:
        raise ArgumentError("clip_by_global_norm: all gradients are None.")
    if _on_gpu(parts) and not any(isinstance(g, IndexedSlices) for g in grads):
        with formulas_on(parts[0]._data):
            arrays, norm_ = kernels.clip([ravel_reals(p._data) for p in parts], max_norm)
        clipped = iter(
            [wrap(a.view(p.dtype).reshape(p.shape)) for a, p in zip(arrays, parts, strict=True)]
        )
        return [None if g is None else next(clipped) for g in grads], wrap(norm_)
    wide = [xp.astype(p, np.float32) if p.dtype in HALF else p for p in parts]
    norms = [xp.vector_norm(p) for p in wide]
    norm = norms[0] if len(norms) == 1 else xp.vector_norm(xp.stack(norms))
    max_norm = min(max_norm, float(np.finfo(norm.dtype).max))  # inf / inf is NaN
    scale = xp.where(xp.isfinite(norm), max_norm / xp.maximum(norm, max_norm), np.nan)

    def rescale(g: Any) -> Any:
        if isinstance(g, IndexedSlices):
            return IndexedSlices(rescale(g.values), g.indices, g.dense_shape)
        return None if g is None else g * xp.astype(scale, g.dtype)

    return [rescale(g) for g in grads], norm
