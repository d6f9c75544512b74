"""Attributes and methods of Tensor that concern memory: order, flags, elements, bytes, files."""

from __future__ import annotations

import gc
import pickle
from collections.abc import Iterator
from typing import Any

import numpy as np

from gpugrad.array_api import writes
from gpugrad.array_api.numpy_adapters import ravel, reshape
from gpugrad.array_api.numpy_calls import call
from gpugrad.array_api.numpy_writes import put, putmask
from gpugrad.core.backend import TENSOR, as_dtype, innermost_array
from gpugrad.core.tensor import Tensor, new
from gpugrad.core.variable import Variable
from gpugrad.core.views import View, arranged
from gpugrad.errors import ArgumentError, DTypeError, IndexOutOfBoundsError, ShapeError, reraise
from gpugrad.ops.arrays import creation
from gpugrad.ops.arrays import shape as shaping
from gpugrad.ops.math import arithmetic


class Flags:
    """Facts about a Tensor's memory, as NumPy's ``flags``; read-only."""

    __slots__ = ("_flags", "_owns")

    def __init__(self, x: Tensor) -> None:
        self._flags = innermost_array(x._data).flags
        self._owns = type(x) is not View

    def __getattr__(self, name: str) -> bool:
        if name == "owndata":
            return self._owns
        return bool(getattr(self._flags, name))

    def __getitem__(self, name: str) -> bool:
        return self._owns if name in ("OWNDATA", "O") else bool(self._flags[name])

    def __repr__(self) -> str:
        names = "C_CONTIGUOUS", "F_CONTIGUOUS", "OWNDATA"
        return "\n".join(f"  {name} : {self[name]}" for name in names)


class Flat:
    """The elements in row-major order, to read, write and iterate, as NumPy's ``flat``.

    Attributes:
        base: the Tensor.
        index: how many elements `next` has returned.
    """

    __slots__ = ("base", "index")

    def __init__(self, base: Tensor) -> None:
        self.base, self.index = base, 0

    def __getitem__(self, index: Any) -> Tensor:
        return TENSOR.ravel(self.base)[index].copy()

    def __setitem__(self, index: Any, value: Any) -> None:
        places = np.arange(self.base.size)[index]
        values = value if np.ndim(value) else [value]
        put(self.base, places.reshape(-1), values)

    def __len__(self) -> int:
        return self.base.size

    def __iter__(self) -> Iterator[Tensor]:
        return self

    def __next__(self) -> Tensor:
        if self.index >= self.base.size:
            raise StopIteration
        self.index += 1
        return TENSOR.ravel(self.base)[self.index - 1]

    def copy(self) -> Tensor:
        """The elements as a Tensor of one axis."""
        return TENSOR.ravel(self.base).copy()

    def __array__(self, *args: Any, **keywords: Any) -> Any:
        return TENSOR.ravel(self.base).__array__(*args, **keywords)


def _set_flat(self: Tensor, value: Any) -> None:
    """Write values to all elements in row-major order, again from the first after the last."""
    putmask(self, True, value)


def _base(self: Tensor) -> Tensor | None:
    """The Tensor that a view has its elements of; None for others."""
    return self.root if type(self) is View else None


def _get(
    self: Tensor, stream: Any = None, order: Any = "C", out: Any = None, blocking: bool = True
) -> np.ndarray[Any, Any]:
    """A NumPy array of the values, as CuPy's method; `out` is written if it is given."""
    values = self.numpy()
    if out is None:
        return np.array(values, order=order) if order != "C" else values
    if out.shape != self.shape or out.dtype != self.dtype:
        raise ShapeError(
            f"get: out is {out.dtype} {out.shape}, the Tensor {self.dtype} {self.shape}."
        )
    out[...] = values
    return out


