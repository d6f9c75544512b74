"""Elements in other places: flipped, rolled, repeated; triangles and diagonals."""

from __future__ import annotations

import math

import numpy as np

from gpugrad.autodiff.batched import batch_axis_of
from gpugrad.core.samples import shaped
from gpugrad.errors import ArgumentError, AxisError, DTypeError, ShapeError
from gpugrad.ops.arrays.shape import axis_of, need_matrices
from gpugrad.registry.record import op

# ---- moving along an axis ----------------------------------------------------------------


@op(
    vjp=[lambda xp, g, axis: xp.flip(g, axis=axis)],
    linear=True, keeps_half=True, batch="axis", kinds="fc",
    samples=shaped(
        ([(2, 3)], {}), ([(2, 3)], {"axis": 0}), ([(2, 3, 2)], {"axis": (0, -1)}), ([()], {}),
        ([(0, 2)], {"axis": 0}),
    ),
    errors=[([np.ones(3)], {"axis": 1}, AxisError, "flip.*axis 1")],
)  # fmt: skip
def flip(xp, x, /, axis=None):
    """Reverse the order of the elements along axes.

    Args:
        x: array, of any shape.
        axis: an int, or a tuple of them; None for all.

    Returns:
        Tensor of the shape of `x`.

    Raises:
        AxisError: an axis that `x` does not have.

    >>> print(gg.flip([1.0, 2.0, 3.0]))
    [3. 2. 1.]
    """
    return xp.lib.flip(x, axis=axis) if x.ndim or axis is not None else x


def _roll_vjp(xp, g, shift, axis):
    back = tuple(-s for s in shift) if isinstance(shift, (tuple, list)) else -shift
    return xp.roll(g, back, axis=axis)


def _roll_batch(xp, batched, x, *, shift, axis):
    if axis is not None:
        return xp.roll(x, shift, axis=batch_axis_of(axis, x.ndim - 1))
    rows = xp.reshape(x, (x.shape[0], math.prod(x.shape[1:])))
    return xp.reshape(xp.roll(rows, shift, axis=1), x.shape)


@op(
    vjp=[_roll_vjp], linear=True, keeps_half=True, batch=_roll_batch, kinds="fc",
    samples=shaped(
        ([(2, 3)], {"shift": 2}), ([(2, 3)], {"shift": -1, "axis": -1}),
        ([(2, 3)], {"shift": (1, 4), "axis": (0, 1)}), ([(0, 2)], {"shift": 1, "axis": 0}),
    ),
    errors=[
        ([np.ones(3)], {"shift": 1, "axis": 1}, AxisError, "roll.*axis 1"),
        ([np.ones(3)], {"shift": 1.5}, DTypeError, "roll: shift.*1.5"),
    ],
)  # fmt: skip
def roll(xp, x, /, shift, axis=None):
    """Move the elements along axes; those that leave at the end come in at the start.

    Args:
        x: array, of any shape.
        shift: by how many places: an int, or one for each axis.
        axis: an int, or a tuple of them; None moves the elements in row-major order.

    Returns:
        Tensor of the shape of `x`.

    Raises:
        AxisError: an axis that `x` does not have.
        DTypeError: a shift that is no int.

    >>> print(gg.roll([1.0, 2.0, 3.0], 1))
    [3. 1. 2.]
    """
    if not all(hasattr(s, "__index__") for s in _several(shift)):  # NumPy cuts fractions off
        raise DTypeError(f"roll: shift must be an int, or a tuple of ints, got {shift!r:.60}.")
    return xp.lib.roll(x, shift, axis=axis)


# ---- copies ------------------------------------------------------------------------------


def _several(n):
    return tuple(n) if isinstance(n, (tuple, list)) or np.ndim(n) else (n,)


def _tile_vjp(xp, g, x_shape, repetitions):
    reps = _several(repetitions)
    n = max(len(reps), len(x_shape))
    reps = (1,) * (n - len(reps)) + reps
    lengths = (1,) * (n - len(x_shape)) + tuple(x_shape)
    copies = tuple(k for pair in zip(reps, lengths, strict=True) for k in pair)
    one = tuple(k for length in lengths for k in (1, length))
    return xp.reshape(xp.sum_to(xp.reshape(g, copies), one), x_shape)


def _tile_batch(xp, batched, x, *, repetitions):
    reps = _several(repetitions)
    n = max(len(reps), x.ndim - 1)
    x = xp.reshape(x, (x.shape[0], *(1,) * (n + 1 - x.ndim), *x.shape[1:]))
    return xp.tile(x, (1,) * (n + 1 - len(reps)) + reps)


