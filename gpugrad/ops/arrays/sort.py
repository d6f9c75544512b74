"""Sorting, partitions, searching in sorted arrays, the largest elements."""

import functools
import math

import numpy as np

from gpugrad.autodiff.batched import all_batched
from gpugrad.core.backend import NUMPY, SCALARS
from gpugrad.core.samples import along_axis, calls, shaped, uniform
from gpugrad.core.tensor import Tensor
from gpugrad.errors import ArgumentError, AxisError, DTypeError, ShapeError, saying_where
from gpugrad.kernels.cpu.large import MIDDLE, kernels
from gpugrad.ops._axes import check_axis, flatten_or_check_axis, index_along
from gpugrad.ops.arrays import moves_in_c, sort_numpy
from gpugrad.registry.record import op


def _order(xp, x, axis, descending):
    """Indices that sort stably, also in descending order."""
    if xp is NUMPY:
        return sort_numpy.order(x, axis, descending)
    if not descending:
        return xp.lib.argsort(x, axis=axis, stable=True)
    back = xp.lib.argsort(xp.lib.flip(x, axis=axis), axis=axis, stable=True)
    return x.shape[axis] - 1 - xp.lib.flip(back, axis=axis)


def _argsort_reference(x, axis=-1, descending=False):
    def order(v):  # sorted() is stable, also with reverse=True
        return np.array(sorted(range(len(v)), key=v.__getitem__, reverse=descending), dtype=int)

    return np.apply_along_axis(order, axis, x) if x.size else np.zeros(x.shape, int)


def _argsort_samples(rng):
    yield from along_axis({"axis": 1, "descending": True})(rng)
    yield [rng.integers(0, 3, 6).astype(float)], {}  # with ties
    yield [rng.integers(0, 3, (2, 5)).astype(float)], {"axis": 1, "descending": True}
    yield [uniform(rng, 2, 0)], {}


@op(
    differentiable=False,
    kinds="fi",
    ref=_argsort_reference,
    batch="axis",
    c_call=moves_in_c.argsort,
    samples=_argsort_samples,
    errors=[([np.ones(3)], {"axis": 1}, AxisError, "argsort.*axis 1")],
    captures=True,
)
def argsort(xp, x, /, axis=-1, *, descending=False, stable=True):
    """Indices that sort an array along an axis; their gradient is None.

    Returns:
        int64 Tensor of the shape of `x`.

    >>> print(gg.argsort([3.0, 1.0, 2.0]))
    [1 2 0]
    """
    return _order(xp, x, axis, descending)


def _ranks(xp, x, axis):
    """The place of each element in the sorted array."""
    return xp.argsort(xp.argsort(x, axis=axis), axis=axis)


def _sort_vjp(xp, g, x, axis, descending):
    order = xp.argsort(x, axis=axis, descending=descending)
    return xp.scatter_along_axis(g, order, axis=axis, shape=x.shape, unique=True)


def _sort_jvp(xp, t, x, axis, descending):
    order = xp.argsort(x, axis=axis, descending=descending)
    return xp.take_along_axis(t, order, axis=axis)


@op(
    vjp=[_sort_vjp],
    jvp=[_sort_jvp],
    c_call=moves_in_c.sort,
    kinds="fci",
    batch="axis",
    ref=lambda x, axis=-1, descending=False: (
        -np.sort(-x, axis=axis) if descending else np.sort(x, axis=axis)
    ),
    samples=along_axis({"axis": 1, "descending": True}),
    errors=[([np.ones(3)], {"axis": 1}, AxisError, "sort.*axis 1")],
    captures=True,
)
def sort(xp, x, /, axis=-1, *, descending=False, stable=True):
    """Sort an array along an axis; each gradient goes back to its element's place.

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
    """Sort both arrays together: an element's index is its rank there minus its rank in `x2`."""
    if not (batched[0] or batched[2]):
        return xp.searchsorted(x1, x2, sorter, side=side)
    pairs = zip((x1, x2, sorter), batched, strict=True)
    arrays = [(x, b) for x, b in pairs if x is not None and type(x) not in SCALARS]
    x1, *rest = all_batched(xp, [b for _, b in arrays], [x for x, _ in arrays])
    if sorter is not None:
        x1 = xp.take_along_axis(x1, rest.pop(), axis=1)
    if not rest:  # a number
        return xp.count_nonzero(x1 < x2 if side == "left" else x1 <= x2, axis=1)
    x2 = xp.reshape(rest[0], (x1.shape[0], math.prod(rest[0].shape[1:])))
    # argsort is stable, so the order of concatenation decides between equal elements
    both = xp.concat([x2, x1] if side == "left" else [x1, x2], axis=1)
    of_x2 = slice(0, x2.shape[1]) if side == "left" else slice(x1.shape[1], None)
    rank = xp.getitem(_ranks(xp, both, axis=1), index=(slice(None), of_x2))
    return xp.reshape(rank - _ranks(xp, x2, axis=1), rest[0].shape)


