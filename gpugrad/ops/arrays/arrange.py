"""Flip, roll, tile and repeat; triangles and diagonals of matrices."""

import functools
import math
import operator

import numpy as np

from gpugrad.autodiff.batched import batch_axis_of
from gpugrad.core.backend import NUMPY
from gpugrad.core.samples import shaped
from gpugrad.errors import ArgumentError, AxisError, DTypeError, ShapeError
from gpugrad.ops._axes import along_examples, as_tuple, check_axis
from gpugrad.ops.arrays.shape import moves, need_matrices
from gpugrad.registry.record import op


@moves(
    vjp=[lambda xp, g, axis: xp.flip(g, axis=axis)],
    batch="axis",
    samples=shaped(
        [(2, 3)],
        ([(2, 3)], {"axis": 0}),
        ([(2, 3, 2)], {"axis": (0, -1)}),
        [()],
        ([(0, 2)], {"axis": 0}),
    ),
    errors=[([np.ones(3)], {"axis": 1}, AxisError, "flip.*axis 1")],
    writes=lambda xp, x, part, axis: xp.flip(part, axis=axis),
)
def flip(xp, x, /, axis=None):
    """Reverse the order of the elements along axes.

    >>> print(gg.flip([1.0, 2.0, 3.0]))
    [3. 2. 1.]
    """
    return xp.lib.flip(x, axis=axis) if x.ndim or axis is not None else x


def _roll_vjp(xp, g, shift, axis):
    back = tuple(-s for s in shift) if isinstance(shift, (tuple, list)) else -shift
    return xp.roll(g, back, axis=axis)


_FEW = 1 << 10
"""Elements up to which an index is faster than two slices."""


@functools.lru_cache(256)
def _rolled_places(n, shift):
    return np.roll(np.arange(n), shift)


def _rolled(x, shift, axis):
    """``np.roll`` along one axis, in a third of its time for a small array."""
    source = x.reshape(-1) if axis is None else x
    axis = 0 if axis is None else check_axis("roll", axis, x.shape)
    if 0 < x.size <= _FEW:
        places = _rolled_places(source.shape[axis], shift)
        return source.take(places, axis, mode="clip").reshape(x.shape)
    out, n = np.empty(source.shape, x.dtype), source.shape[axis]
    shift, before = shift % n if n else 0, (slice(None),) * axis
    out[(*before, slice(shift, None))] = source[(*before, slice(0, n - shift))]
    out[(*before, slice(0, shift))] = source[(*before, slice(n - shift, None))]
    return out.reshape(x.shape)


def _roll_batch(xp, batched, x, *, shift, axis):
    if axis is not None:
        return xp.roll(x, shift, axis=batch_axis_of(axis, x.ndim - 1))
    rows = xp.reshape(x, (x.shape[0], math.prod(x.shape[1:])))
    return xp.reshape(xp.roll(rows, shift, axis=1), x.shape)


@moves(
    vjp=[_roll_vjp],
    batch=_roll_batch,
    samples=shaped(
        ([(2, 3)], {"shift": 2}),
        ([(2, 3)], {"shift": -1, "axis": -1}),
        ([(2, 3)], {"shift": (1, 4), "axis": (0, 1)}),
        ([(0, 2)], {"shift": 1, "axis": 0}),
    ),
    errors=[
        ([np.ones(3)], {"shift": 1, "axis": 1}, AxisError, "roll.*axis 1"),
        ([np.ones(3)], {"shift": 1.5}, DTypeError, "roll: shift.*1.5"),
    ],
)
def roll(xp, x, /, shift, axis=None):
    """Shift the elements along axes; those pushed off the end come in at the start.

    Args:
        shift: number of places: an int, or one for each axis.
        axis: int, or tuple of ints; None shifts the flattened array.

    >>> print(gg.roll([1.0, 2.0, 3.0], 1))
    [3. 1. 2.]
    """
    shifts = () if type(shift) is int else as_tuple(shift)
    if not all(hasattr(s, "__index__") for s in shifts):  # NumPy truncates
        raise DTypeError(f"roll: shift must be an int, or a tuple of ints, got {shift!r:.60}.")
    if xp is NUMPY and type(shift) is int and (type(axis) is int or axis is None):
        return _rolled(x, shift, axis)
    return xp.lib.roll(x, shift, axis=axis)


