"""NumPy's functions that put the elements of one array in another order or place."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from gpugrad.core.samples import shaped
from gpugrad.errors import AxisError, DTypeError, ShapeError, saying_where
from gpugrad.registry.record import op

_ANY = shaped(([(3,)], {}), ([()], {}), ([(2, 3)], {}), ([(2, 3, 2)], {}), ([(0,)], {}))
_TEXT: list[Any] = [(["text"], {}, DTypeError, "number")]

# ---- the order of axes -------------------------------------------------------------------


@op(
    kinds="fci",
    samples=shaped(
        ([(2, 3)], {}), ([(2, 3, 4)], {"axes": (1, -1, 0)}), ([()], {}), ([(3,)], {}),
        ([(0, 2)], {}),
    ),
    errors=[([np.ones((2, 3))], {"axes": (0, 0)}, AxisError, "repeated axis")],
)  # fmt: skip
def transpose(xp, x, /, axes=None):
    """Put the axes in another order, as NumPy's transpose.

    Args:
        x: array, of any shape.
        axes: tuple of ints: the axis of `x` that becomes axis 0, 1, ...; None turns the order
            around.

    Returns:
        Tensor with the same axes, in that order.

    Raises:
        AxisError: not every axis of `x` is named once.

    >>> print(gg.transpose([[1.0, 2.0, 3.0]]))
    [[1.]
     [2.]
     [3.]]
    """
    return xp.permute_dims(x, tuple(range(x.ndim))[::-1] if axes is None else tuple(axes))


@op(
    kinds="fci",
    samples=shaped(
        ([(2, 3, 4)], {"axis": 2}), ([(2, 3, 4)], {"axis": 0, "start": 2}),
        ([(2, 3, 4)], {"axis": -1, "start": -2}), ([(2, 3)], {"axis": 1, "start": 2}),
    ),
    errors=[
        ([np.ones((2, 3))], {"axis": 2}, AxisError, "rollaxis.*axis 2"),
        ([np.ones((2, 3))], {"axis": 0, "start": 3}, AxisError, "rollaxis.*start 3"),
    ],
)  # fmt: skip
def rollaxis(xp, x, /, axis, start=0):
    """Move one axis back until it stands before another; `moveaxis` is easier to read.

    Args:
        x: array, of any shape but ().
        axis: which.
        start: the axis before which it then stands; ``x.ndim`` is the end.

    Returns:
        Tensor with the same axes, in another order.

    Raises:
        AxisError: an axis that `x` does not have.

    >>> gg.rollaxis(gg.zeros((2, 3, 4)), 2).shape
    (4, 2, 3)
    """
    n = x.ndim
    if not -n <= axis < n or not -n <= start <= n:
        raise AxisError(
            f"rollaxis: axis {axis} or start {start} is out of bounds for the shape {x.shape}."
        )
    axis, start = axis % n, start + n if start < 0 else start
    return xp.moveaxis(x, axis, start - 1 if axis < start else start)


# ---- at least so many axes ---------------------------------------------------------------


@op(name="atleast_1d", kinds="fci", samples=_ANY, errors=_TEXT)
def _atleast_1d(xp, x, /):
    """`x` itself, or of shape (1,) if it is 0-d: the op behind `atleast_1d`.

    Args:
        x: array, or a number.

    Returns:
        Tensor of at least one axis.

    >>> print(gg.atleast_1d(2.0))
    [2.]
    """
    return xp.reshape(x, tuple(x.shape) or (1,))


@op(name="atleast_2d", kinds="fci", samples=_ANY, errors=_TEXT)
def _atleast_2d(xp, x, /):
    """`x` itself, or with axes in front if it has fewer than two: the op behind `atleast_2d`.

    Args:
        x: array, or a number.

    Returns:
        Tensor of at least two axes: a vector becomes a row.

    >>> print(gg.atleast_2d([1.0, 2.0]))
    [[1. 2.]]
    """
    return xp.reshape(x, (1,) * (2 - x.ndim) + tuple(x.shape))


@op(name="atleast_3d", kinds="fci", samples=_ANY, errors=_TEXT)
def _atleast_3d(xp, x, /):
    """`x` itself, or with more axes if it has fewer than three: the op behind `atleast_3d`.

    Args:
        x: array, or a number.

    Returns:
        Tensor of at least three axes: a vector becomes (1, n, 1), a matrix (m, n, 1).

    >>> gg.atleast_3d([1.0, 2.0]).shape
    (1, 2, 1)
    """
    shape = tuple(x.shape)
    before, behind = ((1,) * (x.ndim < 2), (1,) * (3 - x.ndim - (x.ndim < 2)))
    return xp.reshape(x, (*before, *shape, *behind))


def _one_or_all(function, arrays):
    made = tuple(function(x) for x in arrays)
    return made[0] if len(made) == 1 else made


@saying_where
def atleast_1d(*arrays):
    """Each array itself, or of shape (1,) if it is 0-d.

    Args:
        *arrays: arrays, or numbers.

    Returns:
        Tensor of at least one axis; a tuple of them for several arrays.

    >>> print(gg.atleast_1d(2.0))
    [2.]
    """
    return _one_or_all(_atleast_1d, arrays)


@saying_where
def atleast_2d(*arrays):
    """Each array itself, or with axes of length 1 in front if it has fewer than two.

    Args:
        *arrays: arrays, or numbers.

    Returns:
        Tensor of at least two axes: a vector becomes a row. A tuple of them for several arrays.

    >>> print(gg.atleast_2d([1.0, 2.0]))
    [[1. 2.]]
    """
    return _one_or_all(_atleast_2d, arrays)


@saying_where
def atleast_3d(*arrays):
    """Each array itself, or with axes of length 1 if it has fewer than three.

    Args:
        *arrays: arrays, or numbers.

    Returns:
        Tensor of at least three axes: a vector becomes (1, n, 1), a matrix (m, n, 1). A tuple of
        them for several arrays.

    >>> gg.atleast_3d([1.0, 2.0]).shape
    (1, 2, 1)
    """
    return _one_or_all(_atleast_3d, arrays)


# ---- turned around -----------------------------------------------------------------------

_PLANES = shaped(([(2, 3)], {}), ([(2, 3, 2)], {}), ([(0, 2)], {}))


@op(kinds="fci", samples=_PLANES,
    errors=[([np.array(1.0)], {}, AxisError, "axis 0")])  # fmt: skip
def flipud(xp, x, /):
    """Reverse the order along axis 0: a matrix upside down.

    Args:
        x: array of at least one axis.

    Returns:
        Tensor of the shape of `x`.

    Raises:
        AxisError: `x` is 0-d.

    >>> print(gg.flipud([[1.0, 2.0], [3.0, 4.0]]))
    [[3. 4.]
     [1. 2.]]
    """
    return xp.flip(x, axis=0)


@op(kinds="fci", samples=_PLANES,
    errors=[([np.ones(3)], {}, AxisError, "axis 1")])  # fmt: skip
def fliplr(xp, x, /):
    """Reverse the order along axis 1: a matrix as in a mirror.

    Args:
        x: array of at least two axes.

    Returns:
        Tensor of the shape of `x`.

    Raises:
        AxisError: `x` has fewer than two axes.

    >>> print(gg.fliplr([[1.0, 2.0], [3.0, 4.0]]))
    [[2. 1.]
     [4. 3.]]
    """
    return xp.flip(x, axis=1)


@op(
    kinds="fci",
    samples=shaped(
        ([(2, 3)], {}), ([(2, 3)], {"k": 2}), ([(2, 3, 2)], {"k": -1, "axes": (1, 2)}),
        ([(2, 3)], {"k": 4}), ([(0, 2)], {"k": 3, "axes": (-1, 0)}),
    ),
    errors=[
        ([np.ones(3)], {}, AxisError, r"rot90.*\(3,\)"),
        ([np.ones((2, 3))], {"axes": (0, -2)}, AxisError, "rot90.*two different"),
    ],
)  # fmt: skip
def rot90(xp, x, /, k=1, axes=(0, 1)):
    """Turn an array by 90 degrees in the plane of two axes.

    Args:
        x: array of at least two axes.
        k: how often.
        axes: the plane; the turn is from the first towards the second.

    Returns:
        Tensor; the two axes have changed places if `k` is odd.

    Raises:
        AxisError: axes that `x` does not have, or twice the same.

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


