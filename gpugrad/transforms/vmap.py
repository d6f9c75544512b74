"""`vmap`: turn a function of one example into one of a batch, which runs once for all."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any, ParamSpec, TypeVar

import numpy as np

from gpugrad.autodiff.batched import Level
from gpugrad.autodiff.borders import unwrap_level, wrap_level
from gpugrad.core import nest
from gpugrad.core.arguments import CALLABLE
from gpugrad.core.holders import opened
from gpugrad.core.indexed_slices import IndexedSlices
from gpugrad.core.tensor import Tensor, tensor
from gpugrad.errors import ArgumentError, AxisError, ShapeError, StructureError, saying_where

P = ParamSpec("P")
R = TypeVar("R")

_RANDOMNESS = ("error", "different", "same")


def _axis_of_each_leaf(what: str, structure: Any, axes: Any) -> list[int | None]:
    """An axis or None for every leaf of a structure; one in `axes` may hold for a branch."""
    if axes is None or isinstance(axes, (int, np.integer)):
        return [None if axes is None else int(axes)] * len(nest.flatten(structure))
    children, parts = nest.children(structure), nest.children(axes)
    if children is None or parts is None or [k for k, _ in children] != [k for k, _ in parts]:
        raise StructureError(
            f"vmap: {what}={axes!r:.80} does not match the structure of the values: "
            f"{structure!r:.80}. Pass one int or None, or one for each branch."
        )
    pairs = zip(children, parts, strict=True)
    return [a for (_, child), (_, axis) in pairs for a in _axis_of_each_leaf(what, child, axis)]


def _from_zero(what: str, x: Tensor, axis: int, ndim: int) -> int:
    """`axis` counted from 0 among `ndim` axes."""
    if not -ndim <= axis < ndim:
        raise AxisError(f"vmap: {what} {axis} is out of bounds for a tensor of shape {x.shape}.")
    return axis % ndim


@saying_where
def vmap(
    f: Callable[P, R],
    in_axes: Any = 0,
    out_axes: Any = 0,
    *,
    axis_size: int | None = None,
    randomness: str = "error",
) -> Callable[P, R]:
    """Turn a function of one example into a function of a batch, which runs once for all.

    Args:
        f: function of Tensors, in any nested structure, that returns such a structure. It sees the
            shapes of one example. It may compute gradients and read Tensors from outside, but not
            branch on values: ``if x > 0`` raises, use `gg.where`. Leaves that are not numbers, such
            as None, are the same for all examples.
        in_axes: the batch axis of each argument; None for an argument that all examples share.
            One for all arguments, or one for each, which may follow an argument's structure. The
            batch axis of keyword arguments is 0.
        out_axes: the batch axis of the results; None for a result that all examples share. One
            for all, or in the structure of the result.
        axis_size: the number of examples, if no argument has a batch axis.
        randomness: what `gg.random` and dropout draw inside: ``"different"`` numbers for each
            example, the ``"same"`` for all, or an ``"error"``.

    Raises:
        ShapeError: the arguments do not have equally many examples.
        AxisError: an argument or result lacks the axis.
        StructureError: axes do not match the structure.
        ArgumentError: no argument has a batch axis; or a result differs between examples, though
            its `out_axes` is None.

    >>> x = gg.constant([[1.0, 2.0], [3.0, 4.0]])
    >>> print(gg.vmap(lambda a, b: gg.sum(a * b), in_axes=(0, None))(x, [10.0, 1.0]))
    [12. 34.]
    >>> print(gg.vmap(gg.grad(lambda a: gg.sum(a**2)))(x))  # a gradient for each example
    [[2. 4.]
     [6. 8.]]
    """
    CALLABLE("vmap", "f", f)
    if randomness not in _RANDOMNESS:
        raise ArgumentError(f"vmap: randomness must be one of {_RANDOMNESS}, got {randomness!r}.")
    name = getattr(f, "__name__", type(f).__name__)

    @functools.wraps(f)
    def mapped(*args: Any, **keywords: Any) -> Any:
        if isinstance(in_axes, (list, tuple)) and len(in_axes) != len(args):
            raise StructureError(
                f"vmap of {name}: in_axes has {len(in_axes)} entries for {len(args)} arguments."
            )
        axes = _axis_of_each_leaf("in_axes", tuple(args), in_axes)
        axes += [0] * len(nest.flatten(keywords))
        pairs = [
            (leaf, None if nest.is_constant(leaf) else axis)
            for leaf, axis in zip(nest.flatten((args, keywords)), axes, strict=True)
        ]
        leaves = [leaf if axis is None else tensor(leaf) for leaf, axis in pairs]
        axes = [
            axis if axis is None else _from_zero("in_axes", leaf, axis, leaf.ndim)
            for leaf, (_, axis) in zip(leaves, pairs, strict=True)
        ]
        size = _batch_size(name, leaves, axes, in_axes, axis_size)
        level = Level(size, randomness)
        try:
            with level:
                inside = [
                    leaf if axis is None else wrap_level(leaf, level, axis)
                    for leaf, axis in zip(leaves, axes, strict=True)
                ]
                args, keywords = nest.pack((tuple(args), keywords), inside)
                return _collect(name, f(*args, **keywords), level, out_axes)
        except BaseException:  # Ctrl-C may have kept the `with` statement from it
            level.__exit__()
            raise

    return saying_where(mapped, "vmap")


def _batch_size(
    name: str, leaves: list[Any], axes: list[int | None], in_axes: Any, axis_size: int | None
) -> int:
    """The number of examples along the leaves' axes, or else `axis_size`."""
    shapes = [leaf.shape for leaf, a in zip(leaves, axes, strict=True) if a is not None]
    sizes = {leaf.shape[a] for leaf, a in zip(leaves, axes, strict=True) if a is not None}
    sizes |= set() if axis_size is None else {axis_size}
    if len(sizes) > 1:
        raise ShapeError(
            f"vmap of {name}: the arguments must have equally many examples, got {sorted(sizes)}: "
            f"shapes {shapes} along in_axes={in_axes!r}."
        )
    if not sizes:
        raise ArgumentError(
            f"vmap of {name}: no argument has examples (in_axes={in_axes!r}); say how many "
            "there are with axis_size=."
        )
    return sizes.pop()


