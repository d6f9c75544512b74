"""Functions of all gradients together: their norm, and whether they are finite."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, TypedDict

import numpy as np

from gpugrad.autodiff.scaled_losses import scale_of
from gpugrad.core.arguments import POSITIVE
from gpugrad.core.backend import HALF, READINGS, TENSOR
from gpugrad.core.devices import formulas_on
from gpugrad.core.indexed_slices import IndexedSlices
from gpugrad.core.listening import threads
from gpugrad.core.tensor import Tensor, tensor, wrap
from gpugrad.errors import ArgumentError, saying_where
from gpugrad.kernels.by_hand import optim as kernels
from gpugrad.optim.arrays import ravel_reals


class Limits(TypedDict, total=False):
    """The options of an optimizer that clip gradients, at most one of them."""

    clipnorm: float | None
    clipvalue: float | None
    global_clipnorm: float | None


def check_limits(name: str, limits: Limits) -> None:
    """Check the clipping options of the optimizer `name`: at most one, and above 0."""
    limited = {option: limit for option, limit in limits.items() if limit is not None}
    if len(limited) > 1:
        raise ArgumentError(f"{name}: use one of {', '.join(limited)}.")
    for option, limit in limited.items():
        number = POSITIVE(name, option, limit)
        if not isinstance(limit, Tensor):
            limits[option] = number  # type: ignore[literal-required]


def clip(
    grads: Sequence[Any],
    *,
    clipnorm: float | None = None,
    clipvalue: float | None = None,
    global_clipnorm: float | None = None,
) -> list[Any]:
    """Gradients within the limits of `Limits`."""
    if global_clipnorm is not None:
        return _clip_together(grads, global_clipnorm)[0]
    if clipnorm is not None:
        return [_clip_together([g], clipnorm)[0][0] for g in grads]
    if clipvalue is not None:  # repeated rows add up first
        return [TENSOR.clip(tensor(g), -clipvalue, clipvalue) for g in grads]
    return list(grads)


def _on_gpu(parts: Sequence[Tensor]) -> bool:
    """Whether kernels can take all arrays: on one GPU, and nothing records operations on them."""
    kinds = {type(p._data) for p in parts}
    return (
        not threads.stack
        and len(kinds) == 1
        and np.ndarray not in kinds
        and not any(READINGS[kind].nesting for kind in kinds)
        and len({p.device for p in parts}) == 1
    )


@saying_where
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


@saying_where
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

    `global_clipnorm=` of an optimizer does the same inside of its step, and is the only right way
    for gradients of a loss that a `LossScale` has scaled.

    Raises:
        ArgumentError: `max_norm` is not above 0, all gradients are None, or they are gradients of
            a scaled loss, whose norm is too large by the scale.

    >>> grads, norm = gg.optim.clip_by_global_norm([gg.constant([3.0, 4.0]), None], 1.0)
    >>> print(norm, grads[0], grads[1])
    5.0 [0.6 0.8] None
    """
    if not max_norm > 0:
        raise ArgumentError(f"clip_by_global_norm: max_norm must be above 0, got {max_norm}.")
    if any(scale_of(g) for g in grads):
        raise ArgumentError(
            "clip_by_global_norm: these are gradients of a scaled loss, so their norm is too large "
            "by the scale. Let the optimizer clip them after it has divided by the scale, as in "
            f"SGD(0.1, global_clipnorm={max_norm})."
        )
    return _clip_together(grads, max_norm)


def _clip_together(
    grads: Sequence[Tensor | IndexedSlices | None], max_norm: float
) -> tuple[list[Any], Tensor]:
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
