"""NumPy's functions that apply another function to parts of an array."""

import math
from typing import Any

import numpy as np

from gpugrad.core.arguments import CALLABLE
from gpugrad.core.backend import TENSOR
from gpugrad.core.tensor import Tensor, tensor
from gpugrad.errors import ArgumentError, ShapeError, saying_where
from gpugrad.ops._axes import check_axis


@saying_where
def apply_along_axis(func1d, axis, arr, *args, **keywords) -> Tensor:
    """Apply a function to each vector along an axis.

    The calls run one after the other; `gg.vmap` is faster for functions that it supports.

    Args:
        func1d: takes a one-dimensional Tensor, and returns Tensors of one shape.
        axis: int.
        arr: array of at least one axis.
        *args, **keywords: further arguments of the function.

    Returns:
        Tensor with the axes of the function's result in place of that axis.

    Raises:
        AxisError: `arr` does not have the axis.
        ArgumentError: there are no vectors.

    >>> print(gg.apply_along_axis(gg.sum, 1, [[1.0, 2.0], [3.0, 4.0]]))
    [3. 7.]
    """
    x = tensor(arr)
    axis = check_axis("apply_along_axis", axis, x.shape)
    before, after = x.shape[:axis], x.shape[axis + 1 :]
    count = math.prod(before) * math.prod(after)
    if not count:
        raise ArgumentError(f"apply_along_axis: there are no vectors in the shape {x.shape}.")
    rows = TENSOR.reshape(TENSOR.moveaxis(x, axis, -1), (count, x.shape[axis]))
    rows = [TENSOR.getitem(rows, index=k) for k in range(count)]
    results = [tensor(func1d(row, *args, **keywords)) for row in rows]
    shape = results[0].shape
    out = TENSOR.reshape(TENSOR.stack(results, axis=0), (*before, *after, *shape))
    first = len(before) + len(after)
    source = tuple(range(first, first + len(shape)))
    return TENSOR.moveaxis(out, source, tuple(range(axis, axis + len(shape))))


@saying_where
def apply_over_axes(func, a, axes) -> Tensor:
    """Apply a reduction along one axis after another; the axes stay, with length 1.

    Args:
        func: called as ``func(array, axis)``.
        a: array of any shape.
        axes: int, or tuple of ints.

    Returns:
        Tensor with as many axes as `a`.

    Raises:
        ShapeError: the function's result has neither as many axes as its argument nor one fewer.

    >>> print(gg.apply_over_axes(gg.sum, [[1.0, 2.0], [3.0, 4.0]], (0, 1)))
    [[10.]]
    """
    CALLABLE("apply_over_axes", "func", func)
    x = tensor(a)
    for axis in np.atleast_1d(axes).tolist():
        out = tensor(func(x, axis))
        if out.ndim == x.ndim - 1:
            out = TENSOR.expand_dims(out, axis=axis)
        if out.ndim != x.ndim:
            raise ShapeError(
                f"apply_over_axes: the function turned {x.shape} into {out.shape}; it must keep "
                "the number of axes, or remove one."
            )
        x = out
    return x


@saying_where
def einsum_path(subscripts, *operands, optimize="greedy") -> tuple[list[Any], str]:
    """The cheapest order of contractions of an `einsum`, as NumPy's einsum_path.

    Args:
        subscripts: as for `einsum`.
        *operands: arrays; only their shapes matter.
        optimize: ``"greedy"``, ``"optimal"``, or False.

    Returns:
        List that starts with ``"einsum_path"`` and names the operands of each step, and a report.

    Raises:
        ArgumentError: `subscripts` does not match the operands.

    >>> x = gg.zeros((2, 2))
    >>> gg.einsum_path("ij,jk,kl->il", x, x, x)[0]
    ['einsum_path', (0, 1), (0, 1)]
    """
    if not isinstance(subscripts, str):
        raise ArgumentError(f"einsum_path: subscripts must be a string, got {subscripts!r:.60}.")
    shapes = [np.broadcast_to(np.zeros(()), tensor(x).shape) for x in operands]
    try:
        return np.einsum_path(subscripts, *shapes, optimize=optimize)
    except ValueError as error:
        raise ArgumentError(f"einsum_path: {error}") from error
