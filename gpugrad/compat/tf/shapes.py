"""Shapes and dtypes with TensorFlow's attributes, and what a program for it sees of a Tensor.

In modules whose global ``tf`` or ``tensorflow`` is gpugrad.compat.tf, a Tensor's ``shape`` is a
`TensorShape`, its ``dtype`` a `DType`, its ``device`` a string, ``numpy()`` of no axes a NumPy
number, and it prints as in TensorFlow. Elsewhere, as in gpugrad, they are gpugrad's.
"""

from __future__ import annotations

import functools
import inspect
import sys
from typing import Any

import numpy as np

import gpugrad as gg
from gpugrad.core import backend
from gpugrad.core.tensor import Tensor
from gpugrad.errors import ArgumentError
from gpugrad.trace.array import current_trace

readers: list[Any] = []
"""The modules whose users see these classes: compat.tf and compat.tf.v1."""


def numpys(dtype: Any) -> Any:
    """The NumPy dtype of a name or a type; float is float32, as in TensorFlow."""
    return backend.as_dtype("float32" if dtype is float or str(dtype) == "float" else dtype)


class DType:
    """A dtype with TensorFlow's attributes and NumPy's; NumPy and gpugrad take it as theirs.

    >>> import gpugrad.compat.tf as tf
    >>> tf.float32.is_floating, tf.float32.name, tf.float32 == "float32", tf.int32.size
    (True, 'float32', True, 4)
    """

    def __init__(self, dtype) -> None:
        self.dtype = numpys(dtype)  # NumPy asks an object for this attribute
        kind = "f" if self.dtype == gg.bfloat16 else self.dtype.kind
        self.is_floating, self.is_complex = kind == "f", kind == "c"
        self.is_integer, self.is_unsigned, self.is_bool = kind in "iu", kind == "u", kind == "b"
        self.is_numeric = kind != "b"
        self.is_numpy_compatible, self.is_quantized = True, False
        self.as_numpy_dtype, self.size, self.base_dtype = self.dtype.type, self.dtype.itemsize, self

    def __getattr__(self, name: str) -> Any:
        if name == "dtype" or name.startswith("__array"):
            raise AttributeError(name)
        return getattr(self.dtype, name)  # kind, itemsize, ...

    real_dtype = property(lambda self: as_dtype(f"f{self.size // 2}") if self.is_complex else self)
    min = property(lambda self: self._limits().min)
    max = property(lambda self: self._limits().max)
    limits = property(lambda self: (self.min, self.max))

    def _limits(self) -> Any:
        return (gg.finfo if self.is_floating or self.is_complex else gg.iinfo)(self.dtype)

    def is_compatible_with(self, other) -> bool:
        return self == other

    def __eq__(self, other: object) -> bool:
        try:
            return other is not None and self.dtype == numpys(other)
        except TypeError:
            return False

    def __hash__(self) -> int:
        return hash(self.dtype)

    def __reduce__(self) -> Any:
        return as_dtype, (self.dtype,)

    def __repr__(self) -> str:
        return f"tf.{self.dtype.name}"

    def __str__(self) -> str:
        return f"<dtype: {self.dtype.name!r}>"


_dtypes: dict[Any, DType] = {}


def as_dtype(type_value) -> DType:
    dtype = numpys(type_value)
    return _dtypes[dtype] if dtype in _dtypes else _dtypes.setdefault(dtype, DType(dtype))


class TensorShape(tuple[Any, ...]):
    """A shape: a tuple with TensorFlow's methods, which equals lists, too.

    >>> import gpugrad.compat.tf as tf
    >>> tf.zeros([2, 3]).shape.as_list(), tf.TensorShape([2, None]).rank
    ([2, 3], 2)
    """

    __slots__ = ()

    def __new__(cls, dims=()) -> TensorShape:
        """A shape; an int stands for one axis."""
        if dims is None:
            raise ArgumentError("TensorShape(None): shapes of unknown rank are not known here.")
        return super().__new__(cls, (dims,) if isinstance(dims, int) else dims)

    rank = ndims = property(len)
    dims = property(list)

    def as_list(self) -> list[Any]:
        return list(self)

    def num_elements(self) -> int | None:
        return None if None in self else int(np.prod(self, dtype=np.int64))

    def is_fully_defined(self) -> bool:
        return None not in self

    def is_compatible_with(self, other) -> bool:
        """Whether a shape fits, where None fits all lengths."""
        other = TensorShape(other)
        return len(self) == len(other) and all(
            None in (a, b) or a == b for a, b in zip(self, other, strict=True)
        )

    def assert_is_compatible_with(self, other) -> None:
        if not self.is_compatible_with(other):
            raise ArgumentError(f"Shapes {self} and {tuple(other)} are incompatible.")

    def merge_with(self, other) -> TensorShape:
        """The lengths of both, of which each may lack some."""
        self.assert_is_compatible_with(other)
        return TensorShape(b if a is None else a for a, b in zip(self, other, strict=True))

    def with_rank(self, rank) -> TensorShape:
        if len(self) != rank:
            raise ArgumentError(f"Shape {self} must have rank {rank}.")
        return self

    def with_rank_at_least(self, rank) -> TensorShape:
        if len(self) < rank:
            raise ArgumentError(f"Shape {self} must have rank {rank} or more.")
        return self

    def assert_has_rank(self, rank) -> None:
        self.with_rank(rank)

    def concatenate(self, other) -> TensorShape:
        return TensorShape((*self, *other))

    __add__ = concatenate

    def __radd__(self, other) -> TensorShape:
        return TensorShape((*other, *self))

    def __getitem__(self, key) -> Any:
        found = super().__getitem__(key)
        return TensorShape(found) if isinstance(key, slice) else found

    def __eq__(self, other: object) -> bool:
        return tuple(self) == (tuple(other) if isinstance(other, (list, tuple)) else other)

    def __ne__(self, other: object) -> bool:
        return not self == other

    __hash__ = tuple.__hash__

    def __bool__(self) -> bool:
        return True  # it is known, also without axes

    def __repr__(self) -> str:
        return f"TensorShape({list(self)})"

    def __str__(self) -> str:
        return str(tuple(self))


