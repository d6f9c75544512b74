"""Tensor: storage, dtype, device, and what Python asks of a number.

No mathematics: `gpugrad.array_api.methods` hangs the ops on the class.
"""

from __future__ import annotations

import itertools
import sys
import threading
from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from gpugrad.core import backend, devices
from gpugrad.core.backend import ALONE, ARRAYS, BFLOAT16, SCALARS, TENSOR
from gpugrad.core.devices import Device
from gpugrad.core.indexed_slices import IndexedSlices
from gpugrad.errors import ArgumentError, DTypeError, ShapeError

__all__ = [
    "Tensor",
    "constant",
    "convert_to_tensor",
    "digits",
    "index_parts",
    "made_of",
    "new",
    "next_id",
    "no_part_lost",
    "no_value_lost",
    "numbers_only",
    "recorders",
    "tensor",
    "threads",
    "together",
    "wrap",
]

new = object.__new__
next_id = itertools.count(1).__next__
"""Serial numbers. A Tensor has 0 until a recorder wants it; a Variable has one from birth."""

recorders: list[Any] = []
"""Every tape and accumulator that records, in all threads: the flag that ops look at."""


class _Thread(threading.local):
    """The recorders of one thread, outermost first."""

    def __init__(self) -> None:
        self.stack: list[Any] = []


threads = _Thread()


