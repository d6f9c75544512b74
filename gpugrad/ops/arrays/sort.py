"""Sorting, partitions, searching in sorted arrays, the largest elements."""

from __future__ import annotations

import math

import numpy as np

from gpugrad.core.backend import SCALARS
from gpugrad.core.samples import along_axis, calls, shaped, uniform
from gpugrad.errors import ArgumentError, AxisError, DTypeError, ShapeError, saying_where
from gpugrad.ops._axes import batch_all
from gpugrad.registry.record import op


def _order(xp, x, axis, descending):
    """Indices that sort; of equal elements the first stays first, also downwards."""
    if not descending:
        return xp.lib.argsort(x, axis=axis, stable=True)
    back = xp.lib.argsort(xp.lib.flip(x, axis=axis), axis=axis, stable=True)
    return x.shape[axis] - 1 - xp.lib.flip(back, axis=axis)


def _argsort_reference(x, axis=-1, descending=False):
    # sorted() is stable, and so is its reverse=True: the independent answer, line by line
    def line(v):
        return np.array(sorted(range(len(v)), key=v.__getitem__, reverse=descending), dtype=int)

    return np.apply_along_axis(line, axis, x) if x.size else np.zeros(x.shape, int)


def _with_ties(rng):
    yield [rng.integers(0, 3, 6).astype(float)], {}
    yield [rng.integers(0, 3, (2, 5)).astype(float)], {"axis": 1, "descending": True}


def _argsort_samples(rng):
    yield from along_axis({"axis": 1, "descending": True})(rng)
    yield from _with_ties(rng)
    yield [uniform(rng, 2, 0)], {}


@op(
    differentiable=False, kinds="fi", ref=_argsort_reference, batch="axis",
    samples=_argsort_samples,
    errors=[([np.ones(3)], {"axis": 1}, AxisError, "argsort.*axis 1")],
)  # fmt: skip
def argsort(xp, x, /, axis=-1, *, descending=False, stable=True):
    """Indices that sort an array along an axis; their gradient is None.

    Args:
        x: array, of any shape but ().
        axis: along which.
        descending: whether the largest comes first.
        stable: accepted for the array API's sake: equal elements always keep their order.

    Returns:
        int64 Tensor of the shape of `x`.

    Raises:
        AxisError: an axis that `x` does not have.

    >>> print(gg.argsort([3.0, 1.0, 2.0]))
    [1 2 0]
    """
    return _order(xp, x, axis, descending)


def _sort_vjp(xp, g, x, axis, descending):
    places = xp.argsort(xp.argsort(x, axis=axis, descending=descending), axis=axis)
    return xp.take_along_axis(g, places, axis=axis)


def _sort_jvp(xp, t, x, axis, descending):
    order = xp.argsort(x, axis=axis, descending=descending)
    return xp.take_along_axis(t, order, axis=axis)


@op(
    vjp=[_sort_vjp], jvp=[_sort_jvp], kinds="fci", batch="axis",
    ref=lambda x, axis=-1, descending=False: (
        -np.sort(-x, axis=axis) if descending else np.sort(x, axis=axis)
    ),
    samples=along_axis({"axis": 1, "descending": True}),
    errors=[([np.ones(3)], {"axis": 1}, AxisError, "sort.*axis 1")],
)  # fmt: skip
def sort(xp, x, /, axis=-1, *, descending=False, stable=True):
    """Sort an array along an axis; each gradient goes back to where its element was.

    Args:
        x: array, of any shape but ().
        axis: along which.
        descending: whether the largest comes first.
        stable: accepted for the array API's sake: equal elements always keep their order.

    Returns:
        Tensor of the shape of `x`.

    Raises:
        AxisError: an axis that `x` does not have.

    >>> print(gg.sort([3.0, 1.0, 2.0], descending=True))
    [3. 2. 1.]
    """
    ascending = xp.lib.sort(x, axis=axis)
    return xp.lib.flip(ascending, axis=axis) if descending else ascending


def _searchsorted_reference(x1, x2, side="left", sorter=None):
    x1 = x1 if sorter is None else x1[sorter]
    below = x1 < x2[..., None] if side == "left" else x1 <= x2[..., None]
    return below.sum(-1)