def _set(self: Tensor, arr: Any, stream: Any = None) -> None:
    """Write the values of a NumPy array of the same shape and dtype, as CuPy's method."""
    if arr.shape != self.shape or arr.dtype != self.dtype:
        raise ShapeError(
            f"set: the array is {arr.dtype} {arr.shape}, the Tensor {self.dtype} {self.shape}."
        )
    writes.setitem(self, ..., arr)


def _item(self: Tensor, *index: Any) -> Any:
    """One element as a Python number: the only one, or that at an index.

    The index is an int, which counts elements in row-major order, or an int for each axis.

    Raises:
        ArgumentError: there is not exactly one element, or no such index.
    """
    if not index and self.size != 1:
        raise ArgumentError(f"item: one element is needed, the shape is {self.shape}.")
    try:
        return self._on_host().item(*index)
    except IndexError as error:
        raise IndexOutOfBoundsError(f"item: {error}, the shape is {self.shape}.") from error
    except ValueError as error:
        reraise(error, "item", {"x": self}, {"index": index})


def _reshape(self: Tensor, *shape: Any, order: str = "C", copy: bool | None = None) -> Tensor:
    """The same elements in another shape, which is one tuple or several ints.

    Args:
        shape: a length may be -1: it follows from the others.
        order: in which order elements are read and placed: ``"C"``, ``"F"`` or ``"A"``.
        copy: True copies; False raises where a copy would be needed.
    """
    shape = shape[0] if len(shape) == 1 else shape
    if order == "C" and copy is None:
        return shaping.reshape(self, shape)
    return reshape(self, shape, order, copy=copy)


def _ravel(self: Tensor, order: str = "C") -> Tensor:
    """The elements along one axis: a view if the memory allows it."""
    return shaping.ravel(self) if order == "C" else ravel(self, order)


def _flatten(self: Tensor, order: str = "C") -> Tensor:
    """A copy of the elements along one axis."""
    return shaping.flatten(self) if order == "C" else ravel(self, order).copy()


def _copy(self: Tensor, order: str = "C") -> Tensor:
    """A copy; the gradient flows through."""
    if self.dtype.kind in "iufc":  # in less time
        return arranged(arithmetic.positive(self), order)
    return arranged(creation.asarray(self, copy=True), order)


def _astype(
    self: Tensor,
    dtype: Any,
    order: str = "K",
    casting: Any = "unsafe",
    subok: bool = True,
    copy: bool = True,
    *,
    device: Any = None,
) -> Tensor:
    """Cast to another dtype; the gradient is cast back.

    Args:
        dtype: a dtype, or its name. A cast to integers truncates, and stops gradients.
        order: of the memory: ``"C"``, ``"F"``, ``"A"`` or ``"K"``.
        casting: DTypeError for casts that it forbids, see `can_cast`.
        subok: without effect.
        copy: False returns a Tensor that has the dtype and order already itself.
        device: device of the result; None for that of the Tensor.
    """
    if casting != "unsafe" and not np.can_cast(self.dtype, as_dtype(dtype), casting):
        raise DTypeError(f"astype: casting={casting!r} forbids {self.dtype} to {dtype}.")
    cast: Any = shaping.astype
    return arranged(cast(self, dtype, copy=copy, device=device), order)


def _partition(self: Tensor, kth: Any, axis: int = -1) -> None:
    """Put the `kth` element along an axis where sorting would put it, in place."""
    writes.begin_write(self)
    writes.setitem(self, ..., TENSOR.partition(self, kth, axis=axis))


def _compress(self: Tensor, condition: Any, axis: Any = None, out: Any = None) -> Any:
    """The slices along an axis where a condition is true."""
    return call(np.compress, (condition, self, axis, out), {})


def _byteswap(self: Tensor, inplace: bool = False) -> Tensor:
    """The elements with their bytes reversed; has no gradient."""
    swapped = creation.asarray(self._handed_out("other bytes").byteswap())
    if inplace:
        writes.setitem(self, ..., swapped)
        return self
    return swapped