@op(
    name="searchsorted",
    arrays=("x1", "x2", "sorter"),
    differentiable=False,
    kinds="fi",
    ref=_searchsorted_reference,
    batch=_searchsorted_batch,
    samples=calls(
        lambda rng: [np.sort(uniform(rng, 5)), uniform(rng, 2, 3)],
        lambda rng: ([np.array([0.0, 1.0, 1.0]), np.array([1.0, 2.0])], {"side": "right"}),
        lambda rng: [np.array([0.0, 1.0, 1.0]), np.array(1.0)],
        lambda rng: ([np.array([2.0, 0.0]), np.array([1.0])], {"sorter": np.array([1, 0])}),
        lambda rng: [uniform(rng, 0), uniform(rng, 2)],
    ),
    errors=[
        ([np.ones((2, 2)), np.ones(2)], {}, ShapeError, r"searchsorted.*\(2, 2\)"),
        ([np.ones(2), np.ones(2)], {"side": "up"}, ArgumentError, "'left' or 'right'"),
    ],
    captures=True,
)
def _searchsorted(xp, x1, x2, /, sorter=None, *, side="left"):
    """The op behind `gg.searchsorted`."""
    if x1.ndim != 1:
        raise ShapeError(f"searchsorted: x1 must be one-dimensional, its shape is {x1.shape}.")
    if side not in ("left", "right"):
        raise ArgumentError(f"searchsorted: side must be 'left' or 'right', got {side!r}.")
    x2 = xp.lib.asarray(x2)
    if xp is NUMPY and x2.size >= MIDDLE and sorter is None:
        out = kernels("search").searchsorted(x1, x2, side)
        if out is not NotImplemented:
            return out
    return xp.lib.asarray(xp.lib.searchsorted(x1, x2, side=side, sorter=sorter))


