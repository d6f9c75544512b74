"""NumPy's functions that apply another function to parts of an array."""

from __future__ import annotations

import math

import numpy as np

from gpugrad.core.backend import TENSOR
from gpugrad.core.tensor import tensor
from gpugrad.errors import ArgumentError, AxisError, ShapeError, saying_where


def apply_along_axis(func1d, axis, arr, *args, **keywords):
    """Apply a function to each vector along an axis.

    The vectors are taken one after the other: `gg.vmap` is faster where the function allows it.

    Args:
        func1d: takes a Tensor of one axis, and returns a Tensor of any shape, the same for all.
        axis: along which the vectors are.
        arr: array, of any shape but ().
        *args, **keywords: further arguments of the function.

    Returns:
        Tensor with the axes of the function's result in the place of that axis.

    Raises:
        AxisError: an axis that `arr` does not have.
        ArgumentError: there is no vector at all.

    >>> print(gg.apply_along_axis(gg.sum, 1, [[1.0, 2.0], [3.0, 4.0]]))
    [3. 7.]
    """
    x = tensor(arr)
    if not -x.ndim <= axis < x.ndim:
        raise AxisError(f"apply_along_axis: axis {axis} is out of bounds for the shape {x.shape}.")
    axis %= x.ndim
    before, after = x.shape[:axis], x.shape[axis + 1 :]
    count = math.prod(before) * math.prod(after)
    if not count:
        raise ArgumentError(f"apply_along_axis: there is no vector in the shape {x.shape}.")
    rows = TENSOR.reshape(TENSOR.moveaxis(x, axis, -1), (count, x.shape[axis]))
    made = [tensor(func1d(TENSOR.getitem(rows, index=k), *args, **keywords)) for k in range(count)]
    shape = made[0].shape
    out = TENSOR.reshape(TENSOR.stack(made, axis=0), (*before, *after, *shape))
    first = len(before) + len(after)
    source = tuple(range(first, first + len(shape)))
    return TENSOR.moveaxis(out, source, tuple(range(axis, axis + len(shape))))


def apply_over_axes(func, a, axes):
    """Apply a reduction along one axis after the other; the axes stay, with length 1.

    Args:
        func: called as ``func(array, axis)``.
        a: array, of any shape.
        axes: an int, or a tuple of them.

    Returns:
        Tensor of as many axes as `a`.

    Raises:
        ShapeError: the function's result has neither as many axes nor one fewer.

    >>> print(gg.apply_over_axes(gg.sum, [[1.0, 2.0], [3.0, 4.0]], (0, 1)))
    [[10.]]
    """
    x = tensor(a)
    for axis in np.atleast_1d(axes).tolist():
        made = tensor(func(x, axis))
        if made.ndim == x.ndim - 1:
            made = TENSOR.expand_dims(made, axis=axis)
        if made.ndim != x.ndim:
            raise ShapeError(
                f"apply_over_axes: the function made {made.shape} of {x.shape}: as many axes are "
                "needed, or one fewer."
            )
        x = made
    return x


@saying_where
def einsum_path(subscripts, *operands, optimize="greedy"):
    """In which order a sum of products over labelled axes is cheapest, as NumPy's einsum_path.

    Args:
        subscripts: as for `einsum`.
        *operands: arrays; only their shapes matter.
        optimize: NumPy's: ``"greedy"``, ``"optimal"``, or False.

    Returns:
        List that starts with ``"einsum_path"`` and names the operands of each step, and a text.

    Raises:
        ArgumentError: subscripts that do not fit the operands.

    >>> x = gg.zeros((2, 2))
    >>> gg.einsum_path("ij,jk,kl->il", x, x, x)[0]
    ['einsum_path', (0, 1), (0, 1)]
    """
    if not isinstance(subscripts, str):
        raise ArgumentError(f"einsum_path: subscripts come first, as text; got {subscripts!r:.60}.")
    shapes = [np.broadcast_to(np.zeros(()), tensor(x).shape) for x in operands]
    try:
        return np.einsum_path(subscripts, *shapes, optimize=optimize)
    except ValueError as error:
        raise ArgumentError(f"einsum_path: {error}") from error