def _resize(self: Tensor, *shape: Any, refcheck: bool = True) -> None:
    """Another shape in place: elements are cut off, or zeros are appended."""
    shape = shape[0] if len(shape) == 1 and not isinstance(shape[0], int) else shape
    flat, size = TENSOR.ravel(self), int(np.prod(shape))
    zeros = creation.zeros(max(size - self.size, 0), self.dtype, device=self.device)
    _become(self, TENSOR.reshape(TENSOR.concat([flat[:size], zeros]), tuple(shape)))


def _set_shape(self: Tensor, shape: Any) -> None:
    if any(type(r) is View and r.parent is self for r in gc.get_referrers(self)):
        raise ArgumentError("shape: the Tensor has views; write x = x.reshape(shape).")
    _become(self, shaping.reshape(self, shape))


def _become(x: Tensor, result: Tensor) -> None:
    """Let a Tensor be another one, of another shape; what it is a view of does not change."""
    if isinstance(x, Variable):
        raise DTypeError("A Variable keeps its shape. Use a Tensor of it: v.value().")
    if type(x) is View:
        old = new(View)
        _copy_attributes(x, old)
        fresh = result.op.eager(old, **result.named) if type(result) is View else None
        if type(fresh) is not View:
            raise ArgumentError("The memory of this view does not allow that shape: copy it.")
        _copy_attributes(fresh, x)
    else:
        x._data, x._id = result._data, result._id


def _copy_attributes(of: View, to: View) -> None:
    for name in ("_array", "_number", *View.__slots__):
        if hasattr(of, name):
            setattr(to, name, getattr(of, name))


def _tobytes(self: Tensor, order: str = "C") -> bytes:
    """The bytes of the elements."""
    return self._on_host().tobytes(order)


def _tofile(self: Tensor, fid: Any, sep: str = "", format: str = "%s") -> None:
    """Write the elements to a file."""
    self._on_host().tofile(fid, sep, format)


def _dumps(self: Tensor) -> bytes:
    """A pickle of the values as a NumPy array."""
    return pickle.dumps(self.numpy())


def _dump(self: Tensor, file: Any) -> None:
    """Write a pickle of the values as a NumPy array to a file, or a path."""
    self.numpy().dump(file)


def _setflags(self: Tensor, write: Any = None, align: Any = None, uic: Any = None) -> None:
    """As NumPy's; a Tensor is always writable, so ``write=False`` is refused."""
    if write is not None and not write:
        raise ArgumentError("setflags: a Tensor is always writable; give others x.copy().")


def _scatter(name: str) -> Any:
    """``scatter_add`` and the like, as CuPy's methods."""

    def method(self: Tensor, slices: Any, value: Any) -> None:
        getattr(np, name).at(self, slices, value)

    method.__doc__ = f"Write ``{name}`` of elements and values at an index that may repeat."
    return method


MEMORY = {
    "_begin_write": writes.begin_write,
    "astype": _astype,
    "base": property(_base),
    "byteswap": _byteswap,
    "compress": _compress,
    "copy": _copy,
    "ctypes": property(lambda self: self._handed_out("a pointer").ctypes),
    "data": property(lambda self: self._handed_out("its memory").data),
    "dump": _dump,
    "dumps": _dumps,
    "flags": property(Flags),
    "flat": property(Flat, _set_flat),
    "flatten": _flatten,
    "get": _get,
    "item": _item,
    "partition": _partition,
    "put": lambda self, indices, values, mode="raise": put(self, indices, values, mode),
    "ravel": _ravel,
    "reshape": _reshape,
    "resize": _resize,
    "scatter_add": _scatter("add"),
    "scatter_max": _scatter("maximum"),
    "scatter_min": _scatter("minimum"),
    "set": _set,
    "setflags": _setflags,
    "shape": vars(Tensor)["shape"].setter(_set_shape),
    "tobytes": _tobytes,
    "tofile": _tofile,
}
"""By the names of Tensor's attributes."""