def _searchsorted_batch(xp, batched, x1, x2, sorter, *, side):
    """Sort both together: an element's place there, less its place in `x2` alone."""
    if not (batched[0] or batched[2]):
        return xp.searchsorted(x1, x2, sorter, side=side)
    given = [x for x in (x1, x2, sorter) if x is not None and type(x) not in SCALARS]
    x1, *rest = batch_all(xp, [b for x, b in zip((x1, x2, sorter), batched, strict=True)
                               if x is not None and type(x) not in SCALARS], given)  # fmt: skip
    if sorter is not None:
        x1 = xp.take_along_axis(x1, rest.pop(), axis=1)
    if not rest:  # a number
        return xp.count_nonzero(x1 < x2 if side == "left" else x1 <= x2, axis=1)
    x2 = xp.reshape(rest[0], (x1.shape[0], math.prod(rest[0].shape[1:])))
    m = x2.shape[1]  # argsort is stable: of equal elements the first ones stay first
    both = xp.concat([x2, x1] if side == "left" else [x1, x2], axis=1)
    place = xp.argsort(xp.argsort(both, axis=1), axis=1)
    mine = slice(0, m) if side == "left" else slice(x1.shape[1], None)
    place = xp.getitem(place, index=(slice(None), mine))
    return xp.reshape(place - xp.argsort(xp.argsort(x2, axis=1), axis=1), rest[0].shape)


@op(
    name="searchsorted", arrays=("x1", "x2", "sorter"), differentiable=False, kinds="fi",
    ref=_searchsorted_reference,
    batch=_searchsorted_batch,
    samples=calls(
        lambda rng: ([np.sort(uniform(rng, 5)), uniform(rng, 2, 3)], {}),
        lambda rng: ([np.array([0.0, 1.0, 1.0]), np.array([1.0, 2.0])], {"side": "right"}),
        lambda rng: ([np.array([0.0, 1.0, 1.0]), np.array(1.0)], {}),
        lambda rng: ([np.array([2.0, 0.0]), np.array([1.0])], {"sorter": np.array([1, 0])}),
        lambda rng: ([uniform(rng, 0), uniform(rng, 2)], {}),
    ),
    errors=[
        ([np.ones((2, 2)), np.ones(2)], {}, ShapeError, r"searchsorted.*\(2, 2\)"),
        ([np.ones(2), np.ones(2)], {"side": "up"}, ArgumentError, "'left' or 'right'"),
    ],
)  # fmt: skip
def _searchsorted(xp, x1, x2, /, sorter=None, *, side="left"):
    """Where elements would go into a sorted array: the op behind `searchsorted`.

    Args:
        x1: array of one axis, in ascending order.
        x2: array of any shape, or a number: what to find a place for.
        sorter: integers that sort `x1`, if it is not sorted itself.
        side: ``"left"`` puts it before equal elements, ``"right"`` after them.

    Returns:
        int64 Tensor of the shape of `x2`: how many elements of `x1` come before.

    Raises:
        ShapeError: `x1` has not one axis.
        ArgumentError: another `side`.

    >>> print(gg.searchsorted([1.0, 2.0, 3.0], [2.0, 5.0]))
    [1 3]
    """
    if x1.ndim != 1:
        raise ShapeError(f"searchsorted: x1 has the shape {x1.shape}; it must have one axis.")
    if side not in ("left", "right"):
        raise ArgumentError(f"searchsorted: no side {side!r}; 'left' or 'right'.")
    return xp.lib.asarray(xp.lib.searchsorted(x1, xp.lib.asarray(x2), side=side, sorter=sorter))


@saying_where
def searchsorted(x1, x2, /, side="left", sorter=None):
    """Where elements would go into a sorted array; the gradient is None.

    Args:
        x1: array of one axis, in ascending order.
        x2: array of any shape, or a number: what to find a place for.
        side: ``"left"`` puts it before equal elements, ``"right"`` after them.
        sorter: integers that sort `x1`, if it is not sorted itself.

    Returns:
        int64 Tensor of the shape of `x2`: how many elements of `x1` come before.

    Raises:
        ShapeError: `x1` has not one axis.
        ArgumentError: another `side`.

    >>> print(gg.searchsorted([1.0, 2.0, 3.0], [2.0, 5.0]))
    [1 3]
    """
    return _searchsorted(x1, x2, sorter, side=side)