def _collect(name: str, result: Any, level: Level, out_axes: Any) -> Any:
    """The result with the examples of `level` along `out_axes`."""
    outs = []
    axes = _axis_of_each_leaf("out_axes", result, out_axes)
    for leaf, axis in zip(nest.flatten(result), axes, strict=True):
        if leaf is not result and nest.is_constant(leaf):
            outs.append(leaf)
            continue
        leaf = opened(leaf)
        out = tensor(leaf) if isinstance(leaf, IndexedSlices) or axis is not None else leaf
        if axis is not None:
            axis = _from_zero("out_axes", out, axis, out.ndim + 1)
            outs.append(unwrap_level(out, level, axis))
        elif isinstance(out, Tensor) and level.is_in(out._data):
            raise ArgumentError(
                f"vmap of {name}: a result differs between examples, so its out_axes "
                "cannot be None."
            )
        else:
            outs.append(out)
    return nest.pack(result, outs)


@saying_where
def vectorized_map(fn: Callable[[Any], R], elems: Any) -> R:
    """Apply `fn` to each example of `elems` along axis 0, all at once; named as in TensorFlow.

    Args:
        fn: function of one nested structure.
        elems: the structure, with axis 0 as the batch axis of its tensors.

    >>> print(gg.vectorized_map(lambda x: x * x, gg.constant([1.0, 2.0])))
    [1. 4.]
    """
    CALLABLE("vectorized_map", "fn", fn)
    return vmap(fn)(elems)