class Tensor:
    """An immutable array on a device; operations on it can be recorded and differentiated.

    Made by `constant`, `asarray`, the creation functions, and every op. ``x[i] = v`` gives
    the name a new value (copy-on-write), so what a tape has saved never changes.
    """

    __slots__ = ("__weakref__", "_data", "_id")
    __array_priority__ = 1000.0  # for types that add in a way of their own, as SciPy's matrices

    _data: Any
    _id: int

    def __init__(self, *args: Any, **keywords: Any) -> None:
        raise DTypeError("Make tensors with gg.constant(value) or gg.asarray(array).")

    @property
    def shape(self) -> tuple[int, ...]:
        """Length along each axis."""
        return self._data.shape

    @property
    def ndim(self) -> int:
        """Number of axes."""
        return self._data.ndim

    @property
    def size(self) -> int:
        """Number of elements."""
        return self._data.size

    @property
    def nbytes(self) -> int:
        """Bytes that the elements take."""
        return self._data.nbytes

    @property
    def itemsize(self) -> int:
        """Bytes that one element takes."""
        return self._data.dtype.itemsize

    @property
    def dtype(self) -> np.dtype[Any]:
        """Type of the elements."""
        return self._data.dtype

    @property
    def device(self) -> Device:
        """Where the elements are."""
        return devices.device_of(self._data)

    def numpy(self) -> np.ndarray[Any, Any]:
        """A new NumPy array with the values (copied from the GPU if they are there)."""
        return devices.host(self._data)

    def item(self) -> Any:
        """The one element as a Python number; ArgumentError if there is not exactly one."""
        if self.size != 1:
            raise ArgumentError(f"item: one element is needed, the shape is {self.shape}.")
        return self._data.item()

    def tolist(self) -> Any:
        """Nested Python lists of the values; a Python number for a 0-d tensor."""
        return self._data.tolist()

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> np.ndarray[Any, Any]:
        array = self._handed_out("a NumPy array")
        if self.device.kind != "cpu":
            raise DTypeError(
                f"A tensor on {self.device} does not turn into a NumPy array by itself: "
                "call x.numpy(), which copies it to the host."
            )
        view: np.ndarray[Any, Any] = array.view()
        if dtype is not None and dtype != view.dtype:
            if copy is False:
                raise ArgumentError(f"copy=False: {view.dtype} does not become {dtype} uncopied.")
            return view.astype(dtype)
        if copy:
            return view.copy()
        view.flags.writeable = False
        return view

    def _handed_out(self, what: str) -> Any:
        """The bare array, to become `what`: something that no tape follows.

        Raises:
            DTypeError: an active tape watches the tensor, whose gradient would be cut.
            TraceError, ArgumentError: it is traced, in a vmap, or was donated.
        """
        if backend.NAMESPACES[type(self._data)].nesting:
            return self._data.view()  # which refuses
        self._read()  # so that a tape that watches Variables on first use knows of it
        if self._id and any(self._id in r.known for r in threads.stack):
            raise DTypeError(
                f"A tensor watched by an active tape was about to become {what}, which would cut "
                "its gradient. Use gpugrad's function of that name, or say that you mean it: "
                "x.numpy(), or gg.stop_gradient(x)."
            )
        return self._data

    def __float__(self) -> float:
        return float(self.item())

    def __int__(self) -> int:
        return int(self.item())

    def __complex__(self) -> complex:
        return complex(self.item())

    def __index__(self) -> int:
        if self.ndim or self.dtype.kind not in "iu":
            raise DTypeError(f"Only a 0-d integer tensor is an index, this is {self.dtype}"
                             f" {self.shape}.")  # fmt: skip
        return int(self._data)

    def __bool__(self) -> bool:
        if self.size != 1:
            raise ArgumentError(
                f"The truth of a tensor of shape {self.shape} is not one answer: "
                "use gg.any(x) or gg.all(x)."
            )
        return bool(self._data.item())

    def __len__(self) -> int:
        if not self.ndim:
            raise DTypeError("A 0-d tensor has no length.")
        return self.shape[0]

    def __iter__(self) -> Iterator[Tensor]:
        return (self[i] for i in range(len(self)))

    def __format__(self, spec: str) -> str:
        if spec and self.size == 1:
            return format(self.item(), spec)
        try:
            return format(str(self), spec)
        except ValueError as error:
            raise DTypeError(
                f"The format {spec!r} is for one number, the shape is {self.shape}: use x.item(), "
                "or numpy.array2string(x.numpy(), precision=2)."
            ) from error

    __hash__ = object.__hash__  # by identity; == is elementwise, as the array API asks

    def __copy__(self) -> Tensor:
        return made_of(self._data, self._id)

    def __deepcopy__(self, memo: dict[int, Any]) -> Tensor:
        return made_of(self._data, self._id)  # copy-on-write: sharing cannot be observed

    def __reduce__(self) -> Any:
        return _unpickle, (self.numpy(), str(self.device))

    def __repr__(self) -> str:
        return (
            f"Tensor({digits(self._data, prefix='Tensor(')}, shape={self.shape}, "
            f"dtype={self.dtype}, device={self.device})"
        )

    def __str__(self) -> str:
        if backend.NAMESPACES[type(self._data)].nesting:
            return str(self._data)  # which may refuse
        return digits(self._data, separator=" ")

    def _repr_inline_(self, max_width: int) -> str:
        """What xarray shows of it in one line of at most `max_width` characters."""
        text = f"gpugrad {self.device} " + " ".join(digits(self._data.ravel(), " ").split())
        return text if len(text) <= max_width else text[: max(max_width - 3, 0)] + "..."

    def _read(self) -> Tensor:
        """The Tensor that an op reads: itself, for a subclass a plain one."""
        return self if type(self) is Tensor else made_of(self._data, self._id)

    def _own(self) -> Any:
        """The array, copied first if anything else can see it; the caller may write to it."""
        if (
            sys.getrefcount(self._data) > ALONE
            or self._data.base is not None  # a view: its memory is another array's
            or not _writeable(self._data)
        ):
            self._data = devices.copied(self._data)
        return self._data

    if (
        TYPE_CHECKING
    ):  # hung on by gpugrad.array_api.methods; said here for type checkers and editors
        T: Tensor
        mT: Tensor

        def __getattr__(self, name: str) -> Callable[..., Tensor]: ...
        def __add__(self, other: Any) -> Tensor: ...
        def __radd__(self, other: Any) -> Tensor: ...
        def __sub__(self, other: Any) -> Tensor: ...
        def __rsub__(self, other: Any) -> Tensor: ...
        def __mul__(self, other: Any) -> Tensor: ...
        def __rmul__(self, other: Any) -> Tensor: ...
        def __truediv__(self, other: Any) -> Tensor: ...
        def __rtruediv__(self, other: Any) -> Tensor: ...
        def __floordiv__(self, other: Any) -> Tensor: ...
        def __mod__(self, other: Any) -> Tensor: ...
        def __pow__(self, other: Any) -> Tensor: ...
        def __rpow__(self, other: Any) -> Tensor: ...
        def __matmul__(self, other: Any) -> Tensor: ...
        def __rmatmul__(self, other: Any) -> Tensor: ...
        def __neg__(self) -> Tensor: ...
        def __abs__(self) -> Tensor: ...
        def __lt__(self, other: Any) -> Tensor: ...
        def __le__(self, other: Any) -> Tensor: ...
        def __gt__(self, other: Any) -> Tensor: ...
        def __ge__(self, other: Any) -> Tensor: ...
        def __getitem__(self, index: Any) -> Tensor: ...
        def __setitem__(self, index: Any, value: Any) -> None: ...


