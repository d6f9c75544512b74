"""Norms of vectors and matrices."""

import math

import numpy as np

from gpugrad.core.samples import along_axis, shaped
from gpugrad.errors import ArgumentError, AxisError, NoGradientError, ShapeError
from gpugrad.ops._axes import expand, reduced_tangent
from gpugrad.ops._roots import root_of_powers
from gpugrad.ops.linalg.common import as_inexact
from gpugrad.registry.record import op

_KEPT = {"keepdims": True}


def _vector_norm_by(multiply, xp, g, out, x, axis, keepdims, ord):
    if ord == 0:
        raise NoGradientError("vector_norm: ord=0 counts elements, which has no derivative.")
    g, out = expand(xp, g, x.shape, axis, keepdims), expand(xp, out, x.shape, axis, keepdims)
    if ord == 2:
        return multiply(g, xp.masked_divide(x, out))
    size = xp.abs(x)
    unit = xp.masked_divide(x, size) if x.dtype.kind == "c" else xp.sign(x)
    if ord == 1:
        return multiply(g, unit)
    if math.isinf(ord):
        hit = xp.astype(xp.equal(size, out), out.dtype)
        return multiply(hit * g, unit / xp.sum(hit, axis=axis, keepdims=True))
    return multiply(g, xp.masked_multiply(unit, xp.masked_divide(size, out) ** (ord - 1)))


def _tangent(xp, t, out, x, axis, keepdims, ord):
    def gradient(g):
        return _vector_norm_by(xp.masked_multiply, xp, g, out, x, axis, keepdims, ord)

    return reduced_tangent(xp, gradient, t, out, axis, keepdims)


def _rule(multiply):
    def vjp(xp, g, out, x, axis, keepdims, ord):
        return _vector_norm_by(getattr(xp, multiply), xp, g, out, x, axis, keepdims, ord)

    return vjp


@op(
    [_rule("multiply")],
    masked=[_rule("masked_multiply")],
    jvp=[_tangent],
    kinds="fc",
    batch="axis",
    ref="numpy.linalg.vector_norm",
    samples=along_axis(
        {"axis": None},
        {"axis": (0, 2), **_KEPT},
        {"axis": None, **_KEPT},
        *({"axis": 1, "ord": p} for p in (1, 3, 1.5, 0.5, -1, math.inf, -math.inf)),
    ),
    errors=[
        ([np.ones(3)], {"axis": 1}, AxisError, "vector_norm.*axis 1"),
        ([np.ones(3)], {"ord": "fro"}, ArgumentError, "vector_norm.*'fro'"),
    ],
    captures=True,
    opens=lambda x, axis, keepdims, ord: "kernels" if ord == 2 else None,
    mixed="float32",
)
def vector_norm(xp, x, /, axis=None, *, keepdims=False, ord=2):
    """Norm of vectors: the `ord`-th root of the sum of the absolute values' powers.

    Args:
        x: array of any shape; integers give float64.
        axis: int, tuple of ints, or None for all axes, taken as one vector.
        ord: a number. inf and -inf are the largest and the smallest absolute value; 0 is the
            number of elements that are not 0, which has no gradient.

    Returns:
        Tensor of real numbers without the reduced axes. The gradient at the zero vector is 0;
        elements that tie for the largest share it. Second derivatives there are 0, also those of
        ``vector_norm(x) ** 2``: ``sum(x * x)`` has the true ones.

    >>> print(gg.vector_norm([3.0, 4.0]))
    5.0
    """
    if not isinstance(ord, (int, float, np.integer, np.floating)):
        raise ArgumentError(f"vector_norm: ord={ord!r} must be a number, inf or -inf.")
    x = as_inexact(x)
    if ord not in (0, 1) and not math.isinf(ord):
        return root_of_powers(xp, x, ord, axis, keepdims)
    size = abs(x)
    if math.isinf(ord):
        extreme = xp.lib.max if ord > 0 else xp.lib.min
        return extreme(size, axis=axis, keepdims=keepdims)
    if ord == 0:
        return xp.add_reduce((size != 0).astype(size.dtype), axis=axis, keepdims=keepdims)
    return xp.add_reduce(size, axis=axis, keepdims=keepdims)


