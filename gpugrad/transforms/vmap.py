"""`vmap`: a function of one example as a function of many, run once for all of them."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import numpy as np

from gpugrad.autodiff.batched import Level, unwrap_level, wrap_level
from gpugrad.core import nest
from gpugrad.core.indexed_slices import IndexedSlices
from gpugrad.core.tensor import Tensor, tensor
from gpugrad.errors import ArgumentError, AxisError, ShapeError, StructureError

__all__ = ["vectorized_map", "vmap"]

_RANDOMNESS = ("error", "different", "same")


def _spread_axes(what: str, structure: Any, axes: Any) -> list[int | None]:
    """An axis, or None, for every leaf of a structure: `axes` may stop at a branch of it."""
    if axes is None or isinstance(axes, (int, np.integer)):
        return [None if axes is None else int(axes)] * len(nest.flatten(structure))
    children, given = nest.children(structure), nest.children(axes)
    if children is None or given is None or [k for k, _ in children] != [k for k, _ in given]:
        raise StructureError(
            f"vmap: {what}={axes!r:.80} does not follow the structure of the values: "
            f"{structure!r:.80}. Give one int or None, or one for each branch."
        )
    pairs = zip(children, given, strict=True)
    return [a for (_, child), (_, axis) in pairs for a in _spread_axes(what, child, axis)]


def _counted(what: str, x: Tensor, axis: int, ndim: int) -> int:
    """`axis` counted from 0 among `ndim` axes."""
    if not -ndim <= axis < ndim:
        raise AxisError(f"vmap: {what} {axis} is out of bounds for a tensor of shape {x.shape}.")
    return axis % ndim


def vmap(
    f: Callable[..., Any],
    in_axes: Any = 0,
    out_axes: Any = 0,
    *,
    axis_size: int | None = None,
    randomness: str = "error",
) -> Callable[..., Any]:
    """Make a function of one example into a function of many, which runs once for all.

    Args:
        f: function of Tensors, in any nested structure, that returns the same. It sees the
            shapes of one example; it may take gradients, and Tensors from outside. It cannot
            look at values: ``if x > 0`` raises, `gg.where` is the way.
        in_axes: along which axis the examples of an argument lie; None for an argument that
            is the same for all. One for all arguments, or one for each, which may follow an
            argument's structure. Keyword arguments lie along axis 0.
        out_axes: along which axis those of the results shall lie; None for a result that is
            the same for all. One for all, or in the structure of the result.
        axis_size: how many examples, where no argument says so.
        randomness: what `gg.random` and dropout give inside: ``"different"`` numbers for each
            example, the ``"same"`` for all, or an ``"error"``.

    Raises:
        ShapeError: the arguments do not have equally many examples.
        AxisError: an axis that an argument or result does not have.
        StructureError: axes that do not follow the structure.
        ArgumentError: no argument has examples; a result is not the same for all, though
            `out_axes` is None there.

    >>> x = gg.constant([[1.0, 2.0], [3.0, 4.0]])
    >>> print(gg.vmap(lambda a, b: gg.sum(a * b), in_axes=(0, None))(x, [10.0, 1.0]))
    [12. 34.]
    >>> print(gg.vmap(gg.grad(lambda a: gg.sum(a**2)))(x))  # a gradient for each example
    [[2. 4.]
     [6. 8.]]
    """
    if randomness not in _RANDOMNESS:
        raise ArgumentError(f"vmap: randomness is one of {_RANDOMNESS}, not {randomness!r}.")
    name = getattr(f, "__name__", type(f).__name__)

    @functools.wraps(f)
    def mapped(*args: Any, **keywords: Any) -> Any:
        if isinstance(in_axes, (list, tuple)) and len(in_axes) != len(args):
            raise StructureError(
                f"vmap of {name}: in_axes has {len(in_axes)} entries for {len(args)} arguments."
            )
        given = (tuple(args), keywords)
        axes = _spread_axes("in_axes", tuple(args), in_axes)
        axes += [0] * len(nest.flatten(keywords))
        leaves = [
            leaf if axis is None else tensor(leaf)
            for leaf, axis in zip(nest.flatten(given), axes, strict=True)
        ]
        axes = [
            axis if axis is None else _counted("in_axes", leaf, axis, leaf.ndim)
            for leaf, axis in zip(leaves, axes, strict=True)
        ]
        sizes = {leaf.shape[a] for leaf, a in zip(leaves, axes, strict=True) if a is not None}
        sizes |= set() if axis_size is None else {axis_size}
        if len(sizes) > 1:
            shapes = [leaf.shape for leaf, a in zip(leaves, axes, strict=True) if a is not None]
            raise ShapeError(
                f"vmap of {name}: the arguments have {sorted(sizes)} examples, of shapes {shapes} "
                f"along in_axes={in_axes!r}; they must have equally many."
            )
        if not sizes:
            raise ArgumentError(
                f"vmap of {name}: no argument has examples (in_axes={in_axes!r}); say how many "
                "there are with axis_size=."
            )
        with Level(sizes.pop(), randomness) as level:
            inside = [
                leaf if axis is None else wrap_level(leaf, level, axis)
                for leaf, axis in zip(leaves, axes, strict=True)
            ]
            given_args, given_keywords = nest.pack(given, inside)
            result = f(*given_args, **given_keywords)
            return _collected(result, level)

    def _collected(result: Any, level: Level) -> Any:
        found = nest.flatten(result)
        outs = []
        for leaf, axis in zip(found, _spread_axes("out_axes", result, out_axes), strict=True):
            made = tensor(leaf) if isinstance(leaf, IndexedSlices) or axis is not None else leaf
            if axis is None:
                if isinstance(made, Tensor) and level.is_in(made._data):
                    raise ArgumentError(
                        f"vmap of {name}: a result differs between examples, so its out_axes "
                        "cannot be None."
                    )
                outs.append(made)
            else:
                outs.append(
                    unwrap_level(made, level, _counted("out_axes", made, axis, made.ndim + 1))
                )
        return nest.pack(result, outs)

    return mapped


def vectorized_map(fn: Callable[[Any], Any], elems: Any) -> Any:
    """Apply `fn` to each example of `elems` along axis 0, all at once: TensorFlow's name.

    Args:
        fn: function of one nested structure.
        elems: the structure, whose tensors have the examples along axis 0.

    >>> print(gg.vectorized_map(lambda x: x * x, gg.constant([1.0, 2.0])))
    [1. 4.]
    """
    return vmap(fn)(elems)
