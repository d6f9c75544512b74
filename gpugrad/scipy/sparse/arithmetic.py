"""Arithmetic of sparse arrays: sums, products and functions of differentiable entries."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from gpugrad.array_api.numpy_results import write_out
from gpugrad.core.backend import TENSOR as xp
from gpugrad.core.backend import as_dtype
from gpugrad.core.tensor import Tensor
from gpugrad.errors import ArgumentError, ShapeError
from gpugrad.numpy.creation import asarray
from gpugrad.registry.rules import conjugate
from gpugrad.scipy.sparse.orders import Ordered
from gpugrad.scipy.sparse.pattern import SCIPY, Pattern, at_places, check_shape, gathered, on
from gpugrad.scipy.sparse.structure import CLASSES, dense, is_number

_OF_ENTRIES = {
    name: name.replace("arc", "a").replace("rint", "round")
    for name in """
        arcsin arcsinh arctan arctanh ceil deg2rad expm1 floor log1p rad2deg rint sign sin sinh sqrt
        tan tanh trunc
    """.split()  # noqa: SIM905
}
"""SciPy's methods that apply a function with f(0) = 0 to the entries, and our ops."""


class Sparse(Ordered):
    """A sparse array of SciPy's interface, whose data is differentiable and whose pattern is fixed.

    The classes `csr_array`, `csc_array`, `coo_array`, `dia_array`, `bsr_array`, `lil_array` and
    `dok_array`, and those with ``_matrix`` in their names, differ by their format alone, and the
    latter by ``*``, which is their product.

    Args:
        arg1: a dense array, whose nonzero elements are the entries; ``(data, (row, col))``;
            ``(data, indices, indptr)`` for CSR and CSC; ``(data, offsets)`` for DIA; a shape;
            or a sparse array, also SciPy's or cupyx's. `data` may be a Tensor or a Variable.
        shape: (m, n); the least one that holds the entries if None.
        dtype: of the data.
        copy: whether writes to its data leave those of `arg1` as they are.
        device: for data that is on none; the default device if None.

    Raises:
        ValueError, TypeError: as SciPy, for arrays that do not fit each other.

    >>> a = gg.scipy.sparse.csr_array(([2.0, 3.0], ([0, 1], [1, 0])), shape=(2, 2))
    >>> print(a @ np.array([1.0, 10.0]))
    [20.  3.]
    """

    # ---- functions of the entries --------------------------------------------------------

    def __neg__(self) -> Any:
        return self.with_data(-self.data)

    def __pos__(self) -> Any:
        return self

    def __abs__(self) -> Any:
        return self.sum_of_places()._each(xp.abs)

    def conj(self, copy: bool = True) -> Any:
        """Complex conjugate; without `copy` a real array itself."""
        if self.dtype.kind != "c":
            return self.copy() if copy else self
        return self.with_data(xp.conj(self.data))

    conjugate = conj

    @property
    def real(self) -> Any:
        """Real parts."""
        return self.with_data(xp.real(self.data)) if self.dtype.kind == "c" else self

    @property
    def imag(self) -> Any:
        """Imaginary parts."""
        return self.with_data(xp.imag(self.data) if self.dtype.kind == "c" else self.data * 0)

    def power(self, n: Any, dtype: Any = None) -> Any:
        """Each entry to a power, which must be positive."""
        if not np.isscalar(n) or n == 0:
            raise ArgumentError(f"power: n={n!r} must be a number other than 0: 0**0 is 1.")
        a = self if dtype is None else self.astype(dtype)
        return a.sum_of_places()._each(lambda x: x**n)

    def __getattr__(self, name: str) -> Any:
        if name in _OF_ENTRIES:
            return lambda: self.sum_of_places()._each(getattr(xp, _OF_ENTRIES[name]))
        raise AttributeError(f"{type(self).__name__} has no attribute {name!r}")

    def _each(self, function: Callable[[Any], Any]) -> Any:
        data = self.data if isinstance(self.data, Tensor) else asarray(self.data)
        if data.dtype.kind in "iub" and function not in (xp.abs,):
            data = xp.astype(data, "float64")
        return self.with_data(function(data))

    # ---- sums ----------------------------------------------------------------------------

    def sum(self, axis: Any = None, dtype: Any = None, out: Any = None) -> Tensor:
        """Sum of all elements, or along an axis: of shape (n,) or (m,), for matrices in 2-D."""
        return self._written("sum", self._sum(self._one_axis(axis), dtype), out)

    def _written(self, name: str, result: Tensor, out: Any) -> Any:
        if out is None:
            return result
        if out.shape != result.shape:
            raise ShapeError(f"{name}: out has the shape {out.shape}, the result {result.shape}.")
        return write_out(name, out, result)

    def _one_axis(self, axis: Any) -> int | None:
        """The axis of a reduction; None for all axes."""
        if axis is None:
            return None
        axes = np.lib.array_utils.normalize_axis_tuple(axis, self.ndim)
        return int(axes[0]) if len(axes) < self.ndim else None

    def _sum(self, axis: int | None, dtype: Any) -> Tensor:
        entries = self._entries()
        kind = np.result_type(self.dtype, np.int64) if self.dtype.kind in "bi" else self.dtype
        kind = as_dtype(dtype) if dtype is not None else kind
        entries = xp.astype(entries, kind) if entries.dtype != kind else entries
        if axis is None:
            return xp.sum(entries)
        places = self.pattern.on(self.device, "col" if axis == 0 else "row")
        sums = xp.segment_sum(entries, places, self.shape[1 - axis])
        return sums if self.is_array else xp.expand_dims(sums, axis=axis)

    def mean(self, axis: Any = None, dtype: Any = None, out: Any = None) -> Tensor:
        """Mean of all elements, or along an axis, zeros among them."""
        if dtype is None and self.dtype.kind in "biu":
            dtype = np.float64
        axis = self._one_axis(axis)
        n = math.prod(self.shape) if axis is None else self.shape[axis]
        return self._written("mean", self._sum(axis, dtype) / n, out)

    # ---- arithmetic ------------------------------------------------------------------------

    def on_rows_form(self, name: str, b: Tensor, **options: Any) -> Tensor:
        """A product or a solution by one of the ops of matrices in CSR form."""
        rows, there = self.pattern.rows_form, self.device
        data = at_places(self.data, self.pattern.rows_places)
        flip = self.format == "csc"
        pattern = (self.pattern.on(there, "indices"), self.pattern.on(there, "indptr"))
        how = {"shape": tuple(map(int, rows.shape)), "adjoint": flip, **options}
        if not flip:
            return getattr(xp, name)(data, *pattern, b, **how)
        return conjugate(xp, getattr(xp, name)(data, *pattern, conjugate(xp, b), **how))

    def __matmul__(self, other: Any) -> Any:
        if is_number(other):
            raise ArgumentError("Scalar operands are not allowed, use '*' instead.")
        if isinstance(other, Sparse):
            return _product(self, other)
        if SCIPY.issparse(other):
            return _product(self, _compressed(other, self))
        b = dense(other, self)
        if b.ndim not in (1, 2) or self.shape[-1] != b.shape[0]:
            raise ShapeError(f"matmul: dimension mismatch: {self.shape} @ {b.shape}.")
        out = self.on_rows_form("csr_matmul", b)
        return xp.squeeze(out, 0) if self.ndim == 1 else out

    def __rmatmul__(self, other: Any) -> Any:
        if is_number(other):
            raise ArgumentError("Scalar operands are not allowed, use '*' instead.")
        if SCIPY.issparse(other):
            return _compressed(other, self) @ self
        b = dense(other, self)
        if b.ndim < 2:
            return self.T @ b
        return xp.permute_dims(self.T @ xp.permute_dims(b, (1, 0)), (1, 0))

    def dot(self, other: Any) -> Any:
        """Product with a vector, a matrix or a sparse array; of a number, the multiple."""
        return self * other if is_number(other) else self @ other

    def multiply(self, other: Any) -> Any:
        """Elementwise product with a number, or a dense or sparse array that is broadcast."""
        if is_number(other):
            return self.with_data(self.data * other)
        if SCIPY.issparse(other):
            other = _compressed(other, self)
        if not isinstance(other, Sparse):
            return self._times_dense(dense(other, self))
        if other.shape == self.shape:
            a, b = self.sum_of_places().tocsr(), other.sum_of_places().tocsr()
            both = a.pattern.at.multiply(b.pattern.ones)
            return a._moved(both)._with_factor(b._moved(a.pattern.ones.multiply(b.pattern.at)))
        if 1 in self.shape and 1 not in other.shape:
            return other.multiply(self.toarray())
        return self._times_dense(other.toarray())

    def _with_factor(self, other: Any) -> Any:
        return self.with_data(self.data * other.data)

    def _times_dense(self, other: Tensor) -> Any:
        m, n = self.shape if self.ndim == 2 else (1, *self.shape)
        lead = (1,) * (2 - other.ndim) + tuple(other.shape)
        if len(lead) > 2 or any(k not in (1, size) for k, size in zip(lead, (m, n), strict=True)):
            if 1 not in (m, n) or len(lead) > 2:
                raise ArgumentError(f"inconsistent shapes {self.shape} and {tuple(other.shape)}")
            return CLASSES["csr", True](self.toarray() * other)
        index = np.zeros(self.pattern.row.size, np.int64)
        if lead[0] > 1:
            index = index + self.pattern.row * lead[1]
        if lead[1] > 1:
            index = index + self.pattern.col
        coo = self.tocoo()
        return coo.with_data(coo.data * xp.take(other, on(index, self.device))).asformat(
            self.format
        )

    def __mul__(self, other: Any) -> Any:
        return self.multiply(other) if self.is_array or is_number(other) else self @ other

    def __rmul__(self, other: Any) -> Any:
        return self.multiply(other) if self.is_array or is_number(other) else other @ self

    def __truediv__(self, other: Any) -> Any:
        if isinstance(other, Sparse):
            return self.toarray() / other.toarray()
        if is_number(other):
            return self.with_data(self.data / other)
        return self._times_dense(1 / dense(other, self))

    def __add__(self, other: Any) -> Any:
        if is_number(other):
            if isinstance(other, Tensor) or other != 0:
                raise NotImplementedError(
                    "adding a nonzero scalar to a sparse array is not supported"
                )
            return self.copy()
        if SCIPY.issparse(other):
            other = _compressed(other, self)
        if not isinstance(other, Sparse):
            return self.toarray() + dense(other, self)
        check_shape("add", self.shape, other.shape)
        a, b = self.tocoo(), other.tocoo()
        kind = np.result_type(a.dtype, b.dtype)
        data = xp.concat([xp.astype(x.data, kind) for x in (a, b)])
        places = [
            np.concatenate(p) for p in zip(a.pattern.at.coords, b.pattern.at.coords, strict=True)
        ]
        coo = a._scipy("coo")((np.empty(data.size, np.int64), tuple(places)), shape=self.shape)
        total = a._made(data, Pattern(coo))
        return total.asformat("csc" if self.format == "csc" else "csr")

    __radd__ = __add__

    def __sub__(self, other: Any) -> Any:
        return self + (-other)

    def __rsub__(self, other: Any) -> Any:
        return -self + other

    def __pow__(self, n: Any) -> Any:
        if self.is_array:
            return self.power(n)
        if self.shape[0] != self.shape[1] or not isinstance(n, (int, np.integer)) or n < 0:
            raise ArgumentError(f"matrix is not square, or the exponent {n!r} is no int from 0 on.")
        out = CLASSES["csr", False](
            SCIPY.identity(self.shape[0], dtype=self.dtype), device=self.device
        )
        for _ in range(n):
            out = out @ self
        return out


def _compressed(a: Any, beside: Sparse) -> Any:
    """An array of SciPy's or cupyx's in compressed rows, on the device of another."""
    return CLASSES["csr", True](a, device=beside.device)


def _product(a: Sparse, b: Sparse) -> Any:
    """A sparse product: one term for each entry of `a` and entry of `b` in its column's row."""
    left, right = a.tocoo(), (b if b.ndim == 2 else b.reshape(-1, 1)).tocsr()
    if a.shape[-1] != b.shape[0]:
        raise ShapeError(f"matmul: dimension mismatch: {a.shape} @ {b.shape}.")
    one, other, pattern = left.pattern.product(right.pattern)
    terms = gathered(left._entries(), one) * gathered(right.data, other)
    out = left._made(terms, pattern).asformat("csc" if a.format == "csc" else "csr")
    shape = pattern.at.shape
    if a.ndim == 1 or b.ndim == 1:
        return out.reshape(*(n for n, x in zip(shape, (a, b), strict=True) if x.ndim == 2))
    return out
