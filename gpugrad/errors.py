"""Exception classes, and the sentence that describes an op's arguments in a message.

Every class also derives from the built-in class a NumPy user would catch, so
``except ValueError`` around a bad reshape goes on working.
"""

from __future__ import annotations

import functools
import inspect
import re
import sys
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NoReturn, TypeVar, cast

import numpy as np

__all__ = [
    "ArgumentError",
    "AxisError",
    "CheckpointError",
    "DTypeError",
    "DeviceError",
    "GpugradError",
    "IndexOutOfBoundsError",
    "KernelError",
    "NoGradientError",
    "OutOfMemoryError",
    "ShapeError",
    "SingularMatrixError",
    "StructureError",
    "TapeError",
    "TraceError",
    "describe",
    "reraise",
    "saying_where",
]


F = TypeVar("F", bound=Callable[..., Any])


class GpugradError(Exception):
    """The base of every error that gpugrad raises on its own account."""


class ArgumentError(GpugradError, ValueError):
    """A value that the function does not accept."""


class ShapeError(ArgumentError):
    """Shapes that do not fit each other or the op."""


class AxisError(ShapeError, IndexError):
    """An axis that the array does not have."""


class StructureError(ArgumentError, TypeError):
    """Nested lists, tuples or dicts that should match and do not."""


class IndexOutOfBoundsError(GpugradError, IndexError):
    """An index beyond the end of its axis."""


class SingularMatrixError(ArgumentError):
    """A matrix that has no inverse, or is not positive definite, where one is needed."""


class DTypeError(GpugradError, TypeError):
    """A dtype, or a Python type, that the op does not take."""


class DeviceError(GpugradError, RuntimeError):
    """A device that is not there, or arrays on two devices in one op."""


class TapeError(GpugradError, RuntimeError, ValueError):
    """A tape used at a time when it cannot do what is asked."""


class TraceError(GpugradError, RuntimeError):
    """A traced function did what only a function of arrays that it was given may not do."""


class NoGradientError(GpugradError, LookupError):
    """A backward pass reached an op that has no derivative rule."""


class KernelError(GpugradError, RuntimeError):
    """A CUDA kernel that does not compile or cannot be launched."""


class OutOfMemoryError(GpugradError, MemoryError):
    """The device has no room for a result."""


class CheckpointError(GpugradError, ValueError):
    """A checkpoint that is missing, damaged, or of another model."""


def describe(arrays: Mapping[str, Any], params: Mapping[str, Any] | None = None) -> str:
    """List arguments by name: dtype, shape and device of arrays, value of the rest.

    >>> describe({"x": np.zeros((2, 3)), "y": 2}, {"axis": 5})
    'x: float64 (2, 3) on cpu, y: 2, axis=5'
    """
    said = [f"{name}: {_brief(value)}" for name, value in arrays.items()]
    said += [f"{name}={_brief(value)}" for name, value in (params or {}).items()]
    return ", ".join(said)


def _brief(value: Any) -> str:
    if isinstance(value, (list, tuple)) and value and hasattr(value[0], "dtype"):
        return "[" + ", ".join(_brief(v) for v in value) + "]"
    dtype, shape = getattr(value, "dtype", None), getattr(value, "shape", None)
    if dtype is None or shape is None or isinstance(value, type):  # as numpy.float32
        text = repr(value)
        return text if len(text) < 60 else text[:57] + "..."
    device = getattr(value, "device", None)
    return f"{dtype} {tuple(shape)}" + (f" on {device}" if device is not None else "")


# What a library's own exception means, by words in its text: (words, class, way out).
_INDEX = "Indices run from -n to n - 1 along an axis of length n."
_AXIS = "Count axes from 0, or from -1 at the end."
_MEANINGS: Sequence[tuple[tuple[str, ...], type[GpugradError], str]] = (
    (("singular", "positive definite"), SingularMatrixError,
     "Add a small multiple of the identity, or use a decomposition that allows it."),
    (("broadcast",), ShapeError, "Shapes must agree, counted from the last axis; a 1 stretches."),
    (("core dimension",), ShapeError, "The last axis of the first must be as long as the last but "
     "one of the second."),
    (("shape", "dimension", "reshape", "size", "square", "length", "operand", "sequence"),
     ShapeError, ""),
    (("axis", "axes"), AxisError, _AXIS),
)  # fmt: skip