def _top_k_vjp(xp, g, out, x_shape, axis):
    return xp.scatter_along_axis(g[0], out[1], axis=axis, shape=x_shape, unique=True)


def _top_k_reference(x, k, axis=-1):
    order = np.take(_argsort_reference(x, axis, descending=True), np.arange(k), axis)
    return np.take_along_axis(x, order, axis), order


@op(
    vjp=[_top_k_vjp], outputs=2, kinds="fc", ref=_top_k_reference, batch="axis",
    samples=shaped(
        ([(5,)], {"k": 2}), ([(2, 3)], {"k": 3}), ([(4, 2)], {"k": 2, "axis": 0}),
        ([(3,)], {"k": 0}),
    ),
    errors=[
        ([np.ones(3)], {"k": 4}, ArgumentError, "top_k: k=4 .* to 3"),
        ([np.ones(3)], {"k": 1, "axis": 1}, AxisError, "top_k: axis 1"),
        ([np.ones(3)], {"k": 1.5}, DTypeError, "top_k: k=1.5"),
    ],
)  # fmt: skip
def top_k(xp, x, /, k, *, axis=-1):
    """The `k` largest elements along an axis, the largest first, and where they are.

    Args:
        x: array, of any shape but ().
        k: how many; not more than there are.
        axis: along which.

    Returns:
        Tensor of the elements, and int64 Tensor of their indices, both `k` long along the axis.
        Of equal elements the first comes first.

    Raises:
        ArgumentError: `k` is negative, or more than there are.
        AxisError: an axis that `x` does not have.

    >>> values, indices = gg.top_k([3.0, 1.0, 2.0], 2)
    >>> print(values, indices)
    [3. 2.] [0 2]
    """
    if not -x.ndim <= axis < x.ndim:
        raise AxisError(f"top_k: axis {axis} is out of bounds for the shape {x.shape}.")
    if not isinstance(k, (int, np.integer)):
        raise DTypeError(f"top_k: k={k!r} is not an integer.")
    if not 0 <= k <= x.shape[axis]:
        raise ArgumentError(f"top_k: k={k} is not from 0 to {x.shape[axis]}, the axis's length.")
    axis %= x.ndim
    indices = _order(xp, x, axis, descending=True)[(slice(None),) * axis + (slice(k),)]
    return xp.lib.take_along_axis(x, indices, axis=axis), indices


def _check_kth(name, n, kth):
    for k in kth if isinstance(kth, (list, tuple)) else [kth]:
        if not -n <= k < n:
            raise ArgumentError(f"{name}: kth={k} is out of bounds for an axis of length {n}.")


def _first_axis(xp, name, x, axis):
    """`x`, flat if `axis` is None, and the axis; AxisError if there is none of that number."""
    if axis is None:
        return xp.reshape(x, (x.size,)), 0
    if not -x.ndim <= axis < x.ndim:
        raise AxisError(f"{name}: axis {axis} is out of bounds for the shape {x.shape}.")
    return x, axis


_KTH = [
    ([np.ones(3)], {"kth": 3}, ArgumentError, "kth=3"),
    ([np.ones(3)], {"kth": 0, "axis": 1}, AxisError, "partition: axis 1"),
]


def _partition_samples(rng):
    for k, (args, keywords) in enumerate(along_axis({"axis": None})(rng)):
        yield args, {"kth": (0, 1, -1, [0, 1])[k], **keywords}