def _tile_vjp(xp, g, x_shape, repetitions):
    reps = as_tuple(repetitions)
    n = max(len(reps), len(x_shape))
    reps = (1,) * (n - len(reps)) + reps
    lengths = (1,) * (n - len(x_shape)) + tuple(x_shape)
    copies = tuple(k for pair in zip(reps, lengths, strict=True) for k in pair)
    one = tuple(k for length in lengths for k in (1, length))
    return xp.reshape(xp.sum_to(xp.reshape(g, copies), one), x_shape)


def _tile_batch(xp, batched, x, *, repetitions):
    reps = as_tuple(repetitions)
    n = max(len(reps), x.ndim - 1)
    x = xp.reshape(x, (x.shape[0], *(1,) * (n + 1 - x.ndim), *x.shape[1:]))
    return xp.tile(x, (1,) * (n + 1 - len(reps)) + reps)


@moves(
    vjp=[_tile_vjp],
    batch=_tile_batch,
    ref=lambda x, repetitions: np.tile(x, repetitions),
    samples=shaped(
        ([(3,)], {"repetitions": 2}),
        ([(2, 3)], {"repetitions": (2, 1)}),
        ([(3,)], {"repetitions": (2, 2)}),
        ([(2, 2)], {"repetitions": (3,)}),
        ([()], {"repetitions": (2,)}),
        ([(2,)], {"repetitions": (0,)}),
    ),
    errors=[([np.ones(3)], {"repetitions": (-1,)}, ArgumentError, "tile.*negative")],
)
def tile(xp, x, /, repetitions):
    """Tile copies of an array.

    Args:
        repetitions: number of copies along each axis, or one int for the last axis. The shorter of
            `repetitions` and the shape is padded with ones in front.

    Returns:
        Tensor, each axis that many times as long.

    >>> print(gg.tile([1.0, 2.0], (2, 2)))
    [[1. 2. 1. 2.]
     [1. 2. 1. 2.]]
    """
    reps = tuple(operator.index(r) for r in as_tuple(repetitions))
    if any(r < 0 for r in reps):
        raise ArgumentError(f"tile: repetitions={repetitions} must not be negative.")
    return xp.lib.tile(x, reps)


_REPEATS = shaped(
    ([(2, 3)], {"repeats": 2}), ([(2, 3)], {"repeats": 2, "axis": -1}),
    ([(2, 3)], {"repeats": [1, 0, 2], "axis": 1}), ([(2, 2)], {"repeats": (1, 2, 0, 3)}),
    ([()], {"repeats": 3}), ([(2,)], {"repeats": 0}), ([(2, 2)], {"repeats": [2], "axis": 0}),
)  # fmt: skip


def _counts(repeats):
    """`repeats` as an int, or as a list of ints."""
    counts = repeats.tolist() if hasattr(repeats, "tolist") else repeats
    if isinstance(counts, int):
        return counts
    counts = list(counts)
    return counts[0] if len(counts) == 1 else counts


def _repeat_vjp(xp, g, x_shape, repeats, axis):
    shape = tuple(x_shape) if x_shape and axis is not None else (math.prod(x_shape),)
    axis = 0 if axis is None else axis % len(shape)
    before, after, n = shape[:axis], shape[axis + 1 :], shape[axis]
    counts = _counts(repeats)
    if isinstance(counts, int):
        copies = xp.reshape(g, (*before, n, counts, *after))
        return xp.reshape(xp.sum_to(copies, (*before, n, 1, *after)), x_shape)
    origin = [i for i, count in enumerate(counts) for _ in range(count)]
    index = (*[slice(None)] * axis, np.array(origin, dtype=np.int64))
    return xp.reshape(xp.scatter_at(g, index=index, shape=shape), x_shape)


@moves(
    vjp=[_repeat_vjp],
    batch=along_examples("repeat"),
    samples=_REPEATS,
    errors=[
        ([np.ones(3)], {"repeats": [1, 2], "axis": 0}, ShapeError, "repeat"),
        ([np.ones(3)], {"repeats": 2, "axis": 1}, AxisError, "repeat.*axis 1"),
    ],
    # CuPy copies a list from the host
    captures=lambda x, repeats, axis=None: isinstance(_counts(repeats), int),
)
def repeat(xp, x, /, repeats, axis=None):
    """Repeat each element, or each slice along an axis.

    Args:
        repeats: number of times: an int, or a list with one int for each slice.
        axis: int; None repeats the elements of the flattened array.

    Returns:
        Tensor of the shape of `x` except along `axis`; of one axis if `axis` is None.

    >>> print(gg.repeat([1.0, 2.0], 2))
    [1. 1. 2. 2.]
    """
    return xp.lib.repeat(x, _counts(repeats), axis=axis)


