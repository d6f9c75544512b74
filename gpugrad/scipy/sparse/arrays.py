"""Sparse arrays: data that is a Tensor or a Variable, at the places of a fixed pattern."""

from __future__ import annotations

import copy as copying
import math
from collections.abc import Callable
from typing import Any

import numpy as np

from gpugrad.core.backend import TENSOR as xp
from gpugrad.core.backend import as_dtype
from gpugrad.core.devices import device as device_named
from gpugrad.core.devices import host
from gpugrad.core.tensor import Tensor
from gpugrad.errors import ArgumentError, DTypeError, ShapeError
from gpugrad.numpy.creation import asarray
from gpugrad.registry.rules import conjugate
from gpugrad.scipy.sparse.pattern import SCIPY, Pattern, check_shape, gathered, on

_OF_ENTRIES = frozenset((
    "arcsin", "arcsinh", "arctan", "arctanh", "ceil", "deg2rad", "expm1", "floor", "log1p",
    "rad2deg", "rint", "sign", "sin", "sinh", "sqrt", "tan", "tanh", "trunc",
))  # fmt: skip
"""SciPy's methods that apply a function with f(0) = 0 to the entries."""


def dense(x: Any, like: Sparse) -> Tensor:
    """A dense operand as a Tensor on the device of a sparse one."""
    return x if isinstance(x, Tensor) else asarray(x, device=like.device)


def is_number(x: Any) -> bool:
    """Whether an operand is one number."""
    return np.isscalar(x) or getattr(x, "ndim", None) == 0


def integers(x: Any) -> Any:
    """Indices of any library as host arrays."""
    if isinstance(x, Sparse):
        return integers(x.tocsr().data)
    if isinstance(x, tuple):
        return tuple(map(integers, x))
    if isinstance(x, Tensor):
        return x.numpy()
    return host(x) if hasattr(x, "get") and hasattr(x, "device") else x


