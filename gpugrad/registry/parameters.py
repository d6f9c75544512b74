"""Checks of an op's parameters that have types which few calls pass."""

from __future__ import annotations

import inspect
import numbers
import types
from typing import Any

import numpy as np

from gpugrad.errors import DTypeError

_FLAGS = (int, np.bool_, np.integer, type(None))
_NO_PARAMETERS = (set, frozenset, bytes, bytearray, types.FunctionType, types.BuiltinFunctionType)


def check_flag(name: str, parameter: str, value: Any) -> Any:
    """A parameter whose default is True or False: an int, None, or an array, which a trace may be.

    Raises:
        DTypeError: it is anything else; the truth value of "no" is hardly what is meant.
    """
    if isinstance(value, _FLAGS) or hasattr(type(value), "__array__"):
        return value
    raise DTypeError(f"{name}: {parameter} must be True or False, got {value!r:.60}.")


def check_unusual(op: Any, parameter: str, value: Any) -> Any:
    """A parameter of an unusual type; a list of axes as a tuple, which a tape can keep.

    Raises:
        DTypeError: no op takes values of that type, or not in the place of a number.
    """
    if type(value) is list and parameter == "axis":
        return tuple(value)
    if type(value) is complex and "c" not in op.kinds:
        raise DTypeError(f"{op.name}: {parameter} must be real, got {value}.")
    default = op.params[parameter]
    refused = type(value) is object or isinstance(value, _NO_PARAMETERS) or _makes_objects(value)
    if isinstance(value, dict):  # as the widths of `pad`, by axis
        by_axis = bool(value) and all(type(key) is int for key in value)
        refused = not by_axis or default is not inspect.Parameter.empty
    if refused:
        raise DTypeError(
            f"{op.name}: {parameter} cannot be of type {type(value).__name__}, got {value!r:.60}."
        )
    if type(default) is float:
        check_numbers(op.name, **{parameter: value})
    return value


def _makes_objects(value: Any) -> bool:
    """Whether NumPy computes with a value as with any object: fractions, decimals, dates."""
    dtype = getattr(value, "dtype", None)
    if isinstance(dtype, np.dtype):
        return dtype.kind in "OmM"
    return isinstance(value, numbers.Number) and not isinstance(value, (int, float, complex))


def check_numbers(name: str, kinds: str = "biufcV", /, **parameters: Any) -> None:
    """Check that each is a number or an array of these kinds; NumPy takes any object.

    Raises:
        DTypeError: one is not.
    """
    for parameter, value in parameters.items():
        dtype = getattr(value, "dtype", None)
        if (np.asarray(value).dtype if dtype is None else dtype).kind not in kinds:
            real = "" if "c" in kinds else "real "
            raise DTypeError(f"{name}: {parameter} must be a {real}number, got {value!r:.60}.")
