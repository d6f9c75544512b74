"""Joining arrays, splitting them, and broadcasting them against each other."""

import math
import operator

import numpy as np

from gpugrad.autodiff.batched import all_batched, batch_axis_of
from gpugrad.core.backend import BFLOAT16, NUMPY, TENSOR
from gpugrad.core.dtypes import result_type
from gpugrad.core.samples import calls, uniform
from gpugrad.core.tensor import Tensor, tensor
from gpugrad.errors import ArgumentError, AxisError, ShapeError, saying_where
from gpugrad.kernels.cpu.large import LARGE, kernels
from gpugrad.ops._axes import broadcast_shapes, check_axis, index_along
from gpugrad.registry.record import op

AT_ONCE = 8
"""CuPy joins up to this many arrays by a launch each; beyond, it copies addresses to the GPU."""


def _is_joined_by_launches(arrays, **params):
    return len(arrays) <= AT_ONCE


def _joined(xp, name, arrays, axis):
    """The library's function of that name; of large NumPy arrays on several threads."""
    if xp is NUMPY and arrays[0].size * len(arrays) >= LARGE:
        out = getattr(kernels("copies"), name)(arrays, axis)
        if out is not NotImplemented:
            return out
    if xp is NUMPY and axis == 0 and name == "stack" and len({a.shape for a in arrays}) == 1:
        name, arrays = "concat", [a[None] for a in arrays]  # in half of np.stack's time
    try:
        return getattr(xp.lib, name)(arrays, axis=axis)
    except TypeError:
        dtypes = [a.dtype for a in arrays]
        if BFLOAT16 not in dtypes:
            raise
        dtype = result_type(*dtypes)  # NumPy knows none for bfloat16 and float16, or integers
        return getattr(xp.lib, name)([a.astype(dtype) for a in arrays], axis=axis)


def _concat_vjp(xp, g, i, arrays_shape, axis):
    axis_of_g = 0 if axis is None else axis % g.ndim
    length = math.prod if axis is None else lambda shape: shape[axis_of_g]
    start = sum(map(length, arrays_shape[:i]))
    part = slice(start, start + length(arrays_shape[i]))
    part = xp.getitem(g, index=index_along(axis_of_g, part))
    return xp.reshape(part, arrays_shape[i]) if axis is None else part


def _concat_batch(xp, batched, arrays, *, axis):
    arrays = all_batched(xp, batched, arrays)
    if axis is None:
        rows = [xp.reshape(x, (x.shape[0], math.prod(x.shape[1:]))) for x in arrays]
        return xp.concat(rows, axis=1)
    return xp.concat(arrays, axis=batch_axis_of(axis, arrays[0].ndim - 1))


