"""Array libraries' exceptions as gpugrad's: the op, its arguments in words, and the way out."""

from __future__ import annotations

import re
import sys
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NoReturn

import numpy as np

from gpugrad.errors.classes import (
    ArgumentError,
    ArgumentTypeError,
    AxisError,
    DTypeError,
    GpugradError,
    IndexOutOfBoundsError,
    MatrixShapeError,
    NumberOverflowError,
    NumericsError,
    OutOfMemoryError,
    ShapeError,
    SingularMatrixError,
)


def describe(arrays: Mapping[str, Any], params: Mapping[str, Any] | None = None) -> str:
    """List arguments by name: dtype, shape and device of arrays, value of the rest.

    >>> describe({"x": np.zeros((2, 3)), "y": 2}, {"axis": 5})
    'x: float64 (2, 3) on cpu, y: 2, axis=5'
    """
    parts = [f"{name}: {_brief(value)}" for name, value in arrays.items()]
    parts += [f"{name}={_brief(value)}" for name, value in (params or {}).items()]
    return ", ".join(parts)


def _brief(value: Any) -> str:
    if isinstance(value, (list, tuple)) and value and hasattr(value[0], "dtype"):
        return "[" + ", ".join(_brief(v) for v in value) + "]"
    dtype, shape = getattr(value, "dtype", None), getattr(value, "shape", None)
    if dtype is None or shape is None or isinstance(value, type):  # as numpy.float32
        text = repr(value)
        return text if len(text) < 60 else text[:57] + "..."
    device = getattr(value, "device", None)
    return f"{dtype} {tuple(shape)}" + (f" on {device}" if device is not None else "")


_INDEX = "Indices run from -n to n - 1 along an axis of length n."
_AXIS = "Axes count from 0, or backward from -1."
_INVERTIBLE = "Add a small multiple of the identity, or use a decomposition that allows it."
_STRETCH = "Shapes must agree, counted from the last axis; an axis of length 1 broadcasts."
_CORE = "The last axis of the first must be as long as the second-to-last axis of the second."
_LAST = "The last axes must have the same length."
_SHAPES = ("shape", "dimension", "size", "square", "length", "operand", "sequence")
_MEANINGS: Sequence[tuple[tuple[str, ...], type[GpugradError], str]] = (
    (("singular", "positive definite"), SingularMatrixError, _INVERTIBLE),
    (("broadcast",), ShapeError, _STRETCH),
    (("signature (n),(n)->()",), ShapeError, _LAST),
    (("core dimension",), ShapeError, _CORE),
    (_SHAPES, ShapeError, ""),
    (("axis", "axes"), AxisError, _AXIS),
)
"""ValueErrors of array libraries: words in the text, gpugrad's class, and the way out."""

_UNSUPPORTED = "these dtypes are not supported"
_PLAIN: Sequence[tuple[str, str]] = (
    (
        r"Input operand \d+ has a mismatch in its core dimension .*"
        r"\(size (\d+) is different from (\d+)\)",
        r"axes that must have the same length have lengths \2 and \1",
    ),
    (
        r"Input operand (\d+) does not have enough dimensions \(has (\d+), .* requires (\d+)\)",
        r"array \1 has \2 axes, at least \3 needed",
    ),
    (r"ufunc '\w+' not supported for the input types, .*", _UNSUPPORTED),
    (r"ufunc '\w+' did not contain a loop with signature matching types .*", _UNSUPPORTED),
    (r"Wrong type \(.*\) of arguments for \w+", _UNSUPPORTED),  # of CuPy
    (
        r"Cannot cast (?:ufunc '\w+' (?:input \d+ |output )?|array data )?"
        r"from dtype\('(\w+)'\) to dtype\('(\w+)'\) .*",
        r"\1 does not convert to \2 without loss",
    ),
    (
        r"numpy boolean subtract, .*",
        "booleans cannot be subtracted; use gg.logical_xor if that is meant",
    ),
    (
        r"The numpy boolean negative, .*",
        "booleans cannot be negated; use gg.logical_not if that is meant",
    ),
    (
        r".*shape mismatch: objects cannot be broadcast .* with shape (\(.*?\)) .* "
        r"with shape (\(.*?\)).*",
        r"the shapes \1 and \2 do not broadcast",
    ),
    (
        r"could not broadcast input array from shape (\(.*?\)) into shape (\(.*?\))",
        r"the shape \1 does not broadcast to \2",
    ),
    (
        r"non-broadcastable output operand with shape (\(.*?\)) doesn't match the broadcast shape "
        r"(\(.*?\))",
        r"the shape \2 does not broadcast to \1",
    ),
    (
        r"input operand has more dimensions than allowed by the axis remapping",
        "the result has fewer axes than the array",
    ),
    (
        r"zero-size array to reduction operation (?:cupy_)?(\w+) which has no identity",
        r"an empty array has no \1",
    ),
    (r"attempt to get (\w+) of an empty sequence", r"an empty array has no \1"),
    (  # a rule or a formula that counts an axis from 0, as 'text' % ndim
        r"not all arguments converted during string formatting",
        "'str' object cannot be interpreted as an integer",
    ),
    (r"accumulate does not allow multiple axes", "one axis is needed, not several"),
    (r"axes don't match array", "axes must name every axis of the array once"),
    (r"data type <class 'numpy\.(\w+)'> not inexact", r"\1 is not a floating-point dtype"),
    (
        r"The DType <.* could not be promoted by <.*",
        "there is no dtype that all of these promote to",
    ),
)
"""Messages of NumPy and CuPy that show their internals, and the plain text instead."""


