"""Dtype queries: limits, kinds, and promotion."""

from __future__ import annotations

import dataclasses
from typing import Any

import ml_dtypes
import numpy as np

from gpugrad.core.backend import BFLOAT16, SCALARS, as_dtype
from gpugrad.errors import ArgumentError, DTypeError, saying_where

KINDS = {
    "bool": "b",
    "signed integer": "i",
    "unsigned integer": "u",
    "integral": "iu",
    "real floating": "f",
    "complex floating": "c",
    "numeric": "iufc",
}
"""The array API's kinds of dtypes, with NumPy's characters for each."""


@dataclasses.dataclass(frozen=True, slots=True)
class _FloatLimits:
    """The limits of a floating-point dtype, as Python numbers."""

    dtype: np.dtype[Any]
    bits: int
    eps: float
    max: float
    min: float
    smallest_normal: float
    tiny: float


@dataclasses.dataclass(frozen=True, slots=True)
class _IntegerLimits:
    """The limits of an integer dtype, as Python numbers."""

    dtype: np.dtype[Any]
    bits: int
    max: int
    min: int


def _dtype_of(value: Any) -> np.dtype[Any]:
    """The dtype of an array, or the one that a name or type denotes."""
    is_name = isinstance(value, (np.dtype, type, str))  # NumPy's scalar types have a .dtype too
    return as_dtype(value if is_name else getattr(value, "dtype", value))


@saying_where
def finfo(type: Any, /) -> _FloatLimits:
    """Return the limits of a floating-point dtype.

    Args:
        type: dtype, its name, or an array of it; for a complex dtype the limits of its parts.

    Returns:
        Object with the attributes `dtype` and `bits`, and `eps`, `max`, `min`,
        `smallest_normal` and `tiny` (the same) as Python floats.

    Raises:
        DTypeError: the dtype is not floating point.

    >>> gg.finfo(gg.float32).bits
    32
    """
    dtype = _dtype_of(type)
    if dtype.kind not in "fc" and dtype != BFLOAT16:
        raise DTypeError(
            f"finfo: {dtype} is not a floating-point dtype; see gg.iinfo for integers."
        )
    look_up: Any = ml_dtypes.finfo if dtype == BFLOAT16 else np.finfo
    info = look_up(dtype)
    numbers = (info.eps, info.max, info.min, info.smallest_normal, info.smallest_normal)
    return _FloatLimits(np.dtype(info.dtype), int(info.bits), *map(float, numbers))


@saying_where
def iinfo(type: Any, /) -> _IntegerLimits:
    """Return the limits of an integer dtype.

    Args:
        type: dtype, its name, or an array of it.

    Returns:
        Object with the attributes `dtype`, and `bits`, `max` and `min` as Python ints.

    Raises:
        DTypeError: the dtype is not an integer dtype.

    >>> gg.iinfo("int8").max
    127
    """
    dtype = _dtype_of(type)
    if dtype.kind not in "iu":
        raise DTypeError(f"iinfo: {dtype} is not an integer dtype; see gg.finfo for floats.")
    info = np.iinfo(dtype)
    return _IntegerLimits(dtype, info.bits, int(info.max), int(info.min))


@saying_where
def isdtype(dtype: Any, kind: Any) -> bool:
    """Return whether a dtype is of a kind.

    Args:
        dtype: a dtype, or its name.
        kind: another dtype; ``"bool"``, ``"signed integer"``, ``"unsigned integer"``,
            ``"integral"``, ``"real floating"``, ``"complex floating"`` or ``"numeric"``; or a tuple
            of these, one of which must match. Sixteen-bit floats are real floating.

    Raises:
        ArgumentError: there is no such kind.

    >>> gg.isdtype(gg.float32, ("integral", "real floating"))
    True
    """
    if isinstance(kind, tuple):
        return any(isdtype(dtype, k) for k in kind)
    dtype = as_dtype(dtype)
    if isinstance(kind, str):
        if kind not in KINDS:
            raise ArgumentError(f"isdtype: {kind!r} is not a kind; use one of {sorted(KINDS)}.")
        return ("f" if dtype == BFLOAT16 else dtype.kind) in KINDS[kind]
    return bool(dtype == as_dtype(kind))


@saying_where
def result_type(*arrays_and_dtypes: Any) -> np.dtype[Any]:
    """Return the dtype of the result of an op on these arguments.

    Args:
        *arrays_and_dtypes: arrays, dtypes or their names, and Python numbers, which are weak:
            they take the dtype of the other arguments, if it is of their kind.

    Raises:
        ArgumentError: there are no arguments.
        DTypeError: one of them has no dtype.

    >>> gg.result_type(gg.int8, gg.float32, 1.0).name
    'float32'
    """
    if not arrays_and_dtypes:
        raise ArgumentError("result_type: at least one array or dtype is needed.")
    numbers = [v for v in arrays_and_dtypes if type(v) in SCALARS]
    dtypes = [_dtype_of(v) for v in arrays_and_dtypes if type(v) not in SCALARS]
    if not dtypes:  # as gg.asarray converts numbers
        dtype = np.result_type(*numbers)
        return {"f": np.dtype(np.float32), "c": np.dtype(np.complex64)}.get(dtype.kind, dtype)
    promoted = _promoted(dtypes)
    if promoted == BFLOAT16:  # NumPy's rule for weak numbers does not know it
        is_complex = any(type(n) is complex for n in numbers)
        return np.dtype(np.complex64) if is_complex else BFLOAT16
    return np.result_type(promoted, *numbers)


def _promoted(dtypes: list[np.dtype[Any]]) -> np.dtype[Any]:
    """NumPy's promotion; beside dtypes that it does not promote bfloat16 with, as of float32."""
    try:
        return np.result_type(*dtypes)
    except np.exceptions.DTypePromotionError:  # float16, and integers of 16 bits or more
        return np.result_type(*(np.float32 if d == BFLOAT16 else d for d in dtypes))


@saying_where
def promote_types(type1: Any, type2: Any, /) -> np.dtype[Any]:
    """Return the dtype that two dtypes promote to.

    >>> gg.promote_types("int32", "float32").name
    'float64'
    """
    return result_type(as_dtype(type1), as_dtype(type2))


@saying_where
def can_cast(from_: Any, to: Any, /, casting: str = "safe") -> bool:
    """Return whether a cast loses nothing.

    Args:
        from_: a dtype, its name, or an array.
        to: a dtype, or its name.
        casting: ``"safe"`` for casts that keep every value; ``"same_kind"`` for casts within a kind
            (float64 to float32 too); ``"no"``, ``"equiv"``, ``"unsafe"`` as in NumPy.

    >>> gg.can_cast(gg.float32, gg.float64), gg.can_cast(gg.float64, gg.float32)
    (True, False)
    """
    return bool(np.can_cast(_dtype_of(from_), as_dtype(to), casting=casting))  # type: ignore[arg-type]
