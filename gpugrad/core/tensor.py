"""Tensor: storage, dtype, device, conversions to Python, copying, pickling and printing.

No mathematics: `gpugrad.array_api.methods` adds the ops to the class as methods.
"""

from __future__ import annotations

import itertools
import sys
from collections.abc import Collection, Iterator, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from gpugrad.core import backend, devices
from gpugrad.core.backend import ARRAYS, TENSOR
from gpugrad.core.devices import Device
from gpugrad.core.forking import new_lock
from gpugrad.core.format import format_html, format_values
from gpugrad.core.from_python import to_numpy
from gpugrad.core.holders import HOLDER, opened
from gpugrad.core.indexed_slices import IndexedSlices
from gpugrad.core.listening import graphs, recorders, threads
from gpugrad.core.nest import TENSORS
from gpugrad.core.user_code import called_by_conversion
from gpugrad.errors import ArgumentError, DTypeError, reraise

if TYPE_CHECKING:  # the methods that gpugrad.array_api.methods adds, in a stub
    from gpugrad.core.tensor_methods import Methods as NamesElsewhere
else:
    from gpugrad.core.known_as import NamesElsewhere

_DOUBLE = frozenset(map(np.dtype, ("float64", "complex128")))
_TO_DOUBLE = _DOUBLE | frozenset(map(np.dtype, ("int32", "int64", "uint32", "uint64")))

new = object.__new__
next_id = itertools.count(1025).__next__
"""Serial numbers. A Tensor has 0 until a recorder needs it; a Variable has one from the start.

Each is an int object of its own, whose references a tape counts; Python shares small ints.
"""


_numbering = new_lock()


def new_number(x: Tensor) -> int:
    """The serial number of a Tensor, assigned now if it has none."""
    with _numbering:  # two threads may give the same tensor its first number
        x._id = x._id or next_id()
    x._numbered()
    return x._id


class _Holder:
    def __init__(self) -> None:
        self.held = object()


_holder = _Holder()
ALONE = sys.getrefcount(_holder.held)
"""The `sys.getrefcount` of an object whose only reference is one attribute.

Count an attribute or an item, never a variable: from Python 3.14 on, variables and arguments may
borrow their reference (tests/core/test_aliasing.py).
"""