@op(
    kinds="fc",
    ref=lambda x, **kw: np.linalg.norm(x, axis=(-2, -1), **{"ord": "fro", **kw}),
    samples=shaped(
        [(2, 3)],
        ([(2, 2, 3)], _KEPT),
        [(0, 2, 3)],
        *(([(2, 3)], {"ord": p}) for p in (1, -1, math.inf, -math.inf, 2, -2, "nuc")),
        ([(2, 2, 3)], {"ord": 1, **_KEPT}),
        ([(2, 2, 2)], {"ord": 2, **_KEPT}),
    ),
    errors=[
        ([np.ones(3)], {}, ShapeError, r"matrix_norm.*\(3,\)"),
        ([np.eye(2)], {"ord": 3}, ArgumentError, "matrix_norm.*ord=3"),
        ([np.ones((2, 0))], {"ord": 2}, ShapeError, "zero-size|empty"),
    ],
)
def matrix_norm(xp, x, /, *, keepdims=False, ord="fro"):
    """Norm of matrices.

    Args:
        x: array of shape (..., m, n).
        keepdims: whether the last two axes stay, with length 1.
        ord: ``"fro"``: root of the sum of squares. 1 and -1: the largest and the smallest sum
            of absolute values in a column; inf and -inf: in a row. 2 and -2: the largest and
            the smallest singular value; ``"nuc"``: their sum.

    Returns:
        Tensor of real numbers of shape (...). Ties for the largest share the gradient.

    >>> print(gg.matrix_norm([[1.0, 2.0], [2.0, 4.0]]))
    5.0
    """
    if x.ndim < 2:
        raise ShapeError(f"matrix_norm: matrices (..., m, n) are needed, the shape is {x.shape}.")
    if ord == "fro":
        return xp.vector_norm(x, axis=(-2, -1), keepdims=keepdims)
    if ord not in (1, -1, 2, -2, math.inf, -math.inf, "nuc"):
        raise ArgumentError(
            f"matrix_norm: ord={ord!r} is not one of 'fro', 'nuc', 1, -1, 2, -2, inf and -inf."
        )
    if ord in (2, -2, "nuc"):
        reduce = xp.sum if ord == "nuc" else xp.max if ord == 2 else xp.min
        out = reduce(xp.svdvals(x), axis=-1)
        return xp.expand_dims(out, axis=(-2, -1)) if keepdims else out
    over, among = (-2, -1) if abs(ord) == 1 else (-1, -2)
    sums = xp.vector_norm(x, axis=over, keepdims=True, ord=1)
    extreme = xp.max if ord > 0 else xp.min
    out = extreme(sums, axis=among, keepdims=True)
    return out if keepdims else xp.squeeze(out, (-2, -1))


def _matrix_ord(x, ord, axis):
    """Whether `norm` is a matrix norm, as numpy.linalg.norm decides."""
    if axis is not None:
        return isinstance(axis, (tuple, list)) and len(axis) == 2
    return ord is not None and x.ndim == 2


@op(
    kinds="fc", ref="numpy.linalg.norm",
    samples=shaped(
        [(2, 3, 2)], ([(4,)], {"ord": 3}), ([(2, 3)], {"ord": "nuc"}), [()],
        ([(2, 3)], {"axis": 0, "ord": 1, **_KEPT}), ([(2, 3)], _KEPT),
        ([(3, 2, 2)], {"axis": (0, -1)}), ([(2, 2, 3)], {"axis": (2, 0), "ord": 1}),
        ([(2, 2, 3)], {"axis": (0, 2), "ord": 2, **_KEPT}),
    ),
    errors=[
        ([np.ones((2, 2, 2))], {"ord": 2}, ArgumentError, r"norm.*axis="),
        ([np.ones((2, 2))], {"axis": (0, 1, 1)}, ArgumentError, r"norm.*axis=\(0, 1, 1\)"),
        ([np.ones((2, 2))], {"axis": (1, -1)}, ArgumentError, r"norm.*twice"),
        ([np.ones(3)], {"ord": "nuc"}, ArgumentError, "vector_norm.*'nuc'"),
        ([np.ones(3)], {"axis": 1}, AxisError, "axis 1"),
    ],
)  # fmt: skip
def norm(xp, x, /, ord=None, axis=None, *, keepdims=False):
    """Norm of vectors or matrices, as numpy.linalg.norm.

    Args:
        ord: as for `vector_norm` and `matrix_norm`. None: the root of the sum of squares.
        axis: int: norms of the vectors along it; a pair: norms of the matrices with these rows
            and columns. None: the norm of all elements as one vector, or, where `ord` is given,
            of `x` as one vector or matrix.

    Returns:
        Tensor of real numbers without the reduced axes.

    >>> print(gg.linalg.norm([[3.0, 0.0], [4.0, 0.0]], axis=0))
    [5. 0.]
    """
    if axis is None and ord is not None and x.ndim not in (1, 2):
        raise ArgumentError(f"norm: axis= is needed to choose the axes; the shape is {x.shape}.")
    if not _matrix_ord(x, ord, axis):
        if isinstance(axis, (tuple, list)):
            if len(axis) != 1:
                raise ArgumentError(f"norm: axis={axis!r} is neither one axis nor a pair of them.")
            (axis,) = axis
        return xp.vector_norm(x, axis=axis, keepdims=keepdims, ord=2 if ord is None else ord)
    pair = (0, 1) if axis is None else tuple(axis)
    if pair[0] % x.ndim == pair[1] % x.ndim:
        raise ArgumentError(f"norm: axis={axis!r} names an axis twice.")
    moved = xp.moveaxis(x, pair, (-2, -1))
    out = xp.matrix_norm(moved, keepdims=keepdims, ord="fro" if ord is None else ord)
    return xp.moveaxis(out, (-2, -1), pair) if keepdims else out
