"""Differences along an axis, slopes from them, and the sums that undo them."""

from __future__ import annotations

from typing import Any

import numpy as np

from gpugrad.core.backend import SCALARS, TENSOR
from gpugrad.core.samples import calls, shaped, uniform
from gpugrad.core.tensor import Tensor, tensor
from gpugrad.errors import ArgumentError, AxisError, ShapeError, saying_where
from gpugrad.ops._axes import arrays_of, check_axis
from gpugrad.registry.record import op


def _negative(name, x, axis):
    """`axis` counted from the end."""
    check_axis(name, axis, x.shape)
    return axis % x.ndim - x.ndim


def _part(xp, x, axis, start, stop):
    """Elements from `start` to `stop` along a negative axis."""
    return xp.getitem(x, index=(Ellipsis, slice(start, stop), *(slice(None),) * (-axis - 1)))


def _two(xp, x, axis):
    """All elements but the first, and all but the last, along a negative axis."""
    return _part(xp, x, axis, 1, None), _part(xp, x, axis, 0, x.shape[axis] - 1)


# ---- differences -------------------------------------------------------------------------


def _joined(xp, x, edge, axis, before):
    """`x` with a number or an array put before or after it."""
    if type(edge) in SCALARS:
        width = [(0, 0)] * x.ndim
        width[axis] = (1, 0) if before else (0, 1)
        return xp.pad(x, tuple(width), constant_values=edge)
    if not edge.ndim:
        shape = list(x.shape)
        shape[axis] = 1
        edge = xp.broadcast_to(edge, tuple(shape))
    return xp.concat([edge, x] if before else [x, edge], axis=axis)


@op(
    name="diff",
    kinds="fcib",
    ref=lambda x, n=1, axis=-1: np.diff(x, n, axis),
    samples=shaped(
        [(4,)], ([(4, 2)], {"n": 2, "axis": 0}), ([(2, 2)], {"n": 3}), ([(0, 2)], {"n": 0})
    ),
    errors=[
        ([np.ones(3)], {"axis": 1}, AxisError, "diff: axis 1"),
        ([np.ones(3)], {"n": -1}, ArgumentError, "diff: .*n=-1"),
    ],
)
def _diff(xp, x, /, n=1, axis=-1):
    """The op behind `gg.diff`, without its edges."""
    axis = _negative("diff", x, axis)
    if n < 0:
        raise ArgumentError(f"diff: n must not be negative, got n={n}.")
    between = xp.not_equal if x.dtype == bool else xp.subtract
    for _ in range(min(n, x.shape[axis])):
        x = between(*_two(xp, x, axis))
    return x


@saying_where
def diff(
    x: Any, /, n: int = 1, axis: int = -1, *, prepend: Any = None, append: Any = None
) -> Tensor:
    """Differences of neighbours along an axis: x_(k + 1) - x_k.

    Args:
        x: array of at least one axis.
        n: how many times to take differences.
        axis: int: the axis to work along.
        prepend, append: arrays or numbers, put before and after `x` along the axis first,
            unless `n` is 0.

    Returns:
        Tensor, shorter by `n` along the axis. Of booleans: where neighbours differ.

    Raises:
        AxisError: there is no such axis.
        ArgumentError: a negative `n`.
        ShapeError: `prepend` or `append` does not fit `x`.

    >>> print(gg.diff([1.0, 4.0, 9.0], prepend=0.0))
    [1. 3. 5.]
    """
    if n and (prepend is not None or append is not None):  # NumPy joins nothing for n = 0
        x = tensor(x)
        along = _negative("diff", x, axis)
        for edge, before in ((prepend, True), (append, False)):
            if edge is not None:
                edge = edge if type(edge) in SCALARS else tensor(edge)
                x = _joined(TENSOR, x, edge, along, before)
    return TENSOR.diff(x, n, axis)


@op(
    arrays=("x", "to_end", "to_begin"),
    kinds="fc",
    samples=calls(
        lambda rng: [uniform(rng, 2, 2)],
        lambda rng: ([uniform(rng, 3)], {"to_end": uniform(rng, 2), "to_begin": 1.0}),
        lambda rng: ([uniform(rng)], {"to_end": uniform(rng)}),
    ),
    errors=[([np.ones(2), "text"], {}, TypeError, "number")],
)
def ediff1d(xp, x, /, to_end=None, to_begin=None):
    """Differences of neighbours among all elements in row-major order.

    Args:
        to_end, to_begin: arrays or numbers put after and before the differences.

    Returns:
        Tensor of one axis.

    >>> print(gg.ediff1d([1.0, 4.0, 9.0], to_begin=0.0))
    [0. 3. 5.]
    """
    edges = [edge for edge in (to_end, to_begin) if edge is not None]
    y = xp.diff(xp.reshape(arrays_of(xp, x, *edges)[0], (-1,)))
    for edge, before in ((to_begin, True), (to_end, False)):
        if edge is not None:
            edge = xp.reshape(edge, (-1,)) if getattr(edge, "ndim", 0) else edge
            y = _joined(xp, y, edge, -1, before)
    return y