_SOME_MATRICES = shaped([(3, 3)], ([(2, 3)], {"k": 1}), ([(2, 3, 2)], {"k": -1}), [(0, 2)])


_SMALL = 1 << 14  # elements of a mask that is worth keeping


@functools.lru_cache(maxsize=32)
def _outside(name, shape, k):
    """The mask of a small matrix's elements that are not in its triangle."""
    inside = np.tri(*shape, k if name == "tril" else k - 1, dtype=bool)
    return ~inside if name == "tril" else inside


def _triangle(name, summary, value):
    """`tril` or `triu`."""

    def triangle(xp, x, /, k=0):
        need_matrices(name, x)
        if xp is NUMPY and x.ndim == 2 and type(k) is int:
            outside = _outside if x.size <= _SMALL else _outside.__wrapped__
            return xp.where(outside(name, x.shape, k), 0, x).astype(x.dtype, copy=False)
        part = getattr(xp.lib, name)(x, k=operator.index(k))
        return part.astype(x.dtype, copy=False)  # CuPy turns bfloat16 into float32

    triangle.__doc__ = f"""{summary}

Args:
    x: array of shape (..., m, n).
    k: the diagonal; 0 is the main one, positive ones lie above it.

>>> print(gg.{name}([[1.0, 2.0], [3.0, 4.0]]))
{value}
"""
    return moves(
        vjp=[lambda xp, g, k: getattr(xp, name)(g, k=k)],
        name=name,
        batch="matrices",
        samples=_SOME_MATRICES,
        errors=[([np.ones(3)], {}, ShapeError, rf"{name}.*\(3,\)")],
    )(triangle)


tril = _triangle(
    "tril",
    "Lower triangle of matrices: elements above the k-th diagonal become 0.",
    "[[1. 0.]\n [3. 4.]]",
)

triu = _triangle(
    "triu",
    "Upper triangle of matrices: elements below the k-th diagonal become 0.",
    "[[1. 2.]\n [0. 4.]]",
)


def _diagonal_vjp(xp, g, x_shape, offset, axis1, axis2):
    n = len(x_shape)
    pair = (axis1 % n, axis2 % n)
    order = (*(k for k in range(n) if k not in pair), *pair)
    y = xp.diagonal_scatter(g, offset=offset, shape=tuple(x_shape[k] for k in order))
    return xp.permute_dims(y, tuple(sorted(range(n), key=order.__getitem__)))


@moves(
    vjp=[_diagonal_vjp],
    batch="axis",
    ref=np.diagonal,
    samples=shaped(
        [(3, 3)],
        ([(2, 3)], {"offset": 1}),
        ([(2, 3, 2)], {"offset": -1}),
        ([(2, 2)], {"offset": 3}),
        ([(2, 3, 2)], {"axis1": -2, "axis2": -1}),
        ([(2, 2, 3)], {"offset": 1, "axis1": -1, "axis2": 0}),
    ),
    errors=[
        ([np.ones(3)], {}, ShapeError, r"diagonal.*\(3,\)"),
        ([np.ones((2, 2))], {"axis1": 0, "axis2": 0}, AxisError, "diagonal.*same"),
        ([np.ones((2, 2))], {"axis1": 2}, AxisError, "diagonal.*axis 2"),
    ],
    view="strides",
    writes="NumPy makes it read-only. Use gg.fill_diagonal(x, value), or write to a copy",
)
def diagonal(xp, x, /, offset=0, axis1=0, axis2=1):
    """Extract a diagonal of matrices.

    Args:
        x: array of two or more axes.
        axis1, axis2: the axes of the rows and of the columns; the first two by default, as in
            NumPy. `gg.linalg.diagonal` takes the last two, as in the array API.

    Returns:
        Tensor without the two axes, and with the diagonal as its last axis.

    >>> print(gg.diagonal([[1.0, 2.0], [3.0, 4.0]]))
    [1. 4.]
    """
    need_matrices("diagonal", x)
    return xp.lib.diagonal(x, offset, axis1, axis2)


