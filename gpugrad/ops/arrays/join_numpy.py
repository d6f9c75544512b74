"""NumPy's names for joining arrays and cutting them, along axes that the name says."""

from __future__ import annotations

import operator
from typing import Any

import numpy as np

from gpugrad.core.backend import TENSOR
from gpugrad.core.samples import calls, uniform
from gpugrad.core.tensor import tensor
from gpugrad.errors import ArgumentError, AxisError, ShapeError, saying_where
from gpugrad.registry.record import op


def _lists(*cases):
    """Samples of an op that takes a list of arrays: their shapes."""

    def sample(shapes):
        return lambda rng: ([[uniform(rng, *s) for s in shapes]], {})

    return calls(*map(sample, cases))


_DIFFER: list[Any] = [([[np.ones((2, 3)), np.ones((3, 2))]], {}, ShapeError, r"\(2, 3\).*\(3, 2\)")]


@op(
    variadic=True, kinds="fci",
    ref=lambda arrays, axis=0, dtype=None: np.concatenate(arrays, axis, dtype=dtype),
    samples=calls(
        lambda rng: ([[uniform(rng, 2), uniform(rng, 3)]], {}),
        lambda rng: ([[uniform(rng, 2, 1), uniform(rng, 2, 3)]], {"axis": -1}),
        lambda rng: ([[uniform(rng, 2, 2), uniform(rng, 3)]], {"axis": None}),
        lambda rng: ([[uniform(rng, 2)]], {"dtype": "complex128"}),
    ),
    errors=[
        *_DIFFER,
        ([[np.ones(2)]], {"axis": 1}, AxisError, "concatenate.*axis 1"),
        ([[]], {}, ArgumentError, "concatenate: a list of at least one"),
    ],
)  # fmt: skip
def concatenate(xp, arrays, /, axis=0, *, dtype=None):
    """Join arrays along an axis that they have; NumPy's name for `concat`.

    Args:
        arrays: list of arrays, whose shapes differ along that axis only.
        axis: along which; None joins the elements of all, in row-major order.
        dtype: of the result; None follows NumPy's promotion.

    Returns:
        Tensor as long as all of them together.

    Raises:
        ShapeError: the shapes differ along another axis.
        AxisError: an axis that they do not have.
        ArgumentError: the list is empty.

    >>> print(gg.concatenate([[1.0, 2.0], [3.0]]))
    [1. 2. 3.]
    """
    joined = xp.concat(arrays, axis=axis)
    return joined if dtype is None else xp.astype(joined, dtype)


@op(
    variadic=True, kinds="fci", errors=_DIFFER,
    samples=_lists([(2,), (3,)], [(2, 1), (2, 3)], [(), (2,)], [(2, 1, 2), (2, 2, 2)]),
)  # fmt: skip
def hstack(xp, arrays, /):
    """Join arrays side by side: along axis 1, vectors along axis 0.

    Args:
        arrays: list of arrays, whose shapes differ along that axis only; numbers are vectors.

    Returns:
        Tensor as wide as all of them together.

    Raises:
        ShapeError: the shapes differ along another axis.
        ArgumentError: the list is empty.

    >>> print(gg.hstack([[[1.0], [2.0]], [[3.0], [4.0]]]))
    [[1. 3.]
     [2. 4.]]
    """
    arrays = [xp.atleast_1d(x) for x in arrays]
    return xp.concat(arrays, axis=0 if arrays[0].ndim == 1 else 1)


@op(
    variadic=True, kinds="fci", errors=_DIFFER,
    samples=_lists([(3,), (3,)], [(1, 2), (3, 2)], [(2,), (2, 2)], [(), ()]),
)  # fmt: skip
def vstack(xp, arrays, /):
    """Join arrays one below the other: along axis 0, vectors as rows.

    Args:
        arrays: list of arrays, whose shapes differ along that axis only.

    Returns:
        Tensor as high as all of them together.

    Raises:
        ShapeError: the shapes differ along another axis.
        ArgumentError: the list is empty.

    >>> print(gg.vstack([[1.0, 2.0], [3.0, 4.0]]))
    [[1. 2.]
     [3. 4.]]
    """
    return xp.concat([xp.atleast_2d(x) for x in arrays], axis=0)