def made_of(data: Any, serial: int) -> Tensor:
    """A Tensor of a bare array and a serial number."""
    t = new(Tensor)
    t._data, t._id = data, serial
    return t


def _writeable(array: Any) -> bool:
    return type(array) is not np.ndarray or array.flags.writeable


def wrap(array: Any) -> Tensor:
    """A Tensor around a bare array that nobody else will write to. Nothing is copied."""
    t = new(Tensor)
    t._data = array
    t._id = 0
    return t


def index_parts(index: Any) -> list[Any]:
    """The entries of an index as bare arrays; slices and the like as they are."""
    parts = index if type(index) is tuple else (index,)
    return [p._data if isinstance(p, Tensor) else p for p in parts]


def together(name: str, arrays: Sequence[Any], index: Any = None) -> None:
    """Refuse bare arrays, and Tensors in an index of them, of two libraries."""
    parts = index if type(index) is tuple else (index,)
    placed = index_parts(tuple(p for p in parts if type(p) is not np.ndarray))
    devices.one_library(name, [a for a in (*arrays, *placed) if type(a) in ARRAYS])


def _unpickle(values: np.ndarray[Any, Any], device: str) -> Tensor:
    return wrap(devices.put(values, devices.device(device)))


def digits(array: Any, separator: str = ", ", prefix: str = "") -> str:
    """The values as text. Of a long array only the edges are copied from the device."""
    if backend.NAMESPACES[type(array)].nesting:
        return repr(array)
    shown, long = array, array.size > 1000
    if long:  # seven along an axis print as three, dots, three
        for axis, n in enumerate(array.shape):
            if n > 7:
                edges = np.r_[0:4, n - 3 : n]
                shown = shown[(slice(None),) * axis + (edges,)]
    values = devices.host(shown)
    if values.dtype == BFLOAT16:
        values = values.astype(np.float32)
    if not values.ndim:
        return str(values[()])
    return np.array2string(
        values, separator=separator, threshold=1 if long else 1001, edgeitems=3, max_line_width=88,
        prefix=prefix,
    )  # fmt: skip


# ---- from Python and NumPy --------------------------------------------------------------


def numbers_only(value: Any) -> bool:
    """Whether nested lists hold Python's own numbers only."""
    if isinstance(value, (list, tuple)):
        return all(numbers_only(v) for v in value)
    return type(value) in SCALARS


def _holds_tensor(value: Any) -> bool:
    if isinstance(value, (list, tuple)):
        return any(_holds_tensor(v) for v in value)
    return isinstance(value, Tensor)


def _to_numpy(value: Any, dtype: Any = None) -> np.ndarray[Any, Any]:
    """A NumPy array of `value`; Python floats become float32 unless `dtype` says else."""
    if isinstance(value, str) or value is None:
        raise DTypeError(f"{value!r} is not a number, an array, or nested lists of them.")
    if isinstance(value, np.ndarray) and type(value) is not np.ndarray and np.ma.is_masked(value):
        raise DTypeError("A masked element has no value: say which it gets with x.filled(value).")
    try:
        made = np.asarray(value)
    except ValueError as error:
        raise ShapeError(f"Nested lists of unequal lengths make no array: {error}") from error
    if made.dtype.kind not in "biufc" and made.dtype != BFLOAT16:
        raise DTypeError(
            f"A {type(value).__name__} with elements of dtype {made.dtype} is not an array of "
            "numbers."
        )
    if not made.dtype.isnative:
        made = made.astype(made.dtype.newbyteorder("="))
    if dtype is None and made.dtype.kind in "fc" and numbers_only(value):
        return made.astype(np.complex64 if made.dtype.kind == "c" else np.float32)
    if isinstance(value, (list, tuple)) and not made.size:
        return made.astype(np.float32)
    return made


def no_part_lost(what: str, old: np.dtype[Any], new: np.dtype[Any]) -> np.dtype[Any]:
    """`new`; DTypeError if a complex number would lose its imaginary part."""
    if old.kind == "c" and new.kind != "c":
        raise DTypeError(f"{what}: a {old} value does not become {new}; say which part you want.")
    return new