class Tensor(NamesElsewhere):
    """An array on a device; operations on it can be recorded and differentiated.

    `constant`, `asarray`, the creation functions and every op return one. ``x[i] = v`` and
    ``x += v`` write as in NumPy, also through views, but by copy-on-write: values that a tape
    has saved never change.

    >>> x = gg.constant([[1.0, 2.0], [3.0, 4.0]])
    >>> x.shape, x.dtype.name, str(x.device)
    ((2, 2), 'float32', 'cpu')
    >>> x[0] = 0.0
    >>> print(x.T @ x)
    [[ 9. 12.]
     [12. 16.]]
    """

    __slots__ = ("__weakref__", "_data", "_id")
    __array_priority__ = 1000.0  # SciPy's matrices defer to the operand with the higher one

    _data: Any
    _id: int
    _array: Any  # the slots of both, which classes with properties of these names read and write
    _number: int

    def __init_subclass__(cls, **keywords: Any) -> None:
        super().__init_subclass__(**keywords)
        TENSORS.add(cls)

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
        """Size of all elements in bytes."""
        return self._data.nbytes

    @property
    def itemsize(self) -> int:
        """Size of one element in bytes."""
        return self._data.dtype.itemsize

    @property
    def strides(self) -> tuple[int, ...]:
        """Bytes from one element to the next along each axis, as they lie in memory now."""
        return self._data.strides

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
        if recorders:
            self._values_read()
        return devices.host(self._values())

    def tolist(self) -> Any:
        """Nested Python lists of the values; a Python number for a 0-d tensor."""
        return self._on_host().tolist()

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> np.ndarray[Any, Any]:
        array = self._handed_out("a NumPy array")
        if self.device.kind != "cpu":
            raise DTypeError(
                f"A tensor on {self.device} is not converted to a NumPy array implicitly: "
                "call x.numpy(), which copies it to the host. Other GPU libraries, as CuPy, need "
                "x.copy() of a Variable or a view, whose memory is not shared."
            )
        view: np.ndarray[Any, Any] = array.view()
        if dtype is not None and dtype != view.dtype:
            if copy is False:
                raise ArgumentError(f"copy=False: {view.dtype} to {dtype} needs a copy.")
            return view.astype(dtype)
        if copy:
            return view.copy()
        view.flags.writeable = False
        return view

    def _handed_out(self, what: str) -> Any:
        """The plain array, which is about to become `what`, outside any tape.

        Raises:
            DTypeError: an active tape watches the tensor, whose gradient would be cut.
            TraceError, ArgumentError: the tensor is traced, in a vmap, or was donated.
        """
        if backend.READINGS[type(self._data)].nesting:
            return self._data.view()  # raises
        self._read()  # a tape that watches Variables on first use sees this one
        if self._id and any(self._id in r.known for r in threads.stack):
            raise DTypeError(
                f"A tensor watched by an active tape was about to become {what}, which would cut "
                "its gradient. Use gpugrad's function of that name, which takes lists of tensors "
                "too, or say that you mean it: x.numpy(), or gg.stop_gradient(x). A class with an "
                "`__array__` returns its tensor by `__gpugrad_tensor__(self, dtype)`."
            )
        return self._data

    def __float__(self) -> float:
        if recorders and any(listener._strict for listener in threads.stack):
            self._handed_out("a Python number")
        return float(self.item())

    def __int__(self) -> int:
        return int(self.item())

    def __complex__(self) -> complex:
        return complex(self.item())

    def __index__(self) -> int:
        if self.ndim or self.dtype.kind not in "iu":
            raise DTypeError(
                "Only a 0-d integer tensor can be an index, this one has dtype "
                f"{self.dtype} and shape {self.shape}."
            )
        return int(self._on_host())

    def __bool__(self) -> bool:
        if self.size != 1:
            raise ArgumentError(
                f"The truth value of a tensor of shape {self.shape} is ambiguous: use gg.any(x) "
                "or gg.all(x)."
            )
        return bool(self._on_host().item())

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

    __hash__ = object.__hash__  # by identity: == is elementwise in the array API

    def __copy__(self) -> Tensor:  # copy-on-write hides that the array is the same
        if graphs and not self._id:  # a Graph follows what is not watched, too
            new_number(self)
        return tensor_with_id(self._kept(), self._id)

    def __deepcopy__(self, memo: dict[int, Any]) -> Tensor:
        return self.__copy__()

    def __reduce__(self) -> Any:
        return _unpickle, (self.numpy(), str(self.device))

    def __repr__(self) -> str:
        return (
            f"Tensor({format_values(self._data, prefix='Tensor(')}, shape={self.shape}, "
            f"dtype={self.dtype}, device={self.device})"
        )

    def __str__(self) -> str:
        array = self._values()
        if backend.READINGS[type(array)].nesting:
            return str(array)  # raises if it is traced
        return format_values(array, separator=" ")

    def _repr_html_(self) -> str:
        title = f"{type(self).__name__} {self.shape}, {self.dtype}, {self.device}"
        if backend.READINGS[type(self._data)].nesting:
            return format_html(title, repr(self._data))
        return format_html(title, format_values(self._data, separator=" "))

    def _repr_inline_(self, max_width: int) -> str:
        """The line of at most `max_width` characters that xarray shows."""
        text = f"gpugrad {self.device} " + " ".join(format_values(self._data.ravel(), " ").split())
        return text if len(text) <= max_width else text[: max(max_width - 3, 0)] + "..."

    def _read(self) -> Tensor:
        """The Tensor that an op reads: itself, or a plain Tensor for a subclass."""
        return self if type(self) is Tensor else tensor_with_id(self._data, self._id)

    def _values(self) -> Any:
        """The array, for Python to read values from, which a trace refuses."""
        return self._data

    def _values_read(self) -> None:
        """Tell the recorders that Python reads the values.

        Raises:
            DTypeError: gpugrad is converting an object, whose `__array__` reads a watched tensor.
        """
        stack = threads.stack
        for recorder in stack:
            recorder._note_values(self)
        if stack and called_by_conversion():
            self._handed_out("a constant, by a method that converts its owner to an array")

    def _on_host(self) -> Any:
        """The values, which are copied if they are on a GPU."""
        if recorders:
            self._values_read()
        values = self._values()
        return values if type(values) is np.ndarray else devices.host(values)

    def _glance(self) -> Tensor:
        """`_read` for an op that moves elements, and saves none of them."""
        return self._read()

    def _snapshot(self) -> Tensor:
        """The Tensor for an argument: itself, so that its views are views of the argument."""
        return self

    def _numbered(self) -> None:
        """Note that its number is not that of a recorded op's result."""

    def _kept(self) -> Any:
        """The array, for a caller that keeps it: nobody will write to it."""
        return self._data

    def _own(self, views: Collection[Any] = ()) -> Any:
        """The array for the caller to write to, copied first if anyone but `views` sees it."""
        # each view refers to it twice: its array's base and `_seen`
        shared = sys.getrefcount(self._data) > ALONE + 2 * len(views)
        data = self._data
        if (
            shared
            or borrows_memory(data)
            or any(sys.getrefcount(v._array) > ALONE for v in views if v._array is not data)
        ):
            data = self._data = devices.copy_array(data, "K")
        return data


