"""Arguments as TensorFlow reads them: numbers, nested lists, shapes and dtypes."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable
from typing import Any

import numpy as np

import gpugrad as gg
from gpugrad.core.from_python import numbers_only
from gpugrad.core.tensor import Tensor, holds_tensor
from gpugrad.errors import ArgumentError, DTypeError, NumberOverflowError


def tensor(value, dtype=None, like=None) -> Tensor:
    """A Tensor of `value`: Python ints are int32, floats float32, complex numbers complex128.

    Args:
        value: a number, nested lists, an array, a Tensor, or an object with ``__tf_tensor__``.
        dtype: of the result; a Tensor of another one is refused.
        like: a dtype that Python numbers take instead, if they fit it.

    Raises:
        DTypeError: no number, or a Tensor of another dtype.
        NumberOverflowError: a Python int beyond int32.
    """
    if hasattr(value, "__tf_tensor__"):
        value = value.__tf_tensor__(dtype)
    if isinstance(value, (Tensor, gg.IndexedSlices)) or holds_tensor(value):
        if isinstance(value, (list, tuple)):
            dtypes = [x.dtype for x in gg.core.nest.flatten(value) if isinstance(x, Tensor)]
            return gg.stack([tensor(x, dtype, dtypes[0]) for x in value])
        return gg.convert_to_tensor(value, dtype)
    if isinstance(value, (str, bytes)) or getattr(value, "dtype", np.dtype(bool)).kind in "SUO":
        raise DTypeError(
            f"gpugrad.compat.tf: {value!r:.60} is no number, and strings have no Tensor."
        )
    if dtype is not None:
        return gg.constant(np.asarray(value) if isinstance(value, range) else value, dtype)
    if isinstance(value, range):
        value = list(value)
    result = gg.constant(value)
    if not numbers_only(value):
        return result
    if like is not None and (result.dtype.kind in "biu" or like.kind in "fc"):
        return gg.constant(value, like)
    if result.dtype.kind == "c":
        return gg.constant(value, "complex128")
    if result.dtype == np.int64:
        if np.any(np.abs(np.asarray(value)) > np.iinfo(np.int32).max):
            raise NumberOverflowError(
                f"gpugrad.compat.tf: {value!r:.60} does not fit int32, TensorFlow's dtype of "
                "Python ints: give dtype=tf.int64."
            )
        return gg.astype(result, "int32")
    return result


def together(*values) -> list[Tensor]:
    """Tensors of arguments of one dtype: numbers take that of the first array."""
    like = next((v.dtype for v in values if hasattr(v, "dtype")), None)
    return [tensor(v, like=like) for v in values]


def op(f: Callable[..., Any], *parameters: str) -> Callable[..., Any]:
    """`f` with TensorFlow's names of its parameters, all of them Tensors, and ``name=``."""
    kind = inspect.Parameter.POSITIONAL_OR_KEYWORD
    signature = inspect.Signature(
        [
            *(inspect.Parameter(p, kind) for p in parameters),
            inspect.Parameter("name", kind, default=None),
        ]
    )

    @functools.wraps(f)
    def call(*args, **keywords) -> Any:
        if keywords or len(args) != len(parameters):
            bound = signature.bind(*args, **keywords).arguments
            args = tuple(bound[p] for p in parameters)
        return f(*together(*args))

    call.__signature__ = signature  # type: ignore[attr-defined]  # what help() shows
    return call


def table(text: str, *parameters: str) -> dict[str, Callable[..., Any]]:
    """The ops that a text lists, as ``name`` or ``name=gpugrad's.name``; all take `parameters`."""
    found = {}
    for entry in text.split():
        name, _, own = entry.partition("=")
        f: Any = functools.reduce(getattr, (own or name).split("."), gg)
        found[name] = op(f, *parameters)
    return found


def ints(value: Any) -> tuple[int, ...]:
    """A shape, axes or sizes as ints: of ints, of Tensors, or in a Tensor."""
    if isinstance(value, Tensor) or hasattr(value, "dtype"):
        value = np.asarray(value.numpy() if isinstance(value, Tensor) else value).tolist()
    return tuple(int(n) for n in value) if isinstance(value, (list, tuple)) else (int(value),)


def axes(value: Any) -> Any:
    """An axis or several, None for all."""
    if value is None or isinstance(value, int):
        return value
    found = ints(value)
    several = isinstance(value, (list, tuple)) or getattr(value, "ndim", 0) > 0
    return found if several else found[0]


def layout(name: str, data_format: str | None) -> bool:
    """Whether an argument's channels are its last axis."""
    data_format = data_format or "NHWC"
    if data_format.upper() not in ("NWC", "NHWC", "NDHWC", "NCW", "NCHW", "NCDHW"):
        raise ArgumentError(f"{name}: data_format={data_format!r} is not 'NHWC' or 'NCHW'.")
    return data_format.upper().endswith("C")


class TensorShape(tuple[Any, ...]):
    """A shape, as `Tensor.get_shape` gives it: a tuple with TensorFlow's methods.

    >>> import gpugrad.compat.tf as tf
    >>> tf.TensorShape([2, None]).as_list()
    [2, None]
    """

    def __new__(cls, dims=()) -> TensorShape:
        """A shape; an int stands for one axis."""
        if dims is None:
            raise ArgumentError("TensorShape(None): shapes of unknown rank are not known here.")
        return super().__new__(cls, (dims,) if isinstance(dims, int) else dims)

    rank = ndims = property(len)

    def as_list(self) -> list[Any]:
        """The lengths, as a list."""
        return list(self)

    def num_elements(self) -> int | None:
        """The product of the lengths; None if one is None."""
        return None if None in self else int(np.prod(self, dtype=np.int64))

    def is_fully_defined(self) -> bool:
        """Whether no length is None."""
        return None not in self

    def is_compatible_with(self, other) -> bool:
        """Whether a shape fits, where None fits all lengths."""
        other = tuple(other)
        return len(self) == len(other) and all(
            None in (a, b) or a == b for a, b in zip(self, other, strict=True)
        )

    def concatenate(self, other) -> TensorShape:
        """The lengths of both."""
        return TensorShape((*self, *other))

    def __repr__(self) -> str:
        return f"TensorShape({list(self)})"

    def __str__(self) -> str:
        return str(tuple(self))


class TensorSpec:
    """A shape and a dtype, without values: an element of ``input_signature=``."""

    def __init__(self, shape=(), dtype="float32", name=None) -> None:
        self.shape = None if shape is None else TensorShape(shape)
        self.dtype, self.name = np.dtype(dtype), name

    @classmethod
    def from_tensor(cls, x, name=None) -> TensorSpec:
        """The spec of a Tensor."""
        return cls(x.shape, x.dtype, name)

    def is_compatible_with(self, x) -> bool:
        """Whether a Tensor has this dtype and fits the shape."""
        return self.dtype == x.dtype and (
            self.shape is None or self.shape.is_compatible_with(x.shape)
        )

    def __eq__(self, other: object) -> bool:
        return isinstance(other, TensorSpec) and (self.shape, self.dtype) == (
            other.shape,
            other.dtype,
        )

    def __hash__(self) -> int:
        return hash((self.shape, self.dtype))

    def __repr__(self) -> str:
        return f"TensorSpec(shape={self.shape}, dtype={self.dtype!r}, name={self.name!r})"
