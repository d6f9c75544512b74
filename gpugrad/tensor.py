"""Tensor, Variable and IndexedSlices: storage, dtype, device, and what Python asks of a number.

No mathematics: `gpugrad.methods` hangs the ops on these classes.
"""

from __future__ import annotations

import itertools
import sys
import threading
import weakref
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any

import numpy as np

from gpugrad import backend
from gpugrad.backend import ARRAYS, BFLOAT16, SCALARS, TENSOR, Device, is_inexact
from gpugrad.errors import ArgumentError, DeviceError, DTypeError, ShapeError, describe, reraise

__all__ = [
    "IndexedSlices",
    "Tensor",
    "Variable",
    "constant",
    "convert_to_tensor",
    "next_id",
    "recorders",
    "tensor",
    "threads",
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
    __array_ufunc__ = None  # ndarray * Tensor must come to Tensor.__rmul__
    __array_priority__ = 1000.0

    _data: Any
    _id: int

    def __init__(self) -> None:
        raise TypeError("Make tensors with gg.constant(value) or gg.asarray(array).")

    @property
    def shape(self) -> tuple[int, ...]:
        """Length along each axis."""
        return self._data.shape  # type: ignore[no-any-return]

    @property
    def ndim(self) -> int:
        """Number of axes."""
        return self._data.ndim  # type: ignore[no-any-return]

    @property
    def size(self) -> int:
        """Number of elements."""
        return self._data.size  # type: ignore[no-any-return]

    @property
    def nbytes(self) -> int:
        """Bytes that the elements take."""
        return self._data.nbytes  # type: ignore[no-any-return]

    @property
    def dtype(self) -> np.dtype[Any]:
        """Type of the elements."""
        return self._data.dtype  # type: ignore[no-any-return]

    @property
    def device(self) -> Device:
        """Where the elements are."""
        return backend.device_of(self._data)

    def numpy(self) -> np.ndarray[Any, Any]:
        """A new NumPy array with the values (copied from the GPU if they are there)."""
        return backend.host(self._data)

    def item(self) -> Any:
        """The one element as a Python number; ArgumentError if there is not exactly one."""
        if self.size != 1:
            raise ArgumentError(f"item: one element is needed, the shape is {self.shape}.")
        return self._data.item()

    def tolist(self) -> Any:
        """Nested Python lists of the values; a Python number for a 0-d tensor."""
        return self._data.tolist()

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> np.ndarray[Any, Any]:
        if self.device.kind != "cpu":
            raise DTypeError(
                f"A tensor on {self.device} does not turn into a NumPy array by itself: "
                "call x.numpy(), which copies it to the host."
            )
        if isinstance(self, Variable):
            self._read()  # so that a tape that watches Variables on first use knows it
        if self._id and any(self._id in r.known for r in threads.stack):
            raise DTypeError(
                "A tensor watched by an active tape was about to become a NumPy array, which "
                "would cut its gradient. Use gpugrad's function of that name, or say that you "
                "mean it: x.numpy(), or gg.stop_gradient(x)."
            )
        data = self._data
        if dtype is not None and dtype != data.dtype:
            return data.astype(dtype)  # type: ignore[no-any-return]
        if copy:
            return data.copy()  # type: ignore[no-any-return]
        view: np.ndarray[Any, Any] = data.view()
        view.flags.writeable = False
        return view

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
        return format(self.item(), spec) if spec and self.size == 1 else format(str(self), spec)

    __hash__ = object.__hash__  # by identity; == is elementwise, as the array API asks

    def __copy__(self) -> Tensor:
        return _made(self._data, self._id)

    def __deepcopy__(self, memo: dict[int, Any]) -> Tensor:
        return _made(self._data, self._id)  # copy-on-write: sharing cannot be observed

    def __reduce__(self) -> Any:
        return _unpickle, (self.numpy(), str(self.device))

    def __repr__(self) -> str:
        return (
            f"Tensor({_digits(self._data)}, shape={self.shape}, dtype={self.dtype}, "
            f"device={self.device})"
        )

    def __str__(self) -> str:
        return _digits(self._data, separator=" ")

    def _own(self) -> Any:
        """The array, copied first if anything else can see it; the caller may write to it."""
        data = self._data
        if sys.getrefcount(data) > _ALONE + 1 or data.base is not None or not _writeable(data):
            self._data = data = data.copy()
        return data

    if TYPE_CHECKING:  # hung on by gpugrad.methods; said here for type checkers and editors
        T: Tensor
        mT: Tensor  # noqa: N815

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


def _made(data: Any, serial: int) -> Tensor:
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


_probe = wrap(np.empty(0))
_ALONE = sys.getrefcount(_probe._data)  # what getrefcount says of an array that only we hold


def _unpickle(values: np.ndarray[Any, Any], device: str) -> Tensor:
    return wrap(backend.put(values, backend.device(device)))


def _digits(array: Any, separator: str = ", ") -> str:
    """The values as text. Of a long array only the edges are copied from the device."""
    shown, long = array, array.size > 1000
    if long:  # seven along an axis print as three, dots, three
        for axis, n in enumerate(array.shape):
            if n > 7:
                edges = np.r_[0:4, n - 3 : n]
                shown = shown[(slice(None),) * axis + (edges,)]
    values = backend.host(shown)
    if values.dtype == BFLOAT16:
        values = values.astype(np.float32)
    if not values.ndim:
        return str(values[()])
    return np.array2string(
        values, separator=separator, threshold=1 if long else 1001, edgeitems=3, max_line_width=88
    )


# ---- from Python and NumPy --------------------------------------------------------------


def _numbers(value: Any) -> bool:
    """Whether nested lists hold Python's own numbers only."""
    if isinstance(value, (list, tuple)):
        return all(_numbers(v) for v in value)
    return type(value) in SCALARS


def _holds_tensor(value: Any) -> bool:
    if isinstance(value, (list, tuple)):
        return any(_holds_tensor(v) for v in value)
    return isinstance(value, Tensor)


def _to_numpy(value: Any) -> np.ndarray[Any, Any]:
    """A NumPy array of `value`; Python floats become float32, complex numbers complex64."""
    if isinstance(value, str) or value is None:
        raise DTypeError(f"{value!r} is not a number, an array, or nested lists of them.")
    try:
        made = np.asarray(value)
    except ValueError as error:
        raise ShapeError(f"Nested lists of unequal lengths make no array: {error}") from error
    if made.dtype.kind not in "biufc" and made.dtype != BFLOAT16:
        raise DTypeError(
            f"A {type(value).__name__} with elements of dtype {made.dtype} is not an array of "
            "numbers."
        )
    if made.dtype.kind in "fc" and _numbers(value):
        return made.astype(np.complex64 if made.dtype.kind == "c" else np.float32)
    if isinstance(value, (list, tuple)) and not made.size:
        return made.astype(np.float32)
    return made


def _no_part_lost(what: str, old: np.dtype[Any], new: np.dtype[Any]) -> np.dtype[Any]:
    """`new`; DTypeError if a complex number would lose its imaginary part."""
    if old.kind == "c" and new.kind != "c":
        raise DTypeError(f"{what}: a {old} value does not become {new}; say which part you want.")
    return new


def tensor(x: Any) -> Tensor:
    """The Tensor that an op reads for an argument: a Variable's value, an array's copy.

    An array stays on the device where it is; Python numbers and lists go to the default
    device. Arrays are copied, so that writing to them later corrupts no saved value.
    """
    kind = type(x)
    if kind is Tensor:
        return x  # type: ignore[no-any-return]
    if isinstance(x, Variable):
        return x._read()
    if isinstance(x, Tensor):
        return _made(x._data, x._id)
    if backend.is_array(x):
        if kind is np.ndarray:
            x = _to_numpy(x)
        return wrap(x.copy())
    if isinstance(x, IndexedSlices):
        return x.to_dense()
    if isinstance(x, (list, tuple)) and _holds_tensor(x):
        return TENSOR.stack([tensor(v) for v in x])  # type: ignore[no-any-return]
    return wrap(backend.put(_to_numpy(x), backend.default_device()))


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

    >>> import gpugrad as gg
    >>> gg.constant([1.0, 2.0])
    Tensor([1., 2.], shape=(2,), dtype=float32, device=cpu)
    """
    if _holds_tensor(value):
        return _converted(tensor(value), dtype, shape, device)
    d = backend.default_device() if device is None else backend.device(device)
    if not isinstance(value, np.ndarray) and backend.is_array(value):
        made = backend.move(value, d).copy()
    else:
        made = _to_numpy(value)
    if dtype is not None:
        made = made.astype(_no_part_lost("constant", made.dtype, backend.as_dtype(dtype)), copy=False)
    if shape is not None:
        shape = (shape,) if isinstance(shape, int) else tuple(shape)
        if made.size not in (1, int(np.prod(shape))):
            raise ShapeError(f"constant: {made.size} values do not fill the shape {shape}.")
        made = made.reshape(shape) if made.size == np.prod(shape) else made.repeat(
            int(np.prod(shape))).reshape(shape)  # fmt: skip
    return wrap(backend.put(made, d) if type(made) is np.ndarray else made)


def _converted(t: Tensor, dtype: Any, shape: Any, device: Any) -> Tensor:
    """`constant` of what is a Tensor already: differentiable conversions, or itself."""
    if dtype is not None and t.dtype != backend.as_dtype(dtype):
        t = TENSOR.astype(t, _no_part_lost("constant", t.dtype, backend.as_dtype(dtype)))
    if shape is not None and t.shape != tuple(np.atleast_1d(shape)):
        change = TENSOR.broadcast_to if t.size == 1 else TENSOR.reshape
        t = change(t, (shape,) if isinstance(shape, int) else tuple(shape))
    return t if device is None else t.to_device(device)


def convert_to_tensor(value: Any, dtype: Any = None) -> Tensor:
    """Return `value` as a Tensor: a Tensor itself, a Variable's value, else `constant`.

    Raises:
        DTypeError: a Tensor of another dtype than the one asked for (cast it with astype).

    >>> import gpugrad as gg
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


# ---- Variable ---------------------------------------------------------------------------

_ANY = object()


class Variable(Tensor):
    """A Tensor that can be given new values, and that tapes watch by themselves.

    Args:
        initial_value: a number, lists, an array, a Tensor, or a function that returns one.
        trainable: whether tapes watch it on first use.
        name: for messages.
        dtype: of the Variable; that of the value if None.
        shape: if given, assigned values may have any shape that fits; None is any length
            (``shape=None``: any shape at all).

    >>> import gpugrad as gg
    >>> v = gg.Variable(2.0)
    >>> v.assign_add(1.0).numpy().item()
    3.0
    """

    __slots__ = ("_fits", "_name", "_trainable")

    def __init__(
        self,
        initial_value: Any = None,
        trainable: bool = True,
        name: str | None = None,
        dtype: Any = None,
        shape: Any = _ANY,
        *,
        device: Any = None,
    ) -> None:
        if callable(initial_value) and not isinstance(initial_value, Tensor):
            initial_value = initial_value()
        if initial_value is None:
            raise ArgumentError("Variable: an initial_value is needed.")
        if isinstance(initial_value, Tensor) and device is None:
            device = initial_value.device
        self._data = constant(initial_value, dtype, device=device)._data
        self._id = next_id()
        self._name = name or f"Variable_{self._id}"
        self._trainable = bool(trainable)
        self._fits = self._data.shape if shape is _ANY else shape
        self._check_shape("Variable", self._data.shape)

    @property
    def name(self) -> str:
        """The name given, or one made from a serial number."""
        return self._name

    @property
    def trainable(self) -> bool:
        """Whether tapes watch the Variable on first use."""
        return self._trainable

    def _read(self) -> Tensor:
        """The value now, with the Variable's identity: all reads add to one gradient."""
        if recorders:
            for recorder in threads.stack:
                recorder.touched(self)
        t = new(Tensor)
        t._data = self._data
        t._id = self._id
        return t

    def value(self) -> Tensor:
        """A Tensor of the value now; a later assign does not change it."""
        return self._read()

    read_value = value

    def ref(self) -> VariableRef:
        """A hashable reference, equal for the same Variable."""
        return VariableRef(self)

    def _check_shape(self, op: str, shape: tuple[int, ...]) -> None:
        fits = self._fits
        if fits is not None and (
            len(fits) != len(shape)
            or any(a not in (None, b) for a, b in zip(fits, shape, strict=True))
        ):
            raise ShapeError(
                f"{op}: the value has shape {shape}, the Variable '{self._name}' {fits}. "
                "Variables do not broadcast; reshape the value, or make the Variable with shape=."
            )

    def _fit(self, op: str, value: Any) -> Any:
        """A bare array of `value` in the Variable's dtype and device, fit to be its value."""
        if isinstance(value, Tensor):
            if isinstance(value, Variable):
                value = value._read()
            if value.dtype != self.dtype:
                raise DTypeError(
                    f"{op}: the value is {value.dtype}, the Variable '{self._name}' {self.dtype}. "
                    "Cast it with gg.astype(x, dtype)."
                )
            if value.device != self.device:
                raise DeviceError(
                    f"{op}: the value is on {value.device}, the Variable '{self._name}' on "
                    f"{self.device}. Move it with x.to_device(device)."
                )
            for recorder in threads.stack:
                recorder.barrier(op, (value._id,), self._id)
            data = value._data
        else:
            data = constant(value, device=self.device)._data
            if is_inexact(data.dtype) and not is_inexact(self.dtype):
                raise DTypeError(f"{op}: {describe({'value': value})} does not go into the "
                                 f"{self.dtype} Variable '{self._name}'.")  # fmt: skip
            data = data.astype(_no_part_lost(op, data.dtype, self.dtype), copy=False)
        return data

    def assign(self, value: Any, use_locking: Any = None, name: Any = None,
               read_value: bool = True) -> Variable | None:  # fmt: skip
        """Give the Variable a new value of its shape and dtype; not differentiated through.

        Raises:
            ShapeError, DTypeError, DeviceError: the value does not fit; nothing is changed.
        """
        data = self._fit("assign", value)
        self._check_shape("assign", data.shape)
        self._data = data  # may be shared: nobody writes to an array that others can see
        return self if read_value else None

    def _update(self, op: str, value: Any, step: Callable[[Any, Any], Any], read: bool) -> Any:
        data = self._fit(op, value)
        if data.shape != self.shape:
            self._check_shape(op, data.shape)
            raise ShapeError(f"{op}: the value has shape {data.shape}, the Variable {self.shape}.")
        made = step(self._data, data)
        self._data = made if type(made) in ARRAYS else np.asarray(made)  # 0-d NumPy sums are scalars
        return self if read else None

    def assign_add(self, delta: Any, use_locking: Any = None, name: Any = None,
                   read_value: bool = True) -> Any:  # fmt: skip
        """Add a value of the same shape and dtype; errors as `assign`."""
        return self._update("assign_add", delta, lambda a, b: a + b, read_value)

    def assign_sub(self, delta: Any, use_locking: Any = None, name: Any = None,
                   read_value: bool = True) -> Any:  # fmt: skip
        """Subtract a value of the same shape and dtype; errors as `assign`."""
        return self._update("assign_sub", delta, lambda a, b: a - b, read_value)

    def _scatter(self, op: str, slices: IndexedSlices, how: str) -> Variable:
        if not isinstance(slices, IndexedSlices):
            raise DTypeError(f"{op}: IndexedSlices are needed, got {type(slices).__name__}.")
        xp = backend.NAMESPACES[type(self._data)]
        values = self._fit(op, slices.values)
        self._data = getattr(xp, how)(self._data, values, index=slices.indices._data)
        return self

    def scatter_add(self, slices: IndexedSlices) -> Variable:
        """Add rows; a row named twice is added twice."""
        return self._scatter("scatter_add", slices, "index_add")

    def scatter_sub(self, slices: IndexedSlices) -> Variable:
        """Subtract rows; a row named twice is subtracted twice."""
        return self._scatter("scatter_sub",
            IndexedSlices(-slices.values, slices.indices, slices.dense_shape), "index_add")  # fmt: skip

    def scatter_update(self, slices: IndexedSlices) -> Variable:
        """Replace rows."""
        return self._scatter("scatter_update", slices, "index_put")

    def __setitem__(self, index: Any, value: Any) -> None:
        raise DTypeError("A Variable's elements are set with v[index].assign(value).")

    def _no_inplace(self, other: Any) -> Any:
        raise DTypeError(
            "`variable += value` would lose the Variable: use variable.assign_add(value), or "
            "write `x = variable + value` for a new Tensor."
        )

    __iadd__ = __isub__ = __imul__ = __itruediv__ = _no_inplace

    def __copy__(self) -> Variable:
        return self.__deepcopy__({})

    def __deepcopy__(self, memo: dict[int, Any]) -> Variable:
        v = new(Variable)
        v._data, v._id = self._data, next_id()
        v._name, v._trainable, v._fits = self._name, self._trainable, self._fits
        return v

    def __reduce__(self) -> Any:
        return _unpickle_variable, (
            backend.host(self._data), str(self.device), self._trainable, self._name, self._fits,
        )  # fmt: skip

    def __repr__(self) -> str:
        return (
            f"Variable({_digits(self._data)}, shape={self.shape}, dtype={self.dtype}, "
            f"device={self.device}, name='{self._name}')"
        )


def _unpickle_variable(values: Any, device: str, trainable: bool, name: str, fits: Any) -> Variable:
    return Variable(values, trainable, name, shape=fits, device=device)


class VariableSlice(Tensor):
    """What ``v[index]`` gives: a Tensor that can also assign to that part of the Variable."""

    __slots__ = ("_index", "_variable")

    def assign(self, value: Any) -> Variable:
        """Set this part of the Variable; the value broadcasts to it."""
        variable = self._variable
        data = variable._fit("assign", value)
        xp = backend.NAMESPACES[type(data)]
        try:
            variable._data = xp.setitem(variable._data, data, index=self._index)
        except Exception as error:
            reraise(error, "assign", {"part": self, "value": data}, {})
        return variable  # type: ignore[no-any-return]


class VariableRef:
    """A hashable stand-in for a Variable, for sets and dict keys."""

    __slots__ = ("_serial", "_weak")

    def __init__(self, variable: Variable) -> None:
        self._weak, self._serial = weakref.ref(variable), variable._id

    def deref(self) -> Variable:
        """The Variable itself."""
        variable = self._weak()
        if variable is None:
            raise ArgumentError("deref: the Variable is gone.")
        return variable

    def __hash__(self) -> int:
        return self._serial

    def __eq__(self, other: object) -> bool:
        return isinstance(other, VariableRef) and other._serial == self._serial


# ---- IndexedSlices ----------------------------------------------------------------------


class IndexedSlices:
    """Rows of a tensor that is zero elsewhere: the gradient of `gather` along axis 0.

    Args:
        values: Tensor of shape (n, ...).
        indices: integer Tensor of shape (n,); the row of each value, repeats add up.
        dense_shape: shape of the whole.
    """

    __slots__ = ("dense_shape", "indices", "values")

    def __init__(self, values: Any, indices: Any, dense_shape: tuple[int, ...]) -> None:
        self.values, self.indices, self.dense_shape = values, indices, tuple(dense_shape)

    @property
    def shape(self) -> tuple[int, ...]:
        """Shape of the whole."""
        return self.dense_shape

    @property
    def dtype(self) -> np.dtype[Any]:
        """Type of the elements."""
        return self.values.dtype  # type: ignore[no-any-return]

    @property
    def device(self) -> Device:
        """Where the elements are."""
        return self.values.device  # type: ignore[no-any-return]

    def to_dense(self, xp: Any = TENSOR) -> Any:
        """The whole tensor; repeated rows are summed. Differentiable in `values`."""
        return xp.scatter_rows(self.values, self.indices, shape=self.dense_shape)

    def __repr__(self) -> str:
        return (
            f"IndexedSlices(values={self.values!r}, indices={self.indices!r}, "
            f"dense_shape={self.dense_shape})"
        )