@op(
    vjp=_concat_vjp,
    variadic=True,
    linear=True,
    native_half=True,
    kinds="fci",
    batch=_concat_batch,
    ref=lambda arrays, axis=0: np.concatenate(arrays, axis=axis),
    samples=calls(
        lambda rng: [[uniform(rng, 2), uniform(rng, 3)]],
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
)
def concat(xp, arrays, /, axis=0):
    """Join arrays along an existing axis.

    Args:
        arrays: list of at least one array; the shapes differ along `axis` only.
        axis: int; None joins the flattened arrays.

    Returns:
        Tensor, whose dtype follows NumPy's promotion.

    >>> print(gg.concat([[1.0, 2.0], [3.0]]))
    [1. 2. 3.]
    """
    return _joined(xp, "concat", arrays, axis)


def _stack_vjp(xp, g, i, arrays_shape, axis):
    return xp.getitem(g, index=index_along(axis % (len(arrays_shape[i]) + 1), i))


def _stack_batch(xp, batched, arrays, *, axis):
    arrays = all_batched(xp, batched, arrays)
    return xp.stack(arrays, axis=batch_axis_of(axis, arrays[0].ndim))


@op(
    vjp=_stack_vjp,
    variadic=True,
    linear=True,
    native_half=True,
    kinds="fci",
    batch=_stack_batch,
    samples=calls(
        lambda rng: [[uniform(rng, 3), uniform(rng, 3)]],
        lambda rng: ([[uniform(rng, 2, 3), uniform(rng, 2, 3)]], {"axis": -1}),
        lambda rng: [[uniform(rng), uniform(rng), uniform(rng)]],
        lambda rng: ([[uniform(rng, 0, 2)]], {"axis": 1}),
    ),
    errors=[
        ([[np.ones(2), np.ones(3)]], {}, ShapeError, r"stack.*\(2,\).*\(3,\)"),
        ([[np.ones(2)]], {"axis": 2}, AxisError, "stack.*axis 2"),
    ],
    captures=_is_joined_by_launches,
)
def stack(xp, arrays, /, axis=0):
    """Join arrays of the same shape along a new axis.

    Args:
        arrays: list of at least one array.
        axis: position of the new axis in the result.

    Returns:
        Tensor with one more axis, as long as the list.

    >>> print(gg.stack([[1.0, 2.0], [3.0, 4.0]], axis=1))
    [[1. 3.]
     [2. 4.]]
    """
    return _joined(xp, "stack", arrays, axis)


@saying_where
def unstack(x, /, *, axis=0) -> tuple[Tensor, ...]:
    """Split an array into its slices along an axis; the inverse of `stack`.

    Args:
        x: array of at least one axis.
        axis: int.

    Returns:
        Tuple of Tensors without that axis.

    Raises:
        AxisError: `x` does not have the axis.

    >>> a, b = gg.unstack([[1.0, 2.0], [3.0, 4.0]], axis=1)
    >>> print(b)
    [2. 4.]
    """
    x = tensor(x)
    axis = check_axis("unstack", axis, x.shape)
    return tuple(TENSOR.getitem(x, index=index_along(axis, i)) for i in range(x.shape[axis]))


def cut(x, positions, axis):
    """The pieces of a Tensor between positions along an axis."""
    edges = zip([0, *positions], [*positions, x.shape[axis]], strict=True)
    return [TENSOR.getitem(x, index=index_along(axis, slice(*edge))) for edge in edges]


@saying_where
def split(x, indices_or_sections, /, axis=0) -> list[Tensor]:
    """Split an array along an axis; the inverse of `concat`.

    Args:
        x: array of at least one axis.
        indices_or_sections: the number of equal pieces, or a list of positions to cut at.
        axis: int.

    Returns:
        List of Tensors.

    Raises:
        ArgumentError: the axis does not divide into that many equal pieces.
        AxisError: `x` does not have the axis.

    >>> a, b = gg.split([1.0, 2.0, 3.0, 4.0], 2)
    >>> print(b)
    [3. 4.]
    >>> [part.tolist() for part in gg.split([1.0, 2.0, 3.0], [1])]
    [[1.0], [2.0, 3.0]]
    """
    x = tensor(x)
    axis = check_axis("split", axis, x.shape)
    if hasattr(indices_or_sections, "__len__") and np.ndim(indices_or_sections):
        return cut(x, [operator.index(i) for i in indices_or_sections], axis)
    n, sections = x.shape[axis], operator.index(indices_or_sections)
    if sections < 1 or n % sections:
        raise ArgumentError(
            f"split: axis {axis} of the shape {x.shape} does not divide into {sections} equal "
            "pieces. Give a list of positions to cut at."
        )
    return cut(x, [k * (n // sections) for k in range(1, sections)], axis)


@saying_where
def broadcast_arrays(*arrays) -> tuple[Tensor, ...]:
    """Broadcast arrays against each other.

    Args:
        *arrays: arrays, or numbers.

    Returns:
        Tuple of Tensors, all of one shape; each keeps its dtype.

    Raises:
        ShapeError: the shapes do not broadcast against each other.

    >>> a, b = gg.broadcast_arrays([1.0, 2.0], [[3.0], [4.0]])
    >>> print(b)
    [[3. 3.]
     [4. 4.]]
    """
    xs = [tensor(x) for x in arrays]
    shape = broadcast_shapes("broadcast_arrays", [x.shape for x in xs])
    return tuple(x if x.shape == shape else TENSOR.broadcast_to(x, shape) for x in xs)


@saying_where
def meshgrid(*arrays, indexing="xy", sparse=False, copy=True) -> tuple[Tensor, ...]:
    """Coordinates of the points of a grid, from the coordinates along each axis.

    Args:
        *arrays: one-dimensional arrays, or numbers.
        indexing: ``"ij"``: the i-th array varies along axis i. ``"xy"``: the first varies along
            axis 1, the second along axis 0, as in an image.
        sparse: whether axes along which an array does not vary have length 1.
        copy: ignored; part of NumPy's signature. Results that are broadcast are read-only.

    Returns:
        Tuple of Tensors of the shape of the grid, one for each array.

    Raises:
        ShapeError: an array has more than one axis.
        ArgumentError: `indexing` is neither of the two.

    >>> x, y = gg.meshgrid([1.0, 2.0], [3.0, 4.0])
    >>> print(y)
    [[3. 3.]
     [4. 4.]]
    """
    xs = [tensor(x) for x in arrays]
    if indexing not in ("xy", "ij"):
        raise ArgumentError(f"meshgrid: indexing must be 'xy' or 'ij', got {indexing!r}.")
    if any(x.ndim > 1 for x in xs):
        found = ", ".join(str(x.shape) for x in xs)
        raise ShapeError(f"meshgrid: arrays must be one-dimensional, but the shapes are {found}.")
    order = list(range(len(xs)))
    if indexing == "xy":
        order[:2] = order[:2][::-1]
    shape = tuple(xs[i].size for i in order)
    shapes = [tuple(-1 if i == k else 1 for i in order) for k in range(len(xs))]
    xs = [TENSOR.reshape(x, s) for x, s in zip(xs, shapes, strict=True)]
    return tuple(xs if sparse else (TENSOR.broadcast_to(x, shape) for x in xs))