class Sparse:
    """A sparse array of SciPy's interface, whose data is differentiable and whose pattern is fixed.

    The classes `csr_array`, `csc_array`, `coo_array` and `dia_array`, and those with ``_matrix`` in
    their names, differ by their format alone, and the latter by ``*``, which is their product.

    Args:
        arg1: a dense array, whose nonzero elements are the entries; ``(data, (row, col))``;
            ``(data, indices, indptr)`` for CSR and CSC; ``(data, offsets)`` for DIA; a shape;
            or a sparse array, also SciPy's or cupyx's. `data` may be a Tensor or a Variable.
        shape: (m, n); the least one that holds the entries if None.
        dtype: of the data.
        copy: whether to copy the data; Tensors need no copy.
        device: for data that is on none; the default device if None.

    Raises:
        ValueError, TypeError: as SciPy, for arrays that do not fit each other.

    >>> a = gg.scipy.sparse.csr_array(([2.0, 3.0], ([0, 1], [1, 0])), shape=(2, 2))
    >>> print(a @ np.array([1.0, 10.0]))
    [20.  3.]
    """

    format = ""
    is_array = True
    data: Any
    pattern: Pattern
    __array_priority__ = 1001.0
    __array_ufunc__ = None  # NumPy's arrays leave their operators to this class
    __hash__ = object.__hash__

    def __init__(
        self,
        arg1: Any,
        shape: Any = None,
        dtype: Any = None,
        copy: bool = False,
        *,
        device: Any = None,
    ) -> None:
        data, at = self._read(arg1, shape, device)
        if dtype is not None and data.dtype != as_dtype(dtype):
            data = xp.astype(data, as_dtype(dtype))
        if data.dtype == np.bool_ and at.data.dtype != np.bool_:
            pass
        kind = self._scipy(self.format)
        pattern = at if isinstance(at, Pattern) else Pattern(at)
        if type(pattern.at) is not kind:
            pattern, data = pattern.without_duplicates(data)
            moved = kind(pattern.at)
            data, pattern = gathered(data, moved.data), Pattern(moved)
        self.data, self.pattern = data, pattern

    def _read(self, arg1: Any, shape: Any, device: Any) -> tuple[Any, Any]:
        """The data and the pattern of the constructor's first argument."""
        if isinstance(arg1, Sparse):
            if shape is not None:
                check_shape(type(self).__name__, shape, arg1.shape)
            return arg1.data, arg1.pattern
        if hasattr(arg1, "format") and hasattr(arg1, "tocoo"):  # SciPy's or cupyx's
            if arg1.format not in ("csr", "csc", "coo", "dia"):
                arg1 = arg1.tocsr()
            at = arg1.get() if hasattr(arg1, "get") and hasattr(arg1, "device") else arg1.copy()
            at.data = np.empty(at.data.shape, np.int64)
            return asarray(arg1.data, device=device), at
        if isinstance(arg1, tuple):
            return self._of_tuple(arg1, shape, device)
        full = arg1 if isinstance(arg1, Tensor) else asarray(arg1, device=device)
        if full.ndim > 2 or full.ndim == 0:
            raise DTypeError(
                f"{type(self).__name__}: a dense array of shape {full.shape} is no 2-D one."
            )
        if shape is not None:
            check_shape(type(self).__name__, shape, full.shape)
        values = np.arange(1, full.size + 1).reshape(full.shape) * (full.numpy() != 0)
        at = SCIPY.coo_array(values)
        return gathered(full, at.data), at

    def _of_tuple(self, arg1: Any, shape: Any, device: Any) -> tuple[Any, Any]:
        if all(isinstance(n, (int, np.integer)) for n in arg1):
            at = self._scipy(self.format)(arg1, dtype=np.int64)
            return asarray(np.zeros(at.data.shape), device=device), at
        data = arg1[0] if isinstance(arg1[0], Tensor) else asarray(arg1[0], device=device)
        places = integers(arg1[1:])
        if len(places) == 1 and isinstance(places[0], (tuple, list)) and self.format != "dia":
            places = (tuple(map(integers, places[0])),)
        triple = len(places) == 2
        stored = self.format if triple or self.format == "dia" else "coo"
        stored = "coo" if len(places) == 1 and isinstance(places[0], tuple) else stored
        if data.ndim == 1 and stored == "dia":
            data = xp.reshape(data, (1, -1))
        positions = np.empty(data.shape, np.int64)
        return data, self._scipy(stored)((positions, *places), shape=shape)

    @classmethod
    def _scipy(cls, name: str) -> Any:
        return getattr(SCIPY, f"{name}_array" if cls.is_array else f"{name}_matrix")

    # ---- what it is ----------------------------------------------------------------------

    @property
    def shape(self) -> tuple[int, ...]:
        """Length along each axis."""
        return tuple(map(int, self.pattern.at.shape))

    @property
    def ndim(self) -> int:
        """Number of axes."""
        return self.pattern.at.ndim

    @property
    def dtype(self) -> np.dtype[Any]:
        """Type of the entries."""
        return self.data.dtype

    @property
    def device(self) -> Any:
        """Where the data is."""
        return self.data.device

    @property
    def nnz(self) -> int:
        """Number of entries, zeros among them."""
        return int(self.pattern.at.nnz)

    size = nnz

    def getnnz(self, axis: int | None = None) -> Any:
        """Number of entries, in all or along an axis; an int or a NumPy array."""
        return self.pattern.at._getnnz(axis) if self.is_array else self.pattern.at.getnnz(axis)

    def count_nonzero(self) -> int:
        """Number of entries whose value is not 0."""
        return int(np.count_nonzero(self.sum_of_places().data.numpy()))

    @property
    def indices(self) -> Any:
        """Columns of a CSR array, rows of a CSC array: a plain array on the device."""
        return self._part("indices")

    @property
    def indptr(self) -> Any:
        """Where each row of a CSR array starts, or each column of a CSC array."""
        return self._part("indptr")

    @property
    def row(self) -> Any:
        """The rows of a COO array's entries."""
        return self._part("row")

    @property
    def col(self) -> Any:
        """The columns of a COO array's entries."""
        return self._part("col")

    @property
    def offsets(self) -> Any:
        """The diagonals of a DIA array."""
        return self._part("offsets")

    def _part(self, name: str) -> Any:
        return on(getattr(self.pattern.at, name), self.device)._data

    @property
    def has_sorted_indices(self) -> bool:
        """Whether the indices of each row or column are sorted."""
        return bool(self.pattern.at.has_sorted_indices)

    @property
    def has_canonical_format(self) -> bool:
        """Whether the indices are sorted and no entry stands twice."""
        return bool(self.pattern.at.has_canonical_format)

    def __repr__(self) -> str:
        return (
            f"<{type(self).__name__} of {self.nnz} entries, shape={self.shape}, "
            f"dtype={self.dtype}, device={self.device}>"
        )

    def __len__(self) -> int:
        raise DTypeError("sparse array length is ambiguous; use getnnz()")

    def __bool__(self) -> bool:
        if self.shape == (1, 1):
            return bool(self.nnz)
        raise ArgumentError(
            "The truth value of a sparse array with more than one element is ambiguous."
        )

    # ---- other entries at the same places -----------------------------------------------

    def with_data(self, data: Any) -> Any:
        """The array with other data in the same pattern, which is not checked again.

        >>> a = gg.scipy.sparse.eye_array(2).with_data(gg.constant([[2.0, 3.0]]))
        >>> print(a.diagonal())
        [2. 3.]
        """
        data = dense(data, self)
        if data.shape != self.data.shape:
            raise ShapeError(f"with_data: {data.shape} for entries of shape {self.data.shape}.")
        out = copying.copy(self)
        out.data = data
        return out

    def copy(self) -> Any:
        """The same array; writes to its data do not reach this one."""
        return self.with_data(xp.positive(self.data))

    def astype(self, dtype: Any, casting: str = "unsafe", copy: bool = True) -> Any:
        """The array with another dtype."""
        return self.with_data(xp.astype(self.data, as_dtype(dtype)))

    def to_device(self, device: Any) -> Any:
        """The array on another device."""
        return self.with_data(xp.to_device(self.data, device_named(device)))

    def __neg__(self) -> Any:
        return self.with_data(-self.data)

    def __pos__(self) -> Any:
        return self

    def __abs__(self) -> Any:
        return self.sum_of_places()._each(xp.abs)

    def conj(self, copy: bool = True) -> Any:
        """Complex conjugate."""
        return self.with_data(conjugate(xp, self.data))

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
            return lambda: self.sum_of_places()._each(getattr(xp, _OURS.get(name, name)))
        raise AttributeError(f"{type(self).__name__} has no attribute {name!r}")

    def _each(self, function: Callable[[Any], Any]) -> Any:
        data = self.data if isinstance(self.data, Tensor) else asarray(self.data)
        if data.dtype.kind in "iub" and function not in (xp.abs,):
            data = xp.astype(data, "float64")
        return self.with_data(function(data))

    # ---- the same entries at other places -------------------------------------------------

    def _moved(self, at: Any) -> Any:
        """The array whose pattern SciPy made of the positions of this one."""
        kept = at if at.format in _CLASSES else at.tocsr()
        kind = _CLASSES[kept.format][not isinstance(kept, SCIPY.sparray)]
        return kind._made(gathered(self.data, kept.data), Pattern(kept))

    @classmethod
    def _made(cls, data: Any, pattern: Pattern) -> Any:
        out = object.__new__(cls)
        out.data, out.pattern = data, pattern
        return out

    def sum_of_places(self) -> Any:
        """The array with each place once; itself if that is so."""
        pattern, data = self.pattern.without_duplicates(self.data)
        return self if pattern is self.pattern else self._made(data, pattern)

    def sum_duplicates(self) -> None:
        """Sum entries that stand at the same place, in place."""
        a = self.sum_of_places()
        self.data, self.pattern = a.data, a.pattern
        if not self.has_canonical_format:
            self.sort_indices()

    def sort_indices(self) -> None:
        """Sort the indices of each row or column, in place."""
        a = self.sorted_indices()
        self.data, self.pattern = a.data, a.pattern

    def sorted_indices(self) -> Any:
        """The array with the indices of each row or column sorted."""
        at = self.pattern.at
        if at.format == "coo":
            return self.tocsr().tocoo()
        return self if at.has_sorted_indices else self._moved(at.sorted_indices())

    def eliminate_zeros(self) -> None:
        """Remove entries whose value is 0, in place; the values are read."""
        at = self.sum_of_places().tocoo()
        keep = at.data.numpy() != 0
        places = tuple(c[keep] for c in at.pattern.at.coords)
        coo = at._scipy("coo")((at.pattern.at.data[keep], places), shape=self.shape)
        a = at._moved(coo).asformat(self.format)
        self.data, self.pattern = a.data, a.pattern

    def asformat(self, format: str | None, copy: bool = False) -> Any:
        """The array in another of the formats "csr", "csc", "coo" and "dia"."""
        if format is None or format == self.format:
            return self
        if format not in _CLASSES:
            raise ArgumentError(f"Format {format} is unknown: use one of {list(_CLASSES)}.")
        a = self if format == "coo" and self.format != "dia" else self.sum_of_places()
        return a._moved(a.pattern.at.asformat(format))

    def tocsr(self, copy: bool = False) -> Any:
        """The array in CSR format; entries that stand twice are added."""
        return self.asformat("csr")

    def tocsc(self, copy: bool = False) -> Any:
        """The array in CSC format."""
        return self.asformat("csc")

    def tocoo(self, copy: bool = False) -> Any:
        """The array in COO format."""
        return self.asformat("coo")

    def todia(self, copy: bool = False) -> Any:
        """The array in DIA format."""
        return self.asformat("dia")

    @property
    def T(self) -> Any:
        """Transpose, which shares the data."""
        return self._moved(self.pattern.at.T)

    def transpose(self, axes: Any = None, copy: bool = False) -> Any:
        """Transpose, which shares the data."""
        return self._moved(self.pattern.at.transpose(axes))

    def reshape(self, *shape: Any, order: str = "C", copy: bool = False) -> Any:
        """The array in another shape."""
        return self._moved(self.pattern.at.reshape(*shape, order=order))

    def __getitem__(self, key: Any) -> Any:
        if self.format == "coo":
            raise DTypeError(f"'{type(self).__name__}' object is not subscriptable: use tocsr().")
        a = self.sum_of_places()
        part = a.pattern.at[integers(key)]
        if hasattr(part, "format"):
            return a._moved(part)
        return gathered(a.data, np.asarray(part))

    def getrow(self, i: int) -> Any:
        """Row `i` as an array of shape (1, n)."""
        return self.tocsr()[[i], :]

    def getcol(self, i: int) -> Any:
        """Column `i` as an array of shape (m, 1)."""
        return self.tocsc()[:, [i]]

    def diagonal(self, k: int = 0) -> Tensor:
        """Elements of a diagonal, zeros among them."""
        a = self.sum_of_places()
        return gathered(a.data, a.pattern.at.diagonal(k))

    def trace(self, offset: int = 0) -> Tensor:
        """Sum of a diagonal."""
        return xp.sum(self.diagonal(offset))

    def toarray(self, order: Any = None, out: Any = None) -> Tensor:
        """The full array as a Tensor."""
        entries, size = self._entries(), math.prod(self.shape)
        return xp.reshape(
            xp.segment_sum(entries, self.pattern.on(self.device, "flat"), size), self.shape
        )

    todense = toarray

    def _entries(self) -> Tensor:
        """The data in the order of the pattern's `row`, `col` and `flat`."""
        return gathered(self.data, self.pattern.entries.data)

    # ---- sums ----------------------------------------------------------------------------

    def sum(self, axis: Any = None, dtype: Any = None, out: Any = None) -> Tensor:
        """Sum of all elements, or along an axis: of shape (n,) or (m,), for matrices in 2-D."""
        entries = self._entries()
        kind = np.result_type(self.dtype, np.int64) if self.dtype.kind in "bi" else self.dtype
        kind = as_dtype(dtype) if dtype is not None else kind
        entries = xp.astype(entries, kind) if entries.dtype != kind else entries
        if axis is None or self.ndim == 1:
            return xp.sum(entries)
        axis = int(np.lib.array_utils.normalize_axis_index(axis, 2))
        places = self.pattern.on(self.device, "col" if axis == 0 else "row")
        sums = xp.segment_sum(entries, places, self.shape[1 - axis])
        return sums if self.is_array else xp.expand_dims(sums, axis=axis)

    def mean(self, axis: Any = None, dtype: Any = None, out: Any = None) -> Tensor:
        """Mean of all elements, or along an axis, zeros among them."""
        if dtype is None and self.dtype.kind in "biu":
            dtype = np.float64
        n = math.prod(self.shape) if axis is None else self.shape[axis]
        return self.sum(axis, dtype) / n

    # ---- arithmetic ------------------------------------------------------------------------

    def on_rows_form(self, name: str, b: Tensor, **options: Any) -> Tensor:
        """A product or a solution by one of the ops of matrices in CSR form."""
        rows, there = self.pattern.rows_form, self.device
        data = self.data
        if self.format not in ("csr", "csc"):
            data = gathered(data, rows.data)
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
            return _product(self, csr_array(other, device=self.device))
        b = dense(other, self)
        if b.ndim not in (1, 2) or self.shape[-1] != b.shape[0]:
            raise ShapeError(f"matmul: dimension mismatch: {self.shape} @ {b.shape}.")
        out = self.on_rows_form("csr_matmul", b)
        return xp.squeeze(out, 0) if self.ndim == 1 else out

    def __rmatmul__(self, other: Any) -> Any:
        if is_number(other):
            raise ArgumentError("Scalar operands are not allowed, use '*' instead.")
        if SCIPY.issparse(other):
            return csr_array(other, device=self.device) @ self
        b = dense(other, self)
        return xp.permute_dims(self.T @ xp.permute_dims(b, range(b.ndim)[::-1]), None)

    def dot(self, other: Any) -> Any:
        """Product with a vector, a matrix or a sparse array; of a number, the multiple."""
        return self * other if is_number(other) else self @ other

    def multiply(self, other: Any) -> Any:
        """Elementwise product with a number, or a dense or sparse array that is broadcast."""
        if is_number(other):
            return self.with_data(self.data * other)
        if SCIPY.issparse(other):
            other = csr_array(other, device=self.device)
        if not isinstance(other, Sparse):
            return self._times_dense(dense(other, self))
        if other.shape == self.shape:
            a, b = self.sum_of_places().tocsr(), other.sum_of_places().tocsr()
            both = a.pattern.at.multiply(_ones(b))
            return a._moved(both)._with_factor(b._moved(_ones(a).multiply(b.pattern.at)))
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
            return csr_array(self.toarray() * other)
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
            other = csr_array(other, device=self.device)
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
        out = csr_matrix(SCIPY.identity(self.shape[0], dtype=self.dtype), device=self.device)
        for _ in range(n):
            out = out @ self
        return out