# ---- slopes ------------------------------------------------------------------------------


def _uneven(xp, x, h, axis, edge_order):
    """Slopes of `x`, by NumPy's parabolas through three neighbours.

    `h`, the distances between the points, is a number or broadcasts with `x`.
    """
    length = x.shape[axis]
    a, b, c = (_part(xp, x, axis, k, length - 2 + k) for k in range(3))
    if type(h) in SCALARS:  # the element between the two may be NaN
        inner = (c - a) / (2 * h)
    else:
        right, left = _two(xp, h, axis)
        both = left + right
        inner = (c - b) * (left / (right * both)) + (b - a) * (right / (left * both))
    edges = []
    for at in (0, length - 2):
        near = h if type(h) in SCALARS else _part(xp, h, axis, at, at + 1)
        low, high = (_part(xp, x, axis, at + k, at + k + 1) for k in range(2))
        slope = (high - low) / near
        if edge_order == 2:  # a parabola's slope is linear: extrapolate it to the edge
            inside = 1 if at == 0 else length - 3
            next_ = h if type(h) in SCALARS else _part(xp, h, axis, inside, inside + 1)
            u, v = (_part(xp, x, axis, inside + k, inside + k + 1) for k in range(2))
            slope = slope + (slope - (v - u) / next_) * (near / (near + next_))
        edges.append(slope)
    return xp.concat([edges[0], inner, edges[1]], axis=axis)


def _gradient_reference(x, coordinates=None, **how):
    return np.gradient(x, *(() if coordinates is None else (coordinates,)), **{"axis": -1, **how})


@op(
    arrays=("x", "coordinates"),
    kinds="fc",
    ref=_gradient_reference,
    samples=calls(
        lambda rng: [uniform(rng, 4)],
        lambda rng: ([uniform(rng, 2, 3)], {"axis": 0}),
        lambda rng: ([uniform(rng, 2, 3)], {"edge_order": 2}),
        lambda rng: ([uniform(rng, 4, 2), np.array([0.0, 0.5, 1.7, 2.0])], {"axis": 0}),
        lambda rng: ([uniform(rng, 3), np.array([0.0, 0.5, 1.7])], {"edge_order": 2}),
    ),
    errors=[
        ([np.ones(3)], {"axis": 1}, AxisError, "gradient_along: axis 1"),
        ([np.ones(1)], {}, ShapeError, "gradient_along: .*at least 2"),
        ([np.ones(3), np.ones(2)], {}, ShapeError, r"gradient_along: .*\(2,\)"),
        ([np.ones(3)], {"edge_order": 3}, ArgumentError, "edge_order=3"),
    ],
)
def gradient_along(xp, x, /, coordinates=None, *, axis=-1, edge_order=1):
    """Slope along one axis, from neighbours on both sides; `gradient` calls it for each axis.

    Args:
        coordinates: array of shape (x.shape[axis],): where the elements are; 1 apart if None.
        edge_order: at an edge, 1 takes the slope to the neighbour; 2 the slope of a parabola.
    """
    axis = _negative("gradient_along", x, axis)
    if edge_order not in (1, 2):
        raise ArgumentError(f"gradient_along: edge_order={edge_order} must be 1 or 2.")
    length = x.shape[axis]
    if length < edge_order + 1:
        raise ShapeError(
            f"gradient_along: at least {edge_order + 1} elements are needed along axis {axis} of "
            f"the shape {x.shape}."
        )
    if coordinates is None:
        return _uneven(xp, x, 1.0, axis, edge_order)
    if coordinates.shape != (length,):
        raise ShapeError(
            f"gradient_along: coordinates {coordinates.shape} for axis {axis} of {x.shape}."
        )
    h = xp.reshape(xp.diff(coordinates), (length - 1,) + (1,) * (-axis - 1))
    return _uneven(xp, x, h, axis, edge_order)