@op(
    variadic=True, kinds="fci", errors=_DIFFER,
    samples=_lists([(3,), (3,)], [(2, 2), (2, 2)], [(2, 2, 1), (2, 2)], [(), ()]),
)  # fmt: skip
def dstack(xp, arrays, /):
    """Join arrays one behind the other: along axis 2, as the channels of a picture.

    Args:
        arrays: list of arrays, whose shapes differ along that axis only; those of fewer axes
            are of shape (1, n, 1) or (m, n, 1).

    Returns:
        Tensor as deep as all of them together.

    Raises:
        ShapeError: the shapes differ along another axis.
        ArgumentError: the list is empty.

    >>> print(gg.dstack([[1.0, 2.0], [3.0, 4.0]]))
    [[[1. 3.]
      [2. 4.]]]
    """
    return xp.concat([xp.atleast_3d(x) for x in arrays], axis=2)


@op(
    variadic=True, kinds="fci",
    samples=_lists([(3,), (3,)], [(2, 2), (2,)], [(0,), (0,)], [(), ()]),
    errors=[([[np.ones(2), np.ones(3)]], {}, ShapeError, r"\(2,\).*\(3,\)")],
)  # fmt: skip
def column_stack(xp, arrays, /):
    """Join vectors as the columns of a matrix; matrices side by side.

    Args:
        arrays: list of arrays of one or two axes, of equal length along axis 0.

    Returns:
        Tensor of two axes.

    Raises:
        ShapeError: the lengths differ.
        ArgumentError: the list is empty.

    >>> print(gg.column_stack([[1.0, 2.0], [3.0, 4.0]]))
    [[1. 3.]
     [2. 4.]]
    """
    columns = [x if x.ndim >= 2 else xp.reshape(x, (x.size, 1)) for x in arrays]
    return xp.concat(columns, axis=1)


@saying_where
def block(arrays, /):
    """Join the arrays of nested lists: the innermost along the last axis, and so on outwards.

    Args:
        arrays: array, or lists of them, all equally deep.

    Returns:
        Tensor; each array has been given axes of length 1 in front where it had too few.

    Raises:
        ArgumentError: an empty list, or lists that are not equally deep.
        ShapeError: the blocks do not fit together.

    >>> column = gg.ones((2, 1))
    >>> print(gg.block([[column, 2 * column], [3.0, 4.0]]))
    [[1. 2.]
     [1. 2.]
     [3. 4.]]
    """
    rank, leaves = _depth(arrays), []

    def blocks(part, depth):
        if depth == 0:
            leaves.append(tensor(part))
            return leaves[-1]
        return [blocks(p, depth - 1) for p in part]

    nested = blocks(arrays, rank)
    ndim = max(rank, *(x.ndim for x in leaves)) if leaves else rank

    def join(part, depth):
        if depth == 0:
            return TENSOR.reshape(part, (1,) * (ndim - part.ndim) + part.shape)
        return TENSOR.concat([join(p, depth - 1) for p in part], axis=-depth)

    return join(nested, rank)


def _depth(part):
    """How many lists are one in the other: tuples and what holds numbers count as arrays."""
    if not isinstance(part, list):
        return 0
    depths = {_depth(p) for p in part}
    if len(depths) != 1:
        raise ArgumentError(f"block: lists that are empty or not equally deep: {part!r:.60}.")
    return depths.pop() + 1


# ---- cutting -----------------------------------------------------------------------------