_OURS = {
    "arcsin": "asin",
    "arcsinh": "asinh",
    "arctan": "atan",
    "arctanh": "atanh",
    "rint": "round",
}


def _ones(a: Sparse) -> Any:
    at = a.pattern.at.copy()
    at.data = np.ones_like(at.data)
    return at


def _product(a: Sparse, b: Sparse) -> Any:
    """A sparse product: one term for each entry of `a` and entry of `b` in its column's row."""
    left, right = a.tocoo(), (b if b.ndim == 2 else b.reshape(-1, 1)).tocsr()
    if a.shape[-1] != b.shape[0]:
        raise ShapeError(f"matmul: dimension mismatch: {a.shape} @ {b.shape}.")
    at, starts = right.pattern.at, right.pattern.at.indptr.astype(np.int64)
    lengths = np.diff(starts)[left.pattern.col]
    one = np.repeat(np.arange(lengths.size), lengths)
    first = np.cumsum(lengths) - lengths
    other = np.arange(one.size) - (first - starts[left.pattern.col])[one]
    terms = gathered(left._entries(), one + 1) * gathered(right.data, other + 1)
    rows = left.pattern.row if a.ndim == 2 else np.zeros(left.nnz, np.int64)
    shape = (a.shape[0] if a.ndim == 2 else 1, right.shape[1])
    places = (rows[one], at.indices[other])
    coo = left._scipy("coo")((np.empty(one.size, np.int64), places), shape=shape)
    out = left._made(terms, Pattern(coo)).asformat("csc" if a.format == "csc" else "csr")
    if a.ndim == 1 or b.ndim == 1:
        return out.reshape(*(n for n, x in zip(shape, (a, b), strict=True) if x.ndim == 2))
    return out


