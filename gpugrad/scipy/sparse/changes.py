"""Changes of sparse arrays in place: entries that are set, sorted, added up or removed."""

from __future__ import annotations

from typing import Any

import numpy as np

from gpugrad.core.backend import TENSOR as xp
from gpugrad.scipy.sparse.pattern import Pattern, gathered
from gpugrad.scipy.sparse.structure import Structure, dense, integers


class Changes(Structure):
    """The methods of a sparse array that give it other data and another pattern."""

    def _become(self, data: Any, pattern: Pattern) -> None:
        self.data, self.pattern = data, pattern

    def _set(self, value: Any, write: Any) -> None:
        """Write values, whose positions `write` puts into a SciPy array of positions."""
        a = self.sum_of_places()
        value = value.toarray() if isinstance(value, Structure) else dense(value, self)
        at = a.pattern.at.asformat(a.format, copy=True)  # SciPy warns of CSR, and not of LIL
        positions = np.arange(1, value.size + 1).reshape(value.shape) + a.data.size
        write(at, positions)
        at = at.asformat(a.kept)
        values = xp.astype(xp.ravel(value), a.dtype)
        self._become(gathered(xp.concat([xp.ravel(a.data), values]), at.data), Pattern(at))

    def __setitem__(self, key: Any, value: Any) -> None:
        """Write a number or an array; a new place gets an entry. Differentiable by the value."""
        key = integers(key)

        def write(at: Any, positions: Any) -> None:
            at[key] = positions

        self._set(value, write)

    def setdiag(self, values: Any, k: int = 0) -> None:
        """Write a number or an array to a diagonal."""
        self._set(values, lambda at, positions: at.setdiag(positions, k))

    def sum_duplicates(self) -> None:
        """Sum entries that stand at the same place, in place."""
        a = self.sum_of_places()
        self._become(a.data, a.pattern)
        if not self.has_canonical_format:
            self.sort_indices()

    def sort_indices(self) -> None:
        """Sort the indices of each row or column, in place."""
        a = self.sorted_indices()
        self._become(a.data, a.pattern)

    def eliminate_zeros(self) -> None:
        """Remove entries whose value is 0, in place; the values are read."""
        at = self.sum_of_places().tocoo()
        keep = at.data.numpy() != 0
        places = tuple(c[keep] for c in at.pattern.at.coords)
        coo = at._scipy("coo")((at.pattern.at.data[keep], places), shape=self.shape)
        a = at._moved(coo).asformat(self.format)
        self._become(a.data, a.pattern)
