"""Products of tensors: contractions, outer products, cross products, and traces."""

import math

import numpy as np

from gpugrad.core.backend import NUMPY
from gpugrad.core.samples import shaped
from gpugrad.errors import AxisError, DTypeError, ShapeError
from gpugrad.kernels.cpu.large import MIDDLE
from gpugrad.ops._axes import arrays_of
from gpugrad.ops.math.products import PRODUCT, multiplied
from gpugrad.registry.record import op


def _contracted(x1, x2, axes):
    """The axes of each array to sum over, counted from 0."""
    if isinstance(axes, (int, np.integer)):
        if not 0 <= axes <= min(x1.ndim, x2.ndim):
            raise AxisError(f"tensordot: {x1.shape} and {x2.shape} do not both have {axes} axes.")
        return list(range(x1.ndim - axes, x1.ndim)), list(range(axes))
    pair = [[a] if isinstance(a, (int, np.integer)) else list(a) for a in axes]
    summed = []
    for x, named in zip((x1, x2), pair, strict=True):
        if any(not -x.ndim <= a < x.ndim for a in named):
            raise AxisError(f"tensordot: the shape {x.shape} does not have all the axes {named}.")
        summed.append([a % x.ndim for a in named])
    return summed


@op(
    samples=shaped(
        [(2, 3, 4), (3, 4, 2)], ([(2, 3), (3, 2)], {"axes": 1}), ([(2,), (3,)], {"axes": 0}),
        ([(2, 3, 2), (2, 3)], {"axes": ((1, 0), (1, 0))}), ([(0, 2), (2, 3)], {"axes": 1}),
        ([(3,), (2, 3)], {"axes": ((-1,), (1,))}), ([(2, 0), (0, 3)], {"axes": 1}),
    ),
    errors=[
        ([np.ones((2, 3)), np.ones((2, 3))], {"axes": 1}, ShapeError, r"tensordot.*\(2, 3\)"),
        ([np.ones(2), np.ones(2)], {"axes": 2}, AxisError, "tensordot.*2 axes"),
        ([np.ones(2), np.ones(2)], {"axes": ((1,), (0,))}, AxisError, r"tensordot.*\[1\]"),
    ],
    **PRODUCT,
mixed="half")  # fmt: skip
def tensordot(xp, x1, x2, /, axes=2):
    """Sum of products over axes of two arrays.

    Args:
        x1, x2: arrays.
        axes: n for the last n axes of `x1` and the first n of `x2`; or a pair of sequences:
            the axes of each, in matching order.

    Returns:
        Tensor with the other axes of `x1`, then those of `x2`.

    >>> print(gg.tensordot([[1.0, 2.0], [3.0, 4.0]], [10.0, 1.0], axes=1))
    [12. 34.]
    """
    x1, x2 = arrays_of(xp, x1, x2)
    summed1, summed2 = _contracted(x1, x2, axes)
    lengths = [x1.shape[a] for a in summed1]
    if lengths != [x2.shape[a] for a in summed2]:
        raise ShapeError(
            f"tensordot: axes {summed1} of {x1.shape} and axes {summed2} of {x2.shape} are summed "
            "together, so their lengths must be equal."
        )
    free1 = [a for a in range(x1.ndim) if a not in summed1]
    free2 = [a for a in range(x2.ndim) if a not in summed2]
    shape1, shape2 = [x1.shape[a] for a in free1], [x2.shape[a] for a in free2]
    k = math.prod(lengths)
    y1 = xp.reshape(xp.permute_dims(x1, (*free1, *summed1)), (math.prod(shape1), k))
    y2 = xp.reshape(xp.permute_dims(x2, (*summed2, *free2)), (k, math.prod(shape2)))
    return xp.reshape(xp.matmul(y1, y2), (*shape1, *shape2))


@op(
    kinds="fci",
    samples=shaped([(2,), (3,)], [(0,), (3,)], [(2, 2), (2,)], [(), (3,)]),
    errors=[([np.ones(2), "text"], {}, DTypeError, "number")],
)
def outer(xp, x1, x2, /):
    """Products of each element of `x1` with each of `x2`.

    Args:
        x1, x2: arrays of m and n elements, which are flattened, or numbers.

    Returns:
        Tensor of shape (m, n).

    >>> print(gg.outer([1.0, 2.0], [10.0, 1.0]))
    [[10.  1.]
     [20.  2.]]
    """
    x1, x2 = arrays_of(xp, x1, x2)
    return multiplied(xp, xp.reshape(x1, (x1.size, 1)), xp.reshape(x2, (1, x2.size)))


