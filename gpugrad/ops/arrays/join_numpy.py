"""NumPy's functions that join and split arrays along the axis that their name implies."""

import functools
import operator
from typing import Any

import numpy as np

from gpugrad.core import nest
from gpugrad.core.backend import TENSOR
from gpugrad.core.samples import calls, lists, uniform
from gpugrad.core.tensor import Tensor, tensor
from gpugrad.errors import ArgumentError, AxisError, ShapeError, saying_where
from gpugrad.ops._axes import check_axis
from gpugrad.ops._loops import check_order
from gpugrad.ops.arrays.join import cut
from gpugrad.registry.record import op

_joins = functools.partial(op, variadic=True, kinds="fci")
_DIFFER: list[Any] = [([[np.ones((2, 3)), np.ones((3, 2))]], {}, ShapeError, r"\(2, 3\).*\(3, 2\)")]


@_joins(
    ref=lambda arrays, axis=0, dtype=None: np.concatenate(arrays, axis, dtype=dtype),
    samples=calls(
        lambda rng: [[uniform(rng, 2), uniform(rng, 3)]],
        lambda rng: ([[uniform(rng, 2, 1), uniform(rng, 2, 3)]], {"axis": -1}),
        lambda rng: ([[uniform(rng, 2, 2), uniform(rng, 3)]], {"axis": None}),
        lambda rng: ([[uniform(rng, 2)]], {"dtype": "complex128"}),
    ),
    errors=[
        *_DIFFER,
        ([[np.ones(2)]], {"axis": 1}, AxisError, "concatenate.*axis 1"),
        ([[]], {}, ArgumentError, "concatenate: a list of at least one"),
    ],
)
def concatenate(xp, arrays, /, axis=0, *, dtype=None):
    """Join arrays along an existing axis; NumPy's name for `concat`.

    Args:
        arrays: list of at least one array; the shapes differ along `axis` only.
        axis: int; None joins the flattened arrays.

    Returns:
        Tensor.

    >>> print(gg.concatenate([[1.0, 2.0], [3.0]]))
    [1. 2. 3.]
    """
    joined = xp.concat(arrays, axis=axis)
    return joined if dtype is None else xp.astype(joined, dtype)


def _stack_along(name, axis, rank, how, result):
    """`hstack`, `vstack` or `dstack`, from its samples: of arrays with at least `rank` axes."""

    def forward(xp, arrays, /):
        arrays = [getattr(xp, f"atleast_{rank}d")(x) for x in arrays]
        return xp.concat(arrays, axis=min(axis, arrays[0].ndim - 1))

    forward.__doc__ = f"""Join arrays {how}.

Args:
    arrays: non-empty list of arrays that differ along that axis only; each counts as its
        `atleast_{rank}d`.

Returns:
    Tensor.

>>> print(gg.{name}([[1.0, 2.0], [3.0, 4.0]]))
{result}
"""
    return lambda *cases: _joins(name=name, errors=_DIFFER, samples=lists(*cases))(forward)


hstack = _stack_along(
    "hstack", 1, 1, "horizontally: along axis 1, vectors along axis 0", "[1. 2. 3. 4.]"
)([(2,), (3,)], [(2, 1), (2, 3)], [(), (2,)], [(2, 1, 2), (2, 2, 2)])
vstack = _stack_along(
    "vstack", 0, 2, "vertically: along axis 0, vectors as rows", "[[1. 2.]\n [3. 4.]]"
)([(3,), (3,)], [(1, 2), (3, 2)], [(2,), (2, 2)], [(), ()])
dstack = _stack_along(
    "dstack", 2, 3, "in depth: along axis 2, like channels of an image", "[[[1. 3.]\n  [2. 4.]]]"
)([(3,), (3,)], [(2, 2), (2, 2)], [(2, 2, 1), (2, 2)], [(), ()])


@_joins(
    samples=lists([(3,), (3,)], [(2, 2), (2,)], [(0,), (0,)], [(), ()]),
    errors=[([[np.ones(2), np.ones(3)]], {}, ShapeError, r"\(2,\).*\(3,\)")],
)
def column_stack(xp, arrays, /):
    """Join vectors as the columns of a matrix; matrices horizontally.

    Args:
        arrays: non-empty list of arrays of one or two axes, of equal length along axis 0.

    Returns:
        Tensor of two axes.

    >>> print(gg.column_stack([[1.0, 2.0], [3.0, 4.0]]))
    [[1. 3.]
     [2. 4.]]
    """
    columns = [x if x.ndim >= 2 else xp.reshape(x, (x.size, 1)) for x in arrays]
    return xp.concat(columns, axis=1)