@saying_where
def array_split(ary, indices_or_sections, axis=0):
    """Cut an array into pieces along an axis, which need not be equally long.

    Args:
        ary: array, of any shape but ().
        indices_or_sections: the number of pieces, of which the first are one longer if it does
            not divide the length; or a list of the positions where to cut.
        axis: along which.

    Returns:
        List of Tensors.

    Raises:
        ArgumentError: fewer than one piece.
        AxisError: an axis that `ary` does not have.

    >>> [part.tolist() for part in gg.array_split([1.0, 2.0, 3.0], 2)]
    [[1.0, 2.0], [3.0]]
    """
    x = tensor(ary)
    if not -x.ndim <= axis < x.ndim:
        raise AxisError(f"array_split: axis {axis} is out of bounds for the shape {x.shape}.")
    axis %= x.ndim
    n = x.shape[axis]
    if np.ndim(indices_or_sections):
        cuts = [operator.index(i) for i in indices_or_sections]
    else:
        sections = operator.index(indices_or_sections)
        if sections < 1:
            raise ArgumentError(f"array_split: {sections} pieces; at least one is needed.")
        cuts = [(n // sections) * k + min(k, n % sections) for k in range(1, sections)]
    lead = (slice(None),) * axis
    edges = zip([0, *cuts], [*cuts, n], strict=True)
    return [TENSOR.getitem(x, index=(*lead, slice(start, stop))) for start, stop in edges]


def _equal_split(name, ary, indices_or_sections, axis):
    x = tensor(ary)
    if x.ndim <= axis:
        raise AxisError(f"{name}: more axes are needed, the shape is {x.shape}.")
    sections = indices_or_sections
    if np.ndim(sections) == 0 and x.shape[axis] % max(operator.index(sections), 1):
        raise ArgumentError(
            f"{name}: axis {axis} of the shape {x.shape} does not divide into {sections} equal "
            "pieces. See gg.array_split for others."
        )
    return array_split(x, indices_or_sections, axis)


@saying_where
def hsplit(ary, indices_or_sections):
    """Cut an array side by side: along axis 1, a vector along axis 0; the opposite of `hstack`.

    Args:
        ary: array, of any shape but ().
        indices_or_sections: the number of equal pieces, or a list of the positions where to cut.

    Returns:
        List of Tensors.

    Raises:
        ArgumentError: the axis does not divide into that many equal pieces.
        AxisError: `ary` is 0-d.

    >>> [part.tolist() for part in gg.hsplit([1.0, 2.0], 2)]
    [[1.0], [2.0]]
    """
    x = tensor(ary)
    return _equal_split("hsplit", x, indices_or_sections, 0 if x.ndim == 1 else min(x.ndim, 1))


@saying_where
def vsplit(ary, indices_or_sections):
    """Cut an array one below the other: along axis 0; the opposite of `vstack`.

    Args:
        ary: array of at least two axes.
        indices_or_sections: the number of equal pieces, or a list of the positions where to cut.

    Returns:
        List of Tensors.

    Raises:
        ArgumentError: the axis does not divide into that many equal pieces.
        AxisError: `ary` has fewer than two axes.

    >>> [part.tolist() for part in gg.vsplit([[1.0], [2.0]], 2)]
    [[[1.0]], [[2.0]]]
    """
    x = tensor(ary)
    if x.ndim < 2:
        raise AxisError(f"vsplit: at least two axes are needed, the shape is {x.shape}.")
    return _equal_split("vsplit", x, indices_or_sections, 0)


@saying_where
def dsplit(ary, indices_or_sections):
    """Cut an array one behind the other: along axis 2; the opposite of `dstack`.

    Args:
        ary: array of at least three axes.
        indices_or_sections: the number of equal pieces, or a list of the positions where to cut.

    Returns:
        List of Tensors.

    Raises:
        ArgumentError: the axis does not divide into that many equal pieces.
        AxisError: `ary` has fewer than three axes.

    >>> [part.tolist() for part in gg.dsplit([[[1.0, 2.0]]], 2)]
    [[[[1.0]]], [[[2.0]]]]
    """
    return _equal_split("dsplit", ary, indices_or_sections, 2)