@op(
    kinds="fci",
    samples=shaped([(2, 2), (1, 3)], [(2,), (3,)], [(3,), (2, 2)], [(), (2,)], [(0, 2), (1, 2)]),
    errors=[([np.ones(2), "text"], {}, DTypeError, "number")],
)
def kron(xp, x1, x2, /):
    """Kronecker product: `x2` times each element of `x1`, as blocks.

    Args:
        x1, x2: arrays or numbers; the shape with fewer axes is padded with ones in front.

    Returns:
        Tensor whose lengths are the products of theirs.

    >>> print(gg.kron([1.0, 2.0], [10.0, 1.0]))
    [10.  1. 20.  2.]
    """
    x1, x2 = arrays_of(xp, x1, x2)
    n = max(x1.ndim, x2.ndim)
    shape1 = (1,) * (n - x1.ndim) + x1.shape
    shape2 = (1,) * (n - x2.ndim) + x2.shape
    y1 = xp.reshape(x1, tuple(m for a in shape1 for m in (a, 1)))
    y2 = xp.reshape(x2, tuple(m for b in shape2 for m in (1, b)))
    return xp.reshape(
        multiplied(xp, y1, y2), tuple(a * b for a, b in zip(shape1, shape2, strict=True))
    )


def _cross_by_place(x1, x2, axis):
    """`cross` with the same bits, and fewer arrays of the size of the result."""
    out = np.empty(x1.shape, np.result_type(x1, x2))
    a, b, c = (np.moveaxis(v, axis, 0) for v in (x1, x2, out))
    for i in range(3):
        j, k = (i + 1) % 3, (i + 2) % 3
        np.multiply(a[j], b[k], out=c[i])
        c[i] -= a[k] * b[j]
    return out


@op(
    kinds="fci",
    ref="numpy.linalg.cross",
    samples=shaped([(3,), (3,)], [(2, 3), (3,)], ([(3, 2), (3, 1)], {"axis": 0}), [(0, 3), (3,)]),
    errors=[
        ([np.ones(2), np.ones(2)], {}, ShapeError, r"cross.*length 3.*\(2,\)"),
        ([np.ones(3), np.ones(3)], {"axis": 1}, AxisError, "cross.*axis 1"),
    ],
)
def cross(xp, x1, x2, /, axis=-1):
    """Cross product of vectors in space.

    Args:
        x1, x2: arrays of length 3 along the axis, broadcast along the others.
        axis: int; negative, if one array has more axes than the other.

    Returns:
        Tensor of the broadcast shape.

    >>> print(gg.cross([1.0, 0.0, 0.0], [0.0, 1.0, 0.0]))
    [0. 0. 1.]
    """
    x1, x2 = arrays_of(xp, x1, x2)
    for x in (x1, x2):
        if not -x.ndim <= axis < x.ndim:
            raise AxisError(f"cross: the shape {x.shape} has no axis {axis}.")
        if x.shape[axis] != 3:
            raise ShapeError(f"cross: axis {axis} must have length 3, the shape is {x.shape}.")
    if xp is NUMPY and x1.shape == x2.shape and x1.ndim > 1 and x1.size >= MIDDLE:
        return _cross_by_place(x1, x2, axis)
    next1, next2 = xp.roll(x1, -1, axis=axis), xp.roll(x2, -1, axis=axis)
    return xp.roll(x1 * next2 - next1 * x2, -1, axis=axis)  # place i now holds element i + 2


@op(
    kinds="fci",
    ref=np.trace,
    samples=shaped(
        [(3, 3)],
        ([(2, 3)], {"offset": 1}),
        ([(2, 3, 2)], {"offset": -1}),
        [(0, 0)],
        ([(2, 3, 2)], {"axis1": -2, "axis2": -1}),
    ),
    errors=[([np.ones(3)], {}, ShapeError, r"\(3,\)")],
    mixed="float32",
)
def trace(xp, x, /, offset=0, axis1=0, axis2=1):
    """Sum of the elements on a diagonal of matrices.

    Args:
        x: array of two or more axes.
        axis1, axis2: the axes of the rows and of the columns, as for `diagonal`.

    Returns:
        Tensor of the shape without the two axes.

    >>> print(gg.trace([[1.0, 2.0], [3.0, 4.0]]))
    5.0
    """
    return xp.sum(xp.diagonal(x, offset, axis1, axis2), axis=-1)
