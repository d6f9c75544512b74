"""NumPy's functions that reorder axes, add axes, flip and rotate, and work on diagonals."""

import functools
import math

import numpy as np

from gpugrad.core.samples import shaped
from gpugrad.errors import AxisError, ShapeError, saying_where
from gpugrad.ops._axes import check_axis
from gpugrad.ops.arrays.shape import NOT_NUMBERS, reshaped_back
from gpugrad.registry.record import op

_composite = functools.partial(op, kinds="fci")


def _transpose_back(xp, x, part, axes):
    order = range(x.ndim)[::-1] if axes is None else axes
    return xp.permute_dims(part, tuple(np.argsort([a % x.ndim for a in order]).tolist()))


_ANY = shaped([(3,)], [()], [(2, 3)], [(2, 3, 2)], [(0,)])


@_composite(
    samples=shaped([(2, 3)], ([(2, 3, 4)], {"axes": (1, -1, 0)}), [()], [(3,)], [(0, 2)]),
    errors=[([np.ones((2, 3))], {"axes": (0, 0)}, AxisError, "repeated axis")],
    writes=_transpose_back,
)
def transpose(xp, x, /, axes=None):
    """Permute the axes, as NumPy's transpose.

    Args:
        axes: tuple of ints: the axes of `x` in the order of the result; None reverses them.

    Returns:
        Tensor with the axes in that order.

    >>> print(gg.transpose([[1.0, 2.0, 3.0]]))
    [[1.]
     [2.]
     [3.]]
    """
    return xp.permute_dims(x, tuple(range(x.ndim))[::-1] if axes is None else tuple(axes))


def _rolled(shape, axis, start):
    """The axis to move, and its new position."""
    n, axis = len(shape), check_axis("rollaxis", axis, shape)
    if not -n <= start <= n:
        raise AxisError(f"rollaxis: start {start} is out of bounds for the shape {tuple(shape)}.")
    start += n if start < 0 else 0
    return axis, start - 1 if axis < start else start


@_composite(
    samples=shaped(
        ([(2, 3, 4)], {"axis": 2}),
        ([(2, 3, 4)], {"axis": 0, "start": 2}),
        ([(2, 3, 4)], {"axis": -1, "start": -2}),
        ([(2, 3)], {"axis": 1, "start": 2}),
    ),
    errors=[
        ([np.ones((2, 3))], {"axis": 2}, AxisError, "rollaxis.*axis 2"),
        ([np.ones((2, 3))], {"axis": 0, "start": 3}, AxisError, "rollaxis.*start 3"),
    ],
    writes=lambda xp, x, part, axis, start: xp.moveaxis(
        part, *reversed(_rolled(x.shape, axis, start))
    ),
)
def rollaxis(xp, x, /, axis, start=0):
    """Move one axis in front of another; `moveaxis` is easier to read.

    Args:
        x: array of at least one axis.
        axis: the axis to move.
        start: the axis to put it in front of; ``x.ndim`` is the end.

    Returns:
        Tensor with the axes in the new order.

    >>> gg.rollaxis(gg.zeros((2, 3, 4)), 2).shape
    (4, 2, 3)
    """
    return xp.moveaxis(x, *_rolled(x.shape, axis, start))


def _at_least(name, new_shape, returns, example):
    """An op for one array, and the function that applies it to each of its arguments."""

    def forward(xp, x, /):
        return xp.reshape(x, new_shape(tuple(x.shape)))

    def apply_to_each(*arrays):
        results = tuple(map(one, arrays))
        return results[0] if len(results) == 1 else results

    forward.__doc__ = f"The op behind `gg.{name}`."
    declare = _composite(name=name, samples=_ANY, errors=NOT_NUMBERS, writes=reshaped_back)
    one = declare(forward)
    apply_to_each.__name__ = apply_to_each.__qualname__ = name
    apply_to_each.__doc__ = f"""Add axes of length 1 to arrays with too few axes.

    Args:
        *arrays: arrays, or numbers.

    Returns:
        {returns}
        A tuple of Tensors for several arrays.

    {example}
    """
    return saying_where(apply_to_each)


atleast_1d = _at_least(
    "atleast_1d",
    lambda shape: shape or (1,),
    "Tensor of at least one axis.",
    ">>> print(gg.atleast_1d(2.0))\n    [2.]",
)

atleast_2d = _at_least(
    "atleast_2d",
    lambda shape: (1,) * (2 - len(shape)) + shape,
    "Tensor of at least two axes: a vector becomes a row.",
    ">>> print(gg.atleast_2d([1.0, 2.0]))\n    [[1. 2.]]",
)

atleast_3d = _at_least(
    "atleast_3d",
    lambda shape: ((1,) * (len(shape) < 2) + shape + (1, 1))[: max(3, len(shape))],
    "Tensor of at least three axes: a vector becomes (1, n, 1), a matrix (m, n, 1).",
    ">>> gg.atleast_3d([1.0, 2.0]).shape\n    (1, 2, 1)",
)


