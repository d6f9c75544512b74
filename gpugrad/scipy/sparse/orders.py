"""Comparisons, minima and maxima of sparse arrays."""

from __future__ import annotations

import operator
import warnings
from collections.abc import Callable
from typing import Any

import numpy as np

from gpugrad.core.backend import SCALARS
from gpugrad.core.backend import TENSOR as xp
from gpugrad.core.tensor import Tensor
from gpugrad.errors.classes import warning_like
from gpugrad.numpy.creation import asarray
from gpugrad.scipy.sparse.changes import Changes
from gpugrad.scipy.sparse.pattern import SCIPY, Pattern, check_shape, gathered
from gpugrad.scipy.sparse.structure import CLASSES, dense, is_number


class Ordered(Changes):
    """The methods of a sparse array that compare entries, with each other and with zeros."""

    def _compared(self, other: Any, how: Callable[[Any, Any], Any]) -> Any:
        """A sparse array of bools, by SciPy on the host; without a derivative."""
        if isinstance(other, Ordered):
            other = other.broadcast_to(self.shape) if 1 in other.shape else other
            other = other.on_host()
        elif isinstance(other, Tensor):
            other = other.numpy()
        result = how(self.on_host(), other)
        if isinstance(result, np.ndarray):
            return asarray(np.asarray(result), device=self.device)
        return type(self)(result, device=self.device) if SCIPY.issparse(result) else result

    def __eq__(self, other: Any) -> Any:
        return self._compared(other, operator.eq)

    def __ne__(self, other: Any) -> Any:
        return self._compared(other, operator.ne)

    def __lt__(self, other: Any) -> Any:
        return self._compared(other, operator.lt)

    def __le__(self, other: Any) -> Any:
        return self._compared(other, operator.le)

    def __gt__(self, other: Any) -> Any:
        return self._compared(other, operator.gt)

    def __ge__(self, other: Any) -> Any:
        return self._compared(other, operator.ge)

    __hash__ = object.__hash__

    def broadcast_to(self, shape: Any) -> Any:
        """The array with rows or columns repeated, as NumPy's function of that name."""
        a = self.tocsr()
        for axis, n in enumerate(shape):
            if self.ndim == 2 == len(shape) and a.shape[axis] == 1 != n:
                index = np.zeros(n, int)
                a = a[index] if axis == 0 else a[:, index]
        check_shape("broadcast_to", shape, a.shape)
        return a

    def _extreme_with(self, other: Any, name: str) -> Any:
        combine: Any = getattr(xp, name)
        if is_number(other):
            value: Any = other if isinstance(other, (Tensor, *SCALARS)) else np.asarray(other)[()]
            kept = combine(self.sum_of_places().data, value)
            if (value > 0) if name == "maximum" else (value < 0):
                text = f"Taking {name} with {'>' if name == 'maximum' else '<'} 0 number results "
                kind = warning_like(SCIPY.SparseEfficiencyWarning)
                warnings.warn(f"{text}to a dense matrix.", kind, stacklevel=3)
                return CLASSES["csr", self.is_array](combine(self.toarray(), value))
            return self.sum_of_places().with_data(kept)
        if SCIPY.issparse(other):
            other = type(self)(other, device=self.device)
        if not isinstance(other, Ordered):
            return combine(self.toarray(), dense(other, self))
        if other.shape != self.shape:
            other = other.broadcast_to(self.shape)
        a, b = (x.sum_of_places().tocsr() for x in (self, other))
        union = (a.pattern.ones + b.pattern.ones).tocsr()
        union.sum_duplicates()
        union = Pattern(union)
        sides = [gathered(x.data, _places(x.pattern, union)) for x in (a, b)]
        return a._made(combine(*sides), union)

    def maximum(self, other: Any) -> Any:
        """Elementwise maximum with a number or an array; sparse if that is, or not above 0."""
        return self._extreme_with(other, "maximum")

    def minimum(self, other: Any) -> Any:
        """Elementwise minimum with a number or an array; sparse if that is, or not below 0."""
        return self._extreme_with(other, "minimum")

    def _extreme(self, axis: Any, out: Any, explicit: bool, name: str) -> Any:
        """The greatest or least element, zeros among them unless `explicit`."""
        if out is not None:
            raise ValueError("Sparse arrays do not support an 'out' parameter.")
        if (not self.nnz and explicit) or 0 in self.shape:
            raise ValueError("zero-size array to reduction operation")
        a, combine = self.sum_of_places(), getattr(xp, f"{name}imum")
        entries, size = a._entries(), int(np.prod(self.shape))
        if axis is None or self.ndim == 1:
            if not entries.size:
                return xp.sum(entries)
            most = getattr(xp, name)(entries)
            return most if explicit or entries.size == size else combine(most, most * 0)
        axis = int(np.lib.array_utils.normalize_axis_index(axis, 2))
        rows = a.pattern.on(a.device, "col" if axis == 0 else "row")
        n = self.shape[1 - axis]
        counts = np.bincount(a.pattern.col if axis == 0 else a.pattern.row, minlength=n)
        most = getattr(xp, f"segment_{name}")(entries, rows, n)
        found = asarray(counts > 0, device=a.device)
        most = xp.where(found, most, 0)
        if not explicit:
            whole = asarray(counts == self.shape[axis], device=a.device)
            most = xp.where(whole, most, combine(most, most * 0))
        result = most if self.is_array else xp.expand_dims(most, axis=axis)
        return CLASSES["coo", self.is_array](result)

    def max(self, axis: Any = None, out: Any = None, *, explicit: bool = False) -> Any:
        """The greatest element, or a sparse array of those along an axis; zeros count."""
        return self._extreme(axis, out, explicit, "max")

    def min(self, axis: Any = None, out: Any = None, *, explicit: bool = False) -> Any:
        """The least element, or a sparse array of those along an axis; zeros count."""
        return self._extreme(axis, out, explicit, "min")

    def argmax(self, axis: Any = None, out: Any = None, *, explicit: bool = False) -> Any:
        """The position of the greatest element, by SciPy on the host."""
        return self._on_values("argmax", axis, out, explicit=explicit)

    def argmin(self, axis: Any = None, out: Any = None, *, explicit: bool = False) -> Any:
        """The position of the least element, by SciPy on the host."""
        return self._on_values("argmin", axis, out, explicit=explicit)

    def nanmax(self, axis: Any = None, out: Any = None, *, explicit: bool = False) -> Any:
        """The greatest element that is not NaN, by SciPy on the host; without a derivative."""
        return self._on_values("nanmax", axis, out, explicit=explicit)

    def nanmin(self, axis: Any = None, out: Any = None, *, explicit: bool = False) -> Any:
        """The least element that is not NaN, by SciPy on the host; without a derivative."""
        return self._on_values("nanmin", axis, out, explicit=explicit)

    def _on_values(self, name: str, *args: Any, **keywords: Any) -> Any:
        result = getattr(self.on_host(), name)(*args, **keywords)
        if SCIPY.issparse(result):
            return CLASSES[result.format, self.is_array](result, device=self.device)
        return asarray(np.asarray(result), device=self.device)


def _places(pattern: Any, union: Any) -> Any:
    """For each entry of a pattern's union with others, its position in the data, or 0."""
    order = np.argsort(union.flat)
    found = np.zeros(union.flat.size, np.int64)
    found[order[np.searchsorted(union.flat[order], pattern.flat)]] = pattern.entries.data
    return found