TENSORS.add(Tensor)
Tensor._array, Tensor._number = Tensor._data, Tensor._id


def tensor_with_id(data: Any, serial: int) -> Tensor:
    """A Tensor with the given plain array and serial number."""
    t = new(Tensor)
    t._data, t._id = data, serial
    return t


def borrows_memory(array: Any) -> bool:
    """Whether an array is a view, whose memory is another array's, or may not be written to."""
    return array.base is not None or (type(array) is np.ndarray and not array.flags.writeable)


def wrap(array: Any) -> Tensor:
    """A Tensor around a plain array to which nobody else will write, without a copy."""
    t = new(Tensor)
    t._data = array
    t._id = 0
    return t


def index_parts(index: Any) -> list[Any]:
    """The entries of an index, with plain arrays for Tensors."""
    parts = index if type(index) is tuple else (index,)
    return [p._data if isinstance(p, Tensor) else p for p in parts]


def require_one_library(name: str, arrays: Sequence[Any], index: Any = None) -> None:
    """Raise if plain arrays, and the Tensors in an index, come from two libraries."""
    parts = index if type(index) is tuple else () if index is None else (index,)
    on_devices = index_parts(tuple(p for p in parts if type(p) is not np.ndarray)) if parts else []
    devices.one_library(name, [a for a in (*arrays, *on_devices) if type(a) in ARRAYS])


def _unpickle(values: np.ndarray[Any, Any], device: str) -> Tensor:
    return wrap(devices.put(values, devices.device(device)))


def holds_tensor(value: Any) -> bool:
    """Whether a value is a Tensor or an object that holds one, or nested lists with one in them."""
    if type(value) in backend.SCALARS:
        return False
    if isinstance(value, Tensor) or hasattr(type(value), HOLDER):
        return True
    if not isinstance(value, (list, tuple)) or backend.SCALARS.issuperset(map(type, value)):
        return False
    return any(map(holds_tensor, value))


def operand(x: Any, *others: Any) -> Tensor:
    """The Tensor that an op reads for an argument beside others, and nobody keeps.

    For a Variable it has the Variable's serial number, so that the op is recorded as one that reads
    it.
    """
    return x._read() if isinstance(x, Tensor) else tensor(x, *others)


def promoted(x: Any, *others: Any) -> Tensor:
    """`operand` for a ufunc, by which floats beside integers become float64."""
    return x._read() if isinstance(x, Tensor) else tensor(x, *others, double=_TO_DOUBLE)


def glance(x: Any) -> Tensor:
    """`operand`, for an op that moves elements, and saves none of them."""
    return x._glance() if isinstance(x, Tensor) else tensor(x)


def argument(name: str, x: Any) -> Tensor:
    """`tensor` for an argument of the function `name`, which errors name."""
    try:
        return tensor(x)
    except Exception as error:
        reraise(error, name, {}, {})


def tensor(x: Any, *others: Any, double: frozenset[Any] = _DOUBLE) -> Tensor:
    """A Tensor for an argument: a Tensor itself, a Variable's value now, an array's copy.

    An array stays on the device where it is; numbers and lists go to that of the `others`, the
    arguments beside it, or else to the default device. Python floats are float32, but float64
    beside an argument in double precision. Arrays are copied, so a later write to them changes no
    saved value.
    """
    kind = type(x)
    if kind is Tensor:
        return x
    if isinstance(x, Tensor):
        return x._snapshot()
    if backend.is_array(x):
        if kind is np.ndarray:
            x = to_numpy(x)
        return wrap(devices.copy_array(x))
    if isinstance(x, IndexedSlices):
        return x.to_dense()
    if hasattr(kind, HOLDER):
        return tensor(opened(x))
    if isinstance(x, (list, tuple)) and holds_tensor(x):
        return TENSOR.stack(list(x))
    beside = (y for y in others if isinstance(y, Tensor) or backend.is_array(y))
    home = next((devices.device_of(getattr(y, "_data", y)) for y in beside), None)
    is_double = any(getattr(y, "dtype", "") in double for y in others)
    values = to_numpy(x, np.float64 if is_double else None)
    return wrap(devices.put(values, home or devices.default_device()))