class TensorSpec:
    """A shape and a dtype, without values: an element of ``input_signature=``."""

    def __init__(self, shape=(), dtype="float32", name=None) -> None:
        self.shape = None if shape is None else TensorShape(shape)
        self.dtype, self.name = as_dtype(dtype), name
        self._key = (self.shape, self.dtype)

    @classmethod
    def from_tensor(cls, x, name=None) -> TensorSpec:
        return cls(x.shape, x.dtype, name)

    def is_compatible_with(self, x) -> bool:
        return self.dtype == x.dtype and (
            self.shape is None or self.shape.is_compatible_with(x.shape)
        )

    def __eq__(self, other: object) -> bool:
        return isinstance(other, TensorSpec) and self._key == other._key

    def __hash__(self) -> int:
        return hash(self._key)

    def __repr__(self) -> str:
        return f"TensorSpec(shape={self.shape}, dtype={self.dtype!r}, name={self.name!r})"


class _ForReaders:
    """An attribute of Tensors with another value for the `readers`, who call `f` of it."""

    def __init__(self, name: str, f: Any) -> None:
        self._own: Any = inspect.getattr_static(Tensor, name)
        self._f = f
        self.__doc__ = self._own.__doc__

    def __get__(self, x: Any, kind: type) -> Any:
        own = functools.partial(self._own.__get__, x, kind)
        return self._f(x, own) if x is not None and _reads(sys._getframe(1)) else own()

    def __set__(self, x: Any, value: Any) -> None:
        self._own.__set__(x, value)


def _reads(frame: Any, anywhere: bool = False) -> bool:
    """Whether a frame, or one further out, is a reader's."""
    while frame is not None:
        names = frame.f_globals
        value = names.get("tf")
        value = names.get("tensorflow") if value is None else value
        if any(value is module for module in readers):
            return True
        frame = frame.f_back if anywhere else None
    return False


def _for_readers(own: Any, f: Any, anywhere: bool = False) -> Any:
    """A method with another result for the `readers`: `f` of the Tensor and the result's function.

    An interactive shell calls ``__repr__``: then the reader is further out.
    """

    @functools.wraps(own)
    def method(self: Tensor) -> Any:
        return f(self, own) if _reads(sys._getframe(1), anywhere) else own(self)

    return method


def _text(pattern: str, numpys: Any) -> Any:
    """How TensorFlow prints a Tensor; in a trace, which has no values, its shape and dtype."""

    def text(x: Tensor, own: Any) -> str:
        shape, dtype = TensorShape(x._data.shape), as_dtype(x._data.dtype).name
        if current_trace() is not None:
            return f'Tensor("{getattr(x, "name", "Tensor:0")}", shape={shape}, dtype={dtype})'
        if backend.READINGS[type(x._data)].nesting:
            return str(own(x))
        values = np.asarray(x.numpy())
        shown = numpys(values) if values.ndim or numpys is str else repr(values.item())
        shown = f"\n{shown}" if "\n" in shown else shown
        return pattern.format(shown, shape, dtype, getattr(x, "name", None))

    return text


def show() -> None:
    """Let users of the `readers` see Tensors as TensorFlow's."""
    place = "/job:localhost/replica:0/task:0/device:{}PU:{}".format
    shape: Any = lambda x: TensorShape(x._data.shape)
    cls: Any = Tensor
    cls.shape = _ForReaders("shape", lambda x, own: shape(x))
    cls.dtype = _ForReaders("dtype", lambda x, own: as_dtype(x._data.dtype))
    cls.device = _ForReaders(
        "device", lambda x, own: place("CG"[own().kind == "cuda"], own().index)
    )
    cls.get_shape = _ForReaders("get_shape", lambda x, own: lambda: shape(x))
    cls.set_shape = _ForReaders("set_shape", lambda x, own: shape(x).assert_is_compatible_with)
    cls.numpy = _for_readers(cls.numpy, lambda x, own: own(x)[()])
    tensor = _text("<tf.Tensor: shape={1}, dtype={2}, numpy={0}>", repr)
    cls.__repr__ = _for_readers(cls.__repr__, tensor, True)
    cls.__str__ = _for_readers(cls.__str__, _text("tf.Tensor({0}, shape={1}, dtype={2})", str))
    variable = _text("<tf.Variable {3!r} shape={1} dtype={2}, numpy={0}>", repr)
    cls = gg.Variable
    for name in ("__str__", "__repr__"):
        setattr(cls, name, _for_readers(getattr(cls, name), variable, True))
