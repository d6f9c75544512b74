"""Where the entries of a sparse array are: fixed integers, and the routines of SciPy over them.

A pattern is kept as one of SciPy's own sparse arrays on the host, whose entries are their positions
in the data, counted from 1. A structural operation (a transpose, a conversion, a slice, a stack)
runs SciPy's routine on it, and the positions in the result say which data to gather: see
`gathered`. So there is one mechanism for all of them, and all differentiate on either device.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from gpugrad.core.backend import NUMPY
from gpugrad.core.backend import TENSOR as xp
from gpugrad.core.devices import Device, put
from gpugrad.core.forking import cached_property
from gpugrad.core.tensor import Tensor, wrap
from gpugrad.errors import ArgumentError

SCIPY = NUMPY.scipy("sparse")
FORMATS = ("csr", "csc", "coo", "dia", "bsr")
"""Formats of patterns; those of `lil_array` and `dok_array` are CSR."""


def on(array: Any, device: Device) -> Tensor:
    """A host array of integers as a constant on a device."""
    return wrap(array if device.kind == "cpu" else put(array, device))


def gathered(data: Tensor, positions: Any) -> Tensor:
    """The data at positions that are counted from 1, in their shape; 0 where a position is 0."""
    index = np.asarray(positions, dtype=np.int64) - 1
    if data.shape == index.shape and np.array_equal(index.ravel(), np.arange(index.size)):
        return data
    if not data.size:
        return xp.astype(on(np.zeros(index.shape, np.int8), data.device), data.dtype)
    out = xp.take(data, on(np.maximum(index, 0), data.device))
    missing = index < 0
    return xp.where(on(missing, data.device), 0, out) if missing.any() else out


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

    def on(self, device: Device, name: str) -> Tensor:
        """One of the attributes that are arrays, on a device; copied there once."""
        key = (name, device)
        if key not in self._there:
            self._there[key] = on(getattr(self, name), device)
        return self._there[key]

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
            return np.unique(np.ravel_multi_index(at.coords, at.shape)).size == at.nnz
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

    def without_duplicates(self, data: Tensor) -> tuple[Pattern, Tensor]:
        """The pattern with each place once, and the sums of the data there."""
        if self.is_distinct:
            return self, data
        places, group = np.unique(self.flat, return_inverse=True)
        values = gathered(data, self.entries.data)
        sums = xp.segment_sum(values, on(group.ravel(), data.device), places.size)
        shape, kind = self.at.shape, type(self.at)
        coords = np.unravel_index(places, shape)
        coo = SCIPY.coo_array if isinstance(self.at, SCIPY.sparray) else SCIPY.coo_matrix
        at = coo((np.arange(1, places.size + 1), coords), shape=shape)
        at.has_canonical_format = True
        at = kind(at)
        sums = gathered(sums, at.data)
        return Pattern(at), sums


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
