"""Kinds of arguments: the values that each may have.

Errors name the callable, the argument and the value.

A kind is called as ``kind(name, what, value)`` and returns the value to use. `takes` declares the
kinds of a callable's arguments::

    @takes(classes=COUNT, average=one_of("macro", "micro"))
    def __init__(self, classes, average="macro"): ...

    F1(0)  # ArgumentError: F1: classes must be a whole number above 0, got 0.
"""

from __future__ import annotations

import functools
import importlib
import inspect
import math
import numbers
import operator
import os
import sys
import types
from collections.abc import Callable
from typing import Any, NoReturn, TypeVar, cast

import numpy as np

from gpugrad.core.holders import opened
from gpugrad.core.known_as import wrong_keywords
from gpugrad.errors import ArgumentError, DTypeError, GpugradError

F = TypeVar("F", bound=Callable[..., Any])


class Kind:
    """The values that an argument may have, and how errors describe them.

    Attributes:
        read: turns a value into the one to use; raises TypeError or ValueError for others.
        words: what the argument must be.
        error: the class of the error.
    """

    def __init__(
        self, read: Callable[[Any], Any], words: str, error: type[Exception] = ArgumentError
    ) -> None:
        self.read, self.words, self.error = read, words, error

    def __call__(self, name: str, what: str, value: Any) -> Any:
        """The value to use for the argument `what` of the callable `name`."""
        try:
            return self.read(value)
        except (TypeError, ValueError, OverflowError, AttributeError, GpugradError):
            raise self.error(f"{name}: {what} must be {self.words}, got {value!r:.60}.") from None


class Range(Kind):
    """Real numbers, read as floats, for which `holds` is true."""

    def __init__(self, holds: Callable[[float], bool], words: str) -> None:
        super().__init__(_number, words)
        self.holds = holds

    def __call__(self, name: str, what: str, value: Any) -> float:
        """The number; a value that is none is refused in other words."""
        number: float = NUMBER(name, what, value)
        if self.holds(number):
            return number
        raise ArgumentError(f"{name}: {what} must be {self.words}, got {value!r:.60}.")

    def __reduce__(self) -> Any:
        """The name of a range of this module: some are public, and there is one of each."""
        names = [name for name, value in globals().items() if value is self]
        return names[0] if names else super().__reduce__()


def _refuse() -> NoReturn:
    raise ValueError


def _number(value: Any) -> float:
    return _refuse() if isinstance(value, (str, bytes, np.timedelta64)) else float(value)


NUMBER = Kind(_number, "a number")
ABOVE_0 = Range(lambda x: 0 < x < math.inf, "above 0 and finite")
BELOW_1 = Range(lambda x: 0 <= x < 1, "at least 0 and below 1")
NOT_NEGATIVE = Range(lambda x: 0 <= x < math.inf, "0 or above, and finite")
POSITIVE = Range(lambda x: x > 0, "above 0")
FRACTION = Range(lambda x: 0 <= x <= 1, "from 0 to 1")


def whole(least: int = 0, most: int = sys.maxsize) -> Kind:
    """Whole numbers of any type, from `least` to `most`, as ints."""

    def read(value: Any) -> int:
        number = operator.index(value)
        return number if least <= number <= most and not isinstance(value, bool) else _refuse()

    words = f"from {least} to {most}" if most < sys.maxsize else f"of at least {least}"
    return Kind(read, f"a whole number {'above 0' if (least, most) == (1, sys.maxsize) else words}")


WHOLE, COUNT = whole(0), whole(1)


def is_flag(value: Any) -> bool:
    """Whether a value is True or False, or 0 or 1."""
    is_whole = isinstance(value, (bool, np.bool_, int, np.integer))
    return is_whole and not isinstance(value, np.timedelta64) and value in (0, 1)


FLAG = Kind(lambda value: bool(value) if is_flag(value) else _refuse(), "True or False")
TEXT = Kind(lambda value: value if value and isinstance(value, str) else _refuse(), "text")