# ---- diagonals ---------------------------------------------------------------------------


@op(
    kinds="fci",
    samples=shaped(
        ([(3,)], {}), ([(2,)], {"k": 1}), ([(2,)], {"k": -2}), ([(3, 2)], {"k": -1}),
        ([(2, 3)], {}), ([(0,)], {"k": 1}),
    ),
    errors=[([np.ones((2, 2, 2))], {}, ShapeError, r"diag.*\(2, 2, 2\)")],
)  # fmt: skip
def diag(xp, x, /, k=0):
    """The diagonal of a matrix; or the matrix that has a vector on its diagonal.

    Args:
        x: array of one or two axes. For stacks there are `diagonal` and `diagonal_scatter`.
        k: the diagonal; 0 is the main one, those above it are positive.

    Returns:
        Tensor of two axes, or of one.

    Raises:
        ShapeError: `x` has neither one nor two axes.

    >>> print(gg.diag([1.0, 2.0]))
    [[1. 0.]
     [0. 2.]]
    """
    if x.ndim == 1:
        n = x.shape[0] + abs(k)
        return xp.diagonal_scatter(x, offset=k, shape=(n, n))
    if x.ndim == 2:
        return xp.diagonal(x, offset=k)
    raise ShapeError(f"diag: one or two axes are needed, the shape is {x.shape}.")


