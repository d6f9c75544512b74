"""Where the entries of a sparse array are: fixed integers, and the routines of SciPy over them.

A pattern is kept as one of SciPy's own sparse arrays on the host, whose entries are their positions
in the data, counted from 1. A structural operation (a transpose, a conversion, a slice, a stack)
runs SciPy's routine on it, and the positions in the result say which data to gather: see
`gathered`. So there is one mechanism for all of them, and all differentiate on either device.
"""

from __future__ import annotations

import weakref
from typing import Any

import numpy as np

from gpugrad.core.backend import NUMPY
from gpugrad.core.backend import TENSOR as xp
from gpugrad.core.devices import Device, adopt
from gpugrad.core.forking import cached_property
from gpugrad.core.tensor import Tensor, wrap
from gpugrad.errors import ArgumentError

SCIPY = NUMPY.scipy("sparse")
FORMATS = ("csr", "csc", "coo", "dia", "bsr")
"""Formats of patterns; those of `lil_array` and `dok_array` are CSR."""


def on(array: Any, device: Device) -> Tensor:
    """A host array of integers as a constant on a device."""
    return wrap(adopt(array, device))


def places(positions: Any, shape: tuple[int, ...]) -> Any:
    """For `at_places` of data of that shape: positions that are counted from 1, 0 for none."""
    index = np.asarray(positions, dtype=np.int64) - 1
    if index.shape == shape and np.array_equal(index.ravel(), np.arange(index.size)):
        return None  # all of them in order
    missing = index < 0
    return np.maximum(index, 0), missing if missing.any() else None


def at_places(data: Tensor, where: Any) -> Tensor:
    """The data at `places`, in their shape; 0 where there is none."""
    if where is None:
        return data
    index, missing = where
    if not data.size:
        return xp.astype(on(np.zeros(index.shape, np.int8), data.device), data.dtype)
    out = xp.take(data, on(index, data.device))
    return out if missing is None else xp.where(on(missing, data.device), 0, out)


def gathered(data: Tensor, positions: Any) -> Tensor:
    """The data at positions that are counted from 1, in their shape; 0 where a position is 0."""
    return at_places(data, places(positions, data.shape))