def one_of(*choices: Any) -> Kind:
    """A few strings, or None."""

    def read(value: Any) -> Any:
        known = isinstance(value, (str, type(None))) and value in choices
        return value if known else _refuse()

    return Kind(read, " or ".join(f'"{c}"' if isinstance(c, str) else str(c) for c in choices))


def _path(value: Any) -> Any:
    if not isinstance(value, (str, os.PathLike)):
        _refuse()
    return importlib.import_module("pathlib").Path(value)  # which `import gpugrad` does not load


PATH = Kind(_path, "a path")


def a_function(words: str = "a function", error: type[Exception] = ArgumentError) -> Kind:
    """Whatever can be called."""
    return Kind(lambda value: value if callable(value) else _refuse(), words, error)


FUNCTION, CALLABLE = a_function(), a_function(error=DTypeError)
INITIALIZER = a_function("a function such as gg.nn.initializers.he_normal")


def optional(kind: Kind) -> Kind:
    """None, or what another kind is."""
    words = f"{kind.words} or None"
    return Kind(lambda value: None if value is None else kind("", "", value), words, kind.error)


def list_of(*kinds: type) -> Kind:
    """Iterables whose elements have one of some types, as lists."""

    def read(value: Any) -> list[Any]:
        elements = list(value)
        return elements if all(isinstance(e, kinds) for e in elements) else _refuse()

    return Kind(read, f"a list of {' or '.join(kind.__name__ for kind in kinds)}")


def takes(**kinds: Kind) -> Callable[[F], F]:
    """Declare of what kinds the arguments of a function or method are; defaults are not checked.

    It is for constructors and for functions that are called rarely: a check costs as much as a
    small op. Messages about an argument of a method name the class.
    """

    def decorate(f: F) -> F:
        parameters = inspect.signature(f).parameters
        place = {parameter: k for k, parameter in enumerate(parameters)}
        places = {what: place[what] for what in kinds}
        is_method = "self" in parameters

        @functools.wraps(f)
        def checked(*args: Any, **keywords: Any) -> Any:
            name, values = type(args[0]).__name__ if is_method else f.__name__, list(args)
            for what, kind in kinds.items():
                if what in keywords:
                    keywords[what] = kind(name, what, keywords[what])
                elif places[what] < len(args):
                    values[places[what]] = kind(name, what, values[places[what]])
            try:
                return f(*values, **keywords)
            except TypeError:
                if (wrong := wrong_keywords(f, name, keywords)) is not None:
                    raise wrong from None
                raise

        return cast(F, checked)

    return decorate


# ---- the parameters of ops, which may also be arrays


def check_numbers(name: str, kinds: str = "biufcV", /, **parameters: Any) -> None:
    """DTypeError unless each is a number or an array of these kinds; NumPy takes any object."""
    for parameter, value in parameters.items():
        if (type(value) is float and "f" in kinds) or (type(value) is int and "i" in kinds):
            continue
        dtype = getattr(value, "dtype", None)
        if (np.asarray(value).dtype if dtype is None else dtype).kind not in kinds:
            real = "" if "c" in kinds else "real "
            raise DTypeError(f"{name}: {parameter} must be a {real}number, got {value!r:.60}.")


def check_op_flag(name: str, parameter: str, value: Any) -> Any:
    """An op's parameter whose default is True or False: a flag, None or an array, as of a trace.

    All else is refused: the truth value of "no" is hardly what is meant.
    """
    if value is None or is_flag(value) or hasattr(type(value), "__array__"):
        return value
    raise DTypeError(f"{name}: {parameter} must be True or False, got {value!r:.60}.")


_NO_PARAMETERS = (set, frozenset, bytes, bytearray, types.FunctionType, types.BuiltinFunctionType)


def check_unusual(op: Any, parameter: str, value: Any) -> Any:
    """An op's parameter of an unusual type, or DTypeError; a list of axes becomes a tuple."""
    value = opened(value)
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
