"""Joining arrays and taking them apart."""

from __future__ import annotations

import math
import operator

import numpy as np

from gpugrad.core.backend import TENSOR
from gpugrad.core.samples import calls, uniform
from gpugrad.core.tensor import tensor
from gpugrad.errors import ArgumentError, AxisError, ShapeError, saying_where
from gpugrad.ops._axes import batch_all, batch_axis
from gpugrad.ops.arrays.shape import axis_of
from gpugrad.registry.record import op

AT_ONCE = 8
"""CuPy joins this many arrays by a launch each; of more it copies the addresses from the host."""


def _is_joined_by_launches(arrays, **params):
    return len(arrays) <= AT_ONCE


def _concat_vjp(xp, g, i, arrays_shape, axis):
    lead = () if axis is None else (slice(None),) * axis_of(axis, g.ndim)
    length = math.prod if axis is None else lambda shape: shape[len(lead)]
    start = sum(map(length, arrays_shape[:i]))
    part = xp.getitem(g, index=(*lead, slice(start, start + length(arrays_shape[i]))))
    return xp.reshape(part, arrays_shape[i]) if axis is None else part


def _concat_batch(xp, batched, arrays, *, axis):
    arrays = batch_all(xp, batched, arrays)
    if axis is None:
        flat = [xp.reshape(x, (x.shape[0], math.prod(x.shape[1:]))) for x in arrays]
        return xp.concat(flat, axis=1)
    return xp.concat(arrays, axis=batch_axis(axis, arrays[0].ndim - 1))


@op(
    vjp=_concat_vjp, variadic=True, linear=True, keeps_half=True, kinds="fci", batch=_concat_batch,
    ref=lambda arrays, axis=0: np.concatenate(arrays, axis=axis),
    samples=calls(
        lambda rng: ([[uniform(rng, 2), uniform(rng, 3)]], {}),
        lambda rng: ([[uniform(rng, 2, 1), uniform(rng, 2, 3), uniform(rng, 2, 0)]], {"axis": -1}),
        lambda rng: ([[uniform(rng, 2, 3)]], {"axis": 0}),
        lambda rng: ([[uniform(rng, 2, 2), uniform(rng), uniform(rng, 3)]], {"axis": None}),
    ),
    errors=[
        ([[np.ones((2, 3)), np.ones((2, 2))]], {}, ShapeError, r"concat.*\(2, 3\).*\(2, 2\)"),
        ([[np.ones(2)]], {"axis": 1}, AxisError, "concat.*axis 1"),
        ([[]], {}, ArgumentError, "concat: a list of at least one"),
    ],
    captures=_is_joined_by_launches,
)  # fmt: skip
def concat(xp, arrays, /, axis=0):
    """Join arrays along an axis that they have.

    Args:
        arrays: list of arrays, whose shapes differ along that axis only.
        axis: along which; None joins the elements of all, in row-major order.

    Returns:
        Tensor as long as all of them together; its dtype follows NumPy's promotion.

    Raises:
        ShapeError: the shapes differ along another axis.
        AxisError: an axis that they do not have.
        ArgumentError: the list is empty.

    >>> print(gg.concat([[1.0, 2.0], [3.0]]))
    [1. 2. 3.]
    """
    return xp.lib.concat(arrays, axis=axis)


def _stack_vjp(xp, g, i, arrays_shape, axis):
    axis = axis_of(axis, len(arrays_shape[i]) + 1)
    return xp.getitem(g, index=(slice(None),) * axis + (i,))


def _stack_batch(xp, batched, arrays, *, axis):
    arrays = batch_all(xp, batched, arrays)
    return xp.stack(arrays, axis=batch_axis(axis, arrays[0].ndim))


@op(
    vjp=_stack_vjp, variadic=True, linear=True, keeps_half=True, kinds="fci",
    batch=_stack_batch,
    samples=calls(
        lambda rng: ([[uniform(rng, 3), uniform(rng, 3)]], {}),
        lambda rng: ([[uniform(rng, 2, 3), uniform(rng, 2, 3)]], {"axis": -1}),
        lambda rng: ([[uniform(rng), uniform(rng), uniform(rng)]], {}),
        lambda rng: ([[uniform(rng, 0, 2)]], {"axis": 1}),
    ),
    errors=[
        ([[np.ones(2), np.ones(3)]], {}, ShapeError, r"stack.*\(2,\).*\(3,\)"),
        ([[np.ones(2)]], {"axis": 2}, AxisError, "stack.*axis 2"),
    ],
    captures=_is_joined_by_launches,
)  # fmt: skip
def stack(xp, arrays, /, axis=0):
    """Join arrays of one shape along a new axis.

    Args:
        arrays: list of arrays.
        axis: the position of the new axis in the result.

    Returns:
        Tensor with one more axis, as long as the list.

    Raises:
        ShapeError: the shapes differ.
        AxisError: a position that the result does not have.
        ArgumentError: the list is empty.

    >>> print(gg.stack([[1.0, 2.0], [3.0, 4.0]], axis=1))
    [[1. 3.]
     [2. 4.]]
    """
    return xp.lib.stack(arrays, axis=axis)


