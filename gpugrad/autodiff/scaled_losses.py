"""Gradients of a loss that was multiplied by a loss scale, and are that much too large.

They are marked, so that clipping or a plain optimizer can refuse them instead of going wrong.
"""

from __future__ import annotations

import weakref
from collections.abc import Sequence
from typing import Any

from gpugrad.core.indexed_slices import IndexedSlices
from gpugrad.core.tensor import Tensor
from gpugrad.core.variable import Variable

scales: dict[int, weakref.ref[Any]] = {}
"""Every loss scale, by the serial number of the Variable that losses are multiplied by."""
marked: dict[int, tuple[weakref.ref[Tensor], Any]] = {}
"""The marked gradients that are alive, by id, and the loss scale of each."""


def declare_scale(scale: Any, factor: Variable) -> None:
    """Let multiplying by `factor` scale a loss; `scale` is any object that represents it."""
    scales[factor._id] = weakref.ref(scale)
    weakref.finalize(scale, scales.pop, factor._id, None)


def mark_gradients(log: Sequence[Any], targets: Sequence[Tensor], gradients: Sequence[Any]) -> None:
    """Mark the gradients of targets that a scaled loss leads to."""
    numbers = {t._id for t in targets}
    for _, out, ids, *_ in reversed(log):
        if out in numbers if type(out) is int else any(o[0] in numbers for o in out):
            for serial in ids:
                if serial in scales and (scale := scales[serial]()) is not None:
                    for g in gradients:
                        _mark(g, scale)
                    return
            numbers.update(ids)


def _mark(gradient: Any, scale: Any) -> None:
    if gradient is not None:
        g = _values(gradient)
        key = id(g)
        marked[key] = weakref.ref(g, lambda _: marked.pop(key, None)), scale


def keep_mark(gradient: Any, new: Any) -> None:
    """Mark what was computed from a gradient as that gradient is marked."""
    if marked and (scale := scale_of(gradient)) is not None:
        _mark(new, scale)


def scale_of(gradient: Any) -> Any:
    """The scale of the loss behind a gradient, or None if it is unknown."""
    mark = marked.get(id(_values(gradient)))
    return None if mark is None else mark[1]


def _values(gradient: Any) -> Any:
    return gradient.values if isinstance(gradient, IndexedSlices) else gradient
