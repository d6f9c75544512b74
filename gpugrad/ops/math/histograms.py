"""Counts, or sums of weights, by value and by bin."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from gpugrad.core.arguments import check_numbers
from gpugrad.core.backend import SCALARS, TENSOR
from gpugrad.core.samples import calls, shaped, uniform
from gpugrad.core.tensor import Tensor, tensor
from gpugrad.errors import ArgumentError, DTypeError, ShapeError, saying_where
from gpugrad.registry.record import op


def _bincount_batch(xp, batched, x, weights, *, minlength):
    """All examples at once: each counts into its own stretch of one result."""
    if not minlength:
        raise ShapeError(
            "bincount: under gg.vmap minlength= is needed, since the length of the result must "
            "not depend on the values."
        )
    shape = x.shape if batched[0] else weights.shape
    x = xp.broadcast_to(x, shape)
    weights = None if weights is None else xp.broadcast_to(weights, shape)
    each = minlength + 1  # the last one collects integers beyond `minlength`
    first = xp.getitem(x, index=(slice(None), slice(0, 1))) * 0
    if not shape[1]:  # nothing to count
        empty = xp.sum(x if weights is None else weights, axis=1, keepdims=True)
        return xp.broadcast_to(empty, (shape[0], minlength))
    start = xp.cumulative_sum(first + each, axis=0) - each
    x = xp.reshape(xp.minimum(x, minlength) + start, (-1,))
    weights = None if weights is None else xp.reshape(weights, (-1,))
    y = xp.reshape(xp.bincount(x, weights, minlength=shape[0] * each), (shape[0], each))
    return xp.getitem(y, index=(slice(None), slice(minlength)))


def _bincount_samples(rng):
    yield [np.array([0, 3, 1, 3])], {}
    yield [np.array([2, 0, 2]), uniform(rng, 3)], {"minlength": 5}
    yield [np.array([1, 1]), uniform(rng, 2)], {}
    yield [np.array([], np.int64), uniform(rng, 0)], {"minlength": 2}


def _bincount_reference(x, weights=None, minlength=0):
    out = np.zeros(max(minlength, max(x, default=-1) + 1), int if weights is None else float)
    for i, w in zip(x, np.ones_like(x) if weights is None else weights, strict=True):
        out[i] += w
    return out


@op(
    vjp=[None, lambda xp, g, x: xp.take(g, x)],
    linear="each",
    arrays=("x", "weights"),
    batch=_bincount_batch,
    samples=_bincount_samples,
    ref=_bincount_reference,
    errors=[
        ([np.array([-1])], {}, ArgumentError, "bincount"),
        ([np.array([0.5])], {}, DTypeError, "bincount: .*float64"),
        ([np.array([[1]])], {}, ShapeError, r"bincount: .*\(1, 1\)"),
        ([np.array([1]), np.ones(2)], {}, ShapeError, r"bincount: .*\(2,\)"),
    ],
)
def bincount(xp, x, /, weights=None, minlength=0):
    """How often each integer from 0 on occurs, or the sum of its weights.

    Args:
        x: integers of shape (n,), none negative.
        weights: array of shape (n,); they get gradients.
        minlength: least length of the result. Under `gg.vmap` it is the exact length, and
            larger integers are left out.

    Returns:
        Tensor of shape (max(x) + 1,) or longer: int64, or of the dtype of the weights.

    >>> print(gg.bincount([0, 2, 2]))
    [1 0 2]
    """
    if x.dtype.kind not in "biu" and x.size:
        raise DTypeError(f"bincount: x must be integers, not {x.dtype}.")
    if x.ndim != 1 or (weights is not None and weights.shape != x.shape):
        more = "" if weights is None else f" and weights {weights.shape}"
        raise ShapeError(f"bincount: x {x.shape}{more} must be equally long vectors.")
    counts = xp.lib.bincount(x.astype(np.int64, copy=False), weights, minlength=minlength)
    floats = weights is not None and weights.dtype.kind == "f"
    return counts.astype(weights.dtype if floats else counts.dtype, copy=False)


# ---- bins --------------------------------------------------------------------------------


def _digitize_batch(xp, batched, x, bins, *, right):
    """Bins of each example: how many edges are passed, counted one by one."""
    if not batched[1]:
        return xp.digitize(x, bins, right=right)
    n, size = bins.shape
    if not batched[0]:
        x = xp.broadcast_to(x, (n, *x.shape))
    shape = (n,) + (1,) * (x.ndim - 1)
    edges = xp.reshape(bins, (*shape, size))
    x = xp.expand_dims(x, axis=-1)
    if size < 2:
        return xp.sum(xp.astype(edges < x if right else edges <= x, np.int64), axis=-1)
    up, down = (edges < x, edges >= x) if right else (edges <= x, edges > x)
    ends = [xp.reshape(xp.getitem(bins, index=(slice(None), k)), (*shape, 1)) for k in (0, -1)]
    return xp.sum(xp.astype(xp.where(ends[0] > ends[1], down, up), np.int64), axis=-1)


def _digitize_samples(rng):
    edges = np.array([-1.0, 0.0, 0.0, 1.5])
    yield [uniform(rng, 2, 3), edges], {}
    yield [np.array([-1.0, 0.0, 1.5, 9.0]), edges], {"right": True}
    yield [np.array([-1.0, 0.0, 1.5, 9.0]), edges[::-1].copy()], {}
    yield [uniform(rng), edges[:1]], {}


@op(
    differentiable=False,
    kinds="fi",
    batch=_digitize_batch,
    samples=_digitize_samples,
    errors=[([np.ones(2), np.ones((2, 2))], {}, ShapeError, r"digitize: .*\(2, 2\)")],
    captures=True,
)
def digitize(xp, x, bins, /, right=False):
    """Index of the bin that each element falls into; the gradient is None.

    Args:
        bins: edges, of shape (n,), in ascending or descending order.
        right: whether a bin includes its right edge instead of its left one.

    Returns:
        int64 Tensor of the shape of `x`: i where bins[i - 1] <= x < bins[i]; 0 and n beyond.

    >>> print(gg.digitize([0.5, 2.5], [0.0, 1.0, 2.0]))
    [1 3]
    """
    if bins.ndim != 1:
        raise ShapeError(f"digitize: bins must have one axis, the shape is {bins.shape}.")
    return xp.lib.asarray(xp.lib.digitize(x, bins, right=right))


def _bin_edges_reference(x, bins, range=None):
    lines = x.reshape(np.prod(x.shape[:-1], dtype=int), x.shape[-1])
    edges = [np.histogram_bin_edges(line, bins, range) for line in lines]
    return np.reshape(edges, (*x.shape[:-1], bins + 1))


@op(
    differentiable=False,
    batch="stack",
    ref=_bin_edges_reference,
    samples=shaped(
        ([(5,)], {"bins": 3}),
        ([(2, 3)], {"bins": 2}),
        ([(4,)], {"bins": 2, "range": (0.0, 3.0)}),
        ([(0,)], {"bins": 2}),
        ([(1,)], {"bins": 1}),
    ),
    errors=[
        ([np.ones(3)], {"bins": 0}, ArgumentError, "bin_edges: .*bins=0"),
        ([np.ones(3)], {"bins": 2, "range": (1, 0)}, ArgumentError, r"bin_edges: .*\(1, 0\)"),
        ([np.ones(3)], {"bins": 2, "range": (0, np.inf)}, ArgumentError, "bin_edges: .*finite"),
    ],
    captures=True,
)
def bin_edges(xp, x, /, *, bins, range=None):
    """Edges of equal bins over the range of the last axis; `histogram` calls it.

    Args:
        range: pair of numbers: the first and the last edge instead.

    Returns:
        Tensor, bins + 1 long along the last axis; its gradient is None.
    """
    check_numbers("bin_edges", "biufV", x=x)
    if not isinstance(bins, (int, np.integer)) or bins < 1:
        raise ArgumentError(f"bin_edges: bins={bins!r} must be an int from 1, or an array.")
    if range is not None and not (len(range) == 2 and -math.inf < range[0] <= range[1] < math.inf):
        raise ArgumentError(f"bin_edges: range={range} must be a finite pair in ascending order.")
    lib, dtype = xp.lib, np.result_type(x.dtype, np.float32) if x.dtype.kind == "f" else np.float64
    shape = (*x.shape[:-1], 1)
    if range is not None or not x.shape[-1]:
        low, high = (lib.full(shape, v, dtype=dtype) for v in range or (0, 1))
    else:
        low, high = (f(x, axis=-1, keepdims=True).astype(dtype) for f in (lib.min, lib.max))
    half = (low == high).astype(dtype) * 0.5
    low, high = low - half, high + half
    step = lib.arange(bins + 1, dtype=dtype)
    edges = low + step * ((high - low) / bins)
    edges[..., -1:] = high
    return edges


def _place(xp, x, edges, equal):
    """The bin of each element, counted from 1; 0 or n + 1 outside."""
    n = edges.size - 1
    first, last = (xp.getitem(edges, index=(k,)) for k in (0, n))
    if not equal:
        return xp.where(xp.equal(x, last), n, xp.searchsorted(edges, x, side="right"))
    # computed, as a search is slow on the CPU, and corrected by one where rounding went wrong
    inside = (x >= first) & (x <= last)
    y = xp.where(inside, (x - first) * (n / (last - first)), 0.0)
    k = xp.minimum(xp.astype(y, np.int64), n - 1)
    k = k - xp.astype(x < xp.take(edges, k), np.int64)
    k = k + xp.astype((x >= xp.take(edges, k + 1)) & (k < n - 1), np.int64)
    return xp.where(inside, k + 1, 0)


@op(
    arrays=("x", "edges", "weights"),
    samples=calls(
        lambda rng: ([uniform(rng, 7), np.linspace(-1.0, 1.0, 5)], {"equal": True}),
        lambda rng: [uniform(rng, 2, 3), np.array([-1.0, 0.0, 0.5, 1.0])],
        lambda rng: [np.array([0.3, 1.2, 1.9]), np.array([0.0, 1.0, 2.0]), uniform(rng, 3)],
    ),
    ref=lambda x, edges, weights=None, equal=False: np.histogram(x, edges, weights=weights)[0],
    errors=[
        ([np.ones(2), np.ones((2, 2))], {}, ShapeError, r"bin_counts: .*\(2, 2\)"),
        ([np.ones(2), np.ones(1)], {}, ShapeError, r"bin_counts: .*\(1,\)"),
        ([np.ones(2), np.ones(2), np.ones(3)], {}, ShapeError, r"bin_counts: .*\(3,\)"),
    ],
)
def bin_counts(xp, x, edges, /, weights=None, *, equal=False):
    """How many elements, or how much weight, each bin holds; `histogram` calls it.

    Args:
        edges: of shape (n + 1,), in ascending order; the last bin includes its right edge.
        weights: array of the shape of `x`; they get gradients.
        equal: whether the edges are equally spaced, as `bin_edges` are.

    Returns:
        Tensor of shape (n,): int64, or of the dtype of the weights.
    """
    if any(type(a) in SCALARS for a in (x, edges, weights)):
        raise DTypeError("bin_counts: arrays are needed, not numbers.")
    if edges.ndim != 1 or edges.size < 2:
        raise ShapeError(f"bin_counts: two or more edges are needed, their shape is {edges.shape}.")
    if weights is not None and weights.shape != x.shape:
        raise ShapeError(f"bin_counts: weights {weights.shape} for x {x.shape}.")
    n = edges.size - 1
    x = xp.reshape(x, (x.size,))
    weights = None if weights is None else xp.reshape(weights, (weights.size,))
    counts = xp.bincount(_place(xp, x, edges, equal), weights, minlength=n + 2)
    return xp.getitem(counts, index=(slice(1, n + 1),))


def _edges_of(name: str, x: Tensor, bins: Any, range: Any) -> Tensor:
    if isinstance(bins, (int, np.integer)):
        return TENSOR.bin_edges(TENSOR.reshape(x, (x.size,)), bins=int(bins), range=range)
    if isinstance(bins, str):
        raise ArgumentError(f"{name}: bins={bins!r} must be a number of bins, or their edges.")
    edges = tensor(bins, x)
    # reading the edges of a Tensor from a GPU would synchronize
    known = edges._data if isinstance(bins, Tensor) else edges.numpy()
    if type(known) is np.ndarray and known.ndim and (known[1:] < known[:-1]).any():
        raise ArgumentError(f"{name}: the edges in bins must be in ascending order.")
    return edges


@saying_where
def histogram_bin_edges(x: Any, /, bins: Any = 10, range: Any = None) -> Tensor:
    """Edges of the bins that `histogram` uses.

    Args:
        x: array of any shape.
        bins: how many, or the edges themselves.
        range: first and last edge; the smallest and the largest element if None.

    Returns:
        Tensor of shape (bins + 1,). Its gradient is None.

    Raises:
        ArgumentError: no number of bins, edges out of order, or no range.

    >>> print(gg.histogram_bin_edges([1.0, 5.0, 2.0], bins=2))
    [1. 3. 5.]
    """
    return _edges_of("histogram_bin_edges", tensor(x), bins, range)


@saying_where
def histogram(
    x: Any, /, bins: Any = 10, range: Any = None, density: bool | None = False, weights: Any = None
) -> tuple[Tensor, Tensor]:
    """How many elements fall into each of a row of bins, as numpy.histogram.

    Args:
        x: array of any shape.
        bins: how many equal ones, or their edges in ascending order.
        range: first and last edge of equal bins; what lies outside is not counted. If it is
            None and an element is NaN, so are the edges, and nothing is counted.
        density: whether to divide by the total and the widths of the bins.
        weights: array of the shape of `x`: the weight of each element. They get gradients; `x` gets
            none, because counts do not vary with it.

    Returns:
        Tensor of the counts, and Tensor of the edges, which is longer by one.

    Raises:
        ArgumentError: no number of bins, edges out of order, or no range.
        ShapeError: fewer than two edges, or weights of another shape.

    >>> counts, edges = gg.histogram([1.0, 2.0, 2.5, 5.0], bins=2)
    >>> print(counts, edges)
    [3 1] [1. 3. 5.]
    """
    x = tensor(x)
    edges = _edges_of("histogram", x, bins, range)
    weights = None if weights is None else tensor(weights)
    equal = isinstance(bins, (int, np.integer))
    counts = TENSOR.bin_counts(x, edges, weights, equal=equal)
    if density:
        total = TENSOR.sum(counts)
        total = TENSOR.where(TENSOR.equal(total, 0), float("nan"), total)
        counts = counts / TENSOR.diff(edges) / total
    return counts, edges