def _flip_along(name, axis, least, how, result):
    """`flipud` or `fliplr`."""

    def forward(xp, x, /):
        return xp.flip(x, axis=axis)

    forward.__doc__ = f"""Reverse the order along axis {axis}, {how}.

Args:
    x: array of at least {least}.

>>> print(gg.{name}([[1.0, 2.0], [3.0, 4.0]]))
{result}
"""
    return _composite(
        name=name,
        samples=shaped([(2, 3)], [(2, 3, 2)], [(0, 2)]),
        errors=[([np.ones((3,) * axis)], {}, AxisError, f"axis {axis}")],
        writes=lambda xp, x, part: xp.flip(part, axis=axis),
    )(forward)


flipud = _flip_along("flipud", 0, "one axis", "upside down", "[[3. 4.]\n [1. 2.]]")
fliplr = _flip_along("fliplr", 1, "two axes", "left to right", "[[2. 1.]\n [4. 3.]]")


@_composite(
    samples=shaped(
        [(2, 3)],
        ([(2, 3)], {"k": 2}),
        ([(2, 3, 2)], {"k": -1, "axes": (1, 2)}),
        ([(2, 3)], {"k": 4}),
        ([(0, 2)], {"k": 3, "axes": (-1, 0)}),
    ),
    errors=[
        ([np.ones(3)], {}, AxisError, r"rot90.*\(3,\)"),
        ([np.ones((2, 3))], {"axes": (0, -2)}, AxisError, "rot90.*two different"),
    ],
    writes=lambda xp, x, part, k, axes: xp.rot90(part, -k, axes),
)
def rot90(xp, x, /, k=1, axes=(0, 1)):
    """Rotate an array by 90 degrees in the plane of two axes.

    Args:
        x: array of at least two axes.
        k: how many times.
        axes: the plane; the rotation is from the first axis towards the second.

    Returns:
        Tensor with the two axes swapped if `k` is odd.

    >>> print(gg.rot90([[1.0, 2.0], [3.0, 4.0]]))
    [[2. 4.]
     [1. 3.]]
    """
    if any(not -x.ndim <= a < x.ndim for a in axes) or len({a % x.ndim for a in axes}) != 2:
        raise AxisError(f"rot90: axes={axes} are not two different axes of the shape {x.shape}.")
    first, second = axes
    if k % 2 == 0:
        return xp.flip(x, axis=(first, second) if k % 4 else ())
    if k % 4 == 1:
        return xp.swapaxes(xp.flip(x, axis=second), first, second)
    return xp.flip(xp.swapaxes(x, first, second), axis=second)


_DIAGONALS = shaped(
    [(3,)], ([(2,)], {"k": 1}), ([(2,)], {"k": -2}),
    ([(3, 2)], {"k": -1}), [(2, 3)], ([(0,)], {"k": 1}),
)  # fmt: skip


@_composite(
    samples=_DIAGONALS, errors=[([np.ones((2, 2, 2))], {}, ShapeError, r"diag.*\(2, 2, 2\)")]
)
def diag(xp, x, /, k=0):
    """Extract the diagonal of a matrix, or build a matrix from its diagonal.

    Args:
        x: array of one or two axes; for stacks see `diagonal` and `diagonal_scatter`.
        k: the diagonal; 0 is the main one, positive ones lie above it.

    Returns:
        Tensor of one axis, or of two.

    >>> print(gg.diag([1.0, 2.0]))
    [[1. 0.]
     [0. 2.]]
    """
    if x.ndim == 1:
        n = x.shape[0] + abs(k)
        return xp.diagonal_scatter(x, offset=k, shape=(n, n))
    if x.ndim == 2:
        return xp.diagonal(x, offset=k)
    raise ShapeError(f"diag: x must have one or two axes, but its shape is {x.shape}.")


@_composite(
    samples=shaped([(3,)], ([(2, 2)], {"k": 1}), ([()], {"k": -1}), [(0,)]), errors=NOT_NUMBERS
)
def diagflat(xp, x, /, k=0):
    """Build a matrix with the flattened array on a diagonal.

    Args:
        k: the diagonal; 0 is the main one, positive ones lie above it.

    Returns:
        Tensor of two axes.

    >>> print(gg.diagflat([[1.0, 2.0]]))
    [[1. 0.]
     [0. 2.]]
    """
    return xp.diag(xp.reshape(x, (x.size,)), k)


def diagonal_slice(shape, wrap):
    """The slice of the flattened array that is the main diagonal."""
    n = math.prod(shape)
    if len(shape) == 2:
        end = n if wrap or shape[0] <= shape[1] else shape[1] * shape[1]
        return slice(0, end, shape[1] + 1)
    step = 1 + sum(math.prod(shape[k + 1 :]) for k in range(len(shape) - 1))
    return slice(0, n, step)