@saying_where
def searchsorted(x1, x2, /, side="left", sorter=None) -> Tensor:
    """Indices at which elements would be inserted into a sorted array; the gradient is None.

    Args:
        x1: one-dimensional array in ascending order.
        x2: array of any shape, or a number: the elements to insert.
        side: ``"left"`` inserts before equal elements, ``"right"`` after them.
        sorter: integers that sort `x1`, if it is not sorted itself.

    Returns:
        int64 Tensor of the shape of `x2`.

    Raises:
        ShapeError: `x1` is not one-dimensional.
        ArgumentError: `side` is neither of the two.

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
    vjp=[_top_k_vjp],
    outputs=2,
    kinds="fc",
    ref=_top_k_reference,
    batch="axis",
    samples=shaped(
        ([(5,)], {"k": 2}),
        ([(2, 3)], {"k": 3}),
        ([(4, 2)], {"k": 2, "axis": 0}),
        ([(3,)], {"k": 0}),
    ),
    errors=[
        ([np.ones(3)], {"k": 4}, ArgumentError, "top_k: k=4 .* to 3"),
        ([np.ones(3)], {"k": 1, "axis": 1}, AxisError, "top_k: axis 1"),
        ([np.ones(3)], {"k": 1.5}, DTypeError, "top_k: k=1.5"),
    ],
    captures=True,
)
def top_k(xp, x, /, k, *, axis=-1):
    """The `k` largest elements along an axis in descending order, and their indices.

    Args:
        k: int, at most the length of the axis.

    Returns:
        Tensor of the elements, and int64 Tensor of their indices, both of length `k` along the
        axis. Equal elements keep their order.

    >>> values, indices = gg.top_k([3.0, 1.0, 2.0], 2)
    >>> print(values, indices)
    [3. 2.] [0 2]
    """
    axis = check_axis("top_k", axis, x.shape)
    if not isinstance(k, (int, np.integer)):
        raise DTypeError(f"top_k: k={k!r} is not an integer.")
    if not 0 <= k <= x.shape[axis]:
        raise ArgumentError(f"top_k: k={k} must be from 0 to {x.shape[axis]}, the axis's length.")
    if xp is NUMPY and x.size >= MIDDLE and axis == x.ndim - 1:
        largest = kernels("top_k").top_k(x, int(k))
        if largest is not NotImplemented:
            return largest
    indices = _order(xp, x, axis, descending=True)[index_along(axis, slice(k))]
    library = xp if xp is NUMPY else xp.lib
    return library.take_along_axis(x, indices, axis=axis), indices


def _check_kth(name, n, kth):
    for k in kth if isinstance(kth, (list, tuple)) else [kth]:
        if not -n <= k < n:
            raise ArgumentError(f"{name}: kth={k} is out of bounds for an axis of length {n}.")


_KTH = [
    ([np.ones(3)], {"kth": 3}, ArgumentError, "kth=3"),
    ([np.ones(3)], {"kth": 0, "axis": 1}, AxisError, "partition: axis 1"),
]


def _partition_samples(rng):
    for k, (args, keywords) in enumerate(along_axis({"axis": None})(rng)):
        yield args, {"kth": (0, 1, -1, [0, 1])[k], **keywords}


_partition_op = functools.partial(op, kinds="fi", samples=_partition_samples, errors=_KTH)


@_partition_op(ref=lambda x, kth, axis=-1: np.sort(x, axis=axis))
def partition(xp, x, /, kth, axis=-1):
    """Put the k-th smallest element in its sorted place: smaller ones before it, larger after it.

    Sorts the whole axis, so that the CPU and the GPU agree.

    Args:
        kth: an int, or a list of ints.
        axis: int; None partitions the flattened array.

    Returns:
        Tensor of the shape of `x`; of one axis if `axis` is None.

    >>> print(gg.partition([3.0, 1.0, 2.0], 1)[1])
    2.0
    """
    x, axis = flatten_or_check_axis(xp, "partition", x, axis)
    _check_kth("partition", x.shape[axis], kth)
    return xp.sort(x, axis=axis)


@_partition_op(ref=lambda x, kth, axis=-1: np.argsort(x, axis=axis, stable=True))
def argpartition(xp, x, /, kth, axis=-1):
    """Indices that partition an array as `partition` does; their gradient is None.

    Args:
        kth: an int, or a list of ints.
        axis: int; None partitions the flattened array.

    Returns:
        int64 Tensor of the shape of `x`.

    >>> print(gg.argpartition([3.0, 1.0, 2.0], 0)[0])
    1
    """
    x, axis = flatten_or_check_axis(xp, "argpartition", x, axis)
    _check_kth("argpartition", x.shape[axis], kth)
    return xp.argsort(x, axis=axis)


@op(
    variadic=True,
    kinds="fi",
    ref=lambda keys, axis=-1: np.lexsort(keys, axis),
    samples=calls(
        lambda rng: [[np.array([1.0, 0.0, 1.0]), np.array([2.0, 2.0, 1.0])]],
        lambda rng: ([[uniform(rng, 2, 3), np.ones((2, 3))]], {"axis": 0}),
        lambda rng: [[uniform(rng, 4)]],
    ),
    errors=[
        ([[np.ones(2), np.ones(3)]], {}, ShapeError, r"lexsort.*\(2,\).*\(3,\)"),
        ([[np.ones(2)]], {"axis": 1}, AxisError, "axis 1"),
    ],
)
def lexsort(xp, keys, /, axis=-1):
    """Indices that sort by several keys: by the last one, ties by the one before, and so on.

    Args:
        keys: list of arrays of the same shape.

    Returns:
        int64 Tensor of that shape. Its gradient is None.

    >>> print(gg.lexsort([[3.0, 1.0, 2.0], [1.0, 1.0, 0.0]]))
    [2 1 0]
    """
    if len({tuple(key.shape) for key in keys}) > 1:
        shapes = ", ".join(str(key.shape) for key in keys)
        raise ShapeError(f"lexsort: the keys must have the same shape, not {shapes}.")
    order = xp.argsort(keys[0], axis=axis)
    for key in keys[1:]:
        ranks = xp.argsort(xp.take_along_axis(key, order, axis=axis), axis=axis)
        order = xp.take_along_axis(order, ranks, axis=axis)
    return order


@op(
    kinds="c",
    samples=shaped([(4,)], [(2, 3)], [(0,)]),
    errors=[([np.array(1j)], {}, AxisError, "axis -1")],
)
def sort_complex(xp, x, /):
    """Sort along the last axis by the real part, ties by the imaginary part.

    Args:
        x: array of at least one axis.

    Returns:
        Complex Tensor of the shape of `x`.

    >>> print(gg.sort_complex([2 + 1j, 1 + 0j, 2 + 0j]))
    [1.+0.j 2.+0.j 2.+1.j]
    """
    if x.dtype.kind != "c":
        return xp.astype(xp.sort(x), np.result_type(x.dtype, np.complex64))
    order = xp.lexsort([xp.imag(x), xp.real(x)])
    return xp.take_along_axis(x, order, axis=-1)