class csr_array(Sparse):
    """Sparse array in compressed rows; arguments as `Sparse`."""

    format = "csr"


class csc_array(Sparse):
    """Sparse array in compressed columns; arguments as `Sparse`."""

    format = "csc"


class coo_array(Sparse):
    """Sparse array of entries with their rows and columns; arguments as `Sparse`."""

    format = "coo"


class dia_array(Sparse):
    """Sparse array of diagonals; arguments as `Sparse`."""

    format = "dia"


class csr_matrix(csr_array):
    """`csr_array` with ``*`` as its product, sums in two axes, and ``**`` as matrix power."""

    is_array = False


class csc_matrix(csc_array):
    """`csc_array` with ``*`` as its product, sums in two axes, and ``**`` as matrix power."""

    is_array = False


class coo_matrix(coo_array):
    """`coo_array` with ``*`` as its product, sums in two axes, and ``**`` as matrix power."""

    is_array = False


class dia_matrix(dia_array):
    """`dia_array` with ``*`` as its product, sums in two axes, and ``**`` as matrix power."""

    is_array = False


_CLASSES: dict[str, tuple[Any, Any]] = {
    "csr": (csr_array, csr_matrix),
    "csc": (csc_array, csc_matrix),
    "coo": (coo_array, coo_matrix),
    "dia": (dia_array, dia_matrix),
}
"""The class of arrays and that of matrices, by format."""
