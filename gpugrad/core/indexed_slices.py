"""IndexedSlices: rows of an array that is zero elsewhere."""

from __future__ import annotations

from typing import Any

import numpy as np

from gpugrad.core.backend import TENSOR
from gpugrad.core.devices import Device
from gpugrad.errors import ArgumentError, ShapeError


class IndexedSlices:
    """Rows of a tensor that is zero elsewhere: the gradient of `gather` along axis 0.

    Args:
        values: Tensor of shape (n, ...).
        indices: integer Tensor of shape (n,), the row of each value; repeated rows add up.
        dense_shape: shape of the dense tensor. None if a Variable provides it, as in its
            `scatter_add` and in an optimizer.

    >>> table = gg.Variable(gg.ones((4, 2)))
    >>> with gg.GradientTape() as tape:
    ...     loss = gg.sum(gg.gather(table, [1, 1]))
    >>> rows = tape.gradient(loss, table)
    >>> print(rows.indices)
    [1 1]
    >>> rows.shape
    (4, 2)
    """

    __slots__ = ("dense_shape", "indices", "values")

    def __init__(self, values: Any, indices: Any, dense_shape: Any = None) -> None:
        self.values, self.indices = values, indices
        try:
            self.dense_shape = None if dense_shape is None else tuple(dense_shape)
        except TypeError:
            raise ArgumentError(
                f"IndexedSlices: dense_shape must be a tuple of ints, got {dense_shape!r:.60}."
            ) from None

    @property
    def shape(self) -> Any:
        """Shape of the dense tensor; None if it was not given."""
        return self.dense_shape

    @property
    def dtype(self) -> np.dtype[Any]:
        """Type of the elements."""
        return self.values.dtype

    @property
    def device(self) -> Device:
        """Where the elements are."""
        return self.values.device

    def __mul__(self, factor: Any) -> IndexedSlices:
        """Multiply the rows by a number."""
        return IndexedSlices(self.values * factor, self.indices, self.dense_shape)

    __rmul__ = __mul__

    def __truediv__(self, divisor: Any) -> IndexedSlices:
        """Divide the rows by a number."""
        return IndexedSlices(self.values / divisor, self.indices, self.dense_shape)

    def __neg__(self) -> IndexedSlices:
        return IndexedSlices(-self.values, self.indices, self.dense_shape)

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> np.ndarray[Any, Any]:
        return self.to_dense().__array__(dtype, copy)

    def to_dense(self, xp: Any = TENSOR) -> Any:
        """The dense tensor, with repeated rows summed; differentiable with respect to `values`.

        Raises:
            ShapeError: `dense_shape` is None.
        """
        if self.dense_shape is None:
            raise ShapeError("IndexedSlices: to_dense needs the shape: give dense_shape=.")
        return xp.scatter_rows(self.values, self.indices, shape=self.dense_shape)

    def __repr__(self) -> str:
        return (
            f"IndexedSlices(values={self.values!r}, indices={self.indices!r}, "
            f"dense_shape={self.dense_shape})"
        )
