"""Construction, formats, slices and conversions of sparse arrays: where their entries are."""

from __future__ import annotations

import copy as copying
import functools
import math
from typing import Any

import numpy as np

from gpugrad.array_api.numpy_results import write_out
from gpugrad.core.backend import TENSOR as xp
from gpugrad.core.backend import as_dtype
from gpugrad.core.devices import host
from gpugrad.core.tensor import Tensor
from gpugrad.core.views import arranged
from gpugrad.errors import ArgumentError, DTypeError, ShapeError
from gpugrad.numpy.creation import asarray
from gpugrad.scipy.sparse import pattern as patterns
from gpugrad.scipy.sparse.pattern import FORMATS, SCIPY, Pattern, check_shape, gathered, on

CLASSES: dict[tuple[str, bool], Any] = {}
"""The class of a format; that of arrays and that of matrices."""


def dense(x: Any, like: Structure) -> Tensor:
    """A dense operand as a Tensor on the device of a sparse one."""
    return x if isinstance(x, Tensor) else asarray(x, device=like.device)


def is_number(x: Any) -> bool:
    """Whether an operand is one number."""
    return np.isscalar(x) or getattr(x, "ndim", None) == 0


def integers(x: Any) -> Any:
    """Indices of any library as host arrays."""
    if isinstance(x, Structure):
        return integers(x.tocsr().data)
    if isinstance(x, tuple):
        return tuple(map(integers, x))
    if isinstance(x, Tensor):
        return x.numpy()
    return host(x) if hasattr(x, "get") and hasattr(x, "device") else x


def _own(data: Any, copy: bool = False) -> Any:
    """The same entries as another Tensor, so that a write to one does not reach the other.

    A Variable stays one, which an optimizer may move, unless a `copy` is asked for.
    """
    if type(data) is Tensor:
        return copying.copy(data)
    return xp.positive(data) if copy else data