def _length(name, x, axis):
    """The length of an axis, and the axis counted from 0."""
    if not -x.ndim <= axis < x.ndim:
        raise AxisError(f"{name}: axis {axis} is out of bounds for the shape {x.shape}.")
    axis = axis_of(axis, x.ndim)
    return x.shape[axis], axis


@saying_where
def unstack(x, /, *, axis=0):
    """Take an array apart along an axis; the opposite of `stack`.

    Args:
        x: array, of any shape but ().
        axis: along which.

    Returns:
        Tuple of Tensors without that axis, as many as it was long.

    Raises:
        AxisError: an axis that `x` does not have.

    >>> a, b = gg.unstack([[1.0, 2.0], [3.0, 4.0]], axis=1)
    >>> print(b)
    [2. 4.]
    """
    x = tensor(x)
    n, axis = _length("unstack", x, axis)
    return tuple(TENSOR.getitem(x, index=(slice(None),) * axis + (i,)) for i in range(n))


@saying_where
def split(x, indices_or_sections, /, axis=0):
    """Cut an array into pieces along an axis; the opposite of `concat`.

    Args:
        x: array, of any shape but ().
        indices_or_sections: the number of equal pieces, or a list of the positions where to
            cut.
        axis: along which.

    Returns:
        List of Tensors.

    Raises:
        ArgumentError: the axis does not divide into that many equal pieces.
        AxisError: an axis that `x` does not have.

    >>> a, b = gg.split([1.0, 2.0, 3.0, 4.0], 2)
    >>> print(b)
    [3. 4.]
    >>> [part.tolist() for part in gg.split([1.0, 2.0, 3.0], [1])]
    [[1.0], [2.0, 3.0]]
    """
    x = tensor(x)
    n, axis = _length("split", x, axis)
    if hasattr(indices_or_sections, "__len__") and np.ndim(indices_or_sections):
        cuts = [operator.index(i) for i in indices_or_sections]
    else:
        sections = operator.index(indices_or_sections)
        if sections < 1 or n % sections:
            raise ArgumentError(
                f"split: axis {axis} of the shape {x.shape} does not divide into {sections} equal "
                "pieces. Give a list of the positions where to cut."
            )
        cuts = list(range(n // sections, n, n // sections)) if n else [0] * (sections - 1)
    lead = (slice(None),) * axis
    edges = zip([0, *cuts], [*cuts, n], strict=True)
    return [TENSOR.getitem(x, index=(*lead, slice(start, stop))) for start, stop in edges]


@saying_where
def broadcast_arrays(*arrays):
    """Broadcast arrays against each other.

    Args:
        *arrays: arrays, or numbers.

    Returns:
        Tuple of Tensors, all of one shape; each keeps its dtype.

    Raises:
        ShapeError: the shapes do not go together.

    >>> a, b = gg.broadcast_arrays([1.0, 2.0], [[3.0], [4.0]])
    >>> print(b)
    [[3. 3.]
     [4. 4.]]
    """
    xs = [tensor(x) for x in arrays]
    try:
        shape = np.broadcast_shapes(*(x.shape for x in xs))
    except ValueError as error:
        shapes = ", ".join(str(x.shape) for x in xs)
        raise ShapeError(
            f"broadcast_arrays: the shapes {shapes} do not go together. They must agree, counted "
            "from the last axis; a 1 stretches."
        ) from error
    return tuple(x if x.shape == shape else TENSOR.broadcast_to(x, shape) for x in xs)


@saying_where
def meshgrid(*arrays, indexing="xy"):
    """Coordinates of the points of a grid, from those along each of its axes.

    Args:
        *arrays: arrays of one axis; or numbers.
        indexing: ``"ij"``: the i-th array varies along axis i. ``"xy"``: the first varies
            along axis 1, the second along axis 0, as the pixels of a picture are counted.

    Returns:
        Tuple of Tensors, one for each array, all of the shape of the grid.

    Raises:
        ShapeError: an array with more than one axis.
        ArgumentError: another `indexing`.

    >>> x, y = gg.meshgrid([1.0, 2.0], [3.0, 4.0])
    >>> print(y)
    [[3. 3.]
     [4. 4.]]
    """
    xs = [tensor(x) for x in arrays]
    if indexing not in ("xy", "ij"):
        raise ArgumentError(f"meshgrid: no indexing {indexing!r}; 'xy' or 'ij'.")
    if any(x.ndim > 1 for x in xs):
        shapes = ", ".join(str(x.shape) for x in xs)
        raise ShapeError(f"meshgrid: arrays of one axis are needed, the shapes are {shapes}.")
    order = list(range(len(xs)))
    if indexing == "xy":
        order[:2] = order[:2][::-1]
    shape = tuple(xs[i].size for i in order)
    places = [tuple(-1 if i == k else 1 for i in order) for k in range(len(xs))]
    return tuple(
        TENSOR.broadcast_to(TENSOR.reshape(x, place), shape)
        for x, place in zip(xs, places, strict=True)
    )