class Pattern:
    """The places of the entries, in one of SciPy's formats.

    Attributes:
        at: a SciPy array of the positions.
    """

    def __init__(self, at: Any) -> None:
        if at.format not in FORMATS:
            at = at.tocsr()
        at.data = np.arange(1, at.data.size + 1).reshape(at.data.shape)
        self.at = at
        self._there: dict[Any, Tensor] = {}
        self._moves: dict[Any, tuple[Any, Pattern]] = {}
        self._products: Any = weakref.WeakKeyDictionary()

    def leads_to(self, at: Any) -> tuple[Any, Pattern]:
        """The `places` and the pattern of an array that SciPy made of this one's positions."""
        at = at if at.format in FORMATS else at.tocsr()
        return places(at.data, self.at.data.shape), Pattern(at)

    def moved(self, how: str, *args: Any) -> tuple[Any, Pattern]:
        """The same of a method of SciPy's array; computed once."""
        if (how, *args) not in self._moves:
            self._moves[how, *args] = self.leads_to(getattr(self.at, how)(*args))
        return self._moves[how, *args]

    def on(self, device: Device, name: str) -> Tensor:
        """One of the attributes that are arrays, on a device; copied there once."""
        key = (name, device)
        if key not in self._there:
            self._there[key] = on(getattr(self, name), device)
        return self._there[key]

    def product(self, right: Pattern) -> tuple[Any, Any, Pattern]:
        """The positions of both factors in each term of a product, and the pattern of the terms.

        Of this one in COO form with the other in CSR form; computed once for two patterns.
        """
        if right not in self._products:
            at, starts = right.at, right.at.indptr.astype(np.int64)
            lengths = np.diff(starts)[self.col]
            one = np.repeat(np.arange(lengths.size), lengths)
            first = np.cumsum(lengths) - lengths
            other = np.arange(one.size) - (first - starts[self.col])[one]
            rows = self.row if self.at.ndim == 2 else np.zeros(lengths.size, np.int64)
            shape = (self.at.shape[0] if self.at.ndim == 2 else 1, at.shape[1])
            kind = SCIPY.coo_array if isinstance(self.at, SCIPY.sparray) else SCIPY.coo_matrix
            coo = kind((np.empty(one.size, np.int64), (rows[one], at.indices[other])), shape=shape)
            self._products[right] = one + 1, other + 1, Pattern(coo)
        found: tuple[Any, Any, Pattern] = self._products[right]
        return found

    @property
    def ones(self) -> Any:
        """A SciPy array with a 1 at each place."""
        at = self.at.copy()
        at.data = np.ones_like(at.data)
        return at

    @cached_property
    def is_distinct(self) -> bool:
        """Whether no entry stands twice."""
        at = self.at
        if at.format == "coo":
            rows = at if at.ndim == 2 else at.reshape((1, -1))
            return bool(rows.tocsr().nnz == at.nnz)  # it sums those that stand twice
        return at.format == "dia" or not _duplicates(at)

    @cached_property
    def rows_form(self) -> Any:
        """The same in CSR form; of a CSC array its transpose, which has the same data."""
        at = self.at
        if at.ndim == 1:
            at = at.reshape((1, -1))
        if at.format == "csc":
            return at.T
        return at if at.format == "csr" else at.tocsr()

    @cached_property
    def rows_places(self) -> Any:
        """The `places` of the data of `rows_form`."""
        by_rows = self.at.format in ("csr", "csc")
        return None if by_rows else places(self.rows_form.data, self.at.data.shape)

    @cached_property
    def indices(self) -> Any:
        """The columns in `rows_form`."""
        return self.rows_form.indices

    @cached_property
    def indptr(self) -> Any:
        """Where each row starts in `rows_form`."""
        return self.rows_form.indptr

    @cached_property
    def entries(self) -> Any:
        """The same in COO form, with the positions as data."""
        return self.at.tocoo(copy=False)

    @cached_property
    def row(self) -> Any:
        """The row of each of the `entries`."""
        return self.entries.coords[0].astype(np.int64, copy=False)

    @cached_property
    def col(self) -> Any:
        """The column of each of the `entries`."""
        return self.entries.coords[-1].astype(np.int64, copy=False)

    @cached_property
    def flat(self) -> Any:
        """The index of each of the `entries` in the raveled full array."""
        entries = self.entries
        return np.ravel_multi_index(entries.coords, entries.shape) if entries.nnz else self.row

    @cached_property
    def _distinct(self) -> tuple[Any, ...]:
        """The places of the entries, the group of each, how many there are, and their pattern."""
        flat, group = np.unique(self.flat, return_inverse=True)
        shape, kind = self.at.shape, type(self.at)
        coo = SCIPY.coo_array if isinstance(self.at, SCIPY.sparray) else SCIPY.coo_matrix
        at = coo((np.arange(1, flat.size + 1), np.unravel_index(flat, shape)), shape=shape)
        at.has_canonical_format = True
        at = kind(at)
        entries = places(self.entries.data, self.at.data.shape)
        return entries, group.ravel(), flat.size, places(at.data, flat.shape), Pattern(at)

    def without_duplicates(self, data: Tensor) -> tuple[Pattern, Tensor]:
        """The pattern with each place once, and the sums of the data there."""
        if self.is_distinct:
            return self, data
        entries, group, size, where, pattern = self._distinct
        sums = xp.segment_sum(at_places(data, entries), on(group, data.device), size)
        return pattern, at_places(sums, where)


def _duplicates(at: Any) -> bool:
    if at.has_canonical_format:
        return False
    at = at.copy()
    n = at.nnz
    at.sum_duplicates()
    return bool(at.nnz != n)


def check_shape(name: str, a: Any, b: Any) -> None:
    """SciPy's class of error for two shapes that differ."""
    if tuple(a) != tuple(b):
        raise ArgumentError(f"{name}: inconsistent shapes {tuple(a)} and {tuple(b)}.")