class Structure:
    """The data of a sparse array and its pattern; `Sparse` adds the arithmetic."""

    format = ""
    kept = ""
    is_array = True
    data: Any
    pattern: Pattern
    __array_priority__ = 1001.0
    __array_ufunc__ = None  # NumPy's arrays leave their operators to this class
    __hash__ = object.__hash__

    def __init_subclass__(cls) -> None:
        if cls.format:
            cls.kept = cls.format if cls.format in FORMATS else "csr"
            CLASSES.setdefault((cls.format, cls.is_array), cls)

    def __init__(
        self,
        arg1: Any,
        shape: Any = None,
        dtype: Any = None,
        copy: bool = False,
        *,
        device: Any = None,
        **settings: Any,
    ) -> None:
        data, at = self._read(arg1, shape, device)
        if dtype is not None and data.dtype != as_dtype(dtype):
            data = xp.astype(data, as_dtype(dtype))
        kind = self._scipy(self.kept)
        pattern = at if isinstance(at, Pattern) else Pattern(at)
        if type(pattern.at) is not kind or settings:
            pattern, data = pattern.without_duplicates(data)
            moved = kind(pattern.at, **settings)
            data, pattern = gathered(data, moved.data), Pattern(moved)
        self.data, self.pattern = _own(data, copy) if copy else data, pattern

    def _read(self, arg1: Any, shape: Any, device: Any) -> tuple[Any, Any]:
        """The data and the pattern of the constructor's first argument."""
        if isinstance(arg1, Structure):
            if shape is not None:
                check_shape(type(self).__name__, shape, arg1.shape)
            return arg1.data, arg1.pattern
        if hasattr(arg1, "format") and hasattr(arg1, "tocoo"):  # SciPy's or cupyx's
            if arg1.format not in FORMATS:
                arg1 = arg1.tocsr()
            at = arg1.get() if hasattr(arg1, "get") and hasattr(arg1, "device") else arg1.copy()
            at.data = np.empty(at.data.shape, np.int64)
            return asarray(arg1.data, device=device), at
        if isinstance(arg1, tuple):
            return self._of_tuple(arg1, shape, device)
        full = arg1 if isinstance(arg1, Tensor) else asarray(arg1, device=device)
        if full.ndim < 2 and not self.is_array:
            full = xp.reshape(full, (1, -1))
        if full.ndim not in (1, 2):
            raise ShapeError(
                f"{type(self).__name__}: a dense array of shape {full.shape} is no 2-D one."
            )
        if shape is not None:
            check_shape(type(self).__name__, shape, full.shape)
        values = np.arange(1, full.size + 1).reshape(full.shape) * (full.numpy() != 0)
        at = SCIPY.coo_array(values)
        return gathered(full, at.data), at

    def _of_tuple(self, arg1: Any, shape: Any, device: Any) -> tuple[Any, Any]:
        if all(isinstance(n, (int, np.integer)) for n in arg1):
            at = self._scipy(self.kept)(arg1, dtype=np.int64)
            return asarray(np.zeros(at.data.shape), device=device), at
        data = arg1[0] if isinstance(arg1[0], Tensor) else asarray(arg1[0], device=device)
        places = integers(arg1[1:])
        if len(places) == 1 and isinstance(places[0], (tuple, list)) and self.format != "dia":
            places = (tuple(map(integers, places[0])),)
        triple = len(places) == 2
        stored = self.kept if triple or self.format == "dia" else "coo"
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
        return self.with_data(_own(self.data, copy=True))

    def astype(self, dtype: Any, casting: Any = "unsafe", copy: bool = True) -> Any:
        """The array with another dtype; without `copy` itself if it has that already."""
        dtype = as_dtype(dtype)
        if not np.can_cast(self.dtype, dtype, casting):
            raise DTypeError(f"astype: casting={casting!r} forbids {self.dtype} to {dtype}.")
        if dtype == self.dtype:
            return self.copy() if copy else self
        return self.with_data(xp.astype(self.data, dtype))

    def to_device(self, device: Any) -> Any:
        """The array on another device."""
        return self.with_data(self.data.to_device(device))

    # ---- the same entries at other places -------------------------------------------------

    def _moved(self, at: Any, shares: bool = False) -> Any:
        """The array whose pattern SciPy made of the positions of this one.

        It `shares` the data, if the entries stay in order, only where SciPy's does, too.
        """
        return self._placed(*self.pattern.leads_to(at), shares)

    def _placed(self, where: Any, pattern: Pattern, shares: bool = False) -> Any:
        kind = CLASSES[pattern.at.format, isinstance(pattern.at, SCIPY.sparray)]
        data = patterns.at_places(self.data, where)
        return kind._made(data if shares or data is not self.data else _own(data), pattern)

    @classmethod
    def _made(cls, data: Any, pattern: Pattern) -> Any:
        out = object.__new__(cls)
        out.data, out.pattern = data, pattern
        return out

    def sum_of_places(self) -> Any:
        """The array with each place once; itself if that is so."""
        pattern, data = self.pattern.without_duplicates(self.data)
        return self if pattern is self.pattern else self._made(data, pattern)

    def sorted_indices(self) -> Any:
        """The array with the indices of each row or column sorted."""
        at = self.pattern.at
        if at.format == "coo":
            return self.tocsr().tocoo()
        return self.copy() if at.has_sorted_indices else self._moved(at.sorted_indices())

    def asformat(self, format: str | None, copy: bool = False) -> Any:
        """The array in another format, such as "csr": writes to its data do not reach this one.

        With `copy` that is so of the same format, too, which otherwise gives the array itself.
        """
        if format is None or format == self.format:
            return self.copy() if copy else self
        cls = CLASSES.get((format, self.is_array))
        if cls is None:
            names = sorted({name for name, _ in CLASSES})
            raise ArgumentError(f"Format {format} is unknown: use one of {names}.")
        a = self if format == "coo" and self.format != "dia" else self.sum_of_places()
        if a.kept != cls.kept:
            a = a._placed(*a.pattern.moved("asformat", cls.kept))
        return cls._made(_own(a.data) if a.data is self.data else a.data, a.pattern)

    def tocsr(self, copy: bool = False) -> Any:
        """The array in CSR format; entries that stand twice are added."""
        return self.asformat("csr", copy)

    def tocsc(self, copy: bool = False) -> Any:
        """The array in CSC format."""
        return self.asformat("csc", copy)

    def tocoo(self, copy: bool = False) -> Any:
        """The array in COO format."""
        return self.asformat("coo", copy)

    def todia(self, copy: bool = False) -> Any:
        """The array in DIA format."""
        return self.asformat("dia", copy)

    def tolil(self, copy: bool = False) -> Any:
        """The array as `lil_array`."""
        return self.asformat("lil", copy)

    def todok(self, copy: bool = False) -> Any:
        """The array as `dok_array`."""
        return self.asformat("dok", copy)

    def tobsr(self, blocksize: Any = None, copy: bool = False) -> Any:
        """The array in BSR format, in blocks of the shape `blocksize`, or of one that fits."""
        if blocksize is None:
            return self.asformat("bsr", copy)
        a = self.tocsr()
        return a._moved(a.pattern.at.tobsr(tuple(blocksize)))

    @property
    def T(self) -> Any:
        """Transpose, which shares the data."""
        return self._placed(*self.pattern.moved("transpose"), shares=True)

    def transpose(self, axes: Any = None, copy: bool = False) -> Any:
        """Transpose, which shares the data unless it is a `copy`."""
        return self._moved(self.pattern.at.transpose(axes), shares=not copy)

    def reshape(self, *shape: Any, order: str = "C", copy: bool = False) -> Any:
        """The array in another shape."""
        return self._moved(self.pattern.at.reshape(*shape, order=order), shares=not copy)

    def __getitem__(self, key: Any) -> Any:
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
        """The full array as a Tensor, in C or F order, or written to `out`, which has its own."""
        if order not in (None, "C", "F"):
            raise ArgumentError(f"toarray: order={order!r} must be 'C' or 'F'.")
        if order is not None and out is not None:
            raise ArgumentError("toarray: out has an order of its own; leave order out.")
        entries, size = self._entries(), math.prod(self.shape)
        flat = xp.segment_sum(entries, self.pattern.on(self.device, "flat"), size)
        full = xp.reshape(flat, self.shape)
        if out is None:
            return arranged(full, "C" if order is None else order)
        if out.shape != full.shape or out.dtype != full.dtype:
            raise ArgumentError(
                f"toarray: out is {out.dtype} {out.shape}, the array {full.dtype} {full.shape}."
            )
        return write_out("toarray", out, full)

    todense = toarray

    def on_host(self) -> Any:
        """SciPy's array of the values."""
        at = self.pattern.at.copy()
        at.data = self.data.numpy()
        return at

    def get(self, stream: Any = None) -> Any:
        """SciPy's array of the values, as CuPy's method of that name."""
        return self.on_host().asformat(self.format)

    def nonzero(self) -> tuple[Any, Any]:
        """Rows and columns of the elements other than 0, as plain arrays on the device."""
        a = self.tocsr().tocoo()
        keep = a.data.numpy() != 0
        return tuple(on(c[keep], self.device)._data for c in a.pattern.at.coords)

    def _entries(self) -> Tensor:
        """The data in the order of the pattern's `row`, `col` and `flat`."""
        return gathered(self.data, self.pattern.entries.data)


def _leave_to_sparse(name: str) -> None:
    own = getattr(Tensor, name)

    @functools.wraps(own)
    def method(self: Tensor, other: Any) -> Any:
        return NotImplemented if isinstance(other, Structure) else own(self, other)

    setattr(Tensor, name, method)


# here, so that Tensors of programs without sparse arrays do not check for them
for _name in ("__add__", "__sub__", "__mul__", "__matmul__"):
    _leave_to_sparse(_name)
