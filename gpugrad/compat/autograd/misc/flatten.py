"""Nested containers as one flat array."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as _np

import gpugrad.compat.autograd.numpy as np
from gpugrad.compat.autograd.boxes import getval, leaves_of, pack
from gpugrad.compat.names import forwarding


def _sorted(nest: Any) -> Any:
    """The nest, with the keys of its dicts in order."""
    if isinstance(nest, dict):
        return {k: _sorted(nest[k]) for k in sorted(nest)}
    if isinstance(nest, (list, tuple)):
        values = [_sorted(v) for v in nest]
        return type(nest)(*values) if hasattr(nest, "_fields") else type(nest)(values)
    return nest


def flatten(value: Any) -> tuple[Any, Callable[[Any], Any]]:
    """The numbers of nested tuples, lists and dicts as one axis, and the function back.

    >>> from gpugrad.compat.autograd.misc import flatten
    >>> flat, unflatten = flatten({"b": [1.0, 2.0], "a": np.zeros(1)})
    >>> print(flat, unflatten(flat)["b"][1])
    [0. 1. 2.] 2.0
    """
    nest = _sorted(value)
    leaves = leaves_of(nest)
    shapes = [_np.shape(getval(leaf)) for leaf in leaves]
    if not leaves:
        return _np.array([]), lambda flat: nest
    flat = np.concatenate([np.ravel(leaf) for leaf in leaves])
    stops = _np.cumsum([int(_np.prod(shape)) for shape in shapes])

    def unflatten(flat: Any) -> Any:
        pieces = zip(stops, shapes, strict=True)
        parts = [
            np.reshape(flat[stop - int(_np.prod(s)) : stop], s) if s else flat[stop - 1]
            for stop, s in pieces
        ]
        return pack(nest, parts)

    return flat, unflatten


def flatten_func(
    func: Callable[..., Any], example: Any
) -> tuple[Callable[..., Any], Callable[[Any], Any], Any]:
    """A function of nests as one of flat arrays, the function back to nests, and a flat example."""
    flat_example, unflatten = flatten(example)

    def of_flat(flat: Any, *args: Any) -> Any:
        return flatten(func(unflatten(flat), *args))[0]

    return of_flat, unflatten, flat_example


__getattr__, __dir__ = forwarding(__name__, own=globals())