@op(
    vjp=[_tile_vjp], linear=True, keeps_half=True, batch=_tile_batch, kinds="fc",
    ref=lambda x, repetitions: np.tile(x, repetitions),
    samples=shaped(
        ([(3,)], {"repetitions": 2}), ([(2, 3)], {"repetitions": (2, 1)}),
        ([(3,)], {"repetitions": (2, 2)}), ([(2, 2)], {"repetitions": (3,)}),
        ([()], {"repetitions": (2,)}), ([(2,)], {"repetitions": (0,)}),
    ),
    errors=[([np.ones(3)], {"repetitions": (-1,)}, ArgumentError, "tile.*negative")],
)  # fmt: skip
def tile(xp, x, /, repetitions):
    """Lay copies of an array side by side.

    Args:
        x: array, of any shape.
        repetitions: tuple of how many along each axis, or one int for the last axis. The
            shorter one of it and the shape is filled up with ones in front.

    Returns:
        Tensor, along each axis as many times as long.

    Raises:
        ArgumentError: a negative number of copies.

    >>> print(gg.tile([1.0, 2.0], (2, 2)))
    [[1. 2. 1. 2.]
     [1. 2. 1. 2.]]
    """
    reps = _several(repetitions)
    if any(r < 0 for r in reps):
        raise ArgumentError(f"tile: a negative number of copies in repetitions={repetitions}.")
    return xp.lib.tile(x, reps)


def _counts(repeats):
    """`repeats` as an int, or as a list of them."""
    counts = repeats.tolist() if hasattr(repeats, "tolist") else repeats
    if isinstance(counts, int):
        return counts
    counts = list(counts)
    return counts[0] if len(counts) == 1 else counts


def _repeat_vjp(xp, g, x_shape, repeats, axis):
    shape = tuple(x_shape) if x_shape and axis is not None else (math.prod(x_shape),)
    axis = 0 if axis is None else axis_of(axis, len(shape))
    before, after, n = shape[:axis], shape[axis + 1 :], shape[axis]
    counts = _counts(repeats)
    if isinstance(counts, int):
        copies = xp.reshape(g, (*before, n, counts, *after))
        return xp.reshape(xp.sum_to(copies, (*before, n, 1, *after)), x_shape)
    origin = [i for i, count in enumerate(counts) for _ in range(count)]
    index = (*[slice(None)] * axis, np.array(origin, dtype=np.int64))
    return xp.reshape(xp.scatter_at(g, index=index, shape=shape), x_shape)


def _repeat_batch(xp, batched, x, *, repeats, axis):
    if axis is None:
        x, axis = xp.reshape(x, (x.shape[0], math.prod(x.shape[1:]))), 0
    return xp.repeat(x, repeats, axis=batch_axis_of(axis, x.ndim - 1))


@op(
    vjp=[_repeat_vjp], linear=True, keeps_half=True, batch=_repeat_batch,
    kinds="fc",
    samples=shaped(
        ([(2, 3)], {"repeats": 2}), ([(2, 3)], {"repeats": 2, "axis": -1}),
        ([(2, 3)], {"repeats": [1, 0, 2], "axis": 1}), ([(2, 2)], {"repeats": (1, 2, 0, 3)}),
        ([()], {"repeats": 3}), ([(2,)], {"repeats": 0}), ([(2, 2)], {"repeats": [2], "axis": 0}),
    ),
    errors=[
        ([np.ones(3)], {"repeats": [1, 2], "axis": 0}, ShapeError, "repeat"),
        ([np.ones(3)], {"repeats": 2, "axis": 1}, AxisError, "repeat.*axis 1"),
    ],
)  # fmt: skip
def repeat(xp, x, /, repeats, axis=None):
    """Repeat each element, or each slice along an axis.

    Args:
        x: array, of any shape.
        repeats: how many times: an int, or a list of one for each slice.
        axis: along which; None repeats the elements in row-major order.

    Returns:
        Tensor of the shape of `x` but for that axis; with one axis if `axis` is None.

    Raises:
        ShapeError: there are not as many `repeats` as slices.
        AxisError: an axis that `x` does not have.

    >>> print(gg.repeat([1.0, 2.0], 2))
    [1. 1. 2. 2.]
    """
    return xp.lib.repeat(x, _counts(repeats), axis=axis)


# ---- parts of matrices -------------------------------------------------------------------

_SOME_MATRICES = shaped(
    ([(3, 3)], {}), ([(2, 3)], {"k": 1}), ([(2, 3, 2)], {"k": -1}), ([(0, 2)], {}),
)  # fmt: skip


