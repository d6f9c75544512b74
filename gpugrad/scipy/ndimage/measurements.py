"""Statistics of the elements with each label, as sums over segments."""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np

from gpugrad.core.backend import TENSOR as xp
from gpugrad.core.tensor import Tensor
from gpugrad.numpy.creation import asarray
from gpugrad.scipy.ndimage.common import DOUBLE, INTEGERS, SCIPY, array, as_scipy

_measured = as_scipy(direct=INTEGERS + "fd")


class _Groups(NamedTuple):
    """The elements, the row of each, and the row of each label of the index.

    Elements that do not count have the last row.
    """

    x: Tensor
    rows: Tensor
    places: Any
    n: int

    def of_labels(self, result: Tensor) -> Tensor:
        return xp.take(result, self.places, axis=0)

    def sums(self, x: Any) -> Tensor:
        return xp.segment_sum(x, self.rows, self.n + 1)

    def ones(self) -> Tensor:
        return asarray(np.ones(self.x.shape), device=self.x.device)

    def counts(self) -> Tensor:
        return self.sums(self.ones())


def _groups(x: Tensor, labels: Any, index: Any, kinds: str = "biuf") -> _Groups:
    """The groups, with elements in float64 if they have one of the `kinds`."""
    n, places = 1, np.array(0)
    if x.dtype.kind == "c" and labels is not None and np.ndim(index):
        raise TypeError("Complex type not supported for an array of labels")
    if labels is None:
        rows = asarray(np.zeros(x.shape, int), device=x.device)
    elif index is None:
        rows = xp.astype(array(labels, x) <= 0, np.dtype("int64"))
    else:
        wanted = np.asarray(index.numpy() if isinstance(index, Tensor) else index)
        names, places = np.unique(wanted, return_inverse=True)
        n, places, labels = len(names), places.reshape(wanted.shape), array(labels, x)
        rows = _rows(names, labels)
    try:
        shape = np.broadcast_shapes(x.shape, rows.shape)
    except ValueError as error:
        raise ValueError(f"labels of {rows.shape} do not fit input of {x.shape}") from error
    x = xp.astype(x, DOUBLE) if x.dtype.kind in kinds else x
    x, rows = (xp.reshape(xp.broadcast_to(t, shape), (-1,)) for t in (x, rows))
    return _Groups(x, rows, asarray(places, device=x.device), n)


def _rows(names: Any, labels: Tensor) -> Tensor:
    """The place of each label in the sorted names; their number for others."""
    n, device = len(names), labels.device
    if names.dtype.kind in "iu" and labels.dtype.kind in "biu" and np.ptp(names) < 2**20:
        table = np.full(np.ptp(names) + 3, n)  # reads 8 times as fast as a search
        table[names - names[0] + 1] = np.arange(n)
        offset = xp.clip(
            xp.astype(labels, np.dtype("int64")) - (int(names[0]) - 1), 0, len(table) - 1
        )
        return xp.take(asarray(table, device=device), offset)
    rows = xp.searchsorted(asarray(names, device=device), labels)
    known = xp.take(asarray(np.append(names, 0), device=device), rows, axis=0) == labels
    return xp.where(known, rows, n)


@_measured
def sum_labels(input, labels, index):
    """The sum of the elements with each label.

    >>> print(gg.scipy.ndimage.sum_labels([1.0, 2.0, 4.0], labels=[1, 2, 1], index=[1, 2]))
    [5. 2.]
    """
    if labels is None:
        return xp.sum(input)
    if not np.ndim(index) and input.dtype.kind in "biu":
        input = xp.astype(input, np.sum(np.zeros(0, input.dtype)).dtype)
    of = _groups(input, labels, index, "biuf" if np.ndim(index) else "")
    return of.of_labels(of.sums(of.x))


@_measured
def sum(input, labels, index):
    """The old name of `sum_labels`.

    >>> print(gg.scipy.ndimage.sum([1.0, 2.0, 4.0]))
    7.0
    """
    return sum_labels(input, labels, index)


@_measured
def mean(input, labels, index):
    """The mean of the elements with each label; NaN if there are none.

    >>> print(gg.scipy.ndimage.mean([1.0, 2.0, 4.0], labels=[1, 2, 1], index=[1, 2]))
    [2.5 2. ]
    """
    of = _groups(input, labels, index, _kinds(index))
    return xp.divide(of.of_labels(of.sums(of.x)), of.of_labels(of.counts()))