def _spaced(shape: re.Match[str]) -> str:
    return re.sub(r",(?=\d)", ", ", shape[0])


def _plain_text(error: Exception, name: str = "") -> str:
    """The text of an array library's exception, without the library's internals.

    Args:
        error: the exception.
        name: the op's name, which a library may put first.

    >>> _plain_text(ValueError("operands could not be broadcast together with shapes (3,) (4,) "))
    'the shapes (3,) and (4,) do not broadcast'
    """
    text = re.sub(r"\([\d,]+\)", _spaced, str(error).rstrip(" ."))  # NumPy writes (2,3)
    text = re.sub(r"^\w+: (?=Input operand)", "", text).removeprefix(f"{name}: ")
    if "operands could not be broadcast together" in text:
        # in "(3,)->(3,newaxis)" the first shape is the user's
        *shapes, last = dict.fromkeys(re.findall(r"(?<!->)\([\d, ]*\)", text)) or ["given"]
        return f"the shapes {', '.join(shapes)}{' and ' * bool(shapes)}{last} do not broadcast"
    for pattern, plain in _PLAIN:
        if match := re.fullmatch(pattern, text, re.DOTALL):
            return match.expand(plain)
    return text


_NOT_AN_INT = (
    "cannot be interpreted as an integer|__index__|iteration over a 0-d|"
    "must be integers|an integer is required|"
    "integer argument expected|non-int of type|object is not iterable|sequence of integers|"
    "string formatting"  # of 'text' % ndim
)


_ROOM = (
    "Use smaller batches, free tensors and tapes that you still hold, or trade memory for time "
    "with gg.recompute_grad."
)

_FAILED = (
    "GPU errors are asynchronous: the cause may be an earlier launch, which CUDA_LAUNCH_BLOCKING=1 "
    "finds. After most of them this process can no longer use the GPU: restart from a checkpoint."
)


def _memory() -> str:
    """The use of the current GPU's memory, in words. The allocator has emptied its cache by now."""
    cupy: Any = sys.modules["cupy"]  # which has raised the error
    pool, free = cupy.get_default_memory_pool(), cupy.cuda.runtime.memGetInfo()[0]
    held, kept = pool.used_bytes(), pool.free_bytes()
    return f"Arrays hold {held:,} bytes, the pool keeps {kept:,}, the device has {free:,} free. "


def _is_by_parameter(error: Exception, values: Iterable[Any]) -> bool:
    """Whether a parameter lacks an attribute that the op asked for, or does not convert to C++."""
    if isinstance(error, AttributeError):
        return any(error.obj is value for value in values)
    return isinstance(error, RuntimeError) and "Unable to cast Python instance" in str(error)


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
            return ArgumentError, "Pass a number; for an axis or a length, an int."
        if "slice indices" in str(error):
            return DTypeError, "Pass ints."
        if re.search(_NOT_AN_INT, str(error)):
            return ArgumentTypeError, "Pass an int or a tuple of ints."
        return DTypeError, "Convert with gg.astype(x, dtype) first."
    if isinstance(error, AttributeError):
        if re.search(r"'(int|float|bool|complex|str|list|tuple)' object has", str(error)):
            return DTypeError, "Pass an array."
        return None
    if isinstance(error, FloatingPointError):
        return NumericsError, "np.errstate or np.seterr asks for an error here."
    if isinstance(error, OverflowError):
        return NumberOverflowError, "The number does not fit the array's dtype."
    if not isinstance(error, (ValueError, LookupError, ArithmeticError)):
        return None
    text = str(error).lower()
    if isinstance(error, IndexError) or text.startswith("index "):
        return IndexOutOfBoundsError, _INDEX
    is_matrix = isinstance(error, np.linalg.LinAlgError)
    for words, kind, way_out in _MEANINGS:
        if any(word in text for word in words):
            return (MatrixShapeError if is_matrix and kind is ShapeError else kind), way_out
    return ArgumentError, ""


def reraise(
    error: Exception, name: str, arrays: Mapping[str, Any], params: Mapping[str, Any]
) -> NoReturn:
    """Raise an error from inside op `name` as a gpugrad error: the op, its arguments, a way out.

    An error that the arguments do not explain (from CUDA, or a bug in the op) is raised unchanged,
    with a note.

    >>> try:
    ...     gg.errors.reraise(ValueError("too long"), "cut", {"x": np.ones(2)}, {"n": 3})
    ... except gg.errors.ArgumentError as error:
    ...     print(error)
    cut: too long. Got x: float64 (2,) on cpu, n=3.
    """
    if isinstance(error, GpugradError):
        if re.search(rf"(?<!\w){re.escape(name)}(?!\w)", str(error)):
            raise error
        raise type(error)(f"{name}: {error}") from error
    meaning = _meaning(error)
    if meaning is None and _is_by_parameter(error, params.values()):
        meaning = DTypeError, "The docs of its parameters say what they may be."
    if meaning is None:
        error.add_note(f"Raised inside the op {name}, given {describe(arrays, params)}.")
        if type(error).__name__ in ("CUDARuntimeError", "CUDADriverError"):
            error.add_note(_FAILED)
        raise error
    kind, way_out = meaning
    text = _plain_text(error, name)
    raise kind(f"{name}: {text}. Got {describe(arrays, params)}. {way_out}".rstrip()) from error