@saying_where
def gradient(
    f: Any, /, *varargs: Any, axis: Any = None, edge_order: int = 1
) -> Tensor | tuple[Tensor, ...]:
    """Slopes of sampled values along axes, by differences; as numpy.gradient.

    Args:
        f: array of at least one axis.
        *varargs: the spacing: nothing (1), one number for all axes, or for each axis a number
            or an array of coordinates. Tensors among them get gradients.
        axis: int or tuple of ints; all axes if None.
        edge_order: 1 or 2: order of the differences at the edges.

    Returns:
        Tensor of the shape of `f` if there is one axis, else a tuple of them.

    Raises:
        AxisError: an axis that `f` does not have.
        ShapeError: an axis too short for `edge_order`, or the wrong number of coordinates.
        ArgumentError: neither one spacing nor one for each axis; or `edge_order` is not 1 or 2.

    >>> print(gg.gradient([1.0, 4.0, 9.0, 16.0], 0.5))
    [ 6.  8. 12. 14.]
    """
    x = tensor(f)
    if x.dtype.kind in "bu":  # unsigned differences would wrap around
        x = TENSOR.astype(x, np.float64)
    axes = range(x.ndim) if axis is None else axis if isinstance(axis, (tuple, list)) else (axis,)
    axes = [_negative("gradient", x, a) for a in axes]
    if len(set(axes)) < len(axes):
        raise AxisError(f"gradient: axis={axis} names an axis twice.")
    spacings = list(varargs) or [1.0]
    if len(spacings) == 1:
        spacings *= len(axes)
    if len(spacings) != len(axes):
        raise ArgumentError(f"gradient: {len(varargs)} spacings for {len(axes)} axes.")
    slopes = []
    for h, along in zip(spacings, axes, strict=True):
        how = {"axis": along, "edge_order": edge_order}
        h = h if type(h) in SCALARS else tensor(h)
        if type(h) in SCALARS or not h.ndim:
            slope = TENSOR.gradient_along(x, **how) / h
        else:
            slope = TENSOR.gradient_along(x, h, **how)
        slopes.append(TENSOR.astype(slope, x.dtype) if x.dtype.kind in "fc" else slope)
    return slopes[0] if len(slopes) == 1 else tuple(slopes)


# ---- integrals ---------------------------------------------------------------------------


def _areas(xp, name, y, x, dx, axis):
    """Areas of the trapezia between neighbours along a negative axis."""
    upper, lower = _two(xp, y, axis)
    if x is None:
        return (upper + lower) * (dx / 2)
    if x.ndim == 1:
        if x.shape[0] != y.shape[axis]:
            raise ShapeError(f"{name}: x {x.shape} for axis {axis} of y {y.shape}.")
        width = xp.reshape(xp.diff(x), (-1,) + (1,) * (-axis - 1))
    else:
        width = xp.diff(x, axis=axis)
    return width * ((upper + lower) / 2)


_INTEGRALS = calls(
    lambda rng: ([uniform(rng, 4)], {"dx": 0.5}),
    lambda rng: ([uniform(rng, 3, 2), np.sort(uniform(rng, 3))], {"axis": 0}),
    lambda rng: [uniform(rng, 2, 3), uniform(rng, 2, 3)],
    lambda rng: [uniform(rng, 2, 1)],
)
_INTEGRAL_ERRORS: list[Any] = [
    ([np.ones(3)], {"axis": 1}, AxisError, "axis 1"),
    ([np.ones(3), np.ones(2)], {}, ShapeError, r"x \(2,\) .*y \(3,\)"),
]


_INTEGRAL: dict[str, Any] = {"arrays": ("y", "x"), "kinds": "fc"}


@op(samples=_INTEGRALS, errors=_INTEGRAL_ERRORS, **_INTEGRAL)
def trapezoid(xp, y, /, x=None, dx=1.0, axis=-1):
    """Integral along an axis by the trapezoidal rule.

    Args:
        y: array of at least one axis: the values.
        x: their positions: array of shape (y.shape[axis],), or one that broadcasts with `y`.
        dx: number: their distance, if `x` is None.

    Returns:
        Tensor without the axis.

    >>> print(gg.trapezoid([1.0, 2.0, 3.0], dx=0.5))
    2.0
    """
    axis = _negative("trapezoid", y, axis)
    return xp.sum(_areas(xp, "trapezoid", y, x, dx, axis), axis=axis)


def _with_initial(rng):
    yield from _INTEGRALS(rng)
    yield [uniform(rng, 2, 3)], {"initial": 0}


@op(
    samples=_with_initial,
    ref="scipy.integrate.cumulative_trapezoid",
    errors=[*_INTEGRAL_ERRORS, ([np.ones(3)], {"initial": 2.0}, ArgumentError, "initial=2.0")],
    **_INTEGRAL,
)
def cumulative_trapezoid(xp, y, /, x=None, dx=1.0, axis=-1, initial=None):
    """Running integral along an axis by the trapezoidal rule, as SciPy's.

    Args:
        y: array of at least one axis: the values.
        x: their positions: array of shape (y.shape[axis],), or one that broadcasts with `y`.
        dx: number: their distance, if `x` is None.
        initial: 0 to start the result with 0.

    Returns:
        Tensor of the shape of `y`; shorter by one along the axis without `initial`.

    >>> print(gg.cumulative_trapezoid([1.0, 2.0, 3.0], initial=0))
    [0.  1.5 4. ]
    """
    axis = _negative("cumulative_trapezoid", y, axis)
    if initial not in (None, 0):
        raise ArgumentError(f"cumulative_trapezoid: initial={initial} must be 0 or None.")
    areas = _areas(xp, "cumulative_trapezoid", y, x, dx, axis)
    return xp.cumulative_sum(areas, axis=axis, include_initial=initial is not None)