def _kinds(index: Any) -> str:
    """The kinds of elements that SciPy casts to float64: of one group, floats stay as they are."""
    return "biuf" if np.ndim(index) else "biu"


@_measured
def variance(input, labels, index):
    """The variance of the elements with each label.

    >>> print(gg.scipy.ndimage.variance([1.0, 2.0, 4.0], labels=[1, 2, 1], index=[1, 2]))
    [2.25 0.  ]
    """
    of = _groups(input, labels, index, _kinds(index))
    means = xp.astype(of.sums(of.x) / xp.maximum(of.counts(), 1.0), of.x.dtype)
    squares = xp.square(xp.abs(of.x - xp.take(means, of.rows, axis=0)))
    return of.of_labels(of.sums(squares)) / of.of_labels(of.counts())


@_measured
def standard_deviation(input, labels, index):
    """The root of the variance.

    >>> print(gg.scipy.ndimage.standard_deviation([1.0, 2.0, 4.0], [1, 2, 1], index=[1, 2]))
    [1.5 0. ]
    """
    return xp.sqrt(variance(input, labels, index))


def _extreme(segments: Any, x: Tensor, labels: Any, index: Any) -> Tensor:
    of = _groups(x, labels, index, "")
    found = of.of_labels(of.counts()) > 0
    return xp.where(found, of.of_labels(segments(of.x, of.rows, of.n + 1)), 0)


@_measured
def minimum(input, labels, index):
    """The least element with each label; 0 if there is none. Equal elements share the gradient.

    >>> print(gg.scipy.ndimage.minimum([1.0, 2.0, 4.0], labels=[1, 2, 1], index=[1, 2]))
    [1. 2.]
    """
    return _extreme(xp.segment_min, input, labels, index)


@_measured
def maximum(input, labels, index):
    """The greatest element with each label; 0 if there is none. Equal elements share the gradient.

    >>> print(gg.scipy.ndimage.maximum([1.0, 2.0, 4.0], labels=[1, 2, 1], index=[1, 2]))
    [4. 2.]
    """
    return _extreme(xp.segment_max, input, labels, index)


@_measured
def median(input, labels, index):
    """The median of the elements with each label; NaN if there are none.

    >>> print(gg.scipy.ndimage.median([1.0, 2.0, 4.0], labels=[1, 2, 1], index=[1, 2]))
    [2.5 2. ]
    """
    of = _groups(input, labels, index, "biu")
    values = xp.take(of.x, xp.lexsort((of.x, of.rows)), axis=0)
    counts = xp.astype(of.counts(), np.dtype("int64"))
    first, last = xp.cumulative_sum(counts) - counts, max(of.x.shape[0] - 1, 0)
    middle = [xp.clip(first + (counts - k) // 2, 0, last) for k in (1, 0)]
    means = (xp.take(values, middle[0], axis=0) + xp.take(values, middle[1], axis=0)) / 2
    return of.of_labels(xp.where(counts > 0, means, np.nan))


@_measured
def extrema(input, labels, index):
    """Minima and maxima, which are differentiable, and their positions.

    >>> print(*gg.scipy.ndimage.extrema([1.0, 4.0, 2.0])[:2])
    1.0 4.0
    """
    plain = [
        xp.stop_gradient(v).numpy() if isinstance(v, Tensor) else v for v in (input, labels, index)
    ]
    positions = SCIPY.extrema(*plain)[2:]
    return (minimum(input, labels, index), maximum(input, labels, index), *positions)


@_measured
def center_of_mass(input, labels, index):
    """The mean position of the elements with each label, weighted by their values.

    >>> print(*gg.scipy.ndimage.center_of_mass([[0.0, 1.0], [0.0, 3.0]]))
    0.75 1.0
    """
    if not input.ndim:
        raise IndexError("center_of_mass: an input of no axes has no positions")
    total, means = sum_labels(input, labels, index), []
    for k, n in enumerate(input.shape):
        at = np.arange(float(n)).reshape([-1 if i == k else 1 for i in range(input.ndim)])
        moment = input * asarray(at, device=input.device)
        means.append(xp.reshape(sum_labels(moment, labels, index) / total, (-1,)))
    centers = [tuple(m[j] for m in means) for j in range(math.prod(total.shape))]
    return centers if total.ndim else centers[0]