@op(
    vjp=[lambda xp, g, k: xp.tril(g, k=k)],
    linear=True, keeps_half=True, batch="stack",
    kinds="fc", samples=_SOME_MATRICES,
    errors=[([np.ones(3)], {}, ShapeError, r"tril.*\(3,\)")],
)  # fmt: skip
def tril(xp, x, /, k=0):
    """Lower triangle of matrices: elements above the k-th diagonal become 0.

    Args:
        x: array of shape (..., m, n).
        k: the diagonal; 0 is the main one, those above it are positive.

    Returns:
        Tensor of the shape of `x`.

    Raises:
        ShapeError: there are fewer than two axes.

    >>> print(gg.tril([[1.0, 2.0], [3.0, 4.0]]))
    [[1. 0.]
     [3. 4.]]
    """
    need_matrices("tril", x)
    return xp.lib.tril(x, k=k).astype(x.dtype, copy=False)  # CuPy's makes float32 of bfloat16


@op(
    vjp=[lambda xp, g, k: xp.triu(g, k=k)],
    linear=True, keeps_half=True, batch="stack",
    kinds="fc", samples=_SOME_MATRICES,
    errors=[([np.ones(3)], {}, ShapeError, r"triu.*\(3,\)")],
)  # fmt: skip
def triu(xp, x, /, k=0):
    """Upper triangle of matrices: elements below the k-th diagonal become 0.

    Args:
        x: array of shape (..., m, n).
        k: the diagonal; 0 is the main one, those above it are positive.

    Returns:
        Tensor of the shape of `x`.

    Raises:
        ShapeError: there are fewer than two axes.

    >>> print(gg.triu([[1.0, 2.0], [3.0, 4.0]]))
    [[1. 2.]
     [0. 4.]]
    """
    need_matrices("triu", x)
    return xp.lib.triu(x, k=k).astype(x.dtype, copy=False)  # CuPy's makes float32 of bfloat16


def _diagonal_vjp(xp, g, x_shape, offset, axis1, axis2):
    n = len(x_shape)
    pair = (axis1 % n, axis2 % n)
    order = (*(k for k in range(n) if k not in pair), *pair)
    y = xp.diagonal_scatter(g, offset=offset, shape=tuple(x_shape[k] for k in order))
    return xp.permute_dims(y, tuple(sorted(range(n), key=order.__getitem__)))


def _diagonal_batch(xp, batched, x, *, offset, axis1, axis2):
    n = x.ndim - 1
    return xp.diagonal(x, offset, batch_axis_of(axis1, n), batch_axis_of(axis2, n))


@op(
    vjp=[_diagonal_vjp], linear=True, keeps_half=True, batch=_diagonal_batch, kinds="fc",
    ref=np.diagonal,
    samples=shaped(
        ([(3, 3)], {}), ([(2, 3)], {"offset": 1}), ([(2, 3, 2)], {"offset": -1}),
        ([(2, 2)], {"offset": 3}), ([(2, 3, 2)], {"axis1": -2, "axis2": -1}),
        ([(2, 2, 3)], {"offset": 1, "axis1": -1, "axis2": 0}),
    ),
    errors=[
        ([np.ones(3)], {}, ShapeError, r"diagonal.*\(3,\)"),
        ([np.ones((2, 2))], {"axis1": 0, "axis2": 0}, AxisError, "diagonal.*same"),
        ([np.ones((2, 2))], {"axis1": 2}, AxisError, "diagonal.*axis 2"),
    ],
)  # fmt: skip
def diagonal(xp, x, /, offset=0, axis1=0, axis2=1):
    """Elements on a diagonal of matrices.

    Args:
        x: array of two or more axes.
        offset: the diagonal; 0 is the main one, those above it are positive.
        axis1, axis2: the axes of the rows and of the columns: the first two, as NumPy has it.
            `gg.linalg.diagonal` takes the last two, as the array API has it.

    Returns:
        Tensor of the shape without the two axes, and the diagonal at the end.

    Raises:
        ShapeError: there are fewer than two axes.
        AxisError: axes that `x` does not have, or twice the same.

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


@op(
    vjp=[lambda xp, g, offset: xp.diagonal(g, offset, -2, -1)],
    linear=True, keeps_half=True, batch=_diagonal_scatter_batch,
    kinds="fc", ref=_diagonal_scatter_reference,
    samples=shaped(
        ([(3,)], {"offset": 0, "shape": (3, 3)}), ([(2,)], {"offset": 1, "shape": (2, 3)}),
        ([(2, 2)], {"offset": -1, "shape": (2, 3, 2)}), ([(0,)], {"offset": 3, "shape": (2, 2)}),
    ),
    errors=[
        ([np.ones(3)], {"offset": 1, "shape": (3, 3)}, ShapeError, r"diagonal_scatter.*\(3,\)"),
    ],
)  # fmt: skip
def diagonal_scatter(xp, x, /, *, offset, shape):
    """Put elements on a diagonal of matrices that are 0 elsewhere; the adjoint of `diagonal`.

    Args:
        x: array of shape (..., length of the diagonal).
        offset: the diagonal; 0 is the main one, those above it are positive.
        shape: of the result, (..., m, n).

    Returns:
        Tensor of that shape.

    Raises:
        ShapeError: the elements do not fill the diagonal.

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