@saying_where
def block(arrays, /) -> Tensor:
    """Join the arrays of nested lists: the innermost lists along the last axis, and so on outwards.

    Args:
        arrays: array, or lists of arrays nested to one depth. Arrays with too few axes get axes
            of length 1 in front.

    Returns:
        Tensor.

    Raises:
        ArgumentError: a list is empty, or the lists are not equally deep.
        ShapeError: the shapes of the blocks do not match.

    >>> column = gg.ones((2, 1))
    >>> print(gg.block([[column, 2 * column], [3.0, 4.0]]))
    [[1. 2.]
     [1. 2.]
     [3. 4.]]
    """
    rank, leaves, parts = _depth(arrays), [], nest.flatten(arrays)

    def blocks(part, depth):
        if depth == 0:
            leaves.append(tensor(part, *parts))
            return leaves[-1]
        return [blocks(p, depth - 1) for p in part]

    nested = blocks(arrays, rank)
    ndim = max(rank, *(x.ndim for x in leaves)) if leaves else rank

    def join(part, depth):
        if depth == 0:
            return TENSOR.reshape(part, (1,) * (ndim - part.ndim) + part.shape)
        return TENSOR.concat([join(p, depth - 1) for p in part], axis=-depth)

    return join(nested, rank) if rank else TENSOR.positive(join(nested, 0))


def _depth(part):
    """Depth of nested lists; tuples and everything else count as arrays."""
    if not isinstance(part, list):
        return 0
    depths = {_depth(p) for p in part}
    if len(depths) != 1:
        raise ArgumentError(f"block: lists must be equally deep and not empty: {part!r:.60}.")
    return depths.pop() + 1


@saying_where
def array_split(ary, indices_or_sections, axis=0) -> list[Tensor]:
    """Split an array along an axis into pieces that need not be equally long.

    Args:
        ary: array of at least one axis.
        indices_or_sections: the number of pieces, the first of which are one longer if it does
            not divide the length; or a list of positions to cut at.
        axis: int.

    Returns:
        List of Tensors.

    Raises:
        ArgumentError: the number of pieces is below 1, or above both 10,000 and the length.
        AxisError: `ary` does not have the axis.

    >>> [part.tolist() for part in gg.array_split([1.0, 2.0, 3.0], 2)]
    [[1.0, 2.0], [3.0]]
    """
    x = tensor(ary)
    axis = check_axis("array_split", axis, x.shape)
    if np.ndim(indices_or_sections):
        return cut(x, [operator.index(i) for i in indices_or_sections], axis)
    n = x.shape[axis]
    sections = check_order("array_split", "sections", indices_or_sections, 1, max(n, 10_000))
    return cut(x, [n // sections * k + min(k, n % sections) for k in range(1, sections)], axis)


def _split_along(name, axis, least, direction, example, pieces):
    """`hsplit`, `vsplit` or `dsplit`: along `axis`, for arrays of at least `least` axes."""

    def split_equally(ary, indices_or_sections) -> list[Tensor]:
        x, n = tensor(ary), indices_or_sections
        if x.ndim < least:
            raise AxisError(f"{name}: at least {least} axes are needed, the shape is {x.shape}.")
        along = min(axis, x.ndim - 1)
        if np.ndim(n) == 0 and x.shape[along] % max(operator.index(n), 1):
            raise ArgumentError(
                f"{name}: axis {along} of the shape {x.shape} does not divide into {n} equal "
                "pieces. gg.array_split allows unequal ones."
            )
        return array_split(x, n, along)

    split_equally.__name__ = split_equally.__qualname__ = name
    split_equally.__doc__ = f"""Split an array {direction}; the inverse of `{name[0]}stack`.

    Args:
        ary: array of at least {least} {"axis" if least == 1 else "axes"}.
        indices_or_sections: the number of equal pieces, or a list of positions to cut at.

    Returns:
        List of Tensors.

    Raises:
        ArgumentError: the axis does not divide into that many equal pieces.
        AxisError: `ary` has too few axes.

    >>> [piece.tolist() for piece in gg.{name}({example}, 2)]
    {pieces}
    """
    return saying_where(split_equally)


hsplit = _split_along("hsplit", 1, 1, "along axis 1, a vector along axis 0", "[1, 2]", "[[1], [2]]")
vsplit = _split_along("vsplit", 0, 2, "along axis 0", "[[1], [2]]", "[[[1]], [[2]]]")
dsplit = _split_along("dsplit", 2, 3, "along axis 2", "[[[1, 2]]]", "[[[[1]]], [[[2]]]]")
