"""Exception classes, and the sentence that describes an op's arguments in a message.

Every class also derives from the built-in class a NumPy user would catch, so
``except ValueError`` around a bad reshape goes on working.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

__all__ = [
    "ArgumentError",
    "AxisError",
    "CheckpointError",
    "DTypeError",
    "DeviceError",
    "GpugradError",
    "IndexOutOfBoundsError",
    "NoGradientError",
    "OutOfMemoryError",
    "ShapeError",
    "SingularMatrixError",
    "StructureError",
    "TapeError",
    "describe",
    "explain",
]


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


class NoGradientError(GpugradError, LookupError):
    """A backward pass reached an op that has no derivative rule."""


class OutOfMemoryError(GpugradError, MemoryError):
    """The device has no room for a result."""


class CheckpointError(GpugradError, ValueError):
    """A checkpoint that is missing, damaged, or of another model."""


def describe(arrays: Mapping[str, Any], params: Mapping[str, Any] | None = None) -> str:
    """List arguments by name: dtype, shape and device of arrays, value of the rest.

    >>> import numpy as np
    >>> describe({"x": np.zeros((2, 3)), "y": 2}, {"axis": 5})
    'x: float64 (2, 3), y: 2, axis=5'
    """
    said = [f"{name}: {_brief(value)}" for name, value in arrays.items()]
    said += [f"{name}={_brief(value)}" for name, value in (params or {}).items()]
    return ", ".join(said)


def _brief(value: Any) -> str:
    if isinstance(value, (list, tuple)) and value and hasattr(value[0], "dtype"):
        return "[" + ", ".join(_brief(v) for v in value) + "]"
    dtype, shape = getattr(value, "dtype", None), getattr(value, "shape", None)
    if dtype is None or shape is None:
        text = repr(value)
        return text if len(text) < 60 else text[:57] + "..."
    device = getattr(value, "device", None)
    return f"{dtype} {tuple(shape)}" + (f" on {device}" if device is not None else "")


# What a library's own exception means, by words in its text: (words, class, way out).
_MEANINGS: Sequence[tuple[tuple[str, ...], type[GpugradError], str]] = (
    (("singular", "positive definite"), SingularMatrixError,
     "Add a small multiple of the identity, or use a decomposition that allows it."),
    (("axis", "axes"), AxisError, "Count axes from 0, or from -1 at the end."),
    (("out of bounds", "out of range", "too many indices"), IndexOutOfBoundsError,
     "Indices run from -n to n - 1 along an axis of length n."),
    (("broadcast", "shape", "dimension", "reshape", "size", "square", "length", "operand"),
     ShapeError, "Shapes must agree, counted from the last axis; a 1 stretches."),
)  # fmt: skip


def explain(
    error: Exception, name: str, arrays: Mapping[str, Any], params: Mapping[str, Any]
) -> Exception:
    """Turn what an array library raised inside op `name` into a gpugrad error that says where."""
    if isinstance(error, GpugradError) or not isinstance(error, Exception):
        return error
    if isinstance(error, MemoryError) or type(error).__name__ == "OutOfMemoryError":
        kind: type[GpugradError] = OutOfMemoryError
        hint = "Use smaller batches, or free tensors and persistent tapes that you still hold."
    elif isinstance(error, TypeError):
        kind, hint = DTypeError, "Convert with gg.astype(x, dtype) first."
    elif isinstance(error, OverflowError):
        kind, hint = DTypeError, "The number does not fit the array's dtype."
    elif isinstance(error, (ValueError, IndexError, ArithmeticError)):
        text = str(error).lower()
        kind, hint = ArgumentError, ""
        if isinstance(error, IndexError):
            kind, hint = IndexOutOfBoundsError, _MEANINGS[2][2]
        for words, meaning, way_out in _MEANINGS:
            if any(word in text for word in words):
                kind, hint = meaning, way_out
                break
    else:
        return error
    said = str(error).rstrip(" .")
    return kind(f"{name}: {said}. Got {describe(arrays, params)}. {hint}".rstrip())