def _diagonal_scatter_reference(x, offset, shape):
    out = np.zeros(shape, x.dtype)
    for i in range(x.shape[-1]):
        out[..., i + max(-offset, 0), i + max(offset, 0)] = x[..., i]
    return out


def _diagonal_scatter_batch(xp, batched, x, *, offset, shape):
    return xp.diagonal_scatter(x, offset=offset, shape=(x.shape[0], *shape))


@moves(
    vjp=[lambda xp, g, offset: xp.diagonal(g, offset, -2, -1)],
    batch=_diagonal_scatter_batch,
    ref=_diagonal_scatter_reference,
    samples=shaped(
        ([(3,)], {"offset": 0, "shape": (3, 3)}),
        ([(2,)], {"offset": 1, "shape": (2, 3)}),
        ([(2, 2)], {"offset": -1, "shape": (2, 3, 2)}),
        ([(0,)], {"offset": 3, "shape": (2, 2)}),
    ),
    errors=[
        ([np.ones(3)], {"offset": 1, "shape": (3, 3)}, ShapeError, r"diagonal_scatter.*\(3,\)")
    ],
)
def diagonal_scatter(xp, x, /, *, offset, shape):
    """Build matrices from a diagonal, 0 elsewhere: the adjoint of `diagonal`.

    Args:
        x: array of shape (..., length of the diagonal).
        shape: shape of the result, (..., m, n).

    Returns:
        Tensor of that shape.

    >>> print(gg.diagonal_scatter([1.0, 2.0], offset=0, shape=(2, 2)))
    [[1. 0.]
     [0. 2.]]
    """
    out = xp.lib.zeros(shape, dtype=x.dtype)
    row, column = max(-offset, 0), max(offset, 0)
    n = max(min(shape[-2] - row, shape[-1] - column), 0)
    if x.shape != (*shape[:-2], n):
        raise ShapeError(
            f"diagonal_scatter: {x.shape} does not fill diagonal {offset} of the shape {shape}."
        )
    i = xp.lib.arange(n)
    out[..., i + row, i + column] = x
    return out


def _diag_embed_reference(x, offset=0, axis1=-2, axis2=-1):
    n = x.shape[-1] + abs(offset)
    matrices = _diagonal_scatter_reference(x, offset, (*x.shape[:-1], n, n))
    return np.moveaxis(matrices, (-2, -1), (axis1, axis2))


@op(
    kinds="fic",
    samples=shaped(
        [(3,)],
        ([(2, 3)], {"offset": 1}),
        ([(2, 2)], {"offset": -2, "axis1": 0, "axis2": 2}),
        ([(2, 3)], {"axis1": 2, "axis2": 0, "offset": 1}),
        [(2, 0)],
    ),
    ref=_diag_embed_reference,
    errors=[
        ([np.float64(1)], {}, ShapeError, r"diag_embed.*\(\)"),
        ([np.ones(2)], {"axis1": 2}, AxisError, "axis 2"),
        ([np.ones(2)], {"axis1": 0, "axis2": 0}, AxisError, "diag_embed.*same"),
    ],
)
def diag_embed(xp, x, /, offset=0, axis1=-2, axis2=-1):
    """Build square matrices from their diagonals, 0 elsewhere; torch's function.

    Args:
        x: array of shape (..., length of the diagonal).
        axis1, axis2: the axes of the result for the rows and for the columns.

    Returns:
        Tensor with one axis more, of length x.shape[-1] + abs(offset) like the other.

    >>> print(gg.diag_embed([[1.0, 2.0], [3.0, 4.0]])[1])
    [[3. 0.]
     [0. 4.]]
    """
    if not x.ndim:
        raise ShapeError("diag_embed: x must have an axis, its shape is ().")
    axis1, axis2 = (check_axis("diag_embed", a, (*x.shape, 0)) for a in (axis1, axis2))
    if axis1 == axis2:
        raise AxisError(f"diag_embed: axis1 and axis2 are the same axis, {axis1}.")
    n = x.shape[-1] + abs(offset)
    matrices = xp.diagonal_scatter(x, offset=offset, shape=(*x.shape[:-1], n, n))
    return xp.moveaxis(matrices, (-2, -1), (axis1, axis2))
