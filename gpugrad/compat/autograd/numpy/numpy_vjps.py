"""Helpers for rules of broadcasting functions."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as _np

import gpugrad.compat.autograd.numpy as np
from gpugrad.compat.autograd.boxes import getval
from gpugrad.compat.names import forwarding


def unbroadcast(x: Any, target_meta: Any, broadcast_idx: int = 0) -> Any:
    """The sum of `x` over the axes along which an argument was broadcast.

    Args:
        x: a gradient of the result's shape.
        target_meta: the argument, or a tuple whose first element is its shape.
        broadcast_idx: where axes were added: 0 or -1.
    """
    is_meta = isinstance(target_meta, tuple) and bool(target_meta)
    is_meta = is_meta and isinstance(target_meta[0], tuple)
    shape = target_meta[0] if is_meta else _np.shape(getval(target_meta))
    while np.ndim(x) > len(shape):
        x = np.sum(x, axis=broadcast_idx)
    for axis, size in enumerate(shape):
        if size == 1 != np.shape(x)[axis]:
            x = np.sum(x, axis=axis, keepdims=True)
    is_complex = (
        target_meta[3] if is_meta and len(target_meta) > 3 else np.iscomplexobj(target_meta)
    )
    return np.real(x) if np.iscomplexobj(x) and not is_complex else x


def unbroadcast_f(target: Any, f: Callable[[Any], Any]) -> Callable[[Any], Any]:
    """The rule `f`, whose gradient gets the shape of the argument `target`."""
    return lambda g: unbroadcast(f(g), target)


__getattr__, __dir__ = forwarding(__name__, own=globals())