@op(
    kinds="fci",
    samples=shaped(([(3,)], {}), ([(2, 2)], {"k": 1}), ([()], {"k": -1}), ([(0,)], {})),
    errors=_TEXT,
)  # fmt: skip
def diagflat(xp, x, /, k=0):
    """The matrix that has all elements of an array, in row-major order, on a diagonal.

    Args:
        x: array, of any shape.
        k: the diagonal; 0 is the main one, those above it are positive.

    Returns:
        Tensor of two axes.

    >>> print(gg.diagflat([[1.0, 2.0]]))
    [[1. 0.]
     [0. 2.]]
    """
    return xp.diag(xp.reshape(x, (x.size,)), k)


def _diagonal_index(shape, wrap):
    """The index of the main diagonal among the elements in row-major order."""
    n = math.prod(shape)
    if len(shape) == 2:
        end = n if wrap or shape[0] <= shape[1] else shape[1] * shape[1]
        return slice(0, end, shape[1] + 1)
    step = 1 + sum(math.prod(shape[k + 1 :]) for k in range(len(shape) - 1))
    return slice(0, n, step)


def _fill_diagonal_ref(x, value, wrap=False):
    out = x.astype(np.result_type(x, value))
    np.fill_diagonal(out, value, wrap)
    return out


@op(
    kinds="fc", ref=_fill_diagonal_ref,
    samples=shaped(
        ([(3, 3), ()], {}), ([(2, 3), (2,)], {}), ([(5, 2), ()], {"wrap": True}),
        ([(5, 2), ()], {}), ([(2, 2, 2), (2,)], {}), ([(3, 3), (3,)], {}),
    ),
    errors=[
        ([np.ones(3), 1.0], {}, ShapeError, r"fill_diagonal.*\(3,\)"),
        ([np.ones((2, 3, 2)), 1.0], {}, ShapeError, r"fill_diagonal.*equal"),
    ],
)  # fmt: skip
def fill_diagonal(xp, x, value, /, wrap=False):
    """`x` with a value on its main diagonal: NumPy's function, which writes to `x`, without that.

    Args:
        x: array of at least two axes; of equal lengths, if they are more than two.
        value: number, or array of the length of the diagonal.
        wrap: whether the diagonal of a tall matrix starts again below.

    Returns:
        Tensor of the shape of `x`.

    Raises:
        ShapeError: `x` has no diagonal, or the value does not fit it.

    >>> print(gg.fill_diagonal([[1.0, 2.0], [3.0, 4.0]], 0.0))
    [[0. 2.]
     [3. 0.]]
    """
    if x.ndim < 2 or (x.ndim > 2 and len(set(x.shape)) > 1):
        raise ShapeError(
            f"fill_diagonal: two axes are needed, or more of equal length; the shape is {x.shape}."
        )
    if not x.size:
        return x
    flat = xp.setitem(xp.reshape(x, (x.size,)), value, index=_diagonal_index(x.shape, wrap))
    return xp.reshape(flat, x.shape)