@op(
    kinds="fi", samples=_partition_samples, errors=_KTH,
    ref=lambda x, kth, axis=-1: np.sort(x, axis=axis),
)  # fmt: skip
def partition(xp, x, /, kth, axis=-1):
    """Put the k-th smallest element in its place: smaller ones before it, larger ones behind.

    The whole axis is sorted, which is one way to do it: so the CPU and the GPU agree.

    Args:
        x: array, of any shape but ().
        kth: an int, or a list of them.
        axis: along which; None takes the elements in row-major order.

    Returns:
        Tensor of the shape of `x`; of one axis if `axis` is None.

    Raises:
        ArgumentError: `kth` is beyond the end.
        AxisError: an axis that `x` does not have.

    >>> print(gg.partition([3.0, 1.0, 2.0], 1)[1])
    2.0
    """
    x, axis = _first_axis(xp, "partition", x, axis)
    _check_kth("partition", x.shape[axis], kth)
    return xp.sort(x, axis=axis)


@op(
    kinds="fi", samples=_partition_samples, errors=_KTH,
    ref=lambda x, kth, axis=-1: np.argsort(x, axis=axis, stable=True),
)  # fmt: skip
def argpartition(xp, x, /, kth, axis=-1):
    """Indices that put the k-th smallest element in its place, as `partition` does.

    Args:
        x: array, of any shape but ().
        kth: an int, or a list of them.
        axis: along which; None takes the elements in row-major order.

    Returns:
        int64 Tensor of the shape of `x`. It has no gradient.

    Raises:
        ArgumentError: `kth` is beyond the end.
        AxisError: an axis that `x` does not have.

    >>> print(gg.argpartition([3.0, 1.0, 2.0], 0)[0])
    1
    """
    x, axis = _first_axis(xp, "argpartition", x, axis)
    _check_kth("argpartition", x.shape[axis], kth)
    return xp.argsort(x, axis=axis)


@op(
    variadic=True, kinds="fi", ref=lambda keys, axis=-1: np.lexsort(keys, axis),
    samples=calls(
        lambda rng: ([[np.array([1.0, 0.0, 1.0]), np.array([2.0, 2.0, 1.0])]], {}),
        lambda rng: ([[uniform(rng, 2, 3), np.ones((2, 3))]], {"axis": 0}),
        lambda rng: ([[uniform(rng, 4)]], {}),
    ),
    errors=[
        ([[np.ones(2), np.ones(3)]], {}, ShapeError, r"lexsort.*\(2,\).*\(3,\)"),
        ([[np.ones(2)]], {"axis": 1}, AxisError, "axis 1"),
    ],
)  # fmt: skip
def lexsort(xp, keys, /, axis=-1):
    """Indices that sort by several keys: by the last, among equals by the one before, and so on.

    Args:
        keys: list of arrays of one shape.
        axis: along which.

    Returns:
        int64 Tensor of that shape. It has no gradient.

    Raises:
        ShapeError: the shapes differ.
        AxisError: an axis that the keys do not have.

    >>> print(gg.lexsort([[3.0, 1.0, 2.0], [1.0, 1.0, 0.0]]))
    [2 1 0]
    """
    if len({tuple(key.shape) for key in keys}) > 1:
        shapes = ", ".join(str(key.shape) for key in keys)
        raise ShapeError(f"lexsort: the keys are of one shape, not of {shapes}.")
    order = xp.argsort(keys[0], axis=axis)
    for key in keys[1:]:
        ranks = xp.argsort(xp.take_along_axis(key, order, axis=axis), axis=axis)
        order = xp.take_along_axis(order, ranks, axis=axis)
    return order


@op(
    kinds="c",
    samples=shaped(([(4,)], {}), ([(2, 3)], {}), ([(0,)], {})),
    errors=[([np.array(1j)], {}, AxisError, "axis -1")],
)  # fmt: skip
def sort_complex(xp, x, /):
    """Sort along the last axis by the real part, among equals by the imaginary part.

    Args:
        x: array, of any shape but ().

    Returns:
        Tensor of the shape of `x`, complex.

    Raises:
        AxisError: `x` is 0-d.

    >>> print(gg.sort_complex([2 + 1j, 1 + 0j, 2 + 0j]))
    [1.+0.j 2.+0.j 2.+1.j]
    """
    if x.dtype.kind != "c":
        return xp.astype(xp.sort(x), np.result_type(x.dtype, np.complex64))
    order = xp.lexsort([xp.imag(x), xp.real(x)])
    return xp.take_along_axis(x, order, axis=-1)