def reraise(
    error: Exception, name: str, arrays: Mapping[str, Any], params: Mapping[str, Any]
) -> NoReturn:
    """Raise what happened inside op `name` as a gpugrad error that says where, and what to do."""
    if isinstance(error, GpugradError):
        if re.search(rf"(?<!\w){re.escape(name)}(?!\w)", str(error)):
            raise error
        raise type(error)(f"{name}: {error}") from error
    found = _meaning(error)
    if found is None:
        error.add_note(f"Raised inside the op {name}, given {describe(arrays, params)}.")
        if type(error).__name__ in ("CUDARuntimeError", "CUDADriverError"):
            error.add_note(_FAILED)
        raise error
    kind, way_out = found
    said = str(error).rstrip(" .")
    raise kind(f"{name}: {said}. Got {describe(arrays, params)}. {way_out}".rstrip()) from error


def saying_where(function: F) -> F:
    """A function that is no op, with errors that say where and of what, as those of ops do."""

    @functools.wraps(function)
    def call(*args: Any, **keywords: Any) -> Any:
        try:
            return function(*args, **keywords)
        except Exception as error:
            given = dict(zip(inspect.signature(function).parameters, args, strict=False))
            reraise(error, function.__name__, given, keywords)

    return cast(F, call)


_NO_INT = (
    "cannot be interpreted as an integer|__index__|iteration over a 0-d|"
    "must be integers|an integer is required|"
    "integer argument expected|non-int of type|object is not iterable|sequence of integers"
)


_ROOM = (
    "Use smaller batches, free tensors and tapes still held, or trade memory for time with "
    "gg.recompute_grad."
)

_FAILED = (
    "A GPU reports late: what failed may be an earlier launch, which CUDA_LAUNCH_BLOCKING=1 finds. "
    "After most such errors it takes no more work of this process: start again from a checkpoint."
)


def _memory() -> str:
    """How the memory of the current GPU is used. Its allocator has emptied its cache by now."""
    cupy: Any = sys.modules["cupy"]  # which has raised the error
    pool, free = cupy.get_default_memory_pool(), cupy.cuda.runtime.memGetInfo()[0]
    held, kept = pool.used_bytes(), pool.free_bytes()
    return f"Arrays hold {held:,} bytes, the pool keeps {kept:,}, the device has {free:,} free. "


def _meaning(error: Exception) -> tuple[type[GpugradError], str] | None:
    """The class and the way out for an array library's exception; None for others."""
    if isinstance(error, MemoryError):
        on_device = type(error).__name__ == "OutOfMemoryError" and "cupy" in sys.modules
        return OutOfMemoryError, (_memory() if on_device else "") + _ROOM
    if isinstance(error, np.exceptions.AxisError):
        return AxisError, _AXIS
    if isinstance(error, TypeError):
        if re.search(r"\(\) (takes|got|missing)", str(error)):  # a call in the op's own code
            return None
        if "not supported between instances" in str(error):
            return ArgumentError, "A number is needed there, an int for an axis or a length."
        if re.search(_NO_INT, str(error)):
            return ArgumentError, "An int, or a tuple of ints, is needed there."
        return DTypeError, "Convert with gg.astype(x, dtype) first."
    if isinstance(error, AttributeError):
        if re.search(r"'(int|float|bool|complex|str|list|tuple)' object has", str(error)):
            return DTypeError, "An array is needed there."
        return None
    if isinstance(error, OverflowError):
        return DTypeError, "The number does not fit the array's dtype."
    if not isinstance(error, (ValueError, LookupError, ArithmeticError)):
        return None
    text = str(error).lower()
    if isinstance(error, IndexError) or text.startswith("index "):
        return IndexOutOfBoundsError, _INDEX
    for words, kind, way_out in _MEANINGS:
        if any(word in text for word in words):
            return kind, way_out
    return ArgumentError, ""