def no_value_lost(what: str, made: np.ndarray[Any, Any], dtype: np.dtype[Any]) -> None:
    """DTypeError if a Python number loses its fraction, or overflows, as an integer of `dtype`."""
    if made.size and dtype.kind in "iu" and made.dtype.kind in "fiu":
        room = np.iinfo(dtype)
        beyond = (made < room.min).any() or (made > room.max).any()
        if made.dtype.kind == "f" or beyond:
            raise DTypeError(f"{what}: {made.tolist()!r:.60} does not go into {dtype} unchanged.")


def tensor(x: Any) -> Tensor:
    """The Tensor that an op reads for an argument: a Variable's value, an array's copy.

    An array stays on the device where it is; Python numbers and lists go to the default
    device. Arrays are copied, so that writing to them later corrupts no saved value.
    """
    kind = type(x)
    if kind is Tensor:
        return x
    if isinstance(x, Tensor):
        return x._read()
    if backend.is_array(x):
        if kind is np.ndarray:
            x = _to_numpy(x)
        return wrap(devices.copied(x))
    if isinstance(x, IndexedSlices):
        return x.to_dense()
    if isinstance(x, (list, tuple)) and _holds_tensor(x):
        return TENSOR.stack([tensor(v) for v in x])
    return wrap(devices.put(_to_numpy(x), devices.default_device()))


def constant(value: Any, dtype: Any = None, shape: Any = None, *, device: Any = None) -> Tensor:
    """Make a Tensor from a number, nested lists or an array; the values are copied.

    Args:
        value: Python floats become float32, Python ints int64; arrays keep their dtype.
        dtype: of the result.
        shape: of the result; a single value fills it.
        device: where to put it; the default device if None.

    Raises:
        DTypeError: the value is not made of numbers, or the dtype is none of a number.
        ShapeError: the value does not fill the shape.

    >>> gg.constant([1.0, 2.0])
    Tensor([1., 2.], shape=(2,), dtype=float32, device=cpu)
    """
    if _holds_tensor(value):
        return _converted(tensor(value), dtype, shape, device)
    if not isinstance(value, np.ndarray) and backend.is_array(value):  # stays where it is
        d = devices.device_of(value) if device is None else devices.device(device)
        made = devices.copied(devices.move(value, d))
    else:
        d = devices.device(device)
        made = _to_numpy(value, dtype)
        if dtype is not None and numbers_only(value):
            no_value_lost("constant", made, backend.as_dtype(dtype))
    with devices.formulas_on(made):
        if dtype is not None:
            made = made.astype(
                no_part_lost("constant", made.dtype, backend.as_dtype(dtype)), copy=False
            )
        if shape is not None:
            shape = (shape,) if isinstance(shape, (int, np.integer)) else tuple(shape)
            if made.size not in (1, int(np.prod(shape))):
                raise ShapeError(f"constant: {made.size} values do not fill the shape {shape}.")
            made = made.reshape(shape) if made.size == np.prod(shape) else made.repeat(
                int(np.prod(shape))).reshape(shape)  # fmt: skip
    return wrap(devices.put(made, d) if type(made) is np.ndarray else made)


def _converted(t: Tensor, dtype: Any, shape: Any, device: Any) -> Tensor:
    """`constant` of what is a Tensor already: differentiable conversions, or itself."""
    if dtype is not None and t.dtype != backend.as_dtype(dtype):
        t = TENSOR.astype(t, no_part_lost("constant", t.dtype, backend.as_dtype(dtype)))
    if shape is not None and t.shape != tuple(np.atleast_1d(shape)):
        change = TENSOR.broadcast_to if t.size == 1 else TENSOR.reshape
        t = change(t, (shape,) if isinstance(shape, (int, np.integer)) else tuple(shape))
    return t.__copy__() if device is None else t.to_device(device).__copy__()


def convert_to_tensor(value: Any, dtype: Any = None) -> Tensor:
    """Return `value` as a Tensor: a Tensor itself, a Variable's value, else `constant`.

    Raises:
        DTypeError: a Tensor of another dtype than the one asked for (cast it with astype).

    >>> gg.convert_to_tensor(2.0).dtype.name
    'float32'
    """
    if not isinstance(value, (Tensor, IndexedSlices)) and not (
        isinstance(value, (list, tuple)) and _holds_tensor(value)
    ):
        return constant(value, dtype)
    made = tensor(value)
    if dtype is not None and backend.as_dtype(dtype) != made.dtype:
        raise DTypeError(
            f"convert_to_tensor: the tensor is {made.dtype}, {backend.as_dtype(dtype)} was asked "
            "for. Cast it with gg.astype(x, dtype)."
        )
    return made
